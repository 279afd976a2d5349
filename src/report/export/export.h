/* Exports of a run for other tools: rows out, through a function that takes bytes. */
#pragma once

#include "diagnose/result.h"

/* Returns 0, or a negative error that ends the export and is returned. */
typedef int (*hec_export_write)(void *context, const void *bytes, size_t count);

/* A Perfetto trace (perfetto.dev/docs/reference/trace-packet-proto): processes, threads, streams, steps and phases as
 * slices, power and counters of every device as counter tracks. */
int hec_export_perfetto(const struct hec_summary_input *input, hec_export_write write, void *context,
                        struct hec_why *why);

/* One row an activity, then one a reading of power, counters and the host; the header line names the columns. */
int hec_export_csv(const struct hec_summary_input *input, hec_export_write write, void *context, struct hec_why *why);
