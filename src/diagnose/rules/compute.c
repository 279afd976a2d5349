#include "diagnose/rules/compute.h"

#include "diagnose/physics.h"

#include <math.h>
#include <string.h>

static const struct hec_saving unknown = {NAN, NAN, NAN};

struct hec_saving hec_whole_seconds(const struct hec_facts *f, enum hec_state state) {
    const struct hec_ledger_row *row = f->device->ledger ? &f->device->ledger->rows[state] : NULL;
    if (!row || !(f->run_s > 0))
        return unknown;
    return (struct hec_saving){hec_finite_or(row->seconds_low, row->seconds) / f->run_s, row->seconds / f->run_s,
                               hec_finite_or(row->seconds_high, row->seconds) / f->run_s};
}

struct hec_saving hec_whole_joules(const struct hec_facts *f, enum hec_state state) {
    const struct hec_ledger_row *row = f->device->ledger ? &f->device->ledger->rows[state] : NULL;
    if (!row || !(f->run_j > 0) || !isfinite(row->joules))
        return unknown;
    double low = hec_finite_or(row->watts_low, row->watts), high = hec_finite_or(row->watts_high, row->watts);
    /* short bursts go over the limit before it acts, not by more than that */
    if (f->device->readings.power_limit_w > 0)
        high = fmin(high, fmax(row->watts, HEC_COMPUTE_BY_LIMIT * f->device->readings.power_limit_w));
    return (struct hec_saving){fmin(row->joules, row->seconds * low) / f->run_j, fmin(1, row->joules / f->run_j),
                               fmin(1, fmax(row->joules, row->seconds * high) / f->run_j)};
}

double hec_compute_idle_watts(const struct hec_facts *f) {
    double watts = hec_device_idle_watts(f->device);
    return watts > 0 ? fmin(watts, f->mean_w) : NAN;
}

static double busy_of(const struct hec_facts *f) {
    const struct hec_device_timeline *t = f->device->timeline;
    double steps = f->steps->busy_share;
    if (f->device->steady && f->device->steady->basis != HEC_LEDGER_MEASURED && f->device->steady->window_ns > 0)
        return hec_ledger_busy(f->device->steady);
    if (!t)
        return f->own_counters ? f->device->readings.activity.engine : NAN;
    if (isfinite(steps) && hec_summary_traced(f->summary) == 1)
        return steps;
    return t->busy_s + t->idle_s > 0 ? t->busy_s / (t->busy_s + t->idle_s) : NAN;
}

static void find_seconds(const struct hec_facts *f, struct hec_compute *out) {
    double engine = f->device->readings.metric[HEC_GPM_GR_ACTIVE].mean;
    bool counted = f->device->readings.activity.has_gpm && engine > 0; /* with others': this program's are no more */
    out->seconds = hec_whole_seconds(f, HEC_STATE_COMPUTE);
    if (!f->device->ledger && counted && f->own_counters)
        out->seconds = (struct hec_saving){(1 - HEC_COMPUTE_SECONDS_BAND) * engine, engine,
                                           fmin(1, (1 + HEC_COMPUTE_SECONDS_BAND) * engine)};
    if (!f->device->ledger || !counted || !f->device->ledger->windows)
        return;
    out->seconds.best = fmin(out->seconds.best, HEC_COMPUTE_ENGINE_SLACK * engine);
    out->seconds.low = fmin(out->seconds.low, out->seconds.best);
    out->seconds.high =
        fmax(out->seconds.best, fmin(out->seconds.high, HEC_COMPUTE_ENGINE_SLACK * HEC_COMPUTE_ENGINE_SLACK * engine));
}

