/* Exports of Nsight Systems, of several versions and in various states of completeness. */
#include "tests/unit/import_fixture.h"

#include "nsys_schema.h"

#include <sqlite3.h>
#include <sys/stat.h>

#define PID 1234
#define GLOBAL(pid, tid) (0x0100000000000000LL | (long long)(pid) << 24 | (tid))

static sqlite3 *db;

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *sql = sqlite3_vmprintf(format, args);
    va_end(args);
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_free(sql);
}

static void make(const char *schema, const char *more) {
    const char *path = in_folder("t.sqlite");
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run("%s", schema);
    run("%s", more);
}

static int import_database(void) {
    sqlite3_close(db);
    db = NULL;
    return import_file(in_folder("t.sqlite"));
}

static void call(long long start, long long end, int pid, int tid, int correlation, int name) {
    run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%lld,%lld,0,%lld,%d,%d,0,NULL)", start, end, GLOBAL(pid, tid),
        correlation, name);
}

static void kernel(long long start, long long end, int pid, int device, int correlation, const char *extra) {
    run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start,end,deviceId,contextId,streamId,correlationId,globalPid,"
        "demangledName,shortName,registersPerThread,gridX,gridY,gridZ,blockX,blockY,blockZ,staticSharedMemory,"
        "dynamicSharedMemory%s) VALUES (%lld,%lld,%d,1,7,%d,%lld,1,2,32,10,2,1,256,1,1,1024,4096%s)",
        *extra ? ",localMemoryPerThread,localMemoryTotal,gridId,mangledName,graphNodeId" : "", start, end, device,
        correlation, GLOBAL(pid, 0), extra);
}

static void check_kernel(const struct hec_activity *a) {
    const struct hec_kernel *k = &kept.kernel[a->name - 1];
    assert_string_equal(kept_name(k->name), "gemm(float*)");
    assert_int_equal(k->grid[0], 10);
    assert_int_equal(k->grid[1], 2);
    assert_int_equal(k->block[0], 256);
    assert_int_equal(k->registers, 32);
    assert_int_equal(k->static_shared_bytes, 1024);
    assert_int_equal(k->dynamic_shared_bytes, 4096);
}

TEST(test_2021) {
    make(nsys_2021, nsys_strings);
    run("INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0,'Tesla V100-SXM2-16GB',7,0,16945512448,80)");
    call(1000, 1500, PID, 1240, 5, 4);
    kernel(2000, 5000, PID, 0, 5, "");
    call(5100, 5200, PID, 1240, 6, 5);
    run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (5300,5900,0,1,7,6,%lld,1048576,1,NULL,0,2)", GLOBAL(PID, 0));
    run("INSERT INTO NVTX_EVENTS (start,end,eventType,text,globalTid) VALUES (900,6000,59,'forward',%lld)",
        GLOBAL(PID, 1240));
    run("INSERT INTO ThreadNames VALUES (8,NULL,%lld)", GLOBAL(PID, 1240));
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(kept.activities, 3); /* both calls are part of what they caused */
    const struct hec_activity *a = kept_nth(HEC_ACTIVITY_KERNEL, 0);
    check_kernel(a);
    assert_int_equal(a->start_ns, 1100); /* from the range on */
    assert_int_equal(a->end_ns, 4100);
    assert_int_equal(a->launch_ns, 100);
    assert_int_equal(a->launch_end_ns, 600);
    assert_int_equal(kept_track(a->launch_track)->stream, 1240);
    assert_string_equal(kept_track(a->launch_track)->name, "worker");
    assert_int_equal(kept_track(a->track)->pid, PID);
    a = kept_nth(HEC_ACTIVITY_COPY, 0);
    assert_int_equal(a->from, HEC_MEMORY_PAGEABLE);
    assert_int_equal(a->to, HEC_MEMORY_DEVICE);
    assert_true(a->amount == 1048576);
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_RANGE, 0)->name), "forward");
    assert_string_equal(kept.device[0].name, "Tesla V100-SXM2-16GB");
    assert_int_equal(kept.device[0].cuda_major, 7);
    assert_string_equal(kept.device[0].vendor, "nvidia");
    assert_int_equal(kept.device[0].memory_kib, 16945512448 / 1024);
    assert_string_equal(kept_meta("imported"), "nsys");
    assert_null(kept_meta("started"));
    assert_int_equal(imported.stats.kind, HEC_IMPORT_NSYS);
    assert_int_equal(imported.stats.events, 5);
}

