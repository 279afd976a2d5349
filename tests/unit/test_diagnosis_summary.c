/* The diagnosis in a summary: seconds add up to the run and joules to its energy, watts and counters are those that made the
 * readings, of states and of classes of kernels, and where there are none, a sentence says why. */
#include "diagnose/replay/schedule.h"
#include "recorded_run.h"
#include "report/words/reasons.h"

#define MS INT64_C(1000000)
#define LONGEST_MS 60000

/* What the device does, in permille and watts. */
enum { GEMM, POINTWISE, COPYING, IDLING, DOES };
static double watts_of[DOES] = {600, 350, 130, 120};
static const double engine_of[DOES] = {1000, 1000, 0, 0}, sm_of[DOES] = {950, 900, 0, 0},
                    tensor_of[DOES] = {800, 0, 0, 0}, dram_of[DOES] = {200, 900, 5, 0}, fp32_of[DOES] = {20, 150, 0, 0},
                    occupancy_of[DOES] = {200, 700, 0, 0};

static uint8_t did[LONGEST_MS]; /* in each millisecond of the run */
static int length_ms;

/* Pieces of 10 to 149 ms of one of the kinds; alike: of a step of 8 ms that repeats itself. */
static void fill_world(uint64_t state, const uint8_t *kinds, int count, bool alike) {
    int at = 0, kind = count - 1;
    while (at < length_ms) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int next = (int)((state >> 40) % (uint64_t)count), length = alike ? 2 : 10 + (int)((state >> 20) % 140);
        kind = alike || next == kind ? (kind + 1) % count : next;
        for (int end = at + length; at < end && at < length_ms; at++)
            did[at] = kinds[kind];
    }
}

