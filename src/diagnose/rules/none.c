/* Healthy: the device is busy with work that fills it. */
#include "diagnose/rules/compute.h"
#include "diagnose/meter/use.h"

#include <math.h>

bool hec_judge_none(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_use *use = &f->device->readings.activity;
    struct hec_compute c;
    bool maybe = f->device->readings.others == HEC_OTHERS_MAYBE;
    if (f->device->readings.others == HEC_OTHERS_BUSY || /* by whom it is kept busy is another matter */
        f->device->after.works)                          /* or with what: nobody saw it */
        return false;
    hec_compute_gather(f, &c);
    if (!hec_compute_seen(f, &c) || !hec_job_waits_seen(f->summary, f->device->readings.device.index))
        return false;
    if (f->device->steady && f->device->steady->basis != HEC_LEDGER_MEASURED && f->device->steady->window_ns > 0) {
        const struct hec_ledger_row *compute = &f->device->steady->rows[HEC_STATE_COMPUTE];
        double computes = compute->seconds * 1e9 / (double)f->device->steady->window_ns;
        double least = compute->seconds_low * 1e9 / (double)f->device->steady->window_ns;
        if (!((maybe ? least : computes) >= HEC_NONE_LEAST_BUSY))
            return false;
        out->confidence = least >= HEC_NONE_LEAST_BUSY ? HEC_NONE_CONFIDENCE : HEC_TELEMETRY_CONFIDENCE;
        hec_finding_add(out, HEC_FACT(COMPUTES, computes, least, c.traced));
    } else if (c.traced) {
        const struct hec_device_timeline *t = f->device->timeline;
        double computes = c.busy * (t->busy_s > 0 ? t->compute_s / t->busy_s : NAN); /* not copies, not communication */
        if (!(computes >= HEC_NONE_LEAST_BUSY))
            return false;
        out->confidence = HEC_NONE_CONFIDENCE;
        hec_finding_add(out, HEC_FACT(COMPUTES, computes, NAN));
    } else {
        double sure = hec_use_full(&f->device->readings);
        if (!sure)
            return false;
        out->confidence = fmin(HEC_TELEMETRY_CONFIDENCE, sure);
    }
    if (isfinite(c.sm) && isfinite(c.tensor) && isfinite(c.dram))
        hec_finding_add(out, HEC_FACT(COUNTERS, c.sm, c.tensor, c.dram, NAN));
    double limit = f->device->readings.power_limit_w;
    if (c.watts > 0 && limit > 0)
        hec_finding_add(out, HEC_FACT(KERNEL_POWER, c.watts, limit, c.estimated));
    else if (use->power_w > 0 && limit > 0)
        hec_finding_add(out, HEC_FACT(POWER_OF_LIMIT, use->power_w, use->power_w / limit, limit));
    out->title = HEC_FACT(HEALTHY, c.busy);
    double fp64 = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_TENSOR_FP64];
    if (fp64 >= HEC_NONE_LEAST_FP64)
        hec_finding_add(out, HEC_FACT(FP64_PRODUCTS, fp64));
    if (f->solver_share > HEC_PRECISION_MOST_SOLVER)
        hec_finding_add(out, HEC_FACT(SOLVERS, f->solver_share));
    out->seconds = (struct hec_saving){0, 0, 0};
    if (f->run_j > 0)
        out->joules = out->seconds;
    return out->evidence_count > 0;
}
