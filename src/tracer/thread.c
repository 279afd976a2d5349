/* The tracer's own thread: bursts that lie still, CUPTI on and off, flushes, and the end. */
#include "tracer/tracer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define TICK_NS (100 * HEC_NS_PER_MS)
#define FLUSH_NS (500 * HEC_NS_PER_MS)
#define REPORT_NS HEC_NS_PER_S
#define WATCH_TICK_NS HEC_WATCH_SAMPLE_NS  /* until mode auto has had its look, and during it */
#define DEVICE_TICK_NS (5 * HEC_NS_PER_MS) /* until cuInit is through */
#define GLIMPSE_NS (2 * HEC_NS_PER_S)
#define GRAPHS_LATE                                                                                                              \
    "CUDA graphs were made or launched more often after CUPTI had looked at the device: each launch of one may take up to 0.35 " \
    "us a node longer than without hec"
/* Tables of runtimes that look functions up about now: looked at again so long after cuInit. */
static const int64_t again_ns[] = {100 * HEC_NS_PER_MS, HEC_NS_PER_S, 5 * HEC_NS_PER_S};
#define AGAIN (sizeof again_ns / sizeof again_ns[0])
/* CUPTI's flush runs on it. It is ours, not the program's to size, with a guard that no frame leaps over. */
#define STACK_BYTES ((size_t)1 << 20)
#define GUARD_BYTES ((size_t)64 << 10)
#define FORK_WAIT_MS 2000

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    pthread_t id; /* atomic; 0: it does not run */
    bool started, ending, woken, ended;
} thread = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool hec_thread_is_own(void) {
    return pthread_equal(__atomic_load_n(&thread.id, __ATOMIC_ACQUIRE), pthread_self());
}

static struct timespec time_of(int64_t ns) {
    return (struct timespec){ns / HEC_NS_PER_S, ns % HEC_NS_PER_S};
}

/* ---- all that the thread does, but for waiting, is done under `busy`: a fork waits for its end ---- */

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_t forking; /* atomic: the thread that holds it for a fork; 0: none */

/* A child in which the loader's lock, or one of CUPTI's or the driver's, is taken for ever hangs at its next dlopen (35 to
 * 46 of 100 children did, with a walk of the modules every 50 ms). A bound all the same: nothing of ours may keep a
 * program from forking. */
void hec_thread_fork_prepare(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FORK_WAIT_MS / 1000;
    if (!hec_thread_is_own() && pthread_mutex_timedlock(&busy, &until) == 0)
        __atomic_store_n(&forking, pthread_self(), __ATOMIC_RELAXED);
}

void hec_thread_fork_parent(void) {
    if (!pthread_equal(__atomic_load_n(&forking, __ATOMIC_RELAXED), pthread_self()))
        return; /* it could not be had */
    __atomic_store_n(&forking, (pthread_t)0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&busy);
}

/* ---- what is due ---- */

void hec_thread_record(void) {
    const struct hec_tracer *t = &hec_tracer;
    hec_callers_record(!t->quiet && hec_hold.paused == 0 && t->rest.since_ns == 0);
}

/* Mode auto has not decided yet. */
static bool watching(void) {
    const struct hec_tracer *t = &hec_tracer;
    return !t->quiet && t->mode == HEC_TRACE_AUTO && t->calls && !t->staying && t->attach != HEC_ATTACH_QUIET &&
           !t->no_cupti;
}

static void leave(const char *why) {
    hec_attach_off(why, false);
}

static void step_on(struct hec_tracer *t, int64_t now) {
    char why[160];
    if (hec_attach_blind()) {
        leave("CUPTI recorded nothing of what the program launched");
    } else if (hec_attach_full()) {
        snprintf(why, sizeof why,
                 "CUPTI keeps %u bytes of the program's memory a launch: device activity was traced for %.0f s, until "
                 "HEC took %.0f MB; --trace-memory allows more",
                 HEC_KEPT_LAUNCH_BYTES, (double)(now - t->open_ns) / 1e9, (double)t->memory_bytes / 1048576);
        leave(why);
    } else if (t->mode == HEC_TRACE_AUTO && !hec_watch_graphs_bear(&t->watch)) {
        leave(GRAPHS_LATE);
    } else if (t->mode == HEC_TRACE_AUTO && !t->staying && hec_watch_slower(&t->watch, t->open_ns, now)) {
        leave(NULL);
    } else if (t->mode == HEC_TRACE_AUTO && !t->staying && now - t->open_ns >= GLIMPSE_NS) {
        t->staying = hec_watch_free(&t->watch, t->open_ns, now);
        if (!t->staying)
            leave(NULL);
    } else if (now - t->flushed_ns >= FLUSH_NS) {
        hec_attach_flush(0);
        hec_attach_report(true); /* the reader of a window may leave before it closes */
    }
}

