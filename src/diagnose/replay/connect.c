/* From calls and operations as they were taken to a schedule: whose call is whose, in which order, and what waits for what. */
#include "base/list.h"
#include "diagnose/replay/parts.h"
#include "diagnose/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_AHEAD 64       /* calls of its kind after the first that is open, for a copy of its size */
#define EMPTY_NS 20000      /* a device that does nothing for so long has nothing in its queue */
#define FINISHED_BACK 64    /* operations before the last that ended, for one that was launched before the wait */
#define SWAPPED_MAX 64      /* operations of a stream that ran in another order than that of their calls */
#define RUNNING_MAX 64      /* calls of one process at once; of more the first to end is taken to have ended */
#define EVENT_LATE_NS 3000  /* a start later than that has a reason */
#define EVENT_NEAR_NS 10000 /* and what ended so short before may be it */
#define EVENT_OVERLAP_NS                                                                                               \
    2500 /* or so short after, as it is stamped: NCCL's kernels on two H100, behind those that they wait for */
#define WAKE_LEAST_NS 1000.0
#define RARE 20      /* times the usual delay of a return, or of that much */
#define IDLE_NS 3000 /* a device that has ended what it did so soon after a call began would have waited for it */
#define USUAL_OF 65536u
#define PROCESSES (UINT8_MAX + 1)
#define USUAL_LEAST 16u /* of fewer calls of a shape the delay of kernels is taken */

/* So many calls at a time go through steps that follow each other: they stay in the processor's cache. */
#define PART 2048
#define IN_PARTS(s, from, to)                                                                                          \
    for (size_t from = 0, to = (s)->count < PART ? (s)->count : PART; from < (s)->count;                               \
         from = to, to = (s)->count - to < PART ? (s)->count : to + PART)

static void drop(struct hec_schedule *s, bool (*gone)(const struct hec_schedule *s, size_t i)) {
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (!gone(s, i)) {
            if (kept < i)
                s->calls[kept] = s->calls[i];
            kept++;
        }
    s->count = kept;
}

/* ---- whose call is whose ---- */

static bool launches(const struct hec_schedule_call *c) {
    return c->kind <= HEC_CALL_MEMSET;
}

/* A launch that was recorded as a call too: the operation says as much and more. */
static bool twice(const struct hec_schedule *s, size_t i) {
    const struct hec_schedule_call *c = &s->calls[i];
    if (hec_call_launched(c) || !launches(c))
        return false;
    for (size_t k = i; k-- > 0 && s->calls[k].begin_ns == c->begin_ns;)
        if (s->calls[k].process == c->process && hec_call_launched(&s->calls[k]))
            return true;
    for (size_t k = i + 1; k < s->count && s->calls[k].begin_ns == c->begin_ns; k++)
        if (s->calls[k].process == c->process && hec_call_launched(&s->calls[k]))
            return true;
    return false;
}

static bool alike(const struct hec_schedule_call *call, const struct hec_schedule_call *operation) {
    return !(call->flags & HEC_CALL_GRAPH) && call->process == operation->process && call->kind == operation->kind &&
           !hec_call_launched(call) &&
           (call->kind != HEC_CALL_COPY || (call->what == operation->what && call->from == operation->from));
}

/* Of one process: the calls before `first` launched nothing that is still to come, and its operations so far end at until_ns. */
struct queue {
    size_t first[HEC_CALL_MEMSET + 1]; /* by kind */
    int64_t until_ns;
};

/* Where a device did nothing for a while its queue was empty: what was called before has run, or was not recorded. */
static void empty_queue(const struct hec_schedule *s, struct queue *q) {
    for (int kind = 0; kind <= HEC_CALL_MEMSET; kind++)
        while (q->first[kind] < s->count && s->calls[q->first[kind]].begin_ns < q->until_ns)
            q->first[kind]++;
}

