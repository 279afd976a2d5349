/* What the files of the NVML collector share. Not for other folders. */
#pragma once

#include "driver/nvml.h"
#include "observe/collector.h"
#include "observe/nvml/tracker.h"

enum nvml_sensor {
#define HEC_NVML_SENSOR(id, normal_us, metric, second, text) NVML_SENSOR_##id,
#include "observe/nvml/sensors.def"
#undef HEC_NVML_SENSOR
    NVML_SENSOR_COUNT
};

struct nvml_health {
    bool off;           /* the device does not have it: never asked again, nothing said */
    bool failing;       /* an event was sent for the present failure */
    int64_t calls;      /* that answered */
    int64_t typical_ns; /* what a call takes */
    int64_t retry_ns, backoff_ns;
};

struct nvml_power_history {
    uint64_t last_us;       /* the driver's time of the newest sample seen */
    int64_t last_ns;        /* and ours */
    int64_t wall_offset_ns; /* at the previous call */
    bool begun;
};

struct nvml_process {
    struct hec_gpu_process record;
    int64_t memory_kib; /* in the present poll, -1 unknown */
    int64_t reported_ns;
    bool seen, was_seen; /* in the present poll, in the one before */
    bool ran;            /* in the window of utilisation that is being read */
    bool changed;
};

struct nvml_processes {
    struct nvml_process *items;
    int count, capacity;
    uint64_t last_us; /* newest utilisation sample */
    int64_t util_due_ns;
    int64_t util_cpu_ns; /* CPU time of one call for them */
    bool overflowed;
};

struct nvml_gpm {
    hec_nvml_gpm_sample older, newer;
    int64_t older_end_ns; /* when the older sample was complete; INT64_MIN: there is none */
    int64_t cpu_ns;       /* CPU time of one window */
    bool unsupported[32]; /* by row of gpm.def */
};

struct nvml_instance {
    struct hec_gpu_instance record;
    hec_nvml_device handle;
    struct nvml_gpm gpm; /* of the first of a GPU instance */
};

struct nvml_instances {
    struct nvml_instance items[HEC_GPU_INSTANCES_MAX];
    int count;
    int64_t listed_ns;  /* when they were looked for; INT64_MIN: to be done now */
    int64_t sampled_ns; /* when their counters were read last */
    int64_t memory_ns;  /* and their memory */
};

enum nvml_activity {
    NVML_ACTIVITY_XID,
    NVML_ACTIVITY_ENERGY,
    NVML_ACTIVITY_INSTANCES,
    NVML_ACTIVITY_GPM,
    NVML_ACTIVITY_HISTORY,
    NVML_ACTIVITY_INSTANT,
    NVML_ACTIVITY_USAGE,
    NVML_ACTIVITY_STATE,
    NVML_ACTIVITY_MONITORED,
    NVML_ACTIVITY_PROCESSES,
    NVML_ACTIVITY_COUNT
};

struct nvml_observer;

struct nvml_device {
    struct nvml_observer *observer;
    hec_nvml_device handle;
    struct hec_device info;
    bool lost;
    bool slow_reported, reserved_reported;
    struct nvml_health health[NVML_SENSOR_COUNT];
    int64_t due_ns[NVML_ACTIVITY_COUNT];
    struct nvml_tracker tracker;
    int64_t energy_cpu_ns; /* CPU time of one energy call */
    int64_t energy_mj;     /* paced: the latest reading */
    bool quantum_reported;
    struct nvml_power_history history;
    struct nvml_processes processes;
    struct nvml_gpm gpm;
    struct nvml_instances instances;
    hec_nvml_event_set events; /* NULL: not watched */
};

struct nvml_observer {
    struct hec_nvml nvml;
    const struct hec_observe_options *options;
    const struct hec_sink *sink;
    struct nvml_device *devices;
    int count;
    int64_t opened_ns;
    void *buffer;       /* for lists that the driver fills */
    size_t buffer_size; /* bytes */
};

/* Build a collector on a bound table (copied; its library is unloaded at close, or here on failure). */
int nvml_observer_open(const struct hec_nvml *nvml, const struct hec_observe_options *options,
                       const struct hec_sink *sink, void **self, struct hec_why *why);

/* call.c: around every driver call.
 *   if (!nvml_call_due(device, SENSOR, now)) return;
 *   int64_t t0 = hec_clock_mono_ns();
 *   if (nvml_call_done(device, SENSOR, t0, nvml->...(...))) ... use the result
 * done reports slowness, loss and failure to the sink and arranges the retry; failed sensors' metrics get `missing`. */
