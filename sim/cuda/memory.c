/* The double of libcuda: memory. Device memory is an address and a size; host memory is real, and known to be pinned. */
#include "sim/cuda/double.h"

#include <stdlib.h>

struct range {
    uintptr_t start;
    size_t bytes;
    bool pinned; /* of the host; else of the device */
    int ordinal;
    struct range *next;
};

static struct range *ranges;
static CUdeviceptr next_address = UINT64_C(0x7f0000000000);
/* guards the two: allocation is rare, but each copy asks what its host memory is */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static bool add_allocation(uintptr_t start, size_t bytes, bool pinned, int ordinal) {
    struct range *range = malloc(sizeof *range);
    if (!range)
        return false;
    *range = (struct range){start, bytes, pinned, ordinal, ranges};
    ranges = range;
    return true;
}

enum sim_memory_kind sim_cu_host_memory(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    bool pinned = false;
    pthread_rwlock_rdlock(&lock);
    for (const struct range *r = ranges; r && !pinned; r = r->next)
        pinned = r->pinned && address - r->start < r->bytes;
    pthread_rwlock_unlock(&lock);
    return pinned ? SIM_MEMORY_PINNED : SIM_MEMORY_PAGEABLE;
}

static size_t memory_in_use(int ordinal) {
    size_t bytes = 0;
    for (const struct range *r = ranges; r; r = r->next)
        if (!r->pinned && r->ordinal == ordinal)
            bytes += r->bytes;
    return bytes;
}

static size_t memory_total(void) {
    const struct sim_profile *profile = sim_world_profile(sim_cu.world);
    return (size_t)(profile->memory_mib - profile->reserved_mib) << 20;
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes) {
    CUcontext context = sim_cu_current();
    if (!context)
        return SIM_CUDA_ERROR_INVALID_CONTEXT;
    if (!pointer || !bytes)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    CUresult result = SIM_CUDA_ERROR_OUT_OF_MEMORY;
    pthread_rwlock_wrlock(&lock);
    size_t rounded = (bytes + 511) & ~(size_t)511;
    if (rounded >= bytes && memory_in_use(context->ordinal) + rounded <= memory_total() &&
        add_allocation((uintptr_t)next_address, rounded, false, context->ordinal)) {
        *pointer = next_address;
        next_address += rounded;
        result = SIM_CUDA_SUCCESS;
    }
    pthread_rwlock_unlock(&lock);
    return result;
}

static CUresult release(uintptr_t start, bool pinned) {
    CUresult result = SIM_CUDA_ERROR_INVALID_VALUE;
    pthread_rwlock_wrlock(&lock);
    for (struct range **link = &ranges; *link; link = &(*link)->next)
        if ((*link)->start == start && (*link)->pinned == pinned) {
            struct range *range = *link;
            *link = range->next;
            if (pinned)
                free((void *)range->start);
            free(range);
            result = SIM_CUDA_SUCCESS;
            break;
        }
    pthread_rwlock_unlock(&lock);
    return result;
}

SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    SIM_CU_ENTER(cuMemAlloc_v2);
    SIM_CU_LEAVE(allocate(pointer, bytes));
}

/* Waits for the device, as the real one. */
SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
    SIM_CU_ENTER(cuMemFree_v2);
    if (!sim_cu_current())
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    if (!pointer)
        SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
    sim_cu_wait_until(sim_cu_context_tail(sim_cu_current()));
    SIM_CU_LEAVE(release((uintptr_t)pointer, false));
}

SIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    (void)stream;
    SIM_CU_ENTER(cuMemAllocAsync);
    SIM_CU_LEAVE(allocate(pointer, bytes));
}

SIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    (void)stream;
    SIM_CU_ENTER(cuMemFreeAsync);
    SIM_CU_LEAVE(release((uintptr_t)pointer, false));
}

static CUresult allocate_host(void **pointer, size_t bytes) {
    if (!sim_cu_current())
        return SIM_CUDA_ERROR_INVALID_CONTEXT;
    if (!pointer || !bytes)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    void *memory = malloc(bytes);
    pthread_rwlock_wrlock(&lock);
    bool added = memory && add_allocation((uintptr_t)memory, bytes, true, 0);
    pthread_rwlock_unlock(&lock);
    if (!added) {
        free(memory);
        return SIM_CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = memory;
    return SIM_CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
    SIM_CU_ENTER(cuMemAllocHost_v2);
    SIM_CU_LEAVE(allocate_host(pointer, bytes));
}

SIM_EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    (void)flags;
    SIM_CU_ENTER(cuMemHostAlloc);
    SIM_CU_LEAVE(allocate_host(pointer, bytes));
}

SIM_EXPORT CUresult cuMemFreeHost(void *pointer) {
    SIM_CU_ENTER(cuMemFreeHost);
    SIM_CU_LEAVE(release((uintptr_t)pointer, true));
}

/* Of memory that the driver gave; it knows no other, as NVIDIA's. */
SIM_EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr pointer) {
    SIM_CU_ENTER(cuPointerGetAttribute);
    unsigned type = 0;
    if (!data || attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        SIM_CU_LEAVE(data ? SIM_CUDA_ERROR_NOT_SUPPORTED : SIM_CUDA_ERROR_INVALID_VALUE);
    pthread_rwlock_rdlock(&lock);
    for (const struct range *r = ranges; r && !type; r = r->next)
        if ((uintptr_t)pointer - r->start < r->bytes)
            type = r->pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    pthread_rwlock_unlock(&lock);
    if (!type)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    *(unsigned *)data = type;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    SIM_CU_ENTER(cuMemGetInfo_v2);
    if (!sim_cu_current())
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    if (!free_bytes || !total_bytes)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    pthread_rwlock_rdlock(&lock);
    *total_bytes = memory_total();
    *free_bytes = *total_bytes - memory_in_use(sim_cu_current()->ordinal);
    pthread_rwlock_unlock(&lock);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}
