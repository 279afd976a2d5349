/* The timeline of a run: what devices and threads did, as plain data. Written by observe/trace, observe/marks and the
 * importers, kept by the store, analysed by diagnose.
 *
 * Ids (of names, kernels, tracks, frames) are given by the sink (model/run.h), are unique within a run, start at 1 and
 * are dense: they may index arrays. 0 means none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_TIME_UNKNOWN INT64_MIN

/* Stable names in JSON, CSV and the run file: hec_activity_kind_name. */
enum hec_activity_kind {
    HEC_ACTIVITY_KERNEL, /* on a device track. name: kernel id */
    HEC_ACTIVITY_COPY,   /* on a device track. amount: bytes; from, to */
    HEC_ACTIVITY_MEMSET, /* on a device track. amount: bytes; to */
    HEC_ACTIVITY_GRAPH,  /* on a device track: a whole CUDA graph. amount: number of its nodes, NAN unknown */
    HEC_ACTIVITY_SYNC,   /* on a thread track: the host waits for the device. detail: enum hec_sync_type */
    HEC_ACTIVITY_API, /* on a thread track. name: function; detail: enum hec_api_class; COPY, MEMSET and ALLOC where it
                            is known: amount: bytes; COPY: from, to */
    HEC_ACTIVITY_RANGE, /* on a thread track: NVTX, or an annotation of a profiler. name */
    HEC_ACTIVITY_PHASE, /* on a thread track: marked by the program or found by the hooks. name ("data") */
    HEC_ACTIVITY_STEP,  /* on a process track: from the end of the step before. detail: enum hec_step_source; name:
                            the unit; amount: units done, NAN unknown */
    HEC_ACTIVITY_VALUE, /* on a process track: amount is a number the program computed (name "loss"); end = start */
    HEC_ACTIVITY_STACK, /* on a thread track: a sample of its stack; name: frame id; end - start: what it stands for */
    HEC_ACTIVITY_WINDOW, /* on a process track: device activity was traced in it. amount: records; detail: trace mode. Of mode off
                              the other way round: calls were recorded before and after it, and nothing in it */
    HEC_ACTIVITY_OPERATOR, /* on a thread track, imported: an operator of the framework (cpu_op). name */
    HEC_ACTIVITY_BURST, /* on a thread track: launches in quick succession (base/trace.h). amount: how many; from, to:
                              share of its time in pauses of 20 us and more, and inside of calls, of 255; name: of a
                              kernel among them or shortly before, drawn at random, "?" where it has none; 0: none was */
    HEC_ACTIVITY_KIND_COUNT
};
#define HEC_ACTIVITY_BIT(kind) (UINT32_C(1) << (kind))
#define HEC_ACTIVITY_ALL (HEC_ACTIVITY_BIT(HEC_ACTIVITY_KIND_COUNT) - 1)
/* What keeps a device busy. */
#define HEC_ACTIVITY_DEVICE                                                                                            \
    (HEC_ACTIVITY_BIT(HEC_ACTIVITY_KERNEL) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_COPY) |                                     \
     HEC_ACTIVITY_BIT(HEC_ACTIVITY_MEMSET) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_GRAPH))

enum hec_memory_kind {
    HEC_MEMORY_UNKNOWN,
    HEC_MEMORY_PAGEABLE,
    HEC_MEMORY_PINNED,
    HEC_MEMORY_DEVICE,
    HEC_MEMORY_ARRAY,
    HEC_MEMORY_MANAGED,
    HEC_MEMORY_HOST, /* pageable or pinned, the source does not say (imports) */
    HEC_MEMORY_KIND_COUNT
};

enum hec_sync_type {
    HEC_SYNC_UNKNOWN,
    HEC_SYNC_EVENT,
    HEC_SYNC_STREAM_WAIT, /* a stream waits for an event; the host does not wait */
    HEC_SYNC_STREAM,
    HEC_SYNC_CONTEXT,
    HEC_SYNC_TYPE_COUNT
};

enum hec_api_class {
    HEC_API_OTHER,
    HEC_API_LAUNCH,
    HEC_API_GRAPH,
    HEC_API_COPY,
    HEC_API_MEMSET,
    HEC_API_SYNC,
    HEC_API_ALLOC,
    HEC_API_FREE,
    HEC_API_MODULE,
    HEC_API_CLASS_COUNT
};

enum hec_step_source {
    HEC_STEP_NONE,
    HEC_STEP_MARKED,    /* the program says so: hec.step(), hec_step() */
    HEC_STEP_OPTIMIZER, /* found: an optimizer's step */
    HEC_STEP_MODULE,    /* found: a call of the outermost module */
    HEC_STEP_ANNOTATED, /* imported: ProfilerStep#N, an NVTX range */
    HEC_STEP_RANGE,    /* imported: a range named like a step, of a program or library, beside a profiler's own count */
    HEC_STEP_PERIODIC, /* found in the sequence of kernels */
    HEC_STEP_SOURCE_COUNT
};

