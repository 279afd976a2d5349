/* Energy by phase: what the used devices drew while any thread of the command was in it.
 *
 * The intervals of a phase are united over threads and processes; what the meter says of such a part, and its bound, is in
 * meter/joules.h. Phases that nest or overlap each have all of it: they do not add up. Beyond half of the value there is no
 * figure, but the reason. */
#ifndef HEC_DIAGNOSE_PHASES_H
#define HEC_DIAGNOSE_PHASES_H

#include "diagnose/result.h"

#define HEC_PHASE_BOUND_MAX 0.50

/* Fed by a pass (pass.h), with the phases of out, which stay in place until the end. *phases NULL: there are none. 0 or
 * HEC_ERR_NOMEM. */
struct hec_pass_consumer;
struct hec_phases;
int hec_phases_begin(const struct hec_timeline_tables *tables, int64_t end_ns, struct hec_summary *out,
                     struct hec_phases **phases, struct hec_pass_consumer *consumer);
/* Fills joules, bound_joules and why of its phases, once devices, their energy and the totals stand. HEC_ERR_NOMEM or what
 * the input returned. */
int hec_phases_end(struct hec_phases *phases, struct hec_meter *meter, struct hec_why *why);
void hec_phases_free(struct hec_phases *phases); /* NULL is fine */

#endif
