#include "mark/mark.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What a mark may count in one go; beyond it doubles lose single units. */
#define VALUE_MAX 9007199254740992.0 /* 2^53 */
/* How often a thread yields while another one connects (about 100 us of system calls) before it drops its mark. */
#define CONNECT_YIELDS 200

/* The state of the connection. A positive value is the thread that is connecting: a signal handler in that very
 * thread must not wait for it. */
enum { STATE_OFF = -1, STATE_ON = -2, STATE_NEW = 0 };

static int state = STATE_OFF;
static uint32_t generation = 1;
static uint64_t early; /* marks lost while another thread was connecting */
static struct hec_ring ring;
static struct hec_ring_again again;
static char socket_path[108];
static uint32_t job; /* HEC_RING_ENV_JOB */

static __thread struct {
    uint32_t tid;
    int writing; /* depth of enter/leave: more than 1 in a signal handler that interrupted a mark */
} self;

/* In the child of a fork. The parent's ring is the parent's: forget it, and get our own at the next mark. It is
 * unmapped unless the fork happened in a signal handler that interrupted a mark, which will go on writing to it. */
static void forked(void) {
    if (state == STATE_OFF)
        return;
    if (state == STATE_ON && self.writing == 0)
        hec_ring_unmap(&ring);
    self.tid = 0;
    early = 0;
    generation++;
    __atomic_store_n(&state, STATE_NEW, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void loaded(void) {
    const char *knobs = secure_getenv("HEC_KNOBS");
    if (knobs)
        hec_mark_knobs_init(knobs);
    const char *path = secure_getenv("HEC_SOCKET");
    if (!path || !path[0] || strlen(path) >= sizeof socket_path || pthread_atfork(NULL, NULL, forked) != 0)
        return;
    strcpy(socket_path, path);
    job = hec_ring_tag(secure_getenv(HEC_RING_ENV_JOB));
    __atomic_store_n(&state, STATE_NEW, __ATOMIC_RELEASE);
}

static uint32_t thread_id(void) {
    if (self.tid == 0)
        self.tid = (uint32_t)syscall(SYS_gettid);
    return self.tid;
}

static int64_t now_ns(clockid_t clock) {
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void connect_now(void) {
    int expected = STATE_NEW;
    if (!__atomic_compare_exchange_n(&state, &expected, (int)thread_id(), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    int saved_errno = errno, saved_cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_cancel); /* connect, sendmsg and close can be cancelled */
    int err = hec_ring_begin_at(&again, socket_path, HEC_RING_MARKS, HEC_RING_RECORDS_DEFAULT, job,
                                now_ns(CLOCK_MONOTONIC), &ring);
    if (!err)
        hec_ring_drop(&ring, __atomic_exchange_n(&early, 0, __ATOMIC_RELAXED));
    __atomic_store_n(&state, err ? STATE_OFF : STATE_ON, __ATOMIC_RELEASE);
    pthread_setcancelstate(saved_cancel, NULL);
    errno = saved_errno;
}

/* An agent may have been restarted. A coarse clock, since every mark asks. */
static void look_again(void) {
    int64_t now = now_ns(CLOCK_MONOTONIC_COARSE);
    if (now - __atomic_load_n(&again.looked_ns, __ATOMIC_RELAXED) < HEC_RING_LOOK_NS)
        return;
    int saved_errno = errno, saved_cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_cancel);
    hec_ring_look_again(&again, &ring, now);
    pthread_setcancelstate(saved_cancel, NULL);
    errno = saved_errno;
}

struct hec_ring *hec_mark_enter(void) {
    self.writing++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (now == STATE_NEW) {
        connect_now();
        now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    }
    if (now > 0) {
        for (int i = 0; i < CONNECT_YIELDS && now > 0 && now != (int)thread_id(); i++) {
            sched_yield();
            now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
        }
        if (now > 0)
            __atomic_fetch_add(&early, 1, __ATOMIC_RELAXED);
    }
    if (now != STATE_ON)
        return NULL;
    if (hec_ring_closed(&ring)) {
        /* stays mapped: another thread may be writing */
        __atomic_store_n(&state, STATE_OFF, __ATOMIC_RELEASE);
        return NULL;
    }
    look_again();
    return hec_ring_window(&ring) & 1 ? NULL : &ring;
}

void hec_mark_leave(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.writing--;
}

int hec_mark_is_on(void) {
    return __atomic_load_n(&state, __ATOMIC_RELAXED) != STATE_OFF;
}

uint32_t hec_mark_window(void) {
    return hec_ring_window(&ring);
}

/* Changes with each fork and each window. Equal only where both are: forks in a line are few. */
uint32_t hec_mark_generation(uint32_t window) {
    return (generation << 20) + window;
}

bool hec_mark_write(struct hec_ring *target, struct hec_ring_record *record, enum hec_ring_kind kind) {
    if (record->tid == 0)
        record->tid = thread_id();
    record->kind = (uint8_t)kind;
    if (record->t_ns == 0)
        record->t_ns = now_ns(CLOCK_MONOTONIC);
    return hec_ring_write(target, record);
}

static int mark(enum hec_ring_kind kind, const char *name, double value) {
    struct hec_ring *target = hec_mark_enter();
    if (target) {
        /* both before the name is looked up */
        struct hec_ring_record record = {.t_ns = now_ns(CLOCK_MONOTONIC), .window = (uint16_t)hec_mark_window()};
        bool named = name && name[0];
        record.u.mark.value = value;
        record.u.mark.name = named ? hec_mark_name(target, name) : 0;
        if ((named && record.u.mark.name == 0) || !(value >= 0 && value <= VALUE_MAX))
            hec_ring_drop(target, 1);
        else
            hec_mark_write(target, &record, kind);
    }
    hec_mark_leave();
    return hec_mark_is_on();
}

int hec_mark_active(void) {
    hec_mark_enter();
    hec_mark_leave();
    return hec_mark_is_on();
}

int hec_mark_step(const char *unit, double units) {
    return mark(HEC_RING_STEP, unit, units);
}

int hec_mark_phase_begin(const char *name) {
    return mark(HEC_RING_PHASE_BEGIN, name, 0);
}

int hec_mark_phase_end(const char *name) {
    return mark(HEC_RING_PHASE_END, name, 0);
}

int hec_mark_units(const char *name, double count) {
    return mark(HEC_RING_UNITS, name, count);
}

const struct hec_mark_functions *hec_mark_table(uint32_t version) {
    static const struct hec_mark_functions table = {
        .version = HEC_API_VERSION,
        .size = sizeof(struct hec_mark_functions),
        .active = hec_mark_active,
        .step = hec_mark_step,
        .phase_begin = hec_mark_phase_begin,
        .phase_end = hec_mark_phase_end,
        .units = hec_mark_units,
        .knob_int = hec_knob_int,
        .knob_double = hec_knob_double,
        .knob_text = hec_knob_text,
        .knob_int_in = hec_knob_int_in,
        .knob_double_in = hec_knob_double_in,
    };
    return version <= HEC_API_VERSION ? &table : NULL;
}
