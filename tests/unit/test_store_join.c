/* Runs of one job become one. */
#include "store_file.h"

#include "store/join.h"

#define S HEC_NS_PER_S

/* A run of one rank: process 100 works on GPU `device`, whose UUID ends with `uuid`; and it sees GPU `beside` of another's. */
static const char *record(const char *name, const char *host, const char *rank, int device, int uuid, int beside,
                          int beside_uuid) {
    STORE_BEGIN(name, 0);
    const int devices[2][2] = {{device, uuid}, {beside, beside_uuid}};
    for (int i = 0; i < 2; i++) {
        struct hec_device d = store_device;
        d.index = devices[i][0];
        snprintf(d.uuid, sizeof d.uuid, "GPU-%d", devices[i][1]);
        s->device(s->context, &d);
        s->sample(s->context, HEC_GPU_UTIL, d.index, S, devices[i][1]);
    }
    s->meta(s->context, "hostname", host);
    s->meta(s->context, "command", host);
    s->meta(s->context, "rank.100", rank);
    s->meta(s->context, "sizes.100.model", rank);
    s->meta(s->context, "duration_ns", "5000000000");
    s->meta(s->context, "complete", "1");
    s->sample(s->context, HEC_HOST_CPU_BUSY, 0, S, 100 * uuid);
    s->process(s->context, &(struct hec_process){.pid = 100, .parent = 1, .start_ns = 0, .end_ns = 4 * S, .name = "x"});
    s->units(s->context, "sample", 10);
    struct hec_track track = {.kind = HEC_TRACK_STREAM, .pid = 100, .rank = -1, .device = device, .stream = 7};
    struct hec_track thread = {.kind = HEC_TRACK_THREAD, .pid = 100, .rank = -1, .device = -1, .stream = 100};
    struct hec_kernel kernel = {.name = s->trace_name(s->context, name), .grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct hec_activity a = {.start_ns = 2 * S,
                             .end_ns = 3 * S,
                             .launch_ns = S,
                             .launch_end_ns = S + 1,
                             .track = s->trace_track(s->context, &track),
                             .launch_track = s->trace_track(s->context, &thread),
                             .name = s->trace_kernel(s->context, &kernel),
                             .kind = HEC_ACTIVITY_KERNEL};
    s->trace_activities(s->context, &a, 1);
    store_close(writer);
    return path;
}

static int join(const char *const paths[], const int64_t *shifts, int count, const char *to, struct hec_why *why) {
    struct hec_join_run runs[4];
    const char *const facts[] = {"joined", "2", NULL};
    for (int i = 0; i < count; i++)
        runs[i] = (struct hec_join_run){store_open(paths[i]), shifts[i]};
    int err = hec_store_join(runs, count, facts, to, why);
    for (int i = 0; i < count; i++)
        hec_reader_close(runs[i].reader);
    return err;
}

TEST(two_hosts_become_one_run) {
    char one[256], other[256], all[256];
    struct hec_why why = {""};
    snprintf(one, sizeof one, "%s", record("one.hec", "left", "0 0 2 srun", 0, 11, 1, 12));
    snprintf(other, sizeof other, "%s", record("other.hec", "right", "1 0 2 srun", 0, 11, 1, 12));
    snprintf(all, sizeof all, "%s", in_folder("all.hec"));
    const char *const paths[] = {one, other};
    const int64_t shifts[] = {0, 7 * S};
    if (join(paths, shifts, 2, all, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_int_equal(store_number(all, "SELECT count(*) FROM device"), 4);
    assert_int_equal(store_number(all, "SELECT count(DISTINCT uuid) FROM device"), 2); /* as names that are hidden */
    assert_int_equal(store_number(all, "SELECT value = '0 0 2 srun left' FROM meta WHERE key = 'rank.100'"), 1);
    assert_int_equal(store_number(all, "SELECT value = '1 0 2 srun right' FROM meta WHERE key = 'rank.8388708'"), 1);
    assert_int_equal(store_number(all, "SELECT value = '0 0 2 srun' FROM meta WHERE key = 'sizes.100.model'"), 1);
    assert_int_equal(store_number(all, "SELECT value = '1 0 2 srun' FROM meta WHERE key = 'sizes.8388708.model'"), 1);
    assert_int_equal(store_number(all, "SELECT value = 'left, right' FROM meta WHERE key = 'hostname'"), 1);
    assert_int_equal(store_number(all, "SELECT value = 'left' FROM meta WHERE key = 'command'"), 1);
    assert_int_equal(store_number(all, "SELECT value FROM meta WHERE key = 'duration_ns'"), 12 * S);
    assert_int_equal(store_number(all, "SELECT value FROM meta WHERE key = 'joined'"), 2);
    assert_int_equal(store_number(all, "SELECT count FROM unit WHERE name = 'sample'"), 20);
    assert_int_equal(store_number(all, "SELECT start_ns FROM process WHERE pid = 8388708"), 7 * S);
    assert_int_equal(store_number(all, "SELECT count(*) FROM sample WHERE metric = 'host_cpu_busy'"), 1);
    assert_int_equal(store_number(all, "SELECT count(DISTINCT device_index) FROM track WHERE kind = 'stream'"), 2);
    assert_int_equal(store_number(all, "SELECT max(t0_ns) FROM activity_block WHERE kind = 'kernel'"), 9 * S);
    assert_int_equal(store_number(all, "SELECT count(*) FROM kernel"), 2);
    assert_int_equal(store_number(all, "SELECT count(*) FROM sample WHERE metric = 'gpu_util'"), 4);
}

/* Two runs beside each other on one host: both see both devices, and each uses one. */
TEST(a_device_that_both_saw_is_one) {
    char one[256], other[256], all[256];
    struct hec_why why = {""};
    snprintf(one, sizeof one, "%s", record("one.hec", "left", "0 0 2 srun", 0, 11, 1, 12));
    snprintf(other, sizeof other, "%s", record("other.hec", "left", "1 1 2 srun", 1, 12, 0, 11));
    snprintf(all, sizeof all, "%s", in_folder("both.hec"));
    const char *const paths[] = {one, other};
    const int64_t shifts[] = {0, S};
    if (join(paths, shifts, 2, all, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_int_equal(store_number(all, "SELECT count(*) FROM device"), 2);
    assert_int_equal(store_number(all, "SELECT count(*) FROM sample WHERE metric = 'gpu_util'"), 2);
    assert_int_equal(store_number(all, "SELECT t_ns FROM sample WHERE metric = 'gpu_util' AND subject = 0"), S);
    assert_int_equal(store_number(all, "SELECT t_ns FROM sample WHERE metric = 'gpu_util' AND subject = 1"), 2 * S);
    assert_int_equal(store_number(all, "SELECT value = 'left' FROM meta WHERE key = 'hostname'"), 1);
}

/* A run with something of everything on its GPUs 1 and 40 (another vendor's); it lasts 9 s. */
static const char *record_all(const char *name, const char *host, bool complete) {
    STORE_BEGIN(name, 0);
    struct hec_device d = store_device;
    for (int i = 0; i < 2; i++) {
        d.index = i ? 40 : 1;
        snprintf(d.uuid, sizeof d.uuid, "%s", i ? "" : "GPU-1"); /* none: as many devices as say so */
        s->device(s->context, &d);
    }
    s->meta(s->context, "hostname", host);
    s->meta(s->context, "duration_ns", "9000000000");
    s->meta(s->context, "rank.100", "0 0 2 srun");
    s->meta(s->context, "rank.101", "-1");
    s->meta(s->context, "sizes.101.model", "a=1");
    s->meta(s->context, "folder", host);
    if (complete)
        s->meta(s->context, "complete", "1");
    s->process(s->context, &(struct hec_process){100, 1, 5, 2 * S, "a", 1, 2, 3, 4});
    s->process(s->context, &(struct hec_process){101, 100, S, -1, "b", 5, 6, 7, 8});
    s->gpu_process(s->context, &(struct hec_gpu_process){1, 100, S, 2 * S, 11, 0, 22, 0, 0, 1, -1});
    s->gpu_process(s->context, &(struct hec_gpu_process){7, 100, S, 2 * S, 11, 0, 22, 0, 0, 1, -1}); /* of no device */
    s->event(s->context, HEC_EVENT_GAP, 40, 3 * S, host);
    s->event(s->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, 4 * S, "note");
    s->units(s->context, "sample", 10);
    struct hec_tracer tracer = store_tracer;
    tracer.first_ns = S;
    tracer.last_ns = -1;
    s->tracer(s->context, &tracer);
    for (int i = 0; i < 2; i++) {
        s->sample(s->context, HEC_GPU_UTIL, i ? 40 : 1, S, 50 + i);
        s->missing(s->context, HEC_GPU_UTIL, i ? 40 : 1, 2 * S);
        s->sample(s->context, HEC_STEP_UNITS, 100 + i, S, 7 + i);
    }
    s->sample(s->context, HEC_GPU_UTIL, 9, S, 1); /* of no device */
    uint32_t own = s->trace_name(s->context, host), common = s->trace_name(s->context, "common");
    struct hec_track process = {.kind = HEC_TRACK_PROCESS, .pid = 101, .rank = 3, .device = -1, .name = "p"};
    struct hec_track thread = {.kind = HEC_TRACK_THREAD, .pid = 100, .rank = -1, .device = -1, .stream = 100};
    struct hec_track stream = {
        .kind = HEC_TRACK_STREAM, .pid = 100, .rank = -1, .device = 40, .context = 2, .stream = 7};
    uint32_t p = s->trace_track(s->context, &process), t = s->trace_track(s->context, &thread);
    uint32_t st = s->trace_track(s->context, &stream);
    uint32_t kernel =
        s->trace_kernel(s->context, &(struct hec_kernel){.name = common, .grid = {1, 2, 3}, .registers = 4});
    uint32_t outer = s->trace_frame(s->context, &(struct hec_frame){.file = own, .function = common, .line = 1});
    uint32_t inner =
        s->trace_frame(s->context, &(struct hec_frame){.parent = outer, .file = common, .function = own, .line = 2});
    struct hec_activity a[] = {
        {2 * S, 3 * S, S, S + 1, 5, st, kernel, t, HEC_ACTIVITY_KERNEL},
        {2 * S, 3 * S, HEC_TIME_UNKNOWN, HEC_TIME_UNKNOWN, 6, st, 0, 0, HEC_ACTIVITY_COPY, .from = 1, .to = 3},
        {3 * S, 4 * S, .track = t, .name = inner, .kind = HEC_ACTIVITY_STACK},
        {4 * S, 5 * S, .track = t, .name = common, .kind = HEC_ACTIVITY_API, .detail = 1, .device = 41},
        {4 * S, 5 * S, .track = t, .name = own, .kind = HEC_ACTIVITY_PHASE, .device = 0},
        {5 * S, 6 * S, .amount = 8, .track = p, .name = own, .kind = HEC_ACTIVITY_STEP},
    };
    s->trace_activities(s->context, a, sizeof a / sizeof a[0]);
    store_close(writer);
    return path;
}

static void texts_are(const char *path, const char *sql, const char *expected) {
    char text[2048] = "";
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            const char *column = (const char *)sqlite3_column_text(s, i);
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", column ? column : "-",
                     i + 1 == sqlite3_column_count(s) ? "; " : " ");
        }
    sqlite3_finalize(s);
    sqlite3_close(db);
    assert_string_equal(text, expected);
}

struct collected {
    struct hec_activity all[32];
    size_t count;
};

static int collect(void *context, const struct hec_activity *activities, size_t count) {
    struct collected *c = context;
    assert_true(c->count + count <= 32);
    memcpy(c->all + c->count, activities, count * sizeof *activities);
    c->count += count;
    return 0;
}

/* Everything of a run, moved to its place: times, processes, devices, and what activities refer to. */
TEST(everything_is_moved) {
    char one[256], other[256], all[256];
    struct hec_why why = {""};
    snprintf(one, sizeof one, "%s", record_all("one.hec", "node12", true));
    snprintf(other, sizeof other, "%s", record_all("other.hec", "node1", false));
    snprintf(all, sizeof all, "%s", in_folder("every.hec"));
    const char *const paths[] = {one, other};
    const int64_t shifts[] = {2 * S, 10 * S};
    if (join(paths, shifts, 2, all, &why) != HEC_OK)
        fail_msg("%s", why.text);
    texts_are(all, "SELECT device_index, uuid FROM device ORDER BY 1", "0 GPU-1; 1 GPU-1; 32 -; 40 -; ");
    texts_are(
        all,
        "SELECT pid, parent, start_ns/1000000000, end_ns/1000000000, name, cpu_ms, written_kib FROM process ORDER BY 1",
        "100 1 2 4 a 1 4; 101 100 3 - b 5 8; 8388708 8388609 10 12 a 1 4; 8388709 8388708 11 - b 5 8; ");
    texts_are(
        all,
        "SELECT device_index, pid, first_ns/1000000000, last_ns/1000000000, memory_max_kib, sm_util_permille FROM gpu_process ORDER BY 3",
        "1 100 3 4 11 22; 0 8388708 11 12 11 22; ");
    texts_are(all, "SELECT t_ns/1000000000, kind, device_index, text FROM event ORDER BY id",
              "5 gap 40 node12; 6 note - note; 13 gap 32 node1; 14 note - note; ");
    texts_are(all, "SELECT name, count FROM unit", "sample 20.0; ");
    texts_are(all, "SELECT pid, first_ns/1000000000, last_ns FROM tracer ORDER BY 1", "100 3 -; 8388708 11 -; ");
    texts_are(all, "SELECT subject, t_ns/1000000000, value FROM sample WHERE metric='gpu_util' ORDER BY 1, 2",
              "0 11 50; 0 12 -; 1 3 50; 1 4 -; 32 11 51; 32 12 -; 40 3 51; 40 4 -; ");
    texts_are(all, "SELECT subject, t_ns/1000000000, value FROM sample WHERE metric='step_units' ORDER BY 1",
              "100 3 7; 101 3 8; 8388708 11 7; 8388709 11 8; ");
    texts_are(
        all, "SELECT key, value FROM meta WHERE key NOT LIKE 'store_%' ORDER BY key",
        "duration_ns 19000000000; folder node12; hostname node12, node1; joined 2; rank.100 0 0 2 srun node12; "
        "rank.101 -1; rank.8388708 0 0 2 srun node1; rank.8388709 -1; sizes.101.model a=1; sizes.8388709.model a=1; ");
    texts_are(all, "SELECT id, kind, pid, rank, device_index, context, stream, name FROM track ORDER BY id",
              "1 process 101 3 - 0 0 p; 2 thread 100 - - 0 100 -; 3 stream 100 - 40 2 7 -; "
              "4 process 8388709 3 - 0 0 p; 5 thread 8388708 - - 0 100 -; 6 stream 8388708 - 32 2 7 -; ");
    texts_are(all, "SELECT id, text FROM trace_name ORDER BY id", "1 node12; 2 common; 3 node1; ");
    texts_are(all, "SELECT id, name, grid_z, registers FROM kernel", "1 2 3 4; ");
    texts_are(all, "SELECT id, parent, file, function, line FROM frame ORDER BY id",
              "1 0 1 2 1; 2 1 2 1 2; 3 0 3 2 1; 4 3 2 3 2; ");
    struct collected got = {.count = 0};
    struct hec_reader *reader = store_open(all);
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, collect, &got, NULL), 0);
    hec_reader_close(reader);
    assert_int_equal(got.count, 12);
    const uint8_t kinds[] = {HEC_ACTIVITY_KERNEL, HEC_ACTIVITY_COPY,  HEC_ACTIVITY_STACK,
                             HEC_ACTIVITY_API,    HEC_ACTIVITY_PHASE, HEC_ACTIVITY_STEP};
    for (size_t i = 0; i < got.count; i++) {
        const struct hec_activity *a = &got.all[i];
        int64_t shift = shifts[i / 6];
        uint32_t run = (uint32_t)i / 6, own = run ? 3 : 1;
        size_t k = 0;
        while (kinds[k] != a->kind)
            k++;
        const struct hec_activity expected[] = {
            {2 * S + shift, 3 * S + shift, S + shift, S + 1 + shift, 5, 3 + 3 * run, 1, 2 + 3 * run,
             HEC_ACTIVITY_KERNEL},
            {2 * S + shift, 3 * S + shift, HEC_TIME_UNKNOWN, HEC_TIME_UNKNOWN, 6, 3 + 3 * run, 0, 0, HEC_ACTIVITY_COPY,
             .from = 1, .to = 3},
            {3 * S + shift, 4 * S + shift, .track = 2 + 3 * run, .name = 2 + 2 * run, .kind = HEC_ACTIVITY_STACK},
            {4 * S + shift, 5 * S + shift, .track = 2 + 3 * run, .name = 2, .kind = HEC_ACTIVITY_API, .detail = 1,
             .device = run ? 33 : 41},
            {4 * S + shift, 5 * S + shift, .track = 2 + 3 * run, .name = own, .kind = HEC_ACTIVITY_PHASE},
            {5 * S + shift, 6 * S + shift, .amount = 8, .track = 1 + 3 * run, .name = own, .kind = HEC_ACTIVITY_STEP}};
        assert_memory_equal(a, &expected[k], sizeof *a);
    }
}

/* Runs of one host, whose UUIDs are hidden: each has its own devices. And complete only where each is. */
TEST(hidden_names) {
    char one[256], other[256], all[256];
    struct hec_why why = {""};
    snprintf(one, sizeof one, "%s", record_all("one.hec", "host", true));
    snprintf(other, sizeof other, "%s", record_all("other.hec", "host", true));
    snprintf(all, sizeof all, "%s", in_folder("hidden.hec"));
    const char *const paths[] = {one, other, one};
    const int64_t shifts[] = {9 * S, 0, 0};
    if (join(paths, shifts, 3, all, &why) != HEC_OK)
        fail_msg("%s", why.text);
    texts_are(all, "SELECT device_index FROM device ORDER BY 1", "0; 1; 2; 32; 33; 40; ");
    texts_are(all, "SELECT value FROM meta WHERE key IN ('complete', 'duration_ns', 'hostname') ORDER BY key",
              "1; 18000000000; host; ");
    assert_int_equal(join(paths, shifts, 1, all, &why), HEC_ERR_EXISTS);
    struct hec_join_run many[HEC_JOIN_MAX + 1];
    assert_int_equal(hec_store_join(many, HEC_JOIN_MAX + 1, NULL, in_folder("many.hec"), &why), HEC_ERR_LIMIT);
    assert_int_not_equal(access(in_folder("many.hec"), F_OK), 0);
}

/* There are only so many places for devices; the last one is taken. */
TEST(too_many_devices) {
    for (int more = 0; more < 2; more++) {
        char paths[2][256], all[256];
        struct hec_why told = {""};
        for (int i = 0; i < 2; i++) {
            STORE_BEGIN(i ? "b.hec" : "a.hec", 0);
            struct hec_device d = store_device;
            for (d.index = 0; d.index < HEC_DEVICE_MAX / 2 + (i ? more : 0); d.index++) {
                snprintf(d.uuid, sizeof d.uuid, "GPU-%d-%d", i, d.index);
                s->device(s->context, &d);
            }
            store_close(writer);
            snprintf(paths[i], sizeof paths[i], "%s", path);
        }
        snprintf(all, sizeof all, "%s", in_folder(more ? "more.hec" : "most.hec"));
        const char *const both[] = {paths[0], paths[1]};
        const int64_t shifts[] = {0, 0};
        assert_int_equal(join(both, shifts, 2, all, &told), more ? HEC_ERR_LIMIT : HEC_OK);
        if (more)
            assert_string_equal(told.text, "more than 64 devices in all runs together");
        else
            assert_int_equal(store_number(all, "SELECT count(*) FROM device WHERE device_index BETWEEN 0 AND 63"), 64);
    }
}
