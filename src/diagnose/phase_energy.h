/* Energy by phase: what the used devices drew while any thread of the command was in it.
 *
 * The intervals of a phase are united over threads and processes and laid over the power history, in at most 65536 bins
 * of the run. A device's share of a bin is scaled so that all bins add up to its energy (energy.h). Phases that nest or
 * overlap each have all of it: they do not add up.
 *
 * Bound: the energy's own, and what may be charged to the wrong side of a beginning or an end. Power lies between 0 and
 * the device's limit, no matter what a smoothing sensor shows, so an end displaces at most limit x tau / 2; and all of
 * them together no more than the phase's own time, or the rest of the run, can hold (the whole is known). tau is 0.1 s
 * with a power history, and 1 s without one (the driver then gives a mean of the last second on many devices). Beyond
 * half of the value there is no figure, but the reason. */
#ifndef HEC_DIAGNOSE_PHASE_ENERGY_H
#define HEC_DIAGNOSE_PHASE_ENERGY_H

#include "diagnose/result.h"

#define HEC_PHASE_BOUND_MAX 0.50

/* Fed by a pass (pass.h), with the phases of out, which stay in place until the end. *phases NULL: there are none. 0 or
 * HEC_ERR_NOMEM. */
struct hec_pass_consumer;
struct hec_phase_energy;
int hec_phase_energy_begin(const struct hec_timeline_tables *tables, int64_t end_ns, struct hec_summary *out,
                           struct hec_phase_energy **phases, struct hec_pass_consumer *consumer);
/* Fills joules, bound_joules and why of its phases, once devices, their energy and the totals stand. HEC_ERR_NOMEM or what
 * the input returned. */
int hec_phase_energy_end(struct hec_phase_energy *phases, const struct hec_summary_input *input, struct hec_why *why);
void hec_phase_energy_free(struct hec_phase_energy *phases); /* NULL is fine */

#endif
