/* A claim's joules where the work that stays would draw more than the device may: by hand, of a loop of 50 s and 30 kJ (600 W). */
#include "rule_world.h"

#include "diagnose/rules/power_limit.h"
#include "unit.h"

#define STEADY_S 50.0
#define STEADY_J 30000.0

static struct hec_finding f;

static struct hec_saving of(double low, double best, double high) {
    return (struct hec_saving){low, best, high};
}

/* A run twice as long as its loop, of 40 kJ. */
static void claim(double limit_w, struct hec_saving seconds, struct hec_saving joules) {
    memset(&w, 0, sizeof w);
    w.devices[0] = fake_dossier(&w.of[0], 0);
    w.devices[0].readings.power_limit_w = limit_w;
    w.facts = (struct hec_facts){
        .summary = &w.summary, .device = &w.devices[0], .run_s = 2 * STEADY_S, .run_j = 40000, .mean_w = 400};
    f = hec_finding_begin(hec_rule_of(HEC_CAUSE_SYNC), 0);
    f.step_seconds = seconds;
    f.step_joules = joules;
    f.seconds = of(seconds.low / 2, seconds.best / 2, seconds.high / 2);
    f.joules = of(0.75 * joules.low, 0.75 * joules.best, 0.75 * joules.high);
    hec_power_limit_hold(&w.facts, STEADY_S, STEADY_J, &f);
}

static void is(struct hec_saving found, double low, double best, double high) {
    assert_near(found.low, low, 1e-9);
    assert_near(found.best, best, 1e-9);
    assert_near(found.high, high, 1e-9);
}

/* 0.9 of the joules in 0.6 of the time are 900 W, in logarithms half of them too many by the seconds, and half by the clock's cube. At the
 * high end 0.88 in 0.5: 1056 W. */
TEST(seconds_and_clock_explain_half_each) {
    double over = 900 / 700.0, most = 1056 / 700.0;
    double seconds = 1 - 0.6 * cbrt(over * over), joules = 1 - 0.9 / cbrt(over);
    double most_s = 1 - 0.5 * cbrt(most * most), most_j = 1 - 0.88 / cbrt(most);
    claim(700, of(0.1, 0.4, 0.5), of(0.02, 0.1, 0.12));
    is(f.step_seconds, 0.1, seconds, most_s);
    is(f.step_joules, 0.02, joules, most_j);
    is(f.seconds, 0.05, seconds / 2, most_s / 2);
    is(f.joules, 0.015, 0.75 * joules, 0.75 * most_j);
    assert_near(600 * (1 - f.step_joules.best) / (1 - f.step_seconds.best), 700, 1e-6);
}

TEST(what_keeps_to_the_limit_stays) {
    claim(900, of(0.1, 0.4, 0.4), of(0.02, 0.1, 0.1)); /* 900 W */
    is(f.step_seconds, 0.1, 0.4, 0.4);
    is(f.step_joules, 0.02, 0.1, 0.1);
    claim(NAN, of(0.1, 0.4, 0.5), of(0.02, 0.1, 0.12)); /* no limit is known */
    is(f.step_joules, 0.02, 0.1, 0.12);
    claim(700, of(0, 0, 0.3), of(0, 0, 0.1)); /* nothing is claimed */
    is(f.step_joules, 0, 0, 0.1);
    claim(700, of(0.1, 0.4, 0.5), of(NAN, NAN, NAN)); /* no joules are known */
    is(f.step_seconds, 0.1, 0.4, 0.5);
}

/* A mean over the limit, as bursts are, is no lower for it; and all of the time cannot be at a higher power. */
TEST(ends_stay_in_order) {
    claim(500, of(0.1, 0.2, 1), of(0.1, 0.2, 1)); /* 600 W before and after */
    is(f.step_seconds, 0.1, 0.2, 1);
    is(f.step_joules, 0.1, 0.2, 1);
    claim(500, of(0.2, 0.2, 0.2), of(0, 0, 0));
    assert_true(f.step_joules.low <= f.step_joules.best && f.step_joules.best <= f.step_joules.high);
    assert_true(f.step_seconds.low <= f.step_seconds.best && f.step_seconds.best <= f.step_seconds.high);
    assert_true(f.step_seconds.best >= 0 && f.step_seconds.best < 0.2);
}

ALL_TESTS(NULL, NULL)
