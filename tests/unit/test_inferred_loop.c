/* Where a program without steps has its loop, by the pauses between its calls. */
#include "diagnose/states/inferred/device.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#define MS INT64_C(1000000)

static struct hec_inferred_pauses pauses;
static int64_t now;

static void call(enum hec_activity_kind kind, int64_t pause_ns, int64_t length_ns, double launches) {
    struct hec_activity a = {
        .kind = kind, .start_ns = now + pause_ns, .end_ns = now + pause_ns + length_ns, .amount = launches};
    now = a.end_ns;
    assert_int_equal(hec_inferred_pauses_add(&pauses, &a, 0), 0);
}

/* A first call, then some after pauses of so many milliseconds. */
static void set_up(const int *pauses_ms, int count) {
    pauses = (struct hec_inferred_pauses){0};
    now = 1000 * MS;
    call(HEC_ACTIVITY_BURST, 0, MS, 5);
    for (int i = 0; i < count; i++)
        call(HEC_ACTIVITY_BURST, pauses_ms[i] * MS, 2 * MS, 20);
}

/* Steps of 10 ms; every so many begins with a pause. */
static int64_t loop(int steps, int every, int64_t pause_ns) {
    int64_t from = now - 2 * MS;
    for (int i = 0; i < steps; i++) {
        call(HEC_ACTIVITY_BURST, every && i % every == 0 ? pause_ns : MS, 4 * MS, 30);
        call(HEC_ACTIVITY_SYNC, 0, 5 * MS, 0);
    }
    return from;
}

static void check(bool known, int64_t from_ns) {
    struct hec_steady found = hec_inferred_pauses_loop(&pauses);
    assert_int_equal(found.known, known);
    if (known) {
        assert_int_equal(found.from_ns, from_ns);
        assert_int_equal(found.to_ns, now);
        assert_int_equal(found.steps, 0);
    }
    free(pauses.list);
    pauses = (struct hec_inferred_pauses){0};
}

TEST(set_up_ends_with_its_last_pause) {
    set_up((const int[]){300, 80, 900, 60}, 4);
    check(true, loop(700, 0, 0));
}

/* As of code that is compiled anew: what is as long in the loop is no sign of set-up, what is longer is. */
TEST(pauses_that_recur_are_the_loops) {
    set_up((const int[]){1200, 350, 300}, 3);
    int64_t last = loop(700, 50, 400 * MS), found = hec_inferred_pauses_loop(&pauses).from_ns;
    assert_true(found < last);
    assert_int_equal(found, 1000 * MS + MS + 1200 * MS);
    check(true, found);
}

TEST(a_program_that_only_launches_is_all_loop) {
    set_up(NULL, 0);
    loop(100, 0, 0);
    check(true, 1000 * MS);
}

TEST(a_long_wait_for_the_device_is_no_pause) {
    set_up((const int[]){200}, 1);
    int64_t from = now - 2 * MS;
    for (int i = 0; i < 20; i++) {
        call(HEC_ACTIVITY_BURST, MS, 4 * MS, 30);
        call(HEC_ACTIVITY_SYNC, 0, 400 * MS, 0);
    }
    check(true, from);
}

TEST(what_a_program_does_at_its_end_is_no_pause_of_the_loop) {
    set_up((const int[]){500}, 1);
    int64_t from = loop(700, 0, 0);
    call(HEC_ACTIVITY_BURST, 600 * MS, MS, 3);
    check(true, from);
}

TEST(a_pause_in_the_second_half_ends_no_set_up) {
    set_up((const int[]){500}, 1);
    int64_t from = loop(400, 0, 0);
    loop(1, 1, 150 * MS);
    loop(200, 0, 0);
    check(true, from);
}

TEST(few_calls_are_no_loop) {
    set_up((const int[]){500}, 1);
    check(false, 0);
}
TEST(more_launches_than_a_number_holds) {
    set_up((const int[]){300}, 1);
    call(HEC_ACTIVITY_BURST, 400 * MS, MS, INFINITY);
    int64_t from = now - MS;
    loop(700, 0, 0);
    check(true, from);
}
