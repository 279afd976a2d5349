/* The schedule of a stretch of a run: every call that host threads made of the driver, what it launched, and what it waited
 * for; made from a trace in which the device was seen (docs/replay.md). Plain data, in the order of the calls' begin.
 *
 * What depends on what is read from the recording:
 *   a call        begins so long after the last call of its process that had returned (of any thread: where threads take turns,
 *                 as PyTorch's main thread and its backward thread do, one goes on after the other)
 *   an operation  of a device begins after the one before it on its stream, and after its call
 *                 and after one of another stream, where it started late and just when that had ended
 *   a wait        (a synchronisation, a copy that blocks, a launch into a full queue, a free) returns after the last operation that
 *                 had ended when it did; a long copy from pageable memory shortly before its own ends
 *   a collective  ends when the last of its processes has begun and the data went round: as long as it took the last one
 * Where the devices are as much behind at the end of the stretch as they were when it began, the time until its first operation is
 * that of earlier ones (`lag_ns`): a replay leaves it out.
 * Memory: 64 bytes a call. */
#pragma once

#include "diagnose/timeline/pass.h"

#define HEC_SCHEDULE_CALLS_MAX (10u << 20)
#define HEC_SCHEDULE_NONE UINT32_MAX

enum hec_call_kind {
    HEC_CALL_KERNEL, /* launches one; a graph is one too where its nodes were not recorded */
    HEC_CALL_COPY,
    HEC_CALL_MEMSET,
    HEC_CALL_WAIT,  /* launches nothing, from here on */
    HEC_CALL_ALLOC, /* or freed */
    HEC_CALL_OTHER,
    HEC_CALL_KINDS
};

#define HEC_CALL_WAITED 1u /* its return waited for `awaits`: that ended while it lasted */
#define HEC_CALL_GUESSED                                                                                               \
    2u /* nobody recorded the call: it is put so long before what it launched as calls usually are */
#define HEC_CALL_GRAPHED 4u /* a node of a graph */
#define HEC_CALL_COLLECTIVE                                                                                            \
    8u /* communicates with an operation of each of several other processes: `what` is the group */
#define HEC_CALL_IN_CHECKPOINT 16u /* it was made in the phase "checkpoint" */
#define HEC_CALL_EVENT 128u        /* HEC_CALL_WAITED too: what its operation comes after is in `events` */
#define HEC_CALL_GRAPH 64u         /* it launches a graph; what it launched is the first of the nodes */
#define HEC_CALL_RARE 32u /* it returned so late after what it waited for as few do: no usual delay stands for that */

struct hec_schedule_call {
    int64_t begin_ns, end_ns;    /* of the call */
    int64_t start_ns, finish_ns; /* of what it launched; HEC_TIME_UNKNOWN: nothing */
    uint32_t after;              /* the call whose end it follows; HEC_SCHEDULE_NONE: none, it is one of the first */
    uint32_t behind;             /* the call whose operation is before its own on the stream; NONE */
    uint32_t
        awaits;    /* the call whose operation its return comes after (where its own does not wait: the start of what it
                                    launched, an event between streams); NONE */
    uint32_t what; /* KERNEL: id of the kernel, or of the group; COPY: KiB, rounded up */
    uint32_t data_ns;       /* of the time between `after` and it: in the phase "data" */
    uint32_t checkpoint_ns; /* in the phase "checkpoint", and in no "data" */
    uint16_t stream;        /* of the schedule: 0 to stream_count - 1 */
    uint8_t process;        /* of the schedule */
    uint8_t kind, flags;
    uint8_t from, to;     /* COPY: enum hec_memory_kind */
    uint8_t kernel_class; /* KERNEL: enum hec_kernel_class */
};
_Static_assert(sizeof(struct hec_schedule_call) == 64, "kept in arrays of millions");

/* What is alike enough for a usual delay: a copy from pageable memory goes by way of a buffer, and by parts. */
enum hec_call_shape {
    HEC_SHAPE_KERNEL,
    HEC_SHAPE_GRAPH, /* its first node */
    HEC_SHAPE_PAGEABLE,
    HEC_SHAPE_COPY,
    HEC_SHAPE_WAIT,
    HEC_SHAPE_OTHER,
    HEC_CALL_SHAPES
};

static inline enum hec_call_shape hec_call_shape(const struct hec_schedule_call *c) {
    if (c->flags & HEC_CALL_GRAPH)
        return HEC_SHAPE_GRAPH;
    switch (c->kind) {
    case HEC_CALL_KERNEL:
    case HEC_CALL_MEMSET:
        return HEC_SHAPE_KERNEL;
    case HEC_CALL_COPY:
        return c->from == HEC_MEMORY_PAGEABLE ? HEC_SHAPE_PAGEABLE : HEC_SHAPE_COPY;
    case HEC_CALL_WAIT:
        return HEC_SHAPE_WAIT;
    default:
        return HEC_SHAPE_OTHER;
    }
}

/* Usual delays of calls of one shape. */
struct hec_schedule_usual {
    int64_t launch_ns; /* from the begin of a call to the start of what it launched, on a device that waits */
    int64_t gap_ns;    /* from the operation before, on a stream that is never empty */
    int64_t wake_ns;   /* from the end of an operation to the return of who waits for it */
    int64_t call_ns;   /* the call, where it is short */
    int64_t code_ns;   /* of the program, from a launch to this one, where it is brief; INT64_MAX: not known */
};

struct hec_schedule_stream {
    int32_t pid, device;
    uint32_t track;
};

