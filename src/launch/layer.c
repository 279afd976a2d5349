#include "launch/layer_parts.h"

#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWNER "owner" /* of base/scratch.c: it shows that the folder is in use */
#define MEMORY_MIN ((int64_t)16 << 20)

/* File systems on which overlayfs takes no scratch folder, or that are memory. */
static const long unsuitable[] = {
    OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,      RAMFS_MAGIC,      NFS_SUPER_MAGIC, FUSE_SUPER_MAGIC,
    SMB_SUPER_MAGIC,       CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, V9FS_MAGIC,      MSDOS_SUPER_MAGIC,
    ECRYPTFS_SUPER_MAGIC,  SQUASHFS_MAGIC,   AFS_FS_MAGIC,     CEPH_SUPER_MAGIC};

struct parent {
    char path[PATH_MAX];
    int number;
    dev_t device;
    int64_t free_bytes;
    bool suitable;
};

static bool look_at(const char *given, struct parent *parent) {
    struct statfs status;
    struct stat folder;
    *parent = (struct parent){.suitable = true};
    if (!given || given[0] != '/' || !realpath(given, parent->path) || access(parent->path, W_OK | X_OK) != 0 ||
        stat(parent->path, &folder) != 0 || statfs(parent->path, &status) != 0)
        return false;
    parent->device = folder.st_dev;
    parent->free_bytes = (int64_t)status.f_bavail * status.f_bsize;
    for (size_t i = 0; i < sizeof unsuitable / sizeof unsuitable[0]; i++)
        parent->suitable &= (long)status.f_type != unsuitable[i];
    return true;
}

