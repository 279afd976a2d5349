#include "diagnose/timeline/traced.h"

#include "base/error.h"
#include "base/list.h"
#include "base/trace.h"

#include <stdlib.h>
#include <string.h>

void hec_intervals_free(struct hec_intervals *intervals) {
    free(intervals->list);
    memset(intervals, 0, sizeof *intervals);
}

/* The last interval that starts at or before t; count when none does. */
static size_t find(struct hec_intervals *in, int64_t t_ns) {
    size_t at = in->cursor;
    if (at >= in->count || in->list[at].start_ns > t_ns) { /* back: search all before */
        size_t low = 0, high = in->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (in->list[middle].start_ns <= t_ns)
                low = middle + 1;
            else
                high = middle;
        }
        if (!low)
            return in->count;
        at = low - 1;
    } else {
        while (at + 1 < in->count && in->list[at + 1].start_ns <= t_ns)
            at++;
    }
    in->cursor = at;
    return at;
}

/* Length of all intervals up to t. O(1) for questions that go on in time. */
static int64_t until(struct hec_intervals *intervals, int64_t t_ns) {
    if (intervals->everywhere)
        return t_ns;
    size_t at = find(intervals, t_ns);
    if (at == intervals->count)
        return 0;
    const struct hec_interval *i = &intervals->list[at];
    return i->before_ns + (t_ns < i->end_ns ? t_ns : i->end_ns) - i->start_ns;
}

int64_t hec_intervals_search(struct hec_intervals *intervals, int64_t start_ns, int64_t end_ns) {
    if (end_ns <= start_ns)
        return 0;
    int64_t from = until(intervals, start_ns);
    return until(intervals, end_ns) - from;
}

void hec_intervals_pieces(struct hec_intervals *intervals, int64_t start_ns, int64_t end_ns,
                          void (*piece)(void *context, int64_t start_ns, int64_t end_ns), void *context) {
    if (intervals->everywhere) {
        piece(context, start_ns, end_ns);
        return;
    }
    size_t at = find(intervals, start_ns);
    for (at = at == intervals->count ? 0 : at; at < intervals->count; at++) {
        const struct hec_interval *i = &intervals->list[at];
        int64_t from = i->start_ns > start_ns ? i->start_ns : start_ns, to = i->end_ns < end_ns ? i->end_ns : end_ns;
        if (i->start_ns >= end_ns)
            break;
        if (to > from)
            piece(context, from, to);
    }
}

int hec_intervals_append_new(struct hec_intervals *in, int64_t start_ns, int64_t end_ns) {
    struct hec_interval *last = in->count ? &in->list[in->count - 1] : NULL;
    if (last && start_ns < last->end_ns)
        start_ns = last->end_ns;
    if (end_ns <= start_ns)
        return 0;
    if (last && last->end_ns == start_ns) {
        last->end_ns = end_ns;
        return 0;
    }
    if (!hec_list_room(in->list, in->count, in->capacity, 64))
        return HEC_ERR_NOMEM;
    last = in->count ? &in->list[in->count - 1] : NULL;
    in->list[in->count++] = (struct hec_interval){
        .start_ns = start_ns,
        .end_ns = end_ns,
        .before_ns = last ? last->before_ns + last->end_ns - last->start_ns : 0,
    };
    return 0;
}

int hec_windows_add(struct hec_windows *windows, const struct hec_window *window) {
    if (windows->count == HEC_WINDOWS_KEPT)
        return 0;
    if (!hec_list_room(windows->list, windows->count, windows->capacity, 64))
        return HEC_ERR_NOMEM;
    windows->list[windows->count++] = *window;
    return 0;
}

void hec_windows_free(struct hec_windows *windows) {
    free(windows->list);
    memset(windows, 0, sizeof *windows);
}

int64_t hec_windows_end(const struct hec_windows *windows, int32_t pid, int64_t at_ns) {
    for (size_t i = windows->count; i-- > 0;)
        if (windows->list[i].pid == pid && windows->list[i].start_ns <= at_ns)
            return windows->list[i].end_ns;
    return INT64_MAX;
}

