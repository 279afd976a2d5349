/* Nsight Systems' SQLite export. Its schema is documented ("SQLite Schema Reference" in the Nsight Systems User Guide)
 * but changes: tables are made only when there is something in them, columns come and go. So every statement is made of
 * the columns that are there, and what is missing is unknown.
 * Times are nanoseconds since the session's start. A globalTid holds, from the top, 8 bits of machine, 8 of VM, 24 of
 * pid and 24 of thread id. */
#include "base/buf.h"
#include "base/text.h"
#include "store/import_state.h"
#include "store/import_words.h"
#include "store/schema.h"
#include "store/sql.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COLUMNS_MAX 20
#define ROWS_A_REPORT 65536
#define MEMORY_KINDS 16
#define LISTED_MAX 64 /* columns of a table: NVTX_EVENTS has about 20 */

struct nsys {
    struct hec_import *import;
    struct hec_import_file *file;
    struct hec_why *why;
    sqlite3 *db;
    int failed; /* by SQLite, while looking for tables; 0: not */
    bool has_strings;
    bool by_process; /* correlation ids are told apart by process: kernels say theirs */
    double share;
    uint8_t memory[MEMORY_KINDS]; /* enum hec_memory_kind by the file's number */
    struct cuda_device {
        int32_t pid, ordinal, gpu; /* CUDA's ordinal in a process is which GPU */
    } cuda[HEC_DEVICE_MAX];
    int cuda_count;
    char columns[LISTED_MAX][48]; /* of the table that is read */
    int column_count;
};

/* A row: the columns asked for, in that order, and the name. */
struct row {
    sqlite3_stmt *s;
    const char *name; /* NULL: none */
    size_t name_length;
};

typedef int (*visitor)(struct nsys *n, const struct row *row);

struct query {
    const char *tables[2]; /* the first that exists */
    const char *names[3];  /* columns of the name: an id of StringIds, or text; the first that is not NULL */
    const char *columns[COLUMNS_MAX];
    visitor visit;
};

static bool known(const struct row *row, int column) {
    return sqlite3_column_type(row->s, column) == SQLITE_INTEGER || sqlite3_column_type(row->s, column) == SQLITE_FLOAT;
}

static int64_t integer(const struct row *row, int column, int64_t otherwise) {
    return known(row, column) ? sqlite3_column_int64(row->s, column) : otherwise;
}

static int32_t small(const struct row *row, int column) {
    int64_t value = integer(row, column, -1);
    return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

static int32_t pid_of(int64_t global) {
    return (int32_t)(global >> 24 & 0xffffff);
}

/* Does the statement have a row? A damaged file is not one without: n->failed stays set. */
static bool has_row(struct nsys *n, const char *sql, const char *value) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(n->db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s, 1, value, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE && !n->failed)
        n->failed = rc;
    return rc == SQLITE_ROW;
}

/* A table with rows of its own: no view, nothing virtual. */
static bool has_table(struct nsys *n, const char *table) {
    return has_row(n, "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?1 AND rootpage>0", table);
}

/* Its columns go to n->columns. Generated and hidden ones are not in this list, so no expression of the file's is ever
 * run. */
static void list_columns(struct nsys *n, const char *table) {
    sqlite3_stmt *s = NULL;
    n->column_count = 0;
    int rc = sqlite3_prepare_v2(n->db, "SELECT name FROM pragma_table_info(?1)", -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW && n->column_count < LISTED_MAX) {
        const unsigned char *name = sqlite3_column_text(s, 0);
        snprintf(n->columns[n->column_count++], sizeof n->columns[0], "%s", name ? (const char *)name : "");
    }
    rc = sqlite3_finalize(s);
    if (rc != SQLITE_OK && !n->failed)
        n->failed = rc;
}

static bool has_column(const struct nsys *n, const char *column) {
    for (int i = 0; i < n->column_count; i++)
        if (strcasecmp(n->columns[i], column) == 0)
            return true;
    return false;
}

/* Names are looked up by id, once a row: without an index a hostile file would take forever, and where ids are not unique
 * rows would multiply. */
static int check_strings(struct nsys *n) {
    n->has_strings = has_table(n, "StringIds");
    static const char one_key[] =
        "SELECT 1 FROM (SELECT count(*) AS keys, max(name) AS name, max(upper(type)) AS type FROM "
        "pragma_table_info(?1) WHERE pk>0) WHERE keys=1 AND name='id' AND type='INTEGER'";
    bool keyed = n->has_strings && has_row(n, one_key, "StringIds");
    if (n->failed)
        return hec_sql_fail(n->db, n->failed, n->why, n->file->path);
    if (n->has_strings && !keyed)
        return hec_fail(n->why, HEC_ERR_CORRUPT, "%s: the table StringIds has no primary key, as exports have it",
                        n->file->path);
    return HEC_OK;
}

