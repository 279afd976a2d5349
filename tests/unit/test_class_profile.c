/* The profile of kernel classes: watts and counters that made the readings come back, and with them the limit under the
 * roofline. */
#include "diagnose/result.h"
#include "fake_run.h"
#include "fake_timeline.h"
#include "unit.h"

#define MS INT64_C(1000000)
#define SECONDS 60

enum { GEMM, POINTWISE, COPYING, IDLING, DOES };
static const double watts_of[DOES] = {600, 350, 130, 120};
/* permille */
static const double sm_of[DOES] = {950, 900, 0, 0}, tensor_of[DOES] = {800, 0, 0, 0}, dram_of[DOES] = {200, 900, 5, 0},
                    fp32_of[DOES] = {20, 150, 0, 0}, occupancy_of[DOES] = {200, 700, 0, 0};

static struct fake_run run;
static struct fake_timeline timeline;
static struct hec_summary summary;
static uint8_t did[SECONDS * 1000];

/* What the device did, in milliseconds: pieces of 10 to 149 ms (alike: of a step of 8 ms that repeats itself). */
static void fill_world(bool alike, int does) {
    uint64_t state = 7;
    int at = 0, kind = IDLING;
    while (at < SECONDS * 1000) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int next = (int)((state >> 40) % (uint64_t)does), length = alike ? 2 : 10 + (int)((state >> 20) % 140);
        kind = alike ? (kind + 1) % DOES : next == kind ? (kind + 1) % does : next;
        for (int end = at + length; at < end && at < SECONDS * 1000; at++)
            did[at] = (uint8_t)kind;
    }
}

static void fill_trace(void) {
    struct fake_timeline *t = &timeline;
    uint32_t stream = fake_tl_track(t, HEC_TRACK_STREAM, 77, 0, 7);
    uint32_t kernels[] = {fake_tl_kernel(t, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 256),
                          fake_tl_kernel(t, "vectorized_elementwise_kernel", 128)};
    fake_tl_track(t, HEC_TRACK_THREAD, 77, -1, 77);
    for (int from = 0, at = 1; at <= SECONDS * 1000; at++) {
        if (at < SECONDS * 1000 && did[at] == did[from])
            continue;
        if (did[from] == GEMM || did[from] == POINTWISE)
            fake_tl_add(t, HEC_ACTIVITY_KERNEL, stream, from * MS, at * MS)->name = kernels[did[from]];
        else if (did[from] == COPYING)
            fake_tl_add(t, HEC_ACTIVITY_COPY, stream, from * MS, at * MS);
        from = at;
    }
}

static double sum_of(const double *of, int from_ms, int to_ms) {
    double sum = 0;
    for (int i = from_ms; i < to_ms; i++)
        sum += of[did[i]];
    return sum;
}

static void fill_counter(enum hec_metric metric, const double *of) {
    for (int at = 0; at <= SECONDS * 1000; at += 120) {
        fake_add(&run, metric, 0, at / 1000.0, at ? llround(sum_of(of, at - 120, at) / 120) : 0);
        if (!at)
            run.series[run.series_count - 1].valid[0] = 0;
    }
}

static void fill_readings(bool gpm) {
    static const double one[DOES] = {1000, 1000, 0, 0};
    double energy = 0;
    run.devices[run.device_count++] = fake_device(0);
    for (int at = 20; at <= SECONDS * 1000; at += 20)
        fake_add(&run, HEC_GPU_POWER, 0, at / 1000.0, llround(sum_of(watts_of, at - 20, at) / 20 * 1000));
    for (int at = 0; at <= SECONDS * 1000; at += 100) {
        energy += at ? sum_of(watts_of, at - 100, at) : 0;
        fake_add(&run, HEC_GPU_ENERGY, 0, at / 1000.0, llround(1e6 + energy));
        fake_add(&run, HEC_GPU_ENERGY_SLACK, 0, at / 1000.0, 0);
    }
    fake_used(&run, 0, 77);
    if (!gpm)
        return;
    fill_counter(HEC_GPM_GR_ACTIVE, one);
    fill_counter(HEC_GPM_SM_ACTIVE, sm_of);
    fill_counter(HEC_GPM_SM_OCCUPANCY, occupancy_of);
    fill_counter(HEC_GPM_TENSOR_ACTIVE, tensor_of);
    fill_counter(HEC_GPM_HMMA_ACTIVE, tensor_of);
    fill_counter(HEC_GPM_DRAM_ACTIVE, dram_of);
    fill_counter(HEC_GPM_FP32_ACTIVE, fp32_of);
}

