#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
