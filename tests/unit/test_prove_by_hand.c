/* Figures and their intervals against plain formulas, of few trials whose numbers anybody can add up: means, standard errors, Welch's and
 * Student's intervals, and the likelihood ratio of the sequential test. */
#include "prove/check.h"
#include "prove/experiment.h"
#include "prove/search.h"
#include "prove/student.h"
#include "prove_formulas.h"
#include "unit.h"

/* ---- two sets of runs ---- */

static struct hec_trial run(double seconds, double joules, int pair) {
    return (struct hec_trial){
        .whole = {seconds, joules, 100, 10}, .run = {seconds + 1, joules + 50, 110, 11}, .pair = pair};
}

static void figures_are(const struct hec_comparison *c, double va, double vb, double both, double freedom,
                        double confidence) {
    double half = hec_student_quantile((1 + confidence) / 2, freedom) * sqrt(both);
    assert_near(c->ratio, c->b / c->a, 1e-12);
    assert_near(c->ratio_low, c->ratio * exp(-half), 1e-9);
    assert_near(c->ratio_high, c->ratio * exp(half), 1e-9);
    /* of the difference, whose variance is that of a and b less what they have in common */
    double variance = c->a * c->a * va + c->b * c->b * vb - c->a * c->b * (va + vb - both);
    double off = hec_student_quantile((1 + confidence) / 2, freedom) * sqrt(fmax(variance, 0));
    assert_near(c->difference, c->b - c->a, 1e-12);
    assert_near(c->difference_low, c->difference - off, 1e-9);
    assert_near(c->difference_high, c->difference + off, 1e-9);
}

TEST(sets_of_runs) {
    const double joules_a[] = {100, 104, 102}, joules_b[] = {90, 95, 91};
    struct hec_trial a[3], b[3];
    struct hec_comparison c[HEC_QUANTITY_COUNT];
    const struct hec_comparison *j = &c[HEC_QUANTITY_JOULES_PER_UNIT];
    double off_a[3], off_b[3], off[3];
    for (int i = 0; i < 3; i++) {
        a[i] = run(10 + i, joules_a[i], -1);
        b[i] = run(9 + 2 * i, joules_b[i], -1);
        off_a[i] = log(joules_a[i]) - log(306 / 3.0); /* of what all together took */
        off_b[i] = log(joules_b[i]) - log(276 / 3.0);
        off[i] = off_b[i] - off_a[i];
    }
    double va = square_error(off_a, 3), vb = square_error(off_b, 3);
    assert_int_equal(hec_compare(a, 3, b, 3, NULL, c), 0);
    const double expected_a[] = {12, 152, 1.02, 300 / 33.0, 33 / 30.0, 306 / 33.0},
                 expected_b[] = {12, 142, 0.92, 300 / 33.0, 33 / 30.0, 276 / 33.0};
    for (int q = 0; q < HEC_QUANTITY_COUNT; q++) {
        assert_near(c[q].a, expected_a[q], 1e-12);
        assert_near(c[q].b, expected_b[q], 1e-12);
        assert_true(c[q].runs_a == 3 && c[q].runs_b == 3 && !c[q].paired && c[q].between_runs);
    }
    figures_are(j, va, vb, va + vb, freedom_of(va, 3, vb, 3), 0.95);
    assert_int_equal(j->shown, HEC_SHOWN_BETTER);
    assert_int_equal(hec_compare(a, 3, b, 3, &(struct hec_compare_options){0.9}, c), 0);
    figures_are(j, va, vb, va + vb, freedom_of(va, 3, vb, 3), 0.9);
    assert_int_equal(hec_compare(a, 3, b, 3, &(struct hec_compare_options){0}, c), 0);
    figures_are(j, va, vb, va + vb, freedom_of(va, 3, vb, 3), 0.95);
    /* pairs, in any order; a third of which only one side has */
    for (int i = 0; i < 3; i++) {
        a[i].pair = i;
        b[2 - i] = run(9 + 2 * i, joules_b[i], i);
    }
    assert_int_equal(hec_compare(a, 3, b, 3, NULL, c), 0);
    assert_true(j->paired && j->runs_a == 3 && j->runs_b == 3);
    figures_are(j, va, vb, square_error(off, 3), 2, 0.95);
    a[1].whole.joules = 0;
    assert_int_equal(hec_compare(a, 3, b, 3, NULL, c), 0);
    assert_true(j->paired && j->runs_a == 2 && j->runs_b == 2 && c[HEC_QUANTITY_SECONDS].runs_a == 3);
    assert_near(j->a, 1.01, 1e-12);
    assert_near(j->b, 0.905, 1e-12);
    a[1] = run(11, 104, -1); /* one without a pair: none are pairs */
    assert_int_equal(hec_compare(a, 3, b, 3, NULL, c), 0);
    assert_true(!j->paired && j->runs_a == 3);
    figures_are(j, va, vb, va + vb, freedom_of(va, 3, vb, 3), 0.95);
    for (int i = 0; i < 3; i++)
        a[i].pair = b[i].pair = -1;
    /* one against several: as far off as one of them */
    assert_int_equal(hec_compare(a, 1, b, 3, NULL, c), 0);
    assert_true(j->between_runs && j->runs_a == 1 && !j->paired);
    figures_are(j, 3 * vb, vb, 4 * vb, 2, 0.95);
    assert_int_equal(hec_compare(a, 3, b, 1, NULL, c), 0);
    figures_are(j, va, 3 * va, 4 * va, 2, 0.95);
    /* one a side, without blocks: no interval */
    assert_int_equal(hec_compare(a, 1, b, 1, NULL, c), 0);
    assert_true(!j->between_runs && isnan(j->ratio_low) && isnan(j->ratio_high) && isnan(j->difference_low) &&
                isnan(j->difference_high));
    assert_int_equal(j->shown, HEC_SHOWN_NOT);
    static const int better[] = {-1, -1, -1, 1, -1, 0};
    for (int q = 0; q < HEC_QUANTITY_COUNT; q++) {
        assert_int_equal(hec_quantity_better(q), better[q]);
        assert_int_equal(hec_quantity_of_whole_runs(q), q <= HEC_QUANTITY_JOULES);
    }
}

