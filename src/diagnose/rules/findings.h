/* All rules over all devices of a run, and the verdicts that stand above them (verdicts.h). */
#pragma once

#include "base/error.h"
#include "diagnose/finding.h"
#include "diagnose/limits.h"

struct hec_summary;
struct hec_predictor;

/* Findings of the devices that the run used, the largest saving first; `none` stands first where nothing is worth acting
 * on and the device is known to be busy. What several devices of one job have is one finding: devices that communicate, or that one process
 * uses. summary: complete but for these. predictor: replays what an edit answers (replay/predict.h); NULL: rules alone say what is
 * saved. 0 or HEC_ERR_NOMEM (then *out is empty). */
int hec_findings_build(const struct hec_summary *summary, const struct hec_predictor *predictor,
                       struct hec_findings *out);
void hec_findings_free(struct hec_findings *findings);
