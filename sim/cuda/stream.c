/* The double of libcuda: streams and events. */
#include "sim/cuda/double.h"

#include <stdlib.h>

CUstream sim_cu_stream(CUstream handle) {
    CUcontext context = sim_cu_current();
    if (!context)
        return NULL;
    /* 1 and 2 are the handles of the legacy and the per-thread default stream */
    if ((uintptr_t)handle <= 2)
        return &context->null;
    CUstream found = NULL;
    pthread_mutex_lock(&sim_cu.lock);
    for (CUcontext c = sim_cu.contexts; c && !found; c = c->next)
        for (CUstream s = c->streams; s && !found; s = s->next)
            if (s == handle)
                found = s;
    pthread_mutex_unlock(&sim_cu.lock);
    return found;
}

static CUresult no_stream(void) {
    return sim_cu_current() ? SIM_CUDA_ERROR_INVALID_HANDLE : SIM_CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult create(CUstream *stream, unsigned flags) {
    CUcontext context = sim_cu_current();
    if (!context)
        return SIM_CUDA_ERROR_INVALID_CONTEXT;
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    CUstream made = calloc(1, sizeof *made);
    if (!made)
        return SIM_CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&sim_cu.lock);
    made->context = context;
    made->id = sim_cu.next_stream++;
    made->blocking = flags == 0;
    made->next = context->streams;
    context->streams = made;
    pthread_mutex_unlock(&sim_cu.lock);
    *stream = made;
    return SIM_CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    SIM_CU_ENTER(cuStreamCreate);
    SIM_CU_LEAVE(create(stream, flags));
}

SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    (void)priority;
    SIM_CU_ENTER(cuStreamCreateWithPriority);
    SIM_CU_LEAVE(create(stream, flags));
}

SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    SIM_CU_ENTER(cuStreamDestroy_v2);
    CUstream found = sim_cu_stream(stream);
    if (!found || found == &found->context->null)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    pthread_mutex_lock(&sim_cu.lock);
    for (CUstream *link = &found->context->streams; *link; link = &(*link)->next)
        if (*link == found) {
            *link = found->next;
            break;
        }
    /* its work goes on */
    if (found->tail_ns > found->context->null.tail_ns)
        found->context->null.tail_ns = found->tail_ns;
    pthread_mutex_unlock(&sim_cu.lock);
    free(found);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
    SIM_CU_ENTER(cuStreamSynchronize);
    CUstream stream = sim_cu_stream(handle);
    if (!stream)
        SIM_CU_LEAVE(no_stream());
    if (stream->capture)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    sim_cu_synchronize(&scope, sim_cu_stream_tail(stream), SIM_SYNC_STREAM, stream->id, 0);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuStreamQuery(CUstream handle) {
    SIM_CU_ENTER(cuStreamQuery);
    CUstream stream = sim_cu_stream(handle);
    if (!stream)
        SIM_CU_LEAVE(no_stream());
    SIM_CU_LEAVE(sim_cu_stream_tail(stream) > sim_cu_now() ? SIM_CUDA_ERROR_NOT_READY : SIM_CUDA_SUCCESS);
}

/* ---- events ---- */

SIM_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
    SIM_CU_ENTER(cuEventCreate);
    if (!event)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!sim_cu_current())
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    CUevent made = calloc(1, sizeof *made);
    if (!made)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_OUT_OF_MEMORY);
    made->at_ns = -1;
    made->timing = !(flags & CU_EVENT_DISABLE_TIMING);
    made->id = __atomic_add_fetch(&sim_cu.next_event, 1, __ATOMIC_RELAXED);
    *event = made;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    SIM_CU_ENTER(cuEventDestroy_v2);
    if (!event)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    free(event);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventRecord(CUevent event, CUstream handle) {
    SIM_CU_ENTER(cuEventRecord);
    CUstream stream = sim_cu_stream(handle);
    if (!event || !stream)
        SIM_CU_LEAVE(event ? no_stream() : SIM_CUDA_ERROR_INVALID_HANDLE);
    int64_t now = sim_cu_now(), tail = sim_cu_stream_tail(stream);
    __atomic_store_n(&event->at_ns, tail > now ? tail : now, __ATOMIC_RELEASE);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

static int64_t reached_ns(CUevent event) {
    return __atomic_load_n(&event->at_ns, __ATOMIC_ACQUIRE);
}

SIM_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
    (void)flags;
    SIM_CU_ENTER(cuStreamWaitEvent);
    CUstream stream = sim_cu_stream(handle);
    if (!event || !stream)
        SIM_CU_LEAVE(event ? no_stream() : SIM_CUDA_ERROR_INVALID_HANDLE);
    int64_t at = reached_ns(event);
    pthread_mutex_lock(&sim_cu.lock);
    if (at > stream->tail_ns)
        stream->tail_ns = at;
    pthread_mutex_unlock(&sim_cu.lock);
    /* the host goes on: the record shows the call */
    sim_cu_synchronize(&scope, 0, SIM_SYNC_STREAM_WAIT, stream->id, event->id);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent event) {
    SIM_CU_ENTER(cuEventSynchronize);
    if (!event)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    sim_cu_synchronize(&scope, reached_ns(event), SIM_SYNC_EVENT, SIM_STREAM_ALL, event->id);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventQuery(CUevent event) {
    SIM_CU_ENTER(cuEventQuery);
    if (!event)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    SIM_CU_LEAVE(reached_ns(event) > sim_cu_now() ? SIM_CUDA_ERROR_NOT_READY : SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    SIM_CU_ENTER(cuEventElapsedTime);
    if (!ms)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!start || !end || !start->timing || !end->timing || reached_ns(start) < 0 || reached_ns(end) < 0)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    if (reached_ns(start) > sim_cu_now() || reached_ns(end) > sim_cu_now())
        SIM_CU_LEAVE(SIM_CUDA_ERROR_NOT_READY);
    *ms = (float)((double)(reached_ns(end) - reached_ns(start)) * 1e-6);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}
