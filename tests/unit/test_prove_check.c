/* Has a program regressed? How often the answer is wrong in worlds whose truth is known, and what is said where little is. */
#include "prove/check.h"
#include "prove_worlds.h"
#include "unit.h"

#define RUNS_MOST 8

static struct hec_experiment_trial draw(const struct world *w, double level, int number) {
    struct hec_trial t = world_trial(w, level, -1);
    struct hec_experiment_trial out = {.pair = number, .steady = t.whole, .run = t.run};
    free(t.block);
    return out;
}

static struct hec_check judge(const struct world *w, double ratio, int baseline, double limit) {
    struct hec_experiment_trial a[RUNS_MOST], b[RUNS_MOST];
    const double limits[HEC_CHECKS] = {limit, NAN};
    struct hec_check check;
    for (int i = 0; i < baseline; i++)
        a[i] = draw(w, 1, i);
    for (int i = 0; i < w->runs; i++)
        b[i] = draw(w, ratio, i);
    assert_int_equal(hec_check_judge(a, baseline, b, w->runs, limits, &check), 0);
    return check;
}

/* Where the truth is the limit itself either answer is wrong: each in 2.5 % at most, seen as up to 4.5 % among 400. */
TEST(wrong_answers_are_rare) {
    static const struct {
        struct world world;
        int baseline;
        double ok_within, bad_regressed; /* least per cent: no difference is within 3 %, 8 % more is not */
    } cases[] = {
        {{.runs = 3, .blocks = 4, .noise = 0.01, .between = 0.003}, 3, 85, 95},
        {{.runs = 8, .blocks = 4, .noise = 0.01, .between = 0.01}, 8, 85, 99},
        {{.runs = 5, .blocks = 4, .noise = 0.05, .persistent = 0.5, .between = 0.02}, 3, 0, 20},
    };
    enum { EXPERIMENTS = 400 };
    world_state = 11;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int within = 0, regressed = 0, ok = 0, bad = 0;
        for (int i = 0; i < EXPERIMENTS; i++) {
            enum hec_check_state at = judge(&cases[k].world, 1.03, cases[k].baseline, 0.03).state;
            within += at == HEC_CHECK_WITHIN;
            regressed += at == HEC_CHECK_REGRESSED;
            ok += judge(&cases[k].world, 1, cases[k].baseline, 0.03).state == HEC_CHECK_WITHIN;
            bad += judge(&cases[k].world, 1.08, cases[k].baseline, 0.03).state == HEC_CHECK_REGRESSED;
        }
        printf(
            "%d against %d, runs differ by %.1f %%: at the limit within %.1f %%, regressed %.1f %%; no difference is within "
            "in %.1f %%, 8 %% more regressed in %.1f %%\n",
            cases[k].world.runs, cases[k].baseline, 100 * cases[k].world.between, 100.0 * within / EXPERIMENTS,
            100.0 * regressed / EXPERIMENTS, 100.0 * ok / EXPERIMENTS, 100.0 * bad / EXPERIMENTS);
        assert_true(within <= 0.045 * EXPERIMENTS && regressed <= 0.045 * EXPERIMENTS);
        assert_true(ok >= 0.01 * cases[k].ok_within * EXPERIMENTS);
        assert_true(bad >= 0.01 * cases[k].bad_regressed * EXPERIMENTS);
    }
}

/* As many trials as it asks for are about enough. */
TEST(trials_needed_are_enough) {
    struct world w = {.runs = 3, .blocks = 4, .noise = 0.01, .between = 0.01};
    int asked = 0, told = 0;
    world_state = 5;
    for (int i = 0; i < 400; i++) {
        struct hec_check check = judge(&w, 1, 8, 0.03);
        asked += check.state == HEC_CHECK_UNSURE;
        told += check.part[0].trials_needed > 3 && check.part[0].trials_needed <= 40;
    }
    assert_true(asked > 20 && told > asked / 2);
}

static struct hec_experiment_trial plain(int pair, int side, double joules, double seconds) {
    return (struct hec_experiment_trial){
        .pair = pair, .side = side, .steady = {seconds, joules, 100, 10}, .run = {seconds + 1, joules + 9, 110, 11}};
}

