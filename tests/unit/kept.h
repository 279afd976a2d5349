/* A sink that keeps all that it is given, and what a test asks about it. */
#pragma once

#include "model/run.h"
#include "unit.h"

struct kept_sample {
    enum hec_metric metric;
    int32_t subject;
    int64_t t_ns, value;
    bool missing;
};

struct kept_event {
    enum hec_event_kind kind;
    int device;
    char text[256];
};

struct kept_unit {
    char name[64];
    double count;
};

struct kept_meta {
    char key[64], value[512];
};

/* In the order in which they came; what has an id is at its id less one. */
static struct {
    struct kept_sample *sample;
    struct kept_event *event;
    struct hec_device *device;
    struct hec_process *process; /* by pid and start: the last of each */
    struct hec_gpu_process *gpu_process;
    struct hec_gpu_instance *gpu_instance;
    struct kept_unit *unit; /* summed */
    struct kept_meta *meta;
    char **name;
    struct hec_track *track;
    struct hec_kernel *kernel;
    struct hec_frame *frame;
    struct hec_activity *activity;
    struct hec_tracer *tracer; /* by pid: the last of each */
    int samples, events, devices, processes, gpu_processes, gpu_instances, units, metas;
    int names, tracks, kernels, frames, activities, tracers;
} kept;

/* With room for one more. */
static inline void *kept_room(void *list, int count, size_t size) {
    if ((count & (count - 1)) != 0)
        return list;
    list = realloc(list, (count ? 2 * (size_t)count : 1) * size);
    assert_non_null(list);
    return list;
}
/* As the last of the list. */
#define KEEP(list, count, value) (list = kept_room(list, count, sizeof *list), list[(count)++] = value)

static inline void keep_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    (void)context;
    KEEP(kept.sample, kept.samples, ((struct kept_sample){metric, subject, t_ns, value, false}));
}

static inline void keep_missing(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns) {
    (void)context;
    KEEP(kept.sample, kept.samples, ((struct kept_sample){metric, subject, t_ns, 0, true}));
}

static inline void keep_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)t_ns;
    struct kept_event event = {kind, device, ""};
    snprintf(event.text, sizeof event.text, "%s", text);
    KEEP(kept.event, kept.events, event);
}

static inline void keep_device(void *context, const struct hec_device *device) {
    (void)context;
    KEEP(kept.device, kept.devices, *device);
}

static inline void keep_process(void *context, const struct hec_process *process) {
    (void)context;
    for (int i = 0; i < kept.processes; i++)
        if (kept.process[i].pid == process->pid && kept.process[i].start_ns == process->start_ns) {
            kept.process[i] = *process;
            return;
        }
    KEEP(kept.process, kept.processes, *process);
}

static inline void keep_gpu_process(void *context, const struct hec_gpu_process *process) {
    (void)context;
    KEEP(kept.gpu_process, kept.gpu_processes, *process);
}

static inline void keep_gpu_instance(void *context, const struct hec_gpu_instance *instance) {
    (void)context;
    KEEP(kept.gpu_instance, kept.gpu_instances, *instance);
}

static inline void keep_units(void *context, const char *name, double count) {
    (void)context;
    int i = 0;
    while (i < kept.units && strcmp(kept.unit[i].name, name) != 0)
        i++;
    if (i == kept.units) {
        KEEP(kept.unit, kept.units, (struct kept_unit){0});
        snprintf(kept.unit[i].name, sizeof kept.unit[i].name, "%s", name);
    }
    kept.unit[i].count += count;
}

static inline void keep_meta(void *context, const char *key, const char *value) {
    (void)context;
    struct kept_meta meta;
    snprintf(meta.key, sizeof meta.key, "%s", key);
    snprintf(meta.value, sizeof meta.value, "%s", value);
    KEEP(kept.meta, kept.metas, meta);
}

static inline uint32_t keep_name(void *context, const char *text) {
    (void)context;
    for (int i = 0; i < kept.names; i++)
        if (strcmp(kept.name[i], text) == 0)
            return (uint32_t)i + 1;
    KEEP(kept.name, kept.names, strdup(text));
    return (uint32_t)kept.names;
}

static inline uint32_t keep_track(void *context, const struct hec_track *track) {
    (void)context;
    for (int i = 0; i < kept.tracks; i++) {
        const struct hec_track *t = &kept.track[i];
        if (t->kind == track->kind && t->pid == track->pid && t->rank == track->rank && t->device == track->device &&
            t->context == track->context && t->stream == track->stream)
            return (uint32_t)i + 1;
    }
    KEEP(kept.track, kept.tracks, *track);
    return (uint32_t)kept.tracks;
}

static inline uint32_t keep_kernel(void *context, const struct hec_kernel *kernel) {
    (void)context;
    struct hec_kernel copy = *kernel;
    for (int i = 0; i < kept.kernels; i++) {
        copy.id = kept.kernel[i].id;
        if (memcmp(&kept.kernel[i], &copy, sizeof copy) == 0)
            return (uint32_t)i + 1;
    }
    copy.id = (uint32_t)kept.kernels + 1;
    KEEP(kept.kernel, kept.kernels, copy);
    return copy.id;
}

static inline uint32_t keep_frame(void *context, const struct hec_frame *frame) {
    (void)context;
    for (int i = 0; i < kept.frames; i++)
        if (kept.frame[i].parent == frame->parent && kept.frame[i].file == frame->file &&
            kept.frame[i].function == frame->function && kept.frame[i].line == frame->line)
            return (uint32_t)i + 1;
    KEEP(kept.frame, kept.frames, *frame);
    return (uint32_t)kept.frames;
}

