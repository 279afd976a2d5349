#include "diagnose/findings.h"

#include "diagnose/rules/rule.h"
#include "diagnose/scale_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double worth(const struct hec_finding *f) {
    double best = isfinite(f->joules.best) ? f->joules.best : f->seconds.best;
    return isfinite(best) ? best : 0;
}

/* A healthy device stands before what is not worth acting on, and after what is. */
static int rank(const struct hec_finding *f) {
    if (f->cause == HEC_CAUSE_NONE)
        return 1;
    return worth(f) >= HEC_FINDING_WORTH && f->confidence >= HEC_FINDING_SURE ? 0 : 2;
}

static int by_worth(const void *a, const void *b) {
    const struct hec_finding *one = a, *other = b;
    double mine = worth(one) * one->confidence, theirs = worth(other) * other->confidence;
    if (rank(one) != rank(other))
        return rank(one) - rank(other);
    if (mine != theirs)
        return mine < theirs ? 1 : -1;
    return one->cause != other->cause ? (int)one->cause - (int)other->cause : one->device - other->device;
}

static bool is_about(const struct hec_finding *finding, const struct hec_source_line *l) {
    return l->device == finding->device && (finding->states & (1u << l->state));
}

/* Seconds of a line over all states of the finding; 0 where an earlier row has told it, or it is of none of them. */
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
    const struct hec_source_lines *source = &facts->summary->diagnosis.steady_source;
    const struct hec_ledger_device *steady = facts->steady;
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

static int judge_device(const struct hec_summary *summary, int at, struct hec_findings *out) {
    struct hec_facts facts;
    hec_facts_gather(summary, at, &facts);
    for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++) {
        const struct hec_rule *rule = hec_rule_of((enum hec_cause)cause);
        if (!rule)
            continue;
        const struct hec_saving unknown = {NAN, NAN, NAN};
        struct hec_finding finding = {
            .cause = rule->cause, .device = facts.device->device.index, .seconds = unknown, .joules = unknown};
        snprintf(finding.lever, sizeof finding.lever, "%s", rule->lever);
        if (!rule->judge(&facts, &finding))
            continue;
        finding.confidence = fmin(1, fmax(0, finding.confidence)); /* of NAN 0: an order must exist */
        attach_lines(&facts, &finding);
        struct hec_finding *grown = realloc(out->list, ((size_t)out->count + 1) * sizeof *grown);
        if (!grown)
            return HEC_ERR_NOMEM;
        out->list = grown;
        out->list[out->count++] = finding;
    }
    return 0;
}

int hec_findings_build(const struct hec_summary *summary, struct hec_findings *out) {
    memset(out, 0, sizeof *out);
    for (int i = 0; i < summary->device_count; i++) {
        int err = summary->devices[i].used ? judge_device(summary, i, out) : 0;
        if (err) {
            hec_findings_free(out);
            return err;
        }
    }
    if (out->count)
        qsort(out->list, (size_t)out->count, sizeof *out->list, by_worth);
    hec_scale_out_decide(summary, out);
    hec_latency_split(summary, &out->latency);
    return 0;
}

void hec_findings_free(struct hec_findings *findings) {
    free(findings->list);
    findings->list = NULL;
    findings->count = 0;
}
