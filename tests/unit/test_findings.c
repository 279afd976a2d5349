/* Around the rules: what they read, the order of findings, their lines, optimise or scale out, and where a request's time goes. */
#include "rule_world.h"

#include "diagnose/rules/claims.h"
#include "diagnose/rules/facts.h"
#include "diagnose/rules/findings.h"
#include "diagnose/rules/verdicts.h"
#include "unit.h"

#define SGEMM "ampere_sgemm_128x64_nt"
#define BF16 "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT"
#define ALL_REDUCE "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

static struct hec_findings found;

static void healthy(int devices) {
    world_begin(devices);
    for (int i = 0; i < devices; i++) {
        world_kernel(i, BF16, 1, 1500);
        world_counters(i, 0.97, 0.22, 0.7, 0.02, 0.2);
    }
}

static int before_each(void **state) {
    (void)state;
    healthy(1);
    return 0;
}

static void build(void) {
    hec_findings_free(&found);
    hec_job_find(&w.summary, &(struct hec_schedule){0}, &w.summary.job);
    assert_int_equal(hec_findings_build(&w.summary, NULL, &found), 0);
    w.summary.job.findings = found;
}

static int place_of(enum hec_cause cause, int device) {
    for (int i = 0; i < found.count; i++)
        if (found.list[i].cause == cause && found.list[i].device == device)
            return i;
    return -1;
}

TEST(test_names) {
    for (int i = 0; i < HEC_CAUSE_COUNT; i++)
        assert_int_equal(hec_cause_find(hec_cause_name((enum hec_cause)i)), i);
    assert_int_equal(hec_cause_find("nothing"), HEC_CAUSE_COUNT);
    assert_string_equal(hec_cause_name(HEC_CAUSE_COUNT), "?");
    assert_string_equal(hec_scale_name(HEC_SCALE_OUT), "scale_out");
    assert_string_equal(hec_scale_name((enum hec_scale)9), "?");
}

/* Each cause has its rule, and what it says of a wait can be. */
TEST(test_rules) {
    for (int i = 0; i < HEC_CAUSE_COUNT; i++) {
        const struct hec_rule *rule = hec_rule_of((enum hec_cause)i);
        const struct hec_goes *goes = hec_goes_of((enum hec_cause)i);
        assert_int_equal(rule->cause, i);
        assert_true(rule->lever < HEC_LEVER_COUNT && rule->judge);
        assert_true(goes->part.low <= goes->part.best && goes->part.best <= goes->part.high && goes->part.high <= 1);
        assert_true((goes->confidence > 0) == (goes->part.best > 0) && goes->confidence <= 1);
    }
}

TEST(test_savings_scale) {
    struct hec_saving a = hec_saving_scaled((struct hec_saving){0.2, 0.4, 0.6}, 0.5, 1, 2);
    assert_true(a.low == 0.1 && a.best == 0.4 && a.high == 1);
    a = hec_saving_scaled((struct hec_saving){NAN, NAN, NAN}, 0, 1, 2);
    assert_true(isnan(a.low) && isnan(a.best) && isnan(a.high));
}

TEST(test_evidence_is_cut) {
    struct hec_finding f = {0};
    for (int i = 0; i < HEC_EVIDENCE_MAX + 3; i++)
        hec_finding_add(&f, HEC_FACT(SAMPLES, i));
    assert_int_equal(f.evidence_count, HEC_EVIDENCE_MAX);
    assert_true(f.evidence[HEC_EVIDENCE_MAX - 1].value[0] == HEC_EVIDENCE_MAX - 1);
}

TEST(test_healthy_goes_first) {
    d->throttled_share[HEC_THROTTLE_POWER] = 0.8;
    build();
    assert_int_equal(found.list[0].cause, HEC_CAUSE_NONE);
    assert_true(place_of(HEC_CAUSE_THROTTLE, 0) > 0); /* reported, not worth acting on */
    hec_findings_free(&found);
    assert_null(found.list);
    assert_int_equal(found.count, 0);
}

