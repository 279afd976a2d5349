#include "tracer/callers.h"

#include "tracer/trampolines.h"
#include "tracer/tracer.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAUSE_NS 20000   /* rule 12 of diagnose/state.h: what separates launching from the program's own code */
#define APART_NS 500000  /* a burst ends here */
#define BLOCKED_NS 50000 /* a launch takes 2 to 10 us; one of so much waited for room in the queue */
#define BURST_NS (100 * HEC_NS_PER_MS)
#define STILL_NS (100 * HEC_NS_PER_MS)
#define GONE_NS (2 * HEC_NS_PER_S)
/* Median of so many measurements of 100 calls each: a thread that loses its core measures that. */
#define PROBES 21
#define PROBE_CALLS 100

/* On one page, in few lines: what each launch needs. */
static struct {
    bool recording, single, attach_first;
    struct limits {
        uint64_t pause, apart, blocked, burst; /* ticks */
    } limits;
    struct hec_caller callers[HEC_CALLERS_MAX];
} hot __attribute__((aligned(4096)));
static struct hec_caller probe;
static struct hec_caller nobody = {.tid = UINT32_MAX}; /* for threads that found no slot: asked once, counted once */
static uint32_t left_out;
static uint32_t names[HEC_TRAMPOLINES_MAX];

/* One pointer, in the room that the loader keeps for libraries that come late (TLSDESC): reading it allocates nothing. */
static __thread struct hec_caller *mine;

/* ---- slots ---- */

static struct hec_caller *adopt(uint32_t tid) {
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        uint32_t none = 0;
        if (__atomic_load_n(&hot.callers[i].tid, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&hot.callers[i].tid, &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            hot.callers[i].device_known = false;
            __atomic_store_n(&hot.callers[i].last_tick, hec_ticks_now(), __ATOMIC_RELAXED);
            return &hot.callers[i];
        }
    }
    __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
    return &nobody;
}

struct hec_caller *hec_caller_enter(void) {
    if (!__atomic_load_n(&hot.recording, __ATOMIC_ACQUIRE))
        return NULL;
    struct hec_caller *caller = mine;
    if (__builtin_expect(!caller || caller->tid == 0, 0))
        caller = mine = adopt((uint32_t)syscall(SYS_gettid));
    if (__builtin_expect(caller == &nobody, 0))
        return NULL;
    if (__builtin_expect(__atomic_load_n(&hot.attach_first, __ATOMIC_RELAXED), 0) && hec_trampolines_context())
        hec_attach_await();
    return caller;
}

static uint16_t device_of(struct hec_caller *caller) {
    if (__builtin_expect(!caller->device_known, 0)) {
        caller->device = hec_trampolines_device();
        caller->device_known = true;
    }
    return caller->device;
}

void hec_caller_moved(void *context) {
    if (!mine || (context && context == mine->context))
        return;
    mine->context = context;
    mine->device_known = false;
}

static bool take(struct hec_caller *caller) {
    return !__atomic_exchange_n(&caller->lock, 1, __ATOMIC_ACQUIRE);
}

static void give(struct hec_caller *caller) {
    __atomic_store_n(&caller->lock, 0, __ATOMIC_RELEASE);
}

/* The totals are read by the tracer's thread. */
static void add(uint64_t *total, uint64_t by) {
    __atomic_store_n(total, *total + by, __ATOMIC_RELAXED);
}

/* ---- records ---- */

static void write_burst(struct hec_caller *caller, uint64_t last_tick) {
    struct hec_caller_burst *burst = &caller->burst;
    struct hec_ring_record record = {.tid = caller->tid};
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
    hec_out_write(&record, HEC_TRACE_BURST);
    burst->launches = burst->graphs = 0;
}

