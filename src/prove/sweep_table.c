#include "prove/sweep_table.h"

#include "prove/student.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-9 /* as in compare.c */
#define NOTHING ((struct hec_sweep_interval){NAN, NAN, NAN})

/* ---- one trial ---- */

static struct hec_trial_block work_of(const struct hec_sweep_table *t, const struct hec_sweep_trial *trial) {
    struct hec_trial_block work = t->by_run ? trial->run : trial->steady;
    if (t->by_run)
        work.units = trial->stopped ? NAN : 1;
    return work;
}

static double positive(double value) {
    return isfinite(value) && value > 0 ? value : NAN;
}

/* Dollars of a unit, and the part of them that is energy. */
static double cost_of(const struct hec_sweep_table *t, const struct hec_sweep_trial *trial, double joules,
                      double seconds, double *energy_share) {
    double energy = joules * t->plan->dollars_per_joule;
    double time = seconds * trial->devices * t->plan->dollars_per_device_second;
    *energy_share = energy / (energy + time);
    return energy + time;
}

static double value_of(const struct hec_sweep_table *t, const struct hec_sweep_trial *trial,
                       enum hec_sweep_figure figure) {
    struct hec_trial_block work = work_of(t, trial);
    double seconds = positive(work.seconds) / positive(work.units),
           joules = positive(work.joules) / positive(work.units);
    double share;
    switch (figure) {
    case HEC_SWEEP_SPEED:
        return 1 / seconds;
    case HEC_SWEEP_JOULES:
        return joules;
    case HEC_SWEEP_WATTS:
        return positive(work.joules) / positive(work.seconds);
    case HEC_SWEEP_P50:
        return positive(trial->step_p50);
    case HEC_SWEEP_P99:
        return positive(trial->step_p99);
    case HEC_SWEEP_OBJECTIVE:
    case HEC_SWEEP_FIGURES:
        break;
    }
    switch (t->objective) {
    case HEC_SWEEP_BY_JOULES:
        return joules;
    case HEC_SWEEP_BY_EDP:
        return joules * seconds;
    case HEC_SWEEP_BY_COST:
        return positive(cost_of(t, trial, joules, seconds, &share));
    case HEC_SWEEP_BY_TIME:
    case HEC_SWEEP_OBJECTIVES:
        break;
    }
    return seconds;
}

static struct hec_spread within(const struct hec_trial *of, enum hec_quantity quantity) {
    struct hec_spread spread;
    return hec_quantity_within(quantity, of, &spread) < 0 ? (struct hec_spread){NAN, NAN} : spread;
}

/* What blocks say of the log of a trial's value. A product of joules and time is known as badly as if both were off together. */
static struct hec_spread within_trial(const struct hec_sweep_table *t, const struct hec_sweep_trial *trial,
                                      enum hec_sweep_figure figure) {
    struct hec_trial_block blocks[HEC_SWEEP_BLOCKS_MOST];
    struct hec_trial of = {.whole = trial->steady, .run = trial->run, .block = blocks, .pair = -1};
    struct hec_trial_block work = work_of(t, trial);
    double joules_part = 0, time_part = 0;
    if (t->by_run || figure == HEC_SWEEP_P50 || figure == HEC_SWEEP_P99)
        return (struct hec_spread){NAN, NAN};
    of.block_count = trial->block_count < HEC_SWEEP_BLOCKS_MOST ? trial->block_count : HEC_SWEEP_BLOCKS_MOST;
    memcpy(blocks, trial->block, sizeof blocks);
    if (figure == HEC_SWEEP_WATTS)
        return within(&of, HEC_QUANTITY_WATTS);
    if (figure == HEC_SWEEP_SPEED || (figure == HEC_SWEEP_OBJECTIVE && t->objective != HEC_SWEEP_BY_JOULES))
        time_part = 1;
    if (figure == HEC_SWEEP_JOULES || (figure == HEC_SWEEP_OBJECTIVE && t->objective != HEC_SWEEP_BY_TIME))
        joules_part = 1;
    if (figure == HEC_SWEEP_OBJECTIVE && t->objective == HEC_SWEEP_BY_COST) {
        cost_of(t, trial, work.joules / work.units, work.seconds / work.units, &joules_part);
        time_part = 1 - joules_part;
    }
    struct hec_spread time = within(&of, HEC_QUANTITY_UNITS_PER_SECOND),
                      joules = within(&of, HEC_QUANTITY_JOULES_PER_UNIT);
    if (!(time_part > 0))
        return joules;
    if (!(joules_part > 0))
        return time;
    double deviation = joules_part * sqrt(joules.variance) + time_part * sqrt(time.variance);
    double freedom = fmin(joules.freedom, time.freedom);
    return (struct hec_spread){deviation * deviation, freedom};
}

/* ---- the table ---- */

static bool by_unit(const struct hec_sweep_trial *trial) {
    return positive(trial->steady.units) > 0 && positive(trial->steady.seconds) > 0;
}

/* By whole runs only where no trial has units of work: beside one that counts them, what another did is not known. */
static bool goes_by_run(const struct hec_sweep_table *t) {
    for (int arm = 0; arm < t->plan->arms; arm++)
        for (int round = 0; round < t->rounds; round++)
            if (t->at[arm][round] && by_unit(t->at[arm][round]))
                return false;
    return true;
}

