/* Two sets of runs: how they differ, and whether that is shown. Pure: the same trials and options give the same result, bit for bit.
 *
 * Figures are ratios of totals (all joules by all units). Their intervals are t intervals of the log of the ratio:
 * - several runs a side: by how runs differ, weighted by their work (Welch 1947, degrees of freedom of Satterthwaite and of Bell and
 *   McCaffrey), which contains what happens within them. A percentile bootstrap over 2 to 8 runs is far too narrow.
 * - pairs of an interleaved experiment: by how pairs differ, so that drift of the device, which a pair shares, cancels.
 * - one run a side: by the blocks of the run itself (circular block bootstrap, respects autocorrelation).
 *
 * What holds (bench/prove; docs/prove.md has the table): 93 to 98 % of the 95 % intervals hold the truth with 2 to 10 runs a side, and with
 * one where runs do not differ. With two a side the intervals are wide, and rather too wide.
 * What does not: one run a side does not contain what runs differ by (clocks, host, placement of memory): with 1 % of it and a long
 * run only a quarter to a half of the intervals hold, with 5 % a tenth. `between_runs` is false then. Nor does any interval contain what
 * differs between the sides and is no part of the change, as all of A before all of B on a device that warms up: that is what pairs are
 * for. */
#pragma once

#include "prove/student.h"
#include "prove/trial.h"

/* What is compared. Less is better, where nothing else is said. */
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
    HEC_SHOWN_NOT, /* the interval of the ratio holds 1, or there is none */
    HEC_SHOWN_BETTER,
    HEC_SHOWN_WORSE,
    HEC_SHOWN_CHANGED, /* of a quantity that is neither better nor worse */
    HEC_SHOWN_UNKNOWN  /* not measured on a side */
};

/* Intervals are of 95 %, or of the confidence asked for; NAN: nothing is known of the spread. */
struct hec_comparison {
    /* Means: of runs, or of the work of all runs for what is by unit; NAN: not measured. */
    double a, b;
    /* b - a and b / a with 95 % bounds; NAN: no interval, nothing is known of the spread. */
    double difference, difference_low, difference_high;
    double ratio, ratio_low, ratio_high;
    enum hec_shown shown;
    int runs_a, runs_b; /* that have the quantity, and a partner where all are pairs */
    bool paired;
    /* False: one run on either side, the interval is of their own steps alone. One against several is taken to be off by as
     * much as one of those. */
    bool between_runs;
};

struct hec_compare_options {
    double confidence; /* 0: 0.95 */
};

/* out[HEC_QUANTITY_COUNT]. HEC_ERR_NOMEM. */
int hec_compare(const struct hec_trial *a, int count_a, const struct hec_trial *b, int count_b,
                const struct hec_compare_options *options, struct hec_comparison *out);

/* Whether it is of whole runs: it says nothing where runs are ended early. */
bool hec_quantity_of_whole_runs(enum hec_quantity quantity);
/* What a trial says of it; NAN: not measured, or 0. */
double hec_quantity_value(enum hec_quantity quantity, const struct hec_trial *trial);
/* What the blocks of one trial say of its own figure: the variance of its log; NAN: nothing. HEC_ERR_NOMEM. */
int hec_quantity_within(enum hec_quantity quantity, const struct hec_trial *trial, struct hec_spread *spread);
/* 1: more is better; -1: less is; 0: neither. */
int hec_quantity_better(enum hec_quantity quantity);

/* How well the mean of an autocorrelated series is known from the series itself. */
#define HEC_BLOCKS_LEAST 8 /* a shorter series says nothing of its own autocorrelation */

struct hec_blocks {
    double variance; /* of the mean; NAN: too short */
    double freedom;  /* degrees of freedom that this variance is worth */
    int length;      /* of a block */
};

/* e[count]: in order of time; it is overwritten. */
struct hec_blocks hec_blocks_variance(double *e, int count);
