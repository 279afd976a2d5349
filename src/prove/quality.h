/* Does B still do the same work as well as A? What the reruns of B recorded (a loss at each step, or outputs) against reruns of A. A
 * non-inferiority test: B passes when the 95 % bound of what it is off, which comes from how reruns of A (and of B) differ among
 * themselves, lies within the margin; a difference that is merely not significant is no pass. */
#pragma once

#include <stdbool.h>

enum hec_quality_kind {
    HEC_QUALITY_LOSS, /* falls while the program learns. Its mean (after the start) and its end must not be worse; these and the start
                          fail where they are shown to be off either way: a loss well below what reruns of A reach comes of other work */
    HEC_QUALITY_OUTPUT /* value i is of the same input in all runs; how far they are off, value by value */
};

enum hec_quality_verdict { HEC_QUALITY_PASS, HEC_QUALITY_FAIL, HEC_QUALITY_CANNOT_JUDGE };

enum hec_quality_why {
    HEC_QUALITY_WITHIN,       /* pass */
    HEC_QUALITY_NOT_FINITE,   /* fail: B has NAN or infinity where A has not */
    HEC_QUALITY_OFF,          /* fail: a part is off by more than the margin */
    HEC_QUALITY_NOTHING,      /* cannot judge: less than HEC_QUALITY_VALUES_LEAST values in common */
    HEC_QUALITY_FEW_RERUNS,   /* cannot judge: less than two of A */
    HEC_QUALITY_A_NOT_FINITE, /* cannot judge */
    HEC_QUALITY_A_FLAT,       /* cannot judge: A's loss hardly falls, or all of its outputs are the same */
    HEC_QUALITY_SPREAD,       /* cannot judge: reruns differ too much for the margin; more of them, or a wider one */
    HEC_QUALITY_GRADIENT /* fail: whatever the losses say, B's gradients, or those of a part, are of another size */
};

enum hec_quality_part { HEC_QUALITY_START, HEC_QUALITY_MEAN, HEC_QUALITY_END, HEC_QUALITY_PARTS };

#define HEC_QUALITY_VALUES_LEAST 20
#define HEC_QUALITY_MARGIN 0.1 /* where none is given */
/* Of itself, that A's loss must fall by: reruns that are alike bit for bit make any fall look large, even one below bf16's rounding. */
#define HEC_QUALITY_FALL_LEAST 0.01
#define HEC_QUALITY_GRADIENTS                                                                                          \
    1.25 /* times as large or as small as A's: reruns in other formats differ by some percent */
#define HEC_QUALITY_PART_GRADIENTS 2.0 /* the same of a part, which differs more */
#define HEC_QUALITY_PART_LEAST                                                                                         \
    0.02 /* of all: smaller ones count as that; some are nothing but rounding, as of a bias before a normalisation */
#define HEC_QUALITY_NO_GRADIENT 1e-6 /* times A's and less: how much less is not known (a norm of 0 has no logarithm) */

#define HEC_GRADIENT_PARTS 16 /* as python/hec/_hooks/gradients.py has them */
#define HEC_GRADIENT_FIRST 8

/* What is known of the gradients of a run: logarithms of mean norms; NAN: not known. */
struct hec_gradients {
    double all;                      /* of all, in the first HEC_GRADIENT_FIRST steps and every eighth */
    double first;                    /* in the first ones alone: equal runs have learned nothing different yet */
    double part[HEC_GRADIENT_PARTS]; /* in these too: of the first sixteenth of the parameters, the second, ... */
};

enum hec_gradient { HEC_GRADIENT_ALL, HEC_GRADIENT_AT_FIRST, HEC_GRADIENT_PART };

struct hec_trajectory {
    const double *value; /* one a step, or one an output */
    int count;
};

/* b - a, as a share of what A's loss falls by (outputs: of how much A's outputs vary), with 95 % bounds to either side.
 * shown: it is not 0, at 99 % (the start: 99.9 %); with a difference beyond the margin that is a fail. */
struct hec_quality_difference {
    double difference, low, high;
    bool shown;
    double least; /* that would be shown */
};

struct hec_quality {
    enum hec_quality_verdict verdict;
    enum hec_quality_why why;
    double margin;
    double scale;               /* what A's loss falls by, or the standard deviation of its outputs */
    int values;                 /* of each run that count: all have as many */
    enum hec_quality_part part; /* the one that is off most, in margins */
    struct hec_quality_difference parts[HEC_QUALITY_PARTS]; /* outputs: only HEC_QUALITY_MEAN */
    struct hec_quality_difference gradients; /* log of B's norm by A's, of what is off most; NAN: not judged */
    int gradient;                            /* enum hec_gradient; part i: HEC_GRADIENT_PART + i */
    bool blind; /* reruns are so few, and differ so much, that something beyond its limit might not be shown */
};

/* margin 0: HEC_QUALITY_MARGIN. HEC_ERR_NOMEM. */
int hec_quality_judge(const struct hec_trajectory *a, int count_a, const struct hec_trajectory *b, int count_b,
                      enum hec_quality_kind kind, double margin, struct hec_quality *out);

/* Whether B's gradients are as large as A's, into the judged *out. They can only fail it, where the ratio is shown (99 %; of parts 99.9 %)
 * to be beyond HEC_QUALITY_GRADIENTS, or HEC_QUALITY_PART_GRADIENTS. `all` is judged only where A learns, as out says: else rounding may be
 * a large part of late gradients. What is not known of all runs is not judged. HEC_ERR_NOMEM. */
int hec_quality_gradients(const struct hec_gradients *a, int count_a, const struct hec_gradients *b, int count_b,
                          struct hec_quality *out);

struct hec_gradients hec_gradients_none(void);
