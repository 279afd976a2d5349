#include "base/scratch.h"

#include "base/live.h"

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

/* Each level holds a descriptor open: what lies deeper is moved up to the top first. */
#define DEPTH_MAX 32

struct walk {
    int top;
    dev_t device;
    unsigned moved; /* folders that were moved to the top, for their names */
    bool again;     /* one was: the top has to be read again */
    int errnum;
};

static void failed(struct walk *w) {
    if (w->errnum == 0)
        w->errnum = errno;
}

/* Overlayfs leaves folders of mode 000, and programs may, too. */
static int open_folder(int parent, const char *name) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    if (fd >= 0 && faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) == 0)
        return fd;
    int path = fd >= 0 ? fd : openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char link[40];
    if (path < 0)
        return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", path);
    if (chmod(link, 0700) == 0 && fd < 0)
        fd = openat(parent, name, flags);
    if (path != fd)
        close(path);
    return fd;
}

static void empty(struct walk *w, int folder, const char *keep, int depth);

static void remove_folder(struct walk *w, int parent, const char *name, int depth) {
    if (depth >= DEPTH_MAX) {
        char up[32];
        snprintf(up, sizeof up, "hec-deep-%u", w->moved++);
        if (renameat(parent, name, w->top, up) != 0)
            failed(w);
        w->again = true;
        return;
    }
    struct stat status;
    int fd = open_folder(parent, name);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == w->device)
        empty(w, fd, NULL, depth + 1);
    if (fd >= 0)
        close(fd);
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0)
        failed(w);
}

static void empty(struct walk *w, int folder, const char *keep, int depth) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        failed(w);
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (keep && strcmp(name, keep) == 0))
            continue;
        if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno == EISDIR || errno == EPERM)
            remove_folder(w, folder, name, depth);
        else
            failed(w);
    }
    closedir(list);
}

int hec_tree_empty(int folder, const char *keep) {
    struct walk w = {.top = folder};
    struct stat status;
    if (fstat(folder, &status) != 0)
        return errno;
    w.device = status.st_dev;
    do {
        w.again = false;
        empty(&w, folder, keep, 0);
    } while (w.again && w.errnum == 0);
    return w.errnum;
}

#define PREFIX "hec-"
/* The same name while it is made and while it is removed: it is empty then, if it has no mark. */
#define HIDDEN "." PREFIX
#define OWNER "owner"

/* What the owner's file says. Of this host: on a file system that several share, locks may not reach the others. */
static int mark(char text[256]) {
    struct utsname host;
    if (uname(&host) != 0)
        return 0;
    return snprintf(text, 256, "private folder of hec on %s\n", host.nodename);
}

/* Under the hidden name when the mark goes: what is left half removed is known the next time. */
static void take_apart(int parent, const char *name, int folder) {
    char hidden[NAME_MAX + 1];
    snprintf(hidden, sizeof hidden, ".%s", name[0] == '.' ? name + 1 : name);
    if (hec_tree_empty(folder, OWNER) != 0 || (name[0] != '.' && renameat(parent, name, parent, hidden) != 0))
        return;
    unlinkat(folder, OWNER, 0);
    unlinkat(parent, hidden, AT_REMOVEDIR);
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

static bool starts_with(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

void hec_scratch_sweep(const char *parent) {
    DIR *list = opendir(parent);
    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));) {
        struct stat status;
        bool hidden = starts_with(entry->d_name, HIDDEN);
        if (!hidden && !starts_with(entry->d_name, PREFIX))
            continue;
        int fd = openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            continue;
        bool own = fstat(fd, &status) == 0 && status.st_uid == geteuid();
        if (own && is_abandoned(fd))
            take_apart(dirfd(list), entry->d_name, fd);
        else if (own && hidden && strlen(entry->d_name) == strlen(HIDDEN "XXXXXX"))
            unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR); /* where it is empty */
        close(fd);
    }
    closedir(list);
}

/* The mark is written under the lock: nobody takes the folder for abandoned before. Where there are no locks it is not
 * written, and the folder is never taken for abandoned. Where the file system can, the file appears with both. */
static int own(const char *path) {
    char name[PATH_MAX], link[40], text[256];
    if (snprintf(name, sizeof name, "%s/" OWNER, path) >= (int)sizeof name)
        return -1;
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), length = mark(text);
    bool unnamed = fd >= 0;
    if (!unnamed)
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    bool done = length <= 0 || !hec_live_hold(fd) || write(fd, text, (size_t)length) == length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (done && unnamed)
        done = linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    if (done)
        return fd;
    int errnum = errno;
    close(fd);
    unlink(name);
    errno = errnum;
    return -1;
}

/* An errno. ENOENT: another process took it for one that was left. */
static int make_once(struct hec_scratch *scratch, const char *parent) {
    char hidden[PATH_MAX];
    errno = ENAMETOOLONG;
    if (snprintf(hidden, sizeof hidden, "%s/" HIDDEN "XXXXXX", parent) >= PATH_MAX - 32 || !mkdtemp(hidden))
        return errno;
    snprintf(scratch->path, sizeof scratch->path, "%s/%s", parent, strrchr(hidden, '/') + 2);
    if ((scratch->owner = own(hidden)) >= 0 && rename(hidden, scratch->path) == 0)
        return 0;
    int errnum = errno;
    int fd = open(hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        unlinkat(fd, OWNER, 0);
        close(fd);
    }
    rmdir(hidden);
    if (scratch->owner >= 0)
        close(scratch->owner);
    return errnum;
}

static int make(struct hec_scratch *scratch, const char *parent) {
    int errnum = ENOENT;
    hec_scratch_sweep(parent);
    for (int i = 0; i < 8 && (errnum == ENOENT || errnum == ENOTEMPTY || errnum == EEXIST); i++)
        errnum = make_once(scratch, parent);
    if (errnum)
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
    const char *name = strrchr(scratch->path, '/') + 1;
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%.*s", (int)(name - scratch->path), scratch->path);
    int in = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = in < 0 ? -1 : openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        take_apart(in, name, fd);
        close(fd);
    }
    if (in >= 0)
        close(in);
    close(scratch->owner);
    scratch->path[0] = '\0';
}
