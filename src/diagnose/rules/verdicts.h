/* The verdicts that stand above the findings: optimise or scale out, and where a request's time goes. */
#pragma once

#include "diagnose/finding.h"

struct hec_summary;

/* Fills findings->scale_out from the list, which is sorted, and `unseen`. */
void hec_scale_out_decide(const struct hec_summary *summary, struct hec_findings *findings);
void hec_latency_split(const struct hec_summary *summary, struct hec_latency *out);
