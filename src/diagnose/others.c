#include "base/names.h"
#include "base/clock.h"
#include "diagnose/build.h"
#include "diagnose/physics.h"

#include <math.h>

/* What the engine reads above the time that CUPTI saw: its own pauses between what it runs. Of 42 runs of one program alone on an
 * H100 0.3 to 2.3 us a gap, up to 12 points in all; beside a neighbour at work 28 us. Copies of less than 10 us are partly its
 * work (a program that masks: 4.0 us a gap above kernels alone), larger ones are not. */
#define COPY_S 10e-6
#define SLACK 0.05   /* readings of half a second lie across the ends of windows */
#define LEAST_S 0.25 /* of readings in windows */
/* Where the driver lists nobody else, so many times and so much more is somebody whom it does not list. Alone: at most 2.7 times
 * what CUPTI saw, and then 10 points. */
#define UNSEEN_TIMES 2.0
#define UNSEEN_MORE 0.20

HEC_NAME_OF(hec_others_name, enum hec_others, "idle", "maybe", "busy")

/* The engine's readings in the time that CUPTI saw. */
struct seen {
    struct hec_intervals *traced;
    int64_t from_ns, to_ns;
    double active_ns, ns;
};

static void take_step(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct seen *s = context;
    int64_t from = start_ns > s->from_ns ? start_ns : s->from_ns, to = end_ns < s->to_ns ? end_ns : s->to_ns;
    double inside = from < to ? (double)hec_intervals_within(s->traced, from, to) : 0;
    s->active_ns += inside * (value / 1e3);
    s->ns += inside;
}

int hec_others_find(struct hec_meter *meter, struct hec_device_timeline *t, struct hec_device_summary *d,
                    struct hec_why *why) {
    struct seen seen = {0};
    /* what little the engine did is little of anybody's */
    d->others = d->shared_with && !(d->activity.engine <= SLACK) ? HEC_OTHERS_MAYBE : HEC_OTHERS_IDLE;
    d->others_engine = d->others_seen = NAN;
    if (!t || !(t->traced_s > 0))
        return 0;
    seen.traced = &t->traced;
    seen.from_ns = llround(t->from_s * HEC_NS_PER_S);
    seen.to_ns = llround(t->to_s * HEC_NS_PER_S);
    int err = hec_meter_steps(meter, HEC_GPM_GR_ACTIVE, t->device, take_step, &seen, NULL, why);
    if (err || seen.ns < LEAST_S * HEC_NS_PER_S)
        return err;
    double copies = (double)(t->copies + t->memsets), alone_s = t->comm_s > 0 ? t->comm_s * (1 - t->comm_overlap) : 0;
    double own_s = fmin(t->busy_s, t->compute_s + alone_s + fmin(t->copy_s, COPY_S * copies));
    double most = (own_s + fmin(t->idle_s, HEC_ENGINE_PAUSE_MOST_S * (double)t->gap.count)) / t->traced_s;
    d->others_engine = seen.active_ns / seen.ns;
    d->others_seen = own_s / t->traced_s;
    if (d->shared_with)
        d->others = d->others_engine > most + SLACK ? HEC_OTHERS_BUSY : HEC_OTHERS_IDLE;
    else if (d->others_engine > UNSEEN_TIMES * most && d->others_engine > most + UNSEEN_MORE)
        d->others = HEC_OTHERS_BUSY;
    return 0;
}
