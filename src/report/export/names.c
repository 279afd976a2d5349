#include "report/export/names.h"

#include "base/text.h"
#include "base/trace.h"
#include "diagnose/timeline/kernel_class.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name ids: fixed ones by kind, copies by memory, then names as text, names as kernels, frames. */
#define FIXED 17
_Static_assert(HEC_ACTIVITY_KIND_COUNT < HEC_EXPORT_NAME_LAUNCH && HEC_EXPORT_NAME_REST < FIXED, "kinds are below");
#define FIXED_END (FIXED + HEC_MEMORY_KIND_COUNT * HEC_MEMORY_KIND_COUNT * 2 + HEC_SYNC_TYPE_COUNT)

int hec_export_tables_load(const struct hec_timeline_input *input, struct hec_export_tables *tables,
                           struct hec_why *why) {
    memset(tables, 0, sizeof *tables);
    int err = hec_timeline_tables_load(input, &tables->timeline, why);
    if (!err && !(tables->readable = calloc(tables->timeline.name_count + 1, sizeof(char *)))) {
        hec_export_tables_free(tables);
        err = HEC_ERR_NOMEM;
    }
    return err;
}

void hec_export_tables_free(struct hec_export_tables *tables) {
    for (size_t i = 0; tables->readable && i < tables->timeline.name_count; i++)
        free(tables->readable[i]);
    free(tables->readable);
    hec_timeline_tables_free(&tables->timeline);
    memset(tables, 0, sizeof *tables);
}

static uint8_t memory(uint8_t kind) {
    return kind < HEC_MEMORY_KIND_COUNT ? kind : HEC_MEMORY_UNKNOWN;
}

static bool has_name(const struct hec_export_tables *tables, uint32_t id) {
    return hec_timeline_name(&tables->timeline, id)[0] != '\0';
}

uint64_t hec_export_name_count(const struct hec_export_tables *tables) {
    return FIXED_END + 2 * (uint64_t)tables->timeline.name_count + tables->timeline.frame_count;
}

uint64_t hec_export_name_id(const struct hec_export_tables *tables, const struct hec_activity *a) {
    uint64_t names = tables->timeline.name_count;
    uint32_t name = a->name;
    switch (a->kind) {
    case HEC_ACTIVITY_KERNEL:
        name = hec_timeline_kernel_name(&tables->timeline, a->name);
        return has_name(tables, name) ? FIXED_END + names + name : 1u + a->kind;
    case HEC_ACTIVITY_COPY: {
        bool peer = (a->flags & HEC_ACTIVITY_PEER) != 0;
        return FIXED + 2u * (HEC_MEMORY_KIND_COUNT * (uint64_t)memory(a->from) + memory(a->to)) + peer;
    }
    case HEC_ACTIVITY_SYNC:
        return FIXED_END - HEC_SYNC_TYPE_COUNT + (a->detail < HEC_SYNC_TYPE_COUNT ? a->detail : 0u);
    case HEC_ACTIVITY_STACK:
        return a->name && a->name < tables->timeline.frame_count ? FIXED_END + 2 * names + a->name : 1u + a->kind;
    case HEC_ACTIVITY_WINDOW:
        return a->detail == HEC_TRACE_OFF ? HEC_EXPORT_NAME_REST : 1u + a->kind;
    case HEC_ACTIVITY_MEMSET:
    case HEC_ACTIVITY_STEP:
    case HEC_ACTIVITY_BURST:
        return 1u + a->kind;
    default:
        return has_name(tables, name) ? FIXED_END + (uint64_t)name : 1u + a->kind;
    }
}

static const char *side(uint8_t kind) {
    static const char *const names[HEC_MEMORY_KIND_COUNT] = {
        [HEC_MEMORY_UNKNOWN] = "unknown", [HEC_MEMORY_PAGEABLE] = "host", [HEC_MEMORY_PINNED] = "host",
        [HEC_MEMORY_DEVICE] = "device",   [HEC_MEMORY_ARRAY] = "device",  [HEC_MEMORY_MANAGED] = "managed memory",
        [HEC_MEMORY_HOST] = "host",
    };
    return names[memory(kind)];
}

static void name_copy(const struct hec_activity *a, char *out, size_t size) {
    uint8_t from = memory(a->from), to = memory(a->to);
    const char *host = from == HEC_MEMORY_PINNED || to == HEC_MEMORY_PINNED       ? " (pinned)"
                       : from == HEC_MEMORY_PAGEABLE || to == HEC_MEMORY_PAGEABLE ? " (pageable)"
                                                                                  : "";
    if (a->flags & HEC_ACTIVITY_PEER)
        snprintf(out, size, "copy to another device");
    else
        snprintf(out, size, "copy %s to %s%s", side(from), side(to), host);
}

static void name_frame(const struct hec_export_tables *tables, uint32_t id, char *out, size_t size) {
    const struct hec_frame *frame = &tables->timeline.frames[id];
    const char *file = hec_timeline_name(&tables->timeline, frame->file), *last = strrchr(file, '/');
    snprintf(out, size, "%s (%s:%d)", hec_timeline_name(&tables->timeline, frame->function), last ? last + 1 : file,
             (int)frame->line);
}

/* Reading a mangled name takes microseconds: once a name. */
static const char *kernel_name(struct hec_export_tables *tables, uint32_t name) {
    char readable[2048];
    if (!tables->readable[name]) {
        hec_kernel_readable(hec_timeline_name(&tables->timeline, name), readable, sizeof readable);
        tables->readable[name] = strdup(readable);
    }
    return tables->readable[name] ? tables->readable[name] : "";
}

