/* Of JAX, whose cause the time is in which the device waits: by stacks in words. */
#include "diagnose/limits.h"
#include "diagnose/states/operations.h"
#include "timeline_run.h"

#include <math.h>

#define JAX "/v/lib/python3.11/site-packages/jax/_src"

static struct hec_timeline_tables tables;
static struct hec_stacks stacks;
static struct hec_operations *operations;
static struct hec_gaps gaps;

static int begin(void **state) {
    timeline_begin(state);
    return 0;
}

/* A stack that lies at that line of the program, and in a frame of JAX; "": in none. *at: the program's frame. */
static uint32_t stack(int line, const char *file, const char *function, uint32_t *at) {
    uint32_t id = *at = fake_tl_frame(&t, "/home/ann/program.py", "main", line);
    if (file[0]) {
        id = fake_tl_frame(&t, file, function, 1);
        t.frames[id - 1].parent = *at;
    }
    return id;
}

/* A stack in which one number of an array is read at that line. */
static uint32_t number_read(int line, uint32_t *at) {
    uint32_t value = stack(line, JAX "/array.py", "_value", at),
             number = fake_tl_frame(&t, JAX "/array.py", "__float__", 2);
    t.frames[value - 1].parent = number;
    t.frames[number - 1].parent = *at;
    return value;
}

static void frames_end(void) {
    assert_int_equal(hec_timeline_tables_load(&t.input, &tables, NULL), 0);
    assert_int_equal(hec_stacks_begin(&stacks, &tables), 0);
    operations = hec_operations_begin(&stacks);
    assert_non_null(operations);
}

static void samples(enum hec_state state, uint32_t frame, uint32_t line, int count) {
    const struct hec_state_sample s = {.period_ns = 10000000, .frame = frame, .state = (uint8_t)state};
    for (int i = 0; i < count; i++)
        assert_int_equal(hec_operations_sample(operations, 0, &s, line, true), 0);
}

/* Something was compiled there. */
static void compiled(uint32_t frame, uint32_t line) {
    const struct hec_state_sample s = {.period_ns = 10000000, .frame = frame, .state = HEC_STATE_STARTUP};
    assert_int_equal(hec_operations_sample(operations, 0, &s, line, false), 0);
}

static void beside(uint32_t frame, uint32_t line, int count) {
    const struct hec_state_sample s = {.period_ns = 10000000, .frame = frame, .state = HEC_STATE_COMPUTE};
    for (int i = 0; i < count; i++)
        assert_int_equal(hec_operations_beside(operations, 0, &s, line), 0);
}

/* 10 s of waiting, which calls take for copies. */
static void divide(void) {
    gaps = (struct hec_gaps){calloc(1, sizeof *gaps.list), 1};
    assert_non_null(gaps.list);
    gaps.list[0].owned_s[HEC_STATE_HOST][HEC_CAUSE_COPY] = 6;
    gaps.list[0].owned_s[HEC_STATE_LAUNCH][HEC_CAUSE_LAUNCH] = 4;
    gaps.list[0].owned_s[HEC_STATE_COPY][HEC_CAUSE_COPY] = 1;
    gaps.list[0].owned_s[HEC_STATE_STARTUP][HEC_CAUSE_COMPILE] = 2;
    gaps.list[0].small_s = 6;
    hec_operations_divide(operations, &gaps);
}

static void has(enum hec_cause cause, double seconds) {
    double sum = 0;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        sum += gaps.list[0].owned_s[s][cause];
    if (fabs(sum - seconds) > 1e-9)
        fail_msg("%s has %.3f s, not %.3f", hec_cause_name(cause), sum, seconds);
}

static void end(void) {
    hec_gaps_free(&gaps);
    hec_operations_free(operations);
    hec_stacks_free(&stacks);
    hec_timeline_tables_free(&tables);
}

