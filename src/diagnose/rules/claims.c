#include "diagnose/rules/claims.h"

#include "diagnose/limits.h"
#include "diagnose/replay/power.h"

#include <math.h>

/* As with proofs (replay/power.c): of the log of measured by claimed. */
struct error {
    int count; /* of measured claims; 0: none is known */
    double mean, spread;
};

static const struct {
    struct error seconds, joules;
} errors[HEC_CAUSE_COUNT] = {
#define HEC_CLAIMS(cause, joules_count, joules_mean, joules_spread, seconds_count, seconds_mean, seconds_spread)       \
    [HEC_CAUSE_##cause] = {{seconds_count, seconds_mean, seconds_spread}, {joules_count, joules_mean, joules_spread}},
#include "diagnose/rules/claims.def"
};

/* Of a step where it is known; the run's interval is wider by as much of its own best guess. */
static void widen(struct error e, struct hec_saving *run, struct hec_saving *step) {
    struct hec_saving of = isfinite(step->best) ? *step : *run;
    if (!(of.best > 0) || !e.count) /* NAN: nothing is known; 0: nothing is claimed */
        return;
    double low = fmin(of.low, hec_proofs_scaled(of.best, e.mean - HEC_CLAIMS_DEVIATIONS * e.spread));
    double high = fmax(of.high, hec_proofs_scaled(of.best, e.mean + HEC_CLAIMS_DEVIATIONS * e.spread));
    if (isfinite(run->best)) {
        double part = run->best / of.best;
        run->low = fmax(0, fmin(run->low, run->best - part * (of.best - low)));
        run->high = fmin(1, fmax(run->high, run->best + part * (high - of.best)));
    }
    if (isfinite(step->best)) {
        step->low = low;
        step->high = high;
    }
}

void hec_claims_widen(struct hec_finding *f) {
    widen(errors[f->cause].seconds, &f->seconds, &f->step_seconds);
    widen(errors[f->cause].joules, &f->joules, &f->step_joules);
}
