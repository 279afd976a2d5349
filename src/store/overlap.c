#include "store/overlap.h"

#include <stdlib.h>
#include <string.h>

/* The number of steps that begin at t or before. */
static size_t begun(const struct hec_overlap *o, int64_t t) {
    size_t low = 0, high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->steps[middle].from <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Joins pairs of the earlier half: what comes is mostly late in time. */
static void join(struct hec_overlap *o) {
    size_t half = o->count / 4 * 2, to = 0;
    for (size_t i = 0; i < half; i += 2, to++) {
        int64_t next = o->steps[i + 1].amount;
        o->steps[to] = o->steps[i];
        if (next > o->steps[to].amount)
            o->steps[to].amount = next;
    }
    memmove(o->steps + to, o->steps + half, (o->count - half) * sizeof *o->steps);
    o->count -= half - to;
}

/* Room for two more steps. */
static bool reserve(struct hec_overlap *o) {
    if (o->count + 2 <= o->capacity)
        return true;
    if (o->capacity == HEC_OVERLAP_STEPS_MAX) {
        join(o);
        return true;
    }
    size_t capacity = o->capacity ? 2 * o->capacity : 16;
    struct hec_overlap_step *steps = realloc(o->steps, capacity * sizeof *steps);
    if (!steps)
        return false;
    o->steps = steps;
    o->capacity = capacity;
    return true;
}

/* The step that begins at t, which is made where there is none. */
static size_t split(struct hec_overlap *o, int64_t t) {
    size_t at = begun(o, t);
    if (at > 0 && o->steps[at - 1].from == t)
        return at - 1;
    memmove(o->steps + at + 1, o->steps + at, (o->count - at) * sizeof *o->steps);
    o->steps[at] = (struct hec_overlap_step){t, at > 0 ? o->steps[at - 1].amount : 0};
    o->count++;
    return at;
}

bool hec_overlap_add(struct hec_overlap *o, int64_t first, int64_t last, int64_t amount, int64_t most) {
    if (amount > most || !reserve(o))
        return false;
    size_t at = begun(o, first), end = begun(o, last);
    for (at = at > 0 ? at - 1 : 0; at < end; at++)
        if (o->steps[at].amount + amount > most)
            return false;
    at = split(o, first);
    end = split(o, last + 1);
    for (; at < end; at++)
        o->steps[at].amount += amount;
    return true;
}

void hec_overlap_free(struct hec_overlap *o) {
    free(o->steps);
    *o = (struct hec_overlap){NULL, 0, 0};
}
