/* Throttle: clocks held down by heat, by hardware protection, or by a power limit. */
#include "diagnose/rules/compute.h"

#include <math.h>

/* Part of the clock that is lost while held down; from the clocks where the device works most of the time. */
static double lost_clock(const struct hec_facts *f, double busy) {
    const struct hec_stat *clock = &f->device->readings.metric[HEC_GPU_SM_CLOCK];
    double engine = f->device->readings.metric[HEC_GPM_GR_ACTIVE].mean;
    if (!(busy >= HEC_THROTTLE_LEAST_BUSY) || !(clock->maximum > 0) || !(engine >= HEC_THROTTLE_LEAST_BUSY))
        return NAN;
    return fmin(HEC_THROTTLE_LOST_MOST, fmax(HEC_THROTTLE_LOST_LEAST, 1 - clock->median / clock->maximum));
}

static void judge_hot(const struct hec_facts *f, const struct hec_compute *c, double hot, struct hec_finding *out) {
    const double *share = f->device->readings.throttled_share;
    double lost = lost_clock(f, c->busy), part = fmin(1, hot);
    out->title = HEC_FACT(THROTTLED, hot, !(share[HEC_THROTTLE_HARDWARE] > share[HEC_THROTTLE_THERMAL]));
    if (share[HEC_THROTTLE_THERMAL] > 0)
        hec_finding_add(out, HEC_FACT(HEAT, share[HEC_THROTTLE_THERMAL]));
    if (share[HEC_THROTTLE_HARDWARE] > 0)
        hec_finding_add(out, HEC_FACT(HARDWARE, share[HEC_THROTTLE_HARDWARE]));
    if (f->device->readings.metric[HEC_GPU_TEMPERATURE].maximum > 0)
        hec_finding_add(out, HEC_FACT(TEMPERATURE, f->device->readings.metric[HEC_GPU_TEMPERATURE].maximum));
    out->confidence = HEC_THROTTLE_HOT_CONFIDENCE;
    double best = isfinite(lost) ? lost : HEC_THROTTLE_LOST_UNKNOWN;
    /* Clocks alone stretch the time; of the joules only what does not depend on the clock comes back. */
    out->seconds =
        hec_saving_scaled(c->seconds, part * best / HEC_THROTTLE_LOST_LOW, part * best, fmin(1, part * best * 2));
    out->joules = hec_saving_scaled(c->joules, 0, HEC_THROTTLE_STATIC_SHARE * part * best,
                                    fmin(1, 2 * HEC_THROTTLE_STATIC_SHARE * part * best));
}

static void judge_power(const struct hec_facts *f, const struct hec_compute *c, double power, struct hec_finding *out) {
    double limit = f->device->readings.metric[HEC_GPU_POWER_LIMIT].median / 1e3,
           usual = (double)f->device->readings.device.power_limit_default_mw / 1e3;
    limit = limit > 0 ? limit : f->device->readings.power_limit_w;
    bool lowered = usual > 0 && limit > 0 && limit < HEC_THROTTLE_LOWERED * usual;
    hec_finding_add(out, HEC_FACT(POWER_HELD, power));
    if (c->watts > 0 && limit > 0)
        hec_finding_add(out, HEC_FACT(KERNEL_POWER, c->watts, limit, c->estimated));
    if (lowered) {
        double lost = lost_clock(f, c->busy), best = 1 - pow(limit / usual, HEC_THROTTLE_CLOCK_EXPONENT);
        out->title = HEC_FACT(LOWERED_LIMIT, limit, limit / usual);
        hec_finding_add(out, HEC_FACT(DEFAULT_LIMIT, usual));
        if (isfinite(lost))
            hec_finding_add(out, HEC_FACT(CLOCKS, f->device->readings.metric[HEC_GPU_SM_CLOCK].median,
                                          f->device->readings.metric[HEC_GPU_SM_CLOCK].maximum));
        out->lever = HEC_ANSWER(RAISE_LIMIT);
        out->confidence = HEC_THROTTLE_LOWERED_CONFIDENCE;
        best *= fmin(1, power);
        out->seconds = hec_saving_scaled(c->seconds, HEC_THROTTLE_RAISED_LOW * best, best, fmin(1, 2 * best));
        return; /* the joules of a raised limit can go either way: not predicted */
    }
    out->title = HEC_FACT(AT_POWER_LIMIT, power);
    out->lever = HEC_ANSWER(LOWER_CAP);
    out->confidence = HEC_THROTTLE_LIMIT_CONFIDENCE;
    out->seconds = (struct hec_saving){0, 0, 0};
    out->joules =
        hec_saving_scaled(c->joules, 0, HEC_THROTTLE_CAP_SAVES, HEC_THROTTLE_CAP_SAVES_HIGH * HEC_THROTTLE_CAP_SAVES);
}

bool hec_judge_throttle(const struct hec_facts *f, struct hec_finding *out) {
    const double *share = f->device->readings.throttled_share;
    double hot = fmax(share[HEC_THROTTLE_THERMAL], share[HEC_THROTTLE_HARDWARE]), power = share[HEC_THROTTLE_POWER];
    struct hec_compute c;
    if (!(hot >= HEC_THROTTLE_LEAST_HOT) && !(power >= HEC_THROTTLE_LEAST_POWER))
        return false;
    hec_compute_gather(f, &c);
    if (hot >= HEC_THROTTLE_LEAST_HOT)
        judge_hot(f, &c, hot, out);
    else
        judge_power(f, &c, power, out);
    out->estimated = true;
    out->states = 1u << HEC_STATE_COMPUTE;
    return true;
}
