/* Intervals of traced time against a plain count; windows of a process; the steady part of steps. */
#include "base/trace.h"
#include "diagnose/states/steady.h"
#include "diagnose/timeline/traced.h"
#include "unit.h"

static uint64_t seed = 9;

static int64_t below(int64_t most) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % most;
}

/* ---- intervals ---- */

#define SPAN 400

static bool inside[SPAN];

static struct pieces {
    int64_t from[SPAN], to[SPAN];
    int count;
} pieces;

static void take_piece(void *context, int64_t from, int64_t to) {
    struct pieces *p = context;
    p->from[p->count] = from;
    p->to[p->count++] = to;
}

TEST(intervals_count_each_instant_once) {
    for (int round = 0; round < 200; round++) {
        struct hec_intervals in = {0};
        memset(inside, 0, sizeof inside);
        for (int64_t at = below(30); at < SPAN - 40; at += below(25)) { /* some overlap, some touch, some are empty */
            int64_t to = at + below(30) - 2;
            assert_int_equal(hec_intervals_append(&in, at, to), 0);
            for (int64_t t = at; t < to; t++)
                inside[t] = true;
        }
        int64_t sum = 0;
        for (size_t i = 0; i < in.count; i++) { /* disjoint, apart, and they know what lies before */
            assert_true(in.list[i].start_ns < in.list[i].end_ns);
            assert_true(i == 0 || in.list[i - 1].end_ns < in.list[i].start_ns);
            assert_true(in.list[i].before_ns == sum);
            sum += in.list[i].end_ns - in.list[i].start_ns;
        }
        for (int question = 0; question < 300; question++) { /* back and forth */
            int64_t from = below(SPAN), to = below(SPAN), is = 0;
            for (int64_t t = from; t < to; t++)
                is += inside[t];
            assert_int_equal(hec_intervals_within(&in, from, to), is);
            if (from >= to)
                continue;
            pieces.count = 0;
            hec_intervals_pieces(&in, from, to, take_piece, &pieces);
            for (int i = 0; i < pieces.count; i++) {
                assert_true(pieces.from[i] >= from && pieces.to[i] <= to && pieces.from[i] < pieces.to[i]);
                assert_true(i == 0 || pieces.to[i - 1] < pieces.from[i]);
                for (int64_t t = pieces.from[i]; t < pieces.to[i]; t++)
                    assert_true(inside[t]);
                is -= pieces.to[i] - pieces.from[i];
            }
            assert_int_equal(is, 0);
        }
        hec_intervals_free(&in);
        assert_int_equal(in.count, 0);
    }
}

TEST(everywhere) {
    struct hec_intervals in = {.everywhere = true};
    assert_int_equal(hec_intervals_within(&in, 5, 30), 25);
    assert_int_equal(hec_intervals_within(&in, 30, 5), 0);
    pieces.count = 0;
    hec_intervals_pieces(&in, 5, 30, take_piece, &pieces);
    assert_true(pieces.count == 1 && pieces.from[0] == 5 && pieces.to[0] == 30);
}

/* ---- windows ---- */

