/* hec try: a first trial, traced, says what is worth trying; trials of levers find the best set; an experiment proves it. */
#include "cli/try_tried.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/experiment.h"
#include "cli/output.h"
#include "cli/receipt_fill.h"
#include "cli/with.h"
#include "report/receipt/try.h"
#include "report/words/findings.h"
#include "report/words/reasons.h"
#include "store/copy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUDGET_S 360.0
#define SEARCH_SHARE                                                                                                   \
    0.55 /* of the budget at most, and no more than leaves time for two pairs; the rest is for the proof */
#define FIRST_PART 0.08    /* of the budget, for the first trial, ... */
#define FIRST_LEAST_S 15.0 /* ... but so long at least ... */
#define FIRST_MOST_S 25.0  /* ... and at most; it does not have to come to its end, ... */
#define FIRST_WORK_PART 0.034
#define FIRST_WORK_LEAST_S 5.0
#define FIRST_WORK_MOST_S 8.0 /* ... but has to work: for this part of the budget, so long, after its first step, ... */
#define FIRST_SHARE 0.25      /* ... where that comes within this part of the budget */
#define SEARCH_S 4.0          /* steady, of a trial of the search; the energy counter is read every 0.1 s ... */
#define PROOF_S 7.0           /* ... and of the proof, unless much is expected; up to twice as long ... */
#define PROOF_FAST_S 2.0      /* ... so that what is proven runs for so long: losses of its last 0.2 s are not seen */
#define STEPS_LEAST 36        /* for the quality gate */
#define PATIENCE 3.0 /* times what the command takes as it is, and a minute for compiling: then a trial has failed */
#define PATIENCE_S 60.0
#define SLOWDOWN 0.05
#define SAVING_LEAST 0.02 /* CUDA graphs saved 1.3 % of a healthy program on an H100: that does not pay for a search */
#define LIVE_LEVER_S 7.0  /* in a running program: two blocks with a lever and one without, of 2 s and some steps */
#define ONE_ROOM 1.1      /* trials differ in length */
#define START_WORK                                                                                                     \
    0.5 /* steady seconds for each of start, where the budget has room: a trial that starts for longer costs little more */

struct try {
    struct hec_experiment_run run;
    struct hec_search search;
    struct hec_search_outcome found;
    struct hec_lever_set asked, kept;
    struct hec_knob_ask knobs[HEC_SEARCH_KNOBS];
    int knob_count;
    struct hec_trials *trials;
    double budget_s, first_joules, first_seconds;
    double step_s;            /* as the first trial paces it; NAN: trials come to their end */
    double start_s;           /* of a trial, before its steps and after them; NAN unknown */
    double steady_s, proof_s; /* of its steps, in the search and in the proof */
    double until_s;           /* of the search, since the start */
    bool worked;              /* the first trial took a step, or did what units count */
    enum hec_step_source steps_by;
    uint32_t off; /* levers that did nothing in the proof, or failed: bits of candidates */
    int64_t begin_ns;
    bool interrupted, unproven;      /* unproven: the proof ended before its first pair did */
    bool foreign;                    /* a lever of a framework that the program does not use answers what was found */
    bool by_user, by_seconds;        /* --steps or --seconds say when a trial ends; --seconds does */
    char headline[512], pytorch[48]; /* its version */
    char old[256];                   /* levers that need a newer PyTorch */
    char first_run[PATH_MAX];        /* where the first trial is kept; "": nowhere */
};

static double spent_s(const struct try *t) {
    return (double)(hec_clock_mono_ns() - t->begin_ns) / HEC_NS_PER_S;
}

/* ---- the command line ---- */

static int ask_knob(struct try *t, const char *text, struct hec_why *why) {
    struct hec_knob_ask ask;
    int err = hec_knob_ask(text, &ask, why);
    for (int i = 0; i < t->knob_count && err == HEC_OK; i++)
        if (strcmp(t->knobs[i].name, ask.name) == 0)
            err = hec_fail(why, HEC_ERR_USAGE, "knob %s is there twice", ask.name);
    if (err == HEC_OK && t->knob_count == HEC_SEARCH_KNOBS)
        err = hec_fail(why, HEC_ERR_USAGE, "more than %d knobs", HEC_SEARCH_KNOBS);
    if (err == HEC_OK)
        t->knobs[t->knob_count++] = ask;
    return err;
}

