/* Bytes as a run file, through every pass of the reader and through a copy. The first byte chooses: 0, the rest is the
 * file; 1, the rest is the file with its header put right, so that more of it is looked at; 3, the rest is a block of
 * activities (kind, number of them in two bytes, data) in an otherwise sound file; else, the rest is columns of such a
 * file. */
#include "../unit/store_passes.h"
#include "sqlite_bytes.h"

#include "store/copy.h"
#include "store/schema.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64], copy[64], companions[3][80];

static void remove_all(void) {
    unlink(path);
    unlink(copy);
    for (int i = 0; i < 3; i++)
        unlink(companions[i]);
}

static void name_files(void) {
    if (path[0])
        return;
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/hec-fuzz-%ld.hec", folder, (long)getpid());
    snprintf(copy, sizeof copy, "%s/hec-fuzz-%ld-copy.hec", folder, (long)getpid());
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    for (int i = 0; i < 3; i++)
        snprintf(companions[i], sizeof companions[i], "%s%s", path, suffixes[i]);
    atexit(remove_all);
}

static void write_file(const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size)
        abort();
    fclose(file);
}

static void put_big_endian(uint8_t *at, uint32_t value) {
    for (int i = 3; i >= 0; i--, value >>= 8)
        at[i] = (uint8_t)value;
}

static void write_righted(const uint8_t *data, size_t size) {
    size_t padded = (size + 4095) / 4096 * 4096;
    uint8_t *file = calloc(1, padded ? padded : 4096);
    if (size)
        memcpy(file, data, size);
    memcpy(file, "SQLite format 3", 16);
    memcpy(file + 16, "\x10\x00\x01\x01\x00\x40\x20\x20", 8);
    put_big_endian(file + 28, (uint32_t)(padded / 4096));
    put_big_endian(file + 60, HEC_SCHEMA_VERSION);
    put_big_endian(file + 68, HEC_SCHEMA_APPLICATION_ID);
    memcpy(file + 92, file + 24, 4); /* the size above is valid */
    write_file(file, padded);
    free(file);
}

static void bind(sqlite3_stmt *s, int column, struct bytes *b) {
    size_t length = text_length(b);
    bind_kind(s, column, b, take_number(b) % 8, length);
}

static const char *const inserts[] = {
    "INSERT OR IGNORE INTO block VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    "INSERT OR IGNORE INTO block VALUES (?1, 1, 1000*?2, 1000*?2+1000, 1+?4%3, ?5, 2, '####$$', 0, 0, '')",
    "INSERT OR IGNORE INTO event VALUES (?1, ?2, ?3, ?4, ?5)",
    "INSERT OR IGNORE INTO meta VALUES (?1, ?2)",
    "INSERT OR IGNORE INTO unit VALUES (?1, ?2)",
    "INSERT OR IGNORE INTO activity_block VALUES (?1, ?2, 'kernel', ?3, ?4, ?5, ?6, ?7, CAST(?8 AS BLOB))",
    "INSERT OR IGNORE INTO process VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    "INSERT OR IGNORE INTO gpu_process VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    "INSERT OR IGNORE INTO device VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    "INSERT OR IGNORE INTO trace_name VALUES (?1, ?2)",
    "INSERT OR IGNORE INTO track VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    "INSERT OR IGNORE INTO track VALUES (1+(SELECT count(*) FROM track), 'stream', ?1, ?2, ?3, ?4, ?5, ?6)",
    "INSERT OR IGNORE INTO kernel VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    "INSERT OR IGNORE INTO frame VALUES (1+(SELECT count(*) FROM frame), ?1, ?2, ?3, ?4)",
    "INSERT OR IGNORE INTO tracer VALUES (?1, 'full', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    "INSERT OR IGNORE INTO activity_total VALUES (?1, ?2, ?3, ?4)",
    "INSERT OR IGNORE INTO activity_total VALUES ('phase', 1, ?1, ?2)",
    "INSERT OR IGNORE INTO activity_block VALUES (?1, 1, 'range', ?2, ?3, ?4, ?5, ?6, CAST(?7 AS BLOB))",
};

