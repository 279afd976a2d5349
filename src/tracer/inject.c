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

#define BUDGET_PPM_DEFAULT 10000u

enum { STATE_NEW, STATE_STARTING, STATE_LIVE, STATE_OFF };
static int state;

bool hec_inject_live(void) {
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_LIVE;
}

void hec_inject_end(void) {
    __atomic_store_n(&state, STATE_OFF, __ATOMIC_RELEASE);
}

/* In the child of a fork: no thread of ours is here, the ring is the parent's, and CUDA does not work either. Should the
 * child call cuInit with success, it begins anew. The shims stay, and let everything through. */
static void forked(void) {
    if (state == STATE_NEW)
        return;
    state = STATE_NEW;
    hec_thread_forget();
    hec_hold_forget();
    hec_window_forget();
    hec_launches_forget();
    hec_records_forget();
    hec_device_forget();
    hec_clock_forget();
    hec_buffers_forget();
    hec_intern_forget();
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

static uint32_t budget_of(const char *text) {
    char *end;
    unsigned long ppm = text && text[0] ? strtoul(text, &end, 10) : 0;
    return ppm > 0 && ppm <= 1000000 && !*end ? (uint32_t)ppm : BUDGET_PPM_DEFAULT;
}

void hec_inject_tell(const char *why) {
    struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
    struct hec_trace_process *out = &hec_out_payload(&record)->process;
    const struct hec_library *library = &hec_tracer.library;
    hec_out_lock();
    out->abi = HEC_TRACE_ABI;
    out->mode = (uint32_t)hec_tracer.mode;
    out->cupti_version = library->version;
    out->driver_version = library->driver_version;
    out->library = hec_intern_name(library->path);
    out->why = why[0] ? hec_intern_name(why) : 0;
    out->budget_ppm = hec_tracer.budget_ppm;
    hec_out_write(&record, HEC_TRACE_PROCESS);
    hec_out_unlock();
}

static bool open_cupti(char *why, size_t why_bytes) {
    struct hec_tracer *t = &hec_tracer;
    char name[64], text[80];
    if (hec_library_open(&t->library, why, why_bytes) != 0)
        return false;
    hec_inject_tell("");
    if (hec_buffers_open() != 0) {
        snprintf(why, why_bytes, "no memory for the buffers of CUPTI");
        return false;
    }
    hec_shim_open(&t->library);
    hec_hold_enter();
    uint32_t result = HEC_CUPTI_SUCCESS;
    t->starting = true;
    /* Attached, CUPTI slows each launch for good: not before it is known how many there are. */
    t->watching = t->mode == HEC_TRACE_AUTO && hec_launches_open();
    if (hec_shim_early_user(name, sizeof name)) {
        __atomic_store_n(&hec_hold.forever, true, __ATOMIC_RELEASE); /* until it registers buffers through the shim */
        hec_hold_stand_down(name, 0);
    } else if (!t->watching) {
        t->graphs = t->mode == HEC_TRACE_GRAPH; /* later is too late: see window.c */
        result = hec_window_open();
    }
    t->starting = false;
    hec_hold_leave();
    if (result == HEC_CUPTI_SUCCESS)
        return true;
    hec_bind_result(&t->library.calls, result, text, sizeof text);
    if (result == HEC_CUPTI_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || result == HEC_CUPTI_NOT_COMPATIBLE ||
        result == HEC_CUPTI_HARDWARE_BUSY) {
        hec_hold_enter();
        hec_hold_stand_down("another user of CUPTI", result);
        hec_hold_leave();
        return true;
    }
    snprintf(why, why_bytes, "%.200s answered %s", t->library.path, text);
    return false;
}

static bool start(void) {
    const char *socket = secure_getenv(HEC_TRACE_ENV_SOCKET);
    struct hec_tracer *t = &hec_tracer;
    char why[640] = "";
    t->mode = mode_of(secure_getenv(HEC_TRACE_ENV_MODE));
    t->budget_ppm = budget_of(secure_getenv(HEC_TRACE_ENV_BUDGET));
    if (!socket || !socket[0] || t->mode == HEC_TRACE_OFF)
        return false;
    static bool handlers; /* handlers are inherited by the child of a fork */
    if (!handlers && (pthread_atfork(NULL, NULL, forked) != 0 || atexit(at_exit) != 0))
        return false;
    handlers = true;
    if (hec_intern_open() != 0)
        return false;
    if (hec_out_open(socket) != 0) {
        hec_intern_forget();
        return false;
    }
    hec_duty_init(&t->duty, t->mode == HEC_TRACE_FULL ? 0 : t->budget_ppm);
    __atomic_store_n(&state, STATE_LIVE, __ATOMIC_RELEASE); /* CUPTI may call back from here on */
    bool traced = open_cupti(why, sizeof why);
    if (!traced)
        hec_inject_tell(why);
    if (!traced || hec_thread_start() != 0) {
        if (t->open) {
            hec_hold_enter();
            hec_window_close(true);
            hec_hold_leave();
        }
        return false;
    }
    return true;
}

int InitializeInjection(void) {
    int expected = STATE_NEW;
    if (__atomic_compare_exchange_n(&state, &expected, STATE_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        !start())
        hec_inject_end();
    return 1;
}

/* ---- for benches, and for the Python hooks ---- */

void hec_trace_pause(void) {
    if (!hec_inject_live() || !hec_hold_enter())
        return;
    if (hec_hold.paused++ == 0 && hec_tracer.open)
        hec_window_close(true);
    hec_hold_leave();
}

void hec_trace_resume(void) {
    if (!hec_inject_live() || !hec_hold_enter())
        return;
    if (hec_hold.paused > 0 && --hec_hold.paused == 0 && !hec_tracer.open)
        hec_thread_step(hec_out_now_ns());
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
