/* The meter: each series is read once and fed alike from what is kept, and a part of a run takes what the world took. */
#include "diagnose/meter/device.h"
#include "diagnose/meter/joules.h"
#include "fake_run.h"
#include "unit.h"

static struct fake_run run;
static struct hec_meter meter;

static int set_up(void **state) {
    (void)state;
    fake_init(&run, 30);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hec_meter_close(&meter);
    fake_free(&run);
    return 0;
}

static int64_t random_value(void) {
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state ^ state >> 29);
}

/* Readings against the series they are of. */
struct checked {
    const struct fake_series *of;
    size_t at;
};

static void check(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct checked *c = context;
    assert_true(c->at < c->of->count);
    assert_true(t_ns == c->of->t[c->at] && value == c->of->v[c->at] && valid == (bool)c->of->valid[c->at]);
    c->at++;
}

/* times of so many readings, which vary as much as values do */
static void fill(size_t count, bool wild) {
    for (size_t i = 0; i < count; i++) {
        fake_add(&run, HEC_GPU_POWER, 0, 0, wild ? random_value() : 300000 + random_value() % 1000);
        struct fake_series *s = &run.series[0];
        s->t[i] = wild ? random_value() >> 4 : (int64_t)i * 20000000 + random_value() % 1000;
        s->valid[i] = random_value() % 5 != 0;
    }
}

static void check_reads(int times) {
    for (int i = 0; i < times; i++) {
        struct checked c = {.of = &run.series[0]};
        assert_int_equal(hec_meter_read(&meter, HEC_GPU_POWER, 0, check, &c, NULL), 0);
        assert_int_equal(c.at, run.series[0].count);
    }
}

TEST(kept_is_what_was_read) {
    fill(5000, true);
    check_reads(3);
    assert_int_equal(run.series[0].reads, 1);
    assert_true(meter.kept_bytes <= 5000 * 20);
}

TEST(usual_readings_are_small) {
    struct hec_range range;
    fill(5000, false);
    assert_int_equal(hec_meter_range(&meter, HEC_GPU_POWER, 0, &range, NULL), 0);
    check_reads(2);
    assert_int_equal(run.series[0].reads, 1);
    assert_true(meter.kept_bytes <= 5000 * 8);
    assert_true(range.count > 3000 && range.count < 5000 && range.maximum >= range.first);
}

/* What does not fit is read again, and is no other; what comes later and is small is kept. */
TEST(too_much_is_read_again) {
    fill(HEC_METER_KEPT_BYTES / 16, true);
    check_reads(2);
    assert_int_equal(run.series[0].reads, 2);
    assert_true(meter.kept_bytes == 0);
    fake_fill(&run, HEC_GPU_MEM_UTIL, 0, 0, 30, 1, 40);
    for (int i = 0; i < 2; i++) {
        struct checked c = {.of = &run.series[1]};
        assert_int_equal(hec_meter_read(&meter, HEC_GPU_MEM_UTIL, 0, check, &c, NULL), 0);
        assert_int_equal(c.at, 31);
    }
    assert_int_equal(run.series[1].reads, 1);
}

TEST(damage_is_not_kept) {
    struct checked c = {0};
    fill(10, false);
    run.fail = HEC_ERR_CORRUPT;
    assert_int_equal(hec_meter_read(&meter, HEC_GPU_POWER, 0, check, &c, NULL), HEC_ERR_CORRUPT);
    run.fail = 0;
    check_reads(1);
}

struct counted {
    int readings, known;
};

static void count(void *context, const struct hec_counter_reading *reading) {
    struct counted *c = context;
    int64_t i = reading->t_ns / 100000000;
    c->readings++;
    assert_int_equal(reading->mj, 1000 * i);
    assert_int_equal(reading->slack_us, i % 3 ? HEC_SLACK_UNKNOWN : i);
    assert_int_equal(reading->narrowest_us, i % 3 ? HEC_SLACK_UNKNOWN : i % 9 ? i : i - 5);
    c->known += reading->slack_us != HEC_SLACK_UNKNOWN;
}

/* Readings with a slack and without, slacks without a reading, readings that failed; whether slacks are kept or not. */
TEST(counter_has_its_slacks) {
    for (int full = 0; full < 2; full++) {
        struct counted c = {0};
        for (int i = 0; i < 300; i++) {
            if (i % 3 == 0)
                fake_add(&run, HEC_GPU_ENERGY_SLACK, 0, i * 0.1, i);
            if (i % 9 == 0) /* looked at again */
                fake_add(&run, HEC_GPU_ENERGY_SLACK, 0, i * 0.1, i - 5);
            if (i % 2 == 0)
                fake_add(&run, HEC_GPU_ENERGY, 0, i * 0.1, 1000 * i);
        }
        for (size_t i = 0; i < 10; i++)
            run.series[1].valid[10 * i] = 0;
        meter.kept_bytes = full ? HEC_METER_KEPT_BYTES : 0;
        for (int again = 1; again < 3; again++) {
            assert_int_equal(hec_meter_counter(&meter, 0, count, &c, NULL), 0);
            assert_int_equal(c.readings, again * 140);
            assert_int_equal(c.known, again * (50 - 4));
        }
        tear_down(NULL);
        set_up(NULL);
    }
}

