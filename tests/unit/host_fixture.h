/* For the tests of host collectors: a sink that remembers, and a folder of files that stands for /proc or /sys. */
#ifndef HEC_TESTS_HOST_FIXTURE_H
#define HEC_TESTS_HOST_FIXTURE_H

#include "model/run.h"
#include "unit.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDED_MAX 65536

struct recorded_sample {
    enum hec_metric metric;
    int32_t subject;
    int64_t t_ns, value;
    bool missing;
};

struct recorded {
    struct recorded_sample *samples;
    int count;
    struct hec_process processes[256];
    int process_count;
    char events[16][256];
    enum hec_event_kind event_kinds[16];
    int event_count;
    char seen[32];
};

static inline void record(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value,
                          bool missing) {
    struct recorded *recorded = context;
    assert_true(recorded->count < RECORDED_MAX);
    recorded->samples[recorded->count++] = (struct recorded_sample){metric, subject, t_ns, value, missing};
}

static inline void record_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    record(context, metric, subject, t_ns, value, false);
}

static inline void record_missing(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns) {
    record(context, metric, subject, t_ns, 0, true);
}

static inline void record_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    struct recorded *recorded = context;
    (void)device, (void)t_ns;
    if (recorded->event_count == 16)
        return;
    recorded->event_kinds[recorded->event_count] = kind;
    snprintf(recorded->events[recorded->event_count++], 256, "%s", text);
}

static inline void record_process(void *context, const struct hec_process *process) {
    struct recorded *recorded = context;
    int at = 0;
    while (at < recorded->process_count &&
           (recorded->processes[at].pid != process->pid || recorded->processes[at].start_ns != process->start_ns))
        at++;
    if (at == 256)
        return;
    recorded->processes[at] = *process;
    if (at == recorded->process_count)
        recorded->process_count++;
}

static inline void record_meta(void *context, const char *key, const char *value) {
    struct recorded *recorded = context;
    if (strcmp(key, "tree_processes_seen") == 0)
        snprintf(recorded->seen, sizeof recorded->seen, "%s", value);
}

static inline struct hec_sink recording_sink(struct recorded *recorded) {
    memset(recorded, 0, sizeof *recorded);
    recorded->samples = calloc(RECORDED_MAX, sizeof *recorded->samples);
    assert_non_null(recorded->samples);
    return (struct hec_sink){.context = recorded,
                             .sample = record_sample,
                             .missing = record_missing,
                             .event = record_event,
                             .process = record_process,
                             .meta = record_meta};
}

/* The last record of a metric; fails when there is none. */
static inline struct recorded_sample last_of(const struct recorded *recorded, enum hec_metric metric, int32_t subject) {
    for (int i = recorded->count - 1; i >= 0; i--)
        if (recorded->samples[i].metric == metric && recorded->samples[i].subject == subject)
            return recorded->samples[i];
    fail_msg("no %s recorded", hec_metric_info(metric)->name);
    return (struct recorded_sample){0};
}

static inline int64_t value_of(const struct recorded *recorded, enum hec_metric metric) {
    struct recorded_sample sample = last_of(recorded, metric, 0);
    if (sample.missing)
        fail_msg("%s is missing", hec_metric_info(metric)->name);
    return sample.value;
}

static inline int count_of(const struct recorded *recorded, enum hec_metric metric) {
    int count = 0;
    for (int i = 0; i < recorded->count; i++)
        count += recorded->samples[i].metric == metric;
    return count;
}

static inline bool reported(const struct recorded *recorded, enum hec_event_kind kind, const char *part) {
    for (int i = 0; i < recorded->event_count; i++)
        if (recorded->event_kinds[i] == kind && strstr(recorded->events[i], part))
            return true;
    return false;
}

static inline const struct hec_process *process_of(const struct recorded *recorded, int32_t pid) {
    for (int i = recorded->process_count - 1; i >= 0; i--)
        if (recorded->processes[i].pid == pid)
            return &recorded->processes[i];
    return NULL;
}

/* A new empty folder; free it with fixture_remove. */
static inline char *fixture_make(void) {
    const char *base = getenv("TMPDIR");
    char *path = calloc(1, 256);
    assert_non_null(path);
    snprintf(path, 256, "%s/hec-test-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static inline int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw) {
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

static inline void fixture_delete(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void fixture_remove(char *folder) {
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

/* Write FOLDER/NAME, with the folders it needs. The file is rewritten in place, as files of /proc change. */
static inline __attribute__((format(printf, 3, 4))) void fixture_file(const char *folder, const char *name,
                                                                      const char *format, ...) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    va_list args;
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    assert_int_equal(fclose(file), 0);
}

#endif
