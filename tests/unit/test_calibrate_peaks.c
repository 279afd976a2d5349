/* The figures of a device and the roof that follows from them. */
#include "model/peaks.h"
#include "unit.h"

TEST(test_nothing_is_known_at_first) {
    struct hec_peaks peaks;
    hec_peaks_init(&peaks);
    for (int i = 0; i < HEC_PEAK_COUNT; i++) {
        assert_true(isnan(peaks.peak[i].value) && isnan(peaks.peak[i].low) && isnan(peaks.peak[i].sustained));
        assert_int_equal(peaks.peak[i].runs, 0);
    }
}

TEST(test_names) {
    assert_true(hec_peak_is_rate(HEC_PEAK_H2D));
    assert_false(hec_peak_is_rate(HEC_PEAK_LAUNCH));
}

TEST(test_stated) {
    const struct hec_part *h200 = hec_part_find("NVIDIA H200"), *t4 = hec_part_find("Tesla T4");
    assert_float_equal(hec_peak_stated(h200, HEC_PEAK_BF16) / 1e12, 989.5, 1e-9);
    assert_float_equal(hec_peak_stated(h200, HEC_PEAK_FP16) / 1e12, 989.5, 1e-9);
    assert_float_equal(hec_peak_stated(h200, HEC_PEAK_FP64_TENSOR) / 1e12, 67, 1e-9);
    assert_float_equal(hec_peak_stated(h200, HEC_PEAK_DRAM_READ) / 1e9, 4800, 1e-9);
    assert_true(isnan(hec_peak_stated(h200, HEC_PEAK_H2D)));
    assert_true(isnan(hec_peak_stated(NULL, HEC_PEAK_FP32)));
    assert_true(hec_peak_stated(t4, HEC_PEAK_TF32) == 0); /* no such unit, which is not unknown */
}

static double roof(const struct hec_peaks *peaks, const char *name, enum hec_peak_kind kind,
                   enum hec_peak_source expect) {
    enum hec_peak_source source;
    double value = hec_peak_roof(peaks, name ? hec_part_find(name) : NULL, kind, &source);
    assert_int_equal(source, expect);
    return value / 1e12;
}

/* The larger one, and which it is. */
TEST(test_roof) {
    struct hec_peaks peaks;
    hec_peaks_init(&peaks);
    assert_float_equal(roof(&peaks, "NVIDIA H200", HEC_PEAK_BF16, HEC_PEAK_PART_TABLE), 989.5, 1e-9);
    peaks.peak[HEC_PEAK_BF16].value = 955e12;
    assert_float_equal(roof(&peaks, "NVIDIA H200", HEC_PEAK_BF16, HEC_PEAK_PART_TABLE), 989.5, 1e-9);
    peaks.peak[HEC_PEAK_BF16].value = 1001e12;
    assert_float_equal(roof(&peaks, "NVIDIA H200", HEC_PEAK_BF16, HEC_PEAK_CALIBRATED), 1001, 1e-9);
    assert_float_equal(roof(&peaks, NULL, HEC_PEAK_BF16, HEC_PEAK_CALIBRATED), 1001, 1e-9);
    peaks.shared = true;
    assert_float_equal(roof(&peaks, "NVIDIA H200", HEC_PEAK_BF16, HEC_PEAK_PART_TABLE), 989.5, 1e-9);
    assert_true(isnan(roof(&peaks, NULL, HEC_PEAK_BF16, HEC_PEAK_UNKNOWN)));
    peaks.shared = false;
    peaks.simulated = true;
    assert_true(isnan(roof(&peaks, NULL, HEC_PEAK_BF16, HEC_PEAK_UNKNOWN)));
    assert_true(isnan(roof(NULL, NULL, HEC_PEAK_BF16, HEC_PEAK_UNKNOWN)));
}