/* "tf32,knob.batch,knob.mode=2": a knob without a value is searched. */
static int ask_levers(struct try *t, const char *text, struct hec_why *why) {
    size_t prefix = strlen(HEC_KNOB_LEVER);
    char *copy = strdup(text), *rest = copy, *word;
    int err = copy ? HEC_OK : hec_fail(why, HEC_ERR_NOMEM, "no memory for the levers");
    while (err == HEC_OK && (word = strsep(&rest, ",")))
        err = strncmp(word, HEC_KNOB_LEVER, prefix) == 0 && !strchr(word, '=')
                  ? ask_knob(t, word + prefix, why)
                  : hec_lever_set_add(&t->asked, word, why);
    free(copy);
    return err;
}

/* What is to be tried, by name. */
static int parse_asked(struct try *t) {
    const struct hec_args *args = &t->run.args;
    struct hec_why why = {""};
    int err = HEC_OK;
    for (int i = 0; i < args->given_count && err == HEC_OK; i++) {
        const char *value = args->given[i].value;
        if (args->given[i].option == HEC_OPT_LEVERS)
            err = ask_levers(t, value, &why);
        else if (args->given[i].option == HEC_OPT_KNOB && (err = ask_knob(t, value, &why)) == HEC_OK &&
                 !t->knobs[t->knob_count - 1].ranged)
            err = hec_fail(&why, HEC_ERR_USAGE, "-k %s=LEAST..MOST says between which values", value);
        if (err < 0)
            hec_error("try: --%s: %s", hec_option_info(args->given[i].option)->name, why.text);
    }
    return err;
}

static int parse(struct try *t) {
    struct hec_experiment_run *run = &t->run;
    struct hec_why why = {""};
    double seed = (double)(hec_clock_wall_ns() & 0xffffffff);
    int err;
    if (!run->args.rest_count)
        return hec_args_wrong(&run->args, "no command");
    if ((err = parse_asked(t)) < 0 || (err = hec_args_number(&run->args, HEC_OPT_BUDGET, 10, 1e6, &t->budget_s)) < 0 ||
        (err = hec_args_number(&run->args, HEC_OPT_SEED, 0, 4294967295.0, &seed)) < 0 ||
        (err = hec_experiment_percent(&run->args, HEC_OPT_MAX_SLOWDOWN, &t->search.slowdown_most)) < 0 ||
        (err = hec_experiment_percent(&run->args, HEC_OPT_MIN_SAVING, &t->search.saving_least)) < 0 ||
        (err = hec_experiment_percent(&run->args, HEC_OPT_MARGIN, &run->ab.plan.margin)) < 0 ||
        (err = hec_experiment_options(run)) < 0)
        return err;
    run->ab.plan.gradients = run->ab.plan.large_effects = true;
    run->ab.plan.seed = (uint64_t)seed;
    run->ab.command[0] = run->ab.command[1] = t->search.command = run->args.rest;
    run->ab.warm_up = 0; /* the search has warmed device and caches */
    t->search.margin = run->ab.plan.margin;
    run->ab.plan.saving_least = t->search.saving_least;
    t->by_seconds = run->options.session.stop.after_ns > 0;
    t->by_user = run->options.session.stop.steps || t->by_seconds;
    if ((err = hec_experiment_paths(run)) < 0)
        return err;
    if ((err = hec_output_first_run(&run->args, run->path, t->first_run, &why)) < 0)
        hec_error("try: %s", why.text);
    return err;
}

/* ---- the first trial ---- */

/* It is kept also where it failed. That it cannot be kept ends nothing. */
static void keep_first(const struct try *t, const struct hec_session_result *result) {
    struct hec_why why = {""};
    if (!t->first_run[0])
        return;
    if (hec_store_copy(result->path, t->first_run, hec_args_has(&t->run.args, HEC_OPT_FORCE), NULL, &why) < 0)
        hec_error("try: the first trial cannot be kept: %s", why.text);
    else
        hec_say("first trial kept: %s", t->first_run);
}

static int measure_first(void *context, const struct hec_session *session, const struct hec_session_result *result,
                         struct hec_why *why) {
    struct try *t = context;
    struct hec_experiment_trial trial;
    int64_t steps;
    t->first_seconds = (double)(result->end_ns - result->start_ns) / HEC_NS_PER_S;
    t->first_joules = NAN;
    keep_first(t, result);
    if (result->exit_status && !result->stopped)
        return HEC_OK;
    int err = hec_trial_measure(&t->run.measure, session, result, 0, &trial, &steps, why);
    if (err == HEC_OK) {
        t->first_joules = trial.run.joules;
        t->worked = steps > 0 || trial.steady.steps > 0 || trial.steady.units > 0;
    }
    return err;
}

/* ---- how long trials are ---- */

