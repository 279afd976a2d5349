/* The series before they are in a file: what is a block and what it says, what is dropped when too much waits, and what that counts. */
#include "store/series.h"
#include "store/limits.h"
#include "unit.h"

/* ---- the step function ---- */

static void steps_are(const struct hec_overlap *o, const char *expected) {
    char text[256] = "";
    for (size_t i = 0, length = 0; i < o->count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld:%lld", i ? " " : "",
                                   (long long)o->steps[i].from, (long long)o->steps[i].amount);
    assert_string_equal(text, expected);
}

TEST(coverage) {
    struct hec_overlap o = {0};
    static const struct {
        int64_t first, last, amount;
        bool fits;
        const char *steps;
    } cases[] = {
        {0, 9, 11, false, ""},
        {10, 19, 4, true, "10:4 20:0"},
        {20, 29, 10, true, "10:4 20:10 30:0"},
        {15, 15, 6, true, "10:4 15:10 16:4 20:10 30:0"},
        {15, 15, 1, false, "10:4 15:10 16:4 20:10 30:0"},
        {16, 20, 1, false, "10:4 15:10 16:4 20:10 30:0"}, /* at its last instant */
        {16, 19, 6, true, "10:4 15:10 16:10 20:10 30:0"},
        {0, 10, 7, false, "10:4 15:10 16:10 20:10 30:0"},
        {0, 10, 6, true, "0:6 10:10 11:4 15:10 16:10 20:10 30:0"},
        {29, 31, 1, false, "0:6 10:10 11:4 15:10 16:10 20:10 30:0"}, /* at its first, within a step */
        {30, 31, 0, true, "0:6 10:10 11:4 15:10 16:10 20:10 30:0 32:0"},
        {40, 40, 10, true, "0:6 10:10 11:4 15:10 16:10 20:10 30:0 32:0 40:10 41:0"},
        {-9, 50, 1, false, "0:6 10:10 11:4 15:10 16:10 20:10 30:0 32:0 40:10 41:0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(hec_overlap_add(&o, cases[i].first, cases[i].last, cases[i].amount, 10), cases[i].fits);
        steps_are(&o, cases[i].steps);
    }
    assert_int_equal(o.capacity, 16);
    hec_overlap_free(&o);
    assert_true(!o.steps && o.count == 0 && o.capacity == 0);
}

/* Where there is no room, pairs of the earlier half become one step each, as high as the higher of two. */
TEST(coverage_in_bounded_memory) {
    struct hec_overlap o = {0};
    const int64_t pairs = HEC_OVERLAP_STEPS_MAX / 2;
    for (int64_t i = 0; i < pairs; i++)
        assert_true(hec_overlap_add(&o, 10 * i, 10 * i + 4, 1 + i % 2, 5));
    assert_true(o.count == HEC_OVERLAP_STEPS_MAX && o.capacity == HEC_OVERLAP_STEPS_MAX);
    assert_true(hec_overlap_add(&o, 10 * pairs, 10 * pairs + 4, 3, 5));
    assert_int_equal(o.capacity, HEC_OVERLAP_STEPS_MAX);
    assert_int_equal(o.count, HEC_OVERLAP_STEPS_MAX * 3 / 4 + 2);
    for (int64_t i = 0; i < pairs / 2; i++) /* the gap between two is gone */
        assert_true(o.steps[i].from == 10 * i && o.steps[i].amount == 1 + i % 2);
    for (int64_t i = pairs / 2; i < pairs; i++) {
        const struct hec_overlap_step *step = &o.steps[pairs / 2 + 2 * (i - pairs / 2)];
        assert_true(step[0].from == 10 * i && step[0].amount == 1 + i % 2);
        assert_true(step[1].from == 10 * i + 5 && step[1].amount == 0);
    }
    assert_int_equal(o.steps[o.count - 2].from, 10 * pairs);
    assert_int_equal(o.steps[o.count - 2].amount, 3);
    hec_overlap_free(&o);
}

/* ---- the series ---- */

static struct hec_series_table table;

static int begin(void **state) {
    (void)state;
    return hec_series_init(&table, 1 << 20);
}
static int end(void **state) {
    static const struct hec_series_table empty;
    (void)state;
    hec_series_free(&table);
    return memcmp(&table, &empty, sizeof table);
}
EACH_TEST(begin, end)

static void add(int64_t t_us, int64_t value) {
    hec_series_add(&table, HEC_GPU_ENERGY, 0, t_us, value, true);
}

static int closed_blocks(void) {
    int count = 0;
    for (const struct hec_closed *c = table.closed_first; c; c = c->next)
        count++;
    return count;
}

/* How many values a block has depends on how wide they are: each text has its bytes, and a block its values. */
TEST(lengths_of_blocks) {
    static const struct {
        int64_t range;
        int n;
    } cases[] = {{0, 512},
                 {89, 512},
                 {90, 380},
                 {8099, 380},
                 {8100, 253},
                 {728999, 253},
                 {729000, 190},
                 {INT64_C(5904900000), 126},
                 {HEC_BLOCK_RANGE, 126}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int k = 0; k < 600; k++)
            hec_series_add(&table, HEC_GPU_ENERGY, (int32_t)i, k, k % 2 ? cases[i].range - 5 : -5, true);
        const struct hec_closed *c = table.closed_first;
        while (c->series->subject != (int32_t)i)
            c = c->next;
        assert_int_equal(c->n, cases[i].n);
        assert_int_equal(c->v_width, hec_pack_width(cases[i].range));
        assert_int_equal(c->v_base, -5);
        assert_true(c->t0_us == 0 && c->t1_us == cases[i].n - 1 && c->r_base == 0 && c->r_width == 0);
    }
    assert_int_equal(table.lost, 0);
}