/* Work counts: a run that does three times as much has three times the weight (Bell and McCaffrey's degrees of freedom are fewer then). */
TEST(weights) {
    const double equal[] = {0.25, 0.25, 0.25, 0.25}, off[] = {1, -1, 2, -2}, skewed[] = {0.5, 0.25, 0.25, 0};
    struct hec_spread s = hec_spread_mean(equal, off, 4);
    assert_near(s.variance, 10 / 12.0, 1e-12);
    assert_near(s.freedom, 3, 1e-9);
    s = hec_spread_mean(skewed, off, 4);
    /* sum of (w r)^2 / (1 - 2 w + sum of w^2), by hand: of squares 0.375 */
    assert_near(s.variance, 0.25 / 0.375 + 0.0625 / 0.875 + 0.25 / 0.875, 1e-12);
    assert_true(s.freedom > 1 && s.freedom < 3);
    s = hec_spread_sum((struct hec_spread){2, 5}, (struct hec_spread){3, 7});
    assert_near(s.variance, 5, 1e-12);
    assert_near(s.freedom, 25 / (4 / 5.0 + 9 / 7.0), 1e-12);
    s = hec_spread_sum((struct hec_spread){0, 5}, (struct hec_spread){0, 7}); /* nothing differs */
    assert_true(s.variance == 0 && s.freedom == 12);
    assert_near(hec_spread_half((struct hec_spread){4, 3}, 0.95), 2 * 3.18244630528, 1e-8);
    assert_true(isnan(hec_spread_half((struct hec_spread){-1, 3}, 0.95)) &&
                isnan(hec_spread_half((struct hec_spread){1, 0}, 0.95)) &&
                isnan(hec_spread_half((struct hec_spread){NAN, 3}, 0.95)));
}

/* What blocks say of each quantity: of how x / y of a block is off, to first order. */
TEST(within_a_run) {
    enum { BLOCKS = 24 };
    struct hec_trial_block block[BLOCKS + 1];
    struct hec_trial t = {.block = block, .block_count = BLOCKS + 1, .pair = -1};
    const struct {
        enum hec_quantity quantity;
        int of, by; /* columns; of a whole run by steps, or by units where those are not known */
    } cases[] = {{HEC_QUANTITY_SECONDS, 0, 3},         {HEC_QUANTITY_JOULES, 1, 3},
                 {HEC_QUANTITY_JOULES_PER_UNIT, 1, 2}, {HEC_QUANTITY_UNITS_PER_SECOND, 2, 0},
                 {HEC_QUANTITY_WATTS, 1, 0},           {HEC_QUANTITY_SECONDS_PER_STEP, 0, 3}};
    double column[4][BLOCKS], total[4] = {0};
    for (int i = 0; i < BLOCKS; i++) {
        column[0][i] = 1 + 0.01 * (i * 7 % 5);
        column[1][i] = 100 + i * 11 % 7;
        column[2][i] = 30 + i * 5 % 3;
        column[3][i] = 5 + i % 2;
        for (int k = 0; k < 4; k++)
            total[k] += column[k][i];
        block[i] = (struct hec_trial_block){column[0][i], column[1][i], column[2][i], column[3][i]};
    }
    block[BLOCKS] = (struct hec_trial_block){NAN, NAN, NAN, NAN}; /* does not count */
    t.whole = (struct hec_trial_block){total[0], total[1], total[2], total[3]};
    t.run = (struct hec_trial_block){2 * total[0], 4 * total[1], total[2], total[3]};
    for (int way = 0; way < 3; way++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct hec_spread s;
            double e[BLOCKS], share = i == 0 ? 0.5 : i == 1 ? 0.25 : 1;
            int of = cases[i].of, by = i > 1 || way == 0 ? cases[i].by : way == 1 ? 2 : 0;
            assert_int_equal(hec_quantity_within(cases[i].quantity, &t, &s), 0);
            if (by == of || (way && by == 3)) {
                assert_true(by == of ? isnan(s.variance) && isnan(s.freedom) : true);
                continue;
            }
            for (int k = 0; k < BLOCKS; k++)
                e[k] = BLOCKS * (column[of][k] / total[of] - column[by][k] / total[by]);
            struct hec_blocks blocks = hec_blocks_variance(e, BLOCKS);
            assert_near(s.variance, blocks.variance * share * share, 1e-15);
            assert_near(s.freedom, blocks.freedom, 1e-12);
        }
        if (way == 0)
            t.whole.steps = NAN;
        else
            t.whole.units = NAN;
    }
}

/* ---- looks ---- */

static double likelihood_of(int n, double t, double variance) {
    double wide = 1 + variance * n, x = t * t / (n - 1);
    return pow((1 + x) / (1 + x / wide), n / 2.0) / sqrt(wide);
}

/* Of n pairs whose mean is so many standard errors from the truth: mixed over effects of variance 4 and, but in older receipts, of 100
 * (sequential.c, Lai 1976). */
static bool small_effects;

static double likelihood(int n, double t) {
    return small_effects ? likelihood_of(n, t, 4) : 0.8 * likelihood_of(n, t, 4) + 0.2 * likelihood_of(n, t, 100);
}

static double reach_of(int n, double alpha) {
    double low = 0, high = 1e6;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(likelihood(n, middle) < 1 / alpha ? &low : &high) = middle;
    }
    return low;
}

