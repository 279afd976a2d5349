/* What the driver says about itself and the devices. Only getters are called: they are safe wherever CUPTI calls us. */
#include "tracer/tracer.h"

#include <dlfcn.h>

static bool reported;

static void *driver_symbol(const char *name) {
    static void *driver;
    void *handle = __atomic_load_n(&driver, __ATOMIC_ACQUIRE);
    if (!handle) {
        handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        __atomic_store_n(&driver, handle, __ATOMIC_RELEASE);
    }
    return handle ? dlsym(handle, name) : NULL;
}

uint32_t hec_device_driver_version(void) {
    int version = 0;
    int (*get)(int *) = (int (*)(int *))driver_symbol("cuDriverGetVersion");
    return get && get(&version) == 0 && version > 0 ? (uint32_t)version : 0;
}

bool hec_device_report(void) {
    if (reported)
        return true;
    int (*get_count)(int *) = (int (*)(int *))driver_symbol("cuDeviceGetCount");
    int (*get)(int *, int) = (int (*)(int *, int))driver_symbol("cuDeviceGet");
    int (*get_uuid)(void *, int) =
        (int (*)(void *, int))driver_symbol("cuDeviceGetUuid_v2"); /* of the slice, under MIG */
    int (*get_bus)(char *, int, int) = (int (*)(char *, int, int))driver_symbol("cuDeviceGetPCIBusId");
    int count = 0;
    if (!get_uuid)
        get_uuid = (int (*)(void *, int))driver_symbol("cuDeviceGetUuid");
    if (!get_count || !get || get_count(&count) != 0)
        return false; /* cuInit is not through */
    for (int i = 0; i < count && i < (int)HEC_TRACER_DEVICES; i++) {
        struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
        struct hec_trace_device *out = &hec_out_payload(&record)->device;
        int device;
        if (get(&device, i) != 0)
            continue;
        out->ordinal = (uint32_t)i;
        if (get_uuid)
            get_uuid(out->uuid, device);
        if (get_bus && get_bus(out->pci_bus_id, (int)sizeof out->pci_bus_id, device) != 0)
            out->pci_bus_id[0] = '\0';
        if (!hec_out_write(&record, HEC_TRACE_DEVICE) && hec_out_read_now())
            return false;
    }
    return reported = true;
}

void hec_device_forget(void) {
    reported = false;
}
