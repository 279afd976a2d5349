#include "observe/trace/launches.h"

#include <string.h>

#define CAPACITY_FIRST 1024u

static bool grow(struct hec_trace_launches *launches, struct hec_trace_budget *budget) {
    uint32_t capacity = launches->capacity ? launches->capacity * 2 : CAPACITY_FIRST;
    struct hec_trace_launch *slots;
    if (capacity > HEC_TRACE_LAUNCHES_MAX || !(slots = hec_trace_resize(budget, NULL, 0, capacity * sizeof *slots)))
        return false;
    memset(slots, 0, capacity * sizeof *slots);
    for (uint32_t i = 0; i < launches->capacity; i++)
        if (launches->slots[i].correlation)
            slots[launches->slots[i].correlation & (capacity - 1)] = launches->slots[i];
    hec_trace_launches_free(launches, budget);
    launches->slots = slots;
    launches->capacity = capacity;
    return true;
}

void hec_trace_launches_put(struct hec_trace_launches *launches, struct hec_trace_budget *budget,
                            const struct hec_trace_launch *launch, uint32_t keep_ms) {
    if (launch->correlation == 0 || (launches->capacity == 0 && !grow(launches, budget)))
        return;
    for (;;) {
        struct hec_trace_launch *slot = &launches->slots[launch->correlation & (launches->capacity - 1)];
        if (slot->correlation == 0 || slot->correlation == launch->correlation ||
            launch->arrived_ms - slot->arrived_ms > keep_ms || !grow(launches, budget)) {
            /* the runtime's call and the driver's inside it may share an id: the outer one is what the thread did */
            bool inner = slot->correlation == launch->correlation && slot->start_ns <= launch->start_ns &&
                         slot->end_ns >= launch->end_ns;
            if (!inner)
                *slot = *launch;
            return;
        }
    }
}

struct hec_trace_launch *hec_trace_launches_find(const struct hec_trace_launches *launches, uint32_t correlation) {
    if (correlation == 0 || launches->capacity == 0)
        return NULL;
    struct hec_trace_launch *slot = &launches->slots[correlation & (launches->capacity - 1)];
    return slot->correlation == correlation ? slot : NULL;
}

void hec_trace_launches_free(struct hec_trace_launches *launches, struct hec_trace_budget *budget) {
    hec_trace_resize(budget, launches->slots, launches->capacity * sizeof *launches->slots, 0);
    memset(launches, 0, sizeof *launches);
}
