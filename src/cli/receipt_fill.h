/* From an experiment to its receipt. */
#pragma once

#include "act/ab.h"
#include "cli/cli.h"
#include "report/receipt/receipt.h"
#include "report/words/conditions.h"

/* What is known before the first trial. Without command B: a baseline. */
void hec_receipt_begin(struct hec_receipt *receipt, const struct hec_ab *ab, const struct hec_trials_options *options,
                       const struct hec_trials *trials);
/* Units of work of the command line. */
void hec_receipt_fill_units(struct hec_receipt *receipt, const struct hec_args *args);
/* What a run of a trial says of the machine and the program; of each trial, for all should say the same. */
void hec_receipt_fill_facts(struct hec_receipt *receipt, const struct hec_summary *run);
/* The table so far, judged. */
int hec_receipt_fill_trials(struct hec_receipt *receipt, const struct hec_experiment_plan *plan,
                            const struct hec_experiment_trial *trials, size_t count);
/* Whole, or not at all: what was at the path stays until then. */
int hec_receipt_write(const struct hec_receipt *receipt, const char *path, bool force, struct hec_why *why);
