/* What every user of SQLite in this folder needs: errors of ours from errors of SQLite. */
#ifndef HEC_STORE_SQL_H
#define HEC_STORE_SQL_H

#include "base/error.h"
#include "store/image.h"

#include <sqlite3.h>

/* FULL -> HEC_ERR_FULL, CORRUPT and NOTADB -> HEC_ERR_CORRUPT, ...; for I/O errors the errno behind them decides. */
int hec_sql_err(sqlite3 *db, int rc);
/* The same, with why = "WHAT: SQLite's sentence". db may be NULL. */
int hec_sql_fail(sqlite3 *db, int rc, struct hec_why *why, const char *what);

/* A copy of the database's pages. */
int hec_sql_image(sqlite3 *db, struct hec_image *image, struct hec_why *why);

#endif
