/* How GPUs share a budget of watts, on devices whose truth is known: the budget holds at every moment, who comes first is served first, and
 * what a class may lose in speed is turned into fewer joules. */
#include "act/budget.h"
#include "bench/uniform.h"
#include "unit.h"

#define GPUS 8
#define LEAST_W 200.0
#define OWN_W 700.0

static struct hec_budget budget;
static struct hec_budget_reading readings[GPUS];
static double limits[GPUS];

/* A program: without a limit it draws `full_w`; cores make up `cores` of its time. Power above `idle_w` goes with the clock's third
 * power. */
struct program {
    double full_w, cores;
    bool counts;   /* its traffic is read */
    double idle_w; /* 0: 100 */
};

static double clock_under(const struct program *program, double limit_w) {
    double idle_w = program->idle_w > 0 ? program->idle_w : 100;
    return limit_w >= program->full_w ? 1 : cbrt(fmax(limit_w - idle_w, 1) / (program->full_w - idle_w));
}

static double pace_under(const struct program *program, double limit_w) {
    double x = clock_under(program, limit_w);
    return 1 / (program->cores / x + 1 - program->cores);
}

static void read_program(int gpu, const struct program *program) {
    double limit_w = isnan(limits[gpu]) ? OWN_W : limits[gpu];
    readings[gpu].watts = fmin(limit_w, program->full_w);
    readings[gpu].clock_mhz = 2000 * clock_under(program, limit_w);
    readings[gpu].traffic = program->counts ? 500 * pace_under(program, limit_w) : NAN;
    readings[gpu].busy = 1;
}

static int begin(void **state) {
    (void)state;
    for (int i = 0; i < GPUS; i++) {
        readings[i] = (struct hec_budget_reading){.there = true,
                                                  .power_class = HEC_POWER_HIGH,
                                                  .least_w = LEAST_W,
                                                  .own_w = OWN_W,
                                                  .watts = 100,
                                                  .clock_mhz = NAN,
                                                  .traffic = NAN,
                                                  .busy = 0};
        limits[i] = NAN;
    }
    return 0;
}

static double sum_of(const double *watts) {
    double sum = 0;
    for (int i = 0; i < GPUS; i++)
        sum += isnan(watts[i]) ? 0 : watts[i];
    return sum;
}

EACH_TEST(begin, NULL)

TEST(classes_have_names) {
    assert_int_equal(hec_power_class_find("high"), HEC_POWER_HIGH);
    assert_int_equal(hec_power_class_find("low"), HEC_POWER_LOW);
    assert_int_equal(hec_power_class_find("Low"), HEC_POWER_CLASS_COUNT);
    for (int c = 0; c < HEC_POWER_CLASS_COUNT; c++)
        assert_int_equal(hec_power_class_find(hec_power_class_name((enum hec_power_class)c)), c);
}

/* Whatever comes: who comes and goes, what is read and what is not. */
TEST(limits_are_never_more_than_the_budget) {
    for (int run = 0; run < 40; run++) {
        double watts = 1700 + 4000 * uniform();
        hec_budget_begin(&budget, watts);
        for (int t = 0; t < 500; t++) {
            double aside = 0;
            for (int i = 0; i < GPUS; i++) {
                if (uniform() < 0.02)
                    readings[i].power_class = (enum hec_power_class)(4 * uniform());
                readings[i].watts =
                    uniform() < 0.05 ? NAN : fmin(isnan(limits[i]) ? OWN_W : limits[i], 100 + 700 * uniform());
                readings[i].clock_mhz = 800 + 1200 * uniform();
                readings[i].traffic = uniform() < 0.3 ? NAN : 900 * uniform();
                readings[i].busy = uniform() < 0.1 ? NAN : 1.5 * uniform();
            }
            hec_budget_divide(&budget, t, readings, GPUS, limits);
            int parts = 0;
            for (int i = 0; i < GPUS; i++) {
                bool part = readings[i].power_class < HEC_POWER_CLASS_COUNT;
                parts += part;
                assert_int_equal(isnan(limits[i]), !part);
                if (part)
                    assert_true(limits[i] >= LEAST_W && limits[i] <= OWN_W);
                else if (isfinite(readings[i].watts))
                    aside += readings[i].watts;
            }
            if (budget.short_w > 0)
                assert_true(fabs(sum_of(limits) - parts * LEAST_W) < 1e-6);
            else
                assert_true(sum_of(limits) + aside <= watts + 1e-6);
        }
    }
}

