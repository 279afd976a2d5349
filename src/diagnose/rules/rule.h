/* Rules: one small file each, holding all that HEC knows of a cause: what it means, how it is recognised, its
 * thresholds with their sources, what answers it, and the function that judges a device. `hec explain` prints the same
 * tables. */
#ifndef HEC_DIAGNOSE_RULES_RULE_H
#define HEC_DIAGNOSE_RULES_RULE_H

#include "diagnose/rules/facts.h"

/* Confidence at most of a cause that rests on telemetry alone: it proves none. */
#define HEC_TELEMETRY_CONFIDENCE 0.5

struct hec_rule_limit {
    double value;
    const char *unit;    /* "%", "us", "" */
    const char *meaning; /* "least share of the run's time in state data" */
    const char *source;  /* where the number comes from */
};

struct hec_rule_advice {
    const char *framework; /* "PyTorch", "JAX", "TensorFlow", "TensorRT", "CUDA", "serving"; one row where it differs */
    const char *text;      /* a sentence */
    const char *code;      /* a snippet, lines ended by \n; NULL: none */
};

/* Of a rule whose tables are called limits and advice. */
#define HEC_RULE_TABLES                                                                                                \
    .limits = limits, .limit_count = sizeof limits / sizeof limits[0], .advice = advice,                               \
    .advice_count = sizeof advice / sizeof advice[0]

struct hec_rule {
    enum hec_cause cause;
    const char *meaning;   /* two or three sentences for people who have never met it */
    const char *detection; /* what is read, and what must hold */
    const char *saving;    /* how the saving is predicted */
    /* Of a cause that makes the device wait: the part of that time that its answer takes away, each second at idle power, and
     * how sure the cause is at most. 0: it is judged in another way. */
    struct hec_saving goes;
    double confidence;
    enum hec_lever_id lever; /* what answers it, where judge() knows no better */
    const struct hec_rule_limit *limits;
    int limit_count;
    const struct hec_rule_advice *advice;
    int advice_count;
    /* Whether the device shows the cause. *out is zeroed, with cause, device and lever filled in, savings NAN; a rule that
     * returns true has set confidence, title, at least one evidence, savings and states. Pure. */
    bool (*judge)(const struct hec_facts *facts, struct hec_finding *out);
};

#define HEC_RULE(name) extern const struct hec_rule hec_rule_##name;
#include "diagnose/rules/rules.def"
#undef HEC_RULE

/* In the order of cause.def. */
const struct hec_rule *hec_rule_of(enum hec_cause cause);

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

#endif
