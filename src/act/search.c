#include "act/search.h"

#include "base/clock.h"
#include "base/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_BLOCK_S 2.0 /* counters move every 0.1 s */
#define LIVE_SHARE 0.7   /* of the search's time, where what mostly saves most needs processes of its own */
#define LIVE_GRACE 0.3   /* more, for a block that has begun when that time ends, and its compiler */
#define LIVE_LEAST 2     /* levers: one alone is as soon tried */
#define PASSES_LEAST 1.5 /* of a step: fewer are one, beside losses from before the first step and after the last */
#define AMPERE 8         /* the first compute capability with TF32 and bf16 */
#define LEVERS_MOST 16   /* candidates, beside values of knobs */

_Static_assert(LEVERS_MOST + HEC_SEARCH_KNOBS <= HEC_LEVERS_MAX, "a set holds them all");

/* ---- what the program is ---- */

static bool uses(const struct hec_summary *run, enum hec_lever_place place) {
    switch (place) {
    case HEC_LEVER_PLACE_TORCH:
        return run->pytorch[0] != '\0';
    case HEC_LEVER_PLACE_JAX:
        return strcmp(run->framework, "jax") == 0;
    case HEC_LEVER_PLACE_TENSORFLOW:
        return strcmp(run->framework, "tensorflow") == 0;
    default:
        return true;
    }
}

/* All of its devices have the formats of which numerics levers make use. */
static bool has_half_formats(const struct hec_summary *run) {
    bool all = true;
    for (int i = 0; i < run->device_count; i++)
        if (run->devices[i].readings.used && run->devices[i].readings.device.cuda_major > 0)
            all &= run->devices[i].readings.device.cuda_major >= AMPERE;
    return all;
}

/* The program's PyTorch is older than the lever needs. */
static bool is_old(const struct hec_summary *run, const struct hec_lever_row *row) {
    int has[2], needs[2];
    return row->place == HEC_LEVER_PLACE_TORCH && sscanf(run->pytorch, "%d.%d", &has[0], &has[1]) == 2 &&
           sscanf(row->needs, "PyTorch %d.%d", &needs[0], &needs[1]) == 2 &&
           (has[0] < needs[0] || (has[0] == needs[0] && has[1] < needs[1]));
}

/* Of a program whose kernels were not seen, or lie in graphs, nobody knows. */
static bool has_convolutions(const struct hec_summary *run) {
    bool seen = run->kernel_count == 0;
    for (int i = 0; i < run->kernel_count; i++)
        seen |= run->kernels[i].kernel_class == HEC_KERNEL_CLASS_CONV ||
                run->kernels[i].kernel_class == HEC_KERNEL_CLASS_GRAPH;
    return seen;
}

/* Backward passes of a step: each has a loss, and trials have all of them. NAN: none was seen. */
static double passes_of(const struct hec_summary *run) {
    const struct hec_step_summary *steps = &run->steps;
    int64_t passes = 0;
    for (int64_t i = 0; i < steps->loss_count; i++)
        passes += steps->losses[i].pid == steps->pid;
    return passes && steps->count ? (double)passes / (double)steps->count : NAN;
}

/* But for its version. */
static bool fits(const struct hec_summary *run, const struct hec_lever_row *row) {
    enum hec_step_source steps = run->steps.source; /* calls of modules are steps until an optimizer steps */
    return row->risk != HEC_LEVER_RISK_SEMANTICS && uses(run, row->place) &&
           !(row->inference && steps == HEC_STEP_OPTIMIZER) && !(row->training && steps == HEC_STEP_MODULE) &&
           !(row->ranks && run->job.size < 2) && !(row->convolutions && !has_convolutions(run)) &&
           !(row->passes && passes_of(run) < PASSES_LEAST) &&
           (row->risk != HEC_LEVER_RISK_NUMERICS || (has_half_formats(run) && !run->job.findings.solves));
}

static bool can(const struct hec_summary *run, const struct hec_lever_row *row) {
    return fits(run, row) && !is_old(run, row);
}

static bool answers(const struct hec_lever_row *row, const struct hec_finding *finding) {
    return row->answers & (UINT64_C(1) << finding->lever.id);
}

/* The first finding that it answers; NULL: none. */
static const struct hec_finding *answered(const struct hec_summary *run, const struct hec_lever_row *row) {
    for (int f = 0; f < run->job.findings.count; f++)
        if (answers(row, &run->job.findings.list[f]))
            return &run->job.findings.list[f];
    return NULL;
}

