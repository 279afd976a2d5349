/* Precision: matrix products and convolutions that do not use the tensor cores, or not well. */
#include "diagnose/rules/compute.h"
#include "diagnose/rules/waits.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

struct candidate {
    enum { FP32, MISALIGNED, ODD, TF32 } kind;
    double share; /* of compute */
    struct hec_saving gain;
    double confidence;
    double changes; /* of that share: what is no product: layout changes that go too, passes over what products give */
};

/* What the device's tensor cores take: NO_TENSOR also where nothing says that it has any. */
enum tensor_cores { NO_TENSOR, TENSOR_FP16, TENSOR_TF32 };

static enum tensor_cores tensor_cores_of(const struct hec_facts *f) {
    const struct hec_device *d = &f->device->readings.device;
    /* AMD's profiler gives the gfx number as compute capability */
    if (d->cuda_major > 0 && strcmp(d->vendor, hec_vendor_info(HEC_VENDOR_AMD)->name) != 0)
        return d->cuda_major >= HEC_PRECISION_TF32_FROM   ? TENSOR_TF32
               : d->cuda_major >= HEC_PRECISION_FP16_FROM ? TENSOR_FP16
                                                          : NO_TENSOR;
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

static double peak(const struct hec_facts *f, enum hec_precision precision) {
    double measured = f->profile ? f->profile->peaks.flops[precision] : NAN;
    return measured > 0 ? measured : f->part ? f->part->peak_tflops[precision] * 1e12 : NAN;
}

/* Misaligned products: their share of compute, and how many times as fast they are with aligned rows. Rows of 4-byte elements still
 * come by asynchronous loads, those of 2 bytes at odd addresses do not. */
static double misaligned_share(const struct hec_facts *f, double *faster) {
    double those = 0, left = 0;
    double halves = peak(f, HEC_PRECISION_FP8) > 0 ? HEC_PRECISION_ALIGNED_NEW : HEC_PRECISION_ALIGNED_OLD;
    for (int i = 0; i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        if (k->kernel_class == HEC_KERNEL_CLASS_COMM)
            continue;
        if (!(k->kernel_class == HEC_KERNEL_CLASS_GEMM && uses_tensor(k->precision) && misaligned(k->name)))
            continue;
        those += k->seconds;
        left += k->seconds /
                (k->precision == HEC_KERNEL_PRECISION_TENSOR_TF32 ? fmin(halves, HEC_PRECISION_ALIGNED_WORDS) : halves);
    }
    *faster = left > 0 ? those / left : 1;
    return f->compute_s > 0 ? those / f->compute_s : 0;
}

/* What the device computes in a step of what the hooks counted FLOPs of; 0 unknown, or shared out to several devices. */
static double step_compute_s(const struct hec_facts *f) {
    struct hec_waits w;
    int used = 0;
    for (int i = 0; i < f->summary->device_count; i++)
        used += f->summary->devices[i].readings.used;
    hec_waits_gather(f, &w);
    return w.known && w.per == HEC_PER_STEP && (used == 1 || f->summary->job.size > 1) ? w.compute_s : 0;
}

/* The same where no kernel was seen, by the shapes of products: aligned ones would take what their FLOPs take at what products reach. */
static double odd_share(const struct hec_facts *f, double *faster) {
    static const enum hec_precision all[] = {HEC_PRECISION_FP16, HEC_PRECISION_TF32};
    double halves = peak(f, HEC_PRECISION_FP8) > 0 ? HEC_PRECISION_ALIGNED_NEW : HEC_PRECISION_ALIGNED_OLD;
    double compute_s = f->device->timeline ? 0 : step_compute_s(f), those_s = 0, left_s = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double odd = f->summary->flops.odd[all[i]], aligned_s = odd / (HEC_COMPUTE_REACH_GEMM * peak(f, all[i]));
        if (!(odd > 0 && aligned_s > 0))
            continue;
        left_s += aligned_s;
        those_s += aligned_s * (all[i] == HEC_PRECISION_TF32 ? fmin(halves, HEC_PRECISION_ALIGNED_WORDS) : halves);
    }
    those_s = fmin(those_s, compute_s);
    *faster = left_s > 0 ? fmax(1, those_s / left_s) : 1;
    return compute_s > 0 ? those_s / compute_s : 0;
}

/* Autocast keeps weights in fp32 and converts them at each step, and their gradients: so many bytes, whatever the rows that they are
 * multiplied with. Seconds of a step; 0 unknown. */
