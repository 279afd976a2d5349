/* XID errors, as events. Each device has a set of its own: a set with a lost device gives nothing of the others. */
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

#include <limits.h>

#define EVENTS_MAX 64 /* taken at one time; what is left waits */

static int watch(struct nvml_device *device) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    if (device->events)
        return HEC_NVML_SUCCESS;
    if (!nvml->event_set_create || !nvml->event_set_free || !nvml->event_register || !nvml->event_wait)
        return HEC_NVML_FUNCTION_NOT_FOUND;
    int code = nvml->event_set_create(&device->events);
    if (code != HEC_NVML_SUCCESS) {
        device->events = NULL;
        return code;
    }
    return nvml->event_register(device->handle, HEC_NVML_EVENT_XID, device->events);
}

/* Each is a value of its own, and where there is none a reading is 0. */
static int drain_events(struct nvml_device *device, int *taken) {
    int code = HEC_NVML_SUCCESS;
    *taken = 0;
    for (int i = 0; i < EVENTS_MAX && code == HEC_NVML_SUCCESS; i++) {
        struct hec_nvml_event event = {0};
        code = device->observer->nvml.event_wait(device->events, &event, 0);
        if (code != HEC_NVML_SUCCESS || event.type != HEC_NVML_EVENT_XID || event.data == 0 || event.data > INT_MAX)
            continue;
        nvml_emit(device, HEC_GPU_XID, hec_clock_mono_ns(), (int64_t)event.data);
        ++*taken;
    }
    return code == HEC_NVML_TIMEOUT ? HEC_NVML_SUCCESS : code;
}

/* A set that fails is made anew at the next try. */
int64_t nvml_run_xid(struct nvml_device *device, int64_t now_ns) {
    if (!device->observer->options->interval_ns)
        return INT64_MAX;
    int64_t t0 = hec_clock_mono_ns();
    if (nvml_call_due(device, NVML_SENSOR_XID, t0)) {
        int code = watch(device), taken = 0;
        if (code == HEC_NVML_SUCCESS)
            code = drain_events(device, &taken);
        if (!nvml_call_done(device, NVML_SENSOR_XID, t0, code))
            nvml_xid_close(device);
        else if (taken == 0)
            nvml_emit(device, HEC_GPU_XID, hec_clock_mono_ns(), 0);
    }
    return device->health[NVML_SENSOR_XID].off ? INT64_MAX
                                               : now_ns + nvml_interval(device, HEC_TUNE_MONITORED_INTERVAL_NS);
}

void nvml_xid_last(struct nvml_device *device) {
    if (device->events)
        drain_events(device, &(int){0});
}

void nvml_xid_close(struct nvml_device *device) {
    if (device->events)
        device->observer->nvml.event_set_free(device->events);
    device->events = NULL;
}
