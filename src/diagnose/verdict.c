#include "diagnose/rules/rule.h"
#include "diagnose/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct hec_threshold thresholds[] = {
#define HEC_THRESHOLD(id, value, compared, source) {#id, value, compared, source},
#include "diagnose/verdict.def"
#undef HEC_THRESHOLD
};

static const struct {
    const char *name, *title;
} kinds[HEC_VERDICT_COUNT] = {
    [HEC_VERDICT_NONE] = {"none", "no verdict"},
    [HEC_VERDICT_UNUSED] = {"unused", "unused"},
    [HEC_VERDICT_COMPUTE_BOUND] = {"compute_bound", "healthy: compute-bound"},
    [HEC_VERDICT_TRANSFER_STARVED] = {"transfer_starved", "transfer-starved"},
    [HEC_VERDICT_SMALL_KERNELS] = {"small_kernels", "overhead from small kernels"},
    [HEC_VERDICT_WAITING] = {"waiting", "mostly idle: waits for the host"},
    [HEC_VERDICT_UNCLEAR] = {"unclear", "unclear"},
};

const struct hec_threshold *hec_threshold(enum hec_threshold_id id) {
    return &thresholds[id];
}

const char *hec_verdict_name(enum hec_verdict_kind kind) {
    return kinds[kind].name;
}

const char *hec_verdict_title(enum hec_verdict_kind kind) {
    return kinds[kind].title;
}

#define LIMIT(id) (thresholds[HEC_THRESHOLD_##id].value)

static void tell(struct hec_verdict *verdict, struct hec_evidence evidence) {
    if (verdict->evidence_count < (int)(sizeof verdict->evidence / sizeof verdict->evidence[0]))
        verdict->evidence[verdict->evidence_count++] = evidence;
}

static void say(struct hec_verdict *verdict, enum hec_verdict_kind kind, double confidence, const char *sentence) {
    verdict->kind = kind;
    verdict->confidence = confidence;
    snprintf(verdict->sentence, sizeof verdict->sentence, "%s", sentence);
}

/* How far x lies from `from` towards `to`, 0..1. */
static double toward(double x, double from, double to) {
    return fmin(1, fmax(0, (x - from) / (to - from)));
}

struct facts {
    const struct hec_use *a;
    double power;      /* against the limit, NAN unknown */
    double pcie;       /* the busier direction, bytes/s, NAN unknown */
    double pcie_share; /* against the link, NAN unknown */
    double limit_w;
};

static void show_busy(struct hec_verdict *verdict, const struct facts *f) {
    if (isfinite(f->a->sm))
        tell(verdict, HEC_FACT(SM_ACTIVE, f->a->sm));
    if (isfinite(f->a->engine))
        tell(verdict, HEC_FACT(ENGINE_ACTIVE, f->a->engine, !f->a->has_gpm));
    if (isfinite(f->power))
        tell(verdict, HEC_FACT(POWER_OF_LIMIT, f->a->power_w, f->power, f->limit_w));
}

static void show_memory(struct hec_verdict *verdict, const struct facts *f) {
    if (isfinite(f->a->occupancy))
        tell(verdict, HEC_FACT(OCCUPANCY, f->a->occupancy));
    if (isfinite(f->a->tensor) && isfinite(f->a->dram))
        tell(verdict, HEC_FACT(TENSOR_AND_MEMORY, f->a->tensor, f->a->dram));
}

static void show_pcie(struct hec_verdict *verdict, const struct facts *f) {
    if (isfinite(f->pcie))
        tell(verdict, HEC_FACT(TRANSFERS, f->pcie, f->pcie_share, !(f->a->pcie_rx >= f->a->pcie_tx)));
}

static bool compute_bound(const struct facts *f, struct hec_verdict *out) {
    double busy = f->a->has_gpm ? f->a->sm : f->a->engine;
    double least = f->a->has_gpm ? LIMIT(COMPUTE_SM) : LIMIT(COMPUTE_UTIL);
    if (!(busy >= least) || !(f->power >= LIMIT(COMPUTE_POWER)))
        return false;
    double cap = f->a->has_gpm ? LIMIT(CONFIDENCE_GPM) : LIMIT(CONFIDENCE_UTIL);
    double margin = fmin(toward(busy, least, 0.95), toward(f->power, LIMIT(COMPUTE_POWER), 0.75));
    double confidence = cap * (0.6 + 0.4 * margin);
    if (f->a->dram >= LIMIT(MEMORY_DRAM)) {
        say(out, HEC_VERDICT_COMPUTE_BOUND, confidence * 0.8,
            "the device is kept busy, and much of its memory bandwidth is used: it waits for nobody. Whether fewer bytes "
            "(fusion, precision) would save joules cannot be seen from outside");
    } else {
        say(out, HEC_VERDICT_COMPUTE_BOUND, confidence,
            "the device is kept busy and draws power like it: it waits for nobody. Whether the kernels themselves could be "
            "leaner (precision, layout) cannot be seen from outside");
    }
    show_busy(out, f);
    show_memory(out, f);
    return true;
}

static bool transfer_starved(const struct facts *f, struct hec_verdict *out) {
    if (!(f->a->sm <= LIMIT(STARVED_SM)) || !isfinite(f->pcie))
        return false;
    double much = isfinite(f->pcie_share) ? f->pcie_share / LIMIT(STARVED_PCIE) : f->pcie / LIMIT(STARVED_PCIE_BYTES);
    if (!(much >= 1))
        return false;
    double margin = fmin(toward(much, 1, 8), toward(LIMIT(STARVED_SM) - f->a->sm, 0, LIMIT(STARVED_SM)) * 2);
    say(out, HEC_VERDICT_TRANSFER_STARVED, LIMIT(CONFIDENCE_GPM) * (0.6 + 0.4 * fmin(1, margin)),
        "the SMs are mostly idle while much data crosses the PCIe bus: the kernels probably wait for copies");
    show_busy(out, f);
    show_pcie(out, f);
    return true;
}

