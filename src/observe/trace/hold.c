#include "observe/trace/hold.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 64u

/* Room for one more behind the last. */
static bool make_room(struct hec_trace_hold *hold, struct hec_trace_budget *budget) {
    if (hold->first + hold->count < hold->capacity)
        return true;
    if (hold->first > hold->capacity / 2) {
        memmove(hold->items, hold->items + hold->first, hold->count * sizeof *hold->items);
        hold->first = 0;
        return true;
    }
    uint32_t capacity = hold->capacity ? hold->capacity * 2 : CAPACITY_FIRST;
    struct hec_trace_held *items =
        hec_trace_resize(budget, hold->items, hold->capacity * sizeof *items, (size_t)capacity * sizeof *items);
    if (!items)
        return false;
    hold->items = items;
    hold->capacity = capacity;
    return true;
}

bool hec_trace_hold_add(struct hec_trace_hold *hold, struct hec_trace_budget *budget,
                        const struct hec_trace_held *held) {
    if (!make_room(hold, budget))
        return false;
    struct hec_trace_held *at = hold->items + hold->first + hold->count;
    *at = *held;
    if (hold->sorted == hold->count && (hold->count == 0 || at[-1].activity.start_ns <= held->activity.start_ns))
        hold->sorted++;
    hold->count++;
    return true;
}

static int compare(const void *a, const void *b) {
    const struct hec_trace_held *x = a, *y = b;
    return (x->activity.start_ns > y->activity.start_ns) - (x->activity.start_ns < y->activity.start_ns);
}

void hec_trace_hold_sort(struct hec_trace_hold *hold) {
    uint32_t late = hold->count - hold->sorted;
    if (late == 0)
        return;
    struct hec_trace_held *all = hold->items + hold->first;
    struct hec_trace_held *tail = malloc(late * sizeof *tail);
    if (!tail)
        return; /* leaves as it came: the store puts it in order */
    memcpy(tail, all + hold->sorted, late * sizeof *tail);
    qsort(tail, late, sizeof *tail, compare);
    uint32_t from = hold->sorted, to = hold->count;
    while (late > 0) { /* merge from the back; what is in order before the tail's first does not move */
        if (from > 0 && compare(&all[from - 1], &tail[late - 1]) > 0)
            all[--to] = all[--from];
        else
            all[--to] = tail[--late];
    }
    free(tail);
    hold->sorted = hold->count;
}

const struct hec_trace_held *hec_trace_hold_front(const struct hec_trace_hold *hold) {
    return hold->count > 0 ? hold->items + hold->first : NULL;
}

void hec_trace_hold_pop(struct hec_trace_hold *hold) {
    hold->first++;
    hold->count--;
    hold->sorted -= hold->sorted > 0;
    if (hold->count == 0)
        hold->first = 0;
}

void hec_trace_hold_free(struct hec_trace_hold *hold, struct hec_trace_budget *budget) {
    hec_trace_resize(budget, hold->items, hold->capacity * sizeof *hold->items, 0);
    memset(hold, 0, sizeof *hold);
}
