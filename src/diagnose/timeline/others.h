/* Inside src/diagnose: whether anybody else was at work on a device. What telemetry reads is of all processes on it.
 *
 * Where CUPTI saw the device, the engine's activity (GPM) is compared with what it saw: what is more is somebody else's. A
 * process that only holds a context (a forgotten notebook) does not count, and one that the driver does not list (of another
 * container) does. */
#ifndef HEC_DIAGNOSE_TIMELINE_OTHERS_H
#define HEC_DIAGNOSE_TIMELINE_OTHERS_H

#include "diagnose/meter/meter.h"
#include "diagnose/timeline/timeline.h"

/* Fills others, others_engine and others_seen of a device, whose telemetry and shared_with are set. timeline: its own;
 * NULL: nothing of it was traced. 0 or what the input returned. */
int hec_others_find(struct hec_meter *meter, struct hec_device_timeline *timeline, struct hec_device_summary *device,
                    struct hec_why *why);

#endif
