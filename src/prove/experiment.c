#include "prove/experiment.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

/* ---- pairs ---- */

static const struct hec_experiment_trial *find(const struct hec_experiment_trial *trials, int count, int pair,
                                               int side) {
    for (int i = 0; i < count; i++)
        if (trials[i].pair == pair && trials[i].side == side)
            return &trials[i];
    return NULL;
}

#define WORK_EQUAL 0.001

/* As far as is known. */
static bool equal_work(const struct hec_experiment_trial *a, const struct hec_experiment_trial *b) {
    double one = isfinite(a->run.units) ? a->run.units : a->run.steps;
    double other = isfinite(a->run.units) ? b->run.units : b->run.steps;
    return !(fabs(one - other) > WORK_EQUAL * one);
}

/* Whole runs that were ended early, or did not do the same work, say nothing. */
static struct hec_trial trial_of(const struct hec_experiment_trial *t, const struct hec_experiment_trial *other) {
    static const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    bool whole = !t->stopped && !other->stopped && equal_work(t, other);
    return (struct hec_trial){.whole = t->steady, .run = whole ? t->run : unknown, .pair = t->pair};
}

/* out[side][pair], of complete pairs. */
static int gather(const struct hec_experiment_trial *trials, int count, struct hec_trial *out[2]) {
    int pairs = 0;
    for (int i = 0; i < count; i++) {
        const struct hec_experiment_trial *b =
            trials[i].pair >= 0 && trials[i].side == 0 ? find(trials, count, trials[i].pair, 1) : NULL;
        if (!b)
            continue;
        out[0][pairs] = trial_of(&trials[i], b);
        out[1][pairs++] = trial_of(b, &trials[i]);
    }
    return pairs;
}

/* Both sides have it in all pairs. */
static bool known(enum hec_quantity quantity, struct hec_trial *const sides[2], int pairs) {
    for (int i = 0; i < pairs; i++)
        if (isnan(hec_quantity_value(quantity, &sides[0][i])) || isnan(hec_quantity_value(quantity, &sides[1][i])))
            return false;
    return pairs > 0;
}

/* Decided before any looking, by what is measured. */
static enum hec_quantity judged(struct hec_trial *const sides[2], int pairs) {
    static const enum hec_quantity order[] = {HEC_QUANTITY_JOULES_PER_UNIT, HEC_QUANTITY_JOULES,
                                              HEC_QUANTITY_UNITS_PER_SECOND};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (known(order[i], sides, pairs))
            return order[i];
    return HEC_QUANTITY_SECONDS;
}

/* ---- intervals ---- */

/* 0: nothing is. */
static double expected(const struct hec_experiment_plan *plan, enum hec_quantity quantity) {
    double cost = plan->expected_cost, speed = plan->expected_speed;
    return quantity == HEC_QUANTITY_JOULES_PER_UNIT    ? cost
           : quantity == HEC_QUANTITY_UNITS_PER_SECOND ? speed
           : quantity == HEC_QUANTITY_SECONDS_PER_STEP ? (speed > 0 ? 1 / speed : 0)
           : quantity == HEC_QUANTITY_WATTS            ? cost * speed
                                                       : 0;
}

static void look_at(const struct hec_experiment_plan *plan, enum hec_quantity quantity,
                    struct hec_trial *const sides[2], int pairs, double *a, double *b, struct hec_look *out) {
    int most = plan->pairs_most ? plan->pairs_most : HEC_EXPERIMENT_PAIRS_MOST;
    struct hec_sequential_options options = {.margin = plan->until > 0 ? 0 : HEC_EXPERIMENT_UNTIL,
                                             .width = plan->until,
                                             .pairs_most = plan->pairs ? plan->pairs : most,
                                             .more_is_better = hec_quantity_better(quantity) > 0,
                                             .small_effects = !plan->large_effects,
                                             .expected = expected(plan, quantity)};
    for (int i = 0; i < pairs; i++) {
        a[i] = hec_quantity_value(quantity, &sides[0][i]);
        b[i] = hec_quantity_value(quantity, &sides[1][i]);
    }
    *out = hec_sequential_look(a, b, pairs, &options);
}

/* By the interval that holds at every look, where looking decides when to stop. */
static void widen(struct hec_comparison *c, enum hec_quantity quantity, const struct hec_look *look) {
    int better = hec_quantity_better(quantity);
    bool differs = look->low > 1 || look->high < 1;
    if (c->shown == HEC_SHOWN_UNKNOWN)
        return;
    c->ratio = look->ratio;
    c->ratio_low = isfinite(look->high) ? look->low : NAN;
    c->ratio_high = isfinite(look->high) ? look->high : NAN;
    c->difference = c->a * (c->ratio - 1);
    c->difference_low = c->a * (c->ratio_low - 1);
    c->difference_high = c->a * (c->ratio_high - 1);
    c->shown = !differs                            ? HEC_SHOWN_NOT
               : better == 0                       ? HEC_SHOWN_CHANGED
               : (look->ratio > 1) == (better > 0) ? HEC_SHOWN_BETTER
                                                   : HEC_SHOWN_WORSE;
}

static int judge_quantities(const struct hec_experiment_plan *plan, struct hec_trial *const sides[2], int pairs,
                            struct hec_experiment_result *out) {
    double *values = calloc((size_t)pairs * 2 + 1, sizeof *values);
    int err = values ? hec_compare(sides[0], pairs, sides[1], pairs, NULL, out->quantity) : HEC_ERR_NOMEM;
    out->judged = judged(sides, pairs);
    for (int q = 0; q < HEC_QUANTITY_COUNT && !err; q++) {
        struct hec_look look;
        look_at(plan, q, sides, pairs, values, values + pairs, &look);
        if (!plan->pairs)
            widen(&out->quantity[q], q, &look);
        if (q == (int)out->judged)
            out->look = look;
    }
    out->done = plan->pairs ? pairs >= plan->pairs : out->look.step != HEC_LOOK_GO_ON;
    free(values);
    return err;
}