TEST(looks) {
    const double alphas[] = {0.05, 0.01};
    double a[64], b[64], logs[64];
    for (int i = 0; i < 64; i++) {
        a[i] = 100 + i % 3;
        logs[i] = -0.02 + 0.01 * (i % 2 ? 1 : -1) + 0.001 * (i % 5);
        b[i] = a[i] * exp(logs[i]);
    }
    for (int kind = 0; kind < 4; kind++)
        for (int n = kind < 2 ? HEC_SEQUENTIAL_PAIRS_LEAST : 4, k = kind % 2; n <= 40; n++) {
            small_effects = kind >= 2;
            struct hec_sequential_options o = {.alpha = k ? alphas[k] : 0, .small_effects = small_effects};
            struct hec_look look = hec_sequential_look(a, b, n, &o);
            double mean = mean_of(logs, n), error = sqrt(error_of(logs, n < 16 ? n : 16));
            if (n > 16) { /* error_of has room for so many */
                double off = 0;
                for (int i = 0; i < n; i++)
                    off += (logs[i] - mean) * (logs[i] - mean);
                error = sqrt(off / n / (n - 1));
            }
            double far = likelihood(n, 1e9) < 1 / alphas[k] ? INFINITY : reach_of(n, alphas[k]);
            assert_int_equal(look.pairs, n);
            assert_near(look.ratio, exp(mean), 1e-12);
            if (isinf(far)) {
                assert_true(look.low == 0 && isinf(look.high) && look.step == HEC_LOOK_GO_ON);
                continue;
            }
            assert_near(look.low, exp(mean - far * error), 1e-6);
            assert_near(look.high, exp(mean + far * error), 1e-6);
            assert_int_equal(look.step, look.high < 1 ? HEC_LOOK_BETTER : HEC_LOOK_GO_ON);
            if (look.step != HEC_LOOK_GO_ON) {
                assert_int_equal(look.pairs_left, 0);
                continue;
            }
            /* the first number of pairs at which what is seen now would be shown */
            double deviation = error * sqrt(n);
            int need = n + look.pairs_left;
            assert_true(look.pairs_left > 0);
            assert_true(reach_of(need, alphas[k]) * deviation <= fabs(mean) * sqrt(need) * (1 + 1e-9));
            assert_true(need == n || likelihood(need - 1, 1e9) < 1 / alphas[k] ||
                        reach_of(need - 1, alphas[k]) * deviation > fabs(mean) * sqrt(need - 1));
        }
    /* how precise, and how many at most */
    struct hec_sequential_options o = {.width = 1e-9};
    assert_int_equal(hec_sequential_look(a, b, 10, &o).pairs_left, -1); /* no plan looks so far ahead */
    o = (struct hec_sequential_options){.pairs_most = 10};
    assert_int_equal(hec_sequential_look(a, a, 9, &o).step, HEC_LOOK_GO_ON);
    assert_int_equal(hec_sequential_look(a, a, 10, &o).step, HEC_LOOK_UNDECIDED);
    struct hec_look same = hec_sequential_look(a, a, 10, NULL); /* without any noise: simulated ones */
    assert_true(same.ratio == 1 && same.low < 1 && same.high > 1 && same.high - same.low < 1e-8);
    o = (struct hec_sequential_options){.margin = 0.01};
    assert_int_equal(hec_sequential_look(a, a, 9, &o).step, HEC_LOOK_EQUIVALENT);
    for (int i = 0; i < 10; i++) /* within the margin on one side alone */
        b[i] = a[i] * exp(0.0095 + 0.001 * (i % 2 ? 1 : -1));
    o.more_is_better = true;
    assert_int_equal(hec_sequential_look(a, b, 10, &o).step, HEC_LOOK_BETTER);
    o = (struct hec_sequential_options){.width = 0.5, .more_is_better = false};
    assert_int_equal(hec_sequential_look(a, b, 10, &o).step, HEC_LOOK_WORSE);
    for (int i = 0; i < 10; i++)
        b[i] = a[i] * exp(0.05 * (i % 2 ? 1 : -1));
    assert_int_equal(hec_sequential_look(a, b, 10, &o).step,
                     HEC_LOOK_UNDECIDED); /* precise enough, and nothing shown */
}

/* ---- experiments ---- */

static struct hec_experiment_trial trial(int pair, int side, double joules, double seconds) {
    struct hec_experiment_trial t = {
        .pair = pair, .side = side, .steady = {seconds, joules, 100, 10}, .run = {seconds + 1, joules + 9, 110, 11}};
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        t.loss[i] = NAN;
    return t;
}

TEST(plans_of_experiments) {
    struct hec_experiment_trial t[90];
    struct hec_experiment_result r;
    int count = 0;
    for (int pair = 0; pair < HEC_EXPERIMENT_PAIRS_MOST; pair++)
        for (int side = 0; side < 2; side++)
            t[count++] = trial(pair, side, 100 * (1 + 0.3 * ((pair * 7 + side * 5) % 11)), 10);
    /* as far as is planned, and no further */
    assert_int_equal(hec_experiment_judge(&(struct hec_experiment_plan){0}, t, count - 2, &r), 0);
    assert_true(!r.done && r.look.step == HEC_LOOK_GO_ON && r.pairs == HEC_EXPERIMENT_PAIRS_MOST - 1);
    assert_int_equal(hec_experiment_judge(&(struct hec_experiment_plan){0}, t, count, &r), 0);
    assert_true(r.done && r.look.step == HEC_LOOK_UNDECIDED);
    hec_experiment_judge(&(struct hec_experiment_plan){.pairs_most = 20}, t, 38, &r);
    assert_false(r.done);
    hec_experiment_judge(&(struct hec_experiment_plan){.pairs_most = 20}, t, 40, &r);
    assert_true(r.done && r.look.step == HEC_LOOK_UNDECIDED);
    hec_experiment_judge(&(struct hec_experiment_plan){.pairs = 20}, t, 38, &r);
    assert_true(!r.done && r.look.step == HEC_LOOK_GO_ON && r.quantity[HEC_QUANTITY_JOULES].paired);
    hec_experiment_judge(&(struct hec_experiment_plan){.pairs = 20}, t, 40, &r);
    assert_true(r.done && r.look.step == HEC_LOOK_UNDECIDED && r.pairs == 20);
    /* equal within one per cent, or within what is asked for */
    for (int i = 0; i < count; i++)
        t[i] = trial(i / 2, i % 2, 100 + 0.1 * (i % 3), 10);
    hec_experiment_judge(&(struct hec_experiment_plan){0}, t, 12, &r);
    assert_true(r.done && r.look.step == HEC_LOOK_EQUIVALENT);
    hec_experiment_judge(&(struct hec_experiment_plan){.until = 0.02}, t, 12, &r);
    assert_true(r.done && r.look.step == HEC_LOOK_UNDECIDED);
    hec_experiment_judge(&(struct hec_experiment_plan){.until = 0.0001}, t, 12, &r);
    assert_true(!r.done && r.look.pairs_left > 0);
}

