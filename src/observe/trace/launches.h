/* The calls of one process that make a device work, by correlation id: what a kernel's launch is found in.
 *
 * CUPTI delivers the records of calls and those of devices in different buffers, in any order. A call is put here when
 * it arrives, and a device's activity, which is held back for a while (hold.h), looks for it when it leaves. One call
 * may have many activities (the nodes of a graph). Ids ascend, so the slot of an id is its low bits, and a newer call
 * takes the slot of one that is too old to be asked for; the table grows while that is not so. */
#ifndef HEC_OBSERVE_TRACE_LAUNCHES_H
#define HEC_OBSERVE_TRACE_LAUNCHES_H

#include "observe/trace/map.h"

struct hec_trace_launch {
    int64_t start_ns, end_ns;
    uint32_t correlation; /* 0: an empty slot */
    uint32_t track;       /* the sink's, of the thread; 0 unknown */
    uint32_t arrived_ms;
    bool matched; /* some activity was found for it */
};

struct hec_trace_launches {
    struct hec_trace_launch *slots;
    uint32_t capacity; /* a power of two, or 0 */
};

/* In the largest table calls wait for their kernels even at 100 000 a second for 3 s. 16 MB. */
#define HEC_TRACE_LAUNCHES_MAX (1u << 19)

/* Put a call in. A slot whose call came within keep_ms is kept by growing the table, as long as that is possible. */
void hec_trace_launches_put(struct hec_trace_launches *launches, struct hec_trace_budget *budget,
                            const struct hec_trace_launch *launch, uint32_t keep_ms);
/* NULL: not here. */
struct hec_trace_launch *hec_trace_launches_find(const struct hec_trace_launches *launches, uint32_t correlation);
void hec_trace_launches_free(struct hec_trace_launches *launches, struct hec_trace_budget *budget);

#endif
