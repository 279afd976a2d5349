#include "diagnose/meter/use.h"

#include <math.h>

/* How far x lies from `from` towards `to`, 0..1. */
static double toward(double x, double from, double to) {
    return fmin(1, fmax(0, (x - from) / (to - from)));
}

double hec_use_confidence(const struct hec_device_summary *d) {
    return d->activity.has_gpm ? HEC_USE_CONFIDENCE : HEC_USE_CONFIDENCE_DRIVER;
}

/* By how far the limits are passed, 0..1. */
static double sure(const struct hec_device_summary *d, double margin) {
    return hec_use_confidence(d) * (HEC_USE_SURE_LEAST + (1 - HEC_USE_SURE_LEAST) * fmin(1, margin));
}

static double power_of(const struct hec_device_summary *d) {
    return d->power_limit_w > 0 ? d->activity.power_w / d->power_limit_w : NAN;
}

double hec_use_engine(const struct hec_device_summary *d) {
    return d->metric[d->activity.has_gpm ? HEC_GPM_GR_ACTIVE : HEC_GPU_UTIL].mean;
}

double hec_use_seconds(const struct hec_device_summary *d) {
    return isfinite(d->activity.from_s) ? d->activity.to_s - d->activity.from_s : 0;
}

double hec_use_nothing(const struct hec_device_summary *d) {
    double seconds = hec_use_seconds(d);
    if (d->activity.readings < HEC_USE_READINGS)
        return 0;
    /* making a context shows as a moment of activity */
    bool once = seconds < HEC_USE_NOTHING_SHARE * d->energy.window_s && hec_use_engine(d) < HEC_USE_NOTHING_MEAN;
    bool brief = seconds < HEC_USE_SECONDS && !(hec_use_engine(d) > HEC_USE_NOISE);
    return once || brief ? sure(d, 1) : 0;
}

static bool is_used(const struct hec_device_summary *d) {
    return d->others == HEC_OTHERS_IDLE && d->activity.readings >= HEC_USE_READINGS &&
           hec_use_seconds(d) >= HEC_USE_SECONDS && !hec_use_nothing(d);
}

double hec_use_full(const struct hec_device_summary *d) {
    const struct hec_use *a = &d->activity;
    double busy = a->has_gpm ? a->sm : a->engine, least = a->has_gpm ? HEC_USE_FULL_SM : HEC_USE_FULL_DRIVER;
    double power = power_of(d);
    if (!is_used(d) || !(busy >= least) || !(power >= HEC_USE_FULL_POWER))
        return 0;
    return sure(
        d, fmin(toward(busy, least, HEC_USE_FULL_SURE), toward(power, HEC_USE_FULL_POWER, HEC_USE_FULL_POWER_SURE)));
}

double hec_use_dense(const struct hec_device_summary *d) {
    return d->activity.tensor >= HEC_NONE_LEAST_TENSOR * d->activity.engine ? hec_use_full(d) : 0;
}

double hec_use_transfers_from(const struct hec_device *device) {
    double link = 1024 * (double)device->pcie_kib_per_s;
    return link > 0 ? HEC_USE_TRANSFERS_LINK * link : HEC_USE_TRANSFERS_BYTES;
}

/* Much data, in one direction, while the SMs idle: so many times what is much; 0: it is not so. */
static double crosses(const struct hec_device_summary *d) {
    const struct hec_use *a = &d->activity;
    double much = fmax(a->pcie_rx, a->pcie_tx) / hec_use_transfers_from(&d->device);
    return is_used(d) && a->sm <= HEC_USE_TRANSFERS_SM && much >= 1 ? much : 0;
}

/* The bytes that cross the bus take so much of the time at least, at the best rate that copies reach. */
bool hec_use_copies_explain(const struct hec_device_summary *d) {
    double best = hec_use_transfers_from(&d->device) / HEC_USE_TRANSFERS_LINK * HEC_COPY_LINK_REACH;
    return fmax(d->activity.pcie_rx, d->activity.pcie_tx) / best >= HEC_USE_COPIES_EXPLAIN * (1 - d->activity.engine);
}

double hec_use_transfers(const struct hec_device_summary *d) {
    double much = crosses(d);
    if (!much || (d->activity.engine <= HEC_USE_WAITS_ENGINE && !hec_use_copies_explain(d)))
        return 0;
    return sure(d,
                fmin(toward(much, 1, HEC_USE_TRANSFERS_SURE), 2 * toward(-d->activity.sm, -HEC_USE_TRANSFERS_SM, 0)));
}

double hec_use_thin(const struct hec_device_summary *d) {
    const struct hec_use *a = &d->activity;
    double least = a->has_gpm ? HEC_USE_THIN_ENGINE : HEC_USE_FULL_DRIVER, power = power_of(d);
    bool thin = !a->has_gpm || a->occupancy <= HEC_USE_THIN_OCCUPANCY * a->engine;
    if (!is_used(d) || !(a->engine >= least) || !(power <= HEC_USE_THIN_POWER) || !thin || crosses(d))
        return 0;
    return sure(
        d, fmin(toward(a->engine, least, 2 * least), toward(-power, -HEC_USE_THIN_POWER, -HEC_USE_THIN_POWER_SURE)));
}

double hec_use_waits(const struct hec_device_summary *d) {
    const struct hec_use *a = &d->activity;
    bool rates = isfinite(fmax(a->pcie_rx, a->pcie_tx)); /* else transfers may explain it */
    if (!is_used(d) || !a->has_gpm || !rates || !(a->engine <= HEC_USE_WAITS_ENGINE) || hec_use_transfers(d) ||
        hec_use_thin(d))
        return 0;
    return sure(d, toward(-a->engine, -HEC_USE_WAITS_ENGINE, -HEC_USE_WAITS_SURE));
}