static void fill_2022(void) {
    run("INSERT INTO TARGET_INFO_GPU (vmId,id,name,busLocation,totalMemory,uuid) VALUES (1,0,'NVIDIA A100-SXM4-80GB',"
        "'0000:0f:00.0',85031714816,'GPU-0'),(1,1,'NVIDIA A100-SXM4-80GB','0000:10:00.0',85031714816,'GPU-1')");
    run("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000,'','')");
    long long thread = GLOBAL(PID, PID), process = GLOBAL(PID, 0);
    call(1000, 1500, PID, PID, 5, 4);
    kernel(2000, 5000, PID, 0, 5, ",0,0,0,3,NULL");
    call(5100, 5200, PID, PID, 6, 10);
    kernel(5300, 5400, PID, 0, 6, ",0,0,0,3,12345");
    run("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (6000,7000,0,1,7,8,%lld,3,4)", process);
    run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start,end,deviceId,contextId,streamId,correlationId,globalPid,bytes,copyKind,"
        "srcKind,dstKind,srcDeviceId,dstDeviceId) VALUES (7100,7200,0,1,7,0,%lld,64,10,2,2,0,1),(7300,7400,0,1,7,0,%lld,64,2,"
        "2,1,NULL,NULL),(7500,7600,0,1,7,0,%lld,64,1,7,7,NULL,NULL),(7700,7800,0,1,7,0,%lld,64,8,2,6,0,0)",
        process, process, process, process);
    run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (8000,8100,0,1,7,0,%lld,0,4096,NULL,2)", process);
    call(9000, 9900, PID, PID, 9, 6);
    run("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start,end,deviceId,contextId,streamId,correlationId,globalPid,"
        "syncType,eventId) VALUES (9100,9800,0,1,7,9,%lld,3,0)",
        process);
    call(500, 600, PID, PID, 2, 11);
    run("INSERT INTO NVTX_EVENTS (start,end,eventType,textId,globalTid) VALUES (400,9999,59,9,%lld),(450,470,60,7,%lld),"
        "(460,NULL,34,7,%lld),(461,NULL,59,7,%lld),(0,NULL,75,7,%lld)",
        thread, thread, thread, thread, thread);
}

static void check_2022(void) {
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 2);
    check_kernel(kept_nth(HEC_ACTIVITY_KERNEL, 0));
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 0)->flags, 0);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 1)->flags, HEC_ACTIVITY_IN_GRAPH);
    const struct hec_activity *a = kept_nth(HEC_ACTIVITY_GRAPH, 0);
    assert_true(isnan(a->amount) && a->launch_ns == HEC_TIME_UNKNOWN && a->end_ns - a->start_ns == 1000);
    a = kept_nth(HEC_ACTIVITY_COPY, 0);
    assert_int_equal(a->flags, HEC_ACTIVITY_PEER);
    a = kept_nth(HEC_ACTIVITY_COPY, 1);
    assert_true(a->from == HEC_MEMORY_DEVICE && a->to == HEC_MEMORY_PINNED && a->flags == 0);
    a = kept_nth(HEC_ACTIVITY_COPY, 2); /* the kinds are unknown: the direction is not */
    assert_true(a->from == HEC_MEMORY_HOST && a->to == HEC_MEMORY_DEVICE);
    a = kept_nth(HEC_ACTIVITY_COPY, 3);
    assert_true(a->from == HEC_MEMORY_DEVICE && a->to == HEC_MEMORY_MANAGED && a->flags == 0);
    a = kept_nth(HEC_ACTIVITY_MEMSET, 0);
    assert_true(a->to == HEC_MEMORY_DEVICE && a->amount == 4096);
    a = kept_nth(HEC_ACTIVITY_SYNC, 0);
    assert_int_equal(a->detail, HEC_SYNC_STREAM);
    assert_int_equal(kept_track(a->track)->kind, HEC_TRACK_THREAD);
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 2); /* the launches are gone */
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_API, 0)->name), "cudaStreamSynchronize");
    assert_int_equal(kept_nth(HEC_ACTIVITY_API, 0)->detail, HEC_API_SYNC);
    assert_int_equal(kept_nth(HEC_ACTIVITY_API, 1)->detail, HEC_API_ALLOC);
    a = kept_nth(HEC_ACTIVITY_STEP, 0);
    assert_int_equal(a->detail, HEC_STEP_ANNOTATED);
    assert_int_equal(a->start_ns, 0);
    assert_int_equal(a->end_ns, 9599);
    assert_int_equal(kept_count(HEC_ACTIVITY_RANGE), 1);
    assert_int_equal(imported.stats.skipped, 3); /* a mark, an open range, a domain */
    assert_int_equal(imported.stats.bad, 0);
    assert_string_equal(kept_meta("started"), "2023-11-14T22:13:20.000Z");
    assert_int_equal(imported.stats.origin_ns, INT64_C(1700000000000000400));
    assert_string_equal(kept.device[0].name, "NVIDIA A100-SXM4-80GB");
}

