#include "observe/nvml/internal.h"
#include "observe/nvml/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nvmlDeviceArchitecture_t */
static const char *const architectures[] = {
    [2] = "kepler", [3] = "maxwell", [4] = "pascal", [5] = "volta",      [6] = "turing",
    [7] = "ampere", [8] = "ada",     [9] = "hopper", [10] = "blackwell", [13] = "rubin",
};

/* Bytes a second of one lane in one direction after the line code: 8b/10b for generations 1 and 2, 128b/130b for 3 to 5,
 * 242 of 256 bytes of a flit for 6 (PCI Express Base Specification 6.0). */
static const double pcie_lane_bytes_per_s[] = {
    [1] = 2.5e9 / 10,           [2] = 5e9 / 10,
    [3] = 8e9 / 8 * 128 / 130,  [4] = 16e9 / 8 * 128 / 130,
    [5] = 32e9 / 8 * 128 / 130, [6] = 64e9 / 8 * 242 / 256,
};

static int64_t pcie_speed(const struct hec_nvml *nvml, hec_nvml_device handle) {
    unsigned generation = 0, width = 0;
    /* An idle link runs at a lower generation to save power, so what counts is the most that this slot gives. */
    if (!nvml->pcie_max_generation || nvml->pcie_max_generation(handle, &generation) != HEC_NVML_SUCCESS)
        if (!nvml->pcie_generation || nvml->pcie_generation(handle, &generation) != HEC_NVML_SUCCESS)
            return -1;
    if (!nvml->pcie_max_width || nvml->pcie_max_width(handle, &width) != HEC_NVML_SUCCESS)
        if (!nvml->pcie_width || nvml->pcie_width(handle, &width) != HEC_NVML_SUCCESS)
            return -1;
    if (generation < 1 || generation >= sizeof pcie_lane_bytes_per_s / sizeof pcie_lane_bytes_per_s[0] || width < 1)
        return -1;
    return (int64_t)(pcie_lane_bytes_per_s[generation] * width / 1024);
}

static void describe_identity(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_device *info) {
    struct hec_nvml_pci pci = {0};
    if (nvml->device_name(handle, info->name, sizeof info->name) != HEC_NVML_SUCCESS)
        info->name[0] = '\0';
    if (!nvml->device_uuid || nvml->device_uuid(handle, info->uuid, sizeof info->uuid) != HEC_NVML_SUCCESS)
        info->uuid[0] = '\0';
    if (nvml->pci_info && nvml->pci_info(handle, &pci) == HEC_NVML_SUCCESS) {
        /* before the third version the driver leaves something else where bus_id lies */
        bool new = nvml->version[HEC_NVML_SYMBOL_pci_info] != 1 && nvml->version[HEC_NVML_SYMBOL_pci_info] != 2;
        const char *id = new ? pci.bus_id : pci.legacy_bus_id;
        size_t size = new ? sizeof pci.bus_id : sizeof pci.legacy_bus_id;
        snprintf(info->pci_bus_id, sizeof info->pci_bus_id, "%.*s", (int)strnlen(id, size), id);
    }
    int cuda;
    unsigned minor;
    if (nvml->cuda_driver_version && nvml->cuda_driver_version(&cuda) == HEC_NVML_SUCCESS)
        snprintf(info->cuda_driver, sizeof info->cuda_driver, "%d", cuda);
    if (nvml->minor_number && nvml->minor_number(handle, &minor) == HEC_NVML_SUCCESS)
        snprintf(info->minor_number, sizeof info->minor_number, "%u", minor);
    if (!nvml->serial || nvml->serial(handle, info->serial, sizeof info->serial) != HEC_NVML_SUCCESS)
        info->serial[0] = '\0';
    if (nvml->driver_version && nvml->driver_version(info->driver, sizeof info->driver) != HEC_NVML_SUCCESS)
        info->driver[0] = '\0';
}

static void describe_kind(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_device *info) {
    unsigned architecture;
    if (nvml->architecture && nvml->architecture(handle, &architecture) == HEC_NVML_SUCCESS &&
        architecture < sizeof architectures / sizeof architectures[0] && architectures[architecture])
        snprintf(info->architecture, sizeof info->architecture, "%s", architectures[architecture]);
    int major, minor;
    if (nvml->compute_capability && nvml->compute_capability(handle, &major, &minor) == HEC_NVML_SUCCESS) {
        info->cuda_major = major;
        info->cuda_minor = minor;
    }
    unsigned mig, pending;
    if (nvml->mig_mode) {
        int code = nvml->mig_mode(handle, &mig, &pending);
        if (code == HEC_NVML_SUCCESS)
            info->mig_enabled = mig == 1;
        else if (code == HEC_NVML_NOT_SUPPORTED)
            info->mig_enabled = 0;
    }
    char profile[64];
    info->simulated = nvml->simulated && nvml->simulated(profile, sizeof profile) == 0;
}

