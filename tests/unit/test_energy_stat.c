/* Streaming statistics against exact ones. */
#include "base/clock.h"
#include "diagnose/meter/energy.h"
#include "diagnose/meter/stat.h"
#include "unit.h"

static unsigned long long seed = 1;

static double random_value(void) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(seed >> 33) / 2147483648.0;
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

TEST(test_median_of_power) {
    struct hec_histogram histogram;
    assert_int_equal(hec_histogram_init(&histogram, 14, 20), 0);
    for (int round = 0; round < 50; round++) {
        static double values[2001];
        struct hec_accumulator sum;
        double exact_mean = 0;
        hec_accumulator_init(&sum, &histogram, 10);
        for (int i = 0; i < 2001; i++) {
            values[i] = 80 + 620 * pow(random_value(), 3);
            exact_mean += values[i] / 2001;
            hec_accumulator_add(&sum, values[i], 0.02);
        }
        qsort(values, 2001, sizeof values[0], by_value);
        struct hec_stat stat = hec_accumulator_result(&sum, 1);
        assert_true(fabs(stat.median - values[1000]) <= 0.051);
        assert_true(fabs(stat.mean - exact_mean) < 1e-9 * exact_mean);
        assert_true(stat.minimum == values[0] && stat.maximum == values[2000]);
        assert_int_equal(stat.count, 2001);
    }
    hec_histogram_free(&histogram);
}

TEST(test_large_values) {
    struct hec_histogram histogram;
    struct hec_accumulator all;
    assert_int_equal(hec_histogram_init(&histogram, 11, 40), 0);
    for (int64_t value = 1; value < INT64_C(1) << 39; value = value * 3 / 2 + 1) {
        hec_accumulator_init(&all, &histogram, 1); /* clears it */
        hec_histogram_add(&histogram, value, 1);
        double median = hec_histogram_quantile(&histogram, 0.5);
        assert_true(fabs(median - (double)value) <= 0.001 * (double)value);
        assert_true(value >= 2048 || median == (double)value);
    }
    hec_accumulator_init(&all, &histogram, 1);
    hec_histogram_add(&histogram, INT64_MAX, 1);
    hec_histogram_add(&histogram, INT64_MIN, 0.5);
    assert_true(hec_histogram_quantile(&histogram, 0.5) > 1e12);
    assert_true(hec_histogram_quantile(&histogram, 0.1) == 0);
    hec_histogram_free(&histogram);
}

TEST(test_nothing) {
    struct hec_accumulator sum;
    hec_accumulator_init(&sum, NULL, 1);
    struct hec_stat stat = hec_accumulator_result(&sum, 1);
    assert_true(isnan(stat.mean) && isnan(stat.median) && isnan(stat.minimum) && isnan(stat.maximum));
    assert_int_equal(stat.count, 0);
}

struct taken {
    double seconds, weighted;
    int count;
};

static void take(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct taken *taken = context;
    assert_true(end_ns > start_ns);
    taken->seconds += (double)(end_ns - start_ns) / 1e9;
    taken->weighted += (double)(end_ns - start_ns) / 1e9 * value;
    taken->count++;
}

TEST(test_mean_holds_before) {
    struct taken taken = {0};
    struct hec_steps steps;
    hec_steps_init(&steps, HEC_METRIC_MEAN, take, &taken);
    for (int i = 1; i <= 10; i++)
        hec_steps_add(&steps, i * HEC_NS_PER_S, i);
    hec_steps_add(&steps, 10 * HEC_NS_PER_S, 1000); /* time stands still: ignored */
    hec_steps_add(&steps, 60 * HEC_NS_PER_S, 20);   /* after a gap: for the usual second */
    hec_steps_end(&steps, 70 * HEC_NS_PER_S);
    assert_true(fabs(taken.seconds - 11) < 0.01);
    assert_true(fabs(taken.weighted - (55 + 20)) < 0.2);
}

TEST(test_gauge_holds_after) {
    struct taken taken = {0};
    struct hec_steps steps;
    hec_steps_init(&steps, HEC_METRIC_GAUGE, take, &taken);
    for (int i = 0; i < 10; i++)
        hec_steps_add(&steps, i * HEC_NS_PER_S, i);
    hec_steps_end(&steps, 10 * HEC_NS_PER_S);
    assert_true(fabs(taken.seconds - 10) < 1e-9);
    assert_true(fabs(taken.weighted - 45) < 1e-9);
}

TEST(test_single_readings) {
    struct taken taken = {0};
    struct hec_steps steps;
    hec_steps_init(&steps, HEC_METRIC_MEAN, take, &taken);
    hec_steps_add(&steps, HEC_NS_PER_S, 5);
    hec_steps_end(&steps, 2 * HEC_NS_PER_S);
    assert_true(taken.count == 1 && taken.seconds == 1);
    hec_steps_init(&steps, HEC_METRIC_GAUGE, take, &taken);
    hec_steps_add(&steps, HEC_NS_PER_S, 5);
    hec_steps_end(&steps, 2 * HEC_NS_PER_S);
    assert_true(taken.count == 2 && taken.seconds == 2);
}

TEST(test_usual_spacing) {
    struct hec_spacing spacing = {0};
    assert_true(hec_spacing_usual_ns(&spacing) == 0);
    hec_spacing_add(&spacing, 0);
    assert_true(hec_spacing_usual_ns(&spacing) == 0);
    int64_t t = 0;
    for (int i = 0; i < 1000; i++)
        hec_spacing_add(&spacing, t += i % 50 ? 20 * HEC_NS_PER_MS : 5 * HEC_NS_PER_S);
    assert_true(fabs(hec_spacing_usual_ns(&spacing) / 20e6 - 1) < 0.045);
}
