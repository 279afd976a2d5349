#include "diagnose/replay/lanes.h"

#include "base/clock.h"
#include "diagnose/replay/parts.h"

#include <stdlib.h>
#include <string.h>

#define CALLS_BEFORE 16384 /* of the step, that the device may still be at */
#define CALLS_AFTER 65536  /* that the host may be ahead by */

static const char *const names[HEC_LANE_COUNT] = {
    [HEC_LANE_NOTHING] = "nothing",       [HEC_LANE_CODE] = "code", [HEC_LANE_DATA] = "data",
    [HEC_LANE_CHECKPOINT] = "checkpoint", [HEC_LANE_CALL] = "call", [HEC_LANE_WAIT] = "wait",
    [HEC_LANE_KERNEL] = "kernel",         [HEC_LANE_COPY] = "copy", [HEC_LANE_COMM] = "comm",
};

const char *hec_lane_name(enum hec_lane lane) {
    return names[lane];
}

struct canvas {
    int columns;
    int64_t from_ns, to_ns, column_ns;
    int64_t host[HEC_LANE_COLUMNS_MOST][HEC_LANE_COUNT],
        on_device[HEC_LANE_COLUMNS_MOST][HEC_LANE_COUNT]; /* ns of each */
};

static void paint(const struct canvas *c, int64_t lane[][HEC_LANE_COUNT], enum hec_lane what, int64_t start_ns,
                  int64_t end_ns) {
    start_ns -= c->from_ns;
    end_ns = (end_ns < c->to_ns ? end_ns : c->to_ns) - c->from_ns;
    for (int64_t column = start_ns > 0 ? start_ns / c->column_ns : 0; column < c->columns; column++) {
        int64_t from = column * c->column_ns, to = from + c->column_ns;
        if (from >= end_ns)
            return;
        lane[column][what] += (end_ns < to ? end_ns : to) - (start_ns > from ? start_ns : from);
    }
}

