/* Importers: traces of other tools become runs, given to a sink like a measured one (time only, no energy).
 *
 * The files are hostile: JSON or SQLite of any size and content. Memory is bounded by the number of names and by what
 * must wait for its partner (launches by correlation id), never by the length of the file. Malformed input is
 * HEC_ERR_CORRUPT with one sentence that names the file and the place, and so is a file of
 * another kind. Files that lie more than a day apart are of several runs: HEC_ERR_USAGE. */
#pragma once

#include "base/error.h"
#include "model/run.h"

enum hec_import_kind { HEC_IMPORT_UNKNOWN, HEC_IMPORT_KINETO, HEC_IMPORT_NSYS };

#define HEC_IMPORT_UNUSED_MAX 8

struct hec_import_stats {
    enum hec_import_kind kind;
    int64_t events;    /* read */
    int64_t kept;      /* became activities */
    int64_t on_device; /* of these: of devices */
    int64_t skipped;   /* of kinds that HEC does not use */
    struct hec_import_unused {
        char category[32];
        int64_t count;
    } unused[HEC_IMPORT_UNUSED_MAX]; /* their categories, where the format has such; as they come */
    int64_t bad;                     /* without a time, a duration or a place */
    int64_t stray;                   /* more than a day from the others of their file, or longer: not kept */
    int64_t cut;                     /* lasted beyond what their stream ran next: cut to its start */
    int64_t clocks;                  /* of files that were set by collectives, by more than they usually differ */
    int64_t repaired;                /* bytes of JSON that is not valid, read as they were meant */
    int ranks;                       /* files of this run so far */
    int64_t origin_ns;               /* earliest time over all files, as the trace gives it (its own clock) */
    int64_t end_ns;                  /* latest, relative to the origin */
};

struct hec_import;

/* progress (may be NULL) is called now and then with the share of the file that has been read; a negative error stops
 * the import and is returned. */
typedef int (*hec_import_progress)(void *context, const char *path, double share);

/* A run is imported in two passes over its files, because files of several ranks share one origin:
 *   hec_import_new; hec_import_scan for every file; hec_import_read for every file, in the order of
 *   hec_import_path; hec_import_free.
 * scan finds out the kind, the devices and the times; read gives the sink everything, with times from the origin. */
int hec_import_new(const struct hec_sink *sink, hec_import_progress progress, void *context, struct hec_import **out,
                   struct hec_why *why);
int hec_import_scan(struct hec_import *import, const char *path, struct hec_why *why);
/* Of the files that were scanned, by their ranks; no more can be scanned then. at: 0 to their number - 1. */
const char *hec_import_path(struct hec_import *import, int at);
int hec_import_read(struct hec_import *import, const char *path, struct hec_why *why);
const struct hec_import_stats *hec_import_stats(const struct hec_import *import);
void hec_import_free(struct hec_import *import);
