#include "diagnose/rules/findings.h"

#include "diagnose/rules/compute.h"
#include "diagnose/rules/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double worth(const struct hec_finding *f) {
    return fmax(0, fmax(f->joules.best, f->seconds.best)); /* a NAN gives way */
}

/* Joules are what counts, where they are known. */
static double saves(const struct hec_finding *f) {
    double best = isfinite(f->joules.best) ? f->joules.best : f->seconds.best;
    return isfinite(best) ? best : 0;
}

static bool actionable(const struct hec_finding *f) {
    return f->cause == HEC_CAUSE_HANG ||
           (f->cause != HEC_CAUSE_NONE && worth(f) >= HEC_FINDING_WORTH && f->confidence >= HEC_FINDING_SURE);
}

/* What hangs stands before all. What took the time without a saving, and a healthy device, stand before what is not worth acting
 * on, and after what is. */
static int rank(const struct hec_finding *f) {
    return f->cause == HEC_CAUSE_HANG                           ? -1
           : f->cause == HEC_CAUSE_NONE || hec_finding_tells(f) ? 1
           : actionable(f)                                      ? 0
                                                                : 2;
}

static int by_worth(const void *a, const void *b) {
    const struct hec_finding *one = a, *other = b;
    double mine = saves(one) * one->confidence, theirs = saves(other) * other->confidence;
    if (rank(one) != rank(other))
        return rank(one) - rank(other);
    if (mine != theirs)
        return mine < theirs ? 1 : -1;
    return one->cause != other->cause ? (int)one->cause - (int)other->cause : one->device - other->device;
}

static bool is_about(const struct hec_finding *finding, const struct hec_source_line *l) {
    return finding->states & (1u << l->state);
}

/* Seconds of a line over all states of the finding; 0 where an earlier row has it, or it is of none of them. */
static double seconds_of(const struct hec_source_lines *source, int at, const struct hec_finding *finding) {
    const struct hec_source_line *line = &source->lines[at];
    double seconds = 0;
    for (int i = 0; i < source->count; i++) {
        const struct hec_source_line *l = &source->lines[i];
        if (!is_about(finding, l) || l->line != line->line || strcmp(l->file, line->file) != 0 ||
            strcmp(l->function, line->function) != 0)
            continue;
        if (i < at)
            return 0;
        seconds += l->seconds;
    }
    return seconds;
}

/* The lines of the states that a finding is about, by their share of the time of all of those. */
static void attach_lines(const struct hec_facts *facts, struct hec_finding *finding) {
    const struct hec_source_lines *source = &facts->device->steady_source;
    const struct hec_ledger_device *steady = facts->device->steady;
    double whole = 0, last = INFINITY;
    int last_at = -1;
    if (!steady)
        return;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        if (finding->states & (1u << s))
            whole += steady->rows[s].seconds;
    while (whole > 0 && finding->line_count < HEC_FINDING_LINES) {
        double most = 0;
        int best = -1;
        for (int i = 0; i < source->count; i++) {
            double seconds = is_about(finding, &source->lines[i]) ? seconds_of(source, i, finding) : 0;
            if (seconds > most && (seconds < last || (seconds == last && i > last_at))) {
                most = seconds;
                best = i;
            }
        }
        if (best < 0)
            return;
        struct hec_finding_line *line = &finding->lines[finding->line_count++];
        memcpy(line->file, source->lines[best].file, sizeof line->file);
        memcpy(line->function, source->lines[best].function, sizeof line->function);
        line->line = source->lines[best].line;
        line->share = fmin(1, most / whole);
        last = most;
        last_at = best;
    }
}

/* ---- one job ---- */

/* 0 where none of them has joules of the command alone. */
static double joules_of(const struct hec_summary *summary, uint64_t devices) {
    double joules = 0;
    for (int i = 0; i < summary->device_count; i++) {
        const struct hec_device_summary *d = &summary->devices[i].readings;
        bool own = d->energy.valid && d->others != HEC_OTHERS_BUSY;
        joules += own && devices >> d->device.index & 1 ? d->energy.joules : 0;
    }
    return joules;
}

/* Of both together: fractions of `of` and of `of_other`. */
static void mean(struct hec_saving *s, double of, const struct hec_saving *other, double of_other) {
    double part = of / (of + of_other);
    if (isnan(s->best) || !(part <= 1))
        *s = *other;
    else if (isfinite(other->best))
        *s = (struct hec_saving){part * s->low + (1 - part) * other->low, part * s->best + (1 - part) * other->best,
                                 part * s->high + (1 - part) * other->high};
}

static void join(const struct hec_summary *summary, struct hec_finding *f, const struct hec_finding *other) {
    mean(&f->seconds, __builtin_popcountll(f->devices), &other->seconds, __builtin_popcountll(other->devices));
    mean(&f->joules, joules_of(summary, f->devices), &other->joules, joules_of(summary, other->devices));
    mean(&f->step_seconds, __builtin_popcountll(f->devices), &other->step_seconds,
         __builtin_popcountll(other->devices));
    mean(&f->step_joules, joules_of(summary, f->devices), &other->step_joules, joules_of(summary, other->devices));
    struct hec_evidence theirs = other->title;
    theirs.device = other->device;
    hec_finding_add(f, theirs);
    f->devices |= other->devices;
    f->estimated |= other->estimated;
    f->states |= other->states;
    f->confidence = fmax(f->confidence, other->confidence);
}

