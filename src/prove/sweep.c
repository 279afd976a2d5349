#include "prove/sweep.h"

#include "prove/sweep_table.h"

#include <math.h>
#include <string.h>

/* ---- names and limits ---- */

static const struct {
    const char *name, *source;
    double value;
} limits[HEC_SWEEP_LIMITS] = {
#define HEC_SWEEP_LIMIT(id, name, value, source) [HEC_SWEEP_##id] = {name, source, value},
#include "prove/sweep_limits.def"
#undef HEC_SWEEP_LIMIT
};

double hec_sweep_limit(enum hec_sweep_limit limit) {
    return limits[limit].value;
}

const char *hec_sweep_limit_name(enum hec_sweep_limit limit) {
    return limits[limit].name;
}

const char *hec_sweep_limit_source(enum hec_sweep_limit limit) {
    return limits[limit].source;
}

const char *hec_sweep_objective_name(enum hec_sweep_objective objective) {
    static const char *const names[] = {"joules", "time", "edp", "cost"};
    return (unsigned)objective < HEC_SWEEP_OBJECTIVES ? names[objective] : "?";
}

const char *hec_sweep_end_name(enum hec_sweep_end end) {
    static const char *const names[] = {"ran", "device_memory", "host_memory", "failed", "hung", "not_run"};
    return (unsigned)end < HEC_SWEEP_ENDS ? names[end] : "?";
}

const char *hec_sweep_passed_name(enum hec_sweep_passed passed) {
    static const char *const names[] = {"eligible",  "end",      "unknown",       "beyond_cliff", "slow",
                                        "slow_open", "over_p99", "over_p99_open", "no_headroom"};
    return (unsigned)passed < HEC_SWEEP_PASSED_COUNT ? names[passed] : "?";
}

const char *hec_sweep_cliff_name(enum hec_sweep_cliff cliff) {
    static const char *const names[] = {"none", "end", "speed_falls", "joules_rise"};
    return (unsigned)cliff < HEC_SWEEP_CLIFFS ? names[cliff] : "?";
}

/* ---- settings ---- */

static int level_of(const struct hec_sweep_plan *plan, int arm, int parameter) {
    for (int i = plan->parameters - 1; i > parameter; i--)
        arm /= plan->parameter[i].count;
    return arm % plan->parameter[parameter].count;
}

static void gather(const struct hec_sweep_trial *trials, int count, struct hec_sweep_result *out) {
    for (int i = 0; i < out->arms; i++)
        out->arm[i] = (struct hec_sweep_arm){.end = HEC_SWEEP_NOT_RUN,
                                             .memory_bytes = NAN,
                                             .memory_total = NAN,
                                             .headroom = NAN,
                                             .steps_seen = INFINITY};
    for (int i = 0; i < count; i++) {
        const struct hec_sweep_trial *t = &trials[i];
        struct hec_sweep_arm *arm = &out->arm[t->arm];
        out->cost_seconds += t->run.seconds;
        out->cost_joules += t->end == HEC_SWEEP_RAN ? t->run.joules : 0;
        if (arm->end == HEC_SWEEP_NOT_RUN || (arm->end == HEC_SWEEP_RAN && t->end != HEC_SWEEP_RAN)) {
            arm->end = t->end;
            arm->exit_status = t->exit_status;
        }
        if (t->end != HEC_SWEEP_RAN || t->round < 0)
            continue;
        arm->trials++;
        arm->steps_seen = fmin(arm->steps_seen, t->steps_seen > 0 ? t->steps_seen : 0);
        out->rounds = arm->trials > out->rounds ? arm->trials : out->rounds;
        double left = 1 - t->memory_bytes / t->memory_total;
        if (isfinite(left) && !(arm->headroom <= left)) {
            arm->headroom = left;
            arm->memory_bytes = t->memory_bytes;
            arm->memory_total = t->memory_total;
        }
    }
}

static void estimate(const struct hec_sweep_table *table, struct hec_sweep_result *out) {
    for (int i = 0; i < out->arms; i++)
        for (int f = 0; f < HEC_SWEEP_FIGURES; f++) {
            out->arm[i].figure[f] = hec_sweep_figure(table, f, i);
            out->arm[i].to_first[f] = hec_sweep_ratio(table, f, i, 0, HEC_SWEEP_OF_ONE);
            out->measured |= f == HEC_SWEEP_OBJECTIVE && isfinite(out->arm[i].figure[f].value);
        }
}