static bool small_kernels(const struct facts *f, struct hec_verdict *out) {
    bool gpm = f->a->has_gpm;
    double least = gpm ? LIMIT(SMALL_ENGINE) : LIMIT(COMPUTE_UTIL);
    bool thin = !gpm || f->a->occupancy <= LIMIT(SMALL_OCCUPANCY) * f->a->engine;
    if (!(f->a->engine >= least) || !(f->power <= LIMIT(SMALL_POWER)) || !thin)
        return false;
    double cap = gpm ? LIMIT(CONFIDENCE_GPM) : LIMIT(CONFIDENCE_UTIL);
    double margin = fmin(toward(f->a->engine, least, 2 * least), toward(-f->power, -LIMIT(SMALL_POWER), -0.25));
    say(out, HEC_VERDICT_SMALL_KERNELS, cap * (0.6 + 0.4 * margin),
        gpm ? "while the engine is active hardly any warp is resident, and the power is low: many small kernels, whose "
              "launch costs more than their work"
            : "the device counts as busy but draws little power: probably many small kernels, or copies; PCIe "
              "rates are unknown here");
    show_busy(out, f);
    show_memory(out, f);
    return true;
}

static bool waiting(const struct facts *f, struct hec_verdict *out) {
    if (!f->a->has_gpm || !(f->a->engine <= LIMIT(WAITING_ENGINE)) || !isfinite(f->pcie))
        return false;
    double margin = toward(-f->a->engine, -LIMIT(WAITING_ENGINE), -0.1);
    say(out, HEC_VERDICT_WAITING, LIMIT(CONFIDENCE_GPM) * (0.6 + 0.4 * margin),
        "the device is idle most of the time and no transfers explain it: it waits for the host (data loading, Python, "
        "synchronisation, checkpoints)");
    show_busy(out, f);
    show_pcie(out, f);
    return true;
}

static void unclear(const struct facts *f, struct hec_verdict *out) {
    const char *sentence =
        "the readings fit no single pattern: parts of the run may differ, or the device waits for the host now and then";
    if (!f->a->has_gpm)
        sentence = "there are no hardware counters here, and utilisation and power alone do not tell: PCIe rates are "
                   "unknown, so waiting for transfers can neither be shown nor excluded";
    else if (!isfinite(f->pcie) && f->a->sm <= LIMIT(STARVED_SM))
        sentence =
            "the SMs are mostly idle, but PCIe rates are unknown here, so waiting for transfers can neither be shown "
            "nor excluded";
    else if (!isfinite(f->power))
        sentence = "the power or its limit is unknown here, so the load cannot be judged";
    say(out, HEC_VERDICT_UNCLEAR, 0, sentence);
    show_busy(out, f);
    show_memory(out, f);
    show_pcie(out, f);
}

void hec_verdict_decide(const struct hec_device_summary *summary, struct hec_verdict *out) {
    const struct hec_use *a = &summary->activity;
    struct facts f = {.a = a,
                      .power = NAN,
                      .pcie = fmax(a->pcie_rx, a->pcie_tx),
                      .pcie_share = NAN,
                      .limit_w = summary->power_limit_w};
    memset(out, 0, sizeof *out);
    if (summary->power_limit_w > 0)
        f.power = a->power_w / summary->power_limit_w;
    if (summary->device.pcie_kib_per_s > 0)
        f.pcie_share = f.pcie / ((double)summary->device.pcie_kib_per_s * 1024);
    if (a->readings < LIMIT(READINGS)) {
        say(out, HEC_VERDICT_NONE, 0,
            a->readings ? "there are too few readings of the device's activity to tell"
                        : "the device's activity was not recorded");
        return;
    }
    /* making a context shows as a moment of activity */
    double engine = summary->metric[a->has_gpm ? HEC_GPM_GR_ACTIVE : HEC_GPU_UTIL].mean;
    double active_s = isfinite(a->from_s) ? a->to_s - a->from_s : 0;
    bool brief = active_s < LIMIT(ACTIVE_SECONDS);
    bool once = active_s < LIMIT(UNUSED_SHARE) * summary->energy.window_s && engine < LIMIT(UNUSED_MEAN);
    if (once || (brief && !(engine > LIMIT(UNUSED_ENGINE)))) {
        double cap = a->has_gpm ? LIMIT(CONFIDENCE_GPM) : LIMIT(CONFIDENCE_UTIL);
        say(out, HEC_VERDICT_UNUSED, cap,
            summary->used ? "the command holds the device but gave it hardly any work" : "nothing ran on the device");
        tell(out, HEC_FACT(ENGINE_IN_RUN, engine, active_s));
        return;
    }
    if (brief) {
        say(out, HEC_VERDICT_NONE, 0, "the device was in use too briefly to tell: less than half a second");
        return;
    }
    if (!compute_bound(&f, out) && !transfer_starved(&f, out) && !small_kernels(&f, out) && !waiting(&f, out))
        unclear(&f, out);
}

void hec_verdict_tell(const struct hec_verdict *verdict, struct hec_finding *out) {
    for (int i = 0; i < verdict->evidence_count; i++)
        hec_finding_add(out, verdict->evidence[i]);
}
