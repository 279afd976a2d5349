/* NVML and GPM behind the collector interface: devices, and what each of them has to do when. */
#include "observe/nvml/internal.h"
#include "observe/nvml/probe.h"
#include "observe/nvml/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* XIDs first: what follows may find the device lost. Then the energy counter: its readings are aimed at a time. */
static int64_t (*const activities[NVML_ACTIVITY_COUNT])(struct nvml_device *device, int64_t now_ns) = {
    [NVML_ACTIVITY_XID] = nvml_run_xid,
    [NVML_ACTIVITY_ENERGY] = nvml_run_energy,
    [NVML_ACTIVITY_INSTANCES] = nvml_run_instances,
    [NVML_ACTIVITY_GPM] = nvml_run_gpm,
    [NVML_ACTIVITY_HISTORY] = nvml_run_history,
    [NVML_ACTIVITY_INSTANT] = nvml_run_instant,
    [NVML_ACTIVITY_USAGE] = nvml_run_usage,
    [NVML_ACTIVITY_STATE] = nvml_run_state,
    [NVML_ACTIVITY_MONITORED] = nvml_run_monitored,
    [NVML_ACTIVITY_PROCESSES] = nvml_run_processes,
};

/* Devices do the same things at slightly different times, so that one device's calls do not wait for all the others'. */
#define STAGGER_NS (7 * HEC_NS_PER_MS)

static void close_observer(struct nvml_observer *observer) {
    for (int i = 0; i < observer->count; i++) {
        nvml_gpm_close(&observer->devices[i]);
        nvml_instances_close(&observer->devices[i]);
        nvml_xid_close(&observer->devices[i]);
        free(observer->devices[i].processes.items);
    }
    if (observer->nvml.shutdown)
        observer->nvml.shutdown();
    hec_nvml_unload(&observer->nvml);
    free(observer->devices);
    free(observer->buffer);
    free(observer);
}

static void open_device(struct nvml_observer *observer, int index) {
    struct nvml_device *device = &observer->devices[index];
    device->observer = observer;
    int code = observer->nvml.device_by_index((unsigned)index, &device->handle);
    if (code != HEC_NVML_SUCCESS)
        device->handle = NULL;
    nvml_describe(&observer->nvml, device->handle, index, &device->info);
    if (!device->handle) {
        device->lost = true;
        nvml_event(device, code == HEC_NVML_GPU_IS_LOST ? HEC_EVENT_DEVICE_LOST : HEC_EVENT_SOURCE_UNAVAILABLE,
                   "cannot be opened: %s", hec_nvml_code_text(code));
    }
    if (observer->options->interval_ns)
        device->info.has_power_history = 0; /* not read: power as the driver gives it at the moment will do */
    nvml_energy_begin(device);
    nvml_gpm_begin(device);
    device->instances.listed_ns = INT64_MIN;
}

/* CUDA numbers devices from fastest to slowest unless set otherwise, NVML by PCI address. */
static void warn_order(struct nvml_observer *observer, bool by_ordinal) {
    const char *order = getenv("CUDA_DEVICE_ORDER");
    if (!by_ordinal || (order && strcmp(order, "PCI_BUS_ID") == 0))
        return;
    for (int i = 1; i < observer->count; i++)
        if (strcmp(observer->devices[i].info.name, observer->devices[0].info.name) != 0) {
            observer->sink->event(observer->sink->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, hec_clock_mono_ns(),
                                  "the GPUs differ and CUDA_VISIBLE_DEVICES names them by number: unless "
                                  "CUDA_DEVICE_ORDER=PCI_BUS_ID is set, CUDA may mean other devices than HEC");
            return;
        }
}

static int open_devices(struct nvml_observer *observer, unsigned count, struct hec_why *why) {
    const struct hec_sink *sink = observer->sink;
    hec_nvml_device handles[HEC_VENDOR_DEVICES_MAX];
    struct hec_device *infos[HEC_VENDOR_DEVICES_MAX];
    bool by_ordinal;
    if (count > HEC_VENDOR_DEVICES_MAX) {
        sink->event(sink->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, hec_clock_mono_ns(),
                    "more than 32 GPUs: those after the 32nd are not observed");
        count = HEC_VENDOR_DEVICES_MAX;
    }
    observer->devices = calloc(count, sizeof *observer->devices);
    if (!observer->devices)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    for (unsigned i = 0; i < count; i++) {
        open_device(observer, (int)i);
        observer->count++;
        handles[i] = observer->devices[i].handle;
        infos[i] = &observer->devices[i].info;
    }
    if (nvml_find_visible(&observer->nvml, handles, infos, (int)count, observer->options->visible_devices,
                          &by_ordinal) != HEC_OK)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    warn_order(observer, by_ordinal);

    int64_t now = hec_clock_mono_ns();
    for (unsigned i = 0; i < count; i++) {
        sink->device(sink->context, infos[i]);
        for (int a = 0; a < NVML_ACTIVITY_COUNT; a++)
            observer->devices[i].due_ns[a] = now + (observer->options->interval_ns ? 0 : (int64_t)i * STAGGER_NS);
    }
    return HEC_OK;
}