/* Half of the joules: three pairs, but where losses differ so much among reruns that three say nothing of them. */
TEST(three_pairs_unless_losses_ask_for_more) {
    struct hec_experiment_trial t[8];
    struct hec_experiment_result r;
    for (int noisy = 0; noisy < 2; noisy++) {
        for (int i = 0; i < 8; i++) {
            t[i] = trial(i / 2, i % 2, (i % 2 ? 50 : 100) + 0.1 * (i % 3), 10);
            for (int bin = 0; bin < HEC_EXPERIMENT_BINS; bin++)
                t[i].loss[bin] = 2 - bin / 31.0 + (noisy ? 0.08 * (i / 2 % 3 - 1) : 0);
        }
        const struct hec_experiment_plan plan = {.large_effects = true, .loss_steps = 320},
                                         most = {.large_effects = true, .loss_steps = 320, .pairs_most = 3};
        hec_experiment_judge(&plan, t, 6, &r);
        assert_true(r.look.step == HEC_LOOK_BETTER && r.done == !noisy);
        assert_int_equal(r.quality.verdict, noisy ? HEC_QUALITY_CANNOT_JUDGE : HEC_QUALITY_PASS);
        hec_experiment_judge(&plan, t, 8, &r);
        assert_true(r.done);
        hec_experiment_judge(&most, t, 6, &r);
        assert_true(r.done);
        hec_experiment_judge(&(struct hec_experiment_plan){.loss_steps = 320}, t, 6, &r); /* of an older receipt */
        assert_true(!r.done && r.look.step == HEC_LOOK_GO_ON);
    }
}

/* Two pairs of what was expected are enough where reruns are alike; a third follows where a fault might not be seen, in losses or in
 * gradients. */
TEST(two_pairs_where_reruns_are_alike) {
    struct hec_experiment_trial t[6];
    struct hec_experiment_result r;
    const struct hec_experiment_plan plan = {
        .large_effects = true, .gradients = true, .loss_steps = 320, .expected_cost = 0.52};
    struct hec_experiment_plan other = plan, fixed = plan;
    other.expected_cost = 0;
    fixed.pairs = 2;
    for (int differ = 0; differ < 4; differ++) {
        for (int i = 0; i < 6; i++) {
            double one = i / 2 % 2 ? 1 : -1;
            t[i] = trial(i / 2, i % 2, (i % 2 ? 50 : 100) + 0.1 * (i % 3), 10);
            for (int bin = 0; bin < HEC_EXPERIMENT_BINS; bin++)
                t[i].loss[bin] = 2 - bin / 31.0 + (differ == 1 ? 0.002 * one : 0);
            t[i].gradients = hec_gradients_none();
            t[i].gradients.first = t[i].gradients.part[3] = differ == 2 ? 0.1 * one : differ == 3 ? 1e-5 * one : 0;
        }
        hec_experiment_judge(&plan, t, 4, &r);
        assert_int_equal(r.look.step, HEC_LOOK_BETTER);
        assert_int_equal(r.quality.verdict, HEC_QUALITY_PASS);
        assert_int_equal(r.quality.blind, differ == 1 || differ == 2);
        assert_int_equal(r.done, !r.quality.blind);
        hec_experiment_judge(&plan, t, 6, &r);
        assert_true(r.done);
        hec_experiment_judge(&other, t, 4, &r);
        assert_true(!r.done && isinf(r.look.high));
        hec_experiment_judge(&fixed, t, 4, &r);
        assert_true(r.done);
    }
    /* and of other figures what follows from these */
    other = (struct hec_experiment_plan){.expected_cost = 0.5, .expected_speed = 2};
    const double ratios[HEC_QUANTITY_COUNT] = {[HEC_QUANTITY_JOULES_PER_UNIT] = 0.5,
                                               [HEC_QUANTITY_UNITS_PER_SECOND] = 2,
                                               [HEC_QUANTITY_SECONDS_PER_STEP] = 0.5,
                                               [HEC_QUANTITY_WATTS] = 1};
    for (int i = 0; i < 4; i++)
        t[i] = trial(i / 2, i % 2, i % 2 ? 50 : 100, i % 2 ? 5 : 10);
    hec_experiment_judge(&other, t, 4, &r);
    for (int q = 0; q < HEC_QUANTITY_COUNT; q++) {
        const struct hec_comparison *c = &r.quantity[q];
        assert_true(ratios[q] > 0
                        ? c->ratio_low < ratios[q] && c->ratio_high > ratios[q] && c->ratio_high < 1.15 * ratios[q]
                        : isnan(c->ratio_low));
    }
}

