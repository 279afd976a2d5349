/* From the analysis of a run to a trial of a comparison. */
#ifndef HEC_CLI_TRIAL_OF_H
#define HEC_CLI_TRIAL_OF_H

#include "diagnose/result.h"
#include "prove/trial.h"

/* blocks: room for HEC_STEADY_BLOCKS_MAX; out refers to them. */
void hec_trial_of(const struct hec_summary *summary, struct hec_trial_block *blocks, struct hec_trial *out);

#endif
