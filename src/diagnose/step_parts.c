#include "base/clock.h"
#include "base/list.h"
#include "diagnose/build.h"
#include "diagnose/timeline/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INTERVALS_KEPT                                                                                                 \
    ((size_t)1 << 20)     /* launches lie back by the depth of the device's queue: then the older half goes */
#define LOOK_BACK 256     /* intervals of other processes, and of parts within parts */
#define UNKNOWN_MOST 0.05 /* of the device time: nobody saw its launch */
#define STEPS_LEAST 1

struct interval {
    int64_t start_ns, end_ns;
    int32_t pid;
    int part;
};

struct device {
    int64_t ns[HEC_STEP_PARTS + 1][HEC_KERNEL_CLASS_COUNT]; /* the last: in none of them */
    int64_t unknown_ns;
};

struct hec_step_parts_builder {
    struct hec_pass *pass;
    uint32_t name[HEC_STEP_PARTS]; /* id; 0: it is not in the timeline */
    struct interval *list;
    size_t count, capacity;
    struct device device[HEC_DEVICE_MAX];
};

static int add_interval(struct hec_step_parts_builder *b, const struct hec_activity *a) {
    const struct hec_track *track = hec_timeline_track(&b->pass->tables, a->track);
    int part = 0;
    while (part < HEC_STEP_PARTS && (!b->name[part] || b->name[part] != a->name))
        part++;
    if (part == HEC_STEP_PARTS || !track)
        return 0;
    if (b->count == INTERVALS_KEPT) {
        memmove(b->list, &b->list[b->count / 2], (b->count - b->count / 2) * sizeof *b->list);
        b->count -= b->count / 2;
    }
    if (!hec_list_room(b->list, b->count, b->capacity, 1024))
        return HEC_ERR_NOMEM;
    b->list[b->count++] = (struct interval){a->start_ns, a->end_ns, track->pid, part};
    return 0;
}

/* The innermost part in which a process was at that time; HEC_STEP_PARTS: none. The backward pass launches from a thread of its own. */
static int part_at(const struct hec_step_parts_builder *b, int32_t pid, int64_t t_ns) {
    size_t low = 0, high = b->count;
    while (low < high) { /* the first that begins later */
        size_t middle = low + (high - low) / 2;
        if (b->list[middle].start_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t back = 0; back < LOOK_BACK && back < low; back++) {
        const struct interval *at = &b->list[low - 1 - back];
        if (at->pid == pid && at->end_ns > t_ns)
            return at->part;
    }
    return HEC_STEP_PARTS;
}

static void add_launched(struct hec_step_parts_builder *b, const struct hec_activity *a) {
    const struct hec_track *track = hec_timeline_track(&b->pass->tables, a->track);
    if (!track || track->kind != HEC_TRACK_STREAM || !hec_device_bit(track->device) ||
        hec_timeline_communicates(&b->pass->tables, a))
        return;
    struct device *d = &b->device[track->device];
    enum hec_kernel_class class =
        a->kind == HEC_ACTIVITY_KERNEL ? hec_timeline_kernel_class(&b->pass->tables, a->name) : HEC_KERNEL_CLASS_OTHER;
    if (a->launch_ns == HEC_TIME_UNKNOWN)
        d->unknown_ns += a->end_ns - a->start_ns;
    else
        d->ns[part_at(b, track->pid, a->launch_ns)][class] += a->end_ns - a->start_ns;
}

static int take_activities(void *to, const struct hec_activity *a, size_t count) {
    struct hec_step_parts_builder *b = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        if (!hec_timeline_plausible(&a[i]))
            continue;
        if (a[i].kind == HEC_ACTIVITY_PHASE)
            err = add_interval(b, &a[i]);
        else if (a[i].kind == HEC_ACTIVITY_KERNEL || a[i].kind == HEC_ACTIVITY_GRAPH)
            add_launched(b, &a[i]);
    }
    return err;
}