static void write_call(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call) {
    struct hec_ring_record record = {.tid = caller->tid, .t_ns = hec_ticks_at_ns(begin)};
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

/* Ends the burst, unless the tracer's thread has it just now: then that sends it off. */
static void end_burst(struct hec_caller *caller) {
    if (take(caller)) {
        write_burst(caller, caller->last_tick);
        give(caller);
    }
}

static void ended(struct hec_caller *caller, uint64_t end) {
    __atomic_store_n(&caller->last_tick, end, __ATOMIC_RELAXED);
}

void hec_caller_leave(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call) {
    bool copies = call->call_class == HEC_TRACE_CALL_COPY;
    end_burst(caller);
    add(copies ? &caller->copies : &caller->others, 1);
    __atomic_store_n(&caller->waiting_since, 0, __ATOMIC_RELAXED);
    if (call->call_class == HEC_TRACE_CALL_SYNC || (copies && end - begin >= hot.limits.blocked))
        add(&caller->waited_ticks, end - begin);
    ended(caller, end);
    write_call(caller, begin, end, call);
}

/* A launch that waited for room in the queue, or each of them while device activity is traced. */
static void launched_alone(struct hec_caller *caller, uint64_t begin, uint64_t end,
                           const struct hec_caller_call *call) {
    if (end - begin >= hot.limits.blocked && call->call_class != HEC_TRACE_CALL_MEMSET)
        add(&caller->waited_ticks, end - begin);
    ended(caller, end);
    write_call(caller, begin, end, call);
}

void hec_caller_launched(struct hec_caller *caller, uint64_t begin, uint64_t end, const struct hec_caller_call *call) {
    struct hec_caller_burst *burst = &caller->burst;
    bool graph = call->call_class == HEC_TRACE_CALL_GRAPH;
    uint16_t device = device_of(caller);
    add(graph ? &caller->graphs : &caller->launches, 1);
    /* the tracer's thread has the burst just now: it sends it off */
    bool own = take(caller);
    if (!own || end - begin >= hot.limits.blocked || __atomic_load_n(&hot.single, __ATOMIC_RELAXED)) {
        if (own) {
            write_burst(caller, caller->last_tick);
            give(caller);
        }
        launched_alone(caller, begin, end, call);
        return;
    }
    uint64_t pause = burst->launches > 0 && begin > caller->last_tick ? begin - caller->last_tick : 0;
    if (burst->launches == 0 || pause >= hot.limits.apart || end - burst->first_tick >= hot.limits.burst ||
        device != burst->device) {
        write_burst(caller, caller->last_tick);
        *burst = (struct hec_caller_burst){.first_tick = begin, .device = device};
        pause = 0;
    }
    burst->launches++;
    burst->graphs += graph && burst->graphs < UINT16_MAX;
    burst->in_ticks += end - begin;
    burst->pause_ticks += pause >= hot.limits.pause ? pause : 0;
    ended(caller, end);
    give(caller);
}

/* ---- calls that a simulator tells of ---- */

static struct hec_caller *caller_of(uint32_t tid) {
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++)
        if (__atomic_load_n(&hot.callers[i].tid, __ATOMIC_RELAXED) == tid)
            return &hot.callers[i];
    return adopt(tid);
}

void hec_callers_told(const struct hec_trace_told *told) {
    struct hec_caller *caller = __atomic_load_n(&hot.recording, __ATOMIC_ACQUIRE) ? caller_of(told->tid) : NULL;
    if (!caller || caller == &nobody)
        return;
    if (__atomic_load_n(&hot.attach_first, __ATOMIC_RELAXED))
        hec_attach_await();
    hec_ticks_refine(); /* the times are exact */
    caller->device = told->device;
    caller->device_known = true;
    struct hec_caller_call call = {.amount = told->amount,
                                   .stream = told->stream,
                                   .function = hec_trampolines_row(told->function),
                                   .call_class = (enum hec_trace_call_class)told->call_class,
                                   .from = told->from,
                                   .to = told->to};
    uint64_t begin = hec_ticks_of(told->start_ns), end = hec_ticks_of(told->end_ns);
    bool launches = call.call_class == HEC_TRACE_CALL_LAUNCH || call.call_class == HEC_TRACE_CALL_GRAPH ||
                    call.call_class == HEC_TRACE_CALL_MEMSET;
    (launches ? hec_caller_launched : hec_caller_leave)(caller, begin, end, &call);
}

/* ---- for the tracer's thread ---- */

static uint64_t ticks_of(int64_t ns) {
    return (uint64_t)((double)ns / hec_ticks.ns_per_tick);
}

void hec_callers_open(void) {
    hec_ticks_open();
    hot.limits = (struct limits){ticks_of(PAUSE_NS), ticks_of(APART_NS), ticks_of(BLOCKED_NS), ticks_of(BURST_NS)};
    hec_out_lock();
    for (uint32_t i = 0; i < hec_trampolines_count(); i++)
        names[i] = hec_intern_name(hec_trampolines_name(i));
    hec_out_unlock();
}

void hec_callers_record(bool on) {
    __atomic_store_n(&hot.recording, on, __ATOMIC_RELEASE);
}

void hec_callers_single(bool on) {
    __atomic_store_n(&hot.single, on, __ATOMIC_RELAXED);
}

