#include "diagnose/rules/compute.h"

#include <math.h>

#define CONTEXT_BY_LOWEST 1.45 /* H200: 120 W idle with a context, 82 W without */
#define LIMIT_REACHED 0.95     /* of the power limit, by dense work; H200: bf16 products 691 W of 700 */
#define DENSER_UNKNOWN 1.15    /* where the limit is not known */
#define DENSER_MOST 4.0
#define ENGINE_SLACK 1.1 /* a counter's windows are not the run's: what a trace may exceed it by */
#define SECONDS_BAND 0.1 /* of an engine activity taken for compute's seconds */
#define REACH_GEMM 0.65  /* measured: large bf16 products 0.69 with gaps, 0.9 at most */
#define REACH_CONV 0.25  /* measured: bf16 channels_last convolutional net 0.21 */
#define REACH_EITHER 0.4

static const struct hec_saving unknown = {NAN, NAN, NAN};

double hec_compute_idle_watts(const struct hec_facts *f) {
    double seconds = 0, joules = 0, watts = f->device->energy.idle_context_watts;
    for (int s = 0; f->ledger && s < HEC_STATE_COUNT; s++)
        if (hec_state_idle((enum hec_state)s) && f->ledger->rows[s].ns) {
            seconds += f->ledger->rows[s].seconds;
            joules += f->ledger->rows[s].joules;
        }
    if (!(watts > 0) && seconds > 0)
        watts = joules / seconds;
    if (!(watts > 0))
        watts = CONTEXT_BY_LOWEST * f->device->power_w.minimum;
    return watts > 0 ? fmin(watts, f->mean_w) : NAN;
}

static double busy_of(const struct hec_facts *f) {
    const struct hec_device_timeline *t = f->timeline;
    double steps = f->summary->timeline.steps.busy_share;
    if (!t)
        return f->device->activity.has_gpm ? f->device->activity.engine : NAN;
    if (isfinite(steps) && f->summary->timeline.device_count == 1)
        return steps;
    return t->busy_s + t->idle_s > 0 ? t->busy_s / (t->busy_s + t->idle_s) : NAN;
}

static void find_seconds(const struct hec_facts *f, struct hec_compute *out) {
    double engine = f->device->metric[HEC_GPM_GR_ACTIVE].mean;
    bool counted = f->device->activity.has_gpm && engine > 0;
    out->seconds = f->ledger ? hec_facts_seconds(f, HEC_STATE_COMPUTE) : unknown;
    if (!f->ledger && counted)
        out->seconds = (struct hec_saving){(1 - SECONDS_BAND) * engine, engine, fmin(1, (1 + SECONDS_BAND) * engine)};
    if (!f->ledger || !counted || !f->ledger->windows || !(out->seconds.best > ENGINE_SLACK * engine))
        return;
    out->seconds.best = ENGINE_SLACK * engine;
    out->seconds.low = fmin(out->seconds.low, out->seconds.best);
}

/* What idle time (and copies, which draw little more) leaves. Its watts lie between the lowest sample and the mean. */
static struct hec_saving left(const struct hec_facts *f, struct hec_saving seconds) {
    double idle_w = hec_compute_idle_watts(f), mean = f->mean_w, lowest = f->device->power_w.minimum;
    double most = fmax(1.3 * f->device->power_limit_w, mean);
    if (!isfinite(idle_w) || !(mean > 0) || !isfinite(seconds.best))
        return unknown;
    struct hec_saving out = {seconds.low, 1 - (1 - seconds.best) * idle_w / mean,
                             1 - (1 - seconds.best) * fmin(idle_w, lowest > 0 ? lowest : idle_w) / mean};
    if (f->device->power_limit_w > 0) {
        out.best = fmin(out.best, seconds.best * most / mean);
        out.high = fmin(out.high, seconds.high * most / mean);
    }
    out.best = fmin(1, fmax(out.best, 0));
    out.low = fmin(out.low, out.best);
    out.high = fmax(out.high, out.best);
    return out;
}

