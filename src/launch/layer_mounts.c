#include "launch/layer_mounts.h"

#include "base/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const system_types[] = {
    "autofs",   "binfmt_misc", "bpf",        "cgroup",    "cgroup2",    "configfs", "debugfs",   "devpts",
    "devtmpfs", "efivarfs",    "fusectl",    "nsfs",      "fuse.lxcfs", "mqueue",   "hugetlbfs", "proc",
    "pstore",   "rpc_pipefs",  "securityfs", "selinuxfs", "sysfs",      "tracefs",  "ramfs",     "fuse.portal"};

static const struct {
    const char *name;
    unsigned long flag;
} options[] = {{"nosuid", MS_NOSUID},   {"nodev", MS_NODEV},           {"noexec", MS_NOEXEC},
               {"noatime", MS_NOATIME}, {"nodiratime", MS_NODIRATIME}, {"relatime", MS_RELATIME}};

/* The kernel writes a space as \040 ... */
static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; to++) {
        bool octal = from[0] == '\\' && from[1] && from[2] && from[3];
        *to = octal ? (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0')) : *from;
        from += octal ? 4 : 1;
    }
    *to = '\0';
}

static bool has_option(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* 0: not known. */
static int mount_id(const char *path) {
    struct statx status;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) != 0 ||
        !(status.stx_mask & STATX_MNT_ID))
        return 0;
    return (int)status.stx_mnt_id;
}

/* "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue". False: no such line. */
static bool parse(char *line, struct hec_mount *mount) {
    char *fields[6], *rest = line, *after = strstr(line, " - "), *super = after ? after + 3 : NULL;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!(fields[i] = strsep(&rest, " ")))
            return false;
    const char *type = super ? strsep(&super, " ") : NULL;
    if (!type || !strsep(&super, " ") || !super)
        return false;
    super[strcspn(super, "\n")] = '\0';
    unescape(fields[4]);
    mount->id = atoi(fields[0]);
    mount->read_only = has_option(fields[5], "ro") || has_option(super, "ro");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (has_option(fields[5], options[i].name))
            mount->flags |= options[i].flag;
    for (size_t i = 0; i < sizeof system_types / sizeof system_types[0]; i++)
        mount->system |= strcmp(type, system_types[i]) == 0;
    mount->point = strdup(fields[4]);
    mount->type = strdup(type);
    return true;
}

int hec_mounts_read(struct hec_mounts *mounts, struct hec_why *why) {
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t size = 0;
    int err = HEC_OK;
    *mounts = (struct hec_mounts){0};
    if (!file)
        return hec_fail(why, hec_err_from_errno(errno), "cannot read /proc/self/mountinfo: %s", strerror(errno));
    while (err == HEC_OK && getline(&line, &size, file) > 0) {
        struct hec_mount mount = {0};
        if (!parse(line, &mount))
            continue;
        if (!mount.point || !mount.type || !hec_list_room(mounts->list, mounts->count, mounts->capacity, 64))
            err = hec_fail(why, HEC_ERR_NOMEM, "no memory for the list of mounts");
        else if (mount_id(mount.point) == mount.id) {
            mounts->list[mounts->count++] = mount;
            continue;
        }
        free(mount.point);
        free(mount.type);
    }
    free(line);
    fclose(file);
    return err;
}

void hec_mounts_free(struct hec_mounts *mounts) {
    for (size_t i = 0; i < mounts->count; i++) {
        free(mounts->list[i].point);
        free(mounts->list[i].type);
    }
    free(mounts->list);
    *mounts = (struct hec_mounts){0};
}

const struct hec_mount *hec_mounts_of(const struct hec_mounts *mounts, const char *path) {
    int id = mount_id(path);
    for (size_t i = 0; i < mounts->count; i++)
        if (mounts->list[i].id == id)
            return &mounts->list[i];
    return NULL;
}

/* "0000000000000000: 00000002 00000000 00010000 0001 01 23456 /path" */
bool hec_sockets_next(FILE *list, char path[PATH_MAX]) {
    char line[256]; /* paths of sockets have at most 108 bytes */
    while (fgets(line, sizeof line, list)) {
        struct stat status;
        char *start = strchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (start && lstat(start, &status) == 0 && S_ISSOCK(status.st_mode) && realpath(start, path))
            return true;
    }
    return false;
}
