/* What goes with calls that an edit takes away: the code around allocations, and the launches of numbers that are read in a row. */
#ifndef HEC_DIAGNOSE_REPLAY_AROUND_H
#define HEC_DIAGNOSE_REPLAY_AROUND_H

#include "diagnose/replay/schedule.h"

/* A number that the program reads: a copy to the host of no more than a KiB. */
bool hec_call_reads(const struct hec_schedule_call *call);
/* The copy that a wait belongs to, where it follows one; the call itself else. */
const struct hec_schedule_call *hec_call_copy(const struct hec_schedule *schedule,
                                              const struct hec_schedule_call *call);
/* Factor on the program's own code before a call once allocations are gone: the brief pieces of code around them become one between two
 * launches, which takes no longer than is usual between two launches with nothing between them. 1: there is none, or it takes no longer. */
double hec_code_around_allocations(const struct hec_schedule *schedule, const struct hec_schedule_call *call);
/* Numbers in a row: between two that are read nothing is launched but what makes the second of them, sums and what is done element by
 * element. The second read, where the call is that, the wait for it, or one of those launches; NULL else. */
const struct hec_schedule_call *hec_read_in_row(const struct hec_schedule *schedule,
                                                const struct hec_schedule_call *call);

#endif