/* ---- the list ---- */

/* Of a family, one in the framework is better than one around the program: it sees what it does. */
static bool is_covered(const struct hec_summary *run, const struct hec_candidates *out,
                       const struct hec_lever_row *row) {
    const struct hec_lever_row *other;
    for (int i = 0; i < out->count; i++)
        if (out->list[i].use.row == row)
            return true;
    for (int i = 0; row->place == HEC_LEVER_PLACE_PROGRAM && row->family[0] && (other = hec_lever_row(i)); i++)
        if (other->place != row->place && strcmp(row->family, other->family) == 0 && can(run, other) &&
            (other->always || answered(run, other)))
            return true;
    return false;
}

static void add_candidate(const struct hec_summary *run, struct hec_candidates *out, const struct hec_lever_row *row,
                          double value, enum hec_cause cause) {
    if (is_covered(run, out, row))
        return;
    bool number = strcmp(row->value, "N") == 0 && value >= 1;
    if (out->count == LEVERS_MOST || (hec_lever_needs_value(row) && !number))
        return;
    struct hec_candidate *candidate = &out->list[out->count++];
    *candidate = (struct hec_candidate){.use.row = row, .cause = cause};
    if (number)
        snprintf(candidate->use.value, sizeof candidate->use.value, "%.0f", value);
}

/* The number of a lever from that of the finding's answer, where the two mean the same; 0: it chooses. */
static double number_for(const struct hec_lever_row *row, const struct hec_summary *run,
                         const struct hec_lever *answer) {
    if (strcmp(row->name, "loader_workers") == 0 &&
        (answer->id == HEC_LEVER_LOADER_WORKERS || answer->id == HEC_LEVER_LOADER_ALL_CORES))
        return answer->value[0];
    if (strcmp(row->name, "threads") == 0)
        return run->host.cores_usable > 1 ? run->host.cores_usable : 0;
    return 0;
}

/* By what they mostly save, as time may not be enough for all: what answers each finding first, and what nothing else would ask for; then
 * what is worth a trial in any program, a finding's further answers among them. */
void hec_candidates_find(const struct hec_summary *run, struct hec_candidates *out) {
    const struct hec_lever_row *row;
    out->count = 0;
    for (int f = 0; f < run->job.findings.count; f++) {
        const struct hec_finding *finding = &run->job.findings.list[f];
        bool first = true;
        for (int i = 0; (row = hec_lever_row(i)); i++) {
            if (!answers(row, finding) || !can(run, row))
                continue;
            if (first || !row->always)
                add_candidate(run, out, row, number_for(row, run, &finding->lever), finding->cause);
            first = false;
        }
    }
    for (int i = 0; (row = hec_lever_row(i)); i++) {
        const struct hec_finding *finding = answered(run, row);
        if (row->always && can(run, row))
            add_candidate(run, out, row, 0, finding ? finding->cause : HEC_CAUSE_COUNT);
    }
}

bool hec_candidates_foreign(const struct hec_summary *run) {
    const struct hec_lever_row *row;
    bool found = false;
    for (int i = 0; (row = hec_lever_row(i)); i++)
        found |= answered(run, row) && !uses(run, row->place);
    return found;
}

void hec_candidates_old(const struct hec_summary *run, char *text, size_t size) {
    const struct hec_lever_row *row;
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; (row = hec_lever_row(i)) && length < size; i++)
        if ((row->always || answered(run, row)) && fits(run, row) && is_old(run, row))
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", row->name);
}

void hec_candidates_of(const struct hec_lever_set *set, struct hec_candidates *out) {
    out->count = 0;
    for (int i = 0; i < set->count && i < LEVERS_MOST; i++)
        out->list[out->count++] = (struct hec_candidate){.use = set->list[i], .cause = HEC_CAUSE_COUNT};
}

/* ---- sets ---- */

void hec_candidates_plan(const struct hec_candidates *candidates, struct hec_search_plan *plan) {
    plan->candidates = candidates->count;
    for (int i = 0; i < candidates->count; i++) {
        plan->after[i] = candidates->list[i].after;
        plan->excludes[i] = 0;
        for (int k = 0; k < candidates->count; k++)
            if (k != i && hec_lever_excludes(&candidates->list[i].use, &candidates->list[k].use))
                plan->excludes[i] |= UINT32_C(1) << k;
    }
}

