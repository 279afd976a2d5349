#include "store/import/ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Each thread sleeps until half of the blocks are for it: woken at every block, the two took turns on one processor. */
#define BLOCKS 32
#define BLOCK_BYTES (64 * 1024)

struct hec_import_ahead {
    hec_import_ahead_source source;
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned filled, taken; /* blocks since the start; filled - taken <= BLOCKS */
    bool stopping;
    long last;   /* what ended the source: 0 or an error; 1 while it goes on */
    size_t used; /* bytes already taken of the block `taken` */
    struct hec_why why;
    long length[BLOCKS];
    unsigned char block[BLOCKS][BLOCK_BYTES];
};

static void *fill(void *context) {
    struct hec_import_ahead *a = context;
    pthread_mutex_lock(&a->mutex);
    while (!a->stopping && a->last > 0) {
        if (a->filled - a->taken == BLOCKS) {
            while (!a->stopping && a->filled - a->taken > BLOCKS / 2)
                pthread_cond_wait(&a->changed, &a->mutex);
            continue;
        }
        unsigned at = a->filled % BLOCKS;
        pthread_mutex_unlock(&a->mutex);
        long got = a->source(a->context, a->block[at], BLOCK_BYTES, &a->why);
        pthread_mutex_lock(&a->mutex);
        if (got > 0) {
            a->length[at] = got;
            a->filled++;
        } else {
            a->last = got;
        }
        if (got <= 0 || a->filled - a->taken >= BLOCKS / 2)
            pthread_cond_signal(&a->changed);
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

int hec_import_ahead_start(hec_import_ahead_source source, void *context, struct hec_import_ahead **out) {
    struct hec_import_ahead *a = malloc(sizeof *a);
    if (!a)
        return HEC_ERR_NOMEM;
    memset(a, 0, offsetof(struct hec_import_ahead, block));
    a->source = source;
    a->context = context;
    a->last = 1;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (pthread_create(&a->thread, NULL, fill, a) != 0) {
        pthread_cond_destroy(&a->changed);
        pthread_mutex_destroy(&a->mutex);
        free(a);
        return HEC_ERR_BUSY;
    }
    *out = a;
    return HEC_OK;
}

long hec_import_ahead_read(struct hec_import_ahead *a, void *bytes, size_t size, struct hec_why *why) {
    pthread_mutex_lock(&a->mutex);
    if (a->filled == a->taken)
        while (a->filled - a->taken < BLOCKS / 2 && a->last > 0)
            pthread_cond_wait(&a->changed, &a->mutex);
    bool empty = a->filled == a->taken;
    long last = a->last;
    pthread_mutex_unlock(&a->mutex);
    if (empty)
        return last < 0 ? hec_fail(why, (int)last, "%s", a->why.text) : 0;
    unsigned at = a->taken % BLOCKS;
    size_t left = (size_t)a->length[at] - a->used, got = left < size ? left : size;
    memcpy(bytes, a->block[at] + a->used, got);
    a->used += got;
    if (got == left) {
        a->used = 0;
        pthread_mutex_lock(&a->mutex);
        a->taken++;
        if (a->filled - a->taken <= BLOCKS / 2)
            pthread_cond_signal(&a->changed);
        pthread_mutex_unlock(&a->mutex);
    }
    return (long)got;
}

void hec_import_ahead_stop(struct hec_import_ahead *a) {
    if (!a)
        return;
    pthread_mutex_lock(&a->mutex);
    a->stopping = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}
