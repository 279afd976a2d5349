/* Where a kernel class stands under the roofline (Williams, Waterman and Patterson, Communications of the ACM 52,
 * 2009), from the utilisation counters of its own that unmixing gives (hec_unmix_solve_counter): no replay, no change
 * to the program.
 *
 *     FLOP/s  = sum over pipes of activity x peak of the pipe's precision
 *     bytes/s = DRAM activity x peak bandwidth
 *     arithmetic intensity = FLOP/s / (bytes/s);  ridge = peak FLOP/s / peak bandwidth
 *
 * Estimates: a pipe is active when it issues, whether or not all lanes compute something that is needed, and an active
 * pipe is taken to work at its peak rate, so FLOP/s are an upper bound. The tensor pipe does not distinguish TF32,
 * FP16, BF16, FP8 and INT8 apart: its precision is what the caller knows of the class (from kernel names), else taken
 * as fp16. */
#pragma once

#include "model/part.h"

#include <stdbool.h>

struct hec_roofline_peaks {
    double flops[HEC_PRECISION_COUNT]; /* FLOP/s (int8: OP/s); 0: no such unit, NAN: unknown */
    double bytes_per_s;                /* of device memory; NAN unknown */
    bool calibrated;                   /* measured on this device; else the vendor's figures */
};

/* The part table's figures; all NAN where part is NULL. */
void hec_roofline_peaks_of(const struct hec_part *part, struct hec_roofline_peaks *out);

/* Shares 0..1 of the time in which a class ran, with 95 % intervals; NAN: not measured. */
struct hec_roofline_share {
    double value, low, high;
};

enum hec_roofline_pipe {
    HEC_PIPE_TENSOR, /* any but FP64 and the integer ones, where those are measured apart */
    HEC_PIPE_TENSOR_FP64,
    HEC_PIPE_TENSOR_INT8,
    HEC_PIPE_FP64,
    HEC_PIPE_FP32,
    HEC_PIPE_FP16,
    HEC_PIPES
};

struct hec_roofline_input {
    struct hec_roofline_share sm_active, occupancy; /* occupancy: resident warps of the maximum, over all SMs */
    struct hec_roofline_share dram, pipe[HEC_PIPES];
    bool tensor_known; /* tensor_precision is known; false: taken as HEC_PRECISION_FP16 */
    enum hec_precision tensor_precision;
};

enum hec_roofline_limit {
    HEC_LIMIT_UNKNOWN,     /* a counter or a peak is missing, or none can be separated from another */
    HEC_LIMIT_MATH,        /* a pipe is active at least 60 % of the time, and more than memory */
    HEC_LIMIT_MEMORY,      /* DRAM is active at least 60 % of the time, and more than any pipe */
    HEC_LIMIT_UNDERFILLED, /* SMs without a warp 30 % of the time, or below 1/8 of the warps where SMs are active */
    HEC_LIMIT_LATENCY,     /* filled, yet neither a pipe nor memory is busy: waiting on dependences, barriers, caches */
    HEC_LIMITS
};

struct hec_roofline_point {
    double flops, flops_low, flops_high;       /* FLOP/s; NAN unknown */
    double bytes_per_s, bytes_low, bytes_high; /* NAN unknown */
    double intensity, intensity_low,
        intensity_high;           /* FLOP a byte; NAN where either is unknown or there is no traffic */
    enum hec_precision precision; /* of the pipe that does most of the FLOP */
    double peak_flops;            /* of it */
    double ridge;                 /* FLOP a byte at which that peak and the bandwidth meet */
    double attainable_flops;      /* min(peak, intensity x bandwidth) */
    double of_attainable;         /* flops / attainable, 0..1 */
    enum hec_roofline_limit limit;
    bool certain; /* the limit is the same all over the intervals */
};

void hec_roofline_place(const struct hec_roofline_input *input, const struct hec_roofline_peaks *peaks,
                        struct hec_roofline_point *out);

const char *hec_roofline_limit_name(enum hec_roofline_limit limit); /* "math", "memory" … stable, used in JSON */
