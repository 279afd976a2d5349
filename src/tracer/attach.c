/* CUPTI in the program: switched on once, at most once off again, never finalised (docs/decisions/0006, 0010). */
#include "tracer/tracer.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct hec_tracer hec_tracer;

/* The order is torch.profiler's, for on and for off. Calls are not CUPTI's to record: each launch of PyTorch makes
 * several, at 0.1 to 0.3 us each (+52 % of a step of 1020 launches with them; H200, CUPTI 13.0). Whole graphs (51) must
 * be on before any graph exists: the next replay of an older one is a segmentation fault in libcupti (5 of 5). */
enum { WHOLE_GRAPHS = 1, NODES = 2, ALWAYS = 3 };
static const struct {
    uint32_t kind;
    int when;
    bool needed;
} kinds[] = {
    {HEC_CUPTI_GRAPH_TRACE, WHOLE_GRAPHS, false},
    {HEC_CUPTI_MEMCPY, ALWAYS, false},
    {HEC_CUPTI_MEMSET, ALWAYS, false},
    {HEC_CUPTI_MEMCPY2, ALWAYS, false},
    {HEC_CUPTI_CONCURRENT_KERNEL, ALWAYS, true},
};
#define KINDS (sizeof kinds / sizeof kinds[0])
/* So many launches without one kernel, copy or memset: CUPTI does not record the device. A queue holds 1 024. */
#define BLIND_LAUNCHES 2000u
/* What a call costs between a program's own work, in parts of what it does in a loop: 77 and 113 ns for 32
 * (bench/results/2026-11-28-h200x2-turns). */
#define COLD 3.0

static void sleep_ms(long ms) {
    struct timespec pause = {0, ms * 1000000};
    nanosleep(&pause, NULL);
}

static bool traced(size_t kind) {
    return kinds[kind].when & (hec_tracer.graphs ? WHOLE_GRAPHS : NODES);
}

static void disable(size_t count) {
    for (size_t i = 0; i < count; i++)
        if (traced(i))
            hec_tracer.library.calls.ActivityDisable(kinds[i].kind);
}

/* CUPTI's clock is the real-time one unless somebody registered another: then one pair says nothing of its rate. */
static void read_clock(const struct hec_cupti *cupti) {
    struct timespec real;
    uint64_t theirs = 0;
    hec_clock_read(cupti);
    clock_gettime(CLOCK_REALTIME, &real);
    if (cupti->GetTimestamp(&theirs) != HEC_CUPTI_SUCCESS)
        return;
    int64_t off = (int64_t)(theirs - ((uint64_t)real.tv_sec * (uint64_t)HEC_NS_PER_S + (uint64_t)real.tv_nsec));
    if (off > -HEC_NS_PER_S && off < HEC_NS_PER_S)
        return;
    sleep_ms(5);
    hec_clock_read(cupti);
}

/* ---- on ---- */

static uint32_t enable(const struct hec_cupti *cupti) {
    uint32_t result = cupti->ActivityRegisterCallbacks(hec_shim_requested, hec_shim_completed);
    if (result != HEC_CUPTI_SUCCESS)
        return result;
    __atomic_store_n(&hec_tracer.registered, true, __ATOMIC_RELEASE);
    __atomic_store_n(&hec_hold.serving, HEC_HOLD_US, __ATOMIC_RELEASE);
    read_clock(cupti);
    hec_callers_single(true); /* calls that lead to what is recorded leave one by one */
    for (size_t i = 0; i < KINDS; i++) {
        if (!traced(i))
            continue;
        result = cupti->ActivityEnable(kinds[i].kind);
        if (result != HEC_CUPTI_SUCCESS && kinds[i].needed) {
            disable(i);
            return result;
        }
    }
    return HEC_CUPTI_SUCCESS;
}

static void refused(uint32_t result, char *why, size_t why_bytes) {
    char text[80];
    hec_library_result(&hec_tracer.library.calls, result, text, sizeof text);
    snprintf(why, why_bytes, "%.200s answered %s", hec_tracer.library.path, text);
    if (result == HEC_CUPTI_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || result == HEC_CUPTI_NOT_COMPATIBLE ||
        result == HEC_CUPTI_HARDWARE_BUSY) {
        __atomic_store_n(&hec_hold.forever, true, __ATOMIC_RELEASE); /* they began before us: their end is not seen */
        hec_hold_stand_down("another user of CUPTI", result);
    }
}

