/* hec ab: two commands in interleaved trials, until it is shown which takes fewer joules. The trials: act/ab.h. */
#include "act/ab.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/receipt_fill.h"
#include "cli/trial_measure.h"
#include "launch/keeper.h"
#include "report/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEPARATOR ":::"
#define PAIRS_MOST 1000

struct ab {
    struct hec_args args;
    struct hec_price price;
    struct hec_report_style style;
    struct hec_ab plan;
    struct hec_trials_options options;
    struct hec_summary *runs[2]; /* of complete pairs, and of the one at hand */
    int counts[2];
    struct hec_trial_measure measure;
    struct hec_receipt receipt;
    char path[PATH_MAX]; /* of the receipt */
    struct hec_progress progress;
};

/* ---- the words of the command line ---- */

static int split(struct ab *ab) {
    char **words = ab->args.rest;
    int at = 0;
    while (words[at] && strcmp(words[at], SEPARATOR) != 0)
        at++;
    if (!at || !words[at] || !words[at + 1]) {
        hec_error("ab: two commands with " SEPARATOR " between them; usage: hec ab %s",
                  hec_verb_info(HEC_VERB_AB)->usage);
        return HEC_ERR_USAGE;
    }
    words[at] = NULL;
    ab->plan.command[0] = words;
    ab->plan.command[1] = words + at + 1;
    for (int i = at + 1; words[i]; i++)
        if (strcmp(words[i], SEPARATOR) == 0) {
            hec_error("ab: " SEPARATOR " stands once, between A and B");
            return HEC_ERR_USAGE;
        }
    return HEC_OK;
}

/* "1.5" or "1.5%" */
static int parse_percent(const struct hec_args *args, enum hec_option option, double *out) {
    const char *text = hec_args_value(args, option);
    char *end;
    if (!text)
        return HEC_OK;
    double value = strtod(text, &end);
    if (end == text || (strcmp(end, "%") != 0 && *end) || !(value > 0 && value <= 50)) {
        hec_error("--%s needs percent from above 0 to 50, not \"%s\"", hec_option_info(option)->name, text);
        return HEC_ERR_USAGE;
    }
    *out = value / 100;
    return HEC_OK;
}

static int parse_plan(struct ab *ab) {
    struct hec_experiment_plan *plan = &ab->plan.plan;
    struct hec_stop *stop = &ab->options.session.stop;
    double pairs = 0, most = 0, seed = (double)(hec_clock_wall_ns() & 0xffffffff), steps = 0, seconds = 0, warm_up = 1;
    int err = 0;
    if ((err = hec_args_number(&ab->args, HEC_OPT_PAIRS, 2, PAIRS_MOST, &pairs)) < 0 ||
        (err = hec_args_number(&ab->args, HEC_OPT_PAIRS_MOST, 4, PAIRS_MOST, &most)) < 0 ||
        (err = hec_args_number(&ab->args, HEC_OPT_SEED, 0, 4294967295.0, &seed)) < 0 ||
        (err = hec_args_number(&ab->args, HEC_OPT_STEPS, 6, 1e9, &steps)) < 0 ||
        (err = hec_args_number(&ab->args, HEC_OPT_SECONDS, 1, 1e6, &seconds)) < 0 ||
        (err = hec_args_number(&ab->args, HEC_OPT_WARM_UP, 0, 100, &warm_up)) < 0 ||
        (err = parse_percent(&ab->args, HEC_OPT_UNTIL, &plan->until)) < 0 ||
        (err = parse_percent(&ab->args, HEC_OPT_MARGIN, &plan->margin)) < 0)
        return err;
    if (pairs > 0 && plan->until > 0) {
        hec_error("ab: --pairs and --until exclude each other: one fixes the number of pairs, the other the precision");
        return HEC_ERR_USAGE;
    }
    plan->seed = (uint64_t)seed;
    plan->pairs = (int)pairs;
    plan->pairs_most = (int)most;
    stop->steps = (int64_t)steps;
    stop->after_ns = (int64_t)(seconds * (double)HEC_NS_PER_S);
    ab->plan.warm_up = (int)warm_up;
    return HEC_OK;
}

/* Of the receipt: --output, else one after the time. What is there is kept, unless --force is given. */
static int choose_path(struct ab *ab) {
    struct hec_why why = {""};
    time_t now = time(NULL);
    struct tm local;
    int err = hec_output_path(&ab->args, false, ab->path, &why);
    if (err == HEC_OK && !ab->path[0])
        strftime(ab->path, sizeof ab->path, "ab-%Y%m%d-%H%M%S.json", localtime_r(&now, &local));
    else if (err == HEC_OK && !hec_args_has(&ab->args, HEC_OPT_FORCE) && access(ab->path, F_OK) == 0)
        err = hec_fail(&why, HEC_ERR_USAGE, "%s exists; --force overwrites it", ab->path);
    if (err < 0)
        hec_error("ab: %s", why.text);
    return err;
}

