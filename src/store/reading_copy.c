/* SQLite needs to write beside a file that a killed writer left behind. Where it may not, a private copy is read. */
#include "base/scratch.h"
#include "store/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY_MAX_BYTES (INT64_C(1) << 30) /* TMPDIR may be memory */

static const char *const suffixes[] = {"", "-wal", "-journal"};

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
    struct hec_scratch folder;
    struct hec_why reason;
    char copy[PATH_MAX + 16], from[PATH_MAX + 16], to[PATH_MAX + 32];
    const char *base = getenv("TMPDIR");
    int err = hec_scratch_make(&folder, base && base[0] == '/' ? base : "/tmp", &reason);
    if (err)
        return hec_fail(why, err, "%s cannot be read in place, and no copy can be made: %.150s", reader->path,
                        reason.text);
    int errnum = join(copy, sizeof copy, folder.path, "/run.hec");
    int64_t room = COPY_MAX_BYTES;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && !errnum; i++) {
        errnum = join(from, sizeof from, path, suffixes[i]);
        if (!errnum)
            errnum = join(to, sizeof to, copy, suffixes[i]);
        if (!errnum)
            errnum = copy_file(from, to, &room);
    }
    int rc = errnum ? SQLITE_OK : hec_reading_open(reader, copy, SQLITE_OPEN_READWRITE);
    hec_scratch_remove(&folder); /* SQLite holds the files open */
    if (errnum)
        return hec_fail(why, hec_err_from_errno(errnum), "%s cannot be read in place, and copying it failed: %s",
                        reader->path, strerror(errnum));
    if (rc == SQLITE_OK)
        return HEC_OK;
    err = hec_sql_err(reader->db, rc);
    return err == HEC_ERR_CORRUPT ? hec_reading_corrupt(reader, why, sqlite3_errmsg(reader->db))
                                  : hec_sql_fail(reader->db, rc, why, "cannot read a copy of the run file");
}
