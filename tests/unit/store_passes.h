/* Every pass of the reader over a file: what a report does, and more. Also used by the fuzzer. */
#pragma once

#include "store/reader.h"

#include <stdlib.h>
#include <string.h>

/* The visitors look at all they are given, so that a sanitizer sees it. */
static inline int store_ignore_chunk(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid,
                                     size_t count) {
    (void)t_ns, (void)value, (void)valid;
    *(int64_t *)context += (int64_t)count;
    return 0;
}
static inline int store_ignore_device(void *context, const struct hec_device *device) {
    *(int64_t *)context += (int64_t)strlen(device->name);
    return 0;
}
static inline int store_ignore_process(void *context, const struct hec_process *process) {
    *(int64_t *)context += (int64_t)strlen(process->name);
    return 0;
}
static inline int store_ignore_gpu_process(void *context, const struct hec_gpu_process *process) {
    *(int64_t *)context += process->visible != 0;
    return 0;
}
static inline int store_ignore_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns,
                                     const char *text) {
    (void)t_ns, (void)device;
    *(int64_t *)context += (int64_t)(strlen(text) + strlen(hec_event_name(kind)));
    return 0;
}
static inline int store_ignore_unit(void *context, const char *name, double count) {
    (void)count;
    *(int64_t *)context += (int64_t)strlen(name);
    return 0;
}
static inline int store_ignore_name(void *context, uint32_t id, const char *text) {
    *(int64_t *)context += id + (int64_t)strlen(text);
    return 0;
}
static inline int store_ignore_track(void *context, const struct hec_track *track) {
    *(int64_t *)context += track->id + (int64_t)strlen(track->name) + track->kind;
    return 0;
}
static inline int store_ignore_kernel(void *context, const struct hec_kernel *kernel) {
    *(int64_t *)context += kernel->id + kernel->grid[2];
    return 0;
}
static inline int store_ignore_frame(void *context, const struct hec_frame *frame) {
    *(int64_t *)context += frame->id + frame->parent;
    return 0;
}
static inline int store_ignore_tracer(void *context, const struct hec_tracer *tracer) {
    *(int64_t *)context += (int64_t)(strlen(tracer->library) + strlen(tracer->why) + strlen(tracer->holder));
    return 0;
}
/* Aborts where the reader breaks a promise. */
struct store_activities {
    int64_t count, last_ns;
};
static inline int store_check_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct store_activities *seen = context;
    if (count == 0 || count > 4096)
        abort();
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &activities[i];
        if (a->start_ns < seen->last_ns || a->end_ns < a->start_ns || a->kind >= HEC_ACTIVITY_KIND_COUNT ||
            a->track == 0 || a->amount - a->amount > 0)
            abort();
        seen->last_ns = a->start_ns;
    }
    seen->count += (int64_t)count;
    return 0;
}
static inline int store_ignore_phase(void *context, const char *name, int64_t total_ns, int64_t count) {
    (void)total_ns, (void)count;
    *(int64_t *)context += (int64_t)strlen(name);
    return 0;
}

typedef unsigned __int128 store_metrics;
_Static_assert(HEC_METRIC_COUNT <= 128, "a bit each");

/* Every pass over an open file, of the series those of the wanted metrics (a bit each); 0 or the first error, which must
 * have a sentence. *values: of all those series. */
static inline int store_read_some(struct hec_reader *reader, store_metrics metrics, uint32_t activity_kinds,
                                  int64_t *values, struct hec_why *why) {
    int64_t seen = 0;
    *values = 0;
    int first = 0, err;
#define PASS(call)                                                                                                     \
    if ((err = (call)) < 0 && first == 0)                                                                              \
    first = err
    PASS(hec_reader_devices(reader, store_ignore_device, &seen, why));
    PASS(hec_reader_processes(reader, store_ignore_process, &seen, why));
    PASS(hec_reader_gpu_processes(reader, store_ignore_gpu_process, &seen, why));
    PASS(hec_reader_events(reader, store_ignore_event, &seen, why));
    PASS(hec_reader_units(reader, store_ignore_unit, &seen, why));
    PASS(hec_reader_phases(reader, store_ignore_phase, &seen, why));
    for (int m = 0; m < HEC_METRIC_COUNT; m++) {
        if (!(metrics >> m & 1))
            continue;
        int32_t *subjects = NULL;
        int n;
        PASS(n = hec_reader_subjects(reader, (enum hec_metric)m, &subjects, why));
        for (int i = 0; i < n && i < 8; i++)
            PASS(hec_reader_series(reader, (enum hec_metric)m, subjects[i], store_ignore_chunk, values, why));
        free(subjects);
    }
    PASS(hec_reader_trace_names(reader, store_ignore_name, &seen, why));
    PASS(hec_reader_tracks(reader, store_ignore_track, &seen, why));
    PASS(hec_reader_kernels(reader, store_ignore_kernel, &seen, why));
    PASS(hec_reader_frames(reader, store_ignore_frame, &seen, why));
    PASS(hec_reader_tracers(reader, store_ignore_tracer, &seen, why));
    struct store_activities activities = {0, INT64_MIN};
    PASS(hec_reader_activities(reader, activity_kinds, store_check_activities, &activities, why));
#undef PASS
    return first;
}

static inline int store_read_all(struct hec_reader *reader, int64_t *values, struct hec_why *why) {
    struct store_activities activities = {0, INT64_MIN};
    int first = store_read_some(reader, ~(store_metrics)0, HEC_ACTIVITY_ALL, values, why);
    int err = hec_reader_activities(reader, HEC_ACTIVITY_DEVICE, store_check_activities, &activities, why);
    return first ? first : err < 0 ? err : 0;
}
