/* Where a class with known counters stands under the roofline. */
#include "diagnose/watts/roofline.h"
#include "unit.h"

#define assert_same(a, b) assert_near(a, b, 1e-9 * fabs(b))

static struct hec_roofline_share share(double value, double half) {
    return (struct hec_roofline_share){value, fmax(value - half, 0), fmin(value + half, 1)};
}

static struct hec_roofline_input input(double tensor, double fp32, double dram, double sm, double occupancy) {
    struct hec_roofline_input in = {
        .sm_active = share(sm, 0.02), .occupancy = share(occupancy, 0.01), .dram = share(dram, 0.02)};
    for (int i = 0; i < HEC_PIPES; i++)
        in.pipe[i] = share(0, 0);
    in.pipe[HEC_PIPE_TENSOR] = share(tensor, 0.02);
    in.pipe[HEC_PIPE_FP32] = share(fp32, 0.02);
    return in;
}

static const struct hec_roofline_peaks h200 = {.flops = {34e12, 67e12, 67e12, 494.5e12, 989.5e12, 1979e12, 1979e12, 0},
                                               .bytes_per_s = 4800e9};

static enum hec_roofline_limit limit(struct hec_roofline_input in, bool certain) {
    struct hec_roofline_point p;
    hec_roofline_place(&in, &h200, &p);
    assert_int_equal(p.certain, certain);
    return p.limit;
}

TEST(test_limits) {
    assert_int_equal(limit(input(0.85, 0.05, 0.3, 0.99, 0.12), true), HEC_LIMIT_MATH); /* GEMM: few warps, busy pipe */
    assert_int_equal(limit(input(0, 0.1, 0.9, 0.99, 0.8), true), HEC_LIMIT_MEMORY);
    assert_int_equal(limit(input(0.1, 0, 0.1, 0.3, 0.1), true), HEC_LIMIT_UNDERFILLED);
    assert_int_equal(limit(input(0.1, 0, 0.1, 0.99, 0.05), true), HEC_LIMIT_UNDERFILLED);
    assert_int_equal(limit(input(0.2, 0.2, 0.3, 0.99, 0.6), true), HEC_LIMIT_LATENCY);
    assert_int_equal(limit(input(0.61, 0, 0.3, 0.99, 0.6), false), HEC_LIMIT_MATH); /* 0.59 is in the interval */
    assert_int_equal(limit(input(0.7, 0, 0.71, 0.99, 0.6), false), HEC_LIMIT_MEMORY);
}

TEST(test_missing) {
    struct hec_roofline_input in = input(0.2, 0.2, NAN, 0.99, 0.6);
    struct hec_roofline_point p;
    in.dram = (struct hec_roofline_share){NAN, NAN, NAN};
    assert_int_equal(limit(in, false), HEC_LIMIT_UNKNOWN);
    in.pipe[HEC_PIPE_TENSOR] = share(0.9, 0.01);
    assert_int_equal(limit(in, true), HEC_LIMIT_MATH); /* whatever the memory does, a pipe at 90 % is at its limit */
    hec_roofline_place(&in, &h200, &p);
    assert_true(isnan(p.bytes_per_s) && isnan(p.intensity) && isnan(p.of_attainable));
    for (int i = 0; i < HEC_PIPES; i++)
        in.pipe[i] = (struct hec_roofline_share){NAN, NAN, NAN};
    hec_roofline_place(&in, &h200, &p);
    assert_true(isnan(p.flops) && isnan(p.flops_low) && isnan(p.peak_flops) && isnan(p.ridge));
    assert_int_equal(p.limit, HEC_LIMIT_UNKNOWN);
}

TEST(test_point) {
    struct hec_roofline_input in = input(0.5, 0.1, 0.25, 0.99, 0.5);
    struct hec_roofline_point p;
    hec_roofline_place(&in, &h200, &p);
    assert_same(p.flops, 0.5 * 989.5e12 + 0.1 * 67e12);
    assert_same(p.bytes_per_s, 1200e9);
    assert_same(p.intensity, p.flops / 1200e9);
    assert_true(p.intensity_low < p.intensity && p.intensity < p.intensity_high);
    assert_same(p.flops_low, 0.48 * 989.5e12 + 0.08 * 67e12);
    assert_int_equal(p.precision, HEC_PRECISION_FP16);
    assert_same(p.ridge, 989.5e12 / 4800e9);
    assert_same(p.attainable_flops, 989.5e12); /* right of the ridge */
    assert_same(p.of_attainable, p.flops / 989.5e12);
    in.tensor_known = true;
    in.tensor_precision = HEC_PRECISION_TF32;
    hec_roofline_place(&in, &h200, &p);
    assert_same(p.flops, 0.5 * 494.5e12 + 0.1 * 67e12);
    assert_int_equal(p.precision, HEC_PRECISION_TF32);
    in = input(0, 0.1, 0.9, 0.99, 0.8);
    hec_roofline_place(&in, &h200, &p);
    assert_same(p.of_attainable, 0.9); /* left of the ridge: the share of the bandwidth */
    assert_true(p.intensity < p.ridge);
    in.pipe[HEC_PIPE_FP16] = share(0.5, 0);
    hec_roofline_place(&in, &h200, &p);
    assert_same(p.flops, 0.1 * 67e12 + 0.5 * 2 * 67e12);
}

TEST(test_peaks) {
    struct hec_roofline_peaks peaks;
    hec_roofline_peaks_of(hec_part_find("NVIDIA H200"), &peaks);
    assert_same(peaks.flops[HEC_PRECISION_FP16], 989.5e12);
    assert_same(peaks.bytes_per_s, 4800e9);
    assert_false(peaks.calibrated);
    peaks.calibrated = true;
    assert_true(peaks.calibrated);
    hec_roofline_peaks_of(NULL, &peaks);
    assert_true(isnan(peaks.flops[0]) && isnan(peaks.bytes_per_s));
    assert_string_equal(hec_roofline_limit_name(HEC_LIMIT_UNDERFILLED), "underfilled");
}
