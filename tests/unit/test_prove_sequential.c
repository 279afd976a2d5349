/* Stopping early: how often A and A are called different over all looks, how soon a difference is shown. */
#include "prove/sequential.h"
#include "prove_worlds.h"
#include "unit.h"

#define PAIRS_MOST 40

/* One trial after another on a device that warms up, with noise that goes on from trial to trial; the first ones are slower. */
struct device {
    double between, persistent, drift, warm_up;
    double e;
    int trials;
};

static double trial(struct device *d, double joules) {
    d->e = d->persistent * d->e + sqrt(1 - d->persistent * d->persistent) * world_skewed();
    double t = d->trials++;
    return joules * exp(d->between * d->e + d->drift * t / (2 * PAIRS_MOST) + d->warm_up * exp(-t / 3));
}

static struct hec_look experiment(struct device d, double ratio, uint64_t seed,
                                  const struct hec_sequential_options *options) {
    double a[PAIRS_MOST], b[PAIRS_MOST];
    struct hec_look look = {HEC_LOOK_GO_ON};
    d.e = world_normal();
    for (int i = 0; look.step == HEC_LOOK_GO_ON; i++) {
        bool b_first = hec_sequential_b_first(seed, i);
        if (b_first)
            b[i] = trial(&d, ratio);
        a[i] = trial(&d, 1);
        if (!b_first)
            b[i] = trial(&d, ratio);
        look = hec_sequential_look(a, b, i + 1, options);
    }
    return look;
}

/* The upper end of the 95 % interval of a share (Wilson 1927). */
static double upper(int part, int whole) {
    double p = (double)part / whole, z2 = 1.96 * 1.96 / whole;
    return (p + z2 / 2 + sqrt(z2 * p * (1 - p) + z2 * z2 / 4)) / (1 + z2);
}

TEST(rates) {
    static const struct {
        const char *name;
        struct device device;
    } cases[] = {
        {"independent", {0.01, 0, 0, 0}},      {"autocorrelated 0.7", {0.01, 0.7, 0, 0}},
        {"drift 5 %", {0.01, 0, 0.05, 0}},     {"warm-up 10 %", {0.01, 0, 0, 0.1}},
        {"all of it", {0.01, 0.7, 0.05, 0.1}}, {"host-bound, 10 times the noise", {0.1, 0.5, 0.05, 0.1}},
    };
    struct hec_sequential_options options = {.pairs_most = PAIRS_MOST},
                                  expects = {.pairs_most = PAIRS_MOST, .expected = 0.62};
    enum { EXPERIMENTS = 1000 };
    int all = 0;
    world_state = 3;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int alarms = 0, covered = 0, found = 0, pairs = 0;
        bool noisy = cases[k].device.between > 0.05;
        for (int i = 0; i < EXPERIMENTS; i++) {
            struct hec_look look = experiment(cases[k].device, 1, (uint64_t)i, &options);
            alarms += look.step == HEC_LOOK_BETTER || look.step == HEC_LOOK_WORSE;
            look = experiment(cases[k].device, 0.97, (uint64_t)i, &options);
            found += look.step == HEC_LOOK_BETTER;
            covered += look.low <= 0.97 && look.high >= 0.97;
            pairs += look.pairs;
        }
        all += alarms;
        printf(
            "%s: A/A called different in %.1f %% (up to %.1f) of %d; 3 %% shown in %.1f %%, after %.1f pairs; the interval "
            "covers in %.1f %%\n",
            cases[k].name, 100.0 * alarms / EXPERIMENTS, 100 * upper(alarms, EXPERIMENTS), EXPERIMENTS,
            100.0 * found / EXPERIMENTS, (double)pairs / EXPERIMENTS, 100.0 * covered / EXPERIMENTS);
        assert_true(alarms <= 0.05 * EXPERIMENTS);
        assert_true(covered >= 0.95 * EXPERIMENTS);
        assert_true(noisy || found >= 0.9 * EXPERIMENTS);
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) { /* where about what is true is expected */
        int covered = 0, pairs = 0;
        for (int i = 0; i < EXPERIMENTS; i++) {
            struct hec_look look = experiment(cases[k].device, 0.6, (uint64_t)i, &expects);
            covered += look.low <= 0.6 && look.high >= 0.6;
            pairs += look.pairs;
        }
        printf("%s: 40 %% shown after %.1f pairs where 38 are expected; the interval covers in %.1f %%\n",
               cases[k].name, (double)pairs / EXPERIMENTS, 100.0 * covered / EXPERIMENTS);
        assert_true(covered >= 0.95 * EXPERIMENTS);
    }
    int experiments = EXPERIMENTS * (int)(sizeof cases / sizeof *cases);
    printf("A/A in all: %.2f %%, up to %.2f\n", 100.0 * all / experiments, 100 * upper(all, experiments));
    assert_true(upper(all, experiments) < 0.05);
    assert_true(all > 0); /* a test that never alarms would not be one of 5 % */
}

