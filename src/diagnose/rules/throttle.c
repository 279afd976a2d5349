/* Throttle: clocks held down by heat, by hardware protection, or by a power limit. */
#include "diagnose/rules/compute.h"

#include <math.h>

#define LEAST_HOT 0.05   /* of the readings, thermal or hardware */
#define LEAST_POWER 0.10 /* the same, power */
#define LOWERED 0.90     /* a limit below this part of the default one was chosen by somebody */
#define LEAST_BUSY 0.50
#define LOST_LEAST 0.02
#define LOST_MOST 0.60
#define LOST_UNKNOWN 0.15
#define STATIC_SHARE 0.35  /* of the watts does not depend on the clock, and hot silicon leaks more */
#define CLOCK_EXPONENT 0.4 /* clock by power near the limit */
#define CAP_SAVES 0.03     /* joules, of a cap some tenths lower: an estimate */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_HOT, "%", "least share of readings with clocks held down by heat or hardware",
     "once in a while is the fan curve"},
    {100 * LEAST_POWER, "%", "the same by the power limit",
     "measured on an H200: dense bf16 work at its 700 W limit 17 to 29 % of the readings of short runs"},
    {100 * LOWERED, "%", "of the default power limit, below which somebody has lowered it", "ours"},
    {100 * LEAST_BUSY, "%", "least busy share and engine activity for the clocks to show what is lost", "ours"},
    {100 * LOST_LEAST, "%", "of the clock that is lost, at least", "ours"},
    {100 * LOST_MOST, "%", "and at most", "ours"},
    {100 * LOST_UNKNOWN, "%", "where the clocks do not show it", "ours"},
    {CLOCK_EXPONENT, "", "exponent of the clock by the power limit", "estimated"},
    {100 * CAP_SAVES, "%", "of compute's joules that a lower cap saves at the default limit", "estimated"},
    {100 * STATIC_SHARE, "%", "of the power does not depend on the clock",
     "estimated: an H200 draws 120 W of 700 W idle with a context, and leakage rises with heat"},
};

static const struct hec_rule_advice advice[] = {
    {"any", "Heat: look after air flow, fans and the room; move jobs to cooler slots meanwhile.",
     "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER\n"},
    {"any",
     "Power: at the default limit this is normal for dense work. A cap some tenths lower usually costs little time and "
     "saves joules; a lowered cap that costs too much time can be raised.",
     NULL},
};

/* Part of the clock that is lost while held down; from the clocks where the device works most of the time. */
static double lost_clock(const struct hec_facts *f, double busy) {
    const struct hec_stat *clock = &f->device->metric[HEC_GPU_SM_CLOCK];
    double engine = f->device->metric[HEC_GPM_GR_ACTIVE].mean;
    if (!(busy >= LEAST_BUSY) || !(clock->maximum > 0) || !(engine >= LEAST_BUSY))
        return NAN;
    return fmin(LOST_MOST, fmax(LOST_LEAST, 1 - clock->median / clock->maximum));
}

static void judge_hot(const struct hec_facts *f, const struct hec_compute *c, double hot, struct hec_finding *out) {
    const double *share = f->device->throttled_share;
    double lost = lost_clock(f, c->busy), part = fmin(1, hot);
    out->title = HEC_FACT(THROTTLED, hot, !(share[HEC_THROTTLE_HARDWARE] > share[HEC_THROTTLE_THERMAL]));
    if (share[HEC_THROTTLE_THERMAL] > 0)
        hec_finding_add(out, HEC_FACT(HEAT, share[HEC_THROTTLE_THERMAL]));
    if (share[HEC_THROTTLE_HARDWARE] > 0)
        hec_finding_add(out, HEC_FACT(HARDWARE, share[HEC_THROTTLE_HARDWARE]));
    if (f->device->metric[HEC_GPU_TEMPERATURE].maximum > 0)
        hec_finding_add(out, HEC_FACT(TEMPERATURE, f->device->metric[HEC_GPU_TEMPERATURE].maximum));
    out->confidence = 0.9;
    double best = isfinite(lost) ? lost : LOST_UNKNOWN;
    /* Clocks alone stretch the time; of the joules only what does not depend on the clock comes back. */
    out->seconds = hec_saving_scaled(c->seconds, part * best / 3, part * best, fmin(1, part * best * 2));
    out->joules = hec_saving_scaled(c->joules, 0, STATIC_SHARE * part * best, fmin(1, 2 * STATIC_SHARE * part * best));
}

