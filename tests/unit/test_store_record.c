/* Structs as rows: every column by its name, what a reader takes at each of its limits, and that a writer refuses the same. */
#include "store/record.h"
#include "model/run.h"
#include "store/schema.h"
#include "unit.h"

#include <limits.h>

#define ORIGIN 1000
#define TIME_MAX HEC_RECORD_TIME_MAX_NS
#define KNOWN_MAX HEC_RECORD_KNOWN_MAX

static sqlite3 *db;

static int begin(void **state) {
    struct hec_image image = {NULL, 0};
    (void)state;
    if (hec_schema_image(&image.bytes, &image.length, NULL) != 0)
        return 1;
    hec_schema_mark(&image, false);
    unsigned char *bytes = sqlite3_malloc64(image.length);
    memcpy(bytes, image.bytes, image.length);
    free(image.bytes);
    return sqlite3_open(":memory:", &db) != SQLITE_OK ||
           sqlite3_deserialize(db, "main", bytes, (sqlite3_int64)image.length, (sqlite3_int64)image.length,
                               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) != SQLITE_OK;
}
static int end(void **state) {
    (void)state;
    return sqlite3_close(db);
}
EACH_TEST(begin, end)

static void run(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    return s;
}

static void put(enum hec_record_kind kind, const void *data) {
    char sql[1024];
    assert_int_equal(hec_record_insert_sql(&hec_records[kind], sql, sizeof sql), HEC_OK);
    assert_true(hec_record_fits(&hec_records[kind], data, ORIGIN));
    sqlite3_stmt *s = prepare(sql);
    assert_int_equal(hec_record_bind(&hec_records[kind], s, data, ORIGIN), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
}

/* The first row into a struct; its error. */
static int get(enum hec_record_kind kind, void *data, struct hec_why *why) {
    char sql[1024];
    assert_int_equal(hec_record_select_sql(&hec_records[kind], HEC_SCHEMA_VERSION, sql, sizeof sql), HEC_OK);
    sqlite3_stmt *s = prepare(sql);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int err = hec_record_read(&hec_records[kind], s, data, why);
    sqlite3_finalize(s);
    return err;
}

/* The columns of the first row, with a bar between them; - for NULL. */
static void row_is(const char *sql, const char *expected) {
    char text[1024] = "";
    sqlite3_stmt *s = prepare(sql);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    for (int i = 0; i < sqlite3_column_count(s); i++) {
        const char *column = (const char *)sqlite3_column_text(s, i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "|" : "", column ? column : "-");
    }
    sqlite3_finalize(s);
    assert_string_equal(text, expected);
}

#define DEVICE                                                                                                         \
    "SELECT device_index, uuid, name, pci_bus_id, driver, architecture, cuda_major, cuda_minor, memory_kib, "          \
    "power_limit_mw, power_limit_default_mw, pcie_kib_per_s, mig_enabled, simulated, visible, has_energy_counter, "    \
    "has_power_history, has_gpm, vendor FROM device"
#define PROCESS "SELECT pid, parent, start_ns, end_ns, name, cpu_ms, rss_max_kib, read_kib, written_kib FROM process"
#define GPU_PROCESS                                                                                                    \
    "SELECT device_index, pid, first_ns, last_ns, memory_max_kib, sm_util_permille, visible FROM gpu_process"
#define TRACER                                                                                                         \
    "SELECT pid, mode, cupti_version, driver_version, library, why, holder, first_ns, last_ns, traced_ns, holder_ns, " \
    "windows, records, dropped, lost, bad, self_ns, estimate_ppm, budget_ppm FROM tracer"
#define TRACK "SELECT id, kind, pid, rank, device_index, context, stream, name FROM track"
#define KERNEL                                                                                                         \
    "SELECT id, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared_bytes, "             \
    "dynamic_shared_bytes FROM kernel"
#define FRAME "SELECT id, parent, file, function, line FROM frame"

/* A struct goes to its row, and comes back less the origin. */
#define COMES_BACK(kind, type, value, relative, sql, row)                                                              \
    do {                                                                                                               \
        type in = value, expected = relative, out;                                                                     \
        put(kind, &in);                                                                                                \
        row_is(sql, row);                                                                                              \
        memset(&out, 0, sizeof out);                                                                                   \
        assert_int_equal(get(kind, &out, NULL), HEC_OK);                                                               \
        assert_memory_equal(&out, &expected, sizeof out);                                                              \
    } while (0)
#define OF(...) __VA_ARGS__

TEST(every_column) {
    COMES_BACK(HEC_RECORD_PROCESS, struct hec_process, OF({1, 2, 1003, 1004, "n", 5, 6, 7, 8}),
               OF({1, 2, 3, 4, "n", 5, 6, 7, 8}), PROCESS, "1|2|3|4|n|5|6|7|8");
    COMES_BACK(HEC_RECORD_GPU_PROCESS, struct hec_gpu_process,
               OF({1, 2, 1003, 1004, .memory_max_kib = 5, .sm_util_permille = 6, .visible = 7}),
               OF({1, 2, 3, 4, .memory_max_kib = 5, .sm_util_permille = 6, .visible = 7}), GPU_PROCESS,
               "1|2|3|4|5|6|7");
    COMES_BACK(HEC_RECORD_TRACER, struct hec_tracer,
               OF({1, 2, 3, 4, "l", "w", "h", 1005, 1006, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}),
               OF({1, 2, 3, 4, "l", "w", "h", 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}), TRACER,
               "1|full|3|4|l|w|h|5|6|7|8|9|10|11|12|13|14|15|16");
    COMES_BACK(HEC_RECORD_TRACK, struct hec_track, OF({1, HEC_TRACK_STREAM, 2, 3, 4, 5, 6, "n"}),
               OF({1, HEC_TRACK_STREAM, 2, 3, 4, 5, 6, "n"}), TRACK, "1|stream|2|3|4|5|6|n");
    COMES_BACK(HEC_RECORD_KERNEL, struct hec_kernel, OF({1, 2, {3, 4, 5}, {6, 7, 8}, 9, 10, 11}),
               OF({1, 2, {3, 4, 5}, {6, 7, 8}, 9, 10, 11}), KERNEL, "1|2|3|4|5|6|7|8|9|10|11");
    COMES_BACK(HEC_RECORD_FRAME, struct hec_frame, OF({1, 2, 3, 4, 5}), OF({1, 2, 3, 4, 5}), FRAME, "1|2|3|4|5");
    struct hec_device d = {.index = 1,
                           .vendor = "v",
                           .uuid = "u",
                           .name = "n",
                           .pci_bus_id = "p",
                           .driver = "d",
                           .architecture = "a",
                           .cuda_major = 2,
                           .cuda_minor = 3,
                           .memory_kib = 4,
                           .power_limit_mw = 5,
                           .power_limit_default_mw = 6,
                           .pcie_kib_per_s = 7,
                           .mig_enabled = 8,
                           .simulated = 9,
                           .visible = 10,
                           .has_energy_counter = 11,
                           .has_power_history = 12,
                           .has_gpm = 13},
                      out = {0};
    put(HEC_RECORD_DEVICE, &d);
    row_is(DEVICE, "1|u|n|p|d|a|2|3|4|5|6|7|8|9|10|11|12|13|v");
    assert_int_equal(get(HEC_RECORD_DEVICE, &out, NULL), HEC_OK);
    assert_memory_equal(&out, &d, sizeof d);
}

/* What is not known is NULL, and -1 again. */
TEST(what_is_not_known) {
    COMES_BACK(HEC_RECORD_PROCESS, struct hec_process,
               OF({-1, -2, -3, -4, "", -5, INT64_MIN, INT64_MAX, KNOWN_MAX + 1}),
               OF({-1, -2, -1003, -1, "", -1, -1, -1, -1}), PROCESS, "-1|-2|-1003|-|-|-|-|-|-");
    COMES_BACK(HEC_RECORD_GPU_PROCESS, struct hec_gpu_process,
               OF({0, 0, -3, -4, .memory_max_kib = -2, .sm_util_permille = -2, .visible = -1}),
               OF({0, 0, -1003, -1004, .memory_max_kib = -1, .sm_util_permille = -1, .visible = -1}), GPU_PROCESS,
               "0|0|-1003|-1004|-|-|-1");
    COMES_BACK(HEC_RECORD_TRACK, struct hec_track, OF({0, HEC_TRACK_PROCESS, -1, -2, -3, UINT32_MAX, -4, ""}),
               OF({0, HEC_TRACK_PROCESS, -1, -1, -1, UINT32_MAX, -4, ""}), TRACK, "0|process|-1|-|-|4294967295|-4|-");
    COMES_BACK(HEC_RECORD_TRACER, struct hec_tracer,
               OF({1, 0, -1, -2, "", "", "", 3, -3, -4, .estimate_ppm = -5, .budget_ppm = 0}),
               OF({1, 0, -1, -1, "", "", "", 0, -1, -4, .estimate_ppm = -1, .budget_ppm = 0}), TRACER,
               "1|off|-|-|-|-|-|0|-|-4|0|0|0|0|0|0|0|-|0"); /* begun before the run: 0, and not "not yet" */
    /* a text without an end is cut */
    struct hec_track in = {2, HEC_TRACK_THREAD, 0, 0, 0, 0, 0, ""}, out;
    memset(in.name, 'x', sizeof in.name);
    run("DELETE FROM track");
    put(HEC_RECORD_TRACK, &in);
    assert_int_equal(get(HEC_RECORD_TRACK, &out, NULL), HEC_OK);
    assert_int_equal(strlen(out.name), sizeof out.name - 1);
    assert_int_equal(out.kind, HEC_TRACK_THREAD);
}

#define FITS(expected, kind, type, origin, ...)                                                                        \
    assert_int_equal(hec_record_fits(&hec_records[kind], &(type){__VA_ARGS__}, origin), expected)

TEST(what_fits) {
    FITS(true, HEC_RECORD_PROCESS, struct hec_process, 0, .start_ns = TIME_MAX, .end_ns = TIME_MAX);
    FITS(false, HEC_RECORD_PROCESS, struct hec_process, 0, .start_ns = TIME_MAX + 1);
    FITS(true, HEC_RECORD_PROCESS, struct hec_process, 0, .start_ns = -TIME_MAX);
    FITS(false, HEC_RECORD_PROCESS, struct hec_process, 0, .start_ns = -TIME_MAX - 1);
    FITS(false, HEC_RECORD_PROCESS, struct hec_process, 0, .end_ns = TIME_MAX + 1);
    FITS(true, HEC_RECORD_PROCESS, struct hec_process, 7, .start_ns = TIME_MAX + 7, .end_ns = -1);
    FITS(false, HEC_RECORD_PROCESS, struct hec_process, -7, .start_ns = TIME_MAX - 6);
    FITS(false, HEC_RECORD_PROCESS, struct hec_process, 7, .start_ns = INT64_MIN);
    FITS(true, HEC_RECORD_PROCESS, struct hec_process, 0, .cpu_ms = INT64_MAX, .pid = INT_MIN, .parent = INT_MAX);
    FITS(true, HEC_RECORD_GPU_PROCESS, struct hec_gpu_process, 0, .device = HEC_DEVICE_MAX - 1);
    FITS(false, HEC_RECORD_GPU_PROCESS, struct hec_gpu_process, 0, .device = HEC_DEVICE_MAX);
    FITS(false, HEC_RECORD_GPU_PROCESS, struct hec_gpu_process, 0, .device = -1);
    FITS(true, HEC_RECORD_TRACK, struct hec_track, 0, .device = -1, .kind = HEC_TRACK_STREAM);
    FITS(true, HEC_RECORD_TRACK, struct hec_track, 0, .device = HEC_DEVICE_MAX - 1);
    FITS(false, HEC_RECORD_TRACK, struct hec_track, 0, .device = HEC_DEVICE_MAX);
    FITS(false, HEC_RECORD_TRACK, struct hec_track, 0, .kind = HEC_TRACK_KIND_COUNT);
    FITS(true, HEC_RECORD_TRACER, struct hec_tracer, 0, .mode = 3);
    FITS(false, HEC_RECORD_TRACER, struct hec_tracer, 0, .mode = 4);
    FITS(false, HEC_RECORD_TRACER, struct hec_tracer, 0, .mode = -1);
    FITS(true, HEC_RECORD_FRAME, struct hec_frame, 0, .id = UINT32_MAX, .line = INT_MIN);
}

/* One value of a good row is changed: still good, or refused with its column. */
TEST(what_is_read) {
    static const struct {
        enum hec_record_kind kind;
        const char *change; /* to good values; then to bad ones, of the column */
        const char *column, *bad[6];
    } cases[] = {
        {HEC_RECORD_PROCESS,
         "pid=2147483647, parent=-2147483648",
         "pid",
         {"2147483648", "'x'", "1.5", "NULL", "x'00'"}},
        {HEC_RECORD_PROCESS,
         "start_ns=1152921504606846976",
         "start_ns",
         {"1152921504606846977", "-1152921504606846977", "NULL"}},
        {HEC_RECORD_PROCESS,
         "start_ns=-1152921504606846976, end_ns=NULL",
         "end_ns",
         {"-1", "1152921504606846977", "'x'"}},
        {HEC_RECORD_PROCESS,
         "cpu_ms=4503599627370496, read_kib=NULL",
         "cpu_ms",
         {"4503599627370497", "-1", "'x'", "0.5"}},
        {HEC_RECORD_PROCESS, "name=NULL", "name", {"x'41'", "1", "'a'||char(0)", "hex(zeroblob(32))"}},
        {HEC_RECORD_PROCESS, "name=hex(zeroblob(31))||'x'", "name", {"hex(zeroblob(31))||'xy'"}},
        {HEC_RECORD_DEVICE, "device_index=63, has_gpm=-2147483648", "device_index", {"64", "-1"}},
        {HEC_RECORD_DEVICE, "cuda_major=2147483647", "cuda_major", {"2147483648", "-1", "'x'"}},
        {HEC_RECORD_DEVICE, "simulated=-5", "simulated", {"NULL", "-2147483649"}},
        {HEC_RECORD_TRACK, "device_index=NULL, rank=NULL", "device_index", {"64", "-1", "'x'"}},
        {HEC_RECORD_TRACK, "device_index=63", "context", {"-1", "4294967296", "NULL", "'x'"}},
        {HEC_RECORD_TRACK, "kind='thread'", "kind", {"'Thread'", "''", "1", "x'746872656164'", "'threads'"}},
        {HEC_RECORD_TRACK, "stream=-9223372036854775807", "stream", {"NULL", "'x'"}},
        {HEC_RECORD_TRACER, "mode='graph'", "mode", {"'fast'", "NULL"}},
        {HEC_RECORD_FRAME, "id=4294967295", "line", {"2147483648", "NULL"}},
    };
    static const char *const inserts[HEC_RECORD_COUNT] = {
        [HEC_RECORD_PROCESS] = "INSERT INTO process VALUES (1, 2, 3, 4, 'n', 5, 6, 7, 8)",
        [HEC_RECORD_DEVICE] =
            "INSERT INTO device VALUES (1, 'u', 'n', 'p', 'd', 'a', 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1, 1, 'v')",
        [HEC_RECORD_TRACK] = "INSERT INTO track VALUES (1, 'stream', 2, 3, 4, 5, 6, 'n')",
        [HEC_RECORD_TRACER] =
            "INSERT INTO tracer VALUES (1, 'full', 3, 4, 'l', 'w', 'h', 5, 6, 7, 8, 9, 1, 1, 1, 1, 1, 1, 1)",
        [HEC_RECORD_FRAME] = "INSERT INTO frame VALUES (1, 2, 3, 4, 5)",
    };
    run("PRAGMA ignore_check_constraints=ON");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *table = hec_records[cases[i].kind].table;
        union {
            struct hec_process process;
            struct hec_device device;
            struct hec_track track;
            struct hec_tracer tracer;
            struct hec_frame frame;
        } data;
        struct hec_why why;
        char sql[400], sentence[128];
        snprintf(sql, sizeof sql, "DROP TABLE %s", table); /* one without constraints: as a file may hold anything */
        run(sql);
        for (const struct hec_schema_object *o = hec_schema_objects(); o->name; o++)
            if (strcmp(o->name, table) == 0 && hec_schema_has(HEC_SCHEMA_VERSION, o)) {
                char plain[2000];
                size_t length = 0;
                for (const char *c = o->sql; *c; c++)
                    if (strncmp(c, " NOT NULL", 9) == 0)
                        c += 8;
                    else if (strncmp(c, " INTEGER PRIMARY KEY", 20) == 0)
                        c += 19;
                    else if (strncmp(c, ",\n  PRIMARY KEY", 15) == 0)
                        c = strchr(c + 15, ')');
                    else if (strncmp(c, " WITHOUT ROWID", 14) == 0)
                        break;
                    else if (strncmp(c, " INTEGER", 8) == 0)
                        c += 7;
                    else if (strncmp(c, " TEXT", 5) == 0)
                        c += 4;
                    else
                        plain[length++] = *c;
                plain[length] = '\0';
                run(plain);
            }
        run(inserts[cases[i].kind]);
        snprintf(sql, sizeof sql, "UPDATE %s SET %s", table, cases[i].change);
        run(sql);
        if (get(cases[i].kind, &data, &why) != HEC_OK)
            fail_msg("%s: %s", cases[i].change, why.text);
        for (int k = 0; k < 6 && cases[i].bad[k]; k++) {
            snprintf(sql, sizeof sql, "UPDATE %s SET %s=%s", table, cases[i].column, cases[i].bad[k]);
            run(sql);
            if (get(cases[i].kind, &data, &why) != HEC_ERR_CORRUPT)
                fail_msg("%s is taken", sql);
            snprintf(sentence, sizeof sentence, "the column %s of the table %s holds something impossible",
                     cases[i].column, table);
            assert_string_equal(why.text, sentence);
        }
    }
}