TEST(what_counts) {
    const double both[HEC_CHECKS] = {0.03, 0.05};
    struct hec_experiment_trial a[] = {plain(-1, 0, 900, 90), plain(0, 0, 100, 10), plain(0, 1, 900, 90),
                                       plain(1, 0, 101, 10.1)},
                                b[] = {plain(-1, 0, 500, 99), plain(0, 0, 100.4, 10.9), plain(1, 0, 100.5, 11)};
    struct hec_check check;
    hec_check_judge(a, 4, b, 3, both, &check);
    assert_int_equal(check.trials_baseline, 2); /* neither warm-ups nor what was B there */
    assert_int_equal(check.trials_now, 2);
    assert_int_equal(check.part[HEC_CHECK_JOULES].quantity, HEC_QUANTITY_JOULES_PER_UNIT);
    assert_true(fabs(check.part[HEC_CHECK_JOULES].ratio - 200.9 / 201) < 1e-12);
    assert_true(fabs(check.part[HEC_CHECK_TIME].ratio - 21.9 / 20.1) < 1e-12); /* more is worse, of speed too */
    assert_true(check.part[HEC_CHECK_TIME].low < check.part[HEC_CHECK_TIME].ratio);
    for (int k = 0; k < HEC_CHECKS; k++) /* both as time, or as joules, of one unit */
        assert_true(fabs(check.part[k].now / check.part[k].baseline / check.part[k].ratio - 1) < 0.01);
    /* without units: of whole trials, unless they were ended early */
    for (int i = 0; i < 4; i++)
        a[i].steady.units = NAN;
    hec_check_judge(a, 4, b, 3, both, &check);
    assert_int_equal(check.part[HEC_CHECK_TIME].quantity, HEC_QUANTITY_SECONDS);
    assert_true(fabs(check.part[HEC_CHECK_TIME].ratio - 23.9 / 22.1) < 1e-12);
    for (int i = 0; i < 3; i++)
        b[i].stopped = true;
    hec_check_judge(a, 4, b, 3, both, &check);
    assert_int_equal(check.state, HEC_CHECK_UNSURE);
    assert_true(isnan(check.part[HEC_CHECK_TIME].ratio) && check.part[HEC_CHECK_TIME].trials_needed == 0);
}

/* Who looks after each pair has intervals that hold at every look; who has planned the pairs, those of t. */
TEST(looking_costs) {
    struct hec_experiment_trial t[8];
    struct hec_experiment_result looked, planned;
    for (int i = 0; i < 4; i++) {
        t[2 * i] = plain(i, 0, 100 + 0.3 * i, 10 + 0.03 * i);
        t[2 * i + 1] = plain(i, 1, 95 + 0.2 * (i % 2), 9.5 + 0.02 * (i % 2));
    }
    hec_experiment_judge(&(struct hec_experiment_plan){.seed = 1}, t, 8, &looked);
    hec_experiment_judge(&(struct hec_experiment_plan){.seed = 1, .pairs = 4}, t, 8, &planned);
    assert_int_equal(looked.judged, HEC_QUANTITY_JOULES_PER_UNIT);
    const struct hec_comparison *wide = &looked.quantity[looked.judged], *narrow = &planned.quantity[looked.judged];
    assert_true(wide->ratio_low == looked.look.low && wide->ratio_high == looked.look.high);
    double logs = 0; /* the mean of the pairs' ratios; without looking that of the means */
    for (int i = 0; i < 4; i++)
        logs += log((9.5 + 0.02 * (i % 2)) / (10 + 0.03 * i)) / 4;
    assert_near(wide->ratio, exp(logs), 1e-9);
    assert_near(narrow->ratio, 9.51 / 10.045, 1e-4);
    assert_true(wide->ratio_high / wide->ratio_low > narrow->ratio_high / narrow->ratio_low);
    assert_true(planned.done);
    for (int q = 0; q < HEC_QUANTITY_COUNT; q++) /* a difference is what its ratio makes of A, at its bounds too */
        for (int k = 0; k < 2; k++) {
            const struct hec_comparison *c = k ? &planned.quantity[q] : &looked.quantity[q];
            if (c->shown == HEC_SHOWN_UNKNOWN)
                continue;
            assert_true(c->difference_low <= c->difference && c->difference <= c->difference_high);
            if (k)
                continue;
            assert_near(c->difference, c->a * (c->ratio - 1), 1e-9 * c->a);
            assert_near(c->difference_low, c->a * (c->ratio_low - 1), 1e-9 * c->a);
            assert_near(c->difference_high, c->a * (c->ratio_high - 1), 1e-9 * c->a);
        }
}

TEST(states) {
    struct hec_experiment_trial a[4], b[4];
    struct hec_check check;
    for (int i = 0; i < 4; i++) {
        a[i] = plain(i, 0, 100 + 0.1 * i, 10 + 0.01 * i);
        b[i] = plain(i, 0, 102 + 0.1 * i, 11 + 0.01 * i);
    }
    static const struct {
        double joules, time;
        enum hec_check_state state;
    } cases[] = {{0.03, NAN, HEC_CHECK_WITHIN},     {0.01, NAN, HEC_CHECK_REGRESSED},  {0.02, NAN, HEC_CHECK_UNSURE},
                 {0.03, 0.05, HEC_CHECK_REGRESSED}, {0.02, 0.05, HEC_CHECK_REGRESSED}, {0.02, 0.2, HEC_CHECK_UNSURE},
                 {0.03, 0.2, HEC_CHECK_WITHIN},     {NAN, 0.2, HEC_CHECK_WITHIN}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const double limits[HEC_CHECKS] = {cases[k].joules, cases[k].time};
        hec_check_judge(a, 4, b, 4, limits, &check);
        assert_int_equal(check.state, cases[k].state);
    }
    const double limits[HEC_CHECKS] = {0.03, NAN};
    for (int i = 0; i < 4; i++)
        a[i].steady.joules = a[i].run.joules = NAN;
    hec_check_judge(a, 4, b, 4, limits, &check);
    assert_int_equal(check.state, HEC_CHECK_UNSURE); /* nothing measured is no pass */
    hec_check_judge(a, 0, b, 0, limits, &check);
    assert_int_equal(check.state, HEC_CHECK_UNSURE);
}
