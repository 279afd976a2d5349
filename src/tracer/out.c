#include "tracer/tracer.h"

#include "base/ring.h"

#include <pthread.h>
#include <time.h>

static struct hec_ring ring;
static struct hec_ring_again again;
static uint32_t window; /* in which the process has introduced itself: others get no records */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int hec_out_open(const char *socket, const char *tag) {
    window = 0;
    return hec_ring_begin_at(&again, socket, HEC_RING_TRACE, HEC_TRACER_RING_RECORDS, hec_ring_tag(tag),
                             hec_out_now_ns(), &ring);
}

void hec_out_fork_prepare(void) {
    pthread_mutex_lock(&lock); /* held for microseconds */
}

void hec_out_fork_parent(void) {
    pthread_mutex_unlock(&lock);
}

void hec_out_forget(void) {
    hec_ring_unmap(&ring);
    pthread_mutex_init(&lock, NULL);
}

bool hec_out_closed(void) {
    return !ring.header || hec_ring_closed(&ring);
}

void hec_out_lock(void) {
    pthread_mutex_lock(&lock);
}

void hec_out_unlock(void) {
    pthread_mutex_unlock(&lock);
}

union hec_trace_payload *hec_out_payload(struct hec_ring_record *record) {
    return (union hec_trace_payload *)(void *)&record->u;
}

uint32_t hec_out_window(void) {
    return __atomic_load_n(&window, __ATOMIC_RELAXED);
}

bool hec_out_read_now(void) {
    return ring.header && hec_ring_window(&ring) == hec_out_window();
}

static bool append(struct hec_ring_record *record, uint8_t kind) {
    uint32_t introduced = hec_out_window();
    record->kind = kind;
    record->window = (uint16_t)introduced;
    return ring.header && hec_ring_window(&ring) == introduced && hec_ring_write(&ring, record);
}

bool hec_out_write(struct hec_ring_record *record, enum hec_trace_kind kind) {
    return append(record, (uint8_t)kind);
}

bool hec_out_write_ring_kind(struct hec_ring_record *record, enum hec_ring_kind kind) {
    return append(record, (uint8_t)kind);
}

enum hec_out_reader hec_out_reader(int64_t now_ns) {
    if (!ring.header)
        return HEC_OUT_NOBODY;
    hec_ring_look_again(&again, &ring, now_ns);
    uint32_t seen = hec_ring_window(&ring);
    if (seen & 1)
        return HEC_OUT_NOBODY;
    if (seen == hec_out_window())
        return HEC_OUT_SAME;
    hec_out_lock();
    __atomic_store_n(&window, seen, __ATOMIC_RELAXED);
    hec_out_unlock();
    return HEC_OUT_NEW;
}

void hec_out_drop(void) {
    if (hec_out_read_now())
        hec_ring_drop(&ring, 1);
}

static int64_t read_clock(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

int64_t hec_out_now_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

int64_t hec_out_thread_cpu_ns(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
