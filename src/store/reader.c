#include "store/reader.h"

#include "store/header.h"
#include "store/reading.h"
#include "store/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_header(struct hec_reader *reader, const struct hec_header *header, struct hec_why *why) {
    if (header->file_bytes == 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s is empty, so it is not a HEC run file", reader->path);
    if (!header->is_run_file)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s is not a HEC run file%s", reader->path,
                        header->is_sqlite ? " (it is an SQLite database of something else)" : "");
    if (header->version > HEC_SCHEMA_VERSION)
        return hec_fail(why, HEC_ERR_VERSION,
                        "%s was written by a newer HEC (format %u, this one reads up to %d): read it with that version",
                        reader->path, header->version, HEC_SCHEMA_VERSION);
    if (header->version == 0)
        return hec_fail(why, HEC_ERR_VERSION, "%s is a run file of format %u, which never existed", reader->path,
                        header->version);
    reader->version = header->version;
    /* beside a log the file itself may be short: the rest is in the log */
    if (header->expected_bytes > header->file_bytes && header->log_bytes == 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s is truncated: %lld of %lld bytes are there", reader->path,
                        (long long)header->file_bytes, (long long)header->expected_bytes);
    return HEC_OK;
}

/* Errors that come from where the file lies, not from what is in it. */
static bool is_about_place(int rc) {
    int kind = rc & 0xff;
    return kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY || kind == SQLITE_PERM || rc == SQLITE_IOERR_LOCK ||
           rc == SQLITE_IOERR_RDLOCK || rc == SQLITE_IOERR_SHMOPEN || rc == SQLITE_IOERR_SHMSIZE ||
           rc == SQLITE_IOERR_SHMMAP || rc == SQLITE_IOERR_SHMLOCK || kind == SQLITE_PROTOCOL;
}

static int open_database(struct hec_reader *reader, const char *path, struct hec_why *why) {
    int rc = hec_reading_open(reader, path, SQLITE_OPEN_READONLY);
    if (rc == SQLITE_OK)
        return HEC_OK;
    int err = hec_sql_err(reader->db, rc);
    if (is_about_place(rc)) {
        sqlite3_close(reader->db);
        reader->db = NULL;
        return hec_reading_open_copy(reader, path, why);
    }
    return err == HEC_ERR_CORRUPT ? hec_reading_corrupt(reader, why, sqlite3_errmsg(reader->db))
                                  : hec_sql_fail(reader->db, rc, why, "cannot read the run file");
}

static int add_meta(struct hec_reader *reader, const char *key, const char *value) {
    struct hec_meta *metas = realloc(reader->metas, (size_t)(reader->meta_count + 1) * sizeof *metas);
    if (!metas)
        return HEC_ERR_NOMEM;
    reader->metas = metas;
    struct hec_meta meta = {strdup(key), strdup(value)};
    if (!meta.key || !meta.value) {
        free(meta.key);
        free(meta.value);
        return HEC_ERR_NOMEM;
    }
    metas[reader->meta_count++] = meta;
    return HEC_OK;
}

static int load_metas(struct hec_reader *reader, struct hec_why *why) {
    sqlite3_stmt *statement;
    int err = hec_reading_prepare(reader, "SELECT key, value FROM meta ORDER BY key", &statement, why);
    if (err)
        return err;
    size_t bytes = 0;
    while ((err = hec_reading_step(reader, statement, why)) == 1) {
        const char *key, *value;
        if (!hec_reading_text(statement, 0, 1024, &key) ||
            !hec_reading_text(statement, 1, HEC_META_BYTES_MAX, &value)) {
            hec_reading_leave_out(reader, "the table meta holds something impossible");
            continue;
        }
        bytes += strlen(key) + strlen(value);
        if (reader->meta_count >= HEC_META_KEYS_MAX || bytes > HEC_META_BYTES_MAX) {
            err = hec_reading_corrupt(reader, why, "the table meta is far too large");
            break;
        }
        err = add_meta(reader, key, value);
        if (err) {
            hec_fail(why, err, "out of memory");
            break;
        }
    }
    sqlite3_finalize(statement);
    return err;
}

static struct hec_reader *new_reader(const char *path) {
    struct hec_reader *reader = calloc(1, sizeof *reader);
    if (reader)
        snprintf(reader->path, sizeof reader->path, "%s", path);
    return reader;
}

/* What is left to do once a database is open, or has failed to. */
static int begin(struct hec_reader *reader, int err, struct hec_reader **out, struct hec_why *why) {
    if (err == HEC_OK)
        err = hec_reading_check_schema(reader, why);
    if (err == HEC_OK)
        err = load_metas(reader, why);
    if (err) {
        hec_reader_close(reader);
        return err;
    }
    *out = reader;
    return HEC_OK;
}

int hec_reader_open(const char *path, struct hec_reader **out, struct hec_why *why) {
    *out = NULL;
    struct hec_reader *reader = new_reader(path);
    /* SQLite takes some names for something else than a path (":memory:"): none of them has a slash. */
    char *plain = NULL;
    if (!reader || asprintf(&plain, "%s%s", path[0] == '/' ? "" : "./", path) < 0) {
        free(reader);
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    struct hec_header header;
    int err = hec_header_read(plain, &header, why);
    if (err == HEC_OK)
        err = check_header(reader, &header, why);
    if (err == HEC_OK)
        err = hec_sql_check_logs(plain, why);
    if (err == HEC_OK) {
        reader->file_bytes = header.file_bytes + header.log_bytes;
        reader->live = header.live;
        err = open_database(reader, plain, why);
    }
    free(plain);
    return begin(reader, err, out, why);
}

int hec_reader_open_image(const struct hec_image *image, const char *path, struct hec_reader **out,
                          struct hec_why *why) {
    *out = NULL;
    struct hec_reader *reader = new_reader(path);
    if (!reader)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    struct hec_header header;
    hec_header_parse(image->bytes, image->length, &header);
    int err = check_header(reader, &header, why);
    if (err == HEC_OK) {
        reader->file_bytes = header.file_bytes;
        int rc = hec_reading_open_image(reader, image);
        if (rc != SQLITE_OK)
            err = hec_sql_fail(reader->db, rc, why, "cannot read the run");
    }
    return begin(reader, err, out, why);
}

bool hec_reader_live(const struct hec_reader *reader) {
    return reader->live;
}

void hec_reader_close(struct hec_reader *reader) {
    if (!reader)
        return;
    for (int i = 0; i < reader->meta_count; i++) {
        free(reader->metas[i].key);
        free(reader->metas[i].value);
    }
    free(reader->metas);
    sqlite3_close(reader->db);
    free(reader);
}

const char *hec_reader_left_out(const struct hec_reader *reader) {
    return reader->left_out[0] ? reader->left_out : NULL;
}

const char *hec_reader_meta(struct hec_reader *reader, const char *key) {
    for (int i = 0; i < reader->meta_count; i++)
        if (strcmp(reader->metas[i].key, key) == 0)
            return reader->metas[i].value;
    return NULL;
}

int hec_reader_metas(struct hec_reader *reader, int (*visit)(void *context, const char *key, const char *value),
                     void *context) {
    int stop = 0;
    for (int i = 0; i < reader->meta_count && stop == 0; i++)
        stop = visit(context, reader->metas[i].key, reader->metas[i].value);
    return stop;
}
