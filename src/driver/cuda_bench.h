/* Measure what a device reaches, with the kernels of cuda_kernel.h: the self-test behind `hec calibrate`. It takes about
 * 20 s and some GiB of device memory, and changes no setting of the device. */
#pragma once

#include "driver/cuda.h"
#include "model/peaks.h"

#include <stdbool.h>

struct hec_cuda_bench {
    const struct hec_cuda *cuda; /* cuInit was called */
    int device;                  /* CUDA's ordinal */
    void *context;               /* of the functions below, which may be NULL */
    /* The driver lowers the clocks now, because of power or temperature. */
    bool (*throttled)(void *context);
    /* The device's watts over about so many ns, with nothing running; NAN: unknown. */
    double (*idle_watts)(void *context, int64_t ns);
    /* A square wave of load: it begins or ends at t_ns; meanwhile, called every few ms, and after it. sensor: the figure of
     * kind in ns that the power readings of the wave give; NAN: none. NULL: the device reports no power. */
    void (*load)(void *context, int64_t t_ns);
    void (*watch)(void *context);
    double (*sensor)(void *context, enum hec_peak_kind kind);
    /* Wait; NULL: nanosleep. */
    void (*pause)(void *context, int64_t ns);
    /* A figure that could not be had, and why; a step begins (kind, NULL). */
    void (*report)(void *context, enum hec_peak_kind kind, const char *why);
};

/* Fill the figures, and capability, sms and sm_max_mhz, of an initialised *peaks. A figure that this device or driver
 * cannot give, or whose kernel computed a wrong result, stays unknown and is reported. Fails only when the device
 * cannot be used at all or is lost. */
int hec_cuda_bench(const struct hec_cuda_bench *bench, struct hec_peaks *peaks, struct hec_why *why);
