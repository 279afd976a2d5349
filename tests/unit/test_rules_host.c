/* The rules of causes on the host, on facts built by hand: what each claims, just below its threshold nothing, no second
 * claimed twice, and no number where none is known. A run of 100 s and 20 kJ, 80 s of it steady: 1000 steps of 80 ms. */
#include "diagnose/rules/waits.h"
#include "rule_world.h"
#include "unit.h"

#define IDLE_W 120.0

/* Of a state, in the steady part and in the run, a cause owns so many seconds more. */
static void owns(enum hec_state state, enum hec_cause cause, double seconds) {
    struct hec_ledger_row *rows[] = {&w.of[0].steady.rows[state], &w.of[0].ledger.rows[state]};
    for (int i = 0; i < 2; i++) {
        rows[i]->seconds = rows[i]->seconds_low = rows[i]->seconds_high = rows[i]->seconds + seconds;
        rows[i]->ns = rows[i]->traced_ns = llround(rows[i]->seconds * 1e9);
        rows[i]->watts = rows[i]->watts_low = rows[i]->watts_high = hec_state_idle(state) ? IDLE_W : 600;
        rows[i]->joules = rows[i]->watts * rows[i]->seconds;
    }
    w.of[0].gaps.owned_s[state][cause] += cause == HEC_CAUSE_NONE ? 0 : seconds;
}

/* So many seconds, all of them of the cause that the state is named for. */
static void state(enum hec_state state, double seconds) {
    static const enum hec_cause causes[HEC_STATE_COUNT] = {
        [HEC_STATE_COMPUTE] = HEC_CAUSE_NONE,
        [HEC_STATE_COPY] = HEC_CAUSE_COPY,
        [HEC_STATE_SYNC] = HEC_CAUSE_SYNC,
        [HEC_STATE_LAUNCH] = HEC_CAUSE_LAUNCH,
        [HEC_STATE_HOST] = HEC_CAUSE_HOST,
        [HEC_STATE_ALLOC] = HEC_CAUSE_ALLOC,
        [HEC_STATE_CHECKPOINT] = HEC_CAUSE_CHECKPOINT,
        [HEC_STATE_STARTUP] = HEC_CAUSE_COMPILE,
        [HEC_STATE_DATA] = HEC_CAUSE_DATA,
    };
    w.of[0].steady.rows[state].seconds = w.of[0].ledger.rows[state].seconds = 0;
    memset(w.of[0].gaps.owned_s[state], 0, sizeof w.of[0].gaps.owned_s[state]);
    owns(state, causes[state], seconds);
}

static void begin(void) {
    memset(&w, 0, sizeof w);
    w.devices[0] = fake_dossier(&w.of[0], 0);
    w.facts = (struct hec_facts){.summary = &w.summary,
                                 .device = &w.devices[0],
                                 .steps = &w.summary.steps,
                                 .run_s = 100,
                                 .run_j = 20000,
                                 .mean_w = 200,
                                 .small_share = 0.5,
                                 .memory_free_share = NAN};
    w.summary.seconds = 100;
    w.summary.host = (struct hec_host_summary){.cores = 64, .cores_usable = 16, .tree_cores = 2};
    w.summary.steps = (struct hec_step_summary){
        .source = HEC_STEP_OPTIMIZER, .count = 1000, .duration = {.count = 1000, .mean = 0.08}, .samples_per_step = 64};
    d->device.pcie_kib_per_s = 62500000; /* 64 GB/s */
    d->energy.idle_context_watts = NAN;
    d->power_w.minimum = 80;
    d->activity = (struct hec_use){.from_s = 10, .to_s = 90, .has_gpm = true, .engine = 0.25, .power_w = 150};
    w.of[0].timeline.traced_s = 80;
    w.of[0].timeline.to_s = 99;
    w.of[0].timeline.kernel.median = 5e-6;
    w.of[0].ledger.window_ns = w.of[0].ledger.traced_ns = INT64_C(100000000000);
    w.of[0].steady.window_ns = w.of[0].steady.traced_ns = INT64_C(80000000000);
    w.of[0].calls = (struct hec_call_facts){.traced_s = 80, .steps = 1000, .chain_mean = NAN};
    w.of[0].calls.api[HEC_API_LAUNCH] = (struct hec_call_total){100000, 0.4};
    state(HEC_STATE_COMPUTE, 40);
}

static int before_each(void **unused) {
    (void)unused;
    begin();
    return 0;
}

static bool judge(enum hec_cause cause) {
    w.finding = hec_finding_begin(hec_rule_of(cause), 0);
    return hec_rule_of(cause)->judge(&w.facts, &w.finding);
}

static void reported(const struct hec_saving *s, double least, double most) {
    assert_true(0 <= s->low && s->low <= s->best && s->best <= s->high && s->high <= 1);
    if (!(s->best >= least && s->best <= most))
        fail_msg("%g is not in %g..%g", s->best, least, most);
}

/* The cause is found, owns so many seconds, and saves at most those at idle power and at least half of them. */
static void finds(enum hec_cause cause, double owned_s) {
    struct hec_waits waits;
    if (!judge(cause))
        fail_msg("%s is not found", hec_cause_name(cause));
    hec_waits_gather(&w.facts, &waits);
    assert_true(fabs(waits.owned_s[cause] - owned_s) < 1e-6);
    assert_true(w.finding.confidence > 0.6 && w.finding.confidence <= 1 && has_numbers(&w.finding));
    reported(&w.finding.seconds, 0.5 * owned_s / 100, owned_s / 100);
    reported(&w.finding.joules, 0.5 * owned_s * IDLE_W / 20000, owned_s * IDLE_W / 20000);
    assert_true(w.finding.states != 0 && !w.finding.estimated);
    const struct hec_goes *goes = hec_goes_of(cause); /* and what `hec explain` says of it */
    double part = cause == HEC_CAUSE_COMPILE ? 1 - 1 / (double)w.of[0].gaps.loads : 1; /* one compilation stays */
    if (cause != HEC_CAUSE_COPY)
        assert_true(is_near(w.finding.seconds.best, part * goes->part.best * owned_s / 100));
    assert_true(is_near(w.finding.confidence, goes->confidence));
}

