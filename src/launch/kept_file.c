#include "launch/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int hec_kept_file_folders(const char *path) {
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *at = folder + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) /* 0700: the XDG specification */
            return -1;
        *at = '/';
    }
    return 0;
}

static int write_text(int fd, const char *text) {
    for (size_t left = strlen(text); left > 0;) {
        ssize_t wrote = write(fd, text, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return -1;
        text += wrote;
        left -= (size_t)wrote;
    }
    return 0;
}

static int give_rights(int fd) {
    mode_t mask = umask(077);
    umask(mask);
    return fchmod(fd, 0666 & ~mask);
}

/* Without a name where the file system can, so that a killed process leaves nothing of it; else temporary is the name. */
static int open_new(const char *path, char temporary[PATH_MAX + 16]) {
    const char *slash = strrchr(path, '/');
    snprintf(temporary, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(temporary, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    temporary[0] = '\0';
    if (fd >= 0)
        return fd;
    snprintf(temporary, PATH_MAX + 16, "%s.XXXXXX", path);
    return mkostemp(temporary, O_CLOEXEC);
}

/* A link replaces nothing: it gets a name beside the path first. */
static int give_name(int fd, const char *path, char temporary[PATH_MAX + 16]) {
    char link[40];
    int result = -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    for (unsigned i = 0; result != 0 && i < 1000; i++) {
        snprintf(temporary, PATH_MAX + 16, "%s.%06u", path, ((unsigned)getpid() + i) % 1000000);
        result = linkat(AT_FDCWD, link, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW);
        if (result != 0)
            temporary[0] = '\0';
        if (result != 0 && errno != EEXIST)
            break;
    }
    return result;
}

int hec_kept_file_write(const char *path, const char *text, bool for_others, struct hec_why *why) {
    char temporary[PATH_MAX + 16] = "";
    int fd = -1;
    size_t length = strlen(text);
    bool done = hec_kept_file_folders(path) == 0, ended = length && text[length - 1] == '\n';
    if (done) {
        fd = open_new(path, temporary);
        done = fd >= 0 && (!for_others || give_rights(fd) == 0) && write_text(fd, text) == 0 &&
               (ended || write_text(fd, "\n") == 0) && fsync(fd) == 0 &&
               (temporary[0] || give_name(fd, path, temporary) == 0) && rename(temporary, path) == 0;
    }
    int reason = errno;
    if (fd >= 0) {
        close(fd);
        if (!done && temporary[0])
            unlink(temporary);
    }
    return done ? HEC_OK : hec_fail(why, hec_err_from_errno(reason), "cannot write %s: %s", path, strerror(reason));
}

/* O_NONBLOCK: a named pipe must not hold hec up. */
int hec_kept_file_read(const char *path, size_t bytes_max, char **text, size_t *length, struct hec_why *why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = HEC_OK;
    struct stat status;
    *text = NULL;
    *length = 0;
    if (fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || (size_t)status.st_size > bytes_max)
        err = hec_fail(why, HEC_ERR_CORRUPT, "%s is no plain file of at most %zu bytes", path, bytes_max);
    else if (!(*text = malloc((size_t)status.st_size + 1)))
        err = hec_fail(why, HEC_ERR_NOMEM, "no memory");
    while (err == HEC_OK && *length < (size_t)status.st_size) {
        ssize_t got = read(fd, *text + *length, (size_t)status.st_size - *length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            err = hec_fail(why, HEC_ERR_IO, "cannot read %s: %s", path, strerror(errno));
        if (got <= 0)
            break;
        *length += (size_t)got;
    }
    close(fd);
    if (err < 0) {
        free(*text);
        *text = NULL;
    }
    return err;
}
