/* What unmix.c gathers and unmix_solve.c solves. */
#pragma once

#include "diagnose/watts/unmix.h"

#include <stdbool.h>
#include <stdint.h>

/* Seconds of each class up to any instant of the last seconds: sums at the edges of 0.25 ms bins, straight lines
 * between. Of time that is skipped only the sums are known. */
#define HEC_SHARES_BIN_NS INT64_C(250000)
#define HEC_SHARES_BINS 16384 /* 4.1 s */
/* A reading may begin at most this long before the pieces' end: the ring, less one step of the pieces. */
#define HEC_SHARES_BACK_NS INT64_C(3000000000)

struct hec_unmix_shares {
    int width; /* classes + 1: the last is the time that any piece covers */
    bool begun;
    int64_t origin_ns; /* start of the first piece: edge 0 */
    int64_t since_ns;  /* the end of what was skipped last, or origin_ns: no instant before is known */
    int64_t now_ns;    /* all before is known */
    int64_t edges;     /* how many were written; the next lies at origin + edges * bin: */
    int64_t edge_ns;
    double *sum;  /* at now */
    double *edge; /* HEC_SHARES_BINS x width */
};

int hec_unmix_shares_init(struct hec_unmix_shares *shares, int classes); /* 0 or HEC_ERR_NOMEM */
void hec_unmix_shares_free(struct hec_unmix_shares *shares);
void hec_unmix_shares_begin(struct hec_unmix_shares *shares, int64_t origin_ns);
/* Time goes on to to_ns, before the next edge, in class; -1: no piece covers it. */
static inline void hec_unmix_shares_add(struct hec_unmix_shares *shares, int class, int64_t to_ns) {
    double seconds = (double)(to_ns - shares->now_ns) * 1e-9;
    if (class >= 0) {
        shares->sum[class] += seconds;
        shares->sum[shares->width - 1] += seconds;
    }
    shares->now_ns = to_ns;
}
/* The same over any number of edges. */
void hec_unmix_shares_advance(struct hec_unmix_shares *shares, int class, int64_t to_ns);
/* The same up to the last edge before to_ns, at once: no instant before that edge will be asked for. */
void hec_unmix_shares_skip(struct hec_unmix_shares *shares, int class, int64_t to_ns);
/* Seconds of each class over (start, end] into out, width long. False when it is not in the ring, was skipped or is not
 * yet known. */
bool hec_unmix_shares_between(const struct hec_unmix_shares *shares, int64_t start_ns, int64_t end_ns, double *out);

/* ---- unmix_blocks.c ----
 *
 * Normal equations per block of time, in bounded memory: when the blocks run out, each two become one of twice the
 * time. */
#define HEC_BLOCKS_MAX 64
#define HEC_GRAM_CLASSES 32
/* Longer than residuals stay correlated: those of the H200's samples are below 0.3 after 0.1 s (docs/decisions/0007). */
#define HEC_BLOCKS_FIRST_NS INT64_C(250000000)
/* Standard error of when a class began and ended against when a reading did: two clocks, and pieces that are not
 * exact. */
#define HEC_TIMING_NS INT64_C(1000000)

struct hec_gram {
    int columns;   /* unknowns, then y */
    int packed;    /* columns * (columns + 1) / 2 */
    double *block; /* HEC_BLOCKS_MAX x packed: upper triangle by rows of the sum of q^2 row row' */
    int64_t count[HEC_BLOCKS_MAX];
    double weight[HEC_BLOCKS_MAX];   /* sum of q^2 */
    double seconds;                  /* of all readings */
    int classes;                     /* of the columns; 0 after init */
    double seen_s[HEC_GRAM_CLASSES]; /* of the readings' seconds, by class */
    /* Sum of the squares that an error of time of HEC_TIMING_NS at each end of a reading makes in the shares, by
     * classes. */
    double timing[HEC_GRAM_CLASSES * HEC_GRAM_CLASSES];
    double reading2; /* sum of q^2 sigma^2: known errors of reading */
};

int hec_gram_init(struct hec_gram *gram, int columns); /* 0 or HEC_ERR_NOMEM */
void hec_gram_free(struct hec_gram *gram);
/* weight: q^2, the inverse of the relative variance of y. */
void hec_gram_add(struct hec_gram *gram, int block, const double *row, double weight, double seconds);
/* from, to: shares of the classes about the start and the end of a reading of seconds. */
void hec_gram_time(struct hec_gram *gram, int classes, const double *from, const double *to, double weight,
                   double seconds);
/* Blocks 2i and 2i+1 become block i. */
void hec_gram_halve(struct hec_gram *gram);

/* The response of a power sensor: how much of a sample comes from which time, as weights of 13 windows ("taps") that end
 * from 60 ms before its time stamp to 60 ms after it. All have one length: the time over which the sensor averages, which
 * is the span of the sample itself only where the sensor is a fast one. */
#define HEC_TAPS 13
#define HEC_TAP_NS INT64_C(10000000)
#define HEC_TAP_FIRST_NS (-HEC_TAP_NS * (HEC_TAPS / 2))
#define HEC_TAPS_SD 0.3 /* what is believed of a tap's weight beforehand: matters only where classes vary little */

