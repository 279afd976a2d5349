/* What can be read from each GPU here, what not, why, and what would enable it: for `hec doctor` and `hec devices`. */
#pragma once

#include "observe/collector.h"

struct hec_nvml_reading {
    char name[40]; /* "energy counter" */
    bool works;
    char value[64];   /* with its unit; empty when it does not work */
    double cost_us;   /* of one call, measured now; NAN when it does not work */
    char why[160];    /* why it does not work; empty when it does */
    char remedy[160]; /* what would enable it; empty when nothing is to be done or nothing can be */
};

#define HEC_NVML_READINGS_MAX 16

struct hec_nvml_probed {
    struct hec_device device;
    struct hec_nvml_reading readings[HEC_NVML_READINGS_MAX];
    int reading_count;
};

/* Probe all devices: about 0.15 s. nvml_path NULL: the system's library; visible_devices: CUDA_VISIBLE_DEVICES or NULL.
 * *devices is malloc'ed (free it). Returns their number, or the errors of the collector's open with its sentence. */
int hec_nvml_probe(const char *nvml_path, const char *visible_devices, struct hec_nvml_probed **devices,
                   struct hec_why *why);

/* What the collector answers hec devices, */
int hec_nvml_devices(const struct hec_observe_options *options, struct hec_device *out, int room, struct hec_why *why);
/* and hec doctor: one area for the driver ("gpu") and one a device ("gpu 0"). */
void hec_nvml_check(const struct hec_observe_options *options, struct hec_check_list *list);
