/* The double of libcupti: questions. */
#include "sim/cupti/double.h"

#include "sim/cuda/double.h"

static const struct {
    CUptiResult code;
    const char *name;
} results[] = {
#define SIM_CUPTI_RESULT(code, name) {code, #name},
#include "sim/cupti/results.def"
#undef SIM_CUPTI_RESULT
};

/* CUPTI_API_VERSION of CUDA 11.8, 12.8 and 13.0 (update 1). */
SIM_EXPORT CUptiResult cuptiGetVersion(uint32_t *version) {
    if (!version)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *version = SIM_CUPTI >= 130 ? 130001 : SIM_CUPTI >= 128 ? 26 : 18;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
    if (!text)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].code == result) {
            *text = results[i].name;
            return SIM_CUPTI_SUCCESS;
        }
    return SIM_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **text) {
    return cuptiGetResultString(result, text);
}

SIM_EXPORT CUptiResult cuptiGetLastError(void) {
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    CUptiResult ready = sim_cupti_ready();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    if (!timestamp)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = sim_cupti_time(sim_cupti_now());
    return SIM_CUPTI_SUCCESS;
}

/* The context NULL is the current one in CUPTI; the double wants it by name. */
SIM_EXPORT CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id) {
    if (!context || !id)
        return context ? SIM_CUPTI_ERROR_INVALID_PARAMETER : SIM_CUPTI_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *id) {
    if (!context || !id)
        return context ? SIM_CUPTI_ERROR_INVALID_PARAMETER : SIM_CUPTI_ERROR_INVALID_CONTEXT;
    *id = (uint32_t)context->ordinal;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id) {
    if (!id || (!context && !stream))
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *id = stream ? stream->id : context->null.id;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id) {
    (void)per_thread;
    return cuptiGetStreamId(context, stream, id);
}

SIM_EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id) {
    if (!graph || !id)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *id = graph->id;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t *id) {
    if (!exec || !id)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *id = exec->id;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetThreadIdType(int *type) {
    if (!type)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *type = sim_cupti.thread_id_type;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiSetThreadIdType(int type) {
    if (type != 0 && type != 1)
        return SIM_CUPTI_ERROR_NOT_SUPPORTED;
    sim_cupti.thread_id_type = type;
    return SIM_CUPTI_SUCCESS;
}
