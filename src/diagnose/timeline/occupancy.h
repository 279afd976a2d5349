/* Inside src/diagnose: how many warps of a kernel fit on a streaming multiprocessor, by the rules of NVIDIA's occupancy
 * calculator. An upper limit: the grid may be smaller, the shared memory configured smaller. */
#pragma once

#include "model/trace.h"

struct hec_occupancy {
    double limit;        /* 0..1; NAN: unknown device or launch configuration */
    const char *limiter; /* "registers", "shared", "block" (blocks an SM), "warps"; "" unknown */
    int blocks;          /* on an SM at once; 0: unknown */
};

struct hec_occupancy hec_occupancy_of(int cuda_major, int cuda_minor, const struct hec_kernel *kernel);
