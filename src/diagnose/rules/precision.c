/* Precision: matrix products and convolutions that do not use the tensor cores, or not well. */
#include "diagnose/rules/compute.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define LEAST_SHARE 0.10      /* of compute in such kernels */
#define LEAST_SHARE_TF32 0.30 /* the same where it is TF32 that could be half precision */
#define TENSOR_IDLE 0.02
#define FP32_BUSY 0.30
#define GAIN_LEAST_PEAKS 1.9 /* ratio of peaks from which half precision is worth a word */
/* Parts of the ratio of peaks that programs reach when they change over. */
#define REACHED_GEMM 0.75
#define REACHED_CONV 0.35
#define RATIO_UNKNOWN 8.0
#define TF32_CONFIDENCE 0.25 /* a hint: TF32 uses the tensor cores, and may be there for its precision */
#define FP32_GAIN_LOW (1 - 1 / 2.2)
#define ALIGNED_NEW 4.5 /* misaligned bf16 products against aligned ones, where those run on warp-group instructions */
#define ALIGNED_OLD 2.0

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_SHARE, "%", "least share of compute in fp32 or fp64 products, or misaligned ones",
     "below, the saving is within what a run varies"},
    {100 * LEAST_SHARE_TF32, "%", "least share of compute in TF32 products, where half precision is twice as fast",
     "half the gain of the above at most"},
    {100 * TENSOR_IDLE, "%", "tensor-pipe activity below which tensor cores are idle",
     "measured on an H200: fp32 products 0.0 %, a bf16 net's at least 9 %"},
    {100 * FP32_BUSY, "%", "FP32-pipe activity from which products run there, where names do not tell",
     "measured on an H200: fp32 products 75 %, element-wise chains 5 %, bf16 programs under 8 %"},
    {100 * REACHED_GEMM, "%", "of the ratio of peaks that matrix products reach, fp32 to TF32 or bf16",
     "measured on an H200: 5.5 x of 7.4 x and 14 x of 14.8 x"},
    {100 * REACHED_CONV, "%", "the same of convolutions",
     "measured on an H200: ResNet-18 fp32 to TF32, 2.0 x the joules"},
    {ALIGNED_NEW, "x", "aligned against misaligned bf16 products, from compute capability 9",
     "measured on an H200: width 4095 against 4096, 2061 us against 420 us a product"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Let fp32 products use TF32, or run the forward pass in bf16.",
     "torch.set_float32_matmul_precision(\"high\")\n"
     "with torch.autocast(\"cuda\", dtype=torch.bfloat16):\n"
     "    loss = loss_of(model(inputs), targets)\n"},
    {"PyTorch", "For inference, convert the model once; pad odd widths to multiples of 8 (64 is better).",
     "model = model.to(torch.bfloat16)\n"
     "width = (width + 7) // 8 * 8\n"},
    {"JAX", "Lower the default precision of products, or compute in bf16.",
     "jax.config.update(\"jax_default_matmul_precision\", \"tensorfloat32\")\n"},
    {"TensorFlow", "Use a mixed-precision policy.", "tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")\n"},
    {"TensorRT", "Build the engine with fp16, or int8 with calibration.", "config.set_flag(trt.BuilderFlag.FP16)\n"},
};

struct candidate {
    enum { FP32, MISALIGNED, FP64, TF32 } kind;
    double share; /* of compute */
    struct hec_saving gain;
    double confidence;
    bool by_counters;
};

/* "…_align1>", "…_align2_…", "aligna1": rows that the fast loads cannot fetch; not "align16". */
static bool misaligned(const char *name) {
    for (const char *at = strstr(name, "align"); at; at = strstr(at + 1, "align")) {
        const char *digit = at + strlen("align");
        digit += *digit == 'a';
        if ((*digit == '1' || *digit == '2') && !isdigit((unsigned char)digit[1]))
            return true;
    }
    return false;
}

static bool uses_tensor(enum hec_kernel_precision p) {
    return p == HEC_KERNEL_PRECISION_TENSOR || p == HEC_KERNEL_PRECISION_TENSOR_HALF ||
           p == HEC_KERNEL_PRECISION_TENSOR_TF32 || p == HEC_KERNEL_PRECISION_TENSOR_FP8;
}

