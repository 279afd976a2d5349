/* The tables of Nsight Systems' export, and their rows as activities. */
#include "base/text.h"
#include "store/import/nsys.h"
#include "store/import/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool known(const struct hec_nsys_row *row, int column) {
    return sqlite3_column_type(row->s, column) == SQLITE_INTEGER || sqlite3_column_type(row->s, column) == SQLITE_FLOAT;
}

static int64_t integer(const struct hec_nsys_row *row, int column, int64_t otherwise) {
    return known(row, column) ? sqlite3_column_int64(row->s, column) : otherwise;
}

static int32_t small(const struct hec_nsys_row *row, int column) {
    int64_t value = integer(row, column, -1);
    return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

static int32_t pid_of(int64_t global) {
    return (int32_t)(global >> 24 & 0xffffff);
}

static int64_t track(struct hec_nsys *n, const struct hec_import_track *key) {
    int64_t id = hec_import_tracks_id(&n->file->tracks, key);
    return id < 0 ? hec_fail(n->why, (int)id, "%s has too many threads and streams", n->file->path) : id;
}

static int64_t thread_track(struct hec_nsys *n, int64_t global) {
    struct hec_import_track key = {
        .kind = HEC_TRACK_THREAD, .pid = pid_of(global), .device = -1, .stream = global & 0xffffff};
    return track(n, &key);
}

static int gpu_of(const struct hec_nsys *n, int32_t pid, int32_t ordinal) {
    for (int i = 0; i < n->cuda_count; i++)
        if (n->cuda[i].ordinal == ordinal && (n->cuda[i].pid == pid || n->cuda[i].pid < 0 || pid < 0))
            return n->cuda[i].gpu;
    return ordinal;
}

static uint64_t correlation(const struct hec_nsys *n, int64_t id, int64_t global) {
    if (id <= 0)
        return 0;
    return (uint64_t)(uint32_t)id | (n->by_process ? (uint64_t)pid_of(global) << 32 : 0);
}

/* Columns that all device tables begin with: start, end, deviceId, contextId, streamId, correlationId, globalPid,
 * graphNodeId. 1: the row is bad. */
#define DEVICE_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId"
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, GRAPH_NODE, REST };

static int begin_device_row(struct hec_nsys *n, const struct hec_nsys_row *row, enum hec_activity_kind kind,
                            struct hec_import_record *record) {
    n->import->stats.events++;
    int64_t process = integer(row, PROCESS, -1);
    struct hec_import_track key = {
        .kind = HEC_TRACK_STREAM,
        .pid = process < 0 ? -1 : pid_of(process),
        .device = small(row, DEVICE),
        .context = (uint32_t)integer(row, CONTEXT, 0),
        .stream = integer(row, STREAM, -1),
    };
    if (!known(row, START) || !known(row, END) || key.device < 0 || !known(row, STREAM)) {
        n->import->stats.bad++;
        return 1;
    }
    key.device = gpu_of(n, key.pid, key.device);
    int64_t id = track(n, &key);
    if (id < 0)
        return (int)id;
    *record = (struct hec_import_record){
        .activity = {.start_ns = integer(row, START, 0),
                     .end_ns = integer(row, END, 0),
                     .track = (uint32_t)id,
                     .kind = (uint8_t)kind,
                     .flags = integer(row, GRAPH_NODE, 0) ? HEC_ACTIVITY_IN_GRAPH : 0},
        .correlation = correlation(n, integer(row, CORRELATION, 0), process < 0 ? 0 : process),
    };
    return HEC_OK;
}

static int keep(struct hec_nsys *n, const struct hec_import_record *record) {
    return hec_import_add(n->import, n->file, record, n->why);
}

