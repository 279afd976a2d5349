/* When a trace was recorded, among events of other times. */
#include "store/import/state.h"
#include "unit.h"

#define HOUR (INT64_C(3600) * 1000000000)
#define YEAR (8766 * HOUR)

static struct hec_import_spans spans;
static struct hec_import_span span;
static int64_t strays;

static bool settled(void) {
    return hec_import_spans_main(&spans, &span, &strays);
}

static void fill(int64_t from_ns, int count) {
    for (int i = 0; i < count; i++)
        hec_import_spans_add(&spans, from_ns + i * HOUR, from_ns + i * HOUR + 5);
}

TEST(test_one_span) {
    memset(&spans, 0, sizeof spans);
    assert_true(settled());
    assert_int_equal(span.count, 0);
    fill(50 * YEAR, 100); /* four days, but never a day of nothing */
    assert_true(settled());
    assert_int_equal(span.count, 100);
    assert_int_equal(strays, 0);
    assert_true(span.first_ns == 50 * YEAR && span.last_ns == 50 * YEAR + 99 * HOUR + 5);
}

TEST(test_strays) {
    memset(&spans, 0, sizeof spans);
    fill(1, 1);
    fill(50 * YEAR, 97);
    fill(90 * YEAR, 2);
    assert_true(settled());
    assert_int_equal(strays, 3);
    assert_true(span.first_ns == 50 * YEAR && span.count == 97);
    fill(70 * YEAR, 9); /* more than one in ten lie elsewhere */
    assert_false(settled());
}

TEST(test_spans_that_grow_together_are_one) {
    memset(&spans, 0, sizeof spans);
    for (int64_t i = 0; i < 5; i++)
        fill(YEAR + 48 * i * HOUR, 1);
    for (int64_t i = 4; i >= 0; i--)
        fill(YEAR + (48 * i + 24) * HOUR, 1);
    assert_true(settled());
    assert_int_equal(span.count, 10);
    assert_true(span.first_ns == YEAR && span.last_ns == YEAR + 216 * HOUR + 5);
}

TEST(test_more_times_than_room) {
    memset(&spans, 0, sizeof spans);
    for (int64_t i = 1; i <= 100; i++)
        fill(i * YEAR, 1);
    assert_false(settled());
    assert_int_equal(strays, 99);
}
