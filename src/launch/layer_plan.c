#include "base/error.h"
#include "base/list.h"
#include "launch/layer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The mounts of this process and the sockets of this system, as far as the layer needs them; for no other. */

struct hec_mount {
    int id;
    char *point, *type;
    unsigned long flags; /* nosuid, noexec ... for mount() */
    bool read_only;
    bool system; /* of the kernel's own kinds, which hold no files of a user */
};

struct hec_mounts {
    struct hec_mount *list;
    size_t count, capacity;
};

static const char *const system_types[] = {
    "autofs",   "binfmt_misc", "bpf",        "cgroup",    "cgroup2",    "configfs", "debugfs",   "devpts",
    "devtmpfs", "efivarfs",    "fusectl",    "nsfs",      "fuse.lxcfs", "mqueue",   "hugetlbfs", "proc",
    "pstore",   "rpc_pipefs",  "securityfs", "selinuxfs", "sysfs",      "tracefs",  "ramfs",     "fuse.portal"};

static const struct {
    const char *name;
    unsigned long flag;
} mount_options[] = {{"nosuid", MS_NOSUID},   {"nodev", MS_NODEV},           {"noexec", MS_NOEXEC},
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
    for (size_t i = 0; i < sizeof mount_options / sizeof mount_options[0]; i++)
        if (has_option(fields[5], mount_options[i].name))
            mount->flags |= mount_options[i].flag;
    for (size_t i = 0; i < sizeof system_types / sizeof system_types[0]; i++)
        mount->system |= strcmp(type, system_types[i]) == 0;
    mount->point = strdup(fields[4]);
    mount->type = strdup(type);
    return true;
}

