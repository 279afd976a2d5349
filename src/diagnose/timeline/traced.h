/* Inside src/diagnose: when device activity was traced. A duty-cycled trace records its windows, process by process;
 * what lies outside of them is unknown, not idle. */
#pragma once

#include "model/trace.h"

/* Disjoint intervals in ascending order, and how much of them lies before each. `everywhere`: all time is traced. */
struct hec_intervals {
    bool everywhere;
    struct hec_interval {
        int64_t start_ns, end_ns;
        int64_t before_ns; /* sum of the lengths of those before it */
    } * list;              /* malloc'ed */
    size_t count, capacity;
    size_t cursor; /* where the last question was answered: the next one is near */
};

void hec_intervals_free(struct hec_intervals *intervals);
/* An interval that starts no earlier than those before it; what they overlap counts once, what touches is joined. 0 or
 * HEC_ERR_NOMEM. */
int hec_intervals_append_new(struct hec_intervals *intervals, int64_t start_ns, int64_t end_ns);
static inline int hec_intervals_append(struct hec_intervals *intervals, int64_t start_ns, int64_t end_ns) {
    struct hec_interval *last = intervals->count ? &intervals->list[intervals->count - 1] : NULL;
    if (!last || start_ns != last->end_ns || end_ns < start_ns)
        return hec_intervals_append_new(intervals, start_ns, end_ns);
    last->end_ns = end_ns;
    return 0;
}
/* Length of what of [start, end] is inside; _search where it is not simply the interval of the last question. */
int64_t hec_intervals_search(struct hec_intervals *intervals, int64_t start_ns, int64_t end_ns);
static inline int64_t hec_intervals_within(struct hec_intervals *intervals, int64_t start_ns, int64_t end_ns) {
    const struct hec_interval *last = intervals->list ? &intervals->list[intervals->cursor] : NULL;
    if (last && start_ns >= last->start_ns && end_ns <= last->end_ns && start_ns <= end_ns)
        return end_ns - start_ns;
    return hec_intervals_search(intervals, start_ns, end_ns);
}
/* For each piece of [start, end] inside, in order. */
void hec_intervals_pieces(struct hec_intervals *intervals, int64_t start_ns, int64_t end_ns,
                          void (*piece)(void *context, int64_t start_ns, int64_t end_ns), void *context);

/* The windows of all processes. A process has one, or one every few seconds; time in more than so many counts as untraced,
 * so that memory has an end. */
#define HEC_WINDOWS_KEPT 65536
struct hec_windows {
    struct hec_window {
        uint32_t track; /* of the process */
        int32_t pid;
        int64_t start_ns, end_ns;
    } * list; /* malloc'ed */
    size_t count, capacity;
};

int hec_windows_add(struct hec_windows *windows, const struct hec_window *window); /* 0 or HEC_ERR_NOMEM */
void hec_windows_free(struct hec_windows *windows);
/* Where the last window of this process ends that begins by then; INT64_MAX: it has none. They were added in the order of time. */
int64_t hec_windows_end(const struct hec_windows *windows, int32_t pid, int64_t at_ns);

/* Since when a process may have used a device untraced: in mode full CUPTI comes with its first call. window_ns: the start of
 * its first window. */
int64_t hec_tracer_since(const struct hec_tracer *tracer, int64_t window_ns);

/* When the processes that `belongs` names were all traced: at every instant those that lived then, by their tracers'
 * records or else from their first window to their last. A process without windows was traced throughout. Everywhere
 * when none of them has windows. 0 or HEC_ERR_NOMEM. */
int hec_windows_traced(const struct hec_windows *windows, const struct hec_tracer *tracers, size_t tracer_count,
                       bool (*belongs)(const void *context, int32_t pid), const void *context,
                       struct hec_intervals *out);
