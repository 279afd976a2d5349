/* From calls, and what they launched, to a schedule: what follows what, and how long it takes as a rule. */
#include "base/list.h"
#include "diagnose/replay/parts.h"
#include "diagnose/states/state.h"

#include <math.h>
#include <stdlib.h>

/* ---- delays of calls by their shape ---- */

#define LEAST 16u /* calls of a shape */

/* 0 or HEC_ERR_NOMEM */
static int delays_begin(struct hec_delays *sample) {
    *sample = (struct hec_delays){.list = malloc(HEC_CALL_SHAPES * HEC_DELAYS_KEPT * sizeof *sample->list)};
    return sample->list ? HEC_OK : HEC_ERR_NOMEM;
}

static void delays_free(struct hec_delays *sample) {
    free(sample->list);
    *sample = (struct hec_delays){0};
}

int64_t hec_delays_mean(struct hec_delays *sample, int shape, size_t cut, int64_t otherwise) {
    size_t count = sample->count[shape];
    int64_t *list = sample->list + shape * HEC_DELAYS_KEPT;
    sample->count[shape] = 0;
    if (count < LEAST)
        return otherwise;
    qsort(list, count, sizeof *list, hec_by_int64);
    double sum = 0, n = 0;
    for (size_t i = count / cut; i < count - count / cut; i++, n++)
        sum += (double)list[i];
    return llround(sum / n);
}

#define SWAPPED_MAX 64 /* operations of a stream that ran in another order than that of their calls */
#define RUNNING_MAX 64 /* calls of one process at once; of more the first to end is taken to have ended */
#define IDLE_NS 3000   /* a device that has ended what it did so soon after a call began would have waited for it */
#define PROCESSES (UINT8_MAX + 1)

/* So many calls at a time go through steps that follow each other: they stay in the processor's cache. */
#define PART 2048
#define IN_PARTS(s, from, to)                                                                                          \
    for (size_t from = 0, to = (s)->count < PART ? (s)->count : PART; from < (s)->count;                               \
         from = to, to = (s)->count - to < PART ? (s)->count : to + PART)

/* ---- streams ---- */

/* The last end of each process's operations. */
static void nothing_yet(int64_t *busy_until_ns) {
    for (int p = 0; p < PROCESSES; p++)
        busy_until_ns[p] = INT64_MIN;
}

static void until(int64_t *busy_until_ns, const struct hec_schedule_call *c) {
    if (c->finish_ns > busy_until_ns[c->process])
        busy_until_ns[c->process] = c->finish_ns;
}

/* Operations of each stream in order of start; those of which no call is known get one then. What a launch takes, and the gap to the
 * operation before, are seen where nothing of the process's other streams can have been what it waited for. */
static int connect_streams(struct hec_schedule *s, struct hec_delays *sample) {
    int64_t busy_until_ns[PROCESSES];
    uint32_t *by = NULL;
    uint32_t *last = malloc((s->stream_count + 1) * sizeof *last);
    size_t n = 0;
    int err = last ? hec_order_calls(s, hec_order_key_start, &by, &n) : HEC_ERR_NOMEM;
    nothing_yet(busy_until_ns);
    for (size_t k = 0; k < s->stream_count && !err; k++)
        last[k] = HEC_SCHEDULE_NONE;
    for (size_t k = 0; k < n && !err; k++) {
        uint32_t at = by[k];
        struct hec_schedule_call *c = &s->calls[at];
        c->behind = last[c->stream];
        last[c->stream] = at;
        /* a replay goes by the calls, and not all of those are known */
        for (int back = 0; c->behind != HEC_SCHEDULE_NONE && c->behind > at; back++)
            c->behind = back < SWAPPED_MAX ? s->calls[c->behind].behind : HEC_SCHEDULE_NONE;
        if (!(c->flags & HEC_CALL_GUESSED) && c->behind != HEC_SCHEDULE_NONE &&
            busy_until_ns[c->process] <= c->begin_ns + IDLE_NS && s->calls[c->behind].finish_ns + 1000 < c->start_ns)
            hec_delays_add(sample, c, c->start_ns - c->begin_ns);
        until(busy_until_ns, c);
    }
    HEC_DELAYS_USUAL(s, sample, launch_ns, 10, 8000);
    nothing_yet(busy_until_ns);
    for (size_t k = 0; k < n && !err; k++) {
        const struct hec_schedule_call *c = &s->calls[by[k]];
        int64_t before_ns = c->behind == HEC_SCHEDULE_NONE ? INT64_MIN : s->calls[c->behind].finish_ns;
        bool by_another = busy_until_ns[c->process] > before_ns && busy_until_ns[c->process] <= c->start_ns;
        if (c->begin_ns + s->usual[hec_call_shape(c)].launch_ns < before_ns && !by_another)
            hec_delays_add(sample, c, c->start_ns - before_ns);
        until(busy_until_ns, c);
    }
    HEC_DELAYS_USUAL(s, sample, gap_ns, 10, 1000);
    free(by);
    free(last);
    return err;
}

