/* Energy by phase against a world whose power is known at every instant. */
#include "diagnose/build.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/meter/meter.h"

#include "recorded_run.h"

#define RUN_S 40.0
#define LOW_W 100.0
#define HIGH_W 500.0

static struct hec_device_diagnosis devices[2];
static uint32_t threads[3];
static double high_from_s, high_to_s, period_s; /* HIGH_W in [from, to) of each period, LOW_W elsewhere */

/* Energy of [a, b]. */
static double truth(double a, double b) {
    double joules = LOW_W * (b - a);
    for (double at = 0; at < b; at += period_s) {
        double from = fmax(a, at + high_from_s), to = fmin(b, at + high_to_s);
        joules += to > from ? (HIGH_W - LOW_W) * (to - from) : 0;
    }
    return joules;
}

static void add_power(int device, double every_s, double lag_s) {
    for (double t = -1; t <= RUN_S + 1; t += every_s)
        fake_add(&run, HEC_GPU_POWER, device, t, llround(1000 * truth(t - every_s - lag_s, t - lag_s) / every_s));
}

static void begin(int device_count) {
    memset(&summary, 0, sizeof summary); /* nothing in it is its own */
    run_begin(RUN_S);
    fake_tl_init(&timeline);
    for (int i = 1; i < 3; i++)
        threads[i] = fake_tl_track(&timeline, HEC_TRACK_THREAD, 10, -1, i);
    memset(devices, 0, sizeof devices);
    summary.devices = devices;
    summary.device_count = device_count;
    for (int i = 0; i < device_count; i++) {
        devices[i].readings.device = fake_device(i);
        devices[i].readings.used = true;
        devices[i].readings.power_limit_w = 550;
        devices[i].readings.energy.joules = truth(0, RUN_S);
        devices[i].readings.energy.bound_joules = 1;
        summary.joules += devices[i].readings.energy.joules;
    }
}

static struct hec_phase_summary *phase(const char *name) {
    struct hec_phase_summary *made = &summary.phases[summary.phase_count++];
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

static void interval(const char *name, int tid, double from_s, double to_s) {
    fake_tl_add(&timeline, HEC_ACTIVITY_PHASE, threads[tid], llround(from_s * 1e9), llround(to_s * 1e9))->name =
        fake_tl_name(&timeline, name);
}

static void build(void) {
    run.input.timeline = timeline.input;
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    struct hec_phases *phases;
    struct hec_meter meter;
    assert_int_equal(hec_pass_open(&run.input.timeline, &pass, NULL), 0);
    assert_int_equal(hec_phases_begin(&pass.tables, run.input.end_ns, &summary, &phases, &consumer), 0);
    assert_int_equal(hec_pass_run(&pass, &consumer, 1, NULL), 0);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    assert_int_equal(hec_phases_end(phases, &meter, NULL), 0);
    hec_meter_close(&meter);
    hec_phases_free(phases);
    hec_pass_close(&pass);
}

static void assert_joules(const struct hec_phase_summary *p, double joules, double bound_max) {
    if (!(fabs(p->joules - joules) <= p->bound_joules && p->bound_joules <= bound_max))
        fail_msg("%s: %g +- %g (%d), not %g within %g", p->name, p->joules, p->bound_joules, (int)p->energy, joules,
                 bound_max);
}

/* Long phases, the sensor late or early; threads that overlap count once; what nests counts in both. */
TEST(test_long_phases) {
    for (double lag_s = -0.04; lag_s < 0.05; lag_s += 0.02) {
        high_from_s = 10, high_to_s = 30, period_s = 100;
        begin(2);
        add_power(0, 0.02, lag_s);
        add_power(1, 0.02, lag_s);
        struct hec_phase_summary *all = phase("all"), *train = phase("train"), *inner = phase("inner"),
                                 *load = phase("load");
        interval("all", 1, -0.5, 50);
        interval("load", 1, 0.001, 10);
        interval("train", 1, 10, 24);
        interval("train", 2, 12, 30);
        interval("inner", 1, 15, 20);
        interval("inner", 1, 16, 17);
        build();
        assert_joules(all, 2 * truth(0, RUN_S), 2.1);
        assert_joules(train, 2 * truth(10, 30), 2 * 0.1 * 550 + 2);
        assert_joules(inner, 2 * truth(15, 20), 2 * 0.1 * 550 + 2);
        assert_joules(load, 2 * truth(0.001, 10), 2 * 0.1 * 550 + 2);
    }
}

/* Many short ones: the two sides cannot be separated, and that is said; but a phase that is nearly all of the run is
 * known. */
TEST(test_short_phases) {
    high_from_s = 0.004, high_to_s = 0.1, period_s = 0.1;
    begin(1);
    add_power(0, 0.02, 0.01);
    struct hec_phase_summary *train = phase("train"), *data = phase("data"), *absent = phase("absent");
    for (int i = 0; i < 400; i++) {
        interval("data", 1, i * 0.1, i * 0.1 + 0.004);
        interval("train", 1, i * 0.1 + 0.004, i * 0.1 + 0.1);
    }
    build();
    double busy = 0;
    for (int i = 0; i < 400; i++)
        busy += truth(i * 0.1 + 0.004, i * 0.1 + 0.1);
    assert_joules(train, busy, 0.06 * busy);
    assert_true(isnan(data->joules) && isnan(data->bound_joules));
    assert_int_equal(data->energy, HEC_PHASE_ENERGY_SHORT);
    assert_true(isnan(absent->joules) && absent->energy != HEC_PHASE_ENERGY_KNOWN);
}

/* Polled power is a mean of the last second: a phase of two seconds is not reported, one of ten is. */
TEST(test_polled_power) {
    high_from_s = 10, high_to_s = 20, period_s = 100;
    begin(1);
    devices[0].readings.device.has_power_history = 0;
    add_power(0, 1.0, 0);
    struct hec_phase_summary *two = phase("two"), *ten = phase("ten");
    interval("two", 1, 5, 7);
    interval("ten", 1, 10, 20);
    build();
    assert_true(isnan(two->joules));
    assert_joules(ten, truth(10, 20), 551);
}

/* Without a run's energy there is none of a phase, and nothing fails. */
TEST(test_no_energy) {
    high_from_s = 0, high_to_s = 1, period_s = 100;
    begin(1);
    summary.joules = NAN;
    struct hec_phase_summary *train = phase("train");
    build();
    assert_true(isnan(train->joules));
    assert_int_equal(train->energy, HEC_PHASE_ENERGY_NO_TOTAL);
    begin(1); /* no readings */
    train = phase("train");
    interval("train", 1, 1, 2);
    build();
    assert_true(isnan(train->joules));
    assert_int_equal(train->energy, HEC_PHASE_ENERGY_NO_POWER);
}
