/* The device model: closed forms against brute force, the cap controller, taking back, rings that wrap. */
#include "sim/timeline.h"
#include "unit.h"

#define MS INT64_C(1000000)

static const struct sim_limits full = {.cap_mw = 700000};

static const struct sim_profile *h200(void) {
    return sim_profile_find("h200");
}

static struct sim_timeline *fresh(int64_t epoch_ns) {
    struct sim_timeline *timeline = calloc(1, sizeof *timeline);
    assert_non_null(timeline);
    sim_timeline_init(timeline, epoch_ns);
    return timeline;
}

TEST(tables_are_sane) {
    for (int a = 0; a < SIM_ACTIVITY_COUNT; a++) {
        const struct sim_activity_info *info = sim_activity_info((enum sim_activity)a);
        assert_int_equal(sim_activity_find(info->name), a);
        double rows[SIM_COUNTER_FIELDS];
        memcpy(rows, &info->counters, sizeof rows);
        for (unsigned i = 0; i < 15; i++) /* permille */
            assert_true(rows[i] >= 0 && rows[i] <= 1000);
        /* the excess over "with context" may not be negative: the timeline adds it to the base */
        if (a != SIM_IDLE)
            assert_true(info->power_mw >= sim_activity_info(SIM_CONTEXT)->power_mw);
        if (!info->work)
            assert_true(info->counters.util == 0);
    }
    assert_int_equal(sim_activity_find("no such"), SIM_ACTIVITY_COUNT);
    for (int i = 0; i < sim_profile_count(); i++) {
        const struct sim_profile *p = sim_profile_at(i);
        assert_ptr_equal(sim_profile_find(p->name), p);
        assert_true(p->idle_mw < p->context_mw && p->context_mw < p->power_min_mw);
        assert_true(p->power_min_mw <= p->power_default_mw && p->power_default_mw <= p->power_max_mw);
        /* only what was measured may say so */
        assert_int_equal(strcmp(p->known, "measured") == 0, strcmp(p->name, "h200") == 0);
    }
    assert_int_equal(h200()->idle_mw, 82000);
    assert_int_equal(h200()->context_mw, 120000);
    assert_int_equal(sim_activity_power_mw(h200(), SIM_GEMM_BF16), 846000);
}

TEST(cap_lets_a_burst_through_and_then_holds) {
    struct sim_controller controller = {-1000 * MS, 0};
    struct sim_piece pieces[2];
    assert_int_equal(sim_power_split(h200(), &full, &controller, SIM_GEMM_BF16, 0, 200 * MS, pieces), 2);
    assert_int_equal(pieces[0].power_mw, 846000);
    assert_int_equal(pieces[0].end_ns, 50 * MS);
    assert_false(pieces[0].held);
    assert_int_equal(pieces[1].power_mw, 690900);
    assert_int_equal(pieces[1].end_ns, 200 * MS);
    assert_true(pieces[1].held);
    /* goes on: held from the start */
    assert_int_equal(sim_power_split(h200(), &full, &controller, SIM_GEMM_BF16, 202 * MS, 210 * MS, pieces), 1);
    assert_true(pieces[0].held);
    /* light work does not reset it while the pause is short */
    assert_int_equal(sim_power_split(h200(), &full, &controller, SIM_SMALL_KERNELS, 210 * MS, 214 * MS, pieces), 1);
    assert_int_equal(pieces[0].power_mw, 124000);
    sim_power_split(h200(), &full, &controller, SIM_GEMM_BF16, 214 * MS, 216 * MS, pieces);
    assert_true(pieces[0].held);
    /* after a longer pause there is a new burst, which several short activities share */
    assert_int_equal(sim_power_split(h200(), &full, &controller, SIM_GEMM_BF16, 230 * MS, 260 * MS, pieces), 1);
    assert_false(pieces[0].held);
    assert_int_equal(sim_power_split(h200(), &full, &controller, SIM_GEMM_BF16, 260 * MS, 290 * MS, pieces), 2);
    assert_int_equal(pieces[0].end_ns, 280 * MS);
    /* what stays below the cap is left alone */
    assert_int_equal(sim_power_split(h200(), &full, &controller, SIM_GEMM_FP32, 400 * MS, 900 * MS, pieces), 1);
    assert_int_equal(pieces[0].power_mw, 652000);
    /* a lower cap holds it */
    assert_int_equal(sim_power_split(h200(), &(struct sim_limits){.cap_mw = 400000}, &controller, SIM_GEMM_FP32,
                                     1000 * MS, 1900 * MS, pieces),
                     2);
    assert_int_equal(pieces[1].power_mw, 394800);
}

