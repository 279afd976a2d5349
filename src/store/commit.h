/* One transaction: everything that waits, into the file. */
#ifndef HEC_STORE_COMMIT_H
#define HEC_STORE_COMMIT_H

#include "store/queue.h"
#include "store/series.h"
#include "store/sql.h"

/* Records of the queues. Times are as recorded, not yet relative. Texts follow the struct, each with its NUL. */
enum hec_queued {
    HEC_QUEUED_SAMPLE,
    HEC_QUEUED_EVENT,
    HEC_QUEUED_DEVICE,
    HEC_QUEUED_PROCESS,
    HEC_QUEUED_GPU_PROCESS,
    HEC_QUEUED_SPAN,
    HEC_QUEUED_UNITS,
    HEC_QUEUED_META
};

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
    sqlite3_stmt *statements[HEC_STATEMENT_COUNT];
    sqlite3_stmt *device, *process, *gpu_process;
};

int hec_commit_open(struct hec_commit *commit, const char *path, struct hec_why *why);

/* All or nothing. On success the caller forgets what it passed (hec_series_committed, hec_queue_clear). */
int hec_commit_all(struct hec_commit *commit, struct hec_series_table *table, const struct hec_queue *records,
                   int64_t origin_ns, struct hec_why *why);

/* Fold the log into the file, so that one file remains, and close. The commit is closed in any case. */
int hec_commit_close(struct hec_commit *commit, struct hec_why *why);

#endif