void hec_candidates_set(const struct hec_candidates *candidates, uint32_t bits, struct hec_lever_set *out) {
    out->count = 0;
    for (int i = 0; i < candidates->count; i++)
        if (bits & (UINT32_C(1) << i))
            out->list[out->count++] = candidates->list[i].use;
}

struct run {
    struct hec_trials *trials;
    const struct hec_search *search;
    const struct hec_search_watch *watch;
    struct hec_search_outcome *out;
    struct hec_search_seen seen;
    struct hec_searched now; /* the trial at hand */
};

/* ---- figures ---- */

/* What is least and what is most of a trial: of a unit of work, of a step, of the whole, by what is known. True: joules are not, and time
 * decides. */
static bool fill_figures(const struct hec_experiment_trial *m, struct hec_search_trial *out) {
    const struct hec_trial_block *steady = &m->steady, *whole = &m->run;
    double work = isfinite(steady->units) ? steady->units : steady->steps;
    if (work > 0 && steady->seconds > 0) {
        out->speed = work / steady->seconds;
        out->cost = steady->joules / work;
    } else if (!m->stopped) { /* as a knob may change how much that is, by units where they are known */
        double done = whole->units > 0 ? whole->units : 1;
        out->speed = done / whole->seconds;
        out->cost = whole->joules / done;
    }
    bool timed = isnan(out->cost);
    if (timed)
        out->cost = 1 / out->speed;
    return timed;
}

static bool is_number(const struct hec_experiment_trial *m) {
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        if (isinf(m->loss[i]))
            return false;
    return true;
}

/* Whether the losses are those of other work, by the gate of experiments: for that there are trials of the base. */
static bool fails_quality(const struct run *run, struct hec_reason *why) {
    const struct hec_search_outcome *out = run->out;
    struct hec_experiment_plan plan = {
        .margin = run->search->margin, .gradients = true, .loss_steps = run->search->loss_steps};
    struct hec_experiment_result result;
    struct hec_experiment_trial *list = calloc(out->count + 1, sizeof *list);
    int count = 0;
    for (size_t i = 0; list && i < out->count; i++)
        if (hec_searched_base(&out->trials[i]))
            list[count++] = out->trials[i].measured;
    if (!list)
        return false;
    list[count] = run->now.measured;
    list[count++].side = 1;
    bool fails =
        hec_experiment_judge(&plan, list, count, &result) == HEC_OK && result.quality.verdict == HEC_QUALITY_FAIL;
    bool part = result.quality.gradient >= HEC_GRADIENT_PART;
    if (fails && result.quality.why == HEC_QUALITY_GRADIENT &&
        result.quality.gradients.difference < log(HEC_QUALITY_NO_GRADIENT))
        *why = HEC_BECAUSE_OF(TRIAL_NO_GRADIENT, part);
    else if (fails && result.quality.why == HEC_QUALITY_GRADIENT)
        *why = HEC_BECAUSE_OF(TRIAL_GRADIENTS, part, exp(result.quality.gradients.difference));
    else if (fails)
        *why = HEC_BECAUSE_OF(TRIAL_LOSSES, fabs(result.quality.parts[result.quality.part].difference));
    free(list);
    return fails;
}

/* ---- a trial ---- */

static int measure(void *context, const struct hec_session *session, const struct hec_session_result *result,
                   struct hec_why *why) {
    struct run *run = context;
    const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    struct hec_experiment_trial *m = &run->now.measured;
    *m = (struct hec_experiment_trial){.pair = -1, .steady = unknown, .run = unknown};
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        m->loss[i] = NAN;
    m->gradients = hec_gradients_none();
    int err = run->watch->measure(run->watch->context, session, result, m, &run->seen, why);
    return result->exit_status && !result->stopped ? HEC_OK : err; /* of one that failed, what it cost is enough */
}