/* No later than the call of what came next on the stream. */
static int place_guessed(struct hec_schedule *s) {
    uint32_t *by = NULL;
    size_t n = 0;
    int64_t *next_ns = malloc((s->stream_count + 1) * sizeof *next_ns);
    int err = next_ns ? hec_order_calls(s, hec_order_key_start, &by, &n) : HEC_ERR_NOMEM;
    for (size_t k = 0; k < s->stream_count && !err; k++)
        next_ns[k] = INT64_MAX;
    for (size_t k = n; k-- > 0 && !err;) {
        struct hec_schedule_call *c = &s->calls[by[k]];
        if (c->flags & HEC_CALL_GUESSED) {
            int64_t begin_ns = c->start_ns - s->usual[hec_call_shape(c)].launch_ns;
            c->begin_ns = c->end_ns = begin_ns < next_ns[c->stream] ? begin_ns : next_ns[c->stream];
            s->guessed++;
        }
        next_ns[c->stream] = c->begin_ns;
    }
    free(by);
    free(next_ns);
    return err;
}

/* Nothing is launched while a launch waits for room in the queue: what seems to be was so before. */
static bool before_waits(struct hec_schedule *s) {
    const struct hec_schedule_call *waits[PROCESSES] = {NULL};
    bool moved = false;
    if (s->guessed == 0)
        return false;
    for (size_t i = 0; i < s->count; i++) {
        struct hec_schedule_call *c = &s->calls[i];
        const struct hec_schedule_call *w = waits[c->process];
        if (c->flags & HEC_CALL_GUESSED && w && c->begin_ns < w->end_ns) {
            c->begin_ns = c->end_ns = w->begin_ns - 1;
            moved = true;
        } else if (c->kind == HEC_CALL_KERNEL && c->end_ns - c->begin_ns >= HEC_LAUNCH_BLOCKED_NS) {
            waits[c->process] = c;
        }
    }
    return moved;
}

/* The calls of operations that nobody recorded are as long before them as is usual. */
static int guess(struct hec_schedule *s, struct hec_delays *sample) {
    int err = connect_streams(s, sample);
    if (!err)
        err = place_guessed(s);
    if (!err)
        err = hec_order_by_begin(s);
    return !err && before_waits(s) ? hec_order_by_begin(s) : err;
}

/* ---- the host ---- */

/* The calls of one process that have not returned. */
struct running {
    uint32_t call[RUNNING_MAX];
    int count;
    uint32_t last; /* to return */
};

static void return_one(const struct hec_schedule *s, struct running *r, int k) {
    uint32_t at = r->call[k];
    if (r->last == HEC_SCHEDULE_NONE || s->calls[at].end_ns >= s->calls[r->last].end_ns)
        r->last = at;
    r->call[k] = r->call[--r->count];
}

static void follow(struct hec_schedule *s, size_t from, size_t to, struct running *running) {
    for (size_t i = from; i < to; i++) {
        struct hec_schedule_call *c = &s->calls[i];
        struct running *r = &running[c->process];
        int first = 0;
        if (c->flags & HEC_CALL_GRAPHED && i > 0 && s->calls[i - 1].process == c->process &&
            s->calls[i - 1].begin_ns == c->begin_ns && hec_call_launched(&s->calls[i - 1])) {
            c->after = (uint32_t)i - 1; /* another node of one launch */
            continue;
        }
        for (int k = r->count; k-- > 0;)
            if (s->calls[r->call[k]].end_ns <= c->begin_ns)
                return_one(s, r, k);
        for (int k = 1; k < r->count; k++)
            first = s->calls[r->call[k]].end_ns < s->calls[r->call[first]].end_ns ? k : first;
        if (r->count == RUNNING_MAX)
            return_one(s, r, first);
        c->after = r->last;
        r->call[r->count++] = (uint32_t)i;
    }
}

