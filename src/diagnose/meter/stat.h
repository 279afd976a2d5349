/* Streaming statistics with memory that does not grow with the run: time-weighted mean, median, extremes. */
#pragma once

#include "diagnose/meter/readings.h"

/* A weighted histogram of non-negative integers: bins of width 1 below 2^exact_bits, then 2^(exact_bits-1) bins an
 * octave, so that a median is exact below and within 2^-(exact_bits-1) of itself above. Larger values than
 * 2^max_bits - 1 count in the last bin, negative ones in the first. */
struct hec_histogram {
    double *weight; /* malloc'ed, `bins` long */
    size_t bins;
    int exact_bits, max_bits;
    double total;
};

int hec_histogram_init(struct hec_histogram *histogram, int exact_bits, int max_bits); /* 0 or HEC_ERR_NOMEM */
void hec_histogram_free(struct hec_histogram *histogram);
void hec_histogram_add(struct hec_histogram *histogram, int64_t value, double weight);
/* The value below which `share` (0..1) of the weight lies, the middle of its bin; NAN when empty. */
double hec_histogram_quantile(const struct hec_histogram *histogram, double share);

/* Time-weighted mean, extremes and count; the median where a histogram is lent. */
struct hec_accumulator {
    double sum, weight, minimum, maximum;
    int64_t count;
    struct hec_histogram *histogram; /* NULL: no median. Values are given to it times histogram_scale. */
    double histogram_scale;
};

/* histogram is cleared and used until the result is taken; values in it are value * histogram_scale, rounded. */
void hec_accumulator_init(struct hec_accumulator *accumulator, struct hec_histogram *histogram, double histogram_scale);
/* Weightless values are counted in the extremes but not in the mean. */
void hec_accumulator_add(struct hec_accumulator *accumulator, double value, double weight);
/* All of it times scale (unit conversion); every field NAN and count 0 when nothing was added. */
struct hec_stat hec_accumulator_result(const struct hec_accumulator *accumulator, double scale);
struct hec_stat hec_stat_none(void);

/* Student's t: the quantile of 0.975. */
double hec_student_975(double freedom);

/* A series turned into steps of a step function: (start, end] with one value. A MEAN reading holds over the interval
 * that ends at it, a GAUGE reading from it to the next. An interval longer than 3 x the usual spacing is a gap: the
 * reading holds for the usual spacing only. The usual spacing is a running mean (1/8) that gaps move little. */
typedef void (*hec_step_visitor)(void *context, int64_t start_ns, int64_t end_ns, double value);

struct hec_steps {
    enum hec_metric_kind kind; /* MEAN or GAUGE */
    hec_step_visitor visit;
    void *context;
    int64_t previous_ns;
    double previous, usual_ns;
    int64_t count;
};

void hec_steps_init(struct hec_steps *steps, enum hec_metric_kind kind, hec_step_visitor visit, void *context);
/* In time order; a time that does not advance is ignored. */
void hec_steps_add(struct hec_steps *steps, int64_t t_ns, double value);
/* No more readings; nothing after end_ns matters. */
void hec_steps_end(struct hec_steps *steps, int64_t end_ns);

/* Quantiles of many durations in fixed memory (30 KB each), to 1 %: 64 bins an octave, so that the
 * middle of a bin is within 0.8 % of what fell into it. */

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
