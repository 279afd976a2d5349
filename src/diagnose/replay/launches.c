/* Whose call is whose: operations and calls as they were taken, which were recorded apart. */
#include "diagnose/replay/parts.h"

#include <stdlib.h>

/* ---- nodes of CUDA graphs ----
 *
 * Nodes that were recorded without the launch that they belong to: a program that launches one graph again and again gives
 * equal launches in a row, of which nobody can say which is whose. Their nodes come in rounds, though, with a gap before each. */

#define NODES_MAX 16384u /* of a graph */
#define ROUNDS_LEAST 4u  /* to tell a round by */
#define ROUNDS_MOST 256u /* looked at for its beginning */
#define PASSED_OVER 64u  /* where there are no rounds */
#define TRIES_MOST 1024u /* of a stream */
#define QUEUE_MOST 1024  /* launches that a program is ahead of its device */
#define GAP_LEAST 3.0    /* times the next largest gap in a round, which is the one before it begins */

struct nodes {
    uint32_t *list; /* calls, in the order of start */
    size_t count;
};

static bool same_node(const struct hec_schedule *s, const struct nodes *n, size_t a, size_t b) {
    const struct hec_schedule_call *x = &s->calls[n->list[a]], *y = &s->calls[n->list[b]];
    return x->kind == y->kind && x->what == y->what;
}

/* The least distance at which all repeats for ROUNDS_LEAST rounds; 0: none. */
static size_t round_of(const struct hec_schedule *s, const struct nodes *n) {
    for (size_t length = 1; length <= NODES_MAX && length * ROUNDS_LEAST <= n->count; length++) {
        size_t same = 0;
        while (same < length * (ROUNDS_LEAST - 1) && same_node(s, n, same, same + length))
            same++;
        if (same == length * (ROUNDS_LEAST - 1))
            return length;
    }
    return 0;
}

/* Where in the round the stream waits longest; length: nowhere much longer than elsewhere. count: of nodes that repeat. */
static size_t begin_of(const struct hec_schedule *s, const struct nodes *n, size_t count, size_t length) {
    double *gap_ns = calloc(length, sizeof *gap_ns), first = 0, second = 0;
    size_t at = length;
    if (!gap_ns)
        return length;
    for (size_t i = 1; i < count && i < length * ROUNDS_MOST; i++)
        gap_ns[i % length] += (double)(s->calls[n->list[i]].start_ns - s->calls[n->list[i - 1]].finish_ns);
    for (size_t k = 0; k < length; k++)
        if (gap_ns[k] > first) {
            second = first;
            first = gap_ns[k];
            at = k;
        } else if (gap_ns[k] > second) {
            second = gap_ns[k];
        }
    free(gap_ns);
    return length == 1 ? 0 : first >= GAP_LEAST * second ? at : length;
}

/* Returns how many of them repeat. *first: of the launch that goes on where they begin, and then where they end; NONE: unknown. */
static size_t lead_from(struct hec_schedule *s, const struct nodes *n, uint32_t *first) {
    size_t length = round_of(s, n), count = length;
    if (!length)
        return 0;
    while (count < n->count && same_node(s, n, count, count - length))
        count++;
    size_t begin = begin_of(s, n, count, length);
    if (begin == length)
        *first = HEC_SCHEDULE_NONE;
    for (size_t i = 0; i < count && begin < length; i++) {
        if (i >= begin && (i - begin) % length == 0)
            *first = n->list[i];
        s->calls[n->list[i]].after = *first;
    }
    return count;
}

/* Where it does not go on, a node was lost, or another graph begins. */
static void lead(struct hec_schedule *s, const struct nodes *n) {
    struct nodes rest = *n;
    uint32_t first = HEC_SCHEDULE_NONE;
    for (size_t tries = 0; tries < TRIES_MOST && rest.count > 0; tries++) {
        size_t passed = lead_from(s, &rest, &first);
        if (!passed) {
            passed = rest.count < PASSED_OVER ? rest.count : PASSED_OVER;
            first = HEC_SCHEDULE_NONE;
        }
        rest.list += passed;
        rest.count -= passed;
    }
}

/* Of a graph whose nodes run on several streams the first of each would take a launch. */
static bool alone(const struct hec_schedule *s, const struct nodes *nodes, size_t k) {
    for (size_t i = 0; nodes[k].count > 0 && i < s->stream_count; i++)
        if (i != k && nodes[i].count > 0 && s->streams[i].pid == s->streams[k].pid)
            return false;
    return nodes[k].count > 0;
}

/* The launches of one process and the first nodes of its graphs, both in order. */
struct launches {
    uint32_t *call, *first;
    size_t calls, firsts;
};

/* Each first node takes the latest launch that began before it and leaves enough for those after it. Where that is further ahead than a
 * queue holds, launches were not recorded, and it takes none. */