TEST(the_first_class_is_served_first) {
    const struct program hungry = {700, 1, false};
    for (int i = 0; i < GPUS; i++)
        readings[i].power_class = i < 2 ? HEC_POWER_HIGH : i < 5 ? HEC_POWER_NORMAL : HEC_POWER_LOW;
    hec_budget_begin(&budget, 3500);
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < GPUS; i++)
            read_program(i, &hungry);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    for (int i = 0; i < GPUS; i++)
        assert_true(fabs(limits[i] - (i < 2 ? 700 : i < 5 ? 500 : 200)) < 2);
    /* what it does not use is for the others, but for a little */
    for (int t = 3; t < 60; t++) {
        for (int i = 0; i < GPUS; i++)
            read_program(i, &hungry);
        readings[0].watts = readings[1].watts = 250;
        readings[0].busy = readings[1].busy = 0;
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    assert_true(limits[0] < 320 && limits[2] > 640);
}

TEST(what_others_draw_is_set_aside) {
    for (int i = 1; i < GPUS; i++)
        readings[i].power_class = HEC_POWER_CLASS_COUNT;
    readings[7].there = false;
    hec_budget_begin(&budget, 1300);
    hec_budget_divide(&budget, 0, readings, GPUS, limits);
    assert_true(fabs(limits[0] - (1300 - 6 * 105)) < 2);
    readings[3].watts = 500; /* a peak counts for a minute */
    hec_budget_divide(&budget, 1, readings, GPUS, limits);
    assert_true(fabs(limits[0] - (1300 - 5 * 105 - 525)) < 2);
    readings[3].watts = 100;
    hec_budget_divide(&budget, 30, readings, GPUS, limits);
    assert_true(limits[0] < 260);
    for (int t = 31; t < 130; t++)
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    assert_true(fabs(limits[0] - (1300 - 6 * 105)) < 2);
    readings[3].watts = 690; /* more than is left */
    hec_budget_divide(&budget, 130, readings, GPUS, limits);
    assert_true(fabs(budget.short_w - (5 * 105 + 700 + 200 - 1300)) < 1e-6);
    assert_true(limits[0] == LEAST_W);
    /* who no longer takes part may draw what its own limit allows */
    readings[3].watts = 100;
    readings[0].power_class = HEC_POWER_CLASS_COUNT;
    readings[1].power_class = HEC_POWER_HIGH;
    hec_budget_begin(&budget, 1500);
    readings[0].power_class = HEC_POWER_HIGH;
    hec_budget_divide(&budget, 200, readings, GPUS, limits);
    readings[0].power_class = HEC_POWER_CLASS_COUNT;
    hec_budget_divide(&budget, 201, readings, GPUS, limits);
    assert_true(isnan(limits[0]));
    assert_true(fabs(limits[1] - (1500 - 700 - 5 * 105)) < 2);
}

