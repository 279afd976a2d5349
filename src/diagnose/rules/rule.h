/* Rules: one small file each, holding all that HEC knows of a cause: what it means, how it is told, its thresholds with their
 * sources, what answers it, and the function that judges a device. `hec explain` prints the same tables. */
#ifndef HEC_DIAGNOSE_RULES_RULE_H
#define HEC_DIAGNOSE_RULES_RULE_H

#include "diagnose/facts.h"

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

struct hec_rule {
    enum hec_cause cause;
    const char *meaning;   /* two or three sentences for people who have never met it */
    const char *detection; /* what is read, and what must hold */
    const char *saving;    /* how the saving is predicted */
    const char *lever;     /* what answers it, one sentence: the default of hec_finding.lever */
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

/* For judge(): one more line of evidence (cut at its size, the ninth is dropped), and the title. */
void hec_finding_evidence(struct hec_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hec_finding_title(struct hec_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hec_finding_lever(struct hec_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* a x [low, best, high] of what a state took: savings for "this share of the state goes away". */
struct hec_saving hec_saving_scaled(struct hec_saving whole, double low, double best, double high);

/* For "%.*f": about three digits, and never an exponent. */
#define HEC_FIGURE(x) ((x) >= 100 ? 0 : (x) >= 10 ? 1 : 2), (x)

#endif
