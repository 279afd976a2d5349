#include "diagnose/meter/running.h"

#include "base/clock.h"

#include <math.h>

void hec_running_counter(struct hec_running_joules *r, int64_t mj) {
    if (!r->counted || mj < r->last_mj) /* the first, or it began anew: what was is kept */
        r->first_mj = mj - (r->counted ? r->last_mj - r->first_mj : 0);
    r->counted = true;
    r->last_mj = mj;
}

void hec_running_power(struct hec_running_joules *r, int64_t t_ns, double watts) {
    if (r->last_power_ns && t_ns > r->last_power_ns)
        r->power_j += watts * (double)(t_ns - r->last_power_ns) / HEC_NS_PER_S;
    r->last_power_ns = t_ns;
}

double hec_running_joules(const struct hec_running_joules *r) {
    return r->counted ? (double)(r->last_mj - r->first_mj) * 1e-3 : r->last_power_ns ? r->power_j : NAN;
}