/* Why it failed, and what the command printed last, as one line. */
static struct hec_reason why_ended(const struct hec_trial_end *end) {
    const char *tail = end->tail, *from = tail + strlen(tail);
    while (from > tail && from[-1] == '\n')
        from--;
    size_t length = (size_t)(from - tail);
    while (from > tail && from[-1] != '\n')
        from--;
    length -= (size_t)(from - tail);
    struct hec_reason why =
        end->failure == HEC_FAILURE_DEVICE_MEMORY ? HEC_BECAUSE_OF(TRIAL_DEVICE_MEMORY, end->exit_status)
        : end->failure == HEC_FAILURE_HOST_MEMORY ? HEC_BECAUSE_OF(TRIAL_HOST_MEMORY, end->exit_status)
                                                  : HEC_BECAUSE_OF(TRIAL_FAILED, end->exit_status);
    snprintf(why.text, sizeof why.text, "%.*s", (int)(length < 300 ? length : 300), from);
    return why;
}

static void judge(struct run *run, const struct hec_trial_end *end, bool by_steps) {
    struct hec_searched *now = &run->now;
    now->trial = (struct hec_search_trial){.set = now->set, .cost = NAN, .speed = NAN, .fate = HEC_SEARCH_FAILED};
    now->slow = end->stopped == HEC_STOPPED_TIME && by_steps;
    if (hec_trial_failed(end)) {
        now->why = why_ended(end);
        return;
    }
    now->timed = fill_figures(&now->measured, &now->trial);
    now->why = hec_reason_said(run->seen.text);
    if (now->slow)
        now->why = hec_reason_with(HEC_BECAUSE_OF(TRIAL_SLOW, end->seconds), run->seen.text);
    else if (isnan(now->trial.speed)) /* what ended it came before its first step */
        now->why = HEC_BECAUSE_OF(TRIAL_NO_WORK, end->seconds);
    else if (!is_number(&now->measured))
        now->why = HEC_BECAUSE(TRIAL_NOT_FINITE);
    else if (!run->seen.failed && !(now->set && fails_quality(run, &now->why)))
        now->trial.fate = run->seen.idle ? HEC_SEARCH_IDLE : HEC_SEARCH_RAN;
}

/* A trial that failed before its energy was known is charged at the power of the command as it is, which does more. */
static void charge(struct hec_search_outcome *out, const struct hec_trial_block *whole, double seconds) {
    struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    const struct hec_trial_block *base = &unknown;
    for (size_t i = 0; i < out->count && base == &unknown; i++)
        if (hec_searched_base(&out->trials[i]))
            base = &out->trials[i].measured.run;
    double joules = isfinite(whole->joules) ? whole->joules : base->joules / base->seconds * seconds;
    out->joules += joules;
    out->seconds += seconds;
}

static int one(struct run *run, uint32_t set, struct hec_trial_end *end, struct hec_why *why) {
    struct hec_search_outcome *out = run->out;
    struct hec_lever_set levers;
    hec_candidates_set(&run->search->candidates, set, &levers);
    run->now = (struct hec_searched){.set = set};
    run->seen = (struct hec_search_seen){.text = ""};
    run->watch->begin(run->watch->context, &levers, (int)out->count);
    int err = hec_trials_run(run->trials, run->search->command, &levers, measure, run, end, why);
    if (err == HEC_ERR_UNSUPPORTED && set) { /* a lever that this machine does not allow */
        run->now.why = hec_reason_said(why->text);
        run->now.trial = (struct hec_search_trial){.set = set, .cost = NAN, .speed = NAN, .fate = HEC_SEARCH_IDLE};
        run->now.measured.run = (struct hec_trial_block){NAN, NAN, NAN, NAN};
        run->now.measured.run.seconds = run->now.measured.run.joules = 0;
        err = HEC_OK;
    } else if (err == HEC_OK) {
        judge(run, end, hec_trials_session(run->trials)->stop.steps > 0);
    }
    if (err < 0 || end->asked) /* one that was cut short says nothing */
        return err;
    if (!hec_list_room(out->trials, out->count, out->capacity, 16))
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the table of trials");
    out->trials[out->count++] = run->now;
    charge(out, &run->now.measured.run, end->seconds);
    run->watch->after(run->watch->context, &levers, &run->now);
    return HEC_OK;
}

/* ---- in a program that goes on ---- */

struct lived {
    struct run *run;
    struct hec_search_lived seen;
};

static int measure_live(void *context, const struct hec_session *session, const struct hec_session_result *result,
                        struct hec_why *why) {
    struct lived *lived = context;
    const struct hec_search_watch *watch = lived->run->watch;
    int err = watch->measure_live(watch->context, session, result, &lived->seen, why);
    return result->exit_status && !result->stopped ? HEC_OK : err;
}