/* The martingale at its worst: normal noise and many looks. */
TEST(many_looks) {
    enum { PAIRS = 200, EXPERIMENTS = 300 };
    static double a[PAIRS], b[PAIRS];
    int alarms = 0;
    world_state = 4;
    for (int k = 0; k < EXPERIMENTS; k++) {
        bool alarm = false;
        for (int i = 0; i < PAIRS && !alarm; i++) {
            a[i] = 1;
            b[i] = exp(0.01 * world_normal());
            struct hec_look look = hec_sequential_look(a, b, i + 1, NULL);
            alarm = look.step != HEC_LOOK_GO_ON;
        }
        alarms += alarm;
    }
    printf("200 looks: %d of %d\n", alarms, EXPERIMENTS);
    assert_true(alarms > 0 && alarms <= 0.05 * EXPERIMENTS);
}

TEST(steps) {
    double a[100], b[100];
    for (int i = 0; i < 100; i++) {
        a[i] = 1;
        b[i] = 0.9 * exp(0.01 * (i % 2 ? 1 : -1));
    }
    for (int n = 0; n < HEC_SEQUENTIAL_PAIRS_LEAST; n++) {
        struct hec_look look = hec_sequential_look(a, b, n, NULL);
        assert_true(look.step == HEC_LOOK_GO_ON && look.pairs == n && look.low == 0 && isinf(look.high));
    }
    struct hec_sequential_options o = {0};
    struct hec_look look = hec_sequential_look(a, b, 8, &o);
    assert_true(look.step == HEC_LOOK_BETTER && look.low < 0.9 && look.high > 0.9 && look.pairs_left == 0);
    o.more_is_better = true;
    assert_int_equal(hec_sequential_look(a, b, 8, &o).step, HEC_LOOK_WORSE);
    assert_int_equal(hec_sequential_look(b, a, 8, &o).step, HEC_LOOK_BETTER);
    /* a width that is asked for is reached, and after about as many pairs as expected */
    o = (struct hec_sequential_options){.width = 0.005};
    look = hec_sequential_look(a, b, 8, &o);
    assert_true(look.step == HEC_LOOK_GO_ON && look.pairs_left > 0);
    int expected = 8 + look.pairs_left, n = 8;
    while (look.step == HEC_LOOK_GO_ON)
        look = hec_sequential_look(a, b, ++n, &o);
    assert_true(look.step == HEC_LOOK_BETTER && look.high / look.ratio <= 1.005 && abs(n - expected) <= expected / 5);
    o.pairs_most = 8;
    assert_int_equal(hec_sequential_look(a, b, 8, &o).step, HEC_LOOK_BETTER);
    /* equal within a margin, and out of pairs */
    for (int i = 0; i < 100; i++)
        b[i] /= 0.9;
    o = (struct hec_sequential_options){.margin = 0.02};
    assert_int_equal(hec_sequential_look(a, b, 40, &o).step, HEC_LOOK_EQUIVALENT);
    assert_int_equal(hec_sequential_look(a, b, 6, &o).step, HEC_LOOK_GO_ON);
    o = (struct hec_sequential_options){.pairs_most = 6};
    assert_int_equal(hec_sequential_look(a, b, 6, &o).step, HEC_LOOK_UNDECIDED);
    /* what was not measured does not count */
    a[2] = NAN;
    b[3] = 0;
    assert_int_equal(hec_sequential_look(a, b, 10, NULL).pairs, 8);
    int first = 0;
    for (int i = 0; i < 1000; i += 2) {
        assert_true(hec_sequential_b_first(7, i) != hec_sequential_b_first(7, i + 1));
        first += hec_sequential_b_first(7, i);
    }
    assert_true(first > 200 && first < 300);
}

