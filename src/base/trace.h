/* The records that the tracer (libhectrace.so) writes into its ring (base/ring.h, role TRACE): kinds from 64 on.
 *
 * Two sources: calls of the program, timed by the tracer's own functions in front of them (CALL, BURST), and activity of
 * the devices, from CUPTI (KERNEL, COPY, MEMSET, GRAPH_LAUNCH), only within WINDOWs.
 *
 * Times are CLOCK_MONOTONIC nanoseconds: the tracer has already turned CUPTI's clock into it. hec_ring_record.t_ns is
 * the start, `duration_ns` the length. Names and launch configurations are interned: a definition comes before its
 * first use, in the same ring, and may come again with the same content. Ids are the process's own, never 0.
 * The reader trusts nothing: every field is checked by observe/trace before use.
 *
 * This file is ABI between a tracer and an hec of another build: HEC_TRACE_ABI changes with any change of a record.
 * It uses libc only, since it enters the observed process. */
#pragma once

#include "base/ring.h"

#define HEC_TRACE_ABI 5u

/* The environment of the observed command. */
#define HEC_TRACE_ENV_SOCKET "HEC_TRACE_SOCKET"     /* where the tracer hands its ring over */
#define HEC_TRACE_ENV_MODE "HEC_TRACE_MODE"         /* "auto", "full", "graph", "off" */
#define HEC_TRACE_ENV_NO_CUPTI "HEC_TRACE_NO_CUPTI" /* a sentence: CUPTI stays out, and why; calls only */
#define HEC_TRACE_ENV_MEMORY "HEC_TRACE_MEMORY"     /* MB that the tracer and CUPTI may take in the process; "64" */
#define HEC_TRACE_ENV_CUPTI "HEC_TRACE_CUPTI"       /* path of the libcupti to use; unset: the one that matches */

/* Why there is no trace, where one part of HEC says it and another knows more. */
#define HEC_TRACE_WHY_NOBODY "no process of the command used CUDA"
#define HEC_TRACE_WHY_NESTED "another hec run inside of this one has taken over the tracing of its command"

/* Set and not empty: CUPTI is not loaded, only calls are recorded, and the value is the sentence that says why. */
#define HEC_TRACE_ENV_NO_CUPTI "HEC_TRACE_NO_CUPTI"

enum hec_trace_mode {
    HEC_TRACE_OFF,
    HEC_TRACE_AUTO,  /* calls; and CUPTI for a glimpse, where that costs nothing */
    HEC_TRACE_FULL,  /* calls, and CUPTI from the first call on */
    HEC_TRACE_GRAPH, /* like full, but a launched graph is one record, not one a node */
    HEC_TRACE_MODE_COUNT
};

enum hec_trace_kind {
    HEC_TRACE_PROCESS = HEC_RING_TRACE_FIRST, /* first record of a process: process; a later one says why it ended */
    HEC_TRACE_DEVICE,                         /* defines a CUDA device ordinal of the process: device */
    HEC_TRACE_CONFIG,                         /* defines a kernel with its launch configuration: config */
    HEC_TRACE_KERNEL,                         /* kernel */
    HEC_TRACE_COPY,                           /* copy */
    HEC_TRACE_MEMSET,                         /* copy, from UNKNOWN to the memory that is set */
    HEC_TRACE_GRAPH_LAUNCH,                   /* graph: a whole graph on the device, where nodes are not traced */
    HEC_TRACE_CALL,                           /* call: of the runtime or the driver; tid is the thread */
    HEC_TRACE_BURST,                          /* burst: launches of a thread in quick succession; tid is the thread */
    HEC_TRACE_WINDOW,                         /* window: all device activity was traced from t_ns for duration_ns */
    HEC_TRACE_COUNTS,                         /* counts: totals so far, about once a second and at the end */
    HEC_TRACE_HOLDER,                         /* holder: another tool has CUPTI from t_ns on, or has left it */
    HEC_TRACE_REST,                           /* rest: no calls were recorded from t_ns for duration_ns */
    HEC_TRACE_LIMIT
};

