#include "diagnose/rules/power_limit.h"

#include <math.h>

/* The fractions are those that are saved. Half of what is over the limit, in logarithms, is put down to seconds claimed too high, half to
 * the clock. */
static void keep(double watts, double limit_w, double *seconds, double *joules) {
    double wanted = watts * (1 - *joules) / (1 - *seconds);
    if (!(*seconds < 1) || !(wanted > limit_w))
        return;
    double half = sqrt(limit_w / wanted), clock = cbrt(half);
    *seconds = 1 - (1 - *seconds) / half / clock;
    *joules = 1 - (1 - *joules) * clock * clock;
}

/* step: of the steady part, before and after; part: that part by the run. */
static void follow(struct hec_saving *run, const struct hec_saving *before, const struct hec_saving *step,
                   double part) {
    if (!isfinite(run->best) || !isfinite(part))
        return;
    run->best = hec_as_share(run->best + part * (step->best - before->best));
    run->high = fmax(run->best, hec_as_share(run->high + part * (step->high - before->high)));
    run->low = fmin(run->low, run->best);
}

void hec_power_limit_hold(const struct hec_facts *f, double of_seconds, double of_joules, struct hec_finding *out) {
    double watts = of_joules / of_seconds, limit_w = fmax(watts, f->device->readings.power_limit_w);
    const struct hec_saving seconds = out->step_seconds, joules = out->step_joules;
    struct hec_saving *s = &out->step_seconds, *j = &out->step_joules;
    if (!(f->device->readings.power_limit_w > 0) || !(watts > 0) || !(seconds.best > 0) || !isfinite(joules.best))
        return;
    keep(watts, limit_w, &s->best, &j->best);
    keep(watts, limit_w, &s->high, &j->high);
    s->low = fmin(s->low, s->best);
    s->high = fmax(s->high, s->best);
    j->high = fmax(j->high, j->best);
    follow(&out->seconds, &seconds, s, of_seconds / f->run_s);
    follow(&out->joules, &joules, j, of_joules / f->run_j);
}
