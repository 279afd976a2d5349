#include "diagnose/rules/pace.h"

#include "base/clock.h"
#include "diagnose/rules/waits.h"

#include <math.h>

/* Who finds its queue empty has served all that came: so often do requests come. Where it did so until near the end, or where steps
 * do not tell how many that were, all of the time is theirs. */
static struct hec_pace of_requests(const struct hec_ledger_device *d) {
    double window_ns = (double)d->window_ns, until_ns = (double)(d->requests_ns - d->from_ns);
    double share = d->rows[HEC_STATE_REQUESTS].seconds * HEC_NS_PER_S / window_ns, steps = (double)d->requests_steps;
    if (!(share >= HEC_PACE_SEEN))
        return (struct hec_pace){HEC_PACE_OWN, 0, 0};
    if (until_ns >= (1 - HEC_PACE_END) * window_ns || (steps < HEC_PACE_STEPS && share >= HEC_PACE_LEAST))
        return (struct hec_pace){HEC_PACE_REQUESTS, 1, 0};
    if (steps < HEC_PACE_STEPS)
        return (struct hec_pace){HEC_PACE_OWN, 0, 0};
    double least = until_ns / steps * (double)d->steps / window_ns;
    return (struct hec_pace){HEC_PACE_REQUESTS, fmin(1, least), 2 / sqrt(steps)}; /* as of requests at random */
}

/* A loader without workers is the program itself. It may have been behind for a part of the time only. */
struct hec_pace hec_pace_of(const struct hec_summary *summary, const struct hec_device_diagnosis *device) {
    const struct hec_ledger_device *d = device->steady ? device->steady : device->ledger;
    struct hec_pace pace = {HEC_PACE_OWN, 0, 0};
    if (!d || d->window_ns <= 0)
        return pace;
    pace = of_requests(d);
    if (pace.by == HEC_PACE_OWN && summary->loader_workers > 0 &&
        d->rows[HEC_STATE_DATA].seconds * HEC_NS_PER_S >= HEC_PACE_LEAST * (double)d->window_ns)
        pace = (struct hec_pace){HEC_PACE_LOADER, 1, 1};
    return pace;
}

/* Long stops are not made up for: workers stop too, when what they may load ahead is there. */
static bool holds(enum hec_pacer by, enum hec_cause cause) {
    static const uint32_t apart = 1u << HEC_CAUSE_DATA | 1u << HEC_CAUSE_QUIET | 1u << HEC_CAUSE_IDLE |
                                  1u << HEC_CAUSE_HANG | 1u << HEC_CAUSE_NONE,
                          stops = 1u << HEC_CAUSE_CHECKPOINT | 1u << HEC_CAUSE_COMPILE;
    return by != HEC_PACE_OWN && !((apart | (by == HEC_PACE_LOADER ? stops : 0)) >> cause & 1);
}

/* What is left of saved seconds. part: of the time that they are of, in the steady part. */
static struct hec_saving left_of(struct hec_saving seconds, const struct hec_pace *pace, double part) {
    double best = fmin(seconds.best, part * (1 - pace->least));
    double high = fmin(seconds.high, part * (1 - pace->least + pace->unsure));
    return isnan(seconds.best) ? seconds : (struct hec_saving){0, best, fmax(best, high)};
}

/* waits: joules of waiting all of the time, by all joules. */
static struct hec_saving above_waiting(struct hec_saving joules, struct hec_saving seconds, struct hec_saving left,
                                       double waits) {
    double best = fmax(0, joules.best - (seconds.best - left.best) * waits);
    double high = joules.high - (seconds.high - left.high) * waits;
    if (isnan(joules.best) || isnan(seconds.best) || isnan(waits))
        return joules;
    return (struct hec_saving){fmin(best, fmax(0, joules.low - seconds.low * waits)), best, fmax(best, high)};
}

void hec_pace_hold(const struct hec_facts *f, double of_seconds, double of_joules, struct hec_finding *out) {
    struct hec_pace pace = hec_pace_of(f->summary, f->device);
    double watts = hec_waits_watts(f);
    struct hec_saving left = left_of(out->seconds, &pace, of_seconds / f->run_s);
    struct hec_saving step_left = left_of(out->step_seconds, &pace, 1);
    double instead = hec_finite_or(out->step_seconds.best - step_left.best, out->seconds.best - left.best);
    if (!holds(pace.by, out->cause) || !(hec_finite_or(out->step_seconds.best, out->seconds.best) > 0))
        return;
    out->joules = above_waiting(out->joules, out->seconds, left, watts * f->run_s / f->run_j);
    out->step_joules = above_waiting(out->step_joules, out->step_seconds, step_left, watts * of_seconds / of_joules);
    out->seconds = left;
    out->step_seconds = step_left;
    if (instead > 0)
        hec_finding_add(out, HEC_FACT(PACED, instead, pace.by == HEC_PACE_LOADER));
}