static void write_statement(struct nsys *n, const struct query *q, const char *table, struct hec_buf *sql) {
    const char *name[3];
    int names = 0;
    for (int i = 0; i < 3 && q->names[i]; i++)
        if (has_column(n, q->names[i]))
            name[names++] = q->names[i];
    bool strings = names > 0 && n->has_strings;
    hec_buf_puts(sql, "SELECT ");
    for (int i = 0; i < COLUMNS_MAX && q->columns[i]; i++)
        hec_buf_printf(sql, has_column(n, q->columns[i]) ? "t.\"%s\"," : "NULL,", q->columns[i]);
    hec_buf_puts(sql, strings ? "coalesce(s.value" : "coalesce(NULL");
    for (int i = 0; i < names; i++)
        hec_buf_printf(sql, ",CASE typeof(t.\"%s\") WHEN 'text' THEN t.\"%s\" END", name[i], name[i]);
    hec_buf_printf(sql, "%s) FROM \"%s\" t", names ? "" : ",NULL", table);
    if (!strings)
        return;
    hec_buf_puts(sql, " LEFT JOIN StringIds s ON s.id=coalesce(NULL");
    for (int i = 0; i < names; i++)
        hec_buf_printf(sql, ",t.\"%s\"", name[i]);
    hec_buf_puts(sql, names == 0 ? ",NULL)" : ")");
}

static int damaged(struct nsys *n, int rc, const char *table) {
    char what[640];
    snprintf(what, sizeof what, "%.480s, table %s", n->file->path, table);
    return hec_sql_fail(n->db, rc, n->why, what);
}

/* Every row of the query's table, if the file has it. */
static int each_row(struct nsys *n, const struct query *q) {
    const char *table = has_table(n, q->tables[0])                   ? q->tables[0]
                        : q->tables[1] && has_table(n, q->tables[1]) ? q->tables[1]
                                                                     : NULL;
    if (!table)
        return n->failed ? damaged(n, n->failed, q->tables[0]) : HEC_OK;
    struct hec_buf sql;
    hec_buf_init(&sql, 65536);
    list_columns(n, table);
    write_statement(n, q, table, &sql);
    struct row row = {0};
    int err = hec_buf_error(&sql);
    if (n->failed)
        err = damaged(n, n->failed, table);
    int rc = err < 0 ? SQLITE_NOMEM : sqlite3_prepare_v2(n->db, hec_buf_text(&sql), -1, &row.s, NULL);
    hec_buf_free(&sql);
    int last = row.s ? sqlite3_column_count(row.s) - 1 : 0;
    int64_t rows = 0;
    while (rc == SQLITE_OK && err == HEC_OK && (rc = sqlite3_step(row.s)) == SQLITE_ROW) {
        row.name = (const char *)sqlite3_column_text(row.s, last);
        row.name_length = row.name ? (size_t)sqlite3_column_bytes(row.s, last) : 0;
        err = q->visit(n, &row);
        if (++rows % ROWS_A_REPORT == 0 && err == HEC_OK)
            err = hec_import_report(n->import, n->file, n->share);
        rc = SQLITE_OK;
    }
    if (err == HEC_OK && rc != SQLITE_DONE)
        err = damaged(n, rc, table);
    sqlite3_finalize(row.s);
    return err;
}

static int64_t track(struct nsys *n, const struct hec_import_track *key) {
    int64_t id = hec_import_tracks_id(&n->file->tracks, key);
    return id < 0 ? hec_fail(n->why, (int)id, "%s has too many threads and streams", n->file->path) : id;
}

static int64_t thread_track(struct nsys *n, int64_t global) {
    struct hec_import_track key = {
        .kind = HEC_TRACK_THREAD, .pid = pid_of(global), .device = -1, .stream = global & 0xffffff};
    return track(n, &key);
}

static int gpu_of(const struct nsys *n, int32_t pid, int32_t ordinal) {
    for (int i = 0; i < n->cuda_count; i++)
        if (n->cuda[i].ordinal == ordinal && (n->cuda[i].pid == pid || n->cuda[i].pid < 0 || pid < 0))
            return n->cuda[i].gpu;
    return ordinal;
}

