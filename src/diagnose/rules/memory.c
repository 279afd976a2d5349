/* Memory: time goes into reading and writing device memory, in passes that one kernel could make. */
#include "diagnose/rules/compute.h"
#include "diagnose/rules/waits.h"
#include "diagnose/meter/use.h"

#include <math.h>
#include <string.h>

struct passes {
    double elementwise, kernels; /* seconds and count of element-wise kernels long enough */
    double all;                  /* seconds of element-wise kernels, the short ones too */
    double others;               /* count of all other kernels */
    double softmax;              /* seconds, those of losses left out */
    const struct hec_kernel_row *longest;
};

/* PyTorch's kernel for up to 1024 columns says by its first flag whether it takes the logarithm: softmax_warp_forward<float, float, float,
 * 4, true, false>. */
static bool takes_log(const char *name) {
    const char *warp = strstr(name, "softmax_warp_"), *yes = warp ? strstr(warp, ", true") : NULL;
    const char *no = warp ? strstr(warp, ", false") : NULL;
    return yes && (!no || yes < no);
}

static bool of_loss(const char *name) {
    return takes_log(name) || strstr(name, "LogSoftMax") || strstr(name, "log_softmax") || strstr(name, "nll_loss") ||
           strstr(name, "cross_entropy");
}

static void read_passes(const struct hec_facts *f, struct passes *out) {
    *out = (struct passes){0};
    for (int i = 0; i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        enum hec_kernel_class class = k->kernel_class;
        if (k->kernel_class == HEC_KERNEL_CLASS_COMM)
            continue;
        if (class == HEC_KERNEL_CLASS_SOFTMAX && !of_loss(k->name))
            out->softmax += k->seconds;
        out->all += class == HEC_KERNEL_CLASS_ELEMENTWISE ? k->seconds : 0;
        if (class == HEC_KERNEL_CLASS_ELEMENTWISE && k->mean_us >= HEC_MEMORY_LARGE_US) {
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
    double steps = f->device->calls ? (double)f->device->calls->steps : 0;
    *kernels = f->device->calls ? f->device->calls->chain_mean : p->kernels / (p->others + 1);
    if (steps >= 1 && isfinite(*kernels))
        *kernels = fmin(*kernels, fmax(1, p->kernels / steps));
    if (!(*kernels >= HEC_MEMORY_LEAST_CHAIN_KERNELS)) /* NAN: there are no chains */
        return 0;
    *kernels = fmin(*kernels, HEC_MEMORY_MOST_CHAIN_KERNELS);
    return f->device->calls ? fmin(share, f->device->calls->chain_s / f->compute_s) : share;
}

static bool judge_telemetry(const struct hec_facts *f, const struct hec_compute *c, struct hec_finding *out) {
    /* Full warps are of element-wise kernels: then the mean of memory's activity, which products lower, says less. */
    double least = c->occupancy >= HEC_MEMORY_FULL_WARPS ? HEC_MEMORY_DRAM_BUSY_FULL : HEC_MEMORY_DRAM_BUSY;
    /* What crosses the bus is read and written too. */
    if (!(c->dram >= least && c->tensor <= HEC_MEMORY_TENSOR_LOW) || hec_use_transfers(&f->device->readings))
        return false;
    out->title = HEC_FACT(MEMORY_LIMITS, c->dram);
    hec_finding_add(out, HEC_FACT(MEMORY_ACTIVE, c->dram, c->tensor));
    out->confidence = HEC_TELEMETRY_CONFIDENCE;
    out->lever = HEC_ANSWER(TRACE_KERNELS, NAN);
    hec_compute_save(c, 1, (struct hec_saving){0, 0, HEC_MEMORY_TELEMETRY_HIGH}, 1,
                     out); /* a stencil or a sort goes no faster */
    return true;
}

/* How many become one is not seen either: as many as are launched from one number that is read to the next. */
static bool judge_launched(const struct hec_facts *f, const struct hec_compute *c, struct hec_finding *out) {
    struct hec_waits w;
    double share = hec_facts_launched_point_wise(f);
    if (!(share >= HEC_MEMORY_LEAST_LAUNCHED && c->tensor <= HEC_MEMORY_TENSOR_LOW))
        return false;
    hec_waits_gather(f, &w);
    /* of the host's work, hidden or not */
    double works_s = w.owned_s[HEC_CAUSE_LAUNCH] + w.owned_s[HEC_CAUSE_HOST] + w.owned_s[HEC_CAUSE_DATA];
    double launching = works_s > 0 ? w.owned_s[HEC_CAUSE_LAUNCH] / works_s : 1;
    double kernels =
        w.reads > 0 ? fmin(HEC_MEMORY_MOST_CHAIN_KERNELS, w.launches / w.reads) : HEC_MEMORY_MOST_CHAIN_KERNELS;
    if (!(kernels >= HEC_MEMORY_LEAST_CHAIN_KERNELS) || !(w.launches > 0))
        return false;
    double goes = share * (1 - 1 / kernels);
    out->title = HEC_FACT(CHAIN_LAUNCHED, share, (double)f->device->calls->drawn);
    hec_finding_add(out, HEC_FACT(LAUNCHES, w.launches, w.compute_s / w.launches));
    if (isfinite(c->dram))
        hec_finding_add(out, HEC_FACT(MEMORY_ACTIVE, c->dram, c->tensor));
    out->confidence = HEC_MEMORY_CONFIDENCE_NAMES;
    hec_compute_save(c, 1, (struct hec_saving){HEC_MEMORY_LOW * goes, goes, HEC_MEMORY_MOST_HIGH}, 1, out);
    hec_compute_host_stays(c, launching * goes, out);
    hec_waits_save_more(f, &w, HEC_CAUSE_LAUNCH, HEC_MEMORY_LOW * goes, goes, HEC_MEMORY_MOST_HIGH, out);
    out->states |= w.states[HEC_CAUSE_LAUNCH];
    out->per = w.per;
    return true;
}

bool hec_judge_memory(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    struct passes p;
    double kernels = 0;
    hec_compute_gather(f, &c);
    if (!f->device->timeline)
        return judge_launched(f, &c, out) || judge_telemetry(f, &c, out);
    read_passes(f, &p);
    double in_chains = chains(f, &p, &kernels), softmax = f->compute_s > 0 ? p.softmax / f->compute_s : 0;
    bool attention = softmax >= HEC_MEMORY_LEAST_SOFTMAX && f->class_share[HEC_KERNEL_CLASS_ATTENTION] < softmax;
    double rest = 0, products = 0;
    if (attention) { /* scaling and masking are element-wise kernels beside it, about as long */
        rest = softmax + fmin(softmax, f->class_share[HEC_KERNEL_CLASS_ELEMENTWISE] - in_chains);
        products = fmin(f->class_share[HEC_KERNEL_CLASS_GEMM], HEC_MEMORY_PRODUCTS_PER * rest);
    }
    double fused = in_chains > 0 ? in_chains * (1 - 1 / kernels) : 0;
    double goes = fmin(HEC_MEMORY_MOST, fused + HEC_MEMORY_PASSES_GO * rest + HEC_MEMORY_PRODUCTS_GO * products);
    if (!(goes >= HEC_MEMORY_LEAST_GOES))
        return false;
    if (attention && HEC_MEMORY_PASSES_GO * rest + HEC_MEMORY_PRODUCTS_GO * products > fused) {
        out->title = HEC_FACT(ATTENTION_SHARE, softmax);
        hec_finding_add(out, HEC_FACT(SOFTMAX, softmax, f->class_share[HEC_KERNEL_CLASS_ATTENTION]));
        out->lever = HEC_ANSWER(FUSED_ATTENTION);
    } else {
        out->title = HEC_FACT(CHAIN_SHARE, in_chains);
        out->edit_value = p.all > 0 ? fmax(0, 1 - goes * f->compute_s / p.all) : NAN; /* with their launches */
    }
    if (fused > 0) {
        hec_finding_add(out, HEC_FACT(CHAINS, in_chains, kernels, !f->device->calls));
        if (p.longest)
            hec_finding_add_of(out, p.longest->name,
                               HEC_FACT(KERNEL, 1e-6 * p.longest->mean_us, (double)p.longest->count));
    }
    if (isfinite(c.dram))
        hec_finding_add(out, HEC_FACT(MEMORY_ACTIVE, c.dram, c.tensor));
    out->confidence = c.dram >= HEC_MEMORY_DRAM_IDLE ? HEC_MEMORY_CONFIDENCE
                      : isnan(c.dram)                ? HEC_MEMORY_CONFIDENCE_NAMES
                                                     : HEC_MEMORY_CONFIDENCE_IDLE;
    if (!f->device->calls)
        out->confidence -= HEC_MEMORY_ESTIMATED_LESS;
    double low = HEC_MEMORY_LOW * fused + HEC_MEMORY_LOW * HEC_MEMORY_PASSES_GO * rest;
    double high =
        fmin(HEC_MEMORY_MOST_HIGH, in_chains + rest + fmin(f->class_share[HEC_KERNEL_CLASS_GEMM], 2 * products));
    hec_compute_save(&c, 1, (struct hec_saving){low, goes, fmax(goes, high)}, 1, out);
    return true;
}
