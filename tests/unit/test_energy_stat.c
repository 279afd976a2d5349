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

/* ---- step by step ---- */

struct visited {
    int64_t start_ns[20], end_ns[20];
    double value[20];
    int count;
};

static void visit(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct visited *v = context;
    v->start_ns[v->count] = start_ns;
    v->end_ns[v->count] = end_ns;
    v->value[v->count++] = value;
}

/* Readings at these times, whose values are 1, 2, 3 ...; what they are made into. */
static void steps_are(enum hec_metric_kind kind, const int64_t *at, int count, int64_t end, const int64_t (*is)[3],
                      int steps) {
    struct visited v = {.count = 0};
    struct hec_steps s;
    hec_steps_init(&s, kind, visit, &v);
    for (int i = 0; i < count; i++)
        hec_steps_add(&s, at[i], i + 1);
    hec_steps_end(&s, end);
    assert_int_equal(v.count, steps);
    for (int i = 0; i < steps; i++)
        if (v.start_ns[i] != is[i][0] || v.end_ns[i] != is[i][1] || v.value[i] != (double)is[i][2])
            fail_msg("step %d: %g from %d to %d", i, v.value[i], (int)v.start_ns[i], (int)v.end_ns[i]);
}

TEST(test_steps_of_a_mean) {
    /* the first holds as long as the second; after a gap of more than three spacings a reading holds for the usual one */
    steps_are(HEC_METRIC_MEAN, (int64_t[]){100, 200, 500, 825, 825, 1000}, 6, 9999,
              (int64_t[][3]){{0, 100, 1}, {100, 200, 2}, {200, 500, 3}, {500, 825, 4}, {825, 1000, 6}}, 5);
    steps_are(HEC_METRIC_MEAN, (int64_t[]){100, 200, 501, 600}, 4, 9999,
              (int64_t[][3]){{0, 100, 1}, {100, 200, 2}, {401, 501, 3}, {501, 600, 4}}, 4);
    steps_are(HEC_METRIC_MEAN, (int64_t[]){100}, 1, 9999, (int64_t[][3]){{0, 100, 1}}, 1);
    steps_are(HEC_METRIC_MEAN, (int64_t[]){-100}, 1, 9999, (int64_t[][3]){{-101, -100, 1}}, 1);
    steps_are(HEC_METRIC_MEAN, NULL, 0, 9999, NULL, 0);
}

TEST(test_steps_of_a_gauge) {
    steps_are(HEC_METRIC_GAUGE, (int64_t[]){100, 200, 501, 600}, 4, 700,
              (int64_t[][3]){{100, 200, 1}, {200, 300, 2}, {501, 600, 3}, {600, 700, 4}}, 4);
    steps_are(HEC_METRIC_GAUGE, (int64_t[]){100, 200}, 2, 500, (int64_t[][3]){{100, 200, 1}, {200, 500, 2}}, 2);
    steps_are(HEC_METRIC_GAUGE, (int64_t[]){100, 200}, 2, 501, (int64_t[][3]){{100, 200, 1}, {200, 300, 2}}, 2);
    steps_are(HEC_METRIC_GAUGE, (int64_t[]){100, 200}, 2, 200, (int64_t[][3]){{100, 200, 1}}, 1);
    steps_are(HEC_METRIC_GAUGE, (int64_t[]){100}, 1, 500, (int64_t[][3]){{100, 500, 1}}, 1);
    steps_are(HEC_METRIC_GAUGE, NULL, 0, 9999, NULL, 0);
}

/* The usual spacing follows by an eighth of what it is off, and by a gap no more than three spacings are. */
TEST(test_spacing_follows) {
    struct visited v = {.count = 0};
    struct hec_steps s;
    hec_steps_init(&s, HEC_METRIC_MEAN, visit, &v);
    hec_steps_add(&s, 0, 1);
    hec_steps_add(&s, 80, 1);
    assert_near(s.usual_ns, 80, 0);
    hec_steps_add(&s, 240, 1);
    assert_near(s.usual_ns, 90, 1e-12);
    hec_steps_add(&s, 10240, 1);
    assert_near(s.usual_ns, 90 + 180 / 8.0, 1e-12);
    assert_int_equal(s.count, 4);
}

/* ---- histograms, durations, quantiles ---- */

