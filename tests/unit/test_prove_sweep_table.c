/* The table of a sweep against plain formulas: figures and ratios with their intervals, what is known of each setting, and what is
 * recommended. */
#include "prove/student.h"
#include "prove/sweep_table.h"
#include "prove_formulas.h"
#include "unit.h"

static struct hec_sweep_trial swept(int arm, int round, double seconds, double joules) {
    return (struct hec_sweep_trial){.arm = arm,
                                    .round = round,
                                    .steady = {seconds, joules, 100, 10},
                                    .run = {seconds + 1, joules + 9, NAN, NAN},
                                    .step_p50 = seconds / 20,
                                    .step_p99 = seconds / 10,
                                    .devices = 2};
}

static void interval_is(struct hec_sweep_interval got, const double *logs, int n, double confidence) {
    double mean = mean_of(logs, n),
           half = n > 1 ? hec_student_quantile((1 + confidence) / 2, n - 1) * sqrt(error_of(logs, n)) : NAN;
    assert_near(log(got.value), mean, 1e-12);
    if (n > 1) {
        assert_near(log(got.low), mean - half, 1e-9);
        assert_near(log(got.high), mean + half, 1e-9);
    }
}

TEST(figures_of_a_sweep) {
    enum { ARMS = 3, ROUNDS = 3 };
    struct hec_sweep_plan plan = {.parameters = 1,
                                  .arms = ARMS,
                                  .max_slowdown = NAN,
                                  .max_p99 = NAN,
                                  .dollars_per_joule = 0.001,
                                  .dollars_per_device_second = 0.01};
    struct hec_sweep_trial t[ARMS * ROUNDS + 3];
    struct hec_sweep_table table;
    double seconds[ARMS][ROUNDS], joules[ARMS][ROUNDS];
    int count = 0;
    plan.parameter[0].count = ARMS;
    t[count++] = swept(0, -1, 1, 1); /* what does not count */
    t[count] = swept(1, 0, 1, 1);
    t[count++].end = HEC_SWEEP_FAILED;
    t[count++] = swept(ARMS, 0, 1, 1);
    for (int round = 0; round < ROUNDS; round++)
        for (int arm = 0; arm < ARMS; arm++) {
            seconds[arm][round] = (10 - 2 * arm) * (1 + 0.01 * ((arm * 3 + round * 2) % 4));
            joules[arm][round] = (100 + 20 * arm) * (1 + 0.02 * ((arm + round * 5) % 3));
            t[count++] = swept(arm, round, seconds[arm][round], joules[arm][round]);
        }
    for (int objective = 0; objective < HEC_SWEEP_OBJECTIVES; objective++) {
        plan.objective = objective;
        hec_sweep_table_make(&plan, t, count, &table);
        assert_true(table.rounds == ROUNDS && !table.by_run && (int)table.objective == objective);
        assert_near(table.confidence[HEC_SWEEP_OF_ONE], 0.95, 1e-12);
        assert_near(table.confidence[HEC_SWEEP_OF_ALL], 0.975, 1e-12); /* of two comparisons with the first */
        for (int arm = 0; arm < ARMS; arm++)
            for (int figure = 0; figure < HEC_SWEEP_FIGURES; figure++) {
                double logs[ROUNDS], first[ROUNDS];
                for (int pass = 0; pass < 2; pass++)
                    for (int round = 0; round < ROUNDS; round++) {
                        double s = seconds[pass ? 0 : arm][round] / 100, j = joules[pass ? 0 : arm][round] / 100;
                        const double value[] = {1 / s,
                                                j,
                                                j / s,
                                                5 * s,
                                                10 * s,
                                                objective == HEC_SWEEP_BY_JOULES ? j
                                                : objective == HEC_SWEEP_BY_TIME ? s
                                                : objective == HEC_SWEEP_BY_EDP  ? j * s
                                                                                 : j * 0.001 + s * 2 * 0.01};
                        (pass ? first : logs)[round] = log(value[figure]);
                    }
                interval_is(hec_sweep_figure(&table, figure, arm), logs, ROUNDS, 0.95);
                for (int round = 0; round < ROUNDS; round++)
                    first[round] = logs[round] - first[round];
                if (arm == 0) {
                    struct hec_sweep_interval r = hec_sweep_ratio(&table, figure, 0, 0, HEC_SWEEP_OF_ONE);
                    assert_true(r.value == 1 && r.low == 1 && r.high == 1);
                    continue;
                }
                interval_is(hec_sweep_ratio(&table, figure, arm, 0, HEC_SWEEP_OF_ONE), first, ROUNDS, 0.95);
                interval_is(hec_sweep_ratio(&table, figure, arm, 0, HEC_SWEEP_OF_ALL), first, ROUNDS, 0.975);
            }
        assert_int_equal(hec_sweep_best(&table, HEC_SWEEP_SPEED, 7), 2);
        assert_int_equal(hec_sweep_best(&table, HEC_SWEEP_SPEED, 3), 1);
        assert_int_equal(hec_sweep_best(&table, HEC_SWEEP_JOULES, 7), 0);
        assert_int_equal(hec_sweep_best(&table, HEC_SWEEP_JOULES, 6), 1);
        assert_int_equal(hec_sweep_best(&table, HEC_SWEEP_JOULES, 0), -1);
    }
    /* two settings are one comparison */
    plan.arms = 2;
    hec_sweep_table_make(&plan, t, count, &table);
    assert_near(table.confidence[HEC_SWEEP_OF_ALL], 0.95, 1e-12);
}