/* A trial with a steady part of so many seconds, from its start to its end. */
static double trial_s(const struct try *t, double steady_s) {
    if (t->by_seconds || isnan(t->step_s))
        return t->first_seconds;
    double steps =
        t->by_user ? (double)t->run.options.session.stop.steps : fmax(STEPS_LEAST, ceil(steady_s / t->step_s) + 3);
    return t->start_s + steps * t->step_s;
}

/* Of the search, for so many levers: of a running program blocks, and a compiler where they are several; else a trial each and one of the
 * command as it is. */
static double search_s(const struct try *t, int levers) {
    double compiles_s = levers > 1 ? HEC_LIVE_COMPILE_S : 0;
    return hec_search_lives(&t->search) ? t->start_s + levers * LIVE_LEVER_S + compiles_s
                                        : (levers + 1) * trial_s(t, SEARCH_S);
}

/* Of the proof, where what the search saw is large: two pairs of short trials show it. NAN: not known. */
static double proof_least_s(const struct try *t) {
    return 2 * HEC_SEQUENTIAL_EXPECTED_LEAST * trial_s(t, SEARCH_S);
}

/* From the start to the end, with so many levers. */
static double needed_s(const struct try *t, int levers) {
    double searched_s = spent_s(t) + search_s(t, levers);
    return fmax(searched_s + proof_least_s(t), searched_s / SEARCH_SHARE);
}

/* A start is paid in each trial: where it is long, more steps cost little beside it, as far as the budget has room for them. */
static double longer(const struct try *t, double least_s) {
    int levers = t->search.candidates.count;
    int trials = 2 * HEC_SEQUENTIAL_EXPECTED_LEAST + (hec_search_lives(&t->search) ? 0 : levers + 1);
    double spare_s = (t->budget_s - needed_s(t, levers)) / trials;
    return isfinite(t->start_s) ? fmax(least_s, fmin(START_WORK * t->start_s, least_s + spare_s)) : least_s;
}

/* To the next ten seconds. */
static double rounded_s(double seconds) {
    return 10 * ceil(seconds / 10);
}

/* What one lever takes, tried and proven, is known before it is tried. */
static int check_budget(const struct try *t, struct hec_why *why) {
    double searched_s = spent_s(t) + search_s(t, 1), one_s = needed_s(t, 1);
    double all_s = needed_s(t, t->search.candidates.count);
    char text[256];
    if (!t->search.candidates.count || isnan(t->start_s) || one_s <= t->budget_s)
        return HEC_OK;
    snprintf(text, sizeof text,
             "a trial takes about %.0f s, of which %.0f are its start: to try one lever and to prove it takes about "
             "%.0f s, all that may help %.0f (--budget-seconds %.0f)",
             trial_s(t, SEARCH_S), t->start_s, rounded_s(one_s), rounded_s(all_s), t->budget_s);
    if (searched_s > SEARCH_SHARE * t->budget_s)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the budget is too small: %s", text);
    fprintf(stderr, "hec: %s\n", text);
    return HEC_OK;
}

/* Trials do the same work: so many steps that the steady part takes a while, or, of a short command, all of it. */
static void set_end(struct try *t, double steady_s) {
    struct hec_stop *stop = &hec_trials_session(t->trials)->stop;
    double seconds = t->first_seconds;
    if (isfinite(t->step_s) && !t->by_user) {
        stop->by = t->steps_by;
        stop->steps = (int64_t)fmax(STEPS_LEAST, ceil(steady_s / t->step_s) + 3);
        seconds = fmin(seconds, (double)stop->steps * t->step_s + fmax(15, t->start_s));
    }
    stop->working_ns = stop->latest_ns = 0;
    if (!t->by_seconds)
        stop->after_ns = (int64_t)((PATIENCE * seconds + PATIENCE_S) * HEC_NS_PER_S);
    t->run.measure.stop_steps = stop->steps;
    t->run.options.session.stop = *stop;
    t->search.loss_steps = t->run.ab.plan.loss_steps = stop->steps;
}

