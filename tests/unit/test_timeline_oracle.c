/* The timeline of random activities against a bitmap: thousands of small cases with ties, zero lengths, windows, several
 * devices and processes. */
#include "fake_timeline.h"
#include "unit.h"

#define SPAN 160 /* nanoseconds in a case: one bit each */

struct truth {
    bool compute[SPAN], comm[SPAN], copy[SPAN], traced[SPAN];
    bool blink[SPAN]; /* something of no length: it parts a gap in two */
    int depth[SPAN];  /* during [i, i + 1) */
    int from, to, launches;
};

static void mark(const struct fake_timeline *t, int device, struct truth *truth) {
    memset(truth, 0, sizeof *truth);
    truth->from = SPAN;
    truth->to = -1;
    for (size_t i = 0; i < t->count; i++) {
        const struct hec_activity *a = &t->activities[i];
        if (!(HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) || t->tracks[a->track - 1].device != device)
            continue;
        truth->from = (int)a->start_ns < truth->from ? (int)a->start_ns : truth->from;
        truth->to = (int)a->end_ns > truth->to ? (int)a->end_ns : truth->to;
        truth->blink[a->start_ns] |= a->start_ns == a->end_ns;
        bool copy = a->kind == HEC_ACTIVITY_COPY || a->kind == HEC_ACTIVITY_MEMSET;
        bool comm = a->kind == HEC_ACTIVITY_KERNEL && a->name == 2;
        for (int64_t k = a->start_ns; k < a->end_ns; k++)
            (copy ? truth->copy : comm ? truth->comm : truth->compute)[k] = true;
        if (a->launch_ns == HEC_TIME_UNKNOWN || a->launch_ns > a->start_ns)
            continue;
        truth->launches++;
        for (int64_t k = a->launch_ns; k < a->end_ns; k++)
            truth->depth[k]++;
    }
    for (int i = 0; i < SPAN; i++) { /* all processes that live have a window open, and one of them lives */
        struct windows_at at = fake_tl_windows_at(t, device, i);
        truth->traced[i] = !at.windows || (at.alive && at.open >= at.alive);
    }
}

static void near(double found, double expected) {
    if (isnan(expected))
        assert_true(isnan(found));
    else
        assert_true(fabs(found - expected) < 1e-6);
}

static void check(const struct hec_device_timeline *d, const struct truth *t) {
    int busy = 0, idle = 0, compute = 0, comm = 0, copy = 0, both_comm = 0, both_copy = 0, traced = 0, deepest = 0;
    int gaps = 0;
    double gap_sum = 0, queued = 0;
    bool in_gap = false;
    for (int i = t->from; i < t->to; i++) {
        bool any = t->compute[i] || t->comm[i] || t->copy[i];
        bool gap = t->traced[i] && !any;
        gaps += gap && (!in_gap || t->blink[i]);
        in_gap = gap;
        if (!t->traced[i])
            continue;
        traced++;
        gap_sum += gap;
        busy += any;
        idle += !any;
        compute += t->compute[i];
        comm += t->comm[i];
        copy += t->copy[i];
        both_comm += t->comm[i] && t->compute[i];
        both_copy += t->copy[i] && t->compute[i];
        queued += t->depth[i];
    }
    for (int i = 0; i < SPAN; i++)
        deepest = t->depth[i] > deepest ? t->depth[i] : deepest;
    near(d->window_s * 1e9, t->to - t->from);
    near(d->traced_s * 1e9, traced);
    near(d->busy_s * 1e9, busy);
    near(d->idle_s * 1e9, idle);
    near(d->compute_s * 1e9, compute);
    near(d->non_compute_s * 1e9, busy - compute);
    near(d->comm_s * 1e9, comm);
    near(d->copy_s * 1e9, copy);
    near(d->comm_overlap, comm ? (double)both_comm / comm : NAN);
    near(d->copy_overlap, copy ? (double)both_copy / copy : NAN);
    assert_int_equal(d->gap.count, gaps);
    if (gaps)
        near(d->gap.mean * gaps * 1e9, gap_sum);
    near(d->queue_max, t->launches ? deepest : NAN);
    near(d->queue_mean, t->launches && traced ? queued / traced : NAN);
}

static void one_case(uint64_t seed) {
    static const enum hec_activity_kind kinds[] = {HEC_ACTIVITY_KERNEL, HEC_ACTIVITY_KERNEL, HEC_ACTIVITY_COPY,
                                                   HEC_ACTIVITY_MEMSET, HEC_ACTIVITY_GRAPH};
    struct fake_timeline t;
    struct hec_timeline out;
    struct hec_why why;
    random_state = seed;
    fake_tl_init(&t);
    fake_tl_kernel(&t, "sgemm", 128);
    fake_tl_kernel(&t, "ncclDevKernel_AllReduce", 128);
    const struct random_tracks r = fake_tl_random_tracks(&t);
    uint32_t count = random_below(4) ? random_below(30) : random_below(3), reach = 1 + random_below(40);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t start = random_below(SPAN - 1), length = random_below(reach);
        int64_t end = start + length < SPAN ? start + length : SPAN - 1;
        struct hec_activity *a =
            fake_tl_add(&t, kinds[random_below(5)], r.streams[random_below(r.stream_count)], start, end);
        a->name = a->kind == HEC_ACTIVITY_KERNEL ? 1 + random_below(2) : 0;
        if (random_below(4))
            a->launch_ns = random_below(10) ? (int64_t)random_below(start + 1) : (int64_t)start + 1;
    }
    fake_tl_random_windows(&t, &r, random_below(2) ? random_below(8) : 0, SPAN);
    assert_int_equal(fake_pass_timeline(&t.input, &out, &why), 0);
    int seen = 0;
    for (int device = 0; device < (int)r.devices; device++) {
        struct truth truth;
        mark(&t, device, &truth);
        if (truth.to < 0)
            continue;
        assert_int_equal(out.devices[seen].device, device);
        check(&out.devices[seen++], &truth);
    }
    assert_int_equal(out.device_count, seen);
    hec_timeline_free(&out);
    fake_tl_free(&t);
}

TEST(random_cases) {
    for (uint64_t seed = 1; seed <= 6000; seed++)
        one_case(seed * 0x9e3779b97f4a7c15u);
}
