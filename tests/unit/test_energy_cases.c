/* The energy figure in named cases: what it must say, not only how large it is. */
#include "report/words/reasons.h"
#include "unit/energy_world.h"
#include "unit.h"

static struct world world;
static struct hec_energy energy;

static void measure(void) {
    world_measure(&world, &energy);
}

/* What is measured is valid, or not, and says why. */
static void valid(void) {
    measure();
    assert_true(energy.valid);
}

static void invalid(const char *why) {
    measure();
    assert_false(energy.valid);
    if (!strstr(HEC_SAY(&energy.why), why))
        fail_msg("\"%s\" does not say \"%s\"", HEC_SAY(&energy.why), why);
}

static void constant(double seconds, unsigned long long seed, double watts) {
    world_init(&world, seconds, seed);
    world_constant(&world, watts);
}

TEST(test_constant) {
    constant(10, 1, 500);
    world.history_beyond_s = 0.04;
    valid();
    assert_string_equal(HEC_SAY(&energy.why), "");
    assert_int_equal(energy.method, HEC_ENERGY_COUNTER);
    assert_near(energy.joules, 5000, energy.bound_joules);
    assert_true(energy.bound_joules < 10);
    assert_near(energy.integral_joules, 5000, 1);
    assert_near(energy.disagreement, 0, 0.001);
    assert_near(energy.coverage, 1, 1e-9);
    assert_near(energy.quantum_s, 0.1, 0.006);
    assert_near(energy.sample_spacing_s, 0.02, 0.001);
    assert_int_equal(energy.gaps, 0);
    assert_int_equal(energy.resets, 0);
}

TEST(test_square_wave) {
    world_init(&world, 8, 2);
    world.history_beyond_s = 0.04;
    world_square(&world, 100, 700, 0.33, 0.1);
    valid();
    assert_near(energy.joules, world_truth(&world), energy.bound_joules);
}

TEST(test_readings_begin_after_start) {
    constant(8, 3, 300);
    world.quantum_phase_s = 0.07;
    valid();
    assert_true(energy.outside_joules > 0);
    assert_true(energy.outside_joules < 300);
}

TEST(test_reset) {
    world_init(&world, 20, 4);
    world.history_beyond_s = 0.04;
    world_square(&world, 200, 600, 1.7, 0.4);
    measure();
    double bound = energy.bound_joules;
    world.reset_s = 9.37;
    valid();
    assert_int_equal(energy.resets, 1);
    assert_near(energy.joules, world_truth(&world), energy.bound_joules);
    assert_true(energy.bound_joules > bound);
}

TEST(test_gap_leaves_the_counter) {
    constant(20, 5, 400);
    world.hole_from_s = 5;
    world.hole_to_s = 8;
    valid();
    assert_near(energy.coverage, 1, 1e-9);
    assert_int_equal(energy.gaps, 1);
    assert_near(energy.gap_s, 3, 0.05);
    assert_near(energy.joules, 8000, energy.bound_joules);
}

TEST(test_gap_breaks_the_integral) {
    constant(20, 6, 400);
    world.no_counter = true;
    world.hole_from_s = 5;
    world.hole_to_s = 8;
    invalid("cover only 85");
    assert_int_equal(energy.method, HEC_ENERGY_INTEGRAL);
    assert_near(energy.coverage, 0.85, 0.005);
    assert_near(energy.joules, 0.85 * 8000, 20);
    assert_non_null(strstr(HEC_SAY(&energy.why), "from 5.00 s to 8.0"));
}

TEST(test_only_integral) {
    constant(20, 7, 400);
    world.no_counter = true;
    valid();
    assert_int_equal(energy.method, HEC_ENERGY_INTEGRAL);
    assert_true(isnan(energy.counter_joules));
    assert_true(isnan(energy.disagreement));
    assert_near(energy.joules, 8000, energy.bound_joules);
}

