/* A sweep as data: which settings were tried in which trials, and what follows: figures with intervals, the plateau and the cliff of each
 * parameter, the front, and what is recommended. Pure: the same table gives the same result, bit for bit.
 *
 * Figures are geometric means of trials with 95 % t intervals of how trials differ; settings are compared by how their trials of
 * the same round differ, so that drift of the device cancels. With one round the intervals are of the blocks within a trial
 * (compare.h says what those do not contain), and percentiles and memory have none. Where nothing is shown, nothing is said to be so: see
 * each member. */
#pragma once

#include "prove/compare.h"

#include <stdint.h>

#define HEC_SWEEP_ARMS_MOST 64 /* a set of them is the bits of a uint64_t */
#define HEC_SWEEP_PARAMETERS_MOST 4
#define HEC_SWEEP_LINES_MOST 128
#define HEC_SWEEP_BLOCKS_MOST 60

enum hec_sweep_limit {
#define HEC_SWEEP_LIMIT(id, name, value, source) HEC_SWEEP_##id,
#include "prove/sweep_limits.def"
#undef HEC_SWEEP_LIMIT
    HEC_SWEEP_LIMITS
};
double hec_sweep_limit(enum hec_sweep_limit limit);
const char *hec_sweep_limit_name(enum hec_sweep_limit limit);
const char *hec_sweep_limit_source(enum hec_sweep_limit limit);

enum hec_sweep_objective {
    HEC_SWEEP_BY_JOULES,
    HEC_SWEEP_BY_TIME,
    HEC_SWEEP_BY_EDP,
    HEC_SWEEP_BY_COST,
    HEC_SWEEP_OBJECTIVES
};
const char *hec_sweep_objective_name(enum hec_sweep_objective objective); /* "joules" */

/* Settings are the combinations of the parameters' values, the last parameter changing first. */
struct hec_sweep_plan {
    struct {
        int count;
        bool ordered; /* its values are numbers: it has a plateau */
        double value[HEC_SWEEP_ARMS_MOST];
    } parameter[HEC_SWEEP_PARAMETERS_MOST];
    int parameters, arms;
    enum hec_sweep_objective objective;
    double max_slowdown; /* against the first setting, 0.05 is 5 %; NAN: no limit */
    double max_p99;      /* of a step, seconds; NAN: no limit */
    double dollars_per_joule, dollars_per_device_second;
};

enum hec_sweep_end {
    HEC_SWEEP_RAN,
    HEC_SWEEP_DEVICE_MEMORY, /* out of it */
    HEC_SWEEP_HOST_MEMORY,
    HEC_SWEEP_FAILED,
    HEC_SWEEP_HUNG,
    HEC_SWEEP_NOT_RUN,
    HEC_SWEEP_ENDS
};
const char *hec_sweep_end_name(enum hec_sweep_end end); /* "device_memory" */

struct hec_sweep_trial {
    int arm, round; /* round -1: a warm-up */
    enum hec_sweep_end end;
    int exit_status;
    bool stopped;                       /* ended early: nothing is known of a whole run */
    struct hec_trial_block steady, run; /* as hec_trial's */
    struct hec_trial_block block[HEC_SWEEP_BLOCKS_MOST];
    int block_count;
    double step_p50, step_p99;         /* of the steps of the steady part, seconds; NAN unknown */
    double steps_seen;                 /* behind them */
    double memory_bytes, memory_total; /* most in use, and there, on the device that has least left; NAN unknown */
    int devices;                       /* that were used */
};

enum hec_sweep_figure {
    HEC_SWEEP_SPEED,  /* units/s */
    HEC_SWEEP_JOULES, /* a unit */
    HEC_SWEEP_WATTS,
    HEC_SWEEP_P50, /* seconds of a step */
    HEC_SWEEP_P99,
    HEC_SWEEP_OBJECTIVE, /* what is to be small: J/unit, s/unit, J s/unit^2, $/unit */
    HEC_SWEEP_FIGURES
};

/* 95 %; low and high NAN: no interval is known; value NAN: nothing is. */
struct hec_sweep_interval {
    double value, low, high;
};

