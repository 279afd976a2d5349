#include "cli/experiment.h"

#include "base/text.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/receipt_fill.h"
#include "cli/with.h"
#include "launch/child.h"
#include "launch/supervisor.h"
#include "report/html.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define GRADIENT_LEAST 1e-30 /* none at all */
#define GRADIENTS_LEAST 4
#define PART_LEAST 8 /* losses of a part that has more steps: spread over it, they are worth its mean */

static int64_t part_begin(int part, int64_t steps) {
    return (part * steps + HEC_EXPERIMENT_BINS - 1) / HEC_EXPERIMENT_BINS;
}

/* Whether a process's losses are the command's: those of a job are all its ranks', which have other data each; else they are of the
 * process whose steps count. */
static bool is_of_command(const struct hec_summary *s, int32_t pid) {
    bool rank = false, counts = false;
    for (int i = 0; i < s->job.rank_count && s->job.size > 1; i++) {
        rank |= s->job.ranks[i].pid == pid;
        counts |= s->job.ranks[i].pid == s->steps.pid;
    }
    return pid == s->steps.pid || (rank && counts);
}

/* Means of equal parts of the steps. What is not finite stays so. A part of which only some losses are known has none: the
 * faster side would have others of its steps, and early losses fall from one to the next. */
static void bin_losses(const struct hec_summary *s, int64_t of_steps, struct hec_experiment_trial *out) {
    const struct hec_step_summary *steps = &s->steps;
    double sum[HEC_EXPERIMENT_BINS] = {0};
    int count[HEC_EXPERIMENT_BINS] = {0}, processes = 0;
    for (int64_t i = 0; i < steps->loss_count && of_steps > 0; i++) {
        int64_t step = steps->losses[i].step;
        int bin = (int)(step * HEC_EXPERIMENT_BINS / of_steps);
        if (step >= of_steps || !is_of_command(s, steps->losses[i].pid))
            continue;
        processes += i == 0 || steps->losses[i].pid != steps->losses[i - 1].pid;
        sum[bin] += isfinite(steps->losses[i].value) ? steps->losses[i].value : INFINITY;
        count[bin]++;
        out->loss_count++;
    }
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++) {
        int64_t whole = part_begin(i + 1, of_steps) - part_begin(i, of_steps);
        if (count[i] && (count[i] >= processes * whole || count[i] >= processes * PART_LEAST))
            out->loss[i] = sum[i] / count[i];
    }
}

struct mean {
    double sum;
    int count;
};

static void add_value(struct mean *mean, double value) {
    if (isfinite(value)) {
        mean->sum += value;
        mean->count++;
    }
}

static double log_of(struct mean mean) {
    return mean.count >= GRADIENTS_LEAST ? log(fmax(mean.sum / mean.count, GRADIENT_LEAST)) : NAN;
}

/* The first rank of a job that has some, so that it is the same one in all trials; else the process whose steps count. */
static int32_t whose_gradients(const struct hec_summary *s) {
    const struct hec_step_summary *steps = &s->steps;
    for (int r = 0; r < s->job.rank_count && is_of_command(s, s->job.ranks[r].pid); r++)
        for (int64_t i = 0; i < steps->gradient_count; i++)
            if (steps->gradients[i].pid == s->job.ranks[r].pid)
                return s->job.ranks[r].pid;
    return steps->pid;
}

/* Of the same steps in all trials: the hooks take the first ones, then every eighth, and of the first ones the parts. Where a loss becomes
 * nearly nothing, and with it late gradients but for rounding, the mean of all is that of the first. */
static struct hec_gradients gradients_of(const struct hec_summary *s, int64_t of_steps) {
    const struct hec_step_summary *steps = &s->steps;
    int32_t pid = whose_gradients(s);
    struct mean all = {0, 0}, first = {0, 0}, parts[HEC_GRADIENT_PARTS] = {{0, 0}};
    struct hec_gradients out;
    int come = 0;
    for (int64_t i = 0; i < steps->gradient_count; i++) {
        const struct hec_step_number *norm = &steps->gradients[i];
        if (norm->pid != pid || norm->step >= of_steps || norm->part >= HEC_GRADIENT_PARTS)
            continue;
        if (norm->part >= 0) {
            add_value(&parts[norm->part], norm->value);
            continue;
        }
        if (come++ < HEC_GRADIENT_FIRST)
            add_value(&first, norm->value);
        add_value(&all, norm->value);
    }
    out.all = log_of(all);
    out.first = log_of(first);
    for (int i = 0; i < HEC_GRADIENT_PARTS; i++)
        out.part[i] = log_of(parts[i]);
    return out;
}

