/* A run in cells of time: nothing is lost, nothing is made up, and there is an end for any input. */
#include "diagnose/states/ledger.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/timeline/steps.h"
#include "diagnose/view/view.h"
#include "recorded_run.h"

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

static uint64_t seed = 88172645463325252u;

static int64_t below(int64_t most) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed >> 1) % most;
}

/* ---- states ---- */

static int64_t sum_of(const struct hec_view_states *s, size_t count, int state) {
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += s->cells[i][state];
    return sum;
}

/* The ledger and the view get the same pieces: what both say of each state is the same, to the nanosecond. */
static void check_sums(int64_t duration_ns, int64_t from_ns, int64_t longest_ns, int pieces, size_t cells) {
    struct hec_view *view = hec_view_new(1);
    struct hec_ledger_builder *builder = hec_ledger_begin();
    struct hec_ledger ledger;
    int64_t at[2] = {from_ns, 0};
    view->duration_ns = duration_ns;
    view->state_cells = cells;
    for (int i = 0; i < pieces; i++) {
        int device = i % 2;
        struct hec_state_piece piece = {.start_ns = at[device],
                                        .end_ns = at[device] + 1 + below(longest_ns),
                                        .state = (uint8_t)below(HEC_STATE_COUNT),
                                        .traced = below(10) > 0};
        piece.state = piece.traced ? piece.state : HEC_STATE_UNKNOWN;
        at[device] = piece.end_ns;
        assert_int_equal(hec_ledger_piece(builder, device, &piece), 0);
        assert_int_equal(hec_view_piece(view, device, &piece), 0);
    }
    assert_int_equal(hec_ledger_end(builder, &ledger), 0);
    assert_int_equal(view->state_count, 2);
    for (int device = 0; device < 2; device++) {
        const struct hec_view_states *s = &view->states[device];
        assert_in_range(s->count, 1, cells);
        for (int state = 0; state < HEC_STATE_COUNT; state++) {
            for (size_t i = 0; i < s->count; i++)
                assert_true(s->cells[i][state] >= 0 && s->cells[i][state] <= s->step_ns);
            assert_int_equal(sum_of(s, s->count, state), ledger.devices[device].rows[state].traced_ns);
        }
        size_t count = hec_view_merge_states(view->states[device].cells, s->count, 4);
        assert_int_equal(count, (s->count + 3) / 4);
        for (int state = 0; state < HEC_STATE_COUNT; state++)
            assert_int_equal(sum_of(s, count, state), ledger.devices[device].rows[state].traced_ns);
    }
    hec_ledger_free(&ledger);
    hec_view_free(view);
}

TEST(states_add_up_to_the_ledger) {
    check_sums(10 * S, 0, 1000000, 20000, 4096);                     /* of a run whose end is known */
    check_sums(10 * S, -3 * S, 1000000, 20000, 300);                 /* begins before it */
    check_sums(0, 0, 1000000, 20000, 128);                           /* the end is not known: cells grow */
    check_sums(S, 0, S, 500, 128);                                   /* goes on long after it */
    check_sums(S, -(INT64_C(1) << 60), INT64_C(1) << 50, 1000, 128); /* a file that makes things up */
    check_sums(5, 0, 3, 8, 4096);                                    /* fewer nanoseconds than cells */
}

TEST(what_does_not_count_is_gone) {
    struct hec_view *view = hec_view_new(1);
    struct hec_state_piece piece = {.start_ns = 0, .end_ns = 100, .state = HEC_STATE_HOST, .traced = true};
    view->duration_ns = 1000;
    view->state_cells = 128;
    assert_int_equal(hec_view_piece(view, 3, &piece), 0);
    hec_view_forget(view);
    piece.state = HEC_STATE_COPY;
    assert_int_equal(hec_view_piece(view, 5, &piece), 0);
    assert_int_equal(view->state_count, 1);
    assert_int_equal(view->states[0].device, 5);
    assert_int_equal(sum_of(&view->states[0], view->states[0].count, HEC_STATE_HOST), 0);
    assert_int_equal(sum_of(&view->states[0], view->states[0].count, HEC_STATE_COPY), 100);
    hec_view_free(view);
}

/* ---- steps ---- */