/* A block ends where its numbers would be wider than a block can hold, and the next one begins with what did not fit. */
TEST(what_ends_a_block) {
    static const struct {
        int64_t t[3], v[3];
        int closed; /* after each value of the three: in all */
    } cases[] = {
        {{0, 1, 2}, {0, HEC_BLOCK_RANGE, 5}, 0},
        {{0, 1, 2},
         {0, HEC_BLOCK_RANGE + 1, HEC_BLOCK_RANGE + 2},
         1}, /* and not two: the range is that of the new block */
        {{0, 1, 2}, {0, -HEC_BLOCK_RANGE - 1, -HEC_BLOCK_RANGE}, 1},
        {{0, 1, 2}, {0, HEC_BLOCK_RANGE + 1, 0}, 2},
        {{0, 1, 2}, {INT64_MIN, INT64_MAX, INT64_MIN}, 2},
        {{0, HEC_BLOCK_RANGE, 5}, {1, 2, 3}, 0},
        {{0, HEC_BLOCK_RANGE + 1, HEC_BLOCK_RANGE + 2}, {1, 2, 3}, 1},
        {{0, -HEC_BLOCK_RANGE - 1, -HEC_BLOCK_RANGE}, {1, 2, 3}, 1}, /* also where it comes late */
        {{HEC_BLOCK_RANGE, 0, HEC_BLOCK_RANGE + 1}, {1, 2, 3}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int before = closed_blocks();
        for (int k = 0; k < 3; k++)
            hec_series_add(&table, HEC_GPU_ENERGY, (int32_t)i, cases[i].t[k], cases[i].v[k], true);
        if (closed_blocks() - before != cases[i].closed)
            fail_msg("case %zu: %d closed", i, closed_blocks() - before);
    }
    assert_int_equal(table.lost, 0);
    assert_int_equal(hec_series_uncommitted(&table), 3 * sizeof cases / sizeof cases[0]);
}

/* What is missing has no place among the numbers: it makes them no wider. */
TEST(missing) {
    hec_series_add(&table, HEC_GPU_ENERGY, 0, 0, 0, false);
    add(1, HEC_BLOCK_RANGE * 2);
    hec_series_add(&table, HEC_GPU_ENERGY, 0, 2, 77, false);
    add(3, HEC_BLOCK_RANGE * 2 + 3);
    const struct hec_series *s = table.all[0];
    assert_int_equal(closed_blocks(), 0);
    assert_true(s->n == 4 && s->any && s->low == HEC_BLOCK_RANGE * 2 && s->high == s->low + 3);
    static const uint8_t valid[] = {0, 1, 0, 1};
    assert_memory_equal(s->valid, valid, 4);
    assert_true(s->v[0] == 0 && s->v[2] == 0);
    hec_series_close(&table, table.all[0]);
    const struct hec_closed *c = table.closed_first;
    assert_true(c->n == 4 && c->v_base == s->low && c->v_width == 1 && c->r_width == 0);
    assert_memory_equal(c->text, "~#~&", 4);
    assert_true(s->n == 0 && !s->any && !s->t_us && s->capacity == 0 && s->dirty);
    /* after a block of what is missing alone, too */
    hec_series_add(&table, HEC_GPU_ENERGY, 0, 5, 9, false);
    assert_false(s->any);
    hec_series_close(&table, table.all[0]);
    assert_true(c->next->v_width == 1 && c->next->v_base == 0 && c->next->text[0] == '~');
    add(6, -HEC_BLOCK_RANGE * 2);
    assert_true(closed_blocks() == 2 && s->low == -HEC_BLOCK_RANGE * 2 && s->high == s->low);
    hec_series_close(&table, table.all[0]);
    hec_series_close(&table, table.all[0]); /* nothing is open */
    assert_int_equal(closed_blocks(), 3);
}

/* Late values find their place; one before all others moves the beginning. */
TEST(order) {
    static const int64_t times[] = {10, 30, 20, 20, 40, 5, 35};
    static const int64_t values[] = {1, 2, 3, 4, 5, 6, 7};
    static const int64_t sorted[] = {5, 10, 20, 20, 30, 35, 40}, of[] = {6, 1, 3, 4, 2, 7, 5};
    for (size_t i = 0; i < 7; i++) {
        add(times[i], values[i]);
        assert_int_equal(table.all[0]->moved, i <= 2 || i >= 5); /* since the last commit */
        if (i == 2)
            hec_series_committed(&table);
    }
    assert_int_equal(table.count, 1);
    assert_memory_equal(table.all[0]->t_us, sorted, sizeof sorted);
    assert_memory_equal(table.all[0]->v, of, sizeof of);
    assert_int_equal(table.all[0]->capacity, 16);
}

TEST(times_out_of_range) {
    static const int64_t times[] = {-HEC_BLOCK_TIME_MAX_US - 1,
                                    -HEC_BLOCK_TIME_MAX_US,
                                    HEC_BLOCK_TIME_MAX_US,
                                    HEC_BLOCK_TIME_MAX_US + 1,
                                    INT64_MIN,
                                    INT64_MAX};
    for (size_t i = 0; i < 6; i++)
        add(times[i], 1);
    assert_int_equal(table.lost, 4);
    assert_int_equal(table.beyond, 0);
    assert_int_equal(hec_series_uncommitted(&table), 2);
}

/* Counters, deltas and the slack of energy keep each microsecond. */
TEST(exact) {
    for (int m = 0; m < HEC_METRIC_COUNT; m++) {
        enum hec_metric_kind kind = hec_metric_info((enum hec_metric)m)->kind;
        hec_series_add(&table, (enum hec_metric)m, 3, 0, 0, true);
        assert_int_equal(table.all[m]->exact,
                         kind == HEC_METRIC_COUNTER || kind == HEC_METRIC_DELTA || m == HEC_GPU_ENERGY_SLACK);
        assert_true((int)table.all[m]->metric == m && table.all[m]->subject == 3 && table.all[m]->id == m + 1);
    }
    for (int k = 0; k < 2; k++) { /* 20 us off in 10 ms */
        enum hec_metric metric = k ? HEC_GPU_ENERGY : HEC_GPU_POWER;
        for (int i = 1; i <= 512; i++)
            hec_series_add(&table, metric, 5, i * 10000 + i % 2 * 20, 1, true);
        hec_series_close(&table, table.all[table.count - 1]);
        assert_int_equal(table.closed_last->r_width, k);
        assert_int_equal(table.closed_last->n, 512);
    }
}

/* As many as one likes: each is found again. */
TEST(many_series) {
    enum { MANY = 5000 };
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++)
            hec_series_add(&table, i % 2 ? HEC_GPU_ENERGY : HEC_GPU_POWER, i / 2 - 100, round, i, true);
    assert_int_equal(table.count, MANY);
    assert_int_equal(table.hash_size, 16384); /* four times as many each time that there are more series than places */
    for (int i = 0; i < MANY; i++)
        assert_true(table.all[i]->n == 2 && table.all[i]->subject == i / 2 - 100 && table.all[i]->v[1] == i &&
                    table.all[i]->id == i + 1);
}