static void describe_limits(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_device *info) {
    struct hec_nvml_memory_v1 memory;
    unsigned limit;
    if (nvml->memory_v1 && nvml->memory_v1(handle, &memory) == HEC_NVML_SUCCESS)
        info->memory_kib = (int64_t)(memory.total / 1024);
    if (nvml->power_limit_enforced && nvml->power_limit_enforced(handle, &limit) == HEC_NVML_SUCCESS)
        info->power_limit_mw = limit;
    if (nvml->power_limit_default && nvml->power_limit_default(handle, &limit) == HEC_NVML_SUCCESS)
        info->power_limit_default_mw = limit;
    if (nvml->clock_max && nvml->clock_max(handle, HEC_NVML_CLOCK_SM, &limit) == HEC_NVML_SUCCESS)
        info->clock_max_mhz = limit;
    info->pcie_kib_per_s = pcie_speed(nvml, handle);
}

static bool has_power_history(const struct hec_nvml *nvml, hec_nvml_device handle) {
    int type;
    unsigned count = 0;
    if (!nvml->samples)
        return false;
    /* without a buffer the driver says how many samples there are; NOT_FOUND: it keeps a history, empty so far */
    int code = nvml->samples(handle, HEC_NVML_SAMPLES_TOTAL_POWER, 0, &type, &count, NULL);
    return code == HEC_NVML_SUCCESS || code == HEC_NVML_NOT_FOUND || code == HEC_NVML_INSUFFICIENT_SIZE;
}

static bool has_gpm(const struct hec_nvml *nvml, hec_nvml_device handle) {
    struct hec_nvml_gpm_support support = {.version = 1};
    return nvml->gpm_support && nvml->gpm_sample_alloc && nvml->gpm_sample_free && nvml->gpm_sample_get &&
           nvml->gpm_metrics && nvml->gpm_support(handle, &support) == HEC_NVML_SUCCESS && support.supported;
}

void nvml_describe(const struct hec_nvml *nvml, hec_nvml_device handle, int index, struct hec_device *info) {
    memset(info, 0, sizeof *info);
    info->index = HEC_DEVICE_INDEX(HEC_VENDOR_NVIDIA, index);
    snprintf(info->vendor, sizeof info->vendor, "%s", hec_vendor_info(HEC_VENDOR_NVIDIA)->name);
    info->cuda_major = info->cuda_minor = info->mig_enabled = -1;
    info->memory_kib = info->power_limit_mw = info->power_limit_default_mw = info->pcie_kib_per_s =
        info->clock_max_mhz = -1;
    if (!handle)
        return;
    describe_identity(nvml, handle, info);
    describe_kind(nvml, handle, info);
    describe_limits(nvml, handle, info);
    /* the energy counter costs 4.5 ms a call: taken to be there (Volta and newer) until the first reading says no */
    info->has_energy_counter = nvml->energy != NULL;
    info->has_power_history = has_power_history(nvml, handle);
    info->has_gpm = has_gpm(nvml, handle);
}

/* The MIG devices of one physical device. Returns the new count. */
static int list_migs(const struct hec_nvml *nvml, hec_nvml_device handle, int parent, struct hec_visible_mig *migs,
                     int count, int maximum) {
    unsigned slots = 0;
    if (!nvml->mig_max_count || !nvml->mig_by_index || !nvml->device_uuid ||
        nvml->mig_max_count(handle, &slots) != HEC_NVML_SUCCESS)
        return count;
    for (unsigned i = 0; i < slots && count < maximum; i++) {
        hec_nvml_device mig;
        struct hec_visible_mig *entry = &migs[count];
        unsigned gi, ci;
        if (nvml->mig_by_index(handle, i, &mig) != HEC_NVML_SUCCESS) /* a slot may be empty */
            continue;
        *entry = (struct hec_visible_mig){.parent = parent, .gpu_instance = -1, .compute_instance = -1};
        if (nvml->device_uuid(mig, entry->uuid, sizeof entry->uuid) != HEC_NVML_SUCCESS)
            continue;
        if (nvml->gpu_instance_id && nvml->gpu_instance_id(mig, &gi) == HEC_NVML_SUCCESS)
            entry->gpu_instance = (int)gi;
        if (nvml->compute_instance_id && nvml->compute_instance_id(mig, &ci) == HEC_NVML_SUCCESS)
            entry->compute_instance = (int)ci;
        count++;
    }
    return count;
}

int nvml_find_visible(const struct hec_nvml *nvml, const hec_nvml_device *handles, struct hec_device **infos, int count,
                      const char *visible_devices, bool *by_ordinal) {
    enum { MIGS_MAX = HEC_VENDOR_DEVICES_MAX * 8 }; /* at most 7 on one device */
    char(*uuids)[96] = calloc((size_t)count + 1, sizeof *uuids);
    struct hec_visible_mig *migs = calloc(MIGS_MAX, sizeof *migs);
    bool *visible = calloc((size_t)count + 1, sizeof *visible);
    int err = HEC_ERR_NOMEM;
    if (uuids && migs && visible) {
        struct hec_visible_input input = {visible_devices, (const char(*)[96])uuids, count, migs, 0};
        for (int i = 0; i < count; i++) {
            snprintf(uuids[i], sizeof uuids[i], "%s", infos[i]->uuid);
            if (infos[i]->mig_enabled == 1 && visible_devices)
                input.mig_count = list_migs(nvml, handles[i], i, migs, input.mig_count, MIGS_MAX);
        }
        hec_visible_parse(&input, visible, by_ordinal);
        for (int i = 0; i < count; i++)
            infos[i]->visible = visible[i];
        err = HEC_OK;
    }
    free(uuids);
    free(migs);
    free(visible);
    return err;
}
