/* hec verify --replay: the experiment of a receipt once more. */
#ifndef HEC_CLI_REPLAY_H
#define HEC_CLI_REPLAY_H

#include "cli/experiment.h"

/* run: its verb and args. The exit status: 0 where it comes to the same verdict, with an interval that meets the receipt's; 1 where it does
 * not; else after an error message. Free the run (hec_experiment_free). */
int hec_replay(struct hec_experiment_run *run, const struct hec_receipt *receipt);

#endif
