/* What the writer is given, the reader and plain SQL give back. */
#include "store_file.h"

#include "base/buf.h"

#include <limits.h>
#include <math.h>

#define ORIGIN INT64_C(123456789000)

static int got_device(void *context, const struct hec_device *device) {
    *(struct hec_device *)context = *device;
    return 0;
}
static int got_process(void *context, const struct hec_process *process) {
    *(struct hec_process *)context = *process;
    return 0;
}
static int got_gpu_process(void *context, const struct hec_gpu_process *process) {
    *(struct hec_gpu_process *)context = *process;
    return 0;
}

static const char *text_of(const struct hec_device *d) {
    static char text[1024];
    snprintf(text, sizeof text, "%d %s %s %s %s %s %s %d.%d %lld %lld %lld %lld %d %d %d %d %d %d", d->index, d->vendor,
             d->uuid, d->name, d->pci_bus_id, d->driver, d->architecture, d->cuda_major, d->cuda_minor,
             (long long)d->memory_kib, (long long)d->power_limit_mw, (long long)d->power_limit_default_mw,
             (long long)d->pcie_kib_per_s, d->mig_enabled, d->simulated, d->visible, d->has_energy_counter,
             d->has_power_history, d->has_gpm);
    return text;
}

TEST(every_record) {
    static const char expected[] =
        "1 nvidia GPU-01234567-89ab-cdef-0123-456789abcdef NVIDIA H200 0000:1A:00.0 580.159.04 hopper 9.0 146800640 700000 -1 "
        "61532160 -1 1 1 1 0 1";
    STORE_BEGIN("every.hec", 0);
    hec_writer_set_origin(writer, ORIGIN);
    store_fill(s, ORIGIN, 3);
    /* later records of the same key replace the earlier, units add up */
    s->process(s->context, &(struct hec_process){.pid = 100,
                                                 .parent = 1,
                                                 .start_ns = ORIGIN - 5,
                                                 .end_ns = ORIGIN + 77,
                                                 .name = "python3",
                                                 .cpu_ms = 13,
                                                 .rss_max_kib = 35,
                                                 .read_kib = 0});
    assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    s->units(s->context, "sample", 0.5);
    s->units(s->context, "token", 1e12);
    s->meta(s->context, "command", "second");
    store_close(writer);

    struct hec_reader *reader = store_open(path);
    struct hec_device device;
    memset(&device, 0xee, sizeof device);
    assert_int_equal(hec_reader_devices(reader, got_device, &device, NULL), 0);
    assert_string_equal(text_of(&device), expected);

    struct hec_process process;
    assert_int_equal(hec_reader_processes(reader, got_process, &process, NULL), 0);
    assert_int_equal(process.pid, 100);
    assert_int_equal(process.parent, 1);
    assert_int_equal(process.start_ns, -5);
    assert_int_equal(process.end_ns, 77);
    assert_string_equal(process.name, "python3");
    assert_int_equal(process.cpu_ms, 13);
    assert_int_equal(process.rss_max_kib, 35);
    assert_int_equal(process.read_kib, 0);

    struct hec_gpu_process gpu_process;
    assert_int_equal(hec_reader_gpu_processes(reader, got_gpu_process, &gpu_process, NULL), 0);
    assert_int_equal(gpu_process.device, 1);
    assert_int_equal(gpu_process.pid, 100);
    assert_int_equal(gpu_process.first_ns, 0);
    assert_int_equal(gpu_process.last_ns, 9);
    assert_int_equal(gpu_process.memory_max_kib, -1);
    assert_int_equal(gpu_process.sm_util_permille, 5);
    assert_int_equal(gpu_process.visible, 1);

    assert_string_equal(hec_reader_meta(reader, "command"), "second");
    assert_string_equal(hec_reader_meta(reader, "store_closed"), "1");
    assert_string_equal(hec_reader_meta(reader, "store_lost"), "0");
    assert_null(hec_reader_meta(reader, "absent"));
    hec_reader_close(reader);
}