static uint64_t correlation(const struct nsys *n, int64_t id, int64_t global) {
    if (id <= 0)
        return 0;
    return (uint64_t)(uint32_t)id | (n->by_process ? (uint64_t)pid_of(global) << 32 : 0);
}

/* Columns that all device tables begin with: start, end, deviceId, contextId, streamId, correlationId, globalPid,
 * graphNodeId. 1: the row is bad. */
#define DEVICE_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId"
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, GRAPH_NODE, REST };

static int begin_device_row(struct nsys *n, const struct row *row, enum hec_activity_kind kind,
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

static int keep(struct nsys *n, const struct hec_import_record *record) {
    return hec_import_add(n->import, n->file, record, n->why);
}

static int kernel(struct nsys *n, const struct row *row) {
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

static uint8_t memory(const struct nsys *n, const struct row *row, int column) {
    int64_t kind = integer(row, column, -1);
    return kind >= 0 && kind < MEMORY_KINDS ? n->memory[kind] : HEC_MEMORY_UNKNOWN;
}

static double bytes(const struct row *row, int column) {
    int64_t value = integer(row, column, -1);
    return value >= 0 ? (double)value : NAN;
}

static int copy(struct nsys *n, const struct row *row) {
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

static int memory_set(struct nsys *n, const struct row *row) {
    struct hec_import_record record;
    int err = begin_device_row(n, row, HEC_ACTIVITY_MEMSET, &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    record.activity.amount = bytes(row, REST);
    record.activity.to = memory(n, row, REST + 1);
    return keep(n, &record);
}

static int graph(struct nsys *n, const struct row *row) {
    struct hec_import_record record;
    int err = begin_device_row(n, row, HEC_ACTIVITY_GRAPH, &record);
    if (err)
        return err < 0 ? err : HEC_OK;
    record.activity.flags = 0;
    record.activity.amount = NAN;
    return keep(n, &record);
}

static int synchronization(struct nsys *n, const struct row *row) {
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
static int begin_thread_row(struct nsys *n, const struct row *row, enum hec_activity_kind kind,
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

static int call(struct nsys *n, const struct row *row) {
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

static int range(struct nsys *n, const struct row *row) {
    /* NVTX_EVENTS.eventType: 59 push/pop ranges, 60 start/end ranges; the rest are marks, names, domains */
    int64_t type = integer(row, 3, 59);
    if ((type != 59 && type != 60) || !row->name || !known(row, 1)) {
        n->import->stats.events++;
        n->import->stats.skipped++;
        return HEC_OK;
    }
    struct hec_import_record record;
    bool step = hec_import_is_step(row->name, row->name_length);
    int err = begin_thread_row(n, row, step ? HEC_ACTIVITY_STEP : HEC_ACTIVITY_RANGE, &record);
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
    } else {
        record.activity.name = hec_import_name(n->import, row->name, row->name_length);
    }
    return keep(n, &record);
}

static int gpu(struct nsys *n, const struct row *row) {
    int32_t id = small(row, 0);
    struct hec_device *d = id < 0 ? NULL : hec_import_tracks_device(&n->file->tracks, id);
    if (!d)
        return HEC_OK;
    if (row->name)
        snprintf(d->name, sizeof d->name, "%.*s", (int)(row->name_length < 95 ? row->name_length : 95), row->name);
    int64_t total = integer(row, 1, -1);
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

static int cuda_device(struct nsys *n, const struct row *row) {
    if (n->cuda_count < HEC_DEVICE_MAX && small(row, 0) >= 0 && small(row, 1) >= 0)
        n->cuda[n->cuda_count++] =
            (struct cuda_device){.gpu = small(row, 0), .ordinal = small(row, 1), .pid = small(row, 2)};
    return HEC_OK;
}

static int memory_kind(struct nsys *n, const struct row *row) {
    static const struct {
        const char *word;
        enum hec_memory_kind kind;
    } words[] = {{"PAGEABLE", HEC_MEMORY_PAGEABLE}, {"PINNED", HEC_MEMORY_PINNED}, {"MANAGED", HEC_MEMORY_MANAGED},
                 {"DEVICE", HEC_MEMORY_DEVICE},     {"ARRAY", HEC_MEMORY_ARRAY},   {"UNKNOWN", HEC_MEMORY_UNKNOWN}};
    int32_t id = small(row, 0);
    for (size_t i = 0; i < sizeof words / sizeof words[0] && id >= 0 && id < MEMORY_KINDS && row->name; i++)
        if (strcasestr(row->name, words[i].word)) {
            n->memory[id] = (uint8_t)words[i].kind;
            return HEC_OK;
        }
    return HEC_OK;
}

static int session_start(struct nsys *n, const struct row *row) {
    int64_t utc = integer(row, 0, 0);
    if (utc > 0 && utc < INT64_MAX / 4) {
        n->file->base_ns = utc;
        n->file->wall = true;
    }
    return HEC_OK;
}

static int name_track(struct nsys *n, const struct row *row, enum hec_track_kind kind) {
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

static int thread_name(struct nsys *n, const struct row *row) {
    return name_track(n, row, HEC_TRACK_THREAD);
}

static int process_name(struct nsys *n, const struct row *row) {
    return name_track(n, row, HEC_TRACK_PROCESS);
}

static const struct query queries[] = {
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

/* HEC_ERR_USAGE for a database of somebody else. */
static int check_kind(struct nsys *n) {
    static const char *const tables[] = {"StringIds",
                                         "META_DATA_EXPORT",
                                         "EXPORT_META_DATA",
                                         "ANALYSIS_DETAILS",
                                         "TARGET_INFO_SESSION_START_TIME",
                                         "NVTX_EVENTS",
                                         "CUPTI_ACTIVITY_KIND_KERNEL"};
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(n->db, "PRAGMA application_id", -1, &s, NULL);
    bool ours =
        rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == (int)HEC_SCHEMA_APPLICATION_ID;
    sqlite3_finalize(s);
    if (rc != SQLITE_OK)
        return hec_sql_fail(n->db, rc, n->why, n->file->path);
    if (ours)
        return hec_fail(n->why, HEC_ERR_USAGE, "%s is a run file already: hec report reads it", n->file->path);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (has_table(n, tables[i]))
            return HEC_OK;
    if (n->failed)
        return damaged(n, n->failed, "sqlite_master");
    return hec_fail(n->why, HEC_ERR_USAGE, "%s is an SQLite database, but no export of Nsight Systems", n->file->path);
}

static uint32_t big_endian(const unsigned char *bytes, int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* SQLite takes a last page that is cut for one filled up with zeros. The header (sqlite.org/fileformat.html, 1.3) knows
 * better: page size at 16, pages at 28, which hold if the numbers at 24 and 92 are the same. */
static int check_length(struct nsys *n) {
    unsigned char header[100] = {0};
    struct stat status;
    int fd = open(n->file->path, O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && fstat(fd, &status) == 0 && read(fd, header, sizeof header) == sizeof header &&
                 big_endian(header + 24, 4) == big_endian(header + 92, 4);
    if (fd >= 0)
        close(fd);
    uint32_t page = big_endian(header + 16, 2);
    int64_t length = (int64_t)big_endian(header + 28, 4) * (page == 1 ? 65536 : page);
    if (known && status.st_size < length)
        return hec_fail(n->why, HEC_ERR_CORRUPT, "%s is cut short: it has %lld bytes of %lld", n->file->path,
                        (long long)status.st_size, (long long)length);
    return HEC_OK;
}

static int open_database(struct nsys *n) {
    int err = check_length(n);
    if (err < 0)
        return err;
    int rc = sqlite3_open_v2(n->file->path, &n->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return hec_sql_fail(n->db, rc, n->why, n->file->path);
    sqlite3_db_config(n->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(n->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_limit(n->db, SQLITE_LIMIT_LENGTH, 64 << 20); /* a value: names are short */
    return check_kind(n);
}

int hec_import_nsys(struct hec_import *import, struct hec_import_file *file, struct hec_why *why) {
    struct hec_why local;
    struct nsys n = {
        .import = import,
        .file = file,
        .why = why ? why : &local,
        /* CUDA_MEMOPR_MEMORY_KIND_*: the numbers, unless the file names them */
        .memory = {HEC_MEMORY_PAGEABLE, HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, HEC_MEMORY_ARRAY, HEC_MEMORY_MANAGED,
                   HEC_MEMORY_DEVICE, HEC_MEMORY_MANAGED, HEC_MEMORY_UNKNOWN},
    };
    int err = open_database(&n);
    if (err == HEC_OK)
        err = check_strings(&n);
    if (err == HEC_OK) {
        list_columns(&n, "CUPTI_ACTIVITY_KIND_KERNEL");
        n.by_process = has_column(&n, "globalPid");
    }
    const size_t count = sizeof queries / sizeof queries[0];
    for (size_t i = 0; i < count && err == HEC_OK; i++) {
        n.share = (double)i / (double)count;
        err = each_row(&n, &queries[i]);
    }
    sqlite3_close(n.db);
    return err;
}
