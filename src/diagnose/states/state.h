/* What each device was doing at every instant: exactly one state (state.def), decided on the union over its streams and,
 * while it was idle, by what the host did. Streaming: memory grows with the number of threads and windows.
 *
 * A device is reported from the start of the run (0, or its first activity where that is earlier or the run's end is
 * not known) to the run's end (or its last activity). Busy, the first of these that holds:
 *   compute  a kernel that does not communicate, or a graph; its class is the first in kernel_class.def of those running
 *   comm     a communication kernel (kernel_class.def: NCCL's and custom all-reduce kernels)
 *   copy     a copy or a memset
 * A gap in which none of them holds ends with an activity: the *ender* (of several that start at once, the first as
 * given). The thread whose call launched it decides; where that is not known, the main thread of its process. What
 * holds for the main thread counts where the deciding thread does nothing that is known (the backward pass has a
 * thread of its own). At every instant of a gap, the first that holds:
 *   1 untraced    outside of the windows of a duty-cycled trace: unknown, traced = false. So is the gap at the start of a
 *                 window whose ender waited for more than 20 us after its launch: the device still ran what had been
 *                 launched before the window.
 *   2 startup     the ender is the first activity of its process, or of the device: nothing could be overlapped yet. Not
 *                 in the steps of a profiler's window: the program had begun before it
 *   3 tail        no ender: after the last activity. A phase "checkpoint" there is checkpoint: that one can be avoided. Where
 *                 telemetry says that the device works on, it is compute: a kernel that has not ended.
 *   4 launch or   the ender has been launched and its call has returned, but the device has not begun: the launch's own
 *     unknown     latency, launch; where that takes more than 20 us, it waits for something that no trace shows
 *   5 checkpoint, data   phases of that name: the program's own word goes before its calls
 *   6 alloc       a call that allocates or frees
 *   7 startup     a call that loads or compiles code
 *   8 launch      the ender's call is under way; startup where it launches a kernel and takes 1 ms or more: it loads the
 *                 kernel's code, which CUDA does at the first launch. A large graph takes 2 to 3 ms each time.
 *   9 sync        a synchronising call is under way, or a copying one that began while the device was busy
 *  10 launch      another copying or launching call is under way
 *  11 sync        the gap began while the thread was in a call of rule 9: until that call returns, and from there to the
 *                 thread's first launch after it where that takes less than 0.2 ms: the time to launch again
 *  12 launch      between two launches of the thread, less than 20 us from the end of one to the start of the next
 *  13 host        a thread is known: it runs the program's own code. Where its stack was sampled (stacks.def), startup while
 *                 it compiles, data while it asks a loader for input, requests while the thread that decides waits for
 *                 something to do; where a program trains, that is its input; peers while it is in a collective of the
 *                 host. So it is in the tail, but for data, and for launch while a framework's own code is on its way to
 *                 the next one, and sync while it waits for an array.
 *  14 unknown     nothing shows it
 * 0.2 ms: on an H100, PyTorch programs that read a number or synchronise launch again within 10 to 60 us; an operator of
 * PyTorch takes 10 to 100 us of Python and C++. What is longer is the program's own code.
 * 20 us: a launch costs about 2 to 9 us of a thread, in Python with its operator about 10; who launches faster than
 * that cannot be held up by much else. 1 ms: a hundred times that; the first launches of a PyTorch program take 2 ms to
 * seconds. */
#pragma once

#include "diagnose/limits.h"
#include "diagnose/timeline/steps.h"

enum hec_state {
#define HEC_STATE(id, name, idle) HEC_STATE_##id,
#include "diagnose/states/state.def"
    HEC_STATE_COUNT
};

const char *hec_state_name(enum hec_state state); /* "compute"; "?" out of range */
bool hec_state_idle(enum hec_state state);
/* Idle for what the launching thread does: launches, memory, waits, code. Where a model is sharded, part of it is for that. */
static inline bool hec_state_sharded(enum hec_state state) {
    return state == HEC_STATE_HOST || state == HEC_STATE_LAUNCH || state == HEC_STATE_ALLOC || state == HEC_STATE_SYNC;
}