static unsigned next(uint64_t *seed, unsigned below) {
    return (unsigned)(sim_hash_unit(++*seed, 1, 2) * below);
}

/* Random contexts and activities on a grid of 10 us; power integrated instant by instant against the closed form. */
TEST(energy_equals_the_integral_of_power) {
    const int64_t grid = 10000, epoch = 123456789;
    uint64_t seed = 7;
    struct sim_timeline *timeline = fresh(epoch);
    int64_t t = epoch;
    for (int visit = 0; visit < 5; visit++) {
        t += grid * next(&seed, 20000);
        sim_timeline_arrive(timeline, t);
        for (int i = 0; i < 30; i++) {
            struct sim_piece pieces[2];
            int64_t duration = grid * (1 + next(&seed, 9000));
            enum sim_activity activity = SIM_WAIT_DATA + next(&seed, SIM_ACTIVITY_COUNT - SIM_WAIT_DATA);
            int count = sim_timeline_append(timeline, h200(), &full, 1, activity, t, duration, pieces);
            t = pieces[count - 1].end_ns + (next(&seed, 2) ? grid * next(&seed, 3000) : 0);
        }
        sim_timeline_leave(timeline, t);
    }
    t += 50 * MS;
    double sum_mj = 0, times[SIM_ACTIVITY_COUNT] = {0};
    for (int64_t at = epoch; at < t; at += grid) {
        struct sim_instant instant = sim_timeline_at(timeline, h200(), at + grid / 2);
        sum_mj += (double)instant.power_mw * (double)grid * 1e-9;
        times[instant.activity] += (double)grid;
        if ((at - epoch) % (grid * 9973) == 0) {
            double closed = (double)sim_timeline_energy_nj(timeline, h200(), at + grid) * 1e-6;
            assert_true(fabs(closed - sum_mj) < 1e-2); /* of up to 4e6 mJ */
        }
    }
    struct sim_active active;
    sim_timeline_active(timeline, t, &active);
    for (int a = 0; a < SIM_ACTIVITY_COUNT; a++)
        assert_true((double)active.ns[a] == times[a]);
    assert_memory_equal(active.work_ns, active.ns, sizeof active.ns); /* no limit slows it */
    assert_true(sum_mj > 1e6);
    /* before the epoch the device was idle */
    assert_int_equal(sim_timeline_energy_nj(timeline, h200(), epoch - 1000 * MS), -82 * INT64_C(1000000000));
    free(timeline);
}

TEST(segments_queue_and_never_overlap) {
    struct sim_timeline *timeline = fresh(0);
    struct sim_piece pieces[2];
    sim_timeline_arrive(timeline, 0);
    sim_timeline_append(timeline, h200(), &full, 1, SIM_GEMM_FP32, 10 * MS, 20 * MS, pieces);
    assert_int_equal(sim_timeline_append(timeline, h200(), &full, 2, SIM_ELEMENTWISE, 15 * MS, 20 * MS, pieces), 1);
    assert_int_equal(pieces[0].start_ns, 30 * MS);
    assert_int_equal(pieces[0].end_ns, 50 * MS);
    assert_int_equal(sim_timeline_busy_ns(timeline, 1, 0, 100 * MS), 20 * MS);
    assert_int_equal(sim_timeline_busy_ns(timeline, 2, 35 * MS, 40 * MS), 5 * MS);
    assert_int_equal(sim_timeline_busy_ns(timeline, 3, 0, 100 * MS), 0);
    free(timeline);
}