/* A full block and one value more. */
static void fill(int32_t subject, int64_t from_us) {
    for (int i = 0; i <= HEC_BLOCK_VALUES; i++)
        hec_series_add(&table, HEC_GPU_ENERGY, subject, from_us + i, 1, true);
}

/* Flags that say what the file has: the row of the open block, and of what was open. */
TEST(commits) {
    add(1, 1);
    const struct hec_series *s = table.all[0];
    assert_true(s->dirty && !s->stored && !s->has_row && !s->holds_row && s->committed == 0);
    assert_int_equal(hec_series_uncommitted(&table), 1);
    hec_series_committed(&table);
    assert_true(!s->dirty && s->stored && s->has_row && s->holds_row && !s->moved && s->committed == 1);
    assert_int_equal(hec_series_uncommitted(&table), 0);
    table.all[0]->idle = 7;
    add(2, 1);
    assert_true(s->dirty && s->idle == 0 && s->committed == 1 && s->holds_row);
    assert_int_equal(hec_series_uncommitted(&table), 1);
    fill(0, 3); /* 2 + 513 values: 512 are closed */
    const struct hec_closed *c = table.closed_first;
    assert_true(c->series == s && c->n == 512 && c->committed == 1 && c->holds_row && !c->next &&
                table.closed_last == c);
    assert_true(c->t0_us == 1 && c->t1_us == 512);
    assert_true(s->n == 3 && s->committed == 0 && !s->holds_row && s->has_row && s->dirty && s->moved);
    assert_int_equal(table.closed_bytes, sizeof *c);
    assert_int_equal(hec_series_uncommitted(&table), 511 + 3);
    hec_series_committed(&table);
    assert_true(!table.closed_first && !table.closed_last && table.closed_bytes == 0);
    assert_int_equal(hec_series_uncommitted(&table), 0);
    hec_series_close(&table, table.all[0]);
    hec_series_committed(&table);
    assert_true(!s->has_row && !s->holds_row && s->committed == 0 && !s->dirty);
    assert_int_equal(table.lost, 0);
}

