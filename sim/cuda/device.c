/* The double of libcuda: devices and what they say about themselves. */
#include "sim/cuda/double.h"
#include "sim/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sim_cu_find_device(const char *visible, int ordinal, struct sim_cu_device *device) {
    struct hec_why why;
    return sim_visible_device(sim_world_spec(sim_cu.world), visible, ordinal, &device->world_device, &device->instance,
                              &why);
}

static const struct sim_cu_device *find(CUdevice device) {
    return device >= 0 && device < sim_cu.device_count ? &sim_cu.devices[device] : NULL;
}

SIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    SIM_CU_ENTER(cuDeviceGet);
    if (!device)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!find(ordinal))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetCount(int *count) {
    SIM_CU_ENTER(cuDeviceGetCount);
    if (!count)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    *count = sim_cu.device_count;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    SIM_CU_ENTER(cuDeviceGetName);
    if (!name || length <= 0)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!find(device))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    snprintf(name, (size_t)length, "%s", sim_world_profile(sim_cu.world)->title);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

/* The bytes of the text that NVML gives. */
static void uuid_bytes(const char *text, CUuuid *uuid) {
    int digit = 0;
    memset(uuid, 0, sizeof *uuid);
    for (const char *p = strchr(text, '-') + 1; *p && digit < 32; p++)
        if (*p != '-') {
            int value = *p <= '9' ? *p - '0' : *p - 'a' + 10;
            uuid->bytes[digit / 2] = (char)(uuid->bytes[digit / 2] | (digit % 2 ? value : value << 4));
            digit++;
        }
}

static CUresult get_uuid(CUuuid *uuid, CUdevice index) {
    const struct sim_cu_device *device = find(index);
    char text[SIM_UUID_SIZE];
    if (!uuid)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return SIM_CUDA_ERROR_INVALID_DEVICE;
    sim_uuid(device->world_device, text);
    uuid_bytes(text, uuid);
    return SIM_CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    SIM_CU_ENTER(cuDeviceGetUuid);
    SIM_CU_LEAVE(get_uuid(uuid, device));
}

/* In a device that is divided, the instance's own. */
SIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice index) {
    SIM_CU_ENTER(cuDeviceGetUuid_v2);
    const struct sim_cu_device *device = find(index);
    if (uuid && device && sim_world_spec(sim_cu.world)->mig && device->world_device == 0) {
        char text[SIM_UUID_SIZE];
        sim_mig_uuid(0, device->instance, text);
        uuid_bytes(text, uuid);
        SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
    }
    SIM_CU_LEAVE(get_uuid(uuid, index));
}

SIM_EXPORT CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice index) {
    SIM_CU_ENTER(cuDeviceGetPCIBusId);
    const struct sim_cu_device *device = find(index);
    if (!text || length < 13)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!device)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    snprintf(text, (size_t)length, "0000:%02x:00.0", sim_bus(device->world_device));
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

/* Attributes by NVIDIA's number; limits of the SMs are those of compute capability 9.0. */
SIM_EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice index) {
    SIM_CU_ENTER(cuDeviceGetAttribute);
    const struct sim_cu_device *device = find(index);
    const struct sim_profile *profile = sim_world_profile(sim_cu.world);
    const int known[][2] = {{1, 1024}, /* threads per block */
                            {10, 32},  /* warp */
                            {13, profile->sm_clock_mhz * 1000},
                            {16, 132}, /* SMs */
                            {33, device ? (int)sim_bus(device->world_device) : 0},
                            {34, 0},    /* PCI device */
                            {39, 2048}, /* threads per SM */
                            {40, 2},    /* copy engines */
                            {50, 0},    /* PCI domain */
                            {75, profile->cuda_major},
                            {76, profile->cuda_minor},
                            {81, 233472}, /* shared bytes per SM */
                            {82, 65536},  /* registers per SM */
                            {106, 32}};   /* blocks per SM */
    if (!device)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    for (size_t i = 0; value && i < sizeof known / sizeof known[0]; i++)
        if (known[i][0] == attribute) {
            *value = known[i][1];
            SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
        }
    SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
}

SIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    SIM_CU_ENTER(cuDeviceTotalMem_v2);
    if (!bytes)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!find(device))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    *bytes = (size_t)sim_world_profile(sim_cu.world)->memory_mib << 20;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}
