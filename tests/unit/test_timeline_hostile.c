/* Activities of a damaged file: any field may hold anything. The analysis and the exports must end, and what they say
 * must be possible. */
#include "base/trace.h"
#include "recorded_run.h"
#include "report/export/export.h"
#include "report/run/report.h"

static uint64_t state;

static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 31;
}

static int64_t any_time(void) {
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX,        INT64_MIN + 1,      0,
                                       -1,        INT64_C(1) << 60, -(INT64_C(1) << 60)};
    uint64_t what = next() % 16;
    if (what == 0)
        return extremes[next() % 7];
    if (what < 4)
        return (int64_t)(next() >> (next() % 64));
    return (int64_t)(next() % 1000000);
}

static double any_number(void) {
    static const double extremes[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e308, 128};
    return extremes[next() % 7];
}

static int64_t written;

static int count(void *context, const void *bytes, size_t size) {
    (void)context;
    written += (int64_t)size + (((const char *)bytes)[size - 1] == 'x');
    return 0;
}

static void fill(struct fake_timeline *t) {
    static const char *const names[] = {"data", "loss", "_ZN2at6nativeI", "nccl", "void f<", "", "\xff\xfe", "step"};
    fake_tl_init(t);
    for (int i = 0; i < 20; i++)
        fake_tl_name(t, names[next() % 8]);
    for (int i = 0; i < 20; i++) {
        uint32_t id = fake_tl_track(t, (enum hec_track_kind)(next() % 4), (int32_t)(next() % 3),
                                    (int32_t)(next() % 4) - 1, (int64_t)(next() % 3));
        t->tracks[id - 1].rank = (int32_t)(next() % 3) - 1;
        if (next() % 10 == 0)
            t->tracks[id - 1].id = (uint32_t)next();
        struct hec_kernel *k = &t->kernels[t->kernel_count++];
        *k = (struct hec_kernel){.id = next() % 10 ? t->kernel_count : (uint32_t)next(),
                                 .name = (uint32_t)(next() % 30),
                                 .grid = {any_time(), 1, 1},
                                 .block = {(int32_t)next(), (int32_t)(next() % 1025), 1},
                                 .registers = (int32_t)(next() % 300) - 1,
                                 .static_shared_bytes = any_time(),
                                 .dynamic_shared_bytes = any_time()};
    }
    for (int i = 0; i < 4; i++)
        t->tracers[t->tracer_count++] = (struct hec_tracer){.pid = (int32_t)(next() % 3),
                                                            .mode = (int)(next() % 7) - 1,
                                                            .first_ns = any_time(),
                                                            .last_ns = any_time(),
                                                            .traced_ns = any_time(),
                                                            .holder_ns = any_time(),
                                                            .records = any_time(),
                                                            .dropped = any_time(),
                                                            .lost = any_time(),
                                                            .bad = any_time(),
                                                            .windows = any_time(),
                                                            .self_ns = any_time(),
                                                            .estimate_ppm = any_time(),
                                                            .budget_ppm = any_time(),
                                                            .holder = "h\x1b",
                                                            .why = "w"};
    int activities = (int)(next() % 3000);
    bool calm = next() % 2; /* half of the cases have one kind of times, so that windows and queues fill */
    t->activities = calloc((size_t)activities + 1, sizeof *t->activities);
    t->capacity = (size_t)activities;
    for (int i = 0; i < activities; i++) {
        int64_t start = calm ? i * 10 : any_time();
        t->activities[t->count++] =
            (struct hec_activity){.start_ns = start,
                                  .end_ns = calm ? start + (int64_t)(next() % 5000) : any_time(),
                                  .launch_ns = calm ? (int64_t)(next() % 100) : any_time(),
                                  .launch_end_ns = any_time(),
                                  .amount = any_number(),
                                  .track = (uint32_t)(next() % 24),
                                  .name = (uint32_t)(next() % 40),
                                  .launch_track = (uint32_t)(next() % 24),
                                  .kind = (uint8_t)(next() % HEC_ACTIVITY_KIND_COUNT),
                                  .detail = (uint8_t)(next() % 12),
                                  .from = (uint8_t)(next() % 12),
                                  .to = (uint8_t)(next() % 12),
                                  .flags = (uint8_t)(next() % 8)};
    }
}

static void possible(const struct hec_timeline *made) {
    for (int i = 0; i < made->device_count; i++) {
        const struct hec_device_timeline *d = &made->devices[i];
        assert_true(d->window_s >= 0 && d->traced_s >= 0 && d->traced_s <= d->window_s * (1 + 1e-9));
        assert_true(d->busy_s >= 0 && d->idle_s >= -1e-9 * d->window_s && d->compute_s <= d->busy_s * (1 + 1e-9));
        assert_true(isnan(d->comm_overlap) || (d->comm_overlap >= 0 && d->comm_overlap <= 1));
        assert_true(isnan(d->copy_overlap) || (d->copy_overlap >= 0 && d->copy_overlap <= 1));
        assert_true(isnan(d->queue_mean) || d->queue_mean >= 0);
    }
    const struct hec_step_summary *s = &made->steps;
    assert_true(isnan(s->busy_share) || (s->busy_share >= 0 && s->busy_share <= 1 + 1e-9));
    assert_true(isnan(s->confidence) || (s->confidence >= 0 && s->confidence <= 1));
    assert_true(isnan(made->trace.coverage) || (made->trace.coverage >= 0 && made->trace.coverage <= 1));
}

TEST(anything) {
    struct hec_timeline alone;
    struct hec_report_style style = {.utf8 = true};
    struct hec_buf out;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        run_begin(10);
        fill(&timeline);
        run.devices[run.device_count++] = fake_device(0);
        summarise();
        assert_int_equal(fake_pass_timeline(&timeline.input, &alone, NULL), 0);
        possible(&alone);
        hec_timeline_free(&alone);
        hec_buf_init(&out, 16 << 20);
        assert_int_equal(hec_report_terminal(&summary, &style, &out), 0);
        assert_int_equal(hec_report_json(&summary, 1, &out), 0);
        hec_buf_free(&out);
        written = 0;
        assert_int_equal(hec_export_perfetto(&run.input, count, NULL, NULL), 0);
        assert_int_equal(hec_export_csv(&run.input, count, NULL, NULL), 0);
        assert_true(written > 0);
    }
}
