/* What the rules read: all that a run says of one device, gathered once. Nothing here is an estimate unless it says so. */
#ifndef HEC_DIAGNOSE_FACTS_H
#define HEC_DIAGNOSE_FACTS_H

#include "diagnose/calls.h"
#include "diagnose/class_profile.h"
#include "diagnose/finding.h"
#include "diagnose/ledger.h"
#include "diagnose/summary.h"

struct hec_facts {
    const struct hec_summary *summary; /* complete but for its findings */
    const struct hec_device_summary *device;
    const struct hec_part *part; /* NULL: not in the table */
    /* NULL: not traced. Then all of the following is unknown too. */
    const struct hec_device_timeline *timeline;
    const struct hec_ledger_device *ledger;  /* of the whole run; its joules may be NAN */
    const struct hec_ledger_device *steady;  /* seconds of the steady part alone (steady.h): what rules judge */
    const struct hec_call_facts *calls;      /* NULL: the run has none (imported) */
    const struct hec_gap_facts *gaps;        /* of the steady part; NULL: none */
    const struct hec_class_profile *profile; /* its has_counters: hardware counters were read */
    double run_s, run_j; /* the device's whole run: what savings are fractions of; run_j NAN unknown */
    double steps_per_s;  /* NAN: no steps */
    double mean_w;       /* over the run; NAN unknown */
    /* Shares of the seconds of all compute, 0..1, from the kernels' names (a name is a hint, not a proof). */
    double class_share[HEC_KERNEL_CLASS_COUNT];
    double precision_share[HEC_KERNEL_PRECISION_COUNT]; /* of the seconds of GEMM, CONV and ATTENTION */
    double math_share;                                  /* GEMM, CONV and ATTENTION of all compute */
    double small_share;       /* of compute seconds in kernels of less than 10 us on the average */
    double underfilled_share; /* of compute seconds in kernels with fewer blocks than the device has SMs; NAN unknown */
    double memory_free_share; /* of device memory, at the run's peak; NAN unknown */
};

/* Of the run's seconds and joules: what a state took in the steady part. Joules: the ledger's, with the intervals of its
 * watts and of its seconds. Where the ledger has none, *estimated is set (else it is left as it is): idle states at the
 * measured level with a context, or 17 % of the power limit (60 % of the mean power where there is none) less 30 %, at
 * most the run's mean power; busy ones at the mean power, give or take half. Zero where the state did not occur; NAN where
 * nothing is known. */
struct hec_saving hec_facts_seconds(const struct hec_facts *facts, enum hec_state state); /* fraction of run_s */
struct hec_saving hec_facts_joules(const struct hec_facts *facts, enum hec_state state, bool *estimated);
/* The same of a kernel class (or of all compute x share). */
struct hec_saving hec_facts_compute_joules(const struct hec_facts *facts, double share_of_compute, bool *estimated);
double hec_facts_state_share(const struct hec_facts *facts,
                             enum hec_state state); /* of run_s, 0..1; 0 without ledger */
double hec_facts_steady_share(const struct hec_facts *facts, enum hec_state state); /* of the steady part's seconds */

/* Fills all but what is NULL. */
void hec_facts_gather(const struct hec_summary *summary, int device_at, struct hec_facts *out);

#endif