/* One round: by blocks within the trials; a product is known as badly as if both were off together. */
TEST(one_round_of_a_sweep) {
    struct hec_sweep_plan plan = {.parameters = 1,
                                  .arms = 2,
                                  .max_slowdown = NAN,
                                  .max_p99 = NAN,
                                  .dollars_per_joule = 0.001,
                                  .dollars_per_device_second = 0.01};
    struct hec_sweep_trial t[2] = {swept(0, 0, 0, 0), swept(1, 0, 0, 0)};
    struct hec_sweep_table table;
    struct hec_spread time[2], joules[2], watts[2];
    plan.parameter[0].count = 2;
    for (int k = 0; k < 2; k++) {
        t[k].block_count = 40;
        t[k].steady = (struct hec_trial_block){0, 0, 0, 0};
        for (int i = 0; i < 40; i++) {
            t[k].block[i] = (struct hec_trial_block){1 + 0.03 * (i * (7 + k) % 5), 50 + i * 11 % (7 + k), 10, 5};
            t[k].steady.seconds += t[k].block[i].seconds;
            t[k].steady.joules += t[k].block[i].joules;
            t[k].steady.units += 10;
            t[k].steady.steps += 5;
        }
        const struct hec_trial of = {
            .whole = t[k].steady, .run = t[k].run, .block = t[k].block, .block_count = 40, .pair = -1};
        hec_quantity_within(HEC_QUANTITY_UNITS_PER_SECOND, &of, &time[k]);
        hec_quantity_within(HEC_QUANTITY_JOULES_PER_UNIT, &of, &joules[k]);
        hec_quantity_within(HEC_QUANTITY_WATTS, &of, &watts[k]);
    }
    for (int objective = 0; objective < HEC_SWEEP_OBJECTIVES; objective++) {
        struct hec_spread expected[2];
        plan.objective = objective;
        hec_sweep_table_make(&plan, t, 2, &table);
        for (int k = 0; k < 2; k++) {
            double j = t[k].steady.joules * 0.001, s = t[k].steady.seconds * 2 * 0.01, of_joules = j / (j + s);
            double deviation = objective == HEC_SWEEP_BY_EDP
                                   ? sqrt(joules[k].variance) + sqrt(time[k].variance)
                                   : of_joules * sqrt(joules[k].variance) + (1 - of_joules) * sqrt(time[k].variance);
            expected[k] = objective == HEC_SWEEP_BY_JOULES ? joules[k]
                          : objective == HEC_SWEEP_BY_TIME
                              ? time[k]
                              : (struct hec_spread){deviation * deviation, fmin(joules[k].freedom, time[k].freedom)};
            const struct hec_spread *of[] = {&time[k], &joules[k], &watts[k], NULL, NULL, &expected[k]};
            for (int figure = 0; figure < HEC_SWEEP_FIGURES; figure++) {
                struct hec_sweep_interval got = hec_sweep_figure(&table, figure, k);
                assert_true(of[figure] || (isnan(got.low) && isnan(got.high)));
                if (of[figure])
                    assert_near(log(got.high / got.value), hec_spread_half(*of[figure], 0.95), 1e-9);
                if (of[figure])
                    assert_near(log(got.value / got.low), hec_spread_half(*of[figure], 0.95), 1e-9);
            }
        }
        struct hec_sweep_interval ratio = hec_sweep_ratio(&table, HEC_SWEEP_OBJECTIVE, 1, 0, HEC_SWEEP_OF_ONE);
        assert_near(log(ratio.high / ratio.value), hec_spread_half(hec_spread_sum(expected[0], expected[1]), 0.95),
                    1e-9);
    }
}

