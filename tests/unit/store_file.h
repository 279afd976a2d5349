/* Helpers of the run file's tests: a file with a row of everything in it, and passes over all of a file. */
#pragma once

#include "base/clock.h"
#include "store/writer.h"
#include "store_passes.h"
#include "tests/unit/folder.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

ALL_TESTS(folder_make, folder_remove)

static inline struct hec_writer *store_create(const char *path, int64_t origin_ns) {
    struct hec_writer *writer = NULL;
    struct hec_why why = {""};
    if (hec_writer_create(path, true, origin_ns, &writer, &why) != HEC_OK)
        fail_msg("%s", why.text);
    return writer;
}

/* Begins a file: its path, its writer, the writer's sink, and room for a sentence. */
#define STORE_BEGIN(name, origin_ns)                                                                                   \
    __attribute__((unused)) struct hec_why why = {""};                                                                 \
    const char *path = in_folder(name);                                                                                \
    struct hec_writer *writer = store_create(path, origin_ns);                                                         \
    const struct hec_sink *s = hec_writer_sink(writer)

static inline void store_close(struct hec_writer *writer) {
    struct hec_why why = {""};
    int64_t lost = -1;
    if (hec_writer_close(writer, &lost, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_int_equal(lost, 0);
}

static inline struct hec_reader *store_open(const char *path) {
    struct hec_reader *reader = NULL;
    struct hec_why why = {""};
    if (hec_reader_open(path, &reader, &why) != HEC_OK)
        fail_msg("%s", why.text);
    return reader;
}

/* By plain SQL. */
static inline void store_change(const char *path, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static inline int64_t store_number(const char *path, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return value;
}

static inline bool store_holds(const char *path, const char *text) {
    char command[512];
    snprintf(command, sizeof command, "grep -q -a '%s' '%s'", text, path);
    return system(command) == 0;
}

/* No file can be longer, as on a disk that is full; RLIM_INFINITY: there is room again. */
static inline void store_limit(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* All values of a series. */
struct store_values {
    int64_t *t_ns, *value;
    uint8_t *valid;
    size_t count, capacity, chunks, largest;
};

static inline int store_collect(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid,
                                size_t count) {
    struct store_values *v = context;
    if (v->count + count > v->capacity) { /* each is a copy where a sanitizer allocates */
        v->capacity = 2 * (v->count + count);
        v->t_ns = realloc(v->t_ns, v->capacity * sizeof *v->t_ns);
        v->value = realloc(v->value, v->capacity * sizeof *v->value);
        v->valid = realloc(v->valid, v->capacity);
    }
    memcpy(v->t_ns + v->count, t_ns, count * sizeof *t_ns);
    memcpy(v->value + v->count, value, count * sizeof *value);
    memcpy(v->valid + v->count, valid, count);
    v->count += count;
    v->chunks++;
    v->largest = count > v->largest ? count : v->largest;
    return 0;
}

/* They are there until the second call after this one. */
static inline struct store_values store_series(struct hec_reader *reader, enum hec_metric metric, int32_t subject) {
    static struct store_values found[2];
    static int turn;
    struct store_values *v = &found[turn ^= 1];
    struct hec_why why = {""};
    free(v->t_ns);
    free(v->value);
    free(v->valid);
    memset(v, 0, sizeof *v);
    if (hec_reader_series(reader, metric, subject, store_collect, v, &why) != HEC_OK)
        fail_msg("%s", why.text);
    return *v;
}

static const struct hec_device store_device = {.index = 1,
                                               .vendor = "nvidia",
                                               .uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef",
                                               .name = "NVIDIA H200",
                                               .pci_bus_id = "0000:1A:00.0",
                                               .driver = "580.159.04",
                                               .architecture = "hopper",
                                               .cuda_major = 9,
                                               .cuda_minor = 0,
                                               .memory_kib = 146800640,
                                               .power_limit_mw = 700000,
                                               .power_limit_default_mw = -1,
                                               .pcie_kib_per_s = 61532160,
                                               .mig_enabled = -1,
                                               .simulated = 1,
                                               .visible = 1,
                                               .has_energy_counter = 1,
                                               .has_power_history = 0,
                                               .has_gpm = 1};

static const struct hec_tracer store_tracer = {.pid = 100,
                                               .mode = 2,
                                               .cupti_version = 130000,
                                               .driver_version = 13000,
                                               .library = "/home/ada/venv/lib/libcupti.so.13",
                                               .first_ns = -1,
                                               .last_ns = -1,
                                               .traced_ns = 5,
                                               .windows = 1,
                                               .records = 7,
                                               .estimate_ppm = -1,
                                               .budget_ppm = 10000};

static inline void store_phase(const struct hec_sink *s, int64_t start_ns, int64_t end_ns, int tid, const char *name) {
    struct hec_track track = {.kind = HEC_TRACK_THREAD, .pid = 100, .rank = -1, .device = -1, .stream = tid};
    s->trace_activities(s->context,
                        &(struct hec_activity){.start_ns = start_ns,
                                               .end_ns = end_ns,
                                               .kind = HEC_ACTIVITY_PHASE,
                                               .track = s->trace_track(s->context, &track),
                                               .name = s->trace_name(s->context, name)},
                        1);
}

/* One of everything, at times from origin_ns on. */
static inline void store_fill(const struct hec_sink *s, int64_t origin_ns, int seconds) {
    s->device(s->context, &store_device);
    s->meta(s->context, "command", "/home/ada/venv/bin/python /home/ada/train.py --token=secret");
    s->meta(s->context, "hostname", "node17");
    s->process(s->context, &(struct hec_process){.pid = 100,
                                                 .parent = 1,
                                                 .start_ns = origin_ns - 5,
                                                 .end_ns = -1,
                                                 .name = "python",
                                                 .cpu_ms = 12,
                                                 .rss_max_kib = 34,
                                                 .read_kib = -1});
    s->gpu_process(s->context, &(struct hec_gpu_process){.device = 1,
                                                         .pid = 100,
                                                         .first_ns = origin_ns,
                                                         .visible = 1,
                                                         .last_ns = origin_ns + 9,
                                                         .memory_max_kib = -1,
                                                         .sm_util_permille = 5});
    s->event(s->context, HEC_EVENT_GAP, 1, origin_ns + 7, "on node17: GPU-01234567-89ab-cdef-0123-456789abcdef");
    s->units(s->context, "sample", 64);
    s->tracer(s->context, &store_tracer);
    for (int second = 0; second < seconds; second++) {
        int64_t t = origin_ns + second * HEC_NS_PER_S;
        for (int i = 0; i < 50; i++)
            s->sample(s->context, HEC_GPU_POWER, 1, t + i * 20 * HEC_NS_PER_MS,
                      500000 + (i * 7919 + second * 104729) % 90000);
        if (second % 5 == 3)
            s->missing(s->context, HEC_GPU_TEMPERATURE, 1, t);
        else
            s->sample(s->context, HEC_GPU_TEMPERATURE, 1, t, 40 + second % 20);
        s->sample(s->context, HEC_GPU_POWER_LIMIT, 1, t, 700000);
        s->sample(s->context, HEC_GPU_ENERGY, 1, t + second * 1237000, second * INT64_C(512345));
        store_phase(s, t, t + 1000 + second, 101, "forward");
    }
}
