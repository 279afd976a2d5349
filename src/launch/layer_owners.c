#include "launch/layer_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ENTRIES_MAX 10000 /* looked at in a folder */

/* Overlayfs changes what was there before only where its owner is known in the user namespace: EOVERFLOW (CVE-2023-0386). */
static bool is_foreign(const struct hec_layer *layer, const struct stat *status) {
    return !layer->may_mount && !layer->all_ids && (status->st_uid != geteuid() || status->st_gid != getegid());
}

bool hec_layer_foreign_between(const struct hec_layer *layer, const char *folder, const char *path) {
    char part[PATH_MAX];
    struct stat status;
    snprintf(part, sizeof part, "%s", path);
    while (strlen(part) > strlen(folder)) {
        if (stat(part, &status) != 0 || is_foreign(layer, &status))
            return true;
        *strrchr(part, '/') = '\0';
    }
    return false;
}

static bool is_place(const struct hec_layer *layer, const char *path) {
    for (size_t i = 0; i < layer->count; i++)
        if (strcmp(layer->places[i].path, path) == 0)
            return true;
    return false;
}

int hec_layer_check_owners(const struct hec_layer *layer, const char *folder, struct hec_why *why) {
    struct stat status;
    bool concerned = !layer->may_mount && !layer->all_ids && stat(folder, &status) == 0 &&
                     !(status.st_mode & S_ISVTX) && faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) == 0;
    DIR *list = concerned ? opendir(folder) : NULL;
    int err = HEC_OK, left = ENTRIES_MAX;
    for (struct dirent *entry; list && err == HEC_OK && left-- > 0 && (entry = readdir(list));) {
        char path[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(list), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(status.st_mode) ||
            !is_foreign(layer, &status) || faccessat(dirfd(list), entry->d_name, W_OK, AT_EACCESS) != 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path || is_place(layer, path))
            continue;
        err = hec_fail(
            why, HEC_ERR_UNSUPPORTED,
            "%.300s belongs to user %u and group %u, and in a scratch layer a user can change only what belongs to the "
            "user and its first group (%u, %u)",
            path, status.st_uid, status.st_gid, geteuid(), getegid());
    }
    if (list)
        closedir(list);
    return err;
}

static mode_t rights(const char *path, mode_t mode) {
    static const struct {
        int wanted;
        mode_t bit;
    } table[] = {{R_OK, S_IRUSR}, {W_OK, S_IWUSR}, {X_OK, S_IXUSR}};
    mode &= 07777 & ~(mode_t)S_IRWXU;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (faccessat(AT_FDCWD, path, table[i].wanted, AT_EACCESS) == 0)
            mode |= table[i].bit;
    return mode;
}

int hec_layer_describe(struct hec_layer *layer, size_t number, struct hec_why *why) {
    struct hec_layer_place *place = &layer->places[number];
    static const char *const acls[] = {"system.posix_acl_access", "system.posix_acl_default"};
    if (place->kind != HEC_LAYER_OVERLAY)
        return HEC_OK;
    if (stat(place->path, &place->status) != 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot look at %.300s: %s", place->path, strerror(errno));
    bool own = geteuid() == 0 || place->status.st_uid == geteuid();
    place->mode = own ? place->status.st_mode & 07777 : rights(place->path, place->status.st_mode);
    place->writable = faccessat(AT_FDCWD, place->path, W_OK, AT_EACCESS) == 0;
    for (size_t a = 0; a < 2; a++) {
        ssize_t length = getxattr(place->path, acls[a], place->acl[a], sizeof place->acl[a]);
        place->acl_length[a] = length > 0 ? (size_t)length : 0;
    }
    snprintf(place->upper, sizeof place->upper, "%zu", number);
    snprintf(place->work, sizeof place->work, "%zu.work", number);
    return HEC_OK;
}