/* What idle time (and copies, which draw little more) leaves. Its watts lie between the lowest sample and the mean. */
static struct hec_saving left(const struct hec_facts *f, struct hec_saving seconds) {
    double idle_w = hec_compute_idle_watts(f), mean = f->mean_w, lowest = f->device->readings.power_w.minimum;
    double most = fmax(HEC_COMPUTE_BY_LIMIT * f->device->readings.power_limit_w, mean);
    if (!isfinite(idle_w) || !(mean > 0) || !isfinite(seconds.best))
        return unknown;
    struct hec_saving out = {seconds.low, 1 - (1 - seconds.best) * idle_w / mean,
                             1 - (1 - seconds.best) * fmin(idle_w, lowest > 0 ? lowest : idle_w) / mean};
    if (f->device->readings.power_limit_w > 0) {
        out.best = fmin(out.best, seconds.best * most / mean);
        out.high = fmin(out.high, seconds.high * most / mean);
    }
    out.best = fmin(1, fmax(out.best, 0));
    out.low = fmin(out.low, out.best);
    out.high = fmax(out.high, out.best);
    return out;
}

static void find_joules(const struct hec_facts *f, struct hec_compute *out) {
    struct hec_saving whole = hec_whole_joules(f, HEC_STATE_COMPUTE);
    out->joules = whole;
    if (isnan(whole.best)) {
        out->estimated = true;
        out->joules = f->run_j > 0 ? left(f, out->seconds) : unknown;
        return;
    }
    /* Seconds that the engine's counter denies were idle ones. */
    double denied = hec_whole_seconds(f, HEC_STATE_COMPUTE).best - out->seconds.best;
    double idle_w = hec_compute_idle_watts(f);
    if (denied > 1e-9 && isfinite(idle_w)) {
        out->estimated = true;
        out->joules.best = fmax(0, whole.best - denied * idle_w / f->mean_w);
        out->joules.low = fmin(whole.low, out->joules.best);
        out->joules.high = fmax(out->joules.best, whole.high - denied * idle_w / f->mean_w);
    }
}

/* A counter's mean over the whole run, by the engine's: idle time adds to neither, and windows of a short run are not cut as
 * they are by the time in use. */
static double by_engine(const struct hec_facts *f, enum hec_metric metric) {
    double engine = f->device->readings.metric[HEC_GPM_GR_ACTIVE].mean;
    return f->own_counters && engine > 0 ? hec_as_share(f->device->readings.metric[metric].mean / engine) : NAN;
}

static void find_counters(const struct hec_facts *f, struct hec_compute *out) {
    const struct hec_class_row *all = f->profile && f->profile->has_counters ? &f->profile->all : NULL;
    out->unmixed = all && isfinite(all->counters.sm_active.value);
    out->sm = hec_finite_or(all ? all->counters.sm_active.value : NAN, by_engine(f, HEC_GPM_SM_ACTIVE));
    out->occupancy = hec_finite_or(all ? all->counters.occupancy.value : NAN, by_engine(f, HEC_GPM_SM_OCCUPANCY));
    out->tensor =
        hec_finite_or(all ? all->counters.pipe[HEC_PIPE_TENSOR].value : NAN, by_engine(f, HEC_GPM_TENSOR_ACTIVE));
    out->fp32 = hec_finite_or(all ? all->counters.pipe[HEC_PIPE_FP32].value : NAN, by_engine(f, HEC_GPM_FP32_ACTIVE));
    out->integer = by_engine(f, HEC_GPM_INTEGER_ACTIVE);
    out->dram = hec_finite_or(all ? all->counters.dram.value : NAN, by_engine(f, HEC_GPM_DRAM_ACTIVE));
}

/* Where kernels were seen the replay knows. JAX waits in no call. */
static void find_waited(const struct hec_facts *f, struct hec_compute *out) {
    const struct hec_call_facts *calls = f->device->calls;
    double idle_w = hec_compute_idle_watts(f);
    bool known = !out->traced && calls && f->device->steady && f->device->steady->window_ns > 0 && f->run_s > 0 &&
                 hec_framework_of(f->summary) != HEC_FRAMEWORK_JAX;
    out->idle_by_mean = f->mean_w > 0 && isfinite(idle_w) ? idle_w / f->mean_w : 0;
    out->waited = known ? calls->waited_s / f->run_s : INFINITY;
}

