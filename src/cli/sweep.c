/* hec sweep: a command with the values of its parameters, in rounds of trials. The race: act/race.h; what follows: prove/sweep.h. */
#include "act/grid.h"
#include "act/race.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/experiment.h"
#include "cli/output.h"
#include "cli/receipt_fill.h"
#include "cli/with.h"
#include "diagnose/physics.h"
#include "observe/marks/marks.h"
#include "prove/sweep.h"
#include "report/html.h"
#include "report/receipt/receipt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From a trial's run to its row in the table of a sweep. */

static const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};

_Static_assert((int)HEC_SWEEP_BLOCKS_MOST >= (int)HEC_STEADY_BLOCKS_MAX, "blocks of a trial");

/* The same of one that failed: nothing is known. */
static void sweep_trial_failed(struct hec_sweep_trial *out) {
    *out = (struct hec_sweep_trial){
        .steady = unknown, .run = unknown, .step_p50 = NAN, .step_p99 = NAN, .memory_bytes = NAN, .memory_total = NAN};
}

/* Of the used device that had least left. */
static void find_memory(const struct hec_summary *s, struct hec_sweep_trial *out) {
    double least = INFINITY;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *d = &s->devices[i].readings;
        double used = d->metric[HEC_GPU_MEM_USED].maximum, total = (double)d->device.memory_kib * 1024;
        if (!d->used)
            continue;
        out->devices++;
        if (used > 0 && total > 0 && 1 - used / total < least) { /* 0: read before the program began */
            least = 1 - used / total;
            out->memory_bytes = used;
            out->memory_total = total;
        }
    }
}

/* All but which setting and round it was of. */
static int sweep_trial_measure(struct hec_trial_measure *measure, const struct hec_session *session,
                               const struct hec_session_result *result, struct hec_sweep_trial *out,
                               struct hec_why *why) {
    struct hec_experiment_trial trial = {.steady = unknown, .run = unknown};
    struct hec_trial whole;
    int64_t steps;
    sweep_trial_failed(out);
    int err = hec_trial_measure(measure, session, result, 0, &trial, &steps, why);
    if (err < 0)
        return err;
    const struct hec_summary *s = &measure->summary;
    hec_trial_of(s, out->block, &whole);
    out->block_count = whole.block_count;
    out->steady = trial.steady;
    out->run = trial.run;
    out->stopped = trial.stopped;
    out->step_p50 = s->blocks.step_p50;
    out->step_p99 = s->blocks.step_p99;
    out->steps_seen = s->blocks.whole.steps;
    find_memory(s, out);
    return HEC_OK;
}

/* What its run says of the machine; and the unit of work, which all trials have to share: else there is none. */
static void sweep_trial_fill(struct hec_receipt *conditions, const struct hec_summary *run, bool first,
                             struct hec_sweep_trial *trial) {
    char before[sizeof conditions->unit];
    snprintf(before, sizeof before, "%s", conditions->unit);
    hec_receipt_fill_facts(conditions, run);
    if (first || strcmp(before, run->blocks.unit) == 0)
        return;
    conditions->unit[0] = '\0';
    trial->steady.units = NAN;
}

#define ROUNDS 3
#define ROUNDS_MOST 100

_Static_assert(HEC_GRID_ARMS_MOST <= HEC_SWEEP_ARMS_MOST && HEC_GRID_PARAMETERS_MOST <= HEC_SWEEP_PARAMETERS_MOST,
               "prove may not know act");

struct sweep {
    struct hec_experiment_run run; /* its pairs are not used */
    struct hec_grid grid;
    struct hec_race race;
    struct hec_race_arm arms[HEC_GRID_ARMS_MOST];
    bool out[HEC_GRID_ARMS_MOST];
    struct hec_buf knobs[HEC_GRID_ARMS_MOST];
    struct hec_lever_set with, levers[HEC_GRID_ARMS_MOST]; /* of all settings; of each, with those */
    struct hec_sweep_report report;
    struct hec_sweep_trial *trials;
    size_t count, capacity;
};

/* ---- the words of the command line ---- */

static int say(const struct hec_why *why, int err) {
    if (err < 0)
        hec_error("sweep: %s", why->text[0] ? why->text : hec_err_text(err));
    return err;
}

