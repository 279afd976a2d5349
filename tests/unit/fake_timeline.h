/* A timeline in memory, and parts of the analysis alone, each fed by a pass of its own. */
#pragma once

#include "base/trace.h"
#include "diagnose/states/ledger.h"
#include "diagnose/timeline/pass.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_timeline {
    char names[64][200];
    uint32_t name_count;
    struct hec_track tracks[64];
    uint32_t track_count;
    struct hec_kernel kernels[64];
    uint32_t kernel_count;
    struct hec_frame frames[32];
    uint32_t frame_count;
    struct hec_tracer tracers[8];
    int tracer_count;
    struct hec_activity *activities;
    size_t count, capacity;
    struct hec_device devices[4];
    int passes;
    int reads[HEC_ACTIVITY_KIND_COUNT]; /* passes that asked for a kind */
    int fail_pass;                      /* this pass over activities fails */
    struct hec_timeline_input input;
};

#define FAKE_TL_TABLE(function, counter, call, ...)                                                                    \
    static inline int function(void *context, int (*visit)(__VA_ARGS__), void *to, struct hec_why *why) {              \
        struct fake_timeline *t = context;                                                                             \
        int err = 0;                                                                                                   \
        (void)why;                                                                                                     \
        for (uint32_t i = 0; i < (uint32_t)t->counter && !err; i++)                                                    \
            err = visit call;                                                                                          \
        return err;                                                                                                    \
    }
FAKE_TL_TABLE(fake_tl_names, name_count, (to, i + 1, t->names[i]), void *to, uint32_t id, const char *text)
FAKE_TL_TABLE(fake_tl_tracks, track_count, (to, &t->tracks[i]), void *to, const struct hec_track *row)
FAKE_TL_TABLE(fake_tl_kernels, kernel_count, (to, &t->kernels[i]), void *to, const struct hec_kernel *row)
FAKE_TL_TABLE(fake_tl_frames, frame_count, (to, &t->frames[i]), void *to, const struct hec_frame *row)
FAKE_TL_TABLE(fake_tl_tracers, tracer_count, (to, &t->tracers[i]), void *to, const struct hec_tracer *row)

/* In chunks of 7, so that borders of chunks are met. */
static inline int fake_tl_activities(void *context, uint32_t kinds,
                                     int (*visit)(void *to, const struct hec_activity *a, size_t count), void *to,
                                     struct hec_why *why) {
    struct fake_timeline *t = context;
    struct hec_activity chunk[7];
    size_t n = 0;
    int err = 0;
    if (++t->passes == t->fail_pass)
        return hec_fail(why, HEC_ERR_CORRUPT, "the file is damaged");
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        t->reads[kind] += (kinds & HEC_ACTIVITY_BIT(kind)) != 0;
    for (size_t i = 0; i < t->count && !err; i++) {
        if (!(kinds & HEC_ACTIVITY_BIT(t->activities[i].kind)))
            continue;
        chunk[n++] = t->activities[i];
        if (n == 7) {
            err = visit(to, chunk, n);
            n = 0;
        }
    }
    return !err && n ? visit(to, chunk, n) : err;
}

static inline void fake_tl_init(struct fake_timeline *t) {
    memset(t, 0, sizeof *t);
    t->input = (struct hec_timeline_input){
        .context = t,
        .names = fake_tl_names,
        .tracks = fake_tl_tracks,
        .kernels = fake_tl_kernels,
        .frames = fake_tl_frames,
        .tracers = fake_tl_tracers,
        .activities = fake_tl_activities,
        .devices = t->devices,
        .device_count = 4,
        .end_ns = INT64_C(1) << 40,
    };
    for (int i = 0; i < 4; i++)
        t->devices[i] = (struct hec_device){.index = i, .cuda_major = 9, .cuda_minor = 0};
}

static inline void fake_tl_free(struct fake_timeline *t) {
    free(t->activities);
    t->activities = NULL;
    t->count = t->capacity = 0;
}

static inline uint32_t fake_tl_name(struct fake_timeline *t, const char *text) {
    for (uint32_t i = 0; i < t->name_count; i++)
        if (strcmp(t->names[i], text) == 0)
            return i + 1;
    snprintf(t->names[t->name_count], sizeof t->names[0], "%s", text);
    return ++t->name_count;
}