/* The first call of its kind, and for copies of its size, that launched nothing yet. */
static void find_call(struct hec_schedule *s, struct queue *q, struct hec_schedule_call *operation) {
    size_t *first = &q->first[operation->kind], at = *first;
    int others = 0;
    while (at < s->count && s->calls[at].begin_ns <= operation->start_ns && others < LOOK_AHEAD) {
        struct hec_schedule_call *c = &s->calls[at];
        if (alike(c, operation)) {
            operation->begin_ns = c->begin_ns;
            operation->end_ns = c->end_ns;
            operation->flags &= (uint8_t)~HEC_CALL_GUESSED;
            c->kind = HEC_CALL_KINDS;
            *first += others == 0 ? at + 1 - *first : 0;
            return;
        }
        bool open = c->process == operation->process && c->kind == operation->kind && !hec_call_launched(c);
        others += open;
        *first += others == 0 && at == *first;
        at++;
    }
}

static bool taken(const struct hec_schedule *s, size_t i) {
    return s->calls[i].kind == HEC_CALL_KINDS;
}

static bool ordered(const struct hec_schedule_call *c) {
    return hec_call_launched(c) && !(c->flags & HEC_CALL_GUESSED);
}

/* In place, cycle by cycle: call i gets what from[i] launched. */
static void relaunch(struct hec_schedule *s, uint32_t *from) {
    for (uint32_t i = 0; i < s->count; i++) {
        struct hec_schedule_call first = s->calls[i];
        uint32_t to = i;
        while (from[to] != to) {
            struct hec_schedule_call *call = &s->calls[to];
            struct hec_schedule_call launched = from[to] == i ? first : s->calls[from[to]];
            uint32_t next = from[to];
            launched.begin_ns = call->begin_ns;
            launched.end_ns = call->end_ns;
            *call = launched;
            from[to] = to;
            to = next;
        }
    }
}

/* Whether the operations of each stream ran in the order of their calls. */
static int straight(const struct hec_schedule *s, bool *is) {
    int64_t *last_ns = malloc((s->stream_count + 1) * sizeof *last_ns);
    *is = last_ns != NULL;
    for (size_t k = 0; k < s->stream_count && *is; k++)
        last_ns[k] = INT64_MIN;
    for (size_t i = 0; i < s->count && *is; i++)
        if (ordered(&s->calls[i])) {
            *is = s->calls[i].start_ns >= last_ns[s->calls[i].stream];
            last_ns[s->calls[i].stream] = s->calls[i].start_ns;
        }
    int err = last_ns ? HEC_OK : HEC_ERR_NOMEM;
    free(last_ns);
    return err;
}

/* A stream runs what was launched in the order of the launches, so its nth operation is that of its nth call: the recording may have
 * put some to another call of their kind. */
static int straighten(struct hec_schedule *s) {
    bool is;
    if (straight(s, &is) != HEC_OK || is)
        return is ? HEC_OK : HEC_ERR_NOMEM;
    uint64_t *by = NULL;
    size_t n = 0, *next = calloc(s->stream_count + 2, sizeof *next);
    uint32_t *at = malloc((s->count + 1) * sizeof *at), *from = malloc((s->count + 1) * sizeof *from);
    int err = next && at && from ? hec_order_calls(s, hec_order_key_start, &by, &n) : HEC_ERR_NOMEM;
    if (!err) {
        for (size_t i = 0; i < s->count; i++)
            if (ordered(&s->calls[i]))
                next[s->calls[i].stream + 2]++;
        for (size_t k = 2; k < s->stream_count + 2; k++)
            next[k] += next[k - 1];
        for (size_t i = 0; i < s->count;
             i++) { /* stream by stream, the calls in their order; next[k + 1]: the next of stream k */
            from[i] = (uint32_t)i;
            if (ordered(&s->calls[i]))
                at[next[s->calls[i].stream + 1]++] = (uint32_t)i;
        }
        for (size_t k = 0; k < n; k++) /* next[k] is the first of stream k again */
            if (ordered(&s->calls[hec_order_at(by[k])]))
                from[at[next[s->calls[hec_order_at(by[k])].stream]++]] = hec_order_at(by[k]);
        relaunch(s, from);
    }
    free(by);
    free(next);
    free(at);
    free(from);
    return err;
}

/* ---- what is usual ---- */

