/* The double of libcupti: records, as bytes in the layout of its version. */
#include "sim/cupti/double.h"

#include <string.h>
#include <unistd.h>

enum field_place {
#define SIM_RECORD(record, s118, s128, s130)
#define SIM_FIELD(record, field, offset, bytes) AT_##record##_##field = offset, BYTES_##record##_##field = bytes,
#include "sim/cupti/records.def"
#undef SIM_RECORD
#undef SIM_FIELD
};

static void put(uint8_t *record, unsigned at, unsigned bytes, uint64_t value) {
    memcpy(record + at, &value, bytes); /* little-endian */
}

#define PUT(RECORD, field, value) put(record, AT_##RECORD##_##field, BYTES_##RECORD##_##field, (uint64_t)(value))

/* What records of the device begin alike. */
#define PUT_COMMON(RECORD, kind_)                                                                                      \
    do {                                                                                                               \
        PUT(RECORD, kind, kind_);                                                                                      \
        PUT(RECORD, start, sim_cupti_time(op->start_ns));                                                              \
        PUT(RECORD, end, sim_cupti_time(op->end_ns));                                                                  \
        PUT(RECORD, correlationId, op->correlation);                                                                   \
        PUT(RECORD, contextId, op->context);                                                                           \
        PUT(RECORD, streamId, op->stream);                                                                             \
    } while (0)

static size_t kernel(const struct sim_op *op, uint32_t kind, uint8_t *record) {
    static uint64_t grid_id;
    PUT_COMMON(KERNEL, kind);
    PUT(KERNEL, completed, sim_cupti_time(op->end_ns));
    PUT(KERNEL, deviceId, op->device);
    PUT(KERNEL, registersPerThread, op->u.kernel.registers);
    PUT(KERNEL, gridX, op->u.kernel.grid[0]);
    PUT(KERNEL, gridY, op->u.kernel.grid[1]);
    PUT(KERNEL, gridZ, op->u.kernel.grid[2]);
    PUT(KERNEL, blockX, op->u.kernel.block[0]);
    PUT(KERNEL, blockY, op->u.kernel.block[1]);
    PUT(KERNEL, blockZ, op->u.kernel.block[2]);
    PUT(KERNEL, staticSharedMemory, op->u.kernel.static_shared_bytes);
    PUT(KERNEL, dynamicSharedMemory, op->u.kernel.dynamic_shared_bytes);
    PUT(KERNEL, sharedMemoryExecuted, op->u.kernel.static_shared_bytes + op->u.kernel.dynamic_shared_bytes);
    PUT(KERNEL, gridId, __atomic_add_fetch(&grid_id, 1, __ATOMIC_RELAXED));
    PUT(KERNEL, name, (uintptr_t)op->u.kernel.name);
    PUT(KERNEL, queued, sim_cupti.latency ? sim_cupti_time(op->launch_ns) : 0);
    PUT(KERNEL, submitted, sim_cupti.latency ? sim_cupti_time(op->launch_ns + 1000) : 0);
    PUT(KERNEL, graphNodeId, op->node);
    PUT(KERNEL, graphId, op->graph);
    PUT(KERNEL, channelID, 1);
    PUT(KERNEL, channelType, 1); /* compute */
    return SIM_SIZE_KERNEL;
}

static size_t copy(const struct sim_op *op, uint8_t *record) {
    if (op->u.copy.copy == SIM_COPY_PTOP) {
        PUT_COMMON(PEER, SIM_KIND_MEMCPY2);
        PUT(PEER, copyKind, op->u.copy.copy);
        PUT(PEER, srcKind, op->u.copy.from);
        PUT(PEER, dstKind, op->u.copy.to);
        PUT(PEER, flags, op->u.copy.async);
        PUT(PEER, bytes, op->u.copy.bytes);
        PUT(PEER, deviceId, op->device);
        PUT(PEER, srcDeviceId, op->device);
        PUT(PEER, srcContextId, op->context);
        PUT(PEER, dstDeviceId, op->u.copy.peer);
        PUT(PEER, dstContextId, op->context);
        PUT(PEER, graphNodeId, op->node);
        PUT(PEER, graphId, op->graph);
        return SIM_SIZE_PEER;
    }
    PUT_COMMON(MEMCPY, SIM_KIND_MEMCPY);
    PUT(MEMCPY, copyKind, op->u.copy.copy);
    PUT(MEMCPY, srcKind, op->u.copy.from);
    PUT(MEMCPY, dstKind, op->u.copy.to);
    PUT(MEMCPY, flags, op->u.copy.async);
    PUT(MEMCPY, bytes, op->u.copy.bytes);
    PUT(MEMCPY, deviceId, op->device);
    PUT(MEMCPY, graphNodeId, op->node);
    PUT(MEMCPY, graphId, op->graph);
    PUT(MEMCPY, channelID, 2);
    PUT(MEMCPY, channelType, 2); /* asynchronous copies */
    return SIM_SIZE_MEMCPY;
}

static size_t set(const struct sim_op *op, uint8_t *record) {
    PUT_COMMON(MEMSET, SIM_KIND_MEMSET);
    PUT(MEMSET, value, op->u.memset.value);
    PUT(MEMSET, bytes, op->u.memset.bytes);
    PUT(MEMSET, deviceId, op->device);
    PUT(MEMSET, flags, op->u.memset.async);
    PUT(MEMSET, memoryKind, SIM_MEMORY_DEVICE);
    PUT(MEMSET, graphNodeId, op->node);
    PUT(MEMSET, graphId, op->graph);
    return SIM_SIZE_MEMSET;
}