TEST(test_only_counter) {
    constant(20, 8, 400);
    world.no_power = true;
    valid();
    assert_int_equal(energy.method, HEC_ENERGY_COUNTER);
    assert_true(isnan(energy.integral_joules));
    assert_near(energy.joules, 8000, energy.bound_joules);
}

TEST(test_disagreement) {
    constant(20, 9, 400);
    world.counter_scale = 1.05;
    invalid("disagree by 4.8 %");
    assert_near(energy.disagreement, -0.0476, 0.002);
    world.counter_scale = 1.02;
    valid();
    assert_near(energy.disagreement, -0.0196, 0.002);
}

/* A hole may hide what the counter has more, up to what the device can take; not what it has less than nothing. */
TEST(test_a_hole_may_explain_it) {
    static const struct {
        double hole_s, scale;
        bool valid;
    } cases[] = {{0, 1.05, false}, {1.5, 1.05, true}, {1.5, 1.02, true}, {0.2, 1.05, false}, {1.5, 1.15, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        constant(20, 9, 400);
        world.counter_scale = cases[i].scale;
        world.hole_from_s = 8;
        world.hole_to_s = 8 + cases[i].hole_s;
        measure();
        if (energy.valid != cases[i].valid)
            fail_msg("%g s, %g: %s", cases[i].hole_s, cases[i].scale, HEC_SAY(&energy.why));
        assert_int_equal(energy.why.id, cases[i].valid ? HEC_REASON_NONE : HEC_REASON_METERS_DISAGREE);
        assert_near(energy.joules, 8000 * cases[i].scale, 2);
        assert_near(energy.disagreement, 1 / cases[i].scale - 1, 0.001);
    }
}

/* Samples that are means over a second put a part of what was before the work into it and leave a part of the work out:
 * the counter is right all the same, and its bound holds. A wrong counter does not hide behind that for long. */
TEST(test_samples_of_a_second) {
    for (int run = 0; run < 200; run++) {
        world_init(&world, 3 + run % 20, 500 + (unsigned)run);
        world_step(&world, -WORLD_BEFORE_S, 80);
        world_step(&world, world_between(&world, 0, 0.3), world_between(&world, 300, 690));
        if (run % 2)
            world_step(&world, world.seconds - world_between(&world, 0.3, 2), 120);
        world.sample_window_s = world_between(&world, 0.3, 1);
        measure();
        assert_near(energy.joules, world_truth(&world), energy.bound_joules);
        if (!energy.valid)
            fail_msg("run %d: %s", run, HEC_SAY(&energy.why));
    }
    world.seconds = 60;
    world.counter_scale = 1.05;
    world.count = 2;
    invalid("");
    world.counter_scale = 0;
    invalid("");
}

TEST(test_counter_stands_still) {
    constant(20, 10, 400);
    world.counter_scale = 0;
    invalid("stood still");
}

TEST(test_lost) {
    constant(20, 11, 400);
    world.history_end_s = world.counter_end_s = 12.5;
    world.lost_s = 12.6;
    invalid("lost at 12.60 s");
    assert_near(energy.joules, 12.5 * 400, energy.bound_joules + 0.06 * 400);
    assert_near(energy.coverage, 0.625, 0.01);
}

TEST(test_lost_at_the_very_end) {
    constant(20, 12, 400);
    world.history_end_s = world.counter_end_s = 19.9;
    world.lost_s = 19.9;
    invalid("lost");
}

TEST(test_too_short) {
    constant(0.15, 13, 400);
    world.slack_s = 0.09;
    invalid("too short to measure");
    assert_true(energy.joules > 0);
}

TEST(test_no_length) {
    constant(0, 14, 400);
    invalid("the run has no length");
    assert_int_equal(energy.method, HEC_ENERGY_NONE);
    assert_true(isnan(energy.joules));
}

TEST(test_no_reading) {
    world_init(&world, 5, 15);
    world.no_counter = world.no_power = true;
    invalid("no reading");
    assert_true(isnan(energy.joules));
    assert_true(isnan(energy.bound_joules));
}

/* All readings lie before the run: what is known of it is not 0 but nothing. */
TEST(test_readings_elsewhere) {
    constant(5, 17, 300);
    world.no_counter = true;
    world.history_end_s = -0.5;
    invalid("no reading falls into the run");
    assert_true(isnan(energy.joules));
}

TEST(test_no_slack) {
    constant(10, 16, 500);
    world.history_beyond_s = 0.04;
    measure();
    double bound = energy.bound_joules;
    world.no_slack = true;
    valid();
    assert_near(energy.joules, 5000, energy.bound_joules);
    assert_true(energy.bound_joules > bound + 20); /* half of 100 ms at either end, at 500 W */
    assert_true(isnan(energy.quantum_s));
}

/* A device without power history is polled, and such a power is a mean over the last second: steps cost a wider bound. */
TEST(test_polled_power) {
    static struct hec_energy_meter meter;
    struct hec_energy_options options = {.end_ns = 10 * HEC_NS_PER_S, .limit_w = 300, .lost_ns = INT64_MAX};
    for (int history = 0; history < 2; history++) {
        double bounds[2];
        options.has_power_history = history;
        for (int step = 0; step < 2; step++) {
            hec_energy_init(&meter, &options);
            for (int k = -10; k <= 120; k++)
                hec_energy_spacing(&meter, k * 100 * HEC_NS_PER_MS);
            hec_energy_prepare(&meter);
            for (int k = -10; k <= 120; k++)
                hec_energy_power(&meter, k * 100 * HEC_NS_PER_MS, step && k <= 5 ? 50000 : 200000);
            hec_energy_finish(&meter, &energy);
            bounds[step] = energy.bound_joules;
        }
        assert_true(history ? bounds[1] < bounds[0] + 20 : bounds[1] > bounds[0] + 100);
    }
}

/* A counter that resets all the time is none. */
TEST(test_many_resets) {
    static struct hec_energy_meter meter;
    struct hec_energy_options options = {
        .end_ns = 20 * HEC_NS_PER_S, .limit_w = 300, .lost_ns = INT64_MAX, .has_power_history = true};
    hec_energy_init(&meter, &options);
    for (int k = -5; k <= 1005; k++)
        hec_energy_spacing(&meter, k * 20 * HEC_NS_PER_MS);
    for (int k = 0; k <= 20; k++)
        hec_energy_counter(&meter, k * HEC_NS_PER_S, k % 2 ? 1000 : 200000, HEC_SLACK_UNKNOWN);
    hec_energy_prepare(&meter);
    for (int k = -5; k <= 1005; k++)
        hec_energy_power(&meter, k * 20 * HEC_NS_PER_MS, 150000);
    hec_energy_finish(&meter, &energy);
    assert_int_equal(energy.method, HEC_ENERGY_INTEGRAL);
    assert_int_equal(energy.resets, 10);
    assert_near(energy.joules, 3000, 1);
}

static void shape(int kind) {
    world_init(&world, 12, 40 + (unsigned)kind);
    world_square(&world, 150, 600, 1.3, 0.2);
    world.quantum_phase_s = 0.04;
    world.history_beyond_s = kind == 1 ? 0 : 0.04;
    world.reset_s = kind == 2 ? 5.13 : INFINITY;
    world.no_counter = kind == 3 || kind == 4;
    world.no_power = kind == 5;
    world.history_from_s = kind == 6 ? 0.31 : -2.3;
    world.counter_end_s = kind == 7 ? 11.2 : INFINITY;
    world.sample_lag_s = kind == 8 ? 0.01 : 0;
    world.counter_scale = kind == 9 ? 1.04 : 1;
    world.no_slack = kind == 10;
    if (kind == 4 || kind == 11) {
        world.hole_from_s = 6.02;
        world.hole_to_s = 6.18;
    }
}

/* The figures themselves: the bounds of other tests leave room in which an error could hide. A change is to be meant. */
TEST(test_figures) {
    static const struct {
        double joules, bound, outside, integral, disagreement, coverage;
    } figures[] = {
        {4477.62419, 12.8640075, 45.4792692, 4477.5, -2.80271212e-05, 1},
        {4477.61012, 12.6470218, 46.3354908, 4477.5, -2.48500242e-05, 1},
        {4476.428, 34.7368196, 450.089502, 4477.5, 0.000266341202, 1},
        {4477.5, 233.04981, 0, 4477.5, NAN, 1},
        {4499.91259, 297.216995, 0, 4499.91259, NAN, 0.986699039},
        {4449.04994, 53.8766725, 46.6766203, NAN, NAN, 0.994496137},
        {4450.48314, 53.0548765, 75.3581094, 4393.73308, 0.0263183614, 1},
        {4477.6038, 27.3227297, 593.608377, 4477.5, -2.67250839e-05, 1},
        {4478.14548, 12.9924655, 45.7459269, 4473, -0.00116118873, 1},
        {4655.25199, 70.4145176, 49.0572135, 4477.5, -0.0384407168, 1},
        {4485.22123, 38.2278986, 46.610734, 4477.5, -0.00174246352, 1},
        {4477.53011, 12.344634, 48.2810442, 4499.91259, 0.00503406453, 1},
    };
    for (int kind = 0; kind < (int)(sizeof figures / sizeof figures[0]); kind++) {
        shape(kind);
        measure();
        const double found[] = {energy.joules,          energy.bound_joules, energy.outside_joules,
                                energy.integral_joules, energy.disagreement, energy.coverage};
        const double expected[] = {figures[kind].joules,   figures[kind].bound,        figures[kind].outside,
                                   figures[kind].integral, figures[kind].disagreement, figures[kind].coverage};
        for (int i = 0; i < 6; i++)
            if (!(fabs(found[i] - expected[i]) <= 1e-6 * fabs(expected[i]) + 1e-9) &&
                !(isnan(found[i]) && isnan(expected[i])))
                fail_msg("world %d, figure %d: %.9g, not %.9g", kind, i, found[i], expected[i]);
    }
}

/* Times that go back or repeat, absurd values: no crash, no NaN that claims to be valid. */
TEST(test_hostile_readings) {
    static struct hec_energy_meter meter;
    world_init(&world, 1, 99);
    for (int round = 0; round < 2000; round++) {
        struct hec_energy_options options = {.end_ns = (int64_t)(world_random(&world) * 1e11),
                                             .limit_w = NAN,
                                             .lost_ns = INT64_MAX,
                                             .has_power_history = round % 2};
        int64_t t[40], v[40];
        for (int i = 0; i < 40; i++) {
            t[i] = (int64_t)((world_random(&world) - 0.3) * (i % 7 ? 1e11 : 1e18));
            v[i] = i % 5 ? (int64_t)(world_random(&world) * 1e6) : (int64_t)((world_random(&world) - 0.5) * 1.8e19);
        }
        hec_energy_init(&meter, &options);
        for (int i = 0; i < 40; i++) {
            hec_energy_counter(&meter, t[i], v[39 - i], v[i]);
            hec_energy_spacing(&meter, t[i]);
        }
        hec_energy_prepare(&meter);
        for (int i = 0; i < 40; i++)
            hec_energy_power(&meter, t[i], v[i]);
        hec_energy_finish(&meter, &energy);
        if (energy.valid) {
            assert_true(isfinite(energy.joules) && energy.joules > 0);
            assert_true(isfinite(energy.bound_joules) && energy.bound_joules <= 0.1 * energy.joules);
        } else {
            assert_true(energy.why.id != HEC_REASON_NONE);
        }
    }
}
