/* Inside src/diagnose: the pieces of one device, from its activities in the order of their start. */
#pragma once

#include "diagnose/states/stacks.h"
#include "diagnose/states/state.h"
#include "model/trace.h"

/* ---- host.c ----
 *
 * What one thread of the host did, as far as a device can have waited for it. Fed in the order of
 * time; memory is bounded: the oldest is forgotten first. */

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

/* ---- why a device was idle: rules 2 to 14 of state.h ---- */

struct hec_state_gap {
    int64_t start_ns, end_ns;
    bool startup, tail;
    bool kernel;                          /* the ender is one */
    int64_t launch_ns, launch_end_ns;     /* the ender's call; HEC_TIME_UNKNOWN */
    const struct hec_host_thread *thread; /* decides; NULL: unknown */
    const struct hec_host_thread *main;   /* of the process; NULL: unknown */
    /* By hec_state_gap_look. */
    bool waits; /* the thread was in a call of rule 11 when the gap began: */
    int64_t wait_start_ns, wait_end_ns;
    uint32_t hidden_us; /* so long it had been at what it did when the gap began, while the device was busy */
};

/* What the thread did when the gap began: asked once, before the gap is explained; not of startup and tail. busy_ns: since
 * when the device was busy before it. */
void hec_state_gap_look(struct hec_state_gap *gap, int64_t busy_ns);

/* Calls take for states that cover the gap in ascending order without holes; what it returns, if not 0, ends this. The
 * threads have been advanced to the gap's end. */
int hec_state_gap_explain(const struct hec_state_gap *gap, const struct hec_state_limits *limits,
                          int (*take)(void *context, int64_t start_ns, int64_t end_ns, enum hec_state state),
                          void *context);

/* Whether the last that the deciding thread had given the device at t, or what it gives it next (a call that is under way
 * counts as next), is a copy: which. */
enum hec_state_wait hec_state_gap_copies(const struct hec_state_gap *gap, int64_t t_ns, bool next);

/* What can keep a device busy, in the order of rank: compute by class, communication, copies. */
#define HEC_STATE_LANE_COMM HEC_KERNEL_CLASS_COMM
#define HEC_STATE_LANE_COPY HEC_KERNEL_CLASS_COUNT /* and on: by enum hec_state_wait */
#define HEC_STATE_LANE_COUNT (HEC_KERNEL_CLASS_COUNT + HEC_STATE_WAIT_COUNT)
_Static_assert((int)HEC_KERNEL_CLASS_COMM == (int)HEC_KERNEL_CLASS_COUNT - 1, "ranks after all that compute");
_Static_assert(HEC_STATE_LANE_COUNT <= 32, "one bit each");

struct hec_state_device {
    int device;
    struct hec_intervals traced;
    size_t window; /* in traced: the first that ends after at_ns */
    const struct hec_state_limits *limits;
    const struct hec_state_visitor *visitor;
    bool started;
    int64_t at_ns; /* pieces are reported up to here */
    uint32_t open; /* bits of lanes that may still be busy at at_ns */
    int64_t open_end_ns[HEC_STATE_LANE_COUNT];
    struct hec_host_thread *main; /* of the process that used it last; NULL: none known */
    const struct hec_host_thread *sampled;
    size_t sample; /* of sampled: the next */
    const struct hec_host_thread *beside;
    int64_t beside_ns; /* no sample of that thread lies between what was asked for last and this */
    uint32_t frame;
    struct hec_stacks *stacks;
    enum hec_stack_meaning meaning; /* of the stretch at hand of rule 13 or 3, by its samples so far */
    enum hec_stack_meaning lasting; /* of the last sample in one that was not brief, at lasting_ns */
    int64_t lasting_ns;
    bool trains;                     /* of the last event */
    bool communicated;               /* it has run a kernel of communication */
    const struct hec_state_gap *gap; /* at hand */
    int64_t busy_ns;                 /* since when; in a gap, before it */
    uint32_t hidden_us;              /* of the next piece */
    int64_t wait_end_ns;             /* of the call that waited when the gap at hand began */
    int64_t wait_sent_ns;            /* samples of waiting calls were sent up to here */
    int64_t blind_ns;                /* rule 1: in the gap at hand, what follows is not traced */
    struct hec_state_piece pending;  /* empty: start == end */
};

/* One activity, with what is known of its process. */
struct hec_state_event {
    int64_t start_ns, end_ns, launch_ns, launch_end_ns;
    int lane;
    bool first;   /* of its process */
    bool in_loop; /* a step of a profiler's window has begun: nothing is start-up */
    bool kernel;
    bool trains;                           /* its process has steps of an optimizer: what it waits for is input */
    struct hec_host_thread *thread, *main; /* launched it; main of the process. NULL unknown */
    const struct hec_host_thread *sampled; /* has the stack samples of the process */
};

void hec_state_device_init(struct hec_state_device *d, int device, const struct hec_state_limits *limits,
                           const struct hec_state_visitor *visitor, struct hec_stacks *stacks);
void hec_state_device_free(struct hec_state_device *d);
/* from: where the first piece may begin. Advances the threads to the event's start. */
int hec_state_device_add(struct hec_state_device *d, const struct hec_state_event *event, int64_t from_ns);
/* No more activities. The threads have been advanced to the end. */
int hec_state_device_end(struct hec_state_device *d, int64_t end_ns);