/* The work of the command's own lines takes the place of what HEC counts: by their rate, whatever part of the run it is about. */
static int work_as_printed(struct hec_summary *s, struct hec_why *why) {
    const struct hec_printed_summary *p = &s->printed[0];
    if (!s->printed_count)
        return HEC_OK;
    if (isnan(p->per_second))
        return hec_fail(
            why, HEC_ERR_UNSUPPORTED,
            "no line of what a trial printed on stdout and stderr says %s, as --unit wants it (of counts two do)",
            p->unit.name);
    snprintf(s->blocks.unit, sizeof s->blocks.unit, "%s", p->unit.name);
    for (int i = 0; i < s->blocks.count; i++)
        s->blocks.block[i].units = p->per_second * s->blocks.block[i].seconds;
    s->blocks.whole.units = p->per_second * s->blocks.whole.seconds;
    return HEC_OK;
}

int hec_trial_measure(struct hec_trial_measure *m, const struct hec_session *session,
                      const struct hec_session_result *result, int64_t loss_steps, struct hec_experiment_trial *out,
                      int64_t *steps, struct hec_why *why) {
    struct hec_price price = hec_price_default(); /* no cost of a trial is printed */
    struct hec_reader *reader;
    struct hec_trial trial;
    struct hec_trial_block blocks[HEC_STEADY_BLOCKS_MAX];
    hec_summary_free(&m->summary);
    int err = hec_session_open_run(session, &reader, why);
    if (err == HEC_OK)
        err = hec_load_summary_reader(reader, result->path, m->args, &price, &m->summary, why);
    if (err < 0 || (err = work_as_printed(&m->summary, why)) < 0)
        return err;
    hec_trial_of(&m->summary, blocks, &trial);
    out->steady = trial.whole;
    out->run = trial.run;
    if (m->summary.printed_count)
        out->run.units = NAN; /* of the run with its start and end nobody says it */
    out->stopped = result->stopped != HEC_STOPPED_NOT;
    *steps = m->summary.steps.count;
    if (m->stop_steps && m->stop_steps < *steps)
        *steps = m->stop_steps;
    bin_losses(&m->summary, loss_steps ? loss_steps : *steps, out);
    out->gradients = gradients_of(&m->summary, loss_steps ? loss_steps : *steps);
    return HEC_OK;
}

static struct hec_trial_block block_of(const struct hec_steady_block *b) {
    return (struct hec_trial_block){.seconds = b->seconds, .joules = b->joules, .units = b->units, .steps = b->steps};
}

/* Of a run that did not come to its end the whole is not known. */
void hec_trial_of(const struct hec_summary *s, struct hec_trial_block *blocks, struct hec_trial *out) {
    static const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    bool whole = s->complete || s->imported[0];
    *out = (struct hec_trial){
        .whole = unknown, .run = unknown, .block = blocks, .block_count = s->blocks.count, .pair = -1};
    for (int i = 0; i < s->blocks.count; i++)
        blocks[i] = block_of(&s->blocks.block[i]);
    if (s->blocks.count)
        out->whole = block_of(&s->blocks.whole);
    if (whole) {
        out->run.seconds = s->seconds;
        out->run.joules = s->joules;
        out->run.units = s->units[0].is_default ? NAN : s->units[0].count;
        out->run.steps = s->steps.count ? (double)s->steps.count : NAN;
    }
}

/* ---- options ---- */