enum hec_sweep_passed {
    HEC_SWEEP_ELIGIBLE,
    HEC_SWEEP_PASSED_END,       /* it did not run to its end */
    HEC_SWEEP_PASSED_UNKNOWN,   /* the objective was not measured */
    HEC_SWEEP_PASSED_CLIFF,     /* at or beyond a value of a parameter that does not run */
    HEC_SWEEP_PASSED_SLOW,      /* shown to be slower than the first setting by more than max_slowdown */
    HEC_SWEEP_PASSED_SLOW_OPEN, /* not shown to be within max_slowdown */
    HEC_SWEEP_PASSED_P99,       /* shown to be over max_p99 */
    HEC_SWEEP_PASSED_P99_OPEN,  /* not shown to be within max_p99 */
    HEC_SWEEP_PASSED_HEADROOM,  /* too little memory left */
    HEC_SWEEP_PASSED_COUNT
};
const char *hec_sweep_passed_name(enum hec_sweep_passed passed);

struct hec_sweep_arm {
    enum hec_sweep_end end; /* of its trials the first that did not run to its end */
    int exit_status;
    int trials; /* that count and ran to their end */
    struct hec_sweep_interval figure[HEC_SWEEP_FIGURES];
    struct hec_sweep_interval to_first[HEC_SWEEP_FIGURES]; /* ratio to the first setting, by rounds */
    double memory_bytes, memory_total, headroom; /* most of all trials; headroom: share that is left; NAN unknown */
    double steps_seen;                           /* fewest of a trial */
    enum hec_sweep_passed passed;
    bool
        front; /* no other setting is shown to be better in one of J/unit, units/s and p99 while it is as good in the others */
    bool clearly_worse; /* than the best: it need not run again */
};

enum hec_sweep_cliff {
    HEC_SWEEP_NO_CLIFF,
    HEC_SWEEP_CLIFF_END,    /* a value does not run: arm's end says why */
    HEC_SWEEP_CLIFF_SPEED,  /* throughput is shown to fall by more than the tolerance */
    HEC_SWEEP_CLIFF_JOULES, /* joules a unit are shown to rise by more than it */
    HEC_SWEEP_CLIFFS
};
const char *hec_sweep_cliff_name(enum hec_sweep_cliff cliff);

/* One ordered parameter, all others fixed. Arms in the order of its values. */
struct hec_sweep_line {
    int parameter, count;
    int arm[HEC_SWEEP_ARMS_MOST];
    int best; /* arm with the most units/s; -1: not measured */
    int plateau,
        plateau_to;    /* arms: around the best, all that are not shown to be below it by more than the tolerance; -1 */
    int plateau_shown; /* the smallest from which on all are shown to be within the tolerance: at most the best */
    enum hec_sweep_cliff cliff; /* the first above the best in throughput, or the least in joules */
    int cliff_arm;
    int end_arm; /* the first above the best in throughput that does not run; -1: none */
};

struct hec_sweep_result {
    struct hec_sweep_arm arm[HEC_SWEEP_ARMS_MOST];
    int arms, rounds;                   /* rounds: of the setting that has most trials */
    bool by_run;                        /* no units of work: a unit is a whole run */
    bool measured;                      /* the objective is known of a setting */
    bool between_runs;                  /* false: one round, intervals are from within trials */
    enum hec_sweep_objective objective; /* asked for, but time where joules are not known */
    struct hec_sweep_line line[HEC_SWEEP_LINES_MOST];
    int lines;
    int best;        /* of the eligible, by the measured objective; -1: none is */
    uint64_t alike;  /* eligible ones that are not shown to be worse by more than the tie, itself too */
    int recommended; /* the smallest of those alike that is measured within the tie; -1: none */
    bool kept;       /* it is the first setting, and none is shown to be better (at 95 % for all of them together) */
    bool headroom_waived;             /* no setting that is else eligible has it */
    double cost_joules, cost_seconds; /* of all trials; joules NAN: not measured in all that ran */
};

/* Trials in any order. */
void hec_sweep_judge(const struct hec_sweep_plan *plan, const struct hec_sweep_trial *trials, int count,
                     struct hec_sweep_result *out);