static void silent_but(enum hec_cause cause) {
    for (int c = HEC_CAUSE_DATA; c <= HEC_CAUSE_HOST; c++)
        if (c != (int)cause && judge((enum hec_cause)c))
            fail_msg("%s besides %s", hec_cause_name((enum hec_cause)c), hec_cause_name(cause));
    if (cause != HEC_CAUSE_IDLE)
        assert_false(judge(HEC_CAUSE_IDLE));
}

#define SAYS(id, value) shows(&w.finding, HEC_EVIDENCE_##id, value)
#define SECOND(id, value) is_near(number(HEC_EVIDENCE_##id, 1), value)
#define ANSWERS(id, parameter) answers(&w.finding, HEC_LEVER_##id, parameter)

static double number(enum hec_evidence_id id, int at) {
    const struct hec_evidence *fact = fact_of(&w.finding, id);
    return fact ? fact->value[at] : NAN;
}

/* What all waits add up to is what there is. */
static void divided(double seconds) {
    struct hec_waits waits;
    double sum = 0;
    hec_waits_gather(&w.facts, &waits);
    for (int c = 0; c < HEC_CAUSE_COUNT; c++)
        sum += waits.owned_s[c];
    assert_true(fabs(sum - seconds) < 1e-6);
}

TEST(test_data) {
    state(HEC_STATE_DATA, 40);
    finds(HEC_CAUSE_DATA, 40);
    assert_true(SAYS(WAIT_SHARE, 0.5) && SAYS(WAIT, 0.04) && SECOND(WAIT, 0.08));
    assert_int_equal(w.finding.per, HEC_PER_STEP);
    assert_true(ANSWERS(LOADER_WORKERS, 1)); /* 40 ms beside 40 */
    assert_true(fabs(w.finding.joules.best - 40 * IDLE_W / 20000) < 1e-9);
    silent_but(HEC_CAUSE_DATA);
    state(HEC_STATE_DATA, 64);
    finds(HEC_CAUSE_DATA, 64);
    assert_true(ANSWERS(LOADER_WORKERS, 4) && is_near(w.finding.lever.value[1], 14)); /* cores are idle */
    assert_true(SAYS(THROUGHPUT, 800) && SECOND(THROUGHPUT, 4000));
    /* With workers the step is as long as they need for a batch: n of them take n steps for one each. */
    const struct {
        int have, in_all;
    } workers[] = {{1, 5}, {2, 10}, {3, 15}, {4, 18}}; /* the last would need 20, and 14 cores are idle */
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        w.summary.loader_workers = workers[i].have;
        assert_true(judge(HEC_CAUSE_DATA) && SAYS(LOADER_WORKERS, workers[i].have));
        if (!answers(&w.finding, i == 3 ? HEC_LEVER_LOADER_ALL_CORES : HEC_LEVER_LOADER_WORKERS, workers[i].in_all))
            fail_msg("with %d workers: %s %g", workers[i].have, hec_lever_name(w.finding.lever.id),
                     w.finding.lever.value[0]);
    }
    assert_true(is_near(w.finding.lever.value[2], 20));
    w.summary.loader_workers = -1; /* no number without one to count from */
    assert_true(judge(HEC_CAUSE_DATA) && ANSWERS(LOAD_AHEAD, 0));
    w.summary.loader_workers = 0;
    w.summary.host.tree_cores = 14; /* 2 idle */
    assert_true(judge(HEC_CAUSE_DATA) && ANSWERS(LOADER_ALL_CORES, 2));
    w.summary.host.tree_cores = 15.5;
    assert_true(judge(HEC_CAUSE_DATA) && ANSWERS(CHEAPER_INPUT, 0));
    w.summary.host.cores_usable = 0;
    assert_true(judge(HEC_CAUSE_DATA) && !fact_of(&w.finding, HEC_EVIDENCE_HOST_CORES) && ANSWERS(LOAD_AHEAD, 0));
    state(HEC_STATE_DATA, 3.99);
    silent_but(HEC_CAUSE_NONE);
    state(HEC_STATE_DATA, 4.01);
    assert_true(judge(HEC_CAUSE_DATA));
}

TEST(test_checkpoint) {
    state(HEC_STATE_CHECKPOINT, 20);
    owns(HEC_STATE_COPY, HEC_CAUSE_CHECKPOINT, 10);
    owns(HEC_STATE_COPY, HEC_CAUSE_COPY, 2);
    finds(HEC_CAUSE_CHECKPOINT, 30);
    silent_but(HEC_CAUSE_CHECKPOINT);
    divided(32);
    state(HEC_STATE_CHECKPOINT, 3.99);
    state(HEC_STATE_COPY, 2);
    assert_false(judge(HEC_CAUSE_CHECKPOINT));
}

TEST(test_sync) {
    state(HEC_STATE_SYNC, 8);
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_SYNC, 6);
    owns(HEC_STATE_HOST, HEC_CAUSE_SYNC, 3);
    owns(HEC_STATE_HOST, HEC_CAUSE_HOST, 1);
    w.of[0].calls.api[HEC_API_SYNC].count = 64000;
    w.of[0].calls.reads = 64000;
    finds(HEC_CAUSE_SYNC, 17);
    assert_true(SAYS(WAITS, 64) && SAYS(READS, 64) && ANSWERS(READ_SELDOM, 64));
    silent_but(HEC_CAUSE_SYNC);
    divided(18);
    state(HEC_STATE_SYNC, 3.99);
    state(HEC_STATE_LAUNCH, 0);
    state(HEC_STATE_HOST, 1);
    assert_false(judge(HEC_CAUSE_SYNC));
    state(HEC_STATE_SYNC, 4.01);
    w.of[0].calls.api[HEC_API_SYNC].count = 0; /* copies wait */
    assert_true(judge(HEC_CAUSE_SYNC) && !fact_of(&w.finding, HEC_EVIDENCE_WAITS) && ANSWERS(READ_SELDOM, 64));
}

TEST(test_launch) {
    state(HEC_STATE_COMPUTE, 8);
    state(HEC_STATE_LAUNCH, 30);
    owns(HEC_STATE_HOST, HEC_CAUSE_LAUNCH, 10);
    owns(HEC_STATE_HOST, HEC_CAUSE_HOST, 2);
    state(HEC_STATE_SYNC, 3);
    w.of[0].calls.api[HEC_API_LAUNCH].count = 1600000;
    finds(HEC_CAUSE_LAUNCH, 40);
    assert_true(SAYS(WAIT_SHARE, 0.5) && SAYS(LAUNCHES, 1600) && SECOND(LAUNCHES, 5e-6));
    silent_but(HEC_CAUSE_LAUNCH);
    divided(45);
    assert_true(judge(HEC_CAUSE_LAUNCH) && w.finding.states == (1u << HEC_STATE_LAUNCH | 1u << HEC_STATE_HOST));
    state(HEC_STATE_LAUNCH, 7.9);
    state(HEC_STATE_HOST, 2);
    assert_false(judge(HEC_CAUSE_LAUNCH));
}

