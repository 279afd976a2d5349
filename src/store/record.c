#include "store/record.h"

#include "base/buf.h"
#include "base/trace.h"
#include "model/run.h"
#include "store/schema.h"

#include <limits.h>
#include <string.h>

#define FIELD(type, kind, member)                                                                                      \
    { #member, HEC_FIELD_##kind, offsetof(type, member), sizeof(((type *)NULL)->member) }
#define NAMED(type, kind, member, column)                                                                              \
    { column, HEC_FIELD_##kind, offsetof(type, member), sizeof(((type *)NULL)->member) }
#define CHOICE(type, member, names)                                                                                    \
    { #member, HEC_FIELD_CHOICE, offsetof(type, member), sizeof(((type *)NULL)->member), names }
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct hec_field device_fields[] = {
    NAMED(struct hec_device, DEVICE, index, "device_index"),
    FIELD(struct hec_device, TEXT, uuid),
    FIELD(struct hec_device, TEXT, name),
    FIELD(struct hec_device, TEXT, pci_bus_id),
    FIELD(struct hec_device, TEXT, driver),
    FIELD(struct hec_device, TEXT, architecture),
    FIELD(struct hec_device, KNOWN, cuda_major),
    FIELD(struct hec_device, KNOWN, cuda_minor),
    FIELD(struct hec_device, KNOWN, memory_kib),
    FIELD(struct hec_device, KNOWN, power_limit_mw),
    FIELD(struct hec_device, KNOWN, power_limit_default_mw),
    FIELD(struct hec_device, KNOWN, pcie_kib_per_s),
    FIELD(struct hec_device, KNOWN, mig_enabled),
    FIELD(struct hec_device, INTEGER, simulated),
    FIELD(struct hec_device, INTEGER, visible),
    FIELD(struct hec_device, INTEGER, has_energy_counter),
    FIELD(struct hec_device, INTEGER, has_power_history),
    FIELD(struct hec_device, INTEGER, has_gpm),
    {"vendor", HEC_FIELD_TEXT, offsetof(struct hec_device, vendor), sizeof(((struct hec_device *)NULL)->vendor),
     .from = 2, .before = "CASE WHEN name>='AMD' AND name<'AME' THEN 'amd' ELSE 'nvidia' END"},
};

static const struct hec_field process_fields[] = {
    FIELD(struct hec_process, INTEGER, pid),       FIELD(struct hec_process, TIME, start_ns),
    FIELD(struct hec_process, TIME_OPEN, end_ns),  FIELD(struct hec_process, INTEGER, parent),
    FIELD(struct hec_process, TEXT, name),         FIELD(struct hec_process, KNOWN, cpu_ms),
    FIELD(struct hec_process, KNOWN, rss_max_kib), FIELD(struct hec_process, KNOWN, read_kib),
    FIELD(struct hec_process, KNOWN, written_kib),
};

static const struct hec_field gpu_process_fields[] = {
    NAMED(struct hec_gpu_process, DEVICE, device, "device_index"),
    FIELD(struct hec_gpu_process, INTEGER, pid),
    FIELD(struct hec_gpu_process, TIME, first_ns),
    FIELD(struct hec_gpu_process, TIME, last_ns),
    FIELD(struct hec_gpu_process, KNOWN, memory_max_kib),
    FIELD(struct hec_gpu_process, KNOWN, sm_util_permille),
    FIELD(struct hec_gpu_process, INTEGER, visible),
};

static const char *const modes[] = {"off", "auto", "full", "graph", NULL};
_Static_assert(COUNT(modes) == HEC_TRACE_MODE_COUNT + 1, "by enum hec_trace_mode");

static const struct hec_field tracer_fields[] = {
    FIELD(struct hec_tracer, INTEGER, pid),         CHOICE(struct hec_tracer, mode, modes),
    FIELD(struct hec_tracer, KNOWN, cupti_version), FIELD(struct hec_tracer, KNOWN, driver_version),
    FIELD(struct hec_tracer, TEXT, library),        FIELD(struct hec_tracer, TEXT, why),
    FIELD(struct hec_tracer, TEXT, holder),         FIELD(struct hec_tracer, TIME_OPEN, first_ns),
    FIELD(struct hec_tracer, TIME_OPEN, last_ns),   FIELD(struct hec_tracer, INTEGER, traced_ns),
    FIELD(struct hec_tracer, INTEGER, holder_ns),   FIELD(struct hec_tracer, INTEGER, windows),
    FIELD(struct hec_tracer, INTEGER, records),     FIELD(struct hec_tracer, INTEGER, dropped),
    FIELD(struct hec_tracer, INTEGER, lost),        FIELD(struct hec_tracer, INTEGER, bad),
    FIELD(struct hec_tracer, INTEGER, self_ns),     FIELD(struct hec_tracer, KNOWN, estimate_ppm),
    FIELD(struct hec_tracer, KNOWN, budget_ppm),
};

static const char *const track_kinds[] = {"process", "thread", "stream", NULL};
_Static_assert(COUNT(track_kinds) == HEC_TRACK_KIND_COUNT + 1, "by enum hec_track_kind");

static const struct hec_field track_fields[] = {
    FIELD(struct hec_track, UNSIGNED, id),
    CHOICE(struct hec_track, kind, track_kinds),
    FIELD(struct hec_track, INTEGER, pid),
    FIELD(struct hec_track, KNOWN, rank),
    NAMED(struct hec_track, DEVICE_OR_NONE, device, "device_index"),
    FIELD(struct hec_track, UNSIGNED, context),
    FIELD(struct hec_track, INTEGER, stream),
    FIELD(struct hec_track, TEXT, name),
};

static const struct hec_field kernel_fields[] = {
    FIELD(struct hec_kernel, UNSIGNED, id),
    FIELD(struct hec_kernel, UNSIGNED, name),
    NAMED(struct hec_kernel, KNOWN, grid[0], "grid_x"),
    NAMED(struct hec_kernel, KNOWN, grid[1], "grid_y"),
    NAMED(struct hec_kernel, KNOWN, grid[2], "grid_z"),
    NAMED(struct hec_kernel, KNOWN, block[0], "block_x"),
    NAMED(struct hec_kernel, KNOWN, block[1], "block_y"),
    NAMED(struct hec_kernel, KNOWN, block[2], "block_z"),
    FIELD(struct hec_kernel, KNOWN, registers),
    FIELD(struct hec_kernel, KNOWN, static_shared_bytes),
    FIELD(struct hec_kernel, KNOWN, dynamic_shared_bytes),
};

static const struct hec_field frame_fields[] = {
    FIELD(struct hec_frame, UNSIGNED, id),   FIELD(struct hec_frame, UNSIGNED, parent),
    FIELD(struct hec_frame, UNSIGNED, file), FIELD(struct hec_frame, UNSIGNED, function),
    FIELD(struct hec_frame, INTEGER, line),
};

const struct hec_record hec_records[HEC_RECORD_COUNT] = {
#define RECORD(table, order, sorted)                                                                                   \
    { #table, order, sorted, table##_fields, COUNT(table##_fields) }
    [HEC_RECORD_DEVICE] = RECORD(device, "device_index", false),
    [HEC_RECORD_PROCESS] = RECORD(process, "start_ns, pid", true),
    [HEC_RECORD_GPU_PROCESS] = RECORD(gpu_process, "first_ns, device_index, pid", true),
    [HEC_RECORD_TRACER] = RECORD(tracer, "pid", false),
    [HEC_RECORD_TRACK] = RECORD(track, "id", false),
    [HEC_RECORD_KERNEL] = RECORD(kernel, "id", false),
    [HEC_RECORD_FRAME] = RECORD(frame, "id", false),
};

static int columns(struct hec_buf *buf, const struct hec_record *record, unsigned version) {
    for (int i = 0; i < record->count; i++) {
        const struct hec_field *field = &record->fields[i];
        hec_buf_printf(buf, "%s%s", i ? ", " : "", version < field->from ? field->before : field->column);
    }
    return hec_buf_error(buf);
}

static int finish(struct hec_buf *buf, char *sql, size_t size) {
    int err = hec_buf_error(buf);
    if (err == HEC_OK && buf->length >= size)
        err = HEC_ERR_LIMIT;
    if (err == HEC_OK)
        memcpy(sql, buf->data, buf->length + 1);
    hec_buf_free(buf);
    return err;
}

int hec_record_insert_sql(const struct hec_record *record, char *sql, size_t size) {
    struct hec_buf buf;
    hec_buf_init(&buf, 4096);
    hec_buf_printf(&buf, "INSERT OR REPLACE INTO %s (", record->table);
    columns(&buf, record, HEC_SCHEMA_VERSION);
    hec_buf_puts(&buf, ") VALUES (");
    for (int i = 0; i < record->count; i++)
        hec_buf_puts(&buf, i ? ", ?" : "?");
    hec_buf_puts(&buf, ")");
    return finish(&buf, sql, size);
}

int hec_record_select_sql(const struct hec_record *record, unsigned version, char *sql, size_t size) {
    struct hec_buf buf;
    hec_buf_init(&buf, 4096);
    hec_buf_puts(&buf, "SELECT ");
    columns(&buf, record, version);
    hec_buf_printf(&buf, " FROM %s", record->table);
    return finish(&buf, sql, size);
}

static int64_t load(const struct hec_field *field, const void *data) {
    const char *at = (const char *)data + field->offset;
    if (field->kind == HEC_FIELD_UNSIGNED) {
        uint32_t number;
        memcpy(&number, at, sizeof number);
        return number;
    }
    if (field->size == sizeof(int)) {
        int narrow;
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    int64_t wide;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

/* The choice with this number; NULL when there is none. */
static const char *choice(const struct hec_field *field, int64_t number) {
    for (int64_t i = 0; field->choices[i]; i++)
        if (i == number)
            return field->choices[i];
    return NULL;
}

static bool is_time(const struct hec_field *field) {
    return field->kind == HEC_FIELD_TIME || field->kind == HEC_FIELD_TIME_OPEN;
}

/* Negative is NULL. */
static bool is_optional(const struct hec_field *field) {
    return field->kind == HEC_FIELD_KNOWN || field->kind == HEC_FIELD_TIME_OPEN ||
           field->kind == HEC_FIELD_DEVICE_OR_NONE;
}

/* What is not known, and is NULL in a file. */
static bool is_null(const struct hec_field *field, int64_t value) {
    return (is_optional(field) && value < 0) || (field->kind == HEC_FIELD_KNOWN && value > HEC_RECORD_KNOWN_MAX);
}

/* A number as it is in a file, no matter what wrote it. */
static bool number_fits(const struct hec_field *field, int64_t value) {
    if (is_time(field))
        return value >= -HEC_RECORD_TIME_MAX_NS && value <= HEC_RECORD_TIME_MAX_NS;
    if (field->kind == HEC_FIELD_DEVICE || field->kind == HEC_FIELD_DEVICE_OR_NONE)
        return value >= 0 && value < HEC_DEVICE_MAX;
    if (field->kind == HEC_FIELD_UNSIGNED)
        return value >= 0 && value <= UINT32_MAX;
    return field->size != sizeof(int) || (value >= INT_MIN && value <= INT_MAX);
}

bool hec_record_fits(const struct hec_record *record, const void *data, int64_t origin_ns) {
    for (int i = 0; i < record->count; i++) {
        const struct hec_field *field = &record->fields[i];
        if (field->kind == HEC_FIELD_TEXT)
            continue;
        int64_t value = load(field, data);
        if (is_null(field, value))
            continue;
        bool overflows = is_time(field) && __builtin_sub_overflow(value, origin_ns, &value);
        if (overflows || (field->kind == HEC_FIELD_CHOICE ? !choice(field, value) : !number_fits(field, value)))
            return false;
    }
    return true;
}

int hec_record_bind(const struct hec_record *record, sqlite3_stmt *statement, const void *data, int64_t origin_ns) {
    int rc = SQLITE_OK;
    for (int i = 0; i < record->count && rc == SQLITE_OK; i++) {
        const struct hec_field *field = &record->fields[i];
        if (field->kind == HEC_FIELD_TEXT) {
            const char *text = (const char *)data + field->offset;
            size_t length = strnlen(text, field->size - 1);
            rc = length ? sqlite3_bind_text(statement, i + 1, text, (int)length, SQLITE_STATIC)
                        : sqlite3_bind_null(statement, i + 1);
            continue;
        }
        int64_t value = load(field, data);
        if (field->kind == HEC_FIELD_CHOICE) {
            rc = sqlite3_bind_text(statement, i + 1, choice(field, value), -1, SQLITE_STATIC);
            continue;
        }
        if (is_null(field, value)) {
            rc = sqlite3_bind_null(statement, i + 1);
            continue;
        }
        if (is_time(field))
            value -= origin_ns;
        if (field->kind == HEC_FIELD_TIME_OPEN && value < 0)
            value = 0; /* ended before the run began: it may not look like "not yet" */
        rc = sqlite3_bind_int64(statement, i + 1, value);
    }
    return rc;
}

static int read_text(const struct hec_field *field, sqlite3_stmt *statement, int column, char *at) {
    at[0] = '\0';
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return HEC_OK;
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return HEC_ERR_CORRUPT;
    const void *text = sqlite3_column_text(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);
    if (!text || length >= field->size || memchr(text, 0, length))
        return HEC_ERR_CORRUPT;
    if (length)
        memcpy(at, text, length);
    at[length] = '\0';
    return HEC_OK;
}

static int read_choice(const struct hec_field *field, sqlite3_stmt *statement, int column, char *at) {
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return HEC_ERR_CORRUPT;
    const char *text = (const char *)sqlite3_column_text(statement, column);
    for (int i = 0; text && field->choices[i]; i++)
        if (strcmp(text, field->choices[i]) == 0) {
            memcpy(at, &i, sizeof i);
            return HEC_OK;
        }
    return HEC_ERR_CORRUPT;
}

static int read_integer(const struct hec_field *field, sqlite3_stmt *statement, int column, char *at) {
    int64_t value = -1;
    bool optional = is_optional(field);
    int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_INTEGER) {
        value = sqlite3_column_int64(statement, column);
        if (is_null(field, value) || !number_fits(field, value))
            return HEC_ERR_CORRUPT;
    } else if (type != SQLITE_NULL || !optional) {
        return HEC_ERR_CORRUPT;
    }
    if (field->kind == HEC_FIELD_UNSIGNED) {
        uint32_t number = (uint32_t)value;
        memcpy(at, &number, sizeof number);
    } else if (field->size == sizeof(int)) {
        int narrow = (int)value;
        memcpy(at, &narrow, sizeof narrow);
    } else {
        memcpy(at, &value, sizeof value);
    }
    return HEC_OK;
}

int hec_record_read(const struct hec_record *record, sqlite3_stmt *statement, void *data, struct hec_why *why) {
    for (int i = 0; i < record->count; i++) {
        const struct hec_field *field = &record->fields[i];
        char *at = (char *)data + field->offset;
        int err = field->kind == HEC_FIELD_TEXT     ? read_text(field, statement, i, at)
                  : field->kind == HEC_FIELD_CHOICE ? read_choice(field, statement, i, at)
                                                    : read_integer(field, statement, i, at);
        if (err)
            return hec_fail(why, err, "the column %s of the table %s holds something impossible", field->column,
                            record->table);
    }
    return HEC_OK;
}