/* With room for all of them. Where it ends: the limit, and what it does to the program. */
static double found_limit(const struct program *program, enum hec_power_class power_class, int seconds) {
    begin(NULL);
    readings[0].power_class = power_class;
    hec_budget_begin(&budget, GPUS * OWN_W);
    for (int t = 0; t < seconds; t++) {
        read_program(0, program);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    return limits[0];
}

TEST(a_class_trades_speed_for_joules) {
    const struct program cores = {700, 1, true}, memory = {600, 0.2, true}, unseen = {600, 0.2, false},
                         light = {180, 1, true};
    for (int c = 0; c < HEC_POWER_CLASS_COUNT; c++) {
        double slowdown = (double[]){0.02, 0.1, 0.4}[c];
        for (int p = 0; p < 3; p++) {
            const struct program *program = (const struct program *[]){&cores, &memory, &unseen}[p];
            double limit_w = found_limit(program, (enum hec_power_class)c, 500);
            assert_true(pace_under(program, limit_w) * (1 + slowdown) >= 1 - 1e-9);
        }
        assert_true(found_limit(&light, (enum hec_power_class)c, 500) == OWN_W); /* draws less than the lowest */
    }
    /* by clocks alone less is dared of what memory holds up */
    assert_true(found_limit(&memory, HEC_POWER_NORMAL, 500) < 400);
    double by_clocks = found_limit(&unseen, HEC_POWER_NORMAL, 500);
    assert_true(by_clocks > 400 && by_clocks < 600);
    /* not below what does most for a joule: (100 + 600 x^3) / x is least at x = 0.44 */
    double limit_w = found_limit(&cores, HEC_POWER_LOW, 500);
    assert_true(pace_under(&cores, limit_w) >= 1 / 1.4 - 1e-9 && limit_w < 400);
}

/* The device idles in any case: what counts is what it draws on top of that. And limits that are worse are not all tried. */
TEST(idle_watts_are_no_price_of_work) {
    const struct program heavy = {600, 1, true, 250}; /* most for a joule of all at x = 0.71, 375 W */
    for (int known = 0; known < 2; known++) {
        double lowest_w = OWN_W;
        begin(NULL);
        readings[0].power_class = HEC_POWER_LOW;
        readings[0].idle_w = known ? 250 : 0;
        hec_budget_begin(&budget, GPUS * OWN_W);
        budget.slowdown[HEC_POWER_LOW] = 0.9;
        for (int t = 0; t < 500; t++) {
            read_program(0, &heavy);
            hec_budget_divide(&budget, t, readings, GPUS, limits);
            lowest_w = fmin(lowest_w, limits[0]);
        }
        assert_true(known ? limits[0] < 330 : limits[0] > 350 && limits[0] < 400);
        assert_true(known || lowest_w > 310);
    }
}

/* Hardware counters are read once in a while: until then it is not guessed from clocks. */
TEST(traffic_is_waited_for) {
    const struct program memory = {600, 0.2, true};
    readings[0].power_class = HEC_POWER_NORMAL;
    hec_budget_begin(&budget, GPUS * OWN_W);
    for (int t = 0; t < 600; t++) {
        read_program(0, &memory);
        if (t % 10)
            readings[0].traffic = NAN;
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    assert_true(limits[0] < 400);
}

static int play_on(const struct program *program, int t, int seconds) {
    for (int end = t + seconds; t < end; t++) {
        read_program(0, program);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    return t;
}

TEST(what_was_found_is_found_again) {
    const struct program memory = {600, 0.1, true}, cores = {650, 1, true}, light = {180, 1, true};
    readings[0].power_class = HEC_POWER_NORMAL;
    hec_budget_begin(&budget, GPUS * OWN_W);
    int t = play_on(&memory, 0, 300);
    double found_w = limits[0];
    assert_true(found_w < 400);
    bool again = false; /* after ten minutes */
    for (int i = 0; i < 700; i++) {
        t = play_on(&memory, t, 1);
        again |= limits[0] == OWN_W;
    }
    assert_true(again);
    t = play_on(&memory, t, 300);
    assert_true(limits[0] == found_w);
    again =
        false; /* at once where the same process does something else: it draws what the limit allows, and moves less */
    for (int i = 0; i < 40; i++) {
        t = play_on(&cores, t, 1);
        again |= limits[0] == OWN_W;
    }
    assert_true(again);
    t = play_on(&memory, t, 300);
    assert_true(limits[0] < 400);
    for (int i = 0; i < 70; i++, t++) { /* after a minute without work */
        readings[0].watts = 100;
        readings[0].busy = 0;
        hec_budget_divide(&budget, t, readings, GPUS, limits);
        assert_true(i > 55 || limits[0] < 400);
    }
    assert_true(limits[0] == OWN_W);
    hec_budget_begin(&budget, GPUS * OWN_W);
    for (int i = 0; i < 100; i++) { /* a limit that is not reached is not tried */
        t = play_on(&light, t, 1);
        assert_true(limits[0] == OWN_W);
    }
}

TEST(another_program_is_learnt_anew) {
    const struct program memory = {600, 0.1, true}, cores = {650, 1, true};
    readings[0].holders = 1;
    readings[0].power_class = HEC_POWER_NORMAL;
    hec_budget_begin(&budget, GPUS * OWN_W);
    int t = 0;
    for (; t < 400; t++) {
        read_program(0, &memory);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    assert_true(limits[0] < 400);
    readings[0].holders = 2;
    hec_budget_divide(&budget, t++, readings, GPUS, limits);
    assert_true(limits[0] == OWN_W);
    for (; t < 1000; t++) {
        read_program(0, &memory);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    assert_true(limits[0] < 400);
    for (; t < 1400; t++) { /* the same process does something else: it draws what the limit allows, and moves less */
        read_program(0, &cores);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    assert_true(pace_under(&cores, limits[0]) * 1.1 >= 1);
}

/* Carbon has fallen, or it is night. */
TEST(another_slowdown_is_learnt_anew) {
    const struct program hungry = {700, 1, true};
    readings[0].power_class = HEC_POWER_LOW;
    hec_budget_begin(&budget, GPUS * OWN_W);
    int t = 0;
    for (; t < 400; t++) {
        read_program(0, &hungry);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    assert_true(pace_under(&hungry, limits[0]) < 0.8);
    budget.slowdown[HEC_POWER_LOW] = 0.05;
    for (; t < 800; t++) {
        read_program(0, &hungry);
        hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    assert_true(pace_under(&hungry, limits[0]) * 1.05 >= 1);
}

/* What was found while the budget held it, by clocks, is no reason to leave it at that when there is room. */
TEST(room_is_used_again) {
    const struct program memory = {600, 0.2, true};
    readings[0].power_class = HEC_POWER_NORMAL;
    hec_budget_begin(&budget, 560 + 7 * LEAST_W);
    for (int i = 1; i < GPUS; i++)
        readings[i].power_class = HEC_POWER_LOW;
    int t = play_on(&memory, 0, 200);
    assert_true(limits[0] > 450 && limits[0] <= 560);
    for (int i = 1; i < GPUS; i++)
        readings[i].there = false;
    budget.watts = GPUS * OWN_W;
    play_on(&memory, t, 250);
    assert_true(limits[0] < 400);
}
