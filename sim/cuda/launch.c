/* The double of libcuda: modules, functions and launches.
 *
 * The image of a module is text, one function a line: NAME NANOSECONDS|- [ACTIVITY [REGISTERS [SHARED_BYTES]]]
 * "-": the first parameter of each launch is the duration, an int64_t. ACTIVITY is a name of sim/activities.def. A
 * function that the image does not name exists too, and lasts 5 us. Any other image is taken for one without a line. */
#include "sim/cuda/double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_NS 5000
#define DEFAULT_REGISTERS 32

static struct CUmod_st *modules;

/* Functions and their names live for ever: records refer to them. So do modules. */
static struct CUfunc_st *make(struct CUmod_st *module, const char *name, int64_t duration_ns,
                              enum sim_activity activity, unsigned registers, unsigned shared) {
    struct CUfunc_st *function = calloc(1, sizeof *function);
    if (!function || !(function->name = strdup(name))) {
        free(function);
        return NULL;
    }
    function->duration_ns = duration_ns;
    function->activity = activity;
    function->registers = registers;
    function->static_shared_bytes = shared;
    function->next = module->functions;
    module->functions = function;
    return function;
}

static CUresult add_line(struct CUmod_st *module, const char *line) {
    char name[512], time[32], activity[64] = "elementwise";
    unsigned registers = DEFAULT_REGISTERS, shared = 0;
    if (sscanf(line, "%511s %31s %63s %u %u", name, time, activity, &registers, &shared) < 2)
        return SIM_CUDA_SUCCESS;
    enum sim_activity found = sim_activity_find(activity);
    if (found == SIM_ACTIVITY_COUNT)
        return SIM_CUDA_ERROR_INVALID_IMAGE;
    int64_t duration = strcmp(time, "-") == 0 ? -1 : atoll(time);
    return make(module, name, duration, found, registers, shared) ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_text(const char *image) {
    for (int i = 0; i < 4; i++)
        if (image[i] != '\n' && (image[i] < ' ' || image[i] > '~'))
            return image[i] == '\0' && i > 0;
    return true;
}

static CUresult load(CUmodule *result, const void *image) {
    if (!sim_cu_current())
        return SIM_CUDA_ERROR_INVALID_CONTEXT;
    struct CUmod_st *module = result && image ? calloc(1, sizeof *module) : NULL;
    if (!module)
        return result && image ? SIM_CUDA_ERROR_OUT_OF_MEMORY : SIM_CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_cu.lock);
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&sim_cu.lock);
    CUresult status = SIM_CUDA_SUCCESS;
    char *text = is_text(image) ? strdup(image) : NULL, *rest = text;
    while (rest && *rest && status == SIM_CUDA_SUCCESS)
        status = add_line(module, strsep(&rest, "\n"));
    free(text);
    *result = module;
    return status;
}

SIM_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    SIM_CU_ENTER(cuModuleLoadData);
    SIM_CU_LEAVE(load(module, image));
}

SIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                                       void **values) {
    (void)count, (void)options, (void)values;
    SIM_CU_ENTER(cuModuleLoadDataEx);
    SIM_CU_LEAVE(load(module, image));
}

SIM_EXPORT CUresult cuModuleUnload(CUmodule module) {
    SIM_CU_ENTER(cuModuleUnload);
    SIM_CU_LEAVE(module ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_INVALID_HANDLE);
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction *result, CUmodule module, const char *name) {
    SIM_CU_ENTER(cuModuleGetFunction);
    if (!result || !name)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!module)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    pthread_mutex_lock(&sim_cu.lock);
    struct CUfunc_st *function = module->functions;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    if (!function)
        function = make(module, name, DEFAULT_NS, SIM_ELEMENTWISE, DEFAULT_REGISTERS, 0);
    pthread_mutex_unlock(&sim_cu.lock);
    *result = function;
    SIM_CU_LEAVE(function ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_OUT_OF_MEMORY);
}

/* Attributes by NVIDIA's number. */
SIM_EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    SIM_CU_ENTER(cuFuncGetAttribute);
    if (!function)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    if (!value || attribute < 0 || attribute > 7)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    const int values[] = {1024, (int)function->static_shared_bytes, 0, 0, (int)function->registers, 90, 90, 0};
    *value = values[attribute];
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

CUresult sim_cu_kernel(const CUDA_KERNEL_NODE_PARAMS *p, struct sim_work *work) {
    if (!p->func)
        return SIM_CUDA_ERROR_INVALID_HANDLE;
    if (!p->gridDimX || !p->gridDimY || !p->gridDimZ || !p->blockDimX || !p->blockDimY || !p->blockDimZ ||
        (uint64_t)p->blockDimX * p->blockDimY * p->blockDimZ > 1024)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    int64_t duration = p->func->duration_ns;
    if (duration < 0) {
        if (!p->kernelParams || !p->kernelParams[0])
            return SIM_CUDA_ERROR_INVALID_VALUE;
        memcpy(&duration, p->kernelParams[0], sizeof duration);
    }
    *work = (struct sim_work){.kind = SIM_OP_KERNEL,
                              .function = p->func,
                              .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                              .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                              .dynamic_shared_bytes = p->sharedMemBytes,
                              .duration_ns = duration > 0 ? duration : 1};
    return SIM_CUDA_SUCCESS;
}

static CUresult launch(const struct sim_cu_scope *scope, const CUDA_KERNEL_NODE_PARAMS *parameters, CUstream handle) {
    CUstream stream = sim_cu_stream(handle);
    struct sim_work work;
    int64_t end;
    if (!stream)
        return sim_cu_current() ? SIM_CUDA_ERROR_INVALID_HANDLE : SIM_CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = sim_cu_kernel(parameters, &work);
    return result == SIM_CUDA_SUCCESS ? sim_cu_submit(stream, &work, scope, &end) : result;
}

SIM_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                   CUstream stream, void **parameters, void **extra) {
    SIM_CU_ENTER(cuLaunchKernel);
    SIM_CU_LEAVE(launch(&scope,
                        &(CUDA_KERNEL_NODE_PARAMS){function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                   shared_bytes, parameters, extra},
                        stream));
}

SIM_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra) {
    SIM_CU_ENTER(cuLaunchKernelEx);
    if (!c)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    SIM_CU_LEAVE(launch(&scope,
                        &(CUDA_KERNEL_NODE_PARAMS){function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                                                   c->blockDimY, c->blockDimZ, c->sharedMemBytes, parameters, extra},
                        c->hStream));
}