/* What the program itself said of an instant; known outside of the windows too. */
enum hec_state_phase { HEC_STATE_PHASE_NONE, HEC_STATE_PHASE_DATA, HEC_STATE_PHASE_CHECKPOINT, HEC_STATE_PHASE_COUNT };

/* What a copy is; what a wait was for: the last that the thread had given the device before it; and what the thread was
 * about to give it while it launched or ran its own code. */
enum hec_state_wait {
    HEC_STATE_WAIT_OTHER,  /* kernels; copies of which it is not known what crosses the bus */
    HEC_STATE_WAIT_READ,   /* a few bytes to the host: a number that is read */
    HEC_STATE_WAIT_SMALL,  /* a copy of less than 64 KiB: calling takes as long as copying */
    HEC_STATE_WAIT_DATA,   /* a larger one */
    HEC_STATE_WAIT_WITHIN, /* COPY: within a device, or a memset. Nobody waits for it as for a copy */
    HEC_STATE_WAIT_COUNT
};

struct hec_activity;
/* Of a copy, or of a call that copies. */
enum hec_state_wait hec_state_wait_of(const struct hec_activity *copy);

struct hec_state_piece {
    int64_t start_ns, end_ns; /* start < end */
    uint32_t frame;           /* idle: of the last stack sample in the same gap; 0 none */
    uint8_t state;            /* enum hec_state */
    uint8_t kernel_class;     /* COMPUTE: enum hec_kernel_class; COMM: COMM; else OTHER */
    uint8_t wait;             /* COPY, SYNC, LAUNCH, HOST: enum hec_state_wait; else OTHER */
    uint8_t phase;            /* enum hec_state_phase; NONE where the device was traced throughout: it is not needed */
    /* Of the first of a gap: for how long the thread had been at what it did when the device ran dry: hidden by the device,
     * and so long it was late. In microseconds. */
    uint32_t hidden_us;
    bool traced; /* false: UNKNOWN, and the time may be extrapolated */
};

/* A stack sample that shows why the device was in a state, taken in traced time:
 *   idle  at an instant of it. Of SYNC those in the call that waited are `waiting`; and given besides are the samples in
 *         that call from before the device ran dry, since what comes after the call is not what waited.
 *   COPY  at an instant of it at which the thread was in a copying call (waiting is true) */
struct hec_state_sample {
    int64_t t_ns, period_ns; /* what it stands for */
    uint32_t frame;
    uint8_t state;
    bool waiting;
    int32_t pid; /* of program lines alone; else 0 */
};

/* Members may be NULL. They return 0 to go on; anything else stops all and is returned. */
struct hec_state_visitor {
    void *context;
    /* Of one device disjoint, ascending, without holes; devices alternate. Neighbours differ. */
    int (*piece)(void *context, int device, const struct hec_state_piece *piece);
    int (*sample)(void *context, int device, const struct hec_state_sample *sample);
    /* One while the device computes. */
    int (*beside)(void *context, int device, const struct hec_state_sample *sample);
    /* Whether telemetry shows that the device works on after the last activity, which ends then: it has begun something that
     * has not ended, or that no trace shows. Asked once, at the end. NULL: no. */
    bool (*works)(void *context, int device, int64_t from_ns);
};

struct hec_state_limits {
    int64_t close_ns; /* of rules 1, 4 and 12 */
    int64_t load_ns;  /* of rule 8 */
    int64_t brief_ns; /* of rule 11 */
};
#define HEC_STATE_LIMITS_DEFAULT                                                                                       \
    ((struct hec_state_limits){.close_ns = 20000, .load_ns = 1000000, .brief_ns = HEC_STATE_BRIEF_NS})

/* Fed by a pass (pass.h), which is to stay until the end. limits NULL: the default. A run without activities on devices has
 * no pieces. 0, HEC_ERR_NOMEM, or what the visitor returned. The end frees the states in any case. */
struct hec_pass;
struct hec_pass_consumer;
struct hec_states;
int hec_states_begin(const struct hec_pass *pass, const struct hec_state_limits *limits,
                     const struct hec_state_visitor *visitor, struct hec_states **out,
                     struct hec_pass_consumer *consumer);
int hec_states_end(struct hec_states *states);
void hec_states_abandon(struct hec_states *states); /* NULL is fine */
