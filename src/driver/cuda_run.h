/* Inside src/driver/cuda*: one timed piece of work on the device. */
#pragma once

#include "base/clock.h"
#include "driver/cuda_bench.h"
#include "driver/cuda_kernel.h"

struct cuda_run {
    const struct hec_cuda_bench *bench;
    const struct hec_cuda *cuda;
    hec_cuda_context context;
    hec_cuda_event start, end;
    uint64_t out; /* device memory for what threads write */
    double *copy; /* the same here */
    int capability, sms, l2_bytes;
    int error; /* the context is of no more use */
    struct hec_why why;
};

/* Make the context current and take what every measurement needs; cuda_run_end after a failure too. */
int cuda_run_begin(struct cuda_run *run, struct hec_why *why);
void cuda_run_end(struct cuda_run *run);
void cuda_run_pause(const struct cuda_run *run, int64_t ns);

/* HEC_ERR_UNSUPPORTED: this driver does not take the text. */
int cuda_run_module(const struct cuda_run *run, const char *ptx, hec_cuda_module *module, struct hec_why *why);

struct cuda_launch {
    const struct cuda_run *run;
    hec_cuda_function function;
    unsigned blocks, threads;
    void *parameters[4];
};
int cuda_run_launch(const struct cuda_launch *launch); /* NVIDIA's code */

enum { CUDA_RUNS = 9, CUDA_TIMED_RUNS = 16 };
struct cuda_timed {
    int (*launch)(void *context, unsigned repeat); /* put one piece of work into the null stream; NVIDIA's code */
    void *context;
    int runs;                   /* at most CUDA_TIMED_RUNS */
    double ms[CUDA_TIMED_RUNS]; /* of one piece (a host figure: ns) */
    bool throttled;
};

/* Warm up, then `runs` bursts of about 5 ms with pauses between, so that the power limit does not lower the clocks. */
int cuda_run_timed(struct cuda_run *run, struct cuda_timed *timed, struct hec_why *why);
/* The figure: work / time (work NAN: the time itself), median and extremes. */
void cuda_run_keep(struct cuda_timed *timed, double work, const char *method, struct hec_peak *peak);

/* Wait, then compare what `threads` threads wrote. HEC_ERR_CORRUPT: it is not what it must be. */
int cuda_run_check(struct cuda_run *run, unsigned threads, double expected, struct hec_why *why);

/* Check, then measure, an arithmetic kernel: bursts, and without a pause. */
int cuda_run_arithmetic(struct cuda_run *run, const struct hec_cuda_kernel *kernel, hec_cuda_module module,
                        struct hec_peak *peak, struct hec_why *why);
