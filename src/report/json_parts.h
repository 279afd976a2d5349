/* Inside src/report: values of the JSON report. Missing is null, never 0. */
#ifndef HEC_REPORT_JSON_PARTS_H
#define HEC_REPORT_JSON_PARTS_H

#include "diagnose/summary.h"
#include "report/format.h"

#include <jansson.h>
#include <math.h>

static inline json_t *hec_json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/* negative: unknown */
static inline json_t *hec_json_known(int64_t value) {
    return value < 0 ? json_null() : json_integer(value);
}

/* Text from outside: no control characters, valid UTF-8. */
static inline json_t *hec_json_string(const char *from) {
    char clean[1100];
    return json_string(hec_format_clean(clean, sizeof clean, from, true));
}

static inline json_t *hec_json_text(const char *from) {
    return from[0] ? hec_json_string(from) : json_null();
}

static inline void hec_json_set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

/* json_timeline.c */
json_t *hec_json_timeline(const struct hec_timeline *timeline, int device); /* null without activity */
json_t *hec_json_kernels(const struct hec_timeline *timeline);
json_t *hec_json_steps(const struct hec_step_summary *steps);
json_t *hec_json_trace(const struct hec_timeline *timeline);

/* [low, value, high]; null where value is unknown (json_findings.c) */
json_t *hec_json_interval(double low, double value, double high);
/* json_findings.c: findings, scale_out and latency of a run */
void hec_json_findings(json_t *to, const struct hec_findings *findings);

/* json_ledger.c: ledger, ledger_basis, ledger_why, ledger_how, source, kernel_classes and compute of one device */
void hec_json_ledger(json_t *to, const struct hec_diagnosis *diagnosis, int device);

#endif