static inline uint32_t fake_tl_track(struct fake_timeline *t, enum hec_track_kind kind, int32_t pid, int32_t device,
                                     int64_t stream) {
    struct hec_track *track = &t->tracks[t->track_count];
    *track = (struct hec_track){
        .id = ++t->track_count, .kind = kind, .pid = pid, .rank = -1, .device = device, .stream = stream};
    return track->id;
}

static inline uint32_t fake_tl_kernel(struct fake_timeline *t, const char *name, int block) {
    struct hec_kernel *k = &t->kernels[t->kernel_count];
    *k = (struct hec_kernel){.id = ++t->kernel_count,
                             .name = fake_tl_name(t, name),
                             .grid = {128, 1, 1},
                             .block = {block, 1, 1},
                             .registers = 32};
    return k->id;
}

static inline uint32_t fake_tl_frame(struct fake_timeline *t, const char *file, const char *function, int line) {
    struct hec_frame *f = &t->frames[t->frame_count];
    *f = (struct hec_frame){
        .id = ++t->frame_count, .file = fake_tl_name(t, file), .function = fake_tl_name(t, function), .line = line};
    return f->id;
}

/* By start; of one start in the order of adding. */
static inline struct hec_activity *fake_tl_add(struct fake_timeline *t, enum hec_activity_kind kind, uint32_t track,
                                               int64_t start_ns, int64_t end_ns) {
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->activities = realloc(t->activities, t->capacity * sizeof *t->activities);
    }
    size_t at = t->count++;
    while (at && t->activities[at - 1].start_ns > start_ns) {
        t->activities[at] = t->activities[at - 1];
        at--;
    }
    t->activities[at] = (struct hec_activity){
        .detail = kind == HEC_ACTIVITY_WINDOW ? HEC_TRACE_AUTO : 0,
        .kind = (uint8_t)kind,
        .track = track,
        .start_ns = start_ns,
        .end_ns = end_ns,
        .launch_ns = HEC_TIME_UNKNOWN,
        .launch_end_ns = HEC_TIME_UNKNOWN,
    };
    return &t->activities[at];
}

/* Launched by a call of a thread. */
static inline void fake_tl_launched(struct hec_activity *a, int64_t from_ns, int64_t to_ns, uint32_t thread) {
    a->launch_ns = from_ns;
    a->launch_end_ns = to_ns;
    a->launch_track = thread;
}

/* A copy of so many bytes. */
static inline struct hec_activity *fake_tl_copy(struct fake_timeline *t, uint32_t stream, int64_t start_ns,
                                                int64_t end_ns, double bytes, enum hec_memory_kind from,
                                                enum hec_memory_kind to) {
    struct hec_activity *a = fake_tl_add(t, HEC_ACTIVITY_COPY, stream, start_ns, end_ns);
    a->amount = bytes;
    a->from = (uint8_t)from;
    a->to = (uint8_t)to;
    return a;
}

/* ---- at random ---- */

static uint64_t random_state;

static inline uint32_t random_below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

/* Two processes' tracks, and streams of one or both of them on one or two devices. */
struct random_tracks {
    uint32_t streams[6], stream_count, process[2], processes, devices;
};

static inline struct random_tracks fake_tl_random_tracks(struct fake_timeline *t) {
    struct random_tracks r = {
        .stream_count = 1 + random_below(6), .processes = 1 + random_below(2), .devices = 1 + random_below(2)};
    for (uint32_t i = 0; i < r.stream_count; i++)
        r.streams[i] = fake_tl_track(t, HEC_TRACK_STREAM, (int32_t)(1 + random_below(r.processes)),
                                     (int32_t)random_below(r.devices), i);
    for (int i = 0; i < 2; i++)
        r.process[i] = fake_tl_track(t, HEC_TRACK_PROCESS, i + 1, -1, 0);
    return r;
}

static inline void fake_tl_random_windows(struct fake_timeline *t, const struct random_tracks *r, uint32_t count,
                                          uint32_t span) {
    for (; count > 0; count--) {
        uint32_t start = random_below(span - 1), end = start + random_below(span - start);
        fake_tl_add(t, HEC_ACTIVITY_WINDOW, r->process[random_below(r->processes)], start, end);
    }
}

/* Windows of the processes that have a stream on a device. */
struct windows_at {
    int windows, alive, open; /* alive, open: processes, at one time */
    int64_t first, last;
};