static double misaligned_share(const struct hec_facts *f) {
    double all = 0, those = 0;
    for (int i = 0; i < f->summary->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        if (k->device != f->device->device.index || k->kernel_class == HEC_KERNEL_CLASS_COMM)
            continue;
        all += k->seconds;
        if (k->kernel_class == HEC_KERNEL_CLASS_GEMM && uses_tensor(k->precision) && misaligned(k->name))
            those += k->seconds;
    }
    return all > 0 ? those / all : 0;
}

static double peak(const struct hec_facts *f, enum hec_precision precision) {
    double measured = f->profile ? f->profile->peaks.flops[precision] : NAN;
    return measured > 0 ? measured : f->part ? f->part->peak_tflops[precision] * 1e12 : NAN;
}

/* Peak of b by that of a; NAN unknown. */
static double ratio(const struct hec_facts *f, enum hec_precision b, enum hec_precision a) {
    double x = peak(f, b) / peak(f, a);
    return isfinite(x) && x > 0 ? x : NAN;
}

/* What leaving fp32 gives: TF32 at the best guess for training, half precision for inference. */
static struct hec_saving fp32_gain(const struct hec_facts *f, enum hec_precision from) {
    double tf32 = ratio(f, HEC_PRECISION_TF32, from), half = ratio(f, HEC_PRECISION_FP16, from);
    double conv = f->class_share[HEC_KERNEL_CLASS_CONV], math = f->math_share;
    double reached = math > 0 ? REACHED_CONV * conv / math + REACHED_GEMM * (1 - conv / math) : REACHED_GEMM;
    bool serving = f->steps->source == HEC_STEP_MODULE;
    if (isnan(half))
        half = 2 * RATIO_UNKNOWN;
    double target = serving || !(tf32 > 1.5) ? half : tf32;
    if (isnan(tf32) && !serving)
        target = RATIO_UNKNOWN;
    double best = fmax(1, reached * target);
    return (struct hec_saving){fmin(FP32_GAIN_LOW, 1 - 1 / best), 1 - 1 / best, 1 - 1 / fmax(best, half)};
}

static int gather(const struct hec_facts *f, const struct hec_compute *c, struct candidate *out) {
    double simt = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_SIMT_FP32];
    double fp64 = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_FP64];
    double tf32 = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_TENSOR_TF32];
    double odd = f->timeline ? misaligned_share(f) : 0;
    bool idle_tensor = c->tensor <= TENSOR_IDLE && c->fp32 >= FP32_BUSY;
    int count = 0;
    if (simt >= LEAST_SHARE && idle_tensor) /* names that do not tell are no tensor kernels either */
        simt += f->math_share * f->precision_share[HEC_KERNEL_PRECISION_UNKNOWN];
    if (simt >= LEAST_SHARE)
        out[count++] =
            (struct candidate){FP32, simt, fp32_gain(f, HEC_PRECISION_FP32), idle_tensor ? 0.95 : 0.85, false};
    else if (idle_tensor && (!f->timeline || simt + fp64 + tf32 < LEAST_SHARE)) {
        struct hec_saving gain = fp32_gain(f, HEC_PRECISION_FP32);
        gain.low /= 2;
        out[count++] =
            (struct candidate){FP32, f->math_share > 0 ? f->math_share : 1, gain, HEC_TELEMETRY_CONFIDENCE, true};
    }
    if (odd >= LEAST_SHARE) {
        double best = peak(f, HEC_PRECISION_FP8) > 0 ? ALIGNED_NEW : ALIGNED_OLD;
        out[count++] = (struct candidate){
            MISALIGNED, odd, {1 - 1 / (1 + (best - 1) / 3), 1 - 1 / best, 1 - 1 / (1.5 * best)}, 0.9, false};
    }
    if (fp64 >= LEAST_SHARE)
        out[count++] = (struct candidate){FP64, fp64, fp32_gain(f, HEC_PRECISION_FP64_TENSOR), 0.4, false};
    if (tf32 >= LEAST_SHARE_TF32 && ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_TF32) >= GAIN_LEAST_PEAKS)
        out[count++] = (struct candidate){TF32, tf32, {0.10, 0.30, 0.45}, TF32_CONFIDENCE, false};
    return count;
}

