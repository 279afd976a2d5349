#include "diagnose/watts/roofline.h"

#include <math.h>

/* From which utilisation on a unit is taken to hold a kernel up: 60 %, as in Nsight Compute's "speed of light" rules.
 * */
#define BUSY 0.6
#define SM_FEW 0.7      /* of the time in which SMs have a warp; ours */
#define WARPS_FEW 0.125 /* of the warps that fit, where there are any: 8 of 64, one block of 256 threads an SM; ours */

static const char *const limit_names[HEC_LIMITS] = {"unknown", "math", "memory", "underfilled", "latency"};

static const enum hec_precision pipe_precision[HEC_PIPES] = {
    [HEC_PIPE_TENSOR] = HEC_PRECISION_FP16, /* unless the caller knows better */
    [HEC_PIPE_TENSOR_FP64] = HEC_PRECISION_FP64_TENSOR,
    [HEC_PIPE_TENSOR_INT8] = HEC_PRECISION_INT8,
    [HEC_PIPE_FP64] = HEC_PRECISION_FP64,
    [HEC_PIPE_FP32] = HEC_PRECISION_FP32,
    [HEC_PIPE_FP16] = HEC_PRECISION_FP32, /* see pipe_peak */
};

void hec_roofline_peaks_of(const struct hec_part *part, struct hec_roofline_peaks *out) {
    for (int i = 0; i < HEC_PRECISION_COUNT; i++)
        out->flops[i] = part ? part->peak_tflops[i] * 1e12 : NAN;
    out->bytes_per_s = part ? part->memory_gb_per_s * 1e9 : NAN;
    out->calibrated = false;
}

const char *hec_roofline_limit_name(enum hec_roofline_limit limit) {
    return (unsigned)limit < HEC_LIMITS ? limit_names[limit] : limit_names[0];
}

static enum hec_precision precision_of(const struct hec_roofline_input *input, int pipe) {
    return pipe == HEC_PIPE_TENSOR && input->tensor_known ? input->tensor_precision : pipe_precision[pipe];
}

/* Peak of a pipe. Packed half precision on the vector pipe is twice FP32's on NVIDIA's data-centre parts since GP100
 * (CUDA Programming Guide, throughput of native arithmetic instructions, 9.0: 256 against 128 a cycle and SM). */
static double pipe_peak(const struct hec_roofline_input *input, const struct hec_roofline_peaks *peaks, int pipe) {
    return peaks->flops[precision_of(input, pipe)] * (pipe == HEC_PIPE_FP16 ? 2 : 1);
}

/* at: 0 the value, -1 the low end, 1 the high end. */
static double end_of(const struct hec_roofline_share *share, int at) {
    return at < 0 ? share->low : at > 0 ? share->high : share->value;
}

/* The busiest pipe; NAN when none was measured. */
static double math_at(const struct hec_roofline_input *input, int at) {
    double most = NAN;
    for (int i = 0; i < HEC_PIPES; i++)
        most = fmax(most, end_of(&input->pipe[i], at));
    return most;
}

static enum hec_roofline_limit limit_of(double math, double dram, double sm, double occupancy) {
    if (math >= BUSY && !(dram > math))
        return HEC_LIMIT_MATH;
    if (dram >= BUSY)
        return HEC_LIMIT_MEMORY;
    if (sm < SM_FEW || occupancy < WARPS_FEW * sm)
        return HEC_LIMIT_UNDERFILLED;
    if (isnan(math) || isnan(dram) || isnan(sm))
        return HEC_LIMIT_UNKNOWN;
    return HEC_LIMIT_LATENCY;
}

static void find_limit(const struct hec_roofline_input *input, struct hec_roofline_point *out) {
    out->limit = limit_of(math_at(input, 0), input->dram.value, input->sm_active.value, input->occupancy.value);
    out->certain = out->limit != HEC_LIMIT_UNKNOWN;
    for (int corner = 0; corner < 16; corner++) {
        enum hec_roofline_limit there =
            limit_of(math_at(input, corner & 1 ? 1 : -1), end_of(&input->dram, corner & 2 ? 1 : -1),
                     end_of(&input->sm_active, corner & 4 ? 1 : -1), end_of(&input->occupancy, corner & 8 ? 1 : -1));
        out->certain = out->certain && there == out->limit;
    }
}

void hec_roofline_place(const struct hec_roofline_input *input, const struct hec_roofline_peaks *peaks,
                        struct hec_roofline_point *out) {
    double most = -1;
    bool any = false;
    *out = (struct hec_roofline_point){.peak_flops = NAN,
                                       .intensity = NAN,
                                       .intensity_low = NAN,
                                       .intensity_high = NAN,
                                       .ridge = NAN,
                                       .attainable_flops = NAN,
                                       .of_attainable = NAN,
                                       .precision = precision_of(input, HEC_PIPE_TENSOR)};
    for (int i = 0; i < HEC_PIPES; i++) {
        double peak = pipe_peak(input, peaks, i);
        if (isnan(input->pipe[i].value) || (peak == 0 && input->pipe[i].value == 0))
            continue;
        any = true;
        out->flops += input->pipe[i].value * peak; /* NAN where an active pipe's peak is unknown */
        out->flops_low += input->pipe[i].low * peak;
        out->flops_high += input->pipe[i].high * peak;
        if (input->pipe[i].value * peak > most) {
            most = input->pipe[i].value * peak;
            out->precision = precision_of(input, i);
            out->peak_flops = peak;
        }
    }
    if (!any)
        out->flops = out->flops_low = out->flops_high = NAN;
    out->bytes_per_s = input->dram.value * peaks->bytes_per_s;
    out->bytes_low = input->dram.low * peaks->bytes_per_s;
    out->bytes_high = input->dram.high * peaks->bytes_per_s;
    if (out->bytes_per_s > 0) {
        out->intensity = out->flops / out->bytes_per_s;
        out->intensity_low = out->flops_low / out->bytes_high;
        out->intensity_high = out->bytes_low > 0 ? out->flops_high / out->bytes_low : INFINITY;
    }
    out->ridge = out->peak_flops / peaks->bytes_per_s;
    if (!isnan(out->intensity) && !isnan(out->peak_flops)) {
        out->attainable_flops = fmin(out->peak_flops, out->intensity * peaks->bytes_per_s);
        out->of_attainable = out->attainable_flops > 0 ? fmin(out->flops / out->attainable_flops, 1) : NAN;
    }
    find_limit(input, out);
}
