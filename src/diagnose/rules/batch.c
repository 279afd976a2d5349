/* Batch: kernels follow each other, but each is too small for the device. */
#include "diagnose/replay/power.h"
#include "diagnose/rules/compute.h"
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST_BUSY 0.60           /* of the steps; less, and waiting is the matter */
#define LEAST_BUSY_TELEMETRY 0.50 /* engine activity in the time in use */
#define LEAST_BUSY_SAMPLES 0.25   /* the same where the samples a step are known to be few */
#define SM_FEW 0.50               /* SM activity while kernels run */
#define THIN_SHARE 0.50           /* of compute in kernels whose blocks leave half the SMs empty */
#define MEMORY_BUSY 0.50          /* device memory while kernels run, of products that re-read weights */
#define TENSOR_SOME 0.02
#define TENSOR_LOW 0.30
#define FP32_PART 0.50
#define LEAST_GEMM 0.30
#define MOST_ATTENTION 0.05 /* of compute in softmax: then it is attention that fills memory */
#define FEW_SAMPLES 256
#define LEAST_FREE 0.30 /* of device memory */
/* Where launching is the limit: a larger batch makes fewer launches for the same work. */
#define LEAST_LAUNCH 0.10     /* of the steps' time */
#define LEAST_FREE_LAUNCH 0.5 /* of device memory */
#define TINY_US 10.0          /* a kernel */
#define FEWEST_SAMPLES 32
#define MOST_TIMES 32.0 /* the batch */
#define LAYOUT_MATTERS 0.05
#define SM_FULL 0.95
#define MOST_GAIN 0.95

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_BUSY, "%", "least busy share of the steps", "with more idle time, launching or waiting is the matter"},
    {100 * LEAST_BUSY_TELEMETRY, "%", "least engine activity while in use, where nothing was traced",
     "measured on an H200: one image at a time in CUDA graphs 70 %, launch-bound loops 15 to 31 %"},
    {100 * LEAST_BUSY_SAMPLES, "%", "the same where the samples a step are known to be few", "ours"},
    {100 * SM_FEW, "%", "SM activity while kernels run, below which SMs stand empty",
     "measured on an H200: one image at a time 13 %, training 75 % and more"},
    {100 * THIN_SHARE, "%", "of compute in kernels with at most half as many blocks as there are SMs",
     "persistent kernels launch one block an SM, so a little fewer is no sign"},
    {100 * MEMORY_BUSY, "%", "least device-memory activity of products that re-read weights",
     "measured on an H200: 64 samples a step 65 %, 4096 samples 28 %"},
    {100 * TENSOR_LOW, "%", "most tensor-pipe activity of those", "measured on an H200: 9 % and 69 %"},
    {100 * TENSOR_SOME, "%", "and least: without any there are no such products", "ours"},
    {100 * FP32_PART, "%", "most FP32-pipe activity by that of the tensor pipes there, where nothing was traced",
     "measured on an H200: 13 % with 64 samples a step, 80 % in unfused attention"},
    {100 * LEAST_GEMM, "%", "least share of compute in products there, and most in element-wise work", "ours"},
    {100 * MOST_ATTENTION, "%", "most share of compute in softmax there: more, and attention fills memory", "ours"},
    {FEW_SAMPLES, "samples", "most samples a step for that, where they are known",
     "an H200's ridge is 206 bf16 FLOP a byte: about as many rows a weight"},
    {100 * LEAST_FREE, "%", "least free device memory: there must be room for a larger batch", "ours"},
    {100 * LEAST_LAUNCH, "%",
     "least share of the steady part in which the device waits for launches, where kernels are tiny", "as of launch"},
    {TINY_US, "us", "mean kernel that is tiny; so are those that leave SMs empty, and those of few blocks",
     "a launch takes about as long: measured on an H200, launch-bound training 3.4 us"},
    {100 * LEAST_FREE_LAUNCH, "%", "least free device memory there", "ours: the batch can at least double"},
    {FEWEST_SAMPLES, "samples", "most samples a training step from which the batch comes before launching less",
     "ours: up to 256 it is the other answer"},
    {MOST_TIMES, "x", "most that a batch is taken to grow", "ours"},
    {100 * LAYOUT_MATTERS, "%", "of compute in layout changes beside convolutions, from which those are the matter",
     "as of layout"},
    {100 * SM_FULL, "%", "SM activity of a full device", "measured on an H200: large matrix products"},
    {100 * MOST_GAIN, "%", "most of compute's time that a larger batch is taken to save", "ours"},
    {100 * HEC_DYNAMIC_STAYS, "%", "of the joules above idle that the same work still takes in larger kernels", "ours"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch",
     "Double the batch until throughput stops rising or memory runs out, and stay one step below that. Gradient "
     "accumulation does not help: its kernels stay as small.",
     "loader = DataLoader(dataset, batch_size=2 * batch_size)\n"},
    {"serving", "Collect requests for a few milliseconds and run them together.",
     "# Triton: config.pbtxt\ndynamic_batching { max_queue_delay_microseconds: 2000 }\n"},
    {"TensorRT", "Build the engine with a larger optimisation profile and batch requests.", NULL},
    {"CUDA", "Where batches cannot grow, run several streams or processes (MPS) on the device.", NULL},
};

