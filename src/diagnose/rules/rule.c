#include "diagnose/rules/facts.h"

#include <math.h>

static const struct hec_rule rules[] = {
#define HEC_CAUSE(id, name, lever) {HEC_CAUSE_##id, HEC_LEVER_##lever, hec_judge_##name},
#include "diagnose/cause.def"
};

static const struct hec_goes goes[HEC_CAUSE_COUNT] = {
#define HEC_LIMIT(cause, id, value, unit, meaning, source)
#define HEC_LIMIT_ALSO(cause, id, factor, unit, meaning, source)
#define HEC_NUMBER(id, value, unit, meaning, source)
#define HEC_GOES(cause, low, best, confidence, source) [HEC_CAUSE_##cause] = {{low, best, 1}, confidence},
#include "diagnose/limits.def"
};

const struct hec_rule *hec_rule_of(enum hec_cause cause) {
    return &rules[cause];
}

const struct hec_goes *hec_goes_of(enum hec_cause cause) {
    return &goes[cause];
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
                                .edit_value = NAN};
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
    if (f->device->readings.others != HEC_OTHERS_IDLE)
        hec_finding_add(
            finding, HEC_FACT(SHARED, f->device->readings.shared_with, f->device->readings.others == HEC_OTHERS_BUSY));
}

struct hec_saving hec_saving_scaled(struct hec_saving whole, double low, double best, double high) {
    return (struct hec_saving){hec_as_share(low * whole.low), hec_as_share(best * whole.best),
                               hec_as_share(high * whole.high)};
}

void hec_saving_add(struct hec_saving *s, struct hec_saving more) {
    if (isfinite(s->best) && isfinite(more.best))
        *s = (struct hec_saving){hec_as_share(s->low + more.low), hec_as_share(s->best + more.best),
                                 hec_as_share(s->high + more.high)};
}
