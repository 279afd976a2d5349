/* When an interleaved experiment may stop. Asked after each pair of trials, as often as wanted: over all looks together A/A is called
 * different in at most 5 % (`alpha`) of the experiments, with no number of pairs fixed before.
 *
 * By a confidence sequence for the mean of the pairs' log ratios with unknown variance: the t test as a sequential test, which mixes
 * the effect over a normal distribution in units of the pairs' own spread (Lai 1976, Annals of Statistics 4; Wang and Ramdas 2025,
 * "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"). Under no difference its likelihood
 * ratio is a martingale, which exceeds 1/alpha with probability alpha at most, ever (Ville). Exact for independent normal differences;
 * simulated for skewed noise, autocorrelation, drift and warm-up. The order within pairs has to be drawn (hec_sequential_b_first):
 * then the differences of an A/A are symmetric whatever the device does.
 * Where something was seen before the first pair (a search), the pairs are also held against that: how likely they are by a mixture
 * about it, divided by how likely they are under the true mean with the spread that suits them best, exceeds 1/alpha with probability
 * alpha at most, ever, whatever was seen, right or wrong ("universal inference": Wasserman, Ramdas and Balakrishnan 2020, PNAS 117). Half
 * of alpha is for that, half for the above: the interval is what both leave. So two pairs show a large effect that was expected.
 * The price against a t interval at a number of pairs that was fixed before is an interval about 1.7 times as wide at 10 to 20 pairs; until
 * the third pair there is none (the second, where something is expected), and three show effects of ten spreads alone. Where nothing
 * stopped early and all pairs were planned, hec_compare's is right and narrower. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEC_SEQUENTIAL_PAIRS_LEAST 3
#define HEC_SEQUENTIAL_EXPECTED_LEAST 2 /* pairs, where something is expected of them */

enum hec_look_step {
    HEC_LOOK_GO_ON,
    HEC_LOOK_BETTER,
    HEC_LOOK_WORSE,
    HEC_LOOK_EQUIVALENT, /* whatever it is, it is within the margin */
    HEC_LOOK_UNDECIDED   /* precise enough, or no pairs left, and nothing shown */
};

struct hec_sequential_options {
    double alpha;  /* 0: 0.05 */
    double margin; /* of the ratio: 0.01 is 1 % either way; 0: none */
    double
        width; /* stop only once the interval is no wider than this to either side; 0: as soon as anything is shown */
    int pairs_most; /* 0: no limit */
    bool more_is_better;
    bool small_effects; /* as before large ones were mixed in: from the fourth pair on */
    double expected;    /* b / a, from what the pairs had no part in; 0: nothing is known */
};

struct hec_look {
    enum hec_look_step step;
    int pairs;        /* that count */
    double ratio;     /* b / a */
    double low, high; /* its interval, good at all looks at once; 0 and INFINITY: nothing is known yet */
    int pairs_left; /* expected until `width` (0: until what is seen now is shown), by the spread so far; -1: unknown */
};

/* a[i], b[i]: of pair i; a pair with a value that is missing (NAN) or not positive does not count. */
struct hec_look hec_sequential_look(const double *a, const double *b, int count,
                                    const struct hec_sequential_options *options);

/* Whether B goes first in this pair: drawn, one of either order in every two pairs, so that a steady drift cancels. */
bool hec_sequential_b_first(uint64_t seed, int pair);

/* The same for any number of arms: order[arms] of a round, drawn for every two rounds and reversed in the second. */
void hec_sequential_order(uint64_t seed, int round, int arms, int *order);