/* The interval around what was expected, by summing its mixture up: its ends are where the pairs are 40 times as likely by that. */
TEST(looks_at_what_was_expected) {
    const double logs[] = {-0.71, -0.69, -0.74, -0.7}, widths[] = {0.03, 0.2}, spreads[] = {0.003, 0.01, 0.03, 0.1};
    const double expected = log(0.48);
    double a[4], b[4];
    for (int i = 0; i < 4; i++) {
        a[i] = 7;
        b[i] = 7 * exp(logs[i]);
    }
    for (int n = 2; n <= 4; n++) {
        struct hec_sequential_options o = {.expected = 0.48};
        struct hec_look look = hec_sequential_look(a, b, n, &o), wide = hec_sequential_look(a, b, n, NULL);
        double mixture = 0;
        for (int w = 0; w < 2; w++)
            for (int s = 0; s < 4; s++) {
                enum { STEPS = 200000 };
                double sum = 0, reach = 10 * widths[w], step = 2 * reach / STEPS;
                for (int k = 0; k < STEPS; k++) {
                    double off = -reach + (k + 0.5) * step,
                           density = exp(-off * off / 2 / widths[w] / widths[w]) / widths[w];
                    for (int i = 0; i < n; i++)
                        density *= exp(-pow((logs[i] - expected - off) / spreads[s], 2) / 2) / spreads[s];
                    sum += density * step;
                }
                mixture += sum / 8 * pow(2 * M_PI, -(n + 1) / 2.0);
            }
        double at = log(look.high), squares = 0;
        for (int i = 0; i < n; i++)
            squares += pow(logs[i] - at, 2) / n;
        double likely = pow(2 * M_PI * M_E * squares, -n / 2.0);
        if (n == 2)
            assert_true(isinf(wide.high));
        if (look.high < wide.high) /* else the other interval is within */
            assert_near(mixture / likely / 40, 1, 1e-6);
        else
            assert_true(mixture / likely < 40);
        assert_near(look.low * look.high, look.ratio * look.ratio, 1e-12);
    }
}

/* What decides is what is measured in all pairs; all trials cost, and it pays after so many units. */
TEST(what_an_experiment_costs) {
    struct hec_experiment_trial t[13];
    struct hec_experiment_result r;
    int count = 0;
    t[count++] = trial(-1, 0, 500, 50);
    for (int pair = 0; pair < 5; pair++) {
        t[count++] = trial(pair, 1, 80 + 0.1 * (pair % 2), 8);
        t[count++] = trial(pair, 0, 100 + 0.1 * (pair % 3), 10);
    }
    t[count++] = trial(5, 0, 900, 90); /* an odd one */
    const struct hec_experiment_plan plan = {.spent_joules = 1000, .spent_seconds = 70};
    double joules = 1000 + 509 + 5 * (89 + 109) + 0.2 + 0.4 + 909, seconds = 70 + 51 + 5 * 20 + 91;
    assert_int_equal(hec_experiment_judge(&plan, t, count, &r), 0);
    assert_int_equal(r.pairs, 5);
    assert_int_equal(r.judged, HEC_QUANTITY_JOULES_PER_UNIT);
    assert_near(r.cost_joules, joules, 1e-9);
    assert_near(r.cost_seconds, seconds, 1e-9);
    const struct hec_comparison *c = &r.quantity[HEC_QUANTITY_JOULES_PER_UNIT],
                                *u = &r.quantity[HEC_QUANTITY_UNITS_PER_SECOND];
    assert_true(c->shown == HEC_SHOWN_BETTER && r.look.step == HEC_LOOK_BETTER && r.done);
    assert_near(r.joules.work, joules / -c->difference, 1e-6);
    assert_near(r.joules.soonest, joules / -c->difference_low, 1e-6);
    assert_near(r.joules.latest, joules / -c->difference_high, 1e-6);
    assert_near(u->ratio, 1.25, 1e-12); /* a unit takes 0.08 s in place of 0.1 */
    assert_true(u->shown == HEC_SHOWN_BETTER && r.seconds.shown);
    assert_near(r.seconds.work, seconds / 0.02, 1e-6);
    assert_near(r.seconds.soonest, seconds / (0.1 - 0.1 / u->ratio_high), 1e-6);
    assert_near(r.seconds.latest, seconds / (0.1 - 0.1 / u->ratio_low), 1e-6);
    assert_int_equal(r.quantity[HEC_QUANTITY_WATTS].shown, HEC_SHOWN_NOT);
    /* a whole run that did other work, or was ended, says nothing; its steady part does */
    t[1].run.units = 110.2;
    hec_experiment_judge(&plan, t, count, &r);
    assert_true(r.quantity[HEC_QUANTITY_JOULES].runs_a == 4 && c->runs_a == 5 &&
                r.judged == HEC_QUANTITY_JOULES_PER_UNIT);
    t[1].run.units = 110.1; /* as good as the same */
    t[3].stopped = true;
    hec_experiment_judge(&plan, t, count, &r);
    assert_int_equal(r.quantity[HEC_QUANTITY_JOULES].runs_a, 4);
    t[3].stopped = false;
    t[4].stopped = true;
    hec_experiment_judge(&plan, t, count, &r);
    assert_int_equal(r.quantity[HEC_QUANTITY_SECONDS].runs_a, 4);
    t[4].stopped = false;
    for (int i = 0; i < count; i++)
        t[i].run.units = t[i].steady.units = NAN;
    t[2].run.steps = 12; /* steps, where there are no units */
    hec_experiment_judge(&plan, t, count, &r);
    assert_int_equal(r.quantity[HEC_QUANTITY_JOULES].runs_a, 4);
    assert_true(r.judged == HEC_QUANTITY_SECONDS && !r.joules.shown && !r.seconds.shown);
    t[2].run.steps = 11;
    hec_experiment_judge(&plan, t, count, &r);
    assert_int_equal(r.judged, HEC_QUANTITY_JOULES);
    t[0].run.joules = NAN; /* a warm-up's count for the cost alone */
    hec_experiment_judge(&plan, t, count, &r);
    assert_true(r.judged == HEC_QUANTITY_JOULES && isnan(r.cost_joules) && isfinite(r.cost_seconds));
    for (int i = 0; i < count; i++) {
        t[i].steady.units = t[i].run.units = 100;
        t[i].steady.joules = t[i].run.joules = NAN;
    }
    hec_experiment_judge(&plan, t, count, &r);
    assert_int_equal(r.judged, HEC_QUANTITY_UNITS_PER_SECOND);
    assert_int_equal(r.look.step, HEC_LOOK_BETTER); /* more is */
    hec_experiment_judge(&plan, t, 0, &r);
    assert_true(r.pairs == 0 && r.judged == HEC_QUANTITY_SECONDS && r.cost_joules == 1000 && r.cost_seconds == 70 &&
                !r.done);
}