/* Half of the joules, where pairs differ by 1 %: three pairs show it, four by older receipts; no three pairs show what they differ by. */
TEST(three_pairs_show_a_large_effect) {
    const double a[] = {1, 1, 1, 1}, b[] = {0.5, 0.505, 0.495, 0.5}, close[] = {0.99, 0.98, 1, 0.99};
    struct hec_sequential_options o = {.small_effects = true};
    struct hec_look look = hec_sequential_look(a, b, 3, NULL);
    assert_true(look.step == HEC_LOOK_BETTER && look.low > 0.43 && look.high < 0.58);
    assert_int_equal(hec_sequential_look(a, b, 2, NULL).step, HEC_LOOK_GO_ON);
    assert_int_equal(hec_sequential_look(a, close, 3, NULL).step, HEC_LOOK_GO_ON);
    look = hec_sequential_look(a, b, 3, &o);
    assert_true(look.step == HEC_LOOK_GO_ON && isinf(look.high));
    look = hec_sequential_look(a, b, 4, &o);
    assert_true(look.step == HEC_LOOK_BETTER && look.low > 0.48 && look.high < 0.52);
}

/* ---- where a search has seen something ---- */

enum noise { NORMAL, HEAVY, SKEWED };

/* Variance 1. HEAVY: Student's t of three degrees of freedom. */
static double noise_of(enum noise kind) {
    if (kind != HEAVY)
        return kind == NORMAL ? world_normal() : world_skewed();
    double square = 0, normal = world_normal();
    for (int i = 0; i < 3; i++)
        square += pow(world_normal(), 2);
    return normal / sqrt(square);
}

struct counted { /* shares of the experiments */
    double missed, called, in_two, pairs;
};

/* Experiments of up to `most` pairs, asked after each: how often the interval has missed the truth at any look, whether or not it ended
 * there; how often A and B were called different, and after how many pairs. */
static struct counted count_expected(double effect, double saw, double spread, enum noise kind, int most) {
    enum { EXPERIMENTS = 400 };
    double a[PAIRS_MOST], b[PAIRS_MOST];
    struct counted out = {0, 0, 0, 0};
    for (int k = 0; k < EXPERIMENTS; k++) {
        struct hec_sequential_options o = {.expected = saw,
                                           .width = 1e9}; /* which saves the outlook, and is not of the interval */
        bool missed = false;
        int ended = 0;
        for (int i = 0; i < most; i++) {
            a[i] = 1;
            b[i] = effect * exp(spread * noise_of(kind));
            struct hec_look look = hec_sequential_look(a, b, i + 1, &o);
            missed |= look.low > effect || look.high < effect;
            if (!ended && (look.low > 1 || look.high < 1))
                ended = i + 1;
        }
        out.missed += (double)missed / EXPERIMENTS;
        out.called += (double)(ended > 0) / EXPERIMENTS;
        out.in_two += (double)(ended == 2) / EXPERIMENTS;
        out.pairs += (double)(ended ? ended : most) / EXPERIMENTS;
    }
    return out;
}

/* Whatever was seen before, right or wrong, the interval holds at all looks at once; an A/A is called different no more often. */
TEST(what_was_seen_before_does_no_harm) {
    static const double spreads[] = {0.005, 0.03, 0.1}, effects[] = {1, 0.4}, offs[] = {0, 0.1, 1.5};
    static const char *const names[] = {"normal", "heavy tails", "skewed"};
    world_state = 5;
    for (int kind = NORMAL; kind <= SKEWED; kind++) {
        double worst = 0, alarms = 0, as_ever = 0;
        for (size_t s = 0; s < sizeof spreads / sizeof *spreads; s++)
            for (size_t e = 0; e < sizeof effects / sizeof *effects; e++)
                for (size_t f = 0; f < sizeof offs / sizeof *offs; f++) {
                    struct counted c = count_expected(effects[e], effects[e] * exp(-offs[f]), spreads[s], kind, 12);
                    worst = fmax(worst, c.missed);
                    alarms = effects[e] == 1 ? fmax(alarms, c.called) : alarms;
                    assert_true(c.missed <= 0.05);
                }
        for (size_t s = 0; s < sizeof spreads / sizeof *spreads; s++)
            as_ever = fmax(as_ever, count_expected(1, 0, spreads[s], kind, 12).called);
        printf("%s: missed at any of 12 looks in at most %.1f %%; A/A called different in at most %.1f %%, %.1f where "
               "nothing is expected\n",
               names[kind], 100 * worst, 100 * alarms, 100 * as_ever);
        assert_true(worst > 0 && alarms <= as_ever + 0.01); /* two standard deviations of such a share */
    }
}

