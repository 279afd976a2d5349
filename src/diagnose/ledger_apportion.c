#include "diagnose/ledger.h"

#include <math.h>

void hec_ledger_apportion(const double *weights, int count, int64_t total, int64_t *shares) {
    double sum = 0;
    int64_t left = total;
    for (int i = 0; i < count; i++) {
        sum += weights[i];
        shares[i] = 0;
    }
    if (!(sum > 0))
        return;
    for (int i = 0; i < count; i++) {
        shares[i] = (int64_t)floor((double)total * (weights[i] / sum));
        left -= shares[i];
    }
    /* one each for the largest remainders; rounding in double may leave one more or less than there are remainders */
    while (left != 0) {
        int best = -1;
        double most = 0;
        for (int i = 0; i < count; i++) {
            double remainder = (double)total * (weights[i] / sum) - (double)shares[i];
            double want = left > 0 ? remainder : -remainder;
            if (weights[i] > 0 && (left > 0 || shares[i] > 0) && (best < 0 || want > most)) {
                best = i;
                most = want;
            }
        }
        int64_t step = left > 0 ? 1 : -1;
        if (left > count || left < -count)
            step = left; /* totals beyond 2^53: the first takes what double cannot tell apart */
        shares[best] += step;
        left -= step;
    }
}

bool hec_ledger_power(struct hec_ledger_device *device, const struct hec_ledger_watts watts[HEC_STATE_COUNT],
                      int64_t total_mj) {
    double raw[HEC_STATE_COUNT], sum = 0;
    int64_t shares[HEC_STATE_COUNT];
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        raw[i] = device->rows[i].ns ? watts[i].watts * device->rows[i].seconds : 0;
        if (!isfinite(raw[i]) || raw[i] < 0)
            return false;
        sum += raw[i];
    }
    if (total_mj < 0 || (total_mj > 0 && !(sum > 0)))
        return false;
    hec_ledger_apportion(raw, HEC_STATE_COUNT, total_mj, shares);
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        struct hec_ledger_row *row = &device->rows[i];
        row->mj = shares[i];
        row->joules = (double)shares[i] / 1e3;
        row->watts = watts[i].watts;
        row->watts_low = watts[i].low;
        row->watts_high = watts[i].high;
    }
    device->joules = (double)total_mj / 1e3;
    device->discrepancy = total_mj > 0 ? sum / ((double)total_mj / 1e3) - 1 : NAN;
    return true;
}
