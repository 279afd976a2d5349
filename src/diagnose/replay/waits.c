/* What returns of calls waited for, and which operations waited for one of another stream. */
#include "base/list.h"
#include "diagnose/replay/parts.h"

#include <math.h>
#include <stdlib.h>

#define FINISHED_BACK 64    /* operations before the last that ended, for one that was launched before the wait */
#define EVENT_LATE_NS 3000  /* a start later than that has a reason */
#define EVENT_NEAR_NS 10000 /* and what ended so short before may be it */
#define EVENT_OVERLAP_NS                                                                                               \
    2500 /* or so short after, as it is stamped: NCCL's kernels on two H100, behind those that they wait for */
#define WAKE_LEAST_NS 1000.0
#define RARE 20 /* times the usual delay of a return, or of that much */

/* ---- returns ---- */

/* What may return later than by itself. */
static bool may_wait(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_WAIT || (hec_call_launched(c) && c->finish_ns <= c->end_ns) ||
           (c->kind != HEC_CALL_OTHER && c->end_ns - c->begin_ns >= HEC_LAUNCH_BLOCKED_NS);
}

static bool by_return(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->end_ns;
    return may_wait(call);
}

/* A copy from pageable memory goes by way of a buffer: its call returns when the last part is in there, shortly before the copy ends. */
static bool returns_with_own(const struct hec_schedule_call *c) {
    return hec_call_shape(c) == HEC_SHAPE_PAGEABLE && c->end_ns - c->begin_ns >= HEC_LAUNCH_BLOCKED_NS &&
           c->start_ns < c->end_ns && c->end_ns < c->finish_ns;
}

static int64_t wake_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->end_ns - s->calls[c->awaits].finish_ns;
}

/* That ended while the call lasted. */
static bool waited(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->awaits != HEC_SCHEDULE_NONE && s->calls[c->awaits].finish_ns > c->begin_ns;
}

int hec_waits_find(struct hec_schedule *s, struct hec_waits *w, struct hec_delays *sample) {
    uint32_t *returned = NULL;
    size_t count = 0, next = 0;
    int err = hec_order_calls(s, hec_order_key_finish, &w->ended, &w->count);
    const uint32_t *ended = w->ended;
    if (!err)
        err = hec_order_calls(s, by_return, &returned, &count);
    for (size_t k = 0; k < count && !err; k++) {
        uint32_t at = returned[k];
        struct hec_schedule_call *c = &s->calls[at];
        while (next < w->count && s->calls[ended[next]].finish_ns <= c->end_ns)
            next++;
        if (returns_with_own(c))
            c->awaits = at;
        for (size_t back = 1; back <= FINISHED_BACK && back <= next && c->awaits != at; back++) {
            uint32_t operation = ended[next - back];
            const struct hec_schedule_call *o = &s->calls[operation];
            if (o->process != c->process || operation > at)
                continue;
            c->awaits = operation;
            break;
        }
        if (waited(s, c))
            hec_delays_add(sample, c, wake_of(s, c));
    }
    HEC_DELAYS_USUAL(s, sample, wake_ns, 50, 5000);
    free(returned);
    return err;
}

/* Rare: the driver asks the system for memory, or the program was not given a core: milliseconds now and then. */
static void mark_waits(struct hec_schedule *s, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        struct hec_schedule_call *c = &s->calls[i];
        if (!waited(s, c))
            continue;
        double usual_ns = fabs((double)s->usual[hec_call_shape(c)].wake_ns);
        bool rare = (double)wake_of(s, c) >= RARE * fmax(usual_ns, WAKE_LEAST_NS);
        c->flags |= HEC_CALL_WAITED | (rare ? HEC_CALL_RARE : 0);
    }
}

/* ---- events ---- */

/* How many operations ended by t_ns: searched from where the last question was answered, in leaps, then by halves. */
static size_t ended_by(const struct hec_schedule *s, struct hec_waits *w, int64_t t_ns) {
    size_t low = w->near, high = w->near, leap = 1;
    for (; low > 0 && s->calls[w->ended[low - 1]].finish_ns > t_ns; leap *= 2) {
        high = low - 1;
        low = low > leap ? low - leap : 0;
    }
    for (; high < w->count && s->calls[w->ended[high]].finish_ns <= t_ns; leap *= 2) {
        low = high + 1;
        high = w->count - high > leap ? high + leap : w->count;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->calls[w->ended[middle]].finish_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return w->near = low;
}

/* An operation that started late, and just when one of another stream of its process had ended, waited for an event. */
static uint32_t find_event(const struct hec_schedule *s, struct hec_waits *w, uint32_t at) {
    const struct hec_schedule_call *c = &s->calls[at];
    int64_t free_ns = c->begin_ns + s->usual[hec_call_shape(c)].launch_ns;
    if (c->behind != HEC_SCHEDULE_NONE && s->calls[c->behind].finish_ns > free_ns)
        free_ns = s->calls[c->behind].finish_ns;
    if (c->start_ns - free_ns < EVENT_LATE_NS)
        return HEC_SCHEDULE_NONE;
    size_t ended = ended_by(s, w, c->start_ns + EVENT_OVERLAP_NS);
    for (size_t back = 1; back <= FINISHED_BACK && back <= ended; back++) {
        uint32_t operation = w->ended[ended - back];
        const struct hec_schedule_call *o = &s->calls[operation];
        if (o->finish_ns < free_ns || c->start_ns - o->finish_ns > EVENT_NEAR_NS)
            break;
        if (o->process == c->process && o->stream != c->stream && operation < at)
            return operation;
    }
    return HEC_SCHEDULE_NONE;
}

static int find_events(struct hec_schedule *s, struct hec_waits *w, size_t from, size_t to) {
    for (size_t k = from; k < to; k++) {
        struct hec_schedule_call *c = &s->calls[k];
        if (!hec_call_launched(c))
            continue;
        uint32_t awaits = s->stream_count > 1 ? find_event(s, w, (uint32_t)k) : HEC_SCHEDULE_NONE;
        if (!(c->flags & HEC_CALL_WAITED)) {
            c->awaits = awaits;
        } else if (awaits != HEC_SCHEDULE_NONE) {
            if (!hec_list_room(s->events, s->event_count, w->room, 1024))
                return HEC_ERR_NOMEM;
            s->events[s->event_count++] = (struct hec_schedule_event){(uint32_t)k, awaits};
            c->flags |= HEC_CALL_EVENT;
        }
    }
    return HEC_OK;
}

int hec_waits_mark(struct hec_schedule *s, struct hec_waits *w, size_t from, size_t to) {
    mark_waits(s, from, to);
    return find_events(s, w, from, to);
}
