/* Inside src/diagnose: what tracing cost the program, and how much of it was seen. */
#ifndef HEC_DIAGNOSE_TIMELINE_TRACE_COST_H
#define HEC_DIAGNOSE_TIMELINE_TRACE_COST_H

#include "diagnose/timeline/steps.h"

/* What CUPTI does to the steps of a process, by those before its first window: parts of a step's length then, with 95 %
 * intervals. Each stage (before, inside of windows, after the first one and outside) is cut into batches of six steps and
 * more, eight at most; a batch counts by its median, so that checkpoints and odd steps do not. Least squares on the
 * batches: a level of each stage and one drift in time for all, Student's t. Between batches lies what steps that follow
 * each other have in common; the drift is there so that a program that grows slower by itself is not put down to CUPTI:
 * the interval is the wider for it. False: no three batches before, or no two from the first window on. */
#define HEC_TRACE_COST_STEPS_MIN 6
#define HEC_TRACE_COST_WARM_UP 3u /* first steps, which do not count */
struct hec_slowdown {
    double inside, after;  /* NAN: too few steps */
    double run, low, high; /* of all steps, those before with 0 */
};
bool hec_trace_slowdown(const struct hec_step_list *steps, struct hec_intervals *traced, struct hec_slowdown *out);

/* Of all tracers of the run. steps (NULL: none) and traced are those of one process; they give the overhead where they
 * can. Trampolines and hooks cost something before the first window too: that is the tracers' estimate and the hooks' own
 * account (hooks_share), which are added, believed from nothing to three times as much: they leave out what the caches and
 * the interpreter's lock cost around them. Where CUPTI was attached and no steps came before, the overhead is unknown;
 * where it never was, it is the estimate. */
void hec_trace_cost_of(const struct hec_timeline_tables *tables, const struct hec_step_list *steps,
                       struct hec_intervals *traced, double hooks_share, struct hec_trace_cost *out);

#endif
