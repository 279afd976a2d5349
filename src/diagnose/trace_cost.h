/* Inside src/diagnose: what tracing cost the program, and how much of it was seen. */
#ifndef HEC_DIAGNOSE_TRACE_COST_H
#define HEC_DIAGNOSE_TRACE_COST_H

#include "diagnose/steps.h"

/* Compares the steps that begin inside windows with those that begin outside, both at least a long step (its 99th
 * percentile) before the next border: what decides is where a step begins, so that long ones are not left out. The
 * interval is that of Price and Bonett (2002) for the ratio of two medians, distribution-free, 95 %. False: too few
 * steps on a side (HEC_TRACE_COST_STEPS_MIN), or none. */
#define HEC_TRACE_COST_STEPS_MIN 6
struct hec_slowdown {
    double ratio, low, high; /* of the median inside to the median outside */
};
bool hec_trace_slowdown(const struct hec_step_list *steps, struct hec_intervals *traced, struct hec_slowdown *out);

/* Of all tracers of the run. steps (NULL: none) and traced are those of one process; they give the overhead where they
 * can, else the tracers' own estimate does. */
void hec_trace_cost_of(const struct hec_timeline_tables *tables, const struct hec_step_list *steps,
                       struct hec_intervals *traced, struct hec_trace_cost *out);

#endif
