/* The tracer's own thread: flushes, windows, the duty cycle, and the end. */
#include "tracer/tracer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define TICK_NS (100 * HEC_NS_PER_MS)
#define FLUSH_NS (500 * HEC_NS_PER_MS)
#define TELL_NS HEC_NS_PER_S
#define WATCH_TICK_NS HEC_WATCH_SAMPLE_NS  /* until mode auto has decided */
#define DEVICE_TICK_NS (5 * HEC_NS_PER_MS) /* until cuInit is through */
#define RETRY_FIRST_NS HEC_NS_PER_S
#define RETRY_LAST_NS (60 * HEC_NS_PER_S)
/* A window without kernels is opened again so often at once, then after a pause. */
#define BLIND_TRIES 4u
#define BLIND_BUFFERS 2u /* with more of them out, kernels are waiting for their end */
#define BLIND_WAIT_NS (5 * HEC_NS_PER_S)
#define STACK_BYTES ((size_t)512 << 10) /* CUPTI's flush runs on it */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    bool started, ending, woken, ended;
} thread = {.lock = PTHREAD_MUTEX_INITIALIZER};
static __thread bool own;

bool hec_thread_is_own(void) {
    return own;
}

static struct timespec time_of(int64_t ns) {
    return (struct timespec){ns / HEC_NS_PER_S, ns % HEC_NS_PER_S};
}

static void refused(uint32_t result, int64_t now) {
    struct hec_tracer *t = &hec_tracer;
    t->retry_wait_ns = t->retry_wait_ns == 0 ? RETRY_FIRST_NS : t->retry_wait_ns * 2;
    if (t->retry_wait_ns > RETRY_LAST_NS)
        t->retry_wait_ns = RETRY_LAST_NS;
    t->retry_ns = now + t->retry_wait_ns;
    hec_hold_stand_down("another user of CUPTI", result);
}

/* Mode auto: whether windows may be opened, as far as the program's own launches show. */
static bool allowed(int64_t now) {
    struct hec_tracer *t = &hec_tracer;
    struct hec_launches sample;
    char why[256];
    if (!t->watching)
        return true;
    hec_launches_rescan();
    hec_launches_read(&sample);
    hec_watch_sample(&t->watch, &sample);
    bool told = t->watch.out;
    struct hec_watch_judgement judgement = hec_watch_judge(&t->watch, t->budget_ppm, now);
    if (judgement.verdict == HEC_WATCH_OUT && !told) {
        hec_watch_sentence(&judgement, t->budget_ppm, why, sizeof why);
        hec_inject_tell(why);
    } else if (judgement.verdict == HEC_WATCH_ATTACH) {
        t->watching = false;
        if (told)
            hec_inject_tell("");
    }
    return !t->watching;
}

/* Whether CUPTI has kept more of the program's memory than it may (watch.c). */
static bool kept_too_much(void) {
    const struct hec_tracer *t = &hec_tracer;
    return t->kept_bytes > (t->duty.budget_ppm == 0 ? HEC_KEPT_FULL_BYTES : hec_kept_limit(t->duty.elapsed_ns));
}

static void give_up(void) {
    struct hec_tracer *t = &hec_tracer;
    char why[160];
    t->ended = true;
    hec_window_close(true);
    snprintf(why, sizeof why,
             "CUPTI keeps %u bytes of the program's memory a launch: tracing ended after %.1f GB, for good",
             HEC_KEPT_LAUNCH_BYTES, (double)t->kept_bytes / 1e9);
    hec_inject_tell(why);
}

