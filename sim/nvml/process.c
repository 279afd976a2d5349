/* The double: processes with a context. */
#include "sim/nvml/double.h"
#include "sim/nvml/exports.h"

#include "base/clock.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

/* Contexts on the handle: of a whole device all, of a MIG device its own. */
static int contexts_on(struct sim_world *world, const struct sim_handle *handle,
                       struct sim_context contexts[SIM_CONTEXT_MAX]) {
    int count = sim_world_contexts(world, handle->device, contexts), kept = 0;
    for (int i = 0; i < count; i++)
        if (handle->mig < 0 || contexts[i].instance == handle->mig)
            contexts[kept++] = contexts[i];
    return kept;
}

/* NVML's contract for a list: *count is the room on entry and the number there is on return. */
static sim_nvml_ret give(struct sim_world *world, const struct sim_handle *handle, unsigned *count, void *list,
                         size_t entry_size) {
    struct sim_context contexts[SIM_CONTEXT_MAX];
    if (!handle || !count || (*count > 0 && !list))
        return SIM_NVML_INVALID_ARGUMENT;
    unsigned there = (unsigned)contexts_on(world, handle, contexts), room = *count;
    bool mig = sim_world_spec(world)->mig && handle->device == 0;
    *count = there;
    if (there > room)
        return SIM_NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < there; i++) {
        struct sim_nvml_process_v2 entry = {(unsigned)contexts[i].pid, (unsigned long long)contexts[i].memory_bytes,
                                            mig ? (unsigned)contexts[i].instance + 1 : UINT_MAX, mig ? 0 : UINT_MAX};
        memcpy((char *)list + i * entry_size, &entry, entry_size); /* the first version is the head of the second */
    }
    return SIM_NVML_SUCCESS;
}

_Static_assert(offsetof(struct sim_nvml_process_v2, gpu_instance) == sizeof(struct sim_nvml_process_v1),
               "the first version of a process is the head of the second");

SIM_EXPORT sim_nvml_ret nvmlDeviceGetComputeRunningProcesses(sim_nvml_device device, unsigned *count,
                                                             struct sim_nvml_process_v1 *processes) {
    SIM_ENTER(nvmlDeviceGetComputeRunningProcesses, device);
    return give(world, device, count, processes, sizeof *processes);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetComputeRunningProcesses_v2(sim_nvml_device device, unsigned *count,
                                                                struct sim_nvml_process_v2 *processes) {
    SIM_ENTER(nvmlDeviceGetComputeRunningProcesses_v2, device);
    return give(world, device, count, processes, sizeof *processes);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetComputeRunningProcesses_v3(sim_nvml_device device, unsigned *count,
                                                                struct sim_nvml_process_v2 *processes) {
    SIM_ENTER(nvmlDeviceGetComputeRunningProcesses_v3, device);
    return give(world, device, count, processes, sizeof *processes);
}

/* Nothing simulated draws. */
static sim_nvml_ret give_none(const struct sim_handle *handle, unsigned *count) {
    if (!handle || !count)
        return SIM_NVML_INVALID_ARGUMENT;
    *count = 0;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetGraphicsRunningProcesses(sim_nvml_device device, unsigned *count,
                                                              struct sim_nvml_process_v1 *processes) {
    (void)processes;
    SIM_ENTER(nvmlDeviceGetGraphicsRunningProcesses, device);
    return give_none(device, count);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetGraphicsRunningProcesses_v2(sim_nvml_device device, unsigned *count,
                                                                 struct sim_nvml_process_v2 *processes) {
    (void)processes;
    SIM_ENTER(nvmlDeviceGetGraphicsRunningProcesses_v2, device);
    return give_none(device, count);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetGraphicsRunningProcesses_v3(sim_nvml_device device, unsigned *count,
                                                                 struct sim_nvml_process_v2 *processes) {
    (void)processes;
    SIM_ENTER(nvmlDeviceGetGraphicsRunningProcesses_v3, device);
    return give_none(device, count);
}

/* One sample per process that kept the device busy in the last whole second of a grid, as the driver averages it. */
static unsigned utilization(struct sim_world *world, int device, unsigned long long last_seen_us,
                            struct sim_nvml_process_utilization entries[SIM_CONTEXT_MAX]) {
    struct sim_context contexts[SIM_CONTEXT_MAX];
    int64_t epoch = sim_world_epoch_ns(world);
    int64_t end = epoch + (sim_world_now_ns(world) - epoch) / HEC_NS_PER_S * HEC_NS_PER_S;
    unsigned long long t_us = sim_nvml_wall_us(world, end);
    unsigned written = 0;
    for (int i = 0, count = sim_world_contexts(world, device, contexts); i < count && t_us > last_seen_us; i++) {
        int64_t busy = sim_world_busy_ns(world, device, contexts[i].pid, end - HEC_NS_PER_S, end);
        if (busy > 0)
            entries[written++] = (struct sim_nvml_process_utilization){
                .pid = (unsigned)contexts[i].pid, .time_us = t_us, .sm = (unsigned)(busy * 100 / HEC_NS_PER_S)};
    }
    return written;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetProcessUtilization(sim_nvml_device device,
                                                        struct sim_nvml_process_utilization *entries, unsigned *count,
                                                        unsigned long long last_seen_us) {
    SIM_ENTER_WHOLE(nvmlDeviceGetProcessUtilization, device);
    struct sim_nvml_process_utilization found[SIM_CONTEXT_MAX];
    if (!count)
        return SIM_NVML_INVALID_ARGUMENT;
    if (sim_world_spec(world)->mig && device->device == 0)
        return SIM_NVML_NOT_SUPPORTED;
    if (!entries) {
        *count = SIM_CONTEXT_MAX;
        return SIM_NVML_INSUFFICIENT_SIZE;
    }
    unsigned there = utilization(world, device->device, last_seen_us, found);
    if (there > *count)
        return SIM_NVML_INSUFFICIENT_SIZE;
    memcpy(entries, found, there * sizeof *entries);
    *count = there;
    return there ? SIM_NVML_SUCCESS : SIM_NVML_NOT_FOUND;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetProcessesUtilizationInfo(sim_nvml_device device,
                                                              struct sim_nvml_processes_utilization *info) {
    SIM_ENTER_WHOLE(nvmlDeviceGetProcessesUtilizationInfo, device);
    struct sim_nvml_process_utilization found[SIM_CONTEXT_MAX];
    if (!info)
        return SIM_NVML_INVALID_ARGUMENT;
    if (info->version != SIM_NVML_VERSIONED(struct sim_nvml_processes_utilization, 1))
        return SIM_NVML_ARGUMENT_VERSION_MISMATCH;
    if (sim_world_spec(world)->mig && device->device == 0)
        return SIM_NVML_NOT_SUPPORTED;
    unsigned there = utilization(world, device->device, info->last_seen_us, found), room = info->count;
    info->count = info->entries ? there : SIM_CONTEXT_MAX;
    if (!info->entries || there > room)
        return SIM_NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < there; i++)
        info->entries[i] = (struct sim_nvml_process_utilization_info){
            .time_us = found[i].time_us, .pid = found[i].pid, .sm = found[i].sm};
    return there ? SIM_NVML_SUCCESS : SIM_NVML_NOT_FOUND;
}
