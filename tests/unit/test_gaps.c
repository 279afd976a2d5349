/* The gaps of a timeline, from pieces in words: whose causes own them, what they hide, and what recurs. */
#include "diagnose/states/gaps.h"
#include "diagnose/states/state.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct hec_gaps gaps;
static int64_t now_us;
static bool steady;

static void piece(enum hec_state state, double us, enum hec_state_wait wait, uint32_t hidden_us) {
    const struct hec_state_piece p = {.start_ns = now_us * 1000,
                                      .end_ns = now_us * 1000 + (int64_t)(us * 1e3),
                                      .state = (uint8_t)state,
                                      .wait = (uint8_t)wait,
                                      .hidden_us = hidden_us,
                                      .traced = true};
    assert_int_equal(hec_gaps_piece(&gaps, 0, &p, steady), 0);
    now_us += 1000000;
}

/* "host 100, sync small 30 of 40": states, what is waited for, microseconds, and for how long the thread had been at it before. */
static void pieces(const char *text) {
    static const char *const waits[HEC_STATE_WAIT_COUNT] = {"other", "read", "small", "data", "within"};
    for (; *text; text += strcspn(text, ",") + (strchr(text, ',') ? 2 : 0)) {
        char name[16], waited[16] = "other";
        double us;
        unsigned hidden_us = 0;
        int state = 0, wait = 0;
        if (sscanf(text, "%15[a-z] %lf of %u", name, &us, &hidden_us) < 2)
            assert_true(sscanf(text, "%15[a-z] %15[a-z] %lf of %u", name, waited, &us, &hidden_us) >= 3);
        while (strcmp(hec_state_name((enum hec_state)state), name) != 0)
            assert_true(++state < HEC_STATE_COUNT);
        while (strcmp(waits[wait], waited) != 0)
            assert_true(++wait < HEC_STATE_WAIT_COUNT);
        piece((enum hec_state)state, us, (enum hec_state_wait)wait, hidden_us);
    }
}

static void gaps_begin(bool of_steps) {
    hec_gaps_free(&gaps);
    steady = of_steps;
}

static const struct hec_gap_facts *ended(void) {
    hec_gaps_end(&gaps);
    assert_int_equal(gaps.count, 1);
    return &gaps.list[0];
}

static void has(enum hec_state state, enum hec_cause cause, double us) {
    const struct hec_gap_facts *g = &gaps.list[0];
    if (fabs(1e6 * g->owned_s[state][cause] - us) > 1e-6)
        fail_msg("%s of %s: %.3f us, not %.3f", hec_cause_name(cause), hec_state_name(state),
                 1e6 * g->owned_s[state][cause], us);
}

TEST(test_gaps) {
    gaps_begin(true);
    /* brief: launching; not: in two parts, for a stack was sampled */
    pieces("host 100, compute 1000, host 150, host 50, data 5000, compute 1000, ");
    /* a gap with a load: all but data; a copy of weights */
    pieces("data 7000, host 20000, startup 10000, launch 1000, copy 3000, checkpoint 2000, copy 4000, checkpoint 2000, "
           "compute 1000, copy 8000, copy read 2, copy within 70");
    const struct hec_gap_facts *g = ended();
    assert_int_equal(g->loads, 1);
    assert_true(fabs(g->load_s - 31e-3) < 1e-12);
    has(HEC_STATE_HOST, HEC_CAUSE_LAUNCH, 100);
    has(HEC_STATE_HOST, HEC_CAUSE_HOST, 200);
    has(HEC_STATE_HOST, HEC_CAUSE_COMPILE, 20000);
    has(HEC_STATE_DATA, HEC_CAUSE_DATA, 12000);
    has(HEC_STATE_COPY, HEC_CAUSE_CHECKPOINT, 4000);
    has(HEC_STATE_COPY, HEC_CAUSE_COPY, 11000);
    has(HEC_STATE_COPY, HEC_CAUSE_SYNC, 2);
}

