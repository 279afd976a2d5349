#include "store/copy.h"

#include "base/scratch.h"
#include "store/create.h"
#include "store/pack.h"
#include "store/reading.h"
#include "store/writer.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRUB_UUIDS_MAX 512

static bool is_uuid(const char *text) {
    if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0)
        return false;
    for (int i = 4; i < HEC_SCRUB_UUID_LENGTH; i++) {
        bool dash = i == 12 || i == 17 || i == 22 || i == 27;
        if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
            return false;
    }
    return true;
}

static void put_uuid(struct hec_scrubber *s, const char *text, struct hec_buf *out) {
    if (!s->uuids)
        s->uuids = calloc(SCRUB_UUIDS_MAX, sizeof *s->uuids);
    int number = 0;
    while (s->uuids && number < s->uuid_count && strncmp(s->uuids[number], text, HEC_SCRUB_UUID_LENGTH) != 0)
        number++;
    if (s->uuids && number == s->uuid_count && number < SCRUB_UUIDS_MAX - 1)
        memcpy(s->uuids[s->uuid_count++], text, HEC_SCRUB_UUID_LENGTH);
    hec_buf_printf(out, "%.4s00000000-0000-0000-0000-%012d", text, number);
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* A path ends where an argument does. */
static size_t path_length(const char *text) {
    return strcspn(text, " \t\n'\"`;:,=()[]{}<>|&");
}

static bool is_public(const char *path) {
    static const char *const roots[] = {"/dev/", "/etc/", "/lib", "/proc/", "/sys/", "/usr/"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            return true;
    return false;
}

/* Where an installed package, Python's library or HEC's hooks begin in a path: it names nobody, and shows whose code a
 * line is. */
static size_t installed_part(const char *path, size_t length) {
    static const char *const parts[] = {"site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3",
                                        "/hec/_hooks/"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = memmem(path, length, parts[i], strlen(parts[i]));
        if (at)
            return (size_t)(at - path);
    }
    return length;
}

static void put_last_part(const char *path, size_t length, struct hec_buf *out) {
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/')
        start--;
    hec_buf_add(out, path + start, length - start);
}

/* The length of a host's name that the text begins with; 0: none. Those of a joined run are a list. */
static size_t host_length(const struct hec_scrubber *s, const char *text) {
    const char *name = s->scrub->hostname && s->hostname ? s->hostname : "";
    while (*name) {
        size_t length = strcspn(name, ",");
        if (length && strncmp(text, name, length) == 0 && !is_word(text[length]))
            return length;
        name += length;
        name += strspn(name, ", ");
    }
    return 0;
}

void hec_scrub_text(struct hec_scrubber *s, const char *text, struct hec_buf *out) {
    const struct hec_store_scrub *scrub = s->scrub;
    for (size_t i = 0; text[i];) {
        bool begins = i == 0 || !is_word(text[i - 1]);
        size_t host = begins ? host_length(s, text + i) : 0;
        if (scrub->uuids && begins && is_uuid(text + i)) {
            put_uuid(s, text + i, out);
            i += HEC_SCRUB_UUID_LENGTH;
        } else if (host) {
            hec_buf_puts(out, "host");
            i += host;
        } else if (scrub->paths && text[i] == '/' && (i == 0 || path_length(text + i - 1) == 0) &&
                   !is_public(text + i)) {
            size_t length = path_length(text + i), installed = installed_part(text + i, length);
            if (installed < length)
                hec_buf_add(out, text + i + installed, length - installed);
            else
                put_last_part(text + i, length, out);
            i += length;
        } else {
            hec_buf_add(out, text + i++, 1);
        }
    }
}

/* The first word of a command line, without its folder. */
static void scrub_arguments(const char *command, struct hec_buf *out) {
    put_last_part(command, path_length(command), out);
}

#define TEXT_MAX (8 << 20) /* of one scrubbed text: the reader's largest, with room for longer names */

struct copying {
    struct hec_reader *from;
    struct hec_writer *writer;
    const struct hec_sink *sink;
    struct hec_scrubber scrubber;
    struct hec_buf text;
    sqlite3 *to;
    sqlite3_stmt *meta, *into;
    struct hec_packer *packer;
    struct hec_activity *activities;
    int rows; /* since the last flush */
    int err;
    struct hec_why *why;
};

static const struct hec_store_scrub nothing;

static const char *scrubbed(struct copying *c, const char *text) {
    hec_buf_clear(&c->text);
    hec_scrub_text(&c->scrubber, text, &c->text);
    if (hec_buf_error(&c->text))
        c->err = hec_fail(c->why, hec_buf_error(&c->text), "a text of the run file is too long to copy");
    return hec_buf_text(&c->text);
}

/* Of what a person wrote, in which there may be secrets. */
static const char *scrubbed_words(struct copying *c, const char *text) {
    char *(*withhold)(const char *, int *) = c->scrubber.scrub->withhold;
    int count = 0;
    char *kept = withhold ? withhold(text, &count) : NULL;
    if (withhold && !kept)
        c->err = hec_fail(c->why, HEC_ERR_NOMEM, "out of memory");
    const char *clean = scrubbed(c, kept ? kept : withhold ? "" : text);
    free(kept);
    return clean;
}

/* The writer keeps only so much: commit now and then. */
static int count_row(struct copying *c) {
    if (c->err == HEC_OK && ++c->rows >= 1000) {
        c->rows = 0;
        c->err = hec_writer_flush(c->writer, c->why);
    }
    return c->err;
}

static int copy_device(void *context, const struct hec_device *device) {
    struct copying *c = context;
    struct hec_device copy = *device;
    snprintf(copy.uuid, sizeof copy.uuid, "%s", scrubbed(c, device->uuid));
    c->sink->device(c->sink->context, &copy);
    return count_row(c);
}

static int copy_process(void *context, const struct hec_process *process) {
    struct copying *c = context;
    c->sink->process(c->sink->context, process);
    return count_row(c);
}

static int copy_gpu_process(void *context, const struct hec_gpu_process *process) {
    struct copying *c = context;
    c->sink->gpu_process(c->sink->context, process);
    return count_row(c);
}

static int copy_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    struct copying *c = context;
    c->sink->event(c->sink->context, kind, device, t_ns, scrubbed_words(c, text));
    return count_row(c);
}

static int copy_unit(void *context, const char *name, double count) {
    struct copying *c = context;
    c->sink->units(c->sink->context, name, count);
    return count_row(c);
}

static int copy_tracer(void *context, const struct hec_tracer *tracer) {
    struct copying *c = context;
    struct hec_tracer copy = *tracer;
    snprintf(copy.library, sizeof copy.library, "%s", scrubbed(c, tracer->library));
    snprintf(copy.why, sizeof copy.why, "%s", scrubbed(c, tracer->why));
    snprintf(copy.holder, sizeof copy.holder, "%s", scrubbed(c, tracer->holder));
    c->sink->tracer(c->sink->context, &copy);
    return count_row(c);
}

static int copy_rows(struct copying *c, const char *path, struct hec_why *why) {
    int err = hec_writer_create(path, true, 0, &c->writer, why);
    if (err)
        return err;
    c->sink = hec_writer_sink(c->writer);
    err = hec_reader_devices(c->from, copy_device, c, why);
    if (err == HEC_OK)
        err = hec_reader_processes(c->from, copy_process, c, why);
    if (err == HEC_OK)
        err = hec_reader_gpu_processes(c->from, copy_gpu_process, c, why);
    if (err == HEC_OK)
        err = hec_reader_events(c->from, copy_event, c, why);
    if (err == HEC_OK)
        err = hec_reader_units(c->from, copy_unit, c, why);
    if (err == HEC_OK)
        err = hec_reader_tracers(c->from, copy_tracer, c, why);
    int64_t lost = 0;
    int closed = hec_writer_close(c->writer, &lost, err ? NULL : why);
    if (err == HEC_OK && closed == HEC_OK && lost > 0)
        return hec_fail(why, HEC_ERR_FAILED, "%lld rows could not be copied", (long long)lost);
    return err ? err : closed;
}

static int insert_meta(struct copying *c, const char *key, const char *value) {
    sqlite3_bind_text(c->meta, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(c->meta, 2, value, -1, SQLITE_STATIC);
    sqlite3_step(c->meta);
    int rc = sqlite3_reset(c->meta);
    return rc == SQLITE_OK ? HEC_OK : hec_sql_fail(c->to, rc, c->why, "cannot write the copy");
}

static int copy_meta(void *context, const char *key, const char *value) {
    struct copying *c = context;
    const struct hec_store_scrub *scrub = c->scrubber.scrub;
    for (const char *const *drop = scrub->drop; drop && *drop; drop++)
        if (strcmp(*drop, key) == 0)
            return HEC_OK;
    struct hec_buf command;
    hec_buf_init(&command, TEXT_MAX);
    if (scrub->arguments && strcmp(key, "command") == 0) {
        scrub_arguments(value, &command);
        value = hec_buf_text(&command);
    }
    const char *text = strcmp(key, "command") == 0 ? scrubbed_words(c, value) : scrubbed(c, value);
    hec_buf_free(&command);
    return c->err ? c->err : insert_meta(c, key, text);
}

static int copy_metas(struct copying *c) {
    int rc = sqlite3_exec(c->to, "DELETE FROM meta", NULL, NULL, NULL); /* what the writer says of itself */
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(c->to, "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", -1, &c->meta, NULL);
    if (rc != SQLITE_OK)
        return hec_sql_fail(c->to, rc, c->why, "cannot write the copy");
    int err = hec_reader_metas(c->from, copy_meta, c);
    const struct hec_store_scrub *scrub = c->scrubber.scrub;
    for (size_t i = 0; i < scrub->fact_count && err == HEC_OK; i++)
        err = insert_meta(c, scrub->facts[i].key, scrub->facts[i].value);
    sqlite3_finalize(c->meta);
    return err;
}

/* Rows of series and block are copied as they are, once they are known to be what a reader takes. */
static const char *check_series(struct copying *c, sqlite3_stmt *s) {
    (void)c;
    int64_t number;
    const char *text;
    if (!hec_reading_int(s, 0, 1, INT64_MAX, &number) || !hec_reading_int(s, 2, INT_MIN, INT_MAX, &number))
        return "the table series holds something impossible";
    static const int texts[] = {1, 3, 4, 5};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!hec_reading_text(s, texts[i], 255, &text))
            return "the table series holds something impossible";
    return NULL;
}

static const char *check_block(struct copying *c, sqlite3_stmt *s) {
    (void)c;
    struct hec_block head;
    const char *v, *r;
    int64_t t_us[HEC_BLOCK_VALUES], value[HEC_BLOCK_VALUES];
    uint8_t valid[HEC_BLOCK_VALUES];
    if (!hec_reading_block(s, 2, &head, &v, &r))
        return "a block holds something impossible";
    return hec_unpack(&head, v, strlen(v), r, strlen(r), t_us, value, valid);
}

static int copy_table(struct copying *c, const char *select, const char *insert,
                      const char *(*check)(struct copying *c, sqlite3_stmt *s)) {
    sqlite3_stmt *in, *out = NULL;
    int err = hec_reading_prepare(c->from, select, &in, c->why);
    if (err)
        return err;
    int rc = sqlite3_prepare_v2(c->to, insert, -1, &out, NULL);
    while (rc == SQLITE_OK && (err = hec_reading_step(c->from, in, c->why)) == 1) {
        const char *wrong = check(c, in);
        if (wrong) {
            hec_reading_leave_out(c->from, wrong);
            continue;
        }
        for (int i = 0; i < sqlite3_column_count(in) && rc == SQLITE_OK; i++)
            rc = sqlite3_bind_value(out, i + 1, sqlite3_column_value(in, i));
        if (rc == SQLITE_OK)
            sqlite3_step(out);
        rc = rc == SQLITE_OK ? sqlite3_reset(out) : rc;
    }
    sqlite3_finalize(in);
    sqlite3_finalize(out);
    if (rc != SQLITE_OK) /* a constraint: two rows with one key */
        return (rc & 0xff) == SQLITE_CONSTRAINT ? hec_reading_corrupt(c->from, c->why, "two rows have the same key")
                                                : hec_sql_fail(c->to, rc, c->why, "cannot write the copy");
    return err;
}

static int copy_series(struct copying *c) {
    int err = copy_table(c, "SELECT id, metric, subject, unit, kind, source FROM series ORDER BY id",
                         "INSERT INTO series (id, metric, subject, unit, kind, source) VALUES (?, ?, ?, ?, ?, ?)",
                         check_series);
    /* NULL: a new id. The open blocks of the source are closed in the copy. */
    return err ? err
               : copy_table(c,
                            "SELECT NULL, series, t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r FROM block "
                            "INDEXED BY block_in_order ORDER BY series, t0_us",
                            "INSERT INTO block (id, series, t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r) "
                            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                            check_block);
}

static int insert(struct copying *c, int rc) {
    if (rc == SQLITE_OK) {
        sqlite3_step(c->into);
        rc = sqlite3_reset(c->into);
    }
    return rc == SQLITE_OK ? HEC_OK : hec_sql_fail(c->to, rc, c->why, "cannot write the copy");
}

static int copy_name(void *context, uint32_t id, const char *text) {
    struct copying *c = context;
    const char *copy = scrubbed(c, text);
    sqlite3_bind_int64(c->into, 1, id);
    return c->err ? c->err : insert(c, sqlite3_bind_text(c->into, 2, copy, -1, SQLITE_STATIC));
}

static int copy_track(void *context, const struct hec_track *track) {
    struct copying *c = context;
    return insert(c, hec_record_bind(&hec_records[HEC_RECORD_TRACK], c->into, track, 0));
}

static int copy_kernel(void *context, const struct hec_kernel *kernel) {
    struct copying *c = context;
    return insert(c, hec_record_bind(&hec_records[HEC_RECORD_KERNEL], c->into, kernel, 0));
}

static int copy_frame(void *context, const struct hec_frame *frame) {
    struct copying *c = context;
    return insert(c, hec_record_bind(&hec_records[HEC_RECORD_FRAME], c->into, frame, 0));
}

static int prepare_into(struct copying *c, const char *sql) {
    sqlite3_finalize(c->into);
    int rc = sqlite3_prepare_v2(c->to, sql, -1, &c->into, NULL);
    return rc == SQLITE_OK ? HEC_OK : hec_sql_fail(c->to, rc, c->why, "cannot write the copy");
}

static int prepare_record(struct copying *c, const struct hec_record *record) {
    char sql[1024];
    int err = hec_record_insert_sql(record, sql, sizeof sql);
    return err ? hec_fail(c->why, err, "%s", hec_err_text(err)) : prepare_into(c, sql);
}

static int copy_definitions(struct copying *c) {
    int err = prepare_into(c, "INSERT INTO trace_name (id, text) VALUES (?, ?)");
    if (err == HEC_OK)
        err = hec_reader_trace_names(c->from, copy_name, c, c->why);
    if (err == HEC_OK && (err = prepare_record(c, &hec_records[HEC_RECORD_TRACK])) == HEC_OK)
        err = hec_reader_tracks(c->from, copy_track, c, c->why);
    if (err == HEC_OK && (err = prepare_record(c, &hec_records[HEC_RECORD_KERNEL])) == HEC_OK)
        err = hec_reader_kernels(c->from, copy_kernel, c, c->why);
    if (err == HEC_OK && (err = prepare_record(c, &hec_records[HEC_RECORD_FRAME])) == HEC_OK)
        err = hec_reader_frames(c->from, copy_frame, c, c->why);
    sqlite3_finalize(c->into);
    return err;
}

/* The first five columns are those of hec_reading_activity_head. */
static const char *check_activities(struct copying *c, sqlite3_stmt *s) {
    int64_t t1_ns, total_ns;
    struct hec_activity_head head;
    const char *wrong = hec_reading_activity_head(c->from, s, &head);
    if (wrong)
        return wrong;
    if (!hec_reading_int(s, 5, head.t0_ns, HEC_RECORD_TIME_MAX_NS, &t1_ns) ||
        !hec_reading_int(s, 6, 0, INT64_MAX, &total_ns) || sqlite3_column_type(s, 7) != SQLITE_FLOAT)
        return "a block of activities holds something impossible";
    return hec_reading_activities(c->from, s, &head, c->packer, c->activities);
}

static const char *check_total(struct copying *c, sqlite3_stmt *s) {
    int64_t number;
    const char *text;
    (void)c;
    return hec_reading_text(s, 0, 32, &text) && hec_reading_int(s, 1, 0, UINT32_MAX, &number) &&
                   hec_reading_int(s, 2, 1, INT64_MAX, &number) && hec_reading_int(s, 3, 0, INT64_MAX, &number)
               ? NULL
               : "the table activity_total holds something impossible";
}

static int copy_timeline(struct copying *c) {
    int err = copy_definitions(c);
    if (err == HEC_OK)
        err = hec_reading_limits(c->from, c->why);
    if (err)
        return err;
    c->packer = hec_packer_new();
    c->activities = malloc(HEC_ACTIVITY_BLOCK * sizeof *c->activities);
    if (!c->packer || !c->activities)
        err = hec_fail(c->why, HEC_ERR_NOMEM, "out of memory");
    if (err == HEC_OK)
        err = copy_table(c,
                         /* new ids: the open blocks of the source are closed in the copy */
                         "SELECT track, kind, t0_ns, n, data, t1_ns, total_ns, amount FROM activity_block "
                         "INDEXED BY activity_in_order ORDER BY t0_ns",
                         "INSERT INTO activity_block (track, kind, t0_ns, n, data, t1_ns, total_ns, amount) "
                         "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                         check_activities);
    if (err == HEC_OK)
        err = copy_table(c, "SELECT kind, name, count, total_ns FROM activity_total",
                         "INSERT INTO activity_total (kind, name, count, total_ns) VALUES (?, ?, ?, ?)", check_total);
    hec_packer_free(c->packer);
    free(c->activities);
    return err;
}

static int copy_rest(struct copying *c, const char *path, struct hec_why *why) {
    int rc = hec_sql_open(path, SQLITE_OPEN_READWRITE, NULL, &c->to);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c->to, "PRAGMA journal_mode=MEMORY; PRAGMA trusted_schema=OFF; BEGIN", NULL, NULL, NULL);
    int err = rc == SQLITE_OK ? copy_metas(c) : hec_sql_fail(c->to, rc, why, "cannot write the copy");
    if (err == HEC_OK)
        err = copy_series(c);
    if (err == HEC_OK)
        err = copy_timeline(c);
    if (err == HEC_OK && (rc = sqlite3_exec(c->to, "COMMIT; VACUUM", NULL, NULL, NULL)) != SQLITE_OK)
        err = hec_sql_fail(c->to, rc, why, "cannot write the copy");
    sqlite3_close(c->to);
    return err;
}

int hec_store_copy(const char *from, const char *to, bool overwrite, const struct hec_store_scrub *scrub,
                   struct hec_why *why) {
    struct copying c = {.scrubber = {.scrub = scrub ? scrub : &nothing}, .why = why};
    struct hec_scratch folder;
    char temporary[PATH_MAX + 8];
    int err = hec_create_check(to, overwrite, why);
    if (err == HEC_OK)
        err = hec_reader_open(from, &c.from, why);
    if (err)
        return err;
    err = hec_scratch_make_beside(&folder, to, why);
    snprintf(temporary, sizeof temporary, "%s/run", folder.path);
    hec_buf_init(&c.text, TEXT_MAX);
    c.scrubber.hostname = hec_reader_meta(c.from, "hostname");
    if (err == HEC_OK)
        err = copy_rows(&c, temporary, why);
    if (err == HEC_OK)
        err = copy_rest(&c, temporary, why);
    if (err == HEC_OK)
        err = hec_create_place(temporary, to, overwrite, why);
    hec_scratch_remove(&folder);
    if (err == HEC_OK && why)
        snprintf(why->text, sizeof why->text, "%s", hec_reader_left_out(c.from) ? hec_reader_left_out(c.from) : "");
    hec_reader_close(c.from);
    hec_buf_free(&c.text);
    free(c.scrubber.uuids);
    return err;
}
