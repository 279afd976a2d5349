/* The run file, writing side. Schema and guarantees: docs/run-file.md.
 *
 * A writer buffers in bounded memory and commits about once a second, from the thread that calls
 * hec_writer_flush; its sink may be used from any thread. When the disk is full or fails, what is already
 * in the file stays, new data are kept in bounded memory and tried again, and the loss, if any, is counted.
 *
 * A process that may meet a file size limit (ulimit -f) ignores SIGXFSZ, so that the limit is an error and not its end. */
#pragma once

#include "base/error.h"
#include "model/run.h"
#include "store/image.h"

#include <stdbool.h>

struct hec_writer;

/* Create the file at path (it must not exist, or overwrite is true: hec_create_check). origin_ns: the monotonic time that
 * becomes 0 in the file (may be set later with hec_writer_set_origin, before the first flush). The file is valid from the
 * moment it exists, and is known as one that is being written until the writer is closed. */
int hec_writer_create(const char *path, bool overwrite, int64_t origin_ns, struct hec_writer **out,
                      struct hec_why *why);
/* A run in memory, where there is no room for a file: some 64 MB, what comes beyond is dropped and counted. */
int hec_writer_create_in_memory(int64_t origin_ns, struct hec_writer **out, struct hec_why *why);
void hec_writer_set_origin(struct hec_writer *writer, int64_t origin_ns);

/* Lives as long as the writer. Times of samples are kept to the microsecond; those of gauges and means may be moved by
 * up to 1 ms, or 1/20 of their spacing if that is less, where that makes them evenly spaced. Values of one series may
 * come late and are put in order. Texts longer than 32 KiB (keys and names of units: 255 bytes) are cut.
 *
 * Of the timeline every nanosecond is kept. Activities that make no sense are refused and counted: unknown kind, track or
 * name, end before start, times beyond +-18 years, an infinite amount. A launch that makes none is unknown. Some 32 MB
 * (two million kernels) wait at most for the next flush; what comes beyond is counted: store_activities_lost. */
const struct hec_sink *hec_writer_sink(struct hec_writer *writer);

/* Commit what is buffered. HEC_ERR_FULL / HEC_ERR_IO when it could not be written (it is kept and tried again).
 * One thread at a time. Once writing works again, an event store_failed says how long it did not. */
int hec_writer_flush(struct hec_writer *writer, struct hec_why *why);

/* Flush, say that the run was ended in order (the meta key store_closed = "1"; store_lost says how many values are
 * missing) and fold the write-ahead log into the one file. On failure, and where the file is no more at its path
 * (HEC_ERR_NOTFOUND), the file holds everything that was committed before, and hec_writer_to_memory and another call of
 * this make the run whole in memory. */
int hec_writer_finish(struct hec_writer *writer, struct hec_why *why);

/* After that failed: is all in the file all the same, and only its log could not be folded in? */
bool hec_writer_is_whole(const struct hec_writer *writer);

/* Go on in memory, with what the file has and what waits. The file is closed. On failure nothing has changed. */
int hec_writer_to_memory(struct hec_writer *writer, struct hec_why *why);

/* The bytes of the run file; image->bytes is to be freed. */
int hec_writer_image(struct hec_writer *writer, struct hec_image *image, struct hec_why *why);

/* Finish, if that was not done, and close. The writer is gone in any case. *lost (may be NULL) is the number of values that
 * could not be kept. */
int hec_writer_close(struct hec_writer *writer, int64_t *lost, struct hec_why *why);
