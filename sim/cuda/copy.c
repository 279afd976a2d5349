/* The double of libcuda: copies and memsets. */
#include "sim/cuda/double.h"

static CUresult submit(const struct sim_cu_scope *scope, CUstream handle, struct sim_work work) {
    CUstream stream = sim_cu_stream(handle);
    int64_t end;
    if (!stream)
        return sim_cu_current() ? SIM_CUDA_ERROR_INVALID_HANDLE : SIM_CUDA_ERROR_INVALID_CONTEXT;
    if (!work.bytes)
        return SIM_CUDA_SUCCESS;
    CUresult result = sim_cu_submit(stream, &work, scope, &end);
    /* pageable memory is staged by the host, so the call lasts as long as the copy */
    bool staged = work.kind == SIM_OP_COPY && (work.from == SIM_MEMORY_PAGEABLE || work.to == SIM_MEMORY_PAGEABLE);
    bool waits = work.kind == SIM_OP_COPY && !work.async && work.copy != SIM_COPY_DTOD;
    if (result == SIM_CUDA_SUCCESS && (staged || waits))
        sim_cu_wait_until(end);
    return result;
}

static CUresult to_device(const struct sim_cu_scope *scope, const void *from, size_t bytes, CUstream stream,
                          bool async) {
    return submit(scope, stream,
                  (struct sim_work){.kind = SIM_OP_COPY,
                                    .bytes = bytes,
                                    .copy = SIM_COPY_HTOD,
                                    .from = sim_cu_host_memory(from),
                                    .to = SIM_MEMORY_DEVICE,
                                    .async = async});
}

static CUresult to_host(const struct sim_cu_scope *scope, const void *to, size_t bytes, CUstream stream, bool async) {
    return submit(scope, stream,
                  (struct sim_work){.kind = SIM_OP_COPY,
                                    .bytes = bytes,
                                    .copy = SIM_COPY_DTOH,
                                    .from = SIM_MEMORY_DEVICE,
                                    .to = sim_cu_host_memory(to),
                                    .async = async});
}

static CUresult on_device(const struct sim_cu_scope *scope, size_t bytes, CUstream stream, bool async) {
    return submit(scope, stream,
                  (struct sim_work){.kind = SIM_OP_COPY,
                                    .bytes = bytes,
                                    .copy = SIM_COPY_DTOD,
                                    .from = SIM_MEMORY_DEVICE,
                                    .to = SIM_MEMORY_DEVICE,
                                    .async = async});
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    (void)to;
    SIM_CU_ENTER(cuMemcpyHtoD_v2);
    SIM_CU_LEAVE(to_device(&scope, from, bytes, NULL, false));
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    (void)from;
    SIM_CU_ENTER(cuMemcpyDtoH_v2);
    SIM_CU_LEAVE(to_host(&scope, to, bytes, NULL, false));
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    (void)to, (void)from;
    SIM_CU_ENTER(cuMemcpyDtoD_v2);
    SIM_CU_LEAVE(on_device(&scope, bytes, NULL, false));
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    (void)to;
    SIM_CU_ENTER(cuMemcpyHtoDAsync_v2);
    SIM_CU_LEAVE(to_device(&scope, from, bytes, stream, true));
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)from;
    SIM_CU_ENTER(cuMemcpyDtoHAsync_v2);
    SIM_CU_LEAVE(to_host(&scope, to, bytes, stream, true));
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)to, (void)from;
    SIM_CU_ENTER(cuMemcpyDtoDAsync_v2);
    SIM_CU_LEAVE(on_device(&scope, bytes, stream, true));
}

SIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                      size_t bytes, CUstream stream) {
    (void)to, (void)from;
    SIM_CU_ENTER(cuMemcpyPeerAsync);
    if (!to_context || !from_context)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_CONTEXT);
    SIM_CU_LEAVE(submit(&scope, stream,
                        (struct sim_work){.kind = SIM_OP_COPY,
                                          .bytes = bytes,
                                          .copy = SIM_COPY_PTOP,
                                          .from = SIM_MEMORY_DEVICE,
                                          .to = SIM_MEMORY_DEVICE,
                                          .peer = (uint32_t)to_context->ordinal,
                                          .async = true}));
}

static CUresult set(const struct sim_cu_scope *scope, unsigned value, size_t bytes, CUstream stream, bool async) {
    return submit(scope, stream,
                  (struct sim_work){.kind = SIM_OP_MEMSET, .bytes = bytes, .value = value, .async = async});
}

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    (void)to;
    SIM_CU_ENTER(cuMemsetD8_v2);
    SIM_CU_LEAVE(set(&scope, value, count, NULL, false));
}

SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    (void)to;
    SIM_CU_ENTER(cuMemsetD32_v2);
    SIM_CU_LEAVE(set(&scope, value, 4 * count, NULL, false));
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    (void)to;
    SIM_CU_ENTER(cuMemsetD8Async);
    SIM_CU_LEAVE(set(&scope, value, count, stream, true));
}

SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    (void)to;
    SIM_CU_ENTER(cuMemsetD32Async);
    SIM_CU_LEAVE(set(&scope, value, 4 * count, stream, true));
}
