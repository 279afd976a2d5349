#include "store/reader_ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* Each thread sleeps until half of the chunks are for it, so that the two do not take turns: 2 MiB. */
#define CHUNKS 16

struct hec_ahead {
    hec_ahead_source source;
    void *source_context;
    int (*visit)(void *context, const struct hec_activity *activities, size_t count);
    void *context;
    bool threaded;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned filled, taken; /* chunks since the start; filled - taken <= CHUNKS */
    bool stopping, ended;
    int err;     /* of the source, once it has ended */
    int stopped; /* what visit said, where there is no thread */
    struct hec_why why;
    size_t count[CHUNKS];
    struct hec_activity chunk[CHUNKS][HEC_AHEAD_CHUNK];
};

struct hec_activity *hec_ahead_room(struct hec_ahead *a) {
    if (!a->threaded)
        return a->stopped ? NULL : a->chunk[0];
    pthread_mutex_lock(&a->mutex);
    if (a->filled - a->taken == CHUNKS)
        while (!a->stopping && a->filled - a->taken > CHUNKS / 2)
            pthread_cond_wait(&a->changed, &a->mutex);
    bool stopping = a->stopping;
    pthread_mutex_unlock(&a->mutex);
    return stopping ? NULL : a->chunk[a->filled % CHUNKS];
}

void hec_ahead_put(struct hec_ahead *a, size_t count) {
    if (!a->threaded) {
        a->stopped = a->visit(a->context, a->chunk[0], count);
        return;
    }
    pthread_mutex_lock(&a->mutex);
    a->count[a->filled % CHUNKS] = count;
    a->filled++;
    if (a->filled - a->taken == CHUNKS / 2)
        pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

static void *fill(void *context) {
    struct hec_ahead *a = context;
    int err = a->source(a->source_context, a, &a->why);
    pthread_mutex_lock(&a->mutex);
    a->err = err;
    a->ended = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

/* The number of chunks that wait; 0: there are no more. */
static unsigned wait_for_some(struct hec_ahead *a) {
    pthread_mutex_lock(&a->mutex);
    if (a->filled == a->taken)
        while (!a->ended && a->filled - a->taken < CHUNKS / 2)
            pthread_cond_wait(&a->changed, &a->mutex);
    unsigned some = a->filled - a->taken;
    pthread_mutex_unlock(&a->mutex);
    return some;
}

static int take_all(struct hec_ahead *a) {
    int stop = 0;
    for (unsigned some; !stop && (some = wait_for_some(a)) > 0;)
        for (; some > 0 && !stop; some--) {
            unsigned at = a->taken % CHUNKS;
            stop = a->visit(a->context, a->chunk[at], a->count[at]);
            pthread_mutex_lock(&a->mutex);
            a->taken++;
            a->stopping = stop != 0;
            if (stop || a->filled - a->taken == CHUNKS / 2)
                pthread_cond_signal(&a->changed);
            pthread_mutex_unlock(&a->mutex);
        }
    return stop;
}

int hec_ahead_run(hec_ahead_source source, void *source_context,
                  int (*visit)(void *context, const struct hec_activity *activities, size_t count), void *context,
                  struct hec_why *why) {
    struct hec_ahead *a = calloc(1, sizeof *a);
    pthread_t thread;
    if (!a)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    a->source = source;
    a->source_context = source_context;
    a->visit = visit;
    a->context = context;
    a->threaded = true;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (pthread_create(&thread, NULL, fill, a) == 0) {
        a->stopped = take_all(a);
        pthread_join(thread, NULL);
    } else {
        a->threaded = false;
        a->err = source(source_context, a, &a->why);
    }
    int err = a->stopped ? a->stopped : a->err;
    if (!a->stopped && a->err)
        hec_fail(why, a->err, "%s", a->why.text);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->mutex);
    free(a);
    return err;
}