static const struct hec_class_profile *build(void) {
    struct hec_price price = hec_price_default();
    run.input.timeline = timeline.input;
    assert_int_equal(hec_summary_build(&run.input, &price, &summary, NULL), 0);
    const struct hec_class_profile *profile = hec_profile_of(&summary.devices[0]);
    assert_non_null(profile);
    return profile;
}

static int setup(void **state) {
    (void)state;
    fake_init(&run, SECONDS);
    fake_tl_init(&timeline);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hec_summary_free(&summary);
    memset(&summary, 0, sizeof summary);
    fake_free(&run);
    fake_tl_free(&timeline);
    return 0;
}

TEST(classes_come_back) {
    fill_world(false, DOES);
    fill_trace();
    fill_readings(true);
    const struct hec_class_profile *p = build();
    const struct hec_class_row *gemm = &p->class[HEC_KERNEL_CLASS_GEMM],
                               *point = &p->class[HEC_KERNEL_CLASS_ELEMENTWISE];
    assert_true(p->has_counters);
    assert_int_equal(p->counters, HEC_COUNTERS_READ);
    assert_near(p->sms, 132, 0);
    assert_near(gemm->share + point->share, 1, 1e-9);
    assert_int_equal(gemm->merged_with, -1);

    assert_near(gemm->counters.pipe[HEC_PIPE_TENSOR].value, 0.8, 0.04);
    assert_near(gemm->counters.dram.value, 0.2, 0.01);
    assert_near(gemm->counters.sm_active.value, 0.95, 0.05);
    assert_near(gemm->counters.occupancy.value, 0.2, 0.01);
    assert_near(point->counters.pipe[HEC_PIPE_TENSOR].value, 0, 0.02);
    assert_near(point->counters.dram.value, 0.9, 0.045);
    assert_near(point->counters.pipe[HEC_PIPE_FP32].value, 0.15, 0.01);
    assert_true(isnan(point->counters.pipe[HEC_PIPE_FP64].value)); /* it has no such reading */
    assert_true(gemm->counters.tensor_known);
    assert_int_equal(gemm->counters.tensor_precision, HEC_PRECISION_FP16);
    assert_false(point->counters.tensor_known);

    assert_int_equal(gemm->point.limit, HEC_LIMIT_MATH);
    assert_int_equal(point->point.limit, HEC_LIMIT_MEMORY);
    assert_true(gemm->point.certain && point->point.certain);
    assert_near(gemm->point.flops, 0.8 * 989.5e12 + 0.02 * 67e12, 0.05 * 792e12);
    assert_near(point->point.bytes_per_s, 0.9 * 4800e9, 0.05 * 4320e9);
    assert_string_equal(hec_roofline_source(&p->peaks), "part table");

    assert_near(gemm->watts, 600, 30);
    assert_near(point->watts, 350, 17.5);
    assert_true(gemm->watts_low <= gemm->watts && gemm->watts <= gemm->watts_high);
    const struct hec_ledger_device *d = summary.devices[0].ledger;
    int64_t mj = 0;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
        mj += d->classes[c].mj;
    assert_true(mj == d->rows[HEC_STATE_COMPUTE].mj);
    assert_near(d->rows[HEC_STATE_COMPUTE].watts, (600 * gemm->seconds + 350 * point->seconds) / p->all.seconds, 10);
    double all = (0.95 * gemm->seconds + 0.9 * point->seconds) / p->all.seconds;
    assert_near(p->all.counters.sm_active.value, all, 0.05);
    assert_near(p->all.seconds, gemm->seconds + point->seconds, 1e-6);
}

