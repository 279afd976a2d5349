/* The tracker against a counter with known edges: every reading it places must bracket the true edge. */
#include "observe/nvml/tracker.h"
#include "observe/nvml/tuning.h"
#include "unit.h"

#define QUANTUM_MJ 30000 /* 300 W */
#define BASE_MJ 1000000

struct world {
    double period, phase, jitter; /* ns */
    double call_least, call_most; /* ns */
    double late;                  /* a reading comes up to this much after it was asked for */
    unsigned seed;
    double now;
    struct nvml_tracker tracker;
    int emitted, wrong, calls, resets;
    int64_t last_t, last_slack, wide, loose;
    bool backwards;
    double origin;
};

static double random_unit(struct world *w) {
    return rand_r(&w->seed) / (double)RAND_MAX;
}

static double edge(const struct world *w, int64_t k) {
    double r = sin((double)k * 12.9898) * 43758.5453;
    return w->phase + (double)k * w->period + (2 * (r - floor(r)) - 1) * w->jitter;
}

static int64_t counter(const struct world *w, double t) {
    int64_t k = (int64_t)floor((t - w->phase) / w->period) + 1;
    while (edge(w, k) > t)
        k--;
    return BASE_MJ + k * QUANTUM_MJ;
}

static void take(void *context, int64_t t_ns, int64_t slack_ns, int64_t value_mj) {
    struct world *w = context;
    double e = edge(w, (value_mj - BASE_MJ) / QUANTUM_MJ);
    w->emitted++;
    w->wrong += !(e <= (double)t_ns + 2 && e >= (double)(t_ns - slack_ns) - 2);
    w->backwards |= w->emitted > 1 && t_ns <= w->last_t;
    w->last_t = t_ns;
    w->last_slack = slack_ns;
    w->loose += (double)t_ns > w->origin + 10e9 && slack_ns > 25000000;
    w->wide += slack_ns > HEC_TUNE_ENERGY_QUANTUM_NS + (int64_t)w->call_most;
}

static void begin(struct world *w) {
    w->now = w->origin = 5e9;
    w->seed = 7;
    nvml_tracker_init(&w->tracker, take, w);
}

static void run(struct world *w, double seconds) {
    for (double end = w->now + seconds * 1e9; w->now < end;) {
        if (w->tracker.next_ns != INT64_MIN && (double)w->tracker.next_ns > w->now)
            w->now = (double)w->tracker.next_ns;
        if (w->now >= end)
            break;
        w->now += 40e3 + w->late * random_unit(w);
        double t0 = w->now, call = w->call_least + (w->call_most - w->call_least) * random_unit(w);
        double taken = t0 + call * random_unit(w); /* nobody knows when inside the call */
        bool reset;
        nvml_tracker_add(&w->tracker, (int64_t)t0, (int64_t)(t0 + call), counter(w, taken), &reset);
        w->resets += reset;
        w->now = t0 + call;
        w->calls++;
    }
}

#define H200                                                                                                           \
    { .period = 99.94e6, .call_least = 4.0e6, .call_most = 4.7e6, .late = 60e3 }

TEST(test_finds_the_edges_soon) {
    for (int phase = 0; phase < 100; phase += 7) {
        struct world w = H200;
        w.phase = phase * 1e6;
        begin(&w);
        run(&w, 1);
        assert_int_equal(w.tracker.state, NVML_TRACKER_TRACKING);
        assert_true(w.emitted >= 3);
        assert_int_equal(w.wrong, 0);
        assert_true(w.calls <= 18);
        /* the very first reading, taken before anything was known, is placed too */
        assert_true(w.last_slack < 25000000);
    }
}

/* The call's length, the irregularity that is allowed on both sides, and 8 ms that no reading is spent on; more while an edge passes
 * unread. */
TEST(test_stays_narrow_with_few_readings) {
    struct world w = H200;
    w.phase = 12e6;
    w.call_least = w.call_most = 4.3e6;
    begin(&w);
    run(&w, 10);
    assert_true(w.last_slack <= 25000000);
    run(&w, 590);
    assert_int_equal(w.wrong, 0);
    assert_false(w.backwards);
    assert_true(w.loose <= w.emitted / 20); /* the edges are looked for again now and then */
    assert_true(w.calls < 300);             /* 10 minutes: 0.5 a second at most, 0.25 % of a core if a call spins */
    assert_true(w.emitted > 150);
}