/* Share of compute in kernels with at most half as many blocks as SMs; NAN unknown. */
static double thin_share(const struct hec_facts *f) {
    double sms = f->profile ? f->profile->sms : NAN, known = 0, thin = 0;
    for (int i = 0; f->timeline && i < f->summary->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        if (k->device != f->device->device.index || k->kernel_class == HEC_KERNEL_CLASS_COMM || k->grid[0] < 1 ||
            k->grid[1] < 1 || k->grid[2] < 1)
            continue;
        known += k->seconds;
        thin += 2.0 * (double)k->grid[0] * (double)k->grid[1] * (double)k->grid[2] <= sms ? k->seconds : 0;
    }
    return isfinite(sms) && known > 0 ? thin / known : NAN;
}

/* Products limited by reading weights: more rows for each cost nothing. */
static bool rereads(const struct hec_facts *f, const struct hec_compute *c, double samples) {
    if (!(c->dram >= MEMORY_BUSY && c->tensor > TENSOR_SOME && c->tensor <= TENSOR_LOW) || samples > FEW_SAMPLES)
        return false;
    if (c->traced)
        return f->math_share >= LEAST_GEMM && f->class_share[HEC_KERNEL_CLASS_SOFTMAX] < MOST_ATTENTION &&
               f->class_share[HEC_KERNEL_CLASS_ELEMENTWISE] < LEAST_GEMM;
    return isfinite(samples) && c->fp32 <= FP32_PART * c->tensor;
}

static void describe(const struct hec_facts *f, const struct hec_compute *c, double thin, double samples, bool launches,
                     struct hec_finding *out) {
    if (isfinite(c->sm) && isfinite(c->tensor))
        hec_finding_add(out, HEC_FACT(COUNTERS, c->sm, c->tensor, c->dram, c->occupancy));
    if (isfinite(thin))
        hec_finding_add(out, HEC_FACT(THIN_KERNELS, thin, f->profile->sms));
    if (isfinite(c->busy) && !launches)
        hec_finding_add(out, HEC_FACT(BUSY, c->busy, !c->traced));
    if (isfinite(samples) && !launches)
        hec_finding_add(out, HEC_FACT(SAMPLES, samples));
    if (isfinite(f->memory_free_share))
        hec_finding_add(out, HEC_FACT(MEMORY_FREE, f->memory_free_share));
}

/* Watts of the same work in `time` of its time, by those now: no more than a full device draws, and no more joules than
 * idle's of that time and what the work itself took above idle. */
static double denser(const struct hec_facts *f, const struct hec_compute *c, double time) {
    double idle = hec_compute_idle_watts(f) / c->watts;
    double most = c->denser * time, same = fmin(1, idle) * time + HEC_DYNAMIC_STAYS * (1 - fmin(1, idle));
    return isfinite(idle) ? fmax(1, fmin(most, same) / time) : c->denser;
}

/* That the batch may grow, by the memory that is free. */
static double times_by_memory(const struct hec_facts *f) {
    return fmin(MOST_TIMES, 1 / fmax(1 - f->memory_free_share, 1e-3));
}

/* Launching is the limit, and each launch does little: more samples a step are for nearly the same launches. In inference
 * requests must be there to be put together, so that launching less comes first. */