TEST(test_2022) {
    make(nsys_2022, nsys_strings);
    fill_2022();
    assert_int_equal(import_database(), HEC_OK);
    check_2022();
    assert_int_equal(kept.devices, 1);
    assert_string_equal(kept.device[0].uuid, "GPU-0");
    assert_string_equal(kept.device[0].pci_bus_id, "0000:0f:00.0");
    assert_int_equal(kept.device[0].cuda_major, -1);
}

/* Two processes, each with its GPU as CUDA's device 0, and with the same correlation ids. */
TEST(test_2025) {
    make(nsys_2022, nsys_strings);
    run("%s", nsys_2025);
    fill_2022();
    run("UPDATE TARGET_INFO_GPU SET computeMajor=8, computeMinor=0");
    run("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0,0,%d,'GPU-0',108),(1,0,%d,'GPU-1',108)", PID, PID + 1);
    run("INSERT INTO PROCESSES VALUES (%lld,%d,'python3'),(%lld,%d,'python3')", GLOBAL(PID, 0), PID, GLOBAL(PID + 1, 0),
        PID + 1);
    assert_int_equal(import_database(), HEC_OK);
    check_2022();
    assert_int_equal(kept.device[0].cuda_major, 8);
    assert_string_equal(kept_track(kept_nth(HEC_ACTIVITY_STEP, 0)->track)->name, "python3");
    make(nsys_2022, nsys_strings);
    run("%s", nsys_2025);
    run("INSERT INTO TARGET_INFO_GPU (vmId,id,name,uuid) VALUES (1,0,'A','GPU-0'),(1,1,'B','GPU-1')");
    run("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0,0,%d,'',108),(1,0,%d,'',108)", PID, PID + 1);
    call(1000, 1100, PID, PID, 5, 4);
    call(2000, 2100, PID + 1, PID + 1, 5, 4);
    kernel(3000, 3100, PID, 0, 5, ",0,0,0,3,NULL");
    kernel(3000, 3200, PID + 1, 0, 5, ",0,0,0,3,NULL");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(kept.devices, 2);
    const struct hec_activity *first = kept_nth(HEC_ACTIVITY_KERNEL, 0), *second = kept_nth(HEC_ACTIVITY_KERNEL, 1);
    assert_int_equal(first->launch_ns, 0);
    assert_int_equal(second->launch_ns, 1000);
    assert_string_equal(kept.device[kept_track(second->track)->device].uuid, "GPU-1");
}