void hec_compute_gather(const struct hec_facts *f, struct hec_compute *out) {
    double gemm = f->class_share[HEC_KERNEL_CLASS_GEMM] + f->class_share[HEC_KERNEL_CLASS_ATTENTION];
    double conv = f->class_share[HEC_KERNEL_CLASS_CONV];
    *out = (struct hec_compute){.traced = f->device->timeline != NULL, .busy = busy_of(f), .watts = NAN, .denser = 1};
    find_seconds(f, out);
    find_joules(f, out);
    find_counters(f, out);
    find_waited(f, out);
    if (out->seconds.best > 0 && isfinite(out->joules.best))
        out->watts = out->joules.best / out->seconds.best * f->mean_w;
    out->denser = f->device->readings.power_limit_w > 0 && out->watts > 0
                      ? HEC_DENSE_BY_LIMIT * f->device->readings.power_limit_w / out->watts
                      : HEC_COMPUTE_DENSER_UNKNOWN;
    out->denser = fmin(HEC_COMPUTE_DENSER_MOST, fmax(1, out->denser));
    out->tensor_reach = gemm + conv > 0
                            ? (HEC_COMPUTE_REACH_GEMM * gemm + HEC_COMPUTE_REACH_CONV * conv) / (gemm + conv)
                            : HEC_COMPUTE_REACH_EITHER;
}

double hec_compute_idle_sms_s(const struct hec_facts *f) {
    struct hec_compute c;
    hec_compute_gather(f, &c);
    return f->device->steady && c.sm < 1 ? (1 - c.sm) * f->device->steady->rows[HEC_STATE_COMPUTE].seconds : 0;
}

bool hec_compute_seen(const struct hec_facts *f, const struct hec_compute *c) {
    return f->kernels_seen >= HEC_NONE_LEAST_SEEN || c->tensor >= HEC_NONE_LEAST_TENSOR;
}

void hec_image_layout_gather(const struct hec_facts *f, struct hec_image_layout *out) {
    *out = (struct hec_image_layout){0};
    for (int i = 0; f->device->timeline && i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        double count = (double)k->count;
        out->convolutions += k->kernel_class == HEC_KERNEL_CLASS_CONV ? count : 0;
        out->group_norms += strstr(k->name, "FusedParamsCUDAKernel") ? count : 0; /* one forward, one backward */
        out->to_nhwc += strstr(k->name, "nchwToNhwc") ? count : 0;
        out->to_nchw += strstr(k->name, "nhwcToNchw") ? count : 0;
    }
}

void hec_compute_save(const struct hec_compute *c, double share, struct hec_saving gain, double denser,
                      struct hec_finding *out) {
    struct hec_saving s = hec_saving_scaled(c->seconds, share * gain.low, share * gain.best, share * gain.high);
    double low_denser = gain.best > 0 ? 1 + (denser - 1) * gain.low / gain.best : denser; /* less goes, less changes */
    double best = fmax(0, 1 - (1 - gain.best) * denser);
    struct hec_saving j = hec_saving_scaled(c->joules, share * fmax(0, 1 - (1 - gain.low) * low_denser), share * best,
                                            share * fmax(best, gain.high));
    out->seconds = s;
    out->joules = j;
    out->estimated = c->estimated;
    double left = 1 - share * gain.best;
    out->hotter = left > 0 ? (1 - share * best) / left - 1 : 0;
    out->states = 1u << HEC_STATE_COMPUTE;
}

void hec_compute_host_stays(const struct hec_compute *c, double gone, struct hec_finding *out) {
    struct hec_saving *s = &out->seconds, *j = &out->joules;
    double hidden = fmax(0, c->seconds.best - c->waited); /* of the host's work */
    double idles = fmax(0, s->best - (c->seconds.best - (1 - gone) * hidden));
    s->best -= idles;
    s->low = fmin(s->low, s->best);
    j->best = fmax(j->low, j->best - idles * c->idle_by_mean);
}