static void step_not(struct hec_tracer *t, int64_t now, bool asked) {
    if (t->no_cupti || t->quiet || hec_hold.paused > 0 || t->rest.since_ns != 0)
        return;
    if (t->mode != HEC_TRACE_AUTO) {
        /* where no call can ask for it, when cuInit is through */
        if (hec_hold_free() && (asked || !t->calls))
            hec_attach_on(t->calls);
    } else if (t->calls && hec_hold_free()) {
        bool began = t->watch.first_ns != 0 && !t->steal_read;
        bool may = hec_watch_may_look(&t->watch, now, 0);
        double stolen = began || may ? hec_delay_stolen(now) : 1;
        t->steal_read = t->steal_read || began;
        if (may && hec_watch_may_look(&t->watch, now, stolen))
            hec_attach_on(false);
    }
}

/* Somebody reads from now on, or nobody: then calls pass as if they were not timed. The look at the device ends with the
 * window that it was in. */
static void follow(struct hec_tracer *t, int64_t now) {
    enum hec_out_reader reader = hec_out_reader(now);
    if (reader == HEC_OUT_NEW) {
        hec_inject_introduce();
        t->quiet = false;
        t->rest = (struct hec_rest){0};
        hec_thread_record();
    } else if (reader == HEC_OUT_NOBODY && !t->quiet) {
        t->quiet = true;
        hec_thread_record();
        hec_callers_sweep(true); /* a burst that began in this window is none of the next */
        if (t->mode == HEC_TRACE_AUTO && t->attach == HEC_ATTACH_ON)
            leave(NULL);
    }
}

static void report_rest(const struct hec_tracer *t, int64_t until_ns) {
    struct hec_ring_record record = {.t_ns = t->rest.since_ns};
    hec_out_payload(&record)->rest.duration_ns = until_ns - t->rest.since_ns;
    record.flags = until_ns == t->rest.since_ns ? HEC_TRACE_WINDOW_OPEN : 0;
    hec_out_lock();
    hec_out_write(&record, HEC_TRACE_REST);
    hec_out_unlock();
}

/* What was counted before says nothing of the time after. */
static void end_rest(struct hec_tracer *t) {
    report_rest(t, hec_out_now_ns());
    t->rest.since_ns = 0;
    t->watch.count = 0;
    hec_thread_record();
}

static void begin_rest(struct hec_tracer *t) {
    t->rest.since_ns = hec_out_now_ns();
    hec_thread_record();
    hec_callers_sweep(true);
    report_rest(t, t->rest.since_ns);
}

/* While nobody looks at the device, and nobody has paused us. */
static void follow_rests(struct hec_tracer *t, int64_t now) {
    struct hec_callers_totals calls;
    if (t->mode != HEC_TRACE_AUTO || t->quiet || hec_hold.paused > 0 || t->attach == HEC_ATTACH_ON || t->draining)
        return;
    hec_callers_read(&calls);
    bool wanted = hec_rest_wanted(&t->rest, now, calls.calls);
    if (wanted && t->rest.since_ns == 0)
        begin_rest(t);
    else if (!wanted && t->rest.since_ns != 0)
        end_rest(t);
}

static void take_sample(struct hec_tracer *t) {
    struct hec_callers_totals calls;
    hec_callers_read(&calls);
    calls.delay_ns = hec_delay_ns();
    hec_watch_sample(&t->watch, &calls);
}

/* What is due now; under the control lock. */
static void do_due(int64_t now) {
    struct hec_tracer *t = &hec_tracer;
    follow(t, now);
    bool asked = hec_attach_asked(); /* who asks later than now is answered next time */
    if (__atomic_exchange_n(&hec_hold.missed, false, __ATOMIC_ACQ_REL))
        hec_hold_stand_down("another user of CUPTI", 0);
    hec_hold_ended(now);
    follow_rests(t, now);
    if (watching() && t->rest.since_ns == 0)
        take_sample(t);
    hec_callers_sweep(false);
    hec_callers_draw();
    if (t->attach == HEC_ATTACH_ON)
        step_on(t, now);
    else if (t->draining)
        hec_attach_drain(now);
    else if (t->attach == HEC_ATTACH_NOT)
        step_not(t, now, asked);
    if (asked)
        hec_attach_answer();
    if (now - t->reported_ns >= REPORT_NS) {
        hec_ticks_refine();
        if (t->attach == HEC_ATTACH_ON)
            hec_attach_report(true);
        hec_attach_report_counts();
    }
    hec_shim_rescan();
}

/* Why mode auto saw no kernels, or what its look has cost. */
static void explain(struct hec_tracer *t) {
    if (t->rest.since_ns == 0)
        take_sample(t);
    bool graphs_bear = hec_watch_graphs_bear(&t->watch);
    if (t->attach == HEC_ATTACH_NOT)
        hec_inject_report(graphs_bear
                              ? "CUPTI stayed out: the program waited for the device too little to hide what that "
                                "costs, or ended early; --trace=full records kernels"
                              : "CUPTI stayed out: once it has been in a program, each launch of a CUDA graph takes "
                                "longer for good; --trace=full records kernels all the same");
    else if (t->attach == HEC_ATTACH_QUIET && t->attached_ns != 0 && !graphs_bear)
        hec_inject_report(GRAPHS_LATE);
}