/* What is launched behind waits is a wait's: no wait, or launched at once, and it goes. A framework's graph may not hold it. */
TEST(test_launch_behind_waits) {
    state(HEC_STATE_COMPUTE, 20);
    state(HEC_STATE_LAUNCH, 20);
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_COPY, 15);
    w.of[0].gaps.late_s = 15;
    double best = hec_goes_of(HEC_CAUSE_LAUNCH)->part.best;
    assert_true(judge(HEC_CAUSE_LAUNCH) && is_near(w.finding.seconds.best, best * 0.35));
    assert_true(SAYS(WAIT_SHARE, 20 / 80.0) && w.finding.seconds.low < 0.2 * best);
    w.summary.framed = true;
    w.summary.step_part[HEC_STEP_FORWARD] = w.summary.step_part[HEC_STEP_BACKWARD] =
        (struct hec_step_part_summary){50, 1000};
    assert_true(judge(HEC_CAUSE_LAUNCH) && is_near(w.finding.seconds.best, best * 0.2));
}

/* Launched at once the device works while the program's own code runs, for as long as either takes. */
TEST(test_launch_beside_code) {
    static const struct { double code_s, saves_s; } cases[] = {{0, 30}, {10, 40}, {25, 50}}; /* 20 s of compute */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        w.summary.steps.source = HEC_STEP_MODULE;
        state(HEC_STATE_COMPUTE, 20);
        state(HEC_STATE_LAUNCH, 30);
        state(HEC_STATE_HOST, 25);
        w.of[0].gaps.beside_s = cases[i].code_s;
        assert_true(judge(HEC_CAUSE_LAUNCH));
        double all = hec_goes_of(HEC_CAUSE_LAUNCH)->part.best * cases[i].saves_s / 100;
        assert_true(is_near(w.finding.seconds.best, all) && w.finding.seconds.high >= cases[i].saves_s / 100);
        w.summary.steps.source = HEC_STEP_OPTIMIZER; /* in parts */
        assert_true(judge(HEC_CAUSE_LAUNCH));
        assert_true(is_near(w.finding.seconds.best, hec_goes_of(HEC_CAUSE_LAUNCH)->part.best * 0.3));
    }
}

/* Several steps by one call launch as many kernels in JAX, unless what is launched are operations called one by one. */
TEST(test_launch_by_calls) {
    state(HEC_STATE_COMPUTE, 20);
    state(HEC_STATE_LAUNCH, 30);
    snprintf(w.summary.framework, sizeof w.summary.framework, "jax");
    assert_true(judge(HEC_CAUSE_LAUNCH));
    assert_true(is_near(w.finding.seconds.best, HEC_JIT_CALL_GOES * 0.3));
    assert_true(w.finding.seconds.low == 0 && w.finding.seconds.high >= 0.3);
    w.of[0].gaps.operations_s = 20;
    assert_true(judge(HEC_CAUSE_LAUNCH));
    assert_true(is_near(w.finding.seconds.best, hec_goes_of(HEC_CAUSE_LAUNCH)->part.best * 0.3));
}

/* What the device does beside the program's own code goes with it where a number is read behind it. */
TEST(test_code_that_covers) {
    double best[2];
    for (int covers = 0; covers < 2; covers++) {
        begin();
        state(HEC_STATE_COMPUTE, 20);
        state(HEC_STATE_HOST, 25);
        w.of[0].gaps.covered_s = covers ? 10 : 0;
        assert_true(judge(HEC_CAUSE_HOST));
        best[covers] = w.finding.seconds.best;
    }
    assert_true(is_near(best[1] - best[0], hec_goes_of(HEC_CAUSE_HOST)->part.best * 0.1));
}

/* 1000 steps of a framework's loop, whose passes take 20 ms of the host each: a graph holds those, and calling it takes 2.2 ms. */
TEST(test_launch_in_a_framework) {
    state(HEC_STATE_COMPUTE, 20);
    state(HEC_STATE_LAUNCH, 30);
    w.summary.framed = true;
    w.summary.step_part[HEC_STEP_FORWARD] = (struct hec_step_part_summary){8, 1000};
    w.summary.step_part[HEC_STEP_BACKWARD] = (struct hec_step_part_summary){12, 1000};
    assert_true(judge(HEC_CAUSE_LAUNCH) && SAYS(GRAPHS_HOLD, 20e-3) && SECOND(GRAPHS_HOLD, 2.2e-3));
    assert_true(is_near(w.finding.seconds.best, 0.2 - 0.022) && w.finding.seconds.high >= 0.3);
    assert_true(is_near(w.finding.edit_value, 1 - (0.2 - 0.022) / 0.3 / hec_goes_of(HEC_CAUSE_LAUNCH)->part.best));
    w.summary.step_part[HEC_STEP_BACKWARD].seconds = 92; /* more than waits for launches are */
    assert_true(judge(HEC_CAUSE_LAUNCH) &&
                is_near(w.finding.seconds.best, hec_goes_of(HEC_CAUSE_LAUNCH)->part.best * 0.3));
    w.summary.step_part[HEC_STEP_FORWARD].seconds = w.summary.step_part[HEC_STEP_BACKWARD].seconds =
        1; /* less than the call */
    assert_true(judge(HEC_CAUSE_LAUNCH) && w.finding.seconds.best == 0 && w.finding.seconds.low == 0);
    assert_true(is_near(w.finding.edit_value, 1)); /* of the replay too: it leaves all launches as they are */
    w.summary.framed = false;                      /* the program's own loop can be captured whole */
    assert_true(judge(HEC_CAUSE_LAUNCH) &&
                is_near(w.finding.seconds.best, hec_goes_of(HEC_CAUSE_LAUNCH)->part.best * 0.3));
    w.summary.framed = true;
    w.summary.step_part[HEC_STEP_FORWARD].seconds = NAN; /* not seen */
    assert_true(judge(HEC_CAUSE_LAUNCH) &&
                is_near(w.finding.seconds.best, hec_goes_of(HEC_CAUSE_LAUNCH)->part.best * 0.3));
}

