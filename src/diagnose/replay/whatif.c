#include "diagnose/replay/whatif.h"

#include "base/clock.h"
#include "diagnose/meter/meter.h"
#include "diagnose/replay/power.h"

#include <math.h>
#include <stdlib.h>

#define AT_ONCE 4 /* replays */
#define AT_ONCE_BYTES ((size_t)64 << 20)

/* A replay to be made. */
struct run {
    const struct hec_schedule *schedule;
    const struct hec_whatif_question *question;
    bool usual;
    const struct hec_replay_times *times;
    struct hec_replay *out;
    int err;
};

static void replay(void *context) {
    struct run *r = context;
    struct hec_replay_edit edits[HEC_WHATIF_EDITS_MAX];
    for (int i = 0; i < r->question->count; i++)
        edits[i] = hec_edit_with(r->question->edits[i].edit, r->question->edits[i].value);
    r->err = hec_replay_run(r->schedule, edits, (size_t)r->question->count, r->usual, r->times, r->out);
}

/* Some at a time, which go through the schedule side by side; two where each takes much memory. */
static int replay_all(const struct hec_summary_input *input, struct run *runs, size_t count) {
    size_t most = AT_ONCE * hec_replay_bytes(input->schedule) <= AT_ONCE_BYTES ? AT_ONCE : 2;
    struct hec_task tasks[AT_ONCE];
    int err = 0;
    for (size_t i = 0; i < count && !err; i += most) {
        size_t n = count - i < most ? count - i : most;
        for (size_t k = 0; k < n; k++)
            tasks[k] = (struct hec_task){replay, &runs[i + k]};
        hec_tasks_run(input->together, tasks, n);
        for (size_t k = 0; k < n; k++)
            err = err ? err : runs[i + k].err;
    }
    return err;
}

static void widen(struct hec_saving *s, struct hec_saving by) {
    *s = isnan(s->best) ? by : (struct hec_saving){fmin(s->low, by.low), by.best, fmax(s->high, by.high)};
}

static void say(const struct hec_whatif_question *question, const struct hec_replay *before,
                const struct hec_replay_power *power, double elsewhere, struct hec_whatif_answer *a) {
    double seconds = a->seconds_replayed = 1 - a->replay.seconds / before->seconds;
    struct hec_saving joules = hec_replay_power_saved(power, before, &a->replay), unknown = {NAN, NAN, NAN};
    a->joules_replayed = joules.best;
    a->seconds = a->joules = unknown;
    for (int k = 0; k < question->count; k++) {
        enum hec_edit edit = question->edits[k].edit;
        widen(&a->seconds, hec_proofs_seconds(edit, (struct hec_saving){seconds, seconds, seconds}, elsewhere));
        widen(&a->joules, hec_proofs_joules(edit, joules, elsewhere));
    }
}

static int answer(const struct hec_summary_input *input, const struct hec_summary *summary,
                  const struct hec_whatif_question *questions, struct hec_lanes_step *step, struct hec_whatif *out,
                  struct hec_why *why) {
    static const struct hec_whatif_question unchanged = {.count = 0};
    const struct hec_schedule *s = input->schedule;
    const struct hec_replay *before = &out->unchanged.replay;
    struct hec_replay by_usual = {0};
    struct hec_replay_power power = {0};
    struct hec_meter meter;
    struct run *runs = calloc(out->count + 2, sizeof *runs);
    if (!runs)
        return HEC_ERR_NOMEM;
    runs[0] = (struct run){s, &unchanged, false, &step->before, &out->unchanged.replay, 0};
    runs[1] = (struct run){s, &unchanged, true, NULL, &by_usual, 0};
    for (size_t i = 0; i < out->count; i++)
        runs[i + 2] = (struct run){s, &questions[i], false, &step->after, &out->answers[i].replay, 0};
    int err = replay_all(input, runs, out->count + 2);
    free(runs);
    hec_meter_open(&meter, input, llround(summary->seconds * HEC_NS_PER_S));
    if (!err)
        err = hec_replay_power_find(&meter, summary, s, before, &power, why);
    hec_meter_close(&meter);
    out->error = by_usual.seconds / out->unchanged.replay.recorded_s - 1;
    for (size_t i = 0; i < out->count && !err; i++)
        say(&questions[i], before, &power, hec_proofs_widen(summary), &out->answers[i]);
    return err;
}

int hec_whatif_ask(const struct hec_summary_input *input, const struct hec_summary *summary,
                   const struct hec_whatif_question *questions, size_t count, struct hec_whatif *out,
                   struct hec_why *why) {
    const struct hec_schedule *s = input->schedule;
    struct hec_lanes_step step = {.device = -1};
    *out = (struct hec_whatif){.count = count};
    out->step.device = out->edited.device = -1;
    if (s->count == 0)
        return HEC_ERR_UNSUPPORTED;
    out->answers = calloc(count + 1, sizeof *out->answers);
    int err = out->answers ? HEC_OK : HEC_ERR_NOMEM;
    if (!err && count == 1)
        err = hec_lanes_begin(s, &step);
    if (!err)
        err = answer(input, summary, questions, &step, out, why);
    if (!err && count == 1)
        hec_lanes_draw(s, &step, &out->unchanged.replay, &out->answers[0].replay, HEC_WHATIF_COLUMNS, &out->step,
                       &out->edited);
    hec_lanes_end(&step);
    out->calls = (int64_t)s->count;
    out->guessed = s->guessed;
    out->steps = s->steps;
    out->cut = s->cut;
    out->imported = summary->imported[0] != '\0';
    out->from_s = (double)s->from_ns / HEC_NS_PER_S;
    out->to_s = (double)s->to_ns / HEC_NS_PER_S;
    out->communication = (int64_t)s->communication;
    out->alone = (int64_t)s->alone;
    out->apart = hec_schedule_apart(s);
    out->trusted = fabs(out->error) <= HEC_REPLAY_TRUST && !out->apart;
    if (err)
        hec_whatif_free(out);
    return err;
}

void hec_whatif_free(struct hec_whatif *whatif) {
    free(whatif->answers);
    *whatif = (struct hec_whatif){0};
}
