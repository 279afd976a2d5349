/* Device time of forward, backward and optimizer by what launched it, and MFU by the FLOPs that the hooks counted. */
#include "diagnose/build.h"
#include "model/part.h"
#include "timeline_run.h"

static struct hec_summary s;
static struct hec_device_diagnosis device;
static struct hec_device_timeline timeline;
static struct hec_ledger_device ledger;

#define MS 1000000

static int begin(void **state) {
    timeline_begin(state);
    fake_tl_kernel(&t, "sgemm", 128);
    fake_tl_kernel(&t, "ncclDevKernel_AllReduce", 128);
    s = (struct hec_summary){.devices = &device, .device_count = 1};
    device = (struct hec_device_diagnosis){.timeline = &timeline, .ledger = &ledger};
    timeline = (struct hec_device_timeline){.traced = {.everywhere = true}, .compute_s = 1};
    memset(&ledger, 0, sizeof ledger);
    for (int i = 0; i < HEC_KERNEL_CLASS_COUNT; i++)
        ledger.classes[i] = (struct hec_ledger_class){.watts = NAN};
    ledger.rows[HEC_STATE_COMPUTE] = (struct hec_ledger_row){.watts = 400, .watts_low = 300, .watts_high = 500};
    return 0;
}

static void part(const char *name, uint32_t on, int64_t from_ms, int64_t to_ms) {
    uint32_t id = fake_tl_name(&t, name);
    fake_tl_add(&t, HEC_ACTIVITY_PHASE, on, from_ms * MS, to_ms * MS)->name = id;
}

static void launch(uint32_t kernel, uint32_t by, int64_t at_ms, int64_t start_ms, int64_t ms) {
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, start_ms * MS, (start_ms + ms) * MS);
    a->name = kernel;
    if (by)
        fake_tl_launched(a, at_ms * MS, at_ms * MS + 1, by);
}

static void step(int64_t from_ms, int64_t to_ms) {
    fake_tl_add(&t, HEC_ACTIVITY_STEP, process, from_ms * MS, to_ms * MS)->detail = HEC_STEP_OPTIMIZER;
}

static void find(void) {
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    struct hec_step_parts_builder *builder;
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    assert_int_equal(hec_step_parts_begin(&pass, &builder, &consumer), 0);
    assert_int_equal(hec_pass_run(&pass, &consumer, 1, NULL), 0);
    assert_int_equal(hec_step_parts_end(builder, &s), 0);
    hec_pass_close(&pass);
}

/* Two steps of 50 ms: 10 forward, 20 backward by a thread of its own, 5 in the optimizer, 3 elsewhere; communication is left out. */
static void two_steps(void) {
    for (int64_t at = 0; at < 100; at += 50) {
        step(at, at + 50);
        part("part/forward", thread, at + 1, at + 3);
        part("part/backward", thread, at + 4, at + 8);
        part("part/optimizer", thread, at + 9, at + 10);
        part("data", thread, at, at + 40);
        launch(1, thread, at + 2, at + 2, 10); /* all of them run later than they are launched */
        launch(1, thread, at + 3, at + 12, 3);
        launch(1, second_thread, at + 5, at + 15, 20);
        launch(2, second_thread, at + 6, at + 15, 30);
        launch(1, thread, at + 9, at + 45, 5);
    }
}

static void assert_parts(double steps, double forward, double backward, double optimizer, double other) {
    const double expected[] = {forward, backward, optimizer, other};
    near(device.parts.steps, steps);
    for (int i = 0; i <= HEC_STEP_PARTS; i++)
        near(device.parts.part[i].seconds, expected[i]);
}

TEST(by_launch) {
    two_steps();
    find();
    assert_parts(2, 0.020, 0.040, 0.010, 0.006);
    assert_false(device.parts.glimpse);
    near(device.parts.part[HEC_STEP_BACKWARD].step_joules, 0.020 * 400);
    near(device.parts.part[HEC_STEP_BACKWARD].step_joules_low, 0.020 * 300);
    near(device.parts.part[HEC_STEP_BACKWARD].step_joules_high, 0.020 * 500);
}

TEST(joules_are_of_the_union_and_of_classes) {
    two_steps();
    timeline.compute_s = 0.038; /* half of the sum: two streams */
    ledger.classes[hec_kernel_class_of("sgemm")] =
        (struct hec_ledger_class){.watts = 600, .watts_low = 600, .watts_high = 600};
    find();
    near(device.parts.part[HEC_STEP_FORWARD].step_joules, 0.5 * 0.010 * 600);
    device.ledger = NULL; /* nothing is known of its power */
    find();
    assert_true(isnan(device.parts.part[HEC_STEP_FORWARD].step_joules));
}

TEST(of_a_glimpse) {
    two_steps();
    timeline.traced = (struct hec_intervals){0};
    assert_int_equal(hec_intervals_append(&timeline.traced, 25 * MS, 100 * MS), 0);
    ledger.basis = HEC_LEDGER_GLIMPSE;
    find();
    near(device.parts.steps, 1.5);
    assert_true(device.parts.glimpse);
    hec_intervals_free(&timeline.traced);
}

TEST(parts_of_another_process_are_not_its_own) {
    uint32_t other = fake_tl_track(&t, HEC_TRACK_THREAD, PID + 7, -1, 99);
    two_steps();
    part("part/optimizer", other, 2, 6); /* begins last before these launches */
    find();
    assert_parts(2, 0.020, 0.040, 0.010, 0.006);
}

