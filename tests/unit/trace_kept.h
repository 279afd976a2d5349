/* A sink that keeps the timeline, for tests of the trace collector. */
#ifndef HEC_TESTS_TRACE_KEPT_H
#define HEC_TESTS_TRACE_KEPT_H

#include "base/clock.h"
#include "base/error.h"
#include "observe/trace/peer.h"
#include "observe/trace/records.h"
#include "unit.h"

#include <unistd.h>

#define KEPT_MAX 200000
#define KEPT_SMALL 4096

static struct {
    char names[KEPT_SMALL][128];
    uint32_t name_count;
    struct hec_track tracks[KEPT_SMALL];
    uint32_t track_count;
    struct hec_kernel kernels[KEPT_SMALL];
    uint32_t kernel_count;
    struct hec_activity *activities;
    size_t count;
    struct hec_tracer tracers[16];
    int tracer_count;
    char events[256][256];
    enum hec_event_kind kinds[256];
    int event_count;
} kept;

static uint32_t keep_name(void *context, const char *text) {
    (void)context;
    for (uint32_t i = 0; i < kept.name_count; i++)
        if (strncmp(kept.names[i], text, sizeof kept.names[0] - 1) == 0)
            return i + 1;
    assert_true(kept.name_count < KEPT_SMALL);
    snprintf(kept.names[kept.name_count++], sizeof kept.names[0], "%s", text);
    return kept.name_count;
}

static uint32_t keep_track(void *context, const struct hec_track *track) {
    (void)context;
    for (uint32_t i = 0; i < kept.track_count; i++) {
        const struct hec_track *known = &kept.tracks[i];
        if (known->kind == track->kind && known->pid == track->pid && known->device == track->device &&
            known->context == track->context && known->stream == track->stream)
            return i + 1;
    }
    assert_true(kept.track_count < KEPT_SMALL);
    kept.tracks[kept.track_count++] = *track;
    return kept.track_count;
}

static uint32_t keep_kernel(void *context, const struct hec_kernel *kernel) {
    (void)context;
    assert_true(kept.kernel_count < KEPT_SMALL);
    kept.kernels[kept.kernel_count++] = *kernel;
    return kept.kernel_count;
}

static void keep_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context;
    assert_true(count > 0 && kept.count + count <= KEPT_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &activities[i];
        assert_true(a->start_ns <= a->end_ns);
        assert_in_range(a->track, 1, kept.track_count);
        assert_true(a->kind < HEC_ACTIVITY_KIND_COUNT);
        assert_true(a->launch_track <= kept.track_count);
        assert_true(a->name <= (a->kind == HEC_ACTIVITY_KERNEL ? kept.kernel_count : kept.name_count));
    }
    memcpy(kept.activities + kept.count, activities, count * sizeof *activities);
    kept.count += count;
}

static void keep_tracer(void *context, const struct hec_tracer *tracer) {
    (void)context;
    int at = 0;
    while (at < kept.tracer_count && kept.tracers[at].pid != tracer->pid)
        at++;
    assert_true(at < 16);
    kept.tracers[at] = *tracer;
    kept.tracer_count += at == kept.tracer_count;
}

static void keep_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)device, (void)t_ns;
    assert_true(kept.event_count < 256);
    kept.kinds[kept.event_count] = kind;
    snprintf(kept.events[kept.event_count++], sizeof kept.events[0], "%s", text);
}

static const struct hec_sink keeping = {
    .event = keep_event,
    .trace_name = keep_name,
    .trace_track = keep_track,
    .trace_kernel = keep_kernel,
    .trace_activities = keep_activities,
    .tracer = keep_tracer,
};

static const char *kept_event(enum hec_event_kind kind, const char *part) {
    for (int i = 0; i < kept.event_count; i++)
        if (kept.kinds[i] == kind && strstr(kept.events[i], part))
            return kept.events[i];
    return NULL;
}

__attribute__((unused)) static size_t kept_of(enum hec_activity_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < kept.count; i++)
        count += kept.activities[i].kind == kind;
    return count;
}

static int keep_begin(void **state) {
    (void)state;
    struct hec_activity *activities = kept.activities ? kept.activities : malloc(KEPT_MAX * sizeof *activities);
    memset(&kept, 0, sizeof kept);
    kept.activities = activities;
    return activities ? 0 : -1;
}

static int keep_end(void **state) {
    (void)state;
    free(kept.activities);
    return 0;
}

#endif
