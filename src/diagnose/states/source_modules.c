#include "diagnose/states/source_modules.h"

#include "base/clock.h"
#include "base/list.h"
#include "diagnose/timeline/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MAX 64    /* ranges within ranges; deeper ones are covered by those around them */
#define KEPT 262144    /* changes of label that are remembered: launches lie back by the depth of the device's queue */
#define BY_OPERATOR 1u /* lowest bit of a label; above it the name id */

/* The label of a thread from t_ns on. */
struct change {
    int64_t t_ns;
    uint64_t label; /* 0: none */
};

struct thread {
    struct {
        int64_t end_ns;
        uint64_t label;
    } open[OPEN_MAX];
    int open_count;
    struct change *changes;
    size_t count, capacity, cursor;
};

struct sum {
    int device;
    uint64_t label;
    int64_t ns, launches;
};

struct hec_source_modules_builder {
    const struct hec_timeline_tables *tables;
    bool any;                /* range or operator */
    struct thread **threads; /* by track id */
    struct sum *slots;       /* a hash table, a power of two; launches 0: free */
    size_t slot_count, used;
    struct sum *last; /* what was found last: the next is often the same */
};

static int change(struct thread *t, int64_t t_ns, uint64_t label) {
    if (t->count && t->changes[t->count - 1].t_ns >= t_ns) {
        t->changes[t->count - 1].label = label;
        return 0;
    }
    if (t->count == t->capacity && t->capacity >= KEPT) {
        memmove(t->changes, &t->changes[t->count / 2], (t->count - t->count / 2) * sizeof *t->changes);
        t->count -= t->count / 2;
        t->cursor = 0;
    } else if (!hec_list_room(t->changes, t->count, t->capacity, 64)) {
        return HEC_ERR_NOMEM;
    }
    t->changes[t->count++] = (struct change){t_ns, label};
    return 0;
}

/* What has ended by t. */
static int close_until(struct thread *t, int64_t t_ns) {
    int err = 0;
    while (t->open_count && t->open[t->open_count - 1].end_ns <= t_ns && !err) {
        int64_t end = t->open[--t->open_count].end_ns;
        err = change(t, end, t->open_count ? t->open[t->open_count - 1].label : 0);
    }
    return err;
}

static int take_range(struct hec_source_modules_builder *b, const struct hec_activity *a) {
    struct thread **slot = &b->threads[a->track];
    if (!*slot && !(*slot = calloc(1, sizeof **slot)))
        return HEC_ERR_NOMEM;
    struct thread *t = *slot;
    int err = close_until(t, a->start_ns);
    if (err || t->open_count == OPEN_MAX || !a->name)
        return err;
    uint64_t outer = t->open_count ? t->open[t->open_count - 1].label : 0;
    uint64_t own = (uint64_t)a->name << 1 | (a->kind == HEC_ACTIVITY_OPERATOR ? BY_OPERATOR : 0);
    uint64_t label = a->kind == HEC_ACTIVITY_OPERATOR && outer ? outer : own;
    t->open[t->open_count].end_ns = a->end_ns;
    t->open[t->open_count++].label = label;
    return change(t, a->start_ns, label);
}

