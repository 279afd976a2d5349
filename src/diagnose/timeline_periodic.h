/* Inside src/diagnose: steps of a run without any, from its kernels (steps_periodic.h). */
#ifndef HEC_DIAGNOSE_TIMELINE_PERIODIC_H
#define HEC_DIAGNOSE_TIMELINE_PERIODIC_H

#include "diagnose/steps.h"
#include "diagnose/timeline_device.h"

/* Learns the period on at most HEC_PERIODIC_LEARNT activities from the middle of the stream `track`, which has `count` of
 * them, and then finds every step of it. steps (empty before; free its list) gets those that hold the usual number of
 * kernels, or nothing; busy_share: of the device in them. 0, HEC_ERR_NOMEM or what the input returned. */
#define HEC_PERIODIC_LEARNT 131072
int hec_timeline_periodic(const struct hec_timeline_input *input, const struct hec_timeline_tables *tables,
                          struct hec_timeline_device *device, uint32_t track, int64_t count,
                          struct hec_step_list *steps, double *confidence, double *busy_share, struct hec_why *why);

#endif
