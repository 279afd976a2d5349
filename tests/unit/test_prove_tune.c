/* The tuner on programs whose truth is known: it finds the best limit, its trials cost no more than they may at any step, and it claims
 * nothing where nothing is to be had (HEC_TEST_RUNS, set for sanitizers: few runs). */
#include "tests/unit/tuned_program.h"
#include "unit.h"

#include <stdlib.h>

#define STEPS 6000.0

static int runs_of(int all) {
    return getenv("HEC_TEST_RUNS") ? 4 : all;
}

/* As an A40 under a training that fills it: 200 W saves 14 % and is 3 % slower, 175 W is too slow, 100 W three times as slow. */
static const struct tuned_program busy = {9,
                                          {{300, 1, 219},
                                           {275, 1.009, 217},
                                           {250, 1.01, 209},
                                           {225, 1.02, 201},
                                           {200, 1.032, 182},
                                           {175, 1.076, 161},
                                           {150, 1.3, 142},
                                           {125, 1.98, 119},
                                           {100, 3.2, 107}},
                                          NULL,
                                          0};

TEST(the_ledger_charges_before_a_trial_begins) {
    struct hec_harm harm = {.most = 0.01};
    assert_false(hec_harm_allows(&harm, 99, 1));
    assert_true(hec_harm_allows(&harm, 100.1, 1));
    hec_harm_charge(&harm, 0.5);
    hec_harm_charge(&harm, -3); /* a gain is no credit */
    assert_false(hec_harm_allows(&harm, 149, 1));
    assert_true(hec_harm_allows(&harm, 150.1, 1));
}

/* Trying is charged with the most that it can have cost, so it is rather too little than too much. */
TEST(what_all_of_it_has_saved) {
    int inside = 0, held = 0, runs = runs_of(100);
    for (int i = 0; i < runs; i++) {
        struct tuned t = tuned_play(&busy, STEPS);
        struct hec_tune_net net = hec_tune_net(&t.tune);
        if (isnan(net.share))
            continue;
        held++;
        inside += net.low <= t.saved && t.saved <= net.high;
        assert_true(fabs(net.share - t.saved) < 0.03 && net.low < net.share && net.share < net.high);
        assert_true(net.held > 0.5 && net.held < 1);
    }
    assert_true(held >= runs * 9 / 10 && inside >= held * 9 / 10);
    struct tuned idle = tuned_play(&(struct tuned_program){2, {{300, 1, 100}, {200, 1, 100}}, NULL, 0}, 1000);
    assert_true(isnan(hec_tune_net(&idle.tune).share));
}

TEST(what_it_has_saved_is_net_of_what_trying_can_have_cost) {
    struct hec_tune tune;
    hec_tune_begin(&tune, &(struct hec_tune_plan){.settings = 2,
                                                  .watts = {300, 270},
                                                  .harm_most = 0.01,
                                                  .slowdown_most = 0.05,
                                                  .alpha = 0.05,
                                                  .block_s = 10});
    tune.phase = HEC_TUNE_HOLDS;
    tune.at = 1;
    tune.saving = (struct hec_look){.ratio = 0.9, .low = 0.8, .high = 0.95};
    tune.harm.spent = 0.5;
    hec_tune_block(&tune,
                   &(struct hec_tune_block){
                       .whole_s = 10, .whole_units = 10, .seconds = 8, .units = 8, .joules = 2400, .watts = 300});
    hec_tune_block(
        &tune,
        &(struct hec_tune_block){
            .setting = 1, .whole_s = 10, .whole_units = 10, .seconds = 8, .units = 8, .joules = 2160, .watts = 270});
    struct hec_tune_net net = hec_tune_net(&tune);
    assert_true(fabs(net.share - (300 - 150) / (5700.0 + 300)) <
                1e-9); /* 2700 J at 0.9 were 3000; half a second at 300 W */
    assert_true(fabs(net.low - (2700 / 0.95 - 2700 - 150) / (3000 + 2700 / 0.95)) < 1e-9);
    assert_true(fabs(net.high - (2700 / 0.8 - 2700 - 150) / (3000 + 2700 / 0.8)) < 1e-9);
    assert_true(net.held == 0.5);
}