TEST(steps_keep_their_extremes) {
    for (size_t count = 0; count <= 30000; count = count ? count * 7 : 1) {
        struct hec_step_list steps = {.beyond = 11};
        struct hec_thin_steps out = {0};
        int64_t at = 0, least = INT64_MAX, greatest = 0;
        for (size_t i = 0; i < count; i++) {
            int64_t length = 1 + below(S);
            assert_int_equal(hec_step_list_add(&steps, at, at + length, 1), 0);
            at += length;
            least = length < least ? length : least;
            greatest = length > greatest ? length : greatest;
        }
        assert_int_equal(hec_step_list_thin(&steps, 100, &out), 0);
        assert_int_equal(out.total, count + 11);
        assert_true(out.count == count || (count > 100 && out.count >= 50 && out.count <= 100));
        int64_t seen_least = INT64_MAX, seen_greatest = 0;
        for (size_t i = 0; i < out.count; i++) {
            assert_true(i == 0 || out.start_ns[i] > out.start_ns[i - 1]);
            seen_least = out.ns[i] < seen_least ? out.ns[i] : seen_least;
            seen_greatest = out.ns[i] > seen_greatest ? out.ns[i] : seen_greatest;
        }
        assert_int_equal(seen_least, least);
        assert_int_equal(seen_greatest, greatest);
        free(out.start_ns);
        free(out.ns);
        free(steps.list);
    }
}

/* ---- series ---- */

static const struct hec_view_series *series_of(enum hec_metric metric) {
    for (size_t i = 0; i < summary.view->series_count; i++)
        if (summary.view->series[i].metric == metric)
            return &summary.view->series[i];
    fail_msg("the view has no such series");
    return NULL;
}

static void build(int view) {
    run.input.view = view;
    summarise();
}

/* 100 W for 100 s, a spike of one sample, and nothing from 40 to 60 s. */
static void make_power(void) {
    run_begin(100);
    run.devices[run.device_count++] = fake_device(0);
    fake_fill(&run, HEC_GPU_POWER, 0, 0.02, 39.99, 0.02, 100000);
    fake_fill(&run, HEC_GPU_POWER, 0, 60.02, 100, 0.02, 100000);
    run.series[0].v[1000] = 700000;
    fake_fill(&run, HEC_GPU_UTIL, 0, 0.5, 100, 0.5, 1000);
    fake_fill(&run, HEC_GPU_CONTEXTS, 0, 0.5, 100, 0.5, 1);
}

TEST(gaps_stay_and_extremes_are_kept) {
    make_power();
    build(1);
    const struct hec_view_series *power = series_of(HEC_GPU_POWER);
    assert_in_range(power->count, 1000, HEC_VIEW_CELLS_MOST);
    size_t count = power->count;
    for (int level = 0; level < 3; level++) { /* the finest, and two that are coarser */
        double from_s = 0, step_s = (double)power->step_ns / 1e9 * (level == 0 ? 1 : level == 1 ? 4 : 16), most = 0;
        int empty = 0;
        for (size_t i = 0; i < count; i++, from_s += step_s) {
            const struct hec_view_cell *c = &power->cells[i];
            bool gap = from_s > 40.1 && from_s + step_s < 59.9, whole = from_s + step_s < 39.9 || from_s > 60.1;
            assert_false(gap && c->weight_ns > 0);
            assert_false(whole && !(c->weight_ns > 0));
            empty += !(c->weight_ns > 0);
            most = c->weight_ns > 0 ? fmax(most, c->maximum) : most;
            if (c->weight_ns > 0) {
                assert_true(c->minimum >= 100000 && c->sum / c->weight_ns <= c->maximum);
                assert_true(c->minimum <= c->sum / c->weight_ns * (1 + 1e-12));
            }
        }
        assert_true(empty > 0);
        assert_true(most > 699999); /* one sample of 20 ms is there at each level */
        count = hec_view_merge(power->cells, count, 4);
    }
}

