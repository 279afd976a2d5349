/* Calls of the library for test_tracer_launches; of CUDA's they have only the names. */
#ifndef HEC_TESTS_LAUNCHES_LIBRARY_H
#define HEC_TESTS_LAUNCHES_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

struct dim3 {
    unsigned x, y, z;
};
struct launches_many {
    double value[4];
};

uint64_t cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                          void *stream);
struct launches_many cudaLaunchKernelExC(double a, double b, double c, double d, double e, double f, double g, double h,
                                         double i, long j, long k, long l, long m, long n, long o, long p, long q,
                                         long r, struct launches_many s);
int cudaGraphLaunch(void *graph, void *stream);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamSynchronize(void *stream);
uint64_t launches_inner(void);

/* The user's. */
uint64_t user_launch(int number);
int user_many(void);
int user_graph(void);
int user_copy(void);
int user_wait(void *semaphore);

#endif
