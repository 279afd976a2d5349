/* The double: energy and power. */
#include "sim/nvml/double.h"
#include "sim/nvml/exports.h"

SIM_EXPORT sim_nvml_ret nvmlDeviceGetTotalEnergyConsumption(sim_nvml_device device, unsigned long long *energy_mj) {
    SIM_ENTER_WHOLE(nvmlDeviceGetTotalEnergyConsumption, device);
    if (!energy_mj)
        return SIM_NVML_INVALID_ARGUMENT;
    if (!sim_world_profile(world)->has_counter)
        return SIM_NVML_NOT_SUPPORTED;
    *energy_mj = sim_sensor_energy_mj(world, device->device, sim_world_now_ns(world));
    return SIM_NVML_SUCCESS;
}

/* The power history: what has ended by now, at most SIM_HISTORY_LENGTH samples, newer than last_seen_us, oldest first. */
SIM_EXPORT sim_nvml_ret nvmlDeviceGetSamples(sim_nvml_device device, int type, unsigned long long last_seen_us,
                                             int *value_type, unsigned *count, struct sim_nvml_sample *samples) {
    SIM_ENTER_WHOLE(nvmlDeviceGetSamples, device);
    if (!count || !value_type || (samples && *count == 0))
        return SIM_NVML_INVALID_ARGUMENT;
    if (type != 0 || !sim_world_profile(world)->has_history || sim_world_spec(world)->no_power)
        return SIM_NVML_NOT_SUPPORTED;
    *value_type = SIM_NVML_UNSIGNED;
    if (!samples) {
        *count = SIM_HISTORY_LENGTH + 1;
        return SIM_NVML_SUCCESS;
    }
    int64_t last = sim_sensor_history_last(world, sim_world_now_ns(world));
    unsigned written = 0;
    for (int64_t k = last - SIM_HISTORY_LENGTH + 1; k <= last && written < *count; k++) {
        unsigned long long t_us = sim_nvml_wall_us(world, sim_world_epoch_ns(world) + k * SIM_HISTORY_PERIOD_NS);
        if (t_us > last_seen_us && !sim_sensor_history_lost(world, device->device, k))
            samples[written++] =
                (struct sim_nvml_sample){t_us, {.ui = (unsigned)sim_sensor_history_mw(world, device->device, k)}};
    }
    *count = written;
    return written ? SIM_NVML_SUCCESS : SIM_NVML_NOT_FOUND;
}

