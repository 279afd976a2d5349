/* What a trial came to: its run analysed, and what counts of it for the experiment. */
#pragma once

#include "cli/load.h"
#include "diagnose/result.h"
#include "prove/experiment.h"
#include "prove/trial.h"

/* From the analysis of a run to a trial of a comparison. blocks: room for HEC_STEADY_BLOCKS_MAX; out refers to them. */
void hec_trial_of(const struct hec_summary *summary, struct hec_trial_block *blocks, struct hec_trial *out);

struct hec_trial_measure {
    const struct hec_args *args;
    int64_t stop_steps;         /* a trial is ended after so many; 0: not by them */
    struct hec_summary summary; /* of the last trial; freed by the next one */
};

/* loss_steps: the losses' parts are of the first so many steps; 0: of those of this trial, which are given back in *steps. */
int hec_trial_measure(struct hec_trial_measure *measure, const struct hec_session *session,
                      const struct hec_session_result *result, int64_t loss_steps, struct hec_experiment_trial *out,
                      int64_t *steps, struct hec_why *why);