TEST(the_same_run_gives_the_same_bits) {
    struct hec_summary first;
    make_power();
    build(1);
    first = summary;
    memset(&summary, 0, sizeof summary);
    build(1);
    assert_int_equal(first.view->series_count, summary.view->series_count);
    for (size_t i = 0; i < first.view->series_count; i++) {
        const struct hec_view_series *one = &first.view->series[i], *other = &summary.view->series[i];
        assert_int_equal(one->count, other->count);
        assert_memory_equal(one->cells, other->cells, one->count * sizeof *one->cells);
    }
    build(0);
    assert_null(summary.view); /* nothing is made where nobody looks */
    assert_memory_equal(&first.devices[0].readings.energy.joules, &summary.devices[0].readings.energy.joules,
                        sizeof(double));
    hec_summary_free(&first);
}

/* Each cell has what held in it, from the start of the run to its end: of a gauge from its reading to the next one. */
TEST(cells_hold_what_was_read) {
    run_begin(10);
    run.devices[run.device_count++] = fake_device(0);
    fake_fill(&run, HEC_GPU_CONTEXTS, 0, 0, 10, 0.5, 1);
    for (int i = -3; i <= 14; i++) /* every 0.8 s from -2.4 s on, beyond the end */
        fake_add(&run, HEC_GPU_SM_CLOCK, 0, 0.8 * i, 1000 + 10 * i);
    fake_fill(&run, HEC_GPU_UTIL, 0, 0.5, 10, 0.5, 1000);
    build(1);
    const struct hec_view_series *clock = series_of(HEC_GPU_SM_CLOCK);
    assert_int_equal(clock->device, 0);
    assert_int_equal(clock->count, 12); /* no finer than the readings */
    assert_true(clock->step_ns == 833333334);
    for (size_t i = 0; i < clock->count; i++) {
        int64_t from = (int64_t)i * clock->step_ns, to = from + clock->step_ns;
        double weight = 0, sum = 0, least = INFINITY, most = 0;
        for (int k = -3; k <= 14; k++) {
            int64_t a = llround(0.8e9 * k), b = llround(k < 14 ? 0.8e9 * (k + 1) : 10e9), value = 1000 + 10 * k;
            a = a > from ? a : from;
            b = b < to ? b : to;
            if (b <= a)
                continue;
            weight += (double)(b - a);
            sum += (double)(b - a) * (double)value;
            least = fmin(least, (double)value);
            most = fmax(most, (double)value);
        }
        const struct hec_view_cell *c = &clock->cells[i];
        assert_true(fabs(c->weight_ns - weight) < 1 && fabs(c->sum - sum) < 1e-9 * sum + 1e4);
        assert_true(c->minimum == least && c->maximum == most);
    }
    const struct hec_view_series *busy = series_of(HEC_GPU_UTIL);
    assert_true(busy->cells[0].maximum == 1); /* in units of the report */
    for (size_t i = 0; i < summary.view->series_count; i++) {
        enum hec_metric metric = summary.view->series[i].metric;
        assert_true(metric == HEC_GPU_SM_CLOCK || metric == HEC_GPU_UTIL || metric == HEC_GPU_CONTEXTS);
    }
    build(2); /* of a run whose device is not known to be used nothing is lost either */
    run_begin(10);
    run.devices[run.device_count++] = fake_device(0);
    run.devices[run.device_count++] = fake_device(1);
    fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0, 10, 1, 250);
    fake_fill(&run, HEC_GPU_THROTTLE, 0, 0, 10, 1, 1);
    build(1);
    assert_int_equal(series_of(HEC_HOST_CPU_BUSY)->device, HEC_DEVICE_NONE);
    assert_int_equal(summary.view->series_count, 1);
}

/* Runs that share a page have less of it each; no cells are made for a length that cannot be. */
TEST(a_page_has_an_end) {
    make_power();
    build(1000);
    size_t cells = 0;
    for (size_t i = 0; i < summary.view->series_count; i++)
        cells += summary.view->series[i].count;
    assert_in_range(cells, 1, summary.view->series_count * HEC_VIEW_CELLS_LEAST);
    run.input.end_ns = INT64_MAX / 4;
    build(1);
    for (size_t i = 0; i < summary.view->series_count; i++)
        assert_in_range(summary.view->series[i].count, 1, HEC_VIEW_CELLS_MOST);
    run.input.end_ns = 1;
    build(1);
}

/* ---- the stretch ---- */