static int parse_grid(struct sweep *s) {
    const struct hec_args *args = &s->run.args;
    double batch = 0;
    struct hec_why why = {""};
    const char *name = hec_args_value(args, HEC_OPT_BATCH);
    int err = hec_args_number(args, HEC_OPT_EFFECTIVE_BATCH, 1, 1e9, &batch);
    for (int i = 0; i < args->rest_count && !err; i++)
        err = say(&why, hec_grid_add(&s->grid, args->rest[i], &why));
    for (int i = 0; i < args->given_count && !err; i++)
        if (args->given[i].option == HEC_OPT_KNOB && !strchr(args->given[i].value, '='))
            err = say(&why, hec_grid_set_knob(&s->grid, args->given[i].value, &why));
    if (!err && batch > floor(batch))
        err = say(&why, hec_fail(&why, HEC_ERR_USAGE, "--effective-batch needs a whole number"));
    if (!err && batch > 0)
        err = say(&why, hec_grid_accumulate(&s->grid, name ? name : "batch", (int64_t)batch, &why));
    return err ? err : say(&why, hec_grid_check(&s->grid, s->run.ab.command[0], &why));
}

/* "20ms" */
static int parse_time(const struct hec_args *args, enum hec_option option, double *seconds) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    const char *text = hec_args_value(args, option);
    char *end;
    if (!text)
        return HEC_OK;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0] && end != text && value > 0 && value < 1e9; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *seconds = value * units[i].seconds;
            return HEC_OK;
        }
    hec_error("--%s needs a time such as 20ms or 1.5s, not \"%s\"", hec_option_info(option)->name, text);
    return HEC_ERR_USAGE;
}

static int parse_objective(struct sweep *s) {
    const char *text = hec_args_value(&s->run.args, HEC_OPT_OBJECTIVE);
    for (int i = 0; i < HEC_SWEEP_OBJECTIVES; i++)
        if (!text || strcmp(text, hec_sweep_objective_name(i)) == 0) {
            s->report.plan.objective = i;
            return HEC_OK;
        }
    hec_error("--objective needs joules, time, edp or cost, not \"%s\"", text);
    return HEC_ERR_USAGE;
}

static int parse_plan(struct sweep *s) {
    const struct hec_args *args = &s->run.args;
    struct hec_sweep_plan *plan = &s->report.plan;
    double rounds = ROUNDS, seed = (double)(hec_clock_wall_ns() & 0xffffffff), budget = 0, limit = 0;
    int err;
    plan->max_slowdown = plan->max_p99 = NAN;
    if ((err = hec_args_number(args, HEC_OPT_ROUNDS, 1, ROUNDS_MOST, &rounds)) < 0 ||
        (err = hec_args_number(args, HEC_OPT_SEED, 0, 4294967295.0, &seed)) < 0 ||
        (err = hec_args_number(args, HEC_OPT_BUDGET, 1, 1e7, &budget)) < 0 ||
        (err = hec_args_number(args, HEC_OPT_TRIAL_LIMIT, 1, 1e6, &limit)) < 0 ||
        (err = hec_experiment_percent(args, HEC_OPT_MAX_SLOWDOWN, &plan->max_slowdown)) < 0 ||
        (err = parse_time(args, HEC_OPT_MAX_P99, &plan->max_p99)) < 0 || (err = parse_objective(s)) < 0 ||
        (err = hec_load_price(args, &s->report.price)) < 0)
        return err;
    plan->dollars_per_joule = s->report.price.dollars_per_kwh / HEC_JOULES_PER_KWH;
    plan->dollars_per_device_second = s->report.price.dollars_per_gpu_hour / 3600;
    s->report.seed = s->race.seed = (uint64_t)seed;
    s->report.rounds = s->race.rounds = (int)rounds;
    s->report.budget_seconds = budget;
    s->race.budget_ns = (int64_t)(budget * (double)HEC_NS_PER_S);
    s->race.patience_ns = (int64_t)(limit * (double)HEC_NS_PER_S);
    return HEC_OK;
}

