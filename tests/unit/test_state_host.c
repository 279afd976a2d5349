/* What a thread did, beyond what is remembered of it. */
#include "diagnose/states/device.h"
#include "unit.h"

TEST(forgets_the_oldest) {
    struct hec_host_thread *t = hec_host_thread_new();
    const int64_t count = 3 * (int64_t)HEC_HOST_KEPT;
    assert_non_null(t);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(hec_host_hold(t, HEC_HOST_SYNC, 10 * i, 10 * i + 5), 0);
        assert_int_equal(hec_host_sampled(t, 10 * i, 10, 1), 0);
    }
    assert_int_equal(hec_host_advance(t, 10 * count), 0);
    assert_true(t->segment_count <= HEC_HOST_KEPT && t->segment_count >= HEC_HOST_KEPT / 2);
    assert_true(t->sample_count <= HEC_HOST_KEPT && t->sample_count >= HEC_HOST_KEPT / 2);
    for (int64_t i = count - HEC_HOST_KEPT / 2; i < count; i++) {
        const struct hec_host_segment *s = &t->segments[hec_host_segment_after(t, 10 * i + 4)];
        assert_true(s->start_ns == 10 * i && s->end_ns == 10 * i + 5 && s->label == HEC_HOST_SYNC);
        assert_int_equal(t->samples[hec_host_sample_from(t, 10 * i - 9)].t_ns, 10 * i);
    }
    assert_int_equal(hec_host_segment_after(t, 10 * count), t->segment_count);
    assert_int_equal(hec_host_segment_after(t, -1), 0);
    hec_host_thread_free(t);
    hec_host_thread_free(NULL);
}

/* One sampler looks every 10, from within another every 20 or, while it waits for its turn, 300. */
TEST(of_two_samplers_the_closer_one_counts) {
    struct hec_host_thread *t = hec_host_thread_new();
    static const struct {
        int64_t t_ns, period_ns;
        uint32_t frame;
    } given[] = {{0, 10, 1},  {4, 20, 2}, {10, 10, 1}, {17, 300, 2}, {20, 10, 1},
                 {30, 11, 1}, {39, 8, 1}, {60, 20, 2}, {90, 20, 2}};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        assert_int_equal(hec_host_sampled(t, given[i].t_ns, given[i].period_ns, given[i].frame), 0);
    assert_int_equal(t->sample_count, 7);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(t->samples[i].frame, 1);
    assert_true(t->samples[2].t_ns == 20 && t->samples[2].period_ns == 10);
    assert_int_equal(t->samples[5].t_ns, 60);
    hec_host_thread_free(t);
}

/* The same label goes on, and comes to the top again when what outranks it has ended. */
TEST(ranks) {
    struct hec_host_thread *t = hec_host_thread_new();
    hec_host_hold(t, HEC_HOST_SYNC, 0, 10);
    hec_host_hold(t, HEC_HOST_SYNC, 10, 100);
    hec_host_hold(t, HEC_HOST_SYNC, 20, 30); /* ends within the other */
    hec_host_hold(t, HEC_HOST_ALLOC, 40, 50);
    hec_host_advance(t, 1000);
    assert_int_equal(t->segment_count, 3);
    assert_true(t->segments[0].start_ns == 0 && t->segments[0].end_ns == 40);
    assert_int_equal(t->segments[1].label, HEC_HOST_ALLOC);
    assert_true(t->segments[2].start_ns == 50 && t->segments[2].end_ns == 100);
    hec_host_thread_free(t);
}

TEST(keeps_the_last_launches_in_order) {
    struct hec_host_thread *t = hec_host_thread_new();
    for (int64_t i = 0; i < 1000; i++) {
        hec_host_launched(t, 100 * (i ^ 3), 100 * (i ^ 3) + 50, false, 0); /* four by four out of order */
        hec_host_launched(t, 100 * (i ^ 3), 100 * (i ^ 3) + 70, true, 0);  /* another node of the same graph */
        hec_host_launched(t, 1, 2, false, 0);                              /* far out of order: of the beginning */
        assert_true(t->launch_count <= 2 * HEC_HOST_LAUNCHES);
    }
    for (size_t i = 1; i < t->launch_count; i++)
        assert_true(t->launches[i - 1].start_ns < t->launches[i].start_ns);
    size_t at = hec_host_launch_from(t, 100 * (1000 - HEC_HOST_LAUNCHES));
    assert_int_equal(t->launch_count - at, HEC_HOST_LAUNCHES);
    assert_true(t->launches[at].end_ns == t->launches[at].start_ns + 50 && !t->launches[at].copy);
    hec_host_thread_free(t);
}
