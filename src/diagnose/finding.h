/* A finding: a diagnosed cause of one device's wasted time and energy, with its evidence, what answers it, and what that is
 * predicted to save. Plain data, without a word: made by findings.h from the rules; report/words/facts.h has the words. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hec_reason;

enum hec_cause {
#define HEC_CAUSE(id, name, lever) HEC_CAUSE_##id,
#include "diagnose/cause.def"
    HEC_CAUSE_COUNT
};

const char *hec_cause_name(enum hec_cause cause); /* "data"; "?" out of range */
enum hec_cause hec_cause_find(const char *name);  /* HEC_CAUSE_COUNT: no such cause */

/* UNTOLD: nothing says which. */
enum hec_framework {
    HEC_FRAMEWORK_UNTOLD,
#define HEC_FRAMEWORK(id, called, package) HEC_FRAMEWORK_##id,
#include "diagnose/framework.def"
    HEC_FRAMEWORK_COUNT
};
const char *hec_framework_name(enum hec_framework framework); /* "PyTorch"; "" unless it is known */

/* A prediction: best guess and interval, 0 <= low <= best <= high <= 1. NAN, all three: unknown. */
struct hec_saving {
    double low, best, high;
};

enum hec_evidence_id {
#define HEC_EVIDENCE(id, name, unit, more) HEC_EVIDENCE_##id,
#include "diagnose/evidence.def"
    HEC_EVIDENCE_COUNT
};

enum hec_lever_id {
#define HEC_LEVER(id, edit, name, parameters) HEC_LEVER_##id,
#include "diagnose/lever.def"
    HEC_LEVER_COUNT
};

/* Stable names; "?" out of range. */
const char *hec_evidence_name(enum hec_evidence_id id);
const char *hec_evidence_unit(enum hec_evidence_id id);
const char *hec_lever_name(enum hec_lever_id id);
/* Names of the numbers after the first of an evidence, and of all parameters of a lever: separated by a space. */
const char *hec_evidence_more(enum hec_evidence_id id);
const char *hec_lever_parameters(enum hec_lever_id id);

enum { HEC_EVIDENCE_MAX = 8, HEC_FINDING_NUMBERS = 6, HEC_FINDING_LINES = 3 };

/* One fact with its numbers, as evidence.def names them. */
struct hec_evidence {
    enum hec_evidence_id what;
    int device;                        /* hec_device.index where it is another one's than the finding's; else -1 */
    double value[HEC_FINDING_NUMBERS]; /* NAN unknown */
    const char *name, *file;      /* of a kernel, a function, a unit; they live as long as the summary. NULL: none */
    const struct hec_reason *why; /* as long. NULL: none */
};
#define HEC_FACT(id, ...) ((struct hec_evidence){.what = HEC_EVIDENCE_##id, .device = -1, .value = {__VA_ARGS__}})

struct hec_lever {
    enum hec_lever_id id;
    double value[HEC_FINDING_NUMBERS]; /* its parameters */
};
#define HEC_ANSWER(id_, ...) ((struct hec_lever){.id = HEC_LEVER_##id_, .value = {__VA_ARGS__}})

enum hec_per { HEC_PER_STEP, HEC_PER_SECOND };

struct hec_finding_line {
    char file[256], function[128];
    int32_t line; /* 0 unknown */
    double share; /* of the time that the finding is about, 0..1 */
};

/* A process of a job (result.h). */
struct hec_rank;

