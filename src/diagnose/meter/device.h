/* All that the meter says of one device over the run: how its energy came about, what it did with it, its counters. */
#pragma once

#include "diagnose/input.h"
#include "diagnose/meter/meter.h"
#include "diagnose/meter/readings.h"

/* ---- which devices the command used, and who else was on them ---- */

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

/* What no reading says. */
struct hec_meter_hints {
    bool simulated;
    int64_t lost_ns;         /* the device was lost then; INT64_MAX: it was not */
    const char *unavailable; /* why there are no readings, as the recording says it; NULL or "" unknown */
};

/* Fills energy, power_w, power_limit_w, metric[], throttled_share[] and activity of a summary, whose device is set; the end of the
 * run is known. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_meter_device(struct hec_meter *meter, const struct hec_meter_hints *hints, struct hec_device_summary *device,
                     struct hec_why *why);

/* Time-weighted mean of a series in a part of the run; NAN where less than half of it was read. 0 or what the input returned. */
int hec_meter_mean(struct hec_meter *meter, enum hec_metric metric, int32_t device, int64_t from_ns, int64_t to_ns,
                   double *mean, struct hec_why *why);

/* What one unit of the stored integer is in the unit of hec_stat: permille 1/1000, KiB and KiB/s 1024, else 1. */
double hec_metric_scale(enum hec_metric metric);
