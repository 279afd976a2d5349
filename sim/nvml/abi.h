/* NVML's binary interface as the double implements it. Declared apart from src/driver/nvml.h on purpose: two readings
 * of NVIDIA's nvml.h that a test compares with each other (and with nvml.h where it is installed). */
#pragma once

enum sim_nvml_return {
    SIM_NVML_SUCCESS = 0,
    SIM_NVML_UNINITIALIZED = 1,
    SIM_NVML_INVALID_ARGUMENT = 2,
    SIM_NVML_NOT_SUPPORTED = 3,
    SIM_NVML_NO_PERMISSION = 4,
    SIM_NVML_NOT_FOUND = 6,
    SIM_NVML_INSUFFICIENT_SIZE = 7,
    SIM_NVML_DRIVER_NOT_LOADED = 9,
    SIM_NVML_TIMEOUT = 10,
    SIM_NVML_GPU_IS_LOST = 15,
    SIM_NVML_MEMORY = 20,
    SIM_NVML_ARGUMENT_VERSION_MISMATCH = 25,
    SIM_NVML_UNKNOWN = 999
};

typedef int sim_nvml_ret;
typedef struct sim_handle *sim_nvml_device;
typedef struct sim_gpm_sample *sim_nvml_gpm_sample;
typedef struct sim_event_set *sim_nvml_event_set;

struct sim_nvml_pci {
    char legacy_bus_id[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

struct sim_nvml_memory {
    unsigned long long total, free, used;
};

struct sim_nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct sim_nvml_utilization {
    unsigned gpu, memory;
};

struct sim_nvml_process_v1 {
    unsigned pid;
    unsigned long long used_bytes;
};

struct sim_nvml_process_v2 {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct sim_nvml_process_utilization {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

struct sim_nvml_process_utilization_info {
    unsigned long long time_us;
    unsigned pid, sm, memory, encoder, decoder, jpeg, ofa;
};

struct sim_nvml_processes_utilization {
    unsigned version, count;
    unsigned long long last_seen_us;
    struct sim_nvml_process_utilization_info *entries;
};

union sim_nvml_value {
    double d;
    int si;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
    unsigned short us;
};

enum sim_nvml_value_type {
    SIM_NVML_DOUBLE = 0,
    SIM_NVML_UNSIGNED = 1,
    SIM_NVML_UNSIGNED_LONG_LONG = 3,
};

struct sim_nvml_sample {
    unsigned long long time_us;
    union sim_nvml_value value;
};

struct sim_nvml_field {
    unsigned id, scope;
    long long time_us, latency_us;
    int value_type;
    sim_nvml_ret ret;
    union sim_nvml_value value;
};

struct sim_nvml_temperature {
    unsigned version;
    int sensor;
    int celsius;
};

struct sim_nvml_gpm_metric {
    unsigned id;
    sim_nvml_ret ret;
    double value;
    struct {
        const char *short_name, *long_name, *unit;
    } info;
};

/* The length of the caller's array depends on its header (98, 210, 333, 477): only the first `count` are touched. */
struct sim_nvml_gpm_metrics {
    unsigned version, count;
    sim_nvml_gpm_sample sample1, sample2;
    struct sim_nvml_gpm_metric metrics[];
};

struct sim_nvml_gpm_support {
    unsigned version, supported;
};

struct sim_nvml_attributes {
    unsigned sms, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    unsigned gpu_instance_slices, compute_instance_slices;
    unsigned long long memory_mib;
};

enum { SIM_NVML_EVENT_XID = 8 };

struct sim_nvml_event { /* the first version of the call fills the first three */
    sim_nvml_device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

#define SIM_NVML_VERSIONED(type, version) ((unsigned)sizeof(type) | (version##u << 24))