static int parse(struct sweep *s) {
    struct hec_experiment_run *run = &s->run;
    int err;
    run->ab.command[0] = run->args.command;
    if (!run->ab.command[0] || !run->args.rest_count)
        return hec_args_wrong(&run->args, run->ab.command[0] ? "no NAME=VALUE,..." : "no command after --");
    if (hec_args_has(&run->args, HEC_OPT_HTML) && isatty(STDOUT_FILENO) == 1) {
        hec_error("a page is not for a terminal; `> FILE` writes it to FILE");
        return HEC_ERR_USAGE;
    }
    const char *output = hec_args_value(&run->args, HEC_OPT_OUTPUT), *suffix = output ? strrchr(output, '.') : NULL;
    if (hec_args_has(&run->args, HEC_OPT_HTML) && suffix && strcmp(suffix, ".html") == 0) {
        hec_error("sweep: -o is the result as JSON; the page goes to standard output: hec sweep --html ... > %s",
                  output);
        return HEC_ERR_USAGE;
    }
    if ((err = hec_with_parse(&run->args, &s->with)) < 0 || (err = parse_grid(s)) < 0 || (err = parse_plan(s)) < 0 ||
        (err = hec_experiment_options(run)) < 0)
        return err;
    run->ab.levers = s->with.count ? &s->with : NULL;
    return hec_experiment_path(run);
}

/* ---- settings ---- */

static int make_arm(struct sweep *s, int arm, struct hec_why *why) {
    const struct hec_args *args = &s->run.args;
    char text[512];
    int err = hec_grid_words(&s->grid, arm, s->run.ab.command[0], &s->arms[arm].command);
    hec_buf_init(&s->knobs[arm], HEC_MARKS_KNOBS_MAX + 1);
    s->levers[arm] = s->with;
    for (int i = 0; i < args->given_count && !err; i++)
        if (args->given[i].option == HEC_OPT_KNOB && strchr(args->given[i].value, '='))
            err = hec_marks_knob_add(&s->knobs[arm], args->given[i].value, why);
    for (int i = 0; i < s->grid.parameters && !err; i++) {
        const struct hec_grid_parameter *p = &s->grid.parameter[i];
        snprintf(text, sizeof text, "%s=%s", p->lever ? p->lever : p->name, hec_grid_value(&s->grid, arm, i));
        if (p->lever)
            err = hec_lever_set_add(&s->levers[arm], text, why);
        else if (p->knob)
            err = hec_marks_knob_add(&s->knobs[arm], text, why);
    }
    s->arms[arm].levers = s->levers[arm].count ? &s->levers[arm] : NULL;
    s->arms[arm].knobs = hec_buf_text(&s->knobs[arm]);
    return err;
}

static int make_arms(struct sweep *s) {
    struct hec_sweep_report *report = &s->report;
    struct hec_sweep_plan *plan = &report->plan;
    struct hec_why why = {""};
    int err = HEC_OK;
    plan->parameters = s->grid.parameters;
    plan->arms = s->race.count = s->grid.arms;
    report->effective_batch = s->grid.effective_batch;
    s->race.arms = s->arms;
    s->race.out = s->out;
    s->race.warm_up = s->run.ab.warm_up;
    for (int i = 0; i < plan->parameters; i++) {
        const struct hec_grid_parameter *p = &s->grid.parameter[i];
        report->parameter[i] = (struct hec_sweep_parameter){p->name, p->value, p->count, p->knob};
        plan->parameter[i].count = p->count;
        plan->parameter[i].ordered = p->ordered;
        memcpy(plan->parameter[i].value, p->number, sizeof p->number);
    }
    for (int i = 0; i < plan->arms && !err; i++)
        err = make_arm(s, i, &why);
    return say(&why, err);
}

/* ---- a trial ---- */

static void begin(void *context, const struct hec_race_outcome *so_far) {
    struct sweep *s = context;
    char label[HEC_SWEEP_LABEL], line[HEC_SWEEP_LABEL + 32], which[32] = "warm-up";
    if (so_far->round >= 0)
        snprintf(which, sizeof which, "round %d", so_far->round + 1);
    snprintf(line, sizeof line, "%s, %s", which, hec_sweep_label(label, &s->report, so_far->arm));
    hec_progress_now(&s->run.progress, line);
}

