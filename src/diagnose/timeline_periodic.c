#include "diagnose/timeline_periodic.h"

#include "diagnose/steps_periodic.h"

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

struct learner {
    const struct hec_timeline_tables *tables;
    struct hec_timeline_device *device;
    uint32_t track;
    int64_t skip;
    uint32_t *ids;
    size_t count;
    int64_t previous_ns;
};

/* Something may be missing between two instants. */
static bool broken(struct hec_timeline_device *device, int64_t from_ns, int64_t to_ns) {
    return hec_intervals_within(&device->traced, from_ns, to_ns) < to_ns - from_ns;
}

static int learn(void *to, const struct hec_activity *a, size_t count) {
    struct learner *l = to;
    for (size_t i = 0; i < count; i++) {
        if (a[i].track != l->track || !hec_timeline_plausible(&a[i]) || l->skip-- > 0)
            continue;
        if (l->count + 2 > HEC_PERIODIC_LEARNT)
            return 1;
        if (l->count && broken(l->device, l->previous_ns, a[i].start_ns))
            l->ids[l->count++] = 0;
        l->ids[l->count++] = element_of(l->tables, &a[i]);
        l->previous_ns = a[i].start_ns;
    }
    return 0;
}

struct finder {
    const struct hec_timeline_tables *tables;
    struct hec_timeline_device *device;
    uint32_t track;
    struct hec_period period;
    struct hec_union busy;
    struct hec_intervals everywhere;
    struct hec_step_list *steps;
    int64_t from_ns, busy_from_ns; /* where the step that is open began; how busy the device had been until then */
    int64_t elements;
    bool open;
    double busy_ns, all_ns;
};

static int64_t busy_until(const struct hec_union *u, int64_t t_ns) {
    return u->length_ns + (u->start_ns <= u->end_ns ? (t_ns < u->end_ns ? t_ns : u->end_ns) - u->start_ns : 0);
}

static int take_anchor(struct finder *f, int64_t t_ns) {
    int err = 0;
    int64_t busy = busy_until(&f->busy, t_ns);
    double apart = fabs((double)f->elements - f->period.length);
    if (f->open && t_ns > f->from_ns && apart <= STEP_LENGTH_TOLERANCE * f->period.length &&
        !broken(f->device, f->from_ns, t_ns)) {
        err = hec_step_list_add(f->steps, f->from_ns, t_ns, NAN);
        f->busy_ns += (double)(busy - f->busy_from_ns);
        f->all_ns += (double)(t_ns - f->from_ns);
    }
    f->open = true;
    f->from_ns = t_ns;
    f->busy_from_ns = busy;
    f->elements = 0;
    return err;
}

static int find(void *to, const struct hec_activity *a, size_t count) {
    struct finder *f = to;
    for (size_t i = 0; i < count; i++) {
        const struct hec_track *track = hec_timeline_track(f->tables, a[i].track);
        if (!track || track->kind != HEC_TRACK_STREAM || track->device != f->device->device ||
            !hec_timeline_plausible(&a[i]))
            continue;
        if (a[i].track == f->track) {
            int err = element_of(f->tables, &a[i]) == f->period.anchor ? take_anchor(f, a[i].start_ns) : 0;
            if (err)
                return err;
            f->elements++;
        }
        hec_union_add(&f->busy, &f->everywhere, a[i].start_ns, a[i].end_ns);
    }
    return 0;
}

int hec_timeline_periodic(const struct hec_timeline_input *input, const struct hec_timeline_tables *tables,
                          struct hec_timeline_device *device, uint32_t track, int64_t count,
                          struct hec_step_list *steps, double *confidence, double *busy_share, struct hec_why *why) {
    struct learner l = {
        .tables = tables,
        .device = device,
        .track = track,
        .skip = count > HEC_PERIODIC_LEARNT ? (count - HEC_PERIODIC_LEARNT) / 2 : 0,
        .ids = malloc(HEC_PERIODIC_LEARNT * sizeof *l.ids),
    };
    struct finder f = {
        .tables = tables, .device = device, .track = track, .steps = steps, .everywhere = {.everywhere = true}};
    uint32_t base = (uint32_t)tables->name_count + 1;
    *confidence = *busy_share = NAN;
    if (!l.ids)
        return HEC_ERR_NOMEM;
    int err = input->activities(input->context, HEC_ACTIVITY_DEVICE, learn, &l, why);
    if (err >= 0)
        err = hec_period_find(l.ids, l.count, base + ELEMENT_COUNT, base + ELEMENT_FROM_HOST, &f.period);
    free(l.ids);
    if (err || !f.period.anchor)
        return err;
    hec_union_init(&f.busy);
    err = input->activities(input->context, HEC_ACTIVITY_DEVICE, find, &f, why);
    if (err)
        return err;
    *confidence = f.period.confidence;
    if (f.all_ns > 0)
        *busy_share = f.busy_ns / f.all_ns;
    return 0;
}