static void judge_power(const struct hec_facts *f, const struct hec_compute *c, double power, struct hec_finding *out) {
    double limit = f->device->metric[HEC_GPU_POWER_LIMIT].median / 1e3,
           usual = (double)f->device->device.power_limit_default_mw / 1e3;
    limit = limit > 0 ? limit : f->device->power_limit_w;
    bool lowered = usual > 0 && limit > 0 && limit < LOWERED * usual;
    hec_finding_add(out, HEC_FACT(POWER_HELD, power));
    if (c->watts > 0 && limit > 0)
        hec_finding_add(out, HEC_FACT(KERNEL_POWER, c->watts, limit, c->estimated));
    if (lowered) {
        double lost = lost_clock(f, c->busy), best = 1 - pow(limit / usual, CLOCK_EXPONENT);
        out->title = HEC_FACT(LOWERED_LIMIT, limit, limit / usual);
        hec_finding_add(out, HEC_FACT(DEFAULT_LIMIT, usual));
        if (isfinite(lost))
            hec_finding_add(out, HEC_FACT(CLOCKS, f->device->metric[HEC_GPU_SM_CLOCK].median,
                                          f->device->metric[HEC_GPU_SM_CLOCK].maximum));
        out->lever = HEC_ANSWER(RAISE_LIMIT);
        out->confidence = 0.8;
        best *= fmin(1, power);
        out->seconds = hec_saving_scaled(c->seconds, 0.3 * best, best, fmin(1, 2 * best));
        return; /* the joules of a raised limit can go either way: not predicted */
    }
    out->title = HEC_FACT(AT_POWER_LIMIT, power);
    out->lever = HEC_ANSWER(LOWER_CAP);
    out->confidence = 0.6;
    out->seconds = (struct hec_saving){0, 0, 0};
    out->joules = hec_saving_scaled(c->joules, 0, CAP_SAVES, 4 * CAP_SAVES);
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    const double *share = f->device->throttled_share;
    double hot = fmax(share[HEC_THROTTLE_THERMAL], share[HEC_THROTTLE_HARDWARE]), power = share[HEC_THROTTLE_POWER];
    struct hec_compute c;
    if (!(hot >= LEAST_HOT) && !(power >= LEAST_POWER))
        return false;
    hec_compute_gather(f, &c);
    if (hot >= LEAST_HOT)
        judge_hot(f, &c, hot, out);
    else
        judge_power(f, &c, power, out);
    out->estimated = true;
    out->states = 1u << HEC_STATE_COMPUTE;
    return true;
}

const struct hec_rule hec_rule_throttle = {
    .cause = HEC_CAUSE_THROTTLE,
    .meaning =
        "The device lowers its clocks below what it could run at: it is hot, its supply or board protects itself, or it "
        "has reached its power limit. At the default power limit that is normal for work that fills the device.",
    .detection = "the reasons that the driver gives for its clocks, as a share of the readings.",
    .saving =
        "heat: the clock that is lost while the device works, and of the joules the part that does not depend on the "
        "clock. A lowered power limit: time by (limit / default)^0.4; what raising it does to the joules is unknown. A "
        "default limit: nothing in time; a lower cap may save some joules (an estimate).",
    .lever = HEC_LEVER_COOL,
    HEC_RULE_TABLES,
    .judge = judge,
};
