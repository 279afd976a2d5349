/* What the rules read: the dossier of one device, and what follows from it. Nothing here is an estimate unless it says so. */
#pragma once

#include "diagnose/limits.h"
#include "diagnose/result.h"

#include <math.h>

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
    double
        solver_share; /* of compute in kernels of factorisations, solvers, eigenvalue problems and FFTs, but for their products */
    double kernels_seen;      /* of compute, whose kernels were recorded by name; 0: none was */
    double small_share;       /* of compute seconds in kernels of less than 10 us on the average */
    double memory_free_share; /* of device memory, at the run's peak; NAN unknown */
};

/* Share of element-wise kernels among launches that were drawn at random; NAN: too few of those have names. */
double hec_facts_launched_point_wise(const struct hec_facts *facts);

void hec_facts_gather(const struct hec_summary *summary, const struct hec_device_diagnosis *device,
                      struct hec_facts *out);

/* Seconds of a device's communication that it loses to one rank that is late: they are that one's, and of no other cause. */
double hec_collectives_lost(const struct hec_collectives *collectives, int device);

/* A network: one that is trained, or whose modules were called. What it computes is products as a rule, seen or not. */
bool hec_facts_network(const struct hec_facts *facts);

/* Rules: a file rules/NAME.c for each row of cause.def, with the function that judges a device. Its numbers are rows of limits.def,
 * its answers of lever.def, its words of report/words. */
struct hec_rule {
    enum hec_cause cause;
    enum hec_lever_id lever; /* what answers it, where judge() knows no better */
    /* Whether the device shows the cause. *out is zeroed, with cause, device and lever filled in, savings NAN; a rule that
     * returns true has set confidence, title, at least one evidence, savings and states. Pure. */
    bool (*judge)(const struct hec_facts *facts, struct hec_finding *out);
};

#define HEC_CAUSE(id, name, lever) bool hec_judge_##name(const struct hec_facts *facts, struct hec_finding *out);
#include "diagnose/cause.def"

const struct hec_rule *hec_rule_of(enum hec_cause cause);

/* Of a cause that makes the device wait: the part of that time that its answer takes away, each second at idle power, and how
 * sure the cause is at most. Confidence 0: it is judged in another way. */
struct hec_goes {
    struct hec_saving part;
    double confidence;
};
const struct hec_goes *hec_goes_of(enum hec_cause cause);

/* A finding of the device as judge() gets it. */
struct hec_finding hec_finding_begin(const struct hec_rule *rule, int device);
/* For judge(): one more fact; the ninth is dropped. */
void hec_finding_add(struct hec_finding *finding, struct hec_evidence evidence);
/* The same of something with a name: a kernel, a function. */
void hec_finding_add_of(struct hec_finding *finding, const char *name, struct hec_evidence evidence);
/* Of any finding, last of all: that others work on the device, or may. */
void hec_finding_add_shared(const struct hec_facts *facts, struct hec_finding *finding);
/* a x [low, best, high] of what a state took: savings for "this share of the state goes away". */
struct hec_saving hec_saving_scaled(struct hec_saving whole, double low, double best, double high);
/* Both go away; where either is not known the first stays as it is. */
void hec_saving_add(struct hec_saving *saving, struct hec_saving more);

static inline double hec_finite_or(double x, double other) {
    return isfinite(x) ? x : other;
}
/* A share as it may be: 0..1. NAN stays. */
static inline double hec_as_share(double x) {
    return isnan(x) ? NAN : fmin(1, fmax(0, x));
}