/* Tables are made only when there is something in them; columns come and go. */
TEST(test_what_is_missing) {
    make("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)", "");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(kept.activities, 0);
    make("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
         "shortName TEXT)",
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10,20,0,7,'by text')");
    assert_int_equal(import_database(), HEC_OK);
    assert_string_equal(kept_name(kept.kernel[kept_nth(HEC_ACTIVITY_KERNEL, 0)->name - 1].name), "by text");
    assert_int_equal(kept.kernel[0].registers, -1);
    make("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)",
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10,20)");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(imported.stats.bad, 1);
    make("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, text TEXT)",
         "INSERT INTO NVTX_EVENTS VALUES (10,20,16777217,'range'),(10,20,16777217,'Iteration 7')");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(kept_count(HEC_ACTIVITY_RANGE), 1);
    assert_int_equal(kept_count(HEC_ACTIVITY_STEP), 1);
}

TEST(test_bad_rows) {
    make(nsys_2022, "");
    run("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
    run("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, "
        "demangledName, gridX)");
    run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (NULL,1,0,1,7,1,1,1,1),('x',1,0,1,7,1,1,1,1),(5,NULL,0,1,7,1,1,1,1),"
        "(5,4,0,1,7,1,1,1,1),(5,9223372036854775807,0,1,7,1,1,1,1),(-5,4,0,1,7,1,1,1,1),(5,6,-1,1,7,1,1,1,1),"
        "(5,6,0,1,NULL,1,1,1,1),(5,6,NULL,1,7,1,1,1,1),(0,0,0,0,0,0,0,0,0)");
    run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5,6,0,x'00ff',7,-1,1e300,x'41',-9223372036854775807)");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(imported.stats.bad, 10);
    assert_int_equal(kept.activities, 1);
}

TEST(test_foreign_databases) {
    make("CREATE TABLE t (a)", "");
    assert_int_equal(import_database(), HEC_ERR_CORRUPT);
    make(
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM r) SELECT x "
        "AS start, x AS end FROM r",
        "");
    assert_int_equal(import_database(), HEC_ERR_CORRUPT); /* a view is no table, and is never run */
    static const char *const keyless[] = {"id INTEGER, value TEXT", "id INTEGER, value TEXT, PRIMARY KEY (id, value)",
                                          "id TEXT PRIMARY KEY, value TEXT"};
    for (int i = 0; i < 3; i++) { /* names could not be looked up, or rows would multiply */
        make("", "");
        run("CREATE TABLE StringIds (%s)", keyless[i]);
        assert_int_equal(import_database(), HEC_ERR_CORRUPT);
        assert_non_null(strstr(imported.why.text, "primary key"));
    }
    for (int stored = 0; stored < 2; stored++) { /* an expression of the file's would be computed for each name */
        make("", "");
        run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT GENERATED ALWAYS AS (hex(id)) %s)",
            stored ? "STORED" : "VIRTUAL");
        assert_int_equal(import_database(), HEC_ERR_CORRUPT);
        assert_non_null(strstr(imported.why.text, "of its own"));
    }
    make("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", "PRAGMA application_id=1212498770");
    assert_int_equal(import_database(), HEC_ERR_CORRUPT);
    assert_non_null(strstr(imported.why.text, "hec report"));
}

/* Functions and collations that only the writer has: whatever computes one of them fails, and what reads the rows alone does not. */
static void evil(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count;
    (void)values;
    sqlite3_result_int(context, 1);
}

static int evil_order(void *context, int a_length, const void *a, int b_length, const void *b) {
    (void)context;
    int order = memcmp(a, b, (size_t)(a_length < b_length ? a_length : b_length));
    return order ? order : a_length - b_length;
}

