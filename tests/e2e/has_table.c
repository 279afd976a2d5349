/* A module with a table of the driver's functions that it fills before CUDA begins, as a runtime that is linked into an
 * extension of Python's does. */
#include "sim/cuda/exports.h"

#include <dlfcn.h>
#include <stddef.h>

static __typeof__(&cuLaunchKernel) volatile table[1];

__attribute__((constructor)) static void look_up(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;
    __typeof__(&cuGetProcAddress_v2) get = driver ? (__typeof__(get))dlsym(driver, "cuGetProcAddress_v2") : NULL;
    if (get && get("cuLaunchKernel", &found, 13000, 0, NULL) == 0)
        table[0] = (__typeof__(&cuLaunchKernel))found;
}

__attribute__((visibility("default"))) __typeof__(cuLaunchKernel) launch_by_table;
CUresult launch_by_table(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                         unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
    return table[0](function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
