/* Between fork and exec: no memory is allocated and nothing is formatted; every text was made before. */
#include "launch/layer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

struct entry {
    const struct hec_layer *layer;
    struct hec_layer_fault *fault;
    int sources[HEC_LAYER_PLACES_MAX];        /* what is at the place before anything is mounted */
    int scratches[HEC_LAYER_PARENTS_MAX + 1]; /* the last: in memory */
    int also[HEC_LAYER_ALSO_MAX];
};

static int failed(const struct entry *e, enum hec_layer_step step, size_t at) {
    *e->fault = (struct hec_layer_fault){.errnum = errno, .step = (int)step, .at = (int)at};
    return -1;
}

static char *append_text(char *to, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length + 1);
    return to + length;
}

static char *add_number(char *to, int number) {
    char digits[16];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return append_text(to, digits + at);
}

/* A descriptor as a path: it leads to what is beneath later mounts, and has no characters that mount options would need escaped. */
static char *add_descriptor(char *to, int fd) {
    return add_number(append_text(to, "/proc/self/fd/"), fd);
}

static int write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t written = write(fd, text, strlen(text));
    int errnum = errno;
    close(fd);
    errno = errnum;
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

static int map_own_ids(const struct hec_layer *layer) {
    return write_file("/proc/self/setgroups", "deny") == 0 && write_file("/proc/self/uid_map", layer->uid_map) == 0 &&
                   write_file("/proc/self/gid_map", layer->gid_map) == 0
               ? 0
               : -1;
}

/* The rights to map other ids than its own count outside of the new namespace: a process that stays there does it. */
static pid_t start_mapping(const struct hec_layer *layer, const int go[2]) {
    char uid_path[48], gid_path[48], byte;
    pid_t entering = getpid(), pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid != 0)
        return pid;
    close(go[1]);
    append_text(add_number(append_text(uid_path, "/proc/"), entering), "/uid_map");
    append_text(add_number(append_text(gid_path, "/proc/"), entering), "/gid_map");
    bool done = read(go[0], &byte, 1) == 1 && write_file(uid_path, layer->uid_map) == 0 &&
                write_file(gid_path, layer->gid_map) == 0;
    _exit(done ? 0 : EPERM);
}

static int enter_user_namespace(const struct entry *e, int flags) {
    int go[2], status = 0;
    if (pipe2(go, O_CLOEXEC) != 0)
        return failed(e, HEC_LAYER_STEP_NAMESPACE, 0);
    pid_t mapper = start_mapping(e->layer, go);
    int result = mapper < 0 || unshare(flags) != 0 ? failed(e, HEC_LAYER_STEP_NAMESPACE, 0) : 0;
    if (result == 0 && write(go[1], "", 1) != 1)
        result = failed(e, HEC_LAYER_STEP_MAP, 0);
    close(go[0]);
    close(go[1]);
    while (mapper > 0 && waitpid(mapper, &status, 0) < 0 && errno == EINTR) {
    }
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
    return result == 0 && errno ? failed(e, HEC_LAYER_STEP_MAP, 0) : result;
}

