/* Devices whose limits the power guard reads and writes, through NVML. What is written is read back. */
#pragma once

#include "act/power_journal.h"
#include "driver/nvml.h"
#include "launch/simulation.h"

#include <stdbool.h>

#define HEC_POWER_DEVICES 64

struct hec_power_machine {
    struct hec_nvml nvml; /* a test may fill it by hand, and the texts below */
    struct hec_simulation *simulation;
    char name[HEC_SIMULATION_SPEC]; /* as in an entry: "" for this machine */
    char boot[64], driver[48];
    bool simulated, initialised;
};

/* spec: the simulated machine, as --sim takes it; NULL: this one. After a failure nothing is open. */
int hec_power_machine_open(const char *spec, struct hec_power_machine *machine, struct hec_why *why);
void hec_power_machine_close(struct hec_power_machine *machine);

struct hec_power_device {
    hec_nvml_device handle;
    char uuid[HEC_NVML_UUID_SIZE], name[HEC_NVML_NAME_SIZE];
};

/* Those that CUDA_VISIBLE_DEVICES=visible names (NULL: all), at most HEC_POWER_DEVICES. Their number, or HEC_ERR_NOTFOUND,
 * HEC_ERR_USAGE (the list is by number and the devices differ, so that its meaning is not known). */
int hec_power_devices(const struct hec_power_machine *machine, const char *visible, struct hec_power_device *devices,
                      struct hec_why *why);
int hec_power_device_find(const struct hec_power_machine *machine, const char *uuid, struct hec_power_device *device,
                          struct hec_why *why);

/* What the device takes: mW or MHz. HEC_ERR_UNSUPPORTED: nothing of the kind. */
int hec_power_device_range(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t *from, int64_t *to, struct hec_why *why);
/* Whether the device takes this value: mW or MHz. HEC_ERR_USAGE with what it takes. */
int hec_power_device_check(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t value, struct hec_why *why);
/* What is set now, in mW; of clocks: 0 where none of the driver's signs says that they are limited, else 1 (NVML has no call that
 * reads a lock). */
int hec_power_device_read(const struct hec_power_machine *machine, const struct hec_power_device *device,
                          enum hec_power_knob knob, int64_t *value, struct hec_why *why);
/* Write it (0 for clocks: unlock) and read it back. HEC_ERR_PERMISSION; HEC_ERR_FAILED where something else is set then.
 * enforced: it must also be what holds, which a limit from outside the driver may prevent. */
int hec_power_device_write(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t value, bool enforced, struct hec_why *why);

/* "400 W", "1200 MHz", "no lock" */
void hec_power_value_words(enum hec_power_knob knob, int64_t value, char words[32]);