static inline struct windows_at fake_tl_windows_at(const struct fake_timeline *t, int device, int64_t at) {
    struct windows_at found = {.first = INT64_MAX, .last = INT64_MIN};
    for (int32_t pid = 1; pid <= 2; pid++) {
        bool here = false, before = false, after = false, inside = false;
        for (uint32_t k = 0; k < t->track_count; k++)
            here |= t->tracks[k].kind == HEC_TRACK_STREAM && t->tracks[k].pid == pid && t->tracks[k].device == device;
        for (size_t i = 0; i < t->count && here; i++) {
            const struct hec_activity *a = &t->activities[i];
            if (a->kind != HEC_ACTIVITY_WINDOW || t->tracks[a->track - 1].pid != pid)
                continue;
            found.windows++;
            found.first = a->start_ns < found.first ? a->start_ns : found.first;
            found.last = a->end_ns > found.last ? a->end_ns : found.last;
            before |= a->start_ns <= at;
            after |= a->end_ns > at;
            inside |= a->start_ns <= at && at < a->end_ns;
        }
        found.alive += before && after;
        found.open += inside;
    }
    return found;
}

/* ---- one part of the analysis ---- */

static inline int fake_pass_timeline(const struct hec_timeline_input *input, struct hec_timeline *out,
                                     struct hec_why *why) {
    struct hec_pass pass;
    struct hec_timeline_builder *builder;
    struct hec_pass_consumer consumer;
    memset(out, 0, sizeof *out);
    int err = hec_pass_open(input, &pass, why);
    if (err)
        return err;
    err = hec_timeline_begin(&pass, &builder, &consumer);
    if (!err && (err = hec_pass_run(&pass, &consumer, 1, why)) == 0)
        err = hec_timeline_end(builder, NULL, out);
    else
        hec_timeline_abandon(builder);
    hec_pass_close(&pass);
    return err;
}

/* beside: gets what the states are made of, before them; NULL: nobody does. */
static inline int fake_pass_states_of(const struct hec_pass *pass, const struct hec_state_limits *limits,
                                      const struct hec_state_visitor *visitor, const struct hec_pass_consumer *beside,
                                      struct hec_why *why) {
    struct hec_states *states;
    struct hec_pass_consumer consumers[2] = {{0}};
    if (beside)
        consumers[0] = *beside;
    int err = hec_states_begin(pass, limits, visitor, &states, &consumers[1]);
    if (!err && (err = hec_pass_run(pass, consumers, 2, why)) == 0)
        return hec_states_end(states);
    hec_states_abandon(states);
    return err;
}

static inline int fake_pass_states(const struct hec_timeline_input *input, const struct hec_state_limits *limits,
                                   const struct hec_state_visitor *visitor, struct hec_why *why) {
    struct hec_pass pass;
    int err = hec_pass_open(input, &pass, why);
    if (err)
        return err;
    err = fake_pass_states_of(&pass, limits, visitor, NULL, why);
    hec_pass_close(&pass);
    return err;
}

static inline int fake_pass_take_piece(void *context, int device, const struct hec_state_piece *piece) {
    return hec_ledger_piece(context, device, piece);
}

static inline int fake_pass_ledger_of(const struct hec_pass *pass, const struct hec_state_limits *limits,
                                      struct hec_ledger *out) {
    struct hec_device_steps steps;
    struct hec_ledger_builder *builder = hec_ledger_begin();
    const struct hec_state_visitor visitor = {.context = builder, .piece = fake_pass_take_piece};
    int err = hec_device_steps_choose(&pass->survey, &pass->tables, &steps);
    hec_ledger_steps(builder, &steps);
    if (!err)
        err = fake_pass_states_of(pass, limits, &visitor, NULL, NULL);
    if (!err)
        return hec_ledger_end(builder, out);
    hec_ledger_abandon(builder);
    return err;
}

static inline int fake_pass_ledger(const struct hec_timeline_input *input, const struct hec_state_limits *limits,
                                   struct hec_ledger *out) {
    struct hec_pass pass;
    int err = hec_pass_open(input, &pass, NULL);
    if (err)
        return err;
    err = fake_pass_ledger_of(&pass, limits, out);
    hec_pass_close(&pass);
    return err;
}
