/* The double of libcuda: contexts. */
#include "sim/cuda/double.h"

#include <stdlib.h>
#include <unistd.h>

#define NULL_STREAM_ID 7u /* as on the device */
#define FIRST_STREAM_ID 13u
#define CONTEXT_BYTES (INT64_C(500) << 20) /* what a context takes on a large device */
#define CREATE_NS 5000000

#define STACK_MAX 16
static __thread CUcontext stack[STACK_MAX]; /* [0] is at the bottom */
static __thread int depth;

CUcontext sim_cu_current(void) {
    return depth ? stack[depth - 1] : NULL;
}

static CUcontext gone; /* destroyed ones */

static CUresult create(CUcontext *result, CUdevice ordinal, bool primary) {
    struct sim_cu_device *device = &sim_cu.devices[ordinal];
    struct CUctx_st *context = calloc(1, sizeof *context);
    int64_t now;
    if (!context)
        return SIM_CUDA_ERROR_OUT_OF_MEMORY;
    sim_cu_spend(CREATE_NS);
    if (sim_context_open(sim_cu.world, device->world_device, device->instance, getpid(), CONTEXT_BYTES, &now) !=
        HEC_OK) {
        free(context);
        return SIM_CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&sim_cu.lock);
    if (!sim_cu.next_stream)
        sim_cu.next_stream = FIRST_STREAM_ID;
    context->id = ++sim_cu.next_context;
    context->ordinal = ordinal;
    context->references = 1;
    context->primary = primary;
    context->null = (struct CUstream_st){.context = context, .id = NULL_STREAM_ID, .blocking = true};
    context->next = sim_cu.contexts;
    sim_cu.contexts = context;
    if (primary)
        device->primary = context;
    pthread_mutex_unlock(&sim_cu.lock);
    *result = context;
    return SIM_CUDA_SUCCESS;
}

/* The memory of a context is never given back: a stale handle is then an error and not a crash. */
static void destroy(CUcontext context) {
    struct sim_cu_device *device = &sim_cu.devices[context->ordinal];
    int64_t now;
    sim_cu_wait_until(sim_cu_context_tail(context));
    pthread_mutex_lock(&sim_cu.lock);
    for (struct CUctx_st **link = &sim_cu.contexts; *link; link = &(*link)->next)
        if (*link == context) {
            *link = context->next;
            context->next = gone;
            gone = context;
            break;
        }
    if (device->primary == context)
        device->primary = NULL;
    pthread_mutex_unlock(&sim_cu.lock);
    sim_context_close(sim_cu.world, device->world_device, getpid(), &now);
    if (sim_cu_current() == context)
        depth--;
}

static bool known(CUcontext context) {
    bool found = false;
    pthread_mutex_lock(&sim_cu.lock);
    for (struct CUctx_st *c = sim_cu.contexts; c; c = c->next)
        found |= c == context;
    pthread_mutex_unlock(&sim_cu.lock);
    return found;
}

static bool valid(CUdevice device) {
    return device >= 0 && device < sim_cu.device_count;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    SIM_CU_ENTER(cuDevicePrimaryCtxRetain);
    if (!context)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!valid(device))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    static pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER;
    CUresult result = SIM_CUDA_SUCCESS;
    pthread_mutex_lock(&creating);
    if ((*context = sim_cu.devices[device].primary))
        (*context)->references++;
    else
        result = create(context, device, true);
    pthread_mutex_unlock(&creating);
    SIM_CU_LEAVE(result);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    SIM_CU_ENTER(cuDevicePrimaryCtxRelease_v2);
    if (!valid(device))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    CUcontext primary = sim_cu.devices[device].primary;
    if (!primary)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    if (--primary->references == 0)
        destroy(primary);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    SIM_CU_ENTER(cuDevicePrimaryCtxGetState);
    if (!valid(device))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    if (!flags || !active)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    *flags = 0;
    *active = sim_cu.devices[device].primary != NULL;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    (void)flags;
    SIM_CU_ENTER(cuCtxCreate_v2);
    if (!context || depth == STACK_MAX)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!valid(device))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_DEVICE);
    CUresult result = create(context, device, false);
    if (result == SIM_CUDA_SUCCESS)
        stack[depth++] = *context;
    SIM_CU_LEAVE(result);
}

SIM_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
    SIM_CU_ENTER(cuCtxDestroy_v2);
    if (!known(context) || context->primary)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    destroy(context);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    SIM_CU_ENTER(cuCtxSetCurrent);
    if (context && !known(context))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    if (depth)
        depth--;
    if (context)
        stack[depth++] = context;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
    SIM_CU_ENTER(cuCtxGetCurrent);
    if (!context)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    *context = sim_cu_current();
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    SIM_CU_ENTER(cuCtxPushCurrent_v2);
    if (depth == STACK_MAX || !known(context))
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    stack[depth++] = context;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    SIM_CU_ENTER(cuCtxPopCurrent_v2);
    if (!depth)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    if (context)
        *context = stack[depth - 1];
    depth--;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    SIM_CU_ENTER(cuCtxGetDevice);
    if (!sim_cu_current())
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    if (!device)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    *device = sim_cu_current()->ordinal;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxSynchronize(void) {
    SIM_CU_ENTER(cuCtxSynchronize);
    CUcontext context = sim_cu_current();
    if (!context)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    sim_cu_synchronize(&scope, sim_cu_context_tail(context), SIM_SYNC_CONTEXT, SIM_STREAM_ALL, 0);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}
