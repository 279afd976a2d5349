/* NVIDIA's management library (NVML), bound at run time: our own declarations, so that building needs no SDK and one
 * binary serves every driver. The layouts are those of NVIDIA's nvml.h (tests/unit/test_nvml_abi.c compares them with
 * the real header where it is available).
 *
 * Every NVML function returns an int from enum hec_nvml_code. The functions of this header follow base/error.h. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum hec_nvml_code {
#define HEC_NVML_CODE(code, name, text) HEC_NVML_##name = (code),
#include "driver/nvml_errors.def"
#undef HEC_NVML_CODE
};

/* A text for a person; "unknown NVML error" for a code that the table lacks. */
const char *hec_nvml_code_text(int code);

typedef struct hec_nvml_device_opaque *hec_nvml_device;         /* nvmlDevice_t */
typedef struct hec_nvml_gpm_sample_opaque *hec_nvml_gpm_sample; /* nvmlGpmSample_t */
typedef struct hec_nvml_event_set_opaque *hec_nvml_event_set;   /* nvmlEventSet_t */

enum { HEC_NVML_UUID_SIZE = 96, HEC_NVML_NAME_SIZE = 96 };

struct hec_nvml_pci { /* nvmlPciInfo_t; before the third version the string is only in legacy_bus_id */
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct hec_nvml_memory_v1 { /* nvmlMemory_t, bytes; used includes what the driver reserves */
    unsigned long long total, free, used;
};

struct hec_nvml_memory_v2 { /* nvmlMemory_v2_t, bytes; used does not include reserved */
    unsigned version;       /* IN: HEC_NVML_MEMORY_V2 */
    unsigned long long total, reserved, free, used;
};
/* NVIDIA's versioned structs start with their size and, in the top byte, their version. */
#define HEC_NVML_MEMORY_V2 ((unsigned)(sizeof(struct hec_nvml_memory_v2) | 2u << 24))

struct hec_nvml_utilization { /* nvmlUtilization_t, per cent over the driver's last sample period */
    unsigned gpu, memory;
};

union hec_nvml_value { /* nvmlValue_t */
    double as_double;
    int as_int;
    unsigned as_unsigned;
    unsigned long as_ulong;
    unsigned long long as_ulonglong;
    long long as_longlong;
    unsigned short as_ushort;
};

enum hec_nvml_value_type {
    HEC_NVML_DOUBLE,
    HEC_NVML_UNSIGNED,
    HEC_NVML_ULONG,
    HEC_NVML_ULONGLONG,
    HEC_NVML_LONGLONG,
    HEC_NVML_INT,
    HEC_NVML_USHORT
};
/* The value as an integer (a double is rounded); negative when it is not finite or the type is unknown. */
long long hec_nvml_value_integer(const union hec_nvml_value *value, int type);

struct hec_nvml_sample {        /* nvmlSample_t */
    unsigned long long time_us; /* wall clock */
    union hec_nvml_value value;
};

struct hec_nvml_field { /* nvmlFieldValue_t */
    unsigned id;        /* IN */
    unsigned scope;     /* IN */
    long long time_us;  /* wall clock */
    long long latency_us;
    int value_type;
    int code; /* this field's own return code */
    union hec_nvml_value value;
};

struct hec_nvml_process_v1 { /* nvmlProcessInfo_v1_t */
    unsigned pid;
    unsigned long long used_bytes; /* HEC_NVML_NOT_AVAILABLE where the driver does not know */
};

struct hec_nvml_process { /* nvmlProcessInfo_v2_t, the same for the third version of the functions */
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance; /* UINT_MAX without MIG */
};
#define HEC_NVML_NOT_AVAILABLE (~0ull)

struct hec_nvml_process_utilization { /* nvmlProcessUtilizationSample_t, per cent */
    unsigned pid;
    unsigned long long time_us; /* wall clock */
    unsigned sm, memory, encoder, decoder;
};

struct hec_nvml_attributes { /* nvmlDeviceAttributes_t, of a MIG device */
    unsigned sms, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    unsigned gpu_instance_slices, compute_instance_slices;
    unsigned long long memory_mib;
};

struct hec_nvml_gpm_support { /* nvmlGpmSupport_t */
    unsigned version;         /* IN: 1 */
    unsigned supported;
};

struct hec_nvml_gpm_metric { /* nvmlGpmMetric_t */
    unsigned id;             /* IN */
    int code;                /* this metric's own return code */
    double value;
    char *short_name, *long_name, *unit; /* the driver's strings */
};

/* nvmlGpmMetricsGet_t. The length of NVIDIA's array grew with the drivers (98, 210, 333, 477 entries) while the version
 * stayed 1: a driver touches the first `count` entries only. */
#define HEC_NVML_GPM_METRICS_MAX 64
struct hec_nvml_gpm_metrics {
    unsigned version; /* IN: 1 */
    unsigned count;   /* IN */
    hec_nvml_gpm_sample sample1, sample2;
    struct hec_nvml_gpm_metric metrics[HEC_NVML_GPM_METRICS_MAX];
};

struct hec_nvml_event { /* nvmlEventData_t */
    hec_nvml_device device;
    unsigned long long type;
    unsigned long long data;                 /* of an XID event: its number */
    unsigned gpu_instance, compute_instance; /* UINT_MAX without MIG */
};

enum { /* constants of nvml.h */
       HEC_NVML_SAMPLES_TOTAL_POWER = 0,
       HEC_NVML_CLOCK_SM = 1,
       HEC_NVML_CLOCK_MEMORY = 2,
       HEC_NVML_TEMPERATURE_GPU = 0,
       HEC_NVML_THRESHOLD_SLOWDOWN = 1,
       HEC_NVML_PERFORMANCE_STATES = 16, /* P0 to P15 */
       HEC_NVML_FIELD_MEMORY_TEMPERATURE = 82,
       HEC_NVML_FIELD_POWER_INSTANT = 186,
       HEC_NVML_EVENT_XID = 8,
};

enum hec_nvml_symbol {
#define HEC_NVML_SYMBOL(member, need, arguments, newest, older, oldest) HEC_NVML_SYMBOL_##member,
#include "driver/nvml_symbols.def"
#undef HEC_NVML_SYMBOL
    HEC_NVML_SYMBOL_COUNT
};

/* The bound library: one function pointer per row of nvml_symbols.def, NULL where the driver lacks it. A plain struct,
 * so that a test can fill it by hand. */
struct hec_nvml {
#define HEC_NVML_SYMBOL(member, need, arguments, newest, older, oldest) int(*member) arguments;
#include "driver/nvml_symbols.def"
#undef HEC_NVML_SYMBOL
    void *library;                                /* NULL in a table filled by hand */
    unsigned char version[HEC_NVML_SYMBOL_COUNT]; /* which generation of the name was bound: 1, 2, 3; 0: none */
};

/* Load the library at path (NULL: libnvidia-ml.so.1 of the system) and bind it; calls no function of it.
 * HEC_ERR_NOTFOUND: no such library. HEC_ERR_UNSUPPORTED: it lacks a mandatory function. */
int hec_nvml_load(const char *path, struct hec_nvml *nvml, struct hec_why *why);
void hec_nvml_unload(struct hec_nvml *nvml);

/* What clocks_event_reasons says, as bits of model/throttle.def; what those lack is left out. */
int64_t hec_nvml_throttle(unsigned long long reasons);

/* The HEC error that an NVML code amounts to: LOST, UNSUPPORTED, PERMISSION, NOTFOUND, BUSY, NOMEM, else FAILED. */
int hec_nvml_error(int code);