static bool ran_any(const struct sweep *s) {
    bool any = false;
    for (size_t i = 0; i < s->count; i++)
        any |= s->trials[i].end == HEC_SWEEP_RAN;
    return any;
}

/* The next row of the table; NULL: no memory. */
static struct hec_sweep_trial *next(struct sweep *s) {
    return hec_list_room(s->trials, s->count, s->capacity, 16) ? &s->trials[s->count] : NULL;
}

static int measure(void *context, const struct hec_race_outcome *so_far, const struct hec_session *session,
                   const struct hec_session_result *result, struct hec_why *why) {
    struct sweep *s = context;
    struct hec_sweep_trial *trial = next(s);
    (void)so_far;
    if (!trial)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the table of trials");
    return sweep_trial_measure(&s->run.measure, session, result, trial, why);
}

static void say_failure(struct sweep *s, const struct hec_race_outcome *so_far, const char *label) {
    static const char *const words[] = {[HEC_FAILURE_DEVICE_MEMORY] = "out of device memory",
                                        [HEC_FAILURE_HOST_MEMORY] = "out of host memory",
                                        [HEC_FAILURE_HUNG] = "did not end within its limit"};
    const char *tail = so_far->end.tail;
    free(s->report.tail[so_far->arm]);
    s->report.tail[so_far->arm] = strdup(tail);
    if (so_far->end.failure != HEC_FAILURE_OTHER)
        fprintf(stderr, "hec: %s: %s\n", label, words[so_far->end.failure]);
    else
        fprintf(stderr, "hec: %s: exit status %d; it is left out%s\n", label, so_far->end.exit_status,
                tail[0] ? "; the last of what it printed:" : ", and printed nothing");
    if (so_far->end.failure == HEC_FAILURE_OTHER)
        hec_text_print(stderr, tail);
}

static int after(void *context, const struct hec_race_outcome *so_far, struct hec_why *why) {
    static const enum hec_sweep_end ends[] = {HEC_SWEEP_RAN, HEC_SWEEP_DEVICE_MEMORY, HEC_SWEEP_HOST_MEMORY,
                                              HEC_SWEEP_HUNG, HEC_SWEEP_FAILED};
    struct sweep *s = context;
    struct hec_sweep_trial *trial = next(s);
    char label[HEC_SWEEP_LABEL];
    if (!trial)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the table of trials");
    hec_sweep_label(label, &s->report, so_far->arm);
    hec_progress_end(&s->run.progress);
    if (so_far->end.failure) {
        sweep_trial_failed(trial);
        say_failure(s, so_far, label);
    } else {
        sweep_trial_fill(&s->run.receipt, &s->run.measure.summary, !ran_any(s), trial);
        fprintf(stderr, "hec: %s %d: %s: %.1f s\n", so_far->round < 0 ? "warm-up" : "round",
                so_far->round < 0 ? so_far->trials : so_far->round + 1, label, so_far->end.seconds);
    }
    trial->arm = so_far->arm;
    trial->round = so_far->round;
    trial->end = ends[so_far->end.failure];
    trial->exit_status = so_far->end.exit_status;
    trial->run.seconds = isfinite(trial->run.seconds) ? trial->run.seconds : so_far->end.seconds;
    s->count++;
    return HEC_OK;
}

/* ---- after a round, and at the end ---- */

static void judge(struct sweep *s) {
    struct hec_sweep_report *report = &s->report;
    report->conditions = s->run.receipt; /* who owns it stays the same */
    report->trials = s->trials;
    report->trial_count = (int)s->count;
    hec_sweep_judge(&report->plan, s->trials, (int)s->count, &report->result);
}

static int save(struct sweep *s, struct hec_why *why) {
    struct hec_buf text;
    if (!s->run.path[0])
        return HEC_OK;
    hec_buf_init(&text, 256u << 20);
    int err = hec_sweep_json(&s->report, &text);
    err = err < 0 ? hec_fail(why, err, "the result cannot be made: %s", hec_err_text(err))
                  : hec_output_write(s->run.path, &text, hec_experiment_replaces(&s->run), why);
    s->run.written |= err == HEC_OK;
    hec_buf_free(&text);
    return err;
}

