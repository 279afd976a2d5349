/* Clocks of two hosts, set by collectives that end together. */
#include "diagnose/timeline/align.h"
#include "unit.h"

#include <stdlib.h>

#define MS INT64_C(1000000)

enum { COUNT = 600 };

static int64_t one[COUNT], other[COUNT];

/* Steps of about 20 ms that differ a little, of three collectives each; the other's clock is behind by that, and 30 us of noise. */
static void record(int64_t behind_ns, int64_t differ_ns) {
    int64_t t_ns = 1000 * MS;
    srand(1);
    for (int i = 0; i < COUNT; i++) {
        t_ns += i % 3 ? 2 * MS : 20 * MS + (differ_ns ? rand() % differ_ns : 0);
        one[i] = t_ns;
        other[i] = t_ns - behind_ns + rand() % 30000;
    }
}

TEST(clocks_are_set_by_collectives) {
    struct hec_alignment a;
    record(137 * MS, MS);
    assert_true(hec_align(one, COUNT, other, COUNT, 120 * MS, &a)); /* wall clocks are 17 ms off */
    assert_true(llabs(a.shift_ns - 137 * MS) < 30000 && a.matched >= COUNT - 1);
    record(-137 * MS, MS);
    assert_true(hec_align(one, COUNT, other, COUNT, -120 * MS, &a));
    assert_true(llabs(a.shift_ns + 137 * MS) < 30000);
}

TEST(of_steps_that_are_alike_the_nearest_is_taken) {
    struct hec_alignment a;
    record(137 * MS, 0);
    assert_true(hec_align(one, COUNT, other, COUNT, 133 * MS, &a));
    assert_true(llabs(a.shift_ns - 137 * MS) < 30000);
}

/* The other was recorded for a shorter time, later. */
TEST(a_part_is_enough) {
    struct hec_alignment a;
    record(137 * MS, MS);
    assert_true(hec_align(one, COUNT, other + 300, 200, 120 * MS, &a));
    assert_true(llabs(a.shift_ns - 137 * MS) < 30000 && a.matched >= 200);
}

TEST(what_has_nothing_in_common_is_not_set) {
    struct hec_alignment a;
    record(0, MS);
    for (int i = 0; i < COUNT; i++)
        other[i] = 1000 * MS + i * 7 * MS + rand() % (5 * MS);
    assert_false(hec_align(one, COUNT, other, COUNT, 5 * MS, &a));
    assert_true(a.shift_ns == 5 * MS && a.matched == 0);
    assert_false(hec_align(one, 10, other, 10, 5 * MS, &a));
    assert_false(hec_align(one, 0, other, 0, 5 * MS, &a));
}
