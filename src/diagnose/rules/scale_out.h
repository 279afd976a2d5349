/* The verdicts above the findings: optimise or scale out, and where a request's time goes. */
#ifndef HEC_DIAGNOSE_RULES_SCALE_OUT_H
#define HEC_DIAGNOSE_RULES_SCALE_OUT_H

#include "diagnose/finding.h"

struct hec_summary;

/* Fills findings->scale_out from the list, which is sorted. */
void hec_scale_out_decide(const struct hec_summary *summary, struct hec_findings *findings);
/* Of the device with most busy time; valid only where the steps are calls of a module (serving, inference). */
void hec_latency_split(const struct hec_summary *summary, struct hec_latency *out);

#endif
