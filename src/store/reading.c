#include "store/reading.h"

#include "base/scratch.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int guard(struct hec_reader *reader, int rc) {
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(reader->db, 1);
        sqlite3_busy_timeout(reader->db, 2000);
        hec_sql_guard(reader->db, hec_sql_run_file, &reader->budget, reader->file_bytes);
        /* One transaction to the end: what is read of a file that is being written fits together. */
        rc = sqlite3_exec(reader->db,
                          "PRAGMA cache_size=-2048; BEGIN;"
                          "SELECT count(*) FROM (SELECT 1 FROM sqlite_master LIMIT 1)",
                          NULL, NULL, NULL);
    }
    return rc;
}

int hec_reading_open(struct hec_reader *reader, const char *path, int flags) {
    return guard(reader, hec_sql_open(path, flags, NULL, &reader->db));
}

int hec_reading_open_image(struct hec_reader *reader, const struct hec_image *image) {
    int rc = sqlite3_open_v2(":memory:", &reader->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_deserialize(reader->db, "main", image->bytes, (sqlite3_int64)image->length,
                                 (sqlite3_int64)image->length, SQLITE_DESERIALIZE_READONLY);
    return guard(reader, rc);
}

int hec_reading_corrupt(struct hec_reader *reader, struct hec_why *why, const char *what) {
    return hec_fail(why, HEC_ERR_CORRUPT, "%s is damaged: %s", reader->path, what);
}

void hec_reading_leave_out(struct hec_reader *reader, const char *what) {
    if (!reader->left_out[0])
        snprintf(reader->left_out, sizeof reader->left_out, "%s", what);
}

static int fail(struct hec_reader *reader, int rc, struct hec_why *why) {
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        return hec_reading_corrupt(reader, why, hec_sql_beyond);
    int err = hec_sql_err(reader->db, rc);
    if (err == HEC_ERR_CORRUPT)
        return hec_reading_corrupt(reader, why, sqlite3_errmsg(reader->db));
    char what[sizeof reader->path + 16];
    sqlite3_snprintf(sizeof what, what, "cannot read %s", reader->path);
    return hec_sql_fail(reader->db, rc, why, what);
}

int hec_reading_prepare(struct hec_reader *reader, const char *sql, sqlite3_stmt **statement, struct hec_why *why) {
    if (reader->in_use)
        return hec_fail(why, HEC_ERR_BUSY, "%s is being read: a visitor of its activities may not ask for more",
                        reader->path);
    hec_sql_begin(&reader->budget);
    int rc = sqlite3_prepare_v2(reader->db, sql, -1, statement, NULL);
    return rc == SQLITE_OK ? HEC_OK : fail(reader, rc, why);
}

int hec_reading_step(struct hec_reader *reader, sqlite3_stmt *statement, struct hec_why *why) {
    int rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? 0 : fail(reader, rc, why);
    const char *beyond = hec_sql_count_row(&reader->budget, statement);
    return beyond ? hec_reading_corrupt(reader, why, beyond) : 1;
}

bool hec_reading_text(sqlite3_stmt *statement, int column, size_t maximum, const char **text) {
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return false;
    *text = (const char *)sqlite3_column_text(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);
    return *text && length <= maximum && !memchr(*text, 0, length);
}

bool hec_reading_int(sqlite3_stmt *statement, int column, int64_t low, int64_t high, int64_t *value) {
    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER)
        return false;
    *value = sqlite3_column_int64(statement, column);
    return *value >= low && *value <= high;
}

bool hec_reading_block(sqlite3_stmt *s, int first, struct hec_block *head, const char **v, const char **r) {
    int64_t n, v_width, r_width;
    if (!hec_reading_int(s, first, INT64_MIN, INT64_MAX, &head->t0_us) ||
        !hec_reading_int(s, first + 1, INT64_MIN, INT64_MAX, &head->t1_us) ||
        !hec_reading_int(s, first + 2, 1, HEC_BLOCK_VALUES, &n) ||
        !hec_reading_int(s, first + 3, INT64_MIN, INT64_MAX, &head->v_base) ||
        !hec_reading_int(s, first + 4, 0, HEC_BLOCK_WIDTH_MAX, &v_width) ||
        !hec_reading_text(s, first + 5, sizeof head->v, v) ||
        !hec_reading_int(s, first + 6, INT64_MIN, INT64_MAX, &head->r_base) ||
        !hec_reading_int(s, first + 7, 0, HEC_BLOCK_WIDTH_MAX, &r_width) ||
        !hec_reading_text(s, first + 8, sizeof head->r, r))
        return false;
    head->n = (int)n;
    head->v_width = (int)v_width;
    head->r_width = (int)r_width;
    return true;
}

