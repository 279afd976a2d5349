#include "tracer/callers.h"

#include "tracer/trampolines.h"
#include "tracer/tracer.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAUSE_NS 20000  /* rule 12 of diagnose/states/state.h: what separates launching from the program's own code */
#define APART_NS 500000 /* a burst ends here */
#define BURST_NS (100 * HEC_NS_PER_MS)
#define STILL_NS (100 * HEC_NS_PER_MS)
#define GONE_NS (2 * HEC_NS_PER_S)
#define SEEN_NS HEC_NS_PER_MS /* a store is seen by all processors long before */
#define DRAWN_AMONG 64u       /* launches: those after a pause of the host come no more often than others */
/* Median of so many measurements of 100 calls each: a thread that loses its core measures that. */
#define PROBES 21
#define PROBE_CALLS 100

struct hec_callers_hot hec_callers_hot;
__thread struct hec_caller *hec_caller_mine;
static struct hec_caller probe;
static struct hec_caller nobody;        /* of threads that found no slot: asked once, counted once */
static uint64_t swept[HEC_CALLERS_MAX]; /* launches and graphs of a slot when its burst was last swept */
static uint64_t drew[HEC_CALLERS_MAX];  /* and when it was last asked to draw one */
static uint32_t left_out;
static uint32_t names[HEC_TRAMPOLINES_MAX];
static uint64_t graph_nodes; /* atomic: of the largest graph */

/* ---- slots ---- */

static struct hec_caller *adopt(uint32_t tid) {
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        uint32_t none = 0;
        if (hec_caller_tid(&hec_callers_hot.callers[i]) == 0 &&
            __atomic_compare_exchange_n(&hec_callers_hot.callers[i].tid, &none, tid, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            hec_callers_hot.callers[i].device = HEC_CALLER_DEVICE_ASK;
            __atomic_store_n(&hec_callers_hot.callers[i].last_tick, hec_ticks_now(), __ATOMIC_RELAXED);
            return &hec_callers_hot.callers[i];
        }
    }
    __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
    return &nobody;
}

/* A thread's first call, one that found no slot, or the first call of all where that asks for CUPTI. */
struct hec_caller *hec_caller_enter_rarely(void) {
    struct hec_caller *caller = hec_caller_mine;
    if (caller == &nobody)
        return NULL;
    if (!caller || hec_caller_tid(caller) == 0)
        caller = hec_caller_mine = adopt((uint32_t)syscall(SYS_gettid));
    if (caller == &nobody)
        return NULL;
    if (__atomic_load_n(&hec_callers_hot.attach_first, __ATOMIC_RELAXED) && hec_trampolines_context())
        hec_attach_await();
    return caller;
}

static uint16_t device_of(struct hec_caller *caller) {
    if (caller->device == HEC_CALLER_DEVICE_ASK)
        caller->device = hec_trampolines_device();
    return caller->device;
}

void hec_caller_moved(void *context) {
    if (!hec_caller_mine || (context && context == hec_caller_mine->context))
        return;
    hec_caller_mine->context = context;
    hec_caller_mine->device = HEC_CALLER_DEVICE_ASK;
}