enum hec_track_kind { HEC_TRACK_PROCESS, HEC_TRACK_THREAD, HEC_TRACK_STREAM, HEC_TRACK_KIND_COUNT };

struct hec_track {
    uint32_t id;
    enum hec_track_kind kind;
    int32_t pid;      /* imported: as the trace says; several ranks of one run may have the same */
    int32_t rank;     /* -1: none known */
    int32_t device;   /* STREAM: hec_device.index; else -1 */
    uint32_t context; /* STREAM */
    int64_t stream;   /* STREAM: the id CUDA gives; THREAD: the thread id */
    char name[64];    /* of the process or thread, "" unknown */
};

/* A kernel with one launch configuration. Numbers are -1 where unknown (imports). */
struct hec_kernel {
    uint32_t id;
    uint32_t name; /* name id: as the compiler mangled it, or as the importer got it */
    int64_t grid[3];
    int32_t block[3];
    int32_t registers; /* a thread */
    int64_t static_shared_bytes, dynamic_shared_bytes;
};

/* A node of the tree of call stacks. */
struct hec_frame {
    uint32_t id, parent;     /* parent 0: outermost */
    uint32_t file, function; /* name ids */
    int32_t line;
};

/* Behind the name of a kernel that communicates, then the communicator's and "]": where an imported trace says it. */
#define HEC_COMMUNICATOR " [pg "

#define HEC_ACTIVITY_IN_GRAPH 1u /* a node of a launched CUDA graph */
#define HEC_ACTIVITY_FOUND 2u    /* PHASE: found by the hooks, not marked by the program */
#define HEC_ACTIVITY_PEER 4u     /* COPY: between two devices */
#define HEC_ACTIVITY_INFERRED 8u /* inferred from calls, nobody saw it: only in diagnose, never in a run file */

/* 64 bytes. start <= end. Fields that the kind does not use are 0. */
struct hec_activity {
    int64_t start_ns, end_ns;
    int64_t launch_ns;     /* device kinds: when the API call that caused it began; HEC_TIME_UNKNOWN */
    int64_t launch_end_ns; /* when that call returned; HEC_TIME_UNKNOWN */
    double amount;
    uint32_t track;
    uint32_t name;
    uint32_t launch_track; /* thread that made the call, 0 unknown */
    uint8_t kind;
    uint8_t detail;
    uint8_t from, to; /* enum hec_memory_kind */
    uint8_t flags;
    uint8_t device; /* SYNC, API, BURST: hec_device.index of the device that was current, plus 1; 0 unknown */
    uint8_t reserved[6];
};
_Static_assert(sizeof(struct hec_activity) == 64, "analysed in arrays of millions");

/* Takes activities in chunks, in order. 0: more may come; anything else ends what gives them, which returns it. */
struct hec_activity_visitor {
    void *context;
    int (*visit)(void *context, const struct hec_activity *activities, size_t count);
};

/* How one process was traced. A later record of the same pid replaces the earlier one. */
struct hec_tracer {
    int32_t pid;
    int mode;          /* enum hec_trace_mode of base/trace.h, also the wish of the user where there was no trace */
    int cupti_version; /* -1: none */
    int driver_version;
    char library[256]; /* of CUPTI */
    char why[256];     /* why there is no trace, or only a partial one; empty when there is nothing to say */
    char holder[128];  /* another user of CUPTI that HEC stood down for, empty: none */
    int64_t first_ns, last_ns;
    int64_t traced_ns; /* sum of the windows: device activity */
    int64_t holder_ns; /* stood down for so long */
    int64_t windows;
    int64_t records;      /* received */
    int64_t dropped;      /* by CUPTI */
    int64_t lost;         /* between the tracer and HEC: the ring was full */
    int64_t bad;          /* made no sense */
    int64_t self_ns;      /* CPU time of the tracer's own code in the process */
    int64_t estimate_ppm; /* slowdown as the tracer estimates it; -1 unknown */
    int64_t budget_ppm;   /* -1: none */
};

/* Counts and sums of nanoseconds of a tracer stop there: they are claims of the process, and two of them can be added. */
#define HEC_TRACER_COUNT_MAX (INT64_MAX / 2)

const char *hec_activity_kind_name(enum hec_activity_kind kind); /* "kernel" */
const char *hec_memory_kind_name(enum hec_memory_kind kind);     /* "pinned" */
const char *hec_sync_type_name(enum hec_sync_type type);
const char *hec_api_class_name(enum hec_api_class api_class);
const char *hec_step_source_name(enum hec_step_source source); /* "optimizer" */
/* enum hec_trace_mode of base/trace.h: "auto"; "off" when unknown. And back; -1: no such mode. */
const char *hec_trace_mode_name(int mode);
int hec_trace_mode_find(const char *name);