/* Steps that are all alike: no window tells the classes apart, and nothing is made up. */
TEST(alike_steps_report_all_compute_only) {
    fill_world(true, DOES);
    fill_trace();
    fill_readings(true);
    const struct hec_class_profile *p = build();
    const struct hec_class_row *gemm = &p->class[HEC_KERNEL_CLASS_GEMM];
    double tensor = gemm->counters.pipe[HEC_PIPE_TENSOR].value;
    assert_true(isnan(gemm->watts));
    assert_true(isnan(tensor) || gemm->merged_with == HEC_KERNEL_CLASS_ELEMENTWISE || !gemm->point.certain);
    assert_near(p->all.counters.pipe[HEC_PIPE_TENSOR].value, 0.4, 0.04);
    assert_near(p->all.counters.dram.value, 0.55, 0.055);
    assert_true(p->all.counters.dram.low <= 0.55 && p->all.counters.dram.high >= 0.55);
}

TEST(one_class_is_all) {
    fill_world(false, DOES);
    for (int i = 0; i < SECONDS * 1000; i++)
        did[i] = did[i] == POINTWISE ? GEMM : did[i];
    fill_trace();
    fill_readings(true);
    const struct hec_class_profile *p = build();
    const struct hec_class_row *gemm = &p->class[HEC_KERNEL_CLASS_GEMM];
    assert_near(gemm->share, 1, 1e-9);
    assert_near(gemm->counters.pipe[HEC_PIPE_TENSOR].value, 0.8, 0.04);
    assert_near(gemm->watts, 600, 30);
    assert_int_equal(gemm->point.limit, HEC_LIMIT_MATH);
    assert_int_equal(p->all.point.limit, HEC_LIMIT_MATH);
}

TEST(without_counters_there_is_a_reason) {
    fill_world(false, DOES);
    fill_trace();
    fill_readings(false);
    const struct hec_class_profile *p = build();
    assert_false(p->has_counters);
    assert_int_equal(p->counters, HEC_COUNTERS_UNREAD);
    assert_int_equal(p->all.point.limit, HEC_LIMIT_UNKNOWN);
    assert_true(isnan(p->class[HEC_KERNEL_CLASS_GEMM].counters.dram.value));
    assert_near(p->class[HEC_KERNEL_CLASS_GEMM].watts, 600, 30); /* power alone tells those */
}

static int calibrated(void *context, const struct hec_device *device, struct hec_peaks *out) {
    (void)context;
    assert_int_equal(device->index, 0);
    hec_peaks_init(out);
    out->sms = 78;
    out->peak[HEC_PEAK_FP16].value = 1.1e15;
    out->peak[HEC_PEAK_DRAM_READ].value = 4e12; /* less than is stated: that is the roof */
    return 0;
}

static int never_calibrated(void *context, const struct hec_device *device, struct hec_peaks *out) {
    (void)context;
    (void)device;
    (void)out;
    return HEC_ERR_NOTFOUND;
}

TEST(measured_peaks_are_used) {
    fill_world(false, DOES);
    fill_trace();
    fill_readings(true);
    run.input.peaks = calibrated;
    const struct hec_class_profile *p = build();
    assert_string_equal(hec_roofline_source(&p->peaks), "calibrated");
    assert_near(p->peaks.flops[HEC_PRECISION_FP16], 1.1e15, 1);
    assert_near(p->peaks.flops[HEC_PRECISION_TF32], 494.5e12, 1);
    assert_near(p->peaks.bytes_per_s, 4800e9, 1);
    assert_near(p->sms, 78, 0);
    hec_summary_free(&summary);
    run.input.peaks = never_calibrated;
    p = build();
    assert_string_equal(hec_roofline_source(&p->peaks), "part table");
    assert_near(p->sms, 132, 0);
}

EACH_TEST(setup, teardown)
