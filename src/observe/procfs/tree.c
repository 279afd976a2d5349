#include "observe/procfs/tree.h"

#include "base/clock.h"
#include "observe/procfs/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SMALL_FILE 2048

int64_t hec_tree_waited_by_self_us(const struct hec_tree *tree) {
    struct rusage usage;
    if (!tree->counts_waited || getrusage(RUSAGE_CHILDREN, &usage) != 0)
        return 0;
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec - tree->waited_at_start_us;
}

void hec_tree_init(struct hec_tree *tree, int proc, int32_t self, bool is_this_system) {
    memset(tree, 0, sizeof *tree);
    tree->proc = proc;
    tree->self = self;
    tree->counts_waited = is_this_system;
    tree->io_known = true;
    tree->us_per_tick = 1000000 / sysconf(_SC_CLK_TCK);
    tree->page_kib = sysconf(_SC_PAGESIZE) / 1024;
    char path[64], text[SMALL_FILE];
    snprintf(path, sizeof path, "%d/task/%d/children", self, self);
    tree->has_children_files = hec_proc_read(proc, path, text, sizeof text) >= 0;
    snprintf(path, sizeof path, "%d/io", self);
    tree->has_io = hec_proc_read(proc, path, text, sizeof text) >= 0;
    tree->waited_at_start_us = hec_tree_waited_by_self_us(tree);
    struct rlimit files;
    tree->open_max = 0;
    /* at most three eighths of the descriptors; files of a recording do not end with their process */
    if (is_this_system && getrlimit(RLIMIT_NOFILE, &files) == 0)
        tree->open_max = files.rlim_cur / 8 < HEC_TREE_OPEN_MAX ? (int)(files.rlim_cur / 8) : HEC_TREE_OPEN_MAX;
}

