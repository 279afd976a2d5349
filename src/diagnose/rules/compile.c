/* Compile: code is compiled or loaded again and again, long after the start. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.05 /* of the steady part */
#define LEAST_LOADS 2

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in gaps in which code is loaded",
     "ours: the first steps are not in it"},
    {LEAST_LOADS, "", "least loads after the third step", "one may be a lazily loaded kernel of a rare branch"},
    {100 * HEC_RECURRENCE_LATE_SHARE, "%", "least part of that time in the second half of what the device computes",
     "recompiling lies all over it; CUDA loads each kernel once, at its first launch (CUDA_MODULE_LOADING=LAZY)"},
    {HEC_RECURRENCE_EIGHTHS, "", "least eighths of what the device computes in which code is loaded", "the same"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "See what is compiled anew and why; then mark the dimension that varies, or pad to a few sizes.",
     "TORCH_LOGS=recompiles python train.py\n"
     "torch._dynamo.mark_dynamic(batch, 0)\n"
     "# or: torch.compile(model, dynamic=True)\n"},
    {"JAX", "Each new shape is a compilation: pad to buckets, and keep compiled code.",
     "jax.config.update(\"jax_log_compiles\", True)\n"
     "jax.config.update(\"jax_compilation_cache_dir\", \"/var/cache/jax\")\n"},
    {"TensorFlow", "tf.function(reduce_retracing=True), or an input_signature with None for what varies.", NULL},
    {"TensorRT", "Build one engine with a profile for all sizes.", NULL},
};

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    int64_t loads = f->calls ? f->calls->late_loads : 0;
    if (f->gaps && f->gaps->loads > loads)
        loads = f->gaps->loads;
    if (loads < LEAST_LOADS || (f->gaps && !f->gaps->loads_recur) || !hec_waits_claim(f, LEAST, &w, out))
        return false;
    hec_finding_add(out, HEC_FACT(LOADS, (double)loads));
    return true;
}

const struct hec_rule hec_rule_compile = {
    .cause = HEC_CAUSE_COMPILE,
    .meaning =
        "A compiled model is compiled for the shapes that it has seen. A new shape, type or branch compiles it anew, for "
        "seconds, while the device waits.",
    .detection =
        "idle gaps after the third step in which a call loads or compiles code, with all that the gap holds but data "
        "and checkpoints: what leads to a load is compiling. They recur: loads that die away are each kernel's first "
        "launch, which is paid once.",
    .saving = "one version for all shapes is still to be compiled once.",
    .goes = {0.3, 0.75, 1},
    .confidence = 0.9,
    .lever = HEC_LEVER_COMPILE_ONCE,
    HEC_RULE_TABLES,
    .judge = judge,
};
