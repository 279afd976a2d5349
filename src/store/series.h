/* The series being written: each has one open block in memory, and closed blocks wait in a bounded list until they are
 * committed. Used by the thread that flushes only. */
#pragma once

#include "model/metric.h"
#include "store/pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much of what is written covers each instant, so that a writer knows what a reader has to keep at one time. A step
 * function in bounded memory: where there are too many steps, the earlier ones are joined to the higher of two, so that it
 * is never too low. */
#define HEC_OVERLAP_STEPS_MAX 8192 /* 128 KiB */

struct hec_overlap_step {
    int64_t from, amount;
};

struct hec_overlap { /* all zero: nothing is covered */
    struct hec_overlap_step *steps;
    size_t count, capacity;
};

/* Cover first to last, both included (last < INT64_MAX), with an amount, unless that makes more than most somewhere, or
 * there is no memory: then nothing changes, and the answer is false. */
bool hec_overlap_add(struct hec_overlap *overlap, int64_t first, int64_t last, int64_t amount, int64_t most);
void hec_overlap_free(struct hec_overlap *overlap);

struct hec_series {
    enum hec_metric metric;
    int32_t subject;
    int64_t id;              /* series.id, from 1 */
    struct hec_series *next; /* of the same hash */
    bool exact;              /* keeps every microsecond */
    bool stored;             /* its row in the table series is committed */
    bool has_row;            /* the file has a row for its open block (block.id = -id): */
    bool holds_row;          /* that row is the block now open; */
    bool moved;              /* its beginning has changed since; */
    bool promote;            /* or the row is all that is left of a block that was dropped: keep it */
    bool dirty;
    int idle;      /* flushes since the last value */
    int committed; /* values of the open block that are in its row */
    int n, capacity;
    int64_t low, high; /* of the valid values */
    bool any;          /* low and high are set */
    int r_width;       /* when last packed */
    int64_t *t_us, *v; /* one allocation of capacity each */
    uint8_t *valid;
    int64_t closed_us;          /* no block closed so far ends later; those that began before that: */
    struct hec_overlap overlap; /* how many values they hold */
};

/* A closed block that is not committed yet. */
struct hec_closed {
    struct hec_closed *next;
    struct hec_series *series;
    int committed;  /* how many of its values are in the file already, in the row of the open block */
    bool holds_row; /* that row is this block */
    int64_t t0_us, t1_us, v_base, r_base;
    int n, v_width, r_width;
    char text[]; /* v, then r */
};

struct hec_series_table {
    struct hec_series **hash;
    size_t hash_size, count;
    struct hec_series **all; /* in the order of id */
    size_t all_capacity;
    struct hec_closed *closed_first, *closed_last;
    size_t closed_bytes, closed_max_bytes;
    int64_t lost;   /* values dropped: no memory, late beyond repair, or too long unwritten; */
    int64_t beyond; /* those of them that would make a file that no reader takes */
    struct hec_block scratch;
};

int hec_series_init(struct hec_series_table *table, size_t closed_max_bytes);
void hec_series_free(struct hec_series_table *table);

/* Add one value, in any order of time (late ones are put in their place). Never fails: what cannot be kept is lost. */
void hec_series_add(struct hec_series_table *table, enum hec_metric metric, int32_t subject, int64_t t_us,
                    int64_t value, bool valid);

/* Close the open block and give its memory back: for series that are silent, such as those of a process that ended. */
void hec_series_close(struct hec_series_table *table, struct hec_series *series);

/* All that was waiting is committed. */
void hec_series_committed(struct hec_series_table *table);

/* Values that are not in the file. */
int64_t hec_series_uncommitted(const struct hec_series_table *table);