/* ---- quality ---- */

static int judge_gradients(const struct hec_experiment_trial *trials, int count, struct hec_quality *out) {
    struct hec_gradients *lists = calloc(2 * (size_t)count + 1, sizeof *lists);
    int sides[2] = {0, 0}, err = lists ? 0 : HEC_ERR_NOMEM;
    for (int i = 0; i < count && !err; i++)
        lists[trials[i].side * count + sides[trials[i].side]++] = trials[i].gradients;
    if (!err)
        err = hec_quality_gradients(lists, sides[0], lists + count, sides[1], out);
    free(lists);
    return err;
}

/* Only the parts of the steps in which every trial has a loss; one of a warm-up ran as long as the others and counts. */
static int judge_quality(const struct hec_experiment_plan *plan, const struct hec_experiment_trial *trials, int count,
                         struct hec_quality *out) {
    double(*values)[HEC_EXPERIMENT_BINS] = calloc((size_t)count + 1, sizeof *values);
    struct hec_trajectory *lists = calloc(2 * (size_t)count + 1, sizeof *lists);
    int sides[2] = {0, 0}, kept = 0, err = values && lists ? 0 : HEC_ERR_NOMEM;
    for (int bin = 0; bin < HEC_EXPERIMENT_BINS && !err; bin++) {
        bool all = count > 0;
        for (int i = 0; i < count; i++)
            all &= !isnan(trials[i].loss[bin]);
        for (int i = 0; i < count && all; i++)
            values[i][kept] = trials[i].loss[bin];
        kept += all;
    }
    for (int i = 0; i < count && !err; i++)
        lists[trials[i].side * count + sides[trials[i].side]++] = (struct hec_trajectory){values[i], kept};
    if (!err)
        err = hec_quality_judge(lists, sides[0], lists + count, sides[1], HEC_QUALITY_LOSS, plan->margin, out);
    free(values);
    free(lists);
    return err || !plan->gradients ? err : judge_gradients(trials, count, out);
}

/* Pairs may show a large effect before reruns show that the losses are the same: for that there is a fourth. Two are enough only where the
 * gate would have seen a fault. */
#define QUALITY_PAIRS 4
#define QUALITY_SURE 3

static bool asks_for_reruns(const struct hec_experiment_plan *plan, const struct hec_experiment_result *result) {
    const struct hec_quality *quality = &result->quality;
    bool may = !plan->pairs && result->pairs < QUALITY_PAIRS && (!plan->pairs_most || result->pairs < plan->pairs_most);
    bool spread = quality->verdict == HEC_QUALITY_CANNOT_JUDGE && quality->why == HEC_QUALITY_SPREAD;
    bool blind = quality->verdict != HEC_QUALITY_FAIL && quality->blind && result->pairs < QUALITY_SURE;
    return may && (spread || blind);
}

/* ---- the whole ---- */

static void add_cost(const struct hec_experiment_plan *plan, const struct hec_experiment_trial *trials, int count,
                     struct hec_experiment_result *out) {
    out->cost_joules = plan->spent_joules;
    out->cost_seconds = plan->spent_seconds;
    for (int i = 0; i < count; i++) {
        out->cost_joules += trials[i].run.joules;
        out->cost_seconds += trials[i].run.seconds;
    }
}

/* Seconds of a unit, from units a second. */
static struct hec_comparison inverse(const struct hec_comparison *c) {
    struct hec_comparison out = *c;
    out.a = 1 / c->a;
    out.b = 1 / c->b;
    out.difference = out.b - out.a;
    out.difference_low = out.a * (1 / c->ratio_high - 1);
    out.difference_high = out.a * (1 / c->ratio_low - 1);
    return out;
}

int hec_experiment_judge(const struct hec_experiment_plan *plan, const struct hec_experiment_trial *trials, int count,
                         struct hec_experiment_result *out) {
    struct hec_trial *sides[2] = {calloc((size_t)count + 1, sizeof **sides), calloc((size_t)count + 1, sizeof **sides)};
    int err = sides[0] && sides[1] ? 0 : HEC_ERR_NOMEM;
    *out = (struct hec_experiment_result){0};
    if (!err) {
        out->pairs = gather(trials, count, sides);
        err = judge_quantities(plan, sides, out->pairs, out);
    }
    if (!err)
        err = judge_quality(plan, trials, count, &out->quality);
    out->done = out->done && !asks_for_reruns(plan, out);
    if (!err) {
        struct hec_comparison unit = inverse(&out->quantity[HEC_QUANTITY_UNITS_PER_SECOND]);
        add_cost(plan, trials, count, out);
        out->joules = hec_breakeven_after(out->cost_joules, &out->quantity[HEC_QUANTITY_JOULES_PER_UNIT]);
        out->seconds = hec_breakeven_after(out->cost_seconds, &unit);
    }
    free(sides[0]);
    free(sides[1]);
    return err;
}

struct hec_breakeven hec_breakeven_after(double cost, const struct hec_comparison *saving) {
    if (saving->shown != HEC_SHOWN_BETTER || !(saving->difference < 0) || !(cost >= 0))
        return (struct hec_breakeven){false, NAN, NAN, NAN};
    if (cost == 0)
        return (struct hec_breakeven){true, 0, 0, 0};
    return (struct hec_breakeven){true, cost / -saving->difference, cost / -saving->difference_low,
                                  saving->difference_high < 0 ? cost / -saving->difference_high : INFINITY};
}