static int enter_namespaces(const struct entry *e) {
    const struct hec_layer *layer = e->layer;
    int flags = CLONE_NEWNS | (layer->own_shm ? CLONE_NEWIPC : 0) | (layer->user_namespace ? CLONE_NEWUSER : 0);
    if (layer->user_namespace && layer->all_ids) {
        if (enter_user_namespace(e, flags) != 0)
            return -1;
    } else {
        if (unshare(flags) != 0)
            return failed(e, HEC_LAYER_STEP_NAMESPACE, 0);
        if (layer->user_namespace && map_own_ids(layer) != 0)
            return failed(e, HEC_LAYER_STEP_MAP, 0);
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? 0 : failed(e, HEC_LAYER_STEP_PRIVATE, 0);
}

/* All of them before the first mount, which would hide some. */
static int open_sources(struct entry *e, const char *const *also) {
    const struct hec_layer *layer = e->layer;
    for (size_t i = 0; i < layer->count; i++) {
        e->sources[i] = -1;
        if (layer->places[i].kind != HEC_LAYER_FRESH &&
            (e->sources[i] = open(layer->places[i].path, O_PATH | O_CLOEXEC)) < 0 &&
            layer->places[i].kind != HEC_LAYER_SOCKET)
            return failed(e, HEC_LAYER_STEP_OPEN, i);
    }
    for (size_t i = 0; i < HEC_LAYER_ALSO_MAX && also && also[i]; i++)
        e->also[i] = open(also[i], O_PATH | O_CLOEXEC);
    for (size_t i = 0; i < layer->parent_count; i++) {
        const char *path = layer->scratches[i].path;
        e->scratches[i] = -1;
        if (path[0] && (e->scratches[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
            return failed(e, HEC_LAYER_STEP_SCRATCH, 0);
    }
    return 0;
}

static int mount_overlay(const struct hec_layer *layer, int lower, int upper, int work, const char *path,
                         unsigned long flags) {
    char data[256], *at = add_descriptor(append_text(data, "lowerdir="), lower);
    at = add_descriptor(append_text(at, ",upperdir="), upper);
    at = add_descriptor(append_text(at, ",workdir="), work);
    /* without privileges, folders that were there before cannot be renamed: programs then copy them */
    append_text(at, layer->user_xattr ? ",userxattr" : ",redirect_dir=on");
    return mount("overlay", path, "overlay", flags, data);
}

/* An overlay in the open scratch folder. */
static int mount_upper(const struct hec_layer *layer, int scratch, const char *upper, const char *work, int lower,
                       const char *path, unsigned long flags) {
    int up = openat(scratch, upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int at_work = openat(scratch, work, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int result = up < 0 || at_work < 0 ? -1 : mount_overlay(layer, lower, up, at_work, path, flags), errnum = errno;
    if (up >= 0)
        close(up);
    if (at_work >= 0)
        close(at_work);
    errno = errnum;
    return result;
}

/* It needs no folder of its own: an overlay will hide it where it is mounted. */
static int mount_memory(struct entry *e) {
    const struct hec_layer *layer = e->layer;
    int *folder = &e->scratches[HEC_LAYER_PARENTS_MAX];
    *folder = -1;
    if (!layer->any_memory)
        return 0;
    size_t first = 0;
    while (layer->places[first].kind != HEC_LAYER_OVERLAY)
        first++;
    const char *path = layer->places[first].path;
    if (mount("hec", path, "tmpfs", MS_NOSUID | MS_NODEV, layer->memory_data) != 0 ||
        (*folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 ||
        hec_layer_make_uppers(layer, HEC_LAYER_IN_MEMORY, *folder) != 0)
        return failed(e, HEC_LAYER_STEP_MEMORY, 0);
    return 0;
}

static int scratch_of(const struct entry *e, const struct hec_layer_place *place) {
    return e->scratches[place->scratch == HEC_LAYER_IN_MEMORY ? HEC_LAYER_PARENTS_MAX : place->scratch];
}

static int mount_bind(int source, const char *path) {
    char from[40];
    if (source < 0)
        return -1;
    add_descriptor(from, source);
    return mount(from, path, NULL, MS_BIND | MS_REC, NULL);
}

static int mount_place(const struct entry *e, size_t i) {
    const struct hec_layer_place *place = &e->layer->places[i];
    switch (place->kind) {
    case HEC_LAYER_OVERLAY:
        return mount_upper(e->layer, scratch_of(e, place), place->upper, place->work, e->sources[i], place->path,
                           place->flags);
    case HEC_LAYER_FRESH:
        return mount("tmpfs", place->path, "tmpfs", place->flags, place->data);
    case HEC_LAYER_SOCKET:
        mount_bind(e->sources[i], place->path);
        return 0;
    default:
        return mount_bind(e->sources[i], place->path);
    }
}

/* What hec and the command share, such as the folder of its sockets: there, or hidden by a fresh file system. */
static void mount_also(const struct entry *e, const char *const *also) {
    for (size_t i = 0; i < HEC_LAYER_ALSO_MAX && also && also[i]; i++)
        if (e->also[i] >= 0)
            mount_bind(e->also[i], also[i]);
}

/* In a user namespace all rights are there at first; the command is to have those that it would have without. Root gets those of
 * the bounding set back with exec. */
static int drop_rights(const struct entry *e) {
    const struct hec_layer *layer = e->layer;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    for (int cap = 0; layer->user_namespace && geteuid() == 0 && cap < 64; cap++)
        if (!(layer->caps[cap / 32].permitted & (1U << (cap % 32))))
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (layer->user_namespace && syscall(SYS_capset, &header, layer->caps) != 0)
        return failed(e, HEC_LAYER_STEP_RIGHTS, 0);
    return 0;
}

/* Something beneath, to be changed: a file and a folder. */
static int make_probe(int folder) {
    int made = mkdirat(folder, HEC_LAYER_PROBE, 0700) | mkdirat(folder, HEC_LAYER_PROBE ".upper", 0700) |
               mkdirat(folder, HEC_LAYER_PROBE ".work", 0700) | mkdirat(folder, HEC_LAYER_PROBE "/folder", 0700);
    int fd = openat(folder, HEC_LAYER_PROBE "/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (made != 0 || fd < 0)
        return -1;
    ssize_t written = write(fd, "hec", 3);
    close(fd);
    return written == 3 ? 0 : -1;
}

static int mount_probe(const struct entry *e, int *probe) {
    const struct hec_layer *layer = e->layer;
    int folder = e->scratches[HEC_LAYER_PARENTS_MAX];
    char path[40];
    for (size_t i = 0; i < layer->parent_count && !layer->any_memory; i++)
        if (e->scratches[i] >= 0)
            folder = e->scratches[i];
    int lower = make_probe(folder) == 0 ? openat(folder, HEC_LAYER_PROBE, O_PATH | O_CLOEXEC) : -1;
    if (lower < 0)
        return failed(e, HEC_LAYER_STEP_SCRATCH, 0);
    add_descriptor(path, lower);
    if (mount_upper(layer, folder, HEC_LAYER_PROBE ".upper", HEC_LAYER_PROBE ".work", lower, path, 0) != 0)
        return failed(e, HEC_LAYER_STEP_TRY, 0);
    *probe = openat(folder, HEC_LAYER_PROBE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *probe >= 0 ? 0 : failed(e, HEC_LAYER_STEP_TRY, 0);
}

int hec_layer_enter_probing(const struct hec_layer *layer, const char *const *also, int *probe,
                            struct hec_layer_fault *fault) {
    struct entry e = {.layer = layer, .fault = fault};
    if (enter_namespaces(&e) != 0 || open_sources(&e, also) != 0 || mount_memory(&e) != 0 ||
        (probe && mount_probe(&e, probe) != 0))
        return -1;
    for (size_t i = 0; i < layer->count; i++)
        if (mount_place(&e, i) != 0)
            return failed(&e, HEC_LAYER_STEP_MOUNT, i);
    mount_also(&e, also);
    if (chdir(layer->folder) != 0)
        return failed(&e, HEC_LAYER_STEP_FOLDER, 0);
    return drop_rights(&e);
}

int hec_layer_enter(const struct hec_layer *layer, const char *const *also, struct hec_layer_fault *fault) {
    return hec_layer_enter_probing(layer, also, NULL, fault);
}

/* The scratch folder lies in a covered folder: it is not seen there. */
static void hide(const struct hec_layer *layer, const struct hec_layer_place *place, int upper) {
    for (size_t i = 0; i < layer->parent_count; i++)
        if (layer->scratches[i].path[0] && strcmp(layer->parents[i], place->path) == 0)
            mknodat(upper, strrchr(layer->scratches[i].path, '/') + 1, S_IFCHR, makedev(0, 0));
}

int hec_layer_make_uppers(const struct hec_layer *layer, int scratch, int folder) {
    static const char *const acls[] = {"system.posix_acl_access", "system.posix_acl_default"};
    for (size_t i = 0; i < layer->count; i++) {
        const struct hec_layer_place *place = &layer->places[i];
        if (place->kind != HEC_LAYER_OVERLAY || place->scratch != scratch)
            continue;
        if (mkdirat(folder, place->upper, 0700) != 0 || mkdirat(folder, place->work, 0700) != 0)
            return -1;
        int fd = openat(folder, place->upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return -1;
        hide(layer, place, fd);
        /* what this user may not give away stays its own: `mode` has the rights right for it */
        if (fchown(fd, place->status.st_uid, place->status.st_gid) != 0 &&
            fchown(fd, (uid_t)-1, place->status.st_gid) != 0)
            errno = 0;
        int failure = fchmod(fd, place->mode);
        for (size_t a = 0; a < 2; a++)
            if (place->acl_length[a] > 0)
                fsetxattr(fd, acls[a], place->acl[a], place->acl_length[a], 0);
        futimens(fd, (struct timespec[]){place->status.st_atim, place->status.st_mtim});
        close(fd);
        if (failure != 0)
            return -1;
    }
    return 0;
}