static enum hec_lever_risk text_of(void *context, uint32_t set, char *text) {
    const struct run *run = context;
    struct hec_lever_set levers;
    char whole[HEC_LEVERS_TEXT];
    hec_candidates_set(&run->search->candidates, set, &levers);
    hec_lever_set_text(&levers, whole);
    snprintf(text, HEC_ORDERS_WANTED_MAX, "%.*s", HEC_ORDERS_WANTED_MAX - 1, whole);
    enum hec_lever_risk most = HEC_LEVER_RISK_EXACT;
    for (int i = 0; i < levers.count; i++)
        most = levers.list[i].row->risk > most ? levers.list[i].row->risk : most;
    return most;
}

static uint32_t compiler_bits(const struct hec_candidates *candidates) {
    uint32_t bits = 0;
    for (int i = 0; i < candidates->count; i++)
        bits |= strcmp(candidates->list[i].use.row->family, "compiler") == 0 ? UINT32_C(1) << i : 0;
    return bits;
}

static uint32_t live_bits(const struct hec_candidates *candidates) {
    uint32_t bits = 0;
    for (int i = 0; i < candidates->count; i++)
        bits |= candidates->list[i].use.row->live ? UINT32_C(1) << i : 0;
    return bits;
}

bool hec_search_lives(const struct hec_search *search) {
    return search->live && __builtin_popcount(live_bits(&search->candidates)) >= LIVE_LEAST;
}

/* A block of the program, as a trial. A lever that did nothing in it did so in each of its sets; so did one that failed, unless the program
 * said in which. */
static int add_block(struct run *run, struct hec_search_trial row, struct hec_live_block lived, bool says_failed,
                     const struct hec_search_lived *seen, struct hec_why *why) {
    struct hec_search_outcome *out = run->out;
    const struct hec_orders_answer *wrong = &lived.wrong;
    struct hec_lever_set levers;
    if (!hec_list_room(out->trials, out->count, out->capacity, 16))
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the table of trials");
    if (!says_failed && row.set & seen->failed)
        row.fate = HEC_SEARCH_FAILED;
    else if (row.fate == HEC_SEARCH_RAN && row.set & seen->idle)
        row.fate = HEC_SEARCH_IDLE;
    const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    struct hec_searched *block = &out->trials[out->count++];
    *block = (struct hec_searched){
        .set = row.set, .trial = row, .measured = {.steady = unknown, .run = unknown}, .block = lived};
    block->timed = !run->search->devices;
    if (wrong->order && isinf(wrong->difference))
        block->why = HEC_BECAUSE_OF(TRIAL_WRONG_WHOLLY, wrong->gradients);
    else if (wrong->order)
        block->why = HEC_BECAUSE_OF(TRIAL_WRONG, wrong->gradients, wrong->difference);
    else if (row.fate == HEC_SEARCH_FAILED)
        block->why = hec_reason_with(HEC_BECAUSE(TRIAL_RUNNING), row.set & seen->failed ? seen->text : "");
    hec_candidates_set(&run->search->candidates, row.set, &levers);
    run->watch->after(run->watch->context, &levers, block);
    return HEC_OK;
}

/* Levers are switched in one program, as long as there is something to try and time for it. Where that does not work out, nothing is lost
 * but the time: what is not known then is tried in processes of its own. */
