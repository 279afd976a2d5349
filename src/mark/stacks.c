/* Samples of the main thread's Python stack (hooks.h). The interpreter's lock is the dear part: a thread that asks for it
 * while the main thread runs takes the main thread off its core, for ten times as long as the sample takes. So the main
 * thread is asked to take the sample itself, at its next safe point (Py_AddPendingCall), by code that runs no Python. A
 * main thread that is in a call of C reaches none: then it does not need the lock, and the sampler takes it. */
#include "mark/stacks.h"

#include "mark/hooks.h"
#include "mark/mark.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So long the main thread has for its next safe point. In calls of C that take less, a sample is that much late. */
#define SAFE_POINT_NS 100000
#define STACK_BYTES (256u << 10)
#define PERIOD_MAX_US 10000000 /* the collector takes no longer one */
#define NS 1000000000LL

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint32_t generation; /* of the thread: one of another ends */
    bool borrows;
    uint32_t tid, main_tid;
    void *main_state; /* told by the first pending call, which only the main thread makes */
    int64_t period_ns, cost_max_ns;
    void (*second)(void);
    /* of the samples: one at a time, by who has the interpreter's lock */
    int64_t asked_ns; /* 0: none is wanted */
    bool queued;      /* the pending call is on its way */
    int64_t samples, cost_ns, mean_ns;
} sampler = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static struct hec_python python;

static int64_t now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS + ts.tv_nsec;
}

