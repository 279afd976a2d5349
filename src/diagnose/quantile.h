/* Inside src/diagnose: quantiles of many durations in fixed memory (30 KB each), to 1 %: 64 bins an octave, so that the
 * middle of a bin is within 0.8 % of what fell into it. */
#ifndef HEC_DIAGNOSE_QUANTILE_H
#define HEC_DIAGNOSE_QUANTILE_H

#include "diagnose/stat.h"
#include "diagnose/timeline.h"

struct hec_spread {
    struct hec_histogram histogram;
    double sum;
    int64_t count, minimum, maximum;
};

int hec_spread_init(struct hec_spread *spread); /* 0 or HEC_ERR_NOMEM */
void hec_spread_free(struct hec_spread *spread);
/* value_ns >= 0 */
void hec_spread_add(struct hec_spread *spread, int64_t value_ns);
/* In seconds; every number NAN when nothing was added. */
struct hec_quantiles hec_spread_result(const struct hec_spread *spread);

/* The same, exactly, of count values in seconds; sorts them. */
struct hec_quantiles hec_quantiles_of(double *seconds, size_t count);
/* The value below which share (0..1) of count > 0 sorted values lie, interpolated linearly. */
double hec_sorted_quantile(const double *sorted, size_t count, double share);
void hec_sort(double *values, size_t count);
struct hec_quantiles hec_quantiles_none(void);

#endif
