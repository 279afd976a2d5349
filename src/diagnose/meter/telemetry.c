#include "diagnose/meter/telemetry.h"

#include "base/clock.h"
#include "diagnose/meter/meter.h"
#include "diagnose/meter/use.h"

#include <math.h>
#include <string.h>

/* In use: the part of the run in which all but this share of its activity happens at either end. Making a context, loading
 * a model and uploading it come before in short bursts far apart, and would dilute every mean. */
#define ACTIVE_EDGE 0.02
#define ACTIVE_WHOLE                                                                                                   \
    6 /* of so many readings or more, the first and the last are left out: they began before it, or end after it */
/* Work below HEC_USE_NOISE which goes on and on (a policy of 0.1 ms each 30 ms) shows in reading after reading. An idle H100
 * reads 0, and 0.001 to 0.003 now and then: 1 of 12 readings with a context and no work, all of them in such a loop. */
#define STEADY_SHARE 0.25

double hec_metric_scale(enum hec_metric metric) {
    const char *unit = hec_metric_info(metric)->unit;
    if (strcmp(unit, "permille") == 0)
        return 1e-3;
    return strcmp(unit, "KiB") == 0 || strcmp(unit, "KiB/s") == 0 ? 1024 : 1;
}

/* One series to its statistics over the run (with the median) and over the active part (mean only). */
struct series {
    int64_t end_ns, active_from_ns, active_to_ns;
    struct hec_accumulator all, active;
};

static double overlap_s(int64_t start_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns) {
    int64_t start = start_ns > from_ns ? start_ns : from_ns, end = end_ns < to_ns ? end_ns : to_ns;
    return end > start ? (double)(end - start) / HEC_NS_PER_S : 0;
}

static void add_step(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct series *series = context;
    double all = overlap_s(start_ns, end_ns, 0, series->end_ns);
    double active = overlap_s(start_ns, end_ns, series->active_from_ns, series->active_to_ns);
    if (all > 0)
        hec_accumulator_add(&series->all, value, all);
    if (active > 0)
        hec_accumulator_add(&series->active, value, active);
}

static int fill_metric(struct hec_meter *meter, struct hec_histogram *histogram, enum hec_metric metric,
                       struct hec_device_summary *summary, double *active_mean, struct hec_why *why) {
    struct series series = {.end_ns = meter->end_ns};
    if (isfinite(summary->activity.from_s)) {
        series.active_from_ns = llround(summary->activity.from_s * HEC_NS_PER_S);
        series.active_to_ns = llround(summary->activity.to_s * HEC_NS_PER_S);
    }
    hec_accumulator_init(&series.all, histogram, 1);
    hec_accumulator_init(&series.active, NULL, 1);
    int err = hec_meter_steps(meter, metric, summary->device.index, add_step, &series, NULL, why);
    if (err)
        return err;
    summary->metric[metric] = hec_accumulator_result(&series.all, hec_metric_scale(metric));
    *active_mean = hec_accumulator_result(&series.active, hec_metric_scale(metric)).mean;
    return 0;
}

/* The span of activity of one series. */
struct span {
    int64_t end_ns;
    double least, scale;
    double total; /* integral of the readings that count, known in the second pass */
    double so_far;
    int64_t readings, inside, nonzero;
    double first_from_s, first_to_s, last_from_s, last_to_s; /* of the readings inside */
};

static void span_step(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct span *span = context;
    value *= span->scale;
    start_ns = start_ns < 0 ? 0 : start_ns;
    end_ns = end_ns > span->end_ns ? span->end_ns : end_ns;
    if (end_ns <= start_ns)
        return;
    span->readings++;
    span->nonzero += value > 0;
    if (!(value > span->least))
        return;
    double from = (double)start_ns / HEC_NS_PER_S, to = (double)end_ns / HEC_NS_PER_S;
    double before = span->so_far;
    span->so_far += value * (to - from);
    if (span->total <= 0 || span->so_far <= ACTIVE_EDGE * span->total || before >= (1 - ACTIVE_EDGE) * span->total)
        return;
    if (span->inside++ == 0) {
        span->first_from_s = from;
        span->first_to_s = to;
    }
    span->last_from_s = from;
    span->last_to_s = to;
}

static void merge_span(const struct span *span, struct hec_use *a) {
    if (span->inside == 0)
        return;
    bool whole = span->inside >= ACTIVE_WHOLE;
    double from = whole ? span->first_to_s : span->first_from_s, to = whole ? span->last_from_s : span->last_to_s;
    a->from_s = isfinite(a->from_s) ? fmin(a->from_s, from) : from;
    a->to_s = isfinite(a->to_s) ? fmax(a->to_s, to) : to;
}

