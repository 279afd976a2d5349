/* What the rules read: the dossier of one device, and what follows from it. Nothing here is an estimate unless it says so. */
#ifndef HEC_DIAGNOSE_RULES_FACTS_H
#define HEC_DIAGNOSE_RULES_FACTS_H

#include "diagnose/result.h"

struct hec_facts {
    const struct hec_summary *summary; /* complete but for its findings */
    const struct hec_device_diagnosis *device;
    const struct hec_part *part;             /* NULL: not in the table */
    const struct hec_step_summary *steps;    /* that it goes by; count 0: none. Never NULL */
    const struct hec_class_profile *profile; /* NULL: it has no ledger; its has_counters: hardware counters were read */
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

void hec_facts_gather(const struct hec_summary *summary, const struct hec_device_diagnosis *device,
                      struct hec_facts *out);

#endif
