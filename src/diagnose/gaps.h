/* What the ledger's sums hide of the time in which a device waits: how long each wait was, and what else happened in it. Of
 * traced time; memory grows with the number of devices alone. */
#ifndef HEC_DIAGNOSE_GAPS_H
#define HEC_DIAGNOSE_GAPS_H

#include "diagnose/state.h"

/* A piece of state host that is shorter is the framework between two launches: an operator of PyTorch takes 10 to 100 us of
 * Python and C++. Longer ones are the program's. */
#define HEC_GAP_BRIEF_NS 200000
/* Importing a package, building a model: a loop has hardly steps that wait for so long. */
#define HEC_GAP_LONG_S 0.3
/* What recurs with the work of the device: at least so much of its time lies in the second half of what the device computes,
 * and it is found in so many eighths of that. Loading each kernel's code at its first launch, and allocating at set-up, die away:
 * they lie in the first eighth or two. */
#define HEC_GAP_LATE_SHARE 0.25
#define HEC_GAP_EIGHTHS 3
#define HEC_GAP_BINS 64

struct hec_gap_facts {
    int device;
    double brief_host_s;            /* in state host, in pieces of less than HEC_GAP_BRIEF_NS */
    double long_s[HEC_STATE_COUNT]; /* by state, in gaps of HEC_GAP_LONG_S and more: few and long is set-up */
    /* Gaps in which code was loaded or compiled (they hold startup): all of their time but data and checkpoint, for what
     * leads to a load is compiling. */
    int64_t loads;
    double load_s;
    double load_state_s[HEC_STATE_COUNT]; /* the same, by state */
    double checkpoint_copy_s;             /* in state copy, right after checkpoint: weights on their way to the host */
    bool loads_recur, allocs_recur;       /* by hec_gaps_end */
    /* of the gap at hand */
    double now[HEC_STATE_COUNT];
    bool saving, open; /* open: `now` holds something */
    /* Seconds of loads and of state alloc, by what the device had computed until then: bins of bin_s, which doubles when they
     * are full. `waiting`: since the device computed last. */
    double compute_s, bin_s, alloc_s;
    struct hec_gap_bin {
        double load_s, alloc_s;
    } bins[HEC_GAP_BINS], waiting;
};

struct hec_gaps {
    struct hec_gap_facts *list; /* by first appearance; malloc'ed */
    int count;
};

int hec_gaps_piece(struct hec_gaps *gaps, int device, const struct hec_state_piece *piece); /* 0 or HEC_ERR_NOMEM */
void hec_gaps_end(struct hec_gaps *gaps);                                                   /* closes what is open */
const struct hec_gap_facts *hec_gaps_of(const struct hec_gaps *gaps, int device);           /* NULL: none */
void hec_gaps_free(struct hec_gaps *gaps);

#endif
