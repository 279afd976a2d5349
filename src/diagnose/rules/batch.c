/* Batch: kernels follow each other, but each is too small for the device. */
#include "diagnose/parallelism.h"
#include "diagnose/rules/batch.h"
#include "diagnose/rules/compute.h"
#include "diagnose/rules/pace.h"
#include "diagnose/rules/sharding.h"
#include "diagnose/rules/waits.h"

#include <math.h>

/* Share of compute in kernels with at most half as many blocks as SMs; with `weights` also in those that read weights, matrix products
 * and optimizers. NAN unknown. */
static double thin_share(const struct hec_facts *f, bool weights) {
    double sms = f->profile ? f->profile->sms : NAN, known = 0, thin = 0;
    for (int i = 0; f->device->timeline && i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        if (k->kernel_class == HEC_KERNEL_CLASS_COMM || k->grid[0] < 1 || k->grid[1] < 1 || k->grid[2] < 1)
            continue;
        known += k->seconds;
        bool few = 2.0 * (double)k->grid[0] * (double)k->grid[1] * (double)k->grid[2] <= sms;
        bool reads = k->kernel_class == HEC_KERNEL_CLASS_GEMM || k->kernel_class == HEC_KERNEL_CLASS_OPTIMIZER;
        thin += few || (weights && reads) ? k->seconds : 0;
    }
    return isfinite(sms) && known > 0 ? thin / known : NAN;
}

/* A program of JAX whose steps nobody tells: its compiler fuses what is no product into products, or into few kernels beside them. */
static bool fused(const struct hec_facts *f) {
    return f->steps->source == HEC_STEP_NONE && hec_framework_of(f->summary) == HEC_FRAMEWORK_JAX;
}

/* As products have; element-wise kernels have more warps, and do something in FP32 with each element that they read. */
static bool few_warps(const struct hec_compute *c) {
    bool only_reads = c->dram >= HEC_BATCH_MEMORY_BUSY && c->fp32 <= HEC_BATCH_FP32_OF_MEMORY * c->dram;
    return c->fp32 <= HEC_BATCH_FP32_PART * c->tensor && (c->occupancy <= HEC_BATCH_MOST_WARPS || only_reads);
}

/* Products limited by reading weights: more rows for each cost nothing. Convolutions read pictures, attention what it keeps of each
 * sample: both grow with the batch. Where nobody tells samples or kernels (JAX has no steps), few warps say that it is products which
 * read: so many element-wise kernels beside full products as keep memory busy half of the time have more. */
