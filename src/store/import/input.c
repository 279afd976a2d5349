#include "store/import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* Reading ahead in a thread: unpacking and parsing of a compressed trace take about as long as each other. */

/* Shaped like hec_import_input_read; called from the thread only. */
typedef long (*ahead_source)(void *context, void *bytes, size_t size, struct hec_why *why);

/* Each thread sleeps until half of the blocks are for it: woken at every block, the two took turns on one processor. */
#define BLOCKS 32
#define BLOCK_BYTES (64 * 1024)

struct ahead {
    ahead_source source;
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
    struct ahead *a = context;
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

/* HEC_ERR_NOMEM or, where no thread can be made, HEC_ERR_BUSY. */
static int ahead_start(ahead_source source, void *context, struct ahead **out) {
    struct ahead *a = malloc(sizeof *a);
    if (!a)
        return HEC_ERR_NOMEM;
    memset(a, 0, offsetof(struct ahead, block));
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

static long ahead_read(struct ahead *a, void *bytes, size_t size, struct hec_why *why) {
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

static void ahead_stop(struct ahead *a) {
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

#define RAW_BYTES (128 * 1024)

/* Real traces shrink to between 1/15 and 1/30. What grows a thousandfold is made to fill a disk or waste an hour: beyond
 * the first GiB, 500 times the file's size is refused. */
#define BOMB_FREE_BYTES (INT64_C(1) << 30)
#define BOMB_RATIO 500

enum packing { PLAIN, GZIP, ZSTANDARD };

struct hec_import_input {
    int fd;
    enum packing packing;
    bool ended;  /* no more raw bytes */
    bool begun;  /* the first gzip member */
    bool inside; /* a gzip member or zstd frame is not complete */
    int64_t size, raw_total, out_total;
    _Atomic int64_t used; /* raw bytes that were unpacked: asked for while the thread reads */
    struct ahead *ahead;  /* NULL: small, or not compressed */
    size_t raw_at, raw_length;
    z_stream z;
    ZSTD_DStream *zstd;
    char path[512]; /* for sentences */
    unsigned char raw[RAW_BYTES];
};

static int fill_raw(struct hec_import_input *in, struct hec_why *why) {
    ssize_t got;
    do
        got = read(in->fd, in->raw, sizeof in->raw);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return hec_fail(why, HEC_ERR_IO, "cannot read %s: %s", in->path, strerror(errno));
    in->raw_at = 0;
    in->raw_length = (size_t)got;
    in->raw_total += got;
    in->ended = got == 0;
    return HEC_OK;
}

static enum packing packing_of(const unsigned char *raw, size_t length) {
    if (length >= 2 && memcmp(raw, "\x1f\x8b", 2) == 0)
        return GZIP;
    if (length >= 4 && memcmp(raw, "\x28\xb5\x2f\xfd", 4) == 0)
        return ZSTANDARD;
    return PLAIN;
}

static int prepare(struct hec_import_input *in, struct hec_why *why) {
    in->packing = packing_of(in->raw, in->raw_length);
    if (in->packing == GZIP && inflateInit2(&in->z, 15 + 16) != Z_OK)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    if (in->packing == ZSTANDARD && !(in->zstd = ZSTD_createDStream()))
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    return HEC_OK;
}

static int damaged(const struct hec_import_input *in, const char *what, struct hec_why *why) {
    return hec_fail(why, HEC_ERR_CORRUPT, "%s: the compressed data are damaged near byte %lld of the file (%s)",
                    in->path, (long long)(in->raw_total - (int64_t)(in->raw_length - in->raw_at)), what);
}

/* One round of unpacking; returns the bytes written to `bytes`, possibly 0. */
static long unpack_gzip(struct hec_import_input *in, void *bytes, size_t size, struct hec_why *why) {
    if (in->begun && !in->inside) {
        /* what follows a member is another member, or padding that gzip ignores too */
        if (in->raw[in->raw_at] != 0x1f) {
            in->raw_at = in->raw_length = 0;
            in->ended = true;
            return 0;
        }
        if (inflateReset(&in->z) != Z_OK)
            return damaged(in, "gzip", why);
    }
    in->begun = in->inside = true;
    in->z.next_in = in->raw + in->raw_at;
    in->z.avail_in = (uInt)(in->raw_length - in->raw_at);
    in->z.next_out = bytes;
    in->z.avail_out = (uInt)size;
    int result = inflate(&in->z, Z_NO_FLUSH);
    in->raw_at = in->raw_length - in->z.avail_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return damaged(in, in->z.msg ? in->z.msg : "gzip", why);
    in->inside = result != Z_STREAM_END;
    return (long)(size - in->z.avail_out);
}

static long unpack_zstd(struct hec_import_input *in, void *bytes, size_t size, struct hec_why *why) {
    ZSTD_inBuffer from = {in->raw, in->raw_length, in->raw_at};
    ZSTD_outBuffer to = {bytes, size, 0};
    size_t result = ZSTD_decompressStream(in->zstd, &to, &from);
    in->raw_at = from.pos;
    if (ZSTD_isError(result))
        return damaged(in, ZSTD_getErrorName(result), why);
    in->inside = result != 0;
    return (long)to.pos;
}

static long unpack(struct hec_import_input *in, void *bytes, size_t size, struct hec_why *why) {
    for (;;) {
        if (in->raw_at == in->raw_length && !in->ended) {
            int err = fill_raw(in, why);
            if (err < 0)
                return err;
        }
        if (in->raw_at == in->raw_length && in->ended && !in->inside)
            return 0;
        long got = in->packing == GZIP ? unpack_gzip(in, bytes, size, why) : unpack_zstd(in, bytes, size, why);
        if (got)
            return got;
        if (in->raw_at == in->raw_length && in->ended && in->inside)
            return hec_fail(why, HEC_ERR_CORRUPT,
                            "%s is cut short: its compressed data end after byte %lld of the file", in->path,
                            (long long)in->raw_total);
    }
}

static long read_now(void *context, void *bytes, size_t size, struct hec_why *why) {
    struct hec_import_input *in = context;
    long got;
    if (in->packing != PLAIN) {
        got = unpack(in, bytes, size, why);
    } else {
        if (in->raw_at == in->raw_length && !in->ended) {
            int err = fill_raw(in, why);
            if (err < 0)
                return err;
        }
        got = (long)(in->raw_length - in->raw_at < size ? in->raw_length - in->raw_at : size);
        memcpy(bytes, in->raw + in->raw_at, (size_t)got);
        in->raw_at += (size_t)got;
    }
    if (got <= 0)
        return got;
    in->out_total += got;
    atomic_store_explicit(&in->used, in->raw_total - (int64_t)(in->raw_length - in->raw_at), memory_order_relaxed);
    if (in->packing != PLAIN && in->out_total > BOMB_FREE_BYTES && in->out_total / BOMB_RATIO > in->size)
        return hec_fail(why, HEC_ERR_LIMIT, "%s grows to more than %d times its size when unpacked: that is no trace",
                        in->path, BOMB_RATIO);
    return got;
}

int hec_import_input_open(const char *path, struct hec_import_input **out, struct hec_why *why) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0) {
        int err = hec_fail(why, hec_err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return err;
    }
    if (!S_ISREG(status.st_mode)) {
        close(fd);
        return hec_fail(why, HEC_ERR_USAGE, "%s is not a regular file", path);
    }
    struct hec_import_input *in = calloc(1, sizeof *in);
    if (!in) {
        close(fd);
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    in->fd = fd;
    in->size = status.st_size;
    size_t length = strlen(path), skip = length < sizeof in->path ? 0 : length - sizeof in->path + 1;
    memcpy(in->path, path + skip, length - skip + 1);
    int err = fill_raw(in, why);
    if (err == HEC_OK)
        err = prepare(in, why);
    if (err == HEC_OK && in->packing != PLAIN && in->size > RAW_BYTES)
        ahead_start(read_now, in, &in->ahead); /* without it, it takes longer */
    if (err < 0)
        hec_import_input_close(in);
    else
        *out = in;
    return err;
}

long hec_import_input_read(struct hec_import_input *in, void *bytes, size_t size, struct hec_why *why) {
    return in->ahead ? ahead_read(in->ahead, bytes, size, why) : read_now(in, bytes, size, why);
}

double hec_import_input_share(const struct hec_import_input *in) {
    int64_t used = atomic_load_explicit(&in->used, memory_order_relaxed);
    return in->size > 0 && used < in->size ? (double)used / (double)in->size : in->size > 0 ? 1 : 0;
}

const char *hec_import_input_path(const struct hec_import_input *in) {
    return in->path;
}

void hec_import_input_close(struct hec_import_input *in) {
    if (!in)
        return;
    ahead_stop(in->ahead);
    if (in->packing == GZIP)
        inflateEnd(&in->z);
    ZSTD_freeDStream(in->zstd);
    close(in->fd);
    free(in);
}