/* Lengths that are tried; 0: the sample's own span. From the shortest to the longest that a maker states: 10 ms to 1 s. */
#define HEC_WINDOWS 7
extern const int64_t hec_response_windows_ns[HEC_WINDOWS];
int64_t hec_response_window_ns(int window, int64_t own_ns); /* -1: not tried, since it is nearly the sample's own */

struct hec_response_rows {
    int count, classes;
    const float *z;         /* count x HEC_WINDOWS x HEC_TAPS x classes shares */
    const double *y;        /* watts */
    const uint8_t *covered; /* bit w: the shares of window w are known */
    int64_t own_ns;         /* usual span of a sample */
};

struct hec_response {
    int window;              /* of hec_response_windows_ns */
    int reach;               /* the longest one that explains the samples nearly as well */
    double weight[HEC_TAPS]; /* sum 1 */
    /* How distinct it is: the least residual square among single taps of other windows, or 20 ms or more from the best one,
     * over that of the best. A program whose steps are all alike fits any delay, with other watts: ratios of 1.0 to 1.7 in
     * loops of up to 0.2 s, 2.8 to 110 without a rhythm. Below HEC_DISTINCT the samples must not be used. */
    double distinct;
};
#define HEC_DISTINCT 5.0

/* A first fit: the window and the delay by trying all, then by alternating least squares watts given the response, the
 * response given the watts. Fills *out and watts; of a class that z does not have, the mean of y. Fewer than 50 rows
 * say nothing: the own span, the longest reach, not distinct. work: (HEC_TAPS + classes) * count doubles. */
void hec_response_fit(const struct hec_response_rows *rows, struct hec_response *out, double *watts, double *work);
double hec_response_lag_ns(const double *weight);

/* Samples of mixed windows from which the response is first fitted; those after are added up at once. 20 s of the
 * H200's. */
#define HEC_UNMIX_HELD 1024

enum hec_unmix_kind { HEC_UNMIX_POWER, HEC_UNMIX_WINDOW, HEC_UNMIX_COUNTER, HEC_UNMIX_KINDS };

struct hec_unmix_reading {
    int64_t start_ns, end_ns;
    double value;
    float sigma; /* of value */
    int counter;
};

struct hec_unmix_queue {
    struct hec_unmix_reading *items;
    int64_t first, count, capacity; /* items[first .. count) wait */
};

struct hec_unmix {
    struct hec_unmix_options options;
    struct hec_unmix_shares shares;
    double extra_s[HEC_UNMIX_CLASSES];
    double total_j, total_bound_j;
    struct hec_unmix_belief belief[HEC_UNMIX_CLASSES]; /* sd 0: none */
    double level_sd, repeats;
    double alone_s[HEC_UNMIX_CLASSES], alone_j[HEC_UNMIX_CLASSES];

    struct hec_unmix_queue queue[HEC_UNMIX_KINDS];
    int64_t ready_ns;    /* when the pieces are past it, a reading of a queue can be used */
    int64_t resolved_ns; /* of time that was not skipped */
    int64_t used[HEC_UNMIX_KINDS], left[HEC_UNMIX_KINDS];

    int64_t block_ns;
    struct hec_gram power; /* columns: classes, taps but `reference`, watts */
    /* Of samples that no delay changes: classes, watts. Those of quiet classes are in those grams only. */
    struct hec_gram pure, quiet[HEC_UNMIX_QUIETS];
    struct hec_gram window;   /* classes, watts */
    struct hec_gram *counter; /* options.counters of them: classes, share */

    bool fitted; /* response, watts and reference are set, nothing is held any more */
    int held;
    float *held_z; /* HEC_UNMIX_HELD x windows x taps x classes */
    double *held_y;
    uint8_t *held_covered; /* bit w: window w is covered by pieces */
    int64_t *held_t, *held_own;
    struct hec_response response;
    double watts[HEC_UNMIX_CLASSES];
    int reference; /* the tap that the others are taken against */
};

/* The device was in class, one that there is, over [start, end). Ascending and disjoint; an overlap with what was
 * given is cut off. What no piece covers is unknown: readings that touch it are left out. 0 or HEC_ERR_NOMEM. Inline:
 * a run has tens of millions of pieces, most of which go on where the one before ended, and only add to sums. */
int hec_unmix_advance(struct hec_unmix *unmix, int class, int64_t start_ns, int64_t end_ns);
static inline int hec_unmix_piece(struct hec_unmix *unmix, int class, int64_t start_ns, int64_t end_ns) {
    struct hec_unmix_shares *shares = &unmix->shares;
    if (!shares->begun || start_ns != shares->now_ns || end_ns <= start_ns || end_ns >= shares->edge_ns ||
        end_ns >= unmix->ready_ns)
        return hec_unmix_advance(unmix, class, start_ns, end_ns);
    hec_unmix_shares_add(shares, class, end_ns);
    return 0;
}

/* End of input as far as it goes: fit the response from what is held and use every reading that the pieces cover. */
int hec_unmix_settle(struct hec_unmix *unmix);
