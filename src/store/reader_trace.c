/* What activities refer to. Ids are 1, 2, 3 …, and refer to what is there, so that they may index arrays. */
#include "store/definitions.h"
#include "store/reading.h"

#include <stdio.h>
#include <string.h>

#define TEXT_BYTES (1 << 15)
/* The writer keeps half of it; the names of a copy may be longer than they were. */
#define NAMES_BYTES (2 * (size_t)HEC_DEFINITIONS_TEXT_MAX)

static int highest(struct hec_reader *reader, const char *sql, uint32_t maximum, uint32_t *id, struct hec_why *why) {
    sqlite3_stmt *s;
    int64_t number = 0;
    int err = hec_reading_prepare(reader, sql, &s, why);
    if (err)
        return err;
    err = hec_reading_step(reader, s, why);
    if (err == 1)
        err = sqlite3_column_type(s, 0) == SQLITE_NULL || hec_reading_int(s, 0, 1, maximum, &number)
                  ? HEC_OK
                  : hec_reading_corrupt(reader, why, "an id of the timeline is out of range");
    sqlite3_finalize(s);
    *id = (uint32_t)number;
    return err;
}

int hec_reading_limits(struct hec_reader *reader, struct hec_why *why) {
    if (reader->has_limits)
        return HEC_OK;
    struct hec_activity_limits *limits = &reader->limits;
    uint32_t names = 0, kernels = 0, frames = 0;
    int err = highest(reader, "SELECT max(id) FROM trace_name", HEC_DEFINITIONS_NAMES_MAX, &names, why);
    if (err == HEC_OK)
        err = highest(reader, "SELECT max(id) FROM track", HEC_DEFINITIONS_TRACKS_MAX, &limits->tracks, why);
    if (err == HEC_OK)
        err = highest(reader, "SELECT max(id) FROM kernel", HEC_DEFINITIONS_KERNELS_MAX, &kernels, why);
    if (err == HEC_OK)
        err = highest(reader, "SELECT max(id) FROM frame", HEC_DEFINITIONS_FRAMES_MAX, &frames, why);
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        limits->name[kind] = names;
    limits->name[HEC_ACTIVITY_KERNEL] = kernels;
    limits->name[HEC_ACTIVITY_STACK] = frames;
    reader->has_limits = err == HEC_OK;
    return err;
}

static uint32_t names_of(const struct hec_reader *reader) {
    return reader->limits.name[HEC_ACTIVITY_RANGE];
}

struct visitor {
    union {
        int (*name)(void *context, uint32_t id, const char *text);
        int (*track)(void *context, const struct hec_track *track);
        int (*kernel)(void *context, const struct hec_kernel *kernel);
        int (*frame)(void *context, const struct hec_frame *frame);
        int (*tracer)(void *context, const struct hec_tracer *tracer);
    } visit;
    void *context;
    uint32_t id;  /* of the row before */
    size_t bytes; /* of all names so far */
};

/* The id of a definition, in column 0. They have no holes, for they may index arrays, and an end. */
static int next_id(struct hec_reader *reader, sqlite3_stmt *statement, struct visitor *v, const char *table,
                   uint32_t most, struct hec_why *why) {
    int64_t id;
    char what[64];
    v->id++;
    if (v->id <= most && hec_reading_int(statement, 0, v->id, v->id, &id))
        return HEC_OK;
    snprintf(what, sizeof what, v->id > most ? "the table %s is far too large" : "the ids of the table %s have a hole",
             table);
    return hec_reading_corrupt(reader, why, what);
}

static int name_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct visitor *v = visitor;
    const char *text;
    int err = next_id(reader, statement, v, "trace_name", HEC_DEFINITIONS_NAMES_MAX, why);
    if (err)
        return err;
    if (!hec_reading_text(statement, 1, TEXT_BYTES, &text)) {
        hec_reading_leave_out(reader, "the table trace_name holds something impossible");
        text = "";
    }
    v->bytes += strlen(text);
    if (v->bytes > NAMES_BYTES)
        return hec_reading_corrupt(reader, why, "the table trace_name is far too large");
    return v->visit.name(v->context, v->id, text);
}

