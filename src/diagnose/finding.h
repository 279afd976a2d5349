/* A finding: a diagnosed cause of one device's wasted time and energy, with its evidence, what answers it, and what that is
 * predicted to save. Plain data; made by findings.h from the rules. */
#ifndef HEC_DIAGNOSE_FINDING_H
#define HEC_DIAGNOSE_FINDING_H

#include <stdbool.h>
#include <stdint.h>

enum hec_cause {
#define HEC_CAUSE(id, name, title) HEC_CAUSE_##id,
#include "diagnose/cause.def"
#undef HEC_CAUSE
    HEC_CAUSE_COUNT
};

const char *hec_cause_name(enum hec_cause cause);  /* "data"; "?" out of range */
const char *hec_cause_title(enum hec_cause cause); /* "starved for data" */
enum hec_cause hec_cause_find(const char *name);   /* HEC_CAUSE_COUNT: no such cause */

/* A prediction: best guess and interval, 0 <= low <= best <= high <= 1. NAN, all three: cannot be told. */
struct hec_saving {
    double low, best, high;
};

enum { HEC_EVIDENCE_MAX = 8, HEC_EVIDENCE_SIZE = 160, HEC_FINDING_LINES = 3 };

struct hec_finding_line {
    char file[256], function[128];
    int32_t line; /* 0 unknown */
    double share; /* of the time that the finding is about, 0..1 */
};

struct hec_finding {
    enum hec_cause cause;
    int device;                    /* hec_device.index: where it is seen best */
    uint64_t devices;              /* bits (1 << hec_device.index): of one job, all that have it */
    double confidence;             /* 0..1 that the cause is right */
    char title[HEC_EVIDENCE_SIZE]; /* with its numbers: "starved for data: 41 % of the steps' time" */
    char evidence[HEC_EVIDENCE_MAX][HEC_EVIDENCE_SIZE];
    int evidence_count;
    char lever[2 * HEC_EVIDENCE_SIZE]; /* the change that answers it, as fits this run */
    const char *code; /* its snippet for PyTorch, where that of the rule does not fit; NULL: the rule's */
    struct hec_saving seconds, joules; /* fractions of the whole run's, of all of its devices, at equal work */
    bool estimated;                    /* the joules rest on a power that was not unmixed */
    uint32_t states;                   /* bits (1 << enum hec_state) of the states it is about; the lines are theirs */
    struct hec_finding_line lines[HEC_FINDING_LINES];
    int line_count;
};

enum hec_scale { HEC_SCALE_UNKNOWN, HEC_SCALE_OPTIMISE, HEC_SCALE_OUT };

/* Profile before you procure: above 70 % of sustained utilisation with nothing worth mending, more GPUs are honest. */
struct hec_scale_out {
    enum hec_scale verdict;
    double utilisation;         /* busy share of the steps (of the device's time in use without steps); NAN unknown */
    double recoverable;         /* joules that the findings together would save, of the run's; NAN unknown */
    double recoverable_seconds; /* the same of its time */
    char why[256];
};
const char *hec_scale_name(enum hec_scale verdict); /* "unknown", "optimise", "scale_out": stable */

/* Where a request's time goes in serving: mean seconds of a step (a call of the outermost module); parts add up to total. */
struct hec_latency {
    bool valid;
    double total_s;
    double compute_s;   /* kernels that arithmetic or latency limits */
    double memory_s;    /* kernels that device memory limits */
    double batching_s;  /* kernels that leave the device underfilled, and launching */
    double transport_s; /* copies and communication not hidden by compute */
    double host_s;      /* the rest: the device waits for the program */
};

struct hec_findings {
    struct hec_finding *list; /* by joules that can be saved (seconds where those are unknown), most first; malloc'ed */
    int count;
    struct hec_scale_out scale_out;
    struct hec_latency latency;
};

#endif
