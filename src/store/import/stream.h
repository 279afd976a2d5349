/* What one stream of a device ran: one after the other. */
#pragma once

#include "store/import/spool.h"

/* Of the records first to last - 1: an activity of a device that lasts beyond the end of what its stream ran next cannot be; it is
 * cut to end where that begins, and counted in *cut. Nodes of a graph share a stream's number and may run at once: they are
 * left alone, as is a kernel that the next one only overlaps (a programmatic dependent launch). 32 bytes a record on a device
 * where there is something to cut, else none. */
int hec_import_streams_cut(struct hec_import_spool *spool, int64_t first, int64_t last, int64_t *cut,
                           struct hec_why *why);