void hec_callers_graph_made(size_t nodes) {
    uint64_t most = __atomic_load_n(&graph_nodes, __ATOMIC_RELAXED), count = nodes > 0 ? nodes : 1;
    while (count > most &&
           !__atomic_compare_exchange_n(&graph_nodes, &most, count, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* ---- whose the burst is ---- */

static void leave_burst(struct hec_caller *caller) {
    __atomic_store_n(&caller->busy, false, __ATOMIC_RELEASE);
}

/* For the calling thread; false: the tracer's has it just now, and sends it off, or wants more than `most`. */
static bool enter_burst(struct hec_caller *caller, enum hec_caller_taken most) {
    __atomic_store_n(&caller->busy, true, __ATOMIC_RELAXED);
    __atomic_signal_fence(
        __ATOMIC_SEQ_CST); /* the compiler keeps the order; the tracer's thread waits for the processor */
    if (__builtin_expect(__atomic_load_n(&caller->taken, __ATOMIC_ACQUIRE) <= most, 1))
        return true;
    leave_burst(caller);
    return false;
}

/* The totals are read by the tracer's thread. */
static void add_to_total(uint64_t *total, uint64_t by) {
    __atomic_store_n(total, *total + by, __ATOMIC_RELAXED);
}

/* ---- records ---- */

static void write_burst(struct hec_caller *caller, uint64_t last_tick) {
    struct hec_caller_burst *burst = &caller->burst;
    struct hec_ring_record record = {.tid = hec_caller_tid(caller)};
    struct hec_trace_burst *out = &hec_out_payload(&record)->burst;
    if (burst->launches == 0 || caller == &probe)
        return;
    record.t_ns = hec_ticks_at_ns(burst->first_tick);
    out->duration_ns = hec_ticks_ns(last_tick - burst->first_tick);
    out->in_calls_ns = hec_ticks_ns(burst->in_ticks);
    out->pauses_ns = hec_ticks_ns(burst->pause_ticks);
    out->launches = burst->launches;
    out->graphs = burst->graphs;
    out->device = burst->device;
    out->name = __atomic_exchange_n(&caller->name, 0, __ATOMIC_RELAXED);
    hec_out_write(&record, HEC_TRACE_BURST);
    burst->launches = burst->graphs = 0;
}

static void write_call(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call) {
    struct hec_ring_record record = {.tid = hec_caller_tid(caller), .t_ns = hec_ticks_at_ns(begin)};
    struct hec_trace_call *out = &hec_out_payload(&record)->call;
    if (caller == &probe)
        return;
    out->duration_ns = hec_ticks_ns(end - begin);
    out->amount = call->amount;
    out->stream = call->stream;
    out->function = names[call->function];
    out->call_class = (uint16_t)call->call_class;
    out->device = device_of(caller);
    out->result = call->result;
    out->from = call->from;
    out->to = call->to;
    out->domain = 1;
    hec_out_write(&record, HEC_TRACE_CALL);
}

/* ---- calls ---- */

static void end_burst(struct hec_caller *caller) {
    if (!enter_burst(caller, HEC_CALLER_DRAWS))
        return;
    write_burst(caller, caller->last_tick);
    leave_burst(caller);
}

static void ended(struct hec_caller *caller, uint64_t end) {
    __atomic_store_n(&caller->last_tick, end, __ATOMIC_RELAXED);
}

void hec_caller_leave(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call) {
    bool copies = call->call_class == HEC_TRACE_CALL_COPY;
    end_burst(caller);
    add_to_total(copies ? &caller->copies : &caller->others, 1);
    __atomic_store_n(&caller->waiting_since, 0, __ATOMIC_RELAXED);
    if (call->call_class == HEC_TRACE_CALL_SYNC || (copies && end - begin >= hec_callers_hot.limits.blocked)) {
        add_to_total(&caller->waited_ticks, end - begin);
        add_to_total(&caller->waits, 1);
    }
    ended(caller, end);
    write_call(caller, begin, end, call);
}

/* The calling thread has the burst. A launch that does not simply join it: it ends it and begins another, or is alone. */
static __attribute__((noinline, cold)) bool joined_rarely(struct hec_caller *caller, uint64_t begin, uint64_t end,
                                                          bool graph) {
    struct hec_caller_burst *burst = &caller->burst;
    bool alone =
        end - begin >= hec_callers_hot.limits.blocked || __atomic_load_n(&hec_callers_hot.single, __ATOMIC_RELAXED);
    write_burst(caller, caller->last_tick);
    if (!alone) {
        *burst = (struct hec_caller_burst){
            .first_tick = begin, .in_ticks = end - begin, .launches = 1, .graphs = graph, .device = device_of(caller)};
        ended(caller, end);
    }
    leave_burst(caller);
    return !alone;
}

/* The calling thread has the burst. */
static inline bool join(struct hec_caller *caller, uint64_t begin, uint64_t end, bool graph) {
    struct hec_caller_burst *burst = &caller->burst;
    uint64_t took = end - begin, pause = begin > caller->last_tick ? begin - caller->last_tick : 0;
    if (__builtin_expect(took >= hec_callers_hot.limits.blocked ||
                             __atomic_load_n(&hec_callers_hot.single, __ATOMIC_RELAXED) || burst->launches == 0 ||
                             pause >= hec_callers_hot.limits.apart || caller->device != burst->device ||
                             end - burst->first_tick >= hec_callers_hot.limits.burst,
                         0))
        return joined_rarely(caller, begin, end, graph);
    burst->launches++;
    burst->graphs += graph && burst->graphs < UINT16_MAX;
    burst->in_ticks += took;
    burst->pause_ticks += pause >= hec_callers_hot.limits.pause ? pause : 0;
    ended(caller, end);
    leave_burst(caller);
    return true;
}

bool hec_caller_joined(struct hec_caller *caller, uint64_t begin, uint64_t end, bool graph) {
    add_to_total(graph ? &caller->graphs : &caller->launches, 1);
    return __builtin_expect(enter_burst(caller, HEC_CALLER_FREE), 1) && join(caller, begin, end, graph);
}

/* Of a graph or a memset nothing is drawn. */
static void draw(struct hec_caller *caller, const struct hec_caller_call *call) {
    uint8_t draws = HEC_CALLER_DRAWS;
    uint32_t ahead = __atomic_load_n(&caller->ahead, __ATOMIC_RELAXED);
    if (ahead > 0) {
        __atomic_store_n(&caller->ahead, ahead - 1, __ATOMIC_RELAXED);
        return;
    }
    if (call->call_class == HEC_TRACE_CALL_LAUNCH)
        __atomic_store_n(&caller->drawn, call->amount, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&caller->taken, &draws, HEC_CALLER_FREE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void hec_caller_alone(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call) {
    if (__atomic_load_n(&caller->taken, __ATOMIC_ACQUIRE) == HEC_CALLER_DRAWS) {
        draw(caller, call);
        if (enter_burst(caller, HEC_CALLER_DRAWS) && join(caller, begin, end, call->call_class == HEC_TRACE_CALL_GRAPH))
            return;
    }
    if (end - begin >= hec_callers_hot.limits.blocked && call->call_class != HEC_TRACE_CALL_MEMSET)
        add_to_total(&caller->waited_ticks, end - begin);
    ended(caller, end);
    write_call(caller, begin, end, call);
}

/* ---- calls that a simulator reports ---- */

static struct hec_caller *caller_of(uint32_t tid) {
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++)
        if (hec_caller_tid(&hec_callers_hot.callers[i]) == tid)
            return &hec_callers_hot.callers[i];
    return adopt(tid);
}

void hec_callers_reported(const struct hec_trace_reported *reported) {
    struct hec_caller *caller =
        __atomic_load_n(&hec_callers_hot.recording, __ATOMIC_ACQUIRE) ? caller_of(reported->tid) : NULL;
    if (!caller || caller == &nobody)
        return;
    if (__atomic_load_n(&hec_callers_hot.attach_first, __ATOMIC_RELAXED))
        hec_attach_await();
    hec_ticks_refine(); /* the times are exact */
    caller->device = reported->device;
    if (reported->kernel)
        hec_functions_named(reported->amount, reported->kernel);
    struct hec_caller_call call = {.amount = reported->amount,
                                   .stream = reported->stream,
                                   .function = hec_trampolines_row(reported->function),
                                   .call_class = (enum hec_trace_call_class)reported->call_class,
                                   .from = reported->from,
                                   .to = reported->to};
    uint64_t begin = hec_ticks_of(reported->start_ns), end = hec_ticks_of(reported->end_ns);
    bool launches = call.call_class == HEC_TRACE_CALL_LAUNCH || call.call_class == HEC_TRACE_CALL_GRAPH ||
                    call.call_class == HEC_TRACE_CALL_MEMSET;
    if (!launches)
        hec_caller_leave(caller, begin, end, &call);
    else if (!hec_caller_joined(caller, begin, end, call.call_class == HEC_TRACE_CALL_GRAPH))
        hec_caller_alone(caller, begin, end, &call);
}

/* ---- for the tracer's thread ---- */

static uint64_t ticks_of(int64_t ns) {
    return (uint64_t)((double)ns / hec_ticks.ns_per_tick);
}

void hec_callers_open(void) {
    hec_ticks_open();
    hec_callers_hot.counter = hec_ticks.counter;
    hec_callers_hot.limits = (struct hec_callers_limits){ticks_of(PAUSE_NS), ticks_of(APART_NS),
                                                         ticks_of(HEC_TRACE_BLOCKED_NS), ticks_of(BURST_NS)};
    hec_callers_define();
}

void hec_callers_define(void) {
    hec_out_lock();
    for (uint32_t i = 0; i < hec_trampolines_count(); i++)
        names[i] = hec_intern_name(hec_trampolines_name(i));
    hec_out_unlock();
}

void hec_callers_record(bool on) {
    __atomic_store_n(&hec_callers_hot.recording, on, __ATOMIC_RELEASE);
}

void hec_callers_single(bool on) {
    __atomic_store_n(&hec_callers_hot.single, on, __ATOMIC_RELAXED);
}

void hec_callers_attach_first(bool on) {
    __atomic_store_n(&hec_callers_hot.attach_first, on, __ATOMIC_RELAXED);
}

void hec_callers_read(struct hec_callers_totals *out) {
    uint64_t waited = 0, now = hec_ticks_now();
    *out = (struct hec_callers_totals){.t_ns = hec_ticks_clock_ns()};
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        const struct hec_caller *c = &hec_callers_hot.callers[i];
        uint64_t since = __atomic_load_n(&c->waiting_since, __ATOMIC_RELAXED);
        uint64_t launches = __atomic_load_n(&c->launches, __ATOMIC_RELAXED);
        uint64_t graphs = __atomic_load_n(&c->graphs, __ATOMIC_RELAXED);
        uint64_t copies = __atomic_load_n(&c->copies, __ATOMIC_RELAXED);
        out->calls += launches + graphs + copies + __atomic_load_n(&c->others, __ATOMIC_RELAXED);
        out->launches += launches;
        out->graphs += graphs;
        out->copies += copies;
        out->waits += __atomic_load_n(&c->waits, __ATOMIC_RELAXED);
        /* a thread that only waits holds up nobody who launches */
        if (launches + graphs > 0)
            waited += __atomic_load_n(&c->waited_ticks, __ATOMIC_RELAXED) + (since && now > since ? now - since : 0);
    }
    out->waited_ns = hec_ticks_ns(waited);
    out->graph_nodes = __atomic_load_n(&graph_nodes, __ATOMIC_RELAXED);
}

uint32_t hec_callers_tid(uint32_t i, uint64_t *calls) {
    const struct hec_caller *c = &hec_callers_hot.callers[i];
    *calls = __atomic_load_n(&c->launches, __ATOMIC_RELAXED) + __atomic_load_n(&c->graphs, __ATOMIC_RELAXED) +
             __atomic_load_n(&c->copies, __ATOMIC_RELAXED) + __atomic_load_n(&c->others, __ATOMIC_RELAXED);
    return __atomic_load_n(&hec_callers_hot.callers[i].tid, __ATOMIC_ACQUIRE);
}

/* Its totals stay: they are sums over the life of the process. A thread may have been cancelled in a wait, or where it had
 * the burst. */
static void release(struct hec_caller *caller) {
    if (syscall(SYS_tgkill, getpid(), hec_caller_tid(caller), 0) == 0 || errno != ESRCH)
        return;
    write_burst(caller, caller->last_tick);
    leave_burst(caller);
    __atomic_store_n(&caller->waiting_since, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&caller->tid, 0, __ATOMIC_RELEASE);
}

/* Since the last call of a thread that has a slot; -1: it is not for the sweep. */
static int64_t still_ns(const struct hec_caller *c, uint64_t now, bool all) {
    uint64_t last = __atomic_load_n(&c->last_tick, __ATOMIC_RELAXED);
    int64_t ns = now > last ? hec_ticks_ns(now - last) : 0;
    return __atomic_load_n(&c->tid, __ATOMIC_ACQUIRE) != 0 && (all || ns >= STILL_NS) ? ns : -1;
}

static uint64_t launched(const struct hec_caller *c) {
    return __atomic_load_n(&c->launches, __ATOMIC_RELAXED) + __atomic_load_n(&c->graphs, __ATOMIC_RELAXED);
}

/* Waits only where a thread has launched since its burst was last swept: meanwhile a fork waits, too. */
void hec_callers_sweep(bool all) {
    uint64_t now = hec_ticks_now();
    bool any = false;
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        struct hec_caller *c = &hec_callers_hot.callers[i];
        if (launched(c) != swept[i] && still_ns(c, now, all) >= 0) {
            __atomic_store_n(&c->taken, HEC_CALLER_TAKEN, __ATOMIC_RELEASE);
            any = true;
        }
    }
    if (any)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = SEEN_NS}, NULL);
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        struct hec_caller *c = &hec_callers_hot.callers[i];
        uint64_t count = launched(c);
        int64_t still = still_ns(c, now, all);
        /* who is at the burst writes it; a call that has ended meanwhile may not be of it, whose end it would become */
        bool taken = __atomic_load_n(&c->taken, __ATOMIC_RELAXED) == HEC_CALLER_TAKEN;
        if (taken && still >= 0 && !__atomic_load_n(&c->busy, __ATOMIC_ACQUIRE)) {
            write_burst(c, __atomic_load_n(&c->last_tick, __ATOMIC_RELAXED));
            swept[i] = count;
        }
        if (taken)
            __atomic_store_n(&c->taken, HEC_CALLER_FREE, __ATOMIC_RELEASE);
        if (still >= GONE_NS)
            release(c);
    }
}

