#include "diagnose/meter/stat.h"

#include "base/clock.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int hec_histogram_init(struct hec_histogram *histogram, int exact_bits, int max_bits) {
    size_t half = (size_t)1 << (exact_bits - 1);
    memset(histogram, 0, sizeof *histogram);
    histogram->exact_bits = exact_bits;
    histogram->max_bits = max_bits;
    histogram->bins = 2 * half + half * (size_t)(max_bits - exact_bits);
    histogram->weight = calloc(histogram->bins, sizeof *histogram->weight);
    return histogram->weight ? 0 : HEC_ERR_NOMEM;
}

void hec_histogram_free(struct hec_histogram *histogram) {
    free(histogram->weight);
    memset(histogram, 0, sizeof *histogram);
}

static size_t bin_of(const struct hec_histogram *histogram, int64_t value) {
    if (value < 0)
        return 0;
    if (value >= INT64_C(1) << histogram->max_bits)
        return histogram->bins - 1;
    if (value < INT64_C(1) << histogram->exact_bits)
        return (size_t)value;
    int octave = 63 - __builtin_clzll((unsigned long long)value); /* >= exact_bits */
    int shift = octave - histogram->exact_bits + 1;
    size_t half = (size_t)1 << (histogram->exact_bits - 1);
    return half * (size_t)shift + (size_t)(value >> shift);
}

static double middle_of(const struct hec_histogram *histogram, size_t bin) {
    size_t half = (size_t)1 << (histogram->exact_bits - 1);
    if (bin < 2 * half)
        return (double)bin;
    size_t shift = bin / half - 1;
    double low = ldexp((double)(bin - half * shift), (int)shift);
    return low + (ldexp(1, (int)shift) - 1) / 2;
}

void hec_histogram_add(struct hec_histogram *histogram, int64_t value, double weight) {
    histogram->weight[bin_of(histogram, value)] += weight;
    histogram->total += weight;
}

double hec_histogram_quantile(const struct hec_histogram *histogram, double share) {
    double sum = 0, target = histogram->total * share;
    size_t last = histogram->bins;
    if (!(histogram->total > 0))
        return NAN;
    for (size_t i = 0; i < histogram->bins; i++) {
        if (histogram->weight[i] <= 0)
            continue;
        sum += histogram->weight[i];
        last = i;
        if (sum >= target)
            break;
    }
    return last < histogram->bins ? middle_of(histogram, last) : NAN;
}

void hec_accumulator_init(struct hec_accumulator *accumulator, struct hec_histogram *histogram,
                          double histogram_scale) {
    *accumulator = (struct hec_accumulator){
        .minimum = INFINITY, .maximum = -INFINITY, .histogram = histogram, .histogram_scale = histogram_scale};
    if (histogram) {
        memset(histogram->weight, 0, histogram->bins * sizeof *histogram->weight);
        histogram->total = 0;
    }
}

void hec_accumulator_add(struct hec_accumulator *accumulator, double value, double weight) {
    accumulator->count++;
    accumulator->minimum = fmin(accumulator->minimum, value);
    accumulator->maximum = fmax(accumulator->maximum, value);
    if (!(weight > 0))
        return;
    accumulator->sum += value * weight;
    accumulator->weight += weight;
    if (accumulator->histogram)
        hec_histogram_add(accumulator->histogram, llround(value * accumulator->histogram_scale), weight);
}

struct hec_stat hec_stat_none(void) {
    return (struct hec_stat){NAN, NAN, NAN, NAN, 0};
}

struct hec_stat hec_accumulator_result(const struct hec_accumulator *accumulator, double scale) {
    struct hec_stat stat = hec_stat_none();
    if (!accumulator->count)
        return stat;
    stat.count = accumulator->count;
    stat.minimum = accumulator->minimum * scale;
    stat.maximum = accumulator->maximum * scale;
    if (accumulator->weight > 0)
        stat.mean = accumulator->sum / accumulator->weight * scale;
    if (accumulator->histogram) {
        double median = hec_histogram_quantile(accumulator->histogram, 0.5) / accumulator->histogram_scale;
        /* the middle of a bin may lie outside what was seen */
        stat.median = fmin(fmax(median, accumulator->minimum), accumulator->maximum) * scale;
    }
    return stat;
}

void hec_steps_init(struct hec_steps *steps, enum hec_metric_kind kind, hec_step_visitor visit, void *context) {
    *steps = (struct hec_steps){.kind = kind, .visit = visit, .context = context};
}

void hec_steps_add(struct hec_steps *steps, int64_t t_ns, double value) {
    if (steps->count) {
        double spacing = (double)t_ns - (double)steps->previous_ns;
        if (spacing <= 0)
            return;
        bool first = steps->usual_ns <= 0;
        if (first)
            steps->usual_ns = spacing;
        int64_t held = t_ns - steps->previous_ns;
        if (spacing > 3 * steps->usual_ns)
            held = (int64_t)steps->usual_ns;
        if (steps->kind == HEC_METRIC_GAUGE) {
            steps->visit(steps->context, steps->previous_ns, steps->previous_ns + held, steps->previous);
        } else {
            if (first) /* the first reading waited for a spacing */
                steps->visit(steps->context, steps->previous_ns - held, steps->previous_ns, steps->previous);
            steps->visit(steps->context, t_ns - held, t_ns, value);
        }
        steps->usual_ns += (fmin(spacing, 3 * steps->usual_ns) - steps->usual_ns) / 8;
    }
    steps->count++;
    steps->previous_ns = t_ns;
    steps->previous = value;
}

void hec_steps_end(struct hec_steps *steps, int64_t end_ns) {
    if (!steps->count)
        return;
    if (steps->kind == HEC_METRIC_GAUGE) {
        int64_t end = end_ns;
        if (steps->usual_ns > 0 && (double)end_ns - (double)steps->previous_ns > 3 * steps->usual_ns)
            end = steps->previous_ns + (int64_t)steps->usual_ns;
        if (end > steps->previous_ns)
            steps->visit(steps->context, steps->previous_ns, end, steps->previous);
    } else if (steps->count == 1) { /* one mean and no spacing: it stands for what came before it */
        int64_t start = steps->previous_ns > 0 ? 0 : steps->previous_ns - 1;
        steps->visit(steps->context, start, steps->previous_ns, steps->previous);
    }
}

/* Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5; at 3 degrees of freedom 0.5 % low, at 2 (where it
 * is used at least) 3 %. */
double hec_student_975(double v) {
    double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
    return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v) +
           (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * v * v * v * v);
}

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