static bool rereads(const struct hec_facts *f, const struct hec_compute *c, double samples) {
    if (!(c->dram >= HEC_BATCH_MEMORY_BUSY && c->tensor > HEC_BATCH_TENSOR_SOME && c->tensor <= HEC_BATCH_TENSOR_LOW) ||
        samples > HEC_BATCH_FEW_SAMPLES)
        return false;
    if (c->traced)
        return f->class_share[HEC_KERNEL_CLASS_GEMM] >= HEC_BATCH_LEAST_GEMM &&
               f->class_share[HEC_KERNEL_CLASS_SOFTMAX] < HEC_BATCH_MOST_ATTENTION &&
               f->class_share[HEC_KERNEL_CLASS_ELEMENTWISE] < HEC_BATCH_LEAST_GEMM;
    return (isfinite(samples) || f->steps->source == HEC_STEP_NONE) && few_warps(c);
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

/* Of the joules above idle, what the same work takes in a batch of so many times: reading weights is shared by its samples, what is done
 * with each of them is not. Products of few rows leave tensor pipes idle while they read weights; so does what has little to do with
 * products. Where that gathers, scatters or sorts what belongs to a sample it keeps integer pipes busy, which reading weights does not. */
static double dynamic_stays(const struct hec_facts *f, const struct hec_compute *c, double times) {
    bool products = hec_facts_network(f) ? isfinite(c->tensor) : c->tensor > HEC_BATCH_TENSOR_SOME;
    double beyond = fmax(0, hec_finite_or(c->integer, 0) - HEC_BATCH_INTEGER_PRODUCTS);
    double indexes = beyond / (HEC_BATCH_INTEGER_OWN - HEC_BATCH_INTEGER_PRODUCTS);
    double full = fused(f) ? HEC_COMPUTE_REACH_GEMM : HEC_BATCH_TENSOR_OWN;
    double own = products ? fmin(1, fmax(c->tensor / full, indexes)) : 1;
    return own + (1 - own) / times;
}

/* Watts of the same work in `time` of its time, by those now: no more than a full device draws, and no more joules than
 * idle's of that time and what the work itself takes above idle. */
static double denser(const struct hec_facts *f, const struct hec_compute *c, double times, double time) {
    double idle = hec_compute_idle_watts(f) / c->watts;
    double most = c->denser * time, same = fmin(1, idle) * time + dynamic_stays(f, c, times) * (1 - fmin(1, idle));
    return isfinite(idle) ? fmin(most, same) / time : c->denser;
}

/* How many times as large a batch the claim is of: less than HEC_BATCH_TIMES where memory has no room for it. */
static double times_of(const struct hec_facts *f) {
    return fmin(HEC_BATCH_TIMES, 1 / fmax(1 - f->memory_free_share, 1e-3));
}

/* Of waits for launches, what goes where so much of compute stays: the host takes as long for a step of many times the samples, and the
 * device what it has to, whichever is longer. So waits go as well while the device works for more samples. */
static double launches_go(const struct hec_waits *w, double times, double stays) {
    double compute_s = w->compute_s * w->work, more = fmax(0, stays - 1 / times);
    return fmin(1, 1 - 1 / times + more * compute_s / w->owned_s[HEC_CAUSE_LAUNCH]);
}

/* A step's own code is for no more samples then. What each sample takes is its loader's as a rule, which is a state of its own where
 * hooks see steps; elsewhere nobody says which of the two it is, and `unknown` of it goes. */
static void save_code(const struct hec_facts *f, const struct hec_waits *w, double times, double unknown,
                      struct hec_finding *out) {
    double best = hec_facts_network(f) ? 1 : unknown;
    hec_waits_save_more(f, w, HEC_CAUSE_HOST, 0, (1 - 1 / times) * best, 1, out);
    /* It is saved every so many steps as a rule, whatever their batch. */
    hec_waits_save_more(f, w, HEC_CAUSE_CHECKPOINT, 0, 1 - 1 / times, 1, out);
}

/* Of the waits that a larger batch is for no more of, whose most is: another cause's that is more is not before a larger batch then. */
static enum hec_cause most_of(const struct hec_facts *f, const struct hec_waits *w) {
    enum hec_cause most = HEC_CAUSE_LAUNCH;
    if (w->owned_s[HEC_CAUSE_CHECKPOINT] > w->owned_s[most])
        most = HEC_CAUSE_CHECKPOINT;
    if (hec_facts_network(f) && w->owned_s[HEC_CAUSE_HOST] > w->owned_s[most])
        most = HEC_CAUSE_HOST;
    return most;
}

/* Ranks that share samples out send gradients and weights, as much for many samples as for few. Tensors shared out, and stages, send what
 * belongs to each sample. But a device that communicates for longer than another one of the job is busy at all waits for that one, and what
 * that one's host takes for a step it takes for a larger batch as well. */
static double of_steps(const struct hec_facts *f, double comm_s) {
    const struct hec_summary *s = f->summary;
    bool samples = s->sizes.sharing == HEC_SHARING_DDP || s->sizes.sharing == HEC_SHARING_FSDP;
    double most_s = samples ? comm_s : 0;
    for (int i = 0; i < s->device_count && !samples; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        struct hec_facts other;
        struct hec_waits w;
        if (d == f->device || !d->steady || !d->steps.count ||
            hec_rank_of(s->job.ranks, s->job.rank_count, d->readings.device.index) < 0)
            continue;
        hec_facts_gather(s, d, &other);
        hec_waits_gather(&other, &w);
        double idle_s = hec_loop_idle_s(d);
        double busy_s = hec_ledger_work(d->steady) + hec_ledger_shared(d->steady) - idle_s;
        double step_s = w.owned_s[HEC_CAUSE_LAUNCH] + (hec_facts_network(&other) ? w.owned_s[HEC_CAUSE_HOST] : 0);
        double waits_s = fmin(comm_s - busy_s, idle_s);
        if (waits_s > 0)
            most_s = fmax(most_s, waits_s * fmin(1, step_s / idle_s));
    }
    return most_s;
}

static void save_comm(const struct hec_facts *f, double times, struct hec_finding *out) {
    const struct hec_summary *s = f->summary;
    const struct hec_ledger_device *steady = f->device->steady;
    if (!steady || !f->device->ledger || s->job.size < 2)
        return;
    double lost_s = hec_collectives_lost(&s->job.collectives, f->device->readings.device.index);
    double share = of_steps(f, fmax(0, steady->rows[HEC_STATE_COMM].seconds - lost_s)) / f->run_s;
    double joules = share * f->run_s * f->device->ledger->rows[HEC_STATE_COMM].watts / f->run_j;
    if (!(share > 0))
        return;
    hec_saving_add(&out->seconds, hec_saving_scaled((struct hec_saving){share, share, share}, 0, 1 - 1 / times, 1));
    hec_saving_add(&out->joules, hec_saving_scaled((struct hec_saving){joules, joules, joules}, 0, 1 - 1 / times, 1));
}

/* What a program marks as a unit may be anything. */
static bool fewest(const struct hec_facts *f) {
    bool counted = f->steps->source == HEC_STEP_OPTIMIZER || f->steps->source == HEC_STEP_MODULE;
    return counted && f->steps->samples_per_step <= HEC_BATCH_FEWEST_SAMPLES;
}

bool hec_batch_at_hand(const struct hec_facts *f) {
    return fewest(f) && !(f->solver_share > HEC_PRECISION_MOST_SOLVER) &&
           f->memory_free_share >= HEC_BATCH_LEAST_FREE_LAUNCH &&
           hec_pace_of(f->summary, f->device).by != HEC_PACE_REQUESTS;
}

/* What FSDP's own code takes it takes for a step, whatever its samples are. Where sharding is not needed it is no part of the waits. */
static void save_sharding(const struct hec_facts *f, double times, struct hec_finding *out) {
    struct hec_finding more = {.cause = HEC_CAUSE_BATCH};
    if (!(hec_sharding_share(f) > 0))
        return;
    hec_waits_save_seconds(f, hec_sharded_code_s(f->device), 0, 1 - 1 / times, 1, &more);
    hec_saving_add(&out->seconds, more.seconds);
    hec_saving_add(&out->joules, more.joules);
}

/* Launching is the limit, and each launch does little or is for few samples: more samples a step are for nearly the same launches. Of
 * a server requests must be there to be put together, so that launching less comes first. */
static bool judge_launches(const struct hec_facts *f, const struct hec_compute *c, double thin, double samples,
                           struct hec_finding *out) {
    struct hec_waits w;
    hec_waits_gather(f, &w);
    double share = hec_waits_share(&w, HEC_CAUSE_LAUNCH), kernel_us = 1e6 * w.compute_s / w.launches;
    bool tiny = c->sm <= HEC_BATCH_SM_FEW || thin >= HEC_BATCH_THIN_SHARE ||
                (w.launches > 0 && kernel_us <= HEC_KERNEL_TINY_US);
    bool few = samples <= HEC_BATCH_FEW_SAMPLES || thin >= HEC_BATCH_THIN_SHARE;
    if (!(share >= HEC_BATCH_LEAST_LAUNCH) || !(tiny || fewest(f)) || !few ||
        !(f->memory_free_share >= HEC_BATCH_LEAST_FREE_LAUNCH))
        return false;
    double times = times_of(f);
    double fill = isfinite(c->sm) ? c->sm / HEC_BATCH_SM_FULL : isfinite(thin) ? 1 - thin : 1;
    /* SMs that stand empty in part of the kernels alone, which nobody saw: how much longer each takes for more samples is not known. */
    bool unseen = !c->traced && c->sm > HEC_BATCH_SM_FEW;
    fill = fmin(1, fmax(1 / times, unseen ? 1 - HEC_BATCH_UNSEEN_GAIN * (1 - fill) : fill));
    struct hec_finding compute = {.cause = HEC_CAUSE_BATCH};
    hec_compute_save(c, 1, (struct hec_saving){0, 1 - fill, 1 - fill}, denser(f, c, times, fill), &compute);
    hec_waits_save(f, &w, HEC_CAUSE_LAUNCH, HEC_BATCH_LAUNCH_LOW, launches_go(&w, times, fill), 1, out);
    save_code(f, &w, times, 0, out);
    save_comm(f, times, out);
    save_sharding(f, times, out);
    hec_saving_add(&out->seconds, compute.seconds);
    hec_saving_add(&out->joules, compute.joules);
    out->estimated = true;
    out->edit_value = times;
    out->confidence = hec_waits_confidence(
        &w, most_of(f, &w), hec_batch_at_hand(f) ? HEC_BATCH_CONFIDENCE_AT_HAND : HEC_BATCH_SERVING_CONFIDENCE);
    out->title = isfinite(samples) ? HEC_FACT(BATCH_SAMPLES, samples, tiny) : HEC_FACT(BATCH_BLOCKS, thin);
    out->lever =
        f->steps->source == HEC_STEP_MODULE ? HEC_ANSWER(BATCH_OR_LAUNCH_LESS, times) : HEC_ANSWER(LARGER_BATCH, times);
    hec_finding_add(out, HEC_FACT(LAUNCH_SHARE, share, w.steady));
    if (w.launches > 0)
        hec_finding_add(out, HEC_FACT(LAUNCHES, w.launches, w.compute_s / w.launches));
    return true;
}

/* Of what copies own, seconds in which none moves anything: calls, waits and the framework's code around them, which take as long for
 * more bytes. Of many small copies a step each may be a sample's, calls and all. */
static double around_copies_s(const struct hec_facts *f, const struct hec_waits *w) {
    const struct hec_ledger_device *d = f->device->steady ? f->device->steady : f->device->ledger;
    double moves_s = d ? d->rows[HEC_STATE_COPY].seconds : 0;
    return w->copies == HEC_WAITS_CHATTY ? 0 : fmax(0, w->owned_s[HEC_CAUSE_COPY] - moves_s);
}

/* Whether bytes are a batch's or the step's own nobody says, so that as much of that goes as of code. */
static void save_copies(const struct hec_facts *f, const struct hec_waits *w, double times, struct hec_finding *out) {
    double owned_s = w->owned_s[HEC_CAUSE_COPY];
    double around = owned_s > 0 ? around_copies_s(f, w) / owned_s : 0;
    hec_waits_save_more(f, w, HEC_CAUSE_COPY, 0, (1 - 1 / times) * (around + HEC_BATCH_HOST_GOES * (1 - around)), 1,
                        out);
}

/* Products without steps, of JAX as a rule, where nobody says how many samples they are for: tensor pipes that are little used, and a
 * device that waits for what each step costs the host, launching it, reading of it, and calls that copy. A larger batch is for no more of
 * these. How much larger it can be is not known. */
static bool judge_products(const struct hec_facts *f, const struct hec_compute *c, struct hec_finding *out) {
    struct hec_waits w;
    hec_waits_gather(f, &w);
    double waits = hec_waits_share(&w, HEC_CAUSE_LAUNCH) + hec_waits_share(&w, HEC_CAUSE_SYNC) +
                   (w.whole_s > 0 ? around_copies_s(f, &w) / w.whole_s : 0);
    if (f->steps->source != HEC_STEP_NONE || c->traced || !(waits >= HEC_BATCH_LEAST_LAUNCH) ||
        !(c->tensor > HEC_BATCH_TENSOR_SOME && c->tensor <= HEC_BATCH_TENSOR_LOW) ||
        !(f->memory_free_share >= HEC_BATCH_LEAST_FREE_LAUNCH))
        return false;
    double times = times_of(f), least = fmax(1 / times, c->tensor / HEC_COMPUTE_REACH_GEMM);
    double fill = few_warps(c) ? fmin(1, fmax(1 / times, c->tensor / c->tensor_reach)) : 1;
    struct hec_finding compute = {.cause = HEC_CAUSE_BATCH};
    hec_compute_save(c, 1, (struct hec_saving){0, 1 - fill, 1 - least}, denser(f, c, times, fill), &compute);
    hec_waits_save(f, &w, HEC_CAUSE_LAUNCH, HEC_BATCH_LAUNCH_LOW, 1 - 1 / times, 1, out);
    out->states |= w.states[HEC_CAUSE_SYNC];
    hec_waits_save_more(f, &w, HEC_CAUSE_SYNC, 0, 1 - 1 / times, 1, out);
    save_copies(f, &w, times, out);
    save_code(f, &w, times, HEC_BATCH_HOST_GOES, out);
    out->lever = HEC_ANSWER(LARGER_BATCH, times);
    hec_saving_add(&out->seconds, compute.seconds);
    hec_saving_add(&out->joules, compute.joules);
    out->estimated = true;
    out->edit_value = times;
    out->confidence = HEC_BATCH_PRODUCTS_CONFIDENCE;
    out->title = HEC_FACT(BATCH_PRODUCTS, c->tensor, waits);
    return true;
}

bool hec_judge_batch(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_compute c;
    double thin = thin_share(f, false), samples = f->steps->samples_per_step;
    hec_compute_gather(f, &c);
    bool few = samples <= HEC_BATCH_FEW_SAMPLES,
         empty = c.sm <= HEC_BATCH_SM_FEW || (isnan(c.sm) && thin >= HEC_BATCH_THIN_SHARE);
    bool weights = rereads(f, &c, samples);
    double least = c.traced         ? HEC_BATCH_LEAST_BUSY
                   : weights && few ? HEC_BATCH_LEAST_BUSY_SAMPLES
                                    : HEC_BATCH_LEAST_BUSY_TELEMETRY;
    /* Several factorisations at once are another algorithm, and may take longer: empty SMs tell nothing of it. */
    if (f->solver_share > HEC_PRECISION_MOST_SOLVER)
        return false;
    if (judge_launches(f, &c, thin, samples, out) || judge_products(f, &c, out)) {
        describe(f, &c, thin, samples, true, out);
        return true;
    }
    if (!(c.busy >= least) || !(empty || weights) || f->memory_free_share < HEC_BATCH_LEAST_FREE)
        return false;
    bool products =
        c.traced ? f->math_share >= HEC_BATCH_LEAST_GEMM : hec_facts_network(f) || c.tensor > HEC_BATCH_TENSOR_SOME;
    /* Kernels that nobody saw, of a program that names neither steps nor samples, and no products: what it does may be one problem that
     * waits for itself, as a factorisation, and not many beside each other. */
    if (!c.traced && !products && f->steps->source == HEC_STEP_NONE)
        return false;
    /* Normalisation on NCHW leaves SMs empty with any batch: the layout is the matter. */
    if (f->class_share[HEC_KERNEL_CLASS_LAYOUT] >= HEC_BATCH_LAYOUT_MATTERS &&
        f->class_share[HEC_KERNEL_CLASS_CONV] > 0)
        return false;
    /* The work of a batch would take no less than what it takes of the pipes that limit it when they are full. */
    double fill = isfinite(c.sm) ? c.sm / HEC_BATCH_SM_FULL : 1 - thin;
    /* Products that read their weights again and again are of matrices: convolutions read pictures. */
    double reach = weights && !c.traced ? HEC_COMPUTE_REACH_GEMM : c.tensor_reach;
    if (isfinite(c.tensor) && products && c.tensor > 0)
        fill = fmin(fill, c.tensor / reach);
    /* An optimizer does as much for a larger batch, with as many launches. */
    double times = times_of(f), optimizer = f->class_share[HEC_KERNEL_CLASS_OPTIMIZER];
    fill = fmax(1 / times, fill) * (1 - optimizer) + optimizer / times;
    double possible = fmin(HEC_BATCH_MOST_GAIN, fmax(0, 1 - fill));
    /* Where SMs are full, what is no product and has blocks enough takes as much more time as there is more of it. */
    if (!empty && c.traced)
        possible *= fmin(1, hec_finite_or(thin_share(f, true), 1));
    /* Other work that nobody saw, as a factorisation, may wait for itself as long for a larger batch; and beside products that read
     * weights nobody saw what else reads memory. */
    bool unseen = !c.traced && (!products || !empty);
    double best = unseen ? (fused(f) ? HEC_BATCH_FUSED_GAIN : HEC_BATCH_UNSEEN_GAIN) * possible : possible;
    struct hec_waits w;
    hec_waits_gather(f, &w);
    hec_compute_save(&c, 1,
                     (struct hec_saving){unseen ? 0 : HEC_BATCH_GAIN_LOW * best, best,
                                         fmin(HEC_BATCH_GAIN_MOST, 1 - (1 - possible) / HEC_BATCH_LEFT_LOW)},
                     denser(f, &c, times, 1 - best), out);
    hec_waits_save_more(f, &w, HEC_CAUSE_LAUNCH, 0, 1 - 1 / times, 1, out);
    save_code(f, &w, times, weights ? HEC_BATCH_HOST_GOES : 0, out);
    save_comm(f, times, out);
    save_sharding(f, times, out);
    out->estimated = true; /* what a larger batch draws is not known */
    if (empty)
        out->edit_value = times;
    out->confidence = !c.traced        ? HEC_TELEMETRY_CONFIDENCE
                      : isfinite(c.sm) ? HEC_BATCH_CONFIDENCE
                                       : HEC_BATCH_CONFIDENCE_BLOCKS;
    if (isnan(f->memory_free_share))
        out->confidence *= HEC_BATCH_MEMORY_UNKNOWN;
    out->title = weights && !empty ? HEC_FACT(BATCH_WEIGHTS, c.tensor)
                 : isfinite(c.sm)  ? HEC_FACT(SMS_EMPTY, c.sm)
                                   : HEC_FACT(FEW_BLOCKS, thin);
    out->lever =
        f->steps->source == HEC_STEP_MODULE ? HEC_ANSWER(BATCH_REQUESTS, times) : HEC_ANSWER(LARGER_BATCH, times);
    describe(f, &c, thin, samples, false, out);
    return out->evidence_count > 0;
}
