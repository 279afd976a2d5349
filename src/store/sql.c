#include "store/sql.h"

#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_at_once(const char *path, int flags, int mode) {
    struct stat st;
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY, mode);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
        return fd;
    close(fd);
    errno = ENXIO;
    return -1;
}

static void replace_open(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL); /* all of its kind share the table of calls */
    if (vfs && vfs->iVersion >= 3 && vfs->xSetSystemCall)
        vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_at_once);
}

int hec_sql_open(const char *path, int flags, const char *vfs, sqlite3 **db) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, replace_open);
    return sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, vfs);
}

int hec_sql_check_logs(const char *path, struct hec_why *why) {
    static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char *name = NULL;
        struct stat st;
        if (asprintf(&name, "%s%s", path, suffixes[i]) < 0)
            return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
        bool strange = lstat(name, &st) == 0 && !S_ISREG(st.st_mode); /* SQLite follows no link there */
        int err =
            strange
                ? hec_fail(why, HEC_ERR_USAGE,
                           "%.300s is not a regular file: it was put there, and is no part of the file beside it", name)
                : HEC_OK;
        free(name);
        if (err)
            return err;
    }
    return HEC_OK;
}

/* sqlite3_system_errno is not set by statements that fail while they are stepped, so the files are asked. */
static int last_errno(sqlite3 *db) {
    if (!db)
        return 0;
    static const int pointers[] = {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}; /* the log first */
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        sqlite3_file *file = NULL;
        int errnum = 0;
        if (sqlite3_file_control(db, "main", pointers[i], &file) == SQLITE_OK && file && file->pMethods &&
            file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &errnum) == SQLITE_OK && errnum)
            return errnum;
    }
    return sqlite3_system_errno(db);
}

int hec_sql_err(sqlite3 *db, int rc) {
    int errnum;
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return HEC_OK;
    case SQLITE_NOMEM:
        return HEC_ERR_NOMEM;
    case SQLITE_FULL:
        return HEC_ERR_FULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return HEC_ERR_BUSY;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
        return HEC_ERR_PERMISSION;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_TOOBIG:    /* a limit that no file of ours reaches */
    case SQLITE_INTERRUPT: /* the reader's budget of work */
    case SQLITE_ERROR:     /* our statements are fixed: only a strange schema or value makes one fail */
    case SQLITE_MISMATCH:
        return HEC_ERR_CORRUPT;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        errnum = last_errno(db);
        return errnum ? hec_err_from_errno(errnum) : HEC_ERR_IO;
    default:
        return HEC_ERR_FAILED;
    }
}

int hec_sql_fail(sqlite3 *db, int rc, struct hec_why *why, const char *what) {
    int errnum = last_errno(db);
    int kind = rc & 0xff;
    bool latest = db && (sqlite3_errcode(db) & 0xff) == kind; /* another statement may have been run since */
    const char *text = latest ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    if (errnum && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN))
        text = strerror(errnum);
    return hec_fail(why, hec_sql_err(db, rc), "%s: %s", what, text);
}

/* What no file of ours reaches. */
const struct hec_sql_limit hec_sql_run_file[] = {
    {SQLITE_LIMIT_LENGTH, 1 << 20},
    {SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
    {SQLITE_LIMIT_COLUMN, 64},
    {SQLITE_LIMIT_EXPR_DEPTH, 100},
    {SQLITE_LIMIT_COMPOUND_SELECT, 8},
    {SQLITE_LIMIT_VDBE_OP, 25000},
    {SQLITE_LIMIT_FUNCTION_ARG, 16},
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 32},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
    {-1, -1},
};
/* Tables of others are as wide as they like. */
const struct hec_sql_limit hec_sql_export[] = {
    {SQLITE_LIMIT_LENGTH, 16 << 20}, {SQLITE_LIMIT_SQL_LENGTH, 1 << 20}, {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1}, {SQLITE_LIMIT_WORKER_THREADS, 0},   {-1, -1},
};

static const struct {
    int id, value;
} switches[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
    {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
};

const char hec_sql_beyond[] = "a table holds more than a file of this size can";

#define STEPS 1000      /* of SQLite's machine between two looks at the budget */
#define STEPS_A_BYTE 64 /* a row takes some 50 steps, that of an export with its name up to 200 */
#define STEPS_FREE 200000
#define STEPS_SCHEMA 200000 /* some 15 for a table or index; to parse one takes as long as a thousand */
#define ROW_BYTES 6         /* the least: a pointer and a cell of four bytes (sqlite.org/fileformat2.html, 1.6) */
#define CODING 2            /* UTF-16 takes up to 1.5 times as much where it is read as UTF-8 */
#define FREE_BYTES (INT64_C(1) << 20) /* a file that is written meanwhile has grown */

static int out_of_budget(void *context) {
    struct hec_sql_budget *budget = context;
    return ++budget->work > budget->work_max;
}

/* Modules are dropped: a virtual table of the file is a program that runs on what the file holds (FTS, R-Tree, dbstat). Pages are read
 * and not mapped: who cuts the file off meanwhile would end hec. None of it looks at the schema. */
void hec_sql_guard(sqlite3 *db, const struct hec_sql_limit *limits, struct hec_sql_budget *budget, int64_t file_bytes) {
    sqlite3_drop_modules(db, NULL);
    sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", NULL, NULL, NULL);
    for (; limits->id >= 0; limits++)
        sqlite3_limit(db, limits->id, limits->value);
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        sqlite3_db_config(db, switches[i].id, switches[i].value, NULL);
    int64_t bytes = file_bytes + FREE_BYTES;
    *budget = (struct hec_sql_budget){.work_max = STEPS_SCHEMA / STEPS,
                                      .work_later = (STEPS_FREE + STEPS_A_BYTE * file_bytes) / STEPS,
                                      .rows_max = bytes / ROW_BYTES,
                                      .bytes_max = CODING * bytes};
    sqlite3_progress_handler(db, STEPS, out_of_budget, budget);
}

void hec_sql_begin(struct hec_sql_budget *budget) {
    budget->work = budget->rows = budget->bytes = 0;
    budget->work_max = budget->work_later;
}

const char *hec_sql_count_row(struct hec_sql_budget *budget, sqlite3_stmt *statement) {
    for (int i = sqlite3_data_count(statement); i-- > 0;) {
        int type = sqlite3_column_type(statement, i);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB)
            budget->bytes += sqlite3_column_bytes(statement, i);
    }
    return ++budget->rows > budget->rows_max || budget->bytes > budget->bytes_max ? hec_sql_beyond : NULL;
}

int hec_sql_image(sqlite3 *db, struct hec_image *image, struct hec_why *why) {
    sqlite3_int64 size = 0;
    unsigned char *bytes = sqlite3_serialize(db, "main", &size, 0);
    *image = (struct hec_image){NULL, 0};
    if (bytes && size >= HEC_SCHEMA_PAGE_BYTES && (image->bytes = malloc((size_t)size))) {
        memcpy(image->bytes, bytes, (size_t)size);
        image->length = (size_t)size;
    }
    sqlite3_free(bytes);
    return image->bytes ? HEC_OK : hec_fail(why, HEC_ERR_NOMEM, "out of memory for the pages of a run file");
}
