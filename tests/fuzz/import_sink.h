/* A sink that believes nothing: aborts where an importer breaks its promises. */
#pragma once

#include "store/import/import.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    uint32_t names, tracks, kernels;
    int devices;
    int64_t activities;
    bool complete;
} reported;

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint32_t take_name(void *context, const char *text) {
    (void)context;
    REQUIRE(strlen(text) <= 16384);
    for (const char *p = text; *p; p++)
        REQUIRE((unsigned char)*p >= 0x20 && *p != 0x7f);
    return ++reported.names;
}

static uint32_t take_track(void *context, const struct hec_track *track) {
    (void)context;
    REQUIRE(track->kind < HEC_TRACK_KIND_COUNT && track->pid >= 0 && track->rank >= -1);
    REQUIRE(memchr(track->name, '\0', sizeof track->name) != NULL);
    REQUIRE(track->kind == HEC_TRACK_STREAM ? track->device >= 0 && track->device < reported.devices
                                            : track->device == -1);
    return ++reported.tracks;
}

static uint32_t take_kernel(void *context, const struct hec_kernel *kernel) {
    (void)context;
    REQUIRE(kernel->name <= reported.names && kernel->registers >= -1);
    return ++reported.kernels;
}

static void take_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &activities[i];
        REQUIRE(a->kind < HEC_ACTIVITY_KIND_COUNT && a->start_ns >= 0 && a->start_ns <= a->end_ns);
        REQUIRE(a->track >= 1 && a->track <= reported.tracks && a->launch_track <= reported.tracks);
        REQUIRE(a->name <= (a->kind == HEC_ACTIVITY_KERNEL ? reported.kernels : reported.names));
        REQUIRE(isnan(a->amount) || a->amount >= 0);
        REQUIRE(a->from < HEC_MEMORY_KIND_COUNT && a->to < HEC_MEMORY_KIND_COUNT);
        if (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind))
            REQUIRE((a->launch_ns == HEC_TIME_UNKNOWN) == (a->launch_end_ns == HEC_TIME_UNKNOWN) &&
                    (a->launch_ns == HEC_TIME_UNKNOWN || a->launch_ns <= a->launch_end_ns));
    }
    reported.activities += (int64_t)count;
}

static void take_device(void *context, const struct hec_device *device) {
    (void)context;
    REQUIRE(device->index == reported.devices && reported.devices < HEC_DEVICE_MAX);
    REQUIRE(memchr(device->name, '\0', sizeof device->name) && memchr(device->uuid, '\0', sizeof device->uuid));
    reported.devices++;
}

static void take_meta(void *context, const char *key, const char *value) {
    (void)context;
    REQUIRE(!reported.complete && value != NULL);
    reported.complete = strcmp(key, "complete") == 0;
}

static void take_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context;
    REQUIRE(kind == HEC_EVENT_NOTE && device == HEC_DEVICE_NONE && t_ns == 0 && *text);
}

/* Both passes over the file, twice in one run: what is reported must hold together, and a failure has its sentence. */
static void import_and_check(const char *path) {
    static const struct hec_sink sink = {
        .trace_name = take_name,
        .trace_track = take_track,
        .trace_kernel = take_kernel,
        .trace_activities = take_activities,
        .device = take_device,
        .meta = take_meta,
        .event = take_event,
    };
    struct hec_import *import = NULL;
    struct hec_why why = {""};
    memset(&reported, 0, sizeof reported);
    REQUIRE(hec_import_new(&sink, NULL, NULL, &import, &why) == HEC_OK);
    int err = hec_import_scan(import, path, &why);
    if (err == HEC_OK)
        err = hec_import_read(import, path, &why);
    const struct hec_import_stats *stats = hec_import_stats(import);
    REQUIRE(stats->kept >= reported.activities && stats->bad >= 0 && stats->skipped >= 0 && stats->end_ns >= 0);
    REQUIRE(err <= 0 && reported.complete == (err == HEC_OK));
    REQUIRE(err == HEC_OK || (why.text[0] && !strchr(why.text, '\n')));
    hec_import_free(import);
}

static const char *fuzz_path(const char *suffix) {
    static char path[64];
    if (!path[0])
        snprintf(path, sizeof path, "%s/hec-fuzz-%ld%s", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                 (long)getpid(), suffix);
    return path;
}

static void fuzz_remove(void) {
    unlink(fuzz_path(""));
}

static void fuzz_write(const char *path, const void *bytes, size_t size) {
    static bool registered;
    if (!registered)
        atexit(fuzz_remove);
    registered = true;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size)
        abort();
    fclose(file);
}