int hec_experiment_percent(const struct hec_args *args, enum hec_option option, double *out) {
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

static void give(struct hec_args *args, enum hec_option option, const struct hec_receipt_words *values) {
    for (int i = 0; i < values->count && args->given_count < HEC_ARGS_MAX; i++) {
        args->given[args->given_count].option = option;
        args->given[args->given_count++].value = values->list[i];
    }
}

void hec_experiment_follow(struct hec_experiment_run *run, const struct hec_receipt *receipt) {
    struct hec_session_options *session = &run->options.session;
    struct hec_args *args = &run->args;
    bool units = hec_args_has(args, HEC_OPT_UNITS);
    run->follows = receipt;
    session->stop.steps = receipt->steps;
    session->stop.by = receipt->steps_by;
    session->stop.after_ns = (int64_t)(receipt->seconds * HEC_NS_PER_S);
    session->trace = (enum hec_trace_mode)receipt->trace;
    if (receipt->trace_memory_mb > 0)
        session->trace_memory_mb = receipt->trace_memory_mb;
    run->ab.warm_up = receipt->warm_up;
    run->ab.plan.loss_steps = receipt->plan.loss_steps;
    run->options.caches = (enum hec_caches)receipt->caches;
    if (!units)
        give(args, HEC_OPT_UNITS, &receipt->units);
    if (!hec_args_has(args, HEC_OPT_UNIT))
        give(args, HEC_OPT_UNIT, &receipt->printed);
}

int hec_experiment_options(struct hec_experiment_run *run) {
    struct hec_session_options *session = &run->options.session;
    const struct hec_args *args = &run->args;
    double steps = (double)session->stop.steps, seconds = (double)session->stop.after_ns / HEC_NS_PER_S;
    double warm_up = run->ab.warm_up;
    const char *caches = hec_args_value(args, HEC_OPT_CACHES);
    int err = HEC_OK;
    if ((err = hec_args_number(args, HEC_OPT_STEPS, 6, 1e9, &steps)) < 0 ||
        (err = hec_args_number(args, HEC_OPT_SECONDS, 1, 1e6, &seconds)) < 0 ||
        (err = hec_args_number(args, HEC_OPT_WARM_UP, 0, 100, &warm_up)) < 0 ||
        (err = hec_load_printed(args, run->verb, run->printed, &session->printed_count)) < 0 ||
        (err = hec_load_tracing(args, session)) < 0 || (err = hec_load_style(args, STDOUT_FILENO, &run->style)) < 0)
        return err;
    session->printed = run->printed;
    session->stop.steps = (int64_t)steps;
    session->stop.after_ns = (int64_t)(seconds * (double)HEC_NS_PER_S);
    run->ab.warm_up = (int)warm_up;
    if (hec_args_has(args, HEC_OPT_SIM))
        session->simulated = hec_args_value(args, HEC_OPT_SIM);
    run->options.in_place |= hec_args_has(args, HEC_OPT_IN_PLACE);
    run->options.caches = caches ? hec_caches_find(caches) : run->options.caches;
    if (run->options.caches == HEC_CACHES_COUNT) {
        hec_error("--caches needs trials, fresh or user, not \"%s\"", caches);
        return HEC_ERR_USAGE;
    }
    return HEC_OK;
}

int hec_experiment_path(struct hec_experiment_run *run) {
    struct hec_why why = {""};
    int err = hec_output_path(&run->args, false, run->path, &why);
    if (err == HEC_OK && run->path[0])
        err = hec_output_new(&run->args, run->path, &why);
    if (err < 0)
        hec_error("%s: %s", run->verb, why.text);
    return err;
}

/* "ab-20261125-041851.json", or the first of "ab-20261125-041851-2.json" ... that is not taken. */
static void choose_path(struct hec_experiment_run *run) {
    time_t now = time(NULL);
    struct tm local;
    struct stat status;
    char when[32];
    strftime(when, sizeof when, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    snprintf(run->path, sizeof run->path, "%s-%s.json", run->verb, when);
    for (int i = 2; i < 1000 && lstat(run->path, &status) == 0; i++)
        snprintf(run->path, sizeof run->path, "%s-%s-%d.json", run->verb, when, i);
}

int hec_experiment_paths(struct hec_experiment_run *run) {
    struct hec_why why = {""};
    int err = hec_experiment_path(run);
    if (err < 0)
        return err;
    run->chosen = !run->path[0];
    if (run->chosen) {
        choose_path(run);
        err = hec_output_new(&run->args, run->path, &why);
    }
    if (err == HEC_OK)
        err = hec_output_page(&run->args, run->path, run->page, &why);
    if (err < 0)
        hec_error("%s: %s%s", run->verb, why.text, run->chosen && !run->page[0] ? "; -o FILE writes elsewhere" : "");
    return err;
}

bool hec_experiment_replaces(const struct hec_experiment_run *run) {
    return run->written || hec_args_has(&run->args, HEC_OPT_FORCE);
}

static int write_receipt(struct hec_experiment_run *run, struct hec_why *why) {
    bool first = run->chosen && !run->written;
    int err;
    while ((err = hec_receipt_write(&run->receipt, run->path, hec_experiment_replaces(run), why)) == HEC_ERR_EXISTS &&
           first)
        choose_path(run); /* another hec has chosen the same name since */
    run->written |= err == HEC_OK;
    if (err == HEC_OK && first && !hec_args_value(&run->args, HEC_OPT_PAGE))
        err = hec_output_page(&run->args, run->path, run->page, why); /* beside it */
    return err;
}

int hec_experiment_page(const struct hec_experiment_run *run) {
    struct hec_buf page;
    struct hec_why why = {""};
    if (run->chosen && run->written)
        hec_say("receipt: %s", run->path);
    if (!run->page[0])
        return HEC_OK;
    hec_buf_init(&page, HEC_HTML_MOST);
    int err = hec_html_receipt(&run->receipt, &page);
    err = err < 0 ? hec_fail(&why, err, "the page cannot be made: %s", hec_err_text(err))
                  : hec_output_write(run->page, &page, hec_args_has(&run->args, HEC_OPT_FORCE), &why);
    hec_buf_free(&page);
    if (err < 0)
        hec_error("%s: %s", run->verb, why.text);
    else
        hec_say("page: %s", run->page);
    return err;
}

/* ---- a trial ---- */

/* "pair 3, trial of B" */
static void begin(void *context, const struct hec_ab_outcome *so_far) {
    struct hec_experiment_run *run = context;
    char line[64], which[32] = "warm-up";
    if (so_far->pair >= 0)
        snprintf(which, sizeof which, "%s %d", run->ab.command[1] ? "pair" : "trial", so_far->pair + 1);
    if (run->ab.command[1])
        snprintf(line, sizeof line, "%s, trial of %c", which, "AB"[so_far->side]);
    else
        snprintf(line, sizeof line, "%s", which);
    hec_progress_now(&run->progress, line);
}

static int measure(void *context, const struct hec_ab_outcome *so_far, const struct hec_session *session,
                   const struct hec_session_result *result, struct hec_experiment_trial *out, int64_t *steps,
                   struct hec_why *why) {
    struct hec_experiment_run *run = context;
    return hec_trial_measure(&run->measure, session, result, so_far->plan.loss_steps, out, steps, why);
}

/* How many pairs are still to come: as planned, or as what was seen so far lets expect. */
static void say_left(char left[96], const struct hec_experiment_plan *plan, const struct hec_experiment_result *r) {
    int most = plan->pairs_most ? plan->pairs_most : HEC_EXPERIMENT_PAIRS_MOST;
    int come = plan->pairs ? plan->pairs - r->pairs : r->look.pairs_left;
    left[0] = '\0';
    if (come > 0 && (plan->pairs || come <= most - r->pairs))
        snprintf(left, 96, "; %s%d more pair%s", plan->pairs ? "" : "about ", come, come == 1 ? "" : "s");
    else if (come > 0 && r->pairs < most)
        snprintf(left, 96, "; about %d more pairs would be needed, and at most %d follow", come, most - r->pairs);
}

static void say(struct hec_experiment_run *run, const struct hec_ab_outcome *so_far) {
    const struct hec_experiment_result *r = &so_far->result;
    char interval[64] = "", left[96];
    if (isfinite(r->look.high))
        snprintf(interval, sizeof interval, " (%.3f to %.3f)", r->look.low, r->look.high);
    say_left(left, &so_far->plan, r);
    hec_progress_end(&run->progress);
    double seconds = so_far->end.seconds;
    if (so_far->pair < 0)
        fprintf(stderr, "hec: warm-up of %c: %.1f s\n", "AB"[so_far->side], seconds);
    else if (!run->ab.command[1])
        fprintf(stderr, "hec: trial %d of %d: %.1f s\n", so_far->pair + 1, run->ab.plan.pairs, seconds);
    else if (r->pairs == so_far->pair + 1 && isfinite(r->look.ratio))
        fprintf(stderr, "hec: pair %d: B / A %.4f%s%s\n", r->pairs, r->look.ratio, interval, left);
}

static int after(void *context, const struct hec_ab_outcome *so_far, struct hec_why *why) {
    struct hec_experiment_run *run = context;
    const struct hec_experiment_result *r = &so_far->result;
    say(run, so_far);
    if (r->pairs && r->quantity[r->judged].shown == HEC_SHOWN_UNKNOWN)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "nothing to compare: trials that are ended early need steps (hooks or marks) or --units, and "
                        "joules or time of both");
    hec_receipt_fill_facts(&run->receipt, &run->measure.summary);
    int err = run->after ? run->after(run, so_far, why) : HEC_OK;
    if (err < 0)
        return err;
    err = hec_receipt_fill_trials(&run->receipt, &so_far->plan, so_far->trials, so_far->count);
    if (err < 0)
        return hec_fail(why, err, "%s", hec_err_text(err));
    bool shows = run->ab.command[1] ? r->pairs > 0 : so_far->pair >= 0; /* of warm-ups alone there is nothing to keep */
    return run->path[0] && shows ? write_receipt(run, why) : HEC_OK;
}

/* ---- the whole ---- */

static int failed(const struct hec_experiment_run *run, const struct hec_ab_outcome *outcome) {
    const char *tail = outcome->end.tail;
    hec_error("%s: %s failed: exit status %d%s", run->verb,
              !run->ab.command[1] ? "the command"
              : outcome->side     ? "B"
                                  : "A",
              outcome->end.exit_status, tail[0] ? "; the last of what it printed:" : ", and it printed nothing");
    hec_text_print(stderr, tail);
    return 1;
}

static int experiment(struct hec_experiment_run *run, struct hec_trials *trials, struct hec_ab_outcome *outcome) {
    struct hec_ab_watch watch = {begin, measure, after, run};
    struct hec_why why = {""};
    int err = hec_ab_run(trials, &run->ab, &watch, outcome, &why);
    bool started = outcome->end.seconds > 0 || !outcome->end.exit_status;
    hec_progress_end(&run->progress);
    if (err < 0) {
        hec_error("%s: %s", run->verb, why.text[0] ? why.text : hec_err_text(err));
        return started ? hec_err_exit_status(err) : outcome->end.exit_status;
    }
    return outcome->state == HEC_AB_FAILED        ? failed(run, outcome)
           : outcome->state == HEC_AB_INTERRUPTED ? hec_ended_by(outcome->end.asked)
                                                  : 0;
}

int hec_experiment_open(struct hec_experiment_run *run, const struct hec_lever_set *levers,
                        struct hec_trials **trials) {
    struct hec_why why = {""};
    int err = hec_with_guard(&run->args, levers, run->options.session.simulated, &run->options.guard);
    *trials = NULL;
    if (err < 0)
        return err;
    hec_child_hold();
    err = hec_supervisor_start(&run->options.layer, NULL, &why);
    if (err == HEC_OK)
        err = hec_trials_open(&run->options, trials, &why);
    if (err < 0) {
        hec_error("%s: %s", run->verb, why.text);
        hec_experiment_close(run, NULL);
    }
    hec_progress_begin(&run->progress);
    run->measure = (struct hec_trial_measure){.args = &run->args, .stop_steps = run->options.session.stop.steps};
    return err;
}

int hec_experiment_close(struct hec_experiment_run *run, struct hec_trials *trials) {
    hec_trials_close(trials);
    int err = hec_with_guard_close(run->options.guard);
    run->options.guard = NULL;
    return err;
}

int hec_experiment_go(struct hec_experiment_run *run, struct hec_trials *trials, struct hec_ab_outcome *outcome) {
    hec_receipt_begin(&run->receipt, &run->ab, &run->options, trials);
    hec_receipt_fill_units(&run->receipt, &run->args);
    return experiment(run, trials, outcome);
}

int hec_experiment_run(struct hec_experiment_run *run, struct hec_ab_outcome *outcome) {
    struct hec_trials *trials;
    int err = hec_experiment_open(run, run->ab.levers, &trials);
    *outcome = (struct hec_ab_outcome){.state = HEC_AB_FAILED};
    if (err < 0)
        return hec_err_exit_status(err);
    int status = hec_experiment_go(run, trials, outcome);
    err = hec_experiment_close(run, trials);
    return status == 0 && err < 0 ? hec_err_exit_status(err) : status;
}

void hec_experiment_free(struct hec_experiment_run *run) {
    hec_summary_free(&run->measure.summary);
    hec_receipt_free(&run->receipt);
}