bool hec_attach_on(bool whole) {
    struct hec_tracer *t = &hec_tracer;
    char why[640] = "", user[64];
    t->attach = HEC_ATTACH_QUIET; /* one try */
    if (!t->library.handle && hec_library_open(&t->library, why, sizeof why) != 0) {
        hec_inject_report(why);
        return false;
    }
    hec_shim_open(&t->library);
    if (hec_shim_early_user(user, sizeof user)) {
        __atomic_store_n(&hec_hold.forever, true, __ATOMIC_RELEASE); /* until it registers buffers through the shim */
        hec_hold_stand_down(user, 0);
        hec_inject_report("another user of CUPTI was there first");
        return false;
    }
    if (hec_buffers_open() != 0) {
        hec_inject_report("no memory for the buffers of CUPTI");
        return false;
    }
    t->open_ns = hec_out_now_ns();
    hec_out_lock();
    hec_lead_reset(t->open_ns);
    hec_out_unlock();
    uint32_t result = enable(&t->library.calls);
    if (result != HEC_CUPTI_SUCCESS) {
        hec_callers_single(false);
        refused(result, why, sizeof why);
        hec_inject_report(why);
        return false;
    }
    struct hec_callers_totals calls;
    hec_callers_read(&calls);
    t->open_kept = calls.launches + calls.copies;
    t->whole = whole;
    t->open_ns = t->flushed_ns = t->reported_ns = hec_out_now_ns();
    t->attached_ns = t->open_ns;
    t->attach = HEC_ATTACH_ON;
    hec_inject_report("");
    return true;
}

/* ---- while it is on ---- */

static uint64_t launched(void) {
    struct hec_callers_totals calls;
    hec_callers_read(&calls);
    return calls.launches + calls.copies - hec_tracer.open_kept;
}

bool hec_attach_blind(void) {
    return hec_records_totals().device == 0 && hec_tracer.fetched_launches >= BLIND_LAUNCHES;
}

bool hec_attach_full(void) {
    struct hec_records_totals totals = hec_records_totals();
    uint64_t kept = launched();
    if (totals.kept > kept)
        kept = totals.kept;
    return HEC_FIXED_BYTES + kept * HEC_KEPT_LAUNCH_BYTES >= hec_tracer.memory_bytes;
}

void hec_attach_flush(uint32_t flags) {
    const struct hec_cupti *cupti = &hec_tracer.library.calls;
    size_t dropped = 0;
    hec_tracer.flushed_ns = hec_out_now_ns();
    uint64_t count = launched(); /* before: of a thousand that were launched just now none may be done */
    bool more = hec_tracer.attach == HEC_ATTACH_ON && count != hec_tracer.fetched_launches;
    hec_tracer.fetched_launches = count;
    if (hec_buffers_out() == 0 && !more)
        return; /* nothing to fetch: nothing is asked */
    hec_clock_read(cupti);
    /* until the next gentle flush: CUPTI may return the buffers from a thread of its own, later */
    hec_records_forced(flags & HEC_CUPTI_FLUSH_FORCED);
    cupti->ActivityFlushAll(flags);
    if (cupti->ActivityGetNumDroppedRecords(NULL, 0, &dropped) == HEC_CUPTI_SUCCESS)
        hec_records_count_dropped(dropped);
}

static void report(bool open, int64_t end) {
    struct hec_records_totals totals = hec_records_totals();
    struct hec_ring_record record = {.flags = open ? HEC_TRACE_WINDOW_OPEN : 0};
    struct hec_trace_window *out = &hec_out_payload(&record)->window;
    hec_out_lock();
    /* a stream that began in the second half began late of its own */
    record.t_ns = hec_tracer.whole ? hec_tracer.open_ns
                                   : hec_lead_complete_ns(hec_tracer.open_ns + (end - hec_tracer.open_ns) / 2);
    out->duration_ns = end - record.t_ns;
    out->records = totals.device;
    out->self_ns = totals.self_ns;
    out->number = 1;
    out->mode = (uint32_t)hec_tracer.mode;
    if (out->duration_ns > 0 && !hec_attach_blind()) /* nothing is known of the device then: it was not idle */
        hec_out_write(&record, HEC_TRACE_WINDOW);
    hec_out_unlock();
}

void hec_attach_report(bool open) {
    report(open, open ? hec_out_now_ns() : hec_tracer.close_ns);
}

static uint64_t calls_before; /* hec_attach_begin_counts */

void hec_attach_begin_counts(void) {
    struct hec_callers_totals calls;
    hec_callers_read(&calls);
    calls_before = calls.calls;
    hec_tracer.begin_ns = hec_out_now_ns();
}