/* 400 W in every second of two, 100 W in the other. */
static double truth(double from_s, double to_s) {
    double joules = 100 * (to_s - from_s);
    for (double t = -10; t < to_s; t += 2)
        joules += 300 * fmax(0, fmin(to_s, t + 1) - fmax(from_s, t));
    return joules;
}

static struct hec_device_summary begin(double late_s, double every_s, bool counter) {
    struct hec_device_summary d = {.device = fake_device(0), .power_limit_w = 450, .used = true};
    d.device.has_power_history = every_s < 0.1;
    d.energy = (struct hec_energy){.method = counter ? HEC_ENERGY_COUNTER : HEC_ENERGY_INTEGRAL, .valid = true};
    d.energy.joules = truth(0, 30);
    d.energy.bound_joules = 5;
    for (double t = -1; t <= 31; t += every_s)
        fake_add(&run, HEC_GPU_POWER, 0, t, llround(1000 * truth(t - every_s - late_s, t - late_s) / every_s));
    for (int i = 0; i <= 300 && counter; i++) {
        fake_add(&run, HEC_GPU_ENERGY, 0, i * 0.1, llround(1e6 + 1000 * truth(0, i * 0.1)));
        fake_add(&run, HEC_GPU_ENERGY_SLACK, 0, i * 0.1, 0);
    }
    return d;
}

/* An interval, and the same as a part in pieces, whatever the sensor does. */
TEST(parts_take_what_they_took) {
    static const int64_t edge[] = {0, 1500000000, 4100000000, 4900000000, 11000000000, 26300000000, 30000000000};
    enum { COUNT = sizeof edge / sizeof edge[0] - 1 };
    for (int sensor = 0; sensor < 6; sensor++) {
        struct hec_device_summary d = begin((sensor % 3 - 1) * 0.03, sensor < 3 ? 0.02 : 1, sensor % 2);
        struct hec_joules of[COUNT];
        struct hec_meter_part parts[COUNT];
        assert_int_equal(hec_meter_joules(&meter, &d, edge, COUNT, of, NULL), 0);
        for (int i = 0; i < COUNT; i++) {
            parts[i] = (struct hec_meter_part){.end_ns = meter.end_ns,
                                               .share = calloc(HEC_METER_BINS, sizeof *parts[i].share)};
            int64_t middle = (edge[i] + edge[i + 1]) / 2;
            hec_meter_part_add(&parts[i], edge[i], middle);
            hec_meter_part_add(&parts[i], edge[i] + 1000, middle + 1000); /* they overlap, and go on */
            hec_meter_part_add(&parts[i], middle + 1000, edge[i + 1]);
        }
        assert_int_equal(hec_meter_parts(&meter, &d, parts, COUNT, NULL), 0);
        for (int i = 0; i < COUNT; i++) {
            double is = truth((double)edge[i] / 1e9, (double)edge[i + 1] / 1e9);
            assert_int_equal(parts[i].edges, (i > 0) + (i + 1 < COUNT));
            if (!(fabs(of[i].joules - is) <= of[i].bound) || !(fabs(parts[i].of.joules - is) <= parts[i].of.bound))
                fail_msg("sensor %d, part %d: %g J, %g +- %g, in pieces %g +- %g", sensor, i, is, of[i].joules,
                         of[i].bound, parts[i].of.joules, parts[i].of.bound);
            assert_true(of[i].bound < 5 + 450 * (sensor < 3 ? 0.1 : 1.01));
            free(parts[i].share);
        }
        tear_down(NULL);
        set_up(NULL);
    }
}

/* Of 100 W below a limit of 450 W: all that a short part may have taken, up to the limit, more than what it did; of a long one only what an
 * end may displace; of all but a short rest what the rest may have taken. */
