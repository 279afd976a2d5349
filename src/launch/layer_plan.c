#include "launch/layer_parts.h"

#include "base/list.h"
#include "launch/layer_mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SHM "/dev/shm"
#define ENTRIES_MAX 10000 /* looked at in a folder */

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
        const struct hec_mount *mount = hec_mounts_of(&plan->mounts, root);
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

/* Overlayfs changes what was there before only where its owner is known in the user namespace: EOVERFLOW (CVE-2023-0386). */
static bool is_foreign(const struct hec_layer *layer, const struct stat *status) {
    return !layer->may_mount && !layer->all_ids && (status->st_uid != geteuid() || status->st_gid != getegid());
}

/* Is there a folder above path, up to the one that is covered, that could not be changed with what is in it? */
static bool foreign_between(const struct hec_layer *layer, const char *folder, const char *path) {
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

/* What another overlay of the same mount covers. */
static void drop_covered(struct plan *plan) {
    struct hec_layer *layer = plan->layer;
    for (size_t i = 0; i < layer->count;) {
        const char *path = layer->places[i].path;
        const struct hec_mount *mount = hec_mounts_of(&plan->mounts, path);
        bool covered = false;
        for (size_t o = 0; o < layer->count && !covered; o++)
            covered = o != i && hec_layer_inside(path, layer->places[o].path) &&
                      hec_mounts_of(&plan->mounts, layer->places[o].path) == mount &&
                      !foreign_between(layer, layer->places[o].path, path);
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

/* Shared memory that a killed program leaves is not removed by anybody. Where a folder that has to be covered lies in it,
 * it is covered with its contents. */
static void add_shm(struct plan *plan) {
    struct hec_layer *layer = plan->layer;
    struct statvfs status;
    const struct hec_mount *mount = hec_mounts_of(&plan->mounts, SHM);
    if (!mount || strcmp(mount->point, SHM) != 0 || mount->read_only || in_any(&plan->shared, SHM) ||
        statvfs(SHM, &status) != 0 || access(SHM, W_OK) != 0)
        return;
    for (size_t i = 0; i < layer->count; i++)
        if (hec_layer_inside(layer->places[i].path, SHM))
            return;
    add_place(plan, HEC_LAYER_FRESH, SHM, mount);
    struct hec_layer_place *place = &layer->places[layer->count - 1];
    struct stat folder;
    if (plan->failed || stat(SHM, &folder) != 0)
        return;
    snprintf(place->data, sizeof place->data, "mode=%o,size=%llu", (unsigned)(folder.st_mode & 07777),
             (unsigned long long)status.f_blocks * status.f_frsize);
    layer->own_shm = true;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct hec_layer_place *)a)->path, ((const struct hec_layer_place *)b)->path);
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

static bool is_place(const struct hec_layer *layer, const char *path) {
    for (size_t i = 0; i < layer->count; i++)
        if (strcmp(layer->places[i].path, path) == 0)
            return true;
    return false;
}

/* What this user could change without a layer, and could not in it: a sentence, rather than a program that fails. In folders for
 * temporary files lies much that is of no concern. */
static int find_foreign(const struct hec_layer *layer, const struct hec_layer_place *place, struct hec_why *why) {
    bool concerned = place->writable && !(place->mode & S_ISVTX) && !layer->may_mount && !layer->all_ids;
    DIR *list = concerned ? opendir(place->path) : NULL;
    int err = HEC_OK, left = ENTRIES_MAX;
    for (struct dirent *entry; list && err == HEC_OK && left-- > 0 && (entry = readdir(list));) {
        struct stat status;
        char path[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(list), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(status.st_mode) ||
            !is_foreign(layer, &status) || faccessat(dirfd(list), entry->d_name, W_OK, AT_EACCESS) != 0 ||
            snprintf(path, sizeof path, "%s/%s", place->path, entry->d_name) >= (int)sizeof path ||
            is_place(layer, path))
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

static int describe(const struct hec_layer *layer, size_t number, struct hec_why *why) {
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
    return find_foreign(layer, place, why);
}

static void free_paths(struct paths *paths) {
    for (size_t i = 0; i < paths->count; i++)
        free(paths->list[i]);
    free(paths->list);
}

int hec_layer_plan(struct hec_layer *layer, const struct hec_layer_options *options, struct hec_why *why) {
    char *const *environment = options->environment ? options->environment : environ;
    struct plan plan = {.layer = layer};
    int err = hec_mounts_read(&plan.mounts, why);
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
        qsort(layer->places, layer->count, sizeof layer->places[0], by_path);
        if (plan.failed)
            err = hec_fail(why, HEC_ERR_NOMEM, "no memory for the scratch layer");
        else if (layer->count > HEC_LAYER_PLACES_MAX)
            err = hec_fail(why, HEC_ERR_LIMIT, "there are %zu mounts in the folders to cover; a scratch layer takes %d",
                           layer->count, HEC_LAYER_PLACES_MAX);
    }
    for (size_t i = 0; err == HEC_OK && i < layer->count; i++)
        err = describe(layer, i, why);
    hec_mounts_free(&plan.mounts);
    free_paths(&plan.roots);
    free_paths(&plan.shared);
    return err;
}
