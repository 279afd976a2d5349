/* Statistics of a device's series over the run, and over the part of it in which the device was active. */
#ifndef HEC_DIAGNOSE_METER_TELEMETRY_H
#define HEC_DIAGNOSE_METER_TELEMETRY_H

#include "diagnose/meter/stat.h"
#include "diagnose/input.h"
#include "diagnose/meter/readings.h"

/* Memory lent from device to device: histograms for the medians (0.1 W bins for power). */
struct hec_telemetry {
    struct hec_histogram general; /* exact below 2048, within 0.1 % above */
    struct hec_histogram power;   /* of 0.1 W, exact to 1638 W */
};

int hec_telemetry_init(struct hec_telemetry *telemetry); /* 0 or HEC_ERR_NOMEM */
void hec_telemetry_free(struct hec_telemetry *telemetry);

/* What one unit of the stored integer is in the unit of hec_stat: permille 1/1000, KiB and KiB/s 1024, else 1. */
double hec_metric_scale(enum hec_metric metric);

/* Fill activity.from_s, to_s, readings and has_gpm of summary, whose device is set. */
int hec_telemetry_span(const struct hec_summary_input *input, int64_t end_ns, struct hec_device_summary *summary,
                       struct hec_why *why);
/* After the span: fill metric[] for every gauge and mean of devices but GPU_POWER, the rest of activity but its power,
 * throttled_share, and power_limit_w (the time-weighted mean of the enforced limit; else the device's). */
int hec_telemetry_fill(const struct hec_summary_input *input, int64_t end_ns, struct hec_telemetry *telemetry,
                       struct hec_device_summary *summary, struct hec_why *why);

/* Of metric gpu_throttle: bits of NVML's clocks event reasons (nvml.h). */
extern const uint64_t hec_throttle_bits[HEC_THROTTLE_COUNT];

#endif
