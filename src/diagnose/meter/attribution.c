#include "base/list.h"
#include "diagnose/meter/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A process on a device: a thousand processes on each of 64 devices; more than that is a damaged file. */
#define RECORDS_MAX 65536

struct record {
    struct hec_gpu_process process;
    bool ours, again; /* again: an earlier record is of the same process on the same device */
    char name[64];
};

struct hec_attribution {
    struct record *records;
    size_t count, capacity;
    /* While the tree is read: the records by pid and first_ns, and over them a tree of the latest last_ns of those that are
     * not known to be ours. Its leaves begin at leaves, its root is 1. */
    struct record **by_pid;
    int64_t *latest;
    size_t leaves;
    int64_t end_ns;
    int tree_processes;
};

static int keep(void *context, const struct hec_gpu_process *process) {
    struct hec_attribution *a = context;
    if (process->first_ns > a->end_ns || process->last_ns < 0 || a->count >= RECORDS_MAX)
        return 0;
    if (!hec_list_room(a->records, a->count, a->capacity, 16))
        return HEC_ERR_NOMEM;
    a->records[a->count++] = (struct record){.process = *process};
    return 0;
}

static int by_pid(const void *a, const void *b) {
    const struct record *x = *(struct record *const *)a, *y = *(struct record *const *)b;
    if (x->process.pid != y->process.pid)
        return x->process.pid < y->process.pid ? -1 : 1;
    return (x->process.first_ns > y->process.first_ns) - (x->process.first_ns < y->process.first_ns);
}

/* Of one process on one device: ours first, then as they came. */
static int by_device(const void *a, const void *b) {
    const struct record *x = *(struct record *const *)a, *y = *(struct record *const *)b;
    if (x->process.device != y->process.device)
        return x->process.device < y->process.device ? -1 : 1;
    if (x->process.pid != y->process.pid)
        return x->process.pid < y->process.pid ? -1 : 1;
    if (x->ours != y->ours)
        return x->ours ? -1 : 1;
    return (x > y) - (x < y);
}

static bool begin_matching(struct hec_attribution *a) {
    for (a->leaves = 1; a->leaves < a->count;)
        a->leaves *= 2;
    a->by_pid = malloc(a->leaves * sizeof(struct record *));
    a->latest = malloc(2 * a->leaves * sizeof *a->latest);
    if (!a->by_pid || !a->latest)
        return false;
    for (size_t i = 0; i < a->count; i++)
        a->by_pid[i] = &a->records[i];
    qsort(a->by_pid, a->count, sizeof(struct record *), by_pid);
    for (size_t i = 0; i < a->leaves; i++)
        a->latest[a->leaves + i] =
            i < a->count && a->by_pid[i]->process.visible ? a->by_pid[i]->process.last_ns : INT64_MIN;
    for (size_t i = a->leaves; i-- > 1;)
        a->latest[i] = a->latest[2 * i] > a->latest[2 * i + 1] ? a->latest[2 * i] : a->latest[2 * i + 1];
    return true;
}