TEST(parts_within_parts) { /* a closure that the optimizer calls */
    step(0, 50);
    part("part/optimizer", thread, 1, 40);
    part("part/forward", thread, 2, 10);
    launch(1, thread, 5, 6, 3);
    launch(1, thread, 20, 21, 4);
    find();
    assert_parts(1, 0.003, 0, 0.004, 0);
}

TEST(nothing_is_said_where_launches_or_steps_are_not_known) {
    two_steps();
    launch(1, 0, 0, 98, 20);
    find();
    near(device.parts.steps, 0);
    begin(NULL);
    part("part/forward", thread, 1, 3);
    launch(1, thread, 2, 2, 10);
    find(); /* no steps */
    near(device.parts.steps, 0);
    begin(NULL);
    step(0, 50);
    launch(1, thread, 2, 2, 10);
    find(); /* no parts */
    near(device.parts.steps, 0);
}

/* ---- FLOPs ---- */

TEST(what_the_hooks_say) {
    struct hec_model_flops f;
    hec_model_flops_read("6 0.0012 fp16=1.5e12 tf32=2e9", NULL, &f);
    assert_int_equal(f.counted, 6);
    near(f.error, 0.0012);
    near(f.step[HEC_PRECISION_FP16], 1.5e12);
    near(f.step[HEC_PRECISION_TF32], 2e9);
    near(f.all, 1.502e12);
    static const char *const bad[] = {
        "",           "6",           "6 0.1",          "0 0.1 fp16=1",  "6 2 fp16=1", "6 nan fp16=1",
        "6 0 fp17=1", "6 0 fp16=-1", "6 0 fp16=inf",   "6 0 fp16=1e31", "6 0 fp16",   "6 0 fp16=1x",
        "6 0 fp16=",  "x",           "6 0 fp16=1 tf32"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hec_model_flops_read(bad[i], "torch.compile", &f);
        if (f.all != 0 || f.step[HEC_PRECISION_FP16] != 0)
            fail_msg("\"%s\" is taken", bad[i]);
        assert_string_equal(f.why, "torch.compile");
    }
    hec_model_flops_read(NULL, NULL, &f);
    assert_true(f.all == 0 && !f.why[0]);
}

TEST(what_the_hooks_say_of_products) {
    struct hec_model_flops f;
    hec_model_flops_read("6 0 fp16=100 tf32=50", NULL, &f);
    hec_model_products_read("fp16=40 tf32=60 weights=7", &f);
    near(f.odd[HEC_PRECISION_FP16], 40);
    near(f.odd[HEC_PRECISION_TF32], 50); /* no more than there are */
    near(f.weights, 7);
    static const char *const bad[] = {"fp17=1",  "weights=-1",     "weights=inf", "weights",
                                      "fp16=1x", "weights=3 fp16", NULL,          ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hec_model_flops_read("6 0 fp16=100", NULL, &f);
        hec_model_products_read(bad[i], &f);
        if (f.weights != 0 || f.odd[HEC_PRECISION_FP16] != 0)
            fail_msg("\"%s\" is taken", bad[i] ? bad[i] : "nothing");
    }
    hec_model_flops_read(NULL, "torch.compile", &f);
    hec_model_products_read("weights=7", &f); /* of no FLOPs */
    near(f.weights, 0);
}

static double mfu(void) {
    hec_mfu_find(&s);
    return device.mfu;
}

TEST(utilisation_of_the_loop) {
    struct hec_rank ranks[2] = {{.pid = 1, .devices = 1}, {.pid = 2, .devices = 2}};
    const struct hec_part *part = hec_part_find("NVIDIA H200");
    snprintf(device.readings.device.name, sizeof device.readings.device.name, "NVIDIA H200");
    device.readings.used = true;
    s.steps.source = HEC_STEP_OPTIMIZER;
    s.loop.known = true;
    s.loop.steps = 100;
    s.loop.seconds[HEC_RUN_LOOP] = 10;
    s.flops.step[HEC_PRECISION_FP16] = s.flops.all = 0.04 * part->peak_tflops[HEC_PRECISION_FP16] * 1e12;
    near(mfu(), 0.4);
    s.flops.step[HEC_PRECISION_FP32] = 0.01 * part->peak_tflops[HEC_PRECISION_FP32] * 1e12;
    near(mfu(), 0.5); /* each by the peak of its own */
    s.job = (struct hec_job_diagnosis){.ranks = ranks, .rank_count = 2};
    assert_true(isnan(mfu())); /* two programs: whose FLOPs they are is not known */
    s.job.size = 2;
    near(mfu(), 0.5); /* two ranks */
    ranks[0].devices = 5;
    near(mfu(), 0.25); /* a process with two devices */
    s.job = (struct hec_job_diagnosis){0};
    s.steps.source = HEC_STEP_MARKED; /* are not those of the hooks */
    assert_true(isnan(mfu()));
    s.steps.source = HEC_STEP_MODULE;
    near(mfu(), 0.5);
    s.loop.steps = 300; /* more than the device can: of another model */
    assert_true(isnan(mfu()));
    s.loop.steps = 100;
    s.loop.known = false;
    assert_true(isnan(mfu()));
    s.loop.known = true;
    snprintf(device.readings.device.name, sizeof device.readings.device.name, "unheard of");
    assert_true(isnan(mfu()));
}

EACH_TEST(begin, NULL)