TEST(a_bound_is_what_may_be_on_the_wrong_side) {
    static const int64_t edge[] = {0, 40000000, 10000000000, 29990000000, 30000000000};
    static const double bound[] = {450 * 0.04 - 4, 450 * 2 * 0.05, 450 * 2 * 0.05, 450 * 0.01 - 1};
    enum { COUNT = sizeof bound / sizeof bound[0] };
    struct hec_device_summary d = {.device = fake_device(0), .power_limit_w = 450, .used = true};
    struct hec_joules of[COUNT];
    d.device.has_power_history = true;
    d.energy = (struct hec_energy){.method = HEC_ENERGY_INTEGRAL, .valid = true, .joules = 3000, .bound_joules = 6};
    fake_fill(&run, HEC_GPU_POWER, 0, -1, 31, 0.02, 100000);
    assert_int_equal(hec_meter_joules(&meter, &d, edge, COUNT, of, NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        double seconds = (double)(edge[i + 1] - edge[i]) / 1e9;
        assert_near(of[i].joules, 100 * seconds, 1e-6);
        assert_near(of[i].bound, 6 * seconds / 30 + bound[i], 1e-6);
    }
}

/* ---- parts of a series ---- */

/* 200 MHz from 0 to 10 s, 400 to 20, and nothing more. */
TEST(mean_of_a_part) {
    static const struct {
        double from, to, is;
    } cases[] = {{0, 10, 200},  {5, 15, 300},    {8, 12, 300}, {9, 13, 350},   {12, 18, 400},
                 {15, 25, 400}, {15.5, 25, NAN}, {-4, 4, 200}, {-4.5, 4, NAN}, {25, 30, NAN}};
    for (int i = 0; i < 20; i++)
        fake_add(&run, HEC_GPU_SM_CLOCK, 0, i, i < 10 ? 200 : 400);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double mean = 0;
        assert_int_equal(hec_meter_mean(&meter, HEC_GPU_SM_CLOCK, 0, llround(cases[i].from * 1e9),
                                        llround(cases[i].to * 1e9), &mean, NULL),
                         0);
        if (!(fabs(mean - cases[i].is) < 1e-6) && !(isnan(mean) && isnan(cases[i].is)))
            fail_msg("case %zu: %g", i, mean);
    }
    fake_add(&run, HEC_GPU_UTIL, 0, 0, 500);
    double mean = 0;
    assert_int_equal(hec_meter_mean(&meter, HEC_GPU_UTIL, 0, -1000000000, 0, &mean, NULL), 0);
    run.fail = HEC_ERR_CORRUPT;
    assert_int_equal(hec_meter_mean(&meter, HEC_GPU_MEM_UTIL, 0, 0, 1, &mean, NULL), HEC_ERR_CORRUPT);
}

TEST(scales_of_metrics) {
    assert_near(hec_metric_scale(HEC_GPM_SM_ACTIVE), 1e-3, 0);
    assert_near(hec_metric_scale(HEC_GPM_PCIE_RX), 1024, 0);
    assert_near(hec_metric_scale(HEC_GPU_MEM_USED), 1024, 0);
    assert_near(hec_metric_scale(HEC_GPU_SM_CLOCK), 1, 0);
}

/* ---- what is used of a device ---- */

