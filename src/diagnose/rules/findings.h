/* All rules over all devices of a run, and the two verdicts that stand above them. */
#ifndef HEC_DIAGNOSE_RULES_FINDINGS_H
#define HEC_DIAGNOSE_RULES_FINDINGS_H

#include "base/error.h"
#include "diagnose/finding.h"

struct hec_summary;
struct hec_predictor;

/* A finding that saves less, of the time and of the joules, is reported, but not worth acting on: the device is then called
 * healthy first. */
#define HEC_FINDING_WORTH 0.05
/* So is one that is less sure: a hint. */
#define HEC_FINDING_SURE 0.3
/* The limit after all answers is named where it takes so much of what is left of a step. */
#define HEC_FINDING_NEXT 0.2

/* What it saves at best guess, of the time or of the joules, whichever is more; 0 unknown. */
double hec_finding_worth(const struct hec_finding *finding);

/* Findings of the devices that the run used, the largest saving first; `none` stands first where nothing is worth acting
 * on and the device is known to be busy. What several devices of one job have is one finding: devices that communicate, or that one process
 * uses. summary: complete but for these. predictor: replays what an edit answers (replay/predict.h); NULL: rules alone say what is
 * saved. 0 or HEC_ERR_NOMEM (then *out is empty). */
int hec_findings_build(const struct hec_summary *summary, const struct hec_predictor *predictor,
                       struct hec_findings *out);
void hec_findings_free(struct hec_findings *findings);

#endif
