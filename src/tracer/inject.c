/* Where it begins: the driver calls InitializeInjection in cuInit, because CUDA_INJECTION64_PATH names this library. */
#include "tracer/tracer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT int InitializeInjection(void);
EXPORT void hec_trace_pause(void);
EXPORT void hec_trace_resume(void);
EXPORT void hec_trace_stand_down(const char *holder);
EXPORT void hec_trace_come_back(void);
EXPORT int hec_trace_records(void);
EXPORT void hec_trace_report(const struct hec_trace_reported *reported);

enum { STATE_NEW, STATE_STARTING, STATE_LIVE, STATE_OFF };
static int state;

bool hec_inject_live(void) {
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_LIVE;
}

void hec_inject_end(void) {
    __atomic_store_n(&state, STATE_OFF, __ATOMIC_RELEASE);
}

/* Everything of ours that another thread may hold is taken before a fork, in the order of tracer.h, and is free on both
 * sides afterwards. */
static void before_fork(void) {
    hec_thread_fork_prepare();
    hec_hold_fork_prepare();
    hec_got_fork_prepare();
    hec_out_fork_prepare();
    hec_clock_fork_prepare();
}

static void after_fork(void) {
    hec_clock_fork_parent();
    hec_out_fork_parent();
    hec_got_fork_parent();
    hec_hold_fork_parent();
    hec_thread_fork_parent();
}

/* In the child: no thread of ours is here, the ring is the parent's, and CUDA does not work either. Should the child call
 * cuInit with success, it begins anew. Shims and trampolines stay, and let everything through. */
static void in_child(void) {
    state = STATE_NEW;
    hec_callers_forget();
    hec_delay_forget();
    hec_thread_forget();
    hec_hold_forget();
    hec_attach_forget();
    hec_records_forget();
    hec_device_forget();
    hec_clock_forget();
    hec_buffers_forget();
    hec_intern_forget();
    hec_functions_forget();
    hec_got_fork_child();
    hec_out_forget();
}

static void at_exit(void) {
    if (hec_inject_live()) /* at the first of several calls */
        hec_thread_end();
}

/* Handlers run in reverse order: registered again now, ours comes before those that the driver registered in cuInit. */
void hec_inject_initialised(void) {
    atexit(at_exit);
}

static enum hec_trace_mode mode_of(const char *text) {
    if (!text || strcmp(text, "auto") == 0)
        return HEC_TRACE_AUTO;
    return strcmp(text, "full") == 0 ? HEC_TRACE_FULL : strcmp(text, "graph") == 0 ? HEC_TRACE_GRAPH : HEC_TRACE_OFF;
}

static char last_why[640]; /* of our own thread, and of the one that called cuInit before that began */

void hec_inject_introduce(void) {
    struct hec_tracer *t = &hec_tracer;
    if (t->attach != HEC_ATTACH_ON && !t->draining)
        t->attached_ns = 0; /* it records the device no more */
    hec_inject_report(last_why);
    hec_out_lock();
    hec_device_forget();
    hec_device_report();
    hec_out_unlock();
    hec_callers_define();
    hec_attach_begin_counts();
}

void hec_inject_report(const char *why) {
    if (why != last_why)
        snprintf(last_why, sizeof last_why, "%s", why);
    struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
    struct hec_trace_process *out = &hec_out_payload(&record)->process;
    const struct hec_library *library = &hec_tracer.library;
    hec_out_lock();
    out->abi = HEC_TRACE_ABI;
    out->mode = (uint32_t)hec_tracer.mode;
    out->cupti_version = library->version;
    out->driver_version = hec_device_driver_version();
    out->library = library->path[0] ? hec_intern_name(library->path) : 0;
    out->why = why[0] ? hec_intern_name(why) : 0;
    out->attached_ns = hec_tracer.attached_ns;
    out->flags = hec_tracer.calls ? HEC_TRACE_CALLS_SEEN : 0;
    hec_out_write(&record, HEC_TRACE_PROCESS);
    hec_out_unlock();
}