TEST(windows_of_a_process) {
    struct hec_windows windows = {0};
    static const struct hec_window list[] = {{1, 7, 10, 20}, {2, 8, 15, 40}, {1, 7, 30, 35}, {1, 7, 50, 60}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        assert_int_equal(hec_windows_add(&windows, &list[i]), 0);
    assert_true(hec_windows_end(&windows, 7, 9) == INT64_MAX);
    assert_true(hec_windows_end(&windows, 7, 10) == 20);
    assert_true(hec_windows_end(&windows, 7, 29) == 20);
    assert_true(hec_windows_end(&windows, 7, 30) == 35);
    assert_true(hec_windows_end(&windows, 7, 1000) == 60);
    assert_true(hec_windows_end(&windows, 8, 1000) == 40);
    assert_true(hec_windows_end(&windows, 9, 1000) == INT64_MAX);
    hec_windows_free(&windows);
}

TEST(since_when_it_may_have_been_used_untraced) {
    struct hec_tracer tracer = {.mode = HEC_TRACE_AUTO, .first_ns = 5};
    assert_true(hec_tracer_since(&tracer, 10) == 5);
    assert_true(hec_tracer_since(&tracer, 4) == 4);
    tracer.mode = HEC_TRACE_FULL; /* CUPTI comes with its first call */
    assert_true(hec_tracer_since(&tracer, 10) == 10);
    tracer.mode = HEC_TRACE_GRAPH;
    assert_true(hec_tracer_since(&tracer, 10) == 10);
}

static bool is_any(const void *context, int32_t pid) {
    const int32_t *pids = context;
    return pid == pids[0] || pid == pids[1];
}

/* Traced where all that live are, by the records of their tracers or from their first window to their last. */
TEST(traced_where_all_that_live_are) {
    static const struct {
        struct hec_window windows[5];
        size_t count;
        struct hec_tracer tracers[2];
        size_t tracers_count;
        int64_t traced[4][2];
        size_t expected;
    } cases[] = {
        {{{1, 7, 10, 20}, {1, 7, 20, 25}, {1, 7, 40, 50}}, 3, {{0}}, 0, {{10, 25}, {40, 50}}, 2},
        {{{1, 7, 10, 30}, {2, 8, 20, 40}}, 2, {{0}}, 0, {{10, 40}}, 1}, /* none lives outside of its window */
        {{{1, 7, 10, 30}, {2, 8, 15, 20}, {2, 8, 28, 40}}, 3, {{0}}, 0, {{10, 20}, {28, 40}}, 2},
        {{{1, 7, 10, 30}, {2, 8, 20, 40}}, 2, {{.pid = 8, .first_ns = 0, .last_ns = 45}}, 1, {{20, 40}}, 1},
        {{{1, 7, 10, 30}, {2, 8, 20, 40}},
         2,
         {{.pid = 8, .first_ns = 0, .last_ns = 45, .mode = HEC_TRACE_FULL}},
         1,
         {{10, 40}},
         1},
        {{{1, 7, 10, 30}, {1, 7, 12, 20}, {1, 7, 29, 33}}, 3, {{0}}, 0, {{10, 33}}, 1},
        {{{1, 7, 10, 30}, {3, 9, 12, 15}}, 2, {{0}}, 0, {{10, 30}}, 1}, /* of a third nothing is asked */
    };
    const int32_t pids[2] = {7, 8}, none[2] = {1, 2};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct hec_windows windows = {0};
        struct hec_intervals out;
        for (size_t i = 0; i < cases[c].count; i++)
            assert_int_equal(hec_windows_add(&windows, &cases[c].windows[i]), 0);
        assert_int_equal(hec_windows_traced(&windows, cases[c].tracers, cases[c].tracers_count, is_any, pids, &out), 0);
        assert_false(out.everywhere);
        if (out.count != cases[c].expected)
            fail_msg("case %zu: %zu intervals", c, out.count);
        for (size_t i = 0; i < out.count; i++)
            if (out.list[i].start_ns != cases[c].traced[i][0] || out.list[i].end_ns != cases[c].traced[i][1])
                fail_msg("case %zu: %d to %d", c, (int)out.list[i].start_ns, (int)out.list[i].end_ns);
        hec_intervals_free(&out);
        assert_int_equal(hec_windows_traced(&windows, NULL, 0, is_any, none, &out), 0);
        assert_true(out.everywhere);
        hec_intervals_free(&out);
        hec_windows_free(&windows);
    }
}

/* ---- the steady part ---- */

/* Steps of these lengths from 1000 on, one after another. */
static struct hec_step_list list_of(enum hec_step_source source, const int64_t *lengths, size_t count) {
    static struct hec_step steps[400];
    int64_t at = 1000;
    for (size_t i = 0; i < count; i++) {
        steps[i] = (struct hec_step){at, at + lengths[i], 1};
        at += lengths[i];
    }
    return (struct hec_step_list){.source = source, .list = steps, .count = count};
}