TEST(test_worth_goes_before_healthy) {
    world_kernel(0, SGEMM, 1, 500);
    d->throttled_share[HEC_THROTTLE_POWER] = 0.8;
    build();
    assert_int_equal(found.list[0].cause, HEC_CAUSE_PRECISION);
    assert_true(found.list[0].joules.best >= HEC_FINDING_WORTH && found.list[0].actionable);
    assert_near(found.list[0].saved_j, found.list[0].joules.best * RULE_WORLD_RUN_J, 1e-6);
    assert_near(found.list[0].saved_s, found.list[0].seconds.best * RULE_WORLD_RUN_S, 1e-9);
    assert_false(found.list[1].actionable); /* healthy */
    assert_int_equal(place_of(HEC_CAUSE_NONE, 0), 1);
    assert_true(place_of(HEC_CAUSE_THROTTLE, 0) > 1);
}

/* A server's requests come no sooner, and a loader's workers are no faster: what a step is shorter by is waited. */
TEST(saved_seconds_are_waited) {
    static const enum hec_state waits[] = {HEC_STATE_REQUESTS, HEC_STATE_DATA};
    struct hec_saving own_s, own_j;
    for (int i = 0; i < 2; i++) {
        healthy(1);
        world_kernel(0, SGEMM, 1, 500);
        world_state(0, HEC_STATE_HOST, 5, 125);
        world_state(0, waits[i], 4.9, 125); /* of 100 s: too little to set the pace */
        w.summary.loader_workers = 2;
        build();
        own_s = found.list[0].seconds;
        own_j = found.list[0].joules;
        assert_true(found.list[0].cause == HEC_CAUSE_PRECISION && own_s.best > 0.1);
        world_state(0, waits[i], 20, 125);
        w.devices[0].gaps = &w.of[0].gaps;
        w.of[0].gaps.owned_s[HEC_STATE_DATA][HEC_CAUSE_DATA] = 20;
        build();
        const struct hec_finding *f = &found.list[place_of(HEC_CAUSE_PRECISION, 0)];
        assert_true(f->seconds.best == 0 && f->step_seconds.best == 0 && f->seconds.low == 0);
        assert_near(f->joules.best, own_j.best - own_s.best * 125 * RULE_WORLD_RUN_S / RULE_WORLD_RUN_J, 1e-9);
        assert_true(f->step_joules.best > 0 && f->step_joules.best < 1 && f->joules.low <= f->joules.best);
        bool loader = waits[i] == HEC_STATE_DATA; /* which is behind now and then */
        double high_j = f->joules.high;
        assert_true((f->seconds.high > 0) == loader && (loader || high_j < own_j.high));
        assert_true(fact_of(f, HEC_EVIDENCE_PACED) && fact_of(f, HEC_EVIDENCE_PACED)->value[1] == loader);
        f = loader ? &found.list[place_of(HEC_CAUSE_DATA, 0)] : NULL; /* what sets the pace */
        assert_true(!f || (f->seconds.best > 0.1 && !fact_of(f, HEC_EVIDENCE_PACED)));
        w.summary.loader_workers = 0; /* it loads in the step */
        build();
        f = &found.list[place_of(HEC_CAUSE_PRECISION, 0)];
        assert_true((f->seconds.best > 0.1) == loader && (f->joules.high == high_j));
    }
}

