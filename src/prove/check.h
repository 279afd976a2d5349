/* Has a program become worse than its baseline by more than a limit? Trials of now against trials of then. Pure.
 *
 * The two sets ran at different times, so nothing that lies between the sessions cancels, as it does in pairs: whoever calls
 * sees to it that device, driver, host and work are the same. The interval is that of two sets of runs (prove/compare.h, Welch): by how
 * trials of each side differ. */
#pragma once

#include "prove/experiment.h"

enum hec_check_state {
    HEC_CHECK_WITHIN,    /* the whole interval lies within the limit */
    HEC_CHECK_REGRESSED, /* the whole interval lies beyond it */
    HEC_CHECK_UNSURE     /* it holds the limit, or nothing is known */
};

enum hec_check_what { HEC_CHECK_JOULES, HEC_CHECK_TIME, HEC_CHECKS };

/* One of them; "more" is always worse: time is that of a unit of work. */
struct hec_check_part {
    bool asked;
    double limit;               /* 0.03: 3 % more than the baseline */
    enum hec_quantity quantity; /* what it was read from: by unit of work, where that is known, else of whole trials */
    double baseline, now;       /* joules or seconds, of a unit or a trial; NAN: not measured */
    double ratio, low, high;    /* now by baseline, with its 95 % interval; NAN: not known */
    enum hec_check_state state;
    int trials_needed; /* now, if they vary as they do, until the interval leaves the limit out; 0: unknown, or enough */
};

struct hec_check {
    enum hec_check_state state; /* regressed where a part is, else unsure where a part is */
    struct hec_check_part part[HEC_CHECKS];
    int trials_baseline, trials_now;
};

/* limit[HEC_CHECKS]: NAN is not asked. Warm-ups and trials of B do not count. HEC_ERR_NOMEM. */
int hec_check_judge(const struct hec_experiment_trial *baseline, int baseline_count,
                    const struct hec_experiment_trial *now, int now_count, const double limit[HEC_CHECKS],
                    struct hec_check *out);