/* What one line does to read a number is of the reading; what it does to have an array there and back, of the copies. */
TEST(operations_of_a_line) {
    uint32_t line[6], value, slice, fetch, put, scales, adds, compiles, own;
    value = number_read(10, &line[0]);
    slice = stack(10, JAX "/dispatch.py", "apply_primitive", &line[1]);
    fetch = stack(20, JAX "/array.py", "_value", &line[2]);
    put = stack(30, JAX "/api.py", "device_put", &line[3]);
    scales = stack(30, JAX "/array_methods.py", "_operator_mul", &line[3]);
    adds = stack(40, JAX "/array_methods.py", "_operator_add", &line[4]);
    own = stack(50, "", "", &line[5]);
    compiles = stack(50, JAX "/compiler.py", "backend_compile", &line[5]);
    frames_end();
    samples(HEC_STATE_SYNC, value, line[0], 10);
    samples(HEC_STATE_LAUNCH, slice, line[1], 20);
    samples(HEC_STATE_SYNC, fetch, line[2], 10);
    samples(HEC_STATE_LAUNCH, put, line[3], 10);
    samples(HEC_STATE_LAUNCH, scales, line[3], 10);
    samples(HEC_STATE_LAUNCH, adds, line[4], 30);
    samples(HEC_STATE_HOST, own, own, 5);
    samples(HEC_STATE_COPY, put, line[3], 50); /* it does not wait for the host */
    divide();
    has(HEC_CAUSE_SYNC, 10 * 30 / 95.);
    has(HEC_CAUSE_COPY, 1 + 10 * 30 / 95.);
    has(HEC_CAUSE_LAUNCH, 10 * 30 / 95.);
    has(HEC_CAUSE_HOST, 10 * 5 / 95.);
    has(HEC_CAUSE_COMPILE, 2);
    assert_true(gaps.list[0].small_s == 0 && fabs(gaps.list[0].operations_s - 10 * 30 / 95.) < 1e-9);
    hec_gaps_free(&gaps);
    compiled(compiles, line[5]);
    divide(); /* a line at which something was compiled calls that */
    has(HEC_CAUSE_LAUNCH, 10 * 35 / 95.);
    has(HEC_CAUSE_HOST, 0);
    end();
}

/* A number is read at each step, for 1 s of which the device computes: so much of calling what was compiled, and of the program's own code,
 * would be done meanwhile, and no more than there is. An array that is fetched does not count, nor what is beside the loop. */