static bool judge_launches(const struct hec_facts *f, const struct hec_compute *c, double thin, double samples,
                           struct hec_finding *out) {
    struct hec_waits w;
    hec_waits_gather(f, &w);
    double share = hec_waits_share(&w, HEC_CAUSE_LAUNCH), kernel_us = 1e6 * w.compute_s / w.launches;
    bool tiny = c->sm <= SM_FEW || thin >= THIN_SHARE || (w.launches > 0 && kernel_us <= TINY_US);
    bool few = samples <= FEW_SAMPLES || thin >= THIN_SHARE;
    if (!(share >= LEAST_LAUNCH) || !tiny || !few || !(f->memory_free_share >= LEAST_FREE_LAUNCH))
        return false;
    bool training = f->steps->source == HEC_STEP_OPTIMIZER && samples <= FEWEST_SAMPLES;
    double times = times_by_memory(f);
    if (isfinite(samples))
        times = fmin(times, fmax(2, FEW_SAMPLES / samples));
    double fill = fmax(1 / times, isfinite(c->sm) ? c->sm / SM_FULL : isfinite(thin) ? 1 - thin : 1);
    struct hec_finding compute = {.cause = HEC_CAUSE_BATCH};
    hec_compute_save(c, 1, (struct hec_saving){0, fmax(0, 1 - fill), fmax(0, 1 - fill)}, denser(f, c, fmin(1, fill)),
                     &compute);
    hec_waits_save(f, &w, HEC_CAUSE_LAUNCH, 0.5, 1 - 1 / times, 1, out);
    hec_saving_add(&out->seconds, compute.seconds);
    hec_saving_add(&out->joules, compute.joules);
    out->estimated = true;
    out->times = times;
    out->confidence = hec_waits_confidence(&w, HEC_CAUSE_LAUNCH, training ? 0.9 : 0.5);
    out->title = isfinite(samples) ? HEC_FACT(BATCH_SAMPLES, samples) : HEC_FACT(BATCH_BLOCKS, thin);
    if (f->steps->source == HEC_STEP_MODULE)
        out->lever = HEC_ANSWER(BATCH_OR_LAUNCH_LESS);
    hec_finding_add(out, HEC_FACT(LAUNCH_SHARE, share, w.steady));
    if (w.launches > 0)
        hec_finding_add(out, HEC_FACT(LAUNCHES, w.launches, w.compute_s / w.launches));
    return true;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    double thin = thin_share(f), samples = f->steps->samples_per_step;
    hec_compute_gather(f, &c);
    bool few = samples <= FEW_SAMPLES, empty = c.sm <= SM_FEW || (isnan(c.sm) && thin >= THIN_SHARE);
    bool weights = rereads(f, &c, samples);
    double least = c.traced ? LEAST_BUSY : weights && few ? LEAST_BUSY_SAMPLES : LEAST_BUSY_TELEMETRY;
    if (judge_launches(f, &c, thin, samples, out)) {
        describe(f, &c, thin, samples, true, out);
        return true;
    }
    if (!(c.busy >= least) || !(empty || weights) || f->memory_free_share < LEAST_FREE)
        return false;
    /* Normalisation on NCHW leaves SMs empty with any batch: the layout is the matter. */
    if (f->class_share[HEC_KERNEL_CLASS_LAYOUT] >= LAYOUT_MATTERS && f->class_share[HEC_KERNEL_CLASS_CONV] > 0)
        return false;
    /* The work of a batch would take no less than what it takes of the pipes that limit it when they are full. */
    double fill = isfinite(c.sm) ? c.sm / SM_FULL : 1 - thin;
    if (isfinite(c.tensor) && (!c.traced || f->math_share >= LEAST_GEMM) && c.tensor > 0)
        fill = fmin(fill, c.tensor / c.tensor_reach);
    /* An optimizer does as much for a larger batch, with as many launches. */
    double times = times_by_memory(f), optimizer = f->class_share[HEC_KERNEL_CLASS_OPTIMIZER];
    fill = fmax(1 / times, fill) * (1 - optimizer) + optimizer / times;
    double best = fmin(MOST_GAIN, fmax(0, 1 - fill));
    struct hec_waits w;
    hec_waits_gather(f, &w);
    hec_compute_save(&c, 1, (struct hec_saving){0.4 * best, best, fmin(0.98, 1 - (1 - best) / 3)},
                     denser(f, &c, 1 - best), out);
    hec_waits_save_more(f, &w, HEC_CAUSE_LAUNCH, 0, 1 - 1 / times, 1, out);
    hec_waits_save_more(f, &w, HEC_CAUSE_HOST, 0, 0, 1, out); /* code of each step, or of each sample */
    out->estimated = true;                                    /* what a larger batch draws is not known */
    if (empty)
        out->times = times;
    out->confidence = !c.traced ? HEC_TELEMETRY_CONFIDENCE : isfinite(c.sm) ? 0.85 : 0.6;
    if (isnan(f->memory_free_share))
        out->confidence *= 0.9;
    out->title = weights && !empty ? HEC_FACT(BATCH_WEIGHTS, c.tensor)
                 : isfinite(c.sm)  ? HEC_FACT(SMS_EMPTY, c.sm)
                                   : HEC_FACT(FEW_BLOCKS, thin);
    if (f->steps->source == HEC_STEP_MODULE)
        out->lever = HEC_ANSWER(BATCH_REQUESTS);
    describe(f, &c, thin, samples, false, out);
    return out->evidence_count > 0;
}

const struct hec_rule hec_rule_batch = {
    .cause = HEC_CAUSE_BATCH,
    .meaning =
        "Kernels run one after the other, yet each is too small: most SMs have nothing to do, or weights are read again "
        "for a few samples. A larger batch does more work in nearly the same time and for little more power.",
    .detection =
        "the device is busy in its steps, but SMs are mostly empty while kernels run, or matrix products keep memory busy "
        "and tensor pipes idle with few samples a step; or it waits for launches of tiny kernels, with few samples a step or "
        "few blocks a kernel; and device memory has room.",
    .saving =
        "the time shrinks to what the busiest of SMs and tensor pipes would need when full (tensor pipes reach 65 % in "
        "products, 25 % in convolutions); an optimizer's time, and waits for launches, are shared by as many more samples "
        "as memory has room for. It draws no more than the power limit, nor than the same work took above idle. The interval is "
        "wide: only a trial shows it.",
    .lever = HEC_LEVER_LARGER_BATCH,
    HEC_RULE_TABLES,
    .judge = judge,
};