static uint64_t label_at(struct thread *t, int64_t t_ns) {
    size_t low = 0, high = t->count;
    if (t->cursor < t->count && t->changes[t->cursor].t_ns <= t_ns) { /* launches mostly go on in time */
        low = t->cursor;
        high = low + 16 < t->count && t->changes[low + 16].t_ns > t_ns ? low + 16 : t->count;
    }
    while (low < high) { /* the first that is later */
        size_t middle = low + (high - low) / 2;
        if (t->changes[middle].t_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    t->cursor = low ? low - 1 : 0;
    return low ? t->changes[low - 1].label : 0;
}

static struct sum *slot_of(struct sum *slots, size_t count, int device, uint64_t label) {
    size_t at =
        (size_t)(((label ^ (uint64_t)(uint32_t)device << 40) * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & (count - 1);
    while (slots[at].launches && (slots[at].device != device || slots[at].label != label))
        at = (at + 1) & (count - 1);
    return &slots[at];
}

static int grow(struct hec_source_modules_builder *b) {
    size_t count = b->slot_count ? 2 * b->slot_count : 64;
    struct sum *slots = calloc(count, sizeof *slots);
    if (!slots)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < b->slot_count; i++)
        if (b->slots[i].launches)
            *slot_of(slots, count, b->slots[i].device, b->slots[i].label) = b->slots[i];
    free(b->slots);
    b->slots = slots;
    b->slot_count = count;
    b->last = NULL;
    return 0;
}

static int take_launched(struct hec_source_modules_builder *b, const struct hec_activity *a) {
    const struct hec_track *track = hec_timeline_track(b->tables, a->track);
    struct thread *t = a->launch_track < b->tables->track_count ? b->threads[a->launch_track] : NULL;
    uint64_t label = 0;
    if (!track || track->kind != HEC_TRACK_STREAM || hec_timeline_communicates(b->tables, a))
        return 0;
    if (t && a->launch_ns != HEC_TIME_UNKNOWN) {
        int err = close_until(t, a->start_ns);
        if (err)
            return err;
        label = label_at(t, a->launch_ns);
    }
    if (2 * b->used >= b->slot_count && grow(b) != 0)
        return HEC_ERR_NOMEM;
    struct sum *s = b->last;
    if (!s || s->device != track->device || s->label != label)
        s = b->last = slot_of(b->slots, b->slot_count, track->device, label);
    b->used += !s->launches;
    s->device = track->device;
    s->label = label;
    s->launches++;
    s->ns += a->end_ns - a->start_ns;
    return 0;
}

static int take_activities(void *to, const struct hec_activity *a, size_t count) {
    struct hec_source_modules_builder *b = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        if (!(hec_stages[HEC_STAGE_MODULES].kinds & HEC_ACTIVITY_BIT(a[i].kind)) || !hec_timeline_plausible(&a[i]) ||
            a[i].track >= b->tables->track_count)
            continue;
        bool launched = a[i].kind == HEC_ACTIVITY_KERNEL || a[i].kind == HEC_ACTIVITY_GRAPH;
        b->any |= !launched;
        err = launched ? take_launched(b, &a[i]) : take_range(b, &a[i]);
    }
    return err;
}

static int in_order(const void *a, const void *b) {
    const struct sum *one = a, *other = b;
    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    if (one->ns != other->ns)
        return one->ns > other->ns ? -1 : 1;
    return (one->label > other->label) - (one->label < other->label);
}

static int result(struct hec_source_modules_builder *b, int most, struct hec_source_modules *out) {
    size_t n = 0;
    for (size_t i = 0; i < b->slot_count; i++)
        if (b->slots[i].launches)
            b->slots[n++] = b->slots[i];
    out->modules = malloc((n + 1) * sizeof *out->modules);
    if (!out->modules)
        return HEC_ERR_NOMEM;
    if (n)
        qsort(b->slots, n, sizeof *b->slots, in_order);
    for (size_t i = 0, j; i < n; i = j) {
        double total = 0;
        int listed = 0;
        for (j = i; j < n && b->slots[j].device == b->slots[i].device; j++)
            total += (double)b->slots[j].ns;
        for (size_t k = i; k < j && listed < most; k++) {
            const struct sum *s = &b->slots[k];
            if (!s->label)
                continue;
            struct hec_source_module *m = &out->modules[out->count++];
            *m = (struct hec_source_module){
                .device = s->device,
                .by = s->label & BY_OPERATOR ? HEC_ACTIVITY_OPERATOR : HEC_ACTIVITY_RANGE,
                .launches = s->launches,
                .seconds = (double)s->ns / HEC_NS_PER_S,
                .share = total > 0 ? (double)s->ns / total : 0,
            };
            snprintf(m->name, sizeof m->name, "%s", hec_timeline_name(b->tables, (uint32_t)(s->label >> 1)));
            listed++;
        }
    }
    return 0;
}

struct hec_source_modules_builder *hec_source_modules_begin(const struct hec_timeline_tables *tables,
                                                            struct hec_pass_consumer *consumer) {
    struct hec_source_modules_builder *b = calloc(1, sizeof *b);
    *consumer = hec_stage_consumer(HEC_STAGE_MODULES, b, take_activities);
    if (b && (b->threads = calloc(tables->track_count + 1, sizeof(struct thread *)))) {
        b->tables = tables;
        return b;
    }
    free(b);
    return NULL;
}

int hec_source_modules_end(struct hec_source_modules_builder *b, int most, struct hec_source_modules *out) {
    memset(out, 0, sizeof *out);
    int err = b->any ? result(b, most, out) : 0;
    hec_source_modules_abandon(b);
    return err;
}

void hec_source_modules_abandon(struct hec_source_modules_builder *b) {
    if (!b)
        return;
    for (size_t i = 0; i < b->tables->track_count; i++) {
        free(b->threads[i] ? b->threads[i]->changes : NULL);
        free(b->threads[i]);
    }
    free(b->threads);
    free(b->slots);
    free(b);
}

void hec_source_modules_free(struct hec_source_modules *modules) {
    free(modules->modules);
    memset(modules, 0, sizeof *modules);
}
