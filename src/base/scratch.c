#include "base/scratch.h"

#include "base/live.h"
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PREFIX "hec-"
#define OWNER "owner"

/* What the owner's file says. Of this host: on a file system that several share, locks may not reach the others. */
static int mark(char text[256]) {
    struct utsname host;
    if (uname(&host) != 0)
        return 0;
    return snprintf(text, 256, "private folder of hec on %s\n", host.nodename);
}

/* The owner's file goes last, so that what is left half removed is known the next time. */
static int empty(int folder) {
    int errnum = hec_tree_empty(folder, OWNER);
    if (errnum == 0)
        unlinkat(folder, OWNER, 0);
    return errnum;
}

static bool is_abandoned(int folder) {
    struct stat status;
    char expected[256], found[256];
    int fd = openat(folder, OWNER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    int length = mark(expected);
    bool abandoned = length > 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
                     read(fd, found, sizeof found) == length && memcmp(found, expected, (size_t)length) == 0 &&
                     !hec_live_held(fd);
    close(fd);
    return abandoned;
}

void hec_scratch_sweep(const char *parent) {
    DIR *list = opendir(parent);
    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));) {
        struct stat status;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        int fd = openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && is_abandoned(fd)) {
            empty(fd);
            unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
        }
        close(fd);
    }
    closedir(list);
}

/* The mark is written under the lock: nobody takes the folder for abandoned before. Where there are no locks it is not
 * written, and the folder is never taken for abandoned. */
static int own(const char *path) {
    char name[PATH_MAX], text[256];
    if (snprintf(name, sizeof name, "%s/" OWNER, path) >= (int)sizeof name)
        return -1;
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int length = mark(text);
    if (fd >= 0 && length > 0 && hec_live_hold(fd) && write(fd, text, (size_t)length) != length) {
        close(fd);
        unlink(name);
        return -1;
    }
    return fd;
}

/* An errno. */
static int make(struct hec_scratch *scratch, const char *parent) {
    hec_scratch_sweep(parent);
    errno = ENAMETOOLONG;
    bool made = snprintf(scratch->path, sizeof scratch->path, "%s/" PREFIX "XXXXXX", parent) < PATH_MAX - 32 &&
                mkdtemp(scratch->path);
    if (made && (scratch->owner = own(scratch->path)) >= 0)
        return 0;
    int errnum = errno;
    if (made)
        rmdir(scratch->path);
    scratch->path[0] = '\0';
    return errnum;
}

int hec_scratch_make(struct hec_scratch *scratch, const char *parent, struct hec_why *why) {
    int errnum = make(scratch, parent);
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot make a temporary folder in %.300s: %s", parent,
                             strerror(errnum))
                  : HEC_OK;
}

int hec_scratch_make_beside(struct hec_scratch *scratch, const char *path, struct hec_why *why) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 1;
    snprintf(parent, sizeof parent, "%.*s", length ? length : 1, slash ? path : ".");
    int errnum = make(scratch, parent);
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", path, strerror(errnum))
                  : HEC_OK;
}

void hec_scratch_remove(struct hec_scratch *scratch) {
    if (!scratch->path[0])
        return;
    int fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        empty(fd);
        close(fd);
    }
    rmdir(scratch->path);
    close(scratch->owner);
    scratch->path[0] = '\0';
}
