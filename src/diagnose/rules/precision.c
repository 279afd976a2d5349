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
#define RATIO_UNKNOWN 8.0    /* of peaks: TF32 or a Volta's fp16 by fp32; bf16 is twice that */
#define TF32_CONFIDENCE 0.25 /* a hint: TF32 uses the tensor cores, and may be there for its precision */
#define FP32_GAIN_LOW (1 - 1 / 2.2)
#define ALIGNED_NEW 4.5 /* misaligned bf16 products against aligned ones, where those run on warp-group instructions */
#define ALIGNED_OLD 2.0
#define ALIGNED_TO 8 /* elements of two bytes: 16 bytes a load */
#define FP16_FROM 7  /* compute capability */
#define TF32_FROM 8

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_SHARE, "%", "least share of compute in fp32 products, or misaligned ones",
     "below, the saving is within what a run varies"},
    {100 * LEAST_SHARE_TF32, "%", "least share of compute in TF32 products, where half precision is twice as fast",
     "half the gain of the above at most"},
    {100 * TENSOR_IDLE, "%", "tensor-pipe activity below which tensor cores are idle",
     "measured on an H200: fp32 products 0.0 %, a bf16 net's at least 9 %"},
    {100 * FP32_BUSY, "%", "FP32-pipe activity from which products run there, where their names do not say so",
     "measured on an H200: fp32 products 75 %, element-wise chains 5 %, bf16 programs under 8 %"},
    {FP16_FROM, "", "compute capability from which there are tensor cores for fp16",
     "CUDA C++ Programming Guide, compute capabilities"},
    {TF32_FROM, "", "the same for TF32 and bf16", "CUDA C++ Programming Guide, compute capabilities"},
    {100 * REACHED_GEMM, "%", "of the ratio of peaks that matrix products reach, fp32 to TF32 or bf16",
     "measured on an H200: 5.5 x of 7.4 x and 14 x of 14.8 x"},
    {100 * REACHED_CONV, "%", "the same of convolutions",
     "measured on an H200: ResNet-18 fp32 to TF32, 2.0 x the joules"},
    {ALIGNED_NEW, "x", "aligned against misaligned bf16 products, from compute capability 9",
     "measured on an H200: width 4095 against 4096, 2061 us against 420 us a product"},
    {ALIGNED_OLD, "x", "the same before", "ours"},
    {ALIGNED_TO, "elements", "that rows are multiples of for the fast loads",
     "16 bytes a load, in elements of two bytes"},
    {GAIN_LEAST_PEAKS, "x", "least ratio of peaks from which half precision instead of TF32 is worth a word", "ours"},
    {RATIO_UNKNOWN, "x", "peak TF32 (or a Volta's fp16) by that of fp32, where neither is known; bf16 is twice that",
     "an H200's are 7.4 and 14.8, a V100's fp16 8.0"},
    {TF32_CONFIDENCE, "", "confidence there: TF32 uses the tensor cores, and may be there for its precision", "ours"},
    {100 * FP32_GAIN_LOW, "%", "of the time of fp32 products that leaving them saves at least",
     "measured on an H200: what a convolutional net gained"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Let fp32 products use TF32, or run the forward pass in bf16.",
     "torch.set_float32_matmul_precision(\"high\")\n"
     "with torch.autocast(\"cuda\", dtype=torch.bfloat16):\n"
     "    loss = loss_of(model(inputs), targets)\n"},
    {"PyTorch", "For inference, convert the model once; pad odd widths to multiples of 8 (64 is better).",
     "model = model.to(torch.bfloat16)\n"
     "width = (width + 7) // 8 * 8\n"},
    {"CUDA", "Let cuBLAS and cuDNN round fp32 products to TF32.",
     "cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH);\n"},
    {"JAX", "Lower the default precision of products, or compute in bf16.",
     "jax.config.update(\"jax_default_matmul_precision\", \"tensorfloat32\")\n"},
    {"TensorFlow", "Use a mixed-precision policy.", "tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")\n"},
    {"TensorRT", "Build the engine with fp16, or int8 with calibration.", "config.set_flag(trt.BuilderFlag.FP16)\n"},
};

