/* Events of the trace viewer of XLA's profiler (JAX, TensorFlow): Chrome's format without categories. What an event is follows
 * from the names of its process and thread: "/device:GPU:0" and "Stream #14(Compute)", or "/host:CPU". */
#pragma once

#include "store/import/event.h"

/* The names have come before, as metadata. Fills the event's kind, device and stream; false: it is nothing that HEC uses. */
bool hec_import_xla_event(struct hec_import_file *file, struct hec_import_event *event);