TEST(cut_takes_back_only_the_future_of_one_process) {
    struct sim_timeline *a = fresh(0), *b = fresh(0);
    struct sim_piece pieces[2];
    sim_timeline_arrive(a, 0);
    sim_timeline_arrive(b, 0);
    for (int i = 0; i < 200; i++) {
        pid_t pid = 1 + i % 2;
        int64_t start = i * 10 * MS, length = 8 * MS;
        sim_timeline_append(a, h200(), &full, pid, SIM_GEMM_FP32, start, length, pieces);
        /* b never had what a loses: process 1 from 1.003 s on, where it was 3 ms into a segment */
        int64_t cut = 1003 * MS;
        if (pid == 1 && start + length > cut)
            length = start < cut ? cut - start : 0;
        if (length > 0)
            sim_timeline_append(b, h200(), &full, pid, SIM_GEMM_FP32, start, length, pieces);
    }
    sim_timeline_cut(a, h200(), 1, 1003 * MS);
    assert_true(a->head < 200);
    struct sim_active active_a, active_b;
    for (int64_t t = 0; t < 2200 * MS; t += MS) {
        assert_int_equal(sim_timeline_energy_nj(a, h200(), t), sim_timeline_energy_nj(b, h200(), t));
        sim_timeline_active(a, t, &active_a);
        sim_timeline_active(b, t, &active_b);
        assert_memory_equal(&active_a, &active_b, sizeof active_a);
    }
    /* and appending goes on */
    assert_int_equal(sim_timeline_append(a, h200(), &full, 1, SIM_GEMM_FP32, 0, MS, pieces), 1);
    assert_int_equal(pieces[0].start_ns, 1998 * MS);
    free(a);
    free(b);
}

TEST(cut_gives_the_controller_back_its_memory) {
    struct sim_timeline *timeline = fresh(0);
    struct sim_piece pieces[2];
    sim_timeline_arrive(timeline, 0);
    sim_timeline_append(timeline, h200(), &full, 1, SIM_GEMM_BF16, 0, 20 * MS, pieces);
    sim_timeline_append(timeline, h200(), &full, 2, SIM_GEMM_BF16, 20 * MS, 100 * MS, pieces);
    sim_timeline_cut(timeline, h200(), 2, 20 * MS);
    /* 20 ms of the burst of 50 are spent */
    assert_int_equal(sim_timeline_append(timeline, h200(), &full, 1, SIM_GEMM_BF16, 20 * MS, 100 * MS, pieces), 2);
    assert_int_equal(pieces[0].end_ns, 50 * MS);
    free(timeline);
}

/* Ten times the ring: the sums over everything stay exact, and recent questions too. */
TEST(rings_wrap) {
    struct sim_timeline *timeline = fresh(0);
    struct sim_piece pieces[2];
    const int64_t total = 10 * (int64_t)SIM_SEGMENT_MAX + 37;
    struct sim_active before, after;
    int64_t expected = 0;
    for (int64_t i = 0; i < total; i++) {
        if (i % 100 == 0)
            sim_timeline_arrive(timeline, i * MS);
        enum sim_activity activity = i % 3 ? SIM_GEMM_FP32 : SIM_ELEMENTWISE;
        sim_timeline_append(timeline, h200(), &full, 1, activity, i * MS, MS / 2, pieces);
        expected += sim_energy_of(sim_activity_power_mw(h200(), activity), MS / 2) + sim_energy_of(120000, MS / 2);
        if (i % 100 == 99) {
            sim_timeline_leave(timeline, (i + 1) * MS);
            /* a cut where there is nothing to take changes nothing */
            sim_timeline_cut(timeline, h200(), 1, (i + 1) * MS);
        }
    }
    assert_int_equal(timeline->head, total);
    assert_int_equal(sim_timeline_energy_nj(timeline, h200(), total * MS), expected);
    int64_t oldest = total - SIM_SEGMENT_MAX + 1;
    for (int64_t i = oldest; i < total - 6; i += 41) {
        sim_timeline_active(timeline, i * MS, &before);
        sim_timeline_active(timeline, (i + 6) * MS, &after);
        struct sim_active between = sim_active_between(&before, &after);
        assert_int_equal(between.ns[SIM_GEMM_FP32], 2 * MS);
        assert_int_equal(between.ns[SIM_ELEMENTWISE], MS);
        assert_int_equal(between.ns[SIM_CONTEXT], 3 * MS);
        assert_memory_equal(between.work_ns, between.ns, sizeof between.ns);
        int64_t nj =
            sim_timeline_energy_nj(timeline, h200(), (i + 6) * MS) - sim_timeline_energy_nj(timeline, h200(), i * MS);
        assert_int_equal(nj, sim_energy_of(652000, 2 * MS) + sim_energy_of(593000, MS) + sim_energy_of(120000, 3 * MS));
    }
    /* forgotten instants give the oldest answer and no nonsense */
    sim_timeline_active(timeline, 0, &before);
    for (int a = SIM_CONTEXT + 1; a < SIM_ACTIVITY_COUNT; a++)
        assert_true(before.ns[a] >= 0 && before.ns[a] <= total * MS);
    free(timeline);
}

