#include "diagnose/replay/whatif.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

#define ROUGH 0.5 /* width of the interval of watts, of them */

static int replay(const struct hec_schedule *s, const struct hec_whatif_question *question, bool usual,
                  struct hec_replay *out) {
    struct hec_replay_edit edits[HEC_WHATIF_EDITS_MAX];
    for (int i = 0; i < question->count; i++)
        edits[i] = hec_edit_with(question->edits[i].edit, question->edits[i].value);
    return hec_replay_run(s, edits, (size_t)question->count, usual, NULL, out);
}

/* Of a device, NAN unknown: while it works, while it only communicates (0: it never does), while it waits for the host (the longest of
 * such states says it best). */
struct watts {
    double work, comm, idle;
};

/* NAN also where they are known too roughly to say what they would add up to. */
static double sure(const struct hec_ledger_row *row) {
    return row->watts_high - row->watts_low <= ROUGH * row->watts ? row->watts : NAN;
}

static struct watts watts_of(const struct hec_summary *summary, int device) {
    static const enum hec_state waits[] = {HEC_STATE_DATA, HEC_STATE_HOST, HEC_STATE_SYNC, HEC_STATE_LAUNCH};
    const struct hec_ledger_row *longest = NULL;
    const struct hec_ledger *ledger = &summary->diagnosis.ledger;
    struct watts w = {NAN, NAN, NAN};
    for (int d = 0; d < ledger->device_count; d++) {
        const struct hec_ledger_row *rows = ledger->devices[d].rows;
        if (ledger->devices[d].device != device)
            continue;
        w.work = sure(&rows[HEC_STATE_COMPUTE]);
        w.comm = rows[HEC_STATE_COMM].ns > 0 ? sure(&rows[HEC_STATE_COMM]) : 0;
        for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
            if (isfinite(rows[waits[i]].watts) && (!longest || rows[waits[i]].ns > longest->ns))
                longest = &rows[waits[i]];
    }
    if (longest)
        w.idle = sure(longest);
    return w;
}

/* Of all devices that have work in the schedule. */
static double joules_of(const struct hec_summary *summary, const struct hec_schedule *s, const struct hec_replay *r) {
    double joules = 0;
    bool seen[HEC_DEVICE_MAX] = {false};
    for (size_t i = 0; i < s->stream_count; i++) {
        int device = s->streams[i].device;
        if (device < 0 || device >= HEC_DEVICE_MAX || seen[device])
            continue;
        seen[device] = true;
        struct watts w = watts_of(summary, device);
        joules += r->work_s[device] * w.work + (r->busy_s[device] - r->work_s[device]) * w.comm +
                  fmax(0, r->seconds - r->busy_s[device]) * w.idle;
    }
    return joules;
}

static int answer(const struct hec_summary *summary, const struct hec_schedule *s,
                  const struct hec_whatif_question *questions, size_t count, struct hec_whatif *out) {
    static const struct hec_whatif_question unchanged = {.count = 0};
    struct hec_replay by_usual = {0};
    int err = replay(s, &unchanged, false, &out->unchanged.replay);
    if (!err)
        err = replay(s, &unchanged, true, &by_usual);
    out->error = by_usual.seconds / out->unchanged.replay.recorded_s - 1;
    double joules = joules_of(summary, s, &out->unchanged.replay);
    for (size_t i = 0; i < count && !err; i++) {
        struct hec_whatif_answer *a = &out->answers[i];
        err = replay(s, &questions[i], false, &a->replay);
        a->seconds = 1 - a->replay.seconds / out->unchanged.replay.seconds;
        a->joules = 1 - joules_of(summary, s, &a->replay) / joules;
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
    struct hec_schedule s = {0};
    *out = (struct hec_whatif){.count = count};
    timeline.end_ns = llround(summary->seconds * HEC_NS_PER_S);
    out->answers = calloc(count + 1, sizeof *out->answers);
    int err = out->answers ? read_schedule(&timeline, &s, why) : HEC_ERR_NOMEM;
    if (!err)
        err = answer(summary, &s, questions, count, out);
    out->calls = (int64_t)s.count;
    out->guessed = s.guessed;
    out->steps = s.steps;
    out->cut = s.cut;
    out->from_s = (double)s.from_ns / HEC_NS_PER_S;
    out->to_s = (double)s.to_ns / HEC_NS_PER_S;
    out->trusted = fabs(out->error) <= HEC_REPLAY_TRUST;
    hec_schedule_free(&s);
    if (err)
        hec_whatif_free(out);
    return err;
}

void hec_whatif_free(struct hec_whatif *whatif) {
    free(whatif->answers);
    *whatif = (struct hec_whatif){0};
}
