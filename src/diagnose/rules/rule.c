#include "diagnose/rules/rule.h"

#include <math.h>
#include <stddef.h>

static const struct hec_rule *const rules[] = {
#define HEC_RULE(name) &hec_rule_##name,
#include "diagnose/rules/rules.def"
#undef HEC_RULE
};

const struct hec_rule *hec_rule_of(enum hec_cause cause) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i]->cause == cause)
            return rules[i];
    return NULL;
}

struct hec_finding hec_finding_begin(const struct hec_rule *rule, int device) {
    const struct hec_saving unknown = {NAN, NAN, NAN};
    return (struct hec_finding){.cause = rule->cause,
                                .device = device,
                                .devices = UINT64_C(1) << device,
                                .lever = {.id = rule->lever},
                                .seconds = unknown,
                                .joules = unknown,
                                .saved_s = NAN,
                                .saved_j = NAN,
                                .step_seconds = unknown,
                                .step_joules = unknown,
                                .rest_seconds = NAN,
                                .rest_joules = NAN,
                                .times = NAN,
                                .compute_left = NAN};
}

void hec_finding_add(struct hec_finding *finding, struct hec_evidence evidence) {
    if (finding->evidence_count < HEC_EVIDENCE_MAX)
        finding->evidence[finding->evidence_count++] = evidence;
}

void hec_finding_add_of(struct hec_finding *finding, const char *name, struct hec_evidence evidence) {
    evidence.name = name;
    hec_finding_add(finding, evidence);
}

void hec_finding_add_shared(const struct hec_facts *f, struct hec_finding *finding) {
    if (f->device->others != HEC_OTHERS_IDLE)
        hec_finding_add(finding, HEC_FACT(SHARED, f->device->shared_with, f->device->others == HEC_OTHERS_BUSY));
}

static double clamped(double x) {
    return isnan(x) ? NAN : fmin(1, fmax(0, x));
}

struct hec_saving hec_saving_scaled(struct hec_saving whole, double low, double best, double high) {
    return (struct hec_saving){clamped(low * whole.low), clamped(best * whole.best), clamped(high * whole.high)};
}

void hec_saving_add(struct hec_saving *s, struct hec_saving more) {
    if (isfinite(s->best) && isfinite(more.best))
        *s =
            (struct hec_saving){clamped(s->low + more.low), clamped(s->best + more.best), clamped(s->high + more.high)};
}
