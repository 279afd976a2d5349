#include "diagnose/replay/replay.h"

#include "diagnose/replay/parts.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUEUED_NS 20000    /* an operation that started so soon after the one before it had been waiting for it */
#define NODE_GAP_NS 1000   /* between nodes of a graph at most: H100, CUDA 13 */
#define LEAST_CALL_NS 2000 /* of a wait that finds nothing to wait for */

struct replay {
    const struct hec_schedule *s;
    int64_t *end_ns, *finish_ns; /* of each call, and of its operation */
};

static int64_t scaled(int64_t ns, double factor) {
    return factor == 1 ? ns : llround((double)ns * factor);
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t begin_of(const struct replay *r, const struct hec_schedule_call *c,
                        const struct hec_replay_change *change) {
    if (c->after == HEC_SCHEDULE_NONE)
        return c->begin_ns;
    int64_t gap_ns = c->begin_ns - r->s->calls[c->after].end_ns;
    int64_t code_ns = gap_ns - c->data_ns - c->checkpoint_ns;
    return r->end_ns[c->after] + scaled(code_ns, change->code) + scaled(c->data_ns, change->data) +
           scaled(c->checkpoint_ns, change->checkpoint);
}

/* Of the operation of a call that begins at begin_ns. */
static int64_t start_of(const struct replay *r, const struct hec_schedule_call *c, int64_t begin_ns,
                        const struct hec_replay_change *change) {
    int64_t delay_ns = c->start_ns - c->begin_ns, usual_ns = r->s->launch_ns < delay_ns ? r->s->launch_ns : delay_ns;
    if (change->beside)
        return begin_ns + usual_ns;
    if (c->behind == HEC_SCHEDULE_NONE) /* the first: it may have come behind what was launched before the stretch */
        return begin_ns + delay_ns;
    int64_t recorded_ns = r->s->calls[c->behind].finish_ns, before_ns = r->finish_ns[c->behind];
    int64_t gap_ns = r->s->gap_ns;
    if (change->graphed)
        return later(begin_ns + usual_ns, before_ns + (gap_ns < NODE_GAP_NS ? gap_ns : NODE_GAP_NS));
    if (recorded_ns <= c->begin_ns) /* the device waited for this call */
        return later(begin_ns + delay_ns, before_ns + gap_ns);
    if (c->start_ns - recorded_ns <= QUEUED_NS) /* the call was ahead */
        return later(before_ns + (c->start_ns - recorded_ns), begin_ns + usual_ns);
    return later(begin_ns + delay_ns, before_ns + gap_ns); /* it waited for something that is not in the schedule */
}

static int64_t return_of(const struct replay *r, const struct hec_schedule_call *c, int64_t begin_ns,
                         const struct hec_replay_change *change) {
    int64_t own_ns = c->end_ns - c->begin_ns;
    if (c->flags & HEC_CALL_WAITED) {
        int64_t least_ns = own_ns < LEAST_CALL_NS ? own_ns : c->kind == HEC_CALL_WAIT ? LEAST_CALL_NS : r->s->call_ns;
        int64_t wake_ns = c->end_ns - r->s->calls[c->awaits].finish_ns;
        least_ns = begin_ns + scaled(least_ns < own_ns ? least_ns : own_ns, change->call);
        return change->waits ? later(least_ns, r->finish_ns[c->awaits] + wake_ns) : least_ns;
    }
    int64_t end_ns = begin_ns + scaled(own_ns, change->call);
    if (!change->waits || c->kind != HEC_CALL_WAIT || c->awaits == HEC_SCHEDULE_NONE)
        return end_ns;
    int64_t wake_ns = r->s->wake_ns < own_ns ? r->s->wake_ns : own_ns;
    return later(end_ns, r->finish_ns[c->awaits] + wake_ns);
}

/* The union of what a device does, as its operations come: nearly in order. */
static void busy(double *seconds, int64_t *until_ns, int64_t start_ns, int64_t finish_ns) {
    start_ns = later(start_ns, *until_ns);
    if (finish_ns <= start_ns)
        return;
    *seconds += (double)(finish_ns - start_ns) / HEC_NS_PER_S;
    *until_ns = finish_ns;
}

static void remember(const struct hec_replay_times *times, size_t i, int64_t begin_ns, int64_t end_ns, int64_t start_ns,
                     int64_t finish_ns) {
    if (!times)
        return;
    times->begin_ns[i] = begin_ns;
    times->end_ns[i] = end_ns;
    times->start_ns[i] = start_ns;
    times->finish_ns[i] = finish_ns;
}

static void replay(struct replay *r, const struct hec_replay_edit *edits, size_t edit_count,
                   const struct hec_replay_times *times, struct hec_replay *out) {
    const struct hec_schedule *s = r->s;
    int64_t until[HEC_DEVICE_MAX], recorded_until[HEC_DEVICE_MAX], first = s->count ? s->calls[0].begin_ns : 0;
    int64_t last = first, recorded_last = first;
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        until[d] = recorded_until[d] = INT64_MIN;
    for (size_t i = 0; i < s->count; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        struct hec_replay_change change = {1, 1, 1, 1, 1, .waits = true};
        for (size_t k = 0; k < edit_count; k++)
            edits[k].apply(s, c, edits[k].value, &change);
        bool node =
            c->flags & HEC_CALL_GRAPHED && c->after != HEC_SCHEDULE_NONE && s->calls[c->after].begin_ns == c->begin_ns;
        int64_t begin_ns =
            node ? r->end_ns[c->after] - (s->calls[c->after].end_ns - c->begin_ns) : begin_of(r, c, &change);
        r->finish_ns[i] = HEC_TIME_UNKNOWN;
        int64_t start_ns = HEC_TIME_UNKNOWN;
        if (hec_call_launched(c)) {
            int device = s->streams[c->stream].device;
            start_ns = start_of(r, c, begin_ns, &change);
            r->finish_ns[i] = start_ns + scaled(c->finish_ns - c->start_ns, change.operation);
            if (device >= 0 && device < HEC_DEVICE_MAX) {
                busy(&out->busy_s[device], &until[device], start_ns, r->finish_ns[i]);
                busy(&out->recorded_busy_s[device], &recorded_until[device], c->start_ns, c->finish_ns);
            }
            last = later(last, r->finish_ns[i]);
            recorded_last = later(recorded_last, c->finish_ns);
        }
        r->end_ns[i] = node ? r->end_ns[c->after] : return_of(r, c, begin_ns, &change);
        if (c->flags & HEC_CALL_WAITED)
            out->waited_s += (double)(r->end_ns[i] - begin_ns) / HEC_NS_PER_S;
        last = later(last, r->end_ns[i]);
        recorded_last = later(recorded_last, c->end_ns);
        if (change.beside && hec_call_launched(c)) /* who comes behind it on the stream comes behind the one before */
            r->finish_ns[i] = c->behind == HEC_SCHEDULE_NONE ? begin_ns : r->finish_ns[c->behind];
        remember(times, i, begin_ns, r->end_ns[i], start_ns, r->finish_ns[i]);
    }
    out->recorded_s = (double)(recorded_last - first) / HEC_NS_PER_S;
    out->seconds = (double)(last - first) / HEC_NS_PER_S;
}

int hec_replay_run(const struct hec_schedule *schedule, const struct hec_replay_edit *edits, size_t edit_count,
                   const struct hec_replay_times *times, struct hec_replay *out) {
    struct replay r = {.s = schedule};
    *out = (struct hec_replay){0};
    r.end_ns = malloc((schedule->count + 1) * sizeof *r.end_ns);
    r.finish_ns = malloc((schedule->count + 1) * sizeof *r.finish_ns);
    int err = r.end_ns && r.finish_ns ? HEC_OK : HEC_ERR_NOMEM;
    if (!err)
        replay(&r, edits, edit_count, times, out);
    free(r.end_ns);
    free(r.finish_ns);
    return err;
}
