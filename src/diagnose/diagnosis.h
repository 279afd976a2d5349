/* Where the time and the energy of each device went: states, ledger, source lines and watts put together. */
#ifndef HEC_DIAGNOSE_DIAGNOSIS_H
#define HEC_DIAGNOSE_DIAGNOSIS_H

#include "base/error.h"
#include "diagnose/timeline/pass.h"

#include <stdbool.h>

/* Source lines kept of a state and device. */
#define HEC_DIAGNOSIS_LINES 10
/* Modules kept of a device. */
#define HEC_DIAGNOSIS_MODULES 10

struct hec_summary;
struct hec_meter;
struct hec_view;
struct hec_diagnosis_builder;

/* One pass (pass.h) feeds the ledger, the source lines and the watts. Seconds are always given; joules where the
 * device's energy is valid and its power readings span enough, and then the rows add up to that energy. A device's
 * watts by state come from its power history and the windows between the values of its energy counter (unmix.h), and
 * where those do not separate them from what is known of states beforehand (pricing.h), with bounds that are as wide;
 * of time that was not traced they count as those of the state that it is counted for.
 *
 * Of a trace in brief (timeline.h) there are ledgers, lines and watts. The pass is to stay until the end. watts: devices
 * have telemetry, which is to be read. Pure; linear in time; memory grows with what ledger.h, calls.h, source_lines.h,
 * inferred.h and watts.h say, and 64 bytes a reading of at most 2.8 hours: of longer runs every nth minute counts. 0 or
 * HEC_ERR_NOMEM. */
/* view: gets the pieces that the ledger is made of, unless it is NULL. */
int hec_diagnosis_begin(const struct hec_pass *pass, bool watts, struct hec_view *view,
                        struct hec_diagnosis_builder **out,
                        struct hec_pass_consumer *consumers); /* by stage: those of inferred, modules, calls, states */
/* Fills the dossiers of `out`: their readings, energies and timelines are there. Frees the builder in any case: 0,
 * HEC_ERR_NOMEM or what the input returned. */
int hec_diagnosis_end(struct hec_diagnosis_builder *builder, struct hec_meter *meter, struct hec_summary *out,
                      struct hec_why *why);
void hec_diagnosis_abandon(struct hec_diagnosis_builder *builder); /* NULL is fine */

#endif