/* ended: the command, by itself. */
static int choose_end(struct try *t, bool ended, struct hec_why *why) {
    const struct hec_summary *first = &t->run.measure.summary;
    t->steps_by = first->steps.source;
    t->step_s = first->blocks.count && first->blocks.whole.steps > 0
                    ? first->blocks.whole.seconds / first->blocks.whole.steps
                    : NAN;
    if (isnan(t->step_s) && !ended && !t->by_user)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "after %.0f s the command has not ended, and no steps are known by which trials could be "
                        "ended: give more --budget-seconds where it only starts slowly (its first step is waited for a "
                        "quarter of them), mark steps (docs/marks.md), or give it less to do",
                        t->first_seconds);
    if (!ended && t->by_seconds && !t->worked)
        return hec_fail(why, HEC_ERR_IO,
                        "the command as it is: ended after %.0f s, before its first step: nothing can be compared with "
                        "it. --seconds count from its start: give more, or none",
                        t->first_seconds);
    if (ended && ceil(PROOF_S / t->step_s) + 3 >= (double)first->steps.count)
        t->step_s = NAN; /* it is short: trials are the whole of it */
    t->start_s = first->loop.known ? first->loop.seconds[HEC_RUN_SETUP] + first->loop.seconds[HEC_RUN_END] : NAN;
    int err = check_budget(t, why);
    t->steady_s = longer(t, SEARCH_S);
    set_end(t, t->steady_s);
    return err;
}

/* Trials are compared by their steady steps, the headline is of the whole run. */
static void add_step(char *text, size_t size, const struct hec_summary *s) {
    const struct hec_saving *step = s->job.findings.count ? &s->job.findings.list[0].step_joules : NULL;
    size_t length = strlen(text);
    if (step && s->job.findings.list[0].actionable && isfinite(step->best))
        snprintf(text + length, size - length, "; of a step's, start-up left out, %.0f %% (%.0f to %.0f)",
                 100 * step->best, 100 * step->low, 100 * step->high);
}

/* A program that calls modules of PyTorch, with all of its ranks on this host: its levers can be switched between two steps. A block's
 * joules are those of the energy counters, so that each of its devices has to have one. */
static void find_live(struct try *t) {
    const struct hec_summary *first = &t->run.measure.summary;
    bool steps = first->steps.source == HEC_STEP_OPTIMIZER || first->steps.source == HEC_STEP_MODULE;
    bool here =
        first->job.size < 2 || (first->job.size == first->job.rank_count && first->job.size <= HEC_ORDERS_RANKS_MOST);
    t->search.live = steps && here && first->pytorch[0] && !hec_args_has(&t->run.args, HEC_OPT_RESTART);
    t->search.ranks = first->job.size;
    for (int i = 0; i < first->device_count; i++)
        if (first->devices[i].readings.used && !first->devices[i].readings.device.has_energy_counter)
            t->search.live = false;
        else if (first->devices[i].readings.used && first->devices[i].readings.device.index < HEC_DEVICE_MAX)
            t->search.devices |= UINT64_C(1) << first->devices[i].readings.device.index;
}

/* Values of knobs, beside the levers. */
static int find_knobs(struct try *t, struct hec_why *why) {
    const struct hec_summary *first = &t->run.measure.summary;
    static const char *const unit =
        "their values are compared by a unit of work, and none is known of each step: count "
        "samples in the program (docs/marks.md)";
    bool all = !hec_args_has(&t->run.args, HEC_OPT_LEVERS);
    struct hec_candidates found = t->search.candidates;
    int err = hec_candidates_add_knobs(first, t->knobs, t->knob_count, all, &found, why);
    bool named = t->knob_count > 0;
    for (int i = 0; i < t->asked.count; i++)
        named |= t->asked.list[i].knob[0] != '\0';
    /* --units counts the whole command, in whose trials a knob may change how much they do */
    bool units = hec_candidates_units(first) && !hec_args_has(&t->run.args, HEC_OPT_UNITS);
    if (err < 0)
        return err;
    if (!units && named)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "knobs: %s", unit);
    if (units)
        t->search.candidates = found;
    else if (found.count > t->search.candidates.count)
        fprintf(stderr, "hec: knobs are not tried: %s\n", unit);
    return HEC_OK;
}

