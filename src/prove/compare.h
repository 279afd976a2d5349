/* Two sets of runs: how they differ, and whether that is shown. Pure: the same trials, options and seed give the same result,
 * bit for bit.
 *
 * Runs are the outer level, blocks of a run the inner one. With two or more runs a side, runs (or pairs of an interleaved
 * experiment) are resampled, and within each of them consecutive blocks (circular block bootstrap: Politis and Romano 1992, the length of
 * blocks by the autocorrelation of the run itself: Politis and White 2004). With one run a side only the inner level is known, and what
 * runs differ by is not in the interval: `between_runs` says so. */
#ifndef HEC_PROVE_COMPARE_H
#define HEC_PROVE_COMPARE_H

#include "prove/trial.h"

#include <stdint.h>

/* What is compared. The first of a pair is better where it is smaller, unless `more_is_better`. */
enum hec_quantity {
    HEC_QUANTITY_SECONDS,          /* of the whole run */
    HEC_QUANTITY_JOULES,           /* of the whole run */
    HEC_QUANTITY_JOULES_PER_UNIT,  /* steady part */
    HEC_QUANTITY_UNITS_PER_SECOND, /* steady part; more is better */
    HEC_QUANTITY_SECONDS_PER_STEP, /* steady part */
    HEC_QUANTITY_WATTS,            /* steady part; neither is better */
    HEC_QUANTITY_COUNT
};

enum hec_shown {
    HEC_SHOWN_NOT, /* the interval of the ratio holds 1 */
    HEC_SHOWN_BETTER,
    HEC_SHOWN_WORSE,
    HEC_SHOWN_CHANGED, /* of a quantity that is neither better nor worse */
    HEC_SHOWN_UNKNOWN  /* not measured on a side */
};

struct hec_comparison {
    double a, b; /* means: of runs, or of the work of all runs for what is by unit */
    double difference, difference_low, difference_high; /* b - a, 95 % */
    double ratio, ratio_low, ratio_high;                /* b / a, 95 % */
    enum hec_shown shown;
    int runs_a, runs_b; /* that have the quantity */
    bool between_runs;  /* false: one run on a side, its interval is of its own steps alone */
};

struct hec_compare_options {
    int resamples;     /* 0: 4000 */
    uint64_t seed;     /* 0: 1 */
    double confidence; /* 0: 0.95 */
};

/* out[HEC_QUANTITY_COUNT]. HEC_ERR_NOMEM. */
int hec_compare(const struct hec_trial *a, int count_a, const struct hec_trial *b, int count_b,
                const struct hec_compare_options *options, struct hec_comparison *out);

#endif