/* What is known of each setting: how it ended, what it left free where it left least, and what all trials cost. */
TEST(settings_of_a_sweep) {
    struct hec_sweep_plan plan = {
        .parameters = 1, .arms = 4, .max_slowdown = NAN, .max_p99 = NAN, .objective = HEC_SWEEP_BY_TIME};
    static struct hec_sweep_result r;
    struct hec_sweep_trial t[] = {swept(0, -1, 10, 100), swept(0, 0, 10, 100), swept(0, 1, 10, 100),
                                  swept(1, 0, 9, 90),    swept(1, 1, 9, 90),   swept(2, 0, 8, 80)};
    static const double memory[][2] = {{99, 100}, {40, 100}, {70, 80}, {10, 100}, {NAN, 100}, {5, 50}},
                        steps[] = {1, 200, 150, 0, 50, NAN};
    plan.parameter[0].count = 4;
    for (int i = 0; i < 6; i++) {
        t[i].memory_bytes = memory[i][0];
        t[i].memory_total = memory[i][1];
        t[i].steps_seen = steps[i];
    }
    t[4].end = HEC_SWEEP_HUNG;
    t[4].exit_status = 9;
    hec_sweep_judge(&plan, t, 6, &r);
    assert_true(r.arms == 4 && r.rounds == 2 && r.between_runs && r.measured && !r.by_run &&
                r.objective == HEC_SWEEP_BY_TIME);
    static const enum hec_sweep_end ends[] = {HEC_SWEEP_RAN, HEC_SWEEP_HUNG, HEC_SWEEP_RAN, HEC_SWEEP_NOT_RUN};
    static const int trials[] = {2, 1, 1, 0}, status[] = {0, 9, 0, 0};
    for (int i = 0; i < 4; i++)
        assert_true(r.arm[i].end == ends[i] && r.arm[i].trials == trials[i] && r.arm[i].exit_status == status[i]);
    assert_true(r.arm[0].memory_bytes == 70 && r.arm[0].memory_total == 80 && r.arm[1].memory_bytes == 10 &&
                isnan(r.arm[3].headroom));
    assert_near(r.arm[0].headroom, 0.125, 1e-12);
    assert_near(r.arm[1].headroom, 0.9, 1e-12);
    assert_near(r.arm[2].headroom, 0.9, 1e-12);
    assert_true(r.arm[0].steps_seen == 150 && r.arm[1].steps_seen == 0 && r.arm[2].steps_seen == 0 &&
                isinf(r.arm[3].steps_seen));
    assert_near(r.cost_seconds, 3 * 11 + 2 * 10 + 9, 1e-9);
    assert_near(r.cost_joules, 3 * 109 + 99 + 89, 1e-9); /* of those that ran */
    assert_int_equal(r.arm[1].passed, HEC_SWEEP_PASSED_END);
    assert_int_equal(r.arm[3].passed, HEC_SWEEP_PASSED_END);
}

/* A smaller setting that is as good is taken, unless it alone is not shown to be better than the first. */
TEST(what_a_sweep_recommends) {
    static const struct {
        double smaller[3], best[3];
        double first; /* value of the first setting */
        int recommended;
        bool kept;
    } cases[] = {{{9.05, 9.06, 9.04}, {9, 9.01, 8.99}, 128, 1, false}, /* within the tie */
                 {{9.25, 9.26, 9.24}, {9, 9.01, 8.99}, 128, 2, false},
                 {{9.1, 8.2, 9.8}, {9, 9.01, 8.99}, 128, 2, false}, /* not shown */
                 {{9.1, 8.2, 9.8}, {9.1, 8.1, 9.8}, 128, 1, false}, /* it is no worse, and smaller than the first */
                 {{9.1, 8.2, 9.8}, {9.1, 8.1, 9.8}, 16, 0, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_sweep_plan plan = {
            .parameters = 1, .arms = 3, .max_slowdown = NAN, .max_p99 = NAN, .objective = HEC_SWEEP_BY_TIME};
        static struct hec_sweep_result r;
        struct hec_sweep_trial t[9];
        const double values[] = {cases[i].first, 32, 64};
        int larger = cases[i].first > 64;
        int count = 0;
        plan.parameter[0].count = 3;
        plan.parameter[0].ordered = true;
        memcpy(plan.parameter[0].value, values, sizeof values);
        for (int round = 0; round < 3; round++) {
            t[count++] = swept(0, round, 10 + 0.01 * round, 100);
            t[count++] = swept(1, round, cases[i].smaller[round], 100);
            t[count++] = swept(2, round, cases[i].best[round], 100);
        }
        hec_sweep_judge(&plan, t, count, &r);
        assert_int_equal(r.best, 2);
        assert_int_equal(r.recommended, cases[i].recommended);
        assert_int_equal(r.kept, cases[i].kept);
        assert_true(r.line[0].count == 3 && r.line[0].arm[larger ? 2 : 0] == 0 && r.line[0].arm[larger ? 0 : 1] == 1 &&
                    r.line[0].arm[larger ? 1 : 2] == 2 && r.line[0].best == 2);
        for (int arm = 0; arm < 3; arm++)
            assert_int_equal(r.arm[arm].passed, HEC_SWEEP_ELIGIBLE);
    }
}