static void find_joules(const struct hec_facts *f, struct hec_compute *out) {
    bool estimated = false;
    struct hec_saving told = hec_facts_joules(f, HEC_STATE_COMPUTE, &estimated);
    out->joules = told;
    if (!(f->run_j > 0))
        return;
    if (estimated || !f->ledger) {
        out->estimated = true;
        out->joules = left(f, out->seconds);
        return;
    }
    /* Seconds that the engine's counter denies were idle ones. */
    double denied = hec_facts_state_share(f, HEC_STATE_COMPUTE) - out->seconds.best, idle_w = hec_compute_idle_watts(f);
    if (denied > 1e-9 && isfinite(idle_w)) {
        out->estimated = true;
        out->joules.best = fmax(0, told.best - denied * idle_w / f->mean_w);
        out->joules.low = fmin(told.low, out->joules.best);
    }
}

static void find_counters(const struct hec_facts *f, struct hec_compute *out) {
    const struct hec_use *use = &f->device->activity;
    out->sm = out->occupancy = out->tensor = out->fp32 = out->dram = NAN;
    if (f->profile && f->profile->has_counters && isfinite(f->profile->all.counters.sm_active.value)) {
        const struct hec_roofline_input *all = &f->profile->all.counters;
        out->unmixed = true;
        out->sm = all->sm_active.value;
        out->occupancy = all->occupancy.value;
        out->tensor = all->pipe[HEC_PIPE_TENSOR].value;
        out->fp32 = all->pipe[HEC_PIPE_FP32].value;
        out->dram = all->dram.value;
    } else if (use->has_gpm && use->engine > 0) {
        out->sm = fmin(1, use->sm / use->engine);
        out->occupancy = fmin(1, use->occupancy / use->engine);
        out->tensor = fmin(1, use->tensor / use->engine);
        out->dram = fmin(1, use->dram / use->engine);
        double engine = f->device->metric[HEC_GPM_GR_ACTIVE].mean;
        out->fp32 = engine > 0 ? f->device->metric[HEC_GPM_FP32_ACTIVE].mean / engine : NAN;
    }
}

void hec_compute_gather(const struct hec_facts *f, struct hec_compute *out) {
    double gemm = f->class_share[HEC_KERNEL_CLASS_GEMM] + f->class_share[HEC_KERNEL_CLASS_ATTENTION];
    double conv = f->class_share[HEC_KERNEL_CLASS_CONV];
    *out = (struct hec_compute){.traced = f->timeline != NULL, .busy = busy_of(f), .watts = NAN, .denser = 1};
    find_seconds(f, out);
    find_joules(f, out);
    find_counters(f, out);
    if (out->seconds.best > 0 && isfinite(out->joules.best))
        out->watts = out->joules.best / out->seconds.best * f->mean_w;
    out->denser = f->device->power_limit_w > 0 && out->watts > 0 ? LIMIT_REACHED * f->device->power_limit_w / out->watts
                                                                 : DENSER_UNKNOWN;
    out->denser = fmin(DENSER_MOST, fmax(1, out->denser));
    out->tensor_reach = gemm + conv > 0 ? (REACH_GEMM * gemm + REACH_CONV * conv) / (gemm + conv) : REACH_EITHER;
}

void hec_compute_save(const struct hec_compute *c, double share, struct hec_saving gain, double denser,
                      struct hec_finding *out) {
    struct hec_saving s = hec_saving_scaled(c->seconds, share * gain.low, share * gain.best, share * gain.high);
    struct hec_saving j = hec_saving_scaled(c->joules, share * fmax(0, 1 - (1 - gain.low) * denser),
                                            share * fmax(0, 1 - (1 - gain.best) * denser), share * gain.high);
    out->seconds = s;
    out->joules = j;
    out->estimated = c->estimated;
    out->states = 1u << HEC_STATE_COMPUTE;
}
