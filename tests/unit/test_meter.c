/* The meter: each series is read once and fed alike from what is kept, and a part of a run takes what the world took. */
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

EACH_TEST(set_up, tear_down)