/* Flags of COPY and MEMSET records (hec_ring_record.flags), and of KERNEL where they fit. */
#define HEC_TRACE_IN_GRAPH 1u /* part of a launched CUDA graph */
#define HEC_TRACE_PEER 2u     /* between two devices */

struct hec_trace_process {
    uint32_t abi; /* HEC_TRACE_ABI */
    uint32_t mode;
    uint32_t cupti_version;  /* cuptiGetVersion: 130000 for 13.0; 0: none was loaded */
    uint32_t driver_version; /* cuDriverGetVersion: 13000 for 13.0; 0 unknown */
    uint32_t library;        /* name id of the path of libcupti; 0: none */
    uint32_t why;            /* name id of the sentence that says why there is no trace; 0: there is one */
    uint32_t flags;          /* below */
    uint32_t reserved;
    int64_t attached_ns; /* CUPTI records the device since; 0: it does not, or did not */
};
#define HEC_TRACE_CALLS_SEEN 1u /* calls of the program pass through the tracer's functions */

struct hec_trace_device {
    uint32_t ordinal; /* CUDA's, in this process */
    uint8_t uuid[16];
    char pci_bus_id[16]; /* "0000:0f:00.0", NUL-terminated */
    uint32_t reserved;
};

struct hec_trace_config {
    uint32_t id;
    uint32_t name; /* name id of the kernel, mangled as CUPTI gives it */
    uint32_t grid[3];
    uint16_t block[3];
    uint16_t registers; /* a thread */
    uint32_t static_shared_bytes, dynamic_shared_bytes;
    uint32_t local_bytes; /* a thread */
};

struct hec_trace_kernel {
    int64_t duration_ns;
    uint64_t graph_node; /* 0: not in a graph */
    uint32_t config;     /* id */
    uint32_t correlation;
    uint32_t stream, context;
    uint32_t graph; /* id of the graph, 0: not in one */
    uint16_t device;
    uint16_t reserved;
};

enum hec_trace_memory {
    HEC_TRACE_MEMORY_UNKNOWN,
    HEC_TRACE_MEMORY_PAGEABLE,
    HEC_TRACE_MEMORY_PINNED,
    HEC_TRACE_MEMORY_DEVICE,
    HEC_TRACE_MEMORY_ARRAY,
    HEC_TRACE_MEMORY_MANAGED,
    HEC_TRACE_MEMORY_COUNT
};

struct hec_trace_copy {
    int64_t duration_ns;
    uint64_t bytes;
    uint32_t correlation;
    uint32_t stream, context;
    uint32_t graph;
    uint16_t device;
    uint16_t peer;    /* device of the destination where flags has HEC_TRACE_PEER */
    uint8_t from, to; /* enum hec_trace_memory */
    uint8_t value[2]; /* reserved */
};

struct hec_trace_graph {
    int64_t duration_ns;
    uint32_t correlation;
    uint32_t stream, context;
    uint32_t graph;
    uint16_t device;
    uint16_t reserved[7];
};

/* What a call does, as far as gaps are concerned. */
enum hec_trace_call_class {
    HEC_TRACE_CALL_OTHER,
    HEC_TRACE_CALL_LAUNCH, /* of a kernel. amount: the function's handle */
    HEC_TRACE_CALL_GRAPH,  /* launch of a graph */
    HEC_TRACE_CALL_COPY,   /* amount: bytes; from, to */
    HEC_TRACE_CALL_MEMSET, /* amount: bytes */
    HEC_TRACE_CALL_SYNC,   /* waits for the device. from: enum hec_trace_wait */
    HEC_TRACE_CALL_ALLOC,  /* of device or pinned memory. amount: bytes */
    HEC_TRACE_CALL_FREE,
    HEC_TRACE_CALL_MODULE, /* loads or compiles code */
    HEC_TRACE_CALL_CLASS_COUNT
};

/* What a call waits for; numbers of the model's enum hec_sync_type. */
enum hec_trace_wait { HEC_TRACE_WAIT_EVENT = 1, HEC_TRACE_WAIT_STREAM = 3, HEC_TRACE_WAIT_CONTEXT = 4 };

#define HEC_TRACE_DEVICE_UNKNOWN UINT16_MAX