static uint64_t those_that_ran(const struct hec_sweep_result *out) {
    uint64_t set = 0;
    for (int i = 0; i < out->arms; i++)
        if (out->arm[i].end == HEC_SWEEP_RAN && out->arm[i].trials)
            set |= UINT64_C(1) << i;
    return set;
}

/* ---- lines ---- */

static void sort_by_value(const struct hec_sweep_plan *plan, struct hec_sweep_line *line) {
    const double *value = plan->parameter[line->parameter].value;
    for (int i = 1; i < line->count; i++)
        for (int k = i; k > 0 && value[level_of(plan, line->arm[k], line->parameter)] <
                                     value[level_of(plan, line->arm[k - 1], line->parameter)];
             k--) {
            int kept = line->arm[k];
            line->arm[k] = line->arm[k - 1];
            line->arm[k - 1] = kept;
        }
}

static int place_of(const struct hec_sweep_line *line, int arm) {
    for (int i = 0; i < line->count; i++)
        if (line->arm[i] == arm)
            return i;
    return -1;
}

/* Around the best, by whether a neighbour is shown to be below it. No interval: no plateau is known. */
static void find_plateau(const struct hec_sweep_table *table, uint64_t ran, struct hec_sweep_line *line) {
    double least = 1 - hec_sweep_limit(HEC_SWEEP_TOLERANCE);
    bool shown = true;
    line->plateau = line->plateau_to = line->plateau_shown = line->best;
    for (int step = -1; step <= 1; step += 2)
        for (int at = place_of(line, line->best) + step; at >= 0 && at < line->count; at += step) {
            int arm = line->arm[at];
            struct hec_sweep_interval ratio =
                hec_sweep_ratio(table, HEC_SWEEP_SPEED, arm, line->best, HEC_SWEEP_OF_ONE);
            if (!(ran >> arm & 1) || ratio.high < least)
                break;
            if (!isfinite(ratio.low)) {
                line->plateau = line->plateau_to = line->plateau_shown = -1;
                return;
            }
            if (step > 0) {
                line->plateau_to = arm;
                continue;
            }
            line->plateau = arm;
            shown &= ratio.low >= least;
            line->plateau_shown = shown ? arm : line->plateau_shown;
        }
}

static void find_cliff(const struct hec_sweep_table *table, uint64_t ran, uint64_t members,
                       struct hec_sweep_line *line) {
    double more = hec_sweep_limit(HEC_SWEEP_TOLERANCE);
    int frugal = hec_sweep_best(table, HEC_SWEEP_JOULES, members & ran);
    int best_place = place_of(line, line->best), frugal_place = place_of(line, frugal);
    line->end_arm = -1;
    for (int at = 0; at < line->count; at++) {
        int arm = line->arm[at];
        enum hec_sweep_cliff cliff = HEC_SWEEP_NO_CLIFF;
        bool runs = ran >> arm & 1;
        if (at > best_place && !runs)
            cliff = HEC_SWEEP_CLIFF_END;
        else if (at > best_place &&
                 hec_sweep_ratio(table, HEC_SWEEP_SPEED, arm, line->best, HEC_SWEEP_OF_ONE).high < 1 - more)
            cliff = HEC_SWEEP_CLIFF_SPEED;
        else if (frugal_place >= 0 && at > frugal_place && runs &&
                 hec_sweep_ratio(table, HEC_SWEEP_JOULES, arm, frugal, HEC_SWEEP_OF_ONE).low > 1 + more)
            cliff = HEC_SWEEP_CLIFF_JOULES;
        if (cliff && !line->cliff) {
            line->cliff = cliff;
            line->cliff_arm = arm;
        }
        if (cliff == HEC_SWEEP_CLIFF_END && line->end_arm < 0)
            line->end_arm = arm;
    }
}

