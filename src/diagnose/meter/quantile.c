#include "diagnose/meter/quantile.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_BITS 7 /* 64 bins an octave */
#define MAX_BITS 62  /* longer than any run */

int hec_durations_init(struct hec_durations *spread) {
    memset(spread, 0, sizeof *spread);
    return hec_histogram_init(&spread->histogram, EXACT_BITS, MAX_BITS);
}

void hec_durations_free(struct hec_durations *spread) {
    hec_histogram_free(&spread->histogram);
}

void hec_durations_add(struct hec_durations *spread, int64_t value_ns) {
    hec_histogram_add(&spread->histogram, value_ns, 1);
    spread->sum += (double)value_ns;
    if (!spread->count || value_ns < spread->minimum)
        spread->minimum = value_ns;
    if (!spread->count || value_ns > spread->maximum)
        spread->maximum = value_ns;
    spread->count++;
}

struct hec_quantiles hec_quantiles_none(void) {
    return (struct hec_quantiles){0, NAN, NAN, NAN, NAN, NAN, NAN};
}

static double quantile(const struct hec_durations *spread, double share) {
    double value = hec_histogram_quantile(&spread->histogram, share);
    /* the middle of a bin may lie outside what was seen */
    return fmin(fmax(value, (double)spread->minimum), (double)spread->maximum) / HEC_NS_PER_S;
}

struct hec_quantiles hec_durations_result(const struct hec_durations *spread) {
    if (!spread->count)
        return hec_quantiles_none();
    return (struct hec_quantiles){
        .count = spread->count,
        .mean = spread->sum / (double)spread->count / HEC_NS_PER_S,
        .median = quantile(spread, 0.5),
        .p90 = quantile(spread, 0.9),
        .p99 = quantile(spread, 0.99),
        .minimum = (double)spread->minimum / HEC_NS_PER_S,
        .maximum = (double)spread->maximum / HEC_NS_PER_S,
    };
}

static int ascending(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

void hec_sort(double *values, size_t count) {
    if (count > 1)
        qsort(values, count, sizeof *values, ascending);
}

double hec_sorted_quantile(const double *sorted, size_t count, double share) {
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

struct hec_quantiles hec_quantiles_of(double *seconds, size_t count) {
    struct hec_quantiles out = hec_quantiles_none();
    double sum = 0;
    if (!count)
        return out;
    hec_sort(seconds, count);
    for (size_t i = 0; i < count; i++)
        sum += seconds[i];
    out.count = (int64_t)count;
    out.mean = sum / (double)count;
    out.median = hec_sorted_quantile(seconds, count, 0.5);
    out.p90 = hec_sorted_quantile(seconds, count, 0.9);
    out.p99 = hec_sorted_quantile(seconds, count, 0.99);
    out.minimum = seconds[0];
    out.maximum = seconds[count - 1];
    return out;
}
