/* How far proven savings were from replayed ones, by kind of edit: the intervals of predictions come from it. */
#ifndef HEC_DIAGNOSE_REPLAY_PROOFS_H
#define HEC_DIAGNOSE_REPLAY_PROOFS_H

#include "diagnose/replay/edit.h"

struct hec_summary;

/* By what to multiply the spread on hardware and frameworks that no proof is of. */
#define HEC_PROOFS_ELSEWHERE 1.5
#define HEC_PROOFS_NONE 0.6 /* spread of an edit of which there is no proof: twice that of those that have */

/* HEC_PROOFS_ELSEWHERE, or 1. */
double hec_proofs_widen(const struct hec_summary *summary);
/* Whether there is any of that edit. */
bool hec_proofs_known(enum hec_edit edit);
/* Widens [low, best, high] of a replayed saving, a share of a step's seconds (joules), to what proofs say; the best guess stays. What takes
 * more than before is taken to save nothing. NAN stays. */
struct hec_saving hec_proofs_seconds(enum hec_edit edit, struct hec_saving replayed, double widen);
struct hec_saving hec_proofs_joules(enum hec_edit edit, struct hec_saving replayed, double widen);

#endif
