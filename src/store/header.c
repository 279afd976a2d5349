#include "store/header.h"

#include "base/live.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 100

static uint32_t big_endian(const unsigned char *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

void hec_header_parse(const unsigned char *bytes, size_t length, struct hec_header *header) {
    memset(header, 0, sizeof *header);
    header->file_bytes = (int64_t)length;
    header->is_sqlite = length >= HEADER_BYTES && memcmp(bytes, "SQLite format 3", 16) == 0;
    if (header->is_sqlite) {
        uint32_t page = big_endian(bytes + 16, 2);
        header->expected_bytes = (int64_t)(page == 1 ? 65536 : page) * big_endian(bytes + 28, 4);
        header->version = big_endian(bytes + 60, 4);
        header->is_run_file = big_endian(bytes + 68, 4) == HEC_SCHEMA_APPLICATION_ID;
    }
}

/* What SQLite would read beside a file of this owner. In a shared folder anybody can put one there. */
static int see_log(const char *path, const char *suffix, uid_t owner, int64_t *bytes, struct hec_why *why) {
    char *name = NULL;
    struct stat st;
    int err = HEC_OK;
    *bytes = 0;
    if (asprintf(&name, "%s%s", path, suffix) < 0)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    bool there = lstat(name, &st) == 0;
    if (there && st.st_uid != owner && st.st_uid != geteuid() && st.st_uid != 0)
        err = hec_fail(why, HEC_ERR_PERMISSION,
                       "%.200s is not read: %.200s beside it is of another user, who could change what is read", path,
                       name);
    else if (there && S_ISREG(st.st_mode))
        *bytes = st.st_size;
    free(name);
    return err;
}

int hec_header_read(const char *path, struct hec_header *header, struct hec_why *why) {
    memset(header, 0, sizeof *header);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO must not hang us */
    if (fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot open %.300s: %s", path, strerror(errno));
    struct stat st;
    unsigned char bytes[HEADER_BYTES];
    ssize_t length = 0;
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (regular)
        length = pread(fd, bytes, sizeof bytes, 0);
    int errnum = errno;
    bool live = regular && hec_live_held(fd);
    close(fd);
    if (!regular)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is not a regular file", path);
    if (length < 0)
        return hec_fail(why, hec_err_from_errno(errnum), "cannot read %.300s: %s", path, strerror(errnum));
    hec_header_parse(bytes, (size_t)length, header);
    header->file_bytes = st.st_size;
    header->live = live;
    int64_t wal_bytes = 0, journal_bytes = 0, index_bytes;
    int err = see_log(path, "-wal", st.st_uid, &wal_bytes, why);
    if (err == HEC_OK)
        err = see_log(path, "-journal", st.st_uid, &journal_bytes, why);
    if (err == HEC_OK)
        err = see_log(path, "-shm", st.st_uid, &index_bytes, why);
    header->log_bytes = wal_bytes + journal_bytes;
    return err;
}
