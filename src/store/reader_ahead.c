#include "store/reader_ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* The source sleeps until half of the chunks are free, a visitor until half are filled, so that they do not take turns:
 * 2 MiB. */
#define CHUNKS 16

struct taker {
    struct hec_ahead *ahead;
    const struct hec_activity_visitor *visitors; /* called one after the other */
    size_t count;                                /* 0: it takes none */
    unsigned taken;                              /* chunks since the start */
    int stop;                                    /* what a visitor answered */
    pthread_t thread;
};

struct hec_ahead {
    hec_ahead_source source;
    void *source_context;
    struct taker *takers; /* the first is this thread's */
    size_t taker_count;
    bool threaded; /* the source has a thread of its own */
    pthread_mutex_t mutex;
    pthread_cond_t filling, taking; /* what the source waits for, and what takers do */
    unsigned filled;                /* chunks since the start; no taker is more than CHUNKS behind */
    bool stopping, ended;
    int err; /* of the source, once it has ended */
    struct hec_why why;
    size_t length[CHUNKS];
    struct hec_activity chunk[CHUNKS][HEC_AHEAD_CHUNK];
};

/* Chunks that wait for the last taker. */
static unsigned behind(const struct hec_ahead *a) {
    unsigned most = 0;
    for (size_t i = 0; i < a->taker_count; i++)
        if (a->takers[i].count && a->filled - a->takers[i].taken > most)
            most = a->filled - a->takers[i].taken;
    return most;
}

struct hec_activity *hec_ahead_room(struct hec_ahead *a) {
    pthread_mutex_lock(&a->mutex);
    if (behind(a) == CHUNKS)
        while (!a->stopping && behind(a) > CHUNKS / 2)
            pthread_cond_wait(&a->filling, &a->mutex);
    bool stopping = a->stopping;
    pthread_mutex_unlock(&a->mutex);
    return stopping ? NULL : a->chunk[a->filled % CHUNKS];
}

static void visit_chunk(struct taker *t, unsigned at) {
    for (size_t i = 0; i < t->count && !t->stop; i++)
        t->stop = t->visitors[i].visit(t->visitors[i].context, t->ahead->chunk[at], t->ahead->length[at]);
}

/* After a chunk, or where a taker stops. */
static void chunk_done(struct taker *t) {
    struct hec_ahead *a = t->ahead;
    pthread_mutex_lock(&a->mutex);
    t->taken++;
    a->stopping |= t->stop != 0;
    if (t->stop)
        pthread_cond_broadcast(&a->taking);
    if (t->stop || behind(a) == CHUNKS / 2)
        pthread_cond_signal(&a->filling);
    pthread_mutex_unlock(&a->mutex);
}

void hec_ahead_put(struct hec_ahead *a, size_t count) {
    pthread_mutex_lock(&a->mutex);
    a->length[a->filled % CHUNKS] = count;
    a->filled++;
    bool half = false;
    for (size_t i = 0; i < a->taker_count; i++)
        half |= a->filled - a->takers[i].taken == CHUNKS / 2;
    if (half)
        pthread_cond_broadcast(&a->taking);
    pthread_mutex_unlock(&a->mutex);
    if (!a->threaded) {
        visit_chunk(&a->takers[0], (a->filled - 1) % CHUNKS);
        chunk_done(&a->takers[0]);
    }
}

static void *fill(void *context) {
    struct hec_ahead *a = context;
    int err = a->source(a->source_context, a, &a->why);
    pthread_mutex_lock(&a->mutex);
    a->err = err;
    a->ended = true;
    pthread_cond_broadcast(&a->taking);
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

/* The number of chunks that wait; 0: there are no more. */
static unsigned wait_for_some(struct taker *t) {
    struct hec_ahead *a = t->ahead;
    pthread_mutex_lock(&a->mutex);
    if (a->filled == t->taken)
        while (!a->ended && !a->stopping && a->filled - t->taken < CHUNKS / 2)
            pthread_cond_wait(&a->taking, &a->mutex);
    unsigned some = a->stopping ? 0 : a->filled - t->taken;
    pthread_mutex_unlock(&a->mutex);
    return some;
}

static void *take_all(void *context) {
    struct taker *t = context;
    for (unsigned some; !t->stop && (some = wait_for_some(t)) > 0;)
        for (; some > 0 && !t->stop; some--) {
            visit_chunk(t, t->taken % CHUNKS);
            chunk_done(t);
        }
    return NULL;
}

/* A thread for each visitor, from the last on, before there are chunks; the first taker calls those for which there is none.
 * Returns how many those are. */
static size_t start_takers(struct hec_ahead *a, const struct hec_activity_visitor *visitors) {
    size_t own = a->taker_count;
    for (size_t i = 0; i < a->taker_count; i++)
        a->takers[i] = (struct taker){.ahead = a, .visitors = &visitors[i], .count = 1};
    while (own > 1 && pthread_create(&a->takers[own - 1].thread, NULL, take_all, &a->takers[own - 1]) == 0)
        own--;
    a->takers[0].count = own;
    for (size_t i = 1; i < own; i++)
        a->takers[i].count = 0;
    return own;
}

static void run(struct hec_ahead *a, const struct hec_activity_visitor *visitors) {
    pthread_t thread;
    size_t own = start_takers(a, visitors);
    a->threaded = true;
    if (pthread_create(&thread, NULL, fill, a) != 0) {
        a->threaded = false;
        fill(a);
    }
    take_all(&a->takers[0]);
    for (size_t i = own; i < a->taker_count; i++)
        pthread_join(a->takers[i].thread, NULL);
    if (a->threaded)
        pthread_join(thread, NULL);
}

int hec_ahead_run(hec_ahead_source source, void *source_context, const struct hec_activity_visitor *visitors,
                  size_t count, struct hec_why *why) {
    struct hec_ahead *a = calloc(1, sizeof *a);
    if (!a || !(a->takers = calloc(count, sizeof *a->takers))) {
        free(a);
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    a->source = source;
    a->source_context = source_context;
    a->taker_count = count;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->filling, NULL);
    pthread_cond_init(&a->taking, NULL);
    run(a, visitors);
    int err = 0;
    for (size_t i = 0; i < count && !err; i++)
        err = a->takers[i].stop;
    if (!err && a->err)
        err = hec_fail(why, a->err, "%s", a->why.text);
    pthread_cond_destroy(&a->taking);
    pthread_cond_destroy(&a->filling);
    pthread_mutex_destroy(&a->mutex);
    free(a->takers);
    free(a);
    return err;
}