TEST(counters_are_means) {
    struct sim_active active = {
        .ns = {[SIM_GEMM_BF16] = 25 * MS, [SIM_COPY_PINNED] = 50 * MS, [SIM_CONTEXT] = 25 * MS},
        .work_ns = {[SIM_GEMM_BF16] = 25 * MS, [SIM_COPY_PINNED] = 50 * MS, [SIM_CONTEXT] = 25 * MS}};
    struct sim_counters mean;
    sim_counters_mean(h200(), &active, 100 * MS, &mean);
    assert_true(fabs(mean.tensor - 220) < 1e-9);
    assert_true(fabs(mean.util - 250) < 1e-9);
    assert_true(fabs(mean.pcie_rx - 26000.25) < 1e-6);
    sim_counters_mean(sim_profile_find("p100"), &active, 100 * MS, &mean);
    assert_true(fabs(mean.pcie_rx - 26000.25 / 4) < 1e-6); /* generation 3 against 5 */
}

static int64_t lasts(const struct sim_limits *limits, enum sim_activity activity, int64_t duration_ns) {
    struct sim_controller controller = {1000 * MS, 50 * MS}; /* the burst is over */
    return sim_lasts_ns(h200(), limits, &controller, activity, 1000 * MS, duration_ns);
}

/* Without a limit everything lasts as it is written; under one, what the clock drives lasts longer, the lower the longer; what waits
 * does not. */
TEST(limits_slow_what_the_clock_drives) {
    for (int a = 0; a < SIM_ACTIVITY_COUNT; a++) {
        enum sim_activity activity = (enum sim_activity)a;
        bool waits = sim_activity_info(activity)->counters.util == 0; /* the host, or a copy */
        int64_t before = 100 * MS;
        assert_int_equal(waits, sim_activity_info(activity)->clock_share_permille == 0);
        assert_int_equal(lasts(&full, activity, before), before);
        assert_int_equal(lasts(&(struct sim_limits){.cap_mw = 400000, .own_mw = 400000}, activity, before), before);
        for (int32_t cap = 700000; cap >= 200000; cap -= 50000) {
            struct sim_limits limits = {.cap_mw = cap};
            int64_t now = lasts(&limits, activity, 100 * MS);
            assert_true(now >= before);
            assert_true(now == 100 * MS || (!waits && sim_wanted_mw(h200(), &full, activity) > cap));
            before = now;
        }
        for (int32_t clock = 1900, last = 0; clock >= 300; clock -= 200) {
            struct sim_limits limits = {.cap_mw = 700000, .clock_mhz = clock};
            int32_t power = sim_wanted_mw(h200(), &limits, activity);
            assert_true(last == 0 || power <= last);
            assert_true(lasts(&limits, activity, 100 * MS) >= 100 * MS);
            if (!waits && power < sim_wanted_mw(h200(), &full, activity)) /* what it draws tells its clock */
                assert_true(fabs(sim_clock_mhz(h200(), activity, power) - clock) < 2);
            last = power;
        }
    }
    /* 350 W: products in fp32 pay with more of their pace than element-wise work, which waits for memory */
    struct sim_limits low = {.cap_mw = 350000};
    assert_true(lasts(&low, SIM_GEMM_FP32, 100 * MS) > 130 * MS);
    assert_true(lasts(&low, SIM_ELEMENTWISE, 100 * MS) < 120 * MS);
    assert_true(lasts(&low, SIM_ELEMENTWISE, 100 * MS) > 105 * MS);
    /* a burst goes at full speed, and what follows does not */
    struct sim_controller rested = {-1000 * MS, 0};
    assert_int_equal(sim_lasts_ns(h200(), &low, &rested, SIM_GEMM_FP32, 0, 40 * MS), 40 * MS);
    assert_int_equal(sim_lasts_ns(h200(), &low, &rested, SIM_GEMM_FP32, 0, 150 * MS) - 50 * MS,
                     lasts(&low, SIM_GEMM_FP32, 100 * MS));
}