static int got_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    hec_buf_printf(context, "%s %d %lld %s\n", hec_event_name(kind), device, (long long)t_ns, text);
    return 0;
}
static int got_unit(void *context, const char *name, double count) {
    hec_buf_printf(context, "%s %g\n", name, count);
    return 0;
}
static int got_phase(void *context, const char *name, int64_t total_ns, int64_t count) {
    hec_buf_printf(context, "%s %lld %lld\n", name, (long long)total_ns, (long long)count);
    return 0;
}
TEST(lists_in_order) {
    STORE_BEGIN("lists.hec", ORIGIN);
    s->event(s->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, ORIGIN + 20, "late");
    s->event(s->context, HEC_EVENT_DEVICE_LOST, 3, ORIGIN + 10, "");
    store_phase(s, ORIGIN + 5, ORIGIN + 9, 2, "a");
    store_phase(s, ORIGIN + 1, ORIGIN + 2, 2, "b");
    store_phase(s, ORIGIN + 3, ORIGIN + 4, 3, "b");
    s->units(s->context, "token", 2);
    s->units(s->context, "sample", 0.25);
    s->units(s->context, "token", 3);
    s->units(s->context, "token", (double)NAN); /* refused and counted */
    assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    int64_t lost;
    assert_int_equal(hec_writer_close(writer, &lost, NULL), HEC_OK);
    assert_int_equal(lost, 1);

    struct hec_reader *reader = store_open(path);
    struct hec_buf text;
    hec_buf_init(&text, 4096);
    assert_int_equal(hec_reader_events(reader, got_event, &text, NULL), 0);
    assert_int_equal(hec_reader_units(reader, got_unit, &text, NULL), 0);
    assert_int_equal(hec_reader_phases(reader, got_phase, &text, NULL), 0);
    assert_string_equal(hec_buf_text(&text),
                        "device_lost 3 10 \nnote -1 20 late\nsample 0.25\ntoken 5\na 4 1\nb 2 2\n");
    assert_string_equal(hec_reader_meta(reader, "store_lost"), "1");
    hec_buf_free(&text);
    hec_reader_close(reader);
}

