/* The steady part in blocks, against a world whose power is known at every instant and whose steps are planted. */
#include "diagnose/meter/meter.h"
#include "diagnose/steady_blocks.h"
#include "diagnose/timeline/pass.h"

#include "recorded_run.h"

#define RUN_S 30.0
#define NS 1e9

static struct hec_device_diagnosis devices[2];
static struct hec_steady_blocks blocks;

/* Power rises from 100 W at 2 s to 400 W at 20 s. */
static double truth(double a, double b) {
    double joules = 0;
    for (int i = 0; i < 4000; i++) {
        double t = a + (b - a) * (i + 0.5) / 4000;
        joules += (t < 2 ? 100 : t < 20 ? 100 + 300 * (t - 2) / 18 : 400) * (b - a) / 4000;
    }
    return joules;
}

/* The counter is right; the power samples are off by the gain. */
static void begin(int device_count, double gain) {
    memset(&summary, 0, sizeof summary); /* nothing in it is its own */
    run_begin(RUN_S);
    fake_tl_init(&timeline);
    memset(devices, 0, sizeof devices);
    summary.devices = devices;
    summary.device_count = device_count;
    for (int i = 0; i < device_count; i++) {
        devices[i].readings = (struct hec_device_summary){.device = fake_device(i), .used = true};
        devices[i].readings.energy.method = HEC_ENERGY_COUNTER;
        devices[i].readings.energy.valid = true;
        devices[i].readings.energy.joules = truth(0, RUN_S);
        devices[i].readings.power_limit_w = 500;
        devices[i].readings.activity.from_s = 2;
        devices[i].readings.activity.to_s = 28;
        for (int k = 1; k <= 1500; k++)
            fake_add(&run, HEC_GPU_POWER, i, k * 0.02, llround(1000 * gain * truth((k - 1) * 0.02, k * 0.02) / 0.02));
        for (double t = 0.05; t < RUN_S; t += t < 10 ? 0.3 : 2.1) { /* 10 ms late, and said to be at most 20 */
            fake_add(&run, HEC_GPU_ENERGY, i, t + 0.01, llround(1000 * truth(0, t)) + 5000000);
            fake_add(&run, HEC_GPU_ENERGY_SLACK, i, t + 0.01, 20000);
        }
    }
}

static uint32_t thread_of(int32_t pid) {
    for (uint32_t i = 0; i < timeline.track_count; i++)
        if (timeline.tracks[i].pid == pid)
            return timeline.tracks[i].id;
    return fake_tl_track(&timeline, HEC_TRACK_THREAD, pid, HEC_DEVICE_NONE, pid);
}

static void step(int32_t pid, double from_s, double to_s, double amount) {
    struct hec_activity *a =
        fake_tl_add(&timeline, HEC_ACTIVITY_STEP, thread_of(pid), llround(from_s * NS), llround(to_s * NS));
    a->detail = HEC_STEP_MARKED;
    a->amount = amount;
    a->name = fake_tl_name(&timeline, "sample");
}

static void units(const char *name, double count) {
    snprintf(summary.units[0].name, sizeof summary.units[0].name, "%s", name);
    summary.units[0].count = count;
    summary.unit_count = 1;
}

static void build(void) {
    struct hec_pass pass;
    struct hec_meter meter;
    timeline.input.end_ns = run.input.end_ns;
    run.input.timeline = timeline.input;
    assert_int_equal(hec_pass_open(&run.input.timeline, &pass, NULL), 0);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    assert_int_equal(hec_steady_blocks_build(&pass, &meter, &summary, &blocks, NULL), 0);
    assert_int_equal(hec_loop_build(&pass, &meter, &summary, NULL), 0);
    hec_loop_units(&summary);
    hec_meter_close(&meter);
    hec_pass_close(&pass);
}

static void assert_adds_up(void) {
    struct hec_steady_block sum = {0};
    for (int i = 0; i < blocks.count; i++) {
        assert_true(blocks.block[i].seconds > 0);
        sum.seconds += blocks.block[i].seconds;
        sum.joules += blocks.block[i].joules;
        sum.units += blocks.block[i].units;
        sum.steps += blocks.block[i].steps;
    }
    assert_near(blocks.whole.seconds, sum.seconds, 1e-9);
    if (isfinite(blocks.whole.joules))
        assert_near(blocks.whole.joules, sum.joules, 1e-6);
    if (isfinite(blocks.whole.units))
        assert_near(blocks.whole.units, sum.units, 1e-6);
    if (isfinite(blocks.whole.steps))
        assert_near(blocks.whole.steps, sum.steps, 1e-9);
}

/* Steps of 0.2 s with gaps of 0.05 s between them from 3 s on: the first three are no part of it. */
static void train(int32_t pid, double amount) {
    for (int k = 0; k < 100; k++)
        step(pid, 3 + 0.25 * k, 3.2 + 0.25 * k, amount);
}

