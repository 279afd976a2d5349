/* Bytes as a run file. The first byte chooses: 0, the rest is the file; 1, the rest is the file with its header put right,
 * so that more of it is looked at; 3, the rest is a block of activities (kind, number of them in two bytes, data) in an
 * otherwise sound file; 5, the rest is activities, values and rows of a run, packed as a writer does; else, the rest is
 * columns of an otherwise sound file.
 *
 * The sound file is made once, in memory; what is added for one input is taken back: making tables takes longer than
 * reading them. */
#pragma once

#include "sqlite_bytes.h"
#include "sqlite_memory.h"
#include "store/activity_pack.h"
#include "store/pack.h"
#include "store/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char run_path[64], run_copy[64], run_logs[3][80];

static void run_remove(void) {
    unlink(run_path);
    unlink(run_copy);
    for (size_t i = 0; i < sizeof run_logs / sizeof run_logs[0]; i++)
        unlink(run_logs[i]);
}

static void run_name_files(void) {
    if (run_path[0])
        return;
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(run_path, sizeof run_path, "%s/hec-fuzz-%ld.hec", folder, (long)getpid());
    snprintf(run_copy, sizeof run_copy, "%s/hec-fuzz-%ld-copy.hec", folder, (long)getpid());
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof run_logs / sizeof run_logs[0]; i++)
        snprintf(run_logs[i], sizeof run_logs[i], "%s%s", run_path, suffixes[i]);
    atexit(run_remove);
}

