#include "diagnose/replay/whatif.h"

#include "base/clock.h"
#include "diagnose/joules_between.h"

#include <math.h>
#include <stdlib.h>

static int replay(const struct hec_schedule *s, const struct hec_whatif_question *question, bool usual,
                  struct hec_replay *out) {
    struct hec_replay_edit edits[HEC_WHATIF_EDITS_MAX];
    for (int i = 0; i < question->count; i++)
        edits[i] = hec_edit_with(question->edits[i].edit, question->edits[i].value);
    return hec_replay_run(s, edits, (size_t)question->count, usual, NULL, out);
}

/* ---- joules ---- */

#define ROUGH 0.5 /* width of the interval of watts, of them: more is not known */

/* What a device draws, by its joules over the stretch and by what it draws while it waits: each at the low end of that, at best
 * guess, and at the high end. Where waiting takes less, work takes more. */
struct watts {
    int device;
    double work[3], comm, copy[3], idle[3]; /* NAN unknown; comm 0: it never communicates */
};

/* The longest of the states in which the device waits for the host says it best. */
static const struct hec_ledger_row *waiting(const struct hec_ledger_row *rows) {
    static const enum hec_state waits[] = {HEC_STATE_DATA, HEC_STATE_CHECKPOINT, HEC_STATE_HOST,
                                           HEC_STATE_SYNC, HEC_STATE_ALLOC,      HEC_STATE_LAUNCH};
    const struct hec_ledger_row *longest = NULL;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        if (isfinite(rows[waits[i]].watts) && (!longest || rows[waits[i]].ns > longest->ns))
            longest = &rows[waits[i]];
    return longest;
}

static double joules_at(const struct watts *w, int end, const struct hec_replay *r) {
    double work_s = r->work_s[w->device], kernels_s = r->kernels_s[w->device], busy_s = r->busy_s[w->device];
    return work_s * w->work[end] + (kernels_s - work_s) * w->comm + (busy_s - kernels_s) * w->copy[end] +
           fmax(0, r->seconds - busy_s) * w->idle[end];
}

static bool sure(const struct hec_ledger_row *row) {
    return row->watts_high - row->watts_low <= ROUGH * row->watts;
}

/* joules: of the device in the recorded stretch. A copy alone draws little more than waiting: where it is not known how much, as much. */
static struct watts watts_of(const struct hec_ledger_device *d, const struct hec_replay *recorded, double joules) {
    const struct hec_ledger_row *idle = waiting(d->rows), *comm = &d->rows[HEC_STATE_COMM],
                                *copy = &d->rows[HEC_STATE_COPY];
    struct watts w = {d->device, {0, 0, 0}, comm->ns > 0 ? comm->watts : 0, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
    if (!idle || !(recorded->work_s[d->device] > 0))
        return w;
    double watts[3] = {idle->watts_low, idle->watts, idle->watts_high};
    for (int end = 0; end < 3; end++) {
        w.idle[end] = watts[end];
        w.copy[end] = isfinite(copy->watts) && sure(copy) ? fmax(copy->watts, watts[end]) : watts[end];
        w.work[end] = 0;
        w.work[end] = (joules - joules_at(&w, end, recorded)) / recorded->work_s[d->device];
    }
    return w;
}

/* Of all devices together. */
static struct hec_saving saved_joules(const struct watts *w, int count, const struct hec_replay *before,
                                      const struct hec_replay *after) {
    double saved[3];
    for (int end = 0; end < 3; end++) {
        double from = 0, to = 0;
        for (int i = 0; i < count; i++) {
            from += joules_at(&w[i], end, before);
            to += joules_at(&w[i], end, after);
        }
        saved[end] = count > 0 && from > 0 ? 1 - to / from : NAN;
    }
    return (struct hec_saving){fmin(saved[0], saved[2]), saved[1], fmax(saved[0], saved[2])};
}

/* Devices that have work in the schedule; a device without joules makes all unknown. */
static int watts_of_all(const struct hec_summary_input *input, const struct hec_summary *summary,
                        const struct hec_schedule *s, const struct hec_replay *recorded, struct watts *watts,
                        int *count, struct hec_why *why) {
    const int64_t edge[2] = {s->from_ns, s->to_ns};
    const struct hec_ledger *ledger = &summary->diagnosis.ledger;
    *count = 0;
    for (int i = 0; i < ledger->device_count; i++) {
        const struct hec_ledger_device *d = &ledger->devices[i];
        double joules = NAN;
        if (d->device < 0 || d->device >= HEC_DEVICE_MAX || !(recorded->busy_s[d->device] > 0))
            continue;
        for (int k = 0; k < summary->device_count; k++)
            if (summary->devices[k].device.index == d->device) {
                int err = hec_joules_between(input, &summary->devices[k], edge, 1,
                                             llround(summary->seconds * HEC_NS_PER_S), &joules, why);
                if (err)
                    return err;
            }
        watts[(*count)++] = watts_of(d, recorded, joules);
    }
    return 0;
}

static int answer(const struct hec_summary_input *input, const struct hec_summary *summary,
                  const struct hec_schedule *s, const struct hec_whatif_question *questions, size_t count,
                  struct hec_whatif *out, struct hec_why *why) {
    static const struct hec_whatif_question unchanged = {.count = 0};
    const struct hec_replay *before = &out->unchanged.replay;
    struct hec_replay by_usual = {0};
    struct watts watts[HEC_DEVICE_MAX];
    int devices = 0;
    int err = replay(s, &unchanged, false, &out->unchanged.replay);
    if (!err)
        err = replay(s, &unchanged, true, &by_usual);
    out->error = by_usual.seconds / out->unchanged.replay.recorded_s - 1;
    if (!err)
        err = watts_of_all(input, summary, s, before, watts, &devices, why);
    for (size_t i = 0; i < count && !err; i++) {
        struct hec_whatif_answer *a = &out->answers[i];
        err = replay(s, &questions[i], false, &a->replay);
        a->seconds = 1 - a->replay.seconds / before->seconds;
        a->joules = saved_joules(watts, devices, before, &a->replay);
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
        err = answer(input, summary, &s, questions, count, out, why);
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
