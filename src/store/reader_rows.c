/* Everything but the series: one small loop a table. */
#include "store/commit.h"
#include "store/reading.h"
#include "store/record.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 255
#define TRACE_NAME_BYTES (1 << 15)
#define TEXT_BYTES (1 << 16)

static int rows(struct hec_reader *reader, const char *sql, hec_reading_row row, void *visitor, struct hec_why *why) {
    sqlite3_stmt *statement;
    int err = hec_reading_prepare(reader, sql, &statement, why);
    if (err)
        return err;
    while ((err = hec_reading_step(reader, statement, why)) == 1)
        if (row && (err = row(reader, statement, visitor, why)) != 0)
            break;
    sqlite3_finalize(statement);
    return err;
}

int hec_reading_each(struct hec_reader *reader, const char *select, const char *order, bool sorted, hec_reading_row row,
                     void *visitor, struct hec_why *why) {
    char sql[1200];
    int err = sorted ? rows(reader, select, NULL, NULL, why) : HEC_OK;
    if (err == HEC_OK && snprintf(sql, sizeof sql, "%s ORDER BY %s", select, order) >= (int)sizeof sql)
        err = hec_fail(why, HEC_ERR_LIMIT, "%s", hec_err_text(HEC_ERR_LIMIT));
    return err ? err : rows(reader, sql, row, visitor, why);
}

int hec_reading_each_record(struct hec_reader *reader, const struct hec_record *record, hec_reading_row row,
                            void *visitor, struct hec_why *why) {
    char select[1024];
    int err = hec_record_select_sql(record, reader->version, select, sizeof select);
    return err ? hec_fail(why, err, "%s", hec_err_text(err))
               : hec_reading_each(reader, select, record->order, record->sorted, row, visitor, why);
}

bool hec_reading_record(struct hec_reader *reader, const struct hec_record *record, sqlite3_stmt *statement,
                        void *data) {
    struct hec_why what;
    if (hec_record_read(record, statement, data, &what) == HEC_OK)
        return true;
    hec_reading_leave_out(reader, what.text);
    return false;
}

static int leave_out(struct hec_reader *reader, const char *what) {
    hec_reading_leave_out(reader, what);
    return HEC_OK;
}

struct device_visitor {
    int (*visit)(void *context, const struct hec_device *device);
    void *context;
};

static int device_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct device_visitor *v = visitor;
    struct hec_device device;
    (void)why;
    return hec_reading_record(reader, &hec_records[HEC_RECORD_DEVICE], statement, &device)
               ? v->visit(v->context, &device)
               : HEC_OK;
}

int hec_reader_devices(struct hec_reader *reader, int (*visit)(void *context, const struct hec_device *device),
                       void *context, struct hec_why *why) {
    return hec_reading_each_record(reader, &hec_records[HEC_RECORD_DEVICE], device_row,
                                   &(struct device_visitor){visit, context}, why);
}

struct process_visitor {
    int (*visit)(void *context, const struct hec_process *process);
    void *context;
};

static int process_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct process_visitor *v = visitor;
    struct hec_process process;
    (void)why;
    return hec_reading_record(reader, &hec_records[HEC_RECORD_PROCESS], statement, &process)
               ? v->visit(v->context, &process)
               : HEC_OK;
}

int hec_reader_processes(struct hec_reader *reader, int (*visit)(void *context, const struct hec_process *process),
                         void *context, struct hec_why *why) {
    return hec_reading_each_record(reader, &hec_records[HEC_RECORD_PROCESS], process_row,
                                   &(struct process_visitor){visit, context}, why);
}

struct gpu_process_visitor {
    int (*visit)(void *context, const struct hec_gpu_process *process);
    void *context;
};

static int gpu_process_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct gpu_process_visitor *v = visitor;
    struct hec_gpu_process process;
    (void)why;
    return hec_reading_record(reader, &hec_records[HEC_RECORD_GPU_PROCESS], statement, &process)
               ? v->visit(v->context, &process)
               : HEC_OK;
}