static void write_file(const void *bytes, size_t size) {
    FILE *file = fopen(run_path, "wb");
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

#define INSERTS (int)(sizeof inserts / sizeof inserts[0])
static const char *const inserts[] = {
    "INSERT OR IGNORE INTO block VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    "INSERT OR IGNORE INTO block VALUES (?1, 1, 1000*?2, 1000*?2+1000, 1+?4%3, ?5, 2, '####$$', 0, 0, '')",
    "INSERT OR IGNORE INTO event VALUES (?1, ?2, ?3, ?4, ?5)",
    "INSERT OR IGNORE INTO meta VALUES (?1, ?2)",
    "INSERT OR IGNORE INTO unit VALUES (?1, ?2)",
    "INSERT OR IGNORE INTO activity_block VALUES (?1, ?2, 'kernel', ?3, ?4, ?5, ?6, ?7, CAST(?8 AS BLOB))",
    "INSERT OR IGNORE INTO process VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    "INSERT OR IGNORE INTO gpu_process VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    "INSERT OR IGNORE INTO device VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
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

static sqlite3 *run_world;
static sqlite3_stmt *run_insert[INSERTS];

static void run_exec(const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(run_world, sql, NULL, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, message);
        abort();
    }
}

static sqlite3_stmt *run_prepare(const char *sql) {
    sqlite3_stmt *s;
    if (sqlite3_prepare_v3(run_world, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK)
        abort();
    return s;
}

/* rows: of every file, beside a name, a thread and a series of power. */
static void run_make_world(const char *rows) {
    unsigned char *image;
    size_t length;
    sqlite3 *from;
    sqlite_memory_use();
    if (hec_schema_image(&image, &length, NULL) != HEC_OK)
        abort();
    image[18] = image[19] = 1; /* no log */
    if (sqlite3_open(":memory:", &from) != SQLITE_OK || sqlite3_open(":memory:", &run_world) != SQLITE_OK ||
        sqlite3_deserialize(from, "main", image, (sqlite3_int64)length, (sqlite3_int64)length, 0) != SQLITE_OK)
        abort();
    /* what has not been committed can only be read from the other kind of database in memory */
    sqlite3_backup *backup = sqlite3_backup_init(run_world, "main", from, "main");
    if (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE || sqlite3_backup_finish(backup) != SQLITE_OK)
        abort();
    sqlite3_close(from);
    free(image);
    run_exec("INSERT INTO series VALUES (1, 'gpu_power', 0, 'mW', 'mean', 'nvml');"
             "INSERT INTO trace_name VALUES (1, 'forward');"
             "INSERT INTO track VALUES (1, 'thread', 100, NULL, NULL, 0, 100, 'python')");
    run_exec(rows);
    for (int i = 0; i < INSERTS; i++)
        run_insert[i] = run_prepare(inserts[i]);
}

static void run_save(void) {
    sqlite3_int64 size = 0;
    unsigned char *bytes = sqlite3_serialize(run_world, "main", &size, 0);
    if (!bytes)
        abort();
    write_file(bytes, (size_t)size);
    sqlite3_free(bytes);
    run_exec("ROLLBACK");
}

/* With a first block that the second one overlaps. */
static void write_block(struct bytes b) {
    static sqlite3_stmt *s;
    uint8_t head[3] = {0, 0, 0};
    for (size_t i = 0; i < sizeof head && b.size > 0; i++, b.data++, b.size--)
        head[i] = *b.data;
    run_exec("BEGIN; INSERT OR IGNORE INTO kernel (id, name) SELECT id, 1 FROM trace_name;"
             "INSERT OR IGNORE INTO frame VALUES (1, 0, 1, 1, 5)");
    if (!s)
        s = run_prepare("INSERT INTO activity_block (track, kind, t0_ns, t1_ns, n, total_ns, amount, data) "
                        "VALUES (1, ?1, 1000*?4, 2000, ?2, 0, 0.0, ?3)");
    for (int i = 0; i < 2; i++) {
        enum hec_activity_kind kind = (enum hec_activity_kind)((head[0] + i) % HEC_ACTIVITY_KIND_COUNT);
        sqlite3_bind_text(s, 1, hec_activity_kind_name(kind), -1, SQLITE_STATIC);
        sqlite3_bind_int(s, 2, head[1] | head[2] << 8);
        sqlite3_bind_blob(s, 3, b.size ? b.data : head, (int)b.size, SQLITE_STATIC);
        sqlite3_bind_int(s, 4, i);
        sqlite3_step(s);
        sqlite3_reset(s);
    }
    run_save();
}

static void add_columns(struct bytes *b) {
    sqlite3_stmt *s = run_insert[b->data[0] % INSERTS];
    b->data++;
    b->size--;
    for (int i = 1; i <= sqlite3_bind_parameter_count(s); i++)
        bind(s, i, b);
    sqlite3_step(s);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
}

static void write_columns(struct bytes b) {
    run_exec("BEGIN");
    while (b.size > 0)
        add_columns(&b);
    run_save();
}

/* ---- a run ---- */

#define RUN_MAX 2048
#define RUN_TRACKS 4 /* of the world's rows: 1 and 2 threads, 3 and 4 streams */
#define RUN_NAMES 4  /* names, kernels and frames each */

static const struct {
    const char *metric, *unit, *kind;
} run_series[] = {
    {"gpu_power", "mW", "mean"},      {"gpu_energy", "mJ", "counter"},       {"gpu_energy_slack", "us", "gauge"},
    {"gpu_util", "permille", "mean"}, {"gpm_sm_active", "permille", "mean"}, {"gpm_dram_active", "permille", "mean"},
    {"gpu_sm_clock", "MHz", "gauge"}, {"tree_cpu", "ms", "counter"},
};
#define RUN_SERIES (int)(sizeof run_series / sizeof run_series[0])

struct run_value {
    int series;
    int64_t t_us, value;
};

static int run_by_place(const void *a, const void *b) {
    const struct hec_activity *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int run_by_series(const void *a, const void *b) {
    const struct run_value *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return (x->t_us > y->t_us) - (x->t_us < y->t_us);
}

static void add_activities(struct hec_activity *all, size_t count) {
    static struct hec_packer *packer;
    static sqlite3_stmt *s;
    if (!s)
        s = run_prepare("INSERT INTO activity_block (track, kind, t0_ns, t1_ns, n, total_ns, amount, data) "
                        "VALUES (?, ?, ?, ?, ?, ?, 0.0, ?)");
    if (!packer && !(packer = hec_packer_new()))
        abort();
    qsort(all, count, sizeof *all, run_by_place);
    for (size_t first = 0, end; first < count; first = end) {
        const unsigned char *bytes;
        int64_t last_ns = INT64_MIN, total_ns = 0;
        for (end = first; end < count && all[end].track == all[first].track && all[end].kind == all[first].kind;
             end++) {
            last_ns = all[end].end_ns > last_ns ? all[end].end_ns : last_ns;
            total_ns += (all[end].end_ns - all[end].start_ns) / RUN_MAX;
        }
        size_t length = hec_packer_pack(packer, all + first, end - first, &bytes);
        sqlite3_bind_int(s, 1, (int)all[first].track);
        sqlite3_bind_text(s, 2, hec_activity_kind_name(all[first].kind), -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 3, all[first].start_ns);
        sqlite3_bind_int64(s, 4, last_ns);
        sqlite3_bind_int64(s, 5, (sqlite3_int64)(end - first));
        sqlite3_bind_int64(s, 6, total_ns);
        sqlite3_bind_blob(s, 7, bytes, (int)length, SQLITE_TRANSIENT);
        sqlite3_step(s);
        sqlite3_reset(s);
    }
}

static void add_values(struct run_value *all, size_t count) {
    static sqlite3_stmt *series, *block;
    static struct hec_block packed;
    if (!block) {
        series = run_prepare("INSERT OR IGNORE INTO series VALUES (?, ?, 0, ?, ?, 'nvml')");
        block = run_prepare("INSERT INTO block (series, t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r) "
                            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    }
    qsort(all, count, sizeof *all, run_by_series);
    for (size_t first = 0, end; first < count; first = end) {
        int64_t t_us[HEC_BLOCK_VALUES], value[HEC_BLOCK_VALUES];
        uint8_t valid[HEC_BLOCK_VALUES];
        for (end = first; end < count && end - first < HEC_BLOCK_VALUES && all[end].series == all[first].series &&
                          all[end].t_us - all[first].t_us < HEC_BLOCK_RANGE;
             end++) {
            t_us[end - first] = all[end].t_us;
            value[end - first] = all[end].value;
            valid[end - first] = all[end].value != 31; /* a missing one */
        }
        hec_pack(t_us, value, valid, (int)(end - first), false, &packed);
        const char *const names[] = {run_series[all[first].series].metric, run_series[all[first].series].unit,
                                     run_series[all[first].series].kind};
        sqlite3_bind_int(series, 1, 1 + all[first].series);
        for (int i = 0; i < 3; i++)
            sqlite3_bind_text(series, 2 + i, names[i], -1, SQLITE_STATIC);
        sqlite3_step(series);
        sqlite3_reset(series);
        const int64_t numbers[] = {1 + all[first].series,
                                   packed.t0_us,
                                   packed.t1_us,
                                   packed.n,
                                   packed.v_base,
                                   packed.v_width,
                                   0,
                                   packed.r_base,
                                   packed.r_width,
                                   0};
        for (int i = 0; i < 10; i++)
            sqlite3_bind_int64(block, 1 + i, numbers[i]);
        sqlite3_bind_text(block, 7, packed.v, packed.n * packed.v_width, SQLITE_TRANSIENT);
        sqlite3_bind_text(block, 10, packed.r, packed.n * packed.r_width, SQLITE_TRANSIENT);
        sqlite3_step(block);
        sqlite3_reset(block);
    }
}

/* 0 to 31 times a power of two up to 2^49: from nanoseconds to years. */
static int64_t run_number(struct bytes *b) {
    if (b->size == 0)
        return 0;
    int64_t value = (int64_t)(b->data[0] & 31) << 7 * (b->data[0] >> 5);
    b->data++;
    b->size--;
    return value;
}

static void take_activity(struct bytes *b, int which, int64_t *now_ns, struct hec_activity *a) {
    *now_ns += run_number(b);
    enum hec_activity_kind kind = (enum hec_activity_kind)(which % HEC_ACTIVITY_KIND_COUNT);
    int64_t place = run_number(b);
    *a = (struct hec_activity){.kind = (uint8_t)kind,
                               .start_ns = *now_ns,
                               .end_ns = *now_ns + run_number(b),
                               .name = (uint32_t)(place % (RUN_NAMES + 1)),
                               .track = (uint32_t)(1 + place / 8 % RUN_TRACKS),
                               .launch_ns = HEC_TIME_UNKNOWN,
                               .launch_end_ns = HEC_TIME_UNKNOWN};
    if (HEC_ACTIVITY_BIT(kind) & HEC_ACTIVITY_DEVICE) {
        a->track = (uint32_t)(3 + place / 8 % 2);
        if (place & 16) {
            a->launch_ns = *now_ns - run_number(b);
            a->launch_end_ns = a->launch_ns + run_number(b);
            a->launch_track = 1;
        }
        a->amount = (double)run_number(b);
    } else if (kind == HEC_ACTIVITY_STEP || kind == HEC_ACTIVITY_VALUE) {
        a->amount = (double)run_number(b);
    }
}

/* Rows of four bytes and more: their first says what it is. */
static void write_run(struct bytes b) {
    static struct hec_activity activities[RUN_MAX];
    static struct run_value values[RUN_MAX];
    size_t activity_count = 0, value_count = 0;
    int64_t now_ns = 0, value = 0;
    run_exec("BEGIN");
    while (b.size > 0) {
        int what = b.data[0] % 8, which = b.data[0] / 8;
        b.data++;
        b.size--;
        if (now_ns >= HEC_ACTIVITY_TIME_MAX_NS / 2)
            now_ns = 0;
        if (what < 4 && activity_count < RUN_MAX) {
            take_activity(&b, which, &now_ns, &activities[activity_count++]);
        } else if (what < 7 && value_count < RUN_MAX) {
            now_ns += run_number(&b);
            value = what == 6 ? value + run_number(&b) % HEC_BLOCK_RANGE : run_number(&b) % HEC_BLOCK_RANGE;
            value %= HEC_BLOCK_RANGE;
            values[value_count++] = (struct run_value){which % RUN_SERIES, now_ns / 1000, value};
        } else if (b.size > 0) {
            add_columns(&b);
        }
    }
    add_activities(activities, activity_count);
    add_values(values, value_count);
    run_save();
}

/* The file at run_path. size > 0 */
static void run_write(const uint8_t *data, size_t size, const char *rows) {
    struct bytes rest = {data + 1, size - 1};
    run_name_files();
    for (size_t i = 0; i < sizeof run_logs / sizeof run_logs[0] && data[0] < 2; i++)
        unlink(run_logs[i]); /* of the one before */
    if (!run_world)
        run_make_world(rows);
    if (data[0] == 0)
        write_file(rest.data, rest.size);
    else if (data[0] == 1)
        write_righted(rest.data, rest.size);
    else if (data[0] == 3)
        write_block(rest);
    else if (data[0] == 5)
        write_run(rest);
    else
        write_columns(rest);
}
