#include "observe/procfs/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static ssize_t read_all(int fd, char *text, size_t size) {
    size_t length = 0;
    while (length + 1 < size) {
        ssize_t got = pread(fd, text + length, size - 1 - length, (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        length += (size_t)got;
        /* the kernel fills a page before it cuts; asking again for the end would double the cost of the small ones */
        if (length < 3072)
            break;
    }
    text[length] = '\0';
    return (ssize_t)length;
}

ssize_t hec_proc_read(int dir, const char *path, char *text, size_t size) {
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t length = read_all(fd, text, size);
    close(fd);
    return length;
}

ssize_t hec_proc_reread(int fd, char *text, size_t size) {
    return read_all(fd, text, size);
}

bool hec_proc_error_is_gone(ssize_t error) {
    return error == -ENOENT || error == -ESRCH || error == -ENOTDIR;
}

bool hec_proc_error_is_denied(ssize_t error) {
    return error == -EACCES || error == -EPERM;
}

int hec_proc_list_numbers(int dir, const char *path, void (*visit)(void *context, int32_t number), void *context) {
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    _Alignas(struct dirent64) char entries[16384];
    ssize_t got;
    while ((got = getdents64(fd, entries, sizeof entries)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            char *end;
            long number = strtol(entry->d_name, &end, 10);
            if (*end == '\0' && number > 0 && number <= INT32_MAX)
                visit(context, (int32_t)number);
        }
    }
    int result = got < 0 ? -errno : 0;
    close(fd);
    return result;
}

void hec_proc_each_number(const char *text, void (*visit)(void *context, int32_t number), void *context) {
    for (const char *at = text;;) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at)
            return;
        if (number > 0 && number <= INT32_MAX)
            visit(context, (int32_t)number);
        at = end;
    }
}