/* Those that can be seen: what lies beneath another is left out. */
static int mounts_read(struct hec_mounts *mounts, struct hec_why *why) {
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

static void mounts_free(struct hec_mounts *mounts) {
    for (size_t i = 0; i < mounts->count; i++) {
        free(mounts->list[i].point);
        free(mounts->list[i].type);
    }
    free(mounts->list);
    *mounts = (struct hec_mounts){0};
}

/* The mount that holds the file at path; NULL: not known. */
static const struct hec_mount *mounts_of(const struct hec_mounts *mounts, const char *path) {
    int id = mount_id(path);
    for (size_t i = 0; i < mounts->count; i++)
        if (mounts->list[i].id == id)
            return &mounts->list[i];
    return NULL;
}

/* "0000000000000000: 00000002 00000000 00010000 0001 01 23456 /path" */
/* The next file of a list of sockets (/proc/net/unix) that exists and is one. */
static bool sockets_next(FILE *list, char path[PATH_MAX]) {
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

#define SHM "/dev/shm"

/* Variables that name folders which programs write into. */
static const char *const variables[] = {
    "HOME",           "TMPDIR",           "XDG_CACHE_HOME",     "XDG_CONFIG_HOME",           "XDG_DATA_HOME",
    "XDG_STATE_HOME", "HF_HOME",          "TORCH_HOME",         "TORCH_EXTENSIONS_DIR",      "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_HOME",    "TRITON_CACHE_DIR", "CUDA_CACHE_PATH",    "JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR",
    "MPLCONFIGDIR",   "WANDB_DIR",        "PYTHONPYCACHEPREFIX"};

struct paths {
    char **list;
    size_t count, capacity;
};

struct plan {
    struct hec_layer *layer;
    struct hec_mounts mounts;
    struct paths roots, shared;
    bool failed; /* no memory */
};

bool hec_layer_inside(const char *path, const char *folder) {
    size_t length = strlen(folder);
    if (length == 1)
        return true;
    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static bool in_any(const struct paths *paths, const char *path) {
    for (size_t i = 0; i < paths->count; i++)
        if (hec_layer_inside(path, paths->list[i]))
            return true;
    return false;
}

/* What does not exist cannot be covered; in what may not be entered nothing is written. */
static void add_path(struct plan *plan, struct paths *paths, const char *path) {
    char real[PATH_MAX];
    if (!path || path[0] != '/' || !realpath(path, real))
        return;
    char *copy = strdup(real);
    if (copy && hec_list_room(paths->list, paths->count, paths->capacity, 16)) {
        paths->list[paths->count++] = copy;
        return;
    }
    free(copy);
    plan->failed = true;
}

static const char *variable(char *const *environment, const char *name) {
    size_t length = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* A client of NVIDIA's MPS shares pipes, sockets and /dev/shm with its server. */
static void find_mps(struct plan *plan, char *const *environment) {
    const char *folder = variable(environment, "CUDA_MPS_PIPE_DIRECTORY");
    char control[PATH_MAX];
    folder = folder && folder[0] ? folder : "/tmp/nvidia-mps";
    if (snprintf(control, sizeof control, "%s/control", folder) >= (int)sizeof control || access(control, F_OK) != 0)
        return;
    add_path(plan, &plan->shared, folder);
    add_path(plan, &plan->shared, SHM);
}

static int find_roots(struct plan *plan, char *const *environment, struct hec_why *why) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        return hec_fail(why, hec_err_from_errno(errno), "cannot find out the working folder: %s", strerror(errno));
    if (strcmp(folder, "/") == 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the working folder is /, which no scratch layer can cover");
    plan->layer->folder = strdup(folder);
    plan->failed |= !plan->layer->folder;
    add_path(plan, &plan->roots, folder);
    add_path(plan, &plan->roots, "/tmp");
    add_path(plan, &plan->roots, "/var/tmp");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        add_path(plan, &plan->roots, variable(environment, variables[i]));
    return HEC_OK;
}

static void add_place(struct plan *plan, enum hec_layer_kind kind, const char *path, const struct hec_mount *mount) {
    struct hec_layer *layer = plan->layer;
    for (size_t i = 0; i < layer->count; i++)
        if (strcmp(layer->places[i].path, path) == 0)
            return;
    if (!hec_list_room(layer->places, layer->count, layer->capacity, 16)) {
        plan->failed = true;
        return;
    }
    struct hec_layer_place *place = &layer->places[layer->count];
    *place = (struct hec_layer_place){.kind = kind,
                                      .path = strdup(path),
                                      .type = strdup(mount ? mount->type : ""),
                                      .mounted = mount && strcmp(mount->point, path) == 0,
                                      .flags = mount ? mount->flags : 0};
    if (place->path && place->type) {
        layer->count++;
        return;
    }
    free(place->path);
    free(place->type);
    plan->failed = true;
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The folders that were asked for, and the mounts below them that can be written into. */
static void add_overlays(struct plan *plan) {
    for (size_t i = 0; i < plan->roots.count; i++) {
        const char *root = plan->roots.list[i];
        const struct hec_mount *mount = mounts_of(&plan->mounts, root);
        if (strcmp(root, "/") == 0 || in_any(&plan->shared, root) || !is_folder(root))
            continue;
        for (size_t m = 0; m < plan->mounts.count; m++) {
            const struct hec_mount *below = &plan->mounts.list[m];
            if (hec_layer_inside(below->point, root) && !below->read_only && !below->system &&
                !in_any(&plan->shared, below->point) && is_folder(below->point))
                add_place(plan, HEC_LAYER_OVERLAY, below->point, below);
        }
        if (!mount || !mount->read_only)
            add_place(plan, HEC_LAYER_OVERLAY, root, mount);
    }
}

static void remove_place(struct hec_layer *layer, size_t i) {
    free(layer->places[i].path);
    free(layer->places[i].type);
    memmove(&layer->places[i], &layer->places[i + 1], (--layer->count - i) * sizeof layer->places[0]);
}

/* What another overlay of the same mount covers. */
static void drop_covered(struct plan *plan) {
    struct hec_layer *layer = plan->layer;
    for (size_t i = 0; i < layer->count;) {
        const char *path = layer->places[i].path;
        const struct hec_mount *mount = mounts_of(&plan->mounts, path);
        bool covered = false;
        for (size_t o = 0; o < layer->count && !covered; o++)
            covered = o != i && hec_layer_inside(path, layer->places[o].path) &&
                      mounts_of(&plan->mounts, layer->places[o].path) == mount &&
                      !hec_layer_foreign_between(layer, layer->places[o].path, path);
        if (covered)
            remove_place(layer, i);
        else
            i++;
    }
}

static bool below_overlay(const struct hec_layer *layer, const char *path) {
    for (size_t i = 0; i < layer->count; i++)
        if (layer->places[i].kind == HEC_LAYER_OVERLAY && strcmp(layer->places[i].path, path) != 0 &&
            hec_layer_inside(path, layer->places[i].path))
            return true;
    return false;
}

/* What an overlay would hide, or cover against the user's wish. */
static void add_kept(struct plan *plan) {
    for (size_t i = 0; i < plan->shared.count; i++)
        if (below_overlay(plan->layer, plan->shared.list[i]))
            add_place(plan, HEC_LAYER_SHARED, plan->shared.list[i], NULL);
    for (size_t m = 0; m < plan->mounts.count; m++) {
        const struct hec_mount *mount = &plan->mounts.list[m];
        if (below_overlay(plan->layer, mount->point) && !in_any(&plan->shared, mount->point))
            add_place(plan, HEC_LAYER_AS_IS, mount->point, mount);
    }
}

/* As many as there is room for. */
static void add_sockets(struct plan *plan) {
    FILE *list = fopen("/proc/net/unix", "re");
    char path[PATH_MAX];
    while (list && plan->layer->count < HEC_LAYER_PLACES_MAX - 1 && sockets_next(list, path))
        if (below_overlay(plan->layer, path) && !in_any(&plan->shared, path))
            add_place(plan, HEC_LAYER_SOCKET, path, NULL);
    if (list)
        fclose(list);
}

/* Shared memory that a killed program leaves is not removed by anybody. Where a folder that has to be covered lies in it (some take it
 * for temporary files), all of it is covered with its contents. */
static void add_shm(struct plan *plan) {
    struct hec_layer *layer = plan->layer;
    struct statvfs status;
    const struct hec_mount *mount = mounts_of(&plan->mounts, SHM);
    if (!mount || strcmp(mount->point, SHM) != 0 || mount->read_only || in_any(&plan->shared, SHM) ||
        statvfs(SHM, &status) != 0 || access(SHM, W_OK) != 0)
        return;
    bool used = false;
    for (size_t i = 0; i < layer->count;)
        if (hec_layer_inside(layer->places[i].path, SHM)) {
            remove_place(layer, i);
            used = true;
        } else
            i++;
    add_place(plan, used ? HEC_LAYER_OVERLAY : HEC_LAYER_FRESH, SHM, mount);
    struct hec_layer_place *place = &layer->places[layer->count - 1];
    struct stat folder;
    if (plan->failed || stat(SHM, &folder) != 0)
        return;
    snprintf(place->data, sizeof place->data, "mode=%o,size=%llu", (unsigned)(folder.st_mode & 07777),
             (unsigned long long)status.f_blocks * status.f_frsize);
    place->in_memory = used;
    layer->own_shm = true;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct hec_layer_place *)a)->path, ((const struct hec_layer_place *)b)->path);
}

static void free_paths(struct paths *paths) {
    for (size_t i = 0; i < paths->count; i++)
        free(paths->list[i]);
    free(paths->list);
}

int hec_layer_plan(struct hec_layer *layer, const struct hec_layer_options *options, struct hec_why *why) {
    char *const *environment = options->environment ? options->environment : environ;
    struct plan plan = {.layer = layer};
    int err = mounts_read(&plan.mounts, why);
    for (size_t i = 0; options->shared && options->shared[i]; i++)
        add_path(&plan, &plan.shared, options->shared[i]);
    find_mps(&plan, environment);
    if (err == HEC_OK)
        err = find_roots(&plan, environment, why);
    if (err == HEC_OK) {
        add_overlays(&plan);
        drop_covered(&plan);
        add_kept(&plan);
        add_shm(&plan);
        add_sockets(&plan);
        qsort(layer->places, layer->count, sizeof layer->places[0], by_path);
        if (plan.failed)
            err = hec_fail(why, HEC_ERR_NOMEM, "no memory for the scratch layer");
        else if (layer->count > HEC_LAYER_PLACES_MAX)
            err = hec_fail(why, HEC_ERR_LIMIT, "there are %zu mounts in the folders to cover; a scratch layer takes %d",
                           layer->count, HEC_LAYER_PLACES_MAX);
    }
    for (size_t i = 0; err == HEC_OK && i < layer->count; i++)
        err = hec_layer_describe(layer, i, why);
    for (size_t i = 0; err == HEC_OK && i < plan.roots.count; i++)
        if (!in_any(&plan.shared, plan.roots.list[i]))
            err = hec_layer_check_owners(layer, plan.roots.list[i], why);
    mounts_free(&plan.mounts);
    free_paths(&plan.roots);
    free_paths(&plan.shared);
    return err;
}
