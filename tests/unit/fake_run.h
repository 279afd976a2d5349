/* A run in memory, as hec_summary_build reads it. */
#pragma once

#include "diagnose/result.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_SERIES_MAX 64

struct fake_series {
    enum hec_metric metric;
    int32_t subject;
    int64_t *t, *v;
    uint8_t *valid;
    size_t count, capacity;
    int reads; /* of the whole of it */
};

struct fake_event {
    enum hec_event_kind kind;
    int device;
    int64_t t_ns;
    const char *text;
};

struct fake_run {
    struct fake_series series[FAKE_SERIES_MAX];
    int series_count;
    struct hec_device devices[8];
    int device_count;
    struct hec_process processes[8];
    int process_count;
    struct hec_gpu_process gpu_processes[8];
    int gpu_process_count;
    struct fake_event events[100];
    int event_count;
    struct {
        const char *name;
        double count;
    } units[4], phases[4];
    int unit_count, phase_count;
    int fail; /* series() returns this */
    struct hec_summary_input input;
};

static inline void fake_add(struct fake_run *run, enum hec_metric metric, int32_t subject, double t_s, int64_t value) {
    struct fake_series *s = NULL;
    for (int i = 0; i < run->series_count; i++)
        if (run->series[i].metric == metric && run->series[i].subject == subject)
            s = &run->series[i];
    if (!s) {
        s = &run->series[run->series_count++];
        *s = (struct fake_series){.metric = metric, .subject = subject};
    }
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->t = realloc(s->t, s->capacity * sizeof *s->t);
        s->v = realloc(s->v, s->capacity * sizeof *s->v);
        s->valid = realloc(s->valid, s->capacity);
    }
    s->t[s->count] = llround(t_s * 1e9);
    s->v[s->count] = value;
    s->valid[s->count++] = 1;
}

/* One value every `every` seconds from `from` to `to`. */
static inline void fake_fill(struct fake_run *run, enum hec_metric metric, int32_t subject, double from, double to,
                             double every, int64_t value) {
    for (long k = 0; from + (double)k * every <= to + 1e-9; k++)
        fake_add(run, metric, subject, from + (double)k * every, value);
}

static inline int fake_series_of(void *context, enum hec_metric metric, int32_t subject, hec_series_visitor visit,
                                 void *visitor, struct hec_why *why) {
    struct fake_run *run = context;
    if (run->fail)
        return hec_fail(why, run->fail, "the file is damaged");
    for (int i = 0; i < run->series_count; i++) {
        struct fake_series *s = &run->series[i];
        if (s->metric != metric || s->subject != subject)
            continue;
        s->reads++;
        for (size_t at = 0; at < s->count; at += 100) { /* in chunks, as the store does */
            size_t count = s->count - at < 100 ? s->count - at : 100;
            int err = visit(visitor, s->t + at, s->v + at, s->valid + at, count);
            if (err)
                return err;
        }
    }
    return 0;
}

static inline int fake_subjects(void *context, enum hec_metric metric, int32_t **subjects, struct hec_why *why) {
    struct fake_run *run = context;
    int count = 0;
    (void)why;
    *subjects = malloc(FAKE_SERIES_MAX * sizeof **subjects);
    for (int i = 0; i < run->series_count; i++)
        if (run->series[i].metric == metric)
            (*subjects)[count++] = run->series[i].subject;
    return count;
}

/* Rows of a table, each told by what the call gives a visitor of these parameters. */
#define FAKE_TABLE(name, counter, call, ...)                                                                           \
    static inline int name(void *context, int (*visit)(__VA_ARGS__), void *visitor, struct hec_why *why) {             \
        struct fake_run *run = context;                                                                                \
        int err = 0;                                                                                                   \
        (void)why;                                                                                                     \
        for (int i = 0; i < run->counter && !err; i++)                                                                 \
            err = visit call;                                                                                          \
        return err;                                                                                                    \
    }
FAKE_TABLE(fake_devices, device_count, (visitor, &run->devices[i]), void *to, const struct hec_device *row)
FAKE_TABLE(fake_processes, process_count, (visitor, &run->processes[i]), void *to, const struct hec_process *row)
FAKE_TABLE(fake_gpu_processes, gpu_process_count, (visitor, &run->gpu_processes[i]), void *to,
           const struct hec_gpu_process *row)
FAKE_TABLE(fake_events, event_count,
           (visitor, run->events[i].kind, run->events[i].device, run->events[i].t_ns, run->events[i].text), void *to,
           enum hec_event_kind kind, int device, int64_t t_ns, const char *text)
FAKE_TABLE(fake_units, unit_count, (visitor, run->units[i].name, run->units[i].count), void *to, const char *name,
           double count)
FAKE_TABLE(fake_phases, phase_count, (visitor, run->phases[i].name, llround(run->phases[i].count * 1e9), 3), void *to,
           const char *name, int64_t total_ns, int64_t count)

static inline struct hec_device fake_device(int index) {
    struct hec_device device = {.index = index,
                                .name = "NVIDIA H200",
                                .driver = "580.159.04",
                                .architecture = "hopper",
                                .memory_kib = 146800640,
                                .power_limit_mw = 700000,
                                .power_limit_default_mw = 700000,
                                .pcie_kib_per_s = 61523437,
                                .visible = 1,
                                .has_energy_counter = 1,
                                .has_power_history = 1,
                                .has_gpm = 1};
    snprintf(device.uuid, sizeof device.uuid, "GPU-00000000-0000-0000-0000-%012d", index);
    return device;
}