static void tell(const struct hec_facts *f, const struct candidate *it, struct hec_finding *out) {
    double share = 100 * it->share;
    switch (it->kind) {
    case FP32:
        if (it->by_counters) {
            hec_finding_title(out, "arithmetic in fp32, tensor cores idle");
            break;
        }
        hec_finding_title(out, "fp32 without tensor cores: %.0f %% of compute", share);
        hec_finding_evidence(out, "%.0f %% of compute is in fp32 products whose kernels use no tensor cores", share);
        break;
    case MISALIGNED:
        hec_finding_title(out, "shapes that miss the fast tensor-core kernels: %.0f %% of compute", share);
        hec_finding_evidence(out,
                             "%.0f %% of compute is in products of rows that are not aligned (align1, align2 in "
                             "the kernels' names)",
                             share);
        hec_finding_lever(out, "pad the sizes of the products to multiples of 8 (64 is better)");
        break;
    case FP64:
        hec_finding_title(out, "double precision: %.0f %% of compute", share);
        hec_finding_evidence(out, "%.0f %% of compute is in fp64 products", share);
        hec_finding_lever(out, "where the results allow it, compute products in fp32 with TF32");
        break;
    case TF32:
        hec_finding_title(out, "TF32 where half precision is twice as fast: %.0f %% of compute", share);
        hec_finding_evidence(out, "%.0f %% of compute is in TF32 products", share);
        hec_finding_lever(out, "where quality allows it, run the forward pass under torch.autocast(\"cuda\", "
                               "dtype=torch.bfloat16)");
        break;
    }
    for (int i = 0; i < f->summary->timeline.kernel_count && it->kind <= MISALIGNED && !it->by_counters; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        bool simt = k->precision == HEC_KERNEL_PRECISION_SIMT_FP32;
        if (k->device == f->device->device.index && (it->kind == FP32 ? simt : misaligned(k->name) && !simt)) {
            hec_finding_evidence(out, "%.100s: %.0f us a call", k->name, k->mean_us);
            break;
        }
    }
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    struct candidate list[4], *it = NULL;
    hec_compute_gather(f, &c);
    int count = gather(f, &c, list);
    for (int i = 0; i < count; i++)
        if (!it || list[i].share * list[i].gain.best * list[i].confidence > it->share * it->gain.best * it->confidence)
            it = &list[i];
    if (!it)
        return false;
    out->confidence = it->confidence;
    tell(f, it, out);
    if (isfinite(c.tensor) && isfinite(c.fp32))
        hec_finding_evidence(out, "while kernels run, tensor pipes are active %.0f %% of the time, FP32 pipes %.0f %%",
                             100 * c.tensor, 100 * c.fp32);
    double fast = ratio(f, HEC_PRECISION_TF32, HEC_PRECISION_FP32);
    if (it->kind == FP32 && isfinite(fast))
        hec_finding_evidence(out, "peak TF32 is %.1f x, bf16 %.1f x that of fp32 (%s)", fast,
                             ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_FP32),
                             f->profile && f->profile->peaks.calibrated ? "calibrated" : "part table");
    hec_compute_save(&c, it->share, it->gain, c.denser, out);
    return out->evidence_count > 0;
}

const struct hec_rule hec_rule_precision = {
    .cause = HEC_CAUSE_PRECISION,
    .meaning =
        "Matrix products and convolutions run on the ordinary arithmetic units, or on tensor cores in a slow mode. Tensor "
        "cores do the same products in TF32, bf16 or fp16 up to fifteen times as fast, for about as many watts.",
    .detection =
        "the names of matrix, convolution and attention kernels tell their arithmetic (fp32 without tensor cores, fp64, "
        "TF32) and whether rows are aligned; where they do not, tensor pipes are idle while FP32 pipes are busy.",
    .saving =
        "the share of compute in such kernels, sped up by the ratio of the peaks times what programs reach of it; the "
        "faster kernels are charged with the power limit's watts. Low end: what a convolutional net gained.",
    .lever = "torch.set_float32_matmul_precision(\"high\"), then torch.autocast(\"cuda\", dtype=torch.bfloat16); for "
             "inference, model.to(torch.bfloat16)",
    .limits = limits,
    .limit_count = sizeof limits / sizeof limits[0],
    .advice = advice,
    .advice_count = sizeof advice / sizeof advice[0],
    .judge = judge,
};
