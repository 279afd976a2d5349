/* Alloc: device or pinned memory is allocated and freed in the loop. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.05 /* of the steady part */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in which the device waits for it",
     "measured on an H200: caches emptied a step 29 %, no cache at all 83 %, with PyTorch's cache 0"},
    {100 * HEC_RECURRENCE_LATE_SHARE, "%", "least part of that time in the second half of what the device computes",
     "a loop's lies all over it; set-up allocates before the device computes, and frees after it"},
    {HEC_RECURRENCE_EIGHTHS, "", "least eighths of what the device computes in which there is some", "the same"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch",
     "Drop torch.cuda.empty_cache() from the loop and PYTORCH_NO_CUDA_MEMORY_CACHING from the environment. Where "
     "sizes vary, let segments grow instead of being freed.",
     "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"},
    {"CuPy", "Keep a pool.", "cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc)\n"},
    {"JAX", "XLA_PYTHON_CLIENT_ALLOCATOR=platform allocates each array: leave it unset.", NULL},
    {"CUDA", "cudaMallocAsync takes from a pool, in stream order. cudaFree waits for the device.",
     "cudaMallocAsync(&p, bytes, stream);\ncudaFreeAsync(p, stream);\n"},
};

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if ((f->gaps && !f->gaps->allocs_recur) || !hec_waits_claim(f, LEAST, &w, out)) /* else it is set-up */
        return false;
    /* The allocator's own code, and caches that it left cold, are in what launches wait for. */
    double around = w.launches > 0 ? fmin(1, w.allocs / w.launches) : 0;
    hec_waits_save_more(f, &w, HEC_CAUSE_LAUNCH, 0, 0.5 * around, around, out);
    if (w.allocs > 0)
        hec_finding_add(out, HEC_FACT(ALLOCATIONS, w.allocs, w.alloc_s));
    return true;
}

const struct hec_rule hec_rule_alloc = {
    .cause = HEC_CAUSE_ALLOC,
    .meaning =
        "cudaMalloc, cudaFree and pinning memory go to the driver, take from 10 us to milliseconds, and freeing waits for "
        "the device. Frameworks keep a cache so that a loop never needs them.",
    .detection =
        "time in which the device is idle and the program is in a call that allocates or frees, and what is exposed of "
        "launching after it; again and again while the device computes, for what is allocated once is set-up.",
    .saving =
        "with a cache none of the calls remain, and of the code between launches up to as much as there are allocations a launch.",
    .goes = {0.6, 0.9, 1},
    .confidence = 0.9,
    .lever = HEC_LEVER_KEEP_MEMORY,
    HEC_RULE_TABLES,
    .judge = judge,
};
