/* hec check: has a command become worse than its baseline? And what records a baseline. */
#include "base/log.h"
#include "base/text.h"
#include "cli/experiment.h"
#include "cli/receipt_read.h"
#include "report/receipt/check.h"

#include <fcntl.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIALS 3
#define MAX_JOULES 0.03
#define MAX_TIME 0.05

enum { WITHIN = 0, REGRESSED = 1, UNSURE = 2 };

struct check {
    struct hec_experiment_run run;
    struct hec_receipt baseline; /* with no trials: none was given */
    double limit[HEC_CHECKS];
    char summary[PATH_MAX]; /* where --md writes; "": nowhere */
    bool grows;             /* it is appended there */
};

/* ---- the words of the command line ---- */

static int load_baseline(struct check *c) {
    const char *path = hec_args_value(&c->run.args, HEC_OPT_BASELINE);
    struct hec_why why = {""};
    struct hec_buf objections;
    json_t *root;
    int err = path ? hec_receipt_load(path, &c->baseline, &root, &why) : HEC_OK;
    if (err < 0)
        hec_error("check: %s", why.text);
    if (!path || err < 0)
        return err;
    hec_buf_init(&objections, 1 << 20);
    int count = hec_receipt_verify(&c->baseline, root, &objections);
    if (count > 0) {
        hec_error("check: the baseline %s does not hold:", path);
        hec_text_print(stderr, hec_buf_text(&objections));
    }
    hec_buf_free(&objections);
    json_decref(root);
    return count > 0 ? HEC_ERR_CORRUPT : count;
}

static int parse_limits(struct check *c) {
    bool any = hec_args_has(&c->run.args, HEC_OPT_MAX_JOULES) || hec_args_has(&c->run.args, HEC_OPT_MAX_TIME);
    int err;
    c->limit[HEC_CHECK_JOULES] = any ? NAN : MAX_JOULES;
    c->limit[HEC_CHECK_TIME] = any ? NAN : MAX_TIME;
    if ((err = hec_experiment_percent(&c->run.args, HEC_OPT_MAX_JOULES, &c->limit[HEC_CHECK_JOULES])) < 0)
        return err;
    return hec_experiment_percent(&c->run.args, HEC_OPT_MAX_TIME, &c->limit[HEC_CHECK_TIME]);
}

static int parse(struct check *c) {
    double trials = TRIALS;
    const struct hec_args *args = &c->run.args;
    int err;
    if (!args->rest_count || (!hec_args_has(args, HEC_OPT_BASELINE) && !hec_args_has(args, HEC_OPT_OUTPUT)))
        return hec_args_wrong(args, args->rest_count ? "--baseline FILE to compare with, or -o FILE to record one"
                                                     : "no command");
    if ((err = hec_args_number(args, HEC_OPT_RUNS, 1, 1000, &trials)) < 0 || (err = parse_limits(c)) < 0 ||
        (err = load_baseline(c)) < 0)
        return err;
    if (c->baseline.trial_count)
        hec_experiment_follow(&c->run, &c->baseline);
    c->run.ab.command[0] = args->rest;
    c->run.ab.plan.pairs = (int)trials;
    if ((err = hec_experiment_options(&c->run)) < 0 || (err = hec_experiment_path(&c->run)) < 0)
        return err;
    struct hec_why why = {""};
    if ((err = hec_output_summary(args, c->summary, &c->grows, &why)) < 0)
        hec_error("check: %s", why.text);
    return err;
}

/* ---- the answer ---- */

/* Where its summary goes is looked at before the trials, with the receipt's path. */
static int save_summary(const struct check *c, const struct hec_check_report *report) {
    struct hec_buf text;
    struct hec_why why = {""};
    hec_buf_init(&text, 1 << 20);
    int err = hec_check_markdown(report, &text);
    if (!err)
        err = c->grows ? hec_output_append(c->summary, &text, &why)
                       : hec_output_write(c->summary, &text, hec_args_has(&c->run.args, HEC_OPT_FORCE), &why);
    if (err < 0)
        hec_error("check: %s", why.text[0] ? why.text : hec_err_text(err));
    hec_buf_free(&text);
    return err;
}

static int answer(struct check *c) {
    static const int status[] = {WITHIN, REGRESSED, UNSURE};
    struct hec_check_report report = {
        .baseline = &c->baseline, .now = &c->run.receipt, .unlike = hec_args_has(&c->run.args, HEC_OPT_UNLIKE)};
    struct hec_buf out;
    hec_buf_init(&out, 1 << 20);
    hec_receipt_unlikes(report.baseline, report.now, &report.unlikes);
    int err = hec_check_judge(c->baseline.trials, c->baseline.trial_count, c->run.receipt.trials,
                              c->run.receipt.trial_count, c->limit, &report.check);
    if (!err)
        err = hec_check_terminal(&report, &c->run.style, &out);
    if (!err)
        err = hec_print(&out);
    if (!err && c->summary[0])
        err = save_summary(c, &report);
    hec_buf_free(&out);
    return err ? hec_err_exit_status(err) : status[hec_check_report_state(&report)];
}

int hec_verb_check(struct hec_args *args) {
    struct check c = {
        .run = {.verb = "check", .args = *args, .options = {.session = hec_session_defaults()}, .ab = {.warm_up = 1}}};
    struct hec_ab_outcome outcome = {.state = HEC_AB_FAILED};
    c.run.options.session.trace = HEC_TRACE_OFF;
    int err = parse(&c), status = err < 0 ? hec_args_status(args, err) : 0;
    if (err == HEC_OK) {
        status = hec_experiment_run(&c.run, &outcome);
        if (status == REGRESSED)
            status = UNSURE; /* the command failed: it is not known to be slower */
        else if (!status && c.baseline.trial_count)
            status = answer(&c);
        else if (!status)
            fprintf(stderr, "hec: check: %d trial%s the baseline %s\n", c.run.ab.plan.pairs,
                    c.run.ab.plan.pairs == 1 ? " is" : "s are", c.run.path);
    }
    hec_ab_free(&outcome);
    hec_experiment_free(&c.run);
    hec_receipt_free(&c.baseline);
    hec_verb_exit(status);
}