static double worth(enum hec_cause cause) {
    assert_true(judge(cause));
    reported(&w.finding.seconds, 0.01, 1);
    reported(&w.finding.joules, 0.01, 1);
    return w.finding.joules.best * w.finding.confidence;
}

/* Products of a program without steps, as JAX's, whose kernels nobody saw: 20 s of launching, 10 of reading, 20 of code in a run whose
 * device computes for 30 s, with a tenth of the tensor pipes. */
static void products(double tensor, double occupancy, double free_share) {
    begin();
    state(HEC_STATE_COMPUTE, 30);
    state(HEC_STATE_LAUNCH, 20);
    state(HEC_STATE_SYNC, 10);
    state(HEC_STATE_HOST, 20);
    w.devices[0].timeline = NULL;
    w.summary.steps = (struct hec_step_summary){.source = HEC_STEP_NONE, .samples_per_step = NAN, .busy_share = NAN};
    w.facts.own_counters = true;
    w.facts.memory_free_share = free_share;
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.3;
    d->metric[HEC_GPM_SM_ACTIVE].mean = 0.3 * 0.8;
    d->metric[HEC_GPM_SM_OCCUPANCY].mean = 0.3 * occupancy;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0.3 * tensor;
    d->metric[HEC_GPM_FP32_ACTIVE].mean = 0.3 * 0.02;
}

TEST(test_small_batch_without_steps) {
    products(0.1, 0.2, 0.9);
    double times = 4, waits = (1 - 1 / times) * (0.3 + 0.5 * 0.2);
    assert_true(judge(HEC_CAUSE_BATCH));
    assert_true(SAYS(BATCH_PRODUCTS, 0.1) && SECOND(BATCH_PRODUCTS, 0.3 / 0.8));
    assert_true(is_near(w.finding.seconds.best, waits + 0.3 * (1 - 0.1 / 0.4)));
    assert_true(is_near(w.finding.seconds.low, 0.5 * 0.2));
    assert_true(w.finding.estimated && is_near(w.finding.confidence, HEC_BATCH_PRODUCTS_CONFIDENCE));
    products(0.1, 0.6,
             0.9); /* element-wise kernels among them: what each round takes of the host alone, as far as is known */
    assert_true(judge(HEC_CAUSE_BATCH));
    assert_true(is_near(w.finding.seconds.best, waits) && w.finding.seconds.high > waits + 0.2);
    products(
        0.1, 0.6,
        0.9); /* 8 s around a copy of 2 s: calls take as long for more bytes, and of the bytes half is the step's */
    owns(HEC_STATE_SYNC, HEC_CAUSE_COPY, 8);
    state(HEC_STATE_COPY, 2);
    double copies = (1 - 1 / times) * (0.08 + HEC_BATCH_HOST_GOES * 0.02);
    assert_true(judge(HEC_CAUSE_BATCH) && is_near(w.finding.seconds.best, waits + copies));
    assert_true(SECOND(BATCH_PRODUCTS, (20 + 10 + 8) / 80.0));
    w.of[0].calls.small_copies = 1 << 20; /* many small ones: each may be a sample's */
    w.of[0].gaps.small_s = 8;
    assert_true(judge(HEC_CAUSE_BATCH) &&
                is_near(w.finding.seconds.best, waits + (1 - 1 / times) * HEC_BATCH_HOST_GOES * 0.1));
    products(0.31, 0.2, 0.9); /* large enough */
    assert_false(judge(HEC_CAUSE_BATCH));
    products(0.01, 0.2, 0.9); /* no products */
    assert_false(judge(HEC_CAUSE_BATCH));
    products(0.1, 0.2, 0.4); /* no room */
    assert_false(judge(HEC_CAUSE_BATCH));
    products(0.1, 0.2, 0.9); /* steps, of which the samples are not known */
    w.summary.steps.source = HEC_STEP_OPTIMIZER;
    assert_false(judge(HEC_CAUSE_BATCH));
    products(0.1, 0.2, 0.9);
    state(HEC_STATE_LAUNCH, 2);
    state(HEC_STATE_SYNC, 2);
    assert_false(judge(HEC_CAUSE_BATCH));
}

/* 1600 launches a step of 5 us each, and room for a larger batch: that is the answer, and launching less the other one. */
TEST(test_small_batch_that_launches) {
    state(HEC_STATE_COMPUTE, 8);
    state(HEC_STATE_LAUNCH, 30);
    state(HEC_STATE_HOST, 2);
    owns(HEC_STATE_HOST, HEC_CAUSE_LAUNCH, 10);
    w.of[0].calls.api[HEC_API_LAUNCH].count = 1600000;
    w.summary.steps.samples_per_step = 8; /* of what fits 256 */
    w.facts.memory_free_share = 0.95;
    double batch = worth(HEC_CAUSE_BATCH);
    assert_true(SAYS(BATCH_SAMPLES, 8) && SECOND(LAUNCHES, 5e-6) && SAYS(MEMORY_FREE, 0.95));
    double quarters = w.finding.seconds.best;
    assert_true(batch > worth(HEC_CAUSE_LAUNCH));
    assert_true(w.finding.seconds.best > quarters); /* than four times the batch; of more there is room for 20 */
    assert_true(is_near(w.finding.confidence, hec_goes_of(HEC_CAUSE_LAUNCH)->confidence * HEC_LAUNCH_FEW_SAMPLES));
    w.summary.steps.samples_per_step = 1; /* inference of what is at hand */
    w.summary.steps.source = HEC_STEP_MODULE;
    batch = worth(HEC_CAUSE_BATCH);
    assert_true(SAYS(BATCH_SAMPLES, 1) && ANSWERS(BATCH_OR_LAUNCH_LESS, 4));
    double launch =
        worth(HEC_CAUSE_LAUNCH); /* which ends all of the wait, and four times the batch three quarters of it */
    assert_true(batch < launch && batch > 0.75 * launch);
    state(HEC_STATE_REQUESTS, 10); /* a server that waits for requests has none to put together */
    batch = worth(HEC_CAUSE_BATCH);
    assert_true(batch < worth(HEC_CAUSE_LAUNCH) && batch > 0.05);
    state(HEC_STATE_REQUESTS, 0);
    w.summary.steps.source = HEC_STEP_MARKED; /* one unit, of whatever the program counts */
    batch = worth(HEC_CAUSE_BATCH);
    assert_true(batch < worth(HEC_CAUSE_LAUNCH));
    w.summary.steps.source = HEC_STEP_MODULE;
    /* 8 s of compute, which four times the samples take four times, and 40 + 2 of the host, which they take once. */
    w.finding.seconds.best = NAN;
    assert_true(judge(HEC_CAUSE_BATCH) && is_near(w.finding.seconds.best, (50 - 50 / 4.0) / 100));
    assert_true(w.finding.lever.value[0] == 4);
    w.facts.memory_free_share = 0.6; /* room for two and a half */
    assert_true(judge(HEC_CAUSE_BATCH) && is_near(w.finding.seconds.best, (50 - 50 / 2.5) / 100));
    w.facts.memory_free_share = 0.45;
    assert_false(judge(HEC_CAUSE_BATCH));
    w.facts.memory_free_share = NAN; /* nobody knows whether there is room */
    assert_false(judge(HEC_CAUSE_BATCH));
    w.facts.memory_free_share = 0.95;
    w.summary.steps.samples_per_step = NAN; /* nor whether samples are few */
    assert_false(judge(HEC_CAUSE_BATCH));
    w.summary.steps.samples_per_step = 4096;
    assert_false(judge(HEC_CAUSE_BATCH));
    w.summary.steps.samples_per_step = 64;
    state(HEC_STATE_COMPUTE, 24); /* 15 us each: longer than their launch */
    assert_false(judge(HEC_CAUSE_BATCH));
    w.summary.steps.samples_per_step = 8; /* but so few samples are for more of them than they take */
    assert_true(judge(HEC_CAUSE_BATCH) && w.finding.seconds.best > 0.25);
}