/* Two passes: the first adds up the activity, readings of at most `least` left out. */
static int span_series(struct hec_meter *meter, enum hec_metric metric, double least,
                       struct hec_device_summary *summary, struct span *span, struct hec_why *why) {
    double total = 0;
    for (int pass = 0; pass < 2; pass++) {
        *span =
            (struct span){.end_ns = meter->end_ns, .least = least, .scale = hec_metric_scale(metric), .total = total};
        int err = hec_meter_steps(meter, metric, summary->device.index, span_step, span, NULL, why);
        if (err)
            return err;
        total = span->so_far;
    }
    merge_span(span, &summary->activity);
    return 0;
}

int hec_telemetry_span(struct hec_meter *meter, struct hec_device_summary *summary, struct hec_why *why) {
    struct hec_use *a = &summary->activity;
    *a = (struct hec_use){NAN, NAN, false, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double pcie = hec_use_transfers_from(&summary->device);
    struct span span;
    enum hec_metric engine = HEC_GPM_GR_ACTIVE;
    int err = span_series(meter, engine, HEC_USE_NOISE, summary, &span, why);
    a->has_gpm = !err && span.readings > 0;
    if (!err && !a->has_gpm)
        err = span_series(meter, engine = HEC_GPU_UTIL, HEC_USE_NOISE, summary, &span, why);
    double seen_s = isfinite(a->from_s) ? a->to_s - a->from_s : 0;
    bool steady = span.nonzero > 0 && (double)span.nonzero >= STEADY_SHARE * (double)span.readings;
    if (!err && steady && seen_s < HEC_USE_NOTHING_SHARE * (double)meter->end_ns / HEC_NS_PER_S)
        err = span_series(meter, engine, 0, summary, &span, why);
    if (err)
        return err;
    a->readings = span.readings;
    err = span_series(meter, HEC_GPM_PCIE_RX, pcie, summary, &span, why);
    return err ? err : span_series(meter, HEC_GPM_PCIE_TX, pcie, summary, &span, why);
}

struct throttle {
    int64_t end_ns, count, hits[HEC_THROTTLE_COUNT];
};

static void throttle_reading(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct throttle *throttle = context;
    if (!valid || t_ns < 0 || t_ns > throttle->end_ns)
        return;
    throttle->count++;
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++)
        throttle->hits[i] += hec_throttle_has(value, (enum hec_throttle)i);
}

/* Series of devices that are no bit masks and no totals; power is done with the energy, in the same pass. */
static bool has_statistics(enum hec_metric metric) {
    const struct hec_metric_info *info = hec_metric_info(metric);
    return info->subject == HEC_SUBJECT_DEVICE && (info->kind == HEC_METRIC_GAUGE || info->kind == HEC_METRIC_MEAN) &&
           metric != HEC_GPU_POWER && metric != HEC_GPU_THROTTLE && metric != HEC_GPU_ENERGY_SLACK &&
           metric != HEC_GPU_ENERGY_QUANTUM;
}

int hec_telemetry_fill(struct hec_meter *meter, struct hec_device_summary *summary, struct hec_why *why) {
    struct hec_use *a = &summary->activity;
    struct hec_histogram histogram; /* exact below 2048, within 0.1 % above */
    double active[HEC_METRIC_COUNT];
    int err = hec_histogram_init(&histogram, 11, 40);
    for (int i = 0; i < HEC_METRIC_COUNT && !err; i++) {
        active[i] = NAN;
        summary->metric[i] = hec_stat_none();
        if (has_statistics((enum hec_metric)i))
            err = fill_metric(meter, &histogram, (enum hec_metric)i, summary, &active[i], why);
    }
    hec_histogram_free(&histogram);
    if (err)
        return err;
    /* Without GPM the driver's utilisation is all there is. With it the larger one counts: both see any resident kernel. */
    a->engine = a->has_gpm ? fmax(active[HEC_GPM_GR_ACTIVE], active[HEC_GPU_UTIL]) : active[HEC_GPU_UTIL];
    a->sm = active[HEC_GPM_SM_ACTIVE];
    a->occupancy = active[HEC_GPM_SM_OCCUPANCY];
    a->tensor = active[HEC_GPM_TENSOR_ACTIVE];
    a->dram = active[HEC_GPM_DRAM_ACTIVE];
    a->pcie_rx = active[HEC_GPM_PCIE_RX];
    a->pcie_tx = active[HEC_GPM_PCIE_TX];
    a->mem_util = active[HEC_GPU_MEM_UTIL];

    struct throttle throttle = {.end_ns = meter->end_ns};
    err = hec_meter_read(meter, HEC_GPU_THROTTLE, summary->device.index, throttle_reading, &throttle, why);
    if (err)
        return err;
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++)
        summary->throttled_share[i] = throttle.count ? (double)throttle.hits[i] / (double)throttle.count : NAN;
    summary->power_limit_w = NAN;
    if (summary->metric[HEC_GPU_POWER_LIMIT].count)
        summary->power_limit_w = summary->metric[HEC_GPU_POWER_LIMIT].mean / 1000;
    else if (summary->device.power_limit_mw > 0)
        summary->power_limit_w = (double)summary->device.power_limit_mw / 1000;
    return 0;
}