static bool joules_known(const struct hec_sweep_table *t) {
    for (int arm = 0; arm < t->plan->arms; arm++)
        for (int round = 0; round < t->rounds; round++)
            if (t->at[arm][round] && isfinite(value_of(t, t->at[arm][round], HEC_SWEEP_JOULES)))
                return true;
    return false;
}

void hec_sweep_table_make(const struct hec_sweep_plan *plan, const struct hec_sweep_trial *trials, int count,
                          struct hec_sweep_table *out) {
    memset(out, 0, sizeof *out);
    out->plan = plan;
    for (int i = 0; i < count; i++) {
        const struct hec_sweep_trial *t = &trials[i];
        if (t->end != HEC_SWEEP_RAN || t->round < 0 || t->round >= HEC_SWEEP_ROUNDS_MOST || t->arm >= plan->arms)
            continue;
        out->at[t->arm][t->round] = t;
        out->rounds = t->round + 1 > out->rounds ? t->round + 1 : out->rounds;
    }
    for (int of = 0; of < HEC_SWEEP_OF; of++) {
        int comparisons = of == HEC_SWEEP_OF_ALL && plan->arms > 2 ? plan->arms - 1 : 1;
        out->confidence[of] = 1 - (1 - HEC_SWEEP_CONFIDENCE) / comparisons;
        for (int n = 2; n <= out->rounds; n++)
            out->times[of][n] = hec_student_quantile((1 + out->confidence[of]) / 2, n - 1);
    }
    out->by_run = goes_by_run(out);
    out->objective = plan->objective == HEC_SWEEP_BY_TIME || joules_known(out) ? plan->objective : HEC_SWEEP_BY_TIME;
}

/* ---- settings ---- */

/* From n logs: by how they differ; from one: by what is known within. */
static struct hec_sweep_interval interval_of(const struct hec_sweep_table *t, const double *logs, int n,
                                             struct hec_spread one, enum hec_sweep_of of) {
    double weight[HEC_SWEEP_ROUNDS_MOST], residual[HEC_SWEEP_ROUNDS_MOST], mean = 0;
    if (!n)
        return NOTHING;
    for (int i = 0; i < n; i++)
        mean += logs[i] / n;
    for (int i = 0; i < n; i++) {
        weight[i] = 1.0 / n;
        residual[i] = logs[i] - mean;
    }
    double half = n > 1 ? t->times[of][n] * sqrt(hec_spread_mean(weight, residual, n).variance)
                        : hec_spread_half(one, t->confidence[of]);
    if (half < ROUNDING) /* trials without any noise: simulated ones */
        half = ROUNDING;
    return (struct hec_sweep_interval){exp(mean), exp(mean - half), exp(mean + half)};
}

struct hec_sweep_interval hec_sweep_figure(const struct hec_sweep_table *t, enum hec_sweep_figure figure, int arm) {
    const struct hec_sweep_trial *one = NULL;
    double logs[HEC_SWEEP_ROUNDS_MOST] = {0};
    int n = 0;
    for (int round = 0; round < t->rounds; round++) {
        double value = t->at[arm][round] ? value_of(t, t->at[arm][round], figure) : NAN;
        if (!isfinite(value))
            continue;
        logs[n++] = log(value);
        one = t->at[arm][round];
    }
    struct hec_spread spread = n == 1 ? within_trial(t, one, figure) : (struct hec_spread){NAN, NAN};
    return interval_of(t, logs, n, spread, HEC_SWEEP_OF_ONE);
}

struct hec_sweep_interval hec_sweep_ratio(const struct hec_sweep_table *t, enum hec_sweep_figure figure, int arm,
                                          int to, enum hec_sweep_of of) {
    double logs[HEC_SWEEP_ROUNDS_MOST] = {0};
    int n = 0, last = 0;
    for (int round = 0; round < t->rounds; round++) {
        const struct hec_sweep_trial *a = t->at[arm][round], *b = t->at[to][round];
        double ratio = a && b ? value_of(t, a, figure) / value_of(t, b, figure) : NAN;
        if (!isfinite(ratio))
            continue;
        logs[n++] = log(ratio);
        last = round;
    }
    if (n && arm == to)
        return (struct hec_sweep_interval){1, 1, 1};
    struct hec_spread spread = {NAN, NAN};
    if (n == 1)
        spread = hec_spread_sum(within_trial(t, t->at[arm][last], figure), within_trial(t, t->at[to][last], figure));
    return interval_of(t, logs, n, spread, of);
}

int hec_sweep_best(const struct hec_sweep_table *t, enum hec_sweep_figure figure, uint64_t set) {
    int best = -1, reference = -1, most = 0;
    double least = INFINITY;
    for (int arm = 0; arm < t->plan->arms; arm++) { /* all are held against the one with most trials */
        int n = 0;
        for (int round = 0; round < t->rounds; round++)
            n += set >> arm & 1 && t->at[arm][round] && isfinite(value_of(t, t->at[arm][round], figure));
        if (n > most) {
            most = n;
            reference = arm;
        }
    }
    for (int arm = 0; arm < t->plan->arms && reference >= 0; arm++) {
        double ratio = set >> arm & 1 ? hec_sweep_ratio(t, figure, arm, reference, HEC_SWEEP_OF_ONE).value : NAN;
        ratio = figure == HEC_SWEEP_SPEED ? 1 / ratio : ratio;
        if (ratio < least) {
            least = ratio;
            best = arm;
        }
    }
    return best;
}