TEST(test_host) {
    state(HEC_STATE_HOST, 28);
    owns(HEC_STATE_HOST, HEC_CAUSE_LAUNCH, 2);
    w.of[0].lines[0] =
        (struct hec_source_line){.state = HEC_STATE_HOST, .file = "/home/u/train.py", .function = "step", .line = 75};
    w.of[0].lines[0].seconds = 25;
    w.devices[0].steady_source.count = 1;
    finds(HEC_CAUSE_HOST, 28);
    assert_true(SAYS(HELD_BY_LINE, 25) && SECOND(HELD_BY_LINE, 75));
    assert_string_equal(fact_of(&w.finding, HEC_EVIDENCE_HELD_BY_LINE)->name, "step");
    assert_string_equal(fact_of(&w.finding, HEC_EVIDENCE_HELD_BY_LINE)->file, "/home/u/train.py");
    silent_but(HEC_CAUSE_HOST);
    divided(30);
    state(HEC_STATE_HOST, 6.39);
    assert_false(judge(HEC_CAUSE_HOST));
    /* Beside a larger cause it is less sure. */
    state(HEC_STATE_HOST, 20);
    assert_true(judge(HEC_CAUSE_HOST) && w.finding.confidence > 0.8);
    /* Beside a Python that nobody could look into it may be its loader. */
    w.summary.hooks_out = 1;
    assert_true(judge(HEC_CAUSE_HOST) && w.finding.confidence < 0.6);
    snprintf(w.summary.python, sizeof w.summary.python, "3.11.2");
    assert_true(judge(HEC_CAUSE_HOST) && w.finding.confidence > 0.8);
    state(HEC_STATE_DATA, 20.1);
    assert_true(judge(HEC_CAUSE_HOST) && w.finding.confidence < 0.7);
}

TEST(test_copy) {
    /* rows one at a time */
    state(HEC_STATE_COPY, 4);
    owns(HEC_STATE_SYNC, HEC_CAUSE_COPY, 20);
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_COPY, 10);
    w.of[0].gaps.small_s = 30;
    w.of[0].calls.api[HEC_API_SYNC].count = w.of[0].calls.small_copies = 1024000;
    finds(HEC_CAUSE_COPY, 34);
    assert_true(SAYS(SMALL_COPY_SHARE, 34.0 / 80) && SAYS(SMALL_COPIES, 1024) && ANSWERS(JOIN_COPIES, 1024));
    silent_but(HEC_CAUSE_COPY);
    divided(34);

    begin(); /* there and back */
    state(HEC_STATE_COPY, 30);
    owns(HEC_STATE_SYNC, HEC_CAUSE_COPY, 5);
    w.of[0].calls.api[HEC_API_SYNC].count = w.of[0].calls.round_trips = 1000;
    w.of[0].calls.round_trip_bytes = 1000 * 64e6;
    w.of[0].calls.round_trip_s = 30;
    w.of[0].calls.pageable_bytes = 64e9;
    w.of[0].calls.pageable_s = 30;
    finds(HEC_CAUSE_COPY, 35);
    assert_true(SAYS(ROUND_TRIP_SHARE, 35.0 / 80) && SECOND(ROUND_TRIPS, 32e6));
    silent_but(HEC_CAUSE_COPY);

    begin();                  /* pageable: 20 GB/s where 0.8 x 64 can be had */
    state(HEC_STATE_HOST, 1); /* for its watts */
    state(HEC_STATE_COPY, 20);
    w.of[0].calls.pageable_bytes = 400e9;
    w.of[0].calls.pageable_s = 20;
    finds(HEC_CAUSE_COPY, 20);
    assert_true(SAYS(PAGEABLE_SHARE, 0.25) && SAYS(PAGEABLE_RATE, 20e9));
    assert_true(fabs(w.finding.seconds.best - 0.2 * (1 - 20 / 51.2)) < 1e-6);
    silent_but(HEC_CAUSE_COPY);
    state(HEC_STATE_REQUESTS, 1); /* of a server: what it is asked is new each time */
    assert_true(judge(HEC_CAUSE_COPY) && w.finding.lever.id == HEC_LEVER_PIN_REQUESTS);
    assert_true(w.finding.seconds.low == 0 && fabs(w.finding.seconds.best - 0.2 * 0.1) < 1e-6);
    state(HEC_STATE_REQUESTS, 0);
    owns(HEC_STATE_SYNC, HEC_CAUSE_COPY, 2); /* waited for */
    finds(HEC_CAUSE_COPY, 22);
    d->device.pcie_kib_per_s = 0;
    assert_true(judge(HEC_CAUSE_COPY) && !fact_of(&w.finding, HEC_EVIDENCE_PAGEABLE_RATE));
    state(HEC_STATE_COPY, 3.99);
    state(HEC_STATE_SYNC, 0);
    assert_false(judge(HEC_CAUSE_COPY));
}

