/* Names that stand in JSON and on command lines: stable, one each, and "?" for what there is not. */
#include "diagnose/parallelism.h"
#include "diagnose/replay/lanes.h"
#include "diagnose/result.h"
#include "diagnose/rules/findings.h"
#include "unit.h"

static const char *lane(int i) {
    return hec_lane_name((enum hec_lane)i);
}

static const char *lack(int i) {
    return hec_lack_name((enum hec_lack)i);
}

static const char *strategy(int i) {
    return hec_strategy_name((enum hec_strategy)i);
}

static const char *cause(int i) {
    return hec_cause_name((enum hec_cause)i);
}

static const char *evidence(int i) {
    return hec_evidence_name((enum hec_evidence_id)i);
}

static const char *lever(int i) {
    return hec_lever_name((enum hec_lever_id)i);
}

static void distinct(const char *(*name)(int), int count, bool bounded) {
    for (int i = 0; i < count; i++) {
        assert_true(name(i) && name(i)[0] && strcmp(name(i), "?") != 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name(i), name(k));
    }
    if (bounded) {
        assert_string_equal(name(count), "?");
        assert_string_equal(name(-1), "?");
    }
}

TEST(names_are_distinct) {
    distinct(lane, HEC_LANE_COUNT, false);
    distinct(lack, HEC_LACKS, true);
    distinct(strategy, HEC_STRATEGIES, true);
    distinct(cause, HEC_CAUSE_COUNT, true);
    distinct(evidence, HEC_EVIDENCE_COUNT, true);
    distinct(lever, HEC_LEVER_COUNT, true);
}

TEST(names_as_they_are_written) {
    assert_string_equal(hec_cause_name(HEC_CAUSE_GRADIENT_SYNC), "gradient_sync");
    assert_int_equal(hec_cause_find("gradient_sync"), HEC_CAUSE_GRADIENT_SYNC);
    assert_int_equal(hec_cause_find("gradient"), HEC_CAUSE_COUNT);
    assert_string_equal(hec_lane_name(HEC_LANE_COMM), "comm");
    assert_string_equal(hec_scale_name(HEC_SCALE_OUT), "scale_out");
    assert_string_equal(hec_scale_name(HEC_SCALE_OPTIMISE), "optimise");
    assert_string_equal(hec_evidence_unit(HEC_EVIDENCE_COUNT), "?");
    assert_string_equal(hec_evidence_more(HEC_EVIDENCE_COUNT), "");
    assert_string_equal(hec_lever_parameters(HEC_LEVER_COUNT), "");
    for (int c = 0; c < HEC_CAUSE_COUNT; c++)
        assert_int_equal(hec_cause_find(hec_cause_name((enum hec_cause)c)), c);
}

/* What tells and saves nothing: hanging, waiting for requests, being set up. */
TEST(findings_that_tell) {
    for (int c = 0; c < HEC_CAUSE_COUNT; c++) {
        bool may = c == HEC_CAUSE_HANG || c == HEC_CAUSE_QUIET || c == HEC_CAUSE_COMPILE;
        struct hec_finding f = {.cause = (enum hec_cause)c, .seconds.best = NAN, .joules.best = NAN};
        assert_int_equal(hec_finding_tells(&f), may);
        f.seconds.best = 0.1;
        assert_false(hec_finding_tells(&f));
        f.seconds.best = NAN;
        f.joules.best = 0.1;
        assert_false(hec_finding_tells(&f));
    }
}