void hec_callers_attach_first(bool on) {
    __atomic_store_n(&hot.attach_first, on, __ATOMIC_RELAXED);
}

void hec_callers_read(struct hec_callers_totals *out) {
    uint64_t waited = 0, now = hec_ticks_now();
    *out = (struct hec_callers_totals){.t_ns = hec_ticks_clock_ns()};
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        const struct hec_caller *c = &hot.callers[i];
        uint64_t since = __atomic_load_n(&c->waiting_since, __ATOMIC_RELAXED);
        uint64_t launches = __atomic_load_n(&c->launches, __ATOMIC_RELAXED);
        uint64_t graphs = __atomic_load_n(&c->graphs, __ATOMIC_RELAXED);
        uint64_t copies = __atomic_load_n(&c->copies, __ATOMIC_RELAXED);
        out->calls += launches + graphs + copies + __atomic_load_n(&c->others, __ATOMIC_RELAXED);
        out->launches += launches;
        out->graphs += graphs;
        out->copies += copies;
        /* a thread that only waits holds up nobody who launches */
        if (launches + graphs > 0)
            waited += __atomic_load_n(&c->waited_ticks, __ATOMIC_RELAXED) + (since && now > since ? now - since : 0);
    }
    out->waited_ns = hec_ticks_ns(waited);
}

uint32_t hec_callers_tid(uint32_t i, uint64_t *calls) {
    const struct hec_caller *c = &hot.callers[i];
    *calls = __atomic_load_n(&c->launches, __ATOMIC_RELAXED) + __atomic_load_n(&c->graphs, __ATOMIC_RELAXED) +
             __atomic_load_n(&c->copies, __ATOMIC_RELAXED) + __atomic_load_n(&c->others, __ATOMIC_RELAXED);
    return __atomic_load_n(&hot.callers[i].tid, __ATOMIC_ACQUIRE);
}

/* Its totals stay: they are sums over the life of the process. A thread may have been cancelled in a wait, or where it had
 * the lock. */
static void release(struct hec_caller *caller) {
    if (syscall(SYS_tgkill, getpid(), caller->tid, 0) == 0 || errno != ESRCH)
        return;
    write_burst(caller, caller->last_tick);
    give(caller);
    __atomic_store_n(&caller->waiting_since, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&caller->tid, 0, __ATOMIC_RELEASE);
}

void hec_callers_sweep(bool all) {
    uint64_t now = hec_ticks_now();
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        struct hec_caller *c = &hot.callers[i];
        uint64_t last = __atomic_load_n(&c->last_tick, __ATOMIC_RELAXED);
        int64_t still_ns = now > last ? hec_ticks_ns(now - last) : 0;
        if (__atomic_load_n(&c->tid, __ATOMIC_ACQUIRE) == 0 || !(all || still_ns >= STILL_NS))
            continue;
        if (take(c)) {
            /* a call that has ended meanwhile may not be of the burst, whose end it would become: the next sweep knows */
            uint64_t seen = __atomic_load_n(&c->last_tick, __ATOMIC_RELAXED);
            if (all || seen == last)
                write_burst(c, seen);
            give(c);
        }
        if (still_ns >= GONE_NS)
            release(c);
    }
}

uint32_t hec_callers_left_out(void) {
    return __atomic_load_n(&left_out, __ATOMIC_RELAXED);
}

uint32_t hec_callers_cost_ps(void) {
    probe = (struct hec_caller){.tid = 1, .device_known = true};
    const struct hec_caller_call call = {.call_class = HEC_TRACE_CALL_LAUNCH};
    int64_t sorted_ns[PROBES] = {0};
    for (int n = 0; n < PROBES; n++) {
        int64_t begin_ns = hec_ticks_clock_ns();
        for (int i = 0; i < PROBE_CALLS; i++)
            hec_caller_launched(&probe, hec_ticks_now(), hec_ticks_now(), &call);
        int64_t took_ns = hec_ticks_clock_ns() - begin_ns;
        int at = n;
        for (; at > 0 && sorted_ns[at - 1] > took_ns; at--)
            sorted_ns[at] = sorted_ns[at - 1];
        sorted_ns[at] = took_ns;
    }
    return (uint32_t)(sorted_ns[PROBES / 2] * 1000 / PROBE_CALLS);
}

void hec_callers_forget(void) {
    hot.recording = hot.single = hot.attach_first = false;
    memset(hot.callers, 0, sizeof hot.callers);
    mine = NULL; /* of the one thread that is here */
    left_out = 0;
}
