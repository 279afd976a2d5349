#include "diagnose/rules/findings.h"

#include "diagnose/rules/claims.h"
#include "diagnose/rules/compute.h"
#include "diagnose/rules/pace.h"
#include "diagnose/rules/power_limit.h"
#include "diagnose/rules/predict.h"
#include "diagnose/rules/verdicts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A short run is mostly set-up, of which a longer one has no more: what a step's joules are less by counts as well, where steps are a
 * large enough part of the run to say how a longer one would go. */
static double worth(const struct hec_finding *f) {
    double of_run = fmax(f->joules.best, f->seconds.best); /* a NAN gives way */
    bool of_steps = f->joules.best >= HEC_FINDING_STEPS * f->step_joules.best;
    return fmax(0, of_steps ? fmax(of_run, f->step_joules.best) : of_run);
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
 * on, and after what is; a hint stands last. */
static int rank(const struct hec_finding *f) {
    return f->cause == HEC_CAUSE_HANG                           ? -1
           : f->cause == HEC_CAUSE_NONE || hec_finding_tells(f) ? 1
           : actionable(f)                                      ? 0
           : f->confidence >= HEC_FINDING_SURE                  ? 2
                                                                : 3;
}

static int by_worth(const void *a, const void *b) {
    const struct hec_finding *one = a, *other = b;
    double mine = saves(one) * one->confidence * one->part, theirs = saves(other) * other->confidence * other->part;
    if (rank(one) != rank(other))
        return rank(one) - rank(other);
    if (mine != theirs)
        return mine < theirs ? 1 : -1;
    return one->cause != other->cause ? (int)one->cause - (int)other->cause : one->device - other->device;
}

/* Time of a line in the finding's states that was found to belong to another cause. */
static bool is_of_others(const struct hec_finding *finding, const struct hec_source_line *l) {
    static const uint32_t divided =
        1u << HEC_CAUSE_HOST | 1u << HEC_CAUSE_LAUNCH | 1u << HEC_CAUSE_SYNC | 1u << HEC_CAUSE_COPY;
    uint32_t cause = 1u << finding->cause;
    return l->owners && (divided & cause) && !(l->owners & cause);
}

static bool is_about(const struct hec_finding *finding, const struct hec_source_line *l) {
    return (finding->states & (1u << l->state)) && !is_of_others(finding, l);
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
    for (int i = 0; i < source->count; i++)
        if ((finding->states & (1u << source->lines[i].state)) && is_of_others(finding, &source->lines[i]))
            whole -= source->lines[i].seconds;
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

/* Of all used devices, by their joules; where those are not known by their number. */
static double part_of(const struct hec_summary *summary, uint64_t devices) {
    double all = joules_of(summary, UINT64_MAX), own = joules_of(summary, devices);
    int used = 0, of_them = 0;
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].readings.used) {
            used++;
            of_them += devices >> summary->devices[i].readings.device.index & 1;
        }
    return all > 0 && own > 0 ? own / all : used ? (double)of_them / used : 1;
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
    f->joules_ruled |= other->joules_ruled;
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

/* What the device's power limit makes of savings, how far such were off, then what of them is waited instead. */
static void bound(const struct hec_facts *facts, double steady_s, double steady_j, struct hec_finding *f) {
    hec_power_limit_hold(facts, steady_s, steady_j, f);
    hec_claims_widen(f);
    hec_pace_hold(facts, steady_s, steady_j, f);
}

/* Of a state, the seconds that the steady part is made of: no set-up, nor what follows the last activity; but what is compiled again and
 * again is part of a step. */
static double steady_seconds(const struct hec_facts *facts, const struct hec_ledger_device *steady, int state) {
    const struct hec_ledger_row *row = &steady->rows[state];
    const struct hec_gap_facts *gaps = facts->device->gaps;
    bool recurs = state == HEC_STATE_STARTUP && gaps && gaps->loads_recur && row->traced_ns > 0;
    double again = recurs ? gaps->owned_s[state][HEC_CAUSE_COMPILE] * 1e9 / (double)row->traced_ns : 0;
    return row->seconds * (state == HEC_STATE_STARTUP ? fmin(1, again) : state == HEC_STATE_TAIL ? 0 : 1);
}

/* Rules say what is saved of the run, replays what of a step. */
static int predict(const struct hec_predictor *predictor, const struct hec_facts *facts, struct hec_finding *f) {
    const struct hec_ledger_device *steady = facts->device->steady ? facts->device->steady : facts->device->ledger;
    double steady_s = steady ? 0 : NAN, steady_j = 0;
    for (int s = 0; steady && s < HEC_STATE_COUNT; s++) {
        double seconds = steady_seconds(facts, steady, s);
        steady_s += seconds;
        steady_j += seconds > 0 ? seconds * facts->device->ledger->rows[s].watts : 0;
    }
    f->step_seconds = of_steps(f->seconds, steady_s > 0 ? facts->run_s / steady_s : NAN);
    f->step_joules = of_steps(f->joules, steady_j > 0 ? facts->run_j / steady_j : NAN);
    const struct hec_saving ruled = f->step_joules;
    int err = hec_predict(predictor, facts, f);
    if (err || !f->replayed) {
        bound(facts, steady_s, steady_j, f);
        return err;
    }
    if (isnan(f->step_joules.best) && isfinite(ruled.best)) {
        f->step_joules = ruled;
        f->joules_ruled = true;
    }
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
    if (!f->joules_ruled && (isfinite(joules.best) || isnan(facts->run_j))) { /* else the rule's estimate stays */
        f->joules = joules;
        f->estimated = !f->proven;
    }
    bound(facts, steady_s, steady_j, f);
    return 0;
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
        for (int i = 0; i < out->count; i++)
            out->list[i].part = part_of(summary, out->list[i].devices);
        qsort(out->list, (size_t)out->count, sizeof *out->list, by_worth);
        if (!pass)
            join_jobs(summary, out);
    }
    enum hec_framework framework = hec_framework_of(summary);
    for (int i = 0; i < out->count; i++) {
        struct hec_finding *f = &out->list[i];
        f->actionable = actionable(f);
        f->hint = f->cause != HEC_CAUSE_NONE && !f->actionable && worth(f) >= HEC_FINDING_WORTH;
        f->framework = framework;
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
    hec_latency_split(summary, &out->latency);
    return 0;
}

void hec_findings_free(struct hec_findings *findings) {
    free(findings->list);
    findings->list = NULL;
    findings->count = 0;
}
