/* Inside src/report: what the exports call things. */
#pragma once

#include "diagnose/result.h"

/* ---- power, hardware counters and the host's figures of a run, as exports give them ---- */

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

/* Definitions of a run. */
struct hec_export_tables {
    struct hec_timeline_tables timeline;
    char **readable; /* names of kernels that were asked for, by name id */
};

int hec_export_tables_load(const struct hec_timeline_input *input, struct hec_export_tables *tables,
                           struct hec_why *why);
void hec_export_tables_free(struct hec_export_tables *tables);

/* A number for the name of an activity, from 1 to hec_export_name_count - 1: the same for activities of one name. */
uint64_t hec_export_name_id(const struct hec_export_tables *tables, const struct hec_activity *a);
#define HEC_EXPORT_NAME_LAUNCH 15 /* of no activity */
#define HEC_EXPORT_NAME_REST 16   /* of a window in which calls were not recorded */
uint64_t hec_export_name_count(const struct hec_export_tables *tables);
/* The name: a kernel's readable one, "copy host to device (pinned)", "train_step (train.py:42)" ... UTF-8. */
const char *hec_export_name(struct hec_export_tables *tables, const struct hec_activity *a, char *out, size_t size);