static int first_trial(struct try *t, struct hec_trial_end *end, struct hec_why *why) {
    struct hec_session_options *session = hec_trials_session(t->trials);
    hec_progress_now(&t->run.progress, "first trial, traced");
    session->trace = HEC_TRACE_FULL;
    if (!t->by_user) {
        session->stop.after_ns =
            (int64_t)(fmin(FIRST_MOST_S, fmax(FIRST_LEAST_S, FIRST_PART * t->budget_s)) * HEC_NS_PER_S);
        session->stop.working_ns =
            (int64_t)(fmin(FIRST_WORK_MOST_S, fmax(FIRST_WORK_LEAST_S, FIRST_WORK_PART * t->budget_s)) * HEC_NS_PER_S);
        session->stop.latest_ns = (int64_t)(FIRST_SHARE * t->budget_s * HEC_NS_PER_S);
    }
    int err = hec_trials_run(t->trials, t->search.command, NULL, measure_first, t, end, why);
    session->trace = t->run.options.session.trace;
    hec_progress_end(&t->run.progress);
    if (err < 0 || end->asked || hec_trial_failed(end))
        return err;
    hec_headline(t->headline, sizeof t->headline, &t->run.measure.summary);
    add_step(t->headline, sizeof t->headline, &t->run.measure.summary);
    fprintf(stderr, "hec: first trial, traced: %.1f s: %s\n", end->seconds,
            t->headline[0] ? t->headline : "nothing found");
    if (hec_args_has(&t->run.args, HEC_OPT_LEVERS)) {
        hec_candidates_of(&t->asked, &t->search.candidates);
    } else {
        hec_candidates_find(&t->run.measure.summary, &t->search.candidates);
        hec_candidates_old(&t->run.measure.summary, t->old, sizeof t->old);
        snprintf(t->pytorch, sizeof t->pytorch, "%s", t->run.measure.summary.pytorch);
    }
    t->foreign = hec_candidates_foreign(&t->run.measure.summary);
    find_live(t);
    if ((err = find_knobs(t, why)) < 0)
        return err;
    return choose_end(t, !end->stopped, why);
}

/* ---- the search ---- */

static void begin(void *context, const struct hec_lever_set *set, int trials) {
    struct try *t = context;
    char text[HEC_LEVERS_TEXT], line[HEC_LEVERS_TEXT + 64];
    hec_candidates_words(&t->search.candidates, set, text);
    snprintf(line, sizeof line, "trial %d: %s", trials + 1, set->count ? text : "as it is");
    hec_progress_now(&t->run.progress, line);
}

static int measure(void *context, const struct hec_session *session, const struct hec_session_result *result,
                   struct hec_experiment_trial *out, struct hec_search_seen *seen, struct hec_why *why) {
    struct try *t = context;
    int64_t steps = 0;
    int err = hec_trial_measure(&t->run.measure, session, result, t->search.loss_steps, out, &steps, why);
    if (err == HEC_OK)
        hec_try_seen(&t->run.measure.summary, seen);
    if (!t->search.loss_steps)
        t->search.loss_steps = t->run.ab.plan.loss_steps = steps;
    return err;
}

static void begin_live(void *context, int levers) {
    struct try *t = context;
    char line[96];
    snprintf(line, sizeof line, "%d levers, switched in one program that goes on", levers);
    hec_progress_now(&t->run.progress, line);
}

static void after_live(void *context, int blocks, const struct hec_trial_end *end) {
    struct try *t = context;
    hec_progress_end(&t->run.progress);
    if (hec_trial_failed(end))
        fprintf(stderr, "hec: the program in which levers were switched failed after %.1f s: exit status %d\n",
                end->seconds, end->exit_status);
    else
        fprintf(stderr, "hec: %d blocks of one program, in %.1f s\n", blocks, end->seconds);
}

static int measure_live(void *context, const struct hec_session *session, const struct hec_session_result *result,
                        struct hec_search_lived *out, struct hec_why *why) {
    struct try *t = context;
    struct hec_experiment_trial trial;
    int64_t steps;
    int err = hec_trial_measure(&t->run.measure, session, result, 0, &trial, &steps, why);
    out->seconds = trial.run.seconds;
    out->joules = trial.run.joules;
    if (err == HEC_OK)
        hec_try_lived(&t->run.measure.summary, &t->search.candidates, out);
    return err;
}

static void after(void *context, const struct hec_lever_set *set, const struct hec_searched *trial) {
    struct try *t = context;
    char text[HEC_LEVERS_TEXT], why[HEC_REASON_SIZE];
    const char *said = HEC_SAY(&trial->why);
    int blocks = 0;
    for (size_t i = 0; i < t->found.count && trial->trial.part; i++)
        blocks += t->found.trials[i].set == trial->set && t->found.trials[i].trial.part;
    if (trial->trial.part && (!set->count || blocks != (trial->trial.fate == HEC_SEARCH_RAN ? HEC_SEARCH_BLOCKS : 1)))
        return; /* of a set's blocks one line is enough */
    struct hec_search_trial *table = hec_search_table(&t->found);
    hec_progress_end(&t->run.progress);
    hec_candidates_words(&t->search.candidates, set, text);
    if (!table)
        return;
    struct hec_search_ratio cost = hec_search_cost(table, (int)t->found.count, trial->set);
    struct hec_search_ratio speed = hec_search_speed(table, (int)t->found.count, trial->set);
    free(table);
    if (trial->trial.fate == HEC_SEARCH_FAILED)
        fprintf(stderr, "hec: %s: out: %s\n", set->count ? text : "as it is",
                hec_text_clean(why, sizeof why, said, strlen(said), true));
    else if (trial->trial.fate == HEC_SEARCH_IDLE)
        fprintf(stderr, "hec: %s: nothing to do here\n", text);
    else if (set->count && trial->timed)
        fprintf(stderr, "hec: %s: %.2f of the speed\n", text, speed.best);
    else if (set->count)
        fprintf(stderr, "hec: %s: %.3f of the joules, %.2f of the speed\n", text, cost.best, speed.best);
    else
        fprintf(stderr, "hec: as it is: %.1f s\n", trial->measured.run.seconds);
}

