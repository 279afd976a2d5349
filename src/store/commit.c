#include "store/commit.h"

#include "model/run.h"
#include "store/create.h"
#include "store/schema.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const texts[] = {
#define HEC_STATEMENT(id, sql) sql,
#include "store/commit.def"
#undef HEC_STATEMENT
};

static const char *const kind_names[] = {"gauge", "mean", "counter", "delta"}; /* by enum hec_metric_kind */

/* Why each:
 * synchronous NORMAL in write-ahead mode: a killed process loses nothing that was committed, since the kernel holds it;
 *   after a power failure the file is whole and lacks what came after the last checkpoint (a few minutes). FULL would
 *   wait for the disk every second, beside a program that may be using that disk; OFF may break the file.
 * wal_autocheckpoint 1000 pages = 4 MB of log, about every two minutes for one GPU.
 * cache_size 2 MB: the pages rewritten each second, some 12 for one GPU, and the ends of the indices. */
static const char settings[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=1000;"
                               "PRAGMA journal_size_limit=4194304; PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY;"
                               "PRAGMA trusted_schema=OFF; PRAGMA mmap_size=0";
static const char memory_settings[] = "PRAGMA journal_mode=MEMORY; PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY;"
                                      "PRAGMA trusted_schema=OFF";

#define BUSY_MS 200       /* a reader's moment */
#define BUSY_LONG_MS 5000 /* the same, of a reader that does not get its turn */

/* A run in memory grows to so much: four days of one GPU, or ten million kernels. What comes then waits and is dropped
 * as on a full disk; the rest is kept for what waits at the end. */
#define MEMORY_BYTES (64 << 20)
#define MEMORY_LAST_BYTES (64 << 20)
/* Of a file whose disk is full, this much is copied to memory for the report. */
#define IMAGE_BYTES (512 << 20)

static int prepare(struct hec_commit *commit) {
    int rc = SQLITE_OK;
    for (int i = 0; i < HEC_STATEMENT_COUNT && rc == SQLITE_OK; i++)
        rc = sqlite3_prepare_v3(commit->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &commit->statements[i], NULL);
    for (int i = 0; i < HEC_RECORD_COUNT && rc == SQLITE_OK; i++) {
        char sql[1024];
        if (hec_record_insert_sql(&hec_records[i], sql, sizeof sql) != HEC_OK)
            return SQLITE_NOMEM;
        rc = sqlite3_prepare_v3(commit->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &commit->records[i], NULL);
    }
    return rc;
}

static int open_with(struct hec_commit *commit, const char *path, const char *vfs, int busy_ms) {
    int rc = hec_sql_open(path, SQLITE_OPEN_READWRITE, vfs, &commit->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(commit->db, busy_ms);
    if (rc == SQLITE_OK)
        rc = sqlite3_extended_result_codes(commit->db, 1);
    if (rc == SQLITE_OK && vfs)
        rc = sqlite3_exec(commit->db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(commit->db, settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = prepare(commit);
    if (rc == SQLITE_OK) /* a first transaction, so that locks and the log are known to work */
        rc = sqlite3_exec(commit->db, "BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(commit->db, BUSY_MS);
    return rc;
}

/* SQLite says BUSY of a file system without locks too. Of ours no file is open, whose locks closing this would take away. */
static bool has_locks(const char *path) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    int (*control)(int, int, ...) = (int (*)(int, int, ...))vfs->xGetSystemCall(vfs, "fcntl");
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool has = fd >= 0 && control && control(fd, F_GETLK, &all) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

void hec_commit_close(struct hec_commit *commit) {
    for (int i = 0; i < HEC_STATEMENT_COUNT; i++)
        sqlite3_finalize(commit->statements[i]);
    for (int i = 0; i < HEC_RECORD_COUNT; i++)
        sqlite3_finalize(commit->records[i]);
    sqlite3_close(commit->db);
    memset(commit, 0, sizeof *commit);
}

int hec_commit_open(struct hec_commit *commit, const char *path, struct hec_why *why) {
    bool shared = true;
    memset(commit, 0, sizeof *commit);
    int rc = open_with(commit, path, NULL, BUSY_MS);
    if ((rc & 0xff) == SQLITE_BUSY) { /* somebody reads it at this moment, on a busy machine for long */
        hec_commit_close(commit);
        if (has_locks(path))
            rc = open_with(commit, path, NULL, BUSY_LONG_MS);
    }
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_FULL && (rc & 0xff) != SQLITE_NOMEM) {
        /* A file system without locks or shared maps (some NFS and Lustre mounts): the file is ours alone, as we just
         * made it, so do without; then nobody can read it until it is closed. */
        hec_commit_close(commit);
        int err = hec_create_claim(path, why);
        if (err != HEC_OK)
            return err;
        shared = false;
        rc = open_with(commit, path, "unix-none", BUSY_MS);
    }
    if (rc == SQLITE_OK) {
        hec_create_opened(path, shared);
        return HEC_OK;
    }
    int err = hec_sql_fail(commit->db, rc, why, "cannot open the new run file");
    hec_commit_close(commit);
    return err;
}

static void limit_memory(struct hec_commit *commit, sqlite3_int64 bytes) {
    sqlite3_file_control(commit->db, "main", SQLITE_FCNTL_SIZE_LIMIT, &bytes);
}

int hec_commit_open_memory(struct hec_commit *commit, const struct hec_image *image, struct hec_why *why) {
    memset(commit, 0, sizeof *commit);
    commit->in_memory = true;
    unsigned char *bytes = sqlite3_malloc64(image->length);
    if (!bytes)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    memcpy(bytes, image->bytes, image->length);
    int rc = sqlite3_open_v2(":memory:", &commit->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_extended_result_codes(commit->db, 1);
    if (rc == SQLITE_OK) /* the bytes are SQLite's from here, also where it fails */
        rc = sqlite3_deserialize(commit->db, "main", bytes, (sqlite3_int64)image->length, (sqlite3_int64)image->length,
                                 SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    else
        sqlite3_free(bytes);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(commit->db, memory_settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = prepare(commit);
    if (rc == SQLITE_OK) {
        limit_memory(commit, MEMORY_BYTES);
        return HEC_OK;
    }
    int err = hec_sql_fail(commit->db, rc, why, "cannot keep the run in memory");
    hec_commit_close(commit);
    return err;
}

static int64_t size_of(struct hec_commit *commit) {
    int64_t pages = 0;
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(commit->db, "PRAGMA page_count", -1, &statement, NULL) != SQLITE_OK)
        return 0;
    if (sqlite3_step(statement) == SQLITE_ROW)
        pages = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return pages * HEC_SCHEMA_PAGE_BYTES;
}

void hec_commit_last(struct hec_commit *commit) {
    if (commit->in_memory)
        limit_memory(commit, size_of(commit) + MEMORY_LAST_BYTES);
}

int hec_commit_image(struct hec_commit *commit, struct hec_image *image, struct hec_why *why) {
    *image = (struct hec_image){NULL, 0};
    if (size_of(commit) > IMAGE_BYTES)
        return hec_fail(why, HEC_ERR_LIMIT, "it is too large for memory");
    int err = hec_sql_image(commit->db, image, why);
    if (err == HEC_OK)
        hec_schema_mark(image, false);
    return err;
}

static int step(sqlite3_stmt *statement) {
    int rc = sqlite3_step(statement);
    int reset = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset != SQLITE_OK ? reset : rc;
}

static int write_block(struct hec_commit *commit, enum hec_commit_statement which, bool new_id, int64_t id,
                       int64_t series, const struct hec_closed *head, const char *v, const char *r) {
    sqlite3_stmt *s = commit->statements[which];
    if (!new_id)
        sqlite3_bind_int64(s, 1, id);
    if (which == HEC_STATEMENT_BLOCK)
        sqlite3_bind_int64(s, 2, series);
    if (which != HEC_STATEMENT_EXTEND)
        sqlite3_bind_int64(s, 3, head->t0_us);
    sqlite3_bind_int64(s, 4, head->t1_us);
    sqlite3_bind_int(s, 5, head->n);
    sqlite3_bind_int64(s, 6, head->v_base);
    sqlite3_bind_int(s, 7, head->v_width);
    sqlite3_bind_text(s, 8, v, head->n * head->v_width, SQLITE_STATIC);
    sqlite3_bind_int64(s, 9, head->r_base);
    sqlite3_bind_int(s, 10, head->r_width);
    sqlite3_bind_text(s, 11, r, head->n * head->r_width, SQLITE_STATIC);
    return step(s);
}

static int write_series(struct hec_commit *commit, const struct hec_series *series) {
    const struct hec_metric_info *info = hec_metric_info(series->metric);
    sqlite3_stmt *s = commit->statements[HEC_STATEMENT_SERIES];
    sqlite3_bind_int64(s, 1, series->id);
    sqlite3_bind_text(s, 2, info->name, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, series->subject);
    sqlite3_bind_text(s, 4, info->unit, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 5, kind_names[info->kind], -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 6, info->source, -1, SQLITE_STATIC);
    return step(s);
}

static int write_open_block(struct hec_commit *commit, struct hec_series_table *table, struct hec_series *series) {
    int rc = SQLITE_OK;
    bool has_row = series->has_row;
    sqlite3_stmt *promote = commit->statements[HEC_STATEMENT_PROMOTE];
    if (series->promote && has_row) {
        sqlite3_bind_int64(promote, 1, -series->id);
        rc = step(promote);
        has_row = false;
    }
    if (rc != SQLITE_OK || !series->dirty)
        return rc;
    if (series->n == 0) {
        if (!has_row)
            return rc;
        sqlite3_bind_int64(commit->statements[HEC_STATEMENT_REMOVE], 1, -series->id);
        return step(commit->statements[HEC_STATEMENT_REMOVE]);
    }
    struct hec_block *block = &table->scratch;
    hec_pack(series->t_us, series->v, series->valid, series->n, series->exact, block);
    series->r_width = block->r_width;
    struct hec_closed head = {.t0_us = block->t0_us,
                              .t1_us = block->t1_us,
                              .n = block->n,
                              .v_base = block->v_base,
                              .v_width = block->v_width,
                              .r_base = block->r_base,
                              .r_width = block->r_width};
    enum hec_commit_statement which = !has_row                              ? HEC_STATEMENT_BLOCK
                                      : series->holds_row && !series->moved ? HEC_STATEMENT_EXTEND
                                                                            : HEC_STATEMENT_REPLACE;
    return write_block(commit, which, false, -series->id, series->id, &head, block->v, block->r);
}

static int write_blocks(struct hec_commit *commit, struct hec_series_table *table) {
    int rc = SQLITE_OK;
    for (size_t i = 0; i < table->count && rc == SQLITE_OK; i++) {
        if (!table->all[i]->stored)
            rc = write_series(commit, table->all[i]);
        if (rc == SQLITE_OK && (table->all[i]->dirty || table->all[i]->promote))
            rc = write_open_block(commit, table, table->all[i]);
    }
    /* after the open blocks: ids above any promoted one */
    for (const struct hec_closed *c = table->closed_first; c && rc == SQLITE_OK; c = c->next)
        rc = write_block(commit, HEC_STATEMENT_BLOCK, true, 0, c->series->id, c, c->text,
                         c->text + (size_t)c->n * (size_t)c->v_width);
    return rc;
}

static int write_event(struct hec_commit *commit, const struct hec_queued_event *event, const char *text,
                       int64_t origin_ns) {
    sqlite3_stmt *s = commit->statements[HEC_STATEMENT_EVENT];
    sqlite3_bind_int64(s, 1, event->t_ns - origin_ns);
    sqlite3_bind_text(s, 2, hec_event_name((enum hec_event_kind)event->kind), -1, SQLITE_STATIC);
    if (event->device >= 0)
        sqlite3_bind_int(s, 3, event->device);
    sqlite3_bind_text(s, 4, text, -1, SQLITE_STATIC);
    return step(s);
}

static int write_row(struct hec_commit *commit, enum hec_record_kind kind, const void *data, int64_t origin_ns) {
    int rc = hec_record_bind(&hec_records[kind], commit->records[kind], data, origin_ns);
    return rc == SQLITE_OK ? step(commit->records[kind]) : rc;
}

static int write_record(struct hec_commit *commit, const struct hec_queue_item *item, int64_t origin_ns) {
    const char *data = item->data;
    sqlite3_stmt *s;
    if (item->type < HEC_RECORD_COUNT)
        return write_row(commit, (enum hec_record_kind)item->type, data, origin_ns);
    switch ((enum hec_queued)item->type) {
    case HEC_QUEUED_EVENT:
        return write_event(commit, item->data, data + sizeof(struct hec_queued_event), origin_ns);
    case HEC_QUEUED_UNITS:
        s = commit->statements[HEC_STATEMENT_UNITS];
        sqlite3_bind_text(s, 1, data + sizeof(struct hec_queued_units), -1, SQLITE_STATIC);
        sqlite3_bind_double(s, 2, ((const struct hec_queued_units *)item->data)->count);
        return step(s);
    case HEC_QUEUED_META:
        s = commit->statements[HEC_STATEMENT_META];
        data += sizeof(struct hec_queued_meta);
        sqlite3_bind_text(s, 1, data, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, data + ((const struct hec_queued_meta *)item->data)->key_length + 1, -1, SQLITE_STATIC);
        return step(s);
    case HEC_QUEUED_SAMPLE:
        break;
    }
    return SQLITE_MISUSE;
}

static int write_definitions(struct hec_commit *commit, const struct hec_definition_batch *batch) {
    int rc = SQLITE_OK;
    sqlite3_stmt *s = commit->statements[HEC_STATEMENT_TRACE_NAME];
    for (uint32_t i = 0; i < batch->name_count && rc == SQLITE_OK; i++) {
        sqlite3_bind_int64(s, 1, batch->name_first + i);
        sqlite3_bind_text(s, 2, batch->names[i], -1, SQLITE_STATIC);
        rc = step(s);
    }
    for (uint32_t i = 0; i < batch->track_count && rc == SQLITE_OK; i++)
        rc = write_row(commit, HEC_RECORD_TRACK, &batch->tracks[i], 0);
    for (uint32_t i = 0; i < batch->kernel_count && rc == SQLITE_OK; i++)
        rc = write_row(commit, HEC_RECORD_KERNEL, &batch->kernels[i], 0);
    for (uint32_t i = 0; i < batch->frame_count && rc == SQLITE_OK; i++)
        rc = write_row(commit, HEC_RECORD_FRAME, &batch->frames[i], 0);
    return rc;
}

static int write_activities(struct hec_commit *commit, enum hec_commit_statement which, bool open,
                            const struct hec_activity_block *block, int64_t origin_ns) {
    sqlite3_stmt *s = commit->statements[which];
    if (open)
        sqlite3_bind_int64(s, 1, -(int64_t)block->chain);
    if (which == HEC_STATEMENT_ACTIVITIES) {
        sqlite3_bind_int64(s, 2, block->track);
        sqlite3_bind_text(s, 3, hec_activity_kind_name(block->kind), -1, SQLITE_STATIC);
    }
    if (which != HEC_STATEMENT_ACTIVITIES_EXTEND)
        sqlite3_bind_int64(s, 4, block->t0_ns - origin_ns);
    sqlite3_bind_int64(s, 5, block->t1_ns - origin_ns);
    sqlite3_bind_int64(s, 6, block->n);
    sqlite3_bind_int64(s, 7, block->total_ns);
    sqlite3_bind_double(s, 8, block->amount);
    sqlite3_bind_blob64(s, 9, block->bytes, block->length, SQLITE_STATIC);
    return step(s);
}

static int write_open_activities(struct hec_commit *commit, const struct hec_activity_block *block, int64_t origin_ns) {
    if (block->n == 0) {
        sqlite3_stmt *s = commit->statements[HEC_STATEMENT_ACTIVITIES_REMOVE];
        sqlite3_bind_int64(s, 1, -(int64_t)block->chain);
        return step(s);
    }
    enum hec_commit_statement which = !block->has_row  ? HEC_STATEMENT_ACTIVITIES
                                      : block->same_t0 ? HEC_STATEMENT_ACTIVITIES_EXTEND
                                                       : HEC_STATEMENT_ACTIVITIES_REPLACE;
    return write_activities(commit, which, true, block, origin_ns);
}

static int write_timeline(struct hec_commit *commit, const struct hec_store_timeline_batch *batch, int64_t origin_ns) {
    int rc = SQLITE_OK;
    for (const struct hec_activity_block *b = batch->open; b && rc == SQLITE_OK; b = b->next)
        rc = write_open_activities(commit, b, origin_ns);
    for (const struct hec_activity_block *b = batch->closed; b && rc == SQLITE_OK; b = b->next)
        rc = write_activities(commit, HEC_STATEMENT_ACTIVITIES, false, b, origin_ns);
    sqlite3_stmt *s = commit->statements[HEC_STATEMENT_TOTAL];
    for (size_t i = 0; i < batch->total_count && rc == SQLITE_OK; i++) {
        const struct hec_activity_total *total = &batch->totals[i];
        sqlite3_bind_text(s, 1, hec_activity_kind_name(total->kind), -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, total->name);
        sqlite3_bind_int64(s, 3, total->count);
        sqlite3_bind_int64(s, 4, total->total_ns);
        rc = step(s);
    }
    return rc;
}

int hec_commit_all(struct hec_commit *commit, const struct hec_commit_batch *batch, struct hec_why *why) {
    int rc = step(commit->statements[HEC_STATEMENT_BEGIN]);
    if (rc == SQLITE_OK)
        rc = write_blocks(commit, batch->series);
    struct hec_queue_cursor cursor;
    struct hec_queue_item item;
    hec_queue_begin(batch->records, &cursor);
    while (rc == SQLITE_OK && hec_queue_next(&cursor, &item))
        rc = write_record(commit, &item, batch->origin_ns);
    if (rc == SQLITE_OK)
        rc = write_definitions(commit, batch->definitions);
    if (rc == SQLITE_OK)
        rc = write_timeline(commit, batch->timeline, batch->origin_ns);
    if (rc == SQLITE_OK)
        rc = step(commit->statements[HEC_STATEMENT_COMMIT]);
    if (rc == SQLITE_OK)
        return HEC_OK;
    int err = hec_sql_fail(commit->db, rc, why, "cannot write the run file");
    if (!sqlite3_get_autocommit(commit->db))
        step(commit->statements[HEC_STATEMENT_ROLLBACK]);
    return err;
}

int hec_commit_fold(struct hec_commit *commit, struct hec_why *why) {
    sqlite3_busy_timeout(commit->db, 1000); /* somebody may be reading, for a report */
    int rc = sqlite3_wal_checkpoint_v2(commit->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    /* Out of write-ahead mode, so that the file can be read where nothing can be written. The change is one sector
     * of the first page: with a journal in memory a kill leaves the old or the new one, and no second file. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(commit->db, "PRAGMA journal_mode=MEMORY", NULL, NULL, NULL);
    return rc == SQLITE_OK ? HEC_OK
                           : hec_sql_fail(commit->db, rc, why,
                                          "what was recorded is safe in the run file and its -wal file, which "
                                          "could not be folded together");
}

void hec_commit_leave(struct hec_commit *commit) {
    int on = 1;
    sqlite3_file_control(commit->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
    sqlite3_db_config(commit->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}