/* Code behind launches would hide the device's work, were they made at once; behind a wait it would not. */
TEST(test_gaps_beside) {
    gaps_begin(true);
    pieces(
        "host 500, compute 10, launch 20, host 300, compute 10, sync 5, host 700, compute 10, copy data 100, host 900, compute 10, ");
    pieces("copy within 5, host 1000, compute 10, host 400, startup 100, compute 10, host 100, compute 10");
    assert_true(fabs(ended()->beside_s - (500 + 300 + 1000) * 1e-6) < 1e-12);
    gaps_begin(false);
    pieces("host 500, compute 10, host 400000, compute 10"); /* set-up */
    assert_true(fabs(ended()->beside_s - 500e-6) < 1e-12);
}

/* Behind a wait the device would work while code runs that was not waited for before: for as long as the wait had been hidden, and no
 * launching needs. Other waits go with what they are for. */
TEST(test_gaps_awaited) {
    gaps_begin(true);
    pieces("compute 300, sync 30 of 300, host 500, compute 10, host 400, compute 10, ");
    assert_true(fabs(ended()->awaited_s - 300e-6) < 1e-12);
    has(HEC_STATE_HOST, HEC_CAUSE_HOST, 900);
    gaps_begin(true);
    pieces("sync 30 of 300, launch 100, host 500, compute 10, sync 5 of 250, host 200, compute 10");
    assert_true(fabs(ended()->awaited_s - (200 + 200) * 1e-6) < 1e-12);
    gaps_begin(true);
    pieces("sync data 30 of 300, host 500, compute 10, sync 30 of 300, host 500, startup 100, compute 10");
    assert_true(fabs(ended()->awaited_s) < 1e-12);
    gaps_begin(false);
    pieces("sync 30 of 300, host 400000, compute 10"); /* set-up */
    assert_true(fabs(ended()->awaited_s) < 1e-12);
}

/* Of what a wait has launching of kernels behind it, for as long as it had been hidden; not of calls that copy. */
TEST(test_gaps_late) {
    gaps_begin(true);
    pieces("compute 300, sync 30 of 100, launch 80, compute 10, launch 80, compute 10, launch 50, compute 10, ");
    assert_true(fabs(ended()->late_s - 100e-6) < 1e-12);
    has(HEC_STATE_LAUNCH, HEC_CAUSE_SYNC, 100);
    gaps_begin(true);
    pieces(
        "sync data 30 of 300, launch data 100, host 50, compute 10, sync 30 of 300, launch 40, startup 100, compute 10");
    assert_true(fabs(ended()->late_s - 50e-6) < 1e-12);
    has(HEC_STATE_HOST, HEC_CAUSE_COPY, 50);
}

/* Launching belongs to what drained the queue, for as long as that had been hidden. */
TEST(test_gaps_drained) {
    gaps_begin(true);
    pieces("sync 30 of 100, launch 20, compute 10, host 70, compute 10, launch 25, compute 10, "); /* 10 of the last */
    pieces("sync small 30 of 40, launch small 5, launch 40, compute 10, ");                        /* the call copies */
    pieces("host 500 of 400, launch 50, compute 10, ");    /* that code is hidden is no harm */
    pieces("alloc 30 of 50000, launch 15000, compute 10"); /* the queue holds 10 ms */
    ended();
    has(HEC_STATE_SYNC, HEC_CAUSE_SYNC, 30);
    has(HEC_STATE_LAUNCH, HEC_CAUSE_SYNC, 20 + 10);
    has(HEC_STATE_HOST, HEC_CAUSE_SYNC, 70);
    has(HEC_STATE_SYNC, HEC_CAUSE_COPY, 30);
    has(HEC_STATE_LAUNCH, HEC_CAUSE_COPY, 5 + 40);
    has(HEC_STATE_LAUNCH, HEC_CAUSE_ALLOC, 10000);
    has(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 15 + 50 + 5000);
    assert_true(fabs(gaps.list[0].small_s - 75e-6) < 1e-12);
}

