/* The split of a device's energy in work, idle with a context and idle without, in bounded memory.
 *
 * Power, engine activity and the number of contexts are laid into at most 65536 equal bins over the run. The level of
 * idle-with-context is measured in this run: the mean power of the bins (and both neighbours) with a context and no more
 * than 0.5 % activity, at least 0.3 s of them. A bin with activity u and a context gives (1 - u) of its time, at that
 * level, to idle-with-context; a bin without context gives its energy to idle; work is the rest of the total. */
#pragma once

#include "base/error.h"
#include "diagnose/meter/readings.h"

struct hec_split;

int hec_split_create(int64_t end_ns, struct hec_split **out); /* 0 or HEC_ERR_NOMEM */
void hec_split_free(struct hec_split *split);

/* Steps of power (W) and of engine activity (0..1); both have the type hec_step_visitor. */
void hec_split_power(void *split, int64_t start_ns, int64_t end_ns, double watts);
void hec_split_activity(void *split, int64_t start_ns, int64_t end_ns, double share);
/* Much data crossed the PCIe bus: a copy with no kernel beside it looks idle to the counters, so that only a bound is given. */
void hec_split_copies(struct hec_split *split);
/* The activity is the driver's utilisation: one figure a second, over a part of it. Where it says quiet, power counts for
 * the level only if it is near the least seen with a context, and the split is labelled as estimated. */
void hec_split_coarse(struct hec_split *split);
/* Readings of GPU_CONTEXTS in time order (a hec_reading_visitor), then once hec_split_contexts_end. Between two readings that
 * differ in having any context, the state is taken from the power. */
void hec_split_contexts(void *split, int64_t t_ns, int64_t contexts, bool valid);
void hec_split_contexts_end(struct hec_split *split);

/* Fill the split of *energy, whose total is final; NAN and the reason in idle_source where it is unknown. */
void hec_split_result(struct hec_split *split, struct hec_energy *energy);
