/* One event of Kineto's JSON. */
#pragma once

#include "store/import/json.h"
#include "store/import/state.h"

/* A number that may be missing, not finite or of another type. */
struct hec_import_number {
    bool known;
    int64_t value;
};

struct hec_import_event {
    char phase; /* 0 unknown */
    int kind;   /* enum hec_activity_kind by the category, or HEC_IMPORT_NO_KIND */
    struct hec_import_number start_ns, duration_ns;
    struct hec_import_number pid, tid;
    /* of args */
    struct hec_import_number device, context, stream, correlation, registers, shared_bytes, graph_node, step;
    struct hec_import_number bytes, size; /* of the copy; that the call says */
    struct hec_import_number grid[3], block[3];
    struct hec_import_number elements_in, elements_out,
        ranks;                                          /* of a collective: of its messages, and of the communicator */
    char element[24], communicator[64], collective[32]; /* "BFloat16", "0", "allreduce"; "" unknown */
    struct hec_import_number sequence; /* of the collective in its process group: PyTorch 2.12 and newer */
    uint64_t members;                  /* hash of the group's ranks, as they stand there */
    enum hec_sync_type sync_type;
    char label[64];    /* args.name of metadata */
    bool categorised;  /* it has a category */
    char category[32]; /* of no kind that is used: as it stands there, cut */
    size_t name_length;
    char name[HEC_JSON_TEXT_MAX];
};

/* What "B" events began and "E" events have not ended yet. */
struct hec_import_begun {
    struct hec_import_open {
        struct hec_import_record record;
        uint32_t below; /* the one before on the same track, by index + 1 */
    } * open;
    size_t count, capacity;
    uint32_t free; /* first of the list of unused places, by index + 1 */
    size_t live;
};

int hec_import_event_read(struct hec_json *json, struct hec_import_event *event); /* where peek saw { */

/* Counts it as kept, skipped or bad; hands its record on. */
int hec_import_event_keep(struct hec_import *import, struct hec_import_file *file, struct hec_import_event *event,
                          struct hec_import_begun *begun, struct hec_why *why);

int64_t hec_import_begun_count(const struct hec_import_begun *begun);
void hec_import_begun_free(struct hec_import_begun *begun);

/* Any value as a whole number: also from a fraction (cut) and from text ("42", "0x2a"). */
int hec_import_integer(struct hec_json *json, int64_t *value, bool *known);