/* Since its start: the search leaves time for the proof, but for one lever there is time in any case. */
static double until_s(const struct try *t) {
    double proof_s = fmax(0, proof_least_s(t)), one_s = fmax(0, ONE_ROOM * search_s(t, 1)); /* a NAN gives way */
    return fmin(SEARCH_SHARE * t->budget_s, fmax(t->budget_s - proof_s, spent_s(t) + one_s));
}

static int search(struct try *t, struct hec_trial_end *end, struct hec_why *why) {
    struct hec_search_watch watch = {begin_live, after_live, measure_live, begin, measure, after, t};
    t->search.trial_s = fmax(0, trial_s(t, SEARCH_S)); /* a NAN gives way */
    t->until_s = until_s(t);
    t->search.until_ns = t->begin_ns + (int64_t)(t->until_s * HEC_NS_PER_S);
    int err = hec_search_run(t->trials, &t->search, &watch, &t->found, end, why);
    const struct hec_searched *last = t->found.count ? &t->found.trials[t->found.count - 1] : NULL;
    if (err == HEC_ERR_IO && last && last->set == 0 && last->trial.fate == HEC_SEARCH_FAILED)
        hec_fail(why, err, "the command as it is: %.300s", HEC_SAY(&last->why));
    return err;
}

/* ---- the proof ---- */

/* The riskiest of them goes, of two alike the last. */
static void drop_riskiest(uint32_t *bits, const struct hec_candidates *candidates) {
    int worst = -1;
    for (int i = 0; i < candidates->count; i++)
        if ((*bits & (UINT32_C(1) << i)) &&
            (worst < 0 || candidates->list[i].use.row->risk >= candidates->list[worst].use.row->risk))
            worst = i;
    if (worst >= 0)
        *bits &= ~(UINT32_C(1) << worst);
}

static void plan(struct try *t) {
    double pair_s = 0;
    int base = 0;
    for (size_t i = 0; i < t->found.count; i++)
        if (hec_searched_base(&t->found.trials[i])) {
            pair_s +=
                2 * (t->found.trials[i].measured.run.seconds + (isfinite(t->step_s) ? t->proof_s - t->steady_s : 0));
            base++;
        }
    pair_s = base ? pair_s / base : 2 * trial_s(t, t->proof_s);
    double left = (t->budget_s - spent_s(t)) / fmax(pair_s, 0.1);
    t->run.ab.plan.pairs_most = (int)fmax(HEC_SEQUENTIAL_PAIRS_LEAST, fmin(left, HEC_EXPERIMENT_PAIRS_MOST));
    t->run.ab.levers = &t->kept;
}

/* What the search saw of a set: the pairs are judged by that too, where it is much. Two pairs show nothing less, and half of what may be
 * wrong would be spent on it in vain. Of a set that was not tried nothing is expected. */
static void expect(struct try *t, uint32_t best) {
    struct hec_search_trial *table = hec_search_table(&t->found);
    double cost = table ? hec_search_cost(table, (int)t->found.count, best).best : NAN;
    double speed = table ? hec_search_speed(table, (int)t->found.count, best).best : NAN;
    free(table);
    bool much = cost < 1 - HEC_SEARCH_LARGE;
    t->run.ab.plan.expected_cost = much ? cost : 0;
    t->run.ab.plan.expected_speed = much && isfinite(speed) ? speed : 0;
}

/* Steady seconds of the command as it is, in the proof: what is expected to save much needs no long ones. */
static double proof_s(const struct try *t) {
    const struct hec_experiment_plan *p = &t->run.ab.plan;
    double least_s =
        fmax(p->expected_cost > 0 ? SEARCH_S : PROOF_S, fmin(2 * PROOF_S, PROOF_FAST_S * p->expected_speed));
    return fmax(least_s, t->steady_s);
}

