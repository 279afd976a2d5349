/* Inside src/diagnose: a timeline in which devices are busy also while no CUPTI saw them, told from the calls of their
 * processes (inferred_device.h) and telemetry (inferred_share.h). An adaptor: states, ledger and rules read it like any
 * other input. In it
 *   - a process whose calls were timed has one more stream on each device that it used, with activities of kind GRAPH
 *     (busy) and COPY that carry HEC_ACTIVITY_INFERRED; inside of CUPTI's windows there are none
 *   - those processes have no windows: all of their time is told
 *   - bursts come with calls of class LAUNCH (HEC_ACTIVITY_INFERRED) where the thread was launching
 * Streaming: memory grows with the number of tracks, windows and readings of telemetry, and some MB. */
#ifndef HEC_DIAGNOSE_INFERRED_H
#define HEC_DIAGNOSE_INFERRED_H

#include "diagnose/inferred_share.h"
#include "diagnose/ledger.h"
#include "diagnose/traced.h"

struct hec_inferred;
struct hec_summary_input;

/* summary: where telemetry comes from. *out NULL: there is nothing to infer, CUPTI saw all (95 % of the time in which
 * work was given), or calls were not timed. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_inferred_begin(const struct hec_summary_input *summary, const struct hec_timeline_input *timeline,
                       struct hec_inferred **out, struct hec_why *why);
void hec_inferred_free(struct hec_inferred *inferred); /* NULL is fine */
/* The input as by that variant, until the next call. */
int hec_inferred_input(struct hec_inferred *inferred, enum hec_inferred_variant variant,
                       const struct hec_timeline_input **out, struct hec_why *why);
/* How a device's busy time is known. */
enum hec_ledger_basis hec_inferred_basis(const struct hec_inferred *inferred, int device);
/* Of a device: when CUPTI saw it. */
bool hec_inferred_seen(struct hec_inferred *inferred, int device, int64_t start_ns, int64_t end_ns);

#endif
