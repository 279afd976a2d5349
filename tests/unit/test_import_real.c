/* Real traces (tests/data/kineto) against what an independent program makes of them (bench/import/oracle.py): counts, and
 * the union over all streams. */
#include "tests/unit/import_fixture.h"

struct expected {
    const char *file;
    int kernels, copies, memsets, syncs, steps, operators;
    int64_t window_ns, busy_ns, compute_ns;
    const char *device;
    const char *started;
};

static const struct expected cases[] = {
    {"alexnet", 79, 16, 3, 41, 0, 359, 12920244000, 66141000, 10630000, "NVIDIA A100-PG509-200",
     "2023-09-27T17:25:42.514Z"},
    {"event_sync_multi_stream", 3, 0, 3, 5, 0, 6, 19506000, 372000, 369000, "NVIDIA A100-PG509-200",
     "2024-04-11T20:30:02.348Z"},
    {"mi250", 14, 2, 0, 0, 2, 70, 8911887, 149042, 110881, "AMD Radeon Graphics", "2025-02-17T23:47:09.603Z"},
};

static int by_start(const void *a, const void *b) {
    const struct hec_activity *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Of the kinds; the first start and the last end as well. */
static int64_t length_of_union(uint32_t kinds, int64_t *window_ns) {
    struct hec_activity *chosen = malloc(sizeof *chosen * (size_t)kept.activities);
    size_t count = 0;
    for (int i = 0; i < kept.activities; i++)
        if (kinds & HEC_ACTIVITY_BIT(kept.activity[i].kind))
            chosen[count++] = kept.activity[i];
    qsort(chosen, count, sizeof *chosen, by_start);
    int64_t total = 0, end = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        int64_t from = chosen[i].start_ns > end ? chosen[i].start_ns : end;
        if (chosen[i].end_ns > from)
            total += chosen[i].end_ns - from;
        if (chosen[i].end_ns > end)
            end = chosen[i].end_ns;
    }
    *window_ns = count ? end - chosen[0].start_ns : 0;
    free(chosen);
    return total;
}

static void import_real(const char *name) {
    char path[512];
    snprintf(path, sizeof path, HEC_SOURCE_DIR "/tests/data/kineto/%s.json.gz", name);
    if (import_file(path) < 0)
        fail_msg("%s", imported.why.text);
}

TEST(test_totals) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct expected *e = &cases[i];
        int64_t window, ignored;
        import_real(e->file);
        assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), e->kernels);
        assert_int_equal(kept_count(HEC_ACTIVITY_COPY), e->copies);
        assert_int_equal(kept_count(HEC_ACTIVITY_MEMSET), e->memsets);
        assert_int_equal(kept_count(HEC_ACTIVITY_SYNC), e->syncs);
        assert_int_equal(kept_count(HEC_ACTIVITY_STEP), e->steps);
        assert_int_equal(kept_count(HEC_ACTIVITY_OPERATOR), e->operators);
        assert_int_equal(length_of_union(HEC_ACTIVITY_DEVICE, &window), e->busy_ns);
        assert_int_equal(window, e->window_ns);
        assert_int_equal(length_of_union(HEC_ACTIVITY_BIT(HEC_ACTIVITY_KERNEL), &ignored), e->compute_ns);
        assert_int_equal(imported.stats.bad, 0);
        assert_int_equal(kept.devices, 1);
        assert_string_equal(kept.device[0].name, e->device);
        assert_string_equal(kept_meta("started"), e->started);
    }
}

/* Every kernel and copy of these traces has its launch, before it. */
TEST(test_launches) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        import_real(cases[i].file);
        for (int k = 0; k < kept.activities; k++) {
            const struct hec_activity *a = &kept.activity[k];
            if (!(HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)))
                continue;
            assert_true(a->launch_ns != HEC_TIME_UNKNOWN && a->launch_ns <= a->start_ns);
            assert_int_equal(kept_track(a->launch_track)->kind, HEC_TRACK_THREAD);
        }
    }
}

TEST(test_rocm) {
    import_real("mi250");
    const struct hec_activity *copy = kept_nth(HEC_ACTIVITY_COPY, 0);
    assert_int_equal(copy->from, HEC_MEMORY_HOST);
    assert_int_equal(copy->to, HEC_MEMORY_DEVICE);
    assert_true(copy->amount == 2560);
    assert_int_equal(kept.device[0].cuda_major, -1); /* 9.0 of AMD is no Hopper */
    assert_string_equal(kept.device[0].vendor, "amd");
    assert_int_equal(kept.device[0].memory_kib, 68702699520 / 1024);
    int syncs = 0;
    for (int i = 0; i < kept_count(HEC_ACTIVITY_API); i++)
        syncs += kept_nth(HEC_ACTIVITY_API, i)->detail == HEC_API_SYNC;
    assert_int_equal(syncs, 1); /* hipDeviceSynchronize */
}

TEST(test_steps) {
    import_real("mi250");
    const struct hec_activity *first = kept_nth(HEC_ACTIVITY_STEP, 0), *second = kept_nth(HEC_ACTIVITY_STEP, 1);
    assert_int_equal(first->end_ns - first->start_ns, 9288291);
    assert_true(second->start_ns >= first->end_ns);
    assert_string_equal(kept_track(first->track)->name, "python3");
}
