/* Unmixing: the experiment of six activities, and what must not be reported or separated, nor depend on the order of
 * input. */
#include "base/error.h"
#include "unit/unmix_world.h"
#include "unit.h"

#include <unistd.h>

static struct world world;
static struct hec_unmix_result result, other;

static struct hec_unmix *unmix;

static void begin_with(const struct hec_unmix_options *options) {
    hec_unmix_free(unmix);
    assert_int_equal(hec_unmix_begin(options, &unmix), 0);
}

static void begin(int classes, int counters, double limit_w) {
    begin_with(&(struct hec_unmix_options){classes, counters, limit_w});
}

static void solve(void) {
    assert_int_equal(hec_unmix_solve(unmix, &result), 0);
}

/* The samples and windows of the world up to then, of 20 and of 100 ms, and without noise. */
static void read_until(int64_t power_ns, int64_t window_ns, int64_t at[2]) {
    for (; at[0] < power_ns && at[0] < (int64_t)world.p.length_ms * 1000000; at[0] += 20000000)
        hec_unmix_power(unmix, at[0], 20000000, world.p.power[at[0] / 1000000 - 10]);
    for (; at[1] < window_ns && at[1] < (int64_t)world.p.length_ms * 1000000; at[1] += 100000000) {
        double from = (double)at[1] / 1e6;
        hec_unmix_window(unmix, at[1], at[1] + 100000000, power_sum(world.p.power, from, from + 100) / 1000, 0);
    }
}

/* 30 s of six activities in random pieces of 10 to 150 ms, as measured on an H200: in bursts the first one draws more
 * than the limit of 700 W. */
TEST(test_six_activities) {
    static const double watts[6] = {830, 652, 593, 124, 130, 120};
    world_draw(&world, 7);
    world.classes = 6;
    for (int c = 0; c < 6; c++) {
        world.watts[c] = watts[c];
        world.share[c] = 1;
    }
    world.piece_low_ms = 10;
    world.piece_high_ms = 150;
    world.p.lag_ms = 10;
    world.p.filter_ms = 0;
    world.spread = 0.02;
    world_make(&world);
    begin(6, 0, 700);
    world_power(&world, unmix);
    world_windows(&world, unmix);
    world_pieces(&world, unmix);
    hec_unmix_total(unmix, world.p.total, 0.005 * world.p.total);
    solve();
    assert_near(result.joules, world.p.total, 1e-9 * world.p.total);
    assert_near(result.lag_ns, -10e6, 2e6);
    assert_true(result.power_r2 > 0.95 && result.window_r2 > 0.95);
    for (int c = 0; c < 6; c++) {
        const struct hec_unmix_class *class = &result.class[c];
        assert_int_equal(class->flaw, HEC_UNMIX_GOOD);
        assert_int_equal(class->merged_with, -1);
        assert_near(class->value, world.joules[c] / world.seconds[c], 0.03 * watts[c]);
        assert_true(class->low <= class->value && class->value <= class->high);
        assert_int_equal(class->above_limit, c == 0); /* reported as it is, not cut off */
        assert_near(class->joules, class->value * class->seconds, 1e-9 * class->joules);
    }
    hec_unmix_total(unmix, world.p.total, 0.05 * world.p.total); /* a looser total widens the intervals */
    assert_int_equal(hec_unmix_solve(unmix, &other), 0);
    for (int c = 0; c < 6; c++)
        assert_true(other.class[c].high - other.class[c].low > result.class[c].high - result.class[c].low);
}

/* Readings all before the pieces, or each just before or after its time: the same result, bit for bit. */
TEST(test_order_of_input) {
    world_draw(&world, 8);
    world_make(&world);
    begin(world.classes, 0, NAN);
    read_until(INT64_MAX, INT64_MAX, (int64_t[]){20000000, 0});
    world_pieces(&world, unmix);
    assert_int_equal(hec_unmix_solve(unmix, &other), 0);
    begin(world.classes, 0, NAN);
    int64_t at[] = {20000000, 0};
    for (int i = 0; i < world.pieces; i++) {
        const struct world_piece *p = &world.piece[i];
        read_until(p->end_ns + (i % 3 - 1) * 300000000LL, p->end_ns - 500000000, at);
        hec_unmix_piece(unmix, p->class, p->start_ns, p->end_ns);
    }
    read_until(INT64_MAX, INT64_MAX, at);
    solve();
    assert_true(result.valid && result.power_used == other.power_used && result.window_used == other.window_used);
    for (int c = 0; c < world.classes; c++) {
        assert_true(result.class[c].value == other.class[c].value);
        assert_true(result.class[c].low == other.class[c].low && result.class[c].high == other.class[c].high);
    }
}