TEST(test_alloc) {
    state(HEC_STATE_ALLOC, 20);
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_ALLOC, 8);
    owns(HEC_STATE_HOST, HEC_CAUSE_ALLOC, 6);
    assert_false(judge(HEC_CAUSE_ALLOC)); /* once, at set-up */
    w.of[0].gaps.allocs_recur = true;
    w.of[0].calls.api[HEC_API_ALLOC] = (struct hec_call_total){30000, 0.9};
    w.of[0].calls.api[HEC_API_FREE] = (struct hec_call_total){30000, 2.1};
    finds(HEC_CAUSE_ALLOC, 34);
    assert_true(SAYS(ALLOCATIONS, 60) && SECOND(ALLOCATIONS, 50e-6));
    silent_but(HEC_CAUSE_ALLOC);
    divided(34);
    assert_true(judge(HEC_CAUSE_ALLOC)); /* and of what launches wait for, with one allocation for two of them */
    double best = w.finding.seconds.best, most = w.finding.seconds.high;
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 10);
    w.of[0].calls.api[HEC_API_LAUNCH].count = 120000;
    assert_true(judge(HEC_CAUSE_ALLOC));
    assert_true(is_near(w.finding.seconds.best, best + 0.025) && is_near(w.finding.seconds.high, most + 0.05));
    state(HEC_STATE_ALLOC, 3.99);
    state(HEC_STATE_LAUNCH, 0);
    state(HEC_STATE_HOST, 0);
    assert_false(judge(HEC_CAUSE_ALLOC));
}

TEST(test_compile) {
    state(HEC_STATE_HOST, 2);
    owns(HEC_STATE_HOST, HEC_CAUSE_COMPILE, 23);
    state(HEC_STATE_STARTUP, 5);
    state(HEC_STATE_SYNC, 1);
    w.of[0].gaps.loads = 6;
    silent_but(HEC_CAUSE_NONE); /* each kernel at its first launch */
    w.of[0].gaps.loads_recur = true;
    finds(HEC_CAUSE_COMPILE, 28);
    silent_but(HEC_CAUSE_COMPILE);
    w.of[0].gaps.loads = 1;
    assert_false(judge(HEC_CAUSE_COMPILE));
    w.of[0].calls.late_loads = 2;
    assert_true(judge(HEC_CAUSE_COMPILE));
    int64_t steps = w.summary.steps.count;
    w.summary.steps.count = 0; /* of a program without steps calls or stacks have to say so */
    assert_true(judge(HEC_CAUSE_COMPILE));
    w.of[0].gaps.loads = 6;
    w.of[0].calls.late_loads = 1;
    assert_false(judge(HEC_CAUSE_COMPILE));
    w.devices[0].compiling_s = 3;
    assert_true(judge(HEC_CAUSE_COMPILE));
    w.devices[0].compiling_s = 0;
    w.summary.steps.count = steps;
    state(HEC_STATE_HOST, 0);
    state(HEC_STATE_STARTUP, 3.99);
    assert_false(judge(HEC_CAUSE_COMPILE));
}

/* One compilation that is most of a run is said; nothing is claimed of it. */
TEST(test_compile_as_set_up) {
    w.devices[0].compiling_s = 40;
    assert_false(judge(HEC_CAUSE_COMPILE)); /* where, is not known */
    w.of[0].lines[0] =
        (struct hec_source_line){.state = HEC_STATE_STARTUP, .file = "train.py", .function = "main", .line = 9};
    w.devices[0].source.count = 1;
    assert_true(judge(HEC_CAUSE_COMPILE) && SAYS(COMPILING, 40) && is_near(w.finding.title.value[1], 100));
    assert_true(SAYS(AT_PLACE, 9) && ANSWERS(KEEP_COMPILED, 0) && isnan(w.finding.seconds.best) &&
                hec_finding_tells(&w.finding));
    w.devices[0].compiling_s = 29.9;
    assert_false(judge(HEC_CAUSE_COMPILE));
    w.devices[0].compiling_s = 4.9;
    w.facts.run_s = 10;
    assert_false(judge(HEC_CAUSE_COMPILE));
}

TEST(test_quiet) {
    w.summary.host.tree_cores = 0.3;
    w.of[0].ledger.rows[HEC_STATE_REQUESTS].seconds = 46;
    w.of[0].ledger.rows[HEC_STATE_REQUESTS].watts = IDLE_W;
    w.of[0].lines[0] = (struct hec_source_line){
        .state = HEC_STATE_REQUESTS, .file = "/home/u/serve.py", .function = "loop", .line = 7};
    w.devices[0].source.count = 1;
    assert_true(judge(HEC_CAUSE_QUIET) && SAYS(NO_WORK, 46) && is_near(w.finding.title.value[1], 0.46));
    assert_true(SAYS(AT_PLACE, 7) && SAYS(HELD_POWER, IDLE_W) && ANSWERS(SHARE_DEVICE, 0));
    assert_true(isnan(w.finding.seconds.best) && isnan(w.finding.joules.best) && hec_finding_tells(&w.finding));
    assert_true(w.finding.states == 1u << HEC_STATE_REQUESTS && w.finding.confidence >= HEC_FINDING_SURE);
    double sure = w.finding.confidence;
    silent_but(HEC_CAUSE_NONE);
    w.summary.host.tree_cores = 1.05; /* of which the waiting thread has 0.54 */
    assert_true(judge(HEC_CAUSE_QUIET) && SAYS(FED, 46) && ANSWERS(CHEAPER_INPUT, 0) && w.finding.confidence < sure);
    w.of[0].ledger.rows[HEC_STATE_REQUESTS].seconds = 19.9;
    assert_false(judge(HEC_CAUSE_QUIET));
    w.facts.run_s = 4;
    w.of[0].ledger.rows[HEC_STATE_REQUESTS].seconds = 1.9;
    assert_false(judge(HEC_CAUSE_QUIET));
}

