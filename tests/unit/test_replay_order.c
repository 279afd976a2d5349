/* What makes ten million calls quick: they are ordered in windows, and a replay keeps only what others still refer to. */
#include "diagnose/replay/parts.h"
#include "replay_machine.h"

#include <string.h>

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

TEST(test_order) {
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

/* With room for what is referred to the same comes out as with room for all. */
static void compare_reach(struct hec_schedule *s) {
    for (int edit = -2; edit < HEC_EDIT_COUNT; edit++) {
        struct hec_replay_edit edits[1];
        struct hec_replay near, all;
        size_t count = edit >= 0, reach = s->reach;
        if (count)
            edits[0] =
                hec_edit_with((enum hec_edit)edit, isfinite(hec_edit_info((enum hec_edit)edit)->value) ? NAN : 0.5);
        assert_int_equal(hec_replay_run(s, edits, count, edit == -2, NULL, &near), 0);
        s->reach = s->count;
        assert_int_equal(hec_replay_run(s, edits, count, edit == -2, NULL, &all), 0);
        s->reach = reach;
        if (memcmp(&near, &all, sizeof all) != 0)
            fail_msg("edit %d: %.9f s, %.9f s with room for all", edit, near.seconds, all.seconds);
    }
}

TEST(test_reach) {
    static const struct program p = {.kernels = 40,
                                     .threads = 2,
                                     .code = 30,
                                     .launch = 5,
                                     .kernel = 50,
                                     .data = 1000,
                                     .wait_every = 4,
                                     .copy = 1000,
                                     .pageable = true,
                                     .alloc_every = 5,
                                     .reads = 8,
                                     .comm = 1000};
    for (int rare_stream = 0; rare_stream < 2; rare_stream++) {
        struct fake_timeline t;
        struct hec_schedule s;
        play(&p, &t);
        size_t count = t.count;
        uint32_t stream = rare_stream ? fake_tl_track(&t, HEC_TRACK_STREAM, 5, 0, 9) : 0;
        int64_t begin[2] = {t.activities[count / 3].start_ns, t.activities[count - 100].start_ns};
        for (int i = 0; i < 2 && rare_stream; i++) { /* used at its beginning and at its end alone */
            struct hec_activity *a =
                fake_tl_add(&t, HEC_ACTIVITY_MEMSET, stream, begin[i] + 10 * US, begin[i] + 20 * US);
            fake_tl_launched(a, begin[i] + US, begin[i] + 2 * US, t.activities[0].launch_track);
        }
        assert_int_equal(read_schedule(&t, &s), 0);
        assert_true(s.reach > 0 && (s.reach > s.count / 2) == rare_stream);
        assert_true(hec_replay_bytes(&s) <= 32 * (s.reach + 1));
        compare_reach(&s);
        hec_schedule_free(&s);
        fake_tl_free(&t);
    }
}
