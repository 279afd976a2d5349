#include "sim/cuda/union.h"

#include <string.h>

static void forget_half(struct sim_union *u) {
    int half = u->count / 2;
    for (int i = 0; i < half; i++)
        u->done_ns += u->window[i].end_ns - u->window[i].start_ns;
    u->frontier_ns = u->window[half - 1].end_ns;
    u->count -= half;
    memmove(u->window, u->window + half, (size_t)u->count * sizeof u->window[0]);
}

void sim_union_add(struct sim_union *u, int64_t start_ns, int64_t end_ns) {
    if (start_ns < u->frontier_ns)
        start_ns = u->frontier_ns;
    if (end_ns <= start_ns)
        return;
    int after = u->count; /* first interval that begins behind the new one */
    while (after > 0 && u->window[after - 1].start_ns > end_ns)
        after--;
    int from = after; /* first one that touches it */
    while (from > 0 && u->window[from - 1].end_ns >= start_ns)
        from--;
    if (from < after) {
        if (u->window[from].start_ns < start_ns)
            start_ns = u->window[from].start_ns;
        if (u->window[after - 1].end_ns > end_ns)
            end_ns = u->window[after - 1].end_ns;
    }
    memmove(u->window + from + 1, u->window + after, (size_t)(u->count - after) * sizeof u->window[0]);
    u->count += from + 1 - after;
    u->window[from].start_ns = start_ns;
    u->window[from].end_ns = end_ns;
    if (u->count == SIM_UNION_WINDOW)
        forget_half(u);
}

int64_t sim_union_length_ns(const struct sim_union *u) {
    int64_t length = u->done_ns;
    for (int i = 0; i < u->count; i++)
        length += u->window[i].end_ns - u->window[i].start_ns;
    return length;
}
