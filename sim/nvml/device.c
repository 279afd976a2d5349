/* The double: what a device is. */
#include "sim/nvml/double.h"
#include "sim/nvml/exports.h"

#include "sim/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static sim_nvml_ret handle_by_index(struct sim_world *world, unsigned index, sim_nvml_device *device) {
    if (!device || index >= (unsigned)sim_world_spec(world)->count)
        return SIM_NVML_INVALID_ARGUMENT;
    if (sim_world_lost(world, (int)index, sim_world_now_ns(world)))
        return SIM_NVML_GPU_IS_LOST;
    *device = sim_nvml_handle((int)index, -1);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetHandleByIndex(unsigned index, sim_nvml_device *device) {
    SIM_ENTER(nvmlDeviceGetHandleByIndex, NULL);
    return handle_by_index(world, index, device);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetHandleByIndex_v2(unsigned index, sim_nvml_device *device) {
    SIM_ENTER(nvmlDeviceGetHandleByIndex_v2, NULL);
    return handle_by_index(world, index, device);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetHandleByUUID(const char *uuid, sim_nvml_device *device) {
    SIM_ENTER(nvmlDeviceGetHandleByUUID, NULL);
    if (!uuid || !device)
        return SIM_NVML_INVALID_ARGUMENT;
    char known[SIM_UUID_SIZE];
    for (int d = 0; d < sim_world_spec(world)->count; d++)
        for (int mig = -1; mig < (d == 0 ? sim_world_spec(world)->mig : 0); mig++) {
            mig < 0 ? sim_uuid(d, known) : sim_mig_uuid(d, mig, known);
            if (strcmp(known, uuid) != 0)
                continue;
            if (sim_world_lost(world, d, sim_world_now_ns(world)))
                return SIM_NVML_GPU_IS_LOST;
            *device = sim_nvml_handle(d, mig);
            return SIM_NVML_SUCCESS;
        }
    return SIM_NVML_NOT_FOUND;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, sim_nvml_device *device) {
    SIM_ENTER(nvmlDeviceGetHandleByPciBusId_v2, NULL);
    unsigned domain, bus, slot, function = 0;
    if (!bus_id || !device || sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
        return SIM_NVML_INVALID_ARGUMENT;
    for (int d = 0; d < sim_world_spec(world)->count; d++)
        if (domain == 0 && slot == 0 && function == 0 && bus == sim_bus(d))
            return handle_by_index(world, (unsigned)d, device);
    return SIM_NVML_NOT_FOUND;
}

static const struct sim_mig_part *part(const struct sim_world *world, const struct sim_handle *mig) {
    return sim_mig_part(sim_world_spec(world)->mig_slices[mig->mig]);
}

/* As in the names of NVIDIA's profiles: of all the GB there are, rounded. */
static int part_gb(const struct sim_world *world, const struct sim_handle *mig) {
    int all = (int)((sim_world_profile(world)->memory_mib + 1023) / 1024);
    return (all * part(world, mig)->memory_eighths + 4) / 8;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetName(sim_nvml_device device, char *name, unsigned length) {
    SIM_ENTER(nvmlDeviceGetName, device);
    if (!device)
        return SIM_NVML_INVALID_ARGUMENT;
    char text[96];
    snprintf(text, sizeof text, "%s", sim_world_profile(world)->title);
    if (device->mig >= 0)
        snprintf(text, sizeof text, "%s MIG %dg.%dgb", sim_world_profile(world)->title, part(world, device)->slices,
                 part_gb(world, device));
    return sim_nvml_put(name, length, text);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetUUID(sim_nvml_device device, char *uuid, unsigned length) {
    SIM_ENTER(nvmlDeviceGetUUID, device);
    if (!device)
        return SIM_NVML_INVALID_ARGUMENT;
    char text[SIM_UUID_SIZE];
    device->mig < 0 ? sim_uuid(device->device, text) : sim_mig_uuid(device->device, device->mig, text);
    return sim_nvml_put(uuid, length, text);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetSerial(sim_nvml_device device, char *serial, unsigned length) {
    SIM_ENTER_WHOLE(nvmlDeviceGetSerial, device);
    (void)world;
    char text[24];
    snprintf(text, sizeof text, "16502230000%02d", device->device);
    return sim_nvml_put(serial, length, text);
}

/* Most getters of one unsigned number look alike. */
#define SIM_GETTER(function, name, type, value)                                                                        \
    SIM_EXPORT sim_nvml_ret function(sim_nvml_device device, type *name) {                                             \
        SIM_ENTER_WHOLE(function, device);                                                                             \
        if (!name)                                                                                                     \
            return SIM_NVML_INVALID_ARGUMENT;                                                                          \
        *name = (type)(value);                                                                                         \
        return SIM_NVML_SUCCESS;                                                                                       \
    }

SIM_GETTER(nvmlDeviceGetIndex, index, unsigned, ((void)world, device->device))
SIM_GETTER(nvmlDeviceGetMinorNumber, minor_number, unsigned, ((void)world, device->device))
SIM_GETTER(nvmlDeviceGetArchitecture, architecture, unsigned, sim_world_profile(world)->nvml_architecture)
SIM_GETTER(nvmlDeviceGetPersistenceMode, mode, unsigned, ((void)world, 1))
SIM_GETTER(nvmlDeviceGetCurrPcieLinkGeneration, generation, unsigned, sim_world_profile(world)->pcie_generation)
SIM_GETTER(nvmlDeviceGetCurrPcieLinkWidth, width, unsigned, sim_world_profile(world)->pcie_width)
SIM_GETTER(nvmlDeviceGetMaxPcieLinkGeneration, generation, unsigned, sim_world_profile(world)->pcie_generation)
SIM_GETTER(nvmlDeviceGetMaxPcieLinkWidth, width, unsigned, sim_world_profile(world)->pcie_width)
SIM_GETTER(nvmlDeviceGetPcieReplayCounter, count, unsigned, ((void)world, 0))

SIM_EXPORT sim_nvml_ret nvmlDeviceGetPciInfo_v3(sim_nvml_device device, struct sim_nvml_pci *pci) {
    SIM_ENTER_WHOLE(nvmlDeviceGetPciInfo_v3, device);
    if (!pci)
        return SIM_NVML_INVALID_ARGUMENT;
    *pci = (struct sim_nvml_pci){.bus = sim_bus(device->device), .pci_device_id = 0x233510de};
    snprintf(pci->legacy_bus_id, sizeof pci->legacy_bus_id, "0000:%02X:00.0", pci->bus);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetCudaComputeCapability(sim_nvml_device device, int *major_version,
                                                           int *minor_version) {
    SIM_ENTER(nvmlDeviceGetCudaComputeCapability, device);
    if (!device || !major_version || !minor_version)
        return SIM_NVML_INVALID_ARGUMENT;
    *major_version = sim_world_profile(world)->cuda_major;
    *minor_version = sim_world_profile(world)->cuda_minor;
    return SIM_NVML_SUCCESS;
}

/* Total, reserved and used bytes; a MIG device has its part of the memory and shows what its own contexts use. */
static void memory(struct sim_world *world, const struct sim_handle *handle, struct sim_nvml_memory_v2 *out) {
    const struct sim_profile *profile = sim_world_profile(world);
    unsigned long long total = (unsigned long long)profile->memory_mib << 20;
    unsigned long long reserved = (unsigned long long)profile->reserved_mib << 20, used = 0;
    if (handle->mig < 0) {
        used = (unsigned long long)sim_sensor_memory_bytes(world, handle->device);
    } else {
        struct sim_context contexts[SIM_CONTEXT_MAX];
        total = total / 8 * (unsigned)part(world, handle)->memory_eighths;
        reserved = reserved / 8 * (unsigned)part(world, handle)->memory_eighths;
        for (int i = 0, count = sim_world_contexts(world, handle->device, contexts); i < count; i++)
            if (contexts[i].instance == handle->mig)
                used += (unsigned long long)contexts[i].memory_bytes;
        used = used < total - reserved ? used : total - reserved;
    }
    *out = (struct sim_nvml_memory_v2){out->version, total, reserved, total - reserved - used, used};
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetMemoryInfo(sim_nvml_device device, struct sim_nvml_memory *info) {
    SIM_ENTER(nvmlDeviceGetMemoryInfo, device);
    if (!device || !info)
        return SIM_NVML_INVALID_ARGUMENT;
    struct sim_nvml_memory_v2 now = {0};
    memory(world, device, &now);
    *info = (struct sim_nvml_memory){now.total, now.free, now.used + now.reserved};
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetMemoryInfo_v2(sim_nvml_device device, struct sim_nvml_memory_v2 *info) {
    SIM_ENTER(nvmlDeviceGetMemoryInfo_v2, device);
    if (!device || !info)
        return SIM_NVML_INVALID_ARGUMENT;
    if (info->version != SIM_NVML_VERSIONED(struct sim_nvml_memory_v2, 2))
        return SIM_NVML_ARGUMENT_VERSION_MISMATCH;
    memory(world, device, info);
    return SIM_NVML_SUCCESS;
}

/* MIG */

static bool divided(const struct sim_world *world, const struct sim_handle *handle) {
    return sim_world_spec(world)->mig && handle->device == 0 && handle->mig < 0;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetMigMode(sim_nvml_device device, unsigned *current, unsigned *pending) {
    SIM_ENTER_WHOLE(nvmlDeviceGetMigMode, device);
    if (!current || !pending)
        return SIM_NVML_INVALID_ARGUMENT;
    if (sim_world_profile(world)->nvml_architecture < 7)
        return SIM_NVML_NOT_SUPPORTED;
    *current = *pending = divided(world, device);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceIsMigDeviceHandle(sim_nvml_device device, unsigned *is_mig) {
    SIM_ENTER(nvmlDeviceIsMigDeviceHandle, device);
    if (!device || !is_mig)
        return SIM_NVML_INVALID_ARGUMENT;
    *is_mig = device->mig >= 0;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetMaxMigDeviceCount(sim_nvml_device device, unsigned *count) {
    SIM_ENTER_WHOLE(nvmlDeviceGetMaxMigDeviceCount, device);
    if (!count)
        return SIM_NVML_INVALID_ARGUMENT;
    *count = sim_world_profile(world)->nvml_architecture < 7 ? 0 : 7;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetMigDeviceHandleByIndex(sim_nvml_device device, unsigned index,
                                                            sim_nvml_device *mig) {
    SIM_ENTER_WHOLE(nvmlDeviceGetMigDeviceHandleByIndex, device);
    if (!mig || index >= 7)
        return SIM_NVML_INVALID_ARGUMENT;
    if (sim_world_profile(world)->nvml_architecture < 7)
        return SIM_NVML_NOT_SUPPORTED;
    if (!divided(world, device) || !sim_world_instance_there(world, (int)index, sim_world_now_ns(world)))
        return SIM_NVML_NOT_FOUND;
    *mig = sim_nvml_handle(device->device, (int)index);
    return SIM_NVML_SUCCESS;
}

/* NVML has it for MIG devices alone. */
SIM_EXPORT sim_nvml_ret nvmlDeviceGetAttributes_v2(sim_nvml_device device, struct sim_nvml_attributes *attributes) {
    SIM_ENTER(nvmlDeviceGetAttributes_v2, device);
    if (!device || !attributes)
        return SIM_NVML_INVALID_ARGUMENT;
    if (device->mig < 0)
        return SIM_NVML_NOT_SUPPORTED;
    struct sim_nvml_memory_v2 now = {0};
    memory(world, device, &now);
    *attributes = (struct sim_nvml_attributes){.sms = (unsigned)part(world, device)->sms,
                                               .copy_engines = 1,
                                               .gpu_instance_slices = (unsigned)part(world, device)->slices,
                                               .compute_instance_slices = (unsigned)part(world, device)->slices,
                                               .memory_mib = now.total >> 20};
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetDeviceHandleFromMigDeviceHandle(sim_nvml_device mig, sim_nvml_device *device) {
    SIM_ENTER(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, mig);
    if (!mig || !device || mig->mig < 0)
        return SIM_NVML_INVALID_ARGUMENT;
    *device = sim_nvml_handle(mig->device, -1);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetGpuInstanceId(sim_nvml_device device, unsigned *id) {
    SIM_ENTER(nvmlDeviceGetGpuInstanceId, device);
    if (!device || !id || device->mig < 0)
        return SIM_NVML_INVALID_ARGUMENT;
    *id = sim_nvml_instance_id(device);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetComputeInstanceId(sim_nvml_device device, unsigned *id) {
    SIM_ENTER(nvmlDeviceGetComputeInstanceId, device);
    if (!device || !id || device->mig < 0)
        return SIM_NVML_INVALID_ARGUMENT;
    *id = 0;
    return SIM_NVML_SUCCESS;
}