static int by_pid(const void *a, const void *b) {
    const struct hec_window *one = a, *other = b;
    if (one->pid != other->pid)
        return one->pid < other->pid ? -1 : 1;
    return (one->start_ns > other->start_ns) - (one->start_ns < other->start_ns);
}

/* A process comes to life or dies, its window opens or closes. */
struct edge {
    int64_t t_ns;
    int alive, open; /* added to the counts */
};

static int by_time(const void *a, const void *b) {
    const struct edge *one = a, *other = b;
    return (one->t_ns > other->t_ns) - (one->t_ns < other->t_ns);
}

static const struct hec_tracer *tracer_of(const struct hec_tracer *tracers, size_t count, int32_t pid) {
    for (size_t i = 0; i < count; i++)
        if (tracers[i].pid == pid)
            return &tracers[i];
    return NULL;
}

int64_t hec_tracer_since(const struct hec_tracer *tracer, int64_t window_ns) {
    bool waited = tracer->mode == HEC_TRACE_FULL || tracer->mode == HEC_TRACE_GRAPH;
    return waited || tracer->first_ns > window_ns ? window_ns : tracer->first_ns;
}

/* The edges of one process: its windows (sorted), joined, and its life. */
static size_t edges_of(const struct hec_window *list, size_t count, const struct hec_tracer *tracer,
                       struct edge *edges) {
    int64_t first = list[0].start_ns, last = list[0].end_ns;
    size_t n = 0;
    for (size_t i = 0; i < count;) {
        int64_t start = list[i].start_ns, end = list[i].end_ns;
        for (i++; i < count && list[i].start_ns <= end; i++)
            end = list[i].end_ns > end ? list[i].end_ns : end;
        edges[n++] = (struct edge){start, 0, 1};
        edges[n++] = (struct edge){end, 0, -1};
        last = end;
    }
    if (tracer && tracer->last_ns > tracer->first_ns) {
        first = hec_tracer_since(tracer, first);
        last = tracer->last_ns > last ? tracer->last_ns : last;
    }
    edges[n++] = (struct edge){first, 1, 0};
    edges[n++] = (struct edge){last, -1, 0};
    return n;
}

static int sweep(struct edge *edges, size_t n, struct hec_intervals *out) {
    int alive = 0, open = 0, err = 0;
    qsort(edges, n, sizeof *edges, by_time);
    for (size_t i = 0; i < n && !err;) {
        int64_t t = edges[i].t_ns;
        for (; i < n && edges[i].t_ns == t; i++) {
            alive += edges[i].alive;
            open += edges[i].open;
        }
        if (alive > 0 && open >= alive && i < n)
            err = hec_intervals_append(out, t, edges[i].t_ns);
    }
    return err;
}

int hec_windows_traced(const struct hec_windows *windows, const struct hec_tracer *tracers, size_t tracer_count,
                       bool (*belongs)(const void *context, int32_t pid), const void *context,
                       struct hec_intervals *out) {
    memset(out, 0, sizeof *out);
    size_t count = 0;
    struct hec_window *list = malloc((windows->count + 1) * sizeof *list);
    struct edge *edges = malloc((4 * windows->count + 1) * sizeof *edges);
    int err = list && edges ? 0 : HEC_ERR_NOMEM;
    for (size_t i = 0; i < windows->count && !err; i++)
        if (belongs(context, windows->list[i].pid))
            list[count++] = windows->list[i];
    out->everywhere = !count;
    if (count && !err) {
        size_t n = 0;
        qsort(list, count, sizeof *list, by_pid);
        for (size_t i = 0, j; i < count; i = j) {
            for (j = i + 1; j < count && list[j].pid == list[i].pid; j++)
                ;
            n += edges_of(&list[i], j - i, tracer_of(tracers, tracer_count, list[i].pid), &edges[n]);
        }
        err = sweep(edges, n, out);
    }
    free(list);
    free(edges);
    if (err)
        hec_intervals_free(out);
    return err;
}