static inline void fake_init(struct fake_run *run, double seconds) {
    memset(run, 0, sizeof *run);
    run->input = (struct hec_summary_input){.context = run,
                                            .series = fake_series_of,
                                            .subjects = fake_subjects,
                                            .devices = fake_devices,
                                            .processes = fake_processes,
                                            .gpu_processes = fake_gpu_processes,
                                            .events = fake_events,
                                            .units = fake_units,
                                            .phases = fake_phases,
                                            .command = "python train.py",
                                            .started = "2026-11-20T23:59:59+00:00",
                                            .file = "train.hec",
                                            .hec_version = "0.1.0",
                                            .hostname = "host",
                                            .end_ns = llround(seconds * 1e9),
                                            .complete = true,
                                            .cores = 16,
                                            .cores_usable = 16,
                                            .tree_cpu_seconds = NAN,
                                            .tree_rss_max_bytes = NAN,
                                            .self_cpu_seconds = 0.05,
                                            .self_rss_max_bytes = 1.2e7,
                                            .file_bytes = 123456,
                                            .start_seconds = 0.031};
}

/* A device that idles without context at 82 W until 1 s, with one at 120 W until 3 s, then works at `watts` to the end;
 * its counter, its power history, its activity and what is asked for in permille. */
static inline void fake_worker(struct fake_run *run, int index, double watts, int engine, int sm, int occupancy) {
    double end = (double)run->input.end_ns / 1e9;
    run->devices[run->device_count++] = fake_device(index);
    for (long k = -50; (double)k * 0.02 <= end + 0.04; k++) { /* every 20 ms, to 40 ms beyond the end */
        double t = (double)k * 0.02, middle = t - 0.01;
        fake_add(run, HEC_GPU_POWER, index, t, llround(1000 * (middle < 1 ? 82 : middle < 3 ? 120 : watts)));
    }
    for (long k = -3; (double)k * 0.1 + 0.03 <= end; k++) {
        double t = (double)k * 0.1 + 0.03;
        double joules = 82 * (t < 1 ? t : 1) + 120 * (t < 1 ? 0 : t < 3 ? t - 1 : 2) + (t < 3 ? 0 : (t - 3) * watts);
        fake_add(run, HEC_GPU_ENERGY, index, t, llround(1e6 + 1000 * joules));
        fake_add(run, HEC_GPU_ENERGY_SLACK, index, t, 0);
    }
    const struct {
        enum hec_metric metric;
        int64_t idle, work;
    } counters[] = {{HEC_GPM_GR_ACTIVE, 0, engine},     {HEC_GPU_UTIL, 0, 1000},
                    {HEC_GPM_SM_ACTIVE, 0, sm},         {HEC_GPM_SM_OCCUPANCY, 0, occupancy},
                    {HEC_GPM_TENSOR_ACTIVE, 0, sm / 3}, {HEC_GPM_DRAM_ACTIVE, 0, sm / 2},
                    {HEC_GPM_PCIE_RX, 100, 100000},     {HEC_GPM_PCIE_TX, 100, 50000}};
    for (size_t i = 0; i < sizeof counters / sizeof counters[0];
         i++) /* windows of 125 ms: whole numbers fit the seconds */
        for (long k = 1; (double)k * 0.125 <= end + 1e-9; k++)
            fake_add(run, counters[i].metric, index, (double)k * 0.125,
                     (double)k * 0.125 > 3 + 1e-9 ? counters[i].work : counters[i].idle);
    for (long k = 0; (double)k * 0.5 <= end; k++)
        fake_add(run, HEC_GPU_CONTEXTS, index, (double)k * 0.5, k >= 2);
    fake_fill(run, HEC_GPU_POWER_LIMIT, index, 0, end, 1, 700000);
}

/* Each series that there is was read so often; then they count anew. */
static inline void fake_assert_reads(struct fake_run *run, int times) {
    for (int i = 0; i < run->series_count; i++) {
        if (run->series[i].reads != times)
            fail_msg("%s: read %d times", hec_metric_info(run->series[i].metric)->name, run->series[i].reads);
        run->series[i].reads = 0;
    }
}

static inline void fake_event(struct fake_run *run, enum hec_event_kind kind, int device, int64_t t_ns,
                              const char *text) {
    run->events[run->event_count++] = (struct fake_event){kind, device, t_ns, text};
}

static inline void fake_unit(struct fake_run *run, const char *name, double count) {
    run->units[run->unit_count].name = name;
    run->units[run->unit_count++].count = count;
}

static inline void fake_phase(struct fake_run *run, const char *name, double seconds) {
    run->phases[run->phase_count].name = name;
    run->phases[run->phase_count++].count = seconds;
}

/* A process on the device from then on to the end; visible: its pid is one of this namespace. */
static inline void fake_on_device(struct fake_run *run, int index, int32_t pid, int64_t first_ns, int visible) {
    run->gpu_processes[run->gpu_process_count++] = (struct hec_gpu_process){
        .device = index, .pid = pid, .first_ns = first_ns, .last_ns = run->input.end_ns, .visible = visible};
}

/* By a process of the command. */
static inline void fake_used(struct fake_run *run, int index, int32_t pid) {
    run->processes[run->process_count++] =
        (struct hec_process){.pid = pid, .parent = 1, .end_ns = -1, .name = "python"};
    fake_on_device(run, index, pid, 1000000000, 1);
}

static inline void fake_free(struct fake_run *run) {
    for (int i = 0; i < run->series_count; i++) {
        free(run->series[i].t);
        free(run->series[i].v);
        free(run->series[i].valid);
    }
    run->series_count = 0;
}
