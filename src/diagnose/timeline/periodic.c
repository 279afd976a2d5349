#include "diagnose/timeline/periodic.h"

#include "base/list.h"
#include "diagnose/timeline/steps_periodic.h"

#include <math.h>
#include <stdlib.h>

#define STEP_LENGTH_TOLERANCE 0.5 /* a step with half as many kernels more is a step and something else */

/* Elements of the sequence: kernels by name, then what else keeps the device busy, then copies from and to the host. */
enum element { ELEMENT_GRAPH, ELEMENT_MEMSET, ELEMENT_COPY, ELEMENT_FROM_HOST, ELEMENT_TO_HOST, ELEMENT_COUNT };

static bool of_host(uint8_t memory) {
    return memory == HEC_MEMORY_PAGEABLE || memory == HEC_MEMORY_PINNED || memory == HEC_MEMORY_HOST;
}

static uint32_t element_of(const struct hec_timeline_tables *tables, const struct hec_activity *a) {
    uint32_t base = (uint32_t)tables->name_count + 1;
    switch (a->kind) {
    case HEC_ACTIVITY_KERNEL: {
        uint32_t name = hec_timeline_kernel_name(tables, a->name);
        return name && name < tables->name_count ? name : base - 1;
    }
    case HEC_ACTIVITY_GRAPH:
        return base + ELEMENT_GRAPH;
    case HEC_ACTIVITY_MEMSET:
        return base + ELEMENT_MEMSET;
    default:
        return base + (of_host(a->from) ? ELEMENT_FROM_HOST : of_host(a->to) ? ELEMENT_TO_HOST : ELEMENT_COPY);
    }
}

int hec_periodic_add(struct hec_periodic *stream, const struct hec_timeline_tables *tables,
                     const struct hec_activity *a, int64_t busy_ns) {
    if (!hec_list_room(stream->list, stream->count, stream->capacity, 1024))
        return HEC_ERR_NOMEM;
    stream->list[stream->count++] = (struct hec_periodic_entry){a->start_ns, busy_ns, element_of(tables, a)};
    return 0;
}

/* Something may be missing between two instants. */
static bool broken(struct hec_intervals *traced, int64_t from_ns, int64_t to_ns) {
    return hec_intervals_within(traced, from_ns, to_ns) < to_ns - from_ns;
}

static int learn(const struct hec_periodic *stream, uint32_t base, struct hec_intervals *traced,
                 struct hec_period *out) {
    uint32_t *ids = malloc(HEC_PERIODIC_LEARNT * sizeof *ids);
    size_t count = 0, from = stream->count > HEC_PERIODIC_LEARNT ? (stream->count - HEC_PERIODIC_LEARNT) / 2 : 0;
    for (size_t i = from; ids && i < stream->count && count + 2 <= HEC_PERIODIC_LEARNT; i++) {
        const struct hec_periodic_entry *e = &stream->list[i];
        if (count && broken(traced, e[-1].start_ns, e->start_ns))
            ids[count++] = 0;
        ids[count++] = e->element;
    }
    int err = ids ? hec_period_find(ids, count, base + ELEMENT_COUNT, base + ELEMENT_FROM_HOST, out) : HEC_ERR_NOMEM;
    free(ids);
    return err;
}

int hec_periodic_steps(const struct hec_periodic *stream, const struct hec_timeline_tables *tables,
                       struct hec_intervals *traced, struct hec_step_list *steps, double *confidence,
                       double *busy_share) {
    struct hec_period period = {0};
    const struct hec_periodic_entry *open = NULL;
    double busy_ns = 0, all_ns = 0;
    int err = learn(stream, (uint32_t)tables->name_count + 1, traced, &period);
    *confidence = *busy_share = NAN;
    for (size_t i = 0; i < stream->count && period.anchor && !err; i++) {
        const struct hec_periodic_entry *e = &stream->list[i];
        if (e->element != period.anchor)
            continue;
        double apart = open ? fabs((double)(e - open) - period.length) : INFINITY;
        if (open && e->start_ns > open->start_ns && apart <= STEP_LENGTH_TOLERANCE * period.length &&
            !broken(traced, open->start_ns, e->start_ns)) {
            err = hec_step_list_add(steps, open->start_ns, e->start_ns, NAN);
            busy_ns += (double)(e->busy_ns - open->busy_ns);
            all_ns += (double)(e->start_ns - open->start_ns);
        }
        open = e;
    }
    *confidence = period.anchor ? period.confidence : NAN;
    if (all_ns > 0)
        *busy_share = busy_ns / all_ns;
    return err;
}