/* A server that fell behind: requests came as often as it had served them until its queue was empty for the last time. */
TEST(requests_that_come_a_little_too_often) {
    healthy(1);
    world_kernel(0, SGEMM, 1, 500);
    world_state(0, HEC_STATE_REQUESTS, 0.6, 125);
    w.of[0].steady.to_ns = w.of[0].steady.window_ns;
    build();
    struct hec_saving own_s = found.list[0].seconds;
    assert_true(found.list[0].cause == HEC_CAUSE_PRECISION && own_s.low > 0.1 && own_s.best > 0.2);
    w.of[0].steady.steps = 1000;
    w.of[0].steady.requests_ns = llround(0.45 * RULE_WORLD_RUN_S * 1e9);
    w.of[0].steady.requests_steps = 500; /* in 45 % of the time: all of them come in 90 % */
    build();
    const struct hec_finding *f = &found.list[place_of(HEC_CAUSE_PRECISION, 0)];
    assert_near(f->step_seconds.best, 0.1, 1e-9);
    assert_true(f->step_seconds.low == 0 && f->step_seconds.high > 0.1 && f->step_seconds.high < 0.2);
    assert_true(f->seconds.best > 0 && f->seconds.best < own_s.best && fact_of(f, HEC_EVIDENCE_PACED));
    w.of[0].steady.requests_ns = llround(0.9 * RULE_WORLD_RUN_S * 1e9); /* it was not behind at all */
    build();
    f = &found.list[place_of(HEC_CAUSE_PRECISION, 0)];
    assert_true(f->step_seconds.best == 0 && f->step_seconds.high == 0);
    w.of[0].steady.requests_ns = llround(0.01 * RULE_WORLD_RUN_S * 1e9); /* the first requests alone tell nothing */
    w.of[0].steady.requests_steps = 10;
    build();
    assert_near(found.list[place_of(HEC_CAUSE_PRECISION, 0)].seconds.best, own_s.best, 1e-9);
}

/* What the device did with its time without a saving: a hang before all, waiting for requests after what is worth acting on. */
TEST(test_what_is_told_without_a_saving) {
    w.devices[0].after = (struct hec_after){.seconds = 30, .engine = 0.94, .watts = 531, .works = true};
    world_kernel(0, SGEMM, 1, 500);
    build();
    assert_int_equal(found.list[0].cause, HEC_CAUSE_HANG);
    assert_true(found.list[0].actionable && place_of(HEC_CAUSE_NONE, 0) < 0 && place_of(HEC_CAUSE_PRECISION, 0) == 1);
    assert_int_equal(found.scale_out.verdict, HEC_SCALE_UNKNOWN); /* busy with nothing */
    w.devices[0].after.works = false;
    world_state(0, HEC_STATE_REQUESTS, 30, 120);
    build();
    assert_int_equal(found.list[0].cause, HEC_CAUSE_PRECISION);
    assert_true(place_of(HEC_CAUSE_QUIET, 0) > 0);
    assert_false(found.list[place_of(HEC_CAUSE_QUIET, 0)].actionable);
}

/* What the rule saves of the run is a share of the steady steps, where it fits into them: a program that runs ahead of its device has
 * little time in its steps, and all that the kernels take behind the last. */
TEST(test_of_a_step) {
    for (int ahead = 0; ahead < 2; ahead++) {
        healthy(1);
        world_kernel(0, SGEMM, 1, 500);
        for (int s = 0; s < HEC_STATE_COUNT && ahead; s++)
            w.of[0].steady.rows[s].seconds /= 20;
        build();
        const struct hec_finding *f = &found.list[place_of(HEC_CAUSE_PRECISION, 0)];
        assert_true(f->seconds.best > 0.05 && f->joules.best > 0.05);
        assert_int_equal(isnan(f->step_seconds.best), ahead);
        assert_int_equal(isnan(f->step_joules.best), ahead);
        assert_true(ahead || (f->step_seconds.best >= f->seconds.best && f->step_seconds.best < 1));
    }
}