static struct sim_active done(const struct sim_timeline *timeline, int64_t from_ns, int64_t to_ns) {
    struct sim_active from, to;
    sim_timeline_active(timeline, from_ns, &from);
    sim_timeline_active(timeline, to_ns, &to);
    return sim_active_between(&from, &to);
}

/* The pace, from what a limit does to durations. */
static double pace(const struct sim_limits *limits, enum sim_activity activity) {
    return 1e12 / (double)lasts(limits, activity, INT64_C(1000000000000));
}

static void assert_part(double seen, double row, double part) {
    assert_true(fabs(seen - row * part) <= row * 2e-6);
}

static void assert_traffic(const struct sim_active *active, int64_t window_ns, const struct sim_counters *row,
                           double part) {
    struct sim_counters mean;
    sim_counters_mean(h200(), active, window_ns, &mean);
    assert_part(mean.mem_util, row->mem_util, part);
    assert_part(mean.dram, row->dram, part);
    assert_part(mean.pcie_tx, row->pcie_tx, part);
    assert_part(mean.pcie_rx, row->pcie_rx, part);
    assert_part(mean.nvlink_tx, row->nvlink_tx, part);
    assert_part(mean.nvlink_rx, row->nvlink_rx, part);
    /* what says how long units are in use stays */
    assert_true(fabs(mean.util - row->util) < 1e-9 && fabs(mean.sm - row->sm) < 1e-9);
    assert_true(fabs(mean.tensor - row->tensor) < 1e-9 && fabs(mean.fp32 - row->fp32) < 1e-9);
}

/* Bytes a second are those of the row in the burst, then as much less as the same work lasts longer. */
TEST(traffic_goes_with_the_pace) {
    static const enum sim_activity works[] = {SIM_ELEMENTWISE, SIM_GEMM_BF16, SIM_TRAIN_TUNED};
    struct sim_limits low = {.cap_mw = 400000}, own = {.cap_mw = 400000, .own_mw = 400000};
    struct sim_limits locked = {.cap_mw = 700000, .clock_mhz = 900};
    struct sim_piece pieces[2];
    for (unsigned i = 0; i < sizeof works / sizeof works[0]; i++) {
        const struct sim_counters *row = &sim_activity_info(works[i])->counters;
        struct sim_timeline *limited = fresh(0), *written = fresh(0), *slow = fresh(0);
        assert_int_equal(sim_timeline_append(limited, h200(), &low, 1, works[i], 0, 150 * MS, pieces), 2);
        sim_timeline_append(written, h200(), &own, 1, works[i], 0, 150 * MS, pieces);
        assert_int_equal(sim_timeline_append(slow, h200(), &locked, 1, works[i], 0, 150 * MS, pieces), 1);
        struct sim_active burst = done(limited, 0, 50 * MS), held = done(limited, 50 * MS, 150 * MS);
        struct sim_active as_written = done(written, 0, 150 * MS), below = done(slow, 0, 150 * MS);
        assert_true(pace(&low, works[i]) < 0.96 && pace(&locked, works[i]) < 0.96);
        assert_traffic(&burst, 50 * MS, row, 1);
        assert_traffic(&held, 100 * MS, row, pace(&low, works[i]));
        assert_traffic(&as_written, 150 * MS, row, 1);
        assert_traffic(&below, 150 * MS, row, pace(&locked, works[i]));
        free(limited);
        free(written);
        free(slow);
    }
    /* links: an all-reduce is of kernels; a copy does not go with the clock */
    struct sim_timeline *links = fresh(0);
    sim_timeline_append(links, h200(), &locked, 1, SIM_COMM, 0, 100 * MS, pieces);
    sim_timeline_append(links, h200(), &locked, 1, SIM_COPY_PINNED, 100 * MS, 100 * MS, pieces);
    struct sim_active reduced = done(links, 0, 100 * MS), copied = done(links, 100 * MS, 200 * MS);
    assert_true(pace(&locked, SIM_COMM) < 0.96);
    assert_traffic(&reduced, 100 * MS, &sim_activity_info(SIM_COMM)->counters, pace(&locked, SIM_COMM));
    assert_traffic(&copied, 100 * MS, &sim_activity_info(SIM_COPY_PINNED)->counters, 1);
    free(links);
}