struct candidate {
    enum { FP32, MISALIGNED, TF32 } kind;
    double share; /* of compute */
    struct hec_saving gain;
    double confidence;
};

/* What the device's tensor cores take: NO_TENSOR also where nothing says that it has any. */
enum tensor_cores { NO_TENSOR, TENSOR_FP16, TENSOR_TF32 };

static enum tensor_cores tensor_cores_of(const struct hec_facts *f) {
    const struct hec_device *d = &f->device->device;
    /* AMD's profiler gives the gfx number as compute capability */
    if (d->cuda_major > 0 && strncmp(d->name, "AMD", 3) != 0)
        return d->cuda_major >= TF32_FROM ? TENSOR_TF32 : d->cuda_major >= FP16_FROM ? TENSOR_FP16 : NO_TENSOR;
    if (!f->part || !(f->part->peak_tflops[HEC_PRECISION_FP16] > 0))
        return NO_TENSOR;
    return f->part->peak_tflops[HEC_PRECISION_TF32] == 0 ? TENSOR_FP16 : TENSOR_TF32;
}

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
    double those = 0;
    for (int i = 0; i < f->summary->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        if (k->device != f->device->device.index || k->kernel_class == HEC_KERNEL_CLASS_COMM)
            continue;
        if (k->kernel_class == HEC_KERNEL_CLASS_GEMM && uses_tensor(k->precision) && misaligned(k->name))
            those += k->seconds;
    }
    return f->compute_s > 0 ? those / f->compute_s : 0;
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

static double or_else(double x, double otherwise) {
    return isfinite(x) ? x : otherwise;
}

/* What leaving fp32 gives: TF32 at the best guess for training, half precision for inference and where there is no TF32. */
static struct hec_saving fp32_gain(const struct hec_facts *f, enum tensor_cores cores) {
    double conv = f->class_share[HEC_KERNEL_CLASS_CONV], math = f->math_share;
    double reached = math > 0 ? REACHED_CONV * conv / math + REACHED_GEMM * (1 - conv / math) : REACHED_GEMM;
    double tf32 = or_else(ratio(f, HEC_PRECISION_TF32, HEC_PRECISION_FP32), RATIO_UNKNOWN);
    double half = or_else(ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_FP32), 2 * RATIO_UNKNOWN);
    bool serving = f->steps->source == HEC_STEP_MODULE;
    double best = fmax(1, reached * (cores == TENSOR_FP16 || serving || !(tf32 > 1.5) ? half : tf32));
    return (struct hec_saving){fmin(FP32_GAIN_LOW, 1 - 1 / best), 1 - 1 / best, 1 - 1 / fmax(best, half)};
}

/* Tensor cores do matrix products and nothing else: arithmetic that no name shows to be one is not theirs to speed up, however
 * busy the FP32 pipes are (n-body, FFT). Nor is a product in fp64, which libraries give to the tensor cores that take it. */
static int gather(const struct hec_facts *f, const struct hec_compute *c, struct candidate *out) {
    double simt = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_SIMT_FP32];
    double tf32 = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_TENSOR_TF32];
    double odd = f->timeline ? misaligned_share(f) : 0;
    bool idle_tensor = c->tensor <= TENSOR_IDLE && c->fp32 >= FP32_BUSY;
    double confidence = !idle_tensor ? 0.85 : simt >= LEAST_SHARE ? 0.95 : HEC_TELEMETRY_CONFIDENCE;
    enum tensor_cores cores = tensor_cores_of(f);
    int count = 0;
    if (idle_tensor) /* products whose names do not say their arithmetic do not run on tensor cores either */
        simt += f->math_share * f->precision_share[HEC_KERNEL_PRECISION_UNKNOWN];
    if (simt >= LEAST_SHARE && cores != NO_TENSOR)
        out[count++] = (struct candidate){FP32, simt, fp32_gain(f, cores), confidence};
    if (odd >= LEAST_SHARE) {
        double best = peak(f, HEC_PRECISION_FP8) > 0 ? ALIGNED_NEW : ALIGNED_OLD;
        out[count++] = (struct candidate){
            MISALIGNED, odd, {1 - 1 / (1 + (best - 1) / 3), 1 - 1 / best, 1 - 1 / (1.5 * best)}, 0.9};
    }
    if (tf32 >= LEAST_SHARE_TF32 && ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_TF32) >= GAIN_LEAST_PEAKS)
        out[count++] = (struct candidate){TF32, tf32, {0.10, 0.30, 0.45}, TF32_CONFIDENCE};
    return count;
}

