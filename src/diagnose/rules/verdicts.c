#include "diagnose/rules/verdicts.h"

#include "diagnose/rules/compute.h"

#include <math.h>

/* ---- optimise or scale out ---- */

/* A larger batch and fewer launches answer the same waits: only one of them counts. */
static bool answers_launches(const struct hec_finding *f) {
    return (f->cause == HEC_CAUSE_LAUNCH || f->cause == HEC_CAUSE_BATCH) && (f->states & (1u << HEC_STATE_LAUNCH));
}

/* Savings are not independent: the second is of what the first leaves. */
static double together(const struct hec_findings *findings, int device, bool joules) {
    double left = 1, launches = 0;
    bool known = false;
    for (int i = 0; i < findings->count; i++) {
        const struct hec_finding *f = &findings->list[i];
        double best = joules ? f->joules.best : f->seconds.best;
        if (!(f->devices >> device & 1) || !isfinite(best) || f->confidence < HEC_FINDING_SURE)
            continue;
        if (answers_launches(f))
            launches = fmax(launches, best);
        else
            left *= 1 - best;
        known = true;
    }
    return known ? 1 - left * (1 - launches) : NAN;
}

static double utilisation_of(const struct hec_summary *summary, const struct hec_device_diagnosis *d) {
    const struct hec_device_timeline *on = d->timeline;
    if (d->steady && d->steady->basis != HEC_LEDGER_MEASURED && d->steady->window_ns > 0)
        return hec_ledger_busy(d->steady);
    if (on && on->busy_s + on->idle_s > 0)
        return isfinite(summary->steps.busy_share) && hec_summary_traced(summary) == 1
                   ? summary->steps.busy_share
                   : on->busy_s / (on->busy_s + on->idle_s);
    const struct hec_device_summary *r = &d->readings;
    return r->activity.has_gpm && r->others == HEC_OTHERS_IDLE ? r->activity.engine : NAN;
}

/* What is not known of a device that is kept busy; its first number 0: all that a verdict needs is. */
static struct hec_evidence not_seen(const struct hec_facts *f, const struct hec_compute *c, double busy) {
    bool some = f->kernels_seen > 0;
    if (!(busy >= HEC_NONE_LEAST_BUSY))
        return HEC_FACT(UNSEEN, 0);
    if (!hec_job_waits_seen(f->summary, f->device->readings.device.index))
        return HEC_FACT(UNSEEN_RANKS, busy);
    if (hec_compute_seen(f, c))
        return HEC_FACT(UNSEEN, 0);
    if (f->device->timeline && f->device->timeline->row_count && !(f->compute_s > 0))
        return HEC_FACT(ONLY_COMM, busy);
    if (c->tensor <= HEC_PRECISION_TENSOR_IDLE && c->fp32 >= HEC_PRECISION_FP32_BUSY)
        return HEC_FACT(UNSEEN_FP32, busy, c->tensor, c->fp32, c->dram, some);
    if (c->tensor <= HEC_MEMORY_TENSOR_LOW && c->dram >= HEC_MEMORY_DRAM_BUSY)
        return HEC_FACT(UNSEEN_MEMORY, busy, c->tensor, c->fp32, c->dram, some);
    return HEC_FACT(UNSEEN, busy, c->tensor, c->fp32, c->dram, some);
}

/* Of the first device, by their order, of which something is not known. */
static struct hec_evidence find_unseen(const struct hec_summary *summary) {
    struct hec_evidence unseen = HEC_FACT(UNSEEN, 0);
    for (int i = 0; i < summary->device_count && !(unseen.value[0] > 0); i++) {
        const struct hec_device_diagnosis *d = &summary->devices[i];
        struct hec_facts facts;
        struct hec_compute compute;
        if (!d->readings.used || d->readings.others != HEC_OTHERS_IDLE)
            continue;
        hec_facts_gather(summary, d, &facts);
        hec_compute_gather(&facts, &compute);
        unseen = not_seen(&facts, &compute, hec_finite_or(utilisation_of(summary, d), d->readings.activity.engine));
        unseen.device = summary->device_count > 1 ? d->readings.device.index : -1;
    }
    return unseen;
}