static void field(struct sim_world *world, int device, struct sim_nvml_field *f) {
    const struct sim_profile *profile = sim_world_profile(world);
    int64_t now = sim_world_now_ns(world);
    f->time_us = (long long)sim_nvml_wall_us(world, now);
    f->latency_us = 0;
    f->ret = SIM_NVML_SUCCESS;
    f->value_type = SIM_NVML_UNSIGNED;
    bool recent = sim_world_spec(world)->driver >= 530; /* 185 to 192 came with that branch */
    switch (recent || f->id < 185 ? f->id : 0) {
    case 82: /* memory temperature */
        f->value.ui = (unsigned)sim_sensor_temperature_c(world, device, now) + 6;
        return;
    case 83: /* energy; costs what the counter costs */
    case 191:
        f->value_type = SIM_NVML_UNSIGNED_LONG_LONG;
        if (!profile->has_counter)
            break;
        sim_world_spend(world, sim_call_cost_ns(SIM_CALL_nvmlDeviceGetTotalEnergyConsumption));
        f->value.ull = sim_sensor_energy_mj(world, device, sim_world_now_ns(world));
        return;
    case 94: /* PCIe replays */
        f->value.ui = 0;
        return;
    case 185:
        if (!profile->averages)
            break;
        f->value.ui = (unsigned)sim_sensor_average_mw(world, device, now);
        return;
    case 186:
        f->value.ui = (unsigned)sim_sensor_instant_mw(world, device, now);
        return;
    case 187:
        f->value.ui = (unsigned)profile->power_min_mw;
        return;
    case 188:
        f->value.ui = (unsigned)profile->power_max_mw;
        return;
    case 189:
        f->value.ui = (unsigned)profile->power_default_mw;
        return;
    case 190:
        f->value.ui = (unsigned)sim_world_cap_mw(world, device);
        return;
    case 192:
        f->value.ui = (unsigned)sim_world_limits(world, device).cap_mw;
        return;
    default:
        break;
    }
    f->ret = SIM_NVML_NOT_SUPPORTED;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetFieldValues(sim_nvml_device device, int count, struct sim_nvml_field *fields) {
    SIM_ENTER_WHOLE(nvmlDeviceGetFieldValues, device);
    if (!fields || count <= 0)
        return SIM_NVML_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++)
        field(world, device->device, &fields[i]);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetPowerUsage(sim_nvml_device device, unsigned *power_mw) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPowerUsage, device);
    if (!power_mw)
        return SIM_NVML_INVALID_ARGUMENT;
    int64_t now = sim_world_now_ns(world);
    *power_mw = (unsigned)(sim_world_profile(world)->averages ? sim_sensor_average_mw(world, device->device, now)
                                                              : sim_sensor_instant_mw(world, device->device, now));
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetPowerManagementMode(sim_nvml_device device, unsigned *mode) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPowerManagementMode, device);
    if (!mode)
        return SIM_NVML_INVALID_ARGUMENT;
    *mode = 1;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetPowerManagementLimit(sim_nvml_device device, unsigned *limit_mw) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPowerManagementLimit, device);
    if (!limit_mw)
        return SIM_NVML_INVALID_ARGUMENT;
    *limit_mw = (unsigned)sim_world_cap_mw(world, device->device);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetEnforcedPowerLimit(sim_nvml_device device, unsigned *limit_mw) {
    SIM_ENTER_WHOLE(nvmlDeviceGetEnforcedPowerLimit, device);
    if (!limit_mw)
        return SIM_NVML_INVALID_ARGUMENT;
    *limit_mw = (unsigned)sim_world_limits(world, device->device).cap_mw;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetPowerManagementDefaultLimit(sim_nvml_device device, unsigned *limit_mw) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPowerManagementDefaultLimit, device);
    if (!limit_mw)
        return SIM_NVML_INVALID_ARGUMENT;
    *limit_mw = (unsigned)sim_world_profile(world)->power_default_mw;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetPowerManagementLimitConstraints(sim_nvml_device device, unsigned *min_mw,
                                                                     unsigned *max_mw) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPowerManagementLimitConstraints, device);
    if (!min_mw || !max_mw)
        return SIM_NVML_INVALID_ARGUMENT;
    *min_mw = (unsigned)sim_world_profile(world)->power_min_mw;
    *max_mw = (unsigned)sim_world_profile(world)->power_max_mw;
    return SIM_NVML_SUCCESS;
}

static sim_nvml_ret set_result(int err) {
    return err == HEC_OK ? SIM_NVML_SUCCESS : err == HEC_ERR_USAGE ? SIM_NVML_INVALID_ARGUMENT : SIM_NVML_UNKNOWN;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceSetPowerManagementLimit(sim_nvml_device device, unsigned limit_mw) {
    SIM_ENTER_WHOLE(nvmlDeviceSetPowerManagementLimit, device);
    if (sim_world_spec(world)->no_rights)
        return SIM_NVML_NO_PERMISSION;
    if (limit_mw > INT32_MAX)
        return SIM_NVML_INVALID_ARGUMENT;
    return set_result(sim_world_set_cap_mw(world, device->device, (int32_t)limit_mw));
}

/* Of the two bounds the upper one is modelled. As NVML, it has no call that reads the lock. */
SIM_EXPORT sim_nvml_ret nvmlDeviceSetGpuLockedClocks(sim_nvml_device device, unsigned min_mhz, unsigned max_mhz) {
    SIM_ENTER_WHOLE(nvmlDeviceSetGpuLockedClocks, device);
    if (sim_world_spec(world)->no_rights)
        return SIM_NVML_NO_PERMISSION;
    if (min_mhz > max_mhz || max_mhz == 0 || max_mhz > INT32_MAX)
        return SIM_NVML_INVALID_ARGUMENT;
    return set_result(sim_world_set_clock_mhz(world, device->device, (int32_t)max_mhz));
}

SIM_EXPORT sim_nvml_ret nvmlDeviceResetGpuLockedClocks(sim_nvml_device device) {
    SIM_ENTER_WHOLE(nvmlDeviceResetGpuLockedClocks, device);
    if (sim_world_spec(world)->no_rights)
        return SIM_NVML_NO_PERMISSION;
    return set_result(sim_world_set_clock_mhz(world, device->device, 0));
}
