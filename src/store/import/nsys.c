/* Nsight Systems' SQLite export. Its schema is documented ("SQLite Schema Reference" in the Nsight Systems User Guide)
 * but changes: tables are made only when there is something in them, columns come and go. So every statement is made of
 * the columns that are there, and what is missing is unknown.
 * Times are nanoseconds since the session's start. A globalTid holds, from the top, 8 bits of machine, 8 of VM, 24 of
 * pid and 24 of thread id. */
#include "base/buf.h"
#include "store/header.h"
#include "store/import/nsys.h"
#include "store/schema.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS_A_REPORT 65536
/* Many rows have one name, so names are read as more than they take in the file: of real exports up to 20 times as much. */
#define NAMES_FREE_BYTES (INT64_C(256) << 20)
#define NAMES_RATIO 256

/* Does the statement have a row? A damaged file is not one without: n->failed stays set. */
static bool has_row(struct hec_nsys *n, const char *sql, const char *value) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(n->db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s, 1, value, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE && !n->failed)
        n->failed = rc;
    return rc == SQLITE_ROW;
}

/* A table with rows of its own: no view, nothing virtual. */
static bool has_table(struct hec_nsys *n, const char *table) {
    return has_row(n, "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?1 AND rootpage>0", table);
}

/* Its columns go to n->columns. Generated and hidden ones are not in this list, so no expression of the file's is ever
 * run. */
static void list_columns(struct hec_nsys *n, const char *table) {
    sqlite3_stmt *s = NULL;
    n->column_count = 0;
    if (!has_table(n, table))
        return;
    int rc = sqlite3_prepare_v2(n->db, "SELECT name FROM pragma_table_info(?1)", -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW && n->column_count < HEC_NSYS_LISTED_MAX) {
        const unsigned char *name = sqlite3_column_text(s, 0);
        snprintf(n->columns[n->column_count++], sizeof n->columns[0], "%s", name ? (const char *)name : "");
    }
    rc = sqlite3_finalize(s);
    if (rc != SQLITE_OK && !n->failed)
        n->failed = rc;
}

static bool has_column(const struct hec_nsys *n, const char *column) {
    for (int i = 0; i < n->column_count; i++)
        if (strcasecmp(n->columns[i], column) == 0)
            return true;
    return false;
}

static int beyond(struct hec_nsys *n, const char *table, const char *what) {
    return hec_fail(n->why, HEC_ERR_CORRUPT, "%.300s, table %s: %s", n->file->path, table, what);
}

static int damaged(struct hec_nsys *n, int rc, const char *table) {
    char what[640];
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        return beyond(n, table, hec_sql_beyond);
    snprintf(what, sizeof what, "%.480s, table %s", n->file->path, table);
    return hec_sql_fail(n->db, rc, n->why, what);
}

/* Names are looked up by id, once a row: without an index a hostile file would take forever, and where ids are not unique
 * rows would multiply. */
static int check_strings(struct hec_nsys *n) {
    n->has_strings = has_table(n, "StringIds");
    static const char one_key[] =
        "SELECT 1 FROM (SELECT count(*) AS keys, max(name) AS name, max(upper(type)) AS type FROM "
        "pragma_table_info(?1) WHERE pk>0) WHERE keys=1 AND name='id' AND type='INTEGER'";
    bool keyed = n->has_strings && has_row(n, one_key, "StringIds");
    list_columns(n, "StringIds");
    if (n->failed)
        return damaged(n, n->failed, "sqlite_master");
    if (n->has_strings && !has_column(n, "value"))
        return hec_fail(n->why, HEC_ERR_CORRUPT,
                        "%s: the table StringIds has no column `value` of its own, as exports have it", n->file->path);
    if (n->has_strings && !keyed)
        return hec_fail(n->why, HEC_ERR_CORRUPT, "%s: the table StringIds has no primary key, as exports have it",
                        n->file->path);
    return HEC_OK;
}

static void write_statement(struct hec_nsys *n, const struct hec_nsys_query *q, const char *table,
                            struct hec_buf *sql) {
    const char *name[3];
    int names = 0;
    for (int i = 0; i < 3 && q->names[i]; i++)
        if (has_column(n, q->names[i]))
            name[names++] = q->names[i];
    bool strings = names > 0 && n->has_strings;
    hec_buf_puts(sql, "SELECT ");
    for (int i = 0; i < HEC_NSYS_COLUMNS_MAX && q->columns[i]; i++)
        hec_buf_printf(sql, has_column(n, q->columns[i]) ? "t.\"%s\"," : "NULL,", q->columns[i]);
    hec_buf_puts(sql, strings ? "coalesce(s.value" : "coalesce(NULL");
    for (int i = 0; i < names; i++)
        hec_buf_printf(sql, ",CASE typeof(t.\"%s\") WHEN 'text' THEN t.\"%s\" END", name[i], name[i]);
    hec_buf_printf(sql, "%s) FROM \"%s\" t", names ? "" : ",NULL", table);
    if (!strings)
        return;
    hec_buf_puts(sql, " LEFT JOIN StringIds s ON s.id=coalesce(NULL");
    for (int i = 0; i < names; i++)
        hec_buf_printf(sql, ",t.\"%s\"", name[i]);
    hec_buf_puts(sql, names == 0 ? ",NULL)" : ")");
}

