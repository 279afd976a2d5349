/* hec ab: two commands in interleaved trials, until it is shown which takes fewer joules. The trials: act/ab.h. */
#include "base/clock.h"
#include "base/log.h"
#include "cli/experiment.h"
#include "cli/with.h"
#include "report/compare/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEPARATOR ":::"
#define PAIRS_MOST 1000

struct ab {
    struct hec_experiment_run run;
    struct hec_lever_set levers; /* of B */
    struct hec_summary *runs[2]; /* of complete pairs, and of the one at hand */
    int counts[2];
};

/* ---- the words of the command line ---- */

static int split(struct hec_ab *ab, const struct hec_args *args) {
    char **words = args->rest;
    int at = 0;
    ab->command[0] = ab->command[1] = words; /* under levers */
    ab->plan.gradients = true;
    while (words[at] && strcmp(words[at], SEPARATOR) != 0)
        at++;
    if (at && !words[at] && ab->levers)
        return HEC_OK;
    if (!at || !words[at] || !words[at + 1]) {
        return hec_args_wrong(args, "two commands with " SEPARATOR " between them");
    }
    words[at] = NULL;
    ab->command[1] = words + at + 1;
    for (int i = at + 1; words[i]; i++)
        if (strcmp(words[i], SEPARATOR) == 0) {
            hec_error("ab: " SEPARATOR " stands once, between A and B");
            return HEC_ERR_USAGE;
        }
    return HEC_OK;
}

static int parse_plan(struct hec_experiment_run *run) {
    struct hec_experiment_plan *plan = &run->ab.plan;
    double pairs = 0, most = 0, seed = (double)(hec_clock_wall_ns() & 0xffffffff);
    int err = 0;
    if ((err = hec_args_number(&run->args, HEC_OPT_PAIRS, 2, PAIRS_MOST, &pairs)) < 0 ||
        (err = hec_args_number(&run->args, HEC_OPT_PAIRS_MOST, 4, PAIRS_MOST, &most)) < 0 ||
        (err = hec_args_number(&run->args, HEC_OPT_SEED, 0, 4294967295.0, &seed)) < 0 ||
        (err = hec_experiment_percent(&run->args, HEC_OPT_UNTIL, &plan->until)) < 0 ||
        (err = hec_experiment_percent(&run->args, HEC_OPT_MARGIN, &plan->margin)) < 0)
        return err;
    if (pairs > 0 && plan->until > 0) {
        hec_error("ab: --pairs and --until exclude each other: one fixes the number of pairs, the other the precision");
        return HEC_ERR_USAGE;
    }
    plan->large_effects = true;
    plan->seed = (uint64_t)seed;
    plan->pairs = (int)pairs;
    plan->pairs_most = (int)most;
    return HEC_OK;
}

static int parse(struct ab *ab) {
    struct hec_experiment_run *run = &ab->run;
    int err;
    if ((err = hec_with_parse(&run->args, &ab->levers)) < 0)
        return err;
    run->ab.levers = ab->levers.count ? &ab->levers : NULL;
    if ((err = split(&run->ab, &run->args)) < 0 || (err = parse_plan(run)) < 0 ||
        (err = hec_experiment_options(run)) < 0)
        return err;
    return hec_experiment_paths(run);
}

/* ---- a trial ---- */

/* The run of a trial that counts is kept until the end: what moved in the ledger is of all of them. */
static int keep(struct hec_experiment_run *run, const struct hec_ab_outcome *so_far, struct hec_why *why) {
    struct ab *ab = (struct ab *)run; /* its first member */
    int side = so_far->side;
    if (so_far->pair < 0)
        return HEC_OK;
    struct hec_summary *grown = realloc(ab->runs[side], (size_t)(ab->counts[side] + 1) * sizeof *grown);
    if (!grown)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the trials' analyses");
    ab->runs[side] = grown;
    grown[ab->counts[side]++] = run->measure.summary;
    run->measure.summary = (struct hec_summary){0};
    return HEC_OK;
}

/* ---- the whole ---- */

/* What moved in the ledger from all trials of A to all of B; a text that is empty where nothing is known of it. */
static int print_moved(const struct ab *ab, int pairs, struct hec_buf *out) {
    struct hec_versus *versus = calloc(1, sizeof *versus);
    if (!versus)
        return HEC_ERR_NOMEM;
    for (int side = 0; side < 2; side++)
        versus->side[side] = (struct hec_side){ab->runs[side], pairs};
    hec_delta_find(versus->side, &versus->moved);
    int err = hec_versus_moved_terminal(versus, &ab->run.style, out);
    free(versus);
    return err;
}

static int print(const struct ab *ab, int pairs) {
    const struct hec_experiment_run *run = &ab->run;
    bool json = hec_args_has(&run->args, HEC_OPT_JSON), markdown = hec_args_has(&run->args, HEC_OPT_MARKDOWN);
    struct hec_buf out;
    hec_buf_init(&out, 16u << 20);
    int err = json       ? hec_receipt_json(&run->receipt, &out)
              : markdown ? hec_receipt_markdown(&run->receipt, &out)
                         : hec_receipt_terminal(&run->receipt, &run->style, &out);
    if (err == HEC_OK && !json && !markdown)
        err = print_moved(ab, pairs, &out);
    err = hec_print_made(&out, err);
    int page = hec_experiment_page(run);
    return err < 0 ? err : page;
}

int hec_verb_ab(struct hec_args *args) {
    struct ab ab = {
        .run = {.verb = "ab", .args = *args, .options = {.session = hec_session_defaults()}, .ab = {.warm_up = 1}}};
    struct hec_ab_outcome outcome = {.state = HEC_AB_FAILED};
    ab.run.options.session.trace = HEC_TRACE_OFF;
    ab.run.after = keep;
    int err = parse(&ab), status = err < 0 ? hec_err_exit_status(err) : 0;
    if (err == HEC_OK) {
        status = hec_experiment_run(&ab.run, &outcome);
        /* of the receipt, which has what was kept: a pair that cannot be compared is in the outcome alone */
        int pairs = ab.run.receipt.result.pairs;
        if (pairs > 0 && (err = print(&ab, pairs)) < 0)
            status = status ? status : hec_err_exit_status(err);
    }
    hec_ab_free(&outcome);
    hec_experiment_free(&ab.run);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < ab.counts[side]; i++)
            hec_summary_free(&ab.runs[side][i]);
        free(ab.runs[side]);
    }
    hec_verb_exit(status);
}