static int connect_calls(struct hec_schedule *s, struct hec_delays *sample) {
    struct running *running = malloc(((size_t)s->process_count + 1) * sizeof *running);
    if (!running)
        return HEC_ERR_NOMEM;
    for (int p = 0; p < s->process_count; p++)
        running[p] = (struct running){.last = HEC_SCHEDULE_NONE};
    IN_PARTS(s, from, to) {
        follow(s, from, to, running);
        for (size_t i = from; i < to; i++)
            if (hec_call_launches(&s->calls[i]) && s->calls[i].end_ns - s->calls[i].begin_ns < HEC_LAUNCH_BLOCKED_NS)
                hec_delays_add(sample, &s->calls[i], s->calls[i].end_ns - s->calls[i].begin_ns);
    }
    HEC_DELAYS_USUAL(s, sample, call_ns, 10, 5000);
    free(running);
    return HEC_OK;
}

static int64_t overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
    int64_t from = a0 > b0 ? a0 : b0, to = a1 < b1 ? a1 : b1;
    return to > from ? to - from : 0;
}

static uint32_t capped(int64_t ns) {
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

/* Phases of one process and kind do not overlap each other as a rule; where they do, the gap is the bound. */
static void label(struct hec_schedule *s, size_t from, size_t to, const struct hec_schedule_phase *phases, size_t count,
                  size_t *passed) {
    size_t first = *passed;
    for (size_t i = from; i < to && first < count; i++) {
        struct hec_schedule_call *c = &s->calls[i];
        int64_t from_ns = c->after == HEC_SCHEDULE_NONE ? c->begin_ns : s->calls[c->after].end_ns, in[2] = {0, 0};
        while (first < count && phases[first].end_ns < from_ns)
            first++;
        for (size_t k = first; k < count && k < first + 16 && phases[k].start_ns < c->begin_ns; k++)
            if (phases[k].process == c->process) {
                in[phases[k].data] += overlap(from_ns, c->begin_ns, phases[k].start_ns, phases[k].end_ns);
                if (!phases[k].data && c->end_ns <= phases[k].end_ns)
                    c->flags |= HEC_CALL_IN_CHECKPOINT;
            }
        int64_t gap_ns = c->begin_ns - from_ns, data_ns = in[1] < gap_ns ? in[1] : gap_ns;
        c->data_ns = capped(data_ns);
        c->checkpoint_ns = capped(in[0] < gap_ns - data_ns ? in[0] : gap_ns - data_ns);
    }
    *passed = first;
}

/* The program's own time from one launch to the next. */
static void note_code(const struct hec_schedule *s, size_t from, size_t to, struct hec_delays *sample) {
    for (size_t i = from; i < to; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        if (!hec_call_launched(c) || c->after == HEC_SCHEDULE_NONE || c->flags & HEC_CALL_GUESSED)
            continue;
        const struct hec_schedule_call *before = &s->calls[c->after];
        int64_t code_ns = hec_call_code_ns(s, c);
        if (hec_call_launched(before) && !(before->flags & (HEC_CALL_WAITED | HEC_CALL_GUESSED)) &&
            before->begin_ns != c->begin_ns && code_ns < HEC_STATE_BRIEF_NS)
            hec_delays_add(sample, c, code_ns);
    }
}

/* ---- all ---- */

/* Of one process. */
struct ahead {
    int64_t lag_ns, start_ns;   /* when its first operation began; the first start of any */
    int64_t call_ns, finish_ns; /* the last end */
};

static int64_t lag_at_end(const struct ahead *a) {
    int64_t end_ns = a->finish_ns - a->call_ns;
    return end_ns < a->lag_ns ? end_ns : a->lag_ns;
}

static void note_ahead(const struct hec_schedule *s, size_t from, size_t to, struct ahead *of) {
    for (size_t i = from; i < to; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        struct ahead *a = &of[c->process];
        a->call_ns = c->end_ns > a->call_ns ? c->end_ns : a->call_ns;
        if (!hec_call_launched(c))
            continue;
        a->finish_ns = c->finish_ns > a->finish_ns ? c->finish_ns : a->finish_ns;
        a->start_ns = c->start_ns < a->start_ns ? c->start_ns : a->start_ns;
        if (a->lag_ns == INT64_MAX) {
            int64_t due_ns = c->begin_ns + s->usual[hec_call_shape(c)].launch_ns;
            a->lag_ns = c->start_ns - (due_ns > c->end_ns ? due_ns : c->end_ns); /* a call that takes long is no lag */
        }
    }
}

static void find_lag(struct hec_schedule *s, const struct ahead *of) {
    int64_t first_ns = INT64_MAX;
    s->lag_ns = INT64_MAX;
    for (int p = 0; p < PROCESSES; p++) {
        if (of[p].lag_ns < INT64_MAX && lag_at_end(&of[p]) < s->lag_ns)
            s->lag_ns = lag_at_end(&of[p]);
        first_ns = of[p].start_ns < first_ns ? of[p].start_ns : first_ns;
    }
    s->lag_ns = s->lag_ns < 0 || s->lag_ns == INT64_MAX ? 0 : s->lag_ns;
    s->behind_until_ns = s->lag_ns > 0 ? first_ns : INT64_MIN;
}

static size_t back_to(uint32_t call, size_t at) {
    return call == HEC_SCHEDULE_NONE ? 0 : at - call;
}

static void find_reach(struct hec_schedule *s, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        size_t after = back_to(c->after, i), behind = back_to(c->behind, i), awaits = back_to(c->awaits, i);
        s->reach = after > s->reach ? after : s->reach;
        s->reach = behind > s->reach ? behind : s->reach;
        s->reach = awaits > s->reach ? awaits : s->reach;
    }
}