/* Losses and gradients of a trial go to its side; only steps of which every trial has a loss count. */
TEST(quality_of_experiments) {
    struct hec_experiment_trial t[6];
    struct hec_experiment_result r;
    for (int i = 0; i < 6; i++) {
        t[i] = trial(i / 2, i % 2, 100, 10);
        t[i].gradients = hec_gradients_none();
        t[i].gradients.all = t[i].gradients.first = (i % 2 ? 1.0 : 0.0) + 0.001 * i;
        for (int k = 0; k < HEC_EXPERIMENT_BINS; k++)
            t[i].loss[k] = 5 - 0.1 * k + 0.01 * i;
    }
    assert_int_equal(hec_experiment_judge(&(struct hec_experiment_plan){.margin = 0.5}, t, 6, &r), 0);
    assert_true(r.quality.verdict == HEC_QUALITY_PASS && r.quality.values == HEC_EXPERIMENT_BINS &&
                r.quality.margin == 0.5);
    assert_near(r.quality.parts[HEC_QUALITY_MEAN].difference * r.quality.scale, 0.01,
                1e-9); /* B's are 1, 3, 5; A's 0, 2, 4 */
    assert_true(isnan(r.quality.gradients.difference));
    hec_experiment_judge(&(struct hec_experiment_plan){.margin = 0.5, .gradients = true}, t, 6, &r);
    assert_true(r.quality.verdict == HEC_QUALITY_FAIL && r.quality.why == HEC_QUALITY_GRADIENT);
    assert_near(r.quality.gradients.difference, 1.001, 1e-9);
    t[4].loss[7] = NAN;
    hec_experiment_judge(&(struct hec_experiment_plan){.margin = 0.5}, t, 6, &r);
    assert_int_equal(r.quality.values, HEC_EXPERIMENT_BINS - 1);
    for (int i = 0; i < 6; i++) /* a large step up in the part that does not count is not seen */
        t[i].loss[7] += i % 2 ? 1000 : 0;
    hec_experiment_judge(&(struct hec_experiment_plan){.margin = 0.5}, t, 6, &r);
    assert_int_equal(r.quality.verdict, HEC_QUALITY_PASS);
}

/* ---- the quality gate ---- */

enum { STEPS = 40, OF_A = 4, OF_B = 3 };

/* A trajectory that falls from 10 + up by 5: the first tenth, the last quarter, and what is between. */
static void trajectory(double *loss, double up, double end_up) {
    for (int i = 0; i < STEPS; i++)
        loss[i] = i < 4 ? 10 + up : i < 30 ? 7 + up : 5 + up + end_up;
}

static void part_is(const struct hec_quality_difference *d, const double *a, const double *b, double scale,
                    double confidence) {
    double va = error_of(a, OF_A), vb = error_of(b, OF_B), both = va + vb, like = va * (1 + (double)OF_A / OF_B);
    double freedom = freedom_of(va, OF_A, vb, OF_B), off = (mean_of(b, OF_B) - mean_of(a, OF_A)) / scale;
    double half = hec_student_quantile(0.95, freedom) * sqrt(both) / scale; /* 95 % to either side */
    double shown = fmin(hec_student_quantile((1 + confidence) / 2, OF_A - 1) * sqrt(like),
                        hec_student_quantile((1 + confidence) / 2, freedom) * sqrt(both)) /
                   scale;
    assert_near(d->difference, off, 1e-12);
    assert_near(d->low, off - half, 1e-9);
    assert_near(d->high, off + half, 1e-9);
    assert_int_equal(d->shown, fabs(off) > shown);
}

TEST(losses) {
    static double loss[OF_A + OF_B][STEPS];
    struct hec_trajectory t[OF_A + OF_B];
    for (int shift = 0; shift < 6; shift++) { /* B's end is higher, by more and more */
        double start[OF_A + OF_B], whole[OF_A + OF_B], end[OF_A + OF_B];
        for (int k = 0; k < OF_A + OF_B; k++) {
            double up = 0.05 * (k * 5 % 7), end_up = k < OF_A ? 0 : 0.15 * shift;
            trajectory(loss[k], up, end_up);
            t[k] = (struct hec_trajectory){loss[k], STEPS + k}; /* the shortest counts */
            start[k] = 10 + up;
            end[k] = 5 + up + end_up;
            whole[k] = (26 * (7 + up) + 10 * end[k]) / 36; /* but the start */
        }
        struct hec_quality q;
        assert_int_equal(hec_quality_judge(t, OF_A, t + OF_A, OF_B, HEC_QUALITY_LOSS, 0.05, &q), 0);
        assert_true(q.values == STEPS && q.margin == 0.05);
        assert_near(q.scale, 5, 1e-12); /* what A's loss falls by */
        part_is(&q.parts[HEC_QUALITY_START], start, start + OF_A, 5, 0.999);
        part_is(&q.parts[HEC_QUALITY_MEAN], whole, whole + OF_A, 5, 0.99);
        part_is(&q.parts[HEC_QUALITY_END], end, end + OF_A, 5, 0.99);
        const struct hec_quality_difference *m = &q.parts[HEC_QUALITY_MEAN], *e = &q.parts[HEC_QUALITY_END];
        bool off = (e->shown && fabs(e->difference) > 0.05) || (m->shown && fabs(m->difference) > 0.05);
        bool within = m->high < 0.05 && e->high < 0.05 && m->difference > -0.05 && e->difference > -0.05;
        assert_int_equal(q.verdict, off ? HEC_QUALITY_FAIL : within ? HEC_QUALITY_PASS : HEC_QUALITY_CANNOT_JUDGE);
        if (shift > 1)
            assert_int_equal(q.part, HEC_QUALITY_END);
        /* one of B alone: as far off as a rerun of A would be */
        hec_quality_judge(t, OF_A, t + OF_A, 1, HEC_QUALITY_LOSS, 0.05, &q);
        double like = error_of(end, OF_A) * (1 + OF_A), difference = (end[OF_A] - mean_of(end, OF_A)) / 5;
        assert_near(q.parts[HEC_QUALITY_END].difference, difference, 1e-12);
        assert_near(q.parts[HEC_QUALITY_END].high, difference + hec_student_quantile(0.95, OF_A - 1) * sqrt(like) / 5,
                    1e-9);
    }
    /* a fall that is no larger than reruns differ, or than a hundredth of itself, is none */
    static const struct {
        double fall, spread;
        enum hec_quality_why why;
    } falls[] = {{1, 0.25, HEC_QUALITY_SPREAD},
                 {1, 0.3, HEC_QUALITY_A_FLAT},
                 {0.101, 0, HEC_QUALITY_WITHIN},
                 {0.099, 0, HEC_QUALITY_A_FLAT},
                 {-1, 0, HEC_QUALITY_A_FLAT}};
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        struct hec_quality q;
        for (int k = 0; k < OF_A; k++)
            for (int n = 0; n < STEPS; n++) /* their standard deviation is 2 / sqrt(3) of the spread */
                loss[k][n] = 10 - (n < 30 ? 0 : falls[i].fall) + (n < 30 ? 0 : falls[i].spread * (k % 2 ? 1 : -1));
        for (int n = 0; n < 4; n++)
            for (int k = 0; k < OF_A; k++)
                loss[k][n] = 10;
        hec_quality_judge(t, OF_A, t, OF_A, HEC_QUALITY_LOSS, 0.1, &q);
        assert_int_equal(q.why, falls[i].why);
        assert_near(q.scale, falls[i].fall, 1e-12);
    }
}

