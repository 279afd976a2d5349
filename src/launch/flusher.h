/* The thread that commits the run file once a second, so that neither sampling nor the command waits for a disk. */
#ifndef HEC_LAUNCH_FLUSHER_H
#define HEC_LAUNCH_FLUSHER_H

#include "base/error.h"
#include "store/writer.h"

struct hec_flusher;

int hec_flusher_start(struct hec_writer *writer, struct hec_flusher **out, struct hec_why *why);
/* End the thread; the writer is then the caller's alone. Frees the flusher. */
void hec_flusher_stop(struct hec_flusher *flusher);

#endif