enum hec_call_shape hec_call_shape(const struct hec_schedule_call *c) {
    if (c->flags & HEC_CALL_GRAPH)
        return HEC_SHAPE_GRAPH;
    switch (c->kind) {
    case HEC_CALL_KERNEL:
    case HEC_CALL_MEMSET:
        return HEC_SHAPE_KERNEL;
    case HEC_CALL_COPY:
        return c->from == HEC_MEMORY_PAGEABLE ? HEC_SHAPE_PAGEABLE : HEC_SHAPE_COPY;
    case HEC_CALL_WAIT:
        return HEC_SHAPE_WAIT;
    default:
        return HEC_SHAPE_OTHER;
    }
}

/* Of each shape the first so many. */
struct sample {
    int64_t *list; /* USUAL_OF each */
    size_t count[HEC_CALL_SHAPES];
};

static void note(struct sample *sample, const struct hec_schedule_call *call, int64_t value) {
    enum hec_call_shape shape = hec_call_shape(call);
    if (sample->count[shape] < USUAL_OF)
        sample->list[shape * USUAL_OF + sample->count[shape]++] = value;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The mean without one in so many at either end: a median is less, since delays have a tail. Begins the next sample. */
static int64_t usual(struct sample *sample, int shape, size_t cut, int64_t otherwise) {
    size_t count = sample->count[shape];
    int64_t *list = sample->list + shape * USUAL_OF;
    sample->count[shape] = 0;
    if (count < USUAL_LEAST)
        return otherwise;
    qsort(list, count, sizeof *list, ascending);
    double sum = 0, n = 0;
    for (size_t i = count / cut; i < count - count / cut; i++, n++)
        sum += (double)list[i];
    return llround(sum / n);
}

/* The first shape is that of kernels. */
#define USUAL(s, sample, of, cut, otherwise)                                                                           \
    for (int shape_ = 0; shape_ < HEC_CALL_SHAPES; shape_++)                                                           \
    (s)->usual[shape_].of = usual(sample, shape_, cut, shape_ ? (s)->usual[0].of : (otherwise))

/* ---- what follows what ---- */

/* The calls are in order, and the nodes of one launch have its time. */
static void mark_graphs(struct hec_schedule *s) {
    for (size_t i = 0; i < s->count; i++) {
        struct hec_schedule_call *c = &s->calls[i];
        const struct hec_schedule_call *before = i ? &s->calls[i - 1] : NULL;
        bool node = before && before->process == c->process && before->begin_ns == c->begin_ns &&
                    before->flags & HEC_CALL_GRAPHED && hec_call_launched(before);
        if (hec_call_launched(c) && (c->flags & (HEC_CALL_GRAPHED | HEC_CALL_GUESSED)) == HEC_CALL_GRAPHED && !node)
            c->flags |= HEC_CALL_GRAPH;
    }
}

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
static int connect_streams(struct hec_schedule *s, struct sample *sample) {
    int64_t busy_until_ns[PROCESSES];
    uint64_t *by = NULL;
    uint32_t *last = malloc((s->stream_count + 1) * sizeof *last);
    size_t n = 0;
    int err = last ? hec_order_calls(s, hec_order_key_start, &by, &n) : HEC_ERR_NOMEM;
    nothing_yet(busy_until_ns);
    for (size_t k = 0; k < s->stream_count && !err; k++)
        last[k] = HEC_SCHEDULE_NONE;
    for (size_t k = 0; k < n && !err; k++) {
        uint32_t at = hec_order_at(by[k]);
        struct hec_schedule_call *c = &s->calls[at];
        c->behind = last[c->stream];
        last[c->stream] = at;
        /* a replay goes by the calls, and not all of those are known */
        for (int back = 0; c->behind != HEC_SCHEDULE_NONE && c->behind > at; back++)
            c->behind = back < SWAPPED_MAX ? s->calls[c->behind].behind : HEC_SCHEDULE_NONE;
        if (!(c->flags & HEC_CALL_GUESSED) && c->behind != HEC_SCHEDULE_NONE &&
            busy_until_ns[c->process] <= c->begin_ns + IDLE_NS && s->calls[c->behind].finish_ns + 1000 < c->start_ns)
            note(sample, c, c->start_ns - c->begin_ns);
        until(busy_until_ns, c);
    }
    USUAL(s, sample, launch_ns, 10, 8000);
    nothing_yet(busy_until_ns);
    for (size_t k = 0; k < n && !err; k++) {
        const struct hec_schedule_call *c = &s->calls[hec_order_at(by[k])];
        int64_t before_ns = c->behind == HEC_SCHEDULE_NONE ? INT64_MIN : s->calls[c->behind].finish_ns;
        bool by_another = busy_until_ns[c->process] > before_ns && busy_until_ns[c->process] <= c->start_ns;
        if (c->begin_ns + s->usual[hec_call_shape(c)].launch_ns < before_ns && !by_another)
            note(sample, c, c->start_ns - before_ns);
        until(busy_until_ns, c);
    }
    USUAL(s, sample, gap_ns, 10, 1000);
    free(by);
    free(last);
    return err;
}

/* No later than the call of what came next on the stream. */
static int place_guessed(struct hec_schedule *s) {
    uint64_t *by = NULL;
    size_t n = 0;
    int64_t *next_ns = malloc((s->stream_count + 1) * sizeof *next_ns);
    int err = next_ns ? hec_order_calls(s, hec_order_key_start, &by, &n) : HEC_ERR_NOMEM;
    for (size_t k = 0; k < s->stream_count && !err; k++)
        next_ns[k] = INT64_MAX;
    for (size_t k = n; k-- > 0 && !err;) {
        struct hec_schedule_call *c = &s->calls[hec_order_at(by[k])];
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

static int connect_calls(struct hec_schedule *s, struct sample *sample) {
    struct running *running = malloc(((size_t)s->process_count + 1) * sizeof *running);
    if (!running)
        return HEC_ERR_NOMEM;
    for (int p = 0; p < s->process_count; p++)
        running[p] = (struct running){.last = HEC_SCHEDULE_NONE};
    IN_PARTS(s, from, to) {
        follow(s, from, to, running);
        for (size_t i = from; i < to; i++)
            if (launches(&s->calls[i]) && s->calls[i].end_ns - s->calls[i].begin_ns < HEC_CALL_LONG_NS)
                note(sample, &s->calls[i], s->calls[i].end_ns - s->calls[i].begin_ns);
    }
    USUAL(s, sample, call_ns, 10, 5000);
    free(running);
    return HEC_OK;
}

/* What may return later than by itself. */
static bool may_wait(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_WAIT || (hec_call_launched(c) && c->finish_ns <= c->end_ns) ||
           (c->kind != HEC_CALL_OTHER && c->end_ns - c->begin_ns >= HEC_CALL_LONG_NS);
}

static bool by_return(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->end_ns;
    return may_wait(call);
}

static bool by_finish(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->finish_ns;
    return hec_call_launched(call);
}

/* The two orders by ends. */
struct ends {
    const struct hec_schedule *s;
    uint64_t *returned, *finished; /* calls that may have waited; operations */
    size_t return_count, finish_count;
    int err;
};

static void order_ends(void *to) {
    struct ends *e = to;
    e->err = hec_order_calls(e->s, by_finish, &e->finished, &e->finish_count);
    if (!e->err)
        e->err = hec_order_calls(e->s, by_return, &e->returned, &e->return_count);
}

/* An operation that started late, and just when one of another stream of its process had ended, waited for an event. */
static uint32_t find_event(const struct hec_schedule *s, const uint64_t *ended, size_t count, uint32_t at) {
    const struct hec_schedule_call *c = &s->calls[at];
    int64_t free_ns = c->begin_ns + s->usual[hec_call_shape(c)].launch_ns;
    if (c->behind != HEC_SCHEDULE_NONE && s->calls[c->behind].finish_ns > free_ns)
        free_ns = s->calls[c->behind].finish_ns;
    if (c->start_ns - free_ns < EVENT_LATE_NS)
        return HEC_SCHEDULE_NONE;
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->calls[hec_order_at(ended[middle])].finish_ns <= c->start_ns + EVENT_OVERLAP_NS)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t back = 1; back <= FINISHED_BACK && back <= low; back++) {
        uint32_t operation = hec_order_at(ended[low - back]);
        const struct hec_schedule_call *o = &s->calls[operation];
        if (o->finish_ns < free_ns || c->start_ns - o->finish_ns > EVENT_NEAR_NS)
            break;
        if (o->process == c->process && o->stream != c->stream && operation < at)
            return operation;
    }
    return HEC_SCHEDULE_NONE;
}

static int connect_events(struct hec_schedule *s, size_t from, size_t to, const struct ends *ends, size_t *room) {
    for (size_t k = from; k < to; k++) {
        struct hec_schedule_call *c = &s->calls[k];
        if (!hec_call_launched(c))
            continue;
        uint32_t awaits =
            s->stream_count > 1 ? find_event(s, ends->finished, ends->finish_count, (uint32_t)k) : HEC_SCHEDULE_NONE;
        if (!(c->flags & HEC_CALL_WAITED)) {
            c->awaits = awaits;
        } else if (awaits != HEC_SCHEDULE_NONE) {
            if (!hec_list_room(s->events, s->event_count, *room, 1024))
                return HEC_ERR_NOMEM;
            s->events[s->event_count++] = (struct hec_schedule_event){(uint32_t)k, awaits};
            c->flags |= HEC_CALL_EVENT;
        }
    }
    return HEC_OK;
}

/* A copy from pageable memory goes by way of a buffer: its call returns when the last part is in there, shortly before the copy ends. */
static bool returns_with_own(const struct hec_schedule_call *c) {
    return hec_call_shape(c) == HEC_SHAPE_PAGEABLE && c->end_ns - c->begin_ns >= HEC_CALL_LONG_NS &&
           c->start_ns < c->end_ns && c->end_ns < c->finish_ns;
}

static int64_t wake_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->end_ns - s->calls[c->awaits].finish_ns;
}

