/* The diagnosis in a summary: seconds add up to the run and joules to its energy, watts are those that made the readings,
 * and where there are none, a sentence says why. */
#include "diagnose/replay/schedule.h"
#include "diagnose/result.h"
#include "fake_run.h"
#include "fake_timeline.h"
#include "unit.h"

#define MS INT64_C(1000000)
#define SECONDS 40

static struct fake_run run;
static struct fake_timeline timeline;
static struct hec_summary summary;
static const double watts_of[] = {500, 130, 100}; /* compute, copy, idle */

/* What the device did, in milliseconds, and its energy up to each. */
static uint8_t did[SECONDS * 1000];
static double energy[SECONDS * 1000 + 1];

static void fill_world(void) {
    uint64_t state = 42;
    int at = 0, kind = 2;
    while (at < SECONDS * 1000) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int next = (int)((state >> 40) % 3), length = 10 + (int)((state >> 20) % 140);
        kind = at == 0 ? 2 : next == kind ? (kind + 1) % 3 : next;
        for (int end = at + length; at < end && at < SECONDS * 1000; at++)
            did[at] = (uint8_t)kind;
    }
    for (int i = 0; i < SECONDS * 1000; i++)
        energy[i + 1] = energy[i] + watts_of[did[i]] / 1000;
}

static void fill_trace(void) {
    struct fake_timeline *t = &timeline;
    uint32_t stream = fake_tl_track(t, HEC_TRACK_STREAM, 77, 0, 7);
    uint32_t gemm = fake_tl_kernel(t, "ampere_sgemm_128x64_tn", 256);
    fake_tl_track(t, HEC_TRACK_THREAD, 77, -1, 77);
    for (int from = 0, at = 1; at <= SECONDS * 1000; at++) {
        if (at < SECONDS * 1000 && did[at] == did[from])
            continue;
        if (did[from] == 0)
            fake_tl_add(t, HEC_ACTIVITY_KERNEL, stream, from * MS, at * MS)->name = gemm;
        else if (did[from] == 1)
            fake_tl_add(t, HEC_ACTIVITY_COPY, stream, from * MS, at * MS);
        from = at;
    }
}

static void fill_readings(bool power, bool counter) {
    run.devices[run.device_count++] = fake_device(0);
    for (int at = 20; power && at <= SECONDS * 1000; at += 20)
        fake_add(&run, HEC_GPU_POWER, 0, at / 1000.0, llround((energy[at] - energy[at - 20]) / 0.02 * 1000));
    for (int at = 0; counter && at <= SECONDS * 1000; at += 100) {
        fake_add(&run, HEC_GPU_ENERGY, 0, at / 1000.0, llround(1e6 + 1000 * energy[at]));
        fake_add(&run, HEC_GPU_ENERGY_SLACK, 0, at / 1000.0, 0);
    }
    fake_used(&run, 0, 77);
}

static const struct hec_ledger_device *build(const char **why) {
    struct hec_price price = hec_price_default();
    run.input.timeline = timeline.input;
    assert_int_equal(hec_summary_build(&run.input, &price, &summary, NULL), 0);
    if (summary.devices[0].watts)
        *why = summary.devices[0].watts->why;
    return summary.devices[0].ledger;
}

static void adds_up(const struct hec_ledger_device *d) {
    int64_t ns = 0, mj = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        ns += d->rows[i].ns;
        mj += d->rows[i].mj;
    }
    assert_int_equal(ns, SECONDS * 1000 * MS);
    assert_int_equal(mj, llround(summary.devices[0].readings.energy.joules * 1e3));
}

static void near(double found, double expected, double share) {
    if (!(fabs(found - expected) <= share * expected))
        fail_msg("%g, expected %g", found, expected);
}