TEST(outputs) {
    static double value[5][HEC_QUALITY_VALUES_LEAST];
    struct hec_trajectory t[5];
    double square = 0, rms[5];
    enum { N = HEC_QUALITY_VALUES_LEAST };
    for (int k = 0; k < 5; k++) {
        t[k] = (struct hec_trajectory){value[k], N};
        for (int i = 0; i < N; i++)
            value[k][i] = 3 + i % 4 + 0.01 * (k < 3 ? (k + 1) * (i % 2 ? 1 : -1) : k * 5);
    }
    double middle = 0;
    for (int k = 0; k < 3; k++)
        middle += mean_of(value[k], N) / 3;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++)
            square += pow(value[k][i] - middle, 2) / 3 / N;
    for (int k = 0; k < 5; k++) {
        rms[k] = 0;
        for (int i = 0; i < N; i++) {
            double others = k < 3 ? (value[(k + 1) % 3][i] + value[(k + 2) % 3][i]) / 2
                                  : (value[0][i] + value[1][i] + value[2][i]) / 3;
            rms[k] += pow(value[k][i] - others, 2) / N;
        }
        rms[k] = sqrt(rms[k]);
    }
    struct hec_quality q;
    assert_int_equal(hec_quality_judge(t, 3, t + 3, 2, HEC_QUALITY_OUTPUT, 0, &q), 0);
    double scale = sqrt(square), va = error_of(rms, 3), vb = error_of(rms + 3, 2);
    double off = (mean_of(rms + 3, 2) - mean_of(rms, 3)) / scale;
    double half = hec_student_quantile(0.95, freedom_of(va, 3, vb, 2)) * sqrt(va + vb) / scale;
    assert_near(q.scale, scale, 1e-12);
    assert_near(q.parts[HEC_QUALITY_MEAN].difference, off, 1e-12);
    assert_near(q.parts[HEC_QUALITY_MEAN].low, off - half, 1e-9);
    assert_near(q.parts[HEC_QUALITY_MEAN].high, off + half, 1e-9);
    assert_true(isnan(q.parts[HEC_QUALITY_START].difference) && isnan(q.parts[HEC_QUALITY_END].difference));
    assert_true(q.part == HEC_QUALITY_MEAN && q.margin == HEC_QUALITY_MARGIN && q.values == N);
    t[4].count = N - 1;
    hec_quality_judge(t, 3, t + 3, 2, HEC_QUALITY_OUTPUT, 0, &q);
    assert_true(q.why == HEC_QUALITY_NOTHING && q.verdict == HEC_QUALITY_CANNOT_JUDGE && isnan(q.scale) &&
                q.values == N - 1);
}

