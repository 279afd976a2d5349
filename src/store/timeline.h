/* The activities being written: each kind of each track has an open block in memory; full ones are packed at once and
 * wait in a bounded list until they are committed. What does not fit is refused and counted. Its functions may be called
 * from any thread; take and give_back from the one that flushes. */
#pragma once

#include "store/activity_pack.h"

#include <pthread.h>
#include <stdbool.h>

/* A packed block. Times are as recorded. */
struct hec_activity_block {
    struct hec_activity_block *next;
    uint32_t chain; /* number from 1; the row of the chain's open block has the id -chain */
    uint32_t track;
    enum hec_activity_kind kind;
    uint32_t n;
    int64_t t0_ns, t1_ns; /* first start, last end */
    int64_t total_ns;     /* of durations */
    double amount;        /* sum of those known */
    uint32_t committed;   /* activities that are in the file, in the row of the open block */
    uint32_t serial;      /* of the blocks of the chain */
    bool has_row;         /* the file has a row for the chain's open block, */
    bool same_t0;         /* with this t0_ns */
    size_t length;
    unsigned char bytes[];
};

/* Count and duration of all activities of one kind with one name. */
struct hec_activity_total {
    enum hec_activity_kind kind;
    uint32_t name;
    int64_t count, total_ns;
};

/* One transaction's worth. */
struct hec_store_timeline_batch {
    struct hec_activity_block *closed; /* oldest first */
    struct hec_activity_block *open;   /* open blocks that changed; with n 0, the row is to go */
    struct hec_activity_total *totals; /* those that changed */
    size_t total_count;
};

struct hec_store_timeline;

struct hec_store_timeline *hec_store_timeline_new(void); /* NULL: no memory */
void hec_store_timeline_free(struct hec_store_timeline *timeline);

/* limits: the ids that exist, and the tracks. */
void hec_store_timeline_add(struct hec_store_timeline *timeline, const struct hec_activity *activities, size_t count,
                            const struct hec_activity_limits *limits);

/* Everything that is not in the file; false when there is no memory for that. */
bool hec_store_timeline_take(struct hec_store_timeline *timeline, struct hec_store_timeline_batch *batch);
/* done: the batch is in the file. Frees the batch in any case. */
void hec_store_timeline_give_back(struct hec_store_timeline *timeline, struct hec_store_timeline_batch *batch,
                                  bool done);

/* Activities that are not kept; beyond (may be NULL): those of them that would make a file that no reader takes, because
 * too many blocks overlap or are alike. */
int64_t hec_store_timeline_lost(struct hec_store_timeline *timeline, int64_t *beyond);
int64_t hec_store_timeline_uncommitted(struct hec_store_timeline *timeline); /* activities that are not in the file */