static void find_line(const struct hec_sweep_table *table, uint64_t ran, int parameter, int from,
                      struct hec_sweep_result *out) {
    const struct hec_sweep_plan *plan = table->plan;
    struct hec_sweep_line *line = &out->line[out->lines];
    uint64_t members = 0;
    *line = (struct hec_sweep_line){.parameter = parameter, .end_arm = -1};
    for (int arm = 0; arm < plan->arms; arm++) {
        bool same = true;
        for (int p = 0; p < plan->parameters; p++)
            same &= p == parameter || level_of(plan, arm, p) == level_of(plan, from, p);
        if (!same || out->arm[arm].end == HEC_SWEEP_NOT_RUN)
            continue;
        line->arm[line->count++] = arm;
        members |= UINT64_C(1) << arm;
    }
    if (line->count < 2)
        return;
    out->lines++;
    sort_by_value(plan, line);
    line->best = hec_sweep_best(table, HEC_SWEEP_SPEED, members & ran);
    line->plateau = line->plateau_to = line->plateau_shown = -1;
    if (line->best < 0)
        return;
    find_plateau(table, ran, line);
    find_cliff(table, ran, members, line);
}

static void find_lines(const struct hec_sweep_table *table, uint64_t ran, struct hec_sweep_result *out) {
    for (int p = 0; p < table->plan->parameters; p++)
        for (int arm = 0; arm < out->arms && table->plan->parameter[p].ordered; arm++)
            if (level_of(table->plan, arm, p) == 0 && out->lines < HEC_SWEEP_LINES_MOST)
                find_line(table, ran, p, arm, out);
}

/* ---- the front ---- */

static bool dominates(const struct hec_sweep_table *table, int by, int arm) {
    static const enum hec_sweep_figure figures[] = {HEC_SWEEP_JOULES, HEC_SWEEP_SPEED, HEC_SWEEP_P99};
    bool shown = false;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        struct hec_sweep_interval r = hec_sweep_ratio(table, figures[i], by, arm, HEC_SWEEP_OF_ALL);
        bool more = figures[i] == HEC_SWEEP_SPEED;
        if (isnan(r.value) && isnan(hec_sweep_figure(table, figures[i], arm).value))
            continue; /* nothing is known of it that another could beat */
        if (!(more ? r.value >= 1 : r.value <= 1))
            return false;
        shown |= more ? r.low > 1 : r.high < 1;
    }
    return shown;
}

static void find_front(const struct hec_sweep_table *table, uint64_t ran, struct hec_sweep_result *out) {
    for (int i = 0; i < out->arms; i++) {
        out->arm[i].front = ran >> i & 1 && isfinite(out->arm[i].figure[HEC_SWEEP_OBJECTIVE].value);
        for (int k = 0; k < out->arms && out->arm[i].front; k++)
            if (k != i && ran >> k & 1)
                out->arm[i].front = !dominates(table, k, i);
    }
}

/* ---- what is recommended ---- */

static bool beyond_cliff(const struct hec_sweep_plan *plan, const struct hec_sweep_result *out, int arm) {
    for (int i = 0; i < out->lines; i++) {
        const struct hec_sweep_line *line = &out->line[i];
        const double *value = plan->parameter[line->parameter].value;
        if (line->end_arm >= 0 && place_of(line, arm) >= 0 &&
            value[level_of(plan, arm, line->parameter)] >= value[level_of(plan, line->end_arm, line->parameter)])
            return true;
    }
    return false;
}

static enum hec_sweep_passed passed_of(const struct hec_sweep_plan *plan, const struct hec_sweep_result *out,
                                       int index) {
    const struct hec_sweep_arm *arm = &out->arm[index];
    struct hec_sweep_interval speed = arm->to_first[HEC_SWEEP_SPEED], p99 = arm->figure[HEC_SWEEP_P99];
    double least = 1 - plan->max_slowdown;
    if (arm->end != HEC_SWEEP_RAN)
        return HEC_SWEEP_PASSED_END;
    if (isnan(arm->figure[HEC_SWEEP_OBJECTIVE].value))
        return HEC_SWEEP_PASSED_UNKNOWN;
    if (beyond_cliff(plan, out, index))
        return HEC_SWEEP_PASSED_CLIFF;
    if (isfinite(plan->max_slowdown) && !(speed.low >= least))
        return speed.high < least ? HEC_SWEEP_PASSED_SLOW : HEC_SWEEP_PASSED_SLOW_OPEN;
    if (isfinite(plan->max_p99) && !(p99.high <= plan->max_p99))
        return p99.low > plan->max_p99 ? HEC_SWEEP_PASSED_P99 : HEC_SWEEP_PASSED_P99_OPEN;
    return HEC_SWEEP_ELIGIBLE;
}

