#include "diagnose/replay/whatif.h"

#include "base/clock.h"
#include "diagnose/replay/power.h"
#include "diagnose/replay/proofs.h"

#include <math.h>
#include <stdlib.h>

static void edits_of(const struct hec_whatif_question *question, struct hec_replay_edit edits[HEC_WHATIF_EDITS_MAX]) {
    for (int i = 0; i < question->count; i++)
        edits[i] = hec_edit_with(question->edits[i].edit, question->edits[i].value);
}

static int replay(const struct hec_schedule *s, const struct hec_whatif_question *question, bool usual,
                  const struct hec_replay_times *times, struct hec_replay *out) {
    struct hec_replay_edit edits[HEC_WHATIF_EDITS_MAX];
    edits_of(question, edits);
    return hec_replay_run(s, edits, (size_t)question->count, usual, times, out);
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
                  const struct hec_schedule *s, const struct hec_whatif_question *questions, size_t count,
                  struct hec_lanes_step *step, struct hec_whatif *out, struct hec_why *why) {
    static const struct hec_whatif_question unchanged = {.count = 0};
    const struct hec_replay *before = &out->unchanged.replay;
    struct hec_replay by_usual = {0};
    struct hec_replay_power power = {0};
    int err = replay(s, &unchanged, false, &step->before, &out->unchanged.replay);
    if (!err)
        err = replay(s, &unchanged, true, NULL, &by_usual);
    out->error = by_usual.seconds / out->unchanged.replay.recorded_s - 1;
    if (!err)
        err = hec_replay_power_find(input, summary, s, before, &power, why);
    for (size_t i = 0; i < count && !err; i++) {
        struct hec_whatif_answer *a = &out->answers[i];
        err = replay(s, &questions[i], false, &step->after, &a->replay);
        if (!err)
            say(&questions[i], before, &power, hec_proofs_widen(summary), a);
    }
    return err;
}

static int read_schedule(const struct hec_timeline_input *input, struct hec_schedule *out, struct hec_why *why) {
    struct hec_pass pass;
    struct hec_schedule_builder *builder;
    struct hec_pass_consumer consumer;
    int err = hec_pass_open(input, &pass, why);
    if (err)
        return err;
    err = hec_schedule_begin(&pass, HEC_SCHEDULE_CALLS_MAX, &builder, &consumer);
    if (!err && (err = hec_pass_run(&pass, &consumer, 1, why)) == 0) {
        err = hec_schedule_end(builder, out);
        builder = NULL;
        if (err == HEC_ERR_NOTFOUND)
            hec_fail(why, err,
                     "there is nothing to replay: kernels and copies were not recorded in the steady part of the run "
                     "(hec run --trace=full records them)");
    }
    hec_schedule_abandon(builder);
    hec_pass_close(&pass);
    return err;
}

int hec_whatif_ask(const struct hec_summary_input *input, const struct hec_summary *summary,
                   const struct hec_whatif_question *questions, size_t count, struct hec_whatif *out,
                   struct hec_why *why) {
    struct hec_timeline_input timeline = input->timeline;
    struct hec_device *devices = malloc(((size_t)summary->device_count + 1) * sizeof *devices);
    struct hec_schedule s = {0};
    struct hec_lanes_step step = {.device = -1};
    *out = (struct hec_whatif){.count = count};
    timeline.end_ns = llround(summary->seconds * HEC_NS_PER_S);
    out->answers = calloc(count + 1, sizeof *out->answers);
    for (int i = 0; devices && i < summary->device_count; i++)
        devices[i] = summary->devices[i].device;
    timeline.devices = devices;
    timeline.device_count = devices ? summary->device_count : 0;
    int err = out->answers && devices ? read_schedule(&timeline, &s, why) : HEC_ERR_NOMEM;
    out->step.device = out->edited.device = -1;
    if (!err && count == 1)
        err = hec_lanes_begin(&s, &step);
    if (!err)
        err = answer(input, summary, &s, questions, count, &step, out, why);
    if (!err && count == 1)
        hec_lanes_draw(&s, &step, &out->unchanged.replay, &out->answers[0].replay, HEC_WHATIF_COLUMNS, &out->step,
                       &out->edited);
    hec_lanes_end(&step);
    out->calls = (int64_t)s.count;
    out->guessed = s.guessed;
    out->steps = s.steps;
    out->cut = s.cut;
    out->from_s = (double)s.from_ns / HEC_NS_PER_S;
    out->to_s = (double)s.to_ns / HEC_NS_PER_S;
    out->trusted = fabs(out->error) <= HEC_REPLAY_TRUST;
    hec_schedule_free(&s);
    free(devices);
    if (err)
        hec_whatif_free(out);
    return err;
}

void hec_whatif_free(struct hec_whatif *whatif) {
    free(whatif->answers);
    *whatif = (struct hec_whatif){0};
}
