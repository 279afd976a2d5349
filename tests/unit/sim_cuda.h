/* The doubles of libcuda and libcupti, loaded as the real ones are, on a machine in virtual time: calls move the clock by
 * what they cost, so every time is known. */
#pragma once

#include "sim/cuda/exports.h"
#include "sim/cuda/hook.h"
#include "tests/unit/sim_fixture.h"

#include <dlfcn.h>

static void *libcuda;

/* A function of the double by its exported name. */
#define CU(name) ((__typeof__(&name))dlsym(libcuda, #name))
#define MUST(call) assert_int_equal(call, 0)

static void make_machine(const char *text) {
    make_world(text);
    libcuda = dlopen(HEC_BINARY_DIR "/lib/hec/sim/libcuda.so.1", RTLD_NOW);
    if (!libcuda)
        fail_msg("%s", dlerror());
}

static inline CUcontext make_context(int device) {
    CUcontext context;
    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
    MUST(CU(cuCtxSetCurrent)(context));
    return context;
}

static inline CUfunction make_kernel(const char *image, const char *name) {
    CUmodule module;
    CUfunction function;
    MUST(CU(cuModuleLoadData)(&module, image));
    MUST(CU(cuModuleGetFunction)(&function, module, name));
    return function;
}

static inline void launch(CUfunction function, CUstream stream, int64_t ns) {
    MUST(CU(cuLaunchKernel)(function, 4, 1, 1, 64, 1, 1, 0, stream, (void *[]){&ns}, NULL));
}

static inline int64_t now_ns(void) {
    return sim_world_now_ns(world);
}
