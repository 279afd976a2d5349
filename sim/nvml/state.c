/* The double: utilisation, clocks, temperature, PCIe. */
#include "sim/nvml/double.h"
#include "sim/nvml/exports.h"

#include "base/clock.h"

SIM_EXPORT sim_nvml_ret nvmlDeviceGetUtilizationRates(sim_nvml_device device,
                                                      struct sim_nvml_utilization *utilization) {
    SIM_ENTER_WHOLE(nvmlDeviceGetUtilizationRates, device);
    if (!utilization)
        return SIM_NVML_INVALID_ARGUMENT;
    if (sim_world_spec(world)->mig && device->device == 0)
        return SIM_NVML_NOT_SUPPORTED; /* as on a device in MIG mode */
    struct sim_counters mean;
    int64_t now = sim_world_now_ns(world);
    sim_sensor_counters(world, device->device, now - SIM_UTIL_WINDOW_NS, now, &mean);
    *utilization =
        (struct sim_nvml_utilization){(unsigned)(mean.util / 10 + 0.5), (unsigned)(mean.mem_util / 10 + 0.5)};
    return SIM_NVML_SUCCESS;
}

static sim_nvml_ret no_codec(const struct sim_world *world, const struct sim_handle *device, unsigned *percent,
                             unsigned *period_us) {
    if (!percent || !period_us)
        return SIM_NVML_INVALID_ARGUMENT;
    if (sim_world_spec(world)->mig && device->device == 0)
        return SIM_NVML_NOT_SUPPORTED;
    *percent = 0; /* nothing simulated encodes or decodes */
    *period_us = 167000;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetEncoderUtilization(sim_nvml_device device, unsigned *percent,
                                                        unsigned *period_us) {
    SIM_ENTER_WHOLE(nvmlDeviceGetEncoderUtilization, device);
    return no_codec(world, device, percent, period_us);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetDecoderUtilization(sim_nvml_device device, unsigned *percent,
                                                        unsigned *period_us) {
    SIM_ENTER_WHOLE(nvmlDeviceGetDecoderUtilization, device);
    return no_codec(world, device, percent, period_us);
}

/* A sound card, but for its first device: what a card has after years. */
SIM_EXPORT sim_nvml_ret nvmlDeviceGetRemappedRows(sim_nvml_device device, unsigned *correctable,
                                                  unsigned *uncorrectable, unsigned *pending, unsigned *failed) {
    SIM_ENTER_WHOLE(nvmlDeviceGetRemappedRows, device);
    if (!correctable || !uncorrectable || !pending || !failed)
        return SIM_NVML_INVALID_ARGUMENT;
    (void)world;
    *correctable = device->device == 0 ? 2 : 0;
    *uncorrectable = device->device == 0;
    *pending = *failed = 0;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetClockInfo(sim_nvml_device device, int type, unsigned *mhz) {
    SIM_ENTER_WHOLE(nvmlDeviceGetClockInfo, device);
    if (!mhz || type < 0 || type > 3)
        return SIM_NVML_INVALID_ARGUMENT;
    *mhz = (unsigned)(type == 2 ? sim_world_profile(world)->memory_clock_mhz
                                : sim_sensor_sm_clock_mhz(world, device->device, sim_world_now_ns(world)));
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetMaxClockInfo(sim_nvml_device device, int type, unsigned *mhz) {
    SIM_ENTER_WHOLE(nvmlDeviceGetMaxClockInfo, device);
    if (!mhz || type < 0 || type > 3)
        return SIM_NVML_INVALID_ARGUMENT;
    const struct sim_profile *profile = sim_world_profile(world);
    *mhz = (unsigned)(type == 2 ? profile->memory_clock_mhz : profile->sm_clock_mhz);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetCurrentClocksThrottleReasons(sim_nvml_device device, unsigned long long *reasons) {
    SIM_ENTER_WHOLE(nvmlDeviceGetCurrentClocksThrottleReasons, device);
    if (!reasons)
        return SIM_NVML_INVALID_ARGUMENT;
    *reasons = sim_sensor_throttle(world, device->device, sim_world_now_ns(world));
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetCurrentClocksEventReasons(sim_nvml_device device, unsigned long long *reasons) {
    SIM_ENTER_WHOLE(nvmlDeviceGetCurrentClocksEventReasons, device);
    if (!reasons)
        return SIM_NVML_INVALID_ARGUMENT;
    *reasons = sim_sensor_throttle(world, device->device, sim_world_now_ns(world));
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetPerformanceState(sim_nvml_device device, int *state) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPerformanceState, device);
    if (!state)
        return SIM_NVML_INVALID_ARGUMENT;
    (void)world;
    *state = 0;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetTemperature(sim_nvml_device device, int sensor, unsigned *celsius) {
    SIM_ENTER_WHOLE(nvmlDeviceGetTemperature, device);
    if (!celsius || sensor != 0)
        return SIM_NVML_INVALID_ARGUMENT;
    *celsius = (unsigned)sim_sensor_temperature_c(world, device->device, sim_world_now_ns(world));
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetTemperatureV(sim_nvml_device device, struct sim_nvml_temperature *temperature) {
    SIM_ENTER_WHOLE(nvmlDeviceGetTemperatureV, device);
    if (!temperature || temperature->sensor != 0)
        return SIM_NVML_INVALID_ARGUMENT;
    if (temperature->version != SIM_NVML_VERSIONED(struct sim_nvml_temperature, 1))
        return SIM_NVML_ARGUMENT_VERSION_MISMATCH;
    temperature->celsius = sim_sensor_temperature_c(world, device->device, sim_world_now_ns(world));
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetTemperatureThreshold(sim_nvml_device device, int threshold, unsigned *celsius) {
    SIM_ENTER_WHOLE(nvmlDeviceGetTemperatureThreshold, device);
    if (!celsius || threshold < 0 || threshold > 3)
        return SIM_NVML_INVALID_ARGUMENT;
    static const unsigned thresholds[] = {92, 89, 95, 87}; /* shutdown, slowdown, memory and GPU at most */
    (void)world;
    *celsius = thresholds[threshold];
    return SIM_NVML_SUCCESS;
}

/* These parts are cooled by the fans of their server. */
SIM_EXPORT sim_nvml_ret nvmlDeviceGetFanSpeed(sim_nvml_device device, unsigned *percent) {
    SIM_ENTER_WHOLE(nvmlDeviceGetFanSpeed, device);
    (void)world;
    return percent ? SIM_NVML_NOT_SUPPORTED : SIM_NVML_INVALID_ARGUMENT;
}

/* Counts over the 20 ms that the call takes. */
SIM_EXPORT sim_nvml_ret nvmlDeviceGetPcieThroughput(sim_nvml_device device, int counter, unsigned *kib_per_s) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPcieThroughput, device);
    if (!kib_per_s || (counter != 0 && counter != 1))
        return SIM_NVML_INVALID_ARGUMENT;
    struct sim_counters mean;
    int64_t now = sim_world_now_ns(world);
    sim_sensor_counters(world, device->device, now - 20 * HEC_NS_PER_MS, now, &mean);
    *kib_per_s = (unsigned)((counter == 0 ? mean.pcie_tx : mean.pcie_rx) * 1024);
    return SIM_NVML_SUCCESS;
}