static double converting_s(const struct hec_facts *f) {
    double bytes_per_s = f->profile ? f->profile->peaks.bytes_per_s : f->part ? f->part->memory_gb_per_s * 1e9 : NAN;
    double s = HEC_PRECISION_CONVERT_BYTES * f->summary->flops.weights / (HEC_PRECISION_CONVERT_REACH * bytes_per_s);
    return hec_finite_or(s, 0);
}

/* Peak of b by that of a; NAN unknown. */
static double ratio(const struct hec_facts *f, enum hec_precision b, enum hec_precision a) {
    double x = peak(f, b) / peak(f, a);
    return isfinite(x) && x > 0 ? x : NAN;
}

/* Layout changes around fp32 convolutions of images in channels_last, of compute: there are no such kernels for them, but for TF32 there
 * are. Images in NCHW have such changes with TF32 instead. */
static double changed_for_fp32(const struct hec_facts *f) {
    struct hec_image_layout lies;
    hec_image_layout_gather(f, &lies);
    return hec_image_layout_is_last(&lies) && f->class_share[HEC_KERNEL_CLASS_CONV] > 0
               ? f->class_share[HEC_KERNEL_CLASS_LAYOUT]
               : 0;
}

/* What leaving fp32 gives: TF32 at the best guess, which is what is advised first; half precision at most, and where there is no TF32. */
static struct hec_saving fp32_gain(const struct hec_facts *f, enum tensor_cores cores) {
    double conv = f->class_share[HEC_KERNEL_CLASS_CONV], math = f->math_share;
    double images = changed_for_fp32(f) > 0 ? HEC_PRECISION_REACHED_CONV_LAST : HEC_PRECISION_REACHED_CONV;
    double reached =
        math > 0 ? images * conv / math + HEC_PRECISION_REACHED_GEMM * (1 - conv / math) : HEC_PRECISION_REACHED_GEMM;
    double tf32 = hec_finite_or(ratio(f, HEC_PRECISION_TF32, HEC_PRECISION_FP32), HEC_PRECISION_RATIO_UNKNOWN);
    double half = hec_finite_or(ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_FP32), 2 * HEC_PRECISION_RATIO_UNKNOWN);
    double best = fmax(1, reached * (cores == TENSOR_FP16 || !(tf32 > HEC_PRECISION_TF32_FASTER) ? half : tf32));
    return (struct hec_saving){fmin(HEC_PRECISION_FP32_GAIN_LOW, 1 - 1 / best), 1 - 1 / best, 1 - 1 / fmax(best, half)};
}

/* Of the two together: a part of compute whose gain is known, and one that goes. */
static struct candidate with_changes(struct candidate it, double changes) {
    double share = it.share + changes;
    it.gain = (struct hec_saving){(it.share * it.gain.low + HEC_LAYOUT_GOES_LOW * changes) / share,
                                  (it.share * it.gain.best + HEC_LAYOUT_GOES * changes) / share,
                                  (it.share * it.gain.high + changes) / share};
    it.changes = changes;
    it.share = share;
    return it;
}

/* Attention in fp32, which is not for tensor cores as TF32: half precision has kernels for it. Share of compute. */
static double attention_fp32(const struct hec_facts *f) {
    double seconds = 0;
    for (int i = 0; f->device->timeline && i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        seconds += k->kernel_class == HEC_KERNEL_CLASS_ATTENTION && strstr(k->name, "_f32_") ? k->seconds : 0;
    }
    return f->compute_s > 0 ? seconds / f->compute_s : 0;
}

/* Element-wise passes over what products give, which is half as large then: share of compute. Shorter kernels are not limited by what they
 * read, normalisation and softmax stay in fp32. */
static double passes_fp32(const struct hec_facts *f) {
    double seconds = 0;
    for (int i = 0; f->device->timeline && i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        bool passes = k->kernel_class == HEC_KERNEL_CLASS_ELEMENTWISE && k->mean_us >= HEC_MEMORY_LARGE_US;
        seconds += passes && strstr(k->name, "float") ? k->seconds : 0;
    }
    return f->compute_s > 0 ? seconds / f->compute_s : 0;
}