int hec_reader_gpu_processes(struct hec_reader *reader,
                             int (*visit)(void *context, const struct hec_gpu_process *process), void *context,
                             struct hec_why *why) {
    return hec_reading_each_record(reader, &hec_records[HEC_RECORD_GPU_PROCESS], gpu_process_row,
                                   &(struct gpu_process_visitor){visit, context}, why);
}

struct event_visitor {
    int (*visit)(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text);
    void *context;
};

static int event_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct event_visitor *v = visitor;
    (void)why;
    int64_t t_ns, device = HEC_DEVICE_NONE;
    const char *kind_name, *text;
    if (!hec_reading_int(statement, 0, -HEC_RECORD_TIME_MAX_NS, HEC_RECORD_TIME_MAX_NS, &t_ns) ||
        !hec_reading_text(statement, 1, NAME_BYTES, &kind_name) ||
        (sqlite3_column_type(statement, 2) != SQLITE_NULL &&
         !hec_reading_int(statement, 2, 0, HEC_DEVICE_MAX - 1, &device)) ||
        !hec_reading_text(statement, 3, TEXT_BYTES, &text))
        return leave_out(reader, "the table event holds something impossible");
    enum hec_event_kind kind = hec_event_find(kind_name);
    return v->visit(v->context, kind == HEC_EVENT_COUNT ? HEC_EVENT_NOTE : kind, (int)device, t_ns, text);
}

int hec_reader_events(struct hec_reader *reader,
                      int (*visit)(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text),
                      void *context, struct hec_why *why) {
    return hec_reading_each(reader, "SELECT t_ns, kind, device_index, text FROM event", "t_ns, id", true, event_row,
                            &(struct event_visitor){visit, context}, why);
}

struct unit_visitor {
    int (*visit)(void *context, const char *name, double count);
    void *context;
};

static int unit_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct unit_visitor *v = visitor;
    (void)why;
    const char *name;
    if (!hec_reading_text(statement, 0, NAME_BYTES, &name) || sqlite3_column_type(statement, 1) != SQLITE_FLOAT ||
        !(fabs(sqlite3_column_double(statement, 1)) <= HEC_QUEUED_UNITS_MAX)) /* or a copy could not hold it */
        return leave_out(reader, "the table unit holds something impossible");
    return v->visit(v->context, name, sqlite3_column_double(statement, 1));
}

int hec_reader_units(struct hec_reader *reader, int (*visit)(void *context, const char *name, double count),
                     void *context, struct hec_why *why) {
    return hec_reading_each(reader, "SELECT name, count FROM unit", "name", false, unit_row,
                            &(struct unit_visitor){visit, context}, why);
}

struct phase_visitor {
    int (*visit)(void *context, const char *name, int64_t total_ns, int64_t count);
    void *context;
};

static int phase_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct phase_visitor *v = visitor;
    (void)why;
    const char *name;
    int64_t total_ns, count;
    if (!hec_reading_text(statement, 0, TRACE_NAME_BYTES, &name) ||
        !hec_reading_int(statement, 1, 0, INT64_MAX, &total_ns) || !hec_reading_int(statement, 2, 1, INT64_MAX, &count))
        return leave_out(reader, "a phase holds something impossible");
    return v->visit(v->context, name, total_ns, count);
}

int hec_reader_phases(struct hec_reader *reader,
                      int (*visit)(void *context, const char *name, int64_t total_ns, int64_t count), void *context,
                      struct hec_why *why) {
    return hec_reading_each(
        reader,
        /* 0: there was no room for its name */
        "SELECT CASE WHEN t.name=0 THEN 'phase' ELSE n.text END, t.total_ns, t.count FROM activity_total t "
        "LEFT JOIN trace_name n ON n.id=t.name WHERE t.kind='phase'",
        "2 DESC, 1", true, phase_row, &(struct phase_visitor){visit, context}, why);
}