TEST(test_hang) {
    struct hec_after *after = &w.devices[0].after;
    *after = (struct hec_after){.seconds = 30, .engine = 0.94, .watts = 531, .works = true};
    assert_true(judge(HEC_CAUSE_HANG) && SAYS(UNENDED, 30) && is_near(w.finding.title.value[1], 70));
    assert_true(SAYS(WORKS_ON, 0.94) && ANSWERS(FIND_HANG, 0) && isnan(w.finding.seconds.best));
    double blind = w.finding.confidence;
    w.of[0].lines[0] = (struct hec_source_line){
        .state = HEC_STATE_TAIL, .file = "/home/u/train.py", .function = "sync", .line = 7, .share = 0.95};
    w.devices[0].source.count = 1;
    assert_true(judge(HEC_CAUSE_HANG) && SAYS(AT_PLACE, 7) && w.finding.confidence > blind);
    w.of[0].lines[0].share = 0.7; /* the program goes on */
    assert_false(judge(HEC_CAUSE_HANG));
    w.of[0].lines[0].share = 0.95;
    after->goes_on = true;
    assert_false(judge(HEC_CAUSE_HANG));
    *after = (struct hec_after){.seconds = 4.9, .engine = 0.94, .watts = 531, .works = true};
    assert_false(judge(HEC_CAUSE_HANG)); /* of 100 s */
    *after = (struct hec_after){.seconds = 30, .engine = 0.5, .watts = 300};
    assert_false(judge(HEC_CAUSE_HANG));
}

/* What telemetry shows goes before what a trace does not. */
TEST(test_who_works_on_is_not_idle) {
    w.of[0].ledger.rows[HEC_STATE_TAIL].seconds = 30;
    w.devices[0].after = (struct hec_after){.seconds = 30, .engine = 0.02, .watts = IDLE_W};
    assert_true(judge(HEC_CAUSE_IDLE));
    w.devices[0].after.engine = NAN;
    assert_true(judge(HEC_CAUSE_IDLE));
    w.devices[0].after.engine = 0.3;
    assert_false(judge(HEC_CAUSE_IDLE));
}

/* A model that stays loaded on a card that keeps its clocks up. */
TEST(test_clocks_that_stay_high_are_named) {
    struct hec_stat *clock = &w.devices[0].readings.metric[HEC_GPU_SM_CLOCK];
    w.of[0].ledger.rows[HEC_STATE_TAIL].seconds = 30;
    w.devices[0].after = (struct hec_after){.seconds = 30, .engine = 0.0, .watts = 45, .sm_mhz = 1303};
    *clock = (struct hec_stat){.maximum = 1531};
    assert_true(judge(HEC_CAUSE_IDLE) && SAYS(HELD_CLOCK, 1303));
    w.devices[0].after.sm_mhz = 765; /* half, less a little */
    assert_true(judge(HEC_CAUSE_IDLE) && !SAYS(HELD_CLOCK, 765));
    w.devices[0].after.sm_mhz = 1303;
    clock->maximum = NAN;
    assert_true(judge(HEC_CAUSE_IDLE) && !SAYS(HELD_CLOCK, 1303));
    w.of[0].ledger.rows[HEC_STATE_REQUESTS].seconds = 60; /* of a server: the median reading is of its waiting */
    *clock = (struct hec_stat){.maximum = 1531, .median = 1303};
    assert_true(judge(HEC_CAUSE_QUIET) && SAYS(HELD_CLOCK, 1303));
    clock->median = 405;
    assert_true(judge(HEC_CAUSE_QUIET) && !SAYS(HELD_CLOCK, 405));
}

TEST(test_idle) {
    w.of[0].ledger.rows[HEC_STATE_TAIL].seconds = 30;
    w.of[0].ledger.rows[HEC_STATE_TAIL].watts = IDLE_W;
    assert_true(judge(HEC_CAUSE_IDLE) && SAYS(HELD, 30) && is_near(w.finding.title.value[1], 0.3));
    silent_but(HEC_CAUSE_IDLE);
    assert_true(judge(HEC_CAUSE_IDLE));
    reported(&w.finding.seconds, 0.28, 0.3);
    d->others = HEC_OTHERS_BUSY; /* it is of use to somebody */
    assert_false(judge(HEC_CAUSE_IDLE));
    d->others = HEC_OTHERS_IDLE;
    w.of[0].lines[0] =
        (struct hec_source_line){.state = HEC_STATE_TAIL, .file = "/home/u/serve.py", .function = "wait", .line = 7};
    w.devices[0].source.count = 1;
    assert_true(judge(HEC_CAUSE_IDLE) && SAYS(AT_LINE, 7) &&
                strcmp(fact_of(&w.finding, HEC_EVIDENCE_AT_LINE)->name, "wait") == 0);
    snprintf(w.of[0].lines[0].file, sizeof w.of[0].lines[0].file, "/usr/lib/python3.12/subprocess.py"); /* it ends */
    assert_false(judge(HEC_CAUSE_IDLE));
    w.devices[0].source.count = 0;
    w.of[0].ledger.rows[HEC_STATE_TAIL].seconds = 19.9;
    assert_false(judge(HEC_CAUSE_IDLE));
    w.facts.run_s = 6; /* 30 %, but less than 2 s */
    w.of[0].ledger.rows[HEC_STATE_TAIL].seconds = 1.9;
    assert_false(judge(HEC_CAUSE_IDLE));
}

/* Work of 0.1 ms each 30 ms, which telemetry hardly sees: what was seen of the device goes before that. */
TEST(test_a_device_that_works_is_used) {
    d->activity = (struct hec_use){.from_s = NAN, .to_s = NAN, .has_gpm = true, .readings = 500, .engine = NAN};
    d->energy.window_s = 100;
    assert_true(hec_use_nothing(&w.devices[0].readings) > 0);
    state(HEC_STATE_COMPUTE, 0.3);
    state(HEC_STATE_HOST, 79.7);
    assert_false(judge(HEC_CAUSE_IDLE));
    w.of[0].ledger.basis = w.of[0].steady.basis = HEC_LEDGER_CALLS; /* the same where calls tell it */
    assert_false(judge(HEC_CAUSE_IDLE));
    assert_true(judge(HEC_CAUSE_HOST));
}

/* Where no steps separate set-up from the rest, what is left is said with less confidence. */
TEST(test_unsteady) {
    w.of[0].steady = w.of[0].ledger;
    state(HEC_STATE_SYNC, 40);
    assert_true(judge(HEC_CAUSE_SYNC) && w.finding.confidence < 0.5);
}