static int rounded(void *context, const struct hec_race_outcome *so_far, struct hec_why *why) {
    struct sweep *s = context;
    const struct hec_sweep_result *result = &s->report.result;
    char label[HEC_SWEEP_LABEL];
    judge(s);
    if (ran_any(s) && !result->measured)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "nothing to compare: trials that are ended early need steps (hooks or marks) or --units");
    for (int i = 0; i < result->arms && so_far->round + 1 < s->race.rounds; i++)
        if (result->arm[i].clearly_worse && !s->out[i]) {
            s->out[i] = true;
            fprintf(stderr, "hec: %s is clearly worse, and is run no more\n", hec_sweep_label(label, &s->report, i));
        }
    return save(s, why);
}

static int print(struct sweep *s) {
    bool json = hec_args_has(&s->run.args, HEC_OPT_JSON), markdown = hec_args_has(&s->run.args, HEC_OPT_MARKDOWN);
    bool html = hec_args_has(&s->run.args, HEC_OPT_HTML);
    struct hec_buf out;
    hec_buf_init(&out, HEC_HTML_MOST);
    int err = html       ? hec_html_sweep(&s->report, &out)
              : json     ? hec_sweep_json(&s->report, &out)
              : markdown ? hec_sweep_markdown(&s->report, &out)
                         : hec_sweep_terminal(&s->report, &s->run.style, &out);
    err = err < 0 ? err : hec_print(&out);
    hec_buf_free(&out);
    return err;
}

static int finish(struct sweep *s, const struct hec_race_outcome *outcome) {
    static const enum hec_sweep_state states[] = {HEC_SWEEP_DONE, HEC_SWEEP_SPENT, HEC_SWEEP_INTERRUPTED};
    struct hec_why why = {""};
    s->report.state = states[outcome->state];
    judge(s);
    int err = s->count ? say(&why, save(s, &why)) : HEC_OK;
    if (s->count && !err)
        err = print(s);
    if (err < 0)
        return hec_err_exit_status(err);
    return outcome->state == HEC_RACE_INTERRUPTED ? hec_ended_by(outcome->end.asked) : ran_any(s) ? 0 : 1;
}

static int run(struct sweep *s) {
    const struct hec_race_watch watch = {begin, measure, after, rounded, s};
    struct hec_race_outcome outcome = {HEC_RACE_DONE};
    struct hec_trials *trials;
    struct hec_why why = {""};
    int err = make_arms(s);
    if (err < 0 || (err = hec_experiment_open(&s->run, &s->levers[0], &trials)) < 0)
        return hec_err_exit_status(err);
    hec_receipt_begin(&s->run.receipt, &s->run.ab, &s->run.options, trials);
    hec_receipt_fill_units(&s->run.receipt, &s->run.args);
    err = hec_race_run(trials, &s->race, &watch, &outcome, &why);
    hec_progress_end(&s->run.progress);
    int lifted = hec_experiment_close(&s->run, trials);
    if (err < 0) {
        bool started = outcome.end.seconds > 0 || !outcome.end.exit_status;
        hec_error("sweep: %s", why.text[0] ? why.text : hec_err_text(err));
        return started ? hec_err_exit_status(err) : outcome.end.exit_status;
    }
    int status = finish(s, &outcome);
    return status ? status : hec_err_exit_status(lifted);
}

static void release(struct sweep *s) {
    for (int i = 0; i < s->race.count; i++) {
        hec_grid_free_words(s->arms[i].command);
        hec_buf_free(&s->knobs[i]);
        free(s->report.tail[i]);
    }
    free(s->trials);
    hec_grid_free(&s->grid);
    hec_experiment_free(&s->run);
}

int hec_verb_sweep(struct hec_args *args) {
    static struct sweep sweep; /* larger than a stack should bear */
    if (hec_args_has(args, HEC_OPT_SCHEMA))
        return hec_print_schema(hec_sweep_schema);
    sweep.run.args = *args;
    sweep.run.verb = "sweep";
    sweep.run.options.session = hec_session_defaults();
    sweep.run.options.session.trace = HEC_TRACE_OFF;
    int err = parse(&sweep), status = err < 0 ? hec_err_exit_status(err) : 0;
    if (err == HEC_OK)
        status = run(&sweep);
    release(&sweep);
    hec_verb_exit(status);
}