/* Mostly two pairs for half of the joules, at a noise of 3 %, where blocks were off by as much as they are on cards; without, three. */
TEST(what_was_seen_before_saves_pairs) {
    static const struct {
        double effect, spread, in_two; /* at least */
    } cases[] = {{0.95, 0.01, 0}, {0.9, 0.01, 0}, {0.8, 0.01, 0.5}, {0.5, 0.01, 0.99}, {0.2, 0.01, 0.99},
                 {0.95, 0.03, 0}, {0.9, 0.03, 0}, {0.8, 0.03, 0},   {0.5, 0.03, 0.8},  {0.2, 0.03, 0.99},
                 {0.95, 0.07, 0}, {0.9, 0.07, 0}, {0.8, 0.07, 0},   {0.5, 0.07, 0.3},  {0.2, 0.07, 0.8}};
    world_state = 6;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double effect = cases[i].effect, spread = cases[i].spread;
        struct counted with = count_expected(effect, effect * 1.02, spread, NORMAL, 12);
        struct counted without = count_expected(effect, 0, spread, NORMAL, 12);
        printf("%.0f %% where pairs differ by %.0f %%: %.1f pairs, two in %.0f %%; %.1f where nothing is expected\n",
               100 - 100 * effect, 100 * spread, with.pairs, 100 * with.in_two, without.pairs);
        assert_true(with.in_two >= cases[i].in_two && without.in_two == 0);
        assert_true(with.pairs < 1.15 * without.pairs);
    }
}

/* What is expected decides nothing: two pairs that are elsewhere show no more than without it. */
TEST(what_was_seen_and_is_not_there) {
    const double a[] = {1, 1, 1, 1}, b[] = {0.5, 0.505, 0.495, 0.5}, close[] = {0.99, 0.98, 1, 0.99};
    struct hec_sequential_options o = {.expected = 0.52};
    struct hec_look look = hec_sequential_look(a, b, 2, &o);
    assert_true(look.step == HEC_LOOK_BETTER && look.low > 0.38 && look.high < 0.65 && look.pairs_left == 0);
    assert_true(isinf(hec_sequential_look(a, b, 1, &o).high));
    assert_int_equal(hec_sequential_look(a, close, 2, &o).step, HEC_LOOK_GO_ON);
    o.expected = 0.97;
    assert_int_equal(hec_sequential_look(a, close, 2, &o).step, HEC_LOOK_GO_ON);
    o.expected = 1e-300; /* of a made receipt */
    look = hec_sequential_look(a, b, 2, &o);
    assert_true(look.step == HEC_LOOK_GO_ON);
    for (int i = 0; i < 3; i++) {
        const double nothing[] = {-1, NAN, INFINITY};
        o.expected = nothing[i];
        assert_true(isinf(hec_sequential_look(a, b, 2, &o).high));
        look = hec_sequential_look(a, b, 3, &o);
        struct hec_look other = hec_sequential_look(a, b, 3, NULL);
        assert_true(look.low == other.low && look.high == other.high);
    }
}

/* Every arm once a round, reversed in every second one, drawn anew for every two: each is as often at each place. */
TEST(orders) {
    enum { ARMS = 7, ROUNDS = 7000 };
    int order[ARMS], before[ARMS] = {0}, at[ARMS][ARMS] = {{0}}, same = 0;
    for (int round = 0; round < ROUNDS; round++) {
        bool seen[ARMS] = {false}, repeated = true;
        hec_sequential_order(11, round, ARMS, order);
        for (int i = 0; i < ARMS; i++) {
            assert_true(order[i] >= 0 && order[i] < ARMS && !seen[order[i]]);
            seen[order[i]] = true;
            at[order[i]][i]++;
            repeated &= order[i] == before[i];
            if (round % 2)
                assert_int_equal(order[i], before[ARMS - 1 - i]);
        }
        same += repeated;
        for (int i = 0; i < ARMS; i++)
            before[i] = order[i];
    }
    for (int i = 0; i < ARMS * ARMS; i++) /* 1000 expected; five standard deviations */
        assert_true(at[i / ARMS][i % ARMS] > 800 && at[i / ARMS][i % ARMS] < 1200);
    assert_true(same < 5);
    hec_sequential_order(11, 0, ARMS, before);
    hec_sequential_order(12, 0, ARMS, order);
    assert_memory_not_equal(before, order, sizeof order);
}