TEST(watts_are_reported) {
    const char *why;
    for (int with = 1; with < 4; with++) { /* the power history, the counter, both */
        hec_summary_free(&summary);
        fake_free(&run);
        fake_init(&run, SECONDS);
        fill_readings(with & 1, with & 2);
        const struct hec_ledger_device *d = build(&why);
        assert_non_null(d);
        if (why[0])
            fail_msg("%s", why);
        adds_up(d);
        near(d->rows[HEC_STATE_COMPUTE].watts, 500, 0.03);
        near(d->rows[HEC_STATE_COPY].watts, 130, 0.10);
        near(d->joules, energy[SECONDS * 1000], 0.01);
        double idle = 0, seconds = 0;
        for (int i = 0; i < HEC_STATE_COUNT; i++)
            if (hec_state_idle((enum hec_state)i)) {
                idle += d->rows[i].joules > 0 ? d->rows[i].joules : 0;
                seconds += d->rows[i].seconds;
            }
        near(idle / seconds, 100, 0.10);
        near((double)d->classes[HEC_KERNEL_CLASS_GEMM].ns, (double)d->rows[HEC_STATE_COMPUTE].ns, 0);
    }
}

/* Hardware counters: of who computes, or of somebody else who does throughout. */
static void fill_counters(bool busy) {
    for (int from = 0, computes = 0, at = 1; at <= SECONDS * 1000; at++) {
        computes += did[at - 1] == 0;
        if (at % 500 != 0)
            continue;
        fake_add(&run, HEC_GPM_GR_ACTIVE, 0, at / 1000.0, busy ? 1000 : 1000 * computes / (at - from));
        fake_add(&run, HEC_GPM_SM_ACTIVE, 0, at / 1000.0, 900 * computes / (at - from));
        from = at, computes = 0;
    }
    run.gpu_processes[run.gpu_process_count++] =
        (struct hec_gpu_process){.device = 0, .pid = 99, .last_ns = run.input.end_ns, .visible = 1};
}

/* Somebody else is at work throughout: the joules still add up to the device's, and no interval says what a state took. */
TEST(shared_watts_have_no_intervals) {
    const char *why;
    for (int busy = 0; busy < 2; busy++) {
        hec_summary_free(&summary);
        fake_free(&run);
        fake_init(&run, SECONDS);
        fill_readings(true, true);
        fill_counters(busy);
        const struct hec_ledger_device *d = build(&why);
        assert_string_equal(why, "");
        adds_up(d);
        assert_int_equal(summary.devices[0].readings.others, busy ? HEC_OTHERS_BUSY : HEC_OTHERS_IDLE);
        const char *how = summary.devices[0].watts->how;
        assert_int_equal(strncmp(how, "rough: the joules are the device's", 34) == 0, busy);
        assert_int_equal(isnan(d->rows[HEC_STATE_COMPUTE].watts_low), busy);
        assert_int_equal(isnan(d->rows[HEC_STATE_COMPUTE].watts_high), busy);
        const struct hec_class_profile *profile = hec_profile_of(&summary.devices[0]);
        assert_int_equal(profile->has_counters, !busy);
    }
}

/* Each series of telemetry is read once, whoever is made of it: energy, use, watts, classes, blocks, phases, predictions, the page. */
TEST(each_reading_is_read_once) {
    const char *why;
    fake_free(&run);
    fake_init(&run, SECONDS);
    fill_readings(true, true);
    fill_counters(false);
    fake_fill(&run, HEC_GPU_POWER_LIMIT, 0, 0, SECONDS, 1, 700000);
    fake_fill(&run, HEC_GPU_CONTEXTS, 0, 0, SECONDS, 1, 1);
    fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0, SECONDS, 1, 100);
    run.phases[run.phase_count++].name = "train";
    run.input.view = 1;
    build(&why);
    assert_string_equal(why, "");
    assert_true(summary.blocks.whole.joules > 0);
    assert_non_null(summary.view);
    fake_assert_reads(&run, 1);
}

static bool same(double one, double other) {
    return one == other || (isnan(one) && isnan(other));
}

/* Where only replays are asked for less is made of the trace, and nothing that they go by is another. */
TEST(replays_go_by_the_same) {
    const char *why;
    for (int busy = 0; busy < 2; busy++) {
        struct hec_schedule schedule;
        struct hec_ledger_row rows[HEC_STATE_COUNT];
        hec_summary_free(&summary);
        fake_free(&run);
        fake_init(&run, SECONDS);
        fill_readings(true, true);
        fill_counters(busy);
        memcpy(rows, build(&why)->rows, sizeof rows);
        assert_int_equal(summary.devices[0].readings.others, busy ? HEC_OTHERS_BUSY : HEC_OTHERS_IDLE);
        assert_true(summary.kernel_count > 0);
        hec_summary_free(&summary);
        run.input.schedule = &schedule;
        const struct hec_ledger_device *d = build(&why);
        assert_true(schedule.count > 100);
        assert_int_equal(summary.devices[0].readings.others, busy ? HEC_OTHERS_BUSY : HEC_OTHERS_IDLE);
        for (int i = 0; i < HEC_STATE_COUNT; i++)
            assert_true(d->rows[i].ns == rows[i].ns && same(d->rows[i].watts, rows[i].watts) &&
                        same(d->rows[i].watts_low, rows[i].watts_low) &&
                        same(d->rows[i].watts_high, rows[i].watts_high));
        hec_schedule_free(&schedule);
    }
}

