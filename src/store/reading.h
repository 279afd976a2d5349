/* Inside the reader: an open, checked file, and statements on it whose work is bounded. */
#pragma once

#include "store/activity_pack.h"
#include "store/pack.h"
#include "store/reader.h"
#include "store/record.h"
#include "store/sql.h"

#include <stdbool.h>

struct hec_meta {
    char *key, *value;
};

struct hec_reader {
    sqlite3 *db;
    bool live;        /* its writer is at work */
    bool in_use;      /* by the thread of a pass over the activities */
    char path[300];   /* for messages, cut */
    unsigned version; /* of the format */
    int64_t file_bytes;
    struct hec_sql_budget budget;
    struct hec_meta *metas;
    int meta_count;
    char left_out[256]; /* what was wrong with the first thing that was left out; empty: everything was read */
    bool has_limits;
    struct hec_activity_limits limits; /* set by hec_reading_limits */
};

/* Open path with every guard on. The first statement shows whether SQLite can work there: its code is returned. */
int hec_reading_open(struct hec_reader *reader, const char *path, int flags);
/* The same of bytes in memory. */
int hec_reading_open_image(struct hec_reader *reader, const struct hec_image *image);

/* Open a private copy of the file and its log, already unlinked. */
int hec_reading_open_copy(struct hec_reader *reader, const char *path, struct hec_why *why);

/* Is every table what it should be, and none of them a view or a virtual table in disguise? */
int hec_reading_check_schema(struct hec_reader *reader, struct hec_why *why);

int hec_reading_prepare(struct hec_reader *reader, const char *sql, sqlite3_stmt **statement, struct hec_why *why);
/* 1: a row, 0: no more, negative: an error */
int hec_reading_step(struct hec_reader *reader, sqlite3_stmt *statement, struct hec_why *why);
int hec_reading_corrupt(struct hec_reader *reader, struct hec_why *why, const char *what);
/* One row or block holds something impossible: the run is read without it, and hec_reader_left_out counts it. */
void hec_reading_leave_out(struct hec_reader *reader, const char *what);

/* Typed columns: false when the value is of another type or out of range. The text lives until the next step. */
bool hec_reading_text(sqlite3_stmt *statement, int column, size_t maximum, const char **text);
bool hec_reading_int(sqlite3_stmt *statement, int column, int64_t low, int64_t high, int64_t *value);

/* Read one row of the statement and hand it to the visitor: the visitor's answer, 0 where it is left out, or an error
 * with why. */
typedef int (*hec_reading_row)(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why);

/* Every row of a statement, of a table. What has to be sorted, for its order is none of a key, is read once before: SQLite
 * sorts on the disk, and all of it before the first row can be counted. */
int hec_reading_each(struct hec_reader *reader, const char *select, const char *order, bool sorted, hec_reading_row row,
                     void *visitor, struct hec_why *why);
int hec_reading_each_record(struct hec_reader *reader, const struct hec_record *record, hec_reading_row row,
                            void *visitor, struct hec_why *why);
/* The row of the statement into a struct. false: it is left out. */
bool hec_reading_record(struct hec_reader *reader, const struct hec_record *record, sqlite3_stmt *statement,
                        void *data);

/* The highest ids of names, kernels, frames and tracks; read once. */
int hec_reading_limits(struct hec_reader *reader, struct hec_why *why);

/* The columns track, kind, t0_ns, n and data of a block of activities: the head, then the activities. After
 * hec_reading_limits. NULL, or what is wrong. */
const char *hec_reading_activity_head(const struct hec_reader *reader, sqlite3_stmt *statement,
                                      struct hec_activity_head *head);
const char *hec_reading_activities(const struct hec_reader *reader, sqlite3_stmt *statement,
                                   const struct hec_activity_head *head, struct hec_packer *packer,
                                   struct hec_activity *activities);

/* The columns t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r, from the first on; what they hold is for
 * hec_unpack to check. */
bool hec_reading_block(sqlite3_stmt *statement, int first, struct hec_block *head, const char **v, const char **r);