static void fill_trace(void) {
    struct fake_timeline *t = &timeline;
    fake_tl_init(t);
    uint32_t stream = fake_tl_track(t, HEC_TRACK_STREAM, 77, 0, 7);
    uint32_t kernels[] = {fake_tl_kernel(t, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 256),
                          fake_tl_kernel(t, "vectorized_elementwise_kernel", 128)};
    fake_tl_track(t, HEC_TRACK_THREAD, 77, -1, 77);
    for (int from = 0, at = 1; at <= length_ms; at++) {
        if (at < length_ms && did[at] == did[from])
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

static void fill_readings(bool power, bool counter) {
    double energy = 0;
    run.devices[run.device_count++] = fake_device(0);
    for (int at = 20; power && at <= length_ms; at += 20)
        fake_add(&run, HEC_GPU_POWER, 0, at / 1000.0, llround(sum_of(watts_of, at - 20, at) / 20 * 1000));
    for (int at = 0; counter && at <= length_ms; at += 100) {
        energy += at ? sum_of(watts_of, at - 100, at) : 0;
        fake_add(&run, HEC_GPU_ENERGY, 0, at / 1000.0, llround(1e6 + energy));
        fake_add(&run, HEC_GPU_ENERGY_SLACK, 0, at / 1000.0, 0);
    }
    fake_used(&run, 0, 77);
}

/* Means over every_ms. */
static void fill_counter(enum hec_metric metric, const double *of, int every_ms) {
    for (int at = every_ms; at <= length_ms; at += every_ms)
        fake_add(&run, metric, 0, at / 1000.0, llround(sum_of(of, at - every_ms, at) / every_ms));
}

/* ---- states ---- */

/* Random work at 500 W, copies at 130 and idling at 100, with these readings. */
static void begin(bool power, bool counter) {
    static const uint8_t kinds[] = {GEMM, COPYING, IDLING};
    length_ms = 40000;
    run_begin(40);
    memcpy(watts_of, (const double[DOES]){500, 0, 130, 100}, sizeof watts_of);
    fill_world(42, kinds, 3, false);
    fill_trace();
    fill_readings(power, counter);
}

/* Why nothing has watts; NULL: nothing was priced. */
static const struct hec_reason *unpriced(void) {
    summarise();
    return summary.devices[0].watts ? &summary.devices[0].watts->why : NULL;
}

static const struct hec_ledger_device *build(void) {
    assert_string_equal(HEC_SAY(unpriced()), "");
    return summary.devices[0].ledger;
}

static void adds_up(const struct hec_ledger_device *d) {
    int64_t ns = 0, mj = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        ns += d->rows[i].ns;
        mj += d->rows[i].mj;
    }
    assert_int_equal(ns, length_ms * MS);
    assert_int_equal(mj, llround(summary.devices[0].readings.energy.joules * 1e3));
}

static void near(double found, double expected, double share) {
    assert_near(found, expected, share * expected);
}

TEST(watts_are_reported) {
    for (int with = 1; with < 4; with++) { /* the power history, the counter, both */
        begin(with & 1, with & 2);
        const struct hec_ledger_device *d = build();
        adds_up(d);
        near(d->rows[HEC_STATE_COMPUTE].watts, 500, 0.03);
        near(d->rows[HEC_STATE_COPY].watts, 130, 0.10);
        near(d->joules, sum_of(watts_of, 0, length_ms) / 1000, 0.01);
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

/* Another process on the device, beside one that computes; busy: it computes throughout. */
static void begin_beside(bool busy) {
    static const double busy_of[DOES] = {1000, 1000, 1000, 1000}, computing[DOES] = {900, 900, 0, 0};
    begin(true, true);
    fill_counter(HEC_GPM_GR_ACTIVE, busy ? busy_of : engine_of, 500);
    fill_counter(HEC_GPM_SM_ACTIVE, computing, 500);
    fake_on_device(&run, 0, 99, 0, 1);
}

/* Somebody else is at work throughout: the joules still add up to the device's, and no interval says what a state took. */
TEST(shared_watts_have_no_intervals) {
    for (int busy = 0; busy < 2; busy++) {
        begin_beside(busy);
        const struct hec_ledger_device *d = build();
        adds_up(d);
        assert_int_equal(summary.devices[0].readings.others, busy ? HEC_OTHERS_BUSY : HEC_OTHERS_IDLE);
        assert_int_equal(summary.devices[0].watts->how.id == HEC_REASON_ROUGH_OTHERS, busy);
        assert_int_equal(isnan(d->rows[HEC_STATE_COMPUTE].watts_low), busy);
        assert_int_equal(isnan(d->rows[HEC_STATE_COMPUTE].watts_high), busy);
        const struct hec_class_profile *profile = hec_profile_of(&summary.devices[0]);
        assert_int_equal(profile->has_counters, !busy);
    }
}

/* Each series of telemetry is read once, whoever is made of it: energy, use, watts, classes, blocks, phases, predictions, the page. */
TEST(each_reading_is_read_once) {
    begin_beside(false);
    fake_fill(&run, HEC_GPU_POWER_LIMIT, 0, 0, 40, 1, 700000);
    fake_fill(&run, HEC_GPU_CONTEXTS, 0, 0, 40, 1, 1);
    fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0, 40, 1, 100);
    fake_phase(&run, "train", 0);
    run.input.view = 1;
    build();
    assert_true(summary.blocks.whole.joules > 0);
    assert_non_null(summary.view);
    fake_assert_reads(&run, 1);
}

static bool same(double one, double other) {
    return one == other || (isnan(one) && isnan(other));
}

/* Where only replays are asked for less is made of the trace, and nothing that they go by is another. */
TEST(replays_go_by_the_same) {
    for (int busy = 0; busy < 2; busy++) {
        struct hec_schedule schedule;
        struct hec_ledger_row rows[HEC_STATE_COUNT];
        begin_beside(busy);
        memcpy(rows, build()->rows, sizeof rows);
        assert_int_equal(summary.devices[0].readings.others, busy ? HEC_OTHERS_BUSY : HEC_OTHERS_IDLE);
        assert_true(summary.kernel_count > 0);
        run.input.schedule = &schedule;
        const struct hec_ledger_device *d = build();
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
    begin(false, false);
    const struct hec_reason *why = unpriced();
    const struct hec_ledger_device *d = summary.devices[0].ledger;
    assert_true(why->id);
    assert_string_equal(HEC_SAY(why), HEC_SAY(&summary.devices[0].readings.energy.why));
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        assert_true(isnan(d->rows[i].joules) && isnan(d->rows[i].watts));
    assert_true(isnan(d->joules));
    assert_true(d->rows[HEC_STATE_COMPUTE].seconds > 1);
}

TEST(polled_power_is_left_out) {
    begin(true, false);
    run.devices[0].has_power_history = 0;
    assert_true(unpriced()->id && isnan(summary.devices[0].ledger->joules));
}

TEST(imported_has_time_only) {
    begin(false, false);
    run.input.imported = "kineto";
    assert_string_equal(HEC_SAY(unpriced()), "imported from a trace: time only");
}

/* Kernels, the union over streams and the ledger mean the same by communication: what lies bare of it is its state. */
TEST(communication_is_one_thing) {
    begin(false, false);
    uint32_t stream = fake_tl_track(&timeline, HEC_TRACK_STREAM, 77, 0, 8);
    uint32_t reduce = fake_tl_kernel(&timeline, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 512);
    for (int at = 5; at < length_ms; at += 40)
        fake_tl_add(&timeline, HEC_ACTIVITY_KERNEL, stream, at * MS, (at + 20) * MS)->name = reduce;
    unpriced();
    const struct hec_ledger_device *d = summary.devices[0].ledger;
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
    begin(true, true);
    fake_tl_free(&timeline);
    fake_tl_init(&timeline);
    assert_null(unpriced());
    assert_null(summary.devices[0].ledger);
    assert_int_equal(summary.devices[0].source.count, 0);
}

TEST(failures_pass_through) {
    struct hec_price price = hec_price_default();
    struct hec_why why;
    int failed = 0;
    begin(true, true);
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

/* ---- classes of kernels ---- */

/* All four kinds; or products in the place of pointwise kernels. */
static void begin_classes(bool alike, bool without_pointwise) {
    static const uint8_t kinds[] = {GEMM, POINTWISE, COPYING, IDLING};
    length_ms = 60000;
    run_begin(60);
    memcpy(watts_of, (const double[DOES]){600, 350, 130, 120}, sizeof watts_of);
    fill_world(7, kinds, DOES, alike);
    for (int i = 0; i < length_ms && without_pointwise; i++)
        did[i] = did[i] == POINTWISE ? GEMM : did[i];
    fill_trace();
    fill_readings(true, true);
}

static void fill_counters(void) {
    static const struct {
        enum hec_metric metric;
        const double *of;
    } counters[] = {{HEC_GPM_GR_ACTIVE, engine_of},       {HEC_GPM_SM_ACTIVE, sm_of},
                    {HEC_GPM_SM_OCCUPANCY, occupancy_of}, {HEC_GPM_TENSOR_ACTIVE, tensor_of},
                    {HEC_GPM_HMMA_ACTIVE, tensor_of},     {HEC_GPM_DRAM_ACTIVE, dram_of},
                    {HEC_GPM_FP32_ACTIVE, fp32_of}};
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        fake_add(&run, counters[i].metric, 0, 0, 0); /* the first reading is of no time */
        run.series[run.series_count - 1].valid[0] = 0;
        fill_counter(counters[i].metric, counters[i].of, 120);
    }
}

static const struct hec_class_profile *profile(void) {
    summarise();
    const struct hec_class_profile *found = hec_profile_of(&summary.devices[0]);
    assert_non_null(found);
    return found;
}

TEST(classes_come_back) {
    begin_classes(false, false);
    fill_counters();
    const struct hec_class_profile *p = profile();
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
    assert_false(p->peaks.calibrated);

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
    begin_classes(true, false);
    fill_counters();
    const struct hec_class_profile *p = profile();
    const struct hec_class_row *gemm = &p->class[HEC_KERNEL_CLASS_GEMM];
    double tensor = gemm->counters.pipe[HEC_PIPE_TENSOR].value;
    assert_true(isnan(gemm->watts));
    assert_true(isnan(tensor) || gemm->merged_with == HEC_KERNEL_CLASS_ELEMENTWISE || !gemm->point.certain);
    assert_near(p->all.counters.pipe[HEC_PIPE_TENSOR].value, 0.4, 0.04);
    assert_near(p->all.counters.dram.value, 0.55, 0.055);
    assert_true(p->all.counters.dram.low <= 0.55 && p->all.counters.dram.high >= 0.55);
    assert_true(p->all.counters.dram.high - p->all.counters.dram.low < 0.2 * 0.55); /* better than by means */
}

/* So few readings that nothing can be told apart: what they came to, by the time that computed, give or take 15 %. */
TEST(few_readings_tell_means) {
    begin_classes(false, false);
    fill_counters();
    for (int i = 0; i < run.series_count; i++)
        if (run.series[i].metric >= HEC_GPM_GR_ACTIVE && run.series[i].metric <= HEC_GPM_NVLINK_TX)
            run.series[i].count = 9;
    const struct hec_class_profile *p = profile();
    const struct hec_ledger_device *d = summary.devices[0].ledger;
    const struct hec_roofline_share *dram = &p->all.counters.dram;
    double compute = (double)d->rows[HEC_STATE_COMPUTE].ns / (double)d->window_ns, sum = 0;
    for (int i = 1; i < 9; i++) /* the first reading is of no time */
        sum += sum_of(dram_of, (i - 1) * 120, i * 120);
    double value = sum / 8 / 120 / 1000 / compute;
    assert_near(dram->value, value, 0.02 * value);
    assert_near(dram->low, 0.85 * dram->value, 1e-9);
    assert_near(dram->high, 1.15 * dram->value, 1e-9);
    assert_true(isnan(p->class[HEC_KERNEL_CLASS_GEMM].counters.dram.value)); /* two classes: neither is nearly all */
    assert_false(p->class[HEC_KERNEL_CLASS_GEMM].point.certain);
}

TEST(one_class_is_all) {
    begin_classes(false, true);
    fill_counters();
    const struct hec_class_profile *p = profile();
    const struct hec_class_row *gemm = &p->class[HEC_KERNEL_CLASS_GEMM];
    assert_near(gemm->share, 1, 1e-9);
    assert_near(gemm->counters.pipe[HEC_PIPE_TENSOR].value, 0.8, 0.04);
    assert_near(gemm->watts, 600, 30);
    assert_int_equal(gemm->point.limit, HEC_LIMIT_MATH);
    assert_int_equal(p->all.point.limit, HEC_LIMIT_MATH);
}

TEST(without_counters_there_is_a_reason) {
    begin_classes(false, false);
    const struct hec_class_profile *p = profile();
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
    (void)context, (void)device, (void)out;
    return HEC_ERR_NOTFOUND;
}

TEST(measured_peaks_are_used) {
    begin_classes(false, false);
    fill_counters();
    run.input.peaks = calibrated;
    const struct hec_class_profile *p = profile();
    assert_true(p->peaks.calibrated);
    assert_near(p->peaks.flops[HEC_PRECISION_FP16], 1.1e15, 1);
    assert_near(p->peaks.flops[HEC_PRECISION_TF32], 494.5e12, 1);
    assert_near(p->peaks.bytes_per_s, 4800e9, 1);
    assert_near(p->sms, 78, 0);
    run.input.peaks = never_calibrated;
    p = profile();
    assert_false(p->peaks.calibrated);
    assert_near(p->sms, 132, 0);
}
