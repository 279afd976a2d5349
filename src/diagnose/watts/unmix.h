/* Unmixing: what each class of activity (a state, a kernel class) took, from readings that mix them.
 *
 * A device is in one class at a time (pieces). A reading is a mean over a window, so it is the sum over classes of the
 * share of the window's time times the class's own watts; with enough windows whose shares differ, the watts follow by
 * least squares:
 *
 *     power sample   y_i = sum_k alpha_k sum_c x_ic(d_k) w_c + e_i
 *                          x_ic(d): share of class c in (t - span + d, t + d]
 *     counter window J_j / s_j = sum_c x_jc w_c + e_j
 *     total          sum_c w_c T_c = E  exactly;  w_c >= 0
 *
 * A power sensor is late and filtered. alpha, one response of the sensor for all classes (13 taps from -60 to +60 ms,
 * sum 1, of either sign), is fitted with the watts: the lag is its mean, sum alpha_k d_k (negative: the sample shows
 * of earlier time), and the taps around stand for a filter and for lags between two taps. Counter windows are exact in
 * time. Each of the two kinds counts by the variance of its own residuals, over a run of correlated ones.
 *
 * Intervals are 95 %. Residuals of power samples are correlated (the sensor is a filter, classes vary), so the
 * covariance is the sandwich B M B: B is the inverse of the normal equations (of w and alpha together, so that the
 * unknown lag and filter are in it), M the sum of outer products of the scores of blocks of time of 0.25 s or more,
 * with Bartlett's weight 1/2 for neighbours (Newey and West, Econometrica 55, 1987), scores corrected for leverage and
 * Student's t with the degrees of freedom of Bell and McCaffrey (Survey Methodology 28, 2002). How it was checked and
 * with what figures: docs/decisions/0007-unmixing.md.
 *
 * What is asked for is what a class took in this run. So far as the exact windows show that a class was itself above or
 * below its mean for a while, that is no error of the estimate and is taken out of the scores.
 *
 * Beliefs (hec_unmix_believe) take part as readings of their own: watts +- a standard deviation, and how far the class
 * follows one common level that nobody knows exactly (idling with a context, of which the idle states are kinds). Where
 * readings show more they decide. Where they do not, as in a loop of equal short steps or in a class of milliseconds,
 * the beliefs and the total do, with the intervals that follow from them: `basis` says which.
 *
 * The same for utilisation counters (hec_unmix_counter): shares in [0, 1], bounded least squares, no total, no lag.
 *
 * Order of calls: begin; then per instant of time, in any order between kinds but each ascending, piece, power, window
 * and counter, where a reading is given before the pieces go more than 1 s past its t (all readings first is fine: they
 * wait in a queue of 32 bytes each, see readings_first); total; solve any number of times; free. Memory does not depend on the length of
 * the run but for that queue. The result depends on nothing but the input. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEC_UNMIX_CLASSES 32
#define HEC_UNMIX_COUNTERS 16
#define HEC_UNMIX_QUIETS 3

struct hec_unmix;

/* A power sensor: a sample is the mean of a window whose middle lies so long before its time stamp. */
struct hec_unmix_sensor {
    int64_t window_ns, delay_ns;
};

struct hec_unmix_options {
    int classes;    /* 1..HEC_UNMIX_CLASSES */
    int counters;   /* 0..HEC_UNMIX_COUNTERS: kinds of utilisation counters */
    double limit_w; /* the device's power limit, to flag classes above it; NAN unknown */
    /* Sets of classes (bit c) whose power varies little: samples of those alone count by residuals of their own. */
    uint32_t quiet[HEC_UNMIX_QUIETS];
    bool readings_first; /* all are given before the first piece, so that time without any takes nothing */
    /* kin[c]: 1 + the class that c is a kind of; 0: of none. The kinds are one class in the result, under that number, but
     * each may take more or less than it by kin_sd of the mean power (standard deviation). */
    uint8_t kin[HEC_UNMIX_CLASSES];
    double kin_sd;
    struct hec_unmix_sensor sensor; /* as measured by hec calibrate; window_ns 0: not known, fitted */
};

/* Why an estimate of a class must not be used. */
enum hec_unmix_flaw {
    HEC_UNMIX_GOOD,
    HEC_UNMIX_SHORT,     /* less than 2 s of readings, or fewer readings than unknowns */
    HEC_UNMIX_UNSEEN,    /* no reading covers any of it, or the class never occurred */
    HEC_UNMIX_LITTLE,    /* less than 0.1 s of it in all */
    HEC_UNMIX_IMPRECISE, /* the interval is wider than +-30 % (of a quarter of the mean at least) */
    HEC_UNMIX_ALIKE,     /* power samples alone, of steps so alike that the sensor's delay is unknown */
    HEC_UNMIX_FLAWS
};

enum hec_unmix_basis {
    HEC_UNMIX_NOTHING,
    HEC_UNMIX_SAMPLES, /* power samples with the sensor's fitted response, and the counter's windows */
    HEC_UNMIX_WINDOWS, /* the counter's windows, and samples of times that were all alike for 0.1 s about them */
    HEC_UNMIX_BELIEFS  /* too few of those: what was believed beforehand, and the total */
};

