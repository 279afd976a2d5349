#include "store/create.h"

#include "base/clock.h"
#include "base/live.h"
#include "store/header.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
#define SUFFIXES (sizeof suffixes / sizeof suffixes[0])

static int fail_errno(struct hec_why *why, const char *path, int errnum) {
    return hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", path, strerror(errnum));
}

static int fail_exists(struct hec_why *why, const char *path) {
    return hec_fail(why, HEC_ERR_EXISTS, "%.300s exists already", path);
}

int hec_create_check(const char *path, bool overwrite, struct hec_why *why) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? HEC_OK : fail_errno(why, path, errno);
    if (!overwrite)
        return fail_exists(why, path);
    if (S_ISDIR(st.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is a directory", path);
    if (!S_ISREG(st.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is not a regular file", path);
    struct hec_header header;
    if (st.st_size > 0 && (hec_header_read(path, &header, NULL) != HEC_OK || !header.is_run_file))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s exists and is not a HEC run file, so it is not overwritten", path);
    if (st.st_size > 0 && header.live)
        return hec_fail(why, HEC_ERR_BUSY, "%.300s is being written by another run", path);
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

/* A new file of these bytes; *out is its descriptor. Returns an errno. */
static int write_temporary(const char *temporary, const struct hec_image *image, int *out) {
    int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    hec_live_hold(fd);
    int errnum = write_all(fd, image->bytes, image->length);
    if (errnum) {
        close(fd);
        unlink(temporary);
        return errnum;
    }
    *out = fd;
    return 0;
}

/* For each file that SQLite may keep beside path: remove it, and with claim make it anew. Nobody else can remove or
 * replace what is this user's, neither in a sticky folder nor in one of this user's. */
static int clear_companions(const char *path, bool claim, struct hec_why *why) {
    int err = HEC_OK;
    for (size_t i = 0; i < SUFFIXES && err == HEC_OK; i++) {
        char *name = NULL;
        if (asprintf(&name, "%s%s", path, suffixes[i]) < 0)
            return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
        int errnum = unlink(name) == 0 || errno == ENOENT ? 0 : errno;
        if (!errnum && claim) {
            int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
            errnum = fd < 0 ? errno : 0;
            if (fd >= 0)
                close(fd);
        }
        if (errnum == EPERM || errnum == EACCES || errnum == EEXIST || errnum == EISDIR)
            err = hec_fail(why, HEC_ERR_PERMISSION,
                           "cannot create %.200s: %.200s is there and cannot be removed; whose it is could read and "
                           "change the run",
                           path, name);
        else if (errnum)
            err = fail_errno(why, name, errnum);
        free(name);
    }
    return err;
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

static bool has_companions(const char *path) {
    bool has = false;
    for (size_t i = 0; i < SUFFIXES && !has; i++) {
        char *name = NULL;
        struct stat st;
        has = asprintf(&name, "%s%s", path, suffixes[i]) < 0 || lstat(name, &st) == 0;
        free(name);
    }
    return has;
}

/* What lies beside an old file goes, the old file first: without its log it would be a broken one where this process is killed in
 * between. What cannot be removed gives it back. */
static int make_room(const char *temporary, const char *path, struct hec_why *why) {
    char *aside = NULL;
    if (!has_companions(path))
        return HEC_OK;
    if (asprintf(&aside, "%s.old", temporary) < 0)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    bool moved = rename(path, aside) == 0;
    int err = moved || errno == ENOENT ? clear_companions(path, false, why) : fail_errno(why, path, errno);
    if (moved && err != HEC_OK)
        rename(aside, path);
    else if (moved)
        unlink(aside);
    free(aside);
    return err;
}

/* Without overwrite the name comes first: until it is ours, what lies beside it may be another run's. */
static int place(const char *temporary, const char *path, bool overwrite, bool claim, struct hec_why *why) {
    int err = overwrite ? make_room(temporary, path, why) : HEC_OK;
    if (err != HEC_OK)
        return err;
    int errnum = move_into_place(temporary, path, overwrite);
    if (errnum)
        return errnum == EEXIST ? fail_exists(why, path) : fail_errno(why, path, errnum);
    err = clear_companions(path, claim, why);
    if (err != HEC_OK)
        hec_create_remove(path);
    return err;
}

int hec_create_place(const char *temporary, const char *path, bool overwrite, struct hec_why *why) {
    return place(temporary, path, overwrite, false, why);
}

void hec_create_remove(const char *path) {
    unlink(path);
    clear_companions(path, false, NULL);
}

static int create(const char *path, bool overwrite, bool claim, const struct hec_image *image, int *file_fd,
                  struct hec_why *why) {
    char *temporary = NULL;
    *file_fd = -1;
    int err = hec_create_check(path, overwrite, why);
    if (err != HEC_OK)
        return err;
    /* a name that nobody can foresee and take */
    if (asprintf(&temporary, "%s.%ld-%llx.new", path, (long)getpid(), (long long)hec_clock_mono_ns()) < 0)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    int errnum = write_temporary(temporary, image, file_fd);
    err = errnum ? fail_errno(why, path, errnum) : place(temporary, path, overwrite, claim, why);
    if (err != HEC_OK && !errnum) {
        unlink(temporary);
        close(*file_fd);
    }
    free(temporary);
    return err;
}

int hec_create_file(const char *path, bool overwrite, int *file_fd, struct hec_why *why) {
    struct hec_image image;
    int err = hec_schema_image(&image.bytes, &image.length, why);
    if (err == HEC_OK)
        err = create(path, overwrite, true, &image, file_fd, why);
    free(image.bytes);
    return err;
}

int hec_create_claim(const char *path, struct hec_why *why) {
    return clear_companions(path, true, why);
}

static void remove_companion(const char *path, const char *suffix) {
    char *name = NULL;
    if (asprintf(&name, "%s%s", path, suffix) >= 0)
        unlink(name);
    free(name);
}

/* SQLite looks at a rollback journal when it opens a file, and not in write-ahead mode afterwards. */
void hec_create_opened(const char *path, bool shared) {
    remove_companion(path, "-journal");
    if (!shared)
        remove_companion(path, "-shm");
}

bool hec_create_is_there(const char *path, int file_fd) {
    struct stat there, ours;
    return stat(path, &there) == 0 && fstat(file_fd, &ours) == 0 && there.st_dev == ours.st_dev &&
           there.st_ino == ours.st_ino;
}

int hec_create_write(const char *path, bool overwrite, const struct hec_image *image, struct hec_why *why) {
    int fd = -1, err = create(path, overwrite, false, image, &fd, why);
    if (err == HEC_OK && close(fd) != 0) {
        err = fail_errno(why, path, errno);
        hec_create_remove(path);
    }
    return err;
}