/* Sorted: the one that saves most is the first of its job. */
static void join_jobs(const struct hec_summary *summary, struct hec_findings *findings) {
    struct hec_finding *list = findings->list;
    int kept = 0;
    for (int i = 0; i < findings->count; i++) {
        int at = 0;
        while (at < kept &&
               !(list[at].cause == list[i].cause && hec_job_together(&summary->job, list[at].device, list[i].device)))
            at++;
        if (at < kept)
            join(summary, &list[at], &list[i]);
        else
            list[kept++] = list[i];
    }
    findings->count = kept;
}

/* ---- of the run, and of a step ---- */

static double at_most_all(double share) {
    return isnan(share) ? NAN : fmin(1, share);
}

static struct hec_saving times(struct hec_saving s, double factor) {
    return (struct hec_saving){at_most_all(factor * s.low), at_most_all(factor * s.best), at_most_all(factor * s.high)};
}

/* Of the steady part, by a rule's share of the run. More than all of it is not saved in steps: of a step nothing is known then. */
static struct hec_saving of_steps(struct hec_saving s, double factor) {
    return factor * s.best <= 1 ? times(s, factor) : (struct hec_saving){NAN, NAN, NAN};
}

/* Rules say what is saved of the run, replays what of a step. */
static int predict(const struct hec_predictor *predictor, const struct hec_facts *facts, struct hec_finding *f) {
    const struct hec_ledger_device *steady = facts->device->steady ? facts->device->steady : facts->device->ledger;
    double steady_s = steady ? 0 : NAN, steady_j = 0;
    for (int s = 0; steady && s < HEC_STATE_COUNT; s++)
        if (steady->rows[s].seconds > 0 && s != HEC_STATE_STARTUP && s != HEC_STATE_TAIL) {
            steady_s += steady->rows[s].seconds;
            steady_j += steady->rows[s].seconds * facts->device->ledger->rows[s].watts;
        }
    f->step_seconds = of_steps(f->seconds, steady_s > 0 ? facts->run_s / steady_s : NAN);
    f->step_joules = of_steps(f->joules, steady_j > 0 ? facts->run_j / steady_j : NAN);
    int err = hec_predict(predictor, facts, f);
    if (err || !f->replayed)
        return err;
    if (isnan(facts->run_j)) /* joules of others too, or none at all */
        f->step_joules = (struct hec_saving){NAN, NAN, NAN};
    double stretch_s, stretch_j;
    hec_predictor_stretch(predictor, f->device, &stretch_s, &stretch_j);
    if (stretch_s > steady_s) {
        steady_s = stretch_s;
        steady_j = stretch_j;
    }
    f->seconds = times(f->step_seconds, steady_s / facts->run_s);
    struct hec_saving joules = times(f->step_joules, steady_j / facts->run_j);
    if (isfinite(joules.best) || isnan(facts->run_j)) { /* else the rule's estimate stays */
        f->joules = joules;
        f->estimated = !f->proven;
    }
    return 0;
}

/* ---- the verdicts above the findings: optimise or scale out, and where a request's time goes ---- */

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
static void split_latency(const struct hec_summary *summary, struct hec_latency *out) {
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

/* ---- all ---- */

static int judge_device(const struct hec_summary *summary, const struct hec_predictor *predictor,
                        const struct hec_device_diagnosis *device, struct hec_findings *out) {
    struct hec_facts facts;
    hec_facts_gather(summary, device, &facts);
    out->solves |= facts.solver_share > HEC_PRECISION_MOST_SOLVER;
    for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++) {
        const struct hec_rule *rule = hec_rule_of((enum hec_cause)cause);
        struct hec_finding finding = hec_finding_begin(rule, facts.device->readings.device.index);
        if (!rule->judge(&facts, &finding))
            continue;
        hec_finding_add_shared(&facts, &finding);
        finding.confidence = fmin(1, fmax(0, finding.confidence)); /* of NAN 0: an order must exist */
        attach_lines(&facts, &finding);
        int err = predict(predictor, &facts, &finding);
        if (err)
            return err;
        struct hec_finding *grown = realloc(out->list, ((size_t)out->count + 1) * sizeof *grown);
        if (!grown)
            return HEC_ERR_NOMEM;
        out->list = grown;
        out->list[out->count++] = finding;
    }
    return 0;
}

int hec_findings_build(const struct hec_summary *summary, const struct hec_predictor *predictor,
                       struct hec_findings *out) {
    memset(out, 0, sizeof *out);
    out->together_seconds = out->together_joules = out->next_seconds = out->next_joules = NAN;
    out->next = HEC_CAUSE_NONE;
    for (int i = 0; i < summary->device_count; i++) {
        int err = summary->devices[i].readings.used ? judge_device(summary, predictor, &summary->devices[i], out) : 0;
        if (err) {
            hec_findings_free(out);
            return err;
        }
    }
    for (int pass = 0; pass < 2 && out->count; pass++) {
        qsort(out->list, (size_t)out->count, sizeof *out->list, by_worth);
        if (!pass)
            join_jobs(summary, out);
    }
    for (int i = 0; i < out->count; i++) {
        struct hec_finding *f = &out->list[i];
        f->actionable = actionable(f);
        f->ranks = summary->job.ranks;
        f->rank_count = summary->job.rank_count;
        f->saved_s = f->seconds.best * summary->seconds;
        f->saved_j = f->joules.best * joules_of(summary, f->devices);
    }
    int err = hec_predict_rest(predictor, out);
    if (err) {
        hec_findings_free(out);
        return err;
    }
    hec_scale_out_decide(summary, out);
    split_latency(summary, &out->latency);
    return 0;
}

void hec_findings_free(struct hec_findings *findings) {
    free(findings->list);
    findings->list = NULL;
    findings->count = 0;
}
