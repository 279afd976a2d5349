/* Windows of tracing.
 *
 * Attached and idle, CUPTI costs a launch-bound PyTorch program 0.3 to 0.65 us of each 4.7 us launch, and only cuptiFinalize
 * takes that away (H200, CUPTI 13.0). It is not called, for it ends programs: from the tracer's thread it corrupted the
 * heap of a PyTorch program in 2 of about 110 cycles, in the exit callback of an API call it crashed in 4 of 5 runs, and a
 * CUDA graph that was replayed at the wrong moment fails later (docs/decisions/0006). */
#include "tracer/tracer.h"

#include <time.h>

struct hec_tracer hec_tracer;

/* Whole graphs (51) are for good: enabled while graphs exist that were instantiated without it, their next replay is a
 * segmentation fault in libcupti (5 of 5). Inside cuInit there are none. */
enum { WHOLE_GRAPHS = 1, NODES = 2, ALWAYS = 3 };
/* The order is torch.profiler's, for on and for off. Switched while a thread launches, CUPTI 13.0 can end up recording the
 * calls and no kernel until it is switched again: about half of the windows of a launch-bound PyTorch program with the
 * calls (5, 4) on before the kernels (10) or off after them, one in four in this order with every buffer taken back
 * between windows. hec_window_blind watches over it. Single calls are not left out (cuptiActivityEnableRuntimeApi): where a
 * thread was in a call just then, all its later records had one correlation id (1 program in 50), and torch.profiler, when
 * its turn came, ended the program over it. */
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
    {HEC_CUPTI_MARKER, ALWAYS, false},
    {HEC_CUPTI_RUNTIME, ALWAYS, false},
    {HEC_CUPTI_DRIVER, ALWAYS, false},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static void sleep_ms(long ms) {
    struct timespec pause = {0, ms * 1000000};
    nanosleep(&pause, NULL);
}

static void disable(size_t count) {
    for (size_t i = 0; i < count; i++)
        if (kinds[i].when & (hec_tracer.graphs ? WHOLE_GRAPHS : NODES))
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

/* So many launches without one kernel, copy or memset: CUPTI records the calls and not the device. */
#define BLIND_LAUNCHES 200u

bool hec_window_blind(void) {
    struct hec_records_totals totals = hec_records_totals();
    return totals.device == hec_tracer.open_records &&
           totals.launches[0] + totals.launches[1] - hec_tracer.open_launches >= BLIND_LAUNCHES;
}

/* The last word on a window, once. */
static void tell_closed(void) {
    hec_tracer.draining = false;
    hec_window_tell(false);
}

uint32_t hec_window_open(void) {
    const struct hec_cupti *cupti = &hec_tracer.library.calls;
    uint32_t result;
    if (hec_tracer.draining)
        tell_closed();
    if (!__atomic_load_n(&hec_tracer.registered, __ATOMIC_ACQUIRE)) {
        hec_calls_open(cupti);
        result = cupti->ActivityRegisterCallbacks(hec_shim_requested, hec_shim_completed);
        if (result != HEC_CUPTI_SUCCESS)
            return result;
        __atomic_store_n(&hec_tracer.registered, true, __ATOMIC_RELEASE);
        hec_tracer.early |= hec_tracer.starting;
    }
    __atomic_store_n(&hec_hold.serving, HEC_HOLD_US, __ATOMIC_RELEASE);
    /* ids of threads as everybody else knows them; changed only while nothing is on, and given back (see settle) */
    if (!hec_tracer.type_set && cupti->SetThreadIdType && cupti->GetThreadIdType &&
        cupti->GetThreadIdType(&hec_tracer.theirs_type) == HEC_CUPTI_SUCCESS)
        hec_tracer.type_set = cupti->SetThreadIdType(HEC_CUPTI_THREAD_ID_SYSTEM) == HEC_CUPTI_SUCCESS;
    read_clock(cupti);
    hec_tracer.open_ns = hec_out_now_ns();
    hec_out_lock();
    hec_lead_reset(hec_tracer.open_ns);
    hec_out_unlock();
    for (size_t i = 0; i < KINDS; i++) {
        if (!(kinds[i].when & (hec_tracer.graphs ? WHOLE_GRAPHS : NODES)))
            continue;
        result = cupti->ActivityEnable(kinds[i].kind);
        if (result != HEC_CUPTI_SUCCESS && kinds[i].needed) {
            disable(i);
            return result;
        }
    }
    hec_window_charge();
    struct hec_records_totals totals = hec_records_totals();
    hec_tracer.open_launches = totals.launches[0] + totals.launches[1];
    hec_tracer.open_records = totals.device;
    hec_tracer.open_self_ns = totals.self_ns;
    hec_tracer.open_ns = hec_out_now_ns();
    hec_tracer.first = hec_tracer.number == 0 && hec_tracer.starting;
    hec_tracer.number++;
    hec_tracer.open = true;
    hec_tracer.flushed_ns = hec_tracer.told_ns = hec_tracer.open_ns;
    hec_duty_opened(&hec_tracer.duty);
    return HEC_CUPTI_SUCCESS;
}

void hec_window_charge(void) {
    struct hec_records_totals now = hec_records_totals(), *then = &hec_tracer.charged;
    struct hec_duty_work work = {
        .nodes = now.nodes - then->nodes,
        .launched = now.device - then->device - (now.nodes - then->nodes),
        .queued = now.queued - then->queued,
        .calls = now.api - then->api + now.filtered - then->filtered,
    };
    hec_duty_work(&hec_tracer.duty, &work);
    hec_tracer.kept_bytes += work.launched * HEC_KEPT_LAUNCH_BYTES; /* copies count too: at most so much */
    *then = now;
}

void hec_window_flush(uint32_t flags) {
    const struct hec_cupti *cupti = &hec_tracer.library.calls;
    size_t dropped = 0;
    hec_clock_read(cupti);
    /* until the next gentle flush: CUPTI may return the buffers from a thread of its own, later */
    hec_records_forced(flags & HEC_CUPTI_FLUSH_FORCED);
    cupti->ActivityFlushAll(flags);
    if (cupti->ActivityGetNumDroppedRecords(NULL, 0, &dropped) == HEC_CUPTI_SUCCESS)
        hec_records_count_dropped(dropped);
    hec_duty_spend(&hec_tracer.duty, hec_duty_costs.flush_ns);
    hec_window_charge();
    hec_tracer.flushed_ns = hec_out_now_ns();
}

static void tell(bool open, int64_t end) {
    struct hec_records_totals totals = hec_records_totals();
    struct hec_ring_record record = {.flags = open ? HEC_TRACE_WINDOW_OPEN : 0};
    struct hec_trace_window *out = &hec_out_payload(&record)->window;
    hec_out_lock();
    /* of a window of which half would be cut off, the streams that began late began late of their own */
    record.t_ns = hec_tracer.first ? hec_tracer.open_ns
                                   : hec_lead_complete_ns(hec_tracer.open_ns + (end - hec_tracer.open_ns) / 2);
    out->duration_ns = end - record.t_ns;
    out->records = totals.device - hec_tracer.open_records;
    out->self_ns = totals.self_ns - hec_tracer.open_self_ns;
    out->number = hec_tracer.number;
    out->mode = (uint32_t)hec_tracer.mode;
    if (out->duration_ns > 0 && !hec_window_blind()) /* nothing is known of the device then: it was not idle */
        hec_out_write(&record, HEC_TRACE_WINDOW);
    hec_out_unlock();
}

void hec_window_tell(bool open) {
    tell(open, open ? hec_out_now_ns() : hec_tracer.close_ns);
}

void hec_window_tell_counts(void) {
    struct hec_records_totals totals = hec_records_totals();
    struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
    struct hec_trace_counts *out = &hec_out_payload(&record)->counts;
    int64_t elapsed_ms = hec_tracer.duty.elapsed_ns / HEC_NS_PER_MS;
    out->dropped = totals.dropped;
    out->bad = totals.bad;
    out->records = totals.device + totals.api + totals.sync + totals.other;
    out->self_ns = totals.self_ns;
    out->estimate_ppm = hec_duty_estimate_ppm(&hec_tracer.duty);
    out->elapsed_ms = elapsed_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)elapsed_ms;
    hec_out_lock();
    hec_out_write(&record, HEC_TRACE_COUNTS);
    hec_out_unlock();
    hec_tracer.told_ns = hec_out_now_ns();
}