/* Half precision instead of TF32, less what it takes to convert weights. */
static struct candidate half_of_tf32(const struct hec_facts *f, double products) {
    double attention = attention_fp32(f), passes = passes_fp32(f), share = products + attention + passes;
    double compute_s = step_compute_s(f), converts = compute_s > 0 ? fmin(1, converting_s(f) / compute_s) : 0;
    double conv = f->math_share > 0 ? f->class_share[HEC_KERNEL_CLASS_CONV] / f->math_share : 0;
    double gain = HEC_PRECISION_TF32_GAIN_CONV * conv + HEC_PRECISION_TF32_GAIN * (1 - conv);
    return (struct candidate){
        TF32,
        share,
        {fmax(0, HEC_PRECISION_TF32_GAIN_LOW * products - converts) / share,
         fmax(0, gain * products + HEC_PRECISION_TF32_GAIN_ATTENTION * attention +
                     HEC_PRECISION_TF32_GAIN_PASSES * passes - converts) /
             share,
         fmax(0, HEC_PRECISION_TF32_GAIN_HIGH * products + HEC_PRECISION_TF32_GAIN_ATTENTION * attention +
                     HEC_PRECISION_TF32_GAIN_PASSES_HIGH * passes - converts) /
             share},
        HEC_PRECISION_TF32_CONFIDENCE,
        passes};
}

/* Kernels that nobody saw, of a network: what keeps its FP32 pipes busy are products. Their share of compute, by what products reach of
 * those pipes. */
static double unseen_fp32(const struct hec_facts *f, const struct hec_compute *c) {
    return !c->traced && hec_facts_network(f) && c->tensor <= HEC_PRECISION_TENSOR_IDLE &&
                   c->fp32 >= HEC_PRECISION_FP32_TRAINED
               ? fmin(1, c->fp32 / HEC_PRECISION_FP32_REACHED)
               : 0;
}

/* Tensor cores do matrix products and nothing else: arithmetic that no name shows to be one is not theirs to speed up, however
 * busy the FP32 pipes are (n-body, FFT). The products of a factorisation or a solver lose what they are for with fewer bits. Nor is a
 * product in fp64, which libraries give to the tensor cores that take it. */
static int gather(const struct hec_facts *f, const struct hec_compute *c, struct candidate *out) {
    double simt = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_SIMT_FP32];
    double tf32 = f->math_share * f->precision_share[HEC_KERNEL_PRECISION_TENSOR_TF32];
    double best = 1, odd = f->device->timeline ? misaligned_share(f, &best) : 0;
    bool idle_tensor = c->tensor <= HEC_PRECISION_TENSOR_IDLE && c->fp32 >= HEC_PRECISION_FP32_BUSY;
    double confidence = !idle_tensor                        ? HEC_PRECISION_CONFIDENCE_NAMES
                        : simt >= HEC_PRECISION_LEAST_SHARE ? HEC_PRECISION_CONFIDENCE
                                                            : HEC_TELEMETRY_CONFIDENCE;
    enum tensor_cores cores = tensor_cores_of(f);
    int count = 0;
    bool solves = f->solver_share > HEC_PRECISION_MOST_SOLVER;
    if (idle_tensor) /* products whose names do not say their arithmetic do not run on tensor cores either */
        simt += f->math_share * f->precision_share[HEC_KERNEL_PRECISION_UNKNOWN];
    if (simt >= HEC_PRECISION_LEAST_SHARE && !solves && cores != NO_TENSOR)
        out[count++] =
            with_changes((struct candidate){FP32, simt, fp32_gain(f, cores), confidence, 0}, changed_for_fp32(f));
    double unseen = cores != NO_TENSOR ? unseen_fp32(f, c) : 0;
    if (unseen > 0) {
        struct hec_saving gain = fp32_gain(f, cores);
        out[count++] = (struct candidate){FP32, unseen, {0, gain.best, gain.high}, HEC_TELEMETRY_CONFIDENCE, 0};
    }
    if (odd >= HEC_PRECISION_LEAST_SHARE) {
        out[count++] = (struct candidate){MISALIGNED,
                                          odd,
                                          {1 - 1 / (1 + (best - 1) / HEC_PRECISION_ALIGNED_LOW), 1 - 1 / best,
                                           1 - 1 / (HEC_PRECISION_ALIGNED_HIGH * best)},
                                          HEC_PRECISION_ALIGNED_CONFIDENCE,
                                          0};
    }
    double unseen_odd = odd_share(f, &best);
    if (unseen_odd >= HEC_PRECISION_LEAST_SHARE)
        out[count++] = (struct candidate){ODD,
                                          unseen_odd,
                                          {1 - 1 / (1 + (best - 1) / HEC_PRECISION_ALIGNED_LOW), 1 - 1 / best,
                                           1 - 1 / (HEC_PRECISION_ALIGNED_HIGH * best)},
                                          HEC_PRECISION_ODD_CONFIDENCE,
                                          0};
    /* Products of few rows that follow each other, as a recurrent network's, wait for each other: no format makes them faster. */
    bool waiting = c->tensor < HEC_PRECISION_TF32_BUSY * tf32;
    if (tf32 >= HEC_PRECISION_LEAST_SHARE_TF32 && !solves && !waiting &&
        ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_TF32) >= HEC_PRECISION_GAIN_LEAST_PEAKS)
        out[count++] = half_of_tf32(f, tf32);
    return count;
}