/* Telemetry alone, of the time in use. */
static void untraced(double engine, double sm, double occupancy, double pcie, double watts) {
    begin();
    fake_dossier_untraced(&w.devices[0]);
    w.summary.steps = (struct hec_step_summary){.data_s = NAN, .duration = {.mean = NAN}};
    d->power_limit_w = 700;
    d->energy.window_s = 100;
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.8 * engine;
    d->activity = (struct hec_use){.from_s = 10,
                                   .to_s = 90,
                                   .has_gpm = true,
                                   .readings = 500,
                                   .engine = engine,
                                   .sm = sm,
                                   .occupancy = occupancy,
                                   .tensor = 0.1,
                                   .dram = 0.1,
                                   .pcie_rx = pcie,
                                   .pcie_tx = 0,
                                   .power_w = watts};
}

static void waiting(void) {
    untraced(0.25, 0.2, 0.15, 1e8, 200);
}

TEST(test_telemetry) {
    static const struct {
        double engine, sm, occupancy, pcie, watts;
        enum hec_cause cause;
    } cases[] = {{1, 0.95, 0.5, 1e8, 600, HEC_CAUSE_NONE},    {0.25, 0.1, 0.1, 3e10, 150, HEC_CAUSE_COPY},
                 {0.25, 0, 0, 3e8, 121, HEC_CAUSE_LAUNCH},    {0.25, 0.2, 0.15, 1e8, 200, HEC_CAUSE_HOST},
                 {0.25, 0.2, 0.15, 5e9, 200, HEC_CAUSE_HOST}, {0.001, 0, 0, 0, 82, HEC_CAUSE_IDLE},
                 {1, 0.6, 0.5, 1e8, 330, HEC_CAUSE_COUNT},    {NAN, NAN, NAN, NAN, NAN, HEC_CAUSE_COUNT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum hec_cause cause = cases[i].cause;
        untraced(cases[i].engine, cases[i].sm, cases[i].occupancy, cases[i].pcie, cases[i].watts);
        if (cause == HEC_CAUSE_IDLE)
            d->activity.from_s = d->activity.to_s = NAN;
        if (cause == HEC_CAUSE_NONE) { /* tensor pipes show that the work is dense */
            assert_false(judge(HEC_CAUSE_NONE));
            w.facts.own_counters = true;
            d->metric[HEC_GPM_GR_ACTIVE].mean = 0.9;
            d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0.3;
        }
        silent_but(cause);
        assert_true(judge(HEC_CAUSE_NONE) == (cause == HEC_CAUSE_NONE));
        if (cause >= HEC_CAUSE_NONE)
            continue;
        assert_true(judge(cause));
        assert_true(w.finding.confidence > 0 && w.finding.confidence <= (cause == HEC_CAUSE_IDLE ? 0.7 : 0.5));
        assert_true(w.finding.estimated && has_numbers(&w.finding));
        reported(&w.finding.seconds, 0.01, cause == HEC_CAUSE_IDLE ? 1 : 0.6);
        reported(&w.finding.joules, 0.01, 1);
    }
    waiting();
    assert_true(judge(HEC_CAUSE_HOST) && SAYS(ENGINE_IDLE, 0.75) && fact_of(&w.finding, HEC_EVIDENCE_UNTRACED));
    untraced(0.25, 0, 0, 3e8, 121);
    assert_true(judge(HEC_CAUSE_LAUNCH) && SAYS(LAUNCHES_LIKELY, 0.25) && SAYS(ENGINE_ACTIVE, 0.25));
    waiting(); /* the hooks know of the loader without a trace */
    w.summary.steps = (struct hec_step_summary){.count = 1000, .duration = {.mean = 0.08}, .data_s = 40};
    assert_true(judge(HEC_CAUSE_DATA) && SAYS(WAIT_SHARE, 0.5));
    w.summary.steps.data_s = 7.9;
    assert_false(judge(HEC_CAUSE_DATA));
    w.summary.phases[w.summary.phase_count++] =
        (struct hec_phase_summary){.name = "checkpoint", .seconds = 30, .count = 3};
    assert_true(judge(HEC_CAUSE_CHECKPOINT) && SAYS(CHECKPOINT_TIME, 30) && SECOND(CHECKPOINT_TIME, 3));
    waiting(); /* used to its end, or held */
    d->activity.to_s = 75;
    assert_true(judge(HEC_CAUSE_IDLE));
    d->activity.to_s = 85;
    assert_false(judge(HEC_CAUSE_IDLE));
}

/* Missing is not zero: seconds are reported without energy, joules are not. */
TEST(test_unknown) {
    static const enum hec_state states[] = {HEC_STATE_DATA, HEC_STATE_CHECKPOINT, HEC_STATE_SYNC,
                                            HEC_STATE_COPY, HEC_STATE_ALLOC,      HEC_STATE_HOST};
    static const enum hec_cause causes[] = {HEC_CAUSE_DATA, HEC_CAUSE_CHECKPOINT, HEC_CAUSE_SYNC,
                                            HEC_CAUSE_COPY, HEC_CAUSE_ALLOC,      HEC_CAUSE_HOST};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        begin();
        state(states[i], 30);
        w.of[0].gaps.allocs_recur = true;
        for (int s = 0; s < HEC_STATE_COUNT; s++)
            w.of[0].ledger.rows[s].watts = w.of[0].ledger.rows[s].joules = NAN;
        w.devices[0].calls = NULL; /* imported */
        w.facts.run_j = w.facts.mean_w = NAN;
        d->power_w.minimum = NAN;
        d->device.pcie_kib_per_s = 0;
        w.summary.host.cores_usable = 0;
        assert_true(judge(causes[i]));
        reported(&w.finding.seconds, 0.1, 0.3);
        assert_true(isnan(w.finding.joules.low) && isnan(w.finding.joules.best) && isnan(w.finding.joules.high));
        assert_true(has_numbers(&w.finding));
        w.facts.run_j = 20000; /* energy, but no watts by state */
        w.facts.mean_w = 200;
        d->power_w.minimum = 80;
        assert_true(judge(causes[i]) && w.finding.estimated);
        reported(&w.finding.joules, 0.01, 0.5);
    }
    waiting();
    d->activity = (struct hec_use){.from_s = NAN, .to_s = NAN, .engine = NAN, .power_w = NAN};
    silent_but(HEC_CAUSE_NONE);
}

EACH_TEST(before_each, NULL)
