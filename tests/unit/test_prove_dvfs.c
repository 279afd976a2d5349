/* Power and pace under limits that were not measured, against devices whose law the estimator does not have: voltage with a floor and a
 * bend, leakage that goes with voltage, memory that has power of its own; and against the simulated GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prove/dvfs.h"
#include "sim/case.h"
#include "sim/dvfs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t drawn;

static double draw(double low, double high) {
    return low + (high - low) * sim_hash_unit(++drawn, 5, 9);
}

/* About normal. */
static double noise(double deviation) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += draw(0, 1);
    return exp(sum * deviation);
}

struct world {
    double top_mhz, fixed_w, core_w, leak_w, memory_w, floor, floor_v, bend, share, held, pace;
};

static struct world draw_world(void) {
    return (struct world){.top_mhz = draw(1400, 2500),
                          .fixed_w = draw(50, 130),
                          .core_w = draw(150, 500),
                          .leak_w = draw(0, 60),
                          .memory_w = draw(20, 150),
                          .floor = draw(0.25, 0.55),
                          .floor_v = draw(0.55, 0.8),
                          .bend = draw(0.8, 1.3),
                          .share = draw(0.15, 1),
                          .held = draw(0.96, 1),
                          .pace = draw(1, 5000)};
}

static double voltage(const struct world *w, double x) {
    return x <= w->floor ? w->floor_v : w->floor_v + (1 - w->floor_v) * pow((x - w->floor) / (1 - w->floor), w->bend);
}

static double pace(const struct world *w, double x) {
    return 1 / (w->share / x + 1 - w->share);
}

static double watts(const struct world *w, double x) {
    double v = voltage(w, x);
    return w->fixed_w + w->leak_w * v + w->core_w * x * v * v + w->memory_w * pace(w, x);
}

static struct hec_dvfs_point truth(const struct world *w, double limit_w) {
    double low = 0.1, high = 1, wanted = w->held * limit_w;
    for (int i = 0; i < 60 && watts(w, 1) > wanted; i++) {
        double middle = (low + high) / 2;
        if (watts(w, middle) > wanted)
            high = middle;
        else
            low = middle;
    }
    return (struct hec_dvfs_point){limit_w, high * w->top_mhz, watts(w, high), w->pace * pace(w, high)};
}

