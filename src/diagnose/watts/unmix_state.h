/* What unmix.c gathers and unmix_solve.c solves. */
#ifndef HEC_DIAGNOSE_WATTS_UNMIX_STATE_H
#define HEC_DIAGNOSE_WATTS_UNMIX_STATE_H

#include "diagnose/watts/unmix.h"
#include "diagnose/watts/unmix_blocks.h"
#include "diagnose/watts/unmix_response.h"
#include "diagnose/watts/unmix_shares.h"

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

/* hec_unmix_piece for a class that there is. Inline: a run has tens of millions of pieces, most of which go on where the one
 * before ended, and only add to sums. */
int hec_unmix_advance(struct hec_unmix *unmix, int class, int64_t start_ns, int64_t end_ns);
static inline int hec_unmix_next(struct hec_unmix *unmix, int class, int64_t start_ns, int64_t end_ns) {
    struct hec_unmix_shares *shares = &unmix->shares;
    if (!shares->begun || start_ns != shares->now_ns || end_ns <= start_ns || end_ns >= shares->edge_ns ||
        end_ns >= unmix->ready_ns)
        return hec_unmix_advance(unmix, class, start_ns, end_ns);
    hec_unmix_shares_add(shares, class, end_ns);
    return 0;
}

/* End of input as far as it goes: fit the response from what is held and use every reading that the pieces cover. */
int hec_unmix_settle(struct hec_unmix *unmix);

#endif