#define SECOND INT64_C(1000000000)
#define YEAR (365 * 24 * 3600 * SECOND)

/* 20 s with power samples, and 10 s more `hole` s later; two classes by turns, all the time. */
static void with_hole(int64_t hole_ns) {
    static const double watts[2] = {400, 100};
    int64_t half = SECOND / 2, from[2] = {0, 20 * SECOND + hole_ns}, length[2] = {20 * SECOND, 10 * SECOND};
    for (int part = 0; part < 2; part++)
        for (int64_t t = from[part] + half / 10; t <= from[part] + length[part]; t += half / 10) {
            int64_t before = (t - half / 10 - from[part]) / half % 2;
            hec_unmix_power(unmix, t, half / 10, watts[before] + (double)(t / half % 7));
        }
    for (int part = 0; part < 2; part++)
        for (int64_t t = from[part]; t < from[part] + length[part]; t += half)
            assert_int_equal(hec_unmix_piece(unmix, (int)((t - from[part]) / half % 2), t,
                                             part == 0 && t == 20 * SECOND - half ? from[1] : t + half),
                             0);
}

/* A damaged file may leap decades, once or between all its pieces: nothing is done for time without a reading. */
TEST(test_leaps) {
    alarm(100); /* what takes so long has no end */
    for (int first = 0; first < 2; first++) {
        begin_with(&(struct hec_unmix_options){.classes = 2, .limit_w = NAN, .readings_first = first});
        with_hole(30 * YEAR);
        assert_int_equal(hec_unmix_solve(unmix, first ? &other : &result), 0);
    }
    assert_int_equal(result.power_used, other.power_used);
    assert_true(result.power_used > 500 && result.power_left < 10);
    for (int c = 0; c < 2; c++) {
        assert_near(other.class[c].value, result.class[c].value, 1e-9 * result.class[c].value);
        assert_near(other.class[c].value, c ? 103 : 403, 3);
        assert_near(other.class[c].seconds, result.class[c].seconds, 1e-9 * result.class[c].seconds);
    }
    assert_near(other.class[1].seconds, 30.0 * YEAR / SECOND + 15, 1);
    begin_with(&(struct hec_unmix_options){.classes = 2, .limit_w = NAN, .readings_first = true});
    for (int64_t i = 0; i < 1000000; i++) /* 3 years, 12 billion bins */
        assert_true(hec_unmix_power(unmix, i * 99 * SECOND, SECOND / 10, 100) == 0);
    for (int64_t i = 0; i < 1000000; i++)
        assert_true(hec_unmix_piece(unmix, (int)(i & 1), i * 99 * SECOND, i * 99 * SECOND + 1000) == 0);
    solve();
    assert_near(result.class[0].seconds, 0.5, 1e-9);
    alarm(0);
}

/* A loop of fixed parts: classes 0 and 1 in each 5 ms alternate, so every window has them 3 : 2; class 2 comes apart.
 * */
static void loop(int seconds, bool apart) {
    static const double watts[3] = {400, 200, 100};
    int64_t t = 0;
    for (int i = 0; i < seconds * 50; i++) {
        double pure = apart && i / 5 % 3 == 0 ? watts[2] : (3 * watts[0] + 2 * watts[1]) / 5;
        hec_unmix_power(unmix, (int64_t)(i + 1) * 20000000, 20000000, pure * (1 + 0.01 * sin(i * 1.7)));
    }
    for (int i = 0; i < seconds * 200; i++, t += 5000000) {
        if (apart && i / 20 % 3 == 0) {
            hec_unmix_piece(unmix, 2, t, t + 5000000);
        } else {
            hec_unmix_piece(unmix, 0, t, t + 3000000);
            hec_unmix_piece(unmix, 1, t + 3000000, t + 5000000);
        }
    }
}

