/* Whose call is whose: operations and calls as they were taken, which were recorded apart. */
#include "diagnose/replay/parts.h"

#include <stdlib.h>

#define LOOK_AHEAD 64  /* calls of its kind after the first that is open, for a copy of its size */
#define EMPTY_NS 20000 /* a device that does nothing for so long has nothing in its queue */

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

/* A launch that was recorded as a call too: the operation says as much and more. */
static bool twice(const struct hec_schedule *s, size_t i) {
    const struct hec_schedule_call *c = &s->calls[i];
    if (hec_call_launched(c) || !hec_call_launches(c))
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
    uint32_t *by = NULL;
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
            if (ordered(&s->calls[by[k]]))
                from[at[next[s->calls[by[k]].stream]++]] = by[k];
        relaunch(s, from);
    }
    free(by);
    free(next);
    free(at);
    free(from);
    return err;
}

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

/* Of several processes, one that is ahead of its device goes on behind the stretch with what the others launch after it: nothing there has
 * a counterpart. */
static bool outside(const struct hec_schedule *s, size_t i) {
    const struct hec_schedule_call *c = &s->calls[i];
    bool behind = s->process_count > 1 && hec_call_launched(c) && c->start_ns >= s->to_ns;
    return c->begin_ns < s->from_ns || c->begin_ns >= s->to_ns || behind;
}

static bool twice_or_outside(const struct hec_schedule *s, size_t i) {
    return outside(s, i) || twice(s, i);
}

/* Finds the calls of operations without, in the order in which they ran. */
static int find_calls(struct hec_schedule *s) {
    uint32_t *by = NULL;
    size_t n = 0;
    struct queue *queues = calloc((size_t)s->process_count + 1, sizeof *queues);
    int err = queues ? hec_order_calls(s, hec_order_key_start, &by, &n) : HEC_ERR_NOMEM;
    if (!err)
        err = hec_schedule_graphs(s, by, n);
    for (int p = 0; p < s->process_count && !err; p++)
        queues[p].until_ns = INT64_MIN;
    for (size_t k = 0; k < n && !err; k++) {
        struct hec_schedule_call *c = &s->calls[by[k]];
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

int hec_launches_find(struct hec_schedule *s, bool whole) {
    int err = HEC_OK;
    drop(s, whole ? twice_or_outside : twice);
    if (!whole)
        err = find_calls(s);
    if (!err && !whole)
        err = hec_order_by_begin(s);
    if (!err)
        err = straighten(s);
    if (!err)
        mark_graphs(s);
    return err;
}
