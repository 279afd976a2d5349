/* Inside src/diagnose: what tracing cost the program, and how much of it was seen. */
#pragma once

#include "diagnose/timeline/steps.h"

/* Of all tracers of the run. steps (NULL: none) and traced are those of one process; they give the overhead where they
 * can. Trampolines and hooks cost something before the first window too: that is the tracers' estimate and the hooks' own
 * account (hooks_share), which are added, believed from nothing to three times as much: they leave out what the caches and
 * the interpreter's lock cost around them. Where CUPTI was attached and no steps came before, the overhead is unknown;
 * where it never was, it is the estimate. */
void hec_trace_cost_of(const struct hec_timeline_tables *tables, const struct hec_step_list *steps,
                       struct hec_intervals *traced, double hooks_share, struct hec_trace_cost *out);