struct hec_finding {
    enum hec_cause cause;
    int device;                /* hec_device.index: where it is seen best */
    uint64_t devices;          /* bits (1 << hec_device.index): of one job, all that have it */
    double part;               /* of the joules of all used devices that is theirs: findings are weighed by all */
    double confidence;         /* 0..1 that the cause is right */
    bool actionable;           /* worth it and sure enough (findings.h): what the headline may say */
    bool hint;                 /* it would be, and is too unsure for that */
    struct hec_evidence title; /* the fact that says most: "starved for data: 41 % of the steps' time" */
    struct hec_evidence evidence[HEC_EVIDENCE_MAX];
    int evidence_count;
    enum hec_per per;                  /* what rates and times of a step in it are of */
    struct hec_lever lever;            /* the change that answers it, as fits this run */
    struct hec_saving seconds, joules; /* fractions of the whole run's, of all of its devices, at equal work */
    double saved_s, saved_j;           /* the same at best guess, in seconds and joules; NAN unknown */
    struct hec_saving step_seconds, step_joules; /* fractions of the steady part's: of a step */
    bool replayed;     /* by a replay of the recorded schedule; else by what is usual of the cause */
    bool joules_ruled; /* but for a step's joules, of which the replay knows nothing */
    bool proven;       /* there are proofs of such replays */
    double rest_seconds,
        rest_joules; /* of a step's: what it saves after all replayed findings before it; NAN unknown */
    double
        edit_value; /* what its edit of the schedule is given: times that the batch may grow, what is left of kernels' time; NAN: none */
    double
        hotter; /* more watts of what stays of the device's work, of those now: it fills the device more, as its rule knows */
    bool estimated;  /* the joules rest on a power that was not unmixed */
    uint32_t states; /* bits (1 << enum hec_state) of the states it is about; the lines are theirs */
    struct hec_finding_line lines[HEC_FINDING_LINES];
    int line_count;
    enum hec_framework framework; /* of the program: what its words go by */
    const struct hec_rank *ranks; /* of its job, which names them; NULL: none is known */
    int rank_count;
};

/* It says what took the time, surely enough for a headline, and claims no saving: the device hangs, waits for requests, or
 * the program was set up. */
bool hec_finding_tells(const struct hec_finding *finding);

enum hec_scale { HEC_SCALE_UNKNOWN, HEC_SCALE_OPTIMISE, HEC_SCALE_OUT };
enum hec_scale_reason {
    HEC_SCALE_NOT_SEEN, /* unknown: how busy the device was is not known */
    HEC_SCALE_FAILED,   /* unknown: the command failed */
    HEC_SCALE_RANKS,    /* unknown: how long its ranks wait for each other was not looked at */
    HEC_SCALE_UNSEEN,   /* unknown: neither kernels nor counters show that its work is dense */
    HEC_SCALE_SHARED,   /* unknown: others work on the device, or may: alone it would be another's figure */
    HEC_SCALE_IDLE,     /* optimise: too little utilisation */
    HEC_SCALE_WASTE,    /* optimise: too much is recoverable */
    HEC_SCALE_FULL,     /* scale out */
    HEC_SCALE_REASONS
};

/* Profile before you procure: above 70 % of sustained utilisation with nothing worth fixing, more GPUs are honest. */
struct hec_scale_out {
    enum hec_scale verdict;
    enum hec_scale_reason reason;
    double utilisation;         /* busy share of the steps (of the device's time in use without steps); NAN unknown */
    double recoverable;         /* joules that the findings together would save, of the run's; NAN unknown */
    double recoverable_seconds; /* the same of its time */
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
    double together_seconds, together_joules; /* of a step's: all that were replayed and save 5 % of one; NAN unknown */
    enum hec_cause next;              /* what would be the limit after those, by replay; NONE: nothing that HEC knows */
    double next_seconds, next_joules; /* of a step's as recorded, that its answer would save then; NAN unknown */
    struct hec_evidence
        unseen; /* what is not known of a device that is kept busy; its first number 0: there is none such */
    bool
        solves; /* a device has factorisations, solvers or FFTs to compute: fewer bits in products are nothing to try unasked */
    struct hec_scale_out scale_out;
    struct hec_latency latency;
};

static inline bool hec_findings_unseen(const struct hec_findings *findings) {
    return findings->unseen.value[0] > 0;
}
