/* A device's energy in windows, each as short as its sensors say it: what the watts of states are unmixed from. */
#ifndef HEC_DIAGNOSE_METER_WINDOWS_H
#define HEC_DIAGNOSE_METER_WINDOWS_H

#include "diagnose/meter/meter.h"
#include "diagnose/meter/readings.h"

/* What a visitor returns, if not 0, ends it and is returned. */
struct hec_window_visitor {
    void *context;
    /* A power sample: the mean over span_ns, which end at t_ns. None where power is polled: what a value covers is not known. */
    int (*power)(void *context, int64_t t_ns, int64_t span_ns, double watts);
    /* Between the instants at which two of the counter's values became current. */
    int (*counter)(void *context, int64_t start_ns, int64_t end_ns, double joules, double sigma_j);
};

/* every: of samples and counter readings those of every so many minutes. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_meter_windows(struct hec_meter *meter, const struct hec_device_summary *device, int64_t every,
                      const struct hec_window_visitor *visitor, struct hec_why *why);

#endif
