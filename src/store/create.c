#include "store/create.h"

#include "store/header.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_errno(struct hec_why *why, const char *path, int errnum) {
    return hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", path, strerror(errnum));
}

int hec_create_check(const char *path, bool overwrite, struct hec_why *why) {
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? HEC_OK : fail_errno(why, path, errno);
    if (!overwrite)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s exists already", path);
    if (S_ISDIR(st.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is a directory", path);
    if (!S_ISREG(st.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is not a regular file", path);
    struct hec_header header;
    if (st.st_size > 0 && (hec_header_read(path, &header, NULL) != HEC_OK || !header.is_run_file))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s exists and is not a HEC run file, so it is not overwritten", path);
    return HEC_OK;
}

static int write_all(int fd, const unsigned char *bytes, size_t length) {
    while (length > 0) {
        ssize_t done = write(fd, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        bytes += done;
        length -= (size_t)done;
    }
    return 0;
}

static int write_temporary(const char *temporary, struct hec_why *why, const char *path) {
    unsigned char *image;
    size_t length;
    int err = hec_schema_image(&image, &length, why);
    if (err)
        return err;
    unlink(temporary); /* left by a killed process that had our pid */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int errnum = fd < 0 ? errno : write_all(fd, image, length);
    if (fd >= 0 && close(fd) != 0 && !errnum)
        errnum = errno;
    free(image);
    if (errnum) {
        if (fd >= 0)
            unlink(temporary);
        return fail_errno(why, path, errnum);
    }
    return HEC_OK;
}

/* The log of an earlier run at this path must not be taken for the new file's. */
static void remove_companions(const char *path) {
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char *name = NULL;
        if (asprintf(&name, "%s%s", path, suffixes[i]) < 0)
            continue;
        unlink(name);
        free(name);
    }
}

static int move_into_place(const char *temporary, const char *path, bool overwrite) {
    if (overwrite)
        return rename(temporary, path) == 0 ? 0 : errno;
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* a file system without that call (NFS, some FUSE): a link does not replace either */
    if (link(temporary, path) != 0)
        return errno;
    unlink(temporary);
    return 0;
}

int hec_create_place(const char *temporary, const char *path, bool overwrite, struct hec_why *why) {
    remove_companions(path);
    int errnum = move_into_place(temporary, path, overwrite);
    if (errnum == EEXIST)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s exists already", path);
    return errnum ? fail_errno(why, path, errnum) : HEC_OK;
}

void hec_create_remove(const char *path) {
    unlink(path);
    remove_companions(path);
}

int hec_create_file(const char *path, bool overwrite, struct hec_why *why) {
    int err = hec_create_check(path, overwrite, why);
    if (err)
        return err;
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.%ld.new", path, (long)getpid()) < 0)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    err = write_temporary(temporary, why, path);
    if (err == HEC_OK && (err = hec_create_place(temporary, path, overwrite, why)) != HEC_OK)
        unlink(temporary);
    free(temporary);
    return err;
}