void hec_scale_out_decide(const struct hec_summary *summary, struct hec_findings *findings) {
    struct hec_scale_out *out = &findings->scale_out;
    double sum = 0;
    int used = 0;
    bool shared = false;
    *out = (struct hec_scale_out){.utilisation = NAN, .recoverable = NAN, .recoverable_seconds = NAN};
    findings->unseen = find_unseen(summary);
    for (int i = 0; i < summary->device_count; i++) {
        const struct hec_device_summary *d = &summary->devices[i].readings;
        double share = d->used ? utilisation_of(summary, &summary->devices[i]) : NAN;
        if (!d->used)
            continue;
        used++;
        shared |= d->others != HEC_OTHERS_IDLE;
        sum += share;
        out->recoverable = fmax(out->recoverable, together(findings, d->device.index, true)); /* a NAN gives way */
        out->recoverable_seconds = fmax(out->recoverable_seconds, together(findings, d->device.index, false));
    }
    bool hangs = findings->count && findings->list[0].cause == HEC_CAUSE_HANG; /* busy with nothing */
    if (!used || !isfinite(sum) || hangs)
        return;
    out->utilisation = sum / used;
    /* without a joule measured no joule is claimed */
    double recoverable = isfinite(out->recoverable) ? out->recoverable : out->recoverable_seconds;
    out->reason = shared                                               ? HEC_SCALE_SHARED
                  : !(out->utilisation >= HEC_SCALE_UTILISATION)       ? HEC_SCALE_IDLE
                  : recoverable > HEC_SCALE_RECOVERABLE                ? HEC_SCALE_WASTE
                  : hec_summary_failed(summary)                        ? HEC_SCALE_FAILED
                  : !hec_findings_unseen(findings)                     ? HEC_SCALE_FULL
                  : findings->unseen.what == HEC_EVIDENCE_UNSEEN_RANKS ? HEC_SCALE_RANKS
                                                                       : HEC_SCALE_UNSEEN;
    bool optimise = out->reason == HEC_SCALE_IDLE || out->reason == HEC_SCALE_WASTE;
    out->verdict = optimise ? HEC_SCALE_OPTIMISE : out->reason == HEC_SCALE_FULL ? HEC_SCALE_OUT : HEC_SCALE_UNKNOWN;
}

/* ---- latency ---- */

static const struct hec_device_diagnosis *busiest(const struct hec_summary *summary) {
    const struct hec_device_diagnosis *best = NULL;
    for (int i = 0; i < summary->device_count; i++) {
        const struct hec_device_diagnosis *d = &summary->devices[i];
        if (d->ledger && (!best || d->ledger->rows[HEC_STATE_COMPUTE].ns > best->ledger->rows[HEC_STATE_COMPUTE].ns))
            best = d;
    }
    return best;
}

static double step_seconds(const struct hec_ledger_device *d, enum hec_state state) {
    return isfinite(d->rows[state].step_seconds) ? d->rows[state].step_seconds : 0;
}

/* Of the device with most busy time; valid only where the steps are calls of a module (serving, inference). */
void hec_latency_split(const struct hec_summary *summary, struct hec_latency *out) {
    const struct hec_device_diagnosis *device = busiest(summary);
    memset(out, 0, sizeof *out);
    if (!device || hec_steps_of(summary, device)->source != HEC_STEP_MODULE || device->ledger->steps < 1)
        return;
    const struct hec_ledger_device *d = device->ledger;
    const struct hec_class_profile *profile = hec_profile_of(device);
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        out->total_s += step_seconds(d, (enum hec_state)s);
    double compute = step_seconds(d, HEC_STATE_COMPUTE), all = 0, memory = 0, thin = 0;
    for (int c = 0; profile && c < HEC_KERNEL_CLASS_COUNT; c++) {
        all += profile->class[c].seconds;
        memory += profile->class[c].point.limit == HEC_LIMIT_MEMORY ? profile->class[c].seconds : 0;
        thin += profile->class[c].point.limit == HEC_LIMIT_UNDERFILLED ? profile->class[c].seconds : 0;
    }
    out->memory_s = all > 0 ? compute * memory / all : 0;
    out->batching_s = all > 0 ? compute * thin / all : 0;
    out->compute_s = compute - out->memory_s - out->batching_s;
    out->batching_s += step_seconds(d, HEC_STATE_LAUNCH);
    out->transport_s = step_seconds(d, HEC_STATE_COPY) + step_seconds(d, HEC_STATE_COMM);
    out->host_s = fmax(0, out->total_s - out->compute_s - out->memory_s - out->batching_s - out->transport_s);
    out->valid = out->total_s > 0;
}
