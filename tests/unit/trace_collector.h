/* A sink that keeps the timeline, and a process whose records are made by hand, for tests of the trace collector. */
#ifndef HEC_TESTS_TRACE_COLLECTOR_H
#define HEC_TESTS_TRACE_COLLECTOR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "observe/trace/peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static size_t kept_of(enum hec_activity_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < kept.count; i++)
        count += kept.activities[i].kind == kind;
    return count;
}

static const struct hec_activity *kept_first(enum hec_activity_kind kind) {
    for (size_t i = 0; i < kept.count; i++)
        if (kept.activities[i].kind == kind)
            return &kept.activities[i];
    return NULL;
}

static int keep_begin(void **state) {
    (void)state;
    struct hec_activity *activities = kept.activities ? kept.activities : malloc(KEPT_MAX * sizeof *activities);
    memset(&kept, 0, sizeof kept);
    kept.activities = activities;
    return activities ? 0 : -1;
}

/* ---- a process ---- */

struct process {
    struct hec_ring ring;
    struct hec_trace_run *run;
    struct hec_trace_peer *peer;
    int64_t t0_ns; /* times of records are given relative to this, in microseconds */
};

static void process_open(struct process *process, pid_t pid) {
    int fd;
    struct hec_ring_reader reader;
    memset(process, 0, sizeof *process);
    process->run = malloc(sizeof *process->run);
    process->t0_ns = hec_clock_mono_ns() - 60 * HEC_NS_PER_S;
    hec_trace_run_init(process->run, &keeping, process->t0_ns);
    assert_int_equal(hec_ring_create(1024, HEC_RING_TRACE, &process->ring, &fd), HEC_OK);
    assert_int_equal(hec_ring_map(fd, &reader), HEC_OK);
    close(fd);
    process->peer = hec_trace_peer_new(process->run, reader, pid, -1);
    assert_non_null(process->peer);
}

static int64_t at_us(const struct process *process, double us) {
    return process->t0_ns + (int64_t)(us * 1e3);
}

static void give(struct process *process, uint16_t kind, double t_us, const void *payload, size_t size, uint16_t flags,
                 double now_us) {
    struct hec_ring_record record = {.t_ns = at_us(process, t_us), .tid = 77, .kind = kind, .flags = flags};
    memcpy(record.u.bytes, payload, size);
    hec_trace_peer_take(process->peer, process->run, &record, at_us(process, now_us));
}
#define GIVE(process, kind, t_us, now_us, flags, type, ...)                                                            \
    give(process, kind, t_us, &(struct type)__VA_ARGS__, sizeof(struct type), flags, now_us)

static void give_name(struct process *process, uint32_t id, const char *text) {
    size_t length = strlen(text);
    uint8_t pieces = (uint8_t)((length + 31) / 32);
    for (uint8_t i = 0; i < pieces; i++) {
        struct hec_ring_name name = {.id = id, .piece = i, .pieces = pieces, .length = (uint16_t)length};
        size_t rest = length - 32u * i;
        memcpy(name.text, text + 32 * i, rest < 32 ? rest : 32);
        give(process, HEC_RING_NAME, 0, &name, sizeof name, 0, 1);
    }
}

static void give_process(struct process *process) {
    give_name(process, 1, "/usr/lib/libcupti.so.13");
    GIVE(
        process, HEC_TRACE_PROCESS, 1, 10, 0, hec_trace_process,
        {.abi = HEC_TRACE_ABI, .mode = HEC_TRACE_FULL, .cupti_version = 130000, .driver_version = 13000, .library = 1});
}

static void give_config(struct process *process, uint32_t id, const char *name) {
    give_name(process, 1000 + id, name);
    GIVE(process, HEC_TRACE_CONFIG, 2, 10, 0, hec_trace_config,
         {.id = id, .name = 1000 + id, .grid = {8, 1, 1}, .block = {256, 1, 1}, .registers = 32});
}

static void release(struct process *process, double now_us) {
    hec_trace_release(&process->peer->tracks, process->run, hec_trace_ms(process->run, at_us(process, now_us)), false);
    hec_trace_flush(process->run);
}

static void process_end(struct process *process, double end_us) {
    hec_trace_peer_end(process->peer, process->run, at_us(process, end_us));
    hec_trace_flush(process->run);
    assert_int_equal(process->run->held, 0);
    assert_int_equal(process->run->budget.left, HEC_TRACE_BUDGET_BYTES);
    free(process->run);
    hec_ring_unmap(&process->ring);
}

#endif