TEST(norms_of_gradients) {
    static const struct {
        double all, first, part; /* log of B by A */
        bool fails;
        int gradient;
    } cases[] = {{0, 0, 0, false, HEC_GRADIENT_ALL},
                 {0.23, 0, 0, true, HEC_GRADIENT_ALL}, /* log 1.25 is 0.223 */
                 {0.21, 0, 0, false, HEC_GRADIENT_ALL},
                 {0, -0.23, 0, true, HEC_GRADIENT_AT_FIRST},
                 {0.1, 0.2, 0.5, false, HEC_GRADIENT_AT_FIRST}, /* the most in limits: 0.2 of 0.223 */
                 {0, 0, 0.7, true, HEC_GRADIENT_PART + 3},      /* log 2 is 0.693 */
                 {0, 0, -0.68, false, HEC_GRADIENT_PART + 3},
                 {0.3, 0, -0.9, true, HEC_GRADIENT_ALL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_gradients a[3], b[3];
        struct hec_quality q = {.verdict = HEC_QUALITY_PASS, .why = HEC_QUALITY_WITHIN};
        for (int k = 0; k < 3; k++) {
            a[k] = hec_gradients_none();
            a[k].all = 1 + 0.001 * k;
            a[k].first = 2 + 0.001 * k;
            a[k].part[3] = 1.5 + 0.001 * k;
            b[k] = a[k];
            b[k].all += cases[i].all;
            b[k].first += cases[i].first;
            b[k].part[3] += cases[i].part;
        }
        assert_int_equal(hec_quality_gradients(a, 3, b, 3, &q), 0);
        assert_int_equal(q.verdict, cases[i].fails ? HEC_QUALITY_FAIL : HEC_QUALITY_PASS);
        assert_int_equal(q.why, cases[i].fails ? HEC_QUALITY_GRADIENT : HEC_QUALITY_WITHIN);
        assert_int_equal(q.gradient, cases[i].gradient);
        double off = cases[i].gradient == HEC_GRADIENT_ALL        ? cases[i].all
                     : cases[i].gradient == HEC_GRADIENT_AT_FIRST ? cases[i].first
                                                                  : cases[i].part;
        double half = hec_student_quantile(0.95, 4) * 0.001 * sqrt(2 / 3.0);
        assert_near(q.gradients.difference, off, 1e-12);
        assert_near(q.gradients.low, off - half, 1e-9);
        assert_near(q.gradients.high, off + half, 1e-9);
    }
    struct hec_gradients none = hec_gradients_none();
    assert_true(isnan(none.all) && isnan(none.first));
    for (int i = 0; i < HEC_GRADIENT_PARTS; i++)
        assert_true(isnan(none.part[i]));
}

/* ---- the search ---- */

TEST(ratios_of_a_search) {
    const struct hec_search_trial t[] = {{.set = 0, .cost = 1, .speed = 10},
                                         {.set = 1, .cost = 0.5, .speed = 30},
                                         {.set = 2, .fate = HEC_SEARCH_FAILED, .cost = 1, .speed = 1},
                                         {.set = 0, .cost = 2, .speed = 20},
                                         {.set = 1, .cost = 0.5, .speed = NAN}};
    /* the base beside a trial is that between its neighbours: 1 and 2, 3 trials apart */
    double first = log(0.5) - log(2) / 3, second = log(0.5) - log(2);
    double s = log(2) / sqrt(2) / sqrt(2),
           base = log(2) / sqrt(2); /* set 1 costs the same twice; one of its speeds is not known */
    struct hec_search_ratio r = hec_search_cost(t, 5, 1);
    double half = hec_student_quantile(0.975, 2) * s * sqrt(1.0 / 2 + 0.5);
    assert_int_equal(r.trials, 2);
    assert_near(r.best, exp((first + second) / 2), 1e-12);
    assert_near(log(r.low), (first + second) / 2 - half, 1e-9);
    assert_near(log(r.high), (first + second) / 2 + half, 1e-9);
    r = hec_search_speed(t, 5, 1);
    assert_int_equal(r.trials, 1);
    half = hec_student_quantile(0.975, 1) * base * sqrt(1.0 + 0.5);
    assert_near(log(r.best), log(3) - log(2) / 3, 1e-12);
    assert_near(log(r.low), log(3) - log(2) / 3 - half, 1e-9);
    assert_near(log(r.high), log(3) - log(2) / 3 + half, 1e-9);
    r = hec_search_cost(t, 5, 2); /* failed */
    assert_true(r.trials == 0 && isnan(r.best) && isnan(r.low));
    r = hec_search_cost(t, 3, 1); /* one of the base says nothing of its spread */
    assert_true(r.trials == 1 && r.best == 0.5 && isnan(r.low) && isnan(r.high));
    r = hec_search_cost(t, 5, 0);
    assert_true(r.trials == 2 && isnan(r.low));
    assert_near(r.best, 1, 1e-12);
    r = hec_search_cost(t + 1, 3, 1); /* before the first of the base: as that was */
    assert_near(r.best, 0.25, 1e-12);
}

/* ---- a check ---- */

TEST(a_check) {
    const double limits[HEC_CHECKS] = {0.05, NAN};
    struct hec_experiment_trial a[4], b[3];
    struct hec_check check;
    struct hec_comparison c[HEC_QUANTITY_COUNT];
    struct hec_trial of_a[4], of_b[3];
    for (int i = 0; i < 4; i++) {
        a[i] = trial(i, 0, 100 + i, 10 + 0.1 * i);
        of_a[i] = (struct hec_trial){.whole = a[i].steady, .run = a[i].run, .pair = -1};
    }
    for (int i = 0; i < 3; i++) {
        b[i] = trial(i, 0, 104 + 2 * i, 11 + 0.1 * i);
        of_b[i] = (struct hec_trial){.whole = b[i].steady, .run = b[i].run, .pair = -1};
    }
    assert_int_equal(hec_check_judge(a, 4, b, 3, limits, &check), 0);
    hec_compare(of_a, 4, of_b, 3, NULL, c);
    const struct hec_check_part *j = &check.part[HEC_CHECK_JOULES], *s = &check.part[HEC_CHECK_TIME];
    const struct hec_comparison *cj = &c[HEC_QUANTITY_JOULES_PER_UNIT], *cs = &c[HEC_QUANTITY_UNITS_PER_SECOND];
    assert_true(j->asked && !s->asked && j->limit == 0.05 && isnan(s->limit));
    assert_true(j->quantity == HEC_QUANTITY_JOULES_PER_UNIT && s->quantity == HEC_QUANTITY_UNITS_PER_SECOND);
    assert_true(j->baseline == cj->a && j->now == cj->b && j->ratio == cj->ratio && j->low == cj->ratio_low &&
                j->high == cj->ratio_high);
    assert_near(s->baseline, 1 / cs->a, 1e-12);
    assert_near(s->now, 1 / cs->b, 1e-12);
    assert_near(s->ratio, 1 / cs->ratio, 1e-12);
    assert_near(s->low, 1 / cs->ratio_high, 1e-12);
    assert_near(s->high, 1 / cs->ratio_low, 1e-12);
    assert_true(check.trials_baseline == 4 && check.trials_now == 3 && check.state == HEC_CHECK_UNSURE &&
                j->state == HEC_CHECK_UNSURE);
    /* so many now that the interval, which shrinks with their number, leaves the limit out */
    double half = (log(j->high) - log(j->low)) / 2, off = fabs(log(1.05) - log(j->ratio)), share = 1 / 4.0 + 1 / 3.0;
    double wanted = share * off * off / half / half - 1 / 4.0; /* 1 / trials */
    assert_int_equal(j->trials_needed, wanted > 0.001 ? (int)ceil(1 / wanted) : 0);
}
