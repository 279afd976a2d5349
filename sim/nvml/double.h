/* What the files of the double share. */
#pragma once

#include "sim/nvml/abi.h"
#include "sim/sensor.h"

#define SIM_EXPORT __attribute__((visibility("default")))

/* A device, or one of its MIG devices (mig >= 0). */
struct sim_handle {
    int device, mig;
};

/* Begin a call: finds the world, lets the call cost what it costs, and applies the faults. `handle` is NULL for calls
 * on no device. On success *world is set and, where there is a handle, it is valid and not lost. */
sim_nvml_ret sim_nvml_enter(enum sim_call call, const struct sim_handle *handle, struct sim_world **world);

/* The same, and refuses MIG handles with NOT_SUPPORTED, as NVML does for what is counted for whole devices only. */
sim_nvml_ret sim_nvml_enter_whole(enum sim_call call, const struct sim_handle *handle, struct sim_world **world);

struct sim_handle *sim_nvml_handle(int device, int mig);
unsigned sim_nvml_instance_id(const struct sim_handle *handle); /* UINT_MAX for a whole device */

/* Write text to a caller's buffer; INSUFFICIENT_SIZE when it does not fit. */
sim_nvml_ret sim_nvml_put(char *buffer, unsigned length, const char *text);

/* Wall clock in us of a time of the world. */
unsigned long long sim_nvml_wall_us(const struct sim_world *world, int64_t t_ns);

#define SIM_ENTER(name, handle)                                                                                        \
    struct sim_world *world;                                                                                           \
    do {                                                                                                               \
        sim_nvml_ret entered = sim_nvml_enter(SIM_CALL_##name, handle, &world);                                        \
        if (entered != SIM_NVML_SUCCESS)                                                                               \
            return entered;                                                                                            \
    } while (0)

#define SIM_ENTER_WHOLE(name, handle)                                                                                  \
    struct sim_world *world;                                                                                           \
    do {                                                                                                               \
        sim_nvml_ret entered = sim_nvml_enter_whole(SIM_CALL_##name, handle, &world);                                  \
        if (entered != SIM_NVML_SUCCESS)                                                                               \
            return entered;                                                                                            \
    } while (0)