TEST(a_stretch_has_an_end) {
    run_begin(1);
    run.devices[run.device_count++] = fake_device(0);
    fake_tl_init(&timeline);
    uint32_t stream = fake_tl_track(&timeline, HEC_TRACK_STREAM, 1, 0, 7),
             kernel = fake_tl_kernel(&timeline, "gemm", 128);
    for (int64_t i = 0; i < 100000; i++) /* 10000 of them in a stretch of 20 ms */
        fake_tl_add(&timeline, HEC_ACTIVITY_KERNEL, stream, i * 2000, i * 2000 + 1000)->name = kernel;
    run.input.end_ns = 200000000;
    build(1);
    const struct hec_view_detail *d = &summary.view->detail;
    assert_int_equal(d->activity_count, HEC_VIEW_SPANS);
    assert_true(d->cut && d->to_ns > d->from_ns);
    for (size_t i = 0; i < d->activity_count; i++)
        assert_true(d->activities[i].end_ns > d->from_ns && d->activities[i].start_ns < d->to_ns);
    assert_in_range(d->piece_count, 1, HEC_VIEW_SPANS);
}

/* The stretch of a trace of windows and steps in milliseconds, as it is chosen before the pass. */
static struct hec_view_detail chosen(int64_t run_ms, const int64_t (*windows)[2], int window_count,
                                     const int64_t *steps, int step_count) {
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    struct hec_view *view = hec_view_new(0);
    fake_tl_free(&timeline);
    fake_tl_init(&timeline);
    uint32_t process = fake_tl_track(&timeline, HEC_TRACK_PROCESS, 1, -1, 0);
    timeline.input.end_ns = run_ms * MS;
    for (int i = 0; i < window_count; i++)
        fake_tl_add(&timeline, HEC_ACTIVITY_WINDOW, process, windows[i][0] * MS, windows[i][1] * MS);
    for (int64_t i = 0, at = 100; i < step_count; at += steps[i++])
        fake_tl_add(&timeline, HEC_ACTIVITY_STEP, process, at * MS, (at + steps[i]) * MS)->detail = HEC_STEP_MARKED;
    assert_int_equal(hec_pass_open(&timeline.input, &pass, NULL), 0);
    assert_int_equal(hec_view_begin(view, &pass, 2, &consumer), 0);
    assert_int_equal(view->share, 1);
    assert_int_equal(view->state_cells, HEC_VIEW_CELLS_MOST);
    assert_true(view->duration_ns == run_ms * MS);
    struct hec_view_detail found = view->detail;
    hec_pass_close(&pass);
    hec_view_free(view);
    return found;
}

/* Three steps as long as the median of all such: the first, and in a window where there is one. */
TEST(the_stretch_is_of_usual_steps) {
    static const int64_t steps[] = {50, 10, 11, 12, 10, 12, 10, 14}; /* 100, 150, 160, 171, 183, 193, 205, 215 to 229 */
    static const struct {
        int64_t windows[3][2];
        int window_count, step_count;
        int64_t from, to;
    } cases[] = {
        {{{0}}, 0, 8, 171, 205}, /* runs of 71, 33, 33, 34, 32 and 36 */
        {{{0, 1000}}, 1, 8, 171, 205},
        {{{193, 300}}, 1, 8, 193, 229},           /* of those inside the only one */
        {{{0, 120}, {183, 230}}, 2, 8, 183, 215}, /* the nearest to the median of two */
        {{{0, 120}, {149, 184}, {200, 230}}, 3, 8, 150, 183},
        {{{0, 120}}, 1, 8, 171, 205}, /* none is inside of any */
        {{{0}}, 0, 2, 100, 160},      /* fewer than three: all of them */
        {{{0}}, 0, 1, 100, 150},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_view_detail d = chosen(1000, cases[i].windows, cases[i].window_count, steps, cases[i].step_count);
        if (d.from_ns != cases[i].from * MS || d.to_ns != cases[i].to * MS)
            fail_msg("case %zu: from %g to %g ms", i, (double)d.from_ns / 1e6, (double)d.to_ns / 1e6);
    }
}

