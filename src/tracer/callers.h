/* The threads that call the driver, and what they did there. A trampoline (trampolines.c) says when a call began and
 * ended; launches in quick succession are added up to bursts (base/trace.h), all else leaves as a record at once.
 *
 * A thread has a slot in a table of this library; no other memory is taken. Only its own thread changes a slot, but for
 * bursts that lie still, which the tracer's thread sends off. A launch uses no locked instruction for that, which would
 * wait for all stores before it. Instead each side says that it is there and looks for the other
 * (busy, taken), and the tracer's thread waits in between for longer than any store takes to be seen.
 *
 * A launch costs a program about 100 ns: a fifth to a half go with the two readings of the processor's counter, the rest with code and data
 * that the program has pushed out of the caches since the launch before. On which pages these lie, how its thread finds its slot, and what
 * else is recorded made no difference (bench/results/2026-11-28-h200x2-turns, bench/results/2026-11-28-h200-turns). */
#pragma once

#include "base/trace.h"
#include "tracer/ticks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Threads beyond these are not recorded; they are counted. */
#define HEC_CALLERS_MAX 256u
#define HEC_CALLER_DEVICE_ASK (HEC_TRACE_DEVICE_UNKNOWN - 1)

/* What the tracer's thread wants of a thread's launches. */
enum hec_caller_taken {
    HEC_CALLER_FREE,
    HEC_CALLER_DRAWS, /* one of the next, drawn at random: which kernel it is of */
    HEC_CALLER_TAKEN, /* the burst */
};

struct hec_caller {
    /* What a launch reads and writes is one line of the cache: between two launches the program uses all of it. */
    uint32_t tid;              /* 0: the slot is free */
    uint16_t device;           /* HEC_CALLER_DEVICE_ASK: not known since a context was made current */
    bool busy;                 /* its thread is at the burst */
    uint8_t taken;             /* enum hec_caller_taken */
    uint64_t last_tick;        /* when the last call ended */
    uint64_t launches, graphs; /* so far, memsets among launches */
    struct hec_caller_burst {
        uint64_t first_tick, in_ticks, pause_ticks;
        uint32_t launches; /* graphs among them; 0: no burst */
        uint16_t graphs;
        uint16_t device;
    } burst;
    uint64_t waiting_since;                       /* tick at which the call under way began to wait; 0: in none */
    uint64_t copies, others, waits, waited_ticks; /* so far */
    void *context;                                /* that the thread made current last; known with the device */
    uint64_t drawn; /* handle of the kernel whose launch was drawn at random; 0: none yet */
    uint32_t ahead; /* launches that go ahead of the one to be drawn */
    uint32_t name;  /* id of the name of the last one, for the next burst; 0: none */
} __attribute__((aligned(128)));
_Static_assert(offsetof(struct hec_caller, waiting_since) == 64, "a launch touches one line");

/* What all threads did so far. */
struct hec_callers_totals {
    int64_t t_ns;
    uint64_t calls, launches, graphs, copies;
    /* waiting for the device, waits under way included: synchronising calls, and launches and copies of 50 us and more */
    int64_t waited_ns;
    int64_t delay_ns; /* hec_delay_ns, read after the rest */
    uint64_t waits;   /* calls that return when the device has done what it was given: the next launch meets it idle */
    uint64_t
        graph_nodes; /* of the largest CUDA graph that was made or is being captured, at least 1; 0: there is none */
};

/* A call that has ended, as a trampoline reports it. */
struct hec_caller_call {
    uint64_t amount, stream;
    uint32_t function; /* row of trampolines.def */
    int32_t result;
    enum hec_trace_call_class call_class;
    uint8_t from, to;
};

/* On one page, in few lines: what each launch needs. */
struct hec_callers_hot {
    bool recording, single, attach_first;
    bool counter; /* of hec_ticks */
    struct hec_callers_limits {
        uint64_t pause, apart, blocked, burst; /* ticks */
    } limits;
    struct hec_caller callers[HEC_CALLERS_MAX];
} __attribute__((aligned(4096)));
extern struct hec_callers_hot hec_callers_hot;

/* One pointer, in the room that the loader keeps for libraries that come late (TLSDESC): reading it allocates nothing. */
extern __thread struct hec_caller *hec_caller_mine;

/* Whose slot it is; 0: nobody's. Others ask too, when they look for one that is free. */
static inline uint32_t hec_caller_tid(const struct hec_caller *caller) {
    return __atomic_load_n(&caller->tid, __ATOMIC_RELAXED);
}

struct hec_caller *hec_caller_enter_rarely(void);
/* The slot of the calling thread; NULL: nothing is recorded. */
static inline struct hec_caller *hec_caller_enter(void) {
    if (!__atomic_load_n(&hec_callers_hot.recording, __ATOMIC_ACQUIRE))
        return NULL;
    struct hec_caller *caller = hec_caller_mine;
    if (__builtin_expect(caller && hec_caller_tid(caller) != 0, 1) &&
        __builtin_expect(!__atomic_load_n(&hec_callers_hot.attach_first, __ATOMIC_RELAXED), 1))
        return caller;
    return hec_caller_enter_rarely();
}
static inline uint64_t hec_caller_now(void) {
#if defined(__x86_64__)
    if (__builtin_expect(hec_callers_hot.counter, 1))
        return __rdtsc();
#endif
    return hec_ticks_now();
}

/* A launch that returned joins the burst. False: it is none for a burst, and goes to hec_caller_alone. */
bool hec_caller_joined(struct hec_caller *caller, uint64_t begin, uint64_t end, bool graph);
/* A launch that waited for room in the queue, or each of them while device activity is traced. */
void hec_caller_alone(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call);
/* Any other call that returned. */
void hec_caller_leave(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call);
/* A call that only its reporter saw (base/trace.h). */
void hec_callers_reported(const struct hec_trace_reported *reported);
/* More than any graph has: what is asked of a graph's size holds for none whose size is not known. */
#define HEC_GRAPH_NODES_UNKNOWN ((size_t)1 << 40)
/* A CUDA graph of so many nodes was made or is being captured (0), by any thread. */
void hec_callers_graph_made(size_t nodes);
/* The calling thread made this context current; NULL: which one is not known. */
void hec_caller_moved(void *context);

/* ---- for the tracer's thread ---- */

void hec_callers_open(void);
/* Defines the names of all trampolines in the ring. */
void hec_callers_define(void);
void hec_callers_record(bool on);
/* Each launch as a record of its own, while device activity is traced. */
void hec_callers_single(bool on);
/* The first call with a context asks for CUPTI (hec_attach_await). */
void hec_callers_attach_first(bool on);
void hec_callers_read(struct hec_callers_totals *out);
/* Send off bursts that lie still for 100 ms (all: every one), and free the slots of threads that are no more. */
void hec_callers_sweep(bool all);
/* Have threads that launch draw a launch at random, and take what they drew last. */
void hec_callers_draw(void);
/* The thread in slot i, and its calls so far; 0: none. */
uint32_t hec_callers_tid(uint32_t i, uint64_t *calls);
/* Threads that found no slot. */
uint32_t hec_callers_left_out(void);
/* What timing a call costs it, ps: measured here and now, on a slot of no thread. */
uint32_t hec_callers_cost_ps(void);
/* In the child of a fork. */
void hec_callers_forget(void);
