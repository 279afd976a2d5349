/* Which devices the command used, and who else was on them. */
#ifndef HEC_DIAGNOSE_METER_ATTRIBUTION_H
#define HEC_DIAGNOSE_METER_ATTRIBUTION_H

#include "diagnose/input.h"
#include "diagnose/meter/readings.h"

struct hec_attribution;

/* Read the processes on devices and match them with the observed tree; *tree_processes is how many members the tree had.
 * 0, HEC_ERR_NOMEM or what the input returned. */
int hec_attribution_create(const struct hec_summary_input *input, int64_t end_ns, struct hec_attribution **out,
                           int *tree_processes, struct hec_why *why);
void hec_attribution_free(struct hec_attribution *attribution);

/* Fill used, used_why and shared_with of summary, whose device and activity span are set. A device is used when a
 * process of the tree had a context on it. Where the driver's process ids mean nothing here (another pid namespace), or it
 * listed none, a device that the command may use and that was active is assumed to be used, and used_why says so. */
void hec_attribution_apply(const struct hec_attribution *attribution, struct hec_device_summary *summary);

#endif