TEST(the_steady_part_of_steps) {
    static const struct {
        enum hec_step_source source;
        size_t count;
        int64_t first[12]; /* the others are 10 long */
        bool known;
        size_t skipped, counted;
    } cases[] = {
        {HEC_STEP_OPTIMIZER, 5, {0}, false, 0, 1}, /* a quarter of few is left out of counts */
        {HEC_STEP_OPTIMIZER, 6, {0}, true, 3, 1},
        {HEC_STEP_OPTIMIZER, 11, {0}, true, 3, 2},
        {HEC_STEP_OPTIMIZER, 12, {0}, true, 3, 3},
        {HEC_STEP_OPTIMIZER, 100, {0}, true, 3, 3},
        {HEC_STEP_OPTIMIZER, 100, {500, 90, 50, 30, 39, 41}, true, 6, 6}, /* more than four times the median */
        {HEC_STEP_OPTIMIZER, 100, {500, 90, 50, 30, 39, 40}, true, 3, 3},
        {HEC_STEP_OPTIMIZER, 20, {0, 0, 0, 0, 50, 50}, true, 5, 5}, /* the first quarter at most */
        {HEC_STEP_ANNOTATED, 2, {0}, false, 0, 0},
        {HEC_STEP_ANNOTATED, 3, {50}, true, 0, 0}, /* a profiler's window begins after set-up */
        {HEC_STEP_RANGE, 8, {50}, true, 1, 1},
        {HEC_STEP_RANGE, 8, {40}, true, 0, 0},
    };
    assert_false(hec_steady_of(NULL).known);
    assert_false(hec_steady_counted(NULL).known);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t lengths[400];
        for (size_t i = 0; i < cases[c].count; i++)
            lengths[i] = i < 12 && cases[c].first[i] ? cases[c].first[i] : 10;
        struct hec_step_list steps = list_of(cases[c].source, lengths, cases[c].count);
        for (int counted = 0; counted < 2; counted++) {
            struct hec_steady s = counted ? hec_steady_counted(&steps) : hec_steady_of(&steps);
            size_t skipped = counted ? cases[c].counted : cases[c].skipped;
            if (!counted && !cases[c].known) {
                assert_false(s.known);
                continue;
            }
            assert_true(s.known);
            if (s.steps != cases[c].count - skipped)
                fail_msg("case %zu, counted %d: %zu steps", c, counted, s.steps);
            assert_true(s.from_ns == (skipped ? steps.list[skipped - 1].end_ns : 1000));
            assert_true(s.to_ns == steps.list[steps.count - 1].end_ns);
        }
    }
}

/* A long one after the first 20 is of the loop; steps may end out of order. */
TEST(only_early_steps_are_set_up) {
    int64_t lengths[400];
    for (int i = 0; i < 400; i++)
        lengths[i] = i == 19 || i == 20 ? 100 : 10;
    struct hec_step_list steps = list_of(HEC_STEP_MARKED, lengths, 400);
    assert_int_equal(hec_steady_of(&steps).steps, 380);
    steps.list[390].end_ns = steps.list[399].end_ns + 5;
    assert_true(hec_steady_of(&steps).to_ns == steps.list[399].end_ns + 5);
    struct hec_step_list empty = {.source = HEC_STEP_MARKED};
    assert_false(hec_steady_counted(&empty).known);
}

TEST(what_is_inside_of_the_steady_part) {
    const struct hec_steady steady = {.known = true, .from_ns = 10, .to_ns = 20}, unknown = {0};
    static const struct {
        int64_t from, to, clipped_from, clipped_to;
        bool any, holds;
    } cases[] = {{5, 10, 0, 0, false, false},  {5, 11, 10, 11, true, false},  {10, 20, 10, 20, true, true},
                 {12, 13, 12, 13, true, true}, {19, 25, 19, 20, true, false}, {20, 25, 0, 0, false, false},
                 {0, 30, 10, 20, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_state_piece piece = {.start_ns = cases[i].from, .end_ns = cases[i].to, .state = HEC_STATE_SYNC}, out;
        assert_int_equal(hec_steady_clip(&steady, &piece, &out), cases[i].any);
        assert_int_equal(hec_steady_holds(&steady, &piece), cases[i].holds);
        if (cases[i].any)
            assert_true(out.start_ns == cases[i].clipped_from && out.end_ns == cases[i].clipped_to &&
                        out.state == HEC_STATE_SYNC);
        assert_true(hec_steady_clip(&unknown, &piece, &out) && hec_steady_holds(&unknown, &piece));
        assert_true(out.start_ns == cases[i].from && out.end_ns == cases[i].to);
    }
    assert_false(hec_steady_at(&steady, 9) || hec_steady_at(&steady, 20));
    assert_true(hec_steady_at(&steady, 10) && hec_steady_at(&steady, 19) && hec_steady_at(&unknown, 99));
}
