/* Records that wait between the two passes of an import: the first 13 MiB of them in memory, all others in an unlinked
 * temporary file, for a gigabyte of trace must not become a gigabyte of memory. */
#pragma once

#include "base/error.h"
#include "model/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* A future activity. Times are those of its file's clock; tracks are the file's own (import_state.h). */
struct hec_import_record {
    struct hec_activity activity;
    uint64_t correlation; /* of a call with what it caused; 0 none */
};

#define HEC_IMPORT_SPOOL_KEPT (192 * 1024) /* records in memory: a trace of 250000 events needs no file */
#define HEC_IMPORT_SPOOL_CHUNK 4096        /* records handed to a visitor at a time */

struct hec_import_spool {
    int fd;                         /* -1: everything is in `tail` */
    int64_t written;                /* records in the file; the tail comes after them */
    struct hec_import_record *tail; /* grows up to HEC_IMPORT_SPOOL_KEPT */
    size_t tail_count, tail_capacity;
};

void hec_import_spool_init(struct hec_import_spool *spool);
void hec_import_spool_free(struct hec_import_spool *spool);

/* HEC_ERR_FULL, HEC_ERR_IO, HEC_ERR_PERMISSION: of the folder for temporary files (TMPDIR, /var/tmp or /tmp). */
int hec_import_spool_add(struct hec_import_spool *spool, const struct hec_import_record *record, struct hec_why *why);
int64_t hec_import_spool_count(const struct hec_import_spool *spool);

/* visit every record from `first` up to `last` in place, in chunks; what it changes is kept if `change`. */
int hec_import_spool_visit(struct hec_import_spool *spool, int64_t first, int64_t last, bool change,
                           int (*visit)(void *context, struct hec_import_record *records, size_t count), void *context,
                           struct hec_why *why);
