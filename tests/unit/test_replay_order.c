/* What makes ten million calls quick: they are ordered in windows. */
#include "diagnose/replay/parts.h"
#include "replay_machine.h"

#define CALLS 100000u
#define MINUTE (60000 * MS)

static uint64_t random_next(void) {
    static uint64_t state = 11;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

/* Of call i; several have the same. */
static int64_t in_order(int64_t i) {
    return i / 3 * 10 * US;
}
static int64_t host_ahead(int64_t i) { /* calls among kernels that were launched a while ago, some a long while */
    return in_order(i) + (i % 50 == 0) * 10 * MS + (i % 20000 == 7) * 120 * MS;
}
static int64_t backwards(int64_t i) {
    return -in_order(i);
}
static int64_t shuffled(int64_t i) {
    (void)i;
    return in_order((int64_t)(random_next() % CALLS));
}
static int64_t one_late(int64_t i) { /* by more than a window */
    return i == 70000 ? in_order(5) : in_order(i);
}
static int64_t far_apart(int64_t i) { /* days, of which times are known to 256 ns */
    return i % 1000 / 250 * 1440 * MINUTE + in_order(i);
}
static const struct {
    int64_t (*of)(int64_t);
    uint32_t count;
    int shift; /* times are known to 2^shift ns */
} patterns[] = {{in_order, CALLS, 0}, {host_ahead, CALLS, 0}, {backwards, CALLS, 0}, {shuffled, CALLS, 0},
                {one_late, CALLS, 0}, {far_apart, CALLS, 8},  {far_apart, 1000, 8}};

static bool by_begin(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->begin_ns;
    return call->what % 7 > 0;
}

/* By time, those of one time as they were. */
static void check_order(const struct hec_schedule *s, const uint32_t *list, size_t count, int shift) {
    for (size_t k = 1; k < count; k++) {
        const struct hec_schedule_call *a = &s->calls[list ? list[k - 1] : k - 1], *b = &s->calls[list ? list[k] : k];
        if ((a->begin_ns - START) >> shift > (b->begin_ns - START) >> shift ||
            (a->begin_ns == b->begin_ns && a->what >= b->what))
            fail_msg("%zu: %lld before %lld", k, (long long)a->begin_ns, (long long)b->begin_ns);
    }
}

static void test_order(void **state) {
    (void)state;
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        uint32_t calls = patterns[p].count;
        struct hec_schedule s = {.calls = calloc(calls, sizeof *s.calls), .count = calls};
        uint32_t *list, seen = 0;
        size_t count;
        assert_non_null(s.calls);
        for (uint32_t i = 0; i < calls; i++)
            s.calls[i] = (struct hec_schedule_call){.begin_ns = START + patterns[p].of(i), .what = i};
        assert_int_equal(hec_order_calls(&s, by_begin, &list, &count), 0);
        assert_int_equal(count, calls - (calls + 6) / 7);
        check_order(&s, list, count, patterns[p].shift);
        for (size_t k = 0; k < count; k++) {
            assert_true(s.calls[list[k]].what % 7 > 0);
            seen += list[k];
        }
        uint32_t all = 0;
        for (uint32_t i = 0; i < calls; i++)
            all += i % 7 > 0 ? i : 0;
        assert_int_equal(seen, all);
        free(list);
        assert_int_equal(hec_order_by_begin(&s), 0);
        check_order(&s, NULL, calls, patterns[p].shift);
        for (uint32_t i = 0; i < calls; i++)
            all -= s.calls[i].what % 7 > 0 ? s.calls[i].what : 0;
        assert_int_equal(all, 0);
        free(s.calls);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