static int parse(struct ab *ab, int argc, char **argv) {
    struct hec_session_options *session = &ab->options.session;
    int err = hec_args_parse(HEC_VERB_AB, argc, argv, &ab->args);
    if (err != HEC_OK)
        return err;
    session->trace = HEC_TRACE_OFF;
    if ((err = split(ab)) < 0 || (err = parse_plan(ab)) < 0 || (err = hec_load_tracing(&ab->args, session)) < 0 ||
        (err = hec_load_price(&ab->args, &ab->price)) < 0 ||
        (err = hec_load_style(&ab->args, STDOUT_FILENO, &ab->style)) < 0)
        return err;
    session->simulated = hec_args_value(&ab->args, HEC_OPT_SIM);
    ab->options.in_place = hec_args_has(&ab->args, HEC_OPT_IN_PLACE);
    const char *caches = hec_args_value(&ab->args, HEC_OPT_CACHES);
    ab->options.caches = caches ? hec_caches_find(caches) : HEC_CACHES_TRIALS;
    if (ab->options.caches == HEC_CACHES_COUNT) {
        hec_error("--caches needs trials, fresh or user, not \"%s\"", caches);
        return HEC_ERR_USAGE;
    }
    ab->measure = (struct hec_trial_measure){.args = &ab->args, .price = &ab->price, .stop_steps = session->stop.steps};
    return choose_path(ab);
}

/* ---- a trial ---- */

/* "pair 3, trial of B; so far B / A 0.957 (0.91 to 1.02), about 4 pairs more" */
static void begin(void *context, const struct hec_ab_outcome *so_far) {
    struct ab *ab = context;
    char line[160], which[32] = "warm-up";
    if (so_far->pair >= 0)
        snprintf(which, sizeof which, "pair %d", so_far->pair + 1);
    snprintf(line, sizeof line, "%s, trial of %c", which, "AB"[so_far->side]);
    hec_progress_now(&ab->progress, line);
}

static int measure(void *context, const struct hec_ab_outcome *so_far, const struct hec_session *session,
                   const struct hec_session_result *result, struct hec_experiment_trial *out, int64_t *steps,
                   struct hec_why *why) {
    struct ab *ab = context;
    return hec_trial_measure(&ab->measure, session, result, so_far->plan.loss_steps, out, steps, why);
}

/* The run of a trial that counts is kept until the end: what moved in the ledger is of all of them. */
static int keep(struct ab *ab, int side) {
    struct hec_summary *grown = realloc(ab->runs[side], (size_t)(ab->counts[side] + 1) * sizeof *grown);
    if (!grown)
        return HEC_ERR_NOMEM;
    ab->runs[side] = grown;
    grown[ab->counts[side]++] = ab->measure.summary;
    ab->measure.summary = (struct hec_summary){0};
    return HEC_OK;
}

static void say(struct ab *ab, const struct hec_ab_outcome *so_far) {
    const struct hec_experiment_result *r = &so_far->result;
    char interval[64] = "", left[64] = "";
    if (isfinite(r->look.high))
        snprintf(interval, sizeof interval, " (%.3f to %.3f)", r->look.low, r->look.high);
    if (r->look.pairs_left > 0)
        snprintf(left, sizeof left, "; about %d pairs more", r->look.pairs_left);
    hec_progress_end(&ab->progress);
    if (so_far->pair < 0)
        fprintf(stderr, "hec: warm-up of %c: %.1f s\n", "AB"[so_far->side], so_far -> end.seconds);
    else if (r->pairs == so_far->pair + 1)
        fprintf(stderr, "hec: pair %d: B / A %.4f%s%s\n", r->pairs, r->look.ratio, interval, left);
}

static int after(void *context, const struct hec_ab_outcome *so_far, struct hec_why *why) {
    struct ab *ab = context;
    const struct hec_experiment_result *r = &so_far->result;
    say(ab, so_far);
    if (r->pairs && r->quantity[r->judged].shown == HEC_SHOWN_UNKNOWN)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "nothing to compare: trials that are ended early need steps (hooks or marks) or --units, and "
                        "joules or time of both");
    if (so_far->count == 1)
        hec_receipt_fill_facts(&ab->receipt, &ab->measure.summary);
    if (so_far->pair >= 0 && keep(ab, so_far->side) < 0)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the trials' analyses");
    int err = hec_receipt_fill_trials(&ab->receipt, &so_far->plan, so_far->trials, so_far->count);
    return err ? hec_fail(why, err, "%s", hec_err_text(err)) : hec_receipt_write(&ab->receipt, ab->path, why);
}