int hec_reader_trace_names(struct hec_reader *reader, int (*visit)(void *context, uint32_t id, const char *text),
                           void *context, struct hec_why *why) {
    return hec_reading_each(reader, "SELECT id, text FROM trace_name", "id", false, name_row,
                            &(struct visitor){.visit.name = visit, .context = context}, why);
}

static int track_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct visitor *v = visitor;
    struct hec_track track;
    int err = next_id(reader, statement, v, "track", HEC_DEFINITIONS_TRACKS_MAX, why);
    if (err)
        return err;
    if (!hec_reading_record(reader, &hec_records[HEC_RECORD_TRACK], statement, &track))
        track = (struct hec_track){.id = v->id, .kind = HEC_TRACK_THREAD, .rank = -1, .device = HEC_DEVICE_NONE};
    return v->visit.track(v->context, &track);
}

int hec_reader_tracks(struct hec_reader *reader, int (*visit)(void *context, const struct hec_track *track),
                      void *context, struct hec_why *why) {
    return hec_reading_each_record(reader, &hec_records[HEC_RECORD_TRACK], track_row,
                                   &(struct visitor){.visit.track = visit, .context = context}, why);
}

static int kernel_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct visitor *v = visitor;
    struct hec_kernel kernel;
    int err = next_id(reader, statement, v, "kernel", HEC_DEFINITIONS_KERNELS_MAX, why);
    if (err)
        return err;
    bool good = hec_reading_record(reader, &hec_records[HEC_RECORD_KERNEL], statement, &kernel);
    if (good && kernel.name > names_of(reader)) {
        hec_reading_leave_out(reader, "the table kernel refers to names that are not there");
        good = false;
    }
    if (!good)
        kernel = (struct hec_kernel){.id = v->id, .grid = {-1, -1, -1}, .block = {-1, -1, -1}, -1, -1, -1};
    return v->visit.kernel(v->context, &kernel);
}

int hec_reader_kernels(struct hec_reader *reader, int (*visit)(void *context, const struct hec_kernel *kernel),
                       void *context, struct hec_why *why) {
    int err = hec_reading_limits(reader, why);
    return err ? err
               : hec_reading_each_record(reader, &hec_records[HEC_RECORD_KERNEL], kernel_row,
                                         &(struct visitor){.visit.kernel = visit, .context = context}, why);
}

static int frame_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct visitor *v = visitor;
    struct hec_frame frame;
    int err = next_id(reader, statement, v, "frame", HEC_DEFINITIONS_FRAMES_MAX, why);
    if (err)
        return err;
    bool good = hec_reading_record(reader, &hec_records[HEC_RECORD_FRAME], statement, &frame);
    /* a parent comes before its children: so there are no circles */
    if (good && (frame.parent >= frame.id || frame.file > names_of(reader) || frame.function > names_of(reader))) {
        hec_reading_leave_out(reader, "the table frame refers to what is not there");
        good = false;
    }
    if (!good)
        frame = (struct hec_frame){.id = v->id};
    return v->visit.frame(v->context, &frame);
}

int hec_reader_frames(struct hec_reader *reader, int (*visit)(void *context, const struct hec_frame *frame),
                      void *context, struct hec_why *why) {
    int err = hec_reading_limits(reader, why);
    return err ? err
               : hec_reading_each_record(reader, &hec_records[HEC_RECORD_FRAME], frame_row,
                                         &(struct visitor){.visit.frame = visit, .context = context}, why);
}

static int tracer_row(struct hec_reader *reader, sqlite3_stmt *statement, void *visitor, struct hec_why *why) {
    struct visitor *v = visitor;
    struct hec_tracer tracer;
    (void)why;
    return hec_reading_record(reader, &hec_records[HEC_RECORD_TRACER], statement, &tracer)
               ? v->visit.tracer(v->context, &tracer)
               : HEC_OK;
}

int hec_reader_tracers(struct hec_reader *reader, int (*visit)(void *context, const struct hec_tracer *tracer),
                       void *context, struct hec_why *why) {
    return hec_reading_each_record(reader, &hec_records[HEC_RECORD_TRACER], tracer_row,
                                   &(struct visitor){.visit.tracer = visit, .context = context}, why);
}