/* The driver asks the system for memory, or the program was not given a core: milliseconds now and then. */
static void mark_rare(struct hec_schedule *s, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        struct hec_schedule_call *c = &s->calls[i];
        double usual_ns = fabs((double)s->usual[hec_call_shape(c)].wake_ns);
        if (c->flags & HEC_CALL_WAITED && (double)wake_of(s, c) >= RARE * fmax(usual_ns, WAKE_LEAST_NS))
            c->flags |= HEC_CALL_RARE;
    }
}

static void connect_waits(struct hec_schedule *s, const struct ends *ends, struct sample *sample) {
    const uint64_t *ended = ends->finished;
    size_t next = 0;
    for (size_t k = 0; k < ends->return_count; k++) {
        uint32_t at = hec_order_at(ends->returned[k]);
        struct hec_schedule_call *c = &s->calls[at];
        while (next < ends->finish_count && s->calls[hec_order_at(ended[next])].finish_ns <= c->end_ns)
            next++;
        if (returns_with_own(c)) {
            c->awaits = at;
            c->flags |= HEC_CALL_WAITED;
        }
        for (size_t back = 1; back <= FINISHED_BACK && back <= next && c->awaits != at; back++) {
            uint32_t operation = hec_order_at(ended[next - back]);
            const struct hec_schedule_call *o = &s->calls[operation];
            if (o->process != c->process || operation > at)
                continue;
            c->awaits = operation;
            if (o->finish_ns > c->begin_ns)
                c->flags |= HEC_CALL_WAITED;
            break;
        }
        if (c->flags & HEC_CALL_WAITED)
            note(sample, c, wake_of(s, c));
    }
    USUAL(s, sample, wake_ns, 50, 5000);
}