struct hec_unmix_class {
    double seconds;   /* of the pieces, and hec_unmix_extra */
    double seen_s;    /* of them, in readings */
    double value;     /* watts, or the share 0..1; the best guess also where flaw is set; NAN when there is none */
    double low, high; /* 95 %; where at_zero (and at a share of 1), one-sided: the other end is the bound itself */
    double joules;    /* value x seconds; of a counter: the counter's seconds */
    enum hec_unmix_flaw flaw;
    /* lowest class of the group it never varied independently of, whose common value this is: its own number in that
     * one; -1: alone */
    int merged_with;
    bool at_zero;     /* the least squares wanted it negative */
    bool above_limit; /* the estimate is above limit_w. Not an error: bursts exceed a cap that holds on the average */
};

struct hec_unmix_result {
    int classes;
    struct hec_unmix_class class[HEC_UNMIX_CLASSES];
    bool valid; /* at least one class is good, or there were beliefs and a total */
    enum hec_unmix_basis basis;
    double joules;                  /* sum over classes: the total, where there was one and valid */
    double total_j, total_bound_j;  /* as given; NAN none */
    double covered_s;               /* time of all pieces */
    int64_t power_used, power_left; /* samples in the fit; not: late, too long, or not covered by pieces */
    int64_t window_used, window_left;
    /* false: the steps are too alike to show the sensor's delay; of the power samples only those were used that no
     * delay changes. power_used, power_left count all the same. */
    bool lag_known;
    double lag_ns;                              /* NAN without power samples that were used */
    int64_t window_ns;                          /* of the sensor, as fitted or given; 0: each sample's own span */
    double power_residual_w, window_residual_w; /* root mean square; NAN none */
    double power_r2, window_r2;                 /* 1 - residual / variance about the mean; NAN none */
    double power_inflation,
        window_inflation; /* variance of sums over a block against that of independent residuals, 1..30 */
    int blocks;
    double block_s;
};

/* 0, HEC_ERR_USAGE or HEC_ERR_NOMEM. */
int hec_unmix_begin(const struct hec_unmix_options *options, struct hec_unmix **out);
void hec_unmix_free(struct hec_unmix *unmix);

/* Seconds of a class outside of the pieces (a trace that was on part of the time): counts in seconds, joules, total. */
int hec_unmix_extra(struct hec_unmix *unmix, int class, double seconds);

/* Mean power over (t - span, t]. NAN is missing and ignored. 0 or HEC_ERR_NOMEM. */
int hec_unmix_power(struct hec_unmix *unmix, int64_t t_ns, int64_t span_ns, double watts);
/* Energy over a window; sigma_j: standard error of reading it. Where each of its two ends is known within s seconds
 * (put it in the middle), that is s / sqrt(6) times the mean power. 0: none. */
int hec_unmix_window(struct hec_unmix *unmix, int64_t start_ns, int64_t end_ns, double joules, double sigma_j);
/* Mean of counter number `counter` over a window, as a share 0..1. */
int hec_unmix_counter(struct hec_unmix *unmix, int counter, int64_t start_ns, int64_t end_ns, double share);
/* What is believed of a class before any reading: watts, give or take sd (> 0), apart from the common level, of whose error
 * it takes factor times as much. Of a class without: the mean of all, give or take as much. floor: it takes at least so
 * many watts; 0: nothing known. 0 or HEC_ERR_USAGE. */
struct hec_unmix_belief {
    double watts, sd, factor, floor;
};
int hec_unmix_believe(struct hec_unmix *unmix, int class, const struct hec_unmix_belief *belief);
void hec_unmix_level(struct hec_unmix *unmix, double sd); /* of the common level, W; 0 before */
/* Part of the time of classes with kinds in which the same came in the same order again and again; 0 before. What errs in
 * one step of a loop (a kernel's own watts, the sensor's response, an edge) errs in each: it does not average out. */
void hec_unmix_repeats(struct hec_unmix *unmix, double part);
/* Mean watts of the power samples about which the device was in this class alone for 0.14 s at least, for any delay
 * of the sensor, into *watts, and of how much time. Before hec_unmix_solve. 0 s: NAN. */
int hec_unmix_alone(struct hec_unmix *unmix, int class, double *watts, double *seconds);
/* The longest time over which the sensor may average a sample, as far as the readings show. Before hec_unmix_solve. */
int hec_unmix_reach(struct hec_unmix *unmix, int64_t *reach_ns);

/* Energy over all the time of pieces and extras, and its 95 % bound. NAN: none. */
void hec_unmix_total(struct hec_unmix *unmix, double joules, double bound_j);

/* 0 (also when nothing is valid: see flaw), HEC_ERR_NOMEM, or HEC_ERR_FAILED for readings that are not finite. */
int hec_unmix_solve(struct hec_unmix *unmix, struct hec_unmix_result *out);
int hec_unmix_solve_counter(struct hec_unmix *unmix, int counter, struct hec_unmix_result *out);
