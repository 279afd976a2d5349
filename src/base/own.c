#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel takes */
#define ACL "system.posix_acl_access"

/* In a user namespace files of users outside, and of the machine's root, all belong to this one. */
static bool is_outside(uid_t uid) {
    unsigned first = 0, outside = 0, count = 0;
    FILE *map = fopen("/proc/self/uid_map", "re");
    bool all = !map || (fscanf(map, "%u %u %u", &first, &outside, &count) == 3 && count == UINT_MAX);
    if (map)
        fclose(map);
    return !all && uid == 65534;
}

static bool is_anothers(const struct stat *at, uid_t also) {
    return at->st_uid != geteuid() && at->st_uid != 0 && at->st_uid != also && !is_outside(at->st_uid);
}

/* What is wrong with it; NULL: nothing. list: bytes of its list of users who may (POSIX ACL), of which the group's rights in the mode are
 * the most that it gives; so they are not the group's alone. */
static const char *wrong(const struct stat *at, ssize_t list, uid_t also, bool sticky_will_do) {
    if (is_anothers(at, also))
        return "belongs to another user";
    if (sticky_will_do && (at->st_mode & S_ISVTX))
        return NULL;
    if (at->st_mode & S_IWOTH)
        return "may be written by everybody";
    if (!(at->st_mode & S_IWGRP))
        return NULL;
    return list > 0                   ? "may be written by others that its list of rights names"
           : at->st_gid != at->st_uid ? "may be written by its group"
                                      : NULL;
}

static int refuse(const char *what, const char *path, struct hec_why *why) {
    return hec_fail(why, HEC_ERR_PERMISSION, "%.300s %s, so nothing there is trusted or kept", path, what);
}

/* A folder without links in its path ("": the root), and all above it. itself: a sticky bit will not do for the first. */
static int check_chain(const char *folder, uid_t also, bool itself, struct hec_why *why) {
    char path[PATH_MAX];
    struct stat at;
    snprintf(path, sizeof path, "%s", folder[0] ? folder : "/");
    for (bool last = itself;; last = false) {
        const char *what =
            stat(path, &at) == 0 && S_ISDIR(at.st_mode) ? wrong(&at, getxattr(path, ACL, NULL, 0), also, !last) : NULL;
        if (what)
            return refuse(what, path, why);
        char *slash = strrchr(path, '/');
        if (slash == path && path[1] == '\0')
            return HEC_OK;
        slash[slash == path] = '\0';
    }
}

/* A path on the way: what of it has been looked at, without links, and what is left. */
struct way {
    char done[PATH_MAX], left[PATH_MAX];
    int links;
};

/* Whoever owns a link, or may put another one in its place, may make it lead elsewhere at any time. */
static int follow(struct way *way, const char *link, const struct stat *at, size_t rest, uid_t also,
                  struct hec_why *why) {
    char target[PATH_MAX], left[PATH_MAX];
    if (is_anothers(at, also))
        return refuse("is a link of another user", link, why);
    int err = check_chain(way->done, also, false, why);
    ssize_t length = err < 0 ? -1 : readlink(link, target, sizeof target - 1);
    if (err < 0 || length < 0)
        return err;
    target[length] = '\0';
    if (++way->links > LINKS_MAX || snprintf(left, sizeof left, "%s/%s", target, way->left + rest) >= (int)sizeof left)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s: too many links", link);
    memcpy(way->left, left, sizeof left);
    if (target[0] == '/')
        way->done[0] = '\0';
    return HEC_OK;
}

/* The next name on the way. *there: it exists. */
static int step(struct way *way, uid_t also, bool *there, struct hec_why *why) {
    char next[PATH_MAX];
    struct stat at;
    const char *name = way->left + strspn(way->left, "/");
    size_t size = strcspn(name, "/"), rest = (size_t)(name - way->left) + size;
    if (size == 2 && strncmp(name, "..", 2) == 0) {
        char *slash = strrchr(way->done, '/');
        way->done[slash ? slash - way->done : 0] = '\0';
    } else if (size > 0 && !(size == 1 && name[0] == '.')) {
        if (snprintf(next, sizeof next, "%s/%.*s", way->done, (int)size, name) >= (int)sizeof next)
            return hec_fail(why, HEC_ERR_USAGE, "%.300s...: the path is too long", way->done);
        *there = lstat(next, &at) == 0;
        if (*there && S_ISLNK(at.st_mode))
            return follow(way, next, &at, rest, also, why);
        if (*there)
            memcpy(way->done, next, sizeof next);
    }
    memmove(way->left, way->left + rest, strlen(way->left + rest) + 1);
    return HEC_OK;
}

int hec_own_folder(const char *folder, uid_t also, struct hec_why *why) {
    struct way way = {.done = ""};
    bool there = true;
    if (snprintf(way.left, sizeof way.left, "%s", folder) >= (int)sizeof way.left)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s...: the path is too long", folder);
    if (folder[0] != '/' && (!getcwd(way.done, sizeof way.done) || strcmp(way.done, "/") == 0))
        way.done[0] = '\0';
    while (there && way.left[strspn(way.left, "/")]) { /* what is not there yet will be made for this user alone */
        int err = step(&way, also, &there, why);
        if (err < 0)
            return err;
    }
    return check_chain(way.done, also, there, why);
}

int hec_own_place(const char *path, struct hec_why *why) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
    return hec_own_folder(folder, geteuid(), why);
}

int hec_own_file(int fd, const char *path, uid_t also, struct hec_why *why) {
    struct stat at;
    if (fstat(fd, &at) != 0)
        return hec_fail(why, hec_err_from_errno(errno), "%.300s: %s", path, strerror(errno));
    const char *what = wrong(&at, fgetxattr(fd, ACL, NULL, 0), also, false);
    return what ? refuse(what, path, why) : HEC_OK;
}
