/* Plain data that travels from collectors to the run file and from there to the analysis.
 * Times are CLOCK_MONOTONIC nanoseconds while recording; in a run file they are relative to the run's start. */
#pragma once

#include "model/metric.h"
#include "model/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_DEVICE_MAX 64
#define HEC_DEVICE_NONE (-1)
/* What a gap names when the driver gave no answer. */
#define HEC_GAP_DRIVER "GPU driver"

enum hec_vendor {
#define HEC_VENDOR(id, name, title, source, files, resources) HEC_VENDOR_##id,
#include "model/vendor.def"
#undef HEC_VENDOR
    HEC_VENDOR_COUNT
};

/* The vendor whose title is left out where a name has to be short. */
#define HEC_VENDOR_USUAL HEC_VENDOR_NVIDIA

struct hec_vendor_info {
    const char *name;   /* "nvidia" */
    const char *title;  /* "NVIDIA" */
    const char *source; /* "nvml": what an event of its collector begins with, before a colon; "": there is none */
    const char *device_files, *resources; /* "/dev/nvidia", "nvidia.com/"; "": not known */
};

/* vendor must be in range. */
const struct hec_vendor_info *hec_vendor_info(enum hec_vendor vendor);
/* NULL: no such vendor's block has this index of a device. */
const struct hec_vendor_info *hec_vendor_of_device(int index);
/* The name of a device without the title of the usual vendor, which tells nothing apart. */
const char *hec_vendor_short(const char *device_name);
/* What follows the source of a vendor in the text of an event ("nvml: no GPU"); NULL: it is of another source. */
const char *hec_vendor_event(const char *text);

/* Collectors number the devices of a vendor from 0, and a run holds those of all: each vendor has a block of indices. */
#define HEC_VENDOR_DEVICES_MAX 32
#define HEC_DEVICE_INDEX(vendor, ordinal) ((int)(vendor)*HEC_VENDOR_DEVICES_MAX + (int)(ordinal))
_Static_assert(HEC_DEVICE_INDEX(HEC_VENDOR_COUNT, 0) <= HEC_DEVICE_MAX, "a block of indices for each vendor");

enum hec_event_kind {
#define HEC_EVENT(id, name, meaning) HEC_EVENT_##id,
#include "model/event.def"
#undef HEC_EVENT
    HEC_EVENT_COUNT
};

const char *hec_event_name(enum hec_event_kind kind);
enum hec_event_kind hec_event_find(const char *name); /* HEC_EVENT_COUNT if unknown */

/* One GPU. Strings are empty and numbers negative where the driver would not say. */
struct hec_device {
    int index;       /* within the run: HEC_DEVICE_INDEX, of an import the order of appearance */
    char vendor[16]; /* hec_vendor_info: its name */
    char uuid[96];
    char name[96];
    char pci_bus_id[32];
    char driver[64];
    char architecture[24];      /* "hopper" */
    int cuda_major, cuda_minor; /* compute capability */
    int64_t memory_kib;
    int64_t power_limit_mw; /* enforced */
    int64_t power_limit_default_mw;
    int64_t pcie_kib_per_s; /* peak of the current link, one direction */
    int mig_enabled;        /* 1, 0, -1 unknown */
    int simulated;          /* the driver is HEC's double */
    int visible;            /* CUDA_VISIBLE_DEVICES lets the command use it: 1, 0 */
    int has_energy_counter, has_power_history, has_gpm;
    /* of the agent's labels; not kept in run files */
    char cuda_driver[16];  /* the CUDA version that the driver supports, as NVML writes it: "13000" is 13.0 */
    char minor_number[16]; /* of its device file: 3 of /dev/nvidia3 */
    char serial[32];       /* of the board */
    int64_t clock_max_mhz; /* of the SMs */
};

/* One member of the observed tree. A later record of the same (pid, start_ns) replaces the earlier one. */
struct hec_process {
    int32_t pid, parent;
    int64_t start_ns, end_ns; /* end_ns < 0: alive when last seen */
    char name[64];
    int64_t cpu_ms, rss_max_kib, read_kib, written_kib;
};

/* Facts of a run: of a process that is a rank of a job, "rank.PID": "RANK LOCAL_RANK RANKS LAUNCHER [HOST]"; -1 and 0: unknown. */
#define HEC_RANK_FACT "rank."
/* Facts of a process that trains, by the Python hooks: "sizes.PID.WHAT": "NAME=NUMBER ..."; what there is: diagnose/sizes.c. */
#define HEC_SIZES_FACT "sizes."

/* A process with a context on a device, in the observed tree or not. Replaces the earlier record of (device, pid). */
struct hec_gpu_process {
    int device;
    int32_t pid;
    int64_t first_ns, last_ns;
    int64_t memory_max_kib;                        /* < 0 unknown */
    int64_t memory_kib;                            /* at last_ns, the same; not kept in run files */
    int sm_util_permille;                          /* mean where the driver gives it, else -1 */
    int64_t sm_util_sum_permille, sm_util_samples; /* what it is the mean of: differences are those of an interval */
    int visible;                                   /* 1: the pid exists in this pid namespace */
    int gpu_instance; /* of a divided device (MIG): where it is; -1: not known, or not divided; not kept in run files */
};

#define HEC_GPU_INSTANCES_MAX 8 /* MIG devices of one device: NVIDIA divides into seven */
#define HEC_GPM_COUNT (HEC_GPM_NVLINK_TX - HEC_GPM_GR_ACTIVE + 1)

/* A MIG device: a GPU instance, or a compute instance in it, which shares all but its SMs. Those of a device are reported at every
 * reading of it, by an observer that never ends alone. Replaces the earlier record of (device, id, compute_id). */
struct hec_gpu_instance {
    int device;
    int id, compute_id;    /* of the GPU instance, and within it */
    char uuid[96];         /* "MIG-..." */
    char profile[32];      /* of the GPU instance: "3g.71gb" */
    int slices, slices_of; /* of compute: of the GPU instance, and of the whole device; 0: not known */
    int64_t t_ns;
    int64_t memory_used_kib, memory_free_kib, memory_reserved_kib; /* of the GPU instance; -1: not known */
    int64_t from_ns, until_ns; /* the window of the counters; until_ns INT64_MIN: there is none yet */
    int64_t counters
        [HEC_GPM_COUNT]; /* of the GPU instance, by metric from HEC_GPM_GR_ACTIVE on, in its unit; -1: not known */
};

/* Where recorded data goes; the store implements it, tests may. Every function may be called from any thread,
 * never blocks on a device and never fails: what cannot be kept is counted by the implementation. */
struct hec_sink {
    void *context;
#define HEC_SINK(result, name, parameters, ...) result(*name) parameters;
#include "model/sink.def"
#undef HEC_SINK
};

/* A fact of the run, its text cut at 255 bytes. */
void hec_sink_meta(const struct hec_sink *sink, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An event, its text cut at 639 bytes; device: HEC_DEVICE_NONE where it is of none. */
void hec_sink_event(const struct hec_sink *sink, enum hec_event_kind kind, int device, int64_t t_ns, const char *format,
                    ...) __attribute__((format(printf, 5, 6)));