void hec_attach_report_counts(void) {
    struct hec_records_totals totals = hec_records_totals();
    struct hec_callers_totals calls;
    struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
    struct hec_trace_counts *out = &hec_out_payload(&record)->counts;
    int64_t elapsed_ns = record.t_ns - hec_tracer.begin_ns;
    hec_callers_read(&calls);
    out->dropped = totals.dropped;
    out->bad = totals.bad;
    out->threads_left_out = hec_callers_left_out();
    out->records = totals.device;
    out->self_ns = totals.self_ns;
    double ppm = elapsed_ns > 0 ? (double)(calls.calls - calls_before) * COLD * hec_tracer.cost_ps * 1e-3 /
                                      (double)elapsed_ns * 1e6
                                : 0;
    out->estimate_ppm = ppm > 1e6 ? 1000000 : (uint32_t)(ppm + 0.5);
    hec_out_lock();
    hec_out_write(&record, HEC_TRACE_COUNTS);
    hec_out_unlock();
    hec_tracer.reported_ns = record.t_ns;
}

/* ---- off ---- */

/* The last word on the window, once. */
static void report_closed(void) {
    hec_tracer.draining = false;
    hec_attach_report(false);
}

/* CUPTI returns them from a thread of its own. */
static void await_buffers(int most_ms) {
    for (int waited_ms = 0; hec_buffers_out() > 0 && waited_ms < most_ms; waited_ms++)
        sleep_ms(1);
}

void hec_attach_settle(void) {
    /* Gently first: what still runs on the device gets its end. */
    for (int waited_ms = 0; hec_buffers_out() > 0 && waited_ms < HEC_ATTACH_SETTLE_MS; waited_ms += 5) {
        hec_attach_flush(0);
        if (hec_buffers_out() > 0)
            sleep_ms(5);
    }
    hec_attach_flush(HEC_CUPTI_FLUSH_FORCED);
    await_buffers(20);
    if (hec_tracer.draining)
        report_closed();
}

void hec_attach_off(const char *why, bool settle) {
    hec_tracer.close_ns = hec_out_now_ns();
    disable(KINDS);
    hec_callers_single(false);
    hec_tracer.attach = HEC_ATTACH_QUIET;
    hec_tracer.draining = true;
    if (why)
        hec_inject_report(why);
    if (settle)
        hec_attach_settle();
    else
        hec_attach_drain(hec_tracer.close_ns);
}

void hec_attach_drain(int64_t now_ns) {
    hec_attach_flush(0);
    if (hec_buffers_out() == 0 || now_ns - hec_tracer.close_ns >= HEC_NS_PER_S)
        report_closed();
}

/* Kinds stay as they are: in an exit handler the driver may be half taken down, and cuptiActivityDisable is a
 * segmentation fault (CUPTI 13.0). A gentle flush only, and none where nothing is out: parcagpu asks no more in
 * production. */
void hec_attach_end(void) {
    if (hec_tracer.attach == HEC_ATTACH_ON) {
        hec_tracer.close_ns = hec_out_now_ns();
        hec_tracer.draining = true;
        /* In case that CUPTI does not come back in time: as far as its records have been fetched. A later one replaces
         * it. */
        report(true, hec_tracer.flushed_ns);
        hec_attach_flush(0);
        hec_tracer.attach = HEC_ATTACH_QUIET;
        await_buffers(20);
    }
    if (hec_tracer.draining)
        report_closed();
}

/* ---- at the program's first call ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool asked, answered;
} first = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

void hec_attach_await(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HEC_ATTACH_AWAIT_MS / 1000;
    pthread_mutex_lock(&first.lock);
    first.asked = true;
    hec_thread_wake();
    int waited = 0;
    while (!first.answered && waited == 0)
        waited = pthread_cond_timedwait(&first.done, &first.lock, &until);
    first.answered = true; /* or it took too long: nobody waits a second time */
    pthread_mutex_unlock(&first.lock);
    hec_callers_attach_first(false);
}

bool hec_attach_asked(void) {
    pthread_mutex_lock(&first.lock);
    bool asked = first.asked && !first.answered;
    pthread_mutex_unlock(&first.lock);
    return asked;
}

void hec_attach_answer(void) {
    hec_callers_attach_first(false);
    pthread_mutex_lock(&first.lock);
    first.answered = true;
    pthread_cond_broadcast(&first.done);
    pthread_mutex_unlock(&first.lock);
}

void hec_attach_forget(void) {
    memset(&hec_tracer, 0, sizeof hec_tracer);
    pthread_mutex_init(&first.lock, NULL);
    pthread_cond_init(&first.done, NULL);
    first.asked = first.answered = false;
    calls_before = 0;
}
