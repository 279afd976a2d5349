/* Thread states and context switches: one file a thread, so by far the dearest part of a poll. */
#include "observe/procfs/file.h"
#include "observe/procfs/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_FILE 4096

struct look {
    struct hec_tree *tree;
    struct hec_tree_member *member;
    struct hec_tree_thread *thread; /* of this look */
    int count;
    int before; /* where to go on in the threads of the look before: both lists are in the kernel's order */
    int32_t *child;
    int child_count, child_capacity;
};

static void count_state(struct hec_tree *tree, char state) {
    switch (state) {
    case 'R':
        tree->running++;
        break;
    case 'S':
    case 'I':
        tree->sleeping++;
        break;
    case 'D':
        tree->disk++;
        break;
    default: /* stopped, traced, dead: none of the three */
        break;
    }
}

static const struct hec_tree_thread *thread_before(struct look *look, int32_t tid) {
    const struct hec_tree_member *member = look->member;
    for (int i = 0; i < member->thread_count; i++) {
        int at = (look->before + i) % member->thread_count;
        if (member->thread[at].tid == tid) {
            look->before = at + 1;
            return &member->thread[at];
        }
    }
    return NULL;
}

static void look_at(struct look *look, int32_t tid, const char *path) {
    struct hec_tree *tree = look->tree;
    struct hec_tree_member *member = look->member;
    char text[STATUS_FILE];
    struct hec_proc_status status;
    ssize_t length = hec_proc_read(tree->proc, path, text, sizeof text);
    if (length < 0 || !hec_proc_parse_status(text, &status)) {
        if (!hec_proc_error_is_gone(length))
            tree->threads_known = false;
        return;
    }
    count_state(tree, status.state);
    if (tid == member->record.pid && status.rss_max_kib > member->record.rss_max_kib) {
        member->record.rss_max_kib = status.rss_max_kib;
        member->changed = true;
    }
    if (status.voluntary < 0 || status.involuntary < 0)
        return;
    const struct hec_tree_thread *before = thread_before(look, tid);
    int64_t voluntary = status.voluntary - (before ? before->voluntary : 0);
    int64_t involuntary = status.involuntary - (before ? before->involuntary : 0);
    tree->voluntary += voluntary > 0 ? voluntary : 0;
    tree->involuntary += involuntary > 0 ? involuntary : 0;
    if (look->count < HEC_TREE_THREADS_MAX)
        look->thread[look->count++] = (struct hec_tree_thread){tid, status.voluntary, status.involuntary};
}

static void note_child(void *context, int32_t pid) {
    struct look *look = context;
    if (look->child_count == look->child_capacity) {
        int capacity = look->child_capacity ? 2 * look->child_capacity : 64;
        int32_t *grown = realloc(look->child, (size_t)capacity * sizeof *grown);
        if (!grown)
            return;
        look->child = grown;
        look->child_capacity = capacity;
    }
    look->child[look->child_count++] = pid;
}

static void look_at_thread(void *context, int32_t tid) {
    struct look *look = context;
    int32_t pid = look->member->record.pid;
    char path[64];
    if (look->count == HEC_TREE_THREADS_MAX) {
        look->tree->threads_known = false;
        return;
    }
    snprintf(path, sizeof path, "%d/task/%d/status", pid, tid);
    look_at(look, tid, path);
    if (!look->tree->has_children_files || tid == pid)
        return;
    char text[4096];
    snprintf(path, sizeof path, "%d/task/%d/children", pid, tid);
    if (hec_proc_read(look->tree->proc, path, text, sizeof text) > 0)
        hec_proc_each_number(text, note_child, look);
}

static void look_at_member(struct look *look) {
    struct hec_tree_member *member = look->member;
    char path[64];
    look->count = look->before = 0;
    if (member->threads == 1) { /* saves listing it */
        snprintf(path, sizeof path, "%d/status", member->record.pid);
        look_at(look, member->record.pid, path);
    } else {
        snprintf(path, sizeof path, "%d/task", member->record.pid);
        int err = hec_proc_list_numbers(look->tree->proc, path, look_at_thread, look);
        if (err && !hec_proc_error_is_gone(err))
            look->tree->threads_known = false;
    }
    struct hec_tree_thread *thread = realloc(member->thread, ((size_t)look->count + 1) * sizeof *thread);
    member->thread_count = 0;
    if (thread) {
        memcpy(thread, look->thread, (size_t)look->count * sizeof *thread);
        member->thread = thread;
        member->thread_count = look->count;
    }
}

void hec_tree_look_at_threads(struct hec_tree *tree) {
    struct look look = {.tree = tree};
    look.thread = calloc(HEC_TREE_THREADS_MAX, sizeof *look.thread);
    tree->running = tree->sleeping = tree->disk = 0;
    tree->threads_known = look.thread != NULL;
    for (int i = 0; look.thread && i < tree->count; i++) {
        look.member = &tree->members[i];
        if (!look.member->gone && look.member->record.end_ns < 0)
            look_at_member(&look);
    }
    /* added only now, since adding moves the members; their own children follow in the next poll */
    for (int i = 0; i < look.child_count; i++)
        hec_tree_add(tree, look.child[i], 0);
    free(look.child);
    free(look.thread);
}
