/* Launch: launching takes longer than what is launched. */
#include "diagnose/rules/batch.h"
#include "diagnose/rules/buckets.h"
#include "diagnose/rules/compute.h"
#include "diagnose/rules/waits.h"

#include <math.h>

static bool judge_telemetry(const struct hec_facts *f, struct hec_finding *out) {
    double sure = hec_use_thin(&f->device->readings);
    if (!sure)
        return false;
    out->title = HEC_FACT(LAUNCHES_LIKELY, f->device->readings.activity.engine);
    hec_waits_report_use(f, false, out);
    out->confidence = fmin(HEC_TELEMETRY_CONFIDENCE, sure);
    hec_waits_save_telemetry(f, f->device->readings.activity.engine, HEC_LAUNCH_TELEMETRY_GOES, out);
    return true;
}

/* As one program operations that are called one by one are fused too, unless they are dense products: of the kernels that goes with them
 * anything from nothing to nearly all. Those that keep memory busy are passes over arrays, one an operation, of which as many become one
 * as of a chain that was seen (memory.c), or as are launched from one number that is read to the next. */
static double fuses(const struct hec_compute *c, const struct hec_waits *w) {
    double passes =
        w->reads > 0 ? fmin(HEC_MEMORY_MOST_CHAIN_KERNELS, w->launches / w->reads) : HEC_MEMORY_MOST_CHAIN_KERNELS;
    return c->dram >= HEC_MEMORY_DRAM_IDLE ? fmax(HEC_JIT_FUSES, 1 - 1 / passes) : HEC_JIT_FUSES;
}

static void compile_operations(const struct hec_facts *f, const struct hec_waits *w, struct hec_finding *out) {
    struct hec_compute c;
    struct hec_finding compute = {.cause = HEC_CAUSE_LAUNCH};
    hec_compute_gather(f, &c);
    out->lever = HEC_ANSWER(JIT);
    if (!(c.tensor <= HEC_BATCH_TENSOR_SOME))
        return;
    hec_compute_save(&c, 1, (struct hec_saving){0, fuses(&c, w), HEC_JIT_FUSES_MOST}, 1, &compute);
    hec_saving_add(&out->seconds, compute.seconds);
    hec_saving_add(&out->joules, compute.joules);
    out->estimated = true;
}

/* CuPy's operations are called one by one as well, in code that no stack tells apart from the program's own: whether those that follow each
 * other are element-wise only their kernels tell. Where these have no names the interval has what fusing saves, and the best guess is what
 * a graph does. */
static void may_fuse(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    struct hec_finding compute = {.cause = HEC_CAUSE_LAUNCH};
    hec_compute_gather(f, &c);
    if (hec_framework_of(f->summary) != HEC_FRAMEWORK_CUPY || c.traced || isfinite(hec_facts_launched_point_wise(f)) ||
        !(c.tensor <= HEC_BATCH_TENSOR_SOME) || !(f->device->steady && f->device->steady->window_ns > 0))
        return;
    const struct hec_ledger_device *steady = f->device->steady;
    hec_compute_save(&c, 1, (struct hec_saving){0, 0, HEC_JIT_FUSES_MOST}, 1, &compute);
    hec_saving_add(&out->seconds, compute.seconds);
    hec_saving_add(&out->joules, compute.joules);
    hec_finding_add(out,
                    HEC_FACT(FUSION_UNSEEN, steady->rows[HEC_STATE_COMPUTE].seconds * 1e9 / (double)steady->window_ns));
}

/* Where a framework's loop takes the steps, a graph holds the model forward and back: its optimizer and the framework launch as they did,
 * and a compiled model is called. Of waits for launches no more goes than what is left of the host's time in those passes. */
