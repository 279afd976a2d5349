/* Steps found in sequences of kernels: what real programs do, and what has no steps. */
#include "diagnose/timeline/periodic.h"
#include "timeline_run.h"

#define IDS 400
#define HOST 390 /* copies from here on */
#define LONGEST 200000

static uint32_t ids[LONGEST];
static size_t count;

static void put(uint32_t id) {
    if (count < LONGEST)
        ids[count++] = id;
}

static void put_run(uint32_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        put(first + i);
}

static struct hec_period find(void) {
    struct hec_period period;
    assert_int_equal(hec_period_find(ids, count, IDS, HOST, &period), 0);
    return period;
}

static int setup(void **state) {
    (void)state;
    count = 0;
    random_state = 42;
    return 0;
}

/* Forward and backward over layers, an optimizer of many small kernels; an H2D copy of the batch where there is one. */
static void put_training_step(int layers, bool copy) {
    if (copy)
        put(HOST);
    put_run(1, 3); /* embedding */
    for (int i = 0; i < layers; i++)
        put_run(10, 12);
    put_run(30, 4); /* loss */
    for (int i = 0; i < layers; i++)
        put_run(40, 24);
    for (int i = 0; i < layers; i++)
        put_run(70, 3);
}

TEST(training) {
    for (int i = 0; i < 40; i++)
        put_training_step(24, false);
    struct hec_period p = find();
    assert_int_equal((int)p.length, 3 + 24 * 39 + 4);
    assert_true(p.confidence > 0.9 && p.confidence <= 0.95);
    assert_false(p.nested);
    assert_true((p.anchor >= 1 && p.anchor <= 3) || (p.anchor >= 30 && p.anchor < 34));
}

/* Warm-up with other kernels, an evaluation now and then. */
TEST(warm_up_and_evaluation) {
    for (int i = 0; i < 500; i++)
        put(200 + random_below(100));
    for (int i = 0; i < 60; i++) {
        put_training_step(6, true);
        for (int k = 0; i % 20 == 19 && k < 3; k++)
            put_run(10, 12);
    }
    struct hec_period p = find();
    assert_int_equal((int)p.length, 1 + 3 + 6 * 39 + 4);
    assert_true(p.confidence > 0.75);
}

/* Layers alone explain 97 % of a token: the copy of the token to the host tells that the token is the step. */
TEST(inference) {
    for (int token = 0; token < 60; token++) {
        put_run(1, 3);
        for (int i = 0; i < 40; i++)
            put_run(10, 12);
        put_run(30, 4);
        put(HOST + 1);
    }
    struct hec_period p = find();
    assert_int_equal((int)p.length, 3 + 40 * 12 + 4 + 1);
    assert_true(p.nested);
    assert_true(p.confidence > 0.5);
}

/* Ten kernels out of a hundred differ from step to step. */
TEST(variation) {
    for (int i = 0; i < 50; i++) {
        put_run(1, 90);
        for (uint32_t k = 0; k < 6 + random_below(8); k++)
            put(200 + random_below(2));
    }
    struct hec_period p = find();
    assert_true(p.length >= 94 && p.length <= 106);
    assert_true(p.anchor >= 1 && p.anchor <= 90);
    assert_true(p.confidence > 0.8);
}

/* A duty-cycled trace: two and a half steps at a time. */
TEST(windows) {
    for (uint32_t k = 0; k < 40; k++) {
        for (uint32_t i = 0; i < 250; i++)
            put(1 + (k * 37 + i) % 100);
        put(0);
    }
    struct hec_period p = find();
    assert_int_equal((int)p.length, 100);
    assert_true(p.confidence > 0.85);
}

TEST(smallest) {
    for (int i = 0; i < 1000; i++)
        put_run(1, 2);
    assert_int_equal((int)find().length, 2);
}

TEST(nothing) {
    assert_int_equal(find().anchor, 0); /* no activity at all */
    put_run(1, 300);
    assert_int_equal(find().anchor, 0); /* no repetition */
    count = 0;
    for (int i = 0; i < 3; i++)
        put_run(1, 100);
    assert_int_equal(find().anchor, 0); /* too few to believe */
    count = 0;
    for (int i = 0; i < 5000; i++)
        put(7);
    assert_int_equal(find().anchor, 0); /* one kernel over and over */
}

/* Sequences with no period: none is found, whatever the number of kernels. */
TEST(randomness) {
    static const uint32_t kinds[] = {2, 3, 5, 10, 50, 300};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int round = 0; round < 20; round++) {
            count = 0;
            for (int k = 0; k < 5000; k++)
                put(1 + random_below(kinds[i]));
            assert_int_equal(find().anchor, 0);
        }
}

/* Steps of random length: a period in name, of no use. */
TEST(irregular) {
    for (int i = 0; i < 100; i++) {
        put(1);
        for (uint32_t k = 10 + random_below(200); k > 0; k--)
            put(10 + random_below(100));
    }
    assert_int_equal(find().anchor, 0);
}

/* ---- through hec_timeline_build ---- */

/* Steps of 5 kernels every 10 ms (one in ten takes 30 ms, for the loader stalls), each with a copy at its start. */
TEST(whole_timeline) {
    uint32_t kernels[5];
    char name[32];
    timeline_begin(NULL);
    for (int k = 0; k < 5; k++) {
        snprintf(name, sizeof name, "kernel_%d", k);
        kernels[k] = fake_tl_kernel(&t, name, 128);
    }
    int64_t at = 0;
    for (int i = 0; i < 200; i++) {
        fake_tl_copy(&t, stream, at, at + 500000, 0, HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE);
        for (int k = 0; k < 5; k++)
            fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, at + (k + 1) * 1000000, at + (k + 1) * 1000000 + 700000)
                ->name = kernels[k];
        fake_tl_add(&t, HEC_ACTIVITY_KERNEL, second_stream, at + 7000000, at + 7500000)->name = kernels[4];
        at += i % 10 == 9 ? 30000000 : 10000000;
    }
    build();
    assert_int_equal(made.steps.source, HEC_STEP_PERIODIC);
    assert_int_equal(made.steps.count, 199);
    assert_int_equal(made.steps.pid, 10);
    assert_true(fabs(made.steps.duration.median - 0.010) < 1e-9);
    assert_true(fabs(made.steps.duration.p99 - 0.030) < 1e-9);
    assert_true(made.steps.confidence > 0.9 && made.steps.confidence < 1);
    /* each step has 4.5 ms of work, and lasts 12 ms in the mean */
    assert_true(fabs(made.steps.busy_share - 199 * 4.5 / (180 * 10.0 + 19 * 30.0)) < 1e-9);
    assert_true(isnan(made.steps.samples_per_step));

    /* In windows of 45 ms every 100 ms only the steps that are seen whole count. */
    size_t kept = 0;
    for (size_t i = 0; i < t.count; i++)
        if (t.activities[i].start_ns % 100000000 < 45000000)
            t.activities[kept++] = t.activities[i];
    t.count = kept;
    for (int64_t k = 0; k * 100000000 < at; k++)
        fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, k * 100000000, k * 100000000 + 45000000);
    build();
    assert_int_equal(made.steps.source, HEC_STEP_PERIODIC);
    assert_true(made.steps.count >= 60 && made.steps.count <= 90);
    assert_true(fabs(made.steps.duration.median - 0.010) < 1e-9);
    assert_true(made.steps.duration.maximum < 0.045);
}

EACH_TEST(setup, NULL)