struct hec_trace_call {
    int64_t duration_ns;
    uint64_t amount;
    uint64_t stream;   /* handle; 0: the default stream, or none */
    uint32_t function; /* name id: "cudaLaunchKernel" */
    uint16_t call_class;
    uint16_t device;  /* ordinal that was current, HEC_TRACE_DEVICE_UNKNOWN */
    int32_t result;   /* what it returned */
    uint8_t from, to; /* COPY: enum hec_trace_memory; SYNC: see there */
    uint8_t domain;   /* 0 runtime, 1 driver */
    uint8_t reserved;
};

/* What a simulator reports to libhectrace.so of its calls, by hec_trace_report: it plays a schedule faster or slower
 * than it makes the calls, so that no trampoline could time them. */
struct hec_trace_reported {
    int64_t start_ns, end_ns;
    const char *function; /* "cuLaunchKernel" */
    const char *kernel;   /* that is launched; NULL: it has no name */
    uint64_t amount, stream;
    uint32_t tid;
    uint16_t call_class, device;
    uint8_t from, to;
};

/* A launch takes 2 to 10 us: one of so much waited for room in the queue. */
#define HEC_TRACE_BLOCKED_NS 50000

/* Launches (of kernels, graphs, and memsets among them) of one thread with no other call between, less than 500 us
 * apart, and none of 50 us or more: that one waited for room in the queue, and is a CALL. t_ns is the start of the
 * first. While device activity is traced, launches are CALLs instead. */
struct hec_trace_burst {
    int64_t duration_ns; /* to the end of the last */
    int64_t in_calls_ns; /* of it */
    int64_t pauses_ns;   /* of it, in pauses of 20 us and more between two of them */
    uint32_t launches;   /* >= 1, graphs included */
    uint32_t graphs;
    uint16_t device;
    uint16_t reserved;
    /* name id of a kernel that the thread launched, drawn at random some ten times a second, in the burst that was written
     * next; "?": it has no name known here. 0: none was drawn */
    uint32_t name;
};

/* hec_ring_record.flags: 1 = the window is still open (reported about once a second; a later one replaces it). */
#define HEC_TRACE_WINDOW_OPEN 1u
struct hec_trace_window {
    int64_t duration_ns;
    uint64_t records; /* of the device, that started in it */
    int64_t self_ns;  /* CPU time of the tracer's own code in it */
    uint32_t number;  /* counts windows, from 1 */
    uint32_t mode;
    uint32_t reserved[2];
};

/* A program that calls the driver very often has its calls recorded for only a part of the time (tracer/rest.c). Flags as of a
 * window: an open one is reported once, with its start, and lasts until it is reported again or the process ends. */
struct hec_trace_rest {
    int64_t duration_ns;
};

struct hec_trace_counts {
    uint64_t dropped; /* by CUPTI: it had no buffer */
    uint64_t bad;     /* records that made no sense */
    uint64_t records; /* from CUPTI, of all kinds, the dropped and bad ones not among them */
    int64_t self_ns;  /* CPU time of the tracer's own thread, and of what CUPTI has it do */
    /* What the calls lost by being timed: their number and the measured cost of one, ppm of the time since the first
     * record. */
    uint32_t estimate_ppm;
    uint32_t threads_left_out; /* there was no room for them: their calls are not recorded */
};

struct hec_trace_holder {
    uint32_t name; /* name id of the holder ("torch.profiler", the file that called CUPTI); 0: CUPTI is free again */
    uint32_t code; /* CUPTI's result that showed it, 0 otherwise */
    uint32_t reserved[8];
};

union hec_trace_payload {
    struct hec_trace_process process;
    struct hec_trace_device device;
    struct hec_trace_config config;
    struct hec_trace_kernel kernel;
    struct hec_trace_copy copy;
    struct hec_trace_graph graph;
    struct hec_trace_call call;
    struct hec_trace_burst burst;
    struct hec_trace_window window;
    struct hec_trace_counts counts;
    struct hec_trace_holder holder;
    struct hec_trace_rest rest;
    unsigned char bytes[HEC_RING_PAYLOAD_BYTES];
};

_Static_assert(sizeof(union hec_trace_payload) == HEC_RING_PAYLOAD_BYTES, "records of the trace fit the ring's");