/* Events, and what the time between calls was. */
static int connect_rest(struct hec_schedule *s, struct hec_waits *waits, const struct hec_schedule_phase *phases,
                        size_t phase_count, struct hec_delays *sample) {
    struct ahead of[PROCESSES];
    size_t passed = 0;
    int err = HEC_OK;
    for (int p = 0; p < PROCESSES; p++)
        of[p] = (struct ahead){INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN};
    IN_PARTS(s, from, to) {
        err = err ? err : hec_waits_mark(s, waits, from, to);
        label(s, from, to, phases, phase_count, &passed);
        note_code(s, from, to, sample);
        find_reach(s, from, to);
        note_ahead(s, from, to, of);
    }
    find_lag(s, of);
    for (size_t k = 0; k < s->event_count; k++) {
        size_t back = back_to(s->events[k].awaits, s->events[k].at);
        s->reach = back > s->reach ? back : s->reach;
    }
    HEC_DELAYS_USUAL(s, sample, code_ns, 10, INT64_MAX);
    return err;
}

/* A kind of links: each writes fields of its own. */
struct links {
    struct hec_schedule *s;
    struct hec_delays sample;
    struct hec_waits waits;
    int err;
};

static void link_streams(void *to) {
    struct links *l = to;
    l->err = connect_streams(l->s, &l->sample);
}

static void link_waits(void *to) {
    struct links *l = to;
    l->err = hec_waits_find(l->s, &l->waits, &l->sample);
}

static void link_calls(void *to) {
    struct links *l = to;
    l->err = connect_calls(l->s, &l->sample);
}

int hec_schedule_connect(struct hec_schedule *s, bool whole, struct hec_schedule_phase *phases, size_t phase_count,
                         hec_together together) {
    enum { STREAMS, WAITS, CALLS, KINDS };
    void (*const link[KINDS])(void *) = {link_streams, link_waits, link_calls};
    struct links links[KINDS] = {{0}};
    struct hec_task tasks[KINDS];
    int err = HEC_OK;
    for (int i = 0; i < KINDS; i++) {
        links[i].s = s;
        tasks[i] = (struct hec_task){link[i], &links[i]};
        err = err ? err : delays_begin(&links[i].sample);
    }
    if (!err)
        err = hec_order_by_begin(s);
    if (!err)
        err = hec_launches_find(s, whole);
    if (!err && !whole)
        err = guess(s, &links[STREAMS].sample);
    if (!err)
        hec_tasks_run(together, tasks, KINDS);
    for (int i = 0; i < KINDS; i++)
        err = err ? err : links[i].err;
    if (!err)
        err = connect_rest(s, &links[WAITS].waits, phases, phase_count, &links[STREAMS].sample);
    if (!err)
        err = hec_schedule_collectives(s);
    for (int i = 0; i < KINDS; i++)
        delays_free(&links[i].sample);
    free(links[WAITS].waits.ended);
    return err;
}