/* The last records. Others that have CUPTI just now keep it. */
static void finish(void) {
    struct hec_tracer *t = &hec_tracer;
    hec_callers_record(false);
    hec_attach_answer(); /* nobody waits for a thread that is no more */
    if (!hec_hold_enter())
        return;
    hec_callers_sweep(true);
    if (t->rest.since_ns != 0 && !t->quiet)
        report_rest(t, hec_out_now_ns());
    if (t->mode == HEC_TRACE_AUTO && !t->no_cupti && t->calls)
        explain(t);
    if (__atomic_load_n(&hec_hold.serving, __ATOMIC_ACQUIRE) == HEC_HOLD_US)
        hec_attach_end();
    hec_attach_report_counts();
    hec_inject_end();
    hec_hold_leave();
}

static void cpu_used(int64_t *reported) {
    int64_t cpu = hec_out_thread_cpu_ns();
    hec_records_add_self(cpu - *reported);
    *reported = cpu;
}

/* Until the next thing is due. false: the end. */
static bool wait_until(int64_t until_ns) {
    struct timespec until = time_of(until_ns);
    pthread_mutex_lock(&thread.lock);
    int waited = 0;
    while (!thread.ending && !thread.woken && waited == 0)
        waited = pthread_cond_timedwait(&thread.wake, &thread.lock, &until);
    thread.woken = false;
    bool ending = thread.ending;
    pthread_mutex_unlock(&thread.lock);
    return !ending;
}

/* The PROCESS record, the devices, what a call costs. */
static bool report_devices(void) {
    hec_out_lock();
    bool reported = hec_device_report();
    hec_out_unlock();
    if (reported)
        hec_inject_initialised();
    return reported;
}

static int64_t tick_ns(void) {
    return watching() || hec_tracer.draining ? WATCH_TICK_NS : TICK_NS;
}

static void *run(void *unused) {
    (void)unused;
    bool devices = false, more = true;
    int64_t cpu_reported = 0, devices_ns = 0, tick = TICK_NS;
    size_t again = 0;
    __atomic_store_n(&thread.id, pthread_self(), __ATOMIC_RELEASE);
    pthread_mutex_lock(&busy);
    hec_tracer.cost_ps = hec_callers_cost_ps();
    pthread_mutex_unlock(&busy);
    while (more) {
        int64_t now = hec_out_now_ns();
        pthread_mutex_lock(&busy);
        if (!devices && (devices = report_devices()))
            devices_ns = now;
        if (devices && again < AGAIN && now - devices_ns >= again_ns[again]) {
            hec_slots_again();
            again++;
        }
        if (devices && hec_hold_enter()) {
            if (hec_out_closed())
                thread.ending = true; /* nobody listens any more */
            else
                do_due(now);
            tick = tick_ns();
            hec_hold_leave();
        }
        cpu_used(&cpu_reported);
        pthread_mutex_unlock(&busy);
        more = wait_until(now + (devices ? tick : DEVICE_TICK_NS));
    }
    pthread_mutex_lock(&busy);
    finish();
    pthread_mutex_unlock(&busy);
    pthread_mutex_lock(&thread.lock);
    thread.ended = true;
    pthread_cond_broadcast(&thread.done);
    pthread_mutex_unlock(&thread.lock);
    return NULL;
}

void hec_thread_forget(void) {
    memset(&thread, 0, sizeof thread);
    pthread_mutex_init(&thread.lock, NULL);
    pthread_mutex_init(&busy, NULL);
    forking = 0;
}

int hec_thread_start(void) {
    pthread_condattr_t condition;
    pthread_attr_t attributes;
    pthread_t id;
    sigset_t all, before;
    pthread_condattr_init(&condition);
    pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    pthread_cond_init(&thread.wake, &condition);
    pthread_cond_init(&thread.done, &condition);
    pthread_condattr_destroy(&condition);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setguardsize(&attributes, GUARD_BYTES);
    sigfillset(&all);
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}; /* a crash shows as ever */
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
    int err = pthread_create(&id, &attributes, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (err == 0) {
        pthread_setname_np(id, "hec-trace");
        thread.started = true;
    }
    return -err;
}

void hec_thread_wake(void) {
    pthread_mutex_lock(&thread.lock);
    thread.woken = true;
    pthread_cond_signal(&thread.wake);
    pthread_mutex_unlock(&thread.lock);
}

void hec_thread_end(void) {
    if (!thread.started)
        return;
    struct timespec until = time_of(hec_out_now_ns() + HEC_THREAD_END_MS * HEC_NS_PER_MS);
    pthread_mutex_lock(&thread.lock);
    thread.ending = true;
    pthread_cond_signal(&thread.wake);
    int waited = 0;
    while (!thread.ended && waited == 0)
        waited = pthread_cond_timedwait(&thread.done, &thread.lock, &until);
    pthread_mutex_unlock(&thread.lock);
}