TEST(without_readings_seconds_only) {
    const char *why;
    fill_readings(false, false);
    const struct hec_ledger_device *d = build(&why);
    assert_true(why[0]);
    assert_string_equal(why, summary.devices[0].readings.energy.why);
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        assert_true(isnan(d->rows[i].joules) && isnan(d->rows[i].watts));
    assert_true(isnan(d->joules));
    assert_true(d->rows[HEC_STATE_COMPUTE].seconds > 1);
}

TEST(polled_power_is_left_out) {
    const char *why;
    fill_readings(true, false);
    run.devices[0].has_power_history = 0;
    const struct hec_ledger_device *d = build(&why);
    assert_true(why[0] && isnan(d->joules));
}

TEST(imported_has_time_only) {
    const char *why;
    fill_readings(false, false);
    run.input.imported = "kineto";
    build(&why);
    assert_string_equal(why, "imported from a trace: time only");
}

/* Kernels, the union over streams and the ledger mean the same by communication: what lies bare of it is its state. */
TEST(communication_is_one_thing) {
    const char *why;
    fill_readings(false, false);
    uint32_t stream = fake_tl_track(&timeline, HEC_TRACK_STREAM, 77, 0, 8);
    uint32_t reduce = fake_tl_kernel(&timeline, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 512);
    for (int at = 5; at < SECONDS * 1000; at += 40)
        fake_tl_add(&timeline, HEC_ACTIVITY_KERNEL, stream, at * MS, (at + 20) * MS)->name = reduce;
    const struct hec_ledger_device *d = build(&why);
    const struct hec_device_timeline *t = summary.devices[0].timeline;
    double kernels_s = 0;
    for (int i = 0; i < summary.kernel_count; i++)
        if (summary.kernels[i].kernel_class == HEC_KERNEL_CLASS_COMM)
            kernels_s += summary.kernels[i].seconds;
    assert_non_null(d);
    assert_true(t->comm_overlap > 0.1 && t->comm_overlap < 0.9);
    near(kernels_s, t->comm_s, 1e-9); /* on one stream */
    near(d->rows[HEC_STATE_COMM].seconds, t->comm_s * (1 - t->comm_overlap), 1e-9);
    near(d->rows[HEC_STATE_COMPUTE].seconds, t->compute_s, 1e-9);
}

TEST(no_trace_no_ledger) {
    const char *why = "untouched";
    fill_readings(true, true);
    fake_tl_free(&timeline);
    fake_tl_init(&timeline);
    assert_null(build(&why));
    assert_string_equal(why, "untouched");
    assert_int_equal(summary.devices[0].source.count, 0);
}

TEST(failures_pass_through) {
    struct hec_price price = hec_price_default();
    struct hec_why why;
    fill_readings(true, true);
    int failed = 0;
    for (int pass = 1; pass < 20; pass++) {
        timeline.passes = 0;
        timeline.fail_pass = pass;
        run.input.timeline = timeline.input;
        int err = hec_summary_build(&run.input, &price, &summary, &why);
        if (!err)
            break;
        assert_int_equal(err, HEC_ERR_CORRUPT);
        assert_null(summary.devices);
        failed++;
    }
    assert_int_equal(failed, 2);                               /* windows and steps, then all else */
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++) /* the first failure, the second, and the whole */
        assert_in_range(timeline.reads[kind], 1, 3);
}

static int setup(void **state) {
    (void)state;
    memset(&summary, 0, sizeof summary);
    fake_init(&run, SECONDS);
    fake_tl_init(&timeline);
    fill_world();
    fill_trace();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hec_summary_free(&summary);
    fake_tl_free(&timeline);
    fake_free(&run);
    return 0;
}

EACH_TEST(setup, teardown)
