/* SQLite needs to write beside a file that a killed writer left behind. Where it may not, a private copy is read. */
#include "store/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_MAX_BYTES (INT64_C(1) << 30) /* TMPDIR may be memory */

static const char *const suffixes[] = {"", "-wal", "-journal", "-shm"};
#define COPIED 3 /* the first ones are copied, all are removed */

/* 0 or an errno; a source that does not exist is no error */
static int copy_file(const char *from, const char *to, int64_t *room) {
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0)
        return errno == ENOENT ? 0 : errno;
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int errnum = out < 0 ? errno : 0;
    static const size_t size = 65536;
    char *bytes = errnum ? NULL : malloc(size);
    if (!errnum && !bytes)
        errnum = ENOMEM;
    while (!errnum) {
        ssize_t length = read(in, bytes, size);
        if (length == 0)
            break;
        if (length < 0)
            errnum = errno;
        else if ((*room -= length) < 0)
            errnum = EFBIG;
        else if (write(out, bytes, (size_t)length) != length)
            errnum = errno ? errno : EIO;
    }
    free(bytes);
    close(in);
    if (out >= 0 && close(out) != 0 && !errnum)
        errnum = errno;
    return errnum;
}

static int join(char *out, size_t size, const char *a, const char *b) {
    int length = snprintf(out, size, "%s%s", a, b);
    return length >= 0 && (size_t)length < size ? 0 : ENAMETOOLONG;
}

int hec_reading_open_copy(struct hec_reader *reader, const char *path, struct hec_why *why) {
    char directory[3072], copy[3200], from[4200], to[3300];
    const char *base = getenv("TMPDIR");
    int errnum = join(directory, sizeof directory, base && base[0] == '/' ? base : "/tmp", "/hec-read-XXXXXX");
    if (!errnum && !mkdtemp(directory))
        errnum = errno;
    if (errnum)
        return hec_fail(why, hec_err_from_errno(errnum),
                        "%s cannot be read in place, and no copy can be made under %.100s: %s", reader->path,
                        base ? base : "/tmp", strerror(errnum));
    join(copy, sizeof copy, directory, "/run.hec");
    int64_t room = COPY_MAX_BYTES;
    for (size_t i = 0; i < COPIED && !errnum; i++) {
        errnum = join(from, sizeof from, path, suffixes[i]);
        join(to, sizeof to, copy, suffixes[i]);
        if (!errnum)
            errnum = copy_file(from, to, &room);
    }
    int rc = errnum ? SQLITE_OK : hec_reading_open(reader, copy, SQLITE_OPEN_READWRITE);
    /* SQLite holds the files open; nothing is left behind even if we are killed from here on */
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (join(to, sizeof to, copy, suffixes[i]) == 0)
            unlink(to);
    rmdir(directory);
    if (errnum)
        return hec_fail(why, hec_err_from_errno(errnum), "%s cannot be read in place, and copying it failed: %s",
                        reader->path, strerror(errnum));
    if (rc == SQLITE_OK)
        return HEC_OK;
    int err = hec_sql_err(reader->db, rc);
    return err == HEC_ERR_CORRUPT ? hec_reading_corrupt(reader, why, sqlite3_errmsg(reader->db))
                                  : hec_sql_fail(reader->db, rc, why, "cannot read a copy of the run file");
}