/* The counter's joules, although the samples are 4 % off, in each block as in the whole; of both devices together. */
TEST(test_steps) {
    for (int device_count = 1; device_count <= 2; device_count++) {
        begin(device_count, 1.04);
        train(10, 64);
        units("sample", 6400);
        build();
        assert_int_equal(blocks.work, HEC_WORK_BY_STEP);
        assert_string_equal(blocks.unit, "sample");
        assert_int_equal(blocks.count, 60);
        assert_adds_up();
        assert_near(blocks.whole.steps, 97, 0);
        assert_near(blocks.whole.units, 97 * 64, 1e-6);
        assert_near(blocks.whole.seconds, 97 * 0.25, 1e-6);
        assert_near(blocks.whole.joules, device_count * truth(3.7, 27.95), device_count * 8);
        assert_near(blocks.step_p50, 0.2, 1e-6);
        assert_near(blocks.step_p99, 0.2, 1e-6);
        double at = 3.7;
        for (int i = 0; i < blocks.count; i++) {
            const struct hec_steady_block *b = &blocks.block[i];
            assert_true(b->steps == 1 || b->steps == 2);
            assert_near(b->units, 64 * b->steps, 1e-6);
            double joules = device_count * truth(at, at + b->seconds);
            assert_near(b->joules, joules, 0.06 * joules); /* readings are known to 10 ms of 0.3 s here */
            at += b->seconds;
        }
    }
}

/* Only the first quarter may be set-up: what takes long later belongs to the loop. */
TEST(test_a_long_step_late) {
    begin(1, 1);
    for (int k = 0; k < 24; k++)
        step(10, 3 + 0.25 * k + (k > 10 ? 2 : 0), 3.2 + 0.25 * k + (k >= 10 ? 2 : 0), 64);
    units("sample", 24 * 64);
    build();
    assert_near(blocks.whole.steps, 21, 0);
    assert_near(blocks.whole.seconds, 21 * 0.25 + 2, 1e-6);
}

/* Rate and joules of work are of the loop; what set-up and the end took stands beside it, and all three are the run. */
TEST(test_loop) {
    begin(2, 1);
    train(10, 64);
    units("sample", 6400);
    summary.units[0].devices = 1; /* of the first device's program */
    build();
    const struct hec_loop *loop = &summary.loop;
    assert_true(loop->known);
    assert_int_equal(loop->steps, 97);
    assert_near(loop->seconds[HEC_RUN_SETUP], 3.7, 1e-6);
    assert_near(loop->seconds[HEC_RUN_LOOP], 97 * 0.25, 1e-6);
    assert_near(loop->seconds[HEC_RUN_END], RUN_S - 27.95, 1e-6);
    assert_near(loop->joules[HEC_RUN_SETUP], 2 * truth(0, 3.7), 2 * 8);
    assert_near(loop->joules[HEC_RUN_LOOP], 2 * truth(3.7, 27.95), 2 * 8);
    assert_near(loop->joules[HEC_RUN_END], 2 * truth(27.95, RUN_S), 2 * 8);
    assert_near(summary.units[0].loop_count, 97 * 64, 1e-6);
    assert_near(summary.units[0].loop_per_second, 64 / 0.25, 1e-6);
    assert_near(summary.units[0].loop_joules_per_unit, truth(3.7, 27.95) / (97 * 64), 8 / (97.0 * 64));
    begin(1, 1); /* too short for its joules */
    for (int k = 0; k < 10; k++)
        step(10, 5 + 0.01 * k, 5.01 + 0.01 * k, 1);
    units("sample", 10);
    summary.units[0].devices = 1;
    build();
    assert_near(summary.units[0].loop_per_second, 100, 1e-6);
    assert_true(isnan(summary.units[0].loop_joules_per_unit));
    begin(1, 1); /* too few steps: nothing tells where it is */
    for (int i = 0; i < 5; i++)
        step(10, 5 + i, 6 + i, 1);
    units("sample", 5);
    build();
    assert_false(summary.loop.known);
    assert_true(isnan(summary.units[0].loop_count) && isnan(summary.units[0].loop_per_second));
}

/* The line that held up most of set-up, over all states that the device was in. */
TEST(test_loop_setup_line) {
    struct hec_source_line lines[] = {
        {.state = HEC_STATE_HOST, .file = "load.py", .line = 7, .samples = 40, .share = 0.5},
        {.state = HEC_STATE_HOST, .file = "main.py", .line = 20, .function = "main", .samples = 30, .share = 0.375},
        {.state = HEC_STATE_STARTUP, .file = "main.py", .line = 20, .function = "main", .samples = 20, .share = 1}};
    begin(1, 1);
    train(10, 64);
    devices[0].setup_source = (struct hec_source_lines){lines, 3};
    build();
    assert_string_equal(summary.loop.setup_line.file, "main.py");
    assert_int_equal(summary.loop.setup_line.line, 20);
    assert_near(summary.loop.setup_line.share, 0.5, 1e-9);
}

