#include "diagnose/rules/rule.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

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

#define SAY(to)                                                                                                        \
    do {                                                                                                               \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        vsnprintf(to, sizeof(to), format, arguments);                                                                  \
        va_end(arguments);                                                                                             \
    } while (0)

void hec_finding_evidence(struct hec_finding *finding, const char *format, ...) {
    if (finding->evidence_count < HEC_EVIDENCE_MAX)
        SAY(finding->evidence[finding->evidence_count++]);
}

void hec_finding_title(struct hec_finding *finding, const char *format, ...) {
    SAY(finding->title);
}

void hec_finding_lever(struct hec_finding *finding, const char *format, ...) {
    SAY(finding->lever);
}

static double clamped(double x) {
    return isnan(x) ? NAN : fmin(1, fmax(0, x));
}

struct hec_saving hec_saving_scaled(struct hec_saving whole, double low, double best, double high) {
    return (struct hec_saving){clamped(low * whole.low), clamped(best * whole.best), clamped(high * whole.high)};
}