int nvml_observer_open(const struct hec_nvml *nvml, const struct hec_observe_options *options,
                       const struct hec_sink *sink, void **self, struct hec_why *why) {
    struct nvml_observer *observer = calloc(1, sizeof *observer);
    struct hec_nvml table = *nvml;
    unsigned count = 0;
    int code = table.init();
    if (code != HEC_NVML_SUCCESS || !observer) {
        if (code == HEC_NVML_SUCCESS && table.shutdown)
            table.shutdown();
        hec_nvml_unload(&table);
        free(observer);
        if (code == HEC_NVML_SUCCESS)
            return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
        return hec_fail(why, hec_nvml_error(code), "the NVIDIA driver does not start: %s", hec_nvml_code_text(code));
    }
    *observer =
        (struct nvml_observer){.nvml = table, .options = options, .sink = sink, .opened_ns = hec_clock_mono_ns()};
    code = table.device_count(&count);
    int err;
    if (code != HEC_NVML_SUCCESS)
        err =
            hec_fail(why, hec_nvml_error(code), "the NVIDIA driver cannot list its GPUs: %s", hec_nvml_code_text(code));
    else if (count == 0)
        err = hec_fail(why, HEC_ERR_NOTFOUND, "the NVIDIA driver is here, but no GPU");
    else
        err = open_devices(observer, count, why);
    if (err != HEC_OK) {
        close_observer(observer);
        return err;
    }
    char profile[64] = "";
    if (table.simulated && table.simulated(profile, sizeof profile) == 0)
        sink->meta(sink->context, "simulated", profile);
    *self = observer;
    return HEC_OK;
}

static int collector_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                          struct hec_why *why) {
    struct hec_nvml nvml;
    int err = hec_nvml_load(options->nvml_path, &nvml, why);
    return err == HEC_OK ? nvml_observer_open(&nvml, options, sink, self, why) : err;
}

/* Paced: what is due at about the same time is done at one time, so that the thread wakes once an interval. */
static int64_t on_tick(int64_t now_ns, int64_t due_ns, int64_t interval_ns) {
    if (due_ns == INT64_MAX)
        return due_ns;
    int64_t ticks = (due_ns - now_ns + interval_ns / 2) / interval_ns;
    return now_ns + (ticks > 1 ? ticks : 1) * interval_ns;
}

static int64_t collector_poll(void *self, int64_t now_ns) {
    struct nvml_observer *observer = self;
    int64_t next = INT64_MAX, interval_ns = observer->options->interval_ns;
    for (int i = 0; i < observer->count; i++) {
        struct nvml_device *device = &observer->devices[i];
        for (int a = 0; a < NVML_ACTIVITY_COUNT && !device->lost; a++) {
            if (device->due_ns[a] <= now_ns) {
                int64_t due_ns = activities[a](device, hec_clock_mono_ns());
                device->due_ns[a] = interval_ns ? on_tick(now_ns, due_ns, interval_ns) : due_ns;
            }
            if (device->due_ns[a] < next)
                next = device->due_ns[a];
        }
    }
    return next;
}

/* The power history shows the end itself a sample and its lateness after it (20 ms each); seen, and not only bounded, it
 * halves the bound of a short run. */
static void wait_for_history(const struct nvml_observer *observer, int64_t end_ns) {
    bool history = false;
    for (int i = 0; i < observer->count; i++)
        history |= observer->devices[i].info.has_power_history && !observer->devices[i].lost;
    if (end_ns - observer->opened_ns < HEC_TUNE_HISTORY_SETTLE_RUN_NS)
        return;
    int64_t wait_ns = end_ns + HEC_TUNE_HISTORY_SETTLE_NS - hec_clock_mono_ns();
    if (history && wait_ns > 0 && wait_ns <= HEC_TUNE_HISTORY_SETTLE_NS)
        nanosleep(&(struct timespec){0, wait_ns}, NULL);
}

/* What is nearest to the end matters most: the energy counters of all devices, then the power samples up to now. */
static void collector_finish(void *self, int64_t end_ns) {
    struct nvml_observer *observer = self;
    for (int i = 0; i < observer->count; i++)
        nvml_energy_finish(&observer->devices[i]);
    wait_for_history(observer, end_ns);
    for (int i = 0; i < observer->count; i++) {
        struct nvml_device *device = &observer->devices[i];
        nvml_run_history(device, end_ns);
        if (device->gpm.older_end_ns != INT64_MIN &&
            hec_clock_mono_ns() - device->gpm.older_end_ns > HEC_TUNE_GPM_WINDOW_LEAST_NS)
            nvml_run_gpm(device, end_ns);
        nvml_xid_last(device);
        if (!device->lost) {
            nvml_run_processes(device, end_ns);
            nvml_run_state(device, end_ns);
        }
        nvml_processes_finish(device);
    }
}

static void collector_close(void *self) {
    close_observer(self);
}

const struct hec_collector hec_collector_nvml = {
    .name = "nvml",
    .lane = HEC_LANE_GPU,
    .open = collector_open,
    .poll = collector_poll,
    .finish = collector_finish,
    .close = collector_close,
    .devices = hec_nvml_devices,
    .check = hec_nvml_check,
};