/* What a process's work would have to be times for all that communicate to have the same, and to have no more than is usual. */
struct hec_schedule_even {
    double code, operation; /* of the host, of its device */
    double usual_code;      /* of the host: as much as the others; at most 1 */
};

/* Of a process in the collectives that were matched. Its device waits from its own start until the last process has begun, unless it has
 * other work meanwhile. */
struct hec_schedule_waits {
    int64_t waited_ns; /* for others */
    int64_t lost_ns;   /* of that, what its host would not have taken anyway */
    int64_t held_ns;   /* that others waited for it, each of them counted */
    int64_t last;      /* times it came last */
    int64_t count;     /* collectives */
};

/* The call whose operation that of `at` comes after, between streams. */
struct hec_schedule_event {
    uint32_t at, awaits;
};

struct hec_schedule_kernel {
    double fill;                 /* its blocks over those that the device holds at once; NAN: unknown */
    double share;                /* over its multiprocessors; NAN: unknown */
    uint64_t name, communicator; /* hashes; of its name without the communicator's, and of that. 0: not known */
};

struct hec_schedule_group {
    uint8_t size;     /* processes */
    double share;     /* of its kernel */
    int64_t least_ns; /* that it took one of them: the others waited */
};

struct hec_schedule {
    struct hec_schedule_call *calls; /* malloc'ed, as the others */
    size_t count, reach;             /* reach: no call refers to one more than so many before it */
    struct hec_schedule_stream *streams;
    size_t stream_count;
    int32_t pid[256]; /* of processes; those after the 255th are left out */
    int process_count;
    uint32_t first_call[256];          /* of each process, where there are collectives; count: none */
    uint32_t *following;               /* by call: the next of its process; count: none. NULL without collectives */
    struct hec_schedule_event *events; /* of calls with HEC_CALL_EVENT, in their order */
    size_t event_count;
    struct hec_schedule_group *groups; /* collectives */
    size_t group_count;
    size_t communication, alone; /* kernels; of them those whose counterparts of other processes were not recorded */
    struct hec_schedule_waits waits[256]; /* of each process, in its collectives */
    int64_t met_from_ns, met_to_ns;       /* from the begin of the first collective to the end of the last */
    int64_t transfer_ns;                  /* of all collectives: from the last begin to the end */
    int64_t collective_host_ns;           /* what the calls of all their kernels take, and the brief code before each */
    struct hec_schedule_even even[256];   /* of each process; 1: it is in no collective */
    int64_t from_ns, to_ns;               /* the stretch: calls that begin in it */
    int64_t lag_ns;          /* that devices were behind their hosts when it began, and were so at its end too */
    int64_t behind_until_ns; /* where they were: when the first of its operations began; else INT64_MIN */
    int64_t steps; /* in it; 0: no steps are known, and the stretch is all that was traced of the steady part */
    int64_t step_from_ns,
        step_to_ns; /* of these the one whose length is nearest to their mean; the stretch, where there are none */
    struct hec_schedule_usual usual[HEC_CALL_SHAPES];
    struct hec_schedule_kernel *kernels; /* by `what` */
    size_t kernel_count;
    double
        graph_left; /* of the launch of a graph where CUPTI does not record its nodes: by those outside of windows. 1: not known */
    double untraced; /* how long the stretch takes there, by what it took (cadence.h); NAN: not known */
    int64_t guessed; /* operations whose call is not known */
    bool cut;        /* the stretch ends early: the trace has more than HEC_SCHEDULE_CALLS_MAX or `most` calls */
};

/* Of communication, without a counterpart. Two ranks on two H100 with full traces: 6.5 %, 28 % proven of a step and 26 replayed; two
 * whose glimpses began 84 ms apart: 7.0 %, 31 and 7. */
#define HEC_SCHEDULE_ALONE 0.067

/* Whether its processes were recorded at different times. */
static inline bool hec_schedule_apart(const struct hec_schedule *schedule) {
    return schedule->group_count > 0 && (double)schedule->alone > HEC_SCHEDULE_ALONE * (double)schedule->communication;
}

struct hec_schedule_builder;

/* A consumer of the pass. most: calls; the stretch is the steady part of the steps to go by, as far as it was traced. */
int hec_schedule_begin(const struct hec_pass *pass, size_t most, struct hec_schedule_builder **out,
                       struct hec_pass_consumer *consumer);
/* found: of a run without steps, those found in the sequence of its kernels; their steady part is the stretch then. NULL or empty: there
 * are none. 0; HEC_ERR_NOTFOUND: the device was not seen in the steady part, and *out is empty; HEC_ERR_NOMEM. Frees the builder. */
struct hec_step_list;
int hec_schedule_end(struct hec_schedule_builder *builder, const struct hec_step_list *found, hec_together together,
                     struct hec_schedule *out);
void hec_schedule_abandon(struct hec_schedule_builder *builder); /* NULL is fine */
void hec_schedule_free(struct hec_schedule *schedule);
/* NAN where it is not known. */
struct hec_schedule_kernel hec_schedule_kernel(const struct hec_schedule *schedule, uint32_t kernel);
/* Of a call with HEC_CALL_EVENT. */
uint32_t hec_schedule_event_at(const struct hec_schedule *schedule, size_t at);
/* The call whose operation, on another stream, that of a call comes after; HEC_SCHEDULE_NONE. */
static inline uint32_t hec_schedule_event(const struct hec_schedule *schedule, size_t at) {
    const struct hec_schedule_call *call = &schedule->calls[at];
    return !(call->flags & HEC_CALL_WAITED) ? call->awaits
           : call->flags & HEC_CALL_EVENT   ? hec_schedule_event_at(schedule, at)
                                            : HEC_SCHEDULE_NONE;
}
