#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In a user namespace files of users outside, and of the machine's root, all belong to this one. */
static bool is_outside(uid_t uid) {
    unsigned first = 0, outside = 0, count = 0;
    FILE *map = fopen("/proc/self/uid_map", "re");
    bool all = !map || (fscanf(map, "%u %u %u", &first, &outside, &count) == 3 && count == UINT_MAX);
    if (map)
        fclose(map);
    return !all && uid == 65534;
}

/* What is wrong with it; NULL: nothing. */
static const char *wrong(const struct stat *at, uid_t also, bool sticky_will_do) {
    if (at->st_uid != geteuid() && at->st_uid != 0 && at->st_uid != also && !is_outside(at->st_uid))
        return "belongs to another user";
    if (sticky_will_do && (at->st_mode & S_ISVTX))
        return NULL;
    if (at->st_mode & S_IWOTH)
        return "may be written by everybody";
    return (at->st_mode & S_IWGRP) && at->st_gid != at->st_uid ? "may be written by its group" : NULL;
}

static int refuse(const char *what, const char *path, struct hec_why *why) {
    return hec_fail(why, HEC_ERR_PERMISSION, "%.300s %s, so nothing there is trusted or kept", path, what);
}

int hec_own_folder(const char *folder, uid_t also, struct hec_why *why) {
    char path[PATH_MAX], real[PATH_MAX];
    struct stat at;
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s...: the path is too long", folder);
    while (!realpath(path, real)) { /* what is not there yet will be made for this user alone */
        char *slash = strrchr(path, '/');
        if (!slash)
            return HEC_OK;
        slash[slash == path] = '\0';
        if (strcmp(path, "/") == 0)
            return HEC_OK;
    }
    bool itself = strcmp(path, folder) == 0;
    for (bool last = true;; last = false) {
        const char *what = stat(real, &at) == 0 && S_ISDIR(at.st_mode) ? wrong(&at, also, !last || !itself) : NULL;
        if (what)
            return refuse(what, real, why);
        char *slash = strrchr(real, '/');
        if (slash == real && real[1] == '\0')
            return HEC_OK;
        slash[slash == real] = '\0';
    }
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
    const char *what = wrong(&at, also, false);
    return what ? refuse(what, path, why) : HEC_OK;
}