TEST(test_never_apart) {
    begin(4, 0, NAN); /* class 3 never occurs */
    loop(20, true);
    solve();
    assert_int_equal(result.class[0].merged_with, 0);
    assert_int_equal(result.class[1].merged_with, 0);
    assert_int_equal(result.class[2].merged_with, -1);
    assert_near(result.class[0].value, 320, 10);
    assert_true(result.class[0].value == result.class[1].value);
    assert_near(result.class[2].value, 100, 6);
    assert_int_equal(result.class[0].flaw, HEC_UNMIX_GOOD);
    assert_int_equal(result.class[3].flaw, HEC_UNMIX_UNSEEN);
    assert_true(isnan(result.class[3].value) && result.class[3].seconds == 0);

    begin(2, 0, NAN); /* one mixture all the time: only its mean can be known */
    loop(20, false);
    hec_unmix_total(unmix, 6400, 0);
    solve();
    assert_int_equal(result.class[1].merged_with, 0);
    assert_near(result.class[1].value, 320, 1e-6);
    assert_near(result.joules, 6400, 1e-6);
}

TEST(test_too_short) {
    begin(3, 0, NAN);
    loop(1, true);
    hec_unmix_total(unmix, 200, 0);
    solve();
    assert_false(result.valid);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(result.class[c].flaw, HEC_UNMIX_SHORT);
        assert_true(isnan(result.class[c].low) && isnan(result.class[c].high));
    }
    assert_near(result.joules, 200, 1e-9); /* the sum holds all the same */

    begin(2, 1, NAN); /* nothing at all */
    solve();
    assert_false(result.valid);
    assert_true(isnan(result.class[0].value) && isnan(result.lag_ns));
    hec_unmix_piece(unmix, 0, 0, 1000);
    assert_int_equal(hec_unmix_solve_counter(unmix, 0, &result), 0);
    assert_false(result.valid);
    assert_true(isnan(result.class[0].value));
}

/* 50 ms of a class in a minute, and a class that no reading covers: flagged, and the others none the worse. */
TEST(test_little_and_unseen) {
    world_draw(&world, 9);
    world.classes = 3;
    world_make(&world);
    begin(5, 0, NAN);
    world_power(&world, unmix);
    world_windows(&world, unmix);
    for (int i = 0; i < world.pieces; i++) {
        const struct world_piece *p = &world.piece[i];
        bool little = i == 40;
        hec_unmix_piece(unmix, little ? 3 : p->class, p->start_ns, p->end_ns);
    }
    assert_int_equal(hec_unmix_extra(unmix, 4, 2.5), 0);
    hec_unmix_total(unmix, world.p.total + 2.5 * 200, 0);
    solve();
    assert_int_equal(result.class[3].flaw, HEC_UNMIX_LITTLE);
    assert_int_equal(result.class[4].flaw, HEC_UNMIX_UNSEEN);
    assert_true(result.class[4].seconds == 2.5);
    assert_near(result.joules, world.p.total + 500, 1e-6);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(result.class[c].flaw, HEC_UNMIX_GOOD);
        assert_near(result.class[c].value, world.joules[c] / world.seconds[c], 0.03 * world.watts[c]);
    }
}

/* A class that the readings want below zero is 0, with a one-sided interval; the sum still holds. */
TEST(test_at_zero) {
    begin(3, 0, NAN);
    uint32_t random = 1;
    int64_t t = 0;
    double joules = 0;
    for (int i = 0; i < 400; i++, t += 100000000) {
        random = random * 1664525u + 1013904223u;
        int part = (int)(random >> 25) % 100, class = (int)(random >> 20) % 3;
        static const double watts[3] = {-20, 300, 200};
        double energy = (watts[class] * part + watts[1] * (100 - part)) * 1e-3;
        hec_unmix_window(unmix, t, t + 100000000, energy, 0.1);
        hec_unmix_piece(unmix, class, t, t + part * 1000000);
        hec_unmix_piece(unmix, 1, t + part * 1000000, t + 100000000);
        joules += energy;
    }
    hec_unmix_total(unmix, joules, 0);
    solve();
    assert_true(result.class[0].at_zero && result.class[0].value == 0 && result.class[0].low == 0);
    assert_true(result.class[0].high > 0);
    assert_false(result.class[1].at_zero);
    assert_near(result.joules, joules, 1e-6);
}

