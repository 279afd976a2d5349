#include "diagnose/attribution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A process on a device: a thousand processes on each of 64 devices; more than that is a damaged file. */
#define RECORDS_MAX 65536

struct record {
    struct hec_gpu_process process;
    bool ours;
    char name[64];
};

struct hec_attribution {
    struct record *records;
    size_t count, capacity;
    int64_t end_ns;
    int tree_processes;
};

static int keep(void *context, const struct hec_gpu_process *process) {
    struct hec_attribution *a = context;
    if (process->first_ns > a->end_ns || process->last_ns < 0 || a->count >= RECORDS_MAX)
        return 0;
    if (a->count == a->capacity) {
        size_t capacity = a->capacity ? 2 * a->capacity : 16;
        struct record *grown = realloc(a->records, capacity * sizeof *grown);
        if (!grown)
            return HEC_ERR_NOMEM;
        a->records = grown;
        a->capacity = capacity;
    }
    a->records[a->count++] = (struct record){.process = *process};
    return 0;
}

/* A pid may be used again by a stranger: the lifetimes must overlap. A second of grace, for both are polled. */
static bool same(const struct hec_process *member, const struct hec_gpu_process *process) {
    const int64_t grace = INT64_C(1000000000);
    return member->pid == process->pid && (member->end_ns < 0 || process->first_ns <= member->end_ns + grace) &&
           process->last_ns >= member->start_ns - grace;
}

static int match(void *context, const struct hec_process *member) {
    struct hec_attribution *a = context;
    a->tree_processes++;
    for (size_t i = 0; i < a->count; i++) {
        struct record *record = &a->records[i];
        if (record->ours || !record->process.visible || !same(member, &record->process))
            continue;
        record->ours = true;
        snprintf(record->name, sizeof record->name, "%s", member->name);
    }
    return 0;
}

int hec_attribution_create(const struct hec_summary_input *input, int64_t end_ns, struct hec_attribution **out,
                           int *tree_processes, struct hec_why *why) {
    struct hec_attribution *a = calloc(1, sizeof *a);
    if (!a)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    a->end_ns = end_ns;
    int err = input->gpu_processes ? input->gpu_processes(input->context, keep, a, why) : 0;
    if (err >= 0 || err == HEC_ERR_NOTFOUND)
        err = input->processes ? input->processes(input->context, match, a, why) : 0;
    if (err < 0 && err != HEC_ERR_NOTFOUND) {
        hec_attribution_free(a);
        return err;
    }
    *tree_processes = a->tree_processes;
    *out = a;
    return 0;
}

void hec_attribution_free(struct hec_attribution *attribution) {
    if (!attribution)
        return;
    free(attribution->records);
    free(attribution);
}

static bool pid_seen_before(const struct hec_attribution *a, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (a->records[i].process.device == a->records[at].process.device &&
            a->records[i].process.pid == a->records[at].process.pid && a->records[i].ours == a->records[at].ours)
            return true;
    return false;
}

void hec_attribution_apply(const struct hec_attribution *a, struct hec_device_summary *summary) {
    int ours = 0, strangers = 0, hidden = 0;
    const struct record *first = NULL;
    for (size_t i = 0; i < a->count; i++) {
        const struct record *record = &a->records[i];
        if (record->process.device != summary->device.index || pid_seen_before(a, i))
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
    bool active = isfinite(summary->activity.from_s);
    summary->used = summary->use_unknown = false;
    summary->shared_with = strangers;
    if (ours) {
        summary->used = true;
        /* ids from another namespace cannot be ours: ours were seen under ids of this one */
        summary->shared_with += hidden;
        if (ours == 1)
            snprintf(summary->used_why, sizeof summary->used_why, "process %d (%s) of the command had a context on it",
                     (int)first->process.pid, first->name);
        else
            snprintf(summary->used_why, sizeof summary->used_why,
                     "%d processes of the command had a context on it, first %d (%.40s)", ours, (int)first->process.pid,
                     first->name);
    } else if (!summary->device.visible) {
        snprintf(summary->used_why, sizeof summary->used_why, "CUDA_VISIBLE_DEVICES hides it from the command");
        summary->shared_with += hidden;
    } else if (hidden && active) {
        summary->used = true;
        snprintf(summary->used_why, sizeof summary->used_why,
                 "assumed: the driver's process ids are of another namespace, and it was active");
    } else if (!strangers && !hidden && active) {
        summary->used = true;
        snprintf(summary->used_why, sizeof summary->used_why,
                 "assumed: the driver listed no process on it, and it was active");
    } else if (strangers && active) {
        snprintf(summary->used_why, sizeof summary->used_why,
                 "only processes outside of the command had a context on it");
    } else if (!strangers && !hidden && !summary->metric[HEC_GPU_CONTEXTS].count) {
        summary->use_unknown = true;
        snprintf(summary->used_why, sizeof summary->used_why, "unknown: the driver never said which processes used it");
    } else {
        snprintf(summary->used_why, sizeof summary->used_why, "the command had no context on it");
    }
}
