/* All that the meter says of one device over the run: how its energy came about, what it did with it, its counters. */
#ifndef HEC_DIAGNOSE_METER_DEVICE_H
#define HEC_DIAGNOSE_METER_DEVICE_H

#include "diagnose/meter/meter.h"
#include "diagnose/meter/readings.h"

/* What no reading says. */
struct hec_meter_hints {
    bool simulated;
    int64_t lost_ns;         /* the device was lost then; INT64_MAX: it was not */
    const char *unavailable; /* why there are no readings, for a sentence; NULL or "" unknown */
};

/* Fills energy, power_w, power_limit_w, metric[], throttled_share[] and activity of a summary, whose device is set; the end of the
 * run is known. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_meter_device(struct hec_meter *meter, const struct hec_meter_hints *hints, struct hec_device_summary *device,
                     struct hec_why *why);

#endif
