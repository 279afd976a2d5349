#include "store/header.h"

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

static int64_t size_of(const char *path, const char *suffix) {
    char *name = NULL;
    struct stat st;
    if (asprintf(&name, "%s%s", path, suffix) < 0)
        return 0;
    int64_t bytes = stat(name, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
    free(name);
    return bytes;
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
    close(fd);
    if (!regular)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is not a regular file", path);
    if (length < 0)
        return hec_fail(why, hec_err_from_errno(errnum), "cannot read %.300s: %s", path, strerror(errnum));
    header->file_bytes = st.st_size;
    header->is_sqlite = length == HEADER_BYTES && memcmp(bytes, "SQLite format 3", 16) == 0;
    if (header->is_sqlite) {
        uint32_t page = big_endian(bytes + 16, 2);
        header->expected_bytes = (int64_t)(page == 1 ? 65536 : page) * big_endian(bytes + 28, 4);
        header->version = big_endian(bytes + 60, 4);
        header->is_run_file = big_endian(bytes + 68, 4) == HEC_SCHEMA_APPLICATION_ID;
    }
    header->log_bytes = size_of(path, "-wal") + size_of(path, "-journal");
    return HEC_OK;
}