/* Work is summed over segments, of which milestones hold sums, and follows where one is lengthened or cut. */
TEST(work_is_summed_as_time_is) {
    struct sim_limits low = {.cap_mw = 400000};
    struct sim_timeline *timeline = fresh(0);
    struct sim_piece pieces[2];
    double held = pace(&low, SIM_GEMM_FP32);
    sim_timeline_arrive(timeline, 0);
    sim_timeline_append(timeline, h200(), &low, 1, SIM_GEMM_FP32, 0, 50 * MS, pieces);
    for (int64_t t = 50; t < 350; t++) /* the ring has one a millisecond */
        assert_int_equal(sim_timeline_append(timeline, h200(), &low, 1, SIM_GEMM_FP32, t * MS, MS, pieces), 1);
    assert_int_equal(timeline->head, 301);
    for (int64_t t = 50; t < 340; t += 7) {
        struct sim_active ten = done(timeline, t * MS, (t + 10) * MS - MS / 2);
        assert_int_equal(ten.ns[SIM_GEMM_FP32], 10 * MS - MS / 2);
        assert_true(fabs((double)ten.work_ns[SIM_GEMM_FP32] - 9.5e6 * held) < 20);
    }
    /* longer by the same, and by something short, which counts as the segment that it lengthens */
    assert_int_equal(sim_timeline_extend(timeline, h200(), &low, 1, SIM_GEMM_FP32, 350 * MS, 100 * MS, pieces), 1);
    assert_int_equal(timeline->head, 301);
    struct sim_active longer = done(timeline, 349 * MS, 500 * MS);
    assert_int_equal(longer.ns[SIM_GEMM_FP32], 101 * MS);
    assert_true(fabs((double)longer.work_ns[SIM_GEMM_FP32] - 101e6 * held) < 101);
    assert_int_equal(longer.work_ns[SIM_CONTEXT], longer.ns[SIM_CONTEXT]);
    sim_timeline_append(timeline, h200(), &low, 1, SIM_GEMM_FP32, 450 * MS, MS, pieces);
    assert_int_equal(sim_timeline_extend(timeline, h200(), &low, 1, SIM_ELEMENTWISE, 451 * MS, MS / 2, pieces), 1);
    struct sim_active mixed = done(timeline, 450 * MS, 500 * MS);
    assert_int_equal(mixed.ns[SIM_GEMM_FP32], MS + MS / 2);
    assert_true(fabs((double)mixed.work_ns[SIM_GEMM_FP32] - 1.5e6 * held) < 3);
    /* shorter */
    sim_timeline_cut(timeline, h200(), 1, 400 * MS);
    struct sim_active cut = done(timeline, 349 * MS, 500 * MS);
    assert_int_equal(cut.ns[SIM_GEMM_FP32], 51 * MS);
    assert_true(fabs((double)cut.work_ns[SIM_GEMM_FP32] - 51e6 * held) < 51);
    free(timeline);
}
