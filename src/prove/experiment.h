/* An interleaved experiment as data: its plan, its raw table of trials, and what follows from them. Pure: who runs it judges after
 * each pair with the same function as who checks the receipt later, and both get the same, bit for bit. */
#pragma once

#include "prove/compare.h"
#include "prove/quality.h"
#include "prove/sequential.h"

#include <stdint.h>

/* After how much work tuning has paid: what it cost to find and prove a saving, against the saving on each unit of work (or step);
 * and the soonest and latest by the 95 % interval of the saving. */
struct hec_breakeven {
    bool shown;                   /* false: no saving is shown, and nothing below is known */
    double work, soonest, latest; /* units or steps; INFINITY: the interval holds no saving at its end */
};

/* cost: joules or seconds of everything that would not have been spent otherwise: trials of A and B, compiling, tuning. saving: of the same
 * by a unit or a step (HEC_QUANTITY_JOULES_PER_UNIT, HEC_QUANTITY_SECONDS_PER_STEP). A cost of 0 has paid at once; of a cost
 * that is not known (NAN) or negative nothing is. */
struct hec_breakeven hec_breakeven_after(double cost, const struct hec_comparison *saving);

#define HEC_EXPERIMENT_PAIRS_MOST 40 /* where nothing else is asked for */
#define HEC_EXPERIMENT_UNTIL 0.01    /* precise enough to stop without anything shown */
#define HEC_EXPERIMENT_BINS 32       /* of a trial's losses: equal numbers of steps */

struct hec_experiment_plan {
    uint64_t seed; /* of the order within pairs: hec_sequential_b_first */
    int pairs;     /* so many, and t intervals; 0: until something is shown, and intervals that hold at every look */
    double
        until; /* of the ratio, 0.01 is 1 % to either side: stop only when known so precisely; 0: as soon as anything is shown, or
                      when known to HEC_EXPERIMENT_UNTIL and nothing is */
    int pairs_most;                     /* without `pairs`; 0: HEC_EXPERIMENT_PAIRS_MOST */
    double margin;                      /* of the quality gate; 0: HEC_QUALITY_MARGIN */
    double spent_joules, spent_seconds; /* before the first trial, by a search: charged; joules NAN: not known */
    double saving_least;                /* 0.02: a saving shown that is smaller is not kept; 0: any is */
    /* B / A as a search saw it, of joules by unit and of units a second, from what the pairs have no part in; 0: nothing is expected */
    double expected_cost, expected_speed;
    bool large_effects; /* pairs are judged for these too: prove/sequential.h; false: as older builds did */
    bool gradients;     /* B is the same command: its gradients are to be as large as A's */
    int64_t loss_steps; /* the losses' parts are of the first so many steps of each trial; 0: no losses */
};

/* One trial. Blocks are not kept: pairs are what an interval comes from. */
struct hec_experiment_trial {
    int pair;                      /* -1: a warm-up, which counts for the cost alone */
    int side;                      /* 0: A, 1: B */
    bool stopped;                  /* ended early: figures of the whole run count for the cost alone */
    struct hec_trial_block steady; /* as hec_trial's whole */
    struct hec_trial_block run;
    double loss
        [HEC_EXPERIMENT_BINS]; /* mean of each part of the steps; NAN: none was recorded in it; INFINITY: one that is not finite */
    int loss_count;            /* values behind them */
    struct hec_gradients gradients;
};

struct hec_experiment_result {
    int pairs;                /* complete ones */
    enum hec_quantity judged; /* the one that decides: joules by unit, else joules, units a second, seconds */
    struct hec_look look;     /* of it */
    bool done;                /* by the plan: no pair more is needed */
    struct hec_comparison quantity[HEC_QUANTITY_COUNT];
    struct hec_quality quality;
    double cost_joules, cost_seconds;     /* of all trials, warm-ups too; joules NAN: not measured in all */
    struct hec_breakeven joules, seconds; /* after how many units of work it has paid */
};

/* HEC_ERR_NOMEM. Trials in any order; an odd one without its partner counts for the cost. */
int hec_experiment_judge(const struct hec_experiment_plan *plan, const struct hec_experiment_trial *trials, int count,
                         struct hec_experiment_result *out);