/* ---- what the program did in between ---- */

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
static void note_code(const struct hec_schedule *s, size_t from, size_t to, struct sample *sample) {
    for (size_t i = from; i < to; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        if (!hec_call_launched(c) || c->after == HEC_SCHEDULE_NONE || c->flags & HEC_CALL_GUESSED)
            continue;
        const struct hec_schedule_call *before = &s->calls[c->after];
        int64_t code_ns = hec_call_code_ns(s, c);
        if (hec_call_launched(before) && !(before->flags & (HEC_CALL_WAITED | HEC_CALL_GUESSED)) &&
            before->begin_ns != c->begin_ns && code_ns < HEC_STATE_BRIEF_NS)
            note(sample, c, code_ns);
    }
}

/* Events, and what the time between calls was. */
static int connect_rest(struct hec_schedule *s, const struct ends *ends, const struct hec_schedule_phase *phases,
                        size_t phase_count, struct sample *sample) {
    size_t room = 0, passed = 0;
    int err = HEC_OK;
    IN_PARTS(s, from, to) {
        mark_rare(s, from, to);
        err = err ? err : connect_events(s, from, to, ends, &room);
        label(s, from, to, phases, phase_count, &passed);
        note_code(s, from, to, sample);
    }
    USUAL(s, sample, code_ns, 10, INT64_MAX);
    return err;
}

