/* Memory: time goes into reading and writing device memory, in passes that one kernel could make. */
#include "diagnose/rules/compute.h"
#include "diagnose/meter/use.h"

#include <math.h>
#include <string.h>

#define LEAST_GOES 0.10 /* of compute that fusion would save */
#define LARGE_US 5.0    /* shorter kernels are bound by their launch */
#define LEAST_SOFTMAX 0.05
#define LEAST_CHAIN_KERNELS 3.0
#define MOST_CHAIN_KERNELS 10.0 /* that become one: longer chains end in several tensors */
#define MEMORY_BUSY 0.60
#define MEMORY_IDLE 0.35
#define TENSOR_LOW 0.10
#define PASSES_GO 0.95   /* of unfused attention's softmax and scaling */
#define PRODUCTS_GO 0.60 /* of its products, which read and write the scores */
#define PRODUCTS_PER 1.2 /* their time by that of the passes */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_GOES, "%", "least share of compute that fusion is predicted to save",
     "measured on an H200: healthy bf16 programs have 6 to 15 % in element-wise work, next to none of it in chains"},
    {LARGE_US, "us", "shortest mean duration of a kernel that memory can limit", "an H200 moves 24 MB in 5 us"},
    {LEAST_CHAIN_KERNELS, "kernels", "shortest chain of element-wise kernels", "ours"},
    {MOST_CHAIN_KERNELS, "kernels", "most kernels that are taken to become one",
     "longer chains end in several tensors"},
    {100 * LEAST_SOFTMAX, "%", "least share of compute in softmax without fused attention",
     "attention that writes its scores: softmax forward and backward are a quarter of it"},
    {100 * MEMORY_BUSY, "%", "device-memory activity while kernels run, where nothing was traced",
     "a streaming kernel reaches 80 to 90 %; measured on an H200: an element-wise chain 88 %"},
    {100 * TENSOR_LOW, "%", "most tensor-pipe activity there", "measured on an H200: an element-wise chain 0 %"},
    {100 * PASSES_GO, "%", "of unfused attention's softmax and scaling that goes", "ours"},
    {100 * PRODUCTS_GO, "%", "of its products that goes: they write and read the scores", "ours"},
    {PRODUCTS_PER, "x", "their time by that of the passes", "ours"},
    {100 * MEMORY_IDLE, "%", "device-memory activity below which chains are not bound by memory", "ours"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Let the compiler fuse element-wise chains, or call the fused operator.",
     "model = torch.compile(model)\n"
     "torch.nn.functional.gelu(x, approximate=\"tanh\")\n"},
    {"PyTorch", "Let attention stay on the chip.", "out = torch.nn.functional.scaled_dot_product_attention(q, k, v)\n"},
    {"PyTorch", "Update all parameters in one kernel.", "torch.optim.AdamW(model.parameters(), fused=True)\n"},
    {"JAX", "Put the whole step under jax.jit: XLA fuses what it sees together.", NULL},
    {"TensorFlow", "Compile the step with XLA.", "@tf.function(jit_compile=True)\n"},
};

struct passes {
    double elementwise, kernels; /* seconds and count of element-wise kernels long enough */
    double others;               /* count of all other kernels */
    double softmax;              /* seconds, those of losses left out */
    const struct hec_kernel_row *longest;
};

static bool of_loss(const char *name) {
    return strstr(name, "LogSoftMax") || strstr(name, "log_softmax") || strstr(name, "nll_loss") ||
           strstr(name, "cross_entropy");
}

static void read_passes(const struct hec_facts *f, struct passes *out) {
    *out = (struct passes){0};
    for (int i = 0; i < f->summary->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        enum hec_kernel_class class = k->kernel_class;
        if (k->device != f->device->device.index || k->kernel_class == HEC_KERNEL_CLASS_COMM)
            continue;
        if (class == HEC_KERNEL_CLASS_SOFTMAX && !of_loss(k->name))
            out->softmax += k->seconds;
        if (class == HEC_KERNEL_CLASS_ELEMENTWISE && k->mean_us >= LARGE_US) {
            out->elementwise += k->seconds;
            out->kernels += (double)k->count;
            out->longest = out->longest ? out->longest : k;
        } else
            out->others += (double)k->count;
    }
}

/* Share of compute in chains, and how many kernels become one: as counted, else as if the element-wise kernels lay evenly
 * between the others; no more than a step has. */