/* Without steps, loads are start-up, and so are long waits that nothing names. */
TEST(test_gaps_unsteady) {
    gaps_begin(false);
    pieces("sync 200000, host 150000, compute 1000, data 400000, sync 1000, compute 1000, "); /* first 0.35 s in all */
    pieces("host 1000, startup 1000, compute 1000, sync 290000");
    ended();
    has(HEC_STATE_SYNC, HEC_CAUSE_SYNC, 290000);
    has(HEC_STATE_HOST, HEC_CAUSE_HOST, 0);
    has(HEC_STATE_DATA, HEC_CAUSE_DATA, 400000);
    has(HEC_STATE_HOST, HEC_CAUSE_COMPILE, 0);
    has(HEC_STATE_STARTUP, HEC_CAUSE_COMPILE, 0);
}

/* But they are compiling where they recur with what the device computes: all of them but the first, in one of its first 64th. */
TEST(test_gaps_unsteady_recompiles) {
    gaps_begin(false);
    for (int i = 0; i < 400; i++) {
        pieces(i % 50 == 0 ? "host 900, data 70, startup 30000, compute 3" : "host 0.5, compute 3");
    }
    assert_true(ended()->loads_recur);
    has(HEC_STATE_HOST, HEC_CAUSE_COMPILE, 7 * 900);
    has(HEC_STATE_STARTUP, HEC_CAUSE_COMPILE, 7 * 30000);
    has(HEC_STATE_DATA, HEC_CAUSE_DATA, 8 * 70);
}

/* A run of 400 steps that compute for 3 ms each; `wait` puts what precedes a step. */
static const struct hec_gap_facts *steps_with(void (*wait)(int step)) {
    gaps_begin(true);
    for (int step = 0; step < 400; step++) {
        wait(step);
        pieces("compute 3");
    }
    wait(400);
    hec_gaps_end(&gaps);
    return &gaps.list[0];
}

/* Hugging Face's generate: prefill and the first tokens load their kernels, one a launch; much later one rare branch does. */
static void lazy_loads(int step) {
    for (int i = 0; i < (step < 30 ? 30 - step : step == 300); i++) {
        pieces("startup 9, launch 0.01, compute 0.002");
    }
    pieces("host 0.5");
}

/* The first validation loads what it needs, half-way; later ones do not. */
static void loads_of_validation(int step) {
    if (step >= 200 && step < 210)
        pieces("startup 40");
    pieces("host 0.5");
}

static void recompiles(int step) {
    pieces(step % 50 == 49 ? "host 900, startup 30" : "host 0.5");
}

/* CUDA C: weights are allocated and copied, layer by layer; frees come after the last kernel, between copies to the host. */
static void allocates_once(int step) {
    for (int i = 0; i < (step == 0 || step == 400 ? 16 : 0); i++) {
        pieces("alloc 12, copy 4");
    }
    pieces("launch 0.01");
}

static void allocates_each_step(int step) {
    pieces(step ? "alloc 0.4, launch 0.01" : "alloc 90, launch 0.01"); /* the first one makes the pool */
}

TEST(test_what_recurs) {
    const struct {
        void (*wait)(int step);
        bool loads, allocs;
    } cases[] = {{lazy_loads, false, false},
                 {loads_of_validation, false, false},
                 {recompiles, true, false},
                 {allocates_once, false, false},
                 {allocates_each_step, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct hec_gap_facts *g = steps_with(cases[i].wait);
        if (g->loads_recur != cases[i].loads || g->allocs_recur != cases[i].allocs)
            fail_msg("case %zu: loads %d, allocations %d", i, g->loads_recur, g->allocs_recur);
        hec_gaps_free(&gaps);
    }
}
