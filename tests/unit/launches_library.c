/* For test_tracer_launches: a libcudart of whose calls the arguments show in the result. */
#include "launches_library.h"

#include <semaphore.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT uint64_t cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
                                 size_t shared, void *stream) {
    const uint64_t parts[] = {(uintptr_t)function,  grid.x, grid.y,           grid.z, block.x, block.y, block.z,
                              (uintptr_t)arguments, shared, (uintptr_t)stream};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        sum = sum * 31 + parts[i];
    return sum;
}

/* All registers that carry arguments, some of the stack, and a result in memory. */
EXPORT struct launches_many cudaLaunchKernelExC(double a, double b, double c, double d, double e, double f, double g,
                                                double h, double i, long j, long k, long l, long m, long n, long o,
                                                long p, long q, long r, struct launches_many s) {
    struct launches_many out = {{a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i,
                                 (double)(j + 2 * k + 3 * l + 4 * m + 5 * n + 6 * o + 7 * p + 8 * q + 9 * r),
                                 s.value[0] + 2 * s.value[1] + 3 * s.value[2] + 4 * s.value[3], 0}};
    return out;
}

EXPORT int cudaGraphLaunch(void *graph, void *stream) {
    return graph == stream ? 5 : 6;
}

EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
    return to == from && stream == 0 ? (int)bytes + kind : -1;
}

EXPORT int cudaStreamSynchronize(void *stream) {
    if (stream)
        sem_wait(stream);
    return stream ? 8 : 7;
}

/* The slots of the library itself are not for counting. */
EXPORT uint64_t launches_inner(void) {
    struct dim3 one = {1, 1, 1};
    return cudaLaunchKernel(0, one, one, 0, 0, 0);
}
