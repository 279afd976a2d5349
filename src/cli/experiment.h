/* An experiment from the command line, with its receipt: what `ab`, `check` and `verify --replay` have in common. */
#pragma once

#include "act/ab.h"
#include "cli/load.h"
#include "cli/output.h"
#include "diagnose/result.h"
#include "prove/experiment.h"
#include "prove/trial.h"
#include "report/receipt/receipt.h"

#include <limits.h>

/* What a trial came to: its run analysed, and what counts of it for the experiment. */

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

struct hec_experiment_run {
    const char *verb; /* for messages */
    struct hec_args args;
    struct hec_report_style style;
    struct hec_printed_unit printed[HEC_PRINTED_MAX];
    struct hec_ab ab; /* without command B: trials of A alone, `pairs` of them */
    struct hec_trials_options options;
    struct hec_receipt receipt;
    char path[PATH_MAX];               /* of the receipt, which is written after each pair; "": nowhere */
    bool chosen, written;              /* path is of hec's choice: it replaces no file; the receipt is there */
    char page[PATH_MAX];               /* of its page, which hec_experiment_page writes; "": nowhere */
    const struct hec_receipt *follows; /* its trials run as those of this one did; NULL: none */
    /* A trial has ended well: measure.summary is its run, which may be taken away. NULL is fine. */
    int (*after)(struct hec_experiment_run *run, const struct hec_ab_outcome *so_far, struct hec_why *why);
    struct hec_trial_measure measure;
    struct hec_progress progress;
};

/* Trials run as those of a receipt did, which outlives the run; but for where they write: in a layer. Before the options, which may say
 * otherwise. */
void hec_experiment_follow(struct hec_experiment_run *run, const struct hec_receipt *receipt);
/* The options of trials: --steps, --seconds, --warm-up, --trace, --hooks, --caches, --in-place, --sim, --color ... HEC_ERR_USAGE after
 * printing. */
int hec_experiment_options(struct hec_experiment_run *run);
/* "1.5" or "+1.5%" becomes 0.015; untouched where it is not given. HEC_ERR_USAGE after printing. */
int hec_experiment_percent(const struct hec_args *args, enum hec_option option, double *out);
/* Of the receipt, from --output, into path: "" where it is not given. What is there is kept, unless --force is given. HEC_ERR_USAGE after
 * printing. */
int hec_experiment_path(struct hec_experiment_run *run);
/* The same, but one after the verb and the time where it is not given; and that of the page. */
int hec_experiment_paths(struct hec_experiment_run *run);
/* The receipt's page, where one is asked for; says where it is, and the receipt, where nobody chose its name. HEC_ERR_* after an error
 * message. */
int hec_experiment_page(const struct hec_experiment_run *run);
/* What is at its path is overwritten: it is of this experiment, or --force says so. */
bool hec_experiment_replaces(const struct hec_experiment_run *run);

/* Trials can be run: the supervisor is started, and the layer lies; under levers as well that need a guard of a device's limits (levers:
 * all that may be applied; NULL: none). HEC_ERR_* after an error message. */
int hec_experiment_open(struct hec_experiment_run *run, const struct hec_lever_set *levers, struct hec_trials **trials);
/* After both. An error, after a message, where limits could not be put back. */
int hec_experiment_close(struct hec_experiment_run *run, struct hec_trials *trials);
/* The experiment on open trials, which are left open; as hec_experiment_run. */
int hec_experiment_go(struct hec_experiment_run *run, struct hec_trials *trials, struct hec_ab_outcome *outcome);

/* The exit status: 0 where it came to its end, 128+N where signal N asked for it; else after an error message. Free the outcome
 * (hec_ab_free) in any case. */
int hec_experiment_run(struct hec_experiment_run *run, struct hec_ab_outcome *outcome);
void hec_experiment_free(struct hec_experiment_run *run);