TEST(test_expressions_of_the_file_are_not_computed) {
    make(nsys_2022, nsys_strings);
    sqlite3_create_function(db, "evil", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, evil, NULL,
                            NULL);
    sqlite3_create_collation(db, "evil", SQLITE_UTF8, NULL, evil_order);
    run("CREATE INDEX by_expression ON CUPTI_ACTIVITY_KIND_KERNEL (evil(start))");
    run("CREATE INDEX partial ON CUPTI_ACTIVITY_KIND_KERNEL (start) WHERE evil(start)");
    run("CREATE INDEX ordered ON StringIds (value COLLATE evil)");
    run("CREATE TABLE checked (a CHECK (evil(a)), b DEFAULT (evil()), c TEXT COLLATE evil, d AS (evil(a)))");
    run("CREATE TABLE later (id INTEGER PRIMARY KEY)");
    run("CREATE VIEW seen AS SELECT evil(start) FROM CUPTI_ACTIVITY_KIND_KERNEL");
    run("CREATE TRIGGER told AFTER INSERT ON StringIds BEGIN SELECT evil(new.id); END");
    run("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN more AS (evil(start))");
    run("BEGIN");
    for (int i = 0; i < 100; i++)
        kernel(10 * i + 10, 10 * i + 15, PID, 0, i + 1, ",0,0,0,3,NULL");
    run("COMMIT");
    int err = import_database();
    if (err != HEC_OK)
        fail_msg("%s", imported.why.text);
    assert_int_equal(kept.activities, 100);
}

/* A virtual table, which is a program that runs on what the file holds, under the name of a table; with pages, as tables have them, too. */
TEST(test_virtual_tables_are_not_run) {
    for (int forged = 0; forged < 2; forged++) {
        make("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", "");
        if (sqlite3_exec(
                db,
                "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start, \"end\", deviceId, contextId, streamId, "
                "correlationId, globalPid, shortName)",
                NULL, NULL, NULL) != SQLITE_OK)
            skip(); /* built without */
        run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 1, 7, 1, 0, 1)");
        if (forged)
            run("PRAGMA writable_schema=ON; UPDATE sqlite_master SET rootpage=2 WHERE name='CUPTI_ACTIVITY_KIND_KERNEL'");
        int err = import_database();
        assert_int_equal(kept.activities, 0);
        if (err != (forged ? HEC_ERR_CORRUPT : HEC_OK)) /* it is no table, or its rows cannot be read */
            fail_msg("%s", imported.why.text);
    }
}

TEST(test_damaged) {
    make(nsys_2022, nsys_strings);
    run("BEGIN");
    for (int i = 0; i < 3000; i++)
        kernel(10 * i + 10, 10 * i + 15, PID, 0, i + 1, ",0,0,0,3,NULL");
    run("COMMIT");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(kept.activities, 3000);
    const char *path = in_folder("t.sqlite");
    static unsigned char bytes[4 << 20];
    size_t length = file_read(path, bytes, sizeof bytes);
    for (size_t cut = 100; cut < length; cut += length / 13 / 512 * 512) {
        int err = import_file(folder_write("t.sqlite", bytes, cut));
        assert_int_equal(err, HEC_ERR_CORRUPT);
    }
    memset(bytes + length / 2, 0xff, 4096);
    assert_int_equal(import_file(folder_write("t.sqlite", bytes, length)), HEC_ERR_CORRUPT);
    assert_null(kept_meta("complete"));
}

/* SQLite would open it to see whether it is a journal, and wait for somebody to write into it. */
TEST(test_fifo_beside) {
    alarm(100);
    make(nsys_2022, nsys_strings);
    sqlite3_close(db);
    char name[300];
    const char *path = in_folder("t.sqlite"), *linked = in_folder("linked.sqlite");
    snprintf(name, sizeof name, "%s-journal", path);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(import_file(path), HEC_ERR_USAGE);
    assert_non_null(strstr(imported.why.text, "t.sqlite-journal is not a regular file"));
    assert_int_equal(symlink(path, linked), 0);
    import_file(linked); /* imported, or refused */
    unlink(linked);
    unlink(name);
    assert_int_equal(import_file(path), HEC_OK);
    alarm(0);
}

