/* Between the double of libcuda and whoever wants to know what the simulated device does: the doubles of libcupti, the
 * player of workloads and test programs. Exported by libcuda.so.1 beside NVIDIA's names.
 *
 * Times are CLOCK_MONOTONIC nanoseconds (the clock of the simulated machine). The device is computed ahead: an operation
 * is reported when it is launched, and its start and end may lie in the future. */
#pragma once

#include "base/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_CUDA_HOOK_ABI 1u
#define SIM_CUDA_LISTENER_MAX 4

enum sim_op_kind { SIM_OP_KERNEL, SIM_OP_COPY, SIM_OP_MEMSET, SIM_OP_GRAPH, SIM_OP_SYNC, SIM_OP_API };

/* As CUPTI numbers them. */
enum sim_copy_kind { SIM_COPY_HTOD = 1, SIM_COPY_DTOH = 2, SIM_COPY_DTOD = 8, SIM_COPY_PTOP = 10 };
enum sim_memory_kind { SIM_MEMORY_PAGEABLE = 1, SIM_MEMORY_PINNED = 2, SIM_MEMORY_DEVICE = 3 };
enum sim_sync_kind { SIM_SYNC_EVENT = 1, SIM_SYNC_STREAM_WAIT = 2, SIM_SYNC_STREAM = 3, SIM_SYNC_CONTEXT = 4 };
#define SIM_STREAM_ALL UINT32_MAX

struct sim_op {
    enum sim_op_kind kind;
    uint32_t correlation;
    int64_t launch_ns; /* the call that caused it began */
    int64_t start_ns, end_ns;
    uint32_t device, context, stream; /* CUDA ordinal; ids as CUPTI gives them */
    uint32_t graph;                   /* 0: not in a graph */
    uint64_t node;
    /* With a graph: the mode that was fixed when it was instantiated. */
    bool graph_level;
    bool planned; /* from hecSimCudaEmit: the calling thread is not the one that launched, and it is over */
    union {
        struct {
            const char *name; /* lives as long as the process */
            uint32_t grid[3], block[3];
            uint32_t registers, static_shared_bytes, dynamic_shared_bytes;
        } kernel;
        struct {
            uint64_t bytes;
            uint8_t copy, from, to; /* enum sim_copy_kind, sim_memory_kind */
            bool async;
            uint32_t peer; /* device of the destination */
        } copy;
        struct {
            uint64_t bytes;
            uint32_t value;
            bool async;
        } memset;
        struct {
            uint32_t type, event; /* enum sim_sync_kind */
        } sync;
        struct {
            uint32_t cbid; /* of the driver */
            uint32_t tid;  /* as gettid */
            int32_t result;
        } api;
    } u;
};

/* Called in the thread that makes the call, with no lock held. */
struct sim_cuda_listener {
    void (*op)(void *context, const struct sim_op *op);
    /* site 0: a call of the driver begins, 1: it has ended */
    void (*call)(void *context, int site, uint32_t cbid, const char *name, uint32_t correlation, void *cu_context,
                 uint32_t context_id, int result);
    /* Whether graphs that are instantiated now are traced as a whole. NULL: no. */
    bool (*graph_level)(void *context);
    void *context;
};

/* 0; -1: another ABI, or SIM_CUDA_LISTENER_MAX are there. A listener stays for the life of the process. */
int hecSimCudaListen(uint32_t abi, const struct sim_cuda_listener *listener);

/* Report to the listeners an operation that a program which schedules by itself (sim/play.h) has done; it counts in the
 * truth. */
void hecSimCudaEmit(const struct sim_op *op);
/* Report to the injected library (hec_trace_report) a call that such a program has made, before the operation that the
 * call caused is emitted: no function of this library was called, so nobody in front of it could time it. The first one
 * may wait until a tracer is attached. */
void hecSimCudaReport(const struct hec_trace_reported *reported);
/* Take `count` correlation ids; the first is returned. */
uint32_t hecSimCudaCorrelations(uint32_t count);

struct sim_cuda_device_truth {
    uint64_t kernels, copies, memsets, graphs; /* graphs: launches; their nodes count as kernels */
    uint64_t bytes[11][4]; /* copied, by enum sim_copy_kind and by kind of the host's memory (0: none) */
    uint64_t memset_bytes;
    int64_t first_ns, last_ns, busy_ns; /* busy: length of the union over streams and engines */
    int64_t compute_ns, copy_ns;        /* unions of kernels, and of copies and memsets */
    int64_t kernel_sum_ns;
};

/* What this process has done on a device until now, launched operations included. -1: no such device. */
int hecSimCudaTruth(uint32_t device, struct sim_cuda_device_truth *truth);

int hecSimCudaDriverVersion(void); /* 13000; 0: no simulated machine */
int64_t hecSimCudaNow(void);       /* of the simulated machine; 0: there is none */

/* Names of driver calls by CUPTI's callback id; NULL if the double has none such. */
const char *hecSimCudaCallName(uint32_t cbid);