static int match_launches(struct hec_schedule *s, const struct launches *l) {
    int64_t *at = malloc((l->firsts + 1) * sizeof *at); /* the latest launch that began before it */
    if (!at)
        return HEC_ERR_NOMEM;
    for (size_t j = 0, begun = 0; j < l->firsts; j++) {
        while (begun < l->calls && s->calls[l->call[begun]].begin_ns <= s->calls[l->first[j]].start_ns)
            begun++;
        at[j] = (int64_t)begun - 1;
    }
    int64_t taken = INT64_MAX;
    for (size_t j = l->firsts; j-- > 0;) {
        int64_t latest = at[j];
        at[j] = latest < taken ? latest : taken - 1;
        if (at[j] < 0 || latest - at[j] > QUEUE_MOST)
            continue;
        taken = at[j];
        struct hec_schedule_call *call = &s->calls[l->call[at[j]]], *first = &s->calls[l->first[j]];
        first->begin_ns = call->begin_ns;
        first->end_ns = call->end_ns;
        first->flags &= (uint8_t)~HEC_CALL_GUESSED;
        call->kind = HEC_CALL_KINDS;
    }
    free(at);
    return HEC_OK;
}

static int take_all(struct hec_schedule *s, const uint32_t *by_start, size_t count) {
    struct launches *of = calloc((size_t)s->process_count + 1, sizeof *of);
    int err = of ? HEC_OK : HEC_ERR_NOMEM;
    for (int pass = 0; pass < 2 && !err; pass++) {
        for (int p = 0; p < s->process_count && pass && !err; p++) {
            of[p].call = malloc((of[p].calls + 1) * sizeof *of[p].call);
            of[p].first = malloc((of[p].firsts + 1) * sizeof *of[p].first);
            err = of[p].call && of[p].first ? HEC_OK : HEC_ERR_NOMEM;
            of[p].calls = of[p].firsts = 0;
        }
        for (size_t i = 0; i < s->count && !err; i++) {
            struct launches *l = &of[s->calls[i].process];
            if (hec_call_launched(&s->calls[i]) || !(s->calls[i].flags & HEC_CALL_GRAPH))
                continue;
            if (pass)
                l->call[l->calls] = (uint32_t)i;
            l->calls++;
        }
        for (size_t i = 0; i < count && !err; i++) {
            uint32_t at = by_start[i];
            struct launches *l = &of[s->calls[at].process];
            if (s->calls[at].after != at)
                continue;
            if (pass)
                l->first[l->firsts] = at;
            l->firsts++;
        }
    }
    for (int p = 0; p < s->process_count && !err; p++)
        err = match_launches(s, &of[p]);
    for (int p = 0; of && p < s->process_count; p++) {
        free(of[p].call);
        free(of[p].first);
    }
    free(of);
    return err;
}

/* The other nodes have their first one's launch. */
static void join(struct hec_schedule *s, const uint32_t *by_start, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct hec_schedule_call *node = &s->calls[by_start[i]];
        const struct hec_schedule_call *first = node->after == HEC_SCHEDULE_NONE ? NULL : &s->calls[node->after];
        if (!first || first == node || first->flags & HEC_CALL_GUESSED)
            continue;
        node->begin_ns = first->begin_ns;
        node->end_ns = first->end_ns;
        node->flags &= (uint8_t)~HEC_CALL_GUESSED;
    }
}

/* Finds the launches of nodes of graphs that have none, where those come in rounds. by_start: operations in the order in which they ran. 0
 * or HEC_ERR_NOMEM. */
static int schedule_graphs(struct hec_schedule *s, const uint32_t *by_start, size_t count) {
    struct nodes *nodes = calloc(s->stream_count + 1, sizeof *nodes);
    int err = nodes ? HEC_OK : HEC_ERR_NOMEM;
    for (size_t pass = 0; pass < 2 && !err; pass++) {
        for (size_t k = 0; k < s->stream_count && pass && !err; k++) {
            nodes[k].list = malloc((nodes[k].count + 1) * sizeof *nodes[k].list);
            nodes[k].count = 0;
            err = nodes[k].list ? HEC_OK : HEC_ERR_NOMEM;
        }
        for (size_t i = 0; i < count && !err; i++) {
            const struct hec_schedule_call *c = &s->calls[by_start[i]];
            struct nodes *n = &nodes[c->stream];
            if ((c->flags & (HEC_CALL_GUESSED | HEC_CALL_GRAPHED)) != (HEC_CALL_GUESSED | HEC_CALL_GRAPHED))
                continue;
            if (pass)
                n->list[n->count] = by_start[i];
            n->count++;
        }
    }
    for (size_t k = 0; k < s->stream_count && !err; k++)
        if (alone(s, nodes, k))
            lead(s, &nodes[k]);
    if (!err)
        err = take_all(s, by_start, count);
    if (!err)
        join(s, by_start, count);
    for (size_t k = 0; nodes && k < s->stream_count; k++)
        free(nodes[k].list);
    free(nodes);
    return err;
}

/* ---- all others ---- */

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

static bool may_launch(const struct hec_schedule_call *call, const struct hec_schedule_call *operation) {
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
        if (may_launch(c, operation)) {
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
        err = schedule_graphs(s, by, n);
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