/* ---- the whole ---- */

/* What moved in the ledger from all trials of A to all of B; a text that is empty where nothing is known of it. */
static int print_moved(const struct ab *ab, int pairs, struct hec_buf *out) {
    struct hec_versus *versus = calloc(1, sizeof *versus);
    if (!versus)
        return HEC_ERR_NOMEM;
    for (int side = 0; side < 2; side++)
        versus->side[side] = (struct hec_side){ab->runs[side], pairs};
    hec_unlikes_find(versus->side, &versus->unlikes);
    hec_moved_find(versus->side, &versus->moved);
    int err = hec_versus_moved_terminal(versus, &ab->style, out);
    free(versus);
    return err;
}

static int print(const struct ab *ab, const struct hec_ab_outcome *outcome) {
    struct hec_buf out;
    hec_buf_init(&out, 16u << 20);
    int err = hec_args_has(&ab->args, HEC_OPT_JSON)       ? hec_receipt_json(&ab->receipt, &out)
              : hec_args_has(&ab->args, HEC_OPT_MARKDOWN) ? hec_receipt_markdown(&ab->receipt, &out)
                                                          : hec_receipt_terminal(&ab->receipt, &ab->style, &out);
    if (err == HEC_OK && !hec_args_has(&ab->args, HEC_OPT_JSON) && !hec_args_has(&ab->args, HEC_OPT_MARKDOWN))
        err = print_moved(ab, outcome->result.pairs, &out);
    if (err == HEC_OK)
        err = hec_print(&out);
    hec_buf_free(&out);
    return err;
}

static int failed(const struct hec_ab_outcome *outcome) {
    const char *tail = outcome->end.tail;
    hec_error("ab: %c failed: exit status %d%s", "AB"[outcome->side], outcome -> end.exit_status,
              tail[0] ? "; the last of what it printed:" : ", and it printed nothing");
    if (tail[0])
        fprintf(stderr, "%s%s", tail, tail[strlen(tail) - 1] == '\n' ? "" : "\n");
    return 1;
}

/* The exit status. */
static int experiment(struct ab *ab, struct hec_trials *trials) {
    struct hec_ab_watch watch = {begin, measure, after, ab};
    struct hec_ab_outcome outcome;
    struct hec_why why = {""};
    int err = hec_ab_run(trials, &ab->plan, &watch, &outcome, &why);
    bool started = outcome.end.seconds > 0 || !outcome.end.exit_status;
    int status = err < 0 && !started ? outcome.end.exit_status : hec_err_exit_status(err);
    if (err < 0)
        hec_error("ab: %s", why.text[0] ? why.text : hec_err_text(err));
    else if (outcome.state == HEC_AB_FAILED)
        status = failed(&outcome);
    if (outcome.result.pairs > 0 && (err = print(ab, &outcome)) < 0)
        status = status ? status : hec_err_exit_status(err);
    if (outcome.state == HEC_AB_INTERRUPTED)
        status = 128 + outcome.end.asked;
    hec_ab_free(&outcome);
    return status;
}

static int run(struct ab *ab) {
    struct hec_trials *trials;
    struct hec_why why = {""};
    int status, err = hec_keeper_start(&ab->options.layer, NULL, &why);
    if (err == HEC_OK)
        err = hec_trials_open(&ab->options, &trials, &why);
    if (err < 0) {
        hec_error("ab: %s", why.text);
        return hec_err_exit_status(err);
    }
    hec_progress_begin(&ab->progress);
    hec_receipt_begin(&ab->receipt, ab->plan.command[0], ab->plan.command[1], &ab->options, ab->plan.warm_up, trials);
    status = experiment(ab, trials);
    hec_progress_end(&ab->progress);
    hec_trials_close(trials);
    return status;
}

int hec_verb_ab(int argc, char **argv) {
    struct ab ab = {.options = {.session = hec_session_defaults()}};
    int err = parse(&ab, argc, argv);
    int status = err < 0 ? hec_err_exit_status(err) : err > 0 ? 0 : run(&ab);
    hec_summary_free(&ab.measure.summary);
    hec_receipt_free(&ab.receipt);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < ab.counts[side]; i++)
            hec_summary_free(&ab.runs[side][i]);
        free(ab.runs[side]);
    }
    fflush(NULL);
    _exit(status); /* an abandoned driver thread must not hold the exit up */
}