/* CUPTI returns them from a thread of its own. */
static void await_buffers(void) {
    for (int waited_ms = 0; hec_buffers_out() > 0 && waited_ms < 20; waited_ms++)
        sleep_ms(1);
}

void hec_window_settle(void) {
    const struct hec_cupti *cupti = &hec_tracer.library.calls;
    /* Gently first: what still runs on the device gets its end. */
    for (int waited_ms = 0; hec_buffers_out() > 0 && waited_ms < HEC_WINDOW_SETTLE_MS; waited_ms += 5) {
        hec_window_flush(0);
        if (hec_buffers_out() > 0)
            sleep_ms(5);
    }
    if (hec_buffers_out() > 0)
        hec_window_flush(HEC_CUPTI_FLUSH_FORCED);
    await_buffers();
    if (hec_tracer.type_set)
        cupti->SetThreadIdType(hec_tracer.theirs_type);
    hec_tracer.type_set = false;
    if (hec_tracer.draining)
        tell_closed();
}

static void closed(void) {
    hec_tracer.open = false;
    hec_duty_closed(&hec_tracer.duty);
}

void hec_window_close(bool settle) {
    hec_tracer.close_ns = hec_out_now_ns();
    disable(KINDS);
    closed();
    hec_tracer.draining = true;
    if (settle)
        hec_window_settle();
    else
        hec_window_drain(hec_tracer.close_ns);
}

void hec_window_drain(int64_t now_ns) {
    hec_window_flush(0);
    if (hec_buffers_out() == 0 || now_ns - hec_tracer.close_ns >= HEC_NS_PER_S)
        tell_closed();
}

void hec_window_end(void) {
    if (!__atomic_load_n(&hec_tracer.registered, __ATOMIC_ACQUIRE))
        return;
    bool open = hec_tracer.open;
    if (open) {
        hec_tracer.close_ns = hec_out_now_ns();
        hec_tracer.draining = true;
        closed();
        /* In case that CUPTI does not come back in time: as far as its records have been fetched. A later one replaces
         * it. */
        tell(true, hec_tracer.flushed_ns);
    }
    hec_window_tell_counts();
    hec_window_flush(HEC_CUPTI_FLUSH_FORCED);
    await_buffers();
    if (hec_tracer.draining)
        tell_closed();
}

void hec_window_forget(void) {
    memset(&hec_tracer, 0, sizeof hec_tracer);
}
