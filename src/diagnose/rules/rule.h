/* Rules: a file rules/NAME.c for each row of cause.def, with the function that judges a device. Its numbers are rows of limits.def,
 * its answers of lever.def, its words of report/words. */
#ifndef HEC_DIAGNOSE_RULES_RULE_H
#define HEC_DIAGNOSE_RULES_RULE_H

#include "diagnose/limits.h"
#include "diagnose/rules/facts.h"

struct hec_rule {
    enum hec_cause cause;
    enum hec_lever_id lever; /* what answers it, where judge() knows no better */
    /* Whether the device shows the cause. *out is zeroed, with cause, device and lever filled in, savings NAN; a rule that
     * returns true has set confidence, title, at least one evidence, savings and states. Pure. */
    bool (*judge)(const struct hec_facts *facts, struct hec_finding *out);
};

#define HEC_CAUSE(id, name, lever) bool hec_judge_##name(const struct hec_facts *facts, struct hec_finding *out);
#include "diagnose/cause.def"
#undef HEC_CAUSE

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

#endif