static sqlite3 *write_sound(void) {
    static unsigned char *image;
    static size_t length;
    if (!image && hec_schema_image(&image, &length, NULL) != HEC_OK)
        abort();
    write_file(image, length);
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN;"
                     "INSERT INTO series VALUES (1, 'gpu_power', 0, 'mW', 'mean', 'nvml');"
                     "INSERT INTO trace_name VALUES (1, 'forward');"
                     "INSERT INTO track VALUES (1, 'thread', 100, NULL, NULL, 0, 100, 'python')",
                     NULL, NULL, NULL) != SQLITE_OK)
        abort();
    return db;
}

/* With a first block that the second one overlaps. */
static void write_block(struct bytes b) {
    sqlite3 *db = write_sound();
    uint8_t head[3] = {0, 0, 0};
    for (size_t i = 0; i < sizeof head && b.size > 0; i++, b.data++, b.size--)
        head[i] = *b.data;
    sqlite3_stmt *s;
    if (sqlite3_exec(db,
                     "INSERT INTO kernel (id, name) SELECT id, 1 FROM trace_name;"
                     "INSERT INTO frame VALUES (1, 0, 1, 1, 5)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db,
                           "INSERT INTO activity_block (track, kind, t0_ns, t1_ns, n, total_ns, amount, data) "
                           "VALUES (1, ?1, 1000*?4, 2000, ?2, 0, 0.0, ?3)",
                           -1, &s, NULL) != SQLITE_OK)
        abort();
    for (int i = 0; i < 2; i++) {
        enum hec_activity_kind kind = (enum hec_activity_kind)((head[0] + i) % HEC_ACTIVITY_KIND_COUNT);
        sqlite3_bind_text(s, 1, hec_activity_kind_name(kind), -1, SQLITE_STATIC);
        sqlite3_bind_int(s, 2, head[1] | head[2] << 8);
        sqlite3_bind_blob(s, 3, b.size ? b.data : head, (int)b.size, SQLITE_STATIC);
        sqlite3_bind_int(s, 4, i);
        sqlite3_step(s);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
}

static void write_columns(struct bytes b) {
    sqlite3 *db = write_sound();
    while (b.size > 0) {
        size_t which = b.data[0] % (sizeof inserts / sizeof inserts[0]);
        b.data++;
        b.size--;
        sqlite3_stmt *s;
        if (sqlite3_prepare_v2(db, inserts[which], -1, &s, NULL) != SQLITE_OK)
            abort();
        for (int i = 1; i <= sqlite3_bind_parameter_count(s); i++)
            bind(s, i, &b);
        sqlite3_step(s);
        sqlite3_finalize(s);
    }
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    name_files();
    for (int i = 0; i < 3; i++)
        unlink(companions[i]);
    if (data[0] == 0)
        write_file(data + 1, size - 1);
    else if (data[0] == 1)
        write_righted(data + 1, size - 1);
    else if (data[0] == 3)
        write_block((struct bytes){data + 1, size - 1});
    else
        write_columns((struct bytes){data + 1, size - 1});
    struct hec_reader *reader;
    struct hec_why why = {""};
    int err = hec_reader_open(path, &reader, &why);
    if (err == HEC_OK) {
        int64_t values;
        err = store_read_all(reader, &values, &why);
        hec_reader_close(reader);
        static const struct hec_store_scrub scrub = {.hostname = true, .uuids = true, .paths = true, .arguments = true};
        /* a copy costs ten times a reading, so one in eight; it also refuses what no series refers to */
        int copied = data[size - 1] % 8 == 0 ? hec_store_copy(path, copy, true, &scrub, NULL) : HEC_OK;
        if (err == HEC_OK && copied != HEC_OK && copied != HEC_ERR_CORRUPT)
            abort();
    }
    if (err != HEC_OK && why.text[0] == '\0')
        abort(); /* every error has a sentence */
    return 0;
}
