#include "diagnose/compare/delta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Units of work that a run did in all. */
static double units_of(const struct hec_summary *s, const char *unit) {
    if (s->unit_count && !s->units[0].is_default && strcmp(s->units[0].name, unit) == 0)
        return s->units[0].count;
    return strcmp(unit, "step") == 0 ? (double)s->steps.count : NAN;
}

static double work_of(const struct hec_side *side, const char *unit) {
    double sum = 0;
    for (int i = 0; i < side->count; i++)
        sum += unit ? units_of(&side->runs[i], unit) : 1;
    return sum;
}

static bool add_run(const struct hec_summary *s, int at, struct hec_delta_state rows[HEC_STATE_COUNT]) {
    bool any = false;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_ledger_device *d = s->devices[i].ledger;
        if (!s->devices[i].readings.used)
            continue;
        if (!d)
            return false; /* a part of the ledger is no ledger */
        for (int k = 0; k < HEC_STATE_COUNT; k++) {
            rows[k].seconds[at] += d->rows[k].seconds;
            rows[k].joules[at] += d->rows[k].ns > 0 || isfinite(d->joules) ? d->rows[k].joules : 0;
        }
        any = true;
    }
    return any;
}

/* The joules' difference outranks the seconds', whatever its size, where it is known. */
static int by_difference(const void *x, const void *y) {
    const struct hec_delta_state *a = x, *b = y;
    double p = fabs(a->joules[1] - a->joules[0]), q = fabs(b->joules[1] - b->joules[0]);
    if (!isfinite(p) || !isfinite(q) || p == q) {
        p = fabs(a->seconds[1] - a->seconds[0]);
        q = fabs(b->seconds[1] - b->seconds[0]);
    }
    return p != q ? (p < q) - (p > q) : (int)a->state - (int)b->state;
}

static void find_states(const struct hec_side *side, const char *unit, struct hec_delta *out) {
    struct hec_delta_state rows[HEC_STATE_COUNT] = {0};
    double work[2] = {work_of(&side[0], unit), work_of(&side[1], unit)};
    out->per_unit = unit && work[0] > 0 && work[1] > 0;
    bool known = true, ledger = true;
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < side[at].count; i++)
            ledger &= add_run(&side[at].runs[i], at, rows);
    if (!ledger)
        return;
    for (int k = 0; k < HEC_STATE_COUNT; k++)
        for (int at = 0; at < 2; at++)
            known &= isfinite(rows[k].joules[at]) || rows[k].seconds[at] <= 0;
    for (int k = 0; k < HEC_STATE_COUNT; k++) {
        rows[k].state = k;
        for (int at = 0; at < 2; at++) {
            double per = out->per_unit ? work[at] : side[at].count;
            rows[k].seconds[at] /= per;
            rows[k].joules[at] = !known ? NAN : isfinite(rows[k].joules[at]) ? rows[k].joules[at] / per : 0;
            out->sum.seconds[at] += rows[k].seconds[at];
            out->sum.joules[at] += rows[k].joules[at];
        }
        if (rows[k].seconds[0] > 0 || rows[k].seconds[1] > 0)
            out->state[out->state_count++] = rows[k];
    }
    qsort(out->state, (size_t)out->state_count, sizeof out->state[0], by_difference);
}

/* ---- findings ---- */

static bool wanted(const struct hec_finding *f) {
    return f->actionable && f->cause != HEC_CAUSE_NONE;
}

static void add_causes(const struct hec_side *side, int at, struct hec_delta_cause causes[HEC_CAUSE_COUNT]) {
    for (int i = 0; i < side->count; i++) {
        uint64_t seen = 0;
        for (int k = 0; k < side->runs[i].job.findings.count; k++) {
            const struct hec_finding *f = &side->runs[i].job.findings.list[k];
            struct hec_delta_cause *c = &causes[f->cause];
            if (!wanted(f))
                continue;
            double worth = isfinite(f->joules.best) ? f->joules.best : f->seconds.best;
            c->runs[at] += !(seen >> f->cause & 1);
            c->saving[at] = fmax(c->saving[at], worth);
            seen |= UINT64_C(1) << f->cause;
        }
    }
}

/* 0: it went, 1: it came, 2: it stayed. */
static int fate(const struct hec_delta_cause *c) {
    return !c->runs[1] ? 0 : !c->runs[0] ? 1 : 2;
}

static void find_causes(const struct hec_side *side, struct hec_delta *out) {
    struct hec_delta_cause causes[HEC_CAUSE_COUNT];
    for (int k = 0; k < HEC_CAUSE_COUNT; k++)
        causes[k] = (struct hec_delta_cause){.cause = k, .saving = {NAN, NAN}};
    add_causes(&side[0], 0, causes);
    add_causes(&side[1], 1, causes);
    for (int which = 0; which < 3; which++)
        for (int k = 0; k < HEC_CAUSE_COUNT; k++)
            if ((causes[k].runs[0] || causes[k].runs[1]) && fate(&causes[k]) == which)
                out->cause[out->cause_count++] = causes[k];
}

void hec_delta_find(const struct hec_side *side, struct hec_delta *out) {
    const char *unit = hec_side_unit(side);
    *out = (struct hec_delta){.state_count = 0};
    find_states(side, unit[0] ? unit : NULL, out);
    find_causes(side, out);
}
