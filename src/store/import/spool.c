#include "store/import/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hec_import_spool_init(struct hec_import_spool *spool) {
    spool->fd = -1;
    spool->written = 0;
    spool->tail = NULL;
    spool->tail_count = spool->tail_capacity = 0;
}

void hec_import_spool_free(struct hec_import_spool *spool) {
    if (spool->fd >= 0)
        close(spool->fd);
    free(spool->tail);
    hec_import_spool_init(spool);
}

static int temporary_file(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    char path[PATH_MAX]; /* some file systems have no unnamed files */
    if (snprintf(path, sizeof path, "%s/hec-import-XXXXXX", folder) >= (int)sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int open_file(struct hec_import_spool *spool, struct hec_why *why) {
    const char *wish = secure_getenv("TMPDIR");
    const char *const folders[] = {wish && *wish ? wish : "/var/tmp", "/tmp"};
    for (size_t i = 0; i < 2 && spool->fd < 0; i++)
        spool->fd = temporary_file(folders[i]);
    if (spool->fd < 0)
        return hec_fail(why, hec_err_from_errno(errno),
                        "cannot make a temporary file in %s: %s (TMPDIR chooses another)", folders[0], strerror(errno));
    return HEC_OK;
}

static int whole(struct hec_import_spool *spool, bool write, struct hec_import_record *records, size_t count,
                 int64_t first, struct hec_why *why) {
    char *at = (char *)records;
    size_t left = count * sizeof *records;
    off_t offset = (off_t)first * (off_t)sizeof *records;
    while (left) {
        ssize_t done = write ? pwrite(spool->fd, at, left, offset) : pread(spool->fd, at, left, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return hec_fail(why, done < 0 ? hec_err_from_errno(errno) : HEC_ERR_IO,
                            "cannot %s the temporary file of the import: %s (TMPDIR chooses another folder)",
                            write ? "write" : "read", done < 0 ? strerror(errno) : "it is cut short");
        at += done;
        left -= (size_t)done;
        offset += done;
    }
    return HEC_OK;
}

/* Room for one more record in the tail: it grows, or what it holds goes to the file. */
static int make_room(struct hec_import_spool *spool, struct hec_why *why) {
    if (spool->tail_capacity < HEC_IMPORT_SPOOL_KEPT) {
        size_t capacity = spool->tail_capacity ? spool->tail_capacity * 2 : HEC_IMPORT_SPOOL_CHUNK;
        if (capacity > HEC_IMPORT_SPOOL_KEPT)
            capacity = HEC_IMPORT_SPOOL_KEPT;
        struct hec_import_record *tail = realloc(spool->tail, capacity * sizeof *tail);
        if (!tail)
            return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
        spool->tail = tail;
        spool->tail_capacity = capacity;
        return HEC_OK;
    }
    int err = spool->fd < 0 ? open_file(spool, why) : HEC_OK;
    if (err == HEC_OK)
        err = whole(spool, true, spool->tail, spool->tail_count, spool->written, why);
    if (err < 0)
        return err;
    spool->written += (int64_t)spool->tail_count;
    spool->tail_count = 0;
    return HEC_OK;
}

int hec_import_spool_add(struct hec_import_spool *spool, const struct hec_import_record *record, struct hec_why *why) {
    if (spool->tail_count == spool->tail_capacity) {
        int err = make_room(spool, why);
        if (err < 0)
            return err;
    }
    spool->tail[spool->tail_count++] = *record;
    return HEC_OK;
}

int64_t hec_import_spool_count(const struct hec_import_spool *spool) {
    return spool->written + (int64_t)spool->tail_count;
}

int hec_import_spool_visit(struct hec_import_spool *spool, int64_t first, int64_t last, bool change,
                           int (*visit)(void *context, struct hec_import_record *records, size_t count), void *context,
                           struct hec_why *why) {
    int err = HEC_OK;
    struct hec_import_record *chunk = NULL;
    if (first < spool->written && !(chunk = malloc(HEC_IMPORT_SPOOL_CHUNK * sizeof *chunk)))
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    while (err == HEC_OK && first < last && first < spool->written) {
        int64_t to = last < spool->written ? last : spool->written;
        size_t count = to - first < HEC_IMPORT_SPOOL_CHUNK ? (size_t)(to - first) : HEC_IMPORT_SPOOL_CHUNK;
        err = whole(spool, false, chunk, count, first, why);
        if (err == HEC_OK)
            err = visit(context, chunk, count);
        if (err == HEC_OK && change)
            err = whole(spool, true, chunk, count, first, why);
        first += (int64_t)count;
    }
    free(chunk);
    while (err == HEC_OK && first < last) {
        size_t count = last - first < HEC_IMPORT_SPOOL_CHUNK ? (size_t)(last - first) : HEC_IMPORT_SPOOL_CHUNK;
        err = visit(context, spool->tail + (first - spool->written), count);
        first += (int64_t)count;
    }
    return err;
}
