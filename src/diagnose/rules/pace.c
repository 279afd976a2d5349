#include "diagnose/rules/pace.h"

#include "diagnose/rules/waits.h"

#include <math.h>

/* Who waits often finds its queue empty often: more than that is never served. A loader without workers is the program itself. */
enum hec_pace hec_pace_of(const struct hec_summary *summary, const struct hec_device_diagnosis *device) {
    const struct hec_ledger_device *d = device->steady ? device->steady : device->ledger;
    double least_s = d && d->window_ns > 0 ? HEC_PACE_LEAST * (double)d->window_ns / 1e9 : NAN;
    if (d && d->rows[HEC_STATE_REQUESTS].seconds >= least_s)
        return HEC_PACE_REQUESTS;
    return d && d->rows[HEC_STATE_DATA].seconds >= least_s && summary->loader_workers > 0 ? HEC_PACE_LOADER
                                                                                          : HEC_PACE_OWN;
}

/* Long stops are not made up for: workers stop too, when what they may load ahead is there. */
static bool holds(enum hec_pace pace, enum hec_cause cause) {
    static const uint32_t apart = 1u << HEC_CAUSE_DATA | 1u << HEC_CAUSE_QUIET | 1u << HEC_CAUSE_IDLE |
                                  1u << HEC_CAUSE_HANG | 1u << HEC_CAUSE_NONE,
                          stops = 1u << HEC_CAUSE_CHECKPOINT | 1u << HEC_CAUSE_COMPILE;
    return pace != HEC_PACE_OWN && !((apart | (pace == HEC_PACE_LOADER ? stops : 0)) >> cause & 1);
}

/* waits: joules of waiting all of the time, by all joules. A loader may have been behind for a part of the time only. */
static struct hec_saving above_waiting(struct hec_saving joules, struct hec_saving seconds, double waits,
                                       enum hec_pace pace) {
    double best = fmax(0, joules.best - seconds.best * waits);
    double high = pace == HEC_PACE_LOADER ? joules.high : joules.high - seconds.high * waits;
    if (isnan(joules.best) || isnan(seconds.best) || isnan(waits))
        return joules;
    return (struct hec_saving){fmin(best, fmax(0, joules.low - seconds.low * waits)), best, fmax(best, high)};
}

static struct hec_saving waited(struct hec_saving seconds, enum hec_pace pace) {
    return isnan(seconds.best) ? seconds : (struct hec_saving){0, 0, pace == HEC_PACE_LOADER ? seconds.high : 0};
}

void hec_pace_hold(const struct hec_facts *f, double of_seconds, double of_joules, struct hec_finding *out) {
    enum hec_pace pace = hec_pace_of(f->summary, f->device);
    double share = hec_finite_or(out->step_seconds.best, out->seconds.best), watts = hec_waits_watts(f);
    if (!holds(pace, out->cause) || !(share > 0))
        return;
    out->joules = above_waiting(out->joules, out->seconds, watts * f->run_s / f->run_j, pace);
    out->step_joules = above_waiting(out->step_joules, out->step_seconds, watts * of_seconds / of_joules, pace);
    out->seconds = waited(out->seconds, pace);
    out->step_seconds = waited(out->step_seconds, pace);
    hec_finding_add(out, HEC_FACT(PACED, share, pace == HEC_PACE_LOADER));
}
