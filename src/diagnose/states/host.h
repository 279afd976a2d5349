/* Inside src/diagnose: what one thread of the host did, as far as a device can have waited for it. Fed in the order of
 * time; memory is bounded: the oldest is forgotten first. */
#ifndef HEC_DIAGNOSE_STATES_HOST_H
#define HEC_DIAGNOSE_STATES_HOST_H

#include "model/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of rank: of what holds at one instant, the first counts. A phase of the program is a better cause than
 * the calls in it; a wait inside of an allocation belongs to the allocation. */
enum hec_host_label {
    HEC_HOST_CHECKPOINT, /* phase: a program that saves inside of what it calls "data" still saves */
    HEC_HOST_DATA,       /* phase */
    HEC_HOST_ALLOC,      /* call: allocates or frees; it may wait for the device, but waiting is not its aim */
    HEC_HOST_MODULE,     /* call: loads or compiles code */
    HEC_HOST_SYNC,       /* call: waits for the device */
    HEC_HOST_COPY,       /* call: copies */
    HEC_HOST_LAUNCH,     /* call: launches a kernel, a graph, a memset */
    HEC_HOST_NOTHING,
    HEC_HOST_LABEL_COUNT = HEC_HOST_NOTHING
};

/* Disjoint, ascending; where there is none, NOTHING holds. */
struct hec_host_segment {
    int64_t start_ns, end_ns;
    enum hec_host_label label;
};

struct hec_host_sample {
    int64_t t_ns, period_ns;
    uint32_t frame;
};

struct hec_host_launch {
    int64_t start_ns, end_ns;
    bool copy;
    uint8_t wait; /* what it is waited for as: enum hec_state_wait */
};

#define HEC_HOST_KEPT 262144 /* segments and samples, each: 6 MB a thread at most */
#define HEC_HOST_LAUNCHES 64 /* at least so many of the last launches are known; of one gap it is one or two */

struct hec_host_thread {
    bool seen; /* it did anything that is known */
    int64_t at_ns;
    uint32_t open; /* bits of labels that may still hold at at_ns */
    int64_t open_end_ns[HEC_HOST_LABEL_COUNT];
    struct hec_host_segment *segments;
    size_t segment_count, segment_capacity;
    struct hec_host_sample *samples;
    size_t sample_count, sample_capacity;
    struct hec_host_launch launches[2 * HEC_HOST_LAUNCHES]; /* by start */
    size_t launch_count;
    int64_t copied_ns; /* no launch that is waited for as a copy ends after it: most gaps are between kernels */
};

struct hec_host_thread *hec_host_thread_new(void);         /* NULL: no memory */
void hec_host_thread_free(struct hec_host_thread *thread); /* NULL is fine */

/* label holds from start to end; starts ascend. 0 or HEC_ERR_NOMEM. */
int hec_host_hold(struct hec_host_thread *thread, enum hec_host_label label, int64_t start_ns, int64_t end_ns);
/* Nothing that starts before t comes any more: the segments are known up to t. _keep is its longer part. */
int hec_host_keep(struct hec_host_thread *thread, int64_t t_ns);
static inline int hec_host_advance(struct hec_host_thread *thread, int64_t t_ns) {
    if (thread->at_ns >= t_ns)
        return 0;
    if (thread->open)
        return hec_host_keep(thread, t_ns);
    thread->at_ns = t_ns;
    return 0;
}
int hec_host_sampled(struct hec_host_thread *thread, int64_t t_ns, int64_t period_ns, uint32_t frame);
/* A call that caused an activity on a device; in any order, though far out of it counts for nothing. The nodes of a graph
 * have one call. */
void hec_host_launched(struct hec_host_thread *thread, int64_t start_ns, int64_t end_ns, bool copy, uint8_t wait);

/* Index of the first segment, sample or launch that ends (samples, launches: is, begins) after t, or at it for the
 * latter two; the count when none does, as for most questions. Quick near the end; _search where it is not the end. */
size_t hec_host_segment_search(const struct hec_host_thread *thread, int64_t t_ns);
size_t hec_host_sample_search(const struct hec_host_thread *thread, int64_t t_ns);
size_t hec_host_launch_search(const struct hec_host_thread *thread, int64_t t_ns);
static inline size_t hec_host_segment_after(const struct hec_host_thread *thread, int64_t t_ns) {
    size_t count = thread->segment_count;
    return count && thread->segments[count - 1].end_ns > t_ns ? hec_host_segment_search(thread, t_ns) : count;
}
static inline size_t hec_host_sample_from(const struct hec_host_thread *thread, int64_t t_ns) {
    size_t count = thread->sample_count;
    return count && thread->samples[count - 1].t_ns >= t_ns ? hec_host_sample_search(thread, t_ns) : count;
}
static inline size_t hec_host_launch_from(const struct hec_host_thread *thread, int64_t t_ns) {
    size_t count = thread->launch_count;
    return count && thread->launches[count - 1].start_ns >= t_ns ? hec_host_launch_search(thread, t_ns) : count;
}

#endif