/* Every table that has rows without a time or a place: each is bad, and none is kept. */
TEST(test_bad_rows_of_each_table) {
    static const char *const tables[] = {"KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"};
    make(nsys_2022, nsys_strings);
    for (int i = 0; i < 4; i++) {
        run("DROP TABLE CUPTI_ACTIVITY_KIND_%s", tables[i]);
        run("CREATE TABLE CUPTI_ACTIVITY_KIND_%s (start, end, deviceId, streamId)", tables[i]);
        run("INSERT INTO CUPTI_ACTIVITY_KIND_%s VALUES (NULL,2,0,7),(1,NULL,0,7),(1,2,-1,7),(1,2,0,NULL),(3,4,0,7)",
            tables[i]);
    }
    run("DROP TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION; CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, syncType);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (NULL,2,1),(1,NULL,1),(1,2,1),(1,2,2),(1,2,4),(1,2,5),(1,2,-1)");
    run("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, nameId);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (NULL,2,3,4),(1,NULL,3,4),(1,2,NULL,4),(1,2,3,4),(1,2,3,NULL)");
    run("DROP TABLE NVTX_EVENTS; CREATE TABLE NVTX_EVENTS (start, end, eventType, textId, globalTid);"
        "INSERT INTO NVTX_EVENTS VALUES (1,2,59,7,NULL),(NULL,2,60,7,3),(1,2,58,7,3),"
        "(1,2,61,7,3),(1,2,60,NULL,3)");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(imported.stats.bad, 4 * 4 + 2 + 3 + 2);
    assert_int_equal(imported.stats.skipped, 3);
    assert_int_equal(imported.stats.kept, 4 + 5 + 2);
    assert_int_equal(imported.stats.on_device, 4);
    assert_int_equal(imported.stats.events, 4 * 5 + 7 + 5 + 5);
    static const int types[] = {HEC_SYNC_EVENT, HEC_SYNC_STREAM_WAIT, HEC_SYNC_CONTEXT, HEC_SYNC_UNKNOWN,
                                HEC_SYNC_UNKNOWN};
    for (int i = 0; i < 5; i++)
        assert_int_equal(kept_nth(HEC_ACTIVITY_SYNC, i)->detail, types[i]);
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_API, 0)->name), "cudaLaunchKernel"); /* without its version */
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_API, 1)->name), "");
    assert_true(isnan(kept_nth(HEC_ACTIVITY_COPY, 0)->amount) && isnan(kept_nth(HEC_ACTIVITY_MEMSET, 0)->amount));
    assert_int_equal(kept_nth(HEC_ACTIVITY_COPY, 0)->from, HEC_MEMORY_UNKNOWN);
}

