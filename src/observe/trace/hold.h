/* Activities of one track that are held back for a while, so that they leave in the order of their start although
 * they arrive in that of CUPTI's buffers. */
#ifndef HEC_OBSERVE_TRACE_HOLD_H
#define HEC_OBSERVE_TRACE_HOLD_H

#include "model/trace.h"
#include "observe/trace/map.h"

struct hec_trace_held {
    struct hec_activity activity;
    uint32_t arrived_ms;
};

struct hec_trace_hold {
    struct hec_trace_held *items;
    uint32_t first, count, capacity; /* items[first .. first + count) */
    uint32_t sorted;                 /* as many from the first are in order */
};

/* false: no memory within the budget, nothing was added. */
bool hec_trace_hold_add(struct hec_trace_hold *hold, struct hec_trace_budget *budget,
                        const struct hec_trace_held *held);
/* Put everything in order of start; cheap when it is already. */
void hec_trace_hold_sort(struct hec_trace_hold *hold);
/* The earliest, once sorted; NULL: none. */
const struct hec_trace_held *hec_trace_hold_front(const struct hec_trace_hold *hold);
void hec_trace_hold_pop(struct hec_trace_hold *hold);
void hec_trace_hold_free(struct hec_trace_hold *hold, struct hec_trace_budget *budget);

#endif