static uint64_t memory_of(const char *text) {
    char *end;
    unsigned long mb = text && text[0] ? strtoul(text, &end, 10) : 0;
    return (uint64_t)(mb > 0 && mb <= HEC_MEMORY_MB_MAX && !*end ? mb : HEC_MEMORY_MB_DEFAULT) << 20;
}

/* Runs inside cuInit, on a stack of the program's: CUPTI is left to our own thread. */
static bool start(void) {
    const char *socket = secure_getenv(HEC_TRACE_ENV_SOCKET), *no_cupti = secure_getenv(HEC_TRACE_ENV_NO_CUPTI);
    struct hec_tracer *t = &hec_tracer;
    t->mode = mode_of(secure_getenv(HEC_TRACE_ENV_MODE));
    t->memory_bytes = memory_of(secure_getenv(HEC_TRACE_ENV_MEMORY));
    t->no_cupti = no_cupti && no_cupti[0];
    t->graphs = t->mode == HEC_TRACE_GRAPH;
    t->begin_ns = t->reported_ns = hec_out_now_ns();
    if (!socket || !socket[0] || t->mode == HEC_TRACE_OFF)
        return false;
    static bool handlers; /* handlers are inherited by the child of a fork */
    if (!handlers && (pthread_atfork(before_fork, after_fork, in_child) != 0 || atexit(at_exit) != 0))
        return false;
    handlers = true;
    if (hec_intern_open() != 0)
        return false;
    hec_functions_open(); /* without it the kernels of launches have no names */
    if (hec_out_open(socket, secure_getenv(HEC_RING_ENV_JOB)) != 0) {
        hec_intern_forget();
        hec_functions_forget();
        return false;
    }
    __atomic_store_n(&state, STATE_LIVE, __ATOMIC_RELEASE);
    t->calls = hec_slots_open();
    hec_inject_report(t->no_cupti ? no_cupti : "");
    hec_callers_open();
    hec_callers_attach_first(t->calls && t->mode != HEC_TRACE_AUTO && !t->no_cupti);
    hec_callers_record(true);
    if (hec_thread_start() == 0) {
        hec_python_offer_hooks();
        return true;
    }
    hec_callers_record(false);
    hec_callers_attach_first(false);
    return false;
}

int InitializeInjection(void) {
    int expected = STATE_NEW;
    if (__atomic_compare_exchange_n(&state, &expected, STATE_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        !start())
        hec_inject_end();
    return 1;
}

/* ---- for benches, and for the Python hooks ---- */

/* CUPTI stays as it is: it is never switched on again. */
void hec_trace_pause(void) {
    if (!hec_inject_live() || !hec_hold_enter())
        return;
    hec_hold.paused++;
    hec_thread_record();
    hec_hold_leave();
}

void hec_trace_resume(void) {
    if (!hec_inject_live() || !hec_hold_enter())
        return;
    if (hec_hold.paused > 0)
        hec_hold.paused--;
    hec_thread_record();
    hec_hold_leave();
}

void hec_trace_stand_down(const char *holder) {
    if (!hec_inject_live() || !hec_hold_enter())
        return;
    hec_hold.named++;
    hec_hold_stand_down(holder, 0);
    hec_hold_leave();
}

void hec_trace_come_back(void) {
    if (!hec_inject_live() || !hec_hold_enter())
        return;
    if (hec_hold.named > 0)
        hec_hold.named--;
    /* they said so: no need to see whether it stays quiet */
    __atomic_store_n(&hec_hold.last_ns, hec_out_now_ns() - HEC_HOLD_QUIET_NS, __ATOMIC_RELAXED);
    hec_hold_leave();
    hec_thread_wake();
}

/* Asked often, by any thread: it takes no lock. */
int hec_trace_records(void) {
    return hec_inject_live() && __atomic_load_n(&hec_tracer.attach, __ATOMIC_RELAXED) == HEC_ATTACH_ON;
}

/* ---- for simulators ---- */

void hec_trace_report(const struct hec_trace_reported *reported) {
    if (hec_inject_live())
        hec_callers_reported(reported);
}