static const char *variable(char *const *environment, const char *name) {
    size_t length = strlen(name);
    for (environment = environment ? environment : environ; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* Where scratch folders may be made: only in folders for temporary files, as the user's own folders are to stay as they are, their times
 * too. Two of the same place are harmless. */
static size_t find_parents(const struct hec_layer_options *options, struct parent parents[HEC_LAYER_PARENTS_MAX]) {
    const char *given[HEC_LAYER_PARENTS_MAX] = {"/var/tmp", "/tmp", variable(options->environment, "TMPDIR")};
    size_t count = 0;
    if (options->scratch_parent)
        return look_at(options->scratch_parent, &parents[0]);
    for (size_t i = 0; i < HEC_LAYER_PARENTS_MAX; i++)
        if (look_at(given[i], &parents[count])) {
            parents[count].number = (int)i;
            for (size_t p = 0; p < count; p++) /* whatever is written meanwhile */
                if (parents[p].device == parents[count].device)
                    parents[count].free_bytes = parents[p].free_bytes;
            count++;
        }
    return count;
}

static int by_room(const void *a, const void *b) {
    const struct parent *left = a, *right = b;
    if (left->free_bytes == right->free_bytes)
        return left->number - right->number;
    return left->free_bytes < right->free_bytes ? 1 : -1;
}

static int64_t number_after(const char *path, const char *name) {
    char line[256];
    int64_t value = -1;
    FILE *file = fopen(path, "re");
    while (file && value < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            (void)sscanf(line + strlen(name), "%" SCNd64, &value);
    if (file)
        fclose(file);
    return value;
}

static int64_t half_of_memory(void) {
    int64_t available_kib = number_after("/proc/meminfo", "MemAvailable:");
    int64_t bytes = available_kib > 0 ? available_kib * 1024 : MEMORY_MIN;
    int64_t limit = number_after("/sys/fs/cgroup/memory.max", ""); /* in a container; "max": none */
    return (limit > 0 && limit < bytes ? limit : bytes) / 2;
}

/* Which scratch folder each overlay uses: the first that does not lie in the folder it covers, which the kernel refuses. */
static void assign(struct hec_layer *layer, const struct parent *parents, size_t count, bool in_memory) {
    layer->any_memory = false;
    for (size_t i = 0; i < layer->count; i++) {
        struct hec_layer_place *place = &layer->places[i];
        place->scratch = HEC_LAYER_IN_MEMORY;
        for (size_t p = 0; p < count && place->scratch == HEC_LAYER_IN_MEMORY && !in_memory && !place->in_memory; p++)
            if (parents[p].suitable && !hec_layer_inside(parents[p].path, place->path))
                place->scratch = (int)p;
        layer->any_memory |= place->kind == HEC_LAYER_OVERLAY && place->scratch == HEC_LAYER_IN_MEMORY;
    }
}

static bool uses(const struct hec_layer *layer, size_t scratch) {
    for (size_t i = 0; i < layer->count; i++)
        if (layer->places[i].kind == HEC_LAYER_OVERLAY && layer->places[i].scratch == (int)scratch)
            return true;
    return false;
}

static void remove_scratches(struct hec_layer *layer) {
    for (size_t i = 0; i < HEC_LAYER_PARENTS_MAX; i++)
        hec_scratch_remove(&layer->scratches[i]);
}

static int make_scratches(struct hec_layer *layer, struct hec_why *why) {
    for (size_t i = 0; i < layer->parent_count; i++) {
        int err = uses(layer, i) ? hec_scratch_make(&layer->scratches[i], layer->parents[i], why) : HEC_OK;
        if (err < 0)
            return err;
    }
    return HEC_OK;
}

int hec_layer_renew(struct hec_layer *layer, struct hec_why *why) {
    for (size_t i = 0; i < layer->parent_count; i++) {
        const char *path = layer->scratches[i].path;
        if (!path[0])
            continue;
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int errnum = folder < 0 ? errno : hec_tree_empty(folder, OWNER);
        if (errnum == 0 && hec_layer_make_uppers(layer, (int)i, folder) != 0)
            errnum = errno;
        if (folder >= 0)
            close(folder);
        if (errnum)
            return hec_fail(why, hec_err_from_errno(errnum), "cannot empty the scratch folder %.300s: %s", path,
                            strerror(errnum));
    }
    return HEC_OK;
}

static bool has_right(const struct hec_layer *layer, int right) {
    return layer->caps[right / 32].effective & (1U << (right % 32));
}

/* Every id of this user namespace as itself. */
static bool map_all(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "re");
    unsigned first, outside, count;
    size_t length = 0;
    while (file && length < size && fscanf(file, "%u %u %u", &first, &outside, &count) == 3)
        length += (size_t)snprintf(text + length, size - length, "%u %u %u\n", first, first, count);
    if (file)
        fclose(file);
    return length > 0 && length < size;
}

static void look_at_rights(struct hec_layer *layer) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    if (syscall(SYS_capget, &header, layer->caps) != 0)
        memset(layer->caps, 0, sizeof layer->caps);
    layer->may_mount = has_right(layer, CAP_SYS_ADMIN);
    layer->all_ids = has_right(layer, CAP_SETUID) && has_right(layer, CAP_SETGID) &&
                     map_all("/proc/self/uid_map", layer->uid_map, sizeof layer->uid_map) &&
                     map_all("/proc/self/gid_map", layer->gid_map, sizeof layer->gid_map);
    if (layer->all_ids)
        return;
    snprintf(layer->uid_map, sizeof layer->uid_map, "%u %u 1\n", geteuid(), geteuid());
    snprintf(layer->gid_map, sizeof layer->gid_map, "%u %u 1\n", getegid(), getegid());
}

/* Root of a container may mount, but only with notes of the user's kind. */
static int try_kinds(struct hec_layer *layer, struct hec_layer_fault *fault) {
    static const struct { bool user_namespace, user_xattr; } kinds[] = {{false, false}, {false, true}, {true, true}};
    struct hec_layer_fault last;
    int result = -1;
    fault->step = HEC_LAYER_STEP_NONE;
    for (size_t i = layer->may_mount ? 0 : 2; i < sizeof kinds / sizeof kinds[0] && result < 0; i++) {
        layer->user_namespace = kinds[i].user_namespace;
        layer->user_xattr = kinds[i].user_xattr;
        result = hec_layer_renew(layer, NULL) < 0 ? -1 : hec_layer_try(layer, &last);
        if (result < 0 && fault->step == HEC_LAYER_STEP_NONE)
            *fault = last;
    }
    return result;
}

static int open_layer(struct hec_layer *layer, const struct hec_layer_options *options, struct hec_why *why) {
    struct parent parents[HEC_LAYER_PARENTS_MAX];
    struct hec_layer_fault fault, first = {0};
    look_at_rights(layer);
    int err = hec_layer_plan(layer, options, why), result = -1;
    if (err < 0)
        return err;
    size_t count = find_parents(options, parents);
    if (options->scratch_parent && (count == 0 || !parents[0].suitable))
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "%.300s cannot hold a scratch layer: %s", options->scratch_parent,
                        count == 0 ? "it is no folder that this user may write into"
                                   : "overlayfs does not take its file system for that");
    qsort(parents, count, sizeof parents[0], by_room);
    layer->parent_count = count;
    for (size_t i = 0; i < count; i++)
        memcpy(layer->parents[i], parents[i].path, sizeof layer->parents[i]);
    layer->memory_bytes = options->memory_max_bytes > 0 ? options->memory_max_bytes : half_of_memory();
    snprintf(layer->memory_data, sizeof layer->memory_data, "mode=0700,size=%" PRId64, layer->memory_bytes);
    for (int in_memory = 0; in_memory < 2 && result < 0; in_memory++) {
        remove_scratches(layer);
        assign(layer, parents, count, in_memory);
        err = make_scratches(layer, why);
        if (err < 0)
            return err;
        result = try_kinds(layer, &fault);
        if (!in_memory)
            first = fault;
    }
    layer->user_namespace &= result == 0 || !layer->may_mount; /* the fault is of the first kind that was tried */
    if (result < 0)
        return hec_layer_explain(layer, &first, why);
    for (size_t i = count; i-- > 0;)
        if (layer->scratches[i].path[0])
            layer->free_bytes = parents[i].free_bytes;
    return hec_layer_renew(layer, why);
}