TEST(nothing_is_tried_that_the_rest_cannot_pay_for) {
    for (int whole = 0; whole < 3; whole++) {
        const double whole_s[] = {0, 1119, 1121};
        struct hec_tune tune;
        hec_tune_begin(&tune, &(struct hec_tune_plan){.settings = 2,
                                                      .watts = {300, 200},
                                                      .harm_most = 0.01,
                                                      .slowdown_most = 0.05,
                                                      .alpha = 0.05,
                                                      .block_s = 10,
                                                      .whole_s = whole_s[whole]});
        for (int i = 0; i < 4; i++)
            hec_tune_block(&tune, &(struct hec_tune_block){.whole_s = 10,
                                                           .whole_units = 10,
                                                           .seconds = 8,
                                                           .units = 8,
                                                           .joules = 2400,
                                                           .watts = 300,
                                                           .step_s = 1});
        assert_int_equal(hec_tune_next(&tune, 1000).tries, whole_s[whole] != 1119);
    }
}

TEST(it_finds_the_best_limit_that_is_not_too_slow) {
    int best = 0, runs = runs_of(40);
    for (int i = 0; i < runs; i++) {
        struct tuned t = tuned_play(&busy, STEPS);
        assert_false(t.violated);
        assert_true(t.tune.harm.spent <= TUNED_HARM_MOST * STEPS);
        best += t.setting == 4;
        if (t.setting != 4)
            continue;
        assert_true(t.tune.saving.high < 1 && t.tune.saving.low > 0.8);
        assert_in_range((int64_t)(1e4 * hec_tune_slowdown(&t.tune)), 100, 500);
    }
    assert_true(best >= runs * 9 / 10);
}

/* One step down the ladder, and a step takes five times as long: the block is cut. */
TEST(a_limit_that_is_far_too_low_is_cut_in_its_first_steps) {
    static const struct tuned_program cliff = {
        4, {{300, 1, 219}, {250, 1.001, 218}, {200, 5, 150}, {150, 9, 120}}, NULL, 0};
    for (int i = 0; i < runs_of(40); i++) {
        struct tuned t = tuned_play(&cliff, STEPS);
        assert_false(t.violated);
        assert_int_equal(t.setting, 0);
        assert_true(t.tune.screened[2].out && t.tune.screened[3].out && t.tune.screened[3].pairs == 0);
    }
}

/* It draws less than the lowest limit: whatever was measured under one, the limit did not do it. */
TEST(a_limit_that_is_never_reached_is_not_tried) {
    static const struct tuned_program idle = {3, {{300, 1, 95}, {200, 0.9, 90}, {100, 0.85, 80}}, NULL, 0};
    struct tuned t = tuned_play(&idle, STEPS);
    assert_int_equal(t.tune.phase, HEC_TUNE_RESTS);
    assert_true(t.lost == 0 && t.tune.harm.spent == 0);
}

TEST(where_no_limit_does_anything_nothing_is_claimed) {
    struct tuned_program sham = busy;
    int claimed = 0, runs = runs_of(400);
    for (int i = 1; i < sham.count; i++)
        sham.rows[i] = (struct tuned_row){busy.rows[i].limit, 1, 219};
    for (int i = 0; i < runs; i++) {
        struct tuned t = tuned_play(&sham, 2000);
        claimed += t.claimed || t.tune.restarts > 0;
    }
    assert_true(claimed <= runs / 20);
}

/* What was held pays no more: the program waits for something else now, and each watt less makes it slower. */
TEST(a_held_setting_is_left_when_it_pays_no_more) {
    struct tuned_program then = {9, {{300, 1, 219}}, NULL, 0};
    for (int i = 1; i < busy.count; i++)
        then.rows[i] = (struct tuned_row){busy.rows[i].limit, 1 + 0.12 * i, 219 / (1 + 0.06 * i)};
    struct tuned_program program = busy;
    program.then = &then;
    program.then_from = STEPS;
    for (int i = 0; i < runs_of(20); i++) {
        struct tuned t = tuned_play(&program, 2 * STEPS);
        assert_int_equal(t.setting, 0);
    }
}

/* Twice as fast from some step on: what was found was found for another program, and is looked for again. */
TEST(another_pace_is_another_program) {
    struct tuned_program faster = busy, program = busy;
    for (int i = 0; i < busy.count; i++)
        faster.rows[i].seconds = busy.rows[i].seconds / 2;
    program.then = &faster;
    program.then_from = STEPS;
    int found = 0, runs = runs_of(20);
    for (int i = 0; i < runs; i++) {
        struct tuned t = tuned_play(&program, 3 * STEPS);
        assert_true(t.tune.restarts >= 1);
        assert_false(t.violated);
        found += t.setting == 4;
    }
    assert_true(found >= runs * 8 / 10);
}
