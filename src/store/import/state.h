/* What the parts of the importer share. A parser (import_kineto, import_nsys) gives what one file has: its tracks and
 * devices as the file numbers them, and records; the rest (joining calls with what they caused, the common origin,
 * ranks, ids of the run) is done here, once for all formats. */
#pragma once

#include "store/import/clocks.h"
#include "store/import/gradients.h"
#include "store/import/import.h"
#include "store/import/join.h"
#include "store/import/spool.h"
#include "store/import/tracks.h"

#include <stdbool.h>
#include <sys/types.h>

/* The names of a trace and their ids: asked for with every event, of the same few hundred names. A small cache in front
 * of the sink, which has a lock and a table of its own. */
#define HEC_IMPORT_NAME_MAX 16384
#define HEC_IMPORT_NAMES 1024 /* a power of two */

struct hec_import_names {
    struct hec_import_known_name {
        uint64_t hash;
        size_t length;
        char *text; /* NULL: free */
        uint32_t id;
    } known[HEC_IMPORT_NAMES];
    char clean[HEC_IMPORT_NAME_MAX + 1];
};

/* When a trace was recorded. A profiler looks for seconds or hours, so times that lie days from the others are wrong: of
 * events without a clock (0 of another epoch), or of another run's file. One of them would make a run of years. */
#define HEC_IMPORT_SPANS_MAX 16
#define HEC_IMPORT_APART_NS (INT64_C(86400) * 1000000000) /* a day */
/* Times as the file gives them: below this there is room to add a base and to subtract an origin. About 73 years. */
#define HEC_IMPORT_TIME_MAX_NS (INT64_MAX / 4)

struct hec_import_span {
    int64_t first_ns, last_ns, count;
};

/* Spans of time that are more than a day apart; {0} is empty. */
struct hec_import_spans {
    struct hec_import_span list[HEC_IMPORT_SPANS_MAX];
    int count;
    int64_t elsewhere; /* events for which there was no room */
};

/* An event of this time. */
void hec_import_spans_add(struct hec_import_spans *spans, int64_t start_ns, int64_t end_ns);

/* The span that holds nearly all events, and how many lie outside of it. False: there is none, and *span is the largest. */
bool hec_import_spans_main(struct hec_import_spans *spans, struct hec_import_span *span, int64_t *strays);

struct hec_import_file {
    char *path;
    dev_t device_number; /* with the inode: which file it is */
    ino_t inode;
    int32_t rank;    /* -1: the file does not say */
    int32_t pid;     /* main process; -1: none seen */
    int64_t base_ns; /* to be added to its times */
    bool xla;        /* it is of XLA's profiler */
    bool wall;       /* its times, with the base, are wall clock */
    struct hec_import_spans spans;
    int64_t first_ns, last_ns; /* once scanned: of the events that are kept; first > last: there are none */
    int64_t first_record, last_record;
    struct hec_import_tracks tracks;
    struct hec_import_gradients gradients;
    bool read;
};

/* A device of the run: one a rank and device of its file. */
struct hec_import_device {
    int32_t rank;
    int number;
};

struct hec_import {
    const struct hec_sink *sink;
    hec_import_progress progress;
    void *progress_context;
    struct hec_import_stats stats;
    struct hec_import_file *files;
    int file_count, files_read;
    int64_t file_bytes; /* of all files so far */
    int32_t world_size; /* ranks of the job, as its files say; 0: they do not */
    bool settled;       /* ranks and the origin stand: reading has begun */
    struct hec_import_device devices[HEC_DEVICE_MAX];
    int device_count;
    struct hec_import_join join;  /* of the file that is scanned */
    struct hec_import_join sizes; /* bytes, as start_ns, of the few calls that have them (HIP's copies) */
    struct hec_import_spool spool;
    struct hec_import_names names;
    struct hec_import_meetings meetings;
    struct hec_import_marks marks; /* of the file that is scanned */
};

int hec_import_kineto(struct hec_import *import, struct hec_import_file *file, struct hec_why *why);
int hec_import_nsys(struct hec_import *import, struct hec_import_file *file, struct hec_why *why);

/* The sink's id of a name, as hec_import_names_id. */
uint32_t hec_import_name(struct hec_import *import, const char *text, size_t length);

/* Keep a record. activity.track: an id of file->tracks; 0 for a SYNC, which goes where its call was made. Counts it as
 * kept, or, where its times make no sense, as bad. */
int hec_import_add(struct hec_import *import, struct hec_import_file *file, const struct hec_import_record *record,
                   struct hec_why *why);

/* An API call for the records of its correlation id, beside its own record. bytes: that it copies, NAN unknown. */
int hec_import_call(struct hec_import *import, const struct hec_import_record *record, double bytes,
                    struct hec_why *why);

int hec_import_report(struct hec_import *import, const struct hec_import_file *file, double share); /* progress */
