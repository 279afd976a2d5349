#include "diagnose/replay/lanes.h"

#include "base/clock.h"
#include "diagnose/replay/parts.h"

#include <stdlib.h>
#include <string.h>

struct canvas {
    int64_t from_ns, column_ns;
    int64_t host[HEC_LANE_COLUMNS][HEC_LANE_COUNT], on_device[HEC_LANE_COLUMNS][HEC_LANE_COUNT]; /* ns of each */
};

static void paint(const struct canvas *c, int64_t lane[][HEC_LANE_COUNT], enum hec_lane what, int64_t start_ns,
                  int64_t end_ns) {
    start_ns -= c->from_ns;
    end_ns -= c->from_ns;
    for (int64_t column = start_ns > 0 ? start_ns / c->column_ns : 0; column < HEC_LANE_COLUMNS; column++) {
        int64_t from = column * c->column_ns, to = from + c->column_ns;
        if (from >= end_ns)
            return;
        lane[column][what] += (end_ns < to ? end_ns : to) - (start_ns > from ? start_ns : from);
    }
}

static void settle(int64_t lane[][HEC_LANE_COUNT], uint8_t out[HEC_LANE_COLUMNS]) {
    for (int column = 0; column < HEC_LANE_COLUMNS; column++) {
        out[column] = HEC_LANE_NOTHING;
        for (int what = 1; what < HEC_LANE_COUNT; what++)
            if (lane[column][what] > lane[column][out[column]])
                out[column] = (uint8_t)what;
    }
}

/* The time before a call, which is data, checkpoint and code in the shares of the recording. */
static void paint_before(struct canvas *c, const struct hec_schedule *s, const struct hec_schedule_call *call,
                         int64_t from_ns, int64_t to_ns) {
    int64_t recorded = call->begin_ns - s->calls[call->after].end_ns, ns = to_ns - from_ns;
    if (recorded <= 0 || ns <= 0)
        return;
    int64_t data = (int64_t)((double)ns * call->data_ns / (double)recorded);
    int64_t checkpoint = (int64_t)((double)ns * call->checkpoint_ns / (double)recorded);
    paint(c, c->host, HEC_LANE_DATA, from_ns, from_ns + data);
    paint(c, c->host, HEC_LANE_CHECKPOINT, from_ns + data, from_ns + data + checkpoint);
    paint(c, c->host, HEC_LANE_CODE, from_ns + data + checkpoint, to_ns);
}

static enum hec_lane lane_of(const struct hec_schedule_call *call) {
    if (call->kind != HEC_CALL_KERNEL)
        return HEC_LANE_COPY;
    return call->kernel_class == HEC_KERNEL_CLASS_COMM ? HEC_LANE_COMM : HEC_LANE_KERNEL;
}

struct range {
    size_t from, to; /* calls */
    uint8_t process;
    int device;
};

static bool of_range(const struct hec_schedule *s, const struct range *r, size_t i) {
    return s->calls[i].process == r->process &&
           (!hec_call_launched(&s->calls[i]) || s->streams[s->calls[i].stream].device == r->device);
}

static void draw(const struct hec_schedule *s, const struct range *r, const struct hec_replay_times *t,
                 int64_t column_ns, struct hec_lanes *out) {
    struct canvas c = {.from_ns = t->begin_ns[r->from], .column_ns = column_ns};
    int64_t last_ns = c.from_ns;
    for (size_t i = r->from; i < r->to; i++) {
        const struct hec_schedule_call *call = &s->calls[i];
        if (!of_range(s, r, i))
            continue;
        if (i > r->from && call->after != HEC_SCHEDULE_NONE && call->after >= r->from)
            paint_before(&c, s, call, t->end_ns[call->after], t->begin_ns[i]);
        paint(&c, c.host, call->kind == HEC_CALL_WAIT || call->flags & HEC_CALL_WAITED ? HEC_LANE_WAIT : HEC_LANE_CALL,
              t->begin_ns[i], t->end_ns[i]);
        if (hec_call_launched(call))
            paint(&c, c.on_device, lane_of(call), t->start_ns[i], t->finish_ns[i]);
        last_ns = t->end_ns[i] > last_ns ? t->end_ns[i] : last_ns;
    }
    out->device = r->device;
    out->seconds = (double)(last_ns - c.from_ns) / HEC_NS_PER_S;
    settle(c.host, out->host);
    settle(c.on_device, out->on_device);
}

/* Its calls, and the first one after it: what the program does up to there is the step's. */
static struct range step_of(const struct hec_schedule *s) {
    struct range r = {0, 0, 0, -1};
    while (r.from < s->count && s->calls[r.from].begin_ns < s->step_from_ns)
        r.from++;
    for (r.to = r.from; r.to < s->count && s->calls[r.to].begin_ns < s->step_to_ns;)
        r.to++;
    r.to += r.to < s->count;
    for (size_t i = r.from; i < r.to && r.device < 0; i++)
        if (hec_call_launched(&s->calls[i])) {
            r.process = s->calls[i].process;
            r.device = s->streams[s->calls[i].stream].device;
        }
    return r;
}

static int64_t end_of(const struct hec_schedule *s, const struct range *r, const struct hec_replay_times *t) {
    int64_t last_ns = t->begin_ns[r->from] + 1;
    for (size_t i = r->from; i < r->to; i++)
        if (of_range(s, r, i)) {
            last_ns = t->end_ns[i] > last_ns ? t->end_ns[i] : last_ns;
            last_ns = hec_call_launched(&s->calls[i]) && t->finish_ns[i] > last_ns ? t->finish_ns[i] : last_ns;
        }
    return last_ns;
}

int hec_lanes_of(const struct hec_schedule *s, const struct hec_replay_edit *edits, size_t edit_count,
                 struct hec_lanes *recorded, struct hec_lanes *replayed) {
    struct range r = step_of(s);
    struct hec_replay unused;
    int64_t *times = malloc((8 * s->count + 1) * sizeof *times);
    *recorded = *replayed = (struct hec_lanes){.device = -1};
    if (!times)
        return HEC_ERR_NOMEM;
    const struct hec_replay_times before = {times, times + s->count, times + 2 * s->count, times + 3 * s->count};
    const struct hec_replay_times after = {times + 4 * s->count, times + 5 * s->count, times + 6 * s->count,
                                           times + 7 * s->count};
    int err = r.device < 0 ? 0 : hec_replay_run(s, NULL, 0, false, &before, &unused);
    if (!err && r.device >= 0)
        err = hec_replay_run(s, edits, edit_count, false, &after, &unused);
    if (!err && r.device >= 0) {
        int64_t one_ns = end_of(s, &r, &before) - before.begin_ns[r.from];
        int64_t other_ns = end_of(s, &r, &after) - after.begin_ns[r.from];
        int64_t column_ns = (one_ns > other_ns ? one_ns : other_ns) / HEC_LANE_COLUMNS + 1;
        draw(s, &r, &before, column_ns, recorded);
        draw(s, &r, &after, column_ns, replayed);
    }
    free(times);
    return err;
}
