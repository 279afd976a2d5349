/* The run file, writing side. Schema and guarantees: docs/run-file.md.
 *
 * A writer buffers in bounded memory and commits about once a second, from the thread that calls
 * hec_writer_flush; its sink may be used from any thread. When the disk is full or fails, what is already
 * in the file stays, new data are kept in bounded memory and tried again, and the loss, if any, is counted.
 *
 * A process that may meet a file size limit (ulimit -f) ignores SIGXFSZ, so that the limit is an error and not its end. */
#ifndef HEC_STORE_WRITER_H
#define HEC_STORE_WRITER_H

#include "base/error.h"
#include "model/run.h"

struct hec_writer;

/* Create the file at path (it must not exist, or overwrite is true; then a run file or an empty file is replaced, and
 * anything else is HEC_ERR_USAGE). origin_ns: the monotonic time that becomes 0 in the file (may be set later with
 * hec_writer_set_origin, before the first flush). The file is valid from the moment it exists. */
int hec_writer_create(const char *path, bool overwrite, int64_t origin_ns, struct hec_writer **out,
                      struct hec_why *why);
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
 * One thread at a time. Once writing works again, an event store_failed tells how long it did not. */
int hec_writer_flush(struct hec_writer *writer, struct hec_why *why);

/* Flush, fold the write-ahead log into the one file and close. The writer is gone in any case. On failure the file
 * holds everything committed before; *lost (may be NULL) is the number of values that could not be kept. The meta key
 * store_closed = "1" tells a reader that the run was ended in order, store_lost how many values are missing. */
int hec_writer_close(struct hec_writer *writer, int64_t *lost, struct hec_why *why);

#endif