/* Without steps 20 ms of the middle: of the longest window, or of the run. */
TEST(the_stretch_without_steps) {
    static const struct {
        int64_t run, windows[3][2];
        int count;
        int64_t from, to;
    } cases[] = {{1000, {{0}}, 0, 490, 510},
                 {15, {{0}}, 0, 0, 15},
                 {1000, {{100, 140}, {200, 260}, {300, 340}}, 3, 220, 240},
                 {1000, {{100, 160}, {200, 260}}, 2, 120, 140}, /* of two as long the first */
                 {1000, {{100, 112}}, 1, 100, 112}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_view_detail d = chosen(cases[i].run, cases[i].windows, cases[i].count, NULL, 0);
        if (d.from_ns != cases[i].from * MS || d.to_ns != cases[i].to * MS)
            fail_msg("case %zu: from %g to %g ms", i, (double)d.from_ns / 1e6, (double)d.to_ns / 1e6);
    }
}

/* Cells of a device are shared out among runs and devices, within bounds. */
TEST(cells_are_shared_out) {
    static const struct {
        int share, devices;
        size_t cells;
    } cases[] = {{1, 0, 4096}, {1, 4, 4096}, {1, 5, 3276}, {2, 4, 2048}, {64, 2, 128}, {65, 2, 128}, {60, 2, 136}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_pass pass;
        struct hec_pass_consumer consumer;
        struct hec_view *view = hec_view_new(cases[i].share);
        fake_tl_free(&timeline);
        fake_tl_init(&timeline);
        assert_int_equal(hec_pass_open(&timeline.input, &pass, NULL), 0);
        assert_int_equal(hec_view_begin(view, &pass, cases[i].devices, &consumer), 0);
        assert_int_equal(view->state_cells, cases[i].cells);
        hec_pass_close(&pass);
        hec_view_free(view);
    }
}

/* What touches the stretch belongs to it, whole; pieces of states are cut to it. */
TEST(what_is_in_the_stretch) {
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    struct hec_view *view = hec_view_new(1);
    fake_tl_free(&timeline);
    fake_tl_init(&timeline);
    timeline.input.end_ns = 100 * MS; /* 40 to 60 ms */
    uint32_t stream = fake_tl_track(&timeline, HEC_TRACK_STREAM, 1, 0, 7);
    static const int64_t at[][2] = {{30, 40}, {35, 41}, {45, 50}, {59, 70}, {60, 61}};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        fake_tl_add(&timeline, HEC_ACTIVITY_KERNEL, stream, at[i][0] * MS, at[i][1] * MS);
    assert_int_equal(hec_pass_open(&timeline.input, &pass, NULL), 0);
    assert_int_equal(hec_view_begin(view, &pass, 1, &consumer), 0);
    assert_int_equal(hec_pass_run(&pass, &consumer, 1, NULL), 0);
    assert_int_equal(view->detail.activity_count, 3);
    assert_false(view->detail.cut);
    for (int i = 0; i < 3; i++) {
        assert_true(view->detail.activities[i].start_ns == at[i + 1][0] * MS);
        assert_true(view->detail.activities[i].end_ns == at[i + 1][1] * MS);
    }
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        struct hec_state_piece piece = {at[i][0] * MS, at[i][1] * MS, .state = (uint8_t)(i + 1), .traced = i != 2};
        assert_int_equal(hec_view_piece(view, 3, &piece), 0);
    }
    assert_int_equal(view->detail.piece_count, 2); /* what was not traced is none */
    const struct hec_view_piece *p = view->detail.pieces;
    assert_true(p[0].start_ns == 40 * MS && p[0].end_ns == 41 * MS && p[0].device == 3 && p[0].state == 2);
    assert_true(p[1].start_ns == 59 * MS && p[1].end_ns == 60 * MS && p[1].device == 3 && p[1].state == 4);
    hec_pass_close(&pass);
    hec_view_free(view);
}

/* Of more devices than there is room for nothing is kept. */
TEST(devices_have_an_end) {
    struct hec_view *view = hec_view_new(1);
    struct hec_state_piece piece = {.start_ns = 0, .end_ns = 100, .state = HEC_STATE_HOST, .traced = true};
    view->state_cells = 128;
    for (int device = 0; device < HEC_VIEW_DEVICES + 2; device++)
        assert_int_equal(hec_view_piece(view, device, &piece), 0);
    assert_int_equal(view->state_count, HEC_VIEW_DEVICES);
    hec_view_free(view);
}