int hec_step_parts_begin(struct hec_pass *pass, struct hec_step_parts_builder **out,
                         struct hec_pass_consumer *consumer) {
    uint32_t name[HEC_STEP_PARTS] = {0};
    bool any = false;
    *out = NULL;
    *consumer = (struct hec_pass_consumer){0};
    for (uint32_t id = 1; id < pass->tables.name_count; id++)
        for (int i = 0; i < HEC_STEP_PARTS; i++)
            if (strcmp(hec_timeline_name(&pass->tables, id), hec_step_part_phases[i]) == 0) {
                name[i] = id;
                any = true;
            }
    if (!any)
        return 0;
    if (!(*out = calloc(1, sizeof **out)))
        return HEC_ERR_NOMEM;
    (*out)->pass = pass;
    memcpy((*out)->name, name, sizeof name);
    *consumer = hec_stage_consumer(HEC_STAGE_PARTS, *out, take_activities);
    return 0;
}

/* Steps that were traced, those in part by their share. */
static double traced_steps(const struct hec_step_list *steps, struct hec_intervals *traced) {
    double sum = 0;
    for (size_t i = 0; i < steps->count; i++) {
        int64_t length_ns = steps->list[i].end_ns - steps->list[i].start_ns;
        int64_t within_ns = traced->everywhere
                                ? length_ns
                                : hec_intervals_within(traced, steps->list[i].start_ns, steps->list[i].end_ns);
        sum += length_ns > 0 ? (double)within_ns / (double)length_ns : 0;
    }
    return sum;
}

/* The watts of a class of kernels; of all compute, where there are none of it. */
static struct hec_ledger_watts watts_of(const struct hec_ledger_device *ledger, int class) {
    const struct hec_ledger_row *all = ledger ? &ledger->rows[HEC_STATE_COMPUTE] : NULL;
    const struct hec_ledger_class *own = ledger ? &ledger->classes[class] : NULL;
    if (!ledger)
        return (struct hec_ledger_watts){NAN, NAN, NAN};
    return isfinite(own->watts) ? (struct hec_ledger_watts){own->watts, own->watts_low, own->watts_high}
                                : (struct hec_ledger_watts){all->watts, all->watts_low, all->watts_high};
}

static void price(const struct hec_device_diagnosis *d, const struct device *of, double united,
                  struct hec_device_parts *out) {
    for (int i = 0; i <= HEC_STEP_PARTS; i++) {
        struct hec_device_part *part = &out->part[i];
        for (int class = 0; class < HEC_KERNEL_CLASS_COUNT; class ++) {
            double seconds = (double)of->ns[i][class] / HEC_NS_PER_S, each = united * seconds / out->steps;
            struct hec_ledger_watts watts = watts_of(d->ledger, class);
            part->seconds += seconds;
            if (seconds > 0) {
                part->step_joules += each * watts.watts;
                part->step_joules_low += each * watts.low;
                part->step_joules_high += each * watts.high;
            }
        }
    }
}

static void settle(const struct hec_step_parts_builder *b, const struct hec_step_list *steps,
                   struct hec_device_diagnosis *d) {
    const struct device *of = &b->device[d->readings.device.index];
    struct hec_device_parts *out = &d->parts;
    int64_t all_ns = 0, parts_ns = 0;
    for (int i = 0; i <= HEC_STEP_PARTS; i++)
        for (int class = 0; class < HEC_KERNEL_CLASS_COUNT; class ++) {
            all_ns += of->ns[i][class];
            parts_ns += i < HEC_STEP_PARTS ? of->ns[i][class] : 0;
        }
    double traced = steps && d->timeline ? traced_steps(steps, &d->timeline->traced) : 0;
    if (!parts_ns || traced < STEPS_LEAST || steps->beyond ||
        (double)of->unknown_ns > UNKNOWN_MOST * (double)(all_ns + of->unknown_ns))
        return;
    out->steps = traced;
    out->glimpse = d->ledger && d->ledger->basis == HEC_LEDGER_GLIMPSE;
    price(d, of, fmin(1, d->timeline->compute_s * HEC_NS_PER_S / (double)all_ns), out);
}

int hec_step_parts_end(struct hec_step_parts_builder *b, struct hec_summary *out) {
    struct hec_device_steps steps;
    int err = b ? hec_device_steps_choose(&b->pass->survey, &b->pass->tables, &steps) : 0;
    for (int i = 0; i < out->device_count && b && !err; i++)
        if (hec_device_bit(out->devices[i].readings.device.index))
            settle(b, hec_device_steps_of(&steps, out->devices[i].readings.device.index), &out->devices[i]);
    hec_step_parts_free(b);
    return err;
}

void hec_step_parts_free(struct hec_step_parts_builder *b) {
    if (b)
        free(b->list);
    free(b);
}
