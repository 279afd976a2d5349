/* With L(s) = -ln(1 - s) + 0.05: what is left of a step after fixes that each leave a share is the product of those, and -ln(1 - s) adds
 * up. Proven L over replayed L is lognormal about exp(mean), by edit; two predictive standard deviations are the interval. */
#include "diagnose/replay/proofs.h"

#include "diagnose/result.h"

#include <math.h>
#include <string.h>

#define DEVIATIONS 2.0
#define MOST 0.999   /* of a step that can be saved */
#define NOTHING 0.05 /* a saving so small may as well be nothing, or twice as much: added to L */

struct spread {
    int count; /* proofs */
    double mean, spread;
};

static const struct {
    struct spread seconds, joules;
} proofs[HEC_EDIT_COUNT] = {
#define HEC_REPLAY_PROOF(edit, count, seconds_mean, seconds_spread, joules_mean, joules_spread)                        \
    [HEC_EDIT_##edit] = {{count, seconds_mean, seconds_spread}, {count, joules_mean, joules_spread}},
#define HEC_PROOF_DEVICE(name)
#include "diagnose/replay/proofs.def"
#undef HEC_REPLAY_PROOF
#undef HEC_PROOF_DEVICE
};

static const char *const devices[] = {
#define HEC_REPLAY_PROOF(...)
#define HEC_PROOF_DEVICE(name) name,
#include "diagnose/replay/proofs.def"
#undef HEC_REPLAY_PROOF
#undef HEC_PROOF_DEVICE
};

static bool proven_on(const char *device) {
    bool any = false;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        any |= strstr(device, devices[i]) != NULL;
    return any;
}

double hec_proofs_widen(const struct hec_summary *summary) {
    bool device = false;
    for (int i = 0; i < summary->device_count; i++)
        device = device || (summary->devices[i].readings.used && proven_on(summary->devices[i].readings.device.name));
    return device && summary->pytorch[0] ? 1 : HEC_PROOFS_ELSEWHERE;
}

bool hec_proofs_known(enum hec_edit edit) {
    return proofs[edit].seconds.count > 0;
}

static double scaled(double saving, double by) {
    double l = NOTHING - log(1 - fmin(MOST, fmax(0, saving)));
    return 1 - exp(fmin(0, NOTHING - l * exp(by)));
}

static struct hec_saving widened(struct spread s, struct hec_saving replayed, double widen) {
    if (isnan(replayed.best))
        return replayed;
    double mean = s.count > 0 ? s.mean : 0, spread = DEVIATIONS * widen * (s.count > 0 ? s.spread : HEC_PROOFS_NONE);
    double best = fmin(MOST, fmax(0, replayed.best));
    return (struct hec_saving){fmin(best, scaled(replayed.low, mean - spread)), best,
                               fmax(best, scaled(replayed.high, mean + spread))};
}

struct hec_saving hec_proofs_seconds(enum hec_edit edit, struct hec_saving replayed, double widen) {
    return widened(proofs[edit].seconds, replayed, widen);
}

struct hec_saving hec_proofs_joules(enum hec_edit edit, struct hec_saving replayed, double widen) {
    return widened(proofs[edit].joules, replayed, widen);
}