static bool outside(const struct hec_schedule *s, size_t i) {
    return s->calls[i].begin_ns < s->from_ns || s->calls[i].begin_ns >= s->to_ns;
}

static bool twice_or_outside(const struct hec_schedule *s, size_t i) {
    return outside(s, i) || twice(s, i);
}

/* Finds the calls of operations without, in the order in which they ran. */
static int find_calls(struct hec_schedule *s) {
    uint64_t *by = NULL;
    size_t n = 0;
    struct queue *queues = calloc((size_t)s->process_count + 1, sizeof *queues);
    int err = queues ? hec_order_calls(s, hec_order_key_start, &by, &n) : HEC_ERR_NOMEM;
    if (!err)
        err = hec_schedule_graphs(s, by, n);
    for (int p = 0; p < s->process_count && !err; p++)
        queues[p].until_ns = INT64_MIN;
    for (size_t k = 0; k < n && !err; k++) {
        struct hec_schedule_call *c = &s->calls[hec_order_at(by[k])];
        struct queue *q = &queues[c->process];
        if (q->until_ns != INT64_MIN && c->start_ns - q->until_ns > EMPTY_NS)
            empty_queue(s, q);
        q->until_ns = c->finish_ns > q->until_ns ? c->finish_ns : q->until_ns;
        if (!(c->flags & HEC_CALL_GUESSED))
            continue;
        find_call(s, q, c);
    }
    free(by);
    free(queues);
    drop(s, taken);
    drop(s, outside);
    return err;
}

/* Some of its operations have no call. */
static int complete(struct hec_schedule *s, struct sample *sample) {
    drop(s, twice);
    int err = find_calls(s);
    if (!err)
        err = hec_order_by_begin(s);
    if (!err)
        err = straighten(s);
    if (!err) {
        mark_graphs(s);
        err = connect_streams(s, sample);
    }
    if (!err)
        err = place_guessed(s);
    return err ? err : hec_order_by_begin(s);
}

/* What follows what on the host and on streams. */
struct flow {
    struct hec_schedule *s;
    struct sample *sample;
    int err;
};

static void connect_flow(void *to) {
    struct flow *f = to;
    f->err = connect_streams(f->s, f->sample);
    if (!f->err)
        f->err = connect_calls(f->s, f->sample);
}

int hec_schedule_connect(struct hec_schedule *s, bool whole, struct hec_schedule_phase *phases, size_t phase_count,
                         hec_together together) {
    struct sample sample = {.list = malloc(HEC_CALL_SHAPES * USUAL_OF * sizeof *sample.list)};
    struct ends ends = {.s = s};
    struct flow flow = {s, &sample, HEC_OK};
    int err = sample.list ? hec_order_by_begin(s) : HEC_ERR_NOMEM;
    if (!err && whole) {
        drop(s, twice_or_outside);
        err = straighten(s);
        mark_graphs(s);
    } else if (!err) {
        err = complete(s, &sample);
    }
    if (!err) {
        hec_tasks_run(together, (struct hec_task[2]){{connect_flow, &flow}, {order_ends, &ends}}, 2);
        err = flow.err ? flow.err : ends.err;
    }
    if (!err) {
        connect_waits(s, &ends, &sample);
        err = connect_rest(s, &ends, phases, phase_count, &sample);
    }
    if (!err)
        err = hec_schedule_collectives(s);
    free(ends.returned);
    free(ends.finished);
    free(sample.list);
    return err;
}