static void close_files(struct hec_tree *tree, struct hec_tree_member *member) {
    if (member->stat_fd >= 0)
        tree->open_count--;
    int *fds[] = {&member->stat_fd, &member->io_fd, &member->children_fd};
    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

static void drop_member(struct hec_tree *tree, struct hec_tree_member *member) {
    close_files(tree, member);
    free(member->thread);
}

void hec_tree_free(struct hec_tree *tree) {
    for (int i = 0; i < tree->count; i++)
        drop_member(tree, &tree->members[i]);
    free(tree->members);
    free(tree->index);
    free(tree->foreign);
    memset(tree, 0, sizeof *tree);
}

static int slot_of(const struct hec_tree *tree, int32_t pid) {
    return (int)(((uint32_t)pid * 2654435761u) & (uint32_t)(tree->index_size - 1));
}

struct hec_tree_member *hec_tree_find(const struct hec_tree *tree, int32_t pid) {
    if (tree->index_size == 0)
        return NULL;
    for (int slot = slot_of(tree, pid); tree->index[slot] >= 0; slot = (slot + 1) & (tree->index_size - 1)) {
        struct hec_tree_member *member = &tree->members[tree->index[slot]];
        if (member->record.pid == pid && !member->gone)
            return member;
    }
    return NULL;
}

static void index_put(struct hec_tree *tree, int at) {
    int slot = slot_of(tree, tree->members[at].record.pid);
    while (tree->index[slot] >= 0)
        slot = (slot + 1) & (tree->index_size - 1);
    tree->index[slot] = at;
}

/* Make room for one more member; the index is at most half full. */
static bool reserve(struct hec_tree *tree) {
    if (tree->count == tree->capacity) {
        int capacity = tree->capacity ? 2 * tree->capacity : 64;
        struct hec_tree_member *members = realloc(tree->members, (size_t)capacity * sizeof *members);
        if (!members)
            return false;
        tree->members = members;
        int *index = realloc(tree->index, 2 * (size_t)capacity * sizeof *index);
        if (!index)
            return false;
        tree->index = index;
        tree->capacity = capacity;
        tree->index_size = 2 * capacity;
        memset(index, 0xff, (size_t)tree->index_size * sizeof *index);
        for (int i = 0; i < tree->count; i++)
            index_put(tree, i);
    }
    return true;
}

/* Forget what is gone, keeping the order. */
static void compact(struct hec_tree *tree) {
    int kept = 0;
    for (int i = 0; i < tree->count; i++) {
        if (tree->members[i].gone) {
            drop_member(tree, &tree->members[i]);
            continue;
        }
        if (kept != i)
            tree->members[kept] = tree->members[i];
        kept++;
    }
    if (kept == tree->count)
        return;
    tree->count = kept;
    memset(tree->index, 0xff, (size_t)tree->index_size * sizeof *tree->index);
    for (int i = 0; i < kept; i++)
        index_put(tree, i);
}

static ssize_t read_file(struct hec_tree *tree, struct hec_tree_member *member, int fd, const char *name, char *text,
                         size_t size) {
    if (fd >= 0)
        return hec_proc_reread(fd, text, size);
    char path[64];
    snprintf(path, sizeof path, "%d/%s", member->record.pid, name);
    return hec_proc_read(tree->proc, path, text, size);
}

static void read_io(struct hec_tree *tree, struct hec_tree_member *member) {
    char text[SMALL_FILE];
    struct hec_proc_io io;
    if (!tree->has_io)
        return;
    ssize_t length = read_file(tree, member, member->io_fd, "io", text, sizeof text);
    if (hec_proc_error_is_denied(length)) {
        /* its I/O will reach the parent's counts when it is waited for, but until then the tree's total is unknown,
         * and should it never be waited for, for ever */
        tree->io_known = false;
        member->record.read_kib = member->record.written_kib = -1;
        return;
    }
    if (length < 0 || !hec_proc_parse_io(text, &io))
        return; /* gone or for a moment unreadable: the last counts stand */
    const int64_t now[] = {
        [HEC_AMOUNT_READ] = io.read, [HEC_AMOUNT_WRITTEN] = io.written, [HEC_AMOUNT_DISK_READ] = io.disk_read};
    for (int q = HEC_AMOUNT_READ; q < HEC_AMOUNT_COUNT; q++) {
        if (now[q] <= member->total[q])
            continue;
        member->absorbed[q] += now[q] - member->total[q];
        member->total[q] = now[q];
        member->changed = true;
    }
    member->record.read_kib = member->total[HEC_AMOUNT_READ] / 1024;
    member->record.written_kib = member->total[HEC_AMOUNT_WRITTEN] / 1024;
}

static void take_stat(struct hec_tree *tree, struct hec_tree_member *member, const struct hec_proc_stat *stat) {
    struct hec_process *record = &member->record;
    int64_t waited_us = stat->waited_ticks * tree->us_per_tick;
    int64_t total_us = stat->own_ticks * tree->us_per_tick + waited_us;
    if (waited_us > member->waited_us) {
        member->absorbed[HEC_AMOUNT_CPU_US] += waited_us - member->waited_us;
        member->waited_us = waited_us;
    }
    if (total_us > member->total[HEC_AMOUNT_CPU_US])
        member->total[HEC_AMOUNT_CPU_US] = total_us;
    int64_t cpu_ms = stat->own_ticks * tree->us_per_tick / 1000;
    member->rss_kib = stat->rss_pages * tree->page_kib;
    member->threads = stat->threads;
    member->parent = stat->parent;
    member->state = stat->state;
    if (cpu_ms > record->cpu_ms || member->rss_kib > record->rss_max_kib || strcmp(record->name, stat->name) != 0)
        member->changed = true;
    if (cpu_ms > record->cpu_ms)
        record->cpu_ms = cpu_ms;
    if (member->rss_kib > record->rss_max_kib)
        record->rss_max_kib = member->rss_kib;
    memcpy(record->name, stat->name, sizeof record->name); /* exec changes it */
    if (record->end_ns < 0 && (stat->state == 'Z' || stat->state == 'X')) {
        record->end_ns = tree->now_ns; /* ended, not yet waited for */
        member->changed = true;
    }
}

bool hec_tree_read_member(struct hec_tree *tree, struct hec_tree_member *member) {
    char text[SMALL_FILE];
    struct hec_proc_stat stat;
    ssize_t length = read_file(tree, member, member->stat_fd, "stat", text, sizeof text);
    if (hec_proc_error_is_gone(length))
        return false;
    if (length < 0 || !hec_proc_parse_stat(text, &stat))
        return true; /* out of descriptors or the like: what was read last stands */
    if (stat.start_ticks != member->start_ticks)
        return false; /* another process with its pid */
    take_stat(tree, member, &stat);
    read_io(tree, member);
    return true;
}

static int keep_open(const struct hec_tree *tree, int32_t pid, const char *format) {
    char path[64];
    snprintf(path, sizeof path, format, pid, pid);
    return openat(tree->proc, path, O_RDONLY | O_CLOEXEC);
}

static void open_files(struct hec_tree *tree, struct hec_tree_member *member) {
    int32_t pid = member->record.pid;
    if (tree->open_count >= tree->open_max)
        return;
    member->stat_fd = keep_open(tree, pid, "%d/stat");
    if (member->stat_fd < 0)
        return;
    tree->open_count++;
    member->io_fd = tree->has_io ? keep_open(tree, pid, "%d/io") : -1;
    member->children_fd = tree->has_children_files ? keep_open(tree, pid, "%d/task/%d/children") : -1;
}

static bool is_excluded(const struct hec_tree *tree, const struct hec_proc_stat *stat) {
    int64_t key = (int64_t)stat->pid << 32 | (stat->start_ticks & UINT32_MAX);
    for (int i = 0; i < tree->excluded_count; i++)
        if (tree->excluded[i] == key)
            return true;
    return false;
}

/* Time since boot, by which the kernel says when a process began, goes on while the machine sleeps. */
static int64_t boot_offset(void) {
    struct timespec boot;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return hec_clock_mono_ns() - ((int64_t)boot.tv_sec * HEC_NS_PER_S + boot.tv_nsec);
}

/* Whatever the kernel says: what is there began before, else what it did until now would be a stranger's. */
static int64_t start_of(const struct hec_tree *tree, const struct hec_proc_stat *stat) {
    int64_t start_ns = stat->start_ticks * tree->us_per_tick * HEC_NS_PER_US + tree->boot_offset_ns;
    return start_ns < tree->now_ns ? start_ns : tree->now_ns;
}

bool hec_tree_add(struct hec_tree *tree, int32_t pid, int32_t parent) {
    char path[64], text[SMALL_FILE];
    struct hec_proc_stat stat;
    if (pid == tree->self || hec_tree_find(tree, pid))
        return false;
    snprintf(path, sizeof path, "%d/stat", pid);
    if (hec_proc_read(tree->proc, path, text, sizeof text) < 0 || !hec_proc_parse_stat(text, &stat))
        return false;
    /* between the listing and now, the pid may have become another process's */
    if (parent && stat.parent != parent && stat.parent != tree->self && !hec_tree_find(tree, stat.parent))
        return false;
    if (parent && is_excluded(tree, &stat)) /* the command itself may have been there when hec looked, not yet known */
        return false;
    if (tree->owner && !hec_proc_is_users(tree->proc, pid, *tree->owner))
        return false;
    if (tree->count >= HEC_TREE_LIVE_MAX || !reserve(tree)) {
        tree->unseen_for_limit++;
        return false;
    }
    struct hec_tree_member *member = &tree->members[tree->count];
    memset(member, 0, sizeof *member);
    member->stat_fd = member->io_fd = member->children_fd = -1;
    member->start_ticks = stat.start_ticks;
    member->record = (struct hec_process){.pid = pid, .parent = stat.parent, .end_ns = -1};
    member->record.start_ns = start_of(tree, &stat);
    if (!tree->has_io)
        member->record.read_kib = member->record.written_kib = -1;
    member->changed = true;
    take_stat(tree, member, &stat);
    open_files(tree, member);
    read_io(tree, member);
    memset(member->absorbed, 0, sizeof member->absorbed); /* of before it was known */
    tree->count++;
    tree->seen++;
    index_put(tree, tree->count - 1);
    return true;
}

static void hand_over(struct hec_tree *tree, const struct hec_sink *sink) {
    for (int i = 0; i < tree->count; i++) {
        struct hec_tree_member *member = &tree->members[i];
        if (member->gone && member->record.end_ns < 0) {
            member->record.end_ns = tree->now_ns; /* ended between the poll before and this one */
            member->changed = true;
        }
        if (!member->changed)
            continue;
        member->changed = false;
        if (!member->recorded && tree->seen - tree->unrecorded > HEC_TREE_RECORDS_MAX) {
            tree->unrecorded++;
            continue;
        }
        member->recorded = true;
        if (sink)
            sink->process(sink->context, &member->record);
    }
}

static void sum_up(struct hec_tree *tree) {
    int64_t amount[HEC_AMOUNT_COUNT];
    memcpy(amount, tree->kept, sizeof amount);
    amount[HEC_AMOUNT_CPU_US] += tree->waited_by_self_us;
    tree->rss_kib = tree->processes = tree->threads = 0;
    for (int i = 0; i < tree->count; i++) {
        const struct hec_tree_member *member = &tree->members[i];
        if (member->gone)
            continue;
        for (int q = 0; q < HEC_AMOUNT_COUNT; q++)
            amount[q] += member->total[q];
        if (member->record.end_ns >= 0)
            continue;
        tree->rss_kib += member->rss_kib;
        tree->processes++;
        tree->threads += member->threads;
    }
    for (int q = 0; q < HEC_AMOUNT_COUNT; q++)
        if (amount[q] > tree->amount[q])
            tree->amount[q] = amount[q];
}

void hec_tree_update(struct hec_tree *tree, int32_t root, int64_t now_ns, bool look_at_threads,
                     const struct hec_sink *sink) {
    tree->now_ns = now_ns;
    tree->boot_offset_ns = boot_offset();
    compact(tree);
    for (int i = 0; i < tree->count; i++) {
        struct hec_tree_member *member = &tree->members[i];
        /* I/O read at the parent after the child was read and before it was gone; own I/O of the parent is in it too,
         * so it can only hide, never invent. For CPU time settling reads again instead. */
        for (int q = HEC_AMOUNT_READ; q < HEC_AMOUNT_COUNT; q++)
            member->carried[q] = member->absorbed[q] > member->owed[q] ? member->absorbed[q] - member->owed[q] : 0;
        memset(member->absorbed, 0, sizeof member->absorbed);
    }
    /* children before their parents: a child found gone has then already been added to what its parent is read to have
     * */
    for (int i = tree->count - 1; i >= 0; i--)
        tree->members[i].gone = !hec_tree_read_member(tree, &tree->members[i]);
    hec_tree_settle(tree);
    hec_tree_discover(tree, root);
    tree->threads_known = false;
    if (look_at_threads)
        hec_tree_look_at_threads(tree);
    sum_up(tree);
    hand_over(tree, sink);
}