int hec_layer_open(const struct hec_layer_options *options, struct hec_layer **out, struct hec_why *why) {
    struct hec_layer *layer = calloc(1, sizeof *layer);
    *out = NULL;
    if (!layer)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the scratch layer");
    int err = open_layer(layer, options, why);
    if (err < 0)
        hec_layer_close(layer);
    else
        *out = layer;
    return err;
}

void hec_layer_close(struct hec_layer *layer) {
    if (!layer)
        return;
    remove_scratches(layer);
    for (size_t i = 0; i < layer->count; i++) {
        free(layer->places[i].path);
        free(layer->places[i].type);
    }
    free(layer->places);
    free(layer->folder);
    free(layer);
}

const char *hec_layer_folder(const struct hec_layer *layer, size_t i) {
    for (size_t p = 0; p < layer->count; p++)
        if ((layer->places[p].kind == HEC_LAYER_OVERLAY || layer->places[p].kind == HEC_LAYER_FRESH) && i-- == 0)
            return layer->places[p].path;
    return NULL;
}

struct hec_layer_scratch hec_layer_scratch(const struct hec_layer *layer) {
    struct hec_layer_scratch scratch = {.path = "",
                                        .free_bytes = layer->memory_bytes,
                                        .private_shm = layer->own_shm,
                                        .user_namespace = layer->user_namespace};
    for (size_t i = layer->parent_count; i-- > 0;)
        if (layer->scratches[i].path[0]) {
            scratch.path = layer->scratches[i].path;
            scratch.free_bytes = layer->free_bytes;
        }
    return scratch;
}

void hec_layer_sweep(const struct hec_layer_options *options) {
    struct parent parents[HEC_LAYER_PARENTS_MAX];
    size_t count = find_parents(options, parents);
    for (size_t i = 0; i < count; i++)
        hec_scratch_sweep(parents[i].path);
}