/* A device of which 1 to 9 s are active, and a moment at 20 s; throttled in a quarter of the readings, at 600 W for half of the time. */
TEST(statistics_of_a_device) {
    struct hec_device_summary d = {.device = fake_device(0)};
    const struct hec_meter_hints hints = {.lost_ns = INT64_MAX};
    for (int i = 1; i <= 300; i++) { /* means of 0.1 s */
        double t = i * 0.1;
        bool active = t > 1.05 && t < 9.05;
        fake_add(&run, HEC_GPM_GR_ACTIVE, 0, t, active ? 800 : i == 200 ? 10 : 0);
        fake_add(&run, HEC_GPM_SM_ACTIVE, 0, t, active ? 600 : 0);
        fake_add(&run, HEC_GPM_SM_OCCUPANCY, 0, t, active ? 300 : 0);
        fake_add(&run, HEC_GPM_TENSOR_ACTIVE, 0, t, active ? 200 : 0);
        fake_add(&run, HEC_GPM_DRAM_ACTIVE, 0, t, active ? 100 : 0);
        fake_add(&run, HEC_GPM_PCIE_RX, 0, t, active ? 2000 : 0);
        fake_add(&run, HEC_GPM_PCIE_TX, 0, t, active ? 1000 : 0);
        fake_add(&run, HEC_GPU_UTIL, 0, t, active ? 900 : 0);
        fake_add(&run, HEC_GPU_MEM_UTIL, 0, t, active ? 50 : 0);
        fake_add(&run, HEC_GPU_POWER, 0, t, active ? 500000 : 100000);
        fake_add(&run, HEC_GPU_MEM_USED, 0, t, i == 150 ? 46800640 : 1000);
        fake_add(&run, HEC_GPU_POWER_LIMIT, 0, t, i <= 150 ? 600000 : 700000);
        fake_add(&run, HEC_GPU_THROTTLE, 0, t, i % 4 == 0);
    }
    fake_add(&run, HEC_GPU_THROTTLE, 0, 40, 1); /* beyond the run */
    assert_int_equal(hec_meter_device(&meter, &hints, &d, NULL), 0);
    assert_true(d.activity.has_gpm);
    assert_int_equal(d.activity.readings, 300);
    assert_near(d.activity.from_s, 1.2, 0.11); /* all but 2 % of the activity at either end, and of whole readings */
    assert_near(d.activity.to_s, 8.9, 0.11);
    assert_near(d.activity.engine, 0.9, 1e-9); /* the larger of both */
    assert_near(d.activity.sm, 0.6, 1e-9);
    assert_near(d.activity.occupancy, 0.3, 1e-9);
    assert_near(d.activity.tensor, 0.2, 1e-9);
    assert_near(d.activity.dram, 0.1, 1e-9);
    assert_near(d.activity.pcie_rx, 2000 * 1024, 1e-6);
    assert_near(d.activity.pcie_tx, 1000 * 1024, 1e-6);
    assert_near(d.activity.mem_util, 0.05, 0.002);
    assert_near(d.activity.power_w, 500, 1e-6);
    assert_near(d.metric[HEC_GPM_SM_ACTIVE].mean, 0.6 * 8 / 30, 1e-9);
    assert_near(d.metric[HEC_GPM_SM_ACTIVE].maximum, 0.6, 1e-12);
    assert_near(d.metric[HEC_GPM_SM_ACTIVE].median, 0, 1e-12);
    assert_int_equal(d.metric[HEC_GPM_SM_ACTIVE].count, 300);
    assert_near(d.power_w.mean, (500.0 * 8 + 100 * 22) / 30, 1e-6);
    assert_near(d.power_w.median, 100, 1e-9);
    assert_near(d.power_w.minimum, 100, 0);
    assert_near(d.power_w.maximum, 500, 0);
    assert_near(d.memory_peak_bytes, 46800640.0 * 1024, 0);
    assert_near(d.memory_left_bytes, 100e6 * 1024, 0);
    assert_near(d.power_limit_w, 650, 0.5);
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++) {
        bool hit = hec_throttle_has(1, (enum hec_throttle)i);
        assert_near(d.throttled_share[i], hit ? 0.25 : 0, 1e-12);
    }
    assert_int_equal(d.metric[HEC_GPU_THROTTLE].count, 0); /* bits have no mean */
    assert_true(isnan(d.metric[HEC_GPU_ENERGY].mean));
}

TEST(statistics_without_readings) {
    struct hec_device_summary d = {.device = fake_device(0)};
    const struct hec_meter_hints hints = {.lost_ns = INT64_MAX};
    assert_int_equal(hec_meter_device(&meter, &hints, &d, NULL), 0);
    assert_near(d.power_limit_w, 700, 0);
    assert_true(isnan(d.memory_peak_bytes) && isnan(d.memory_left_bytes) && isnan(d.throttled_share[0]));
    assert_true(isnan(d.activity.from_s) && !d.activity.has_gpm && d.activity.readings == 0 &&
                isnan(d.activity.engine));
    assert_true(isnan(d.power_w.mean) && !d.energy.valid);
    hec_meter_close(&meter);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    d.device.power_limit_mw = 0;
    d.device.mig_enabled = 1; /* how much a part has is not known */
    fake_add(&run, HEC_GPU_MEM_USED, 0, 1, 1000);
    assert_int_equal(hec_meter_device(&meter, &hints, &d, NULL), 0);
    assert_true(isnan(d.power_limit_w) && isnan(d.memory_left_bytes));
    assert_near(d.memory_peak_bytes, 1000 * 1024, 0);
}

/* ---- as it goes ---- */

TEST(joules_while_it_runs) {
    struct hec_running_joules r = {0};
    assert_true(isnan(hec_running_joules(&r)));
    hec_running_power(&r, 2000000000, 100);
    assert_near(hec_running_joules(&r), 0, 0);
    hec_running_power(&r, 3500000000, 200); /* a mean of the time before it */
    assert_near(hec_running_joules(&r), 300, 1e-9);
    hec_running_power(&r, 3000000000, 500); /* goes back */
    assert_near(hec_running_joules(&r), 300, 1e-9);
    hec_running_power(&r, 4000000000, 50);
    assert_near(hec_running_joules(&r), 350, 1e-9);
    hec_running_counter(&r, 5000000); /* a counter goes before samples */
    assert_near(hec_running_joules(&r), 0, 0);
    hec_running_counter(&r, 5250000);
    assert_near(hec_running_joules(&r), 250, 1e-9);
    hec_running_counter(&r, 1000); /* it began anew */
    assert_near(hec_running_joules(&r), 250, 1e-9);
    hec_running_counter(&r, 51000);
    assert_near(hec_running_joules(&r), 300, 1e-9);
}

EACH_TEST(set_up, tear_down)
