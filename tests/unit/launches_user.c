/* For test_tracer_launches: a module that calls its libcudart. */
#include "launches_library.h"

#define EXPORT __attribute__((visibility("default")))

/* 0: the arguments arrived. */
EXPORT uint64_t user_launch(int number) {
    unsigned n = (unsigned)number;
    struct dim3 grid = {n + 1, n + 2, n + 3}, block = {n + 4, n + 5, n + 6};
    const uint64_t parts[] = {n, grid.x, grid.y, grid.z, block.x, block.y, block.z, n + 7, n + 8, n + 9};
    uint64_t sum = 0;
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        sum = sum * 31 + parts[i];
    return sum - cudaLaunchKernel((void *)(uintptr_t)n, grid, block, (void **)(uintptr_t)(n + 7), n + 8,
                                  (void *)(uintptr_t)(n + 9));
}

EXPORT int user_many(void) {
    struct launches_many given = {{1, 2, 3, 4}};
    struct launches_many got = cudaLaunchKernelExC(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, given);
    return got.value[0] == 285 && got.value[1] == 285 && got.value[2] == 30;
}

EXPORT int user_graph(void) {
    return cudaGraphLaunch(0, 0);
}

EXPORT int user_copy(void) {
    return cudaMemcpyAsync(0, 0, 100, 1, 0);
}

EXPORT int user_wait(void *semaphore) {
    return cudaStreamSynchronize(semaphore);
}