TEST(test_bins_of_a_histogram) {
    struct hec_histogram h;
    assert_int_equal(hec_histogram_init(&h, 3, 6), 0); /* 0 to 7 exactly, 8 to 63 in four bins an octave */
    assert_int_equal(h.bins, 8 + 3 * 4);
    for (int value = -3; value < 80; value++) {
        struct hec_accumulator clears;
        hec_accumulator_init(&clears, &h, 1);
        assert_true(isnan(hec_histogram_quantile(&h, 0.5)));
        hec_histogram_add(&h, value, 2.5);
        assert_near(h.total, 2.5, 0);
        int width = value < 8 ? 1 : value < 16 ? 2 : value < 32 ? 4 : 8, kept = value < 0 ? 0 : value > 63 ? 63 : value;
        double is = kept - kept % width + (width - 1) / 2.0;
        assert_near(hec_histogram_quantile(&h, 0.5), value > 63 ? 56 + 3.5 : is, 0);
        assert_near(hec_histogram_quantile(&h, 1), value > 63 ? 56 + 3.5 : is, 0);
    }
    struct hec_accumulator clears;
    hec_accumulator_init(&clears, &h, 1);
    hec_histogram_add(&h, 1, 1);
    hec_histogram_add(&h, 3, 2);
    hec_histogram_add(&h, 5, 1);
    assert_near(hec_histogram_quantile(&h, 0.25), 1, 0);
    assert_near(hec_histogram_quantile(&h, 0.26), 3, 0);
    assert_near(hec_histogram_quantile(&h, 0.75), 3, 0);
    assert_near(hec_histogram_quantile(&h, 0.76), 5, 0);
    hec_histogram_free(&h);
}

TEST(test_accumulated) {
    struct hec_histogram h;
    struct hec_accumulator a;
    assert_int_equal(hec_histogram_init(&h, 11, 40), 0);
    hec_accumulator_init(&a, &h, 10);
    hec_accumulator_add(&a, 2.04, 1);
    hec_accumulator_add(&a, 3, 3);
    hec_accumulator_add(&a, 9, 0); /* counts for the extremes only */
    struct hec_stat s = hec_accumulator_result(&a, 100);
    assert_int_equal(s.count, 3);
    assert_near(s.mean, 100 * (2.04 + 9) / 4, 1e-9);
    assert_near(s.median, 300, 1e-9);
    assert_near(s.minimum, 204, 1e-9);
    assert_near(s.maximum, 900, 1e-9);
    hec_accumulator_init(&a, &h, 10);
    hec_accumulator_add(&a, 2.04, 1);
    assert_near(hec_accumulator_result(&a, 1).median, 2.04, 1e-12); /* not 2.0, which was not seen */
    hec_accumulator_init(&a, NULL, 1);
    hec_accumulator_add(&a, 5, 0);
    s = hec_accumulator_result(&a, 1);
    assert_true(isnan(s.mean) && isnan(s.median) && s.minimum == 5 && s.count == 1);
    hec_histogram_free(&h);
}

TEST(test_durations) {
    struct hec_durations d;
    assert_int_equal(hec_durations_init(&d), 0);
    struct hec_quantiles q = hec_durations_result(&d);
    assert_true(q.count == 0 && isnan(q.mean) && isnan(q.median) && isnan(q.p90) && isnan(q.p99) && isnan(q.minimum) &&
                isnan(q.maximum));
    for (int i = 1; i <= 1000; i++)
        hec_durations_add(&d, i * HEC_NS_PER_MS);
    q = hec_durations_result(&d);
    assert_int_equal(q.count, 1000);
    assert_near(q.mean, 0.5005, 1e-12);
    assert_near(q.median, 0.5, 0.005);
    assert_near(q.p90, 0.9, 0.009);
    assert_near(q.p99, 0.99, 0.0099);
    assert_near(q.minimum, 0.001, 1e-12);
    assert_near(q.maximum, 1, 1e-12);
    hec_durations_free(&d);
    assert_int_equal(hec_durations_init(&d), 0);
    hec_durations_add(&d, 1001); /* the middle of its bin lies elsewhere */
    q = hec_durations_result(&d);
    assert_near(q.median, 1001e-9, 1e-18);
    assert_near(q.p99, 1001e-9, 1e-18);
    hec_durations_free(&d);
}

TEST(test_exact_quantiles) {
    double values[] = {4, 1, 3, 2, 5};
    struct hec_quantiles q = hec_quantiles_of(values, 5);
    assert_int_equal(q.count, 5);
    assert_near(q.mean, 3, 1e-12);
    assert_near(q.median, 3, 1e-12);
    assert_near(q.p90, 4.6, 1e-12);
    assert_near(q.p99, 4.96, 1e-12);
    assert_near(q.minimum, 1, 0);
    assert_near(q.maximum, 5, 0);
    q = hec_quantiles_of(values, 1);
    assert_true(q.median == 1 && q.p99 == 1 && q.count == 1);
    assert_int_equal(hec_quantiles_of(values, 0).count, 0);
    assert_near(hec_sorted_quantile(values, 5, 0.3), 2.2, 1e-12);
    assert_near(hec_sorted_quantile(values, 5, 1), 5, 0);
}

/* Student's t of tables. */
TEST(test_student) {
    static const double rows[][2] = {{3, 3.182}, {4, 2.776}, {5, 2.571}, {10, 2.228}, {30, 2.042}, {1e9, 1.959964}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_near(hec_student_975(rows[i][0]), rows[i][1], rows[i][0] < 4 ? 0.017 : rows[i][0] < 5 ? 0.005 : 0.0015);
}
