/* What every user of SQLite in this folder needs: opening that does not hang, errors of ours from errors of SQLite. */
#ifndef HEC_STORE_SQL_H
#define HEC_STORE_SQL_H

#include "base/error.h"
#include "store/image.h"

#include <sqlite3.h>

/* sqlite3_open_v2, but a FIFO in the place of the file or of what belongs to it fails to open and never waits. */
int hec_sql_open(const char *path, int flags, const char *vfs, sqlite3 **db);
/* HEC_ERR_USAGE where something beside the file has the name of its journal or log and is no regular file, as no SQLite
 * leaves it: whoever put it there means no good. A sentence beforehand; hec_sql_open keeps the promise. */
int hec_sql_check_logs(const char *path, struct hec_why *why);

/* FULL -> HEC_ERR_FULL, CORRUPT and NOTADB -> HEC_ERR_CORRUPT, ...; for I/O errors the errno behind them decides. */
int hec_sql_err(sqlite3 *db, int rc);
/* The same, with why = "WHAT: SQLite's sentence". db may be NULL. */
int hec_sql_fail(sqlite3 *db, int rc, struct hec_why *why, const char *what);

/* A copy of the database's pages. */
int hec_sql_image(sqlite3 *db, struct hec_image *image, struct hec_why *why);

#endif
