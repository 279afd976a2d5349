/* The verdicts that telemetry alone supports, each with the numbers that led to it. Thresholds: verdict.def. */
#ifndef HEC_DIAGNOSE_VERDICT_H
#define HEC_DIAGNOSE_VERDICT_H

#include "diagnose/summary.h"

struct hec_threshold {
    const char *id;
    double value;
    const char *compared;
    const char *source;
};

enum hec_threshold_id {
#define HEC_THRESHOLD(id, value, compared, source) HEC_THRESHOLD_##id,
#include "diagnose/verdict.def"
#undef HEC_THRESHOLD
    HEC_THRESHOLD_COUNT
};

const struct hec_threshold *hec_threshold(enum hec_threshold_id id);

/* "compute_bound": the stable name in JSON. */
const char *hec_verdict_name(enum hec_verdict_kind kind);
/* "healthy: compute-bound": for people. */
const char *hec_verdict_title(enum hec_verdict_kind kind);

/* Reads summary's device, activity and power_limit_w. */
/* Its numbers become evidence. */
void hec_verdict_tell(const struct hec_verdict *verdict, struct hec_finding *out);
void hec_verdict_decide(const struct hec_device_summary *summary, struct hec_verdict *out);

#endif
