/* What the rules read: all that a run says of one device, gathered once. Nothing here is an estimate unless it says so. */
#ifndef HEC_DIAGNOSE_RULES_FACTS_H
#define HEC_DIAGNOSE_RULES_FACTS_H

#include "diagnose/states/calls.h"
#include "diagnose/watts/watts.h"
#include "diagnose/finding.h"
#include "diagnose/states/ledger.h"
#include "diagnose/result.h"

struct hec_facts {
    const struct hec_summary *summary; /* complete but for its findings */
    const struct hec_device_summary *device;
    const struct hec_part *part;          /* NULL: not in the table */
    const struct hec_step_summary *steps; /* of the processes that use the device; count 0: none. Never NULL */
    /* NULL: not traced. Then all of the following is unknown too. */
    const struct hec_device_timeline *timeline;
    const struct hec_ledger_device *ledger;  /* of the whole run; its joules may be NAN */
    const struct hec_ledger_device *steady;  /* seconds of the steady part alone (steady.h): what rules judge */
    const struct hec_call_facts *calls;      /* NULL: the run has none (imported) */
    const struct hec_gap_facts *gaps;        /* of the steady part; NULL: none */
    const struct hec_class_profile *profile; /* its has_counters: hardware counters were read */
    bool own_counters;   /* hardware counters were read, and of this program alone: nobody else was at work */
    double run_s, run_j; /* the device's whole run: what savings are fractions of; run_j NAN unknown, or others' too */
    double mean_w;       /* over the run; NAN the same */
    /* Seconds of the compute that the kernels' rows are a share of: their sum; more where only a part of a program without steps
     * was recorded. */
    double compute_s;
    /* Shares of those, 0..1, from the kernels' names (a name is a hint, not a proof). */
    double class_share[HEC_KERNEL_CLASS_COUNT];
    double precision_share[HEC_KERNEL_PRECISION_COUNT]; /* of the seconds of GEMM, CONV and ATTENTION */
    double math_share;                                  /* GEMM, CONV and ATTENTION of all compute */
    double small_share;       /* of compute seconds in kernels of less than 10 us on the average */
    double memory_free_share; /* of device memory, at the run's peak; NAN unknown */
};

/* The steps that a device goes by (steps.h); those of the run, unless they are of a process that uses other devices. Count
 * 0: none, as of a device that is not used. */
const struct hec_step_summary *hec_facts_steps(const struct hec_summary *summary, int device);

/* Fills all but what is NULL. */
void hec_facts_gather(const struct hec_summary *summary, int device_at, struct hec_facts *out);

#endif