/* Levers that were switched in a running program are in from the start for the first time: in the first pair it shows whether they act. */
static int check_levers(struct hec_experiment_run *run, const struct hec_ab_outcome *so_far, struct hec_why *why) {
    struct try *t = (struct try *)run;
    struct hec_search_lived seen = {.text = ""};
    struct hec_lever_set off;
    char text[HEC_LEVERS_TEXT];
    if (so_far->pair || !so_far->side)
        return HEC_OK;
    hec_try_lived(&run->measure.summary, &t->search.candidates, &seen);
    t->off = seen.idle | seen.failed;
    hec_candidates_set(&t->search.candidates, t->off, &off);
    hec_candidates_words(&t->search.candidates, &off, text);
    return !t->off        ? HEC_OK
           : seen.text[0] ? hec_fail(why, HEC_ERR_UNSUPPORTED, "from the start on: %s", seen.text)
                          : hec_fail(why, HEC_ERR_UNSUPPORTED, "from the start on %s did nothing", text);
}

/* What is proven acts from the start on, and passes the gate of quality; else it is tried again without what does not act, or without its
 * riskiest lever. *best 0: nothing is left. */
static int prove(struct try *t, uint32_t *best, struct hec_ab_outcome *outcome) {
    struct hec_experiment_run *run = &t->run;
    run->after = check_levers;
    run->ab.plan.spent_joules = t->found.joules + t->first_joules;
    expect(t, *best);
    t->proof_s = proof_s(t);
    set_end(t, t->proof_s);
    for (;;) {
        run->ab.plan.spent_seconds = spent_s(t);
        hec_candidates_set(&t->search.candidates, *best, &t->kept);
        plan(t);
        hec_receipt_free(&run->receipt);
        run->receipt = (struct hec_receipt){.error = HEC_OK};
        if (hec_try_fill(&run->receipt, &t->search, &t->found, *best) < 0)
            return hec_err_exit_status(HEC_ERR_NOMEM);
        t->off = 0;
        int status = hec_experiment_go(run, t->trials, outcome);
        bool fails = !status && outcome->result.quality.verdict == HEC_QUALITY_FAIL;
        bool breaks = outcome->state == HEC_AB_FAILED && outcome->side == 1;
        bool late = spent_s(t) > t->budget_s;
        *best = t->off && late ? 0 : *best & ~t->off;
        if (!*best)
            return 0;
        if (!t->off && (late || !(fails || breaks) || t->kept.count < 2))
            return status;
        if (!t->off) {
            fprintf(stderr, "hec: %s: again without the riskiest lever\n",
                    fails ? "the losses are not those of the command as it is" : "the command fails under its levers");
            drop_riskiest(best, &t->search.candidates);
        }
        run->ab.plan.spent_joules = outcome->result.cost_joules;
        hec_ab_free(outcome);
        expect(t, *best);
    }
}

/* Nothing helps, or no pair of the proof came to its end: the trials of the command as it is are a baseline, with what was tried. */
static int keep_nothing(struct try *t) {
    struct hec_experiment_run *run = &t->run;
    struct hec_experiment_plan *p = &run->ab.plan;
    struct hec_experiment_trial *list = calloc(t->found.count + 1, sizeof *list);
    struct hec_why why = {""};
    int count = 0;
    for (size_t i = 0; list && i < t->found.count; i++)
        if (hec_searched_base(&t->found.trials[i])) {
            list[count] = t->found.trials[i].measured;
            list[count].pair = count;
            count++;
        }
    run->ab.command[1] = NULL;
    run->ab.levers = NULL;
    p->pairs = count;
    p->spent_joules = t->found.joules + t->first_joules;
    p->spent_seconds = spent_s(t);
    hec_receipt_free(&run->receipt);
    run->receipt = (struct hec_receipt){.error = HEC_OK};
    hec_receipt_begin(&run->receipt, &run->ab, &run->options, t->trials);
    hec_receipt_fill_units(&run->receipt, &run->args);
    hec_receipt_fill_facts(&run->receipt, &run->measure.summary);
    int err = list ? hec_try_fill(&run->receipt, &t->search, &t->found, 0) : HEC_ERR_NOMEM;
    if (err == HEC_OK)
        err = hec_receipt_fill_trials(&run->receipt, p, list, (size_t)count);
    free(list);
    bool writes = hec_args_has(&run->args, HEC_OPT_OUTPUT) && (t->interrupted || !t->unproven);
    if (err == HEC_OK && writes)
        err = hec_receipt_write(&run->receipt, run->path, hec_experiment_replaces(run), &why);
    if (err < 0)
        hec_error("try: %s", why.text[0] ? why.text : hec_err_text(err));
    return hec_err_exit_status(err);
}

