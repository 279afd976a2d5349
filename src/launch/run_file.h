/* Where a run is kept: in the file that was asked for, in a temporary folder, or in memory while there is no room for
 * a file. What was measured is reported in any case. */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "store/writer.h"

#include <limits.h>
#include <stdbool.h>

struct hec_run_file {
    char path[PATH_MAX]; /* "": nowhere, after closing */
    char
        beside[PATH_MAX]; /* written there until it is whole: another run is at path, and goes only then; "": at path */
    bool overwrite;
    bool in_memory;
    char why[512]; /* it is not where it was asked for, because: */
    struct hec_writer *writer;
    struct hec_image image; /* after closing, where it was in memory at the end */
};

/* given: the path that was asked for; NULL: one after the command. Without room it is kept elsewhere; anything else that
 * keeps a file from being made where it was asked for by name is an error. */
int hec_run_file_open(struct hec_run_file *file, const char *given, char *const *command, bool overwrite,
                      int64_t origin_ns, struct hec_why *why);

/* What the user has to know of the file: that it is elsewhere, or not whole. */
struct hec_run_file_note {
    enum hec_log_level level;
    char text[1024]; /* "": nothing */
};

/* Close it. Returns whether the whole run can be read: from image where that has bytes, else at path. */
bool hec_run_file_close(struct hec_run_file *file, struct hec_run_file_note *note);

/* There was no run after all. */
void hec_run_file_discard(struct hec_run_file *file);

void hec_run_file_free(struct hec_run_file *file);

/* The thread that commits the run file once a second, so that neither sampling nor the command waits for a disk. */
struct hec_flusher;

int hec_flusher_start(struct hec_writer *writer, struct hec_flusher **out, struct hec_why *why);
/* End the thread; the writer is then the caller's alone. Frees the flusher. */
void hec_flusher_stop(struct hec_flusher *flusher);