void hec_thread_step(int64_t now) {
    struct hec_tracer *t = &hec_tracer;
    if (__atomic_exchange_n(&hec_hold.missed, false, __ATOMIC_ACQ_REL))
        hec_hold_stand_down("another user of CUPTI", 0);
    if (t->open) {
        hec_window_charge();
        bool full = t->duty.budget_ppm == 0;
        if (hec_window_blind())
            hec_window_flush(0); /* the kernels may still be on their way */
        if (hec_window_blind() && hec_buffers_out() <= BLIND_BUFFERS) {
            hec_window_close(true);
            t->blind++;
            t->retry_ns = now + (t->blind % BLIND_TRIES ? TICK_NS : BLIND_WAIT_NS);
        } else if (full && kept_too_much()) {
            give_up();
        } else if (!full && (hec_duty_should_close(&t->duty) || kept_too_much())) {
            hec_window_close(true);
        } else if (now - t->flushed_ns >= FLUSH_NS) {
            hec_window_flush(0);
        }
    } else {
        if (t->draining)
            hec_window_drain(now);
        bool may = allowed(now) && !t->ended &&
                   (t->duty.budget_ppm == 0 || hec_kept_may_open(t->kept_bytes, t->duty.elapsed_ns));
        if (now >= t->retry_ns && hec_hold.paused == 0 && hec_hold_free(now) && may && hec_duty_should_open(&t->duty)) {
            uint32_t result = hec_window_open();
            if (result != HEC_CUPTI_SUCCESS)
                refused(result, now);
            else
                t->retry_wait_ns = 0;
        }
    }
    if (now - t->told_ns >= TELL_NS) {
        if (t->open)
            hec_window_tell(true);
        hec_window_tell_counts();
    }
    hec_shim_rescan();
}

/* The last flush. Others that have CUPTI just now keep it. */
static void finish(int64_t last_ns) {
    if (!hec_hold_enter())
        return;
    const struct hec_tracer *t = &hec_tracer;
    struct hec_launches count;
    hec_launches_read(&count);
    if (t->watching && !t->watch.out && count.launches + count.graphs + count.copies > 0)
        hec_inject_tell("the program ended before it was known whether tracing it would keep the budget; "
                        "--trace=full shows its kernels");
    if (__atomic_load_n(&hec_hold.serving, __ATOMIC_ACQUIRE) == HEC_HOLD_US)
        hec_window_end();
    if (hec_hold.paused == 0)
        hec_duty_elapse(&hec_tracer.duty, hec_out_now_ns() - last_ns);
    hec_window_tell_counts();
    hec_inject_end();
    hec_hold_leave();
}

static void *run(void *unused) {
    (void)unused;
    own = true;
    bool devices = false, watching = false;
    int64_t last = hec_out_now_ns(), cpu_told = 0;
    for (;;) {
        int64_t now = hec_out_now_ns();
        if (!devices) {
            hec_out_lock();
            devices = hec_device_tell();
            hec_out_unlock();
            if (devices)
                hec_inject_initialised();
        }
        if (hec_hold_enter()) {
            if (hec_hold.paused == 0)
                hec_duty_elapse(&hec_tracer.duty, now - last);
            if (hec_tracer.early &&
                !hec_tracer.open) /* launches are not seen now: taken to go on as in the last window */
                hec_tracer.kept_bytes += (uint64_t)((double)(now - last) * hec_tracer.duty.attached_rate /
                                                    (double)hec_duty_costs.attached_ns * HEC_KEPT_LAUNCH_BYTES);
            last = now;
            if (hec_out_closed())
                thread.ending = true; /* nobody listens any more */
            else
                hec_thread_step(now);
            watching = hec_tracer.watching && !hec_tracer.watch.out;
            hec_hold_leave();
        }
        int64_t cpu = hec_out_thread_cpu_ns();
        hec_records_add_self(cpu - cpu_told);
        cpu_told = cpu;
        struct timespec until = time_of(now + (!devices ? DEVICE_TICK_NS : watching ? WATCH_TICK_NS : TICK_NS));
        pthread_mutex_lock(&thread.lock);
        int waited = 0;
        while (!thread.ending && !thread.woken && waited == 0)
            waited = pthread_cond_timedwait(&thread.wake, &thread.lock, &until);
        thread.woken = false;
        bool ending = thread.ending;
        pthread_mutex_unlock(&thread.lock);
        if (ending)
            break;
    }
    finish(last);
    pthread_mutex_lock(&thread.lock);
    thread.ended = true;
    pthread_cond_broadcast(&thread.done);
    pthread_mutex_unlock(&thread.lock);
    return NULL;
}

void hec_thread_forget(void) {
    memset(&thread, 0, sizeof thread);
    pthread_mutex_init(&thread.lock, NULL);
    own = false;
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
