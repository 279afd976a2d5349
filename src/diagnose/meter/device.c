#include "diagnose/meter/device.h"

#include "base/clock.h"
#include "diagnose/meter/energy.h"
#include "diagnose/meter/split.h"
#include "diagnose/meter/use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- series, over the run and over the part of it in which the device was active ---- */

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

/* Of a part of the run. */
struct part {
    int64_t from_ns, to_ns;
    double sum, weight_ns;
};

static void part_step(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct part *p = context;
    start_ns = start_ns > p->from_ns ? start_ns : p->from_ns;
    end_ns = end_ns < p->to_ns ? end_ns : p->to_ns;
    if (start_ns >= end_ns)
        return;
    p->sum += value * (double)(end_ns - start_ns);
    p->weight_ns += (double)(end_ns - start_ns);
}

int hec_meter_mean(struct hec_meter *meter, enum hec_metric metric, int32_t device, int64_t from_ns, int64_t to_ns,
                   double *mean, struct hec_why *why) {
    struct part p = {.from_ns = from_ns, .to_ns = to_ns};
    int err = hec_meter_steps(meter, metric, device, part_step, &p, NULL, why);
    bool enough = p.weight_ns > 0 && 2 * p.weight_ns >= (double)(to_ns - from_ns);
    *mean = enough ? hec_metric_scale(metric) * p.sum / p.weight_ns : NAN;
    return err;
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

/* Fill activity.from_s, to_s, readings and has_gpm of summary, whose device is set. */
static int find_span(struct hec_meter *meter, struct hec_device_summary *summary, struct hec_why *why) {
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

/* After the span: fill metric[] for every gauge and mean of devices but GPU_POWER, the rest of activity but its power,
 * throttled_share, and power_limit_w (the time-weighted mean of the enforced limit; else the device's). */
static int fill_statistics(struct hec_meter *meter, struct hec_device_summary *summary, struct hec_why *why) {
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
    bool whole =
        summary->device.memory_kib > 0 && summary->device.mig_enabled != 1; /* a part's own size is not known */
    summary->memory_peak_bytes = summary->metric[HEC_GPU_MEM_USED].maximum;
    summary->memory_left_bytes =
        whole ? fmax(0, 1024 * (double)summary->device.memory_kib - summary->memory_peak_bytes) : NAN;
    if (isnan(summary->memory_peak_bytes))
        summary->memory_left_bytes = NAN;
    summary->power_limit_w = NAN;
    if (summary->metric[HEC_GPU_POWER_LIMIT].count)
        summary->power_limit_w = summary->metric[HEC_GPU_POWER_LIMIT].mean / 1000;
    else if (summary->device.power_limit_mw > 0)
        summary->power_limit_w = (double)summary->device.power_limit_mw / 1000;
    return 0;
}

/* ---- energy ---- */

/* The energy, which hands its steps of power on to the split and to the statistics. */
struct measuring {
    struct hec_energy_meter energy;
    struct hec_split *split;
    struct hec_histogram histogram; /* of 0.1 W, exact to 1638 W */
    struct hec_accumulator all, active;
    int64_t end_ns, active_from_ns, active_to_ns;
};

static void take_counter(void *context, const struct hec_counter_reading *reading) {
    hec_energy_counter(&((struct measuring *)context)->energy, reading->t_ns, reading->mj, reading->narrowest_us);
}

static void take_spacing(void *context, int64_t t_ns, int64_t value, bool valid) {
    (void)value;
    if (valid)
        hec_energy_spacing(&((struct measuring *)context)->energy, t_ns);
}

static void take_power(void *context, int64_t t_ns, int64_t value, bool valid) {
    if (valid)
        hec_energy_power(&((struct measuring *)context)->energy, t_ns, value);
}

static void add_within(struct hec_accumulator *to, int64_t start_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns,
                       double value) {
    start_ns = start_ns > from_ns ? start_ns : from_ns;
    end_ns = end_ns < to_ns ? end_ns : to_ns;
    if (end_ns > start_ns)
        hec_accumulator_add(to, value, (double)(end_ns - start_ns));
}

static void power_step(void *context, int64_t start_ns, int64_t end_ns, double watts) {
    struct measuring *m = context;
    hec_split_power(m->split, start_ns, end_ns, watts);
    add_within(&m->all, start_ns, end_ns, 0, m->end_ns, watts);
    add_within(&m->active, start_ns, end_ns, m->active_from_ns, m->active_to_ns, watts);
}

static void activity_step(void *split, int64_t start_ns, int64_t end_ns, double permille) {
    hec_split_activity(split, start_ns, end_ns, permille / 1000);
}

static int feed(struct hec_meter *meter, struct measuring *m, const struct hec_device_summary *d, struct hec_why *why) {
    int subject = d->device.index;
    enum hec_metric engine = d->activity.has_gpm ? HEC_GPM_GR_ACTIVE : HEC_GPU_UTIL;
    if (engine == HEC_GPU_UTIL)
        hec_split_coarse(m->split);
    int err = hec_meter_counter(meter, subject, take_counter, m, why);
    if (!err)
        err = hec_meter_read(meter, HEC_GPU_POWER, subject, take_spacing, m, why);
    if (err)
        return err;
    hec_energy_prepare(&m->energy);
    if ((err = hec_meter_read(meter, HEC_GPU_POWER, subject, take_power, m, why)) != 0 ||
        (err = hec_meter_steps(meter, engine, subject, activity_step, m->split, NULL, why)) != 0 ||
        (err = hec_meter_read(meter, HEC_GPU_CONTEXTS, subject, hec_split_contexts, m->split, why)) != 0)
        return err;
    hec_split_contexts_end(m->split);
    return 0;
}

/* As the collector found it; 0 where that is not plausible. */
static int quantum_ns(struct hec_meter *meter, int subject, int64_t *out, struct hec_why *why) {
    struct hec_range quantum;
    int err = hec_meter_range(meter, HEC_GPU_ENERGY_QUANTUM, subject, &quantum, why);
    bool plausible = quantum.count && quantum.last > 0 && quantum.last < 3600 * 1000000LL;
    *out = plausible ? quantum.last * HEC_NS_PER_US : 0;
    return err;
}

static int measure(struct hec_meter *meter, struct measuring *m, const struct hec_meter_hints *hints,
                   struct hec_device_summary *d, struct hec_why *why) {
    struct hec_energy_options options = {
        .end_ns = meter->end_ns,
        .limit_w = d->power_limit_w,
        .lost_ns = hints->lost_ns,
        .simulated = hints->simulated,
        .has_power_history = d->device.has_power_history != 0,
        .unavailable = hints->unavailable,
        .visit_power = power_step,
        .context = m,
    };
    int err = quantum_ns(meter, d->device.index, &options.quantum_ns, why);
    if (!err)
        err = hec_histogram_init(&m->histogram, 14, 20);
    if (!err)
        err = hec_split_create(meter->end_ns, &m->split);
    if (err)
        return err;
    m->end_ns = meter->end_ns;
    if (isfinite(d->activity.from_s)) {
        m->active_from_ns = llround(d->activity.from_s * HEC_NS_PER_S);
        m->active_to_ns = llround(d->activity.to_s * HEC_NS_PER_S);
    }
    hec_accumulator_init(&m->all, &m->histogram, 10);
    hec_accumulator_init(&m->active, NULL, 1);
    hec_energy_init(&m->energy, &options);
    if ((err = feed(meter, m, d, why)) != 0)
        return err;
    hec_energy_finish(&m->energy, &d->energy);
    if (fmax(d->activity.pcie_rx, d->activity.pcie_tx) >= hec_use_transfers_from(&d->device))
        hec_split_copies(m->split);
    hec_split_result(m->split, &d->energy);
    d->power_w = hec_accumulator_result(&m->all, 1);
    d->activity.power_w = hec_accumulator_result(&m->active, 1).mean;
    return 0;
}

int hec_meter_device(struct hec_meter *meter, const struct hec_meter_hints *hints, struct hec_device_summary *d,
                     struct hec_why *why) {
    int err = find_span(meter, d, why);
    if (!err)
        err = fill_statistics(meter, d, why);
    if (err)
        return err;
    struct measuring *m = calloc(1, sizeof *m);
    if (!m)
        return HEC_ERR_NOMEM;
    err = measure(meter, m, hints, d, why);
    hec_split_free(m->split);
    hec_histogram_free(&m->histogram);
    free(m);
    return err;
}