/* Host code that takes a fifth of the steps' time: worth acting on where the steps are a part of the run, not where they hardly ran. */
TEST(test_worth_of_a_step) {
    static const struct {
        double host, compute; /* s, in steps */
        bool worth;
    } cases[] = {{5, 20, true}, {0.1, 0.4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        healthy(1);
        world_state(0, HEC_STATE_HOST, cases[i].host, 250);
        w.of[0].steady.rows[HEC_STATE_COMPUTE].seconds = cases[i].compute;
        w.of[0].steady.window_ns = llround((cases[i].host + cases[i].compute) * 1e9);
        w.devices[0].gaps = &w.of[0].gaps;
        w.of[0].gaps.owned_s[HEC_STATE_HOST][HEC_CAUSE_HOST] = cases[i].host;
        build();
        const struct hec_finding *f = &found.list[place_of(HEC_CAUSE_HOST, 0)];
        assert_true(fmax(f->joules.best, f->seconds.best) < HEC_FINDING_WORTH);
        assert_true(f->step_joules.best >= HEC_FINDING_WORTH);
        assert_int_equal(f->actionable, cases[i].worth);
    }
}

/* What is compiled again and again is part of the steps; what is loaded now and then is not. */
TEST(test_compiling_is_of_a_step) {
    double of_step[2], of_run[2];
    for (int recurs = 0; recurs < 2; recurs++) {
        healthy(1);
        world_kernel(0, SGEMM, 1, 500);
        world_state(0, HEC_STATE_STARTUP, 20, 120);
        w.devices[0].gaps = &w.of[0].gaps;
        w.of[0].gaps.owned_s[HEC_STATE_STARTUP][HEC_CAUSE_COMPILE] = 20;
        w.of[0].gaps.loads_recur = recurs;
        build();
        const struct hec_finding *f = &found.list[place_of(HEC_CAUSE_PRECISION, 0)];
        of_step[recurs] = f->step_seconds.best;
        of_run[recurs] = f->seconds.best;
    }
    assert_true(of_step[0] > 0 && of_step[1] < 0.95 * of_step[0]);
    assert_near(of_run[1], of_run[0], 1e-12);
}

TEST(test_hints_go_after_healthy) {
    world_kernel(0, "cutlass_80_tensorop_s1688gemm_128x128_16x4_nt_align4", 4, 500);
    build();
    assert_int_equal(found.list[0].cause, HEC_CAUSE_NONE);
    int at = place_of(HEC_CAUSE_PRECISION, 0);
    assert_true(at > 0 && found.list[at].joules.best >= HEC_FINDING_WORTH && !found.list[at].actionable);
    assert_int_equal(found.scale_out.verdict, HEC_SCALE_OUT);
}

/* Joules that can be saved, by how sure it is; seconds where joules are not known. */
TEST(test_order_of_two) {
    world_kernel(0, SGEMM, 3, 500);
    world_kernel(0, ALL_REDUCE, 0.1, 800);
    world_state(0, HEC_STATE_COMM, 15, 200);
    build();
    assert_int_equal(place_of(HEC_CAUSE_PRECISION, 0), 0);
    assert_int_equal(place_of(HEC_CAUSE_COMM, 0) > 0, 1);
    w.of[0].rows[1].seconds = 80 * 0.05; /* there is little fp32 now */
    world_state(0, HEC_STATE_COMM, 60, 400);
    build();
    assert_int_equal(place_of(HEC_CAUSE_COMM, 0), 0);
    d->energy.valid = false;
    build();
    assert_int_equal(place_of(HEC_CAUSE_COMM, 0), 0);
    assert_true(isnan(found.list[0].joules.best));
}

TEST(test_each_device_is_judged) {
    healthy(2);
    world_kernel(1, SGEMM, 1, 500);
    build();
    assert_int_equal(place_of(HEC_CAUSE_PRECISION, 1), 0);
    assert_int_equal(place_of(HEC_CAUSE_PRECISION, 0), -1);
    assert_true(place_of(HEC_CAUSE_NONE, 0) >= 0);
    w.devices[1].readings.used = false;
    build();
    assert_int_equal(place_of(HEC_CAUSE_PRECISION, 1), -1);
}

/* ---- lines ---- */

static void line(enum hec_state state, const char *file, int at, double seconds) {
    struct hec_source_line *l = &w.of[0].lines[w.devices[0].steady_source.count++];
    *l = (struct hec_source_line){.device = 0, .state = state, .line = at, .seconds = seconds};
    snprintf(l->file, sizeof l->file, "%s", file);
    snprintf(l->function, sizeof l->function, "step");
}

TEST(test_lines_are_attached) {
    world_kernel(0, ALL_REDUCE, 0.3, 800);
    world_state(0, HEC_STATE_COMM, 20, 240);
    line(HEC_STATE_COMM, "train.py", 10, 4);
    line(HEC_STATE_COMM, "train.py", 20, 8);
    line(HEC_STATE_COMM, "train.py", 30, 4);  /* as much as the first */
    line(HEC_STATE_HOST, "other.py", 50, 90); /* of a state that the finding is not about */
    build();
    int at = place_of(HEC_CAUSE_COMM, 0);
    assert_true(at >= 0);
    const struct hec_finding *f = &found.list[at];
    assert_int_equal(f->line_count, 3);
    assert_int_equal(f->lines[0].line, 20);
    assert_int_equal(f->lines[1].line, 10);
    assert_int_equal(f->lines[2].line, 30);
    assert_string_equal(f->lines[0].file, "train.py");
    assert_string_equal(f->lines[0].function, "step");
    assert_near(f->lines[0].share, 0.4, 1e-9);
}

/* A line whose time was found to belong to another cause is not named, nor is its time a part of the whole. */
TEST(test_lines_of_other_causes) {
    world_state(0, HEC_STATE_HOST, 20, 120);
    w.devices[0].gaps = &w.of[0].gaps;
    w.of[0].gaps.owned_s[HEC_STATE_HOST][HEC_CAUSE_HOST] = 15;
    w.of[0].gaps.owned_s[HEC_STATE_HOST][HEC_CAUSE_LAUNCH] = 5;
    line(HEC_STATE_HOST, "train.py", 10, 10);
    line(HEC_STATE_HOST, "train.py", 20, 5);
    line(HEC_STATE_HOST, "train.py", 30, 5);
    struct hec_source_line *lines = w.of[0].lines;
    lines[0].owners = 1u << HEC_CAUSE_LAUNCH;
    lines[1].owners = 1u << HEC_CAUSE_LAUNCH | 1u << HEC_CAUSE_HOST;
    build();
    const struct hec_finding *f = &found.list[place_of(HEC_CAUSE_HOST, 0)];
    assert_int_equal(f->line_count, 2);
    assert_int_equal(f->lines[0].line, 20);
    assert_int_equal(f->lines[1].line, 30);
    assert_near(f->lines[1].share, 0.5, 1e-9);
    bool said = false;
    for (int i = 0; i < f->evidence_count; i++)
        said |= f->evidence[i].what == HEC_EVIDENCE_HELD_BY_LINE && f->evidence[i].value[1] == 20;
    assert_true(said); /* which line holds the device up */
    lines[0].owners = lines[1].owners = 0;
    build();
    f = &found.list[place_of(HEC_CAUSE_HOST, 0)];
    assert_int_equal(f->lines[0].line, 10);
    assert_near(f->lines[0].share, 0.5, 1e-9);
}

/* ---- optimise or scale out ---- */

TEST(test_scale_out) {
    build();
    assert_int_equal(found.scale_out.verdict, HEC_SCALE_OUT);
    assert_true(found.scale_out.utilisation == 0.95);
    assert_true(found.scale_out.recoverable < 0.1);
    assert_int_equal(found.scale_out.reason, HEC_SCALE_FULL);
}

TEST(test_optimise) {
    world_kernel(0, SGEMM, 1, 500); /* busy, but much can be had back */
    build();
    assert_int_equal(found.scale_out.verdict, HEC_SCALE_OPTIMISE);
    assert_true(found.scale_out.recoverable > 0.1);
    healthy(1);
    w.summary.steps.busy_share = 0.69; /* more devices would wait as well */
    build();
    assert_int_equal(found.scale_out.verdict, HEC_SCALE_OPTIMISE);
    assert_int_equal(found.scale_out.reason, HEC_SCALE_IDLE);
}

/* A busy device of which nothing shows what it does: no health, no more devices, and what is known is said. */
TEST(test_unseen) {
    static const struct {
        double tensor, fp32, dram;
        enum hec_evidence_id what;
    } cases[] = {{0, 0.68, 0.1, HEC_EVIDENCE_UNSEEN_FP32},
                 {0, 0.1, 0.9, HEC_EVIDENCE_UNSEEN_MEMORY},
                 {0.1, 0.1, 0.1, HEC_EVIDENCE_UNSEEN},
                 {NAN, NAN, NAN, HEC_EVIDENCE_UNSEEN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        healthy(1);
        world_untraced();
        world_counters(0, 0.97, 0.6, cases[i].tensor, cases[i].fp32, cases[i].dram);
        d->activity.readings = 500, d->activity.to_s = 90, d->activity.sm = 0.97;
        build();
        assert_int_equal(found.scale_out.verdict, HEC_SCALE_UNKNOWN);
        assert_int_equal(found.scale_out.reason, HEC_SCALE_UNSEEN);
        assert_true(hec_findings_unseen(&found));
        assert_int_equal(found.unseen.what, cases[i].what);
        assert_true(found.unseen.value[0] == 0.9 && place_of(HEC_CAUSE_NONE, 0) < 0);
    }
    d->activity.engine = 0.5; /* it waits: that is another matter */
    build();
    assert_false(hec_findings_unseen(&found));
}

/* A job is healthy where it was looked at how long its ranks wait for each other: all of them, traced as a whole. */
TEST(test_ranks_that_were_not_looked_at) {
    struct hec_rank ranks[2] = {{.pid = 1, .number = 0, .devices = 1}, {.pid = 2, .number = 1, .devices = 2}};
    const struct hec_step_summary steps = {.count = 100, .duration = {.mean = 0.1}};
    for (int seen = 0; seen < 4; seen++) {
        healthy(2);
        w.summary.job.size = seen < 3 ? 2 : 3; /* the last of which is elsewhere */
        w.summary.job.ranks = ranks;
        w.summary.job.rank_count = 2;
        for (int i = 0; i < 2; i++) {
            w.devices[i].steps = steps;
            w.devices[i].steps.pid = ranks[i].pid;
        }
        w.of[1].steady.basis = seen == 0 ? HEC_LEDGER_CALLS : seen == 1 ? HEC_LEDGER_GLIMPSE : HEC_LEDGER_MEASURED;
        build();
        assert_int_equal(found.scale_out.verdict, seen == 2 ? HEC_SCALE_OUT : HEC_SCALE_UNKNOWN);
        assert_int_equal(found.scale_out.reason, seen == 2 ? HEC_SCALE_FULL : HEC_SCALE_RANKS);
        assert_int_equal(place_of(HEC_CAUSE_NONE, 0) >= 0, seen == 2);
        assert_int_equal(hec_findings_unseen(&found), seen != 2);
        assert_true(seen == 2 || found.unseen.what == HEC_EVIDENCE_UNSEEN_RANKS);
    }
}

TEST(test_savings_are_of_what_is_left) {
    struct hec_finding list[4] = {
        {.devices = 1, .confidence = 1, .joules = {0, 0.5, 1}},
        {.devices = 3, .device = 1, .confidence = 0.3, .joules = {0, 0.5, 1}}, /* of both */
        {.devices = 1, .confidence = 1, .joules = {NAN, NAN, NAN}, .seconds = {NAN, NAN, NAN}},
        {.devices = 1, .confidence = 0.29, .joules = {0, 0.5, 1}}}; /* a hint */
    struct hec_findings findings = {.list = list, .count = 4};
    hec_scale_out_decide(&w.summary, &findings);
    assert_true(findings.scale_out.recoverable == 0.75);
}

TEST(test_scale_unknown) {
    world_untraced();
    d->activity.has_gpm = false;
    build();
    assert_int_equal(found.scale_out.verdict, HEC_SCALE_UNKNOWN);
    assert_true(isnan(found.scale_out.utilisation));
    assert_int_equal(found.scale_out.reason, HEC_SCALE_NOT_SEEN);
    d->used = false;
    build();
    assert_int_equal(found.scale_out.verdict, HEC_SCALE_UNKNOWN);
    assert_int_equal(found.count, 0);
    healthy(1);
    world_untraced(); /* the engine's activity stands in: 90 % */
    build();
    assert_true(found.scale_out.utilisation == 0.9);
}

/* Others work on the device, or may: what it would do for the command alone is not known, and each finding says so. */
TEST(test_shared) {
    for (int others = HEC_OTHERS_MAYBE; others <= HEC_OTHERS_BUSY; others++) {
        healthy(1);
        world_kernel(0, SGEMM, 1, 500);
        d->shared_with = 2;
        d->others = (enum hec_others)others;
        build();
        assert_int_equal(found.scale_out.verdict, HEC_SCALE_UNKNOWN);
        assert_int_equal(found.scale_out.reason, HEC_SCALE_SHARED);
        assert_true(found.count > 0);
        for (int i = 0; i < found.count; i++) {
            const struct hec_finding *f = &found.list[i];
            const struct hec_evidence *last = &f->evidence[f->evidence_count - 1];
            assert_int_equal(last->what, HEC_EVIDENCE_SHARED);
            assert_true(last->value[0] == 2 && last->value[1] == (others == HEC_OTHERS_BUSY));
            assert_int_equal(isnan(f->joules.best) && isnan(f->saved_j), others == HEC_OTHERS_BUSY);
            assert_true(isfinite(f->saved_s));
        }
    }
}

/* ---- latency ---- */

TEST(test_latency_adds_up) {
    struct hec_latency *l = &found.latency;
    build();
    assert_false(l->valid); /* training */
    w.summary.steps.source = HEC_STEP_MODULE;
    w.of[0].ledger.steps = 100;
    world_state(0, HEC_STATE_COMPUTE, 0.040, 500);
    world_state(0, HEC_STATE_COPY, 0.005, 130);
    world_state(0, HEC_STATE_COMM, 0.002, 200);
    world_state(0, HEC_STATE_LAUNCH, 0.003, 120);
    world_state(0, HEC_STATE_HOST, 0.010, 120);
    world_state(0, HEC_STATE_STARTUP, 0, 120);
    w.of[0].ledger.rows[HEC_STATE_TAIL].step_seconds = NAN;
    w.of[0].watts.profile.class[HEC_KERNEL_CLASS_GEMM] =
        (struct hec_class_row){.seconds = 60, .point.limit = HEC_LIMIT_MATH};
    w.of[0].watts.profile.class[HEC_KERNEL_CLASS_NORM] =
        (struct hec_class_row){.seconds = 30, .point.limit = HEC_LIMIT_MEMORY};
    w.of[0].watts.profile.class[HEC_KERNEL_CLASS_CONV] =
        (struct hec_class_row){.seconds = 10, .point.limit = HEC_LIMIT_UNDERFILLED};
    w.devices[0].watts = &w.of[0].watts;
    build();
    assert_true(l->valid);
    assert_near(l->total_s, 0.060, 1e-12);
    assert_near(l->compute_s, 0.024, 1e-12);
    assert_near(l->memory_s, 0.012, 1e-12);
    assert_near(l->batching_s, 0.007, 1e-12); /* 4 ms of kernels, 3 ms of launching */
    assert_near(l->transport_s, 0.007, 1e-12);
    assert_near(l->host_s, 0.010, 1e-12);
    double sum = l->compute_s + l->memory_s + l->batching_s + l->transport_s + l->host_s;
    assert_near(sum, l->total_s, 1e-12);
    w.devices[0].watts = NULL; /* what limits the kernels is not known: all of them compute */
    build();
    assert_true(fabs(l->compute_s - 0.040) < 1e-12 && l->memory_s == 0);
    w.of[0].ledger.steps = 0;
    build();
    assert_false(l->valid);
}

/* ---- what rules read of a run: shares from the kernels' names, time, energy and memory ---- */

static const struct hec_facts *gather(void) {
    hec_facts_gather(&w.summary, &w.devices[0], &w.facts);
    return &w.facts;
}

static int begin_facts(void **state) {
    (void)state;
    world_begin(1);
    w.devices[0].watts = &w.of[0].watts;
    w.of[0].watts.profile.sms = 132;
    d->device.memory_kib = 1000000;
    d->metric[HEC_GPU_MEM_USED].maximum = 256000000;
    return 0;
}

TEST_WITH(test_kernels_by_name, begin_facts, NULL) {
    fake_kernel(&w.of[0], "ampere_sgemm_128x64_tn", 3, 50);
    fake_kernel(&w.of[0], "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 1, 9);
    fake_kernel(&w.of[0], "vectorized_elementwise_kernel", 4, 100); /* blocks unknown */
    fake_kernel(&w.of[0], "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9, 1);
    fake_kernel(&w.of[0], "cross_device_reduce_1stage", 9, 1);
    const struct hec_facts *f = gather();
    assert_near(f->class_share[HEC_KERNEL_CLASS_GEMM], 0.5, 1e-12);
    assert_near(f->class_share[HEC_KERNEL_CLASS_ELEMENTWISE], 0.5, 1e-12);
    assert_near(f->class_share[HEC_KERNEL_CLASS_COMM], 0, 0);
    assert_near(f->math_share, 0.5, 1e-12);
    assert_near(f->precision_share[HEC_KERNEL_PRECISION_SIMT_FP32], 0.75, 1e-12);
    assert_near(f->precision_share[HEC_KERNEL_PRECISION_TENSOR_HALF], 0.25, 1e-12);
    assert_near(f->small_share, 0.125, 1e-12);
}

TEST_WITH(test_facts_of_the_run, begin_facts, NULL) {
    const struct hec_facts *f = gather();
    assert_ptr_equal(f->device, &w.devices[0]);
    assert_ptr_equal(f->profile, &w.of[0].watts.profile);
    assert_string_equal(f->part->id, "H200_SXM");
    assert_near(f->run_s, 100, 1e-12);
    assert_near(f->run_j, 50000, 1e-9);
    assert_near(f->mean_w, 500, 1e-9);
    assert_near(f->memory_free_share, 0.75, 1e-9);
}

TEST_WITH(test_unknown_is_not_zero, begin_facts, NULL) {
    d->energy.valid = false;
    const struct hec_facts *f = gather();
    assert_true(isnan(f->run_j) && isnan(f->mean_w));
    fake_dossier_untraced(&w.devices[0]);
    d->metric[HEC_GPU_MEM_USED].maximum = NAN;
    assert_null(gather()->profile);
    assert_near(f->run_s, 100, 0);
    assert_true(isnan(f->memory_free_share));
}

/* The interval holds the rule's own, and what measured claims of the cause were off; best guesses stay. */
TEST(test_intervals_by_measured_claims) {
    struct hec_finding f = {.cause = HEC_CAUSE_LAUNCH,
                            .step_seconds = {0.39, 0.4, 0.41},
                            .step_joules = {0.01, 0.4, 0.99},
                            .seconds = {0.19, 0.2, 0.21},
                            .joules = {NAN, NAN, NAN}};
    hec_claims_widen(&f);
    assert_true(f.step_seconds.low > 0.05 && f.step_seconds.low < 0.3 && f.step_seconds.high > 0.5 &&
                f.step_seconds.high < 0.9);
    assert_near(f.step_seconds.best, 0.4, 0);
    assert_near(f.seconds.low, 0.2 - 0.5 * (0.4 - f.step_seconds.low), 1e-9); /* half of the run is steps */
    assert_near(f.seconds.high, 0.2 + 0.5 * (f.step_seconds.high - 0.4), 1e-9);
    assert_near(f.step_joules.low, 0.01, 0);
    assert_near(f.step_joules.high, 0.99, 0);
    assert_true(isnan(f.joules.best));
    f = (struct hec_finding){.cause = HEC_CAUSE_MEMORY, .seconds = {0, 0, 0.4}, .step_seconds = {NAN, NAN, NAN}};
    hec_claims_widen(&f);
    assert_near(f.seconds.high, 0.4, 0); /* nothing is claimed */
    f = (struct hec_finding){.cause = HEC_CAUSE_STRAGGLER, .seconds = {0.1, 0.2, 0.3}, .step_seconds = {NAN, NAN, NAN}};
    hec_claims_widen(&f);
    assert_near(f.seconds.low, 0.1, 0); /* none was measured */
}

EACH_TEST(before_each, NULL)