/* Every row of the query's table, if the file has it. */
static int each_row(struct hec_nsys *n, const struct hec_nsys_query *q) {
    const char *table = has_table(n, q->tables[0])                   ? q->tables[0]
                        : q->tables[1] && has_table(n, q->tables[1]) ? q->tables[1]
                                                                     : NULL;
    if (!table)
        return n->failed ? damaged(n, n->failed, q->tables[0]) : HEC_OK;
    struct hec_buf sql;
    hec_buf_init(&sql, 65536);
    list_columns(n, table);
    write_statement(n, q, table, &sql);
    struct hec_nsys_row row = {0};
    int err = hec_buf_error(&sql);
    if (n->failed)
        err = damaged(n, n->failed, table);
    int rc = err < 0 ? SQLITE_NOMEM : sqlite3_prepare_v2(n->db, hec_buf_text(&sql), -1, &row.s, NULL);
    hec_buf_free(&sql);
    int last = row.s ? sqlite3_column_count(row.s) - 1 : 0;
    int64_t rows = 0;
    while (rc == SQLITE_OK && err == HEC_OK && (rc = sqlite3_step(row.s)) == SQLITE_ROW) {
        const char *wrong = hec_sql_count_row(&n->budget, row.s);
        if (wrong) {
            err = beyond(n, table, wrong);
            break;
        }
        row.name = (const char *)sqlite3_column_text(row.s, last);
        row.name_length = row.name ? (size_t)sqlite3_column_bytes(row.s, last) : 0;
        err = q->visit(n, &row);
        if (++rows % ROWS_A_REPORT == 0 && err == HEC_OK)
            err = hec_import_report(n->import, n->file, n->share);
        rc = SQLITE_OK;
    }
    if (err == HEC_OK && rc != SQLITE_DONE)
        err = damaged(n, rc, table);
    sqlite3_finalize(row.s);
    return err;
}

/* HEC_ERR_CORRUPT for a database of somebody else. */
static int check_kind(struct hec_nsys *n) {
    static const char *const tables[] = {"StringIds",
                                         "META_DATA_EXPORT",
                                         "EXPORT_META_DATA",
                                         "ANALYSIS_DETAILS",
                                         "TARGET_INFO_SESSION_START_TIME",
                                         "NVTX_EVENTS",
                                         "CUPTI_ACTIVITY_KIND_KERNEL"};
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(n->db, "PRAGMA application_id", -1, &s, NULL);
    bool ours =
        rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == (int)HEC_SCHEMA_APPLICATION_ID;
    sqlite3_finalize(s);
    if (rc != SQLITE_OK)
        return damaged(n, rc, "sqlite_master");
    if (ours)
        return hec_fail(n->why, HEC_ERR_CORRUPT, "%s is a run file already: hec report reads it", n->file->path);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (has_table(n, tables[i]))
            return HEC_OK;
    if (n->failed)
        return damaged(n, n->failed, "sqlite_master");
    return hec_fail(n->why, HEC_ERR_CORRUPT, "%s is an SQLite database, but no export of Nsight Systems",
                    n->file->path);
}

static uint32_t big_endian(const unsigned char *bytes, int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* SQLite takes a last page that is cut for one filled up with zeros. The header (sqlite.org/fileformat.html, 1.3) knows
 * better: page size at 16, pages at 28, which hold if the numbers at 24 and 92 are the same. */
static int check_length(struct hec_nsys *n) {
    unsigned char header[100] = {0};
    struct stat status;
    int fd = open(n->file->path, O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && fstat(fd, &status) == 0 && read(fd, header, sizeof header) == sizeof header &&
                 big_endian(header + 24, 4) == big_endian(header + 92, 4);
    if (fd >= 0)
        close(fd);
    uint32_t page = big_endian(header + 16, 2);
    int64_t length = (int64_t)big_endian(header + 28, 4) * (page == 1 ? 65536 : page);
    if (known && status.st_size < length)
        return hec_fail(n->why, HEC_ERR_CORRUPT, "%s is cut short: it has %lld bytes of %lld", n->file->path,
                        (long long)status.st_size, (long long)length);
    return HEC_OK;
}

static int open_database(struct hec_nsys *n) {
    struct hec_header header = {0};
    int err = check_length(n);
    if (err == HEC_OK)
        err = hec_sql_check_logs(n->file->path, n->why);
    if (err == HEC_OK)
        err = hec_header_read(n->file->path, &header, n->why);
    if (err != HEC_OK)
        return err;
    int rc = hec_sql_open(n->file->path, SQLITE_OPEN_READONLY, NULL, &n->db);
    if (rc != SQLITE_OK)
        return hec_sql_fail(n->db, rc, n->why, n->file->path);
    int64_t bytes = header.file_bytes + header.log_bytes;
    hec_sql_guard(n->db, hec_sql_export, &n->budget, bytes);
    n->budget.bytes_max = NAMES_FREE_BYTES + NAMES_RATIO * bytes;
    err = check_kind(n);
    hec_sql_begin(&n->budget);
    return err;
}

int hec_import_nsys(struct hec_import *import, struct hec_import_file *file, struct hec_why *why) {
    struct hec_why local = {""};
    struct hec_nsys n = {
        .import = import,
        .file = file,
        .why = why ? why : &local,
        /* CUDA_MEMOPR_MEMORY_KIND_*: the numbers, unless the file names them */
        .memory = {HEC_MEMORY_PAGEABLE, HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, HEC_MEMORY_ARRAY, HEC_MEMORY_MANAGED,
                   HEC_MEMORY_DEVICE, HEC_MEMORY_MANAGED, HEC_MEMORY_UNKNOWN},
    };
    int err = open_database(&n);
    if (err == HEC_OK)
        err = check_strings(&n);
    if (err == HEC_OK) {
        list_columns(&n, "CUPTI_ACTIVITY_KIND_KERNEL");
        n.by_process = has_column(&n, "globalPid");
    }
    for (size_t i = 0; i < hec_nsys_query_count && err == HEC_OK; i++) {
        n.share = (double)i / (double)hec_nsys_query_count;
        err = each_row(&n, &hec_nsys_queries[i]);
    }
    sqlite3_close(n.db);
    return err;
}
