/* One transaction: everything that waits, into the file. */
#pragma once

#include "store/definitions.h"
#include "store/queue.h"
#include "store/record.h"
#include "store/series.h"
#include "store/sql.h"
#include "store/timeline.h"

#include <stdbool.h>

/* What the queues hold besides structs that are rows (enum hec_record_kind). Times are as recorded, not yet relative. Texts follow the
 * struct, each with its NUL. */
enum hec_queued { HEC_QUEUED_SAMPLE = HEC_RECORD_COUNT, HEC_QUEUED_EVENT, HEC_QUEUED_UNITS, HEC_QUEUED_META };

struct hec_queued_sample {
    int64_t t_ns, value;
    int32_t subject;
    uint16_t metric;
    uint16_t valid;
};

struct hec_queued_event { /* + text */
    int64_t t_ns;
    int kind, device;
};

#define HEC_QUEUED_UNITS_MAX 1e100 /* of one record: a sum of them stays finite */

struct hec_queued_units { /* + name */
    double count;
};

struct hec_queued_meta { /* + key, value */
    uint32_t key_length;
};

enum hec_commit_statement {
#define HEC_STATEMENT(id, sql) HEC_STATEMENT_##id,
#include "store/commit.def"
#undef HEC_STATEMENT
    HEC_STATEMENT_COUNT
};

struct hec_commit {
    sqlite3 *db;
    bool in_memory;
    sqlite3_stmt *statements[HEC_STATEMENT_COUNT];
    sqlite3_stmt *records[HEC_RECORD_COUNT];
};

/* Of a file that is ours alone. */
int hec_commit_open(struct hec_commit *commit, const char *path, struct hec_why *why);

/* In memory, beginning with these bytes, which are not needed any more. */
int hec_commit_open_memory(struct hec_commit *commit, const struct hec_image *image, struct hec_why *why);

/* What is committed, as the bytes of a run file that was closed; HEC_ERR_LIMIT: more than memory is for. */
int hec_commit_image(struct hec_commit *commit, struct hec_image *image, struct hec_why *why);

/* What one transaction is made of. */
struct hec_commit_batch {
    struct hec_series_table *series;
    const struct hec_queue *records;
    const struct hec_definition_batch *definitions;
    const struct hec_store_timeline_batch *timeline;
    int64_t origin_ns;
};

/* All or nothing. On success the caller forgets what it passed (hec_series_committed, hec_queue_clear, ..._give_back). */
int hec_commit_all(struct hec_commit *commit, const struct hec_commit_batch *batch, struct hec_why *why);

/* The last transactions may use the room that memory keeps for them. */
void hec_commit_last(struct hec_commit *commit);

/* Fold the log into the file, so that one file remains. */
int hec_commit_fold(struct hec_commit *commit, struct hec_why *why);

/* Closing does nothing to what lies at the path and beside it: it may be another's. */
void hec_commit_leave(struct hec_commit *commit);

void hec_commit_close(struct hec_commit *commit);
