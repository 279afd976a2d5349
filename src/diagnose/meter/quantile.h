/* Inside src/diagnose: quantiles of many durations in fixed memory (30 KB each), to 1 %: 64 bins an octave, so that the
 * middle of a bin is within 0.8 % of what fell into it. */
#ifndef HEC_DIAGNOSE_METER_QUANTILE_H
#define HEC_DIAGNOSE_METER_QUANTILE_H

#include "diagnose/meter/stat.h"

#include <stddef.h>
#include <stdint.h>

/* Quantiles of durations or delays, seconds; NAN when count is 0. Exact to 1 % (a histogram with log buckets). */
struct hec_quantiles {
    int64_t count;
    double mean, median, p90, p99, minimum, maximum;
};

struct hec_durations {
    struct hec_histogram histogram;
    double sum;
    int64_t count, minimum, maximum;
};

int hec_durations_init(struct hec_durations *spread); /* 0 or HEC_ERR_NOMEM */
void hec_durations_free(struct hec_durations *spread);
/* value_ns >= 0 */
void hec_durations_add(struct hec_durations *spread, int64_t value_ns);
/* In seconds; every number NAN when nothing was added. */
struct hec_quantiles hec_durations_result(const struct hec_durations *spread);

/* The same, exactly, of count values in seconds; sorts them. */
struct hec_quantiles hec_quantiles_of(double *seconds, size_t count);
/* The value below which share (0..1) of count > 0 sorted values lie, interpolated linearly. */
double hec_sorted_quantile(const double *sorted, size_t count, double share);
void hec_sort(double *values, size_t count);
struct hec_quantiles hec_quantiles_none(void);

#endif
