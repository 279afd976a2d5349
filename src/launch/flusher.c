#include "launch/flusher.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What a kill -9 of hec may lose is one period. */
#define PERIOD_NS HEC_NS_PER_S

struct hec_flusher {
    struct hec_writer *writer;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
};

/* Sleep a period; true when it is time to end. */
static bool pause_or_stop(struct hec_flusher *flusher) {
    int64_t until_ns = hec_clock_mono_ns() + PERIOD_NS;
    struct timespec until = {until_ns / HEC_NS_PER_S, until_ns % HEC_NS_PER_S};
    pthread_mutex_lock(&flusher->lock);
    int err = 0;
    while (!flusher->stopping && err == 0)
        err = pthread_cond_timedwait(&flusher->wake, &flusher->lock, &until);
    bool stopping = flusher->stopping;
    pthread_mutex_unlock(&flusher->lock);
    return stopping;
}

static void *flush_main(void *argument) {
    struct hec_flusher *flusher = argument;
    do /* what cannot be written is kept and tried again; the writer says how long that lasted */
        hec_writer_flush(flusher->writer, NULL);
    while (!pause_or_stop(flusher));
    return NULL;
}

int hec_flusher_start(struct hec_writer *writer, struct hec_flusher **out, struct hec_why *why) {
    struct hec_flusher *flusher = calloc(1, sizeof *flusher);
    if (!flusher)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the run file's thread");
    flusher->writer = writer;
    pthread_mutex_init(&flusher->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&flusher->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int errnum = pthread_create(&flusher->thread, NULL, flush_main, flusher);
    if (errnum) {
        free(flusher);
        return hec_fail(why, hec_err_from_errno(errnum), "cannot start a thread: %s", strerror(errnum));
    }
    *out = flusher;
    return HEC_OK;
}

void hec_flusher_stop(struct hec_flusher *flusher) {
    pthread_mutex_lock(&flusher->lock);
    flusher->stopping = true;
    pthread_cond_signal(&flusher->wake);
    pthread_mutex_unlock(&flusher->lock);
    pthread_join(flusher->thread, NULL);
    pthread_cond_destroy(&flusher->wake);
    pthread_mutex_destroy(&flusher->lock);
    free(flusher);
}