static double chains(const struct hec_facts *f, const struct passes *p, double *kernels) {
    double share = f->compute_s > 0 ? p->elementwise / f->compute_s : 0;
    double steps = f->calls ? (double)f->calls->steps : 0;
    *kernels = f->calls ? f->calls->chain_mean : p->kernels / (p->others + 1);
    if (steps >= 1 && isfinite(*kernels))
        *kernels = fmin(*kernels, fmax(1, p->kernels / steps));
    if (!(*kernels >= LEAST_CHAIN_KERNELS)) /* NAN: there are no chains */
        return 0;
    *kernels = fmin(*kernels, MOST_CHAIN_KERNELS);
    return f->calls ? fmin(share, f->calls->chain_s / f->compute_s) : share;
}

static bool judge_telemetry(const struct hec_facts *f, const struct hec_compute *c, struct hec_finding *out) {
    /* What crosses the bus is read and written too. */
    if (!(c->dram >= MEMORY_BUSY && c->tensor <= TENSOR_LOW) || hec_use_transfers(f->device))
        return false;
    out->title = HEC_FACT(MEMORY_LIMITS, c->dram);
    hec_finding_add(out, HEC_FACT(MEMORY_ACTIVE, c->dram, c->tensor));
    out->confidence = HEC_TELEMETRY_CONFIDENCE;
    out->lever = HEC_ANSWER(TRACE_KERNELS, NAN);
    hec_compute_save(c, 1, (struct hec_saving){0, 0, 0.9}, 1, out); /* a stencil or a sort goes no faster */
    return true;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    struct passes p;
    double kernels = 0;
    hec_compute_gather(f, &c);
    if (!f->timeline)
        return judge_telemetry(f, &c, out);
    read_passes(f, &p);
    double in_chains = chains(f, &p, &kernels), softmax = f->compute_s > 0 ? p.softmax / f->compute_s : 0;
    bool attention = softmax >= LEAST_SOFTMAX && f->class_share[HEC_KERNEL_CLASS_ATTENTION] < softmax;
    double rest = 0, products = 0;
    if (attention) { /* scaling and masking are element-wise kernels beside it, about as long */
        rest = softmax + fmin(softmax, f->class_share[HEC_KERNEL_CLASS_ELEMENTWISE] - in_chains);
        products = fmin(f->class_share[HEC_KERNEL_CLASS_GEMM], PRODUCTS_PER * rest);
    }
    double fused = in_chains > 0 ? in_chains * (1 - 1 / kernels) : 0;
    double goes = fmin(0.95, fused + PASSES_GO * rest + PRODUCTS_GO * products);
    if (!(goes >= LEAST_GOES))
        return false;
    if (attention && PASSES_GO * rest + PRODUCTS_GO * products > fused) {
        out->title = HEC_FACT(ATTENTION_SHARE, softmax);
        hec_finding_add(out, HEC_FACT(SOFTMAX, softmax, f->class_share[HEC_KERNEL_CLASS_ATTENTION]));
        out->lever = HEC_ANSWER(FUSED_ATTENTION);
    } else
        out->title = HEC_FACT(CHAIN_SHARE, in_chains);
    if (fused > 0) {
        hec_finding_add(out, HEC_FACT(CHAINS, in_chains, kernels, !f->calls));
        if (p.longest)
            hec_finding_add_of(out, p.longest->name,
                               HEC_FACT(KERNEL, 1e-6 * p.longest->mean_us, (double)p.longest->count));
    }
    if (isfinite(c.dram))
        hec_finding_add(out, HEC_FACT(MEMORY_ACTIVE, c.dram, c.tensor));
    out->confidence = c.dram >= MEMORY_IDLE ? 0.9 : isnan(c.dram) ? 0.7 : 0.5;
    if (!f->calls)
        out->confidence -= 0.1;
    double low = 0.5 * fused + 0.5 * PASSES_GO * rest;
    double high = fmin(0.97, in_chains + rest + fmin(f->class_share[HEC_KERNEL_CLASS_GEMM], 2 * products));
    hec_compute_save(&c, 1, (struct hec_saving){low, goes, fmax(goes, high)}, 1, out);
    return true;
}

const struct hec_rule hec_rule_memory = {
    .cause = HEC_CAUSE_MEMORY,
    .meaning =
        "Element-wise operations read and write all of a tensor for one operation an element, so device memory is what "
        "limits them. Done one kernel after the other, each pass reads what the last one wrote; one fused kernel reads and "
        "writes once.",
    .detection =
        "chains of three or more element-wise kernels, or softmax kernels without fused attention, that take time; "
        "confident where device memory is active while kernels run.",
    .saving =
        "a chain of k kernels becomes one: (k - 1) / k of its time. Of unfused attention, softmax and scaling go and most "
        "of the time of the products that read and write the scores. The watts stay.",
    .lever = HEC_LEVER_FUSE,
    HEC_RULE_TABLES,
    .judge = judge,
};