/* Two ranks: the work of both, by the steps of one. */
TEST(test_ranks) {
    begin(2, 1);
    train(10, 64);
    for (int k = 0; k < 90; k++)
        step(11, 3 + 0.25 * k, 3.2 + 0.25 * k, 32);
    units("sample", 6400 + 2880);
    build();
    assert_adds_up();
    assert_near(blocks.whole.units, 97 * 64 + 87 * 32, 1e-3);
    assert_near(blocks.whole.steps, 97, 0);
}

/* Units of the whole run, laid to steps in proportion; without any, steps are the unit, of one process. */
TEST(test_units_given) {
    begin(1, 1);
    train(10, 64);
    units("token", 64000);
    build();
    assert_string_equal(blocks.unit, "token");
    assert_near(blocks.whole.units, 64000 * 0.97, 1e-3);
    begin(1, 1);
    train(10, NAN);
    train(11, NAN);
    build();
    assert_string_equal(blocks.unit, "step");
    assert_near(blocks.whole.units, 97, 1e-6);
}

/* Steps of one length or none, long ones, ones that overlap: whole steps in each block, none lost. */
TEST(test_odd_steps) {
    begin(1, 1);
    for (int k = 0; k < 10; k++) /* those before the steady part are longer */
        step(10, 2 + 2.0 * k - (k < 3), 4.5 + 2.0 * k, 8);
    units("sample", 80);
    build();
    assert_adds_up();
    assert_int_equal(blocks.count, 7);
    assert_near(blocks.whole.steps, 7, 0);
    assert_near(blocks.whole.seconds, 14, 1e-6);
    assert_near(blocks.whole.joules, truth(8.5, 22.5), 8);
    assert_near(blocks.step_p99, 2.5, 1e-6);
    begin(1, 1);
    for (int k = 0; k < 8; k++)
        step(10, 5, 5, 8);
    units("sample", 64);
    build();
    assert_int_equal(blocks.work, HEC_WORK_EVENLY); /* no length: no steady part */
    assert_true(isnan(blocks.step_p50) && isnan(blocks.step_p99));
    assert_adds_up();
}

/* Without steps: the time in use; the whole run where its work was counted. */
TEST(test_no_steps) {
    begin(1, 1);
    build();
    assert_int_equal(blocks.work, HEC_WORK_UNKNOWN);
    assert_string_equal(blocks.unit, "");
    assert_int_equal(blocks.count, 60);
    assert_near(blocks.whole.seconds, 26, 1e-6);
    assert_near(blocks.whole.joules, truth(2, 28), 8);
    assert_true(isnan(blocks.whole.units) && isnan(blocks.whole.steps));
    assert_adds_up();
    begin(1, 1);
    units("image", 300);
    build();
    assert_int_equal(blocks.work, HEC_WORK_EVENLY);
    assert_near(blocks.whole.seconds, RUN_S, 1e-6);
    assert_near(blocks.whole.units, 300, 1e-6);
    assert_near(blocks.whole.joules, truth(0, RUN_S), 8);
    begin(1, 1);
    for (int i = 0; i < 5; i++) /* fewer than six are none */
        step(10, 5 + i, 6 + i, 1);
    build();
    assert_int_equal(blocks.work, HEC_WORK_UNKNOWN);
}

/* What was not measured is not zero: energy that is not valid, a device that was not used, no device, an import. */
TEST(test_no_joules) {
    for (int what = 0; what < 3; what++) {
        begin(what == 2 ? 0 : 2, 1);
        train(10, 64);
        units("sample", 6400);
        if (what == 0)
            devices[1].readings.energy.valid = false;
        else
            devices[0].readings.used = devices[1].readings.used = false;
        build();
        assert_int_equal(blocks.count, 60);
        assert_true(isnan(blocks.whole.joules));
        for (int i = 0; i < blocks.count; i++)
            assert_true(isnan(blocks.block[i].joules));
        assert_near(blocks.whole.units, 97 * 64, 1e-6);
    }
}

/* A counter that goes back says nothing there, and the samples do; without a counter they say all. */
TEST(test_samples) {
    begin(1, 1);
    train(10, 64);
    for (int i = 0; i < run.series_count; i++)
        for (size_t k = 20; run.series[i].metric == HEC_GPU_ENERGY && k < run.series[i].count; k++)
            run.series[i].v[k] -= 5000000;
    build();
    assert_near(blocks.whole.joules, truth(3.7, 27.95), 8);
    begin(1, 1);
    train(10, 64);
    devices[0].readings.energy.method = HEC_ENERGY_INTEGRAL;
    build();
    assert_near(blocks.whole.joules, truth(3.7, 27.95), 8);
    begin(1, 1); /* polled: longer blocks */
    train(10, 64);
    devices[0].readings.device.has_power_history = 0;
    build();
    assert_int_equal(blocks.count, 8);
    assert_adds_up();
}