/* Limits as a user would take them: steps between where the device is held a little and where it crawls. */
static int measure(const struct world *w, int count, double deviation, struct hec_dvfs_point *points) {
    double most = watts(w, 1) * 1.05, least = watts(w, draw(0.4, 0.55));
    for (int i = 0; i < count; i++) {
        points[i] = truth(w, most - (most - least) * i / (count - 1));
        points[i].watts *= noise(deviation);
        points[i].units_per_s *= noise(deviation);
        points[i].clock_mhz *= noise(deviation / 2);
    }
    return count;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

enum { WORLDS = 300, ASKED = 5 };

static void bounds_hold_for_unknown_devices(void **state) {
    (void)state;
    static double errors[3 * WORLDS * ASKED];
    int asked = 0, covered = 0;
    double width = 0;
    for (int i = 0; i < WORLDS; i++) {
        struct world w = draw_world();
        struct hec_dvfs_point points[HEC_DVFS_POINTS_MAX];
        struct hec_dvfs fit;
        struct hec_why why = {""};
        int count = measure(&w, 5 + i % 4, 0.003, points);
        if (hec_dvfs_fit(points, count, &fit, &why) != HEC_OK)
            fail_msg("%s", why.text);
        for (int k = 0; k < ASKED; k++) {
            double limit = draw(points[count - 1].limit_w, points[0].limit_w);
            struct hec_dvfs_point is = truth(&w, limit);
            struct hec_dvfs_estimate said;
            assert_int_equal(hec_dvfs_at_limit(&fit, limit, &said), HEC_OK);
            const struct hec_dvfs_bounded figures[3] = {said.watts, said.units_per_s, said.joules_per_unit};
            const double are[3] = {is.watts, is.units_per_s, is.watts / is.units_per_s};
            for (int f = 0; f < 3; f++) {
                assert_true(figures[f].low <= figures[f].value && figures[f].value <= figures[f].high);
                covered += are[f] >= figures[f].low && are[f] <= figures[f].high;
                width += log(figures[f].high / figures[f].low) / 2;
                errors[asked++] = fabs(log(figures[f].value / are[f]));
            }
        }
    }
    qsort(errors, (size_t)asked, sizeof errors[0], ascending);
    print_message(
        "%d predictions: median error %.2f %%, 95 %% below %.2f %%, worst %.2f %%; bound on average %.1f %%, holds %.2f %%\n",
        asked, 100 * errors[asked / 2], 100 * errors[asked * 95 / 100], 100 * errors[asked - 1], 100 * width / asked,
        100.0 * covered / asked);
    assert_true(covered >= 0.97 * asked);
    assert_true(errors[asked / 2] < 0.006);
    assert_true(errors[asked * 95 / 100] < 0.03);
    assert_true(width / asked < 0.03); /* a bound that says nothing would hold, too */
}

/* By clocks that were locked. */
static void clocks_are_predicted_too(void **state) {
    (void)state;
    int covered = 0, asked = 0;
    for (int i = 0; i < 100; i++) {
        struct world w = draw_world();
        struct hec_dvfs_point points[6];
        struct hec_dvfs fit;
        struct hec_dvfs_estimate said;
        for (int k = 0; k < 6; k++) {
            double x = 1 - 0.1 * k;
            points[k] = (struct hec_dvfs_point){0, x * w.top_mhz, watts(&w, x) * noise(0.003),
                                                w.pace * pace(&w, x) * noise(0.003)};
        }
        assert_int_equal(hec_dvfs_fit(points, 6, &fit, NULL), HEC_OK);
        assert_int_equal(hec_dvfs_at_limit(&fit, 300, &said), HEC_ERR_LIMIT);
        double x = draw(0.52, 0.99), is = watts(&w, x) / (w.pace * pace(&w, x));
        assert_int_equal(hec_dvfs_at_clock(&fit, x * w.top_mhz, &said), HEC_OK);
        asked++;
        covered += is >= said.joules_per_unit.low && is <= said.joules_per_unit.high;
        assert_true(fabs(log(said.joules_per_unit.value / is)) < 0.05);
    }
    assert_true(covered >= 0.95 * asked);
}

/* Five limits of the simulated GPU tell of all others between them. */
static void the_simulated_gpu_is_predicted(void **state) {
    (void)state;
    static const char *const cases[] = {"healthy-gemm", "healthy-train", "fp32", "memory-bound"};
    static const enum sim_activity work[] = {SIM_GEMM_BF16, SIM_TRAIN_TUNED, SIM_TRAIN_FP32, SIM_ELEMENTWISE};
    const struct sim_profile *h200 = sim_profile_find("h200");
    for (int c = 0; c < 4; c++) {
        struct hec_dvfs_point points[41];
        struct hec_dvfs fit;
        struct hec_dvfs_estimate said;
        for (int i = 0; i <= 40; i++) { /* 300 to 700 W */
            struct sim_truth is;
            int32_t cap = 300000 + 10000 * i, wanted = sim_activity_power_mw(h200, work[c]);
            assert_int_equal(sim_case_truth(sim_case_find(cases[c]), 30, h200, cap, 0, &is), HEC_OK);
            double clock = sim_clock_mhz(h200, work[c], wanted > cap ? sim_held_power_mw(h200, cap) : wanted);
            points[i] = (struct hec_dvfs_point){cap / 1000.0, clock, is.joules / is.seconds, is.units / is.seconds};
        }
        const struct hec_dvfs_point few[] = {points[0], points[8], points[16], points[26], points[40]};
        assert_int_equal(hec_dvfs_fit(few, 5, &fit, NULL), HEC_OK);
        for (int i = 0; i <= 40; i++) {
            double is = points[i].watts / points[i].units_per_s;
            assert_int_equal(hec_dvfs_at_limit(&fit, points[i].limit_w, &said), HEC_OK);
            if (fabs(log(said.joules_per_unit.value / is)) > 0.03 || is < said.joules_per_unit.low ||
                is > said.joules_per_unit.high)
                fail_msg("%s at %.0f W: %.4f, said %.4f (%.4f to %.4f)", cases[c], points[i].limit_w, is,
                         said.joules_per_unit.value, said.joules_per_unit.low, said.joules_per_unit.high);
        }
    }
}

static void too_little_is_refused(void **state) {
    (void)state;
    struct world w = draw_world();
    struct hec_dvfs_point points[HEC_DVFS_POINTS_MAX + 1];
    struct hec_dvfs fit;
    struct hec_dvfs_estimate said;
    struct hec_why why = {""};
    measure(&w, HEC_DVFS_POINTS_MAX, 0, points);
    assert_int_equal(hec_dvfs_fit(points, 0, &fit, &why), HEC_ERR_UNSUPPORTED);
    struct hec_dvfs_point three[] = {points[0], points[10], points[20], points[20], points[20]};
    assert_int_equal(hec_dvfs_fit(three, 5, &fit, &why), HEC_ERR_UNSUPPORTED); /* points, but not of different clocks */
    assert_non_null(strstr(why.text, "too few"));
    points[HEC_DVFS_POINTS_MAX] = points[0];
    assert_int_equal(hec_dvfs_fit(points, HEC_DVFS_POINTS_MAX + 1, &fit, &why), HEC_ERR_USAGE);
    assert_int_equal(hec_dvfs_fit(points, HEC_DVFS_POINTS_MAX, &fit, &why), HEC_OK);
    assert_int_equal(hec_dvfs_at_limit(&fit, points[0].limit_w + 1, &said), HEC_ERR_LIMIT);
    assert_int_equal(hec_dvfs_at_limit(&fit, points[HEC_DVFS_POINTS_MAX - 1].limit_w - 1, &said), HEC_ERR_LIMIT);
    assert_int_equal(hec_dvfs_at_limit(&fit, NAN, &said), HEC_ERR_LIMIT);
    assert_int_equal(hec_dvfs_at_clock(&fit, 1.01 * points[0].clock_mhz, &said), HEC_ERR_LIMIT);
    points[3].watts = NAN;
    assert_int_equal(hec_dvfs_fit(points, 5, &fit, &why), HEC_ERR_USAGE);
    points[3].watts = -1;
    assert_int_equal(hec_dvfs_fit(points, 5, &fit, &why), HEC_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold_for_unknown_devices),
        cmocka_unit_test(clocks_are_predicted_too),
        cmocka_unit_test(the_simulated_gpu_is_predicted),
        cmocka_unit_test(too_little_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
