/* What tests of rules ask of one finding of rule_world.h: it fires, saves so much, or is silent. */
#pragma once

#include "rule_world.h"
#include "unit.h"

static inline int before_each(void **state) {
    (void)state;
    world_begin(1);
    return 0;
}

static inline void near(double value, double expected) {
    if (!(fabs(value - expected) <= 0.002 + 0.001 * fabs(expected)))
        fail_msg("%g instead of %g", value, expected);
}

static inline void in_order(const struct hec_saving *s) {
    if (isnan(s->best))
        return;
    assert_true(s->low >= 0 && s->low <= s->best && s->best <= s->high && s->high <= 1);
}

static inline void fires(enum hec_cause cause) {
    if (!world_judge(0, cause))
        fail_msg("%s does not fire", hec_cause_name(cause));
    assert_true(w.finding.confidence > 0 && w.finding.confidence <= 1);
    assert_true(has_numbers(&w.finding));
    in_order(&w.finding.seconds);
    in_order(&w.finding.joules);
}

/* That part of the run's time. */
static inline void saves(enum hec_cause cause, double seconds) {
    fires(cause);
    near(w.finding.seconds.best, seconds);
}

static inline void silent(enum hec_cause cause) {
    if (world_judge(0, cause))
        fail_msg("%s fires: %s", hec_cause_name(cause), hec_evidence_name(w.finding.title.what));
}
