/* Inside src/report: power, hardware counters and the host's figures of a run, as exports give them. */
#ifndef HEC_REPORT_EXPORT_COUNTERS_H
#define HEC_REPORT_EXPORT_COUNTERS_H

#include "base/error.h"
#include "diagnose/result.h"

struct hec_export_counter {
    enum hec_metric metric;
    bool host; /* of the machine or the command, not of a device */
    const char *name, *unit;
    double scale; /* from the metric's unit */
};

struct hec_export_reading {
    const struct hec_export_counter *counter;
    int device;               /* < 0: none */
    int64_t start_ns, end_ns; /* a mean is of the time since its last reading; others have no duration */
    double value;             /* NAN: missing */
    bool first;               /* of its counter and device */
};

/* Every reading, by device and counter, in order of time. What visit returns other than 0 ends it and is returned. */
int hec_export_counters(const struct hec_summary_input *input, const struct hec_device *devices, int device_count,
                        int (*visit)(void *context, const struct hec_export_reading *reading), void *context,
                        struct hec_why *why);

#endif
