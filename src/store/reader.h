/* The run file, reading side. Treats the file as hostile: every value is checked and memory is bounded. A row or a block
 * with an impossible value is left out (hec_reader_left_out); damage of the file as such is HEC_ERR_CORRUPT with a sentence. All passes see
 * the file as it was when it was opened. Reading never writes, except that SQLite recovers the log of a killed writer. Texts are as
 * recorded: any bytes but NUL, so what prints them escapes them. One thread at a time.
 *
 * A visitor returns 0 to go on; anything else stops the pass and is returned. Its pointers live until it returns. */
#pragma once

#include "base/error.h"
#include "model/run.h"
#include "store/image.h"

#include <stdbool.h>
#include <stddef.h>

struct hec_reader;

/* HEC_ERR_NOTFOUND, HEC_ERR_PERMISSION; HEC_ERR_USAGE: not a regular file; HEC_ERR_CORRUPT: not a HEC run file,
 * truncated, damaged; HEC_ERR_VERSION: written by a newer HEC. The file of a killed writer opens, with its -wal file
 * beside it; where SQLite cannot work on that in place (a directory that cannot be written), a private copy under
 * TMPDIR is read. Not for a file that this process is still writing: closing it would drop the writer's locks. */
int hec_reader_open(const char *path, struct hec_reader **out, struct hec_why *why);
/* The bytes of a run file, which live as long as the reader; path is its name in messages. */
int hec_reader_open_image(const struct hec_image *image, const char *path, struct hec_reader **out,
                          struct hec_why *why);
void hec_reader_close(struct hec_reader *reader); /* NULL is fine */

/* Was its writer at work when the file was opened? */
bool hec_reader_live(const struct hec_reader *reader);
/* What was wrong with the first row or block that the passes so far left out ("the column pid of the table process holds
 * something impossible"); NULL when they left out none. */
const char *hec_reader_left_out(const struct hec_reader *reader);

/* NULL when the key is absent. The string lives until the reader is closed. */
const char *hec_reader_meta(struct hec_reader *reader, const char *key);
/* Every key, ascending. */
int hec_reader_metas(struct hec_reader *reader, int (*visit)(void *context, const char *key, const char *value),
                     void *context);

/* One pass over a series in time order, in chunks of at most 4096 values, so that memory does not grow with the run.
 * t_ns is relative to the run's start; valid[i] == 0: the value is missing (and value[i] is 0). A series that does not
 * exist is one without chunks. */
typedef int (*hec_chunk_visitor)(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid,
                                 size_t count);
int hec_reader_series(struct hec_reader *reader, enum hec_metric metric, int32_t subject, hec_chunk_visitor visit,
                      void *context, struct hec_why *why);

/* The subjects that have a series of this metric, ascending. *subjects is malloc'ed (free it); returns the count. */
int hec_reader_subjects(struct hec_reader *reader, enum hec_metric metric, int32_t **subjects, struct hec_why *why);

/* Visit every row of a table, in the order of time (devices by index). An event of a kind that this version does not
 * know is a HEC_EVENT_NOTE. */
int hec_reader_devices(struct hec_reader *reader, int (*visit)(void *context, const struct hec_device *device),
                       void *context, struct hec_why *why);
int hec_reader_processes(struct hec_reader *reader, int (*visit)(void *context, const struct hec_process *process),
                         void *context, struct hec_why *why);
int hec_reader_gpu_processes(struct hec_reader *reader,
                             int (*visit)(void *context, const struct hec_gpu_process *process), void *context,
                             struct hec_why *why);
int hec_reader_events(struct hec_reader *reader,
                      int (*visit)(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text),
                      void *context, struct hec_why *why);
int hec_reader_units(struct hec_reader *reader, int (*visit)(void *context, const char *name, double count),
                     void *context, struct hec_why *why);
/* Phases, summed in the file: total time and count by name, largest first. */
int hec_reader_phases(struct hec_reader *reader,
                      int (*visit)(void *context, const char *name, int64_t total_ns, int64_t count), void *context,
                      struct hec_why *why);

/* The timeline (model/trace.h): definitions by id (1, 2, 3 ...), tracers by pid. All ids refer to what there is: a name
 * is at most the last that hec_reader_trace_names gives, and so on; a frame's parent is less than its own id. Of a
 * definition that holds something impossible only the id is given. */
int hec_reader_trace_names(struct hec_reader *reader, int (*visit)(void *context, uint32_t id, const char *text),
                           void *context, struct hec_why *why);
int hec_reader_tracks(struct hec_reader *reader, int (*visit)(void *context, const struct hec_track *track),
                      void *context, struct hec_why *why);
int hec_reader_kernels(struct hec_reader *reader, int (*visit)(void *context, const struct hec_kernel *kernel),
                       void *context, struct hec_why *why);
int hec_reader_frames(struct hec_reader *reader, int (*visit)(void *context, const struct hec_frame *frame),
                      void *context, struct hec_why *why);
int hec_reader_tracers(struct hec_reader *reader, int (*visit)(void *context, const struct hec_tracer *tracer),
                       void *context, struct hec_why *why);
/* Activities of the wanted kinds (bits of HEC_ACTIVITY_BIT) in ascending start over all tracks, in chunks of at most
 * 4096. Memory grows with the number of tracks, not with the run. What is not wanted is not unpacked. Amounts are finite
 * or NAN, start <= end, launch <= its end, and times are within +-36 years. A thread of its own unpacks ahead of the
 * visitor, which is called from the caller's; meanwhile the reader answers nothing else: HEC_ERR_BUSY. */
int hec_reader_activities(struct hec_reader *reader, uint32_t kinds,
                          int (*visit)(void *context, const struct hec_activity *activities, size_t count),
                          void *context, struct hec_why *why);
/* All of them to each visitor, at least one, in threads of their own (the first in the caller's): they wait for each other
 * only where one is far ahead. When one stops, the others stop somewhere. */
int hec_reader_activities_beside(struct hec_reader *reader, uint32_t kinds, const struct hec_activity_visitor *visitors,
                                 size_t count, struct hec_why *why);