/* What a copy is from and to: by the kinds of memory, which the file may name, and else by its direction. */
TEST(test_kinds_of_copies) {
    static const struct {
        const char *kind, *from, *to, *devices;
        int expected_from, expected_to, flags;
    } cases[] = {
        {"1", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_HOST, HEC_MEMORY_DEVICE, 0},
        {"2", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_DEVICE, HEC_MEMORY_HOST, 0},
        {"3", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_HOST, HEC_MEMORY_ARRAY, 0},
        {"4", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_ARRAY, HEC_MEMORY_HOST, 0},
        {"5", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_ARRAY, HEC_MEMORY_ARRAY, 0},
        {"6", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_ARRAY, HEC_MEMORY_DEVICE, 0},
        {"7", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_DEVICE, HEC_MEMORY_ARRAY, 0},
        {"8", "NULL", "NULL", "0,0", HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 0},
        {"8", "NULL", "NULL", "0,1", HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, HEC_ACTIVITY_PEER},
        {"8", "NULL", "NULL", "0,NULL", HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 0},
        {"9", "NULL", "NULL", "0,1", HEC_MEMORY_HOST, HEC_MEMORY_HOST, 0},
        {"10", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, HEC_ACTIVITY_PEER},
        {"11", "NULL", "NULL", "0,1", HEC_MEMORY_HOST, HEC_MEMORY_DEVICE, 0},
        {"12", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_DEVICE, HEC_MEMORY_HOST, 0},
        {"13", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 0},
        {"14", "NULL", "NULL", "NULL,NULL", HEC_MEMORY_UNKNOWN, HEC_MEMORY_UNKNOWN, 0},
        {"0", "0", "1", "NULL,NULL", HEC_MEMORY_PAGEABLE, HEC_MEMORY_PINNED, 0},
        {"-1", "3", "4", "NULL,NULL", HEC_MEMORY_ARRAY, HEC_MEMORY_MANAGED, 0},
        {"1", "5", "6", "NULL,NULL", HEC_MEMORY_DEVICE, HEC_MEMORY_MANAGED, 0},
        {"1", "7", "15", "NULL,NULL", HEC_MEMORY_HOST, HEC_MEMORY_DEVICE, 0},
        {"1", "16", "-1", "NULL,NULL", HEC_MEMORY_HOST, HEC_MEMORY_DEVICE, 0},
        {"1", "9", "10", "NULL,NULL", HEC_MEMORY_PINNED, HEC_MEMORY_ARRAY, 0}, /* as the file names them */
        {"1", "11", "12", "NULL,NULL", HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 0},
    };
    make(nsys_2022, nsys_strings);
    run("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (9,NULL,'host pinned'),(10,'Array',NULL),(11,'pageable',''),(12,NULL,'none'),"
        "(16,'Pinned',''),(-1,'Pinned','')");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start,end,deviceId,contextId,streamId,bytes,copyKind,srcKind,dstKind,"
            "srcDeviceId,dstDeviceId) VALUES (%d,%d,0,1,7,%d,%s,%s,%s,%s)",
            (int)(10 * i + 10), (int)(10 * i + 15), (int)i - 1, cases[i].kind, cases[i].from, cases[i].to,
            cases[i].devices);
    assert_int_equal(import_database(), HEC_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct hec_activity *a = kept_nth(HEC_ACTIVITY_COPY, (int)i);
        if (a->from != cases[i].expected_from || a->to != cases[i].expected_to || a->flags != cases[i].flags)
            fail_msg("case %zu: %s to %s, flags %d", i, hec_memory_kind_name(a->from), hec_memory_kind_name(a->to),
                     a->flags);
        assert_true(i == 0 ? isnan(a->amount) : a->amount == (double)i - 1);
    }
}

/* What ranges are, by their names; names that are too long or of other types are cut or none. */
TEST(test_ranges_and_devices) {
    make(nsys_2022, nsys_strings);
    run("%s", nsys_2025);
    run("DROP TABLE NVTX_EVENTS; CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, globalTid);"
        "INSERT INTO NVTX_EVENTS VALUES (1,2,59,'data_loading',NULL,%lld),"
        "(2,3,60,'save_checkpoint',9,%lld),(3,4,59,NULL,9,%lld),(4,5,NULL,'no type',NULL,%lld),(5,6,59,x'41',NULL,%lld)",
        GLOBAL(PID, 5), GLOBAL(PID, 5), GLOBAL(PID, 5), GLOBAL(PID, 5), GLOBAL(PID, 5));
    run("INSERT INTO PROCESSES VALUES (%lld,%d,'python3'),(NULL,1,'x'),(%lld,2,NULL)", GLOBAL(PID, 0), PID,
        GLOBAL(2, 0));
    run("INSERT INTO TARGET_INFO_GPU (vmId,id,name,busLocation,totalMemory,uuid,computeMajor,computeMinor) VALUES "
        "(1,-1,'none','','1','',1,1),(1,3,'%s','0000:0f:00.0',4096,'GPU-3',9,1),(1,4,NULL,x'35',NULL,x'36',-1,'x')",
        "a name of a device that is longer than what there is room for, which is as long as this and then so much more of it");
    kernel(10, 20, PID, 3, 0, ",0,0,0,3,NULL");
    kernel(30, 40, PID, 4, 0, ",0,0,0,3,NULL");
    kernel(50, 60, PID, 3, 0, ",0,0,0,3,0");
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(kept_count(HEC_ACTIVITY_PHASE), 2);
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_PHASE, 0)->name), "data");
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_PHASE, 1)->name), "checkpoint");
    assert_int_equal(kept_count(HEC_ACTIVITY_STEP), 1);
    assert_true(isnan(kept_nth(HEC_ACTIVITY_STEP, 0)->amount));
    const struct hec_track *steps = kept_track(kept_nth(HEC_ACTIVITY_STEP, 0)->track);
    assert_true(steps->kind == HEC_TRACK_PROCESS && steps->pid == PID && steps->stream == 0);
    assert_string_equal(steps->name, "python3");
    assert_int_equal(kept_count(HEC_ACTIVITY_RANGE), 1);
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_RANGE, 0)->name), "no type");
    assert_int_equal(kept_track(kept_nth(HEC_ACTIVITY_RANGE, 0)->track)->stream, 5);
    assert_int_equal(kept.devices, 2);
    const struct hec_device *d = kept.device;
    assert_int_equal(strlen(d[0].name), 95);
    assert_true(d[0].memory_kib == 4 && d[0].cuda_major == 9 && d[0].cuda_minor == 1 && d[0].visible == 1);
    assert_string_equal(d[0].uuid, "GPU-3");
    assert_string_equal(d[0].pci_bus_id, "0000:0f:00.0");
    assert_true(d[1].memory_kib == -1 && d[1].cuda_major == -1 && d[1].cuda_minor == -1 && !d[1].uuid[0] &&
                !d[1].pci_bus_id[0]);
    assert_string_equal(d[1].vendor, "nvidia");
    for (int i = 0; i < 3; i++)
        assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, i)->flags, 0);
    const struct hec_track *stream = kept_track(kept_nth(HEC_ACTIVITY_KERNEL, 0)->track);
    assert_true(stream->context == 1 && stream->stream == 7 && stream->pid == PID);
}

