#include "diagnose/timeline/recurrence.h"

#include "diagnose/limits.h"

#define BIN_FIRST_S 1e-6
#define FOUND 0.02 /* of all seconds, in an eighth: less is a rare branch */

void hec_recurrence_add(struct hec_recurrence *r, double seconds) {
    r->all_s += seconds;
    r->waiting_s += seconds;
}

static void widen(struct hec_recurrence *r) {
    for (int i = 0; i < HEC_RECURRENCE_BINS; i++)
        r->bins[i] = 2 * i < HEC_RECURRENCE_BINS ? r->bins[2 * i] + r->bins[2 * i + 1] : 0;
    r->full_s *= 2;
}

void hec_recurrence_place(struct hec_recurrence *r) {
    if (!(r->full_s > 0))
        r->full_s = HEC_RECURRENCE_BINS * BIN_FIRST_S;
    while (r->compute_s >= r->full_s)
        widen(r);
    r->bins[(int)(r->compute_s / (r->full_s / HEC_RECURRENCE_BINS))] += r->waiting_s;
    r->waiting_s = 0;
}

bool hec_recurrence_recurs(const struct hec_recurrence *r) {
    double eighth[8] = {0}, late_s = 0, bin_s = r->full_s / HEC_RECURRENCE_BINS;
    int found = 0;
    for (int i = 0; i < HEC_RECURRENCE_BINS && i * bin_s < r->compute_s; i++)
        eighth[(int)(8 * i * bin_s / r->compute_s)] += r->bins[i];
    for (int i = 0; i < 8; i++) {
        late_s += i >= 4 ? eighth[i] : 0;
        found += eighth[i] > FOUND * r->all_s;
    }
    return r->all_s > 0 && late_s >= HEC_RECURRENCE_LATE_SHARE * r->all_s && found >= HEC_RECURRENCE_EIGHTHS;
}
