/* Finding new members: through /proc/PID/task/TID/children where the kernel has it (CONFIG_PROC_CHILDREN), otherwise
 * by the parents of all processes. */
#include "observe/procfs/file.h"
#include "observe/procfs/tree.h"

#include <stdio.h>
#include <stdlib.h>

#define CHILDREN_FILE 65536

struct listing {
    struct hec_tree *tree;
    int32_t parent;
};

static void add_child(void *context, int32_t pid) {
    const struct listing *listing = context;
    hec_tree_add(listing->tree, pid, listing->parent);
}

static void children_of_thread(void *context, int32_t tid) {
    struct listing *listing = context;
    char path[64], text[CHILDREN_FILE];
    snprintf(path, sizeof path, "%d/task/%d/children", listing->parent, tid);
    if (hec_proc_read(listing->tree->proc, path, text, sizeof text) > 0)
        hec_proc_each_number(text, add_child, listing);
}

/* Every thread has its own children: those that it forked, and orphans that were given to it. */
static void children_of_self(struct hec_tree *tree) {
    struct listing listing = {tree, tree->self};
    char path[64];
    snprintf(path, sizeof path, "%d/task", tree->self);
    hec_proc_list_numbers(tree->proc, path, children_of_thread, &listing);
}

static void follow_children(struct hec_tree *tree) {
    children_of_self(tree);
    for (int i = 0; i < tree->count; i++) { /* count grows; members may move */
        const struct hec_tree_member *member = &tree->members[i];
        struct listing listing = {tree, member->record.pid};
        if (member->gone)
            continue;
        if (member->children_fd < 0) {
            children_of_thread(&listing, listing.parent);
            continue;
        }
        char text[CHILDREN_FILE];
        if (hec_proc_reread(member->children_fd, text, sizeof text) > 0)
            hec_proc_each_number(text, add_child, &listing);
    }
}

struct scan {
    int32_t *pid;
    int count, capacity;
};

static void note_pid(void *context, int32_t pid) {
    struct scan *scan = context;
    if (scan->count == scan->capacity) {
        int capacity = scan->capacity ? 2 * scan->capacity : 512;
        int32_t *grown = realloc(scan->pid, (size_t)capacity * sizeof *grown);
        if (!grown)
            return; /* what does not fit is found in a later poll */
        scan->pid = grown;
        scan->capacity = capacity;
    }
    scan->pid[scan->count++] = pid;
}

static int by_pid(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int32_t read_parent(const struct hec_tree *tree, int32_t pid) {
    char path[64], text[2048];
    struct hec_proc_stat stat;
    snprintf(path, sizeof path, "%d/stat", pid);
    if (hec_proc_read(tree->proc, path, text, sizeof text) < 0 || !hec_proc_parse_stat(text, &stat))
        return -1;
    return stat.parent;
}

/* Processes found outside twice are not looked at again while they live: a system has hundreds. Once is not enough,
 * since a parent may appear behind the point that the listing had reached. */
static void scan_all(struct hec_tree *tree) {
    struct scan scan = {0};
    hec_proc_list_numbers(tree->proc, ".", note_pid, &scan);
    qsort(scan.pid, (size_t)scan.count, sizeof *scan.pid, by_pid);
    struct hec_tree_foreign *foreign = calloc((size_t)scan.count + 1, sizeof *foreign);
    int32_t *parent = calloc((size_t)scan.count + 1, sizeof *parent);
    if (!foreign || !parent) {
        free(foreign);
        free(parent);
        free(scan.pid);
        return;
    }
    for (int i = 0, old = 0; i < scan.count; i++) {
        while (old < tree->foreign_count && tree->foreign[old].pid < scan.pid[i])
            old++;
        bool known = old < tree->foreign_count && tree->foreign[old].pid == scan.pid[i];
        foreign[i].pid = scan.pid[i];
        foreign[i].times = known ? tree->foreign[old].times : 0;
        if (foreign[i].times < 2 && !hec_tree_find(tree, scan.pid[i])) {
            parent[i] = read_parent(tree, scan.pid[i]);
            foreign[i].times++;
        }
    }
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < scan.count; i++) {
            if (parent[i] <= 0 || (parent[i] != tree->self && !hec_tree_find(tree, parent[i])))
                continue;
            found |= hec_tree_add(tree, scan.pid[i], parent[i]);
            parent[i] = 0;
            foreign[i].times = 0;
        }
    }
    free(tree->foreign);
    tree->foreign = foreign;
    tree->foreign_count = scan.count;
    free(parent);
    free(scan.pid);
}

void hec_tree_discover(struct hec_tree *tree, int32_t root) {
    if (root > 0)
        hec_tree_add(tree, root, 0);
    if (tree->has_children_files)
        follow_children(tree);
    else
        scan_all(tree);
}

struct exclusion {
    struct hec_tree *tree;
    int32_t root;
};

static void exclude(void *context, int32_t pid) {
    struct exclusion *exclusion = context;
    struct hec_tree *tree = exclusion->tree;
    char path[64], text[2048];
    struct hec_proc_stat stat;
    snprintf(path, sizeof path, "%d/stat", pid);
    if (pid == exclusion->root || tree->excluded_count == HEC_TREE_EXCLUDED_MAX ||
        hec_proc_read(tree->proc, path, text, sizeof text) < 0 || !hec_proc_parse_stat(text, &stat) ||
        stat.parent != tree->self)
        return;
    tree->excluded[tree->excluded_count++] = (int64_t)pid << 32 | (stat.start_ticks & UINT32_MAX);
}

static void exclude_children_of_thread(void *context, int32_t tid) {
    struct exclusion *exclusion = context;
    char path[64], text[CHILDREN_FILE];
    snprintf(path, sizeof path, "%d/task/%d/children", exclusion->tree->self, tid);
    if (hec_proc_read(exclusion->tree->proc, path, text, sizeof text) > 0)
        hec_proc_each_number(text, exclude, exclusion);
}

void hec_tree_exclude_present(struct hec_tree *tree, int32_t root) {
    struct exclusion exclusion = {tree, root};
    char path[64];
    snprintf(path, sizeof path, "%d/task", tree->self);
    if (tree->has_children_files)
        hec_proc_list_numbers(tree->proc, path, exclude_children_of_thread, &exclusion);
    else
        hec_proc_list_numbers(tree->proc, ".", exclude, &exclusion);
}
