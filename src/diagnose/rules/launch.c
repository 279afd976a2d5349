/* Launch: launching takes longer than what is launched. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.10 /* of the steady part */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in which the device waits for launches",
     "measured on an H200: small models 74 to 88 %; large ones 5 to 8 %, which nothing hides"},
    {1e3 * HEC_GAP_AHEAD_S, "ms",
     "that a program is ahead of the device at most: more launching is not hidden by dropping a wait",
     "CUDA's queue holds about 1000 launches of about 10 us"},
    {1e-6 * HEC_STATE_BRIEF_NS, "ms", "between two launches that count as launching: more is the program's own code",
     "an operator of PyTorch takes 10 to 100 us"},
    {100 * HEC_USE_THIN_ENGINE, "%", "least engine activity in the time in use, where nothing was traced",
     "measured on an H200: a loop of tiny kernels 31 %, a starved loop under 5 %"},
    {100 * HEC_USE_FULL_DRIVER, "%", "the same of driver utilisation, without hardware counters",
     "it counts any resident kernel, so only near 100 % says anything"},
    {100 * HEC_USE_THIN_POWER, "%", "most power against the limit then",
     "measured on an H200: small kernels 17 %, the least of training 57 %"},
    {100 * HEC_USE_THIN_OCCUPANCY, "%", "most SM occupancy then, of the engine's activity",
     "a kernel of a few blocks leaves most of the warps empty; measured 0 %, training 30 %"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Record the step once and replay it, or let the compiler fuse and do that.",
     "model = torch.compile(model, mode=\"reduce-overhead\")\n"
     "optimizer = torch.optim.AdamW(model.parameters(), fused=True)\n"},
    {"PyTorch", "Larger batches give each launch more to do.", NULL},
    {"JAX", "jit the whole step, and scan over several.", "state, losses = jax.lax.scan(step, state, batches)\n"},
    {"TensorRT", "Use CUDA graphs: trtexec --useCudaGraph.", NULL},
    {"serving", "vLLM: leave enforce_eager off.", NULL},
};

static bool judge_telemetry(const struct hec_facts *f, struct hec_finding *out) {
    double sure = hec_use_thin(f->device);
    if (!sure)
        return false;
    out->title = HEC_FACT(LAUNCHES_LIKELY, f->device->activity.engine);
    hec_waits_report_use(f, false, out);
    out->confidence = fmin(HEC_TELEMETRY_CONFIDENCE, sure);
    hec_waits_save_telemetry(f, f->device->activity.engine, 0.6, out);
    return true;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if (!hec_waits_claim(f, LEAST, &w, out))
        return !w.known && judge_telemetry(f, out);
    /* a step in one graph runs none of the program's own code either, which is a cause of its own where there is much of it */
    double owned_s = w.owned_s[HEC_CAUSE_LAUNCH], code_s = fmin(owned_s, w.owned_s[HEC_CAUSE_HOST]);
    hec_waits_save(f, &w, out->cause, hec_rule_launch.goes.low, hec_rule_launch.goes.best, 1 + code_s / owned_s, out);
    if (w.launches > 0)
        hec_finding_add(out, HEC_FACT(LAUNCHES, w.launches, w.compute_s / w.launches));
    if (f->timeline && f->timeline->kernel.median > 0)
        hec_finding_add(out, HEC_FACT(MEDIAN_KERNEL, f->timeline->kernel.median, f->small_share));
    return true;
}

const struct hec_rule hec_rule_launch = {
    .cause = HEC_CAUSE_LAUNCH,
    .meaning =
        "Each kernel costs the host some microseconds of Python, framework and driver. Where kernels are shorter than "
        "that, the device waits for the next launch, however fast it is.",
    .detection =
        "idle time in launching calls, and between them in pieces of less than 0.2 ms, for as long as no wait before it "
        "explains it. Without a trace: a busy engine with few warps resident.",
    .saving = "CUDA graphs launch a step at once.",
    .goes = {0.5, 0.88, 1},
    .confidence = 0.9,
    .lever = HEC_LEVER_LAUNCH_LESS,
    HEC_RULE_TABLES,
    .judge = judge,
};
