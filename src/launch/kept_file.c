#include "launch/kept_file.h"

#include "base/own.h"

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
static int open_new(const char *path, char temporary[HEC_NEW_FILE_NAME]) {
    const char *slash = strrchr(path, '/');
    snprintf(temporary, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(temporary, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    temporary[0] = '\0';
    if (fd >= 0)
        return fd;
    snprintf(temporary, HEC_NEW_FILE_NAME, "%s.XXXXXX", path);
    return mkostemp(temporary, O_CLOEXEC);
}

/* A link replaces nothing: it gets a name beside the path first. */
static int give_name(int fd, const char *path, char temporary[HEC_NEW_FILE_NAME]) {
    char link[40];
    int result = -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    for (unsigned i = 0; result != 0 && i < 1000; i++) {
        snprintf(temporary, HEC_NEW_FILE_NAME, "%s.%06u", path, ((unsigned)getpid() + i) % 1000000);
        result = linkat(AT_FDCWD, link, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW);
        if (result != 0)
            temporary[0] = '\0';
        if (result != 0 && errno != EEXIST)
            break;
    }
    return result;
}

/* On a file system without that flag (NFS, some FUSE) a hard link replaces nothing either. */
static int rename_new(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if ((errno != EINVAL && errno != ENOSYS) || link(from, to) != 0)
        return -1;
    unlink(from);
    return 0;
}

int hec_new_file_open(struct hec_new_file *file, const char *path, bool for_others) {
    *file = (struct hec_new_file){.path = path};
    file->fd = open_new(path, file->temporary);
    if (file->fd >= 0 && for_others && give_rights(file->fd) != 0) {
        int reason = errno;
        hec_new_file_drop(file);
        errno = reason;
    }
    return file->fd >= 0 ? 0 : -1;
}

int hec_new_file_place(struct hec_new_file *file, bool replace) {
    bool done = fsync(file->fd) == 0 && (file->temporary[0] || give_name(file->fd, file->path, file->temporary) == 0) &&
                (replace ? rename(file->temporary, file->path) : rename_new(file->temporary, file->path)) == 0;
    if (done)
        file->temporary[0] = '\0';
    int reason = errno;
    hec_new_file_drop(file);
    errno = reason;
    return done ? 0 : -1;
}

void hec_new_file_drop(struct hec_new_file *file) {
    if (file->fd < 0)
        return;
    close(file->fd);
    file->fd = -1;
    if (file->temporary[0])
        unlink(file->temporary);
}

int hec_kept_file_write(const char *path, const char *text, struct hec_why *why) {
    struct hec_new_file file;
    size_t length = strlen(text);
    bool ended = length && text[length - 1] == '\n', done = false;
    int err = hec_own_place(path, why);
    if (err < 0)
        return err;
    if (hec_kept_file_folders(path) == 0 && hec_new_file_open(&file, path, false) == 0) {
        done = write_text(file.fd, text) == 0 && (ended || write_text(file.fd, "\n") == 0);
        int reason = errno;
        if (done)
            done = hec_new_file_place(&file, true) == 0;
        else
            hec_new_file_drop(&file), errno = reason;
    }
    return done ? HEC_OK : hec_fail(why, hec_err_from_errno(errno), "cannot write %s: %s", path, strerror(errno));
}

/* O_NONBLOCK: a named pipe must not hold hec up. */
static int read_file(const char *path, bool own, size_t bytes_max, char **text, size_t *length, struct hec_why *why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = HEC_OK;
    struct stat status;
    *text = NULL;
    *length = 0;
    if (fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    if (own)
        err = hec_own_file(fd, path, geteuid(), why);
    if (err == HEC_OK && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || (size_t)status.st_size > bytes_max))
        err = hec_fail(why, HEC_ERR_CORRUPT, "%s is no plain file of at most %zu bytes", path, bytes_max);
    else if (err == HEC_OK && !(*text = malloc((size_t)status.st_size + 1)))
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

int hec_kept_file_read(const char *path, size_t bytes_max, char **text, size_t *length, struct hec_why *why) {
    *text = NULL;
    *length = 0;
    int err = hec_own_place(path, why);
    return err < 0 ? err : read_file(path, true, bytes_max, text, length, why);
}

int hec_small_file_read(const char *path, size_t bytes_max, char **text, size_t *length, struct hec_why *why) {
    return read_file(path, false, bytes_max, text, length, why);
}
