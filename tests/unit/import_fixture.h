/* A sink that keeps what an importer reports, and helpers that make traces. */
#ifndef HEC_TESTS_IMPORT_FIXTURE_H
#define HEC_TESTS_IMPORT_FIXTURE_H

#include "store/import/import.h"
#include "unit.h"

/* after the four above */
#include <unistd.h>
#include <zlib.h>

#define IMPORT_NAMES 4096
#define IMPORT_TRACKS 256
#define IMPORT_KERNELS 1024
#define IMPORT_ACTIVITIES 16384
#define IMPORT_META 32

struct imported {
    char *name[IMPORT_NAMES];
    struct hec_track track[IMPORT_TRACKS];
    struct hec_kernel kernel[IMPORT_KERNELS];
    struct hec_activity activity[IMPORT_ACTIVITIES];
    struct hec_device device[HEC_DEVICE_MAX];
    char meta[IMPORT_META][2][512];
    int names, tracks, kernels, activities, devices, metas;
    struct hec_import_stats stats;
    struct hec_why why;
};

static struct imported imported;
static char import_folder[64];

static inline uint32_t fixture_name(void *context, const char *text) {
    struct imported *all = context;
    for (int i = 0; i < all->names; i++)
        if (strcmp(all->name[i], text) == 0)
            return (uint32_t)i + 1;
    assert_true(all->names < IMPORT_NAMES);
    all->name[all->names++] = strdup(text);
    return (uint32_t)all->names;
}

static inline uint32_t fixture_track(void *context, const struct hec_track *track) {
    struct imported *all = context;
    for (int i = 0; i < all->tracks; i++) {
        struct hec_track *t = &all->track[i];
        if (t->kind == track->kind && t->pid == track->pid && t->rank == track->rank && t->device == track->device &&
            t->context == track->context && t->stream == track->stream)
            return (uint32_t)i + 1;
    }
    assert_true(all->tracks < IMPORT_TRACKS);
    all->track[all->tracks++] = *track;
    return (uint32_t)all->tracks;
}

static inline uint32_t fixture_kernel(void *context, const struct hec_kernel *kernel) {
    struct imported *all = context;
    struct hec_kernel copy = *kernel;
    for (int i = 0; i < all->kernels; i++) {
        copy.id = all->kernel[i].id;
        if (memcmp(&all->kernel[i], &copy, sizeof copy) == 0)
            return (uint32_t)i + 1;
    }
    assert_true(all->kernels < IMPORT_KERNELS);
    copy.id = (uint32_t)all->kernels + 1;
    all->kernel[all->kernels++] = copy;
    return copy.id;
}

static inline void fixture_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct imported *all = context;
    assert_true(all->activities + (int)count <= IMPORT_ACTIVITIES);
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &activities[i];
        assert_true(a->start_ns >= 0 && a->start_ns <= a->end_ns && a->kind < HEC_ACTIVITY_KIND_COUNT);
        assert_true(a->track >= 1 && (int)a->track <= all->tracks);
        assert_true((int)a->launch_track <= all->tracks);
        all->activity[all->activities++] = *a;
    }
}

static inline void fixture_device(void *context, const struct hec_device *device) {
    struct imported *all = context;
    assert_int_equal(device->index, all->devices);
    all->device[all->devices++] = *device;
}

static inline void fixture_meta(void *context, const char *key, const char *value) {
    struct imported *all = context;
    assert_true(all->metas < IMPORT_META);
    snprintf(all->meta[all->metas][0], 512, "%s", key);
    snprintf(all->meta[all->metas++][1], 512, "%s", value);
}

static const struct hec_sink import_sink = {
    .context = &imported,
    .trace_name = fixture_name,
    .trace_track = fixture_track,
    .trace_kernel = fixture_kernel,
    .trace_activities = fixture_activities,
    .device = fixture_device,
    .meta = fixture_meta,
};

static inline void import_clear(void) {
    for (int i = 0; i < imported.names; i++)
        free(imported.name[i]);
    memset(&imported, 0, sizeof imported);
}

/* Imports the files together; everything told is in `imported`. */
static inline int import_files(const char *const *paths, int count) {
    import_clear();
    struct hec_import *import = NULL;
    int err = hec_import_new(&import_sink, NULL, NULL, &import, &imported.why);
    for (int i = 0; i < count && err == HEC_OK; i++)
        err = hec_import_scan(import, paths[i], &imported.why);
    for (int i = 0; i < count && err == HEC_OK; i++)
        err = hec_import_read(import, paths[i], &imported.why);
    if (import)
        imported.stats = *hec_import_stats(import);
    hec_import_free(import);
    if (err < 0) {
        assert_true(imported.why.text[0] != '\0');
        assert_null(strchr(imported.why.text, '\n'));
    }
    return err;
}

static inline int import_file(const char *path) {
    return import_files(&path, 1);
}

static inline const char *import_path(const char *name) {
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", import_folder, name);
    return path[turn];
}

static inline const char *import_write(const char *name, const void *bytes, size_t length) {
    const char *path = import_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
    return path;
}

static inline int import_text(const char *text) {
    return import_file(import_write("trace.json", text, strlen(text)));
}

/* Events between the brackets of a trace of one file. */
static inline int import_events(const char *events) {
    char *text = malloc(strlen(events) + 64);
    sprintf(text, "{\"traceEvents\": [%s]}", events);
    int err = import_text(text);
    free(text);
    if (err < 0)
        fail_msg("%s", imported.why.text);
    return err;
}

static inline const char *import_meta(const char *key) {
    for (int i = 0; i < imported.metas; i++)
        if (strcmp(imported.meta[i][0], key) == 0)
            return imported.meta[i][1];
    return NULL;
}

static inline int import_count(enum hec_activity_kind kind) {
    int count = 0;
    for (int i = 0; i < imported.activities; i++)
        count += imported.activity[i].kind == kind;
    return count;
}

/* The nth activity of the kind. */
static inline const struct hec_activity *import_nth(enum hec_activity_kind kind, int n) {
    for (int i = 0; i < imported.activities; i++)
        if (imported.activity[i].kind == kind && n-- == 0)
            return &imported.activity[i];
    fail_msg("there are fewer activities of kind %s", hec_activity_kind_name(kind));
    return NULL;
}

static inline const struct hec_track *import_track(uint32_t id) {
    assert_true(id >= 1 && (int)id <= imported.tracks);
    return &imported.track[id - 1];
}

static inline const char *import_name(uint32_t id) {
    assert_true(id >= 1 && (int)id <= imported.names);
    return imported.name[id - 1];
}

static inline int import_folder_make(void **state) {
    (void)state;
    strcpy(import_folder, "/tmp/hec-test-import-XXXXXX");
    return mkdtemp(import_folder) ? 0 : -1;
}

static inline int import_folder_remove(void **state) {
    (void)state;
    char command[128];
    import_clear();
    snprintf(command, sizeof command, "rm -rf '%s'", import_folder);
    return system(command);
}

#endif
