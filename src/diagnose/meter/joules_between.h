/* Inside src/diagnose: a device's joules between given instants.
 *
 * Between two readings of the energy counter its value is shared out as the power samples between them say, and where there are
 * none evenly in time. Readings are a second apart or more; the counter is right at each, so errors at the instants do not
 * add up. Where no counter was read, or it went backwards, the power samples say all. */
#ifndef HEC_DIAGNOSE_METER_JOULES_BETWEEN_H
#define HEC_DIAGNOSE_METER_JOULES_BETWEEN_H

#include "diagnose/input.h"
#include "diagnose/meter/readings.h"

/* joules[i]: from edge[i] to edge[i + 1] (ascending, count + 1 of them); NAN where less than half of it was read. 0,
 * HEC_ERR_NOMEM or what the input returned. */
int hec_joules_between(const struct hec_summary_input *input, const struct hec_device_summary *device,
                       const int64_t *edge, int count, int64_t end_ns, double *joules, struct hec_why *why);

#endif