TEST(test_survives_lateness_and_other_paces) {
    const struct world worlds[] = {
        {.period = 99.94e6, .phase = 33e6, .call_least = 4e6, .call_most = 40e6, .late = 30e6},
        {.period = 100.1e6, .phase = 71e6, .call_least = 4e6, .call_most = 5e6, .late = 1e6},
        {.period = 99.94e6, .phase = 3e6, .call_least = 20e3, .call_most = 30e3, .late = 60e3},
        {.period = 99.94e6, .phase = 3e6, .jitter = 1e6, .call_least = 4e6, .call_most = 4.7e6, .late = 60e3},
        {.period = 20e6, .phase = 3e6, .call_least = 4e6, .call_most = 4.7e6, .late = 60e3},
        {.period = 50e6, .phase = 3e6, .call_least = 1e6, .call_most = 1.7e6, .late = 60e3},
    };
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        struct world w = worlds[i];
        begin(&w);
        run(&w, 300);
        if (w.wrong || w.backwards || w.wide || w.emitted < 100)
            fail_msg("world %zu: %d of %d readings misplaced, %d too wide, order %d", i, w.wrong, w.emitted,
                     (int)w.wide, w.backwards);
    }
}

/* Faster than the known pace: the counter must not be believed to have edges, only to be at most 100 ms old. */
TEST(test_does_not_mistake_a_faster_pace) {
    struct world w = {.period = 20e6, .phase = 3e6, .call_least = 4e6, .call_most = 4.7e6, .late = 60e3};
    begin(&w);
    run(&w, 30);
    assert_int_equal(w.tracker.state, NVML_TRACKER_RESTING);
    assert_true(w.last_slack >= HEC_TUNE_ENERGY_QUANTUM_NS);
    assert_true(w.calls < 120);
}

TEST(test_a_slow_counter_widens_the_quantum) {
    struct world w = {.period = 1000e6, .phase = 3e6, .call_least = 4e6, .call_most = 4.7e6, .late = 60e3};
    begin(&w);
    run(&w, 60);
    assert_int_equal(w.tracker.state, NVML_TRACKER_RESTING);
    assert_true(w.tracker.quantum_ns > 400 * HEC_NS_PER_MS);
}

TEST(test_follows_a_drifting_pace) {
    struct world w = H200;
    begin(&w);
    for (int i = 0; i < 30; i++) { /* 20 ppm more every minute, phase kept */
        run(&w, 60);
        int64_t k = (int64_t)floor((w.now - w.phase) / w.period);
        double at = edge(&w, k);
        w.period *= 1 + 20e-6;
        w.phase = at - (double)k * w.period;
    }
    assert_true(w.wrong <= w.emitted / 50);
    assert_int_equal(w.tracker.state, NVML_TRACKER_TRACKING);
    assert_true(w.last_slack < 25000000);
}

TEST(test_reset_starts_anew) {
    struct world w = H200;
    w.phase = 40e6;
    begin(&w);
    run(&w, 10);
    int before = w.emitted;
    w.phase = w.now - 3.3 * w.period; /* as after a driver reload: the counter is near zero, its edges elsewhere */
    run(&w, 10);
    assert_int_equal(w.resets, 1);
    assert_int_equal(w.wrong, 0);
    assert_true(w.emitted > before);
    assert_int_equal(w.tracker.state, NVML_TRACKER_TRACKING);
}

TEST(test_flush_emits_what_is_held) {
    struct world w = H200;
    begin(&w);
    run(&w, 0.05); /* stopped in the middle of the search */
    nvml_tracker_flush(&w.tracker);
    assert_true(w.emitted >= 1);
    assert_int_equal(w.wrong, 0);
    int once = w.emitted;
    nvml_tracker_flush(&w.tracker);
    assert_int_equal(w.emitted, once);
}

TEST(test_a_pause_does_not_matter) {
    struct world w = H200;
    begin(&w);
    run(&w, 20);
    w.now += 3600e9; /* suspended */
    run(&w, 20);
    assert_int_equal(w.wrong, 0);
    assert_int_equal(w.tracker.state, NVML_TRACKER_TRACKING);
}

TEST(test_grid_bounds) {
    struct hec_grid grid;
    int64_t early, late, first, last;
    hec_grid_init(&grid, 90, 110, 1000);
    assert_true(hec_grid_add_upper(&grid, 0, 1010));
    assert_true(hec_grid_add_lower(&grid, 0, 1000));
    hec_grid_edge(&grid, 1, &early, &late);
    assert_int_equal(early, 1090);
    assert_int_equal(late, 1120);
    assert_true(hec_grid_add_upper(&grid, 10, 2010)); /* P <= 101 */
    assert_true(hec_grid_add_lower(&grid, 10, 2000)); /* P >= 99 */
    assert_true(fabs(grid.period_min - 99) < 1e-9 && fabs(grid.period_max - 101) < 1e-9);
    hec_grid_edge(&grid, 5, &early, &late);
    assert_int_equal(early, 1500);
    assert_int_equal(late, 1510);
    hec_grid_edge(&grid, 20, &early, &late);
    assert_int_equal(early, 2990);
    assert_int_equal(late, 3020);
    hec_grid_locate(&grid, 1520, 1530, &first, &last);
    assert_int_equal(first, 5);
    assert_int_equal(last, 5);
    hec_grid_locate(&grid, 1505, 1506, &first, &last);
    assert_int_equal(first, 4);
    assert_int_equal(last, 5);
    assert_false(hec_grid_add_upper(&grid, 10, 1999));
}