static bool has_headroom(const struct hec_sweep_arm *arm) {
    return !(arm->headroom < hec_sweep_limit(HEC_SWEEP_HEADROOM)); /* unknown: nothing says that it has not */
}

/* Where none that is eligible else has headroom (a framework that takes all memory at its start), it decides nothing. */
static uint64_t find_eligible(const struct hec_sweep_plan *plan, struct hec_sweep_result *out) {
    uint64_t set = 0, roomy = 0;
    for (int i = 0; i < out->arms; i++) {
        out->arm[i].passed = passed_of(plan, out, i);
        if (out->arm[i].passed)
            continue;
        set |= UINT64_C(1) << i;
        roomy |= (uint64_t)has_headroom(&out->arm[i]) << i;
    }
    out->headroom_waived = set && !roomy;
    for (int i = 0; i < out->arms && roomy; i++)
        if (set >> i & 1 && !(roomy >> i & 1))
            out->arm[i].passed = HEC_SWEEP_PASSED_HEADROOM;
    return roomy ? roomy : set;
}

/* No larger in any number, and the same in all that is none. */
static bool at_most(const struct hec_sweep_plan *plan, int arm, int other) {
    for (int p = 0; p < plan->parameters; p++) {
        int a = level_of(plan, arm, p), b = level_of(plan, other, p);
        if (plan->parameter[p].ordered ? plan->parameter[p].value[a] > plan->parameter[p].value[b] : a != b)
            return false;
    }
    return true;
}

static bool shown_better_than_first(const struct hec_sweep_table *table, int arm) {
    return hec_sweep_ratio(table, HEC_SWEEP_OBJECTIVE, arm, 0, HEC_SWEEP_OF_ALL).high < 1;
}

static void recommend(const struct hec_sweep_table *table, uint64_t eligible, struct hec_sweep_result *out) {
    double tie = 1 + hec_sweep_limit(HEC_SWEEP_TIE);
    out->best = out->recommended = hec_sweep_best(table, HEC_SWEEP_OBJECTIVE, eligible);
    for (int i = 0; i < out->arms && out->best >= 0; i++) {
        struct hec_sweep_interval r = hec_sweep_ratio(table, HEC_SWEEP_OBJECTIVE, i, out->best, HEC_SWEEP_OF_ONE);
        if (!(eligible >> i & 1) || r.low > tie)
            continue;
        out->alike |= UINT64_C(1) << i;
        if (r.value <= tie && at_most(table->plan, i, out->recommended))
            out->recommended = i;
    }
    if (out->best < 0 || !(eligible & 1) || shown_better_than_first(table, out->recommended))
        return;
    if (shown_better_than_first(table, out->best)) {
        out->recommended = out->best;
    } else if (out->recommended == 0 || !at_most(table->plan, out->recommended, 0)) {
        out->recommended = 0;
        out->kept = true;
    }
}

static void find_worse(const struct hec_sweep_table *table, uint64_t ran, struct hec_sweep_result *out) {
    double more = 1 + hec_sweep_limit(HEC_SWEEP_WORSE);
    for (int i = 1; i < out->arms && out->best >= 0; i++)
        out->arm[i].clearly_worse =
            ran >> i & 1 && out->arm[i].trials > 1 &&
            hec_sweep_ratio(table, HEC_SWEEP_OBJECTIVE, i, out->best, HEC_SWEEP_OF_ONE).low > more;
}

void hec_sweep_judge(const struct hec_sweep_plan *plan, const struct hec_sweep_trial *trials, int count,
                     struct hec_sweep_result *out) {
    struct hec_sweep_table table;
    hec_sweep_table_make(plan, trials, count, &table);
    memset(out, 0, sizeof *out);
    out->arms = plan->arms;
    out->by_run = table.by_run;
    out->objective = table.objective;
    out->best = out->recommended = -1;
    gather(trials, count, out);
    out->between_runs = out->rounds > 1;
    estimate(&table, out);
    uint64_t ran = those_that_ran(out);
    find_lines(&table, ran, out);
    find_front(&table, ran, out);
    recommend(&table, find_eligible(plan, out), out);
    find_worse(&table, ran, out);
}
