/* The observed process tree: the command, its descendants, and descendants that outlived their parents (they become
 * children of hec, which is a child subreaper), with totals that never go down.
 *
 * How the totals stay right when members come and go between two readings: a process's CPU time (and I/O) is added by
 * the kernel to its parent's when the parent waits for it, and to that of hec when hec does. So
 *     total = sum over live members of (own + waited for) + waited for by hec + kept
 * and when a member is gone whose amount did not turn up at the parent nor at hec (a parent that ignores SIGCHLD), the
 * amount last read is kept. Children too short-lived to be seen are so counted through whoever waited for them. */
#pragma once

#include "model/run.h"

#include <sys/types.h>

#define HEC_TREE_LIVE_MAX 16384    /* members looked at in one poll */
#define HEC_TREE_RECORDS_MAX 16384 /* processes handed to the sink in all; more are counted only */
#define HEC_TREE_THREADS_MAX 4096  /* of one member */
#define HEC_TREE_EXCLUDED_MAX 64
#define HEC_TREE_OPEN_MAX 512 /* members whose files are kept open, three descriptors each; fewer by the limit */

enum hec_tree_amount { HEC_AMOUNT_CPU_US, HEC_AMOUNT_READ, HEC_AMOUNT_WRITTEN, HEC_AMOUNT_DISK_READ, HEC_AMOUNT_COUNT };

struct hec_tree_thread {
    int32_t tid;
    int64_t voluntary, involuntary; /* when last read */
};

struct hec_tree_member {
    struct hec_process record;
    int32_t parent; /* now; the record keeps the first one */
    int64_t start_ticks;
    int64_t waited_us;
    int64_t total[HEC_AMOUNT_COUNT];    /* own and waited for, when last read */
    int64_t absorbed[HEC_AMOUNT_COUNT]; /* by which this may have grown through waiting, since the poll before */
    int64_t owed[HEC_AMOUNT_COUNT];     /* totals of descendants gone since the poll before */
    int64_t carried[HEC_AMOUNT_COUNT];  /* absorbed in the poll before and explained by none that was gone then */
    int64_t threads, rss_kib;
    char state;
    bool gone, changed, recorded;
    int stat_fd, io_fd, children_fd; /* -1: not kept open */
    struct hec_tree_thread *thread;
    int thread_count;
};

struct hec_tree_foreign {
    int32_t pid;
    int32_t times; /* looked at and found outside the tree */
};

struct hec_tree {
    /* set by init */
    int proc;     /* open directory */
    int32_t self; /* hec, in the pid namespace of proc */
    bool has_children_files, has_io;
    const uid_t *owner; /* only processes of this user are members; NULL: of any. Set after init */
    bool counts_waited; /* proc is this system's: hec's own waited-for time is part of the total */
    int64_t us_per_tick, page_kib;

    struct hec_tree_member *members; /* parents before their children */
    int count, capacity;
    int *index; /* pid -> member, open addressing */
    int index_size;
    int open_count, open_max;
    struct hec_tree_foreign *foreign; /* pids outside the tree, ascending; see discover.c */
    int foreign_count;
    int64_t excluded[HEC_TREE_EXCLUDED_MAX]; /* pid << 32 | low bits of the start: children that hec had before */
    int excluded_count;

    int64_t waited_at_start_us; /* by hec, before init */
    int64_t waited_by_self_us;  /* since */
    int64_t kept[HEC_AMOUNT_COUNT];
    int64_t now_ns;
    int64_t boot_offset_ns; /* monotonic time minus time since boot, at the last update */

    /* results of the last update */
    int64_t amount[HEC_AMOUNT_COUNT];
    bool io_known; /* false for good once a member's I/O could not be read */
    int64_t rss_kib, processes, threads;
    int64_t running, sleeping, disk; /* threads; valid when threads_known */
    bool threads_known;              /* the last update looked at every thread */
    int64_t voluntary, involuntary;
    int64_t seen, unrecorded, unseen_for_limit;
};

/* proc: an open directory, /proc or a recording of one; it stays the caller's. self: hec's pid there. */
void hec_tree_init(struct hec_tree *tree, int proc, int32_t self, bool is_this_system);
void hec_tree_free(struct hec_tree *tree);

/* Children that hec already has (but for root, when it is not 0) are no part of the tree. */
void hec_tree_exclude_present(struct hec_tree *tree, int32_t root);

/* Read everything once. look_at_threads: their states and context switches too, and children of threads other than the
 * first; this costs about 20 us a thread. Records that changed are handed to sink (which may be NULL). */
void hec_tree_update(struct hec_tree *tree, int32_t root, int64_t now_ns, bool look_at_threads,
                     const struct hec_sink *sink);

/* Within the folder. */
struct hec_tree_member *hec_tree_find(const struct hec_tree *tree, int32_t pid); /* NULL when not a member */
/* Add the process if it exists and its parent is `parent`, hec or a member (0: whoever that is). True when it was
 * added. */
bool hec_tree_add(struct hec_tree *tree, int32_t pid, int32_t parent);
void hec_tree_discover(struct hec_tree *tree, int32_t root);                      /* discover.c */
void hec_tree_look_at_threads(struct hec_tree *tree);                             /* threads.c */
void hec_tree_settle(struct hec_tree *tree);                                      /* settle.c */
bool hec_tree_read_member(struct hec_tree *tree, struct hec_tree_member *member); /* false: gone */
int64_t hec_tree_waited_by_self_us(const struct hec_tree *tree);