static double graphs_hold(const struct hec_facts *f, double owned_s, struct hec_finding *out) {
    const struct hec_step_part_summary *forward = &f->summary->step_part[HEC_STEP_FORWARD],
                                       *backward = &f->summary->step_part[HEC_STEP_BACKWARD];
    double passes_s = forward->seconds + backward->seconds, calls = (double)backward->count;
    if (!f->summary->framed || !isfinite(passes_s) || !(calls > 0))
        return INFINITY;
    hec_finding_add(out, HEC_FACT(GRAPHS_HOLD, passes_s / calls, 1e-3 * HEC_LAUNCH_GRAPHS_CALL_MS));
    return fmax(0, passes_s - calls * 1e-3 * HEC_LAUNCH_GRAPHS_CALL_MS) / owned_s;
}

/* What is launched behind a wait for the device belongs to the wait, without which it would be hidden. Launched at once it is not there to
 * be hidden. */
static void save_late(const struct hec_facts *f, const struct hec_waits *w, struct hec_finding *out) {
    struct hec_finding late = {.cause = HEC_CAUSE_LAUNCH};
    hec_waits_save_seconds(f, w->late_s, 0, hec_goes_of(HEC_CAUSE_LAUNCH)->part.best, 1, &late);
    hec_saving_add(&out->seconds, late.seconds);
    hec_saving_add(&out->joules, late.joules);
}

/* Several steps by one call of what JAX compiled launch as many kernels, one by one: the call itself goes, and what reading hides of it is
 * reading's. */
static bool called(const struct hec_facts *f, const struct hec_waits *w) {
    return hec_framework_of(f->summary) == HEC_FRAMEWORK_JAX && f->device->gaps &&
           !(f->device->gaps->operations_s > HEC_OPERATIONS_LEAST * w->owned_s[HEC_CAUSE_LAUNCH]);
}

bool hec_judge_launch(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    struct hec_buckets b;
    if (!hec_waits_claim(f, HEC_LAUNCH_LEAST, &w, out))
        return !w.known && judge_telemetry(f, out);
    /* a step in one graph runs none of the program's own code either, which is a cause of its own where there is much of it */
    double owned_s = w.owned_s[HEC_CAUSE_LAUNCH], code_s = fmin(owned_s, w.owned_s[HEC_CAUSE_HOST]);
    /* Launched at once, the device works while that code runs: a step takes the longer of both, and no more their sum. Of training it is
     * not launched at once: its optimizer and backward pass are launched by themselves. */
    bool whole = f->steps->source == HEC_STEP_MODULE || f->steps->source == HEC_STEP_PERIODIC || f->steps->count == 0;
    double hidden = whole ? w.beside_s / owned_s : 0;
    static const struct hec_saving calls = {0, HEC_JIT_CALL_GOES, 1};
    const struct hec_saving *goes = called(f, &w) ? &calls : &hec_goes_of(out->cause)->part;
    double held = graphs_hold(f, owned_s, out), best = fmin(held, goes->best * (1 + hidden));
    if (isfinite(held)) /* the replay of graphs leaves launches what those outside of them take */
        out->edit_value = fmax(0, 1 - held / goes->best);
    hec_waits_save(f, &w, out->cause, fmin(goes->low, best), best, 1 + fmax(code_s / owned_s, hidden), out);
    if (isinf(held)) /* what a graph holds of that is not known */
        save_late(f, &w, out);
    if (f->device->gaps && f->device->gaps->operations_s > HEC_OPERATIONS_LEAST * w.owned_s[HEC_CAUSE_LAUNCH])
        compile_operations(f, &w, out);
    may_fuse(f, out);
    if (hec_buckets_gather(f, &b)) /* each ends what compilers and graphs launch at once */
        out->confidence *= HEC_LAUNCH_MANY_COLLECTIVES;
    if (f->steps->source == HEC_STEP_OPTIMIZER &&
        hec_batch_at_hand(f)) /* of inference each sample may be somebody's who waits */
        out->confidence *= HEC_LAUNCH_FEW_SAMPLES;
    if (w.launches > 0)
        hec_finding_add(out, HEC_FACT(LAUNCHES, w.launches, w.compute_s / w.launches));
    if (f->device->timeline && f->device->timeline->kernel.median > 0)
        hec_finding_add(out, HEC_FACT(MEDIAN_KERNEL, f->device->timeline->kernel.median, f->small_share));
    return true;
}
