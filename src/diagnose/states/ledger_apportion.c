#include "diagnose/states/ledger.h"

#include "base/clock.h"

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
            step = left; /* totals beyond 2^53: the first takes what double cannot distinguish */
        shares[best] += step;
        left -= step;
    }
}

/* The mean over the classes, by time. */
static struct hec_ledger_watts mean_of(const struct hec_ledger_device *device, const struct hec_ledger_watts *classes) {
    struct hec_ledger_watts sum = {0};
    double ns = 0;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        double weight = (double)device->classes[c].ns;
        if (!(weight > 0))
            continue;
        ns += weight;
        sum.watts += weight * classes[c].watts;
        sum.low += weight * classes[c].low;
        sum.high += weight * classes[c].high;
    }
    if (!(ns > 0))
        return (struct hec_ledger_watts){NAN, NAN, NAN};
    return (struct hec_ledger_watts){sum.watts / ns, sum.low / ns, sum.high / ns};
}

static void price(struct hec_ledger_row *row, const struct hec_ledger_watts *watts, int64_t mj) {
    row->mj = mj;
    row->joules = (double)mj / 1e3;
    row->watts = watts->watts;
    row->watts_low = watts->low;
    row->watts_high = watts->high;
    row->step_joules = row->ns ? row->step_seconds * row->joules / row->seconds : row->step_seconds * 0;
}

bool hec_ledger_power(struct hec_ledger_device *device, const struct hec_ledger_watts watts[HEC_STATE_COUNT],
                      const struct hec_ledger_watts *classes, int64_t total_mj) {
    /* the states; behind them the classes, which then stand for compute */
    double raw[HEC_STATE_COUNT + HEC_KERNEL_CLASS_COUNT], sum = 0;
    int64_t shares[HEC_STATE_COUNT + HEC_KERNEL_CLASS_COUNT];
    int count = HEC_STATE_COUNT + (classes ? HEC_KERNEL_CLASS_COUNT : 0);
    for (int i = 0; i < count; i++) {
        int c = i - HEC_STATE_COUNT;
        int64_t ns = i < HEC_STATE_COUNT ? device->rows[i].ns : device->classes[c].ns;
        double power = i < HEC_STATE_COUNT ? watts[i].watts : classes[c].watts;
        raw[i] = ns && !(classes && i == HEC_STATE_COMPUTE) ? power * (double)ns / HEC_NS_PER_S : 0;
        if (!isfinite(raw[i]) || raw[i] < 0)
            return false;
        sum += raw[i];
    }
    if (total_mj < 0 || (total_mj > 0 && !(sum > 0)))
        return false;
    hec_ledger_apportion(raw, count, total_mj, shares);
    for (int c = 0; classes && c < HEC_KERNEL_CLASS_COUNT; c++) {
        struct hec_ledger_class *row = &device->classes[c];
        row->mj = shares[HEC_STATE_COUNT + c];
        row->joules = (double)row->mj / 1e3;
        row->watts = classes[c].watts;
        row->watts_low = classes[c].low;
        row->watts_high = classes[c].high;
        shares[HEC_STATE_COMPUTE] += row->mj;
    }
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        bool mean = classes && i == HEC_STATE_COMPUTE;
        struct hec_ledger_watts own = mean ? mean_of(device, classes) : watts[i];
        price(&device->rows[i], &own, shares[i]);
    }
    device->joules = (double)total_mj / 1e3;
    device->discrepancy = total_mj > 0 ? sum / ((double)total_mj / 1e3) - 1 : NAN;
    return true;
}