/* How many records come before those of the pid that begin after first_ns. */
static size_t before(const struct hec_attribution *a, int32_t pid, int64_t first_ns) {
    size_t low = 0, high = a->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct hec_gpu_process *p = &a->by_pid[middle]->process;
        if (p->pid < pid || (p->pid == pid && p->first_ns <= first_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Those from `from` to before `to` that were there at start_ns or later, below a node of the tree over `width` leaves from
 * `at`, are the member's. */
static void claim(struct hec_attribution *a, size_t node, size_t at, size_t width, size_t from, size_t to,
                  int64_t start_ns, const char *name) {
    if (at >= to || at + width <= from || a->latest[node] < start_ns || a->latest[node] == INT64_MIN)
        return;
    if (width == 1) {
        a->by_pid[at]->ours = true;
        snprintf(a->by_pid[at]->name, sizeof a->by_pid[at]->name, "%s", name);
        a->latest[node] = INT64_MIN;
        return;
    }
    claim(a, 2 * node, at, width / 2, from, to, start_ns, name);
    claim(a, 2 * node + 1, at + width / 2, width / 2, from, to, start_ns, name);
    a->latest[node] = a->latest[2 * node] > a->latest[2 * node + 1] ? a->latest[2 * node] : a->latest[2 * node + 1];
}

/* A pid may be used again by a stranger: the lifetimes must overlap. A second of grace, for both are polled. */
static int match(void *context, const struct hec_process *member) {
    struct hec_attribution *a = context;
    const int64_t grace = INT64_C(1000000000);
    a->tree_processes++;
    claim(a, 1, 0, a->leaves, before(a, member->pid, INT64_MIN),
          before(a, member->pid, member->end_ns < 0 ? INT64_MAX : member->end_ns + grace), member->start_ns - grace,
          member->name);
    return 0;
}

static void end_matching(struct hec_attribution *a) {
    qsort(a->by_pid, a->count, sizeof(struct record *), by_device);
    for (size_t i = 1; i < a->count; i++) {
        const struct record *earlier = a->by_pid[i - 1];
        struct record *record = a->by_pid[i];
        record->again = earlier->process.device == record->process.device &&
                        earlier->process.pid == record->process.pid && earlier->ours == record->ours;
    }
}

int hec_attribution_create(const struct hec_summary_input *input, int64_t end_ns, struct hec_attribution **out,
                           int *tree_processes, struct hec_why *why) {
    struct hec_attribution *a = calloc(1, sizeof *a);
    if (!a)
        return HEC_ERR_NOMEM;
    a->end_ns = end_ns;
    int err = input->gpu_processes ? input->gpu_processes(input->context, keep, a, why) : 0;
    if ((err >= 0 || err == HEC_ERR_NOTFOUND) && !begin_matching(a))
        err = HEC_ERR_NOMEM;
    if (err >= 0 || err == HEC_ERR_NOTFOUND)
        err = input->processes ? input->processes(input->context, match, a, why) : 0;
    if (err < 0 && err != HEC_ERR_NOTFOUND) {
        hec_attribution_free(a);
        return err;
    }
    end_matching(a);
    *tree_processes = a->tree_processes;
    *out = a;
    return 0;
}

void hec_attribution_free(struct hec_attribution *attribution) {
    if (!attribution)
        return;
    free(attribution->records);
    free(attribution->by_pid);
    free(attribution->latest);
    free(attribution);
}

void hec_attribution_apply(const struct hec_attribution *a, struct hec_device_summary *summary) {
    int ours = 0, strangers = 0, hidden = 0;
    const struct record *first = NULL;
    for (size_t i = 0; i < a->count; i++) {
        const struct record *record = &a->records[i];
        if (record->process.device != summary->device.index || record->again)
            continue;
        if (record->ours) {
            first = first ? first : record;
            ours++;
        } else if (record->process.visible) {
            strangers++;
        } else {
            hidden++;
        }
    }
    bool active = isfinite(summary->activity.from_s), seen = strangers || hidden;
    /* ids from another namespace cannot be ours: ours were seen under ids of this one */
    summary->shared_with = strangers + (ours || !summary->device.visible ? hidden : 0);
    summary->used = ours || (summary->device.visible && active && !(strangers && !hidden));
    summary->use_unknown = false;
    struct hec_reason why = HEC_BECAUSE(UNUSED);
    if (ours == 1)
        why = hec_reason_with(HEC_BECAUSE_OF(USED_PROCESS, first->process.pid), first->name);
    else if (ours)
        why = hec_reason_with(HEC_BECAUSE_OF(USED_PROCESSES, ours, first->process.pid), first->name);
    else if (!summary->device.visible)
        why = HEC_BECAUSE(UNUSED_HIDDEN);
    else if (hidden && active)
        why = HEC_BECAUSE(USED_OTHER_IDS);
    else if (!seen && active)
        why = HEC_BECAUSE(USED_UNLISTED);
    else if (active)
        why = HEC_BECAUSE(UNUSED_OTHERS);
    else if (!seen && !summary->metric[HEC_GPU_CONTEXTS].count) {
        summary->use_unknown = true;
        why = HEC_BECAUSE(USE_UNKNOWN);
    }
    summary->used_why = why;
}