/* Regular, irregular, missing and constant series, with flushes at odd moments, and the same through the view. */
TEST(series_and_view) {
    STORE_BEGIN("series.hec", ORIGIN);
    for (int second = 0; second < 400; second++) {
        store_fill(s, ORIGIN + second * HEC_NS_PER_S, 1);
        s->sample(s->context, HEC_STEP_UNITS, 100, ORIGIN + second * second * INT64_C(1000000), 128);
        s->sample(s->context, HEC_TREE_CPU, 0, ORIGIN + second * HEC_NS_PER_S + second % 7 * 1000,
                  -second * INT64_C(7000000000000));
        if (second % 3 == 0)
            assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    }
    store_close(writer);

    struct hec_reader *reader = store_open(path);
    struct store_values v = store_series(reader, HEC_GPU_POWER, 1);
    assert_int_equal(v.count, 400 * 50);
    assert_true(v.largest <= 4096);
    for (size_t i = 0; i < v.count; i++) {
        assert_int_equal(v.value[i], 500000 + (i % 50 * 7919) % 90000);
        assert_true(llabs(v.t_ns[i] - (int64_t)i * 20000000) <= 1000000);
        assert_true(v.valid[i]);
    }
    v = store_series(reader, HEC_GPU_POWER_LIMIT, 1);
    assert_int_equal(v.count, 400);
    for (size_t i = 0; i < v.count; i++)
        assert_int_equal(v.value[i], 700000);
    v = store_series(reader, HEC_STEP_UNITS, 100);
    assert_int_equal(v.count, 400);
    for (size_t i = 0; i < v.count; i++)
        assert_int_equal(v.t_ns[i], i * i * 1000000);
    v = store_series(reader, HEC_TREE_CPU, 0);
    assert_int_equal(v.count, 400);
    for (size_t i = 0; i < v.count; i++) {
        assert_int_equal(v.value[i], -(int64_t)i * INT64_C(7000000000000));
        assert_int_equal(v.t_ns[i], (int64_t)i * HEC_NS_PER_S + (int64_t)(i % 7) * 1000);
    }
    v = store_series(reader, HEC_GPU_MEM_UTIL, 1);
    assert_int_equal(v.count, 0);

    /* the view, series by series, equals the reader */
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_stmt *select;
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT t_ns, value, unit FROM sample WHERE metric=? AND subject=? ORDER BY t_ns", -1,
                           &select, NULL),
        SQLITE_OK);
    for (int m = 0; m < HEC_METRIC_COUNT; m++) {
        int32_t *subjects;
        int n = hec_reader_subjects(reader, (enum hec_metric)m, &subjects, NULL);
        for (int i = 0; i < n; i++) {
            v = store_series(reader, (enum hec_metric)m, subjects[i]);
            sqlite3_bind_text(select, 1, hec_metric_info((enum hec_metric)m)->name, -1, SQLITE_STATIC);
            sqlite3_bind_int(select, 2, subjects[i]);
            for (size_t k = 0; k < v.count; k++) {
                assert_int_equal(sqlite3_step(select), SQLITE_ROW);
                assert_int_equal(sqlite3_column_int64(select, 0), v.t_ns[k]);
                assert_int_equal(sqlite3_column_type(select, 1), v.valid[k] ? SQLITE_INTEGER : SQLITE_NULL);
                assert_int_equal(sqlite3_column_int64(select, 1), v.value[k]);
            }
            assert_int_equal(sqlite3_step(select), SQLITE_DONE);
            sqlite3_reset(select);
        }
        free(subjects);
    }
    sqlite3_finalize(select);
    sqlite3_close(db);
    hec_reader_close(reader);
}

/* Two threads' steps come in turns of a flush: late values find their place, in the block or across blocks. */
TEST(late_values) {
    STORE_BEGIN("late.hec", 0);
    const int rounds = 6, each = 700;
    for (int round = 0; round < rounds; round++)
        for (int thread = 0; thread < 2; thread++) {
            for (int i = 0; i < each; i++) {
                int64_t t = ((int64_t)round * each + i) * 2 + thread;
                s->sample(s->context, HEC_STEP_UNITS, 9, t * 1000, t);
            }
            assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
        }
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    struct store_values v = store_series(reader, HEC_STEP_UNITS, 9);
    assert_int_equal(v.count, 2 * rounds * each);
    for (size_t i = 0; i < v.count; i++) {
        assert_int_equal(v.t_ns[i], i * 1000);
        assert_int_equal(v.value[i], i);
    }
    hec_reader_close(reader);
}

