/* What every user of SQLite in this folder needs: opening that does not hang, errors of ours from errors of SQLite, and the
 * guards on files that anybody may have made. */
#pragma once

#include "base/error.h"
#include "store/image.h"

#include <sqlite3.h>
#include <stdint.h>

/* sqlite3_open_v2, but a FIFO in the place of the file or of what belongs to it fails to open and never waits. */
int hec_sql_open(const char *path, int flags, const char *vfs, sqlite3 **db);
/* HEC_ERR_USAGE where something beside the file has the name of its journal or log and is no regular file, as no SQLite
 * leaves it: whoever put it there means no good. A sentence beforehand; hec_sql_open keeps the promise. */
int hec_sql_check_logs(const char *path, struct hec_why *why);

/* FULL -> HEC_ERR_FULL, CORRUPT and NOTADB -> HEC_ERR_CORRUPT, ...; for I/O errors the errno behind them decides. */
int hec_sql_err(sqlite3 *db, int rc);
/* The same, with why = "WHAT: SQLite's sentence". db may be NULL. */
int hec_sql_fail(sqlite3 *db, int rc, struct hec_why *why, const char *what);

/* SQLITE_LIMIT_*: the value, or -1 to end the list. Length bounds the memory of any one row. */
struct hec_sql_limit {
    int id, value;
};
extern const struct hec_sql_limit hec_sql_run_file[], hec_sql_export[];

/* What a statement may take. A tree whose pages repeat has rows without end, and texts may share their pages; a sound
 * file has room for each row and for each byte of it. */
struct hec_sql_budget {
    int64_t work, work_max;   /* thousands of steps of SQLite's machine; the first statement reads the schema, */
    int64_t work_later;       /* those after it may take so many */
    int64_t rows, rows_max;   /* counted by hec_sql_count_row */
    int64_t bytes, bytes_max; /* of texts and blobs */
};

/* Every guard on, before the first statement. file_bytes: of the file and its log. */
void hec_sql_guard(sqlite3 *db, const struct hec_sql_limit *limits, struct hec_sql_budget *budget, int64_t file_bytes);
void hec_sql_begin(struct hec_sql_budget *budget); /* a new statement */
/* A row was read: NULL, or what is wrong. A statement that takes too many steps ends with SQLITE_INTERRUPT. */
const char *hec_sql_count_row(struct hec_sql_budget *budget, sqlite3_stmt *statement);
extern const char hec_sql_beyond[]; /* the same, in words */

/* A copy of the database's pages. */
int hec_sql_image(sqlite3 *db, struct hec_image *image, struct hec_why *why);
