#include "tracer/tracer.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct hec_ring ring;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int hec_out_open(const char *socket) {
    int fd;
    int err = hec_ring_create(HEC_TRACER_RING_RECORDS, HEC_RING_TRACE, &ring, &fd);
    if (err)
        return err;
    err = hec_ring_send(socket, HEC_RING_TRACE, fd);
    close(fd);
    if (err)
        hec_ring_unmap(&ring);
    return err;
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

bool hec_out_write(struct hec_ring_record *record, enum hec_trace_kind kind) {
    record->kind = (uint16_t)kind;
    return ring.header && hec_ring_write(&ring, record);
}

bool hec_out_write_ring_kind(struct hec_ring_record *record, enum hec_ring_kind kind) {
    record->kind = (uint16_t)kind;
    return ring.header && hec_ring_write(&ring, record);
}

void hec_out_drop(void) {
    if (ring.header)
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
