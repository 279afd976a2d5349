/* The run file, writing side. Schema and guarantees: docs/run-file.md.
 *
 * A writer buffers in bounded memory and commits about once a second, from the thread that calls
 * hec_writer_flush; its sink may be used from any thread. When the disk is full or fails, what is already
 * in the file stays, new data are kept in bounded memory and tried again, and the loss, if any, is counted. */
#ifndef HEC_STORE_WRITER_H
#define HEC_STORE_WRITER_H

#include "base/error.h"
#include "model/run.h"

struct hec_writer;

/* Create the file at path (it must not exist, or overwrite is true). origin_ns: the monotonic time that becomes 0
 * in the file (may be set later with hec_writer_set_origin, before the first flush). */
int hec_writer_create(const char *path, bool overwrite, int64_t origin_ns, struct hec_writer **out, struct hec_why *why);
void hec_writer_set_origin(struct hec_writer *writer, int64_t origin_ns);
const struct hec_sink *hec_writer_sink(struct hec_writer *writer);

/* Commit what is buffered. HEC_ERR_FULL / HEC_ERR_IO when it could not be written (it is kept and tried again). */
int hec_writer_flush(struct hec_writer *writer, struct hec_why *why);

/* Flush, fold the write-ahead log into the one file and close. The writer is gone in any case. On failure the file
 * holds everything committed before; *lost is the number of values that could not be kept. */
int hec_writer_close(struct hec_writer *writer, int64_t *lost, struct hec_why *why);

#endif