int hec_reading_check_schema(struct hec_reader *reader, struct hec_why *why) {
    sqlite3_stmt *statement = NULL;
    int err = hec_reading_prepare(reader, "SELECT sql FROM sqlite_master WHERE type=? AND name=?", &statement, why);
    if (err)
        return err;
    for (const struct hec_schema_object *o = hec_schema_objects(); o->name && err == HEC_OK; o++) {
        if (strcmp(o->type, "view") == 0 || !hec_schema_has(reader->version, o))
            continue;
        sqlite3_bind_text(statement, 1, o->type, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, o->name, -1, SQLITE_STATIC);
        err = hec_reading_step(reader, statement, why);
        const char *sql;
        if (err >= 0)
            err = err == 1 && hec_reading_text(statement, 0, 1 << 16, &sql) && strcmp(sql, o->sql) == 0
                      ? HEC_OK
                      : hec_fail(why, HEC_ERR_CORRUPT,
                                 "%s is damaged: its %s \"%s\" is missing or is not that of a run file", reader->path,
                                 o->type, o->name);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return err;
}

/* SQLite needs to write beside a file that a killed writer left behind. Where it may not, a private copy is read. */

#define COPY_MAX_BYTES (INT64_C(1) << 30) /* TMPDIR may be memory */

static const char *const suffixes[] = {"", "-wal", "-journal"};

/* 0 or an errno; a source that does not exist is no error */
static int copy_file(const char *from, const char *to, int64_t *room) {
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0)
        return errno == ENOENT ? 0 : errno;
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int errnum = out < 0 ? errno : 0;
    static const size_t size = 65536;
    char *bytes = errnum ? NULL : malloc(size);
    if (!errnum && !bytes)
        errnum = ENOMEM;
    while (!errnum) {
        ssize_t length = read(in, bytes, size);
        if (length == 0)
            break;
        if (length < 0)
            errnum = errno;
        else if ((*room -= length) < 0)
            errnum = EFBIG;
        else if (write(out, bytes, (size_t)length) != length)
            errnum = errno ? errno : EIO;
    }
    free(bytes);
    close(in);
    if (out >= 0 && close(out) != 0 && !errnum)
        errnum = errno;
    return errnum;
}

static int join(char *out, size_t size, const char *a, const char *b) {
    int length = snprintf(out, size, "%s%s", a, b);
    return length >= 0 && (size_t)length < size ? 0 : ENAMETOOLONG;
}

int hec_reading_open_copy(struct hec_reader *reader, const char *path, struct hec_why *why) {
    struct hec_scratch folder;
    struct hec_why reason;
    char copy[PATH_MAX + 16], from[PATH_MAX + 16], to[PATH_MAX + 32];
    const char *base = getenv("TMPDIR");
    int err = hec_scratch_make(&folder, base && base[0] == '/' ? base : "/tmp", &reason);
    if (err)
        return hec_fail(why, err, "%s cannot be read in place, and no copy can be made: %.150s", reader->path,
                        reason.text);
    int errnum = join(copy, sizeof copy, folder.path, "/run.hec");
    int64_t room = COPY_MAX_BYTES;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && !errnum; i++) {
        errnum = join(from, sizeof from, path, suffixes[i]);
        if (!errnum)
            errnum = join(to, sizeof to, copy, suffixes[i]);
        if (!errnum)
            errnum = copy_file(from, to, &room);
    }
    int rc = errnum ? SQLITE_OK : hec_reading_open(reader, copy, SQLITE_OPEN_READWRITE);
    hec_scratch_remove(&folder); /* SQLite holds the files open */
    if (errnum)
        return hec_fail(why, hec_err_from_errno(errnum), "%s cannot be read in place, and copying it failed: %s",
                        reader->path, strerror(errnum));
    if (rc == SQLITE_OK)
        return HEC_OK;
    err = hec_sql_err(reader->db, rc);
    return err == HEC_ERR_CORRUPT ? hec_reading_corrupt(reader, why, sqlite3_errmsg(reader->db))
                                  : hec_sql_fail(reader->db, rc, why, "cannot read a copy of the run file");
}