/* Gaps, overlaps, NAN, readings out of order, too long, too late, outside: left out, not guessed. */
TEST(test_awkward_input) {
    begin(2, 1, NAN);
    assert_int_equal(hec_unmix_extra(unmix, 0, -1), HEC_ERR_USAGE);
    assert_int_equal(hec_unmix_extra(unmix, 0, NAN), HEC_ERR_USAGE);
    assert_int_equal(hec_unmix_counter(unmix, 1, 0, 1, 0.5), HEC_ERR_USAGE);
    assert_int_equal(hec_unmix_window(unmix, -1000, 100000000, 20, 0), 0); /* begins before the pieces do */
    assert_int_equal(hec_unmix_window(unmix, 1000000000, 1100000000, NAN, 0), 0);
    assert_int_equal(hec_unmix_window(unmix, 2000000000, 2100000000, 20, 0), 0);
    assert_int_equal(hec_unmix_window(unmix, 1000000000, 1100000000, 20, 0), 0); /* goes back */
    assert_int_equal(hec_unmix_window(unmix, 2100000000, 9100000000, 20, 0), 0); /* 7 s: too long */
    assert_int_equal(hec_unmix_window(unmix, 3950000000, 4050000000, 20, 0), 0); /* half of it in the gap */
    assert_int_equal(hec_unmix_piece(unmix, 0, 0, 3000000000), 0);
    assert_int_equal(hec_unmix_piece(unmix, 1, 2000000000, 4000000000), 0); /* overlaps: counts from 3 s on */
    assert_int_equal(hec_unmix_piece(unmix, 1, 2000000000, 2500000000), 0); /* wholly in the past */
    assert_int_equal(hec_unmix_piece(unmix, 1, 5000000000, 12000000000), 0);
    assert_int_equal(hec_unmix_window(unmix, 5000000000, 5100000000, 20, 0), 0); /* 6.9 s ago: forgotten */
    solve();
    assert_near(result.class[0].seconds, 3, 1e-9);
    assert_near(result.class[1].seconds, 8, 1e-9);
    assert_near(result.covered_s, 11, 1e-9);
    assert_int_equal(result.window_used, 1);
    assert_int_equal(result.window_left, 5);
    assert_false(result.valid);
    struct hec_unmix_options none = {0, 0, NAN}, many = {HEC_UNMIX_CLASSES + 1, 0, NAN};
    struct hec_unmix *refused;
    assert_int_equal(hec_unmix_begin(&none, &refused), HEC_ERR_USAGE);
    assert_int_equal(hec_unmix_begin(&many, &refused), HEC_ERR_USAGE);
    hec_unmix_free(NULL);
}

/* A trace that was on half of the time: the readings of those halves, the time of the others, and the total of all. */
TEST(test_part_of_the_time) {
    world_draw(&world, 11);
    world.p.length_ms = 60000;
    world.classes = 4;
    world_make(&world);
    begin(4, 0, NAN);
    world_power(&world, unmix);
    world_windows(&world, unmix);
    for (int i = 0; i < world.pieces; i++) {
        const struct world_piece *p = &world.piece[i];
        if (p->start_ns / 1000000000 % 2)
            hec_unmix_extra(unmix, p->class, (double)(p->end_ns - p->start_ns) * 1e-9);
        else
            hec_unmix_piece(unmix, p->class, p->start_ns, p->end_ns);
    }
    hec_unmix_total(unmix, world.p.total, 0.01 * world.p.total);
    solve();
    assert_true(result.power_left > 300 && result.power_used > 1000);
    assert_near(result.joules, world.p.total, 1e-9 * world.p.total);
    for (int c = 0; c < 4; c++) {
        assert_near(result.class[c].seconds, world.seconds[c], 1e-6);
        assert_near(result.class[c].value, world.joules[c] / world.seconds[c], 0.03 * world.watts[c]);
    }
}

/* All 32 classes, twenty minutes: blocks of time grow, memory does not. */
TEST(test_long_and_many) {
    begin(HEC_UNMIX_CLASSES, 0, NAN);
    uint64_t random = 88172645463325252u;
    int64_t t = 0;
    double joules = 0;
    for (int i = 0; i < 12000; i++, t += 100000000) {
        int class[2];
        for (int k = 0; k < 2; k++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            class[k] = (int)((random >> 20) % HEC_UNMIX_CLASSES);
        }
        double energy = (0.06 * (100 + 10 * class[0]) + 0.04 * (100 + 10 * class[1])) * (1 + 0.02 * sin(i));
        hec_unmix_window(unmix, t, t + 100000000, energy, 0);
        hec_unmix_piece(unmix, class[0], t, t + 60000000);
        hec_unmix_piece(unmix, class[1], t + 60000000, t + 100000000);
        joules += energy;
    }
    hec_unmix_total(unmix, joules, 0);
    solve();
    assert_near(result.joules, joules, 1e-6);
    assert_true(result.blocks > 32 && result.block_s >= 20);
    for (int c = 0; c < HEC_UNMIX_CLASSES; c++) {
        assert_int_equal(result.class[c].flaw, HEC_UNMIX_GOOD);
        assert_near(result.class[c].value, 100 + 10 * c, 6);
    }
}