/* Beyond the bound the oldest block goes: what of it is in no file is lost, and the row that has the rest stays. */
TEST(what_is_dropped) {
    table.closed_max_bytes = 2 * (sizeof(struct hec_closed) + 0);
    for (int i = 0; i < 100; i++)
        add(i, 1);
    hec_series_committed(&table);
    fill(0, 100);
    fill(1, 0);
    assert_true(closed_blocks() == 2 && table.lost == 0 && !table.all[0]->promote);
    fill(2, 0);
    assert_int_equal(closed_blocks(), 2);
    assert_int_equal(table.lost, 412);
    assert_true(table.all[0]->promote && !table.all[1]->promote);
    assert_int_equal(table.closed_first->series->subject, 1);
    assert_int_equal(table.closed_bytes, 2 * sizeof(struct hec_closed));
    table.closed_max_bytes = 0;
    fill(3, 0);
    assert_true(!table.closed_first && !table.closed_last && table.closed_bytes == 0);
    assert_int_equal(table.lost, 412 + 3 * 512);
    assert_int_equal(table.beyond, 0);
    assert_true(!table.all[1]->promote && !table.all[2]->promote && !table.all[3]->promote);
    hec_series_committed(&table);
    assert_false(table.all[0]->promote);
    /* texts count, too */
    table.closed_max_bytes = 2 * sizeof(struct hec_closed) + 2 * 100;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 100; k++)
            hec_series_add(&table, HEC_GPU_ENERGY, 10 + i, k, k % 2, true);
        hec_series_close(&table, table.all[4 + i]);
        assert_int_equal(table.closed_bytes, (i < 2 ? i + 1 : 2) * (sizeof(struct hec_closed) + 100));
    }
    assert_int_equal(table.lost, 412 + 3 * 512 + 100);
}

/* Blocks at one time are taken as far as a reader takes them; the rest is lost, and said to be beyond that. */
TEST(what_no_reader_takes) {
    enum { ROUNDS = 520 };
    const int taken = 1 + (HEC_LIMITS_SERIES_VALUES - 2 * HEC_BLOCK_VALUES) / HEC_BLOCK_VALUES;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < HEC_BLOCK_VALUES; i++)
            add(i, 1);
    assert_int_equal(closed_blocks(), taken);
    assert_int_equal(table.beyond, (ROUNDS - 1 - taken) * HEC_BLOCK_VALUES);
    assert_int_equal(table.lost, table.beyond);
    assert_true(table.all[0]->n == HEC_BLOCK_VALUES && table.all[0]->closed_us == HEC_BLOCK_VALUES - 1);
    for (int i = 0; i < 3 * HEC_BLOCK_VALUES;
         i++) /* what comes later is taken: one that is full at the time of the others is not */
        add(HEC_BLOCK_VALUES + i, 1);
    assert_int_equal(closed_blocks(), taken + 2);
    assert_int_equal(table.all[0]->closed_us, 3 * HEC_BLOCK_VALUES - 1);
    assert_int_equal(table.beyond, (ROUNDS - taken) * HEC_BLOCK_VALUES);
}
