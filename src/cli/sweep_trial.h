/* From a trial's run to its row in the table of a sweep. */
#ifndef HEC_CLI_SWEEP_TRIAL_H
#define HEC_CLI_SWEEP_TRIAL_H

#include "cli/trial_measure.h"
#include "prove/sweep.h"
#include "report/receipt/receipt.h"

/* All but which setting and round it was of. */
int hec_sweep_trial_measure(struct hec_trial_measure *measure, const struct hec_session *session,
                            const struct hec_session_result *result, struct hec_sweep_trial *out, struct hec_why *why);
/* The same of one that failed: nothing is known. */
void hec_sweep_trial_failed(struct hec_sweep_trial *out);
/* What its run says of the machine; and the unit of work, which all trials have to share: else there is none. */
void hec_sweep_trial_fill(struct hec_receipt *conditions, const struct hec_summary *run, bool first,
                          struct hec_sweep_trial *trial);

#endif