/* A series that falls silent gives its block away and may come back; extremes of 64 bits survive. */
TEST(silence_and_extremes) {
    STORE_BEGIN("silent.hec", 0);
    s->sample(s->context, HEC_GPU_ENERGY, 0, 5000, INT64_MIN);
    s->sample(s->context, HEC_GPU_ENERGY, 0, 6000, INT64_MAX);
    s->sample(s->context, HEC_GPU_ENERGY, 0, 7000, 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    s->sample(s->context, HEC_GPU_ENERGY, 0, INT64_C(400) * 24 * 3600 * HEC_NS_PER_S, 1); /* after 400 days */
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    struct store_values v = store_series(reader, HEC_GPU_ENERGY, 0);
    assert_int_equal(v.count, 4);
    assert_true(v.value[0] == INT64_MIN && v.value[1] == INT64_MAX && v.value[2] == 0 && v.value[3] == 1);
    assert_int_equal(v.t_ns[3], INT64_C(400) * 24 * 3600 * HEC_NS_PER_S);
    hec_reader_close(reader);
}

TEST(long_texts_are_cut) {
    const char *path = in_folder("long.hec");
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    memcpy(text + 32767, "\xe2\x82\xac", 3); /* a sequence across the cut */
    struct hec_writer *writer = store_create(path, 0);
    const struct hec_sink *s = hec_writer_sink(writer);
    s->meta(s->context, "long", text);
    s->units(s->context, text, 1);
    s->event(s->context, HEC_EVENT_NOTE, -1, 0, text);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    assert_int_equal(strlen(hec_reader_meta(reader, "long")), 32767);
    struct hec_why why = {""};
    int64_t values;
    assert_int_equal(store_read_all(reader, &values, &why), 0);
    hec_reader_close(reader);
    free(text);
}

static int stop_at_once(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    (void)t_ns, (void)value, (void)valid, (void)count;
    ++*(int *)context;
    return 42;
}

TEST(visitors_may_stop) {
    STORE_BEGIN("stop.hec", 0);
    store_fill(s, 0, 100);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    int calls = 0;
    assert_int_equal(hec_reader_series(reader, HEC_GPU_POWER, 1, stop_at_once, &calls, NULL), 42);
    assert_int_equal(calls, 1);
    hec_reader_close(reader);
}

/* Times from clocks that are not ours, devices that are not there, more facts than fit, names that no longer fit: what the
 * writer refuses it counts, and what it takes the reader reads. */
TEST(extremes_are_refused_by_the_writer) {
    static const int64_t times[] = {INT64_MIN, -(INT64_C(1) << 61), -1, 0, ORIGIN, INT64_C(1) << 61, INT64_MAX};
    static const int devices[] = {INT_MIN, -1, 0, HEC_DEVICE_MAX - 1, HEC_DEVICE_MAX, INT_MAX};
    STORE_BEGIN("extremes.hec", ORIGIN);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        for (size_t k = 0; k < sizeof devices / sizeof devices[0]; k++) {
            int64_t t_ns = times[i];
            int32_t pid = (int32_t)(10 * i + k);
            struct hec_tracer tracer = {
                .pid = pid, .mode = devices[k], .first_ns = t_ns, .last_ns = t_ns, .lost = t_ns};
            s->tracer(s->context, &tracer);
            s->process(s->context, &(struct hec_process){.pid = pid, .start_ns = t_ns, .end_ns = t_ns, .cpu_ms = t_ns});
            s->gpu_process(s->context,
                           &(struct hec_gpu_process){.device = devices[k], .first_ns = t_ns, .last_ns = t_ns});
            s->device(s->context,
                      &(struct hec_device){.index = devices[k], .memory_kib = t_ns, .mig_enabled = devices[k]});
            s->event(s->context, HEC_EVENT_NOTE, devices[k], t_ns, "text");
            s->sample(s->context, HEC_STEP_UNITS, devices[k], t_ns, t_ns);
            s->units(s->context, "unit", (double)t_ns * 1e285);
            store_phase(s, t_ns, t_ns, devices[k], "");
        }
    for (int i = 0; i < 6000; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        s->meta(s->context, key, "value");
        s->meta(s->context, "again", key);
    }
    /* where a name has no room, its phases have none */
    struct hec_track track = {.kind = HEC_TRACK_THREAD, .pid = 1, .rank = -1, .device = -1, .stream = 1};
    struct hec_activity unnamed = {.kind = HEC_ACTIVITY_PHASE, .start_ns = ORIGIN, .end_ns = ORIGIN + 1};
    unnamed.track = s->trace_track(s->context, &track);
    s->trace_activities(s->context, &unnamed, 1);
    int64_t lost;
    assert_int_equal(hec_writer_close(writer, &lost, NULL), HEC_OK);
    assert_true(lost > 6000 - 4096);

    struct hec_reader *reader = store_open(path);
    int64_t values;
    if (store_read_all(reader, &values, &why) != 0)
        fail_msg("%s", why.text);
    assert_string_equal(hec_reader_meta(reader, "again"), "key5999");
    assert_string_equal(hec_reader_meta(reader, "store_closed"), "1");
    hec_reader_close(reader);
}