static double odd_flops(const struct hec_facts *f) {
    const struct hec_model_flops *m = &f->summary->flops;
    return (m->odd[HEC_PRECISION_FP16] + m->odd[HEC_PRECISION_TF32]) / m->all;
}

static void describe(const struct hec_facts *f, const struct candidate *it, struct hec_finding *out) {
    switch (it->kind) {
    case FP32:
        out->title = HEC_FACT(FP32_SHARE, it->share - it->changes, !f->device->timeline);
        if (f->device->timeline)
            hec_finding_add(out, HEC_FACT(FP32_PRODUCTS, it->share - it->changes));
        if (tensor_cores_of(f) == TENSOR_FP16) /* bf16 and TF32 come with compute capability 8 */
            out->lever = HEC_ANSWER(FP16);
        break;
    case MISALIGNED:
        out->title = HEC_FACT(MISALIGNED_SHARE, it->share);
        hec_finding_add(out, HEC_FACT(MISALIGNED_PRODUCTS, it->share));
        out->lever = HEC_ANSWER(PAD_SIZES, HEC_PRECISION_ALIGNED_TO);
        break;
    case ODD:
        out->title = HEC_FACT(MISALIGNED_SHARE, it->share);
        hec_finding_add(out, HEC_FACT(ODD_PRODUCTS, odd_flops(f)));
        out->lever = HEC_ANSWER(PAD_SIZES, HEC_PRECISION_ALIGNED_TO);
        break;
    case TF32:
        out->title = HEC_FACT(TF32_SHARE, it->share - it->changes);
        hec_finding_add(out, HEC_FACT(TF32_PRODUCTS, it->share - it->changes));
        if (converting_s(f) > 0)
            hec_finding_add(out, HEC_FACT(WEIGHTS_CONVERTED, converting_s(f), f->summary->flops.weights));
        out->lever = HEC_ANSWER(BF16);
        break;
    }
    for (int i = 0; f->device->timeline && i < f->device->timeline->row_count && it->kind <= MISALIGNED; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        bool simt = k->precision == HEC_KERNEL_PRECISION_SIMT_FP32;
        if ((it->kind == FP32 ? simt : misaligned(k->name) && !simt)) {
            hec_finding_add_of(out, k->name, HEC_FACT(KERNEL, 1e-6 * k->mean_us, (double)k->count));
            break;
        }
    }
}

bool hec_judge_precision(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    struct candidate list[4], *it = NULL;
    hec_compute_gather(f, &c);
    int count = gather(f, &c, list);
    for (int i = 0; i < count; i++)
        if (!it || list[i].share * list[i].gain.best * list[i].confidence > it->share * it->gain.best * it->confidence)
            it = &list[i];
    if (!it || !(it->gain.best > 0))
        return false;
    out->confidence = it->confidence;
    describe(f, it, out);
    if (isfinite(c.tensor) && isfinite(c.fp32))
        hec_finding_add(out, HEC_FACT(PIPES, c.tensor, c.fp32));
    double half = ratio(f, HEC_PRECISION_FP16, HEC_PRECISION_FP32);
    if (it->kind == FP32 && isfinite(half))
        hec_finding_add(out, HEC_FACT(PEAKS, half, ratio(f, HEC_PRECISION_TF32, HEC_PRECISION_FP32),
                                      f->profile && f->profile->peaks.calibrated));
    /* Products draw no more in another format; aligned ones fill the tensor cores, misaligned ones do not. */
    hec_compute_save(&c, it->share, it->gain, it->kind == MISALIGNED || it->kind == ODD ? c.denser : 1, out);
    return out->evidence_count > 0;
}
