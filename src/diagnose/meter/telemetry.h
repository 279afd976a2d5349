/* Statistics of a device's series over the run, and over the part of it in which the device was active. */
#ifndef HEC_DIAGNOSE_METER_TELEMETRY_H
#define HEC_DIAGNOSE_METER_TELEMETRY_H

#include "diagnose/meter/meter.h"
#include "diagnose/meter/readings.h"

/* What one unit of the stored integer is in the unit of hec_stat: permille 1/1000, KiB and KiB/s 1024, else 1. */
double hec_metric_scale(enum hec_metric metric);

/* Fill activity.from_s, to_s, readings and has_gpm of summary, whose device is set. */
int hec_telemetry_span(struct hec_meter *meter, struct hec_device_summary *summary, struct hec_why *why);
/* After the span: fill metric[] for every gauge and mean of devices but GPU_POWER, the rest of activity but its power,
 * throttled_share, and power_limit_w (the time-weighted mean of the enforced limit; else the device's). */
int hec_telemetry_fill(struct hec_meter *meter, struct hec_device_summary *summary, struct hec_why *why);

#endif