static void take_drawn(struct hec_caller *c) {
    uint64_t handle = __atomic_exchange_n(&c->drawn, 0, __ATOMIC_RELAXED);
    if (handle == 0)
        return;
    hec_out_lock();
    const char *name = hec_functions_name(handle);
    __atomic_store_n(&c->name, hec_intern_name(name && name[0] ? name : "?"), __ATOMIC_RELAXED);
    hec_out_unlock();
}

void hec_callers_draw(void) {
    static uint32_t random = 1;
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        struct hec_caller *c = &hec_callers_hot.callers[i];
        uint64_t count = launched(c);
        uint8_t nothing = HEC_CALLER_FREE;
        take_drawn(c);
        if (count == drew[i] || __atomic_load_n(&c->taken, __ATOMIC_RELAXED) != HEC_CALLER_FREE ||
            __atomic_load_n(&hec_callers_hot.single, __ATOMIC_RELAXED))
            continue;
        drew[i] = count;
        random = random * 1664525u + 1013904223u;
        __atomic_store_n(&c->ahead, (random >> 16) % DRAWN_AMONG, __ATOMIC_RELAXED);
        __atomic_compare_exchange_n(&c->taken, &nothing, HEC_CALLER_DRAWS, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

uint32_t hec_callers_left_out(void) {
    return __atomic_load_n(&left_out, __ATOMIC_RELAXED);
}

uint32_t hec_callers_cost_ps(void) {
    probe = (struct hec_caller){.tid = 1};
    int64_t sorted_ns[PROBES] = {0};
    for (int n = 0; n < PROBES; n++) {
        int64_t begin_ns = hec_ticks_clock_ns();
        for (int i = 0; i < PROBE_CALLS; i++)
            hec_caller_joined(&probe, hec_caller_now(), hec_caller_now(), false);
        int64_t took_ns = hec_ticks_clock_ns() - begin_ns;
        int at = n;
        for (; at > 0 && sorted_ns[at - 1] > took_ns; at--)
            sorted_ns[at] = sorted_ns[at - 1];
        sorted_ns[at] = took_ns;
    }
    return (uint32_t)(sorted_ns[PROBES / 2] * 1000 / PROBE_CALLS);
}

void hec_callers_forget(void) {
    hec_callers_hot.recording = hec_callers_hot.single = hec_callers_hot.attach_first = false;
    memset(hec_callers_hot.callers, 0, sizeof hec_callers_hot.callers);
    memset(swept, 0, sizeof swept);
    memset(drew, 0, sizeof drew);
    hec_caller_mine = NULL; /* of the one thread that is here */
    left_out = 0;
    graph_nodes = 0;
}