static void settle(int64_t lane[][HEC_LANE_COUNT], int columns, uint8_t out[HEC_LANE_COLUMNS_MOST]) {
    for (int column = 0; column < columns; column++) {
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

/* ---- the step ---- */

static bool of_step(const struct hec_schedule *s, const struct hec_lanes_step *step, size_t i) {
    return s->calls[i].process == step->process &&
           (!hec_call_launched(&s->calls[i]) || s->streams[s->calls[i].stream].device == step->device);
}

static struct hec_lanes_step step_of(const struct hec_schedule *s) {
    struct hec_lanes_step step = {.device = -1};
    while (step.from < s->count && s->calls[step.from].begin_ns < s->step_from_ns)
        step.from++;
    for (step.to = step.from; step.to < s->count && s->calls[step.to].begin_ns < s->step_to_ns;)
        step.to++;
    for (size_t i = step.from; i < step.to && step.device < 0 && step.to - step.from <= HEC_LANE_CALLS_MOST; i++)
        if (hec_call_launched(&s->calls[i])) {
            step.process = s->calls[i].process;
            step.device = s->streams[s->calls[i].stream].device;
        }
    return step;
}

int hec_lanes_begin(const struct hec_schedule *s, struct hec_lanes_step *out) {
    *out = step_of(s);
    if (out->device < 0)
        return HEC_OK;
    size_t first = out->from > CALLS_BEFORE ? out->from - CALLS_BEFORE : 0;
    size_t end = s->count - out->to > CALLS_AFTER ? out->to + CALLS_AFTER : s->count, count = end - first;
    int64_t *t = out->room = malloc(8 * count * sizeof *t);
    out->before = (struct hec_replay_times){first, count, t, t + count, t + 2 * count, t + 3 * count};
    t += t ? 4 * count : 0;
    out->after = (struct hec_replay_times){first, count, t, t + count, t + 2 * count, t + 3 * count};
    return out->room ? HEC_OK : HEC_ERR_NOMEM;
}

void hec_lanes_end(struct hec_lanes_step *step) {
    free(step->room);
    *step = (struct hec_lanes_step){.device = -1};
}

/* Where the host is ahead of the device by half a step, the step begins with its first operation on the device, and the host is at a
 * later one by then. */
static int64_t begin_of(const struct hec_schedule *s, const struct hec_lanes_step *step,
                        const struct hec_replay_times *t, int64_t step_ns) {
    const struct hec_schedule_call *first = &s->calls[step->from];
    int64_t from_ns = t->begin_ns[step->from - t->first] - (first->begin_ns - s->step_from_ns);
    if (first->after != HEC_SCHEDULE_NONE && first->after >= t->first && from_ns < t->end_ns[first->after - t->first])
        from_ns = t->end_ns[first->after - t->first];
    for (size_t i = step->from; i < step->to; i++)
        if (hec_call_launched(&s->calls[i]) && of_step(s, step, i)) {
            size_t k = i - t->first;
            return t->start_ns[k] - t->end_ns[k] > step_ns / 2 ? t->start_ns[k] : from_ns;
        }
    return from_ns;
}

static void draw(const struct hec_schedule *s, const struct hec_lanes_step *step, const struct hec_replay_times *t,
                 int columns, int64_t column_ns, int64_t step_ns, struct hec_step_lanes *out) {
    struct canvas c = {.columns = columns, .column_ns = column_ns};
    c.from_ns = begin_of(s, step, t, step_ns);
    c.to_ns = c.from_ns + step_ns;
    for (size_t k = 0; k < t->count; k++) {
        const struct hec_schedule_call *call = &s->calls[t->first + k];
        if (!of_step(s, step, t->first + k))
            continue;
        if (call->after != HEC_SCHEDULE_NONE && call->after >= t->first)
            paint_before(&c, s, call, t->end_ns[call->after - t->first], t->begin_ns[k]);
        paint(&c, c.host, call->kind == HEC_CALL_WAIT || call->flags & HEC_CALL_WAITED ? HEC_LANE_WAIT : HEC_LANE_CALL,
              t->begin_ns[k], t->end_ns[k]);
        if (hec_call_launched(call))
            paint(&c, c.on_device, lane_of(call), t->start_ns[k], t->finish_ns[k]);
    }
    out->device = step->device;
    out->columns = columns;
    out->column_s = (double)column_ns / HEC_NS_PER_S;
    out->seconds = (double)step_ns / HEC_NS_PER_S;
    settle(c.host, columns, out->host);
    settle(c.on_device, columns, out->on_device);
    for (int column = 0; column < columns; column++) {
        int64_t ns = 0;
        for (int what = 1; what < HEC_LANE_COUNT; what++)
            ns += c.on_device[column][what];
        out->device_percent[column] = (uint8_t)((100 * (ns < column_ns ? ns : column_ns) + column_ns - 1) / column_ns);
    }
}

void hec_lanes_draw(const struct hec_schedule *s, const struct hec_lanes_step *step, const struct hec_replay *unchanged,
                    const struct hec_replay *edited, int columns, struct hec_step_lanes *recorded,
                    struct hec_step_lanes *replayed) {
    *recorded = *replayed = (struct hec_step_lanes){.device = -1};
    if (step->device < 0 || !(unchanged->seconds > 0))
        return;
    int64_t one_ns = s->step_to_ns - s->step_from_ns;
    double other = (double)one_ns * edited->seconds / unchanged->seconds;
    int64_t other_ns = other < (double)HEC_TIMELINE_TIME_MAX ? (int64_t)other : HEC_TIMELINE_TIME_MAX;
    int64_t column_ns = (one_ns > other_ns ? one_ns : other_ns) / columns + 1;
    draw(s, step, &step->before, columns, column_ns, one_ns, recorded);
    draw(s, step, &step->after, columns, column_ns, other_ns, replayed);
}