TEST(what_a_read_hides) {
    static const struct {
        int launches, codes, reads_beside;
        double awaited_s;
    } cases[] = {{40, 20, 10, 1}, {40, 20, 80, 6}, {0, 20, 40, 2}, {40, 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t line[3], value = number_read(10, &line[0]), own = stack(50, "", "", &line[1]),
                          adds = stack(40, JAX "/array_methods.py", "_operator_add", &line[2]);
        frames_end();
        samples(HEC_STATE_SYNC, value, line[0], 100 - cases[i].launches - cases[i].codes);
        samples(HEC_STATE_LAUNCH, adds, line[2], cases[i].launches);
        samples(HEC_STATE_HOST, own, own, cases[i].codes);
        const struct hec_state_sample reads = {.period_ns = 10000000, .frame = value, .state = HEC_STATE_COMPUTE};
        beside(value, line[0], cases[i].reads_beside);
        beside(own, own, 1);
        assert_int_equal(hec_operations_beside(operations, -1, &reads, line[0]), 0);
        assert_int_equal(hec_operations_beside(operations, 0, &reads, 0), 0);
        divide();
        has(HEC_CAUSE_SYNC, 10 * (100 - cases[i].launches - cases[i].codes) / 100.);
        if (fabs(gaps.list[0].awaited_s - cases[i].awaited_s) > 1e-9)
            fail_msg("case %zu: %.3f s", i, gaps.list[0].awaited_s);
        end();
        begin(NULL);
    }
}

/* Calling what was compiled is of JAX too, in a program that has frames of JAX besides. */
TEST(calls_of_what_was_compiled) {
    for (int reads = 0; reads < 2; reads++) {
        uint32_t line[3], value = number_read(10, &line[0]), calls = stack(50, "", "", &line[1]),
                          compiles = stack(50, JAX "/compiler.py", "backend_compile", &line[1]),
                          own = stack(60, "", "", &line[2]);
        frames_end();
        compiled(compiles, line[1]);
        samples(HEC_STATE_SYNC, value, line[0], reads ? 20 : 0);
        samples(HEC_STATE_HOST, calls, calls, reads ? 40 : 60);
        samples(HEC_STATE_HOST, own, own, 40);
        divide();
        has(HEC_CAUSE_SYNC, reads ? 2 : 0);
        has(HEC_CAUSE_LAUNCH, 4);
        has(HEC_CAUSE_HOST, reads ? 4 : 0);
        static const int lines[] = {10, 50, 60};
        static const enum hec_cause owners[] = {HEC_CAUSE_SYNC, HEC_CAUSE_LAUNCH, HEC_CAUSE_HOST};
        for (int i = 0; i < 3; i++)
            assert_int_equal(hec_operations_owners(operations, 0, "/home/ann/program.py", lines[i]),
                             reads ? 1u << owners[i] : 0);
        assert_int_equal(hec_operations_owners(operations, 0, "/home/ann/other.py", 10), 0);
        assert_int_equal(hec_operations_owners(operations, 1, "/home/ann/program.py", 10), 0);
        assert_int_equal(hec_operations_owners(operations, -1, "/home/ann/program.py", 10), 0);
        end();
        begin(NULL);
    }
}

/* Of 20 s, 10 of them computing, a number is read for 2 s besides. A call is soon back where the program does not wait: then the longest of
 * the device's 10 s, launching and the program's own code is left. Where an array is fetched the wait goes on, and of them goes
 * what is read while the device computes. */
TEST(what_calls_hide) {
    static const struct {
        int calls, codes, calls_beside, codes_beside, slices;
        bool fetches;
        double awaited_s, covered_s;
    } cases[] = {{60, 20, 20, 0, 0, false, 8, 0},    /* 20 - 2 - 10 of the device: all of the 8 s of calls and code */
                 {70, 10, 80, 0, 0, false, 3, 0},    /* 20 - 2 - 15 of calls */
                 {40, 40, 0, 100, 0, false, 3.2, 0}, /* 20 - 2 - 14 of code - 0.2 of 4 of calls */
                 {40, 40, 0, 30, 0, false, 8, 0},
                 {40, 40, 0, 30, 10, false, 7,
                  1}, /* of 3 s of code beside the device 1 s is beside cutting the number out, then */
                 {40, 40, 0, 5, 10, false, 7, 0.5},
                 {60, 20, 20, 10, 0, true, 700 / 101., 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t line[4], value = number_read(10, &line[0]), calls = stack(50, "", "", &line[1]),
                          compiles = stack(50, JAX "/compiler.py", "backend_compile", &line[1]),
                          own = stack(60, "", "", &line[2]),
                          slice = stack(10, JAX "/dispatch.py", "apply_primitive", &line[3]),
                          fetch = stack(20, JAX "/array.py", "_value", &line[3]);
        frames_end();
        compiled(compiles, line[1]);
        samples(HEC_STATE_SYNC, value, line[0], 20);
        samples(HEC_STATE_LAUNCH, slice, line[0], cases[i].slices);
        samples(HEC_STATE_HOST, calls, calls, cases[i].calls - cases[i].slices);
        samples(HEC_STATE_HOST, own, own, cases[i].codes);
        samples(HEC_STATE_SYNC, fetch, line[3], cases[i].fetches);
        beside(value, line[0], 100 - cases[i].calls_beside - cases[i].codes_beside);
        beside(calls, calls, cases[i].calls_beside);
        beside(own, own, cases[i].codes_beside);
        divide();
        if (fabs(gaps.list[0].awaited_s - cases[i].awaited_s) > 1e-9 ||
            fabs(gaps.list[0].covered_s - cases[i].covered_s) > 1e-9)
            fail_msg("case %zu: %.3f s, %.3f s", i, gaps.list[0].awaited_s, gaps.list[0].covered_s);
        end();
        begin(NULL);
    }
}

/* A program that calls JAX now and then, and one with few samples, are divided by their calls. */
TEST(operations_of_others) {
    for (int few = 0; few < 2; few++) {
        uint32_t line[2], adds = stack(40, JAX "/array_methods.py", "_operator_add", &line[0]),
                          own = stack(50, "", "", &line[1]);
        frames_end();
        samples(HEC_STATE_LAUNCH, adds, line[0], few ? (int)HEC_OPERATIONS_SAMPLES - 1 : 40);
        samples(HEC_STATE_HOST, own, own, few ? 0 : 41);
        divide();
        has(HEC_CAUSE_COPY, 7);
        has(HEC_CAUSE_LAUNCH, 4);
        assert_true(gaps.list[0].small_s == 6 && gaps.list[0].operations_s == 0);
        end();
        begin(NULL);
    }
}

EACH_TEST(begin, NULL)