static int search_live(struct run *run, struct hec_trial_end *end, struct hec_why *why) {
    const struct hec_search *search = run->search;
    struct hec_session_options *session = hec_trials_session(run->trials), before = *session;
    struct hec_live_plan plan = {
        .search = {.slowdown_most = search->slowdown_most, .saving_least = search->saving_least, .part = 1},
        .devices = search->devices,
        .compilers = compiler_bits(&search->candidates),
        .ranks = search->ranks,
        .block_s = LIVE_BLOCK_S,
        .text = text_of,
        .context = run};
    uint32_t bits = live_bits(&search->candidates);
    struct hec_lever_set levers;
    struct hec_live_search *live;
    struct lived lived = {.run = run, .seen = {.joules = NAN}};
    /* candidates come by what they mostly save */
    bool knobs = false;
    for (int i = 0; i < search->candidates.count; i++)
        knobs |= search->candidates.list[i].use.knob[0] != '\0';
    double share = search->candidates.list[0].use.row->live && !knobs ? 1 : LIVE_SHARE;
    int64_t now_ns = hec_clock_mono_ns(), most_ns = (int64_t)(share * (double)(search->until_ns - now_ns));
    hec_candidates_plan(&search->candidates, &plan.search);
    plan.search.closed = ~bits;
    plan.until_ns = now_ns + most_ns;
    int count, err = hec_live_search_begin(&plan, &live, why);
    if (err < 0)
        return err;
    hec_candidates_set(&search->candidates, bits, &levers);
    session->orders = hec_live_search_orders(live);
    session->through = hec_live_search_through;
    session->through_context = live;
    session->stop = (struct hec_stop){.after_ns = (int64_t)((1 + LIVE_GRACE) * (double)most_ns),
                                      .enough = hec_live_search_enough(live)};
    run->watch->begin_live(run->watch->context, levers.count);
    err = hec_trials_run(run->trials, search->command, &levers, measure_live, &lived, end, why);
    *session = before;
    const struct hec_search_trial *rows = hec_live_search_rows(live, &count);
    bool says_failed = hec_live_search_says_failed(live);
    if (err >= 0)
        run->watch->after_live(run->watch->context, count, end);
    for (int i = 0; i < count && err >= 0 && !end->asked; i++)
        err = add_block(run, rows[i], hec_live_search_block(live, i), says_failed, &lived.seen, why);
    hec_live_search_free(live);
    charge(run->out, &(struct hec_trial_block){.joules = lived.seen.joules, .seconds = lived.seen.seconds},
           end->seconds);
    return err;
}

bool hec_searched_base(const struct hec_searched *trial) {
    return trial->set == 0 && trial->trial.part == 0 && trial->trial.fate == HEC_SEARCH_RAN;
}

static bool has_base(const struct hec_search_outcome *outcome) {
    bool has = false;
    for (size_t i = 0; i < outcome->count; i++)
        has |= hec_searched_base(&outcome->trials[i]);
    return has;
}

struct hec_search_trial *hec_search_table(const struct hec_search_outcome *outcome) {
    struct hec_search_trial *table = calloc(outcome->count + 1, sizeof *table);
    for (size_t i = 0; table && i < outcome->count; i++)
        table[i] = outcome->trials[i].trial;
    return table;
}

int hec_search_run(struct hec_trials *trials, const struct hec_search *search, const struct hec_search_watch *watch,
                   struct hec_search_outcome *out, struct hec_trial_end *end, struct hec_why *why) {
    struct run run = {.trials = trials, .search = search, .watch = watch, .out = out};
    struct hec_search_plan plan = {.slowdown_most = search->slowdown_most, .saving_least = search->saving_least};
    struct hec_search_step step = {.done = false};
    double longest_s = 0; /* of the base, in a process of its own */
    *out = (struct hec_search_outcome){0};
    hec_candidates_plan(&search->candidates, &plan);
    if (hec_search_lives(search)) {
        int err = search_live(&run, end, why);
        if (err < 0 || (out->asked = end->asked) != 0)
            return err;
    }
    for (int err = HEC_OK;;) {
        struct hec_search_trial *table = hec_search_table(out);
        if (!table)
            return hec_fail(why, HEC_ERR_NOMEM, "no memory for the table of trials");
        double trial_s = longest_s > 0 ? longest_s : search->trial_s;
        int trials_least =
            has_base(out) ? 1 : 2; /* after blocks: the base alone says nothing of what could not be switched */
        out->spent =
            out->count && hec_clock_mono_ns() + (int64_t)(trials_least * trial_s * HEC_NS_PER_S) > search->until_ns;
        step = hec_search_next(&plan, table, (int)out->count, out->spent || out->asked);
        free(table);
        if (step.done && (step.set || out->asked || has_base(out)))
            break;
        if ((err = one(&run, step.set, end, why)) < 0)
            return err;
        if ((out->asked = end->asked) != 0)
            continue;
        if (step.set == 0 && run.now.trial.fate == HEC_SEARCH_FAILED)
            return HEC_ERR_IO;
        if (step.set == 0)
            longest_s = fmax(longest_s, end->seconds);
    }
    out->best = step.set;
    return HEC_OK;
}

void hec_search_free(struct hec_search_outcome *outcome) {
    free(outcome->trials);
    memset(outcome, 0, sizeof *outcome);
}