/* ---- the whole ---- */

static int print(const struct try *t) {
    const struct hec_receipt *receipt = &t->run.receipt;
    struct hec_try_report report = {
        .receipt = receipt,
        .headline = t->headline,
        .path = hec_receipt_is_baseline(receipt) ? NULL : t->run.path,
        .spent = t->found.spent,
        .old = t->old,
        .pytorch = t->pytorch,
        .interrupted = t->interrupted,
        .unproven = t->unproven,
        .foreign = t->foreign,
        .slowdown_most = t->search.slowdown_most,
        .search_s = t->until_s,
        .budget_s = t->budget_s,
    };
    for (int i = 0; i < t->kept.count && !hec_receipt_is_baseline(receipt); i++) {
        struct hec_try_keep *keep = &report.keep[report.keep_count++];
        struct hec_lever_set one = {.list = {t->kept.list[i]}, .count = 1};
        char words[HEC_LEVERS_TEXT];
        hec_candidates_words(&t->search.candidates, &one, words);
        snprintf(keep->words, sizeof keep->words, "%.190s", words);
        hec_lever_paste(&t->kept.list[i], keep->code, sizeof keep->code);
        report.of_device |= t->kept.list[i].row->place == HEC_LEVER_PLACE_DEVICE;
    }
    struct hec_buf out;
    hec_buf_init(&out, 16u << 20);
    int err = hec_args_has(&t->run.args, HEC_OPT_JSON)       ? hec_receipt_json(receipt, &out)
              : hec_args_has(&t->run.args, HEC_OPT_MARKDOWN) ? hec_receipt_markdown(receipt, &out)
                                                             : hec_try_terminal(&report, &t->run.style, &out);
    if (err == HEC_OK)
        err = hec_print(&out);
    hec_buf_free(&out);
    int page = hec_experiment_page(&t->run);
    return err < 0 ? err : page;
}

static int say_failed(const char *when, const struct hec_trial_end *end) {
    hec_error("try: the command %s failed: exit status %d%s", when, end->exit_status,
              end->tail[0] ? "; the last of what it printed:" : ", and it printed nothing");
    hec_text_print(stderr, end->tail);
    return 1;
}

static int run_all(struct try *t, struct hec_ab_outcome *outcome) {
    struct hec_trial_end end = {.exit_status = 0};
    struct hec_why why = {""};
    int err = first_trial(t, &end, &why);
    if (err == HEC_OK && hec_trial_failed(&end))
        return say_failed("as it is", &end);
    if (err == HEC_OK && !end.asked)
        err = search(t, &end, &why);
    if (err < 0) {
        bool started = end.seconds > 0 || !end.exit_status;
        hec_error("try: %s", why.text[0] ? why.text : hec_err_text(err));
        return started ? hec_err_exit_status(err) : end.exit_status;
    }
    uint32_t best = t->found.best;
    t->interrupted = end.asked != 0;
    bool proves = best && !t->interrupted;
    int status = proves ? prove(t, &best, outcome) : 0;
    t->interrupted |= proves && outcome->state == HEC_AB_INTERRUPTED;
    t->unproven = proves && (!best || (status && !outcome->result.pairs));
    int kept = proves && !t->unproven ? 0 : keep_nothing(t);
    if (t->run.receipt.error == HEC_OK)
        err = print(t);
    return end.asked ? hec_ended_by(end.asked) : status ? status : kept ? kept : hec_err_exit_status(err);
}

int hec_verb_try(struct hec_args *args) {
    struct try t = {
        .run = {.verb = "try", .args = *args, .options = {.session = hec_session_defaults()}},
        .search = {.slowdown_most = SLOWDOWN, .saving_least = SAVING_LEAST},
        .budget_s = BUDGET_S,
        .begin_ns = hec_clock_mono_ns(),
    };
    struct hec_ab_outcome outcome = {.state = HEC_AB_FAILED};
    t.run.options.session.trace = HEC_TRACE_OFF;
    int err = parse(&t), status = err < 0 ? hec_err_exit_status(err) : 0;
    if (err == HEC_OK && (err = hec_experiment_open(&t.run, &t.asked, &t.trials)) < 0)
        status = hec_err_exit_status(err);
    else if (err == HEC_OK)
        status = run_all(&t, &outcome);
    if ((err = hec_experiment_close(&t.run, t.trials)) < 0 && status == 0)
        status = hec_err_exit_status(err);
    hec_ab_free(&outcome);
    hec_search_free(&t.found);
    hec_experiment_free(&t.run);
    hec_verb_exit(status);
}
