/* Which cause owns the time in which a device waits, gap by gap: by what the launching thread did in it. Of traced time;
 * memory grows with the number of devices alone.
 *
 *   data, checkpoint, alloc   their own
 *   host                      in pieces of HEC_STATE_BRIEF_NS and more its own. Shorter ones are as launch.
 *   copy                      copy; sync where a number is read; checkpoint right after a checkpoint: weights go to the host.
 *                             Copies within a device and memsets are nobody's
 *   sync                      sync; copy where the wait was for a copy of data
 *   launch                    of what drained the queue before, for as long as that had been hidden by the device: without
 *                             it the program would have been ahead by so much, and launching hidden. More of it is launch's
 *                             own. Where the call copies: as sync.
 *   requests                  nobody's: there is nothing to do
 *   a gap with startup        compile, but for data and checkpoint: what leads to a load is compiling
 *
 * So a cause never has more than what its own time was: a wait of 1 ms that the device ran dry in explains 1 ms of launching
 * after it. Where no steps separate set-up from the rest, what host, sync and launch have in gaps of HEC_GAP_LONG_S and more is
 * nobody's: few and long is what set-up looks like. Gaps with startup are start-up there, unless they recur with the work of the
 * device: then what comes after its first 64th is compile, as with steps. */
#pragma once

#include "diagnose/finding.h"
#include "diagnose/states/state.h"

/* Whether something recurs with the work of a device, or dies away after set-up. Loading each kernel's code
 * at its first launch, and allocating what a program keeps, die away: they lie in the first eighth or two of what the device
 * computes. */
enum { HEC_RECURRENCE_BINS = 64 };

/* All zero at first. */
struct hec_recurrence {
    double all_s;
    double waiting_s;                 /* since the device computed last */
    double compute_s, full_s;         /* bins of equal parts of full_s of computing, which doubles when they are full */
    double bins[HEC_RECURRENCE_BINS]; /* seconds, by what the device had computed until then */
};

void hec_recurrence_add(struct hec_recurrence *r, double seconds);
/* Of all seconds, the part that came after the first bin: what was compiled or allocated before is set-up, also where it recurs. */
double hec_recurrence_after_first(const struct hec_recurrence *r);
/* Puts what waits into its bin. */
void hec_recurrence_place(struct hec_recurrence *r);
/* The device computed for so long. In line: that is asked at every kernel, and as a rule nothing waits. */
static inline void hec_recurrence_computed(struct hec_recurrence *r, double seconds) {
    if (r->waiting_s > 0 || r->compute_s >= r->full_s)
        hec_recurrence_place(r);
    r->compute_s += seconds;
}
bool hec_recurrence_recurs(const struct hec_recurrence *r);

struct hec_gap_part {
    enum hec_state state;
    enum hec_cause cause;
    bool small; /* of copies of less than 64 KiB */
    double seconds;
};

struct hec_gap_facts {
    int device;
    double owned_s[HEC_STATE_COUNT][HEC_CAUSE_COUNT];
    double small_s; /* of what copy has: of small ones */
    double
        beside_s; /* of what host has: behind launches that nothing waited for. The device would work meanwhile, had it got them */
    double
        awaited_s; /* of what host has: behind waits that are sync's, for as long as the device had hidden those. The device would
                    * work meanwhile, had the program not waited. Of JAX also of what launch has (operations.h) */
    double
        covered_s; /* of the program's own code while the device computes: what operations for a number that is read would hide of
                    * that, had the code not run (operations.h) */
    double
        late_s; /* launching of kernels that other causes have, as what they hid would have hidden it: launched at once it goes as well */
    double
        operations_s; /* of what launch has: operations that are called one by one and could be compiled as one (operations.h) */
    /* Gaps in which code was loaded or compiled. */
    int64_t loads;
    double load_s;                      /* but data and checkpoint */
    double unsteady_s[HEC_STATE_COUNT]; /* of load_s, where no steps separate set-up from the rest */
    bool loads_recur, allocs_recur;     /* by hec_gaps_end */
    struct hec_recurrence load, alloc;  /* of load_s, and of state alloc */
    /* of the gap at hand */
    struct hec_gap_part now[16];
    int now_count;
    int64_t host_ns; /* of host so far, with nothing else in between */
    bool waited;     /* for the device, since it worked last */
    double beside_now_s, awaited_now_s, late_now_s;
    enum hec_state_wait host_wait;
    double hidden_s;                 /* of what began the gap */
    double ahead_s[HEC_CAUSE_COUNT]; /* by so much the program would be ahead without that cause */
    bool ahead;                      /* of any: as a rule of none */
    double lead_s;                   /* that sync's waits gave, and neither launching nor code after them has taken */
    enum hec_cause drain;            /* the last */
    bool drain_small, saving, steady;
};

struct hec_gaps {
    struct hec_gap_facts *list; /* by first appearance; malloc'ed */
    int count;
};

/* steady: steps separate set-up from the rest. 0 or HEC_ERR_NOMEM. */
int hec_gaps_piece(struct hec_gaps *gaps, int device, const struct hec_state_piece *piece, bool steady);
void hec_gaps_end(struct hec_gaps *gaps); /* closes what is open */
void hec_gaps_free(struct hec_gaps *gaps);
