/* Inside of the importer of Nsight Systems' exports: import_nsys.c opens the database and makes statements of the columns
 * that are there, import_nsys_rows.c says which tables are read and what becomes of their rows. */
#pragma once

#include "store/import/state.h"
#include "store/sql.h"

#define HEC_NSYS_COLUMNS_MAX 20
#define HEC_NSYS_MEMORY_KINDS 16
#define HEC_NSYS_LISTED_MAX 64 /* columns of a table: NVTX_EVENTS has about 20 */

struct hec_nsys {
    struct hec_import *import;
    struct hec_import_file *file;
    struct hec_why *why;
    sqlite3 *db;
    struct hec_sql_budget budget; /* of all statements together: a table is read once */
    int failed;                   /* by SQLite, while looking for tables; 0: not */
    bool has_strings;
    bool by_process; /* correlation ids are distinguished by process: kernels say theirs */
    double share;
    uint8_t memory[HEC_NSYS_MEMORY_KINDS]; /* enum hec_memory_kind by the file's number */
    struct hec_nsys_cuda_device {
        int32_t pid, ordinal, gpu; /* CUDA's ordinal in a process is which GPU */
    } cuda[HEC_DEVICE_MAX];
    int cuda_count;
    char columns[HEC_NSYS_LISTED_MAX][48]; /* of the table that is read */
    int column_count;
};

/* A row: the columns asked for, in that order, and the name. */
struct hec_nsys_row {
    sqlite3_stmt *s;
    const char *name; /* NULL: none */
    size_t name_length;
};

typedef int (*hec_nsys_visitor)(struct hec_nsys *n, const struct hec_nsys_row *row);

struct hec_nsys_query {
    const char *tables[2]; /* the first that exists */
    const char *names[3];  /* columns of the name: an id of StringIds, or text; the first that is not NULL */
    const char *columns[HEC_NSYS_COLUMNS_MAX];
    hec_nsys_visitor visit;
};

extern const struct hec_nsys_query hec_nsys_queries[];
extern const size_t hec_nsys_query_count;