static bool look_up(void) {
    bool all = true;
    void *symbol;
#define X(result, name, parameters)                                                                                    \
    symbol = dlsym(RTLD_DEFAULT, #name);                                                                               \
    memcpy(&python.name, &symbol, sizeof symbol);                                                                      \
    all = all && symbol;
    HEC_PYTHON_CALLS(X)
#undef X
    symbol = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
    memcpy(&python.PyFrame_GetLasti, &symbol, sizeof symbol);
    return all;
}

/* ---- one sample ---- */

static void tell(uint32_t node, int64_t start_ns, int64_t end_ns) {
    struct hec_ring *ring = hec_mark_enter();
    for (int64_t left_us = (end_ns - start_ns) / 1000; ring && left_us > 0; left_us -= PERIOD_MAX_US) {
        uint32_t period_us = (uint32_t)(left_us < PERIOD_MAX_US ? left_us : PERIOD_MAX_US);
        struct hec_ring_record record = {
            .tid = sampler.main_tid, .t_ns = start_ns, .u.stack = {.frame = node, .period_us = period_us}};
        hec_mark_write(ring, &record, HEC_RING_STACK);
        start_ns += (int64_t)period_us * 1000;
    }
    hec_mark_leave();
}

/* It stands for the time since it was asked for, and for a period. */
static void sample(void) {
    int64_t asked = __atomic_exchange_n(&sampler.asked_ns, 0, __ATOMIC_ACQ_REL);
    void *frame = asked ? python.PyThreadState_GetFrame(sampler.main_state) : NULL;
    if (!frame)
        return;
    int64_t start_ns = now_ns();
    uint32_t node = hec_stacks_node(&python, frame);
    if (node)
        tell(node, asked, start_ns + __atomic_load_n(&sampler.period_ns, __ATOMIC_RELAXED));
    int64_t took_ns = now_ns() - start_ns;
    __atomic_fetch_add(&sampler.samples, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sampler.cost_ns, took_ns, __ATOMIC_RELAXED);
    int64_t mean_ns = __atomic_load_n(&sampler.mean_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&sampler.mean_ns, mean_ns + (took_ns - mean_ns) / 8, __ATOMIC_RELAXED);
}

/* In the main thread. */
static int pending(void *unused) {
    (void)unused;
    __atomic_store_n(&sampler.main_state, python.PyThreadState_Get(), __ATOMIC_RELEASE);
    __atomic_store_n(&sampler.queued, false, __ATOMIC_RELEASE);
    sample();
    return 0;
}

/* ---- the thread ---- */

static bool ends(uint32_t generation) {
    return __atomic_load_n(&sampler.generation, __ATOMIC_ACQUIRE) != generation;
}

/* false: the thread shall end. */
static bool wait_for(uint32_t generation, int64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t at = (int64_t)until.tv_sec * NS + until.tv_nsec + ns;
    until = (struct timespec){at / NS, at % NS};
    pthread_mutex_lock(&sampler.lock);
    while (!ends(generation) && pthread_cond_timedwait(&sampler.wake, &sampler.lock, &until) == 0)
        ;
    pthread_mutex_unlock(&sampler.lock);
    return !ends(generation);
}

static void ask(uint32_t generation, void **state) {
    if (!__atomic_load_n(&sampler.asked_ns,
                         __ATOMIC_ACQUIRE)) /* else the last one was not taken: it stands for this, too */
        __atomic_store_n(&sampler.asked_ns, now_ns(), __ATOMIC_RELEASE);
    if (!__atomic_exchange_n(&sampler.queued, true, __ATOMIC_ACQ_REL) && python.Py_AddPendingCall(pending, NULL) != 0)
        __atomic_store_n(&sampler.queued, false, __ATOMIC_RELEASE);
    if (!wait_for(generation, SAFE_POINT_NS) || !sampler.borrows ||
        !__atomic_load_n(&sampler.main_state, __ATOMIC_ACQUIRE) ||
        !__atomic_load_n(&sampler.asked_ns, __ATOMIC_ACQUIRE))
        return;
    python.PyEval_RestoreThread(*state);
    sample();
    *state = python.PyEval_SaveThread();
}

/* Fewer samples where they are dear. */
static int64_t period_ns(int64_t base_ns) {
    int64_t mean_ns = __atomic_load_n(&sampler.mean_ns, __ATOMIC_RELAXED);
    int64_t found_ns = mean_ns > sampler.cost_max_ns ? base_ns / sampler.cost_max_ns * mean_ns : base_ns;
    return found_ns < NS ? found_ns : NS;
}

static void *run(void *argument) {
    uint32_t generation = (uint32_t)(uintptr_t)argument;
    int64_t base_ns = sampler.period_ns, second_ns = now_ns() + NS;
    __atomic_store_n(&sampler.tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    int held = python.PyGILState_Ensure();
    void *state = python.PyEval_SaveThread();
    while (wait_for(generation, sampler.period_ns)) {
        ask(generation, &state);
        __atomic_store_n(&sampler.period_ns, period_ns(base_ns), __ATOMIC_RELAXED);
        if (now_ns() >= second_ns && !ends(generation)) {
            second_ns = now_ns() + NS;
            sampler.second();
        }
    }
    python.PyEval_RestoreThread(state);
    python.PyGILState_Release(held);
    return NULL;
}

int hec_hook_stacks_start(double hz, int64_t cost_max_ns, int borrows, void (*second)(void)) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    if (!(hz > 0) || hz > 1000 || cost_max_ns <= 0 || !look_up())
        return 0;
    sampler.main_tid = (uint32_t)getpid();
    sampler.period_ns = (int64_t)((double)NS / hz);
    sampler.cost_max_ns = cost_max_ns;
    sampler.borrows = borrows != 0;
    sampler.second = second;
    sampler.tid = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread takes none of the program's signals */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int err = pthread_create(&thread, &attributes, run, (void *)(uintptr_t)sampler.generation);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (err == 0 && !__atomic_load_n(&sampler.tid, __ATOMIC_ACQUIRE))
        sched_yield(); /* whoever stops it waits for this thread */
    return err == 0;
}

uint32_t hec_hook_stacks_stop(void) {
    pthread_mutex_lock(&sampler.lock);
    __atomic_fetch_add(&sampler.generation, 1, __ATOMIC_ACQ_REL);
    __atomic_store_n(&sampler.asked_ns, 0, __ATOMIC_RELEASE);
    pthread_cond_signal(&sampler.wake);
    pthread_mutex_unlock(&sampler.lock);
    return __atomic_exchange_n(&sampler.tid, 0, __ATOMIC_ACQ_REL);
}

int64_t hec_hook_stacks_samples(int64_t *cost_ns) {
    *cost_ns = __atomic_load_n(&sampler.cost_ns, __ATOMIC_RELAXED);
    return __atomic_load_n(&sampler.samples, __ATOMIC_RELAXED);
}

void hec_hook_stacks_forget(void) {
    pthread_mutex_init(&sampler.lock, NULL);
    pthread_cond_init(&sampler.wake, NULL);
    sampler.generation++;
    sampler.main_state = NULL;
    sampler.queued = false;
    sampler.tid = 0;
    sampler.asked_ns = sampler.samples = sampler.cost_ns = sampler.mean_ns = 0;
    hec_stacks_forget_nodes();
}