/* CUDA's ordinal is of a process: the same one is another device elsewhere, and of none where the file does not say. */
TEST(test_ordinals) {
    static const struct {
        int pid, ordinal;
        const char *uuid;
    } cases[] = {
        {PID, 0, "GPU-5"}, {PID, 1, "GPU-6"}, {PID + 1, 0, "GPU-6"}, {PID + 1, 1, "GPU-1"}, {PID + 2, 0, "GPU-0"}};
    make(nsys_2022, nsys_strings);
    run("%s", nsys_2025);
    for (int i = 0; i < 8; i++)
        run("INSERT INTO TARGET_INFO_GPU (vmId,id,uuid) VALUES (1,%d,'GPU-%d')", i, i);
    run("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (5,0,%d,'',1),(6,1,%d,'',1),(6,0,%d,'',1),(-1,1,%d,'',1),(7,-1,%d,'',1)",
        PID, PID, PID + 1, PID + 1, PID + 2);
    for (int i = 0; i < 5; i++)
        kernel(10 * i + 10, 10 * i + 15, cases[i].pid, cases[i].ordinal, 0, ",0,0,0,3,NULL");
    assert_int_equal(import_database(), HEC_OK);
    for (int i = 0; i < 5; i++)
        assert_string_equal(kept.device[kept_track(kept_nth(HEC_ACTIVITY_KERNEL, i)->track)->device].uuid,
                            cases[i].uuid);
    /* without a process, of any */
    make(nsys_2022, nsys_strings);
    run("%s", nsys_2025);
    run("INSERT INTO TARGET_INFO_GPU (vmId,id,uuid) VALUES (1,0,'GPU-0'),(1,3,'GPU-3')");
    run("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3,0,NULL,'',1)");
    kernel(10, 15, PID, 0, 0, ",0,0,0,3,NULL");
    run("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid=NULL");
    kernel(20, 25, PID, 0, 0, ",0,0,0,3,NULL");
    call(1, 2, PID + 5, 7, 0, 4);
    call(3, 4, PID + 6, 7, 0, 4);
    assert_int_equal(import_database(), HEC_OK);
    assert_int_equal(kept_track(kept_nth(HEC_ACTIVITY_KERNEL, 0)->track)->pid,
                     PID + 5); /* the first that the file names */
    for (int i = 0; i < 2; i++)
        assert_string_equal(kept.device[kept_track(kept_nth(HEC_ACTIVITY_KERNEL, i)->track)->device].uuid, "GPU-3");
}
