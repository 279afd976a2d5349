/* The double: sets of events. The only events are the XIDs of the specification; what came before a device was registered
 * is nobody's. */
#include "sim/nvml/double.h"
#include "sim/nvml/exports.h"

#include "base/clock.h"

#include <limits.h>
#include <stdlib.h>

struct sim_event_set {
    int64_t since_ns[SIM_DEVICE_MAX]; /* registered then; 0: not */
    bool given[SIM_FAULT_MAX];
};

SIM_EXPORT sim_nvml_ret nvmlEventSetCreate(sim_nvml_event_set *set) {
    SIM_ENTER(nvmlEventSetCreate, NULL);
    if (!set)
        return SIM_NVML_INVALID_ARGUMENT;
    (void)world;
    *set = calloc(1, sizeof **set);
    return *set ? SIM_NVML_SUCCESS : SIM_NVML_MEMORY;
}

SIM_EXPORT sim_nvml_ret nvmlEventSetFree(sim_nvml_event_set set) {
    SIM_ENTER(nvmlEventSetFree, NULL);
    (void)world;
    free(set);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceRegisterEvents(sim_nvml_device device, unsigned long long types,
                                                 sim_nvml_event_set set) {
    SIM_ENTER_WHOLE(nvmlDeviceRegisterEvents, device);
    if (!set)
        return SIM_NVML_INVALID_ARGUMENT;
    if (types != SIM_NVML_EVENT_XID)
        return SIM_NVML_NOT_SUPPORTED;
    set->since_ns[device->device] = sim_world_now_ns(world);
    return SIM_NVML_SUCCESS;
}

/* The earliest that is due and not given yet; -1: none. */
static int next_event(const struct sim_world *world, const struct sim_event_set *set, int64_t now_ns) {
    const struct sim_spec *spec = sim_world_spec(world);
    int next = -1;
    for (int i = 0; i < spec->fault_count; i++) {
        const struct sim_fault *fault = &spec->faults[i];
        int64_t at_ns = sim_world_epoch_ns(world) + fault->at_ns;
        if (fault->kind == SIM_FAULT_XID && !set->given[i] && set->since_ns[fault->device] &&
            at_ns > set->since_ns[fault->device] && at_ns <= now_ns &&
            (next < 0 || fault->at_ns < spec->faults[next].at_ns))
            next = i;
    }
    return next;
}

/* An event that comes during the wait is given at its end. */
static sim_nvml_ret wait_for(struct sim_world *world, sim_nvml_event_set set, struct sim_nvml_event *event,
                             unsigned timeout_ms) {
    if (!set || !event)
        return SIM_NVML_INVALID_ARGUMENT;
    int next = next_event(world, set, sim_world_now_ns(world));
    if (next < 0) {
        sim_world_spend(world, timeout_ms * HEC_NS_PER_MS);
        next = next_event(world, set, sim_world_now_ns(world));
    }
    for (int i = 0; next < 0 && i < SIM_DEVICE_MAX; i++)
        if (set->since_ns[i] && sim_world_lost(world, i, sim_world_now_ns(world)))
            return SIM_NVML_GPU_IS_LOST;
    if (next < 0)
        return SIM_NVML_TIMEOUT;
    const struct sim_fault *fault = &sim_world_spec(world)->faults[next];
    set->given[next] = true;
    event->device = sim_nvml_handle(fault->device, -1);
    event->type = SIM_NVML_EVENT_XID;
    event->data = (unsigned long long)fault->xid;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlEventSetWait(sim_nvml_event_set set, struct sim_nvml_event *event, unsigned timeout_ms) {
    SIM_ENTER(nvmlEventSetWait, NULL);
    return wait_for(world, set, event, timeout_ms);
}

SIM_EXPORT sim_nvml_ret nvmlEventSetWait_v2(sim_nvml_event_set set, struct sim_nvml_event *event, unsigned timeout_ms) {
    SIM_ENTER(nvmlEventSetWait_v2, NULL);
    sim_nvml_ret ret = wait_for(world, set, event, timeout_ms);
    if (ret == SIM_NVML_SUCCESS)
        event->gpu_instance = event->compute_instance = UINT_MAX;
    return ret;
}
