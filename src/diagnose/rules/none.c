/* Healthy: the device is busy with work that fills it. */
#include "diagnose/rules/compute.h"
#include "diagnose/meter/use.h"

#include <math.h>

#define LEAST_BUSY 0.70
#define LEAST_FP64 0.10 /* of compute, from which it is worth a word that the tensor cores do it */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_BUSY, "%",
     "least share of the steps in which the device computes (of the time in use where there are no steps)",
     "sustained utilisation above 70 % is where scaling out is the honest answer"},
    {100 * HEC_USE_FULL_SM, "%", "least SM activity in the time in use, where nothing was traced", "the same"},
    {100 * HEC_USE_FULL_DRIVER, "%", "least driver utilisation, without hardware counters",
     "it counts any resident kernel, so only near 100 % says anything"},
    {100 * HEC_USE_FULL_POWER, "%", "least power against the limit then",
     "measured on an H200: training 57 to 97 %, small kernels 18 %"},
    {100 * LEAST_FP64, "%", "of compute in fp64 products on tensor cores, from which they are worth a word", "ours"},
    {HEC_USE_READINGS, "", "least readings of the engine's activity, for what telemetry alone says",
     "a device that is lost at once gives one or two"},
    {HEC_USE_SECONDS, "s", "least time in use for that", "about one window of the counters: less is no mean"},
};

static const struct hec_rule_advice advice[] = {
    {"any",
     "Nothing stands out. What is left is the algorithm: lower precision where quality allows, a better kernel, or more "
     "devices.",
     NULL},
};

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_use *use = &f->device->activity;
    struct hec_compute c;
    bool maybe = f->device->others == HEC_OTHERS_MAYBE;
    if (f->device->others == HEC_OTHERS_BUSY) /* by whom it is kept busy is another matter */
        return false;
    hec_compute_gather(f, &c);
    if (f->steady && f->steady->basis != HEC_LEDGER_MEASURED && f->steady->window_ns > 0) {
        const struct hec_ledger_row *compute = &f->steady->rows[HEC_STATE_COMPUTE];
        double computes = compute->seconds * 1e9 / (double)f->steady->window_ns;
        double least = compute->seconds_low * 1e9 / (double)f->steady->window_ns;
        if (!((maybe ? least : computes) >= LEAST_BUSY))
            return false;
        out->confidence = least >= LEAST_BUSY ? 0.9 : HEC_TELEMETRY_CONFIDENCE;
        hec_finding_add(out, HEC_FACT(COMPUTES, computes, least, c.traced));
    } else if (c.traced) {
        const struct hec_device_timeline *t = f->timeline;
        double computes = c.busy * (t->busy_s > 0 ? t->compute_s / t->busy_s : NAN); /* not copies, not communication */
        if (!(computes >= LEAST_BUSY))
            return false;
        out->confidence = 0.9;
        hec_finding_add(out, HEC_FACT(COMPUTES, computes, NAN));
    } else {
        double sure = hec_use_full(f->device);
        if (!sure)
            return false;
        out->confidence = fmin(HEC_TELEMETRY_CONFIDENCE, sure);
    }
    if (isfinite(c.sm) && isfinite(c.tensor) && isfinite(c.dram))
        hec_finding_add(out, HEC_FACT(COUNTERS, c.sm, c.tensor, c.dram, NAN));
    double limit = f->device->power_limit_w;
    if (c.watts > 0 && limit > 0)
        hec_finding_add(out, HEC_FACT(KERNEL_POWER, c.watts, limit, c.estimated));
    else if (use->power_w > 0 && limit > 0)
        hec_finding_add(out, HEC_FACT(POWER_OF_LIMIT, use->power_w, use->power_w / limit, limit));
    out->title = HEC_FACT(HEALTHY, c.busy);
    double fp64 = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_TENSOR_FP64];
    if (fp64 >= LEAST_FP64)
        hec_finding_add(out, HEC_FACT(FP64_PRODUCTS, fp64));
    out->seconds = (struct hec_saving){0, 0, 0};
    if (f->run_j > 0)
        out->joules = out->seconds;
    return out->evidence_count > 0;
}

const struct hec_rule hec_rule_none = {
    .cause = HEC_CAUSE_NONE,
    .meaning =
        "The device is busy nearly all of the time, with kernels that fill it and that arithmetic or memory limits. HEC "
        "sees nothing that costs much and that a change from outside would give back.",
    .detection =
        "computing for at least 70 % of the steps, and no other finding is predicted to save 5 % or more; with telemetry "
        "alone: SM activity and power are high.",
    .saving = "none.",
    .lever = HEC_LEVER_NONE,
    HEC_RULE_TABLES,
    .judge = judge,
};