static int kernel(struct hec_nsys *n, const struct hec_nsys_row *row) {
    struct hec_import_record record;
    int err = begin_device_row(n, row, HEC_ACTIVITY_KERNEL, &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    struct hec_kernel k = {
        .name = hec_import_name(n->import, row->name ? row->name : "", row->name_length),
        .grid = {small(row, REST), small(row, REST + 1), small(row, REST + 2)},
        .block = {small(row, REST + 3), small(row, REST + 4), small(row, REST + 5)},
        .registers = small(row, REST + 6),
        .static_shared_bytes = small(row, REST + 7),
        .dynamic_shared_bytes = small(row, REST + 8),
    };
    record.activity.name = n->import->sink->trace_kernel(n->import->sink->context, &k);
    return keep(n, &record);
}

static uint8_t memory(const struct hec_nsys *n, const struct hec_nsys_row *row, int column) {
    int64_t kind = integer(row, column, -1);
    return kind >= 0 && kind < HEC_NSYS_MEMORY_KINDS ? n->memory[kind] : HEC_MEMORY_UNKNOWN;
}

static double bytes(const struct hec_nsys_row *row, int column) {
    int64_t value = integer(row, column, -1);
    return value >= 0 ? (double)value : NAN;
}

static int copy(struct hec_nsys *n, const struct hec_nsys_row *row) {
    /* copyKind, CUPTI's CUpti_ActivityMemcpyKind: for where srcKind and dstKind are unknown; 11 to 13: of managed memory */
    static const char *const kinds[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
                                        "DtoA", "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
    struct hec_import_record record;
    int err = begin_device_row(n, row, HEC_ACTIVITY_COPY, &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    int64_t kind = integer(row, REST + 1, 0);
    const char *text = kind > 0 && kind < (int64_t)(sizeof kinds / sizeof kinds[0]) ? kinds[kind] : "";
    struct hec_import_direction direction = hec_import_direction(text, strlen(text));
    struct hec_activity *a = &record.activity;
    a->amount = bytes(row, REST);
    a->from = memory(n, row, REST + 2);
    a->to = memory(n, row, REST + 3);
    a->from = a->from ? a->from : direction.from;
    a->to = a->to ? a->to : direction.to;
    bool apart = known(row, REST + 4) && known(row, REST + 5) &&
                 integer(row, REST + 4, 0) != integer(row, REST + 5, 0) && a->from == HEC_MEMORY_DEVICE &&
                 a->to == HEC_MEMORY_DEVICE;
    a->flags |= direction.peer || apart ? HEC_ACTIVITY_PEER : 0;
    return keep(n, &record);
}

static int memory_set(struct hec_nsys *n, const struct hec_nsys_row *row) {
    struct hec_import_record record;
    int err = begin_device_row(n, row, HEC_ACTIVITY_MEMSET, &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    record.activity.amount = bytes(row, REST);
    record.activity.to = memory(n, row, REST + 1);
    return keep(n, &record);
}

static int graph(struct hec_nsys *n, const struct hec_nsys_row *row) {
    struct hec_import_record record;
    int err = begin_device_row(n, row, HEC_ACTIVITY_GRAPH, &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    record.activity.flags = 0;
    record.activity.amount = NAN;
    return keep(n, &record);
}

static int synchronization(struct hec_nsys *n, const struct hec_nsys_row *row) {
    n->import->stats.events++;
    if (!known(row, 0) || !known(row, 1)) {
        n->import->stats.bad++;
        return HEC_OK;
    }
    /* CUPTI's CUpti_ActivitySynchronizationType, which enum hec_sync_type follows */
    int64_t type = integer(row, 2, 0);
    enum hec_sync_type detail = type > 0 && type < HEC_SYNC_TYPE_COUNT ? (enum hec_sync_type)type : HEC_SYNC_UNKNOWN;
    struct hec_import_record record = {
        .activity = {.start_ns = integer(row, 0, 0),
                     .end_ns = integer(row, 1, 0),
                     .kind = HEC_ACTIVITY_SYNC,
                     .detail = (uint8_t)detail},
        .correlation = correlation(n, integer(row, 3, 0), integer(row, 4, 0)),
    };
    return keep(n, &record);
}

/* A row of a thread: start, end, globalTid. 1: bad. */
static int begin_thread_row(struct hec_nsys *n, const struct hec_nsys_row *row, enum hec_activity_kind kind,
                            struct hec_import_record *record) {
    n->import->stats.events++;
    if (!known(row, 0) || !known(row, 1) || !known(row, 2)) {
        n->import->stats.bad++;
        return 1;
    }
    int64_t global = integer(row, 2, 0), id = thread_track(n, global);
    if (id < 0)
        return (int)id;
    if (n->file->pid < 0)
        n->file->pid = pid_of(global);
    *record = (struct hec_import_record){.activity = {.start_ns = integer(row, 0, 0),
                                                      .end_ns = integer(row, 1, 0),
                                                      .track = (uint32_t)id,
                                                      .kind = (uint8_t)kind}};
    return HEC_OK;
}

static int call(struct hec_nsys *n, const struct hec_nsys_row *row) {
    struct hec_import_record record;
    int err = begin_thread_row(n, row, HEC_ACTIVITY_API, &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    const char *name = row->name ? row->name : "";
    size_t length = hec_import_api_length(name, row->name_length);
    record.activity.name = hec_import_name(n->import, name, length);
    record.activity.detail = (uint8_t)hec_import_api_class(name, length);
    record.correlation = correlation(n, integer(row, 3, 0), integer(row, 2, 0));
    err = hec_import_call(n->import, &record, NAN, n->why);
    return err < 0 ? err : keep(n, &record);
}

static int range(struct hec_nsys *n, const struct hec_nsys_row *row) {
    /* NVTX_EVENTS.eventType: 59 push/pop ranges, 60 start/end ranges; the rest are marks, names, domains */
    int64_t type = integer(row, 3, 59);
    if ((type != 59 && type != 60) || !row->name || !known(row, 1)) {
        n->import->stats.events++;
        n->import->stats.skipped++;
        return HEC_OK;
    }
    struct hec_import_record record;
    enum hec_import_range what = hec_import_range_of(row->name, row->name_length);
    bool step = what == HEC_IMPORT_RANGE_PROFILER_STEP || what == HEC_IMPORT_RANGE_STEP;
    const char *phase = hec_import_phase(what);
    int err = begin_thread_row(n, row,
                               step    ? HEC_ACTIVITY_STEP
                               : phase ? HEC_ACTIVITY_PHASE
                                       : HEC_ACTIVITY_RANGE,
                               &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    if (step) {
        struct hec_import_track key = {.kind = HEC_TRACK_PROCESS, .pid = pid_of(integer(row, 2, 0)), .device = -1};
        int64_t id = track(n, &key);
        if (id < 0)
            return (int)id;
        record.activity.track = (uint32_t)id;
        record.activity.detail = HEC_STEP_ANNOTATED;
        record.activity.amount = NAN;
    } else if (phase) {
        record.activity.name = hec_import_name(n->import, phase, strlen(phase));
    } else {
        record.activity.name = hec_import_name(n->import, row->name, row->name_length);
    }
    return keep(n, &record);
}

static int gpu(struct hec_nsys *n, const struct hec_nsys_row *row) {
    int32_t id = small(row, 0);
    struct hec_device *d = id < 0 ? NULL : hec_import_tracks_device(&n->file->tracks, id);
    if (!d)
        return HEC_OK;
    if (row->name)
        snprintf(d->name, sizeof d->name, "%.*s", (int)(row->name_length < 95 ? row->name_length : 95), row->name);
    int64_t total = integer(row, 1, -1);
    snprintf(d->vendor, sizeof d->vendor, "%s", hec_vendor_info(HEC_VENDOR_NVIDIA)->name);
    d->memory_kib = total >= 0 ? total / 1024 : -1;
    d->cuda_major = small(row, 2);
    d->cuda_minor = small(row, 3);
    for (int i = 4; i < 6; i++) {
        const unsigned char *text =
            sqlite3_column_type(row->s, i) == SQLITE_TEXT ? sqlite3_column_text(row->s, i) : NULL;
        if (text)
            snprintf(i == 4 ? d->uuid : d->pci_bus_id, i == 4 ? sizeof d->uuid : sizeof d->pci_bus_id, "%s", text);
    }
    return HEC_OK;
}

static int cuda_device(struct hec_nsys *n, const struct hec_nsys_row *row) {
    if (n->cuda_count < HEC_DEVICE_MAX && small(row, 0) >= 0 && small(row, 1) >= 0)
        n->cuda[n->cuda_count++] =
            (struct hec_nsys_cuda_device){.gpu = small(row, 0), .ordinal = small(row, 1), .pid = small(row, 2)};
    return HEC_OK;
}

static int memory_kind(struct hec_nsys *n, const struct hec_nsys_row *row) {
    static const struct {
        const char *word;
        enum hec_memory_kind kind;
    } words[] = {{"PAGEABLE", HEC_MEMORY_PAGEABLE}, {"PINNED", HEC_MEMORY_PINNED}, {"MANAGED", HEC_MEMORY_MANAGED},
                 {"DEVICE", HEC_MEMORY_DEVICE},     {"ARRAY", HEC_MEMORY_ARRAY},   {"UNKNOWN", HEC_MEMORY_UNKNOWN}};
    int32_t id = small(row, 0);
    for (size_t i = 0; i < sizeof words / sizeof words[0] && id >= 0 && id < HEC_NSYS_MEMORY_KINDS && row->name; i++)
        if (strcasestr(row->name, words[i].word)) {
            n->memory[id] = (uint8_t)words[i].kind;
            return HEC_OK;
        }
    return HEC_OK;
}

static int session_start(struct hec_nsys *n, const struct hec_nsys_row *row) {
    int64_t utc = integer(row, 0, 0);
    if (utc > 0 && utc < INT64_MAX / 4) {
        n->file->base_ns = utc;
        n->file->wall = true;
    }
    return HEC_OK;
}

static int name_track(struct hec_nsys *n, const struct hec_nsys_row *row, enum hec_track_kind kind) {
    if (!known(row, 0) || !row->name)
        return HEC_OK;
    int64_t global = integer(row, 0, 0);
    struct hec_import_track key = {
        .kind = kind, .pid = pid_of(global), .device = -1, .stream = kind == HEC_TRACK_THREAD ? global & 0xffffff : 0};
    int64_t id = track(n, &key);
    if (id < 0)
        return (int)id;
    struct hec_import_track *named = &n->file->tracks.tracks[id];
    hec_text_clean(named->name, sizeof named->name, row->name, row->name_length, true);
    return HEC_OK;
}

static int thread_name(struct hec_nsys *n, const struct hec_nsys_row *row) {
    return name_track(n, row, HEC_TRACK_THREAD);
}

static int process_name(struct hec_nsys *n, const struct hec_nsys_row *row) {
    return name_track(n, row, HEC_TRACK_PROCESS);
}

const struct hec_nsys_query hec_nsys_queries[] = {
    {{"TARGET_INFO_SESSION_START_TIME"}, {0}, {"utcEpochNs"}, session_start},
    {{"TARGET_INFO_GPU"}, {"name"}, {"id", "totalMemory", "computeMajor", "computeMinor", "uuid", "busLocation"}, gpu},
    {{"TARGET_INFO_CUDA_GPU"}, /* until the middle of 2021 */
     {"name"},
     {"deviceId", "globalMemorySize", "computeCapabilityMajor", "computeCapabilityMinor", "uuid", "busLocation"},
     gpu},
    {{"TARGET_INFO_CUDA_DEVICE"}, {0}, {"gpuId", "cudaId", "pid"}, cuda_device},
    {{"ENUM_CUDA_MEM_KIND"}, {"name", "label"}, {"id"}, memory_kind},
    {{"PROCESSES"}, {"name"}, {"globalPid"}, process_name},
    {{"ThreadNames"}, {"nameId"}, {"globalTid"}, thread_name},
    {{"CUPTI_ACTIVITY_KIND_RUNTIME"}, {"nameId"}, {"start", "end", "globalTid", "correlationId"}, call},
    {{"CUPTI_ACTIVITY_KIND_DRIVER"}, {"nameId"}, {"start", "end", "globalTid", "correlationId"}, call},
    {{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"},
     {"demangledName", "mangledName", "shortName"},
     {DEVICE_COLUMNS, "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
      "staticSharedMemory", "dynamicSharedMemory"},
     kernel},
    {{"CUPTI_ACTIVITY_KIND_MEMCPY"},
     {0},
     {DEVICE_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"},
     copy},
    {{"CUPTI_ACTIVITY_KIND_MEMSET"}, {0}, {DEVICE_COLUMNS, "bytes", "memKind"}, memory_set},
    {{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE"}, {0}, {DEVICE_COLUMNS}, graph},
    {{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"},
     {0},
     {"start", "end", "syncType", "correlationId", "globalPid"},
     synchronization},
    {{"NVTX_EVENTS"}, {"text", "textId"}, {"start", "end", "globalTid", "eventType"}, range},
};
const size_t hec_nsys_query_count = sizeof hec_nsys_queries / sizeof hec_nsys_queries[0];