TEST(statements) {
    static const char insert[] =
        "INSERT OR REPLACE INTO frame (id, parent, file, function, line) VALUES (?, ?, ?, ?, ?)";
    static const char select[] = "SELECT id, parent, file, function, line FROM frame";
    char sql[1024];
    const struct hec_record *frame = &hec_records[HEC_RECORD_FRAME];
    assert_int_equal(hec_record_insert_sql(frame, sql, sizeof insert), HEC_OK);
    assert_string_equal(sql, insert);
    assert_int_equal(hec_record_insert_sql(frame, sql, sizeof insert - 1), HEC_ERR_LIMIT);
    for (unsigned version = 1; version <= HEC_SCHEMA_VERSION; version++) {
        assert_int_equal(hec_record_select_sql(frame, version, sql, sizeof select), HEC_OK);
        assert_string_equal(sql, select);
    }
    assert_int_equal(hec_record_select_sql(frame, 1, sql, sizeof select - 1), HEC_ERR_LIMIT);
    assert_int_equal(hec_record_select_sql(&hec_records[HEC_RECORD_DEVICE], 2, sql, sizeof sql), HEC_OK);
    assert_non_null(strstr(sql, ", has_gpm, vendor FROM device"));
    assert_int_equal(hec_record_select_sql(&hec_records[HEC_RECORD_DEVICE], 1, sql, sizeof sql), HEC_OK);
    assert_non_null(
        strstr(sql, ", has_gpm, CASE WHEN name>='AMD' AND name<'AME' THEN 'amd' ELSE 'nvidia' END FROM device"));
    static const struct {
        const char *table, *order;
        bool sorted;
    } orders[HEC_RECORD_COUNT] = {[HEC_RECORD_DEVICE] = {"device", "device_index", false},
                                  [HEC_RECORD_PROCESS] = {"process", "start_ns, pid", true},
                                  [HEC_RECORD_GPU_PROCESS] = {"gpu_process", "first_ns, device_index, pid", true},
                                  [HEC_RECORD_TRACER] = {"tracer", "pid", false},
                                  [HEC_RECORD_TRACK] = {"track", "id", false},
                                  [HEC_RECORD_KERNEL] = {"kernel", "id", false},
                                  [HEC_RECORD_FRAME] = {"frame", "id", false}};
    for (int i = 0; i < HEC_RECORD_COUNT; i++) {
        assert_string_equal(hec_records[i].table, orders[i].table);
        assert_string_equal(hec_records[i].order, orders[i].order);
        assert_int_equal(hec_records[i].sorted, orders[i].sorted);
    }
}