const char *hec_export_name(struct hec_export_tables *tables, const struct hec_activity *a, char *out, size_t size) {
    char built[2048];
    uint32_t kernel = hec_timeline_kernel_name(&tables->timeline, a->name);
    const char *text = hec_timeline_name(&tables->timeline, a->name), *from = built;
    snprintf(built, sizeof built, "%s", hec_activity_kind_name((enum hec_activity_kind)a->kind));
    switch (a->kind) {
    case HEC_ACTIVITY_KERNEL:
        from = has_name(tables, kernel) ? kernel_name(tables, kernel) : built;
        break;
    case HEC_ACTIVITY_COPY:
        name_copy(a, built, sizeof built);
        break;
    case HEC_ACTIVITY_SYNC:
        snprintf(built, sizeof built, "wait (%s)", hec_sync_type_name((enum hec_sync_type)a->detail));
        break;
    case HEC_ACTIVITY_STACK:
        if (a->name && a->name < tables->timeline.frame_count)
            name_frame(tables, a->name, built, sizeof built);
        break;
    case HEC_ACTIVITY_WINDOW:
        from = a->detail == HEC_TRACE_OFF ? "calls not recorded" : "traced";
        break;
    case HEC_ACTIVITY_BURST:
        from = "launches";
        break;
    case HEC_ACTIVITY_MEMSET:
    case HEC_ACTIVITY_STEP:
        break;
    default:
        from = text[0] ? text : built;
    }
    return hec_text_clean(out, size, from, strlen(from), true);
}

static const struct hec_export_counter counters[] = {
    {HEC_GPU_POWER, false, "power", "W", 1e-3},
    {HEC_GPU_POWER_LIMIT, false, "power limit", "W", 1e-3},
    {HEC_GPU_UTIL, false, "GPU utilisation", "%", 0.1},
    {HEC_GPM_GR_ACTIVE, false, "engine active", "%", 0.1},
    {HEC_GPM_SM_ACTIVE, false, "SM active", "%", 0.1},
    {HEC_GPM_SM_OCCUPANCY, false, "SM occupancy", "%", 0.1},
    {HEC_GPM_TENSOR_ACTIVE, false, "tensor active", "%", 0.1},
    {HEC_GPM_FP32_ACTIVE, false, "FP32 active", "%", 0.1},
    {HEC_GPM_FP16_ACTIVE, false, "FP16 active", "%", 0.1},
    {HEC_GPM_DRAM_ACTIVE, false, "DRAM active", "%", 0.1},
    {HEC_GPM_PCIE_RX, false, "PCIe in", "B/s", 1024},
    {HEC_GPM_PCIE_TX, false, "PCIe out", "B/s", 1024},
    {HEC_GPM_NVLINK_RX, false, "NVLink in", "B/s", 1024},
    {HEC_GPM_NVLINK_TX, false, "NVLink out", "B/s", 1024},
    {HEC_GPU_MEM_USED, false, "memory used", "B", 1024},
    {HEC_GPU_SM_CLOCK, false, "SM clock", "MHz", 1},
    {HEC_GPU_TEMPERATURE, false, "temperature", "C", 1},
    {HEC_HOST_CPU_BUSY, true, "CPU busy", "%", 0.1},
    {HEC_TREE_RSS, true, "memory of the command", "B", 1024},
};

struct series {
    struct hec_export_reading reading;
    bool mean, begun;
    int64_t previous_ns;
    int (*visit)(void *context, const struct hec_export_reading *reading);
    void *context;
};

static int take_samples(void *to, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    struct series *s = to;
    int stop = 0;
    for (size_t i = 0; i < count && !stop; i++) {
        s->reading.start_ns = s->mean && s->begun ? s->previous_ns : t_ns[i];
        s->reading.end_ns = t_ns[i];
        s->reading.value = valid[i] ? (double)value[i] * s->reading.counter->scale : NAN;
        s->reading.first = !s->begun;
        s->previous_ns = t_ns[i];
        s->begun = true;
        stop = s->visit(s->context, &s->reading);
    }
    return stop;
}

/* 1: the run has this metric of this subject. */
static int has(const struct hec_summary_input *in, enum hec_metric metric, int32_t subject, struct hec_why *why) {
    int32_t *subjects = NULL;
    int there = 0, count = in->subjects(in->context, metric, &subjects, why);
    for (int i = 0; i < count; i++)
        there |= subjects[i] == subject;
    free(subjects);
    return count < 0 && count != HEC_ERR_NOTFOUND ? count : there;
}

static int visit_series(const struct hec_summary_input *in, struct series *s, struct hec_why *why) {
    enum hec_metric metric = s->reading.counter->metric;
    int32_t subject = s->reading.counter->host ? 0 : s->reading.device;
    int there = has(in, metric, subject, why);
    if (there <= 0)
        return there;
    s->mean = hec_metric_info(metric)->kind == HEC_METRIC_MEAN;
    int err = in->series(in->context, metric, subject, take_samples, s, why);
    return err == HEC_ERR_NOTFOUND ? 0 : err;
}

int hec_export_counters(const struct hec_summary_input *input, const struct hec_device *devices, int device_count,
                        int (*visit)(void *context, const struct hec_export_reading *reading), void *context,
                        struct hec_why *why) {
    const size_t count = sizeof counters / sizeof counters[0];
    int err = 0;
    if (!input->subjects || !input->series)
        return 0;
    for (int d = -1; d < device_count && !err; d++)
        for (size_t i = 0; i < count && !err; i++) {
            struct series s = {
                .reading = {.counter = &counters[i], .device = d < 0 ? -1 : devices[d].index},
                .visit = visit,
                .context = context,
            };
            if (counters[i].host == (d < 0))
                err = visit_series(input, &s, why);
        }
    return err;
}