static void describe(const struct hec_facts *f, const struct candidate *it, struct hec_finding *out) {
    switch (it->kind) {
    case FP32:
        out->title = HEC_FACT(FP32_SHARE, it->share);
        hec_finding_add(out, HEC_FACT(FP32_PRODUCTS, it->share));
        if (tensor_cores_of(f) == TENSOR_FP16) /* bf16 and TF32 come with compute capability 8 */
            out->lever = HEC_ANSWER(FP16);
        break;
    case MISALIGNED:
        out->title = HEC_FACT(MISALIGNED_SHARE, it->share);
        hec_finding_add(out, HEC_FACT(MISALIGNED_PRODUCTS, it->share));
        out->lever = HEC_ANSWER(PAD_SIZES, ALIGNED_TO);
        break;
    case TF32:
        out->title = HEC_FACT(TF32_SHARE, it->share);
        hec_finding_add(out, HEC_FACT(TF32_PRODUCTS, it->share));
        out->lever = HEC_ANSWER(BF16);
        break;
    }
    for (int i = 0; i < f->summary->timeline.kernel_count && it->kind <= MISALIGNED; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        bool simt = k->precision == HEC_KERNEL_PRECISION_SIMT_FP32;
        if (k->device == f->device->device.index && (it->kind == FP32 ? simt : misaligned(k->name) && !simt)) {
            hec_finding_add_of(out, k->name, HEC_FACT(KERNEL, 1e-6 * k->mean_us, (double)k->count));
            break;
        }
    }
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    struct candidate list[3], *it = NULL;
    hec_compute_gather(f, &c);
    int count = gather(f, &c, list);
    for (int i = 0; i < count; i++)
        if (!it || list[i].share * list[i].gain.best * list[i].confidence > it->share * it->gain.best * it->confidence)
            it = &list[i];
    if (!it)
        return false;
    out->confidence = it->confidence;
    describe(f, it, out);
    if (isfinite(c.tensor) && isfinite(c.fp32))
        hec_finding_add(out, HEC_FACT(PIPES, c.tensor, c.fp32));
    double half = ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_FP32);
    if (it->kind == FP32 && isfinite(half))
        hec_finding_add(out, HEC_FACT(PEAKS, half, ratio(f, HEC_PRECISION_TF32, HEC_PRECISION_FP32),
                                      f->profile && f->profile->peaks.calibrated));
    hec_compute_save(&c, it->share, it->gain, c.denser, out);
    return out->evidence_count > 0;
}

const struct hec_rule hec_rule_precision = {
    .cause = HEC_CAUSE_PRECISION,
    .meaning =
        "Matrix products and convolutions run on the ordinary arithmetic units, or on tensor cores in a slow mode. Tensor "
        "cores do the same products in TF32, bf16 or fp16 up to fifteen times as fast, for about as many watts.",
    .detection =
        "kernels that are matrix products, convolutions or attention by their names, whose arithmetic (fp32 without tensor "
        "cores, TF32) and alignment the names say; where they do not, tensor pipes are idle while FP32 pipes are busy. "
        "Without a trace nothing shows that there are products, and without tensor cores there is nothing to claim.",
    .saving =
        "the share of compute in such kernels, sped up by the ratio of the peaks times what programs reach of it; the "
        "faster kernels are charged with the power limit's watts. Low end: what a convolutional net gained.",
    .lever = HEC_LEVER_TENSOR_CORES,
    HEC_RULE_TABLES,
    .judge = judge,
};