static inline void keep_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context;
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &activities[i];
        assert_true(a->start_ns <= a->end_ns);
        assert_true(a->kind < HEC_ACTIVITY_KIND_COUNT);
        assert_in_range(a->track, 1, kept.tracks);
        assert_in_range(a->launch_track, 0, kept.tracks);
        assert_in_range(a->name, 0,
                        a->kind == HEC_ACTIVITY_KERNEL  ? kept.kernels
                        : a->kind == HEC_ACTIVITY_STACK ? kept.frames
                                                        : kept.names);
        KEEP(kept.activity, kept.activities, *a);
    }
}

static inline void keep_tracer(void *context, const struct hec_tracer *tracer) {
    (void)context;
    for (int i = 0; i < kept.tracers; i++)
        if (kept.tracer[i].pid == tracer->pid) {
            kept.tracer[i] = *tracer;
            return;
        }
    KEEP(kept.tracer, kept.tracers, *tracer);
}

__attribute__((unused)) static const struct hec_sink keeping = {
    .sample = keep_sample,
    .missing = keep_missing,
    .event = keep_event,
    .device = keep_device,
    .process = keep_process,
    .gpu_process = keep_gpu_process,
    .gpu_instance = keep_gpu_instance,
    .units = keep_units,
    .meta = keep_meta,
    .trace_name = keep_name,
    .trace_track = keep_track,
    .trace_kernel = keep_kernel,
    .trace_frame = keep_frame,
    .trace_activities = keep_activities,
    .tracer = keep_tracer,
};

static inline void kept_clear(void) {
    for (int i = 0; i < kept.names; i++)
        free(kept.name[i]);
    void *const lists[] = {kept.sample,       kept.event, kept.device,   kept.process, kept.gpu_process,
                           kept.gpu_instance, kept.unit,  kept.meta,     kept.name,    kept.track,
                           kept.kernel,       kept.frame, kept.activity, kept.tracer};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        free(lists[i]);
    memset(&kept, 0, sizeof kept);
}

/* The last that is known of a metric, also that it is missing; fails when there is nothing. */
static inline struct kept_sample kept_last(enum hec_metric metric, int32_t subject) {
    for (int i = kept.samples - 1; i >= 0; i--)
        if (kept.sample[i].metric == metric && kept.sample[i].subject == subject)
            return kept.sample[i];
    fail_msg("no %s", hec_metric_info(metric)->name);
    return (struct kept_sample){0};
}

static inline int64_t kept_value(enum hec_metric metric, int32_t subject) {
    struct kept_sample sample = kept_last(metric, subject);
    if (sample.missing)
        fail_msg("%s is missing", hec_metric_info(metric)->name);
    return sample.value;
}

static inline int kept_samples(enum hec_metric metric, int32_t subject) {
    int count = 0;
    for (int i = 0; i < kept.samples; i++)
        count += kept.sample[i].metric == metric && kept.sample[i].subject == subject && !kept.sample[i].missing;
    return count;
}

/* Of all subjects. */
static inline int kept_missing(enum hec_metric metric) {
    int count = 0;
    for (int i = 0; i < kept.samples; i++)
        count += kept.sample[i].metric == metric && kept.sample[i].missing;
    return count;
}

/* How often it was reported, also as missing, of all subjects. */
static inline int kept_reports(enum hec_metric metric) {
    int count = 0;
    for (int i = 0; i < kept.samples; i++)
        count += kept.sample[i].metric == metric;
    return count;
}

/* The first event of that kind whose text contains `part`; NULL when there is none. */
static inline const char *kept_event(enum hec_event_kind kind, const char *part) {
    for (int i = 0; i < kept.events; i++)
        if (kept.event[i].kind == kind && strstr(kept.event[i].text, part))
            return kept.event[i].text;
    return NULL;
}

static inline int kept_events(enum hec_event_kind kind) {
    int count = 0;
    for (int i = 0; i < kept.events; i++)
        count += kept.event[i].kind == kind;
    return count;
}

/* -1: no such unit. */
static inline double kept_units(const char *name) {
    for (int i = 0; i < kept.units; i++)
        if (strcmp(kept.unit[i].name, name) == 0)
            return kept.unit[i].count;
    return -1;
}

static inline const char *kept_meta(const char *key) {
    for (int i = kept.metas - 1; i >= 0; i--)
        if (strcmp(kept.meta[i].key, key) == 0)
            return kept.meta[i].value;
    return NULL;
}

/* As it was described last. */
static inline const struct hec_device *kept_device(int index) {
    for (int i = kept.devices - 1; i >= 0; i--)
        if (kept.device[i].index == index)
            return &kept.device[i];
    fail_msg("no device %d", index);
    return NULL;
}

/* The last of that pid. */
static inline const struct hec_process *kept_process(int32_t pid) {
    for (int i = kept.processes - 1; i >= 0; i--)
        if (kept.process[i].pid == pid)
            return &kept.process[i];
    return NULL;
}

static inline int kept_count(enum hec_activity_kind kind) {
    int count = 0;
    for (int i = 0; i < kept.activities; i++)
        count += kept.activity[i].kind == kind;
    return count;
}

/* The nth activity of the kind. */
static inline const struct hec_activity *kept_nth(enum hec_activity_kind kind, int n) {
    for (int i = 0; i < kept.activities; i++)
        if (kept.activity[i].kind == kind && n-- == 0)
            return &kept.activity[i];
    fail_msg("there are fewer activities of kind %s", hec_activity_kind_name(kind));
    return NULL;
}

static inline const struct hec_track *kept_track(uint32_t id) {
    assert_in_range(id, 1, kept.tracks);
    return &kept.track[id - 1];
}

static inline const char *kept_name(uint32_t id) {
    assert_in_range(id, 1, kept.names);
    return kept.name[id - 1];
}
