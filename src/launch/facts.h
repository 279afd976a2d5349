/* Facts about the machine and the run that label a run file: plain key/value pairs. */
#pragma once

#include "model/run.h"

/* host name, kernel, distribution, CPU model, cores, memory, hec's version, working folder */
void hec_facts_machine(const struct hec_sink *sink);
/* The wall clock at a monotonic time, the start of the run: to set the clocks of several hosts. */
void hec_facts_start(const struct hec_sink *sink, int64_t start_ns);
/* "2026-11-20T23:59:59+00:00" */
void hec_facts_wall_time(int64_t wall_ns, char text[40]);