bool nvml_call_due(const struct nvml_device *device, enum nvml_sensor sensor, int64_t now_ns);
bool nvml_call_done(struct nvml_device *device, enum nvml_sensor sensor, int64_t t0_ns, int code);
const char *nvml_sensor_text(enum nvml_sensor sensor);
bool nvml_code_is_unsupported(int code);

/* CPU time of this thread, to pace calls that spin. */
int64_t nvml_thread_cpu_ns(void);
/* How often to do what is done every `default_ns` for a run. */
int64_t nvml_interval(const struct nvml_device *device, int64_t default_ns);
/* How often the utilisation of processes is read. */
int64_t nvml_utilization_interval(const struct nvml_observer *observer);

void nvml_emit(struct nvml_device *device, enum hec_metric metric, int64_t t_ns, int64_t value);
void nvml_missing(struct nvml_device *device, enum hec_metric metric, int64_t t_ns);
/* kind, format, ... */
#define nvml_event(device, kind, ...)                                                                                  \
    hec_sink_event((device)->observer->sink, kind, (device)->info.index, hec_clock_mono_ns(), __VA_ARGS__)
/* Room for at least `size` bytes in observer->buffer; false when memory is short. */
bool nvml_buffer(struct nvml_observer *observer, size_t size);

/* describe.c: what does not change. The functions that take a table are used by the probe too. */
void nvml_describe(const struct hec_nvml *nvml, hec_nvml_device handle, int index, struct hec_device *info);
/* Sets info.visible of all; *by_ordinal as in visible.h. HEC_ERR_NOMEM. */
int nvml_find_visible(const struct hec_nvml *nvml, const hec_nvml_device *handles, struct hec_device **infos, int count,
                      const char *visible_devices, bool *by_ordinal);

/* One driver call each; SUCCESS and a value in the metric's unit, or NVML's code. FUNCTION_NOT_FOUND where the driver
 * lacks the function. *second is set where the sensor has a second metric. */
int nvml_read(const struct hec_nvml *nvml, hec_nvml_device handle, enum nvml_sensor sensor, int64_t *value,
              int64_t *second);
/* version 0: reserved is not known, and part of used. */
int nvml_read_memory(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_nvml_memory_v2 *memory);

/* The activities: do it now, return when to do it again (INT64_MAX: never). */
int64_t nvml_run_energy(struct nvml_device *device, int64_t now_ns);
int64_t nvml_run_gpm(struct nvml_device *device, int64_t now_ns);
int64_t nvml_run_instances(struct nvml_device *device, int64_t now_ns); /* only where it is paced */
int64_t nvml_run_history(struct nvml_device *device, int64_t now_ns);
int64_t nvml_run_instant(struct nvml_device *device, int64_t now_ns);
int64_t nvml_run_usage(struct nvml_device *device, int64_t now_ns);
int64_t nvml_run_state(struct nvml_device *device, int64_t now_ns);
int64_t nvml_run_monitored(struct nvml_device *device, int64_t now_ns); /* only where it is paced */
int64_t nvml_run_processes(struct nvml_device *device, int64_t now_ns);
int64_t nvml_run_xid(struct nvml_device *device, int64_t now_ns); /* only where it is paced */

void nvml_energy_begin(struct nvml_device *device);
void nvml_energy_finish(struct nvml_device *device);
void nvml_processes_finish(struct nvml_device *device);
void nvml_gpm_begin(struct nvml_device *device);
void nvml_gpm_close(struct nvml_device *device);
/* Two samples; false where the driver has none. */
bool nvml_gpm_alloc(const struct hec_nvml *nvml, struct nvml_gpm *gpm);
void nvml_gpm_free(const struct hec_nvml *nvml, struct nvml_gpm *gpm);
/* The counters between the two samples: by metric from HEC_GPM_GR_ACTIVE on, -1 where there is none. NVML's code. */
int nvml_gpm_counters(const struct hec_nvml *nvml, struct nvml_gpm *gpm, int64_t counters[HEC_GPM_COUNT]);
/* The newer sample, complete at end_ns, becomes the older one. */
void nvml_gpm_swap(struct nvml_gpm *gpm, int64_t end_ns);
/* What a window took of this thread. */
void nvml_gpm_cost(struct nvml_gpm *gpm, int64_t cpu_ns);
/* How often to read the counters. */
int64_t nvml_gpm_interval(const struct nvml_observer *observer);
void nvml_instances_close(struct nvml_device *device);
void nvml_xid_last(struct nvml_device *device); /* before it is closed or taken to be lost: an XID says why */
void nvml_xid_close(struct nvml_device *device);
/* GPM metric rows, for the probe: number and metric of row i; false past the end. */
bool nvml_gpm_row(int i, unsigned *id, enum hec_metric *metric, double *factor);