static size_t graph(const struct sim_op *op, uint8_t *record) {
    PUT_COMMON(GRAPH, SIM_KIND_GRAPH_TRACE);
    PUT(GRAPH, deviceId, op->device);
    PUT(GRAPH, graphId, op->graph);
    return SIM_SIZE_GRAPH;
}

static size_t synchronization(const struct sim_op *op, uint8_t *record) {
    PUT_COMMON(SYNC, SIM_KIND_SYNCHRONIZATION);
    PUT(SYNC, type, op->u.sync.type);
    PUT(SYNC, cudaEventId, op->u.sync.event ? op->u.sync.event : UINT32_MAX);
    return SIM_SIZE_SYNC;
}

static size_t api(const struct sim_op *op, uint8_t *record) {
    PUT(API, kind, SIM_KIND_DRIVER);
    PUT(API, cbid, op->u.api.cbid);
    PUT(API, start, sim_cupti_time(op->start_ns));
    PUT(API, end, sim_cupti_time(op->end_ns));
    PUT(API, processId, getpid());
    /* by default the thread's pthread id, cut to 32 bits */
    PUT(API, threadId, sim_cupti.thread_id_type ? op->u.api.tid : (uint32_t)(uintptr_t)pthread_self());
    PUT(API, correlationId, op->correlation);
    PUT(API, returnValue, op->u.api.result);
    return SIM_SIZE_API;
}

size_t sim_cupti_record(const struct sim_op *op, uint32_t kind, uint8_t record[SIM_SIZE_MAX]) {
    memset(record, 0, SIM_SIZE_MAX);
    switch (op->kind) {
    case SIM_OP_KERNEL:
        return kernel(op, kind, record);
    case SIM_OP_COPY:
        return copy(op, record);
    case SIM_OP_MEMSET:
        return set(op, record);
    case SIM_OP_GRAPH:
        return graph(op, record);
    case SIM_OP_SYNC:
        return synchronization(op, record);
    case SIM_OP_API:
        return api(op, record);
    }
    return 0;
}

static bool due(int every, uint64_t number) {
    return every > 0 && number % (uint64_t)every == 0;
}

size_t sim_cupti_spoil(uint8_t *record, size_t size, uint64_t number) {
    const struct sim_trace_spec *spec = sim_cupti_spec();
    uint32_t kind;
    if (due(spec->no_buffer, number))
        return 0;
    memcpy(&kind, record, sizeof kind);
    bool is_kernel = kind == SIM_KIND_KERNEL || kind == SIM_KIND_CONCURRENT_KERNEL;
    if (!is_kernel) /* the rest is planted in kernels */
        return size;
    if (due(spec->bad[SIM_BAD_START], number)) {
        PUT(KERNEL, start, 0);
    } else if (due(spec->bad[SIM_BAD_ORDER], number)) {
        uint64_t start;
        memcpy(&start, record + AT_KERNEL_start, sizeof start);
        PUT(KERNEL, end, start - 1);
    } else if (due(spec->bad[SIM_BAD_KIND], number)) {
        PUT(KERNEL, kind, SIM_KIND_UNKNOWN_BAD);
        return SIM_SIZE_UNKNOWN;
    } else if (due(spec->bad[SIM_BAD_DEVICE], number)) {
        PUT(KERNEL, deviceId, 0xdead);
    } else if (due(spec->bad[SIM_BAD_NAME], number)) {
        PUT(KERNEL, name, 0);
    }
    return size;
}

static size_t size_of(uint32_t kind) {
    switch (kind) {
    case SIM_KIND_KERNEL:
    case SIM_KIND_CONCURRENT_KERNEL:
        return SIM_SIZE_KERNEL;
    case SIM_KIND_MEMCPY:
        return SIM_SIZE_MEMCPY;
    case SIM_KIND_MEMCPY2:
        return SIM_SIZE_PEER;
    case SIM_KIND_MEMSET:
        return SIM_SIZE_MEMSET;
    case SIM_KIND_DRIVER:
        return SIM_SIZE_API;
    case SIM_KIND_SYNCHRONIZATION:
        return SIM_SIZE_SYNC;
    case SIM_KIND_GRAPH_TRACE:
        return SIM_SIZE_GRAPH;
    case SIM_KIND_UNKNOWN_BAD:
        return SIM_SIZE_UNKNOWN;
    default:
        return 0;
    }
}

SIM_EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_size, CUpti_Activity **record) {
    if (!buffer || !record)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    uint8_t *next = buffer;
    uint32_t kind;
    if (*record) {
        memcpy(&kind, *record, sizeof kind);
        next = (uint8_t *)*record + size_of(kind);
    }
    if (next < buffer || next + sizeof kind > buffer + valid_size)
        return SIM_CUPTI_ERROR_MAX_LIMIT_REACHED;
    memcpy(&kind, next, sizeof kind);
    if (!size_of(kind))
        return SIM_CUPTI_ERROR_INVALID_KIND;
    if (next + size_of(kind) > buffer + valid_size) /* cut off */
        return SIM_CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return SIM_CUPTI_SUCCESS;
}
