/* What a rule's finding says in whole: title, every fact with all of its numbers and in order, lever, confidence, what is saved
 * within which bounds, and of which states. A run of 100 s and 20 kJ, 80 s of it steady: 1000 steps of 80 ms. */
#include "diagnose/rules/compute.h"
#include "diagnose/rules/waits.h"
#include "rule_world.h"
#include "unit.h"

#define RUN_S 100.0
#define RUN_J 20000.0
#define UNKNOWN ((struct hec_saving){NAN, NAN, NAN})

static const struct hec_saving idle_w = {110, 120, 130}; /* what waiting draws, within bounds */

/* Of a state, in the steady part and in the run; a cause owns all of it. */
static void owns(enum hec_state state, enum hec_cause cause, double seconds) {
    struct hec_ledger_row *rows[] = {&w.of[0].steady.rows[state], &w.of[0].ledger.rows[state]};
    for (int i = 0; i < 2; i++) {
        bool idle = hec_state_idle(state);
        *rows[i] = (struct hec_ledger_row){.seconds = seconds,
                                           .seconds_low = seconds,
                                           .seconds_high = seconds,
                                           .watts = idle ? idle_w.best : 240,
                                           .watts_low = idle ? idle_w.low : 230,
                                           .watts_high = idle ? idle_w.high : 260};
        rows[i]->ns = rows[i]->traced_ns = llround(seconds * 1e9);
        rows[i]->joules = rows[i]->watts * seconds;
    }
    w.of[0].gaps.owned_s[state][cause] = cause == HEC_CAUSE_NONE ? 0 : seconds;
}

static int before_each(void **unused) {
    (void)unused;
    memset(&w, 0, sizeof w);
    w.devices[0] = fake_dossier(&w.of[0], 0);
    w.devices[0].steps.count = 1000;
    w.facts = (struct hec_facts){.summary = &w.summary,
                                 .device = &w.devices[0],
                                 .steps = &w.summary.steps,
                                 .run_s = RUN_S,
                                 .run_j = RUN_J,
                                 .mean_w = RUN_J / RUN_S,
                                 .small_share = 0.5,
                                 .memory_free_share = NAN};
    w.summary.devices = w.devices;
    w.summary.device_count = 1;
    w.summary.seconds = RUN_S;
    w.summary.joules = RUN_J;
    w.summary.host = (struct hec_host_summary){.cores = 64, .cores_usable = 16, .tree_cores = 2};
    w.summary.steps = (struct hec_step_summary){.source = HEC_STEP_OPTIMIZER,
                                                .count = 1000,
                                                .duration = {.count = 1000, .mean = 0.08},
                                                .samples_per_step = NAN};
    d->device.pcie_kib_per_s = 62500000; /* 64 GB/s */
    d->energy.idle_context_watts = NAN;
    d->energy.window_s = RUN_S;
    d->energy.joules = RUN_J;
    d->power_limit_w = 700;
    d->power_w.minimum = 80;
    d->activity = (struct hec_use){.from_s = 10, .to_s = 90, .has_gpm = true, .engine = 0.25, .power_w = 150};
    w.of[0].timeline.traced_s = 80;
    w.of[0].timeline.to_s = 99;
    w.of[0].timeline.comm_overlap = NAN;
    w.of[0].ledger.window_ns = w.of[0].ledger.traced_ns = INT64_C(100000000000);
    w.of[0].steady.window_ns = w.of[0].steady.traced_ns = INT64_C(80000000000);
    w.of[0].calls = (struct hec_call_facts){.traced_s = 80, .steps = 1000, .chain_mean = NAN};
    w.of[0].calls.api[HEC_API_LAUNCH] = (struct hec_call_total){100000, 0.4};
    owns(HEC_STATE_COMPUTE, HEC_CAUSE_NONE, 40);
    owns(HEC_STATE_DATA, HEC_CAUSE_NONE, 0.5); /* what says how much waiting draws */
    return 0;
}

/* ---- the finding against what it should be ---- */

static void same_number(double found, double expected, const char *what) {
    if (!(isnan(found) && isnan(expected)) && !is_near(found, expected))
        fail_msg("%s: %g instead of %g", what, found, expected);
}

static void same_fact(const struct hec_evidence *found, const struct hec_evidence *expected) {
    const char *name = hec_evidence_name(expected->what);
    if (found->what != expected->what)
        fail_msg("%s instead of %s", hec_evidence_name(found->what), name);
    for (int i = 0; i < HEC_FINDING_NUMBERS; i++)
        same_number(found->value[i], expected->value[i], name);
    assert_int_equal(found->device, expected->device);
    assert_string_equal(found->name ? found->name : "", expected->name ? expected->name : "");
    assert_string_equal(found->file ? found->file : "", expected->file ? expected->file : "");
    assert_ptr_equal(found->why, expected->why);
}

static void same_saving(const struct hec_saving *found, struct hec_saving expected, const char *what) {
    same_number(found->low, expected.low, what);
    same_number(found->best, expected.best, what);
    same_number(found->high, expected.high, what);
}

struct whole {
    double confidence;
    struct hec_saving seconds, joules;
    uint32_t states;
    struct hec_lever lever; /* NOTHING: that of the cause's row */
    bool estimated;
};

static void find(enum hec_cause cause) {
    w.finding = hec_finding_begin(hec_rule_of(cause), 0);
    if (!hec_rule_of(cause)->judge(&w.facts, &w.finding))
        fail_msg("%s is not found", hec_cause_name(cause));
}

static void silent(enum hec_cause cause) {
    w.finding = hec_finding_begin(hec_rule_of(cause), 0);
    assert_false(hec_rule_of(cause)->judge(&w.facts, &w.finding));
}

static const struct hec_lever usual = {.id = HEC_LEVER_COUNT};

/* facts[0] is the title. */
static void finds(enum hec_cause cause, struct whole e, const struct hec_evidence *facts, int count) {
    find(cause);
    struct hec_lever lever =
        e.lever.id == HEC_LEVER_COUNT ? (struct hec_lever){.id = hec_rule_of(cause)->lever} : e.lever;
    same_fact(&w.finding.title, &facts[0]);
    for (int i = 1; i < count && i <= w.finding.evidence_count; i++)
        same_fact(&w.finding.evidence[i - 1], &facts[i]);
    assert_int_equal(w.finding.evidence_count, count - 1);
    same_number(w.finding.confidence, e.confidence, "confidence");
    same_saving(&w.finding.seconds, e.seconds, "seconds");
    same_saving(&w.finding.joules, e.joules, "joules");
    assert_int_equal(w.finding.states, e.states);
    assert_string_equal(hec_lever_name(w.finding.lever.id), hec_lever_name(lever.id));
    for (int i = 0; i < HEC_FINDING_NUMBERS; i++)
        same_number(w.finding.lever.value[i], lever.value[i], hec_lever_name(lever.id));
    assert_int_equal(w.finding.estimated, e.estimated);
    assert_int_equal(w.finding.device, 0);
    assert_int_equal(w.finding.devices, 1);
}
#define FINDS(cause, whole, ...)                                                                                       \
    finds(cause, whole, (struct hec_evidence[]){__VA_ARGS__},                                                          \
          sizeof((struct hec_evidence[]){__VA_ARGS__}) / sizeof(struct hec_evidence))

/* Parts of so many seconds of waiting go. */
static struct hec_saving seconds_of(double seconds, struct hec_saving part) {
    return (struct hec_saving){seconds * part.low / RUN_S, seconds * part.best / RUN_S, seconds * part.high / RUN_S};
}

static struct hec_saving joules_of(double seconds, struct hec_saving part) {
    return (struct hec_saving){seconds * part.low * idle_w.low / RUN_J, seconds * part.best * idle_w.best / RUN_J,
                               seconds * part.high * idle_w.high / RUN_J};
}

static struct whole waiting(enum hec_cause cause, enum hec_state state, double seconds, struct hec_saving part) {
    return (struct whole){
        hec_goes_of(cause)->confidence, seconds_of(seconds, part), joules_of(seconds, part), 1u << state, usual, false};
}

static struct whole goes(enum hec_cause cause, enum hec_state state, double seconds) {
    return waiting(cause, state, seconds, hec_goes_of(cause)->part);
}

/* The title and the facts of a cause that owns so many seconds of the steady part. */
#define CLAIM(seconds) HEC_FACT(WAIT_SHARE, (seconds) / 80.0, HEC_WAITS_STEPS), CLAIMED(seconds)
#define CLAIMED(seconds)                                                                                               \
    HEC_FACT(WAIT, (seconds) / 1000.0, 0.08), HEC_FACT(WAIT_POWER, 120, 120 * (seconds), RUN_J, false)

static struct hec_evidence named(struct hec_evidence fact, const char *name, const char *file) {
    fact.name = name;
    fact.file = file;
    return fact;
}

/* ---- waits for the host ---- */

TEST(data) {
    struct whole e;
    owns(HEC_STATE_DATA, HEC_CAUSE_DATA, 40);
    e = goes(HEC_CAUSE_DATA, HEC_STATE_DATA, 40);
    e.lever = HEC_ANSWER(LOADER_WORKERS, 1, 14);
    FINDS(HEC_CAUSE_DATA, e, CLAIM(40), HEC_FACT(LOADER_WORKERS, 0), HEC_FACT(HOST_CORES, 2, 16));
    w.summary.steps.samples_per_step = 64; /* 800 samples a second, and twice as many without */
    FINDS(HEC_CAUSE_DATA, e, CLAIM(40), named(HEC_FACT(THROUGHPUT, 800, 1600), "samples", NULL),
          HEC_FACT(LOADER_WORKERS, 0), HEC_FACT(HOST_CORES, 2, 16));
    snprintf(w.summary.steps.unit, sizeof w.summary.steps.unit, "token");
    FINDS(HEC_CAUSE_DATA, e, CLAIM(40), named(HEC_FACT(THROUGHPUT, 800, 1600), "token", NULL),
          HEC_FACT(LOADER_WORKERS, 0), HEC_FACT(HOST_CORES, 2, 16));
    w.summary.steps.samples_per_step = NAN;
    static const struct {
        int have;
        double cores, data_s;
        struct hec_lever lever;
    } cases[] = {
        {0, 15, 40, HEC_ANSWER(LOADER_WORKERS, 1, 1)}, /* one core is idle */
        {0, 15.5, 40, HEC_ANSWER(CHEAPER_INPUT)},      /* none is */
        {4, 2, 40, HEC_ANSWER(LOADER_WORKERS, 8, 14)}, /* of 80 ms each four deliver half of what is needed */
        {4, 12, 40, HEC_ANSWER(LOADER_WORKERS, 8, 4)}, /* just enough */
        {4, 12.5, 40, HEC_ANSWER(LOADER_ALL_CORES, 7, 3, 8)},
        {0, 2, 79, HEC_ANSWER(LOADER_ALL_CORES, 14, 14, 64)}, /* the most that is asked for */
        {-1, 2, 40, {.id = HEC_LEVER_COUNT}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        owns(HEC_STATE_DATA, HEC_CAUSE_DATA, cases[i].data_s);
        w.summary.loader_workers = cases[i].have;
        w.summary.host.tree_cores = cases[i].cores;
        e = goes(HEC_CAUSE_DATA, HEC_STATE_DATA, cases[i].data_s);
        e.lever = cases[i].lever;
        if (cases[i].have >= 0)
            FINDS(HEC_CAUSE_DATA, e, CLAIM(cases[i].data_s), HEC_FACT(LOADER_WORKERS, cases[i].have),
                  HEC_FACT(HOST_CORES, cases[i].cores, 16));
        else
            FINDS(HEC_CAUSE_DATA, e, CLAIM(cases[i].data_s), HEC_FACT(HOST_CORES, cases[i].cores, 16));
    }
    w.summary.host.tree_cores = NAN; /* nobody knows */
    owns(HEC_STATE_DATA, HEC_CAUSE_DATA, 40);
    e = goes(HEC_CAUSE_DATA, HEC_STATE_DATA, 40);
    FINDS(HEC_CAUSE_DATA, e, CLAIM(40));
}

TEST(checkpoint) {
    owns(HEC_STATE_CHECKPOINT, HEC_CAUSE_CHECKPOINT, 20);
    FINDS(HEC_CAUSE_CHECKPOINT, goes(HEC_CAUSE_CHECKPOINT, HEC_STATE_CHECKPOINT, 20), CLAIM(20));
    snprintf(w.summary.phases[0].name, sizeof w.summary.phases[0].name, "train");
    w.summary.phases[0].count = 7;
    snprintf(w.summary.phases[1].name, sizeof w.summary.phases[1].name, "checkpoint");
    w.summary.phases[1].seconds = 22;
    w.summary.phases[1].count = 11;
    w.summary.phase_count = 2;
    FINDS(HEC_CAUSE_CHECKPOINT, goes(HEC_CAUSE_CHECKPOINT, HEC_STATE_CHECKPOINT, 20), CLAIM(20),
          HEC_FACT(CHECKPOINTS, 11, 2));
    owns(HEC_STATE_CHECKPOINT, HEC_CAUSE_CHECKPOINT, 0); /* the trace knows better */
    silent(HEC_CAUSE_CHECKPOINT);
    fake_dossier_untraced(&w.devices[0]);
    double low = HEC_CHECKPOINT_PHASE_GOES_LOW, best = HEC_CHECKPOINT_PHASE_GOES;
    double idle = hec_compute_idle_watts(&w.facts); /* of the lowest sample; at most the mean */
    assert_true(idle > 80 && idle < 200);
    struct whole e = {HEC_TELEMETRY_CONFIDENCE,
                      seconds_of(22, (struct hec_saving){low, best, 1}),
                      {22 * low * idle / RUN_J, 22 * best * idle / RUN_J, 22.0 * 200 / RUN_J},
                      0,
                      usual,
                      true};
    FINDS(HEC_CAUSE_CHECKPOINT, e, HEC_FACT(WAIT_SHARE, 0.22), HEC_FACT(CHECKPOINT_TIME, 22, 11));
    w.summary.phases[1].seconds = 4.9;
    silent(HEC_CAUSE_CHECKPOINT);
}

TEST(sync) {
    struct whole e;
    owns(HEC_STATE_SYNC, HEC_CAUSE_SYNC, 20);
    FINDS(HEC_CAUSE_SYNC, goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 20), CLAIM(20));
    w.of[0].calls.api[HEC_API_SYNC].count = 3000;
    e = goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 20);
    e.lever = HEC_ANSWER(DROP_WAITS, 3);
    FINDS(HEC_CAUSE_SYNC, e, CLAIM(20), HEC_FACT(WAITS, 3));
    w.of[0].calls.reads = 2000;
    e.lever = HEC_ANSWER(READ_SELDOM, 3);
    FINDS(HEC_CAUSE_SYNC, e, CLAIM(20), HEC_FACT(WAITS, 3), HEC_FACT(READS, 2));
    w.of[0].calls.reads = 5000;
    e.lever = HEC_ANSWER(READ_SELDOM, 5);
    FINDS(HEC_CAUSE_SYNC, e, CLAIM(20), HEC_FACT(WAITS, 3), HEC_FACT(READS, 5));
    w.of[0].calls.reads = 999;
    w.of[0].calls.api[HEC_API_SYNC].count = 0;
    FINDS(HEC_CAUSE_SYNC, goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 20), CLAIM(20));
    w.devices[0].calls = NULL; /* nobody counted: of a second */
    e = goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 20);
    e.confidence *= HEC_WAITS_UNCOUNTED;
    FINDS(HEC_CAUSE_SYNC, e, HEC_FACT(WAIT_SHARE, 0.25, HEC_WAITS_STEPS), HEC_FACT(WAIT, 20.0 / 80, 1),
          HEC_FACT(WAIT_POWER, 120, 2400, RUN_J, false));
    assert_int_equal(w.finding.per, HEC_PER_SECOND);
}

/* What owns less than another is less sure; a loop by calls alone and a whole run are told as such; a thin trace has wider bounds. */
TEST(how_sure_it_is) {
    struct whole e;
    owns(HEC_STATE_SYNC, HEC_CAUSE_SYNC, 10);
    owns(HEC_STATE_ALLOC, HEC_CAUSE_ALLOC, 10.1);
    e = goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 10);
    e.confidence *= HEC_WAITS_DOMINATED;
    FINDS(HEC_CAUSE_SYNC, e, CLAIM(10));
    owns(HEC_STATE_ALLOC, HEC_CAUSE_ALLOC, 10);
    FINDS(HEC_CAUSE_SYNC, goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 10), CLAIM(10));
    w.devices[0].steps.count = 0;
    FINDS(HEC_CAUSE_SYNC, goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 10), HEC_FACT(WAIT_SHARE, 0.125, HEC_WAITS_LOOP),
          CLAIMED(10));
    w.of[0].steady.window_ns = w.of[0].steady.traced_ns = w.of[0].ledger.window_ns;
    w.of[0].calls.traced_s = 100;
    e = goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 10);
    e.confidence *= HEC_WAITS_UNSTEADY;
    FINDS(HEC_CAUSE_SYNC, e, HEC_FACT(WAIT_SHARE, 0.1, HEC_WAITS_WHOLE), HEC_FACT(WAIT, 0.01, 0.1),
          HEC_FACT(WAIT_POWER, 120, 1200, RUN_J, false), HEC_FACT(NO_STEPS, HEC_GAP_LONG_S));
    before_each(NULL);
    owns(HEC_STATE_SYNC, HEC_CAUSE_SYNC, 10);
    w.of[0].steady.traced_ns = llround(0.49 * 80e9);
    e = goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 10);
    e.seconds.low *= 1 - HEC_WAITS_THIN_SPREAD;
    e.joules.low *= 1 - HEC_WAITS_THIN_SPREAD;
    e.seconds.high *= 1 + HEC_WAITS_THIN_SPREAD;
    e.joules.high *= 1 + HEC_WAITS_THIN_SPREAD;
    FINDS(HEC_CAUSE_SYNC, e, CLAIM(10));
    before_each(NULL); /* inferred: a fifth to one and a half times of it */
    owns(HEC_STATE_SYNC, HEC_CAUSE_SYNC, 10);
    w.of[0].steady.basis = HEC_LEDGER_CALLS;
    w.of[0].steady.rows[HEC_STATE_SYNC].seconds_low = 2;
    w.of[0].steady.rows[HEC_STATE_SYNC].seconds_high = 15;
    e = goes(HEC_CAUSE_SYNC, HEC_STATE_SYNC, 10);
    e.seconds.low *= 0.2;
    e.joules.low *= 0.2;
    e.seconds.high *= 1.5;
    e.joules.high *= 1.5;
    e.confidence *= HEC_WAITS_INFERRED + (1 - HEC_WAITS_INFERRED) * 0.2;
    FINDS(HEC_CAUSE_SYNC, e, CLAIM(10));
}

/* Lines are of the states that have a tenth of what a cause owns; half of what was traced stands for all. */
TEST(states_and_parts) {
    owns(HEC_STATE_SYNC, HEC_CAUSE_SYNC, 18);
    owns(HEC_STATE_HOST, HEC_CAUSE_SYNC, 1.9);
    find(HEC_CAUSE_SYNC);
    assert_int_equal(w.finding.states, 1u << HEC_STATE_SYNC);
    owns(HEC_STATE_HOST, HEC_CAUSE_SYNC, 2.1);
    find(HEC_CAUSE_SYNC);
    assert_int_equal(w.finding.states, 1u << HEC_STATE_SYNC | 1u << HEC_STATE_HOST);
    same_number(w.finding.title.value[0], 20.1 / 80, "share");
    w.of[0].steady.rows[HEC_STATE_SYNC].traced_ns = 0; /* nothing of it was seen */
    w.of[0].steady.rows[HEC_STATE_HOST].traced_ns = 1000000000;
    w.of[0].gaps.owned_s[HEC_STATE_HOST][HEC_CAUSE_SYNC] = 1;
    w.of[0].steady.rows[HEC_STATE_HOST].seconds = 10;
    find(HEC_CAUSE_SYNC);
    same_number(w.finding.title.value[0], 10 / 80.0, "share");
    struct hec_waits waits;
    hec_waits_gather(&w.facts, &waits);
    same_number(waits.idle_s, 10 + 18 + 0.5, "idle");
}

TEST(alloc) {
    struct whole e;
    owns(HEC_STATE_ALLOC, HEC_CAUSE_ALLOC, 20);
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 10);
    silent(HEC_CAUSE_ALLOC); /* set-up */
    w.of[0].gaps.allocs_recur = true;
    e = goes(HEC_CAUSE_ALLOC, HEC_STATE_ALLOC, 20);
    FINDS(HEC_CAUSE_ALLOC, e, CLAIM(20));
    w.of[0].calls.api[HEC_API_ALLOC] = (struct hec_call_total){2000, 4};
    w.of[0].calls.api[HEC_API_FREE] = (struct hec_call_total){1000, 2};
    double part = 3.0 / 100; /* of the code around launches */
    struct hec_saving around = {0, HEC_ALLOC_AROUND * part, part}, seconds = seconds_of(10, around),
                      joules = joules_of(10, around);
    hec_saving_add(&e.seconds, seconds);
    hec_saving_add(&e.joules, joules);
    FINDS(HEC_CAUSE_ALLOC, e, CLAIM(20), HEC_FACT(ALLOCATIONS, 3, 0.002));
}

TEST(copy) {
    struct whole e;
    owns(HEC_STATE_COPY, HEC_CAUSE_COPY, 20);
    struct hec_call_facts *c = &w.of[0].calls;
    c->waited_s = 30;
    e = goes(HEC_CAUSE_COPY, HEC_STATE_COPY, 20);
    e.lever = HEC_ANSWER(COPY_AHEAD);
    FINDS(HEC_CAUSE_COPY, e, CLAIM(20));
    c->waited_s = 2; /* the host takes nearly as long as the device for a step */
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 20, (struct hec_saving){0.1, 0.1, 0.1});
    e.lever = HEC_ANSWER(COPY_AHEAD);
    FINDS(HEC_CAUSE_COPY, e, CLAIM(20));
    c->traced_s = 40; /* of half of it */
    c->steps = 500;
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 20, (struct hec_saving){0.2, 0.2, 0.2});
    e.lever = HEC_ANSWER(COPY_AHEAD);
    FINDS(HEC_CAUSE_COPY, e, CLAIM(20));
    c->traced_s = 80;
    c->steps = 1000;
    owns(HEC_STATE_COPY, HEC_CAUSE_COPY, 60); /* a step takes as long as its copies */
    c->waited_s = 60;
    struct hec_saving part = hec_goes_of(HEC_CAUSE_COPY)->part;
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 60,
                (struct hec_saving){fmin(part.low, 1.0 / 3), fmin(part.best, 1.0 / 3), 1.0 / 3});
    e.lever = HEC_ANSWER(COPY_AHEAD);
    FINDS(HEC_CAUSE_COPY, e, CLAIM(60));
    owns(HEC_STATE_COPY, HEC_CAUSE_COPY, 20);
    c->pageable_s = 5;
    c->pageable_bytes = 50e9;
    c->pinned_s = 4;
    double best = 1 - 10e9 / (HEC_COPY_LINK_REACH * 64e9);
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 20, (struct hec_saving){HEC_COPY_PINNED_LEAST * best, best, 1});
    FINDS(HEC_CAUSE_COPY, e, HEC_FACT(PAGEABLE_SHARE, 0.25, HEC_WAITS_STEPS), CLAIMED(20),
          HEC_FACT(PAGEABLE_RATE, 10e9, 64e9));
    c->pageable_bytes = 250e9; /* nearly as fast as can be */
    best = HEC_COPY_PINNED_LEAST;
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 20, (struct hec_saving){HEC_COPY_PINNED_LEAST * best, best, 1});
    FINDS(HEC_CAUSE_COPY, e, HEC_FACT(PAGEABLE_SHARE, 0.25, HEC_WAITS_STEPS), CLAIMED(20),
          HEC_FACT(PAGEABLE_RATE, 50e9, 64e9));
    d->device.pcie_kib_per_s = 0; /* the link is not known */
    best = HEC_COPY_PINNED_UNKNOWN;
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 20, (struct hec_saving){HEC_COPY_PINNED_LEAST * best, best, 1});
    FINDS(HEC_CAUSE_COPY, e, HEC_FACT(PAGEABLE_SHARE, 0.25, HEC_WAITS_STEPS), CLAIMED(20));
    c->round_trips = 750;
    c->round_trip_bytes = 3e9;
    c->api[HEC_API_SYNC].count = 3000;
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 20, (struct hec_saving){HEC_COPY_STAYED_LOW, HEC_COPY_STAYED, 1});
    e.lever = HEC_ANSWER(STAY_ON_DEVICE);
    FINDS(HEC_CAUSE_COPY, e, HEC_FACT(ROUND_TRIP_SHARE, 0.25, HEC_WAITS_STEPS), CLAIMED(20),
          HEC_FACT(ROUND_TRIPS, 0.75, 2e6));
    c->round_trips = 749; /* a little less than a quarter of the waits */
    find(HEC_CAUSE_COPY);
    assert_int_equal(w.finding.title.what, HEC_EVIDENCE_PAGEABLE_SHARE);
    c->small_copies = 8000;
    c->small_copy_s = 3;
    c->small_call_s = 2;
    w.of[0].gaps.small_s = HEC_WAITS_CHATTY_SHARE * 20;
    e = waiting(HEC_CAUSE_COPY, HEC_STATE_COPY, 20, (struct hec_saving){HEC_COPY_JOINED_LOW, HEC_COPY_JOINED, 1});
    e.lever = HEC_ANSWER(JOIN_COPIES, 8);
    FINDS(HEC_CAUSE_COPY, e, HEC_FACT(SMALL_COPY_SHARE, 0.25, HEC_WAITS_STEPS), CLAIMED(20),
          HEC_FACT(SMALL_COPIES, 8, 3), HEC_FACT(SMALL_COPY_TIME, 3, 2));
    c->small_copies = 7999;
    find(HEC_CAUSE_COPY);
    assert_int_equal(w.finding.title.what, HEC_EVIDENCE_PAGEABLE_SHARE);
    w.devices[0].calls = NULL; /* imported */
    find(HEC_CAUSE_COPY);
    same_number(w.finding.confidence, hec_goes_of(HEC_CAUSE_COPY)->confidence * HEC_WAITS_UNCOUNTED, "confidence");
    assert_int_equal(w.finding.lever.id, HEC_LEVER_COPY_AHEAD);
}

TEST(compile) {
    struct whole e;
    owns(HEC_STATE_HOST, HEC_CAUSE_COMPILE, 20);
    w.of[0].gaps.loads_recur = true;
    w.of[0].gaps.loads = 4;
    struct hec_saving part = hec_goes_of(HEC_CAUSE_COMPILE)->part;
    e = waiting(HEC_CAUSE_COMPILE, HEC_STATE_HOST, 20, (struct hec_saving){part.low, 0.75 * part.best, part.high});
    FINDS(HEC_CAUSE_COMPILE, e, CLAIM(20), HEC_FACT(LOADS, 4));
    w.of[0].calls.late_loads = 5; /* CUPTI saw more */
    e = waiting(HEC_CAUSE_COMPILE, HEC_STATE_HOST, 20, (struct hec_saving){part.low, 0.8 * part.best, part.high});
    FINDS(HEC_CAUSE_COMPILE, e, CLAIM(20), HEC_FACT(LOADS, 5));
    w.of[0].calls.late_loads = 0;
    w.of[0].gaps.loads = 1;
    silent(HEC_CAUSE_COMPILE);
    w.of[0].gaps.loads = 2;
    find(HEC_CAUSE_COMPILE);
    w.summary.steps.count = 0; /* by launches that take long alone it is not told */
    silent(HEC_CAUSE_COMPILE);
    w.devices[0].compiling_s = 1;
    find(HEC_CAUSE_COMPILE);
    w.of[0].gaps.loads_recur = false;
    silent(HEC_CAUSE_COMPILE);
    /* as set-up that takes most of the run */
    w.devices[0].compiling_s = 30;
    silent(HEC_CAUSE_COMPILE); /* nobody knows where */
    w.of[0].lines[0] = (struct hec_source_line){.state = HEC_STATE_HOST, .file = "a.py", .function = "f", .line = 3};
    w.of[0].lines[1] = (struct hec_source_line){.state = HEC_STATE_STARTUP, .file = "b.py", .function = "g", .line = 4};
    w.of[0].lines[2] = (struct hec_source_line){.state = HEC_STATE_STARTUP, .file = "c.py", .function = "h", .line = 5};
    w.devices[0].source.count = 3;
    e = (struct whole){HEC_COMPILE_SETUP_CONFIDENCE, UNKNOWN, UNKNOWN, 0, HEC_ANSWER(KEEP_COMPILED), false};
    FINDS(HEC_CAUSE_COMPILE, e, HEC_FACT(COMPILING, 30, 100), named(HEC_FACT(AT_PLACE, 4), "g", "b.py"));
    w.devices[0].compiling_s = 29.9;
    silent(HEC_CAUSE_COMPILE);
}

/* CuPy's operations whose kernels nobody saw: what fusing saves besides is in the interval alone. */
TEST(launch_of_arrays) {
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 30);
    w.devices[0].timeline = NULL;
    w.facts.own_counters = true;
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.5;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0;
    find(HEC_CAUSE_LAUNCH);
    const struct hec_finding before = w.finding;
    snprintf(w.summary.framework, sizeof w.summary.framework, "cupy");
    find(HEC_CAUSE_LAUNCH);
    same_number(w.finding.joules.best, before.joules.best, "best");
    assert_true(w.finding.joules.high > before.joules.high + 0.1);
    assert_true(w.finding.evidence_count == before.evidence_count + 1);
    assert_non_null(fact_of(&w.finding, HEC_EVIDENCE_FUSION_UNSEEN));
    w.of[0].calls.drawn = 20;
    find(HEC_CAUSE_LAUNCH);
    assert_true(w.finding.joules.high > before.joules.high + 0.1);
    w.of[0].calls.drawn_named = 20; /* their kernels have names */
    find(HEC_CAUSE_LAUNCH);
    same_number(w.finding.joules.high, before.joules.high, "high");
    w.of[0].calls.drawn_named = 0;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0.5 * 0.1; /* products */
    find(HEC_CAUSE_LAUNCH);
    same_number(w.finding.joules.high, before.joules.high, "high");
}

/* Kernels that nobody saw, of which launches drawn at random have names: what is computed and what waits for launches goes. */
TEST(chains_by_launches) {
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 30);
    w.devices[0].timeline = NULL;
    w.facts.own_counters = true;
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.5;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0;
    silent(HEC_CAUSE_MEMORY);
    w.of[0].calls.drawn = w.of[0].calls.drawn_named = 20;
    w.of[0].calls.drawn_point_wise = 18;
    double goes = 0.9 * (1 - 1 / HEC_MEMORY_MOST_CHAIN_KERNELS);
    find(HEC_CAUSE_MEMORY);
    assert_int_equal(w.finding.title.what, HEC_EVIDENCE_CHAIN_LAUNCHED);
    same_number(w.finding.seconds.best, goes * (40 + 30) / RUN_S, "best");
    assert_true(w.finding.joules.low < w.finding.joules.best && w.finding.joules.best < w.finding.joules.high);
    assert_int_equal(w.finding.states, 1u << HEC_STATE_COMPUTE | 1u << HEC_STATE_LAUNCH);
    /* What the host does meanwhile stays, but for its launching: here a half of the compute was waited for, and of the other half it spent
     * three quarters launching. */
    w.of[0].calls.waited_s = 20;
    owns(HEC_STATE_HOST, HEC_CAUSE_HOST, 10);
    double shorter = 20 + 0.75 * goes * 20;
    const struct hec_finding whole = w.finding;
    find(HEC_CAUSE_MEMORY);
    same_number(w.finding.seconds.best, (fmin(shorter, goes * 40) + goes * 30) / RUN_S, "seconds");
    assert_true(goes * 40 > shorter);
    same_number(w.finding.joules.best,
                whole.joules.best - (goes * 40 - shorter) * hec_compute_idle_watts(&w.facts) / RUN_J, "joules");
    same_number(w.finding.joules.high, whole.joules.high, "high");
    snprintf(w.summary.framework, sizeof w.summary.framework, "jax"); /* waits in no call */
    find(HEC_CAUSE_MEMORY);
    same_number(w.finding.seconds.best, whole.seconds.best, "jax");
    w.summary.framework[0] = '\0';
    owns(HEC_STATE_HOST, HEC_CAUSE_HOST, 0);
    w.of[0].calls.waited_s = 40;
    w.of[0].calls.reads = 20000; /* 20 a step: of its 100 launches five are between two */
    find(HEC_CAUSE_MEMORY);
    same_number(w.finding.seconds.best, 0.9 * (1 - 1 / 5.0) * (40 + 30) / RUN_S, "best");
    w.of[0].calls.reads = 50000;
    silent(HEC_CAUSE_MEMORY);
    w.of[0].calls.reads = 0;
    const struct hec_call_total launches = w.of[0].calls.api[HEC_API_LAUNCH];
    w.of[0].calls.api[HEC_API_LAUNCH].count = 0; /* each but those that were drawn is of a graph */
    silent(HEC_CAUSE_MEMORY);
    w.of[0].calls.api[HEC_API_LAUNCH] = launches;
    w.of[0].calls.drawn_point_wise = 17;
    silent(HEC_CAUSE_MEMORY);
    w.of[0].calls.drawn_named = 19;
    w.of[0].calls.drawn_point_wise = 19;
    silent(HEC_CAUSE_MEMORY);
    w.of[0].calls.drawn_named = w.of[0].calls.drawn_point_wise = 20;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0.5 * 0.11;
    silent(HEC_CAUSE_MEMORY);
}

TEST(launch) {
    struct whole e;
    struct hec_saving part = hec_goes_of(HEC_CAUSE_LAUNCH)->part;
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 30);
    e = goes(HEC_CAUSE_LAUNCH, HEC_STATE_LAUNCH, 30);
    FINDS(HEC_CAUSE_LAUNCH, e, CLAIM(30), HEC_FACT(LAUNCHES, 100, 40.0 / 1000 / 100));
    w.of[0].timeline.kernel.median = 5e-6;
    FINDS(HEC_CAUSE_LAUNCH, e, CLAIM(30), HEC_FACT(LAUNCHES, 100, 4e-4), HEC_FACT(MEDIAN_KERNEL, 5e-6, 0.5));
    owns(HEC_STATE_HOST, HEC_CAUSE_HOST, 6); /* of the program's own code as much may go too, at most */
    e = waiting(HEC_CAUSE_LAUNCH, HEC_STATE_LAUNCH, 30, (struct hec_saving){part.low, part.best, 1.2});
    FINDS(HEC_CAUSE_LAUNCH, e, CLAIM(30), HEC_FACT(LAUNCHES, 100, 4e-4), HEC_FACT(MEDIAN_KERNEL, 5e-6, 0.5));
    /* operations that are called one by one: a compiler fuses them too, and of products that is not known */
    owns(HEC_STATE_HOST, HEC_CAUSE_HOST, 0);
    w.of[0].gaps.operations_s = HEC_OPERATIONS_LEAST * 30;
    find(HEC_CAUSE_LAUNCH);
    assert_int_equal(w.finding.lever.id, hec_rule_of(HEC_CAUSE_LAUNCH)->lever);
    w.of[0].gaps.operations_s += 0.1;
    e = goes(HEC_CAUSE_LAUNCH, HEC_STATE_LAUNCH, 30);
    e.lever = HEC_ANSWER(JIT);
    FINDS(HEC_CAUSE_LAUNCH, e, CLAIM(30), HEC_FACT(LAUNCHES, 100, 4e-4), HEC_FACT(MEDIAN_KERNEL, 5e-6, 0.5));
    w.facts.own_counters = true;
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.5;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0;
    e.estimated = true;
    /* of 40 s of compute at 230 to 260 W */
    hec_saving_add(&e.seconds, (struct hec_saving){0, 0.4 * HEC_JIT_FUSES, 0.4 * HEC_JIT_FUSES_MOST});
    hec_saving_add(&e.joules,
                   (struct hec_saving){0, 40 * 240 / RUN_J * HEC_JIT_FUSES, 40 * 260 / RUN_J * HEC_JIT_FUSES_MOST});
    FINDS(HEC_CAUSE_LAUNCH, e, CLAIM(30), HEC_FACT(LAUNCHES, 100, 4e-4), HEC_FACT(MEDIAN_KERNEL, 5e-6, 0.5));
    static const struct {
        double memory, reads, fuses;
    } passes[] = {{0.9 * HEC_MEMORY_DRAM_IDLE, 0, HEC_JIT_FUSES},
                  {HEC_MEMORY_DRAM_IDLE, 0, 1 - 1 / HEC_MEMORY_MOST_CHAIN_KERNELS},
                  {1, 20000, 1 - 1 / 5.0},
                  {1, 100000, HEC_JIT_FUSES}}; /* 100000 launches */
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        d->metric[HEC_GPM_DRAM_ACTIVE].mean = 0.5 * passes[i].memory;
        w.of[0].calls.reads = (int64_t)passes[i].reads;
        find(HEC_CAUSE_LAUNCH);
        same_number(w.finding.seconds.best, part.best * 0.3 + 0.4 * passes[i].fuses, "seconds");
    }
    w.of[0].calls.reads = 0;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0.5 * HEC_BATCH_TENSOR_SOME + 0.01;
    find(HEC_CAUSE_LAUNCH);
    assert_false(w.finding.estimated);
}

TEST(host) {
    struct whole e;
    owns(HEC_STATE_HOST, HEC_CAUSE_HOST, 20);
    e = goes(HEC_CAUSE_HOST, HEC_STATE_HOST, 20);
    FINDS(HEC_CAUSE_HOST, e, CLAIM(20), HEC_FACT(HOST_CORES, 2, 16));
    w.of[0].lines[0] = (struct hec_source_line){.state = HEC_STATE_SYNC, .file = "a.py", .function = "f", .line = 3};
    w.of[0].lines[1] =
        (struct hec_source_line){.state = HEC_STATE_HOST, .seconds = 12, .file = "b.py", .function = "g", .line = 4};
    w.devices[0].steady_source.count = 2;
    FINDS(HEC_CAUSE_HOST, e, CLAIM(20), named(HEC_FACT(HELD_BY_LINE, 12, 4), "g", "b.py"), HEC_FACT(HOST_CORES, 2, 16));
    w.of[0].lines[1].line = 0;
    FINDS(HEC_CAUSE_HOST, e, CLAIM(20), HEC_FACT(HOST_CORES, 2, 16));
}

/* ---- no work for the device ---- */

TEST(quiet) {
    struct hec_ledger_row *row = &w.of[0].ledger.rows[HEC_STATE_REQUESTS];
    struct whole e = {HEC_QUIET_CONFIDENCE, UNKNOWN, UNKNOWN, 1u << HEC_STATE_REQUESTS, usual, false};
    row->seconds = 60;
    w.summary.host.tree_cores = 0.89; /* of 1 less 0.6 of a core, and half a core */
    FINDS(HEC_CAUSE_QUIET, e, HEC_FACT(NO_WORK, 60, 0.6), HEC_FACT(HOST_CORES, 0.89, 16));
    row->watts = 120;
    d->metric[HEC_GPU_SM_CLOCK] = (struct hec_stat){.maximum = 1980, .median = 0.5 * 1980};
    w.of[0].lines[0] = (struct hec_source_line){.state = HEC_STATE_TAIL, .file = "a.py", .function = "f", .line = 3};
    w.of[0].lines[1] =
        (struct hec_source_line){.state = HEC_STATE_REQUESTS, .file = "b.py", .function = "g", .line = 4};
    w.devices[0].source.count = 2;
    FINDS(HEC_CAUSE_QUIET, e, HEC_FACT(NO_WORK, 60, 0.6), named(HEC_FACT(AT_PLACE, 4), "g", "b.py"),
          HEC_FACT(HELD_POWER, 120), HEC_FACT(HELD_CLOCK, 990, 1980), HEC_FACT(HOST_CORES, 0.89, 16));
    d->metric[HEC_GPU_SM_CLOCK].median = 989; /* lower than half */
    FINDS(HEC_CAUSE_QUIET, e, HEC_FACT(NO_WORK, 60, 0.6), named(HEC_FACT(AT_PLACE, 4), "g", "b.py"),
          HEC_FACT(HELD_POWER, 120), HEC_FACT(HOST_CORES, 0.89, 16));
    w.summary.host.tree_cores = 0.9;
    e = (struct whole){HEC_QUIET_FED_CONFIDENCE, UNKNOWN, UNKNOWN, 0, HEC_ANSWER(CHEAPER_INPUT), false};
    FINDS(HEC_CAUSE_QUIET, e, HEC_FACT(FED, 60, 0.6), named(HEC_FACT(AT_PLACE, 4), "g", "b.py"),
          HEC_FACT(HELD_POWER, 120), HEC_FACT(HOST_CORES, 0.9, 16));
    row->seconds = 19.9;
    silent(HEC_CAUSE_QUIET);
    w.facts.run_s = 8;
    row->seconds = 1.9;
    silent(HEC_CAUSE_QUIET);
    w.devices[0].ledger = NULL;
    silent(HEC_CAUSE_QUIET);
}

TEST(hang) {
    struct whole e = {HEC_HANG_CONFIDENCE_BLIND, UNKNOWN, UNKNOWN, 0, usual, false};
    w.devices[0].after = (struct hec_after){.seconds = 30, .engine = 0.95, .watts = 300, .works = true};
    FINDS(HEC_CAUSE_HANG, e, HEC_FACT(UNENDED, 30, 70), HEC_FACT(WORKS_ON, 0.95, 300));
    w.of[0].lines[0] = (struct hec_source_line){.state = HEC_STATE_HOST, .line = 3, .share = 1};
    w.of[0].lines[1] = (struct hec_source_line){
        .state = HEC_STATE_TAIL, .file = "b.py", .function = "g", .line = 4, .share = HEC_HANG_ONE_LINE};
    w.devices[0].source.count = 2;
    e.confidence = HEC_HANG_CONFIDENCE;
    FINDS(HEC_CAUSE_HANG, e, HEC_FACT(UNENDED, 30, 70), HEC_FACT(WORKS_ON, 0.95, 300),
          named(HEC_FACT(AT_PLACE, 4), "g", "b.py"));
    w.of[0].lines[1].line = 0; /* it is not known which */
    FINDS(HEC_CAUSE_HANG, e, HEC_FACT(UNENDED, 30, 70), HEC_FACT(WORKS_ON, 0.95, 300));
    w.of[0].lines[1].share -= 0.01;
    silent(HEC_CAUSE_HANG);
    w.of[0].lines[1].share = 1;
    w.devices[0].after.goes_on = true;
    silent(HEC_CAUSE_HANG);
    w.devices[0].after.goes_on = false;
    w.devices[0].after.seconds = 4.9;
    silent(HEC_CAUSE_HANG);
    w.devices[0].after.seconds = 5;
    find(HEC_CAUSE_HANG);
    w.devices[0].after.works = false;
    silent(HEC_CAUSE_HANG);
}

TEST(held) {
    struct hec_ledger_row *tail = &w.of[0].ledger.rows[HEC_STATE_TAIL];
    tail->seconds = 30;
    struct hec_saving part = {HEC_IDLE_HELD_LOW, HEC_IDLE_HELD, 1};
    struct whole e = {
        HEC_IDLE_CONFIDENCE, seconds_of(30, part), joules_of(30, part), 1u << HEC_STATE_TAIL, usual, false};
    FINDS(HEC_CAUSE_IDLE, e, HEC_FACT(HELD, 30, 0.3), HEC_FACT(LAST_ACTIVITY, 30), HEC_FACT(HOST_CORES, 2, 16));
    tail->watts = 90;
    w.of[0].lines[0] =
        (struct hec_source_line){.state = HEC_STATE_TAIL, .file = "/home/u/serve.py", .function = "wait", .line = 7};
    w.devices[0].source.count = 1;
    d->metric[HEC_GPU_SM_CLOCK].maximum = 1980;
    w.devices[0].after.sm_mhz = 990;
    FINDS(HEC_CAUSE_IDLE, e, HEC_FACT(HELD, 30, 0.3), HEC_FACT(LAST_ACTIVITY, 30),
          named(HEC_FACT(AT_LINE, 7), "wait", NULL), HEC_FACT(HOST_CORES, 2, 16), HEC_FACT(HELD_POWER, 90),
          HEC_FACT(HELD_CLOCK, 990, 1980));
    w.devices[0].after.sm_mhz = 989;
    FINDS(HEC_CAUSE_IDLE, e, HEC_FACT(HELD, 30, 0.3), HEC_FACT(LAST_ACTIVITY, 30),
          named(HEC_FACT(AT_LINE, 7), "wait", NULL), HEC_FACT(HOST_CORES, 2, 16), HEC_FACT(HELD_POWER, 90));
    w.summary.exit_code = 1; /* on its way to fail */
    silent(HEC_CAUSE_IDLE);
    w.summary.exit_code = 130; /* its owner ended it */
    find(HEC_CAUSE_IDLE);
    w.devices[0].after.seconds = 30; /* it works on */
    w.devices[0].after.engine = HEC_IDLE_MOST_ENGINE + 0.01;
    silent(HEC_CAUSE_IDLE);
}

/* As a notebook does; what set-up took is made again. */
TEST(held_between_two_works) {
    const int64_t s = INT64_C(1000000000);
    w.devices[0].steps.count = 0;
    owns(HEC_STATE_HOST, HEC_CAUSE_NONE, 30);
    w.devices[0].hold = (struct hec_hold){50 * s, 80 * s};
    struct hec_saving part = {0, HEC_IDLE_HELD, 1};
    struct whole e = {HEC_IDLE_CONFIDENCE, seconds_of(30, part), joules_of(30, part), 0, usual, false};
    FINDS(HEC_CAUSE_IDLE, e, HEC_FACT(HELD_BETWEEN, 30, 0.3), HEC_FACT(HOST_CORES, 2, 16),
          HEC_FACT(HELD_POWER, idle_w.best));
    w.of[0].ledger.rows[HEC_STATE_STARTUP].seconds = 6;
    part.best = HEC_IDLE_HELD * 0.8;
    e.seconds = seconds_of(30, part);
    e.joules = joules_of(30, part);
    w.devices[0].hold_line = (struct hec_source_line){.file = "/home/u/cell.py", .function = "read", .line = 7};
    d->metric[HEC_GPU_SM_CLOCK] = (struct hec_stat){.median = 1980, .maximum = 1980};
    FINDS(HEC_CAUSE_IDLE, e, HEC_FACT(HELD_BETWEEN, 30, 0.3), named(HEC_FACT(AT_LINE, 7), "read", NULL),
          HEC_FACT(HOST_CORES, 2, 16), HEC_FACT(HELD_POWER, idle_w.best));
    assert_int_equal(w.finding.line_count, 1);
    assert_int_equal(w.finding.lines[0].line, 7);
    assert_string_equal(w.finding.lines[0].function, "read");
    w.devices[0].hold.to_ns = 101 * s; /* so long that the median is the clock then */
    find(HEC_CAUSE_IDLE);
    assert_int_equal(w.finding.evidence[w.finding.evidence_count - 1].what, HEC_EVIDENCE_HELD_CLOCK);
    w.devices[0].hold.to_ns = 69 * s; /* too short a part of the run */
    silent(HEC_CAUSE_IDLE);
    w.devices[0].hold.to_ns = 80 * s;
    w.devices[0].steps.count = 1000; /* of the steps: host's */
    w.of[0].steady.from_ns = 10 * s;
    silent(HEC_CAUSE_IDLE);
    w.of[0].steady.from_ns = -30 * s; /* after them */
    find(HEC_CAUSE_IDLE);
    d->others = HEC_OTHERS_BUSY;
    silent(HEC_CAUSE_IDLE);
}

TEST(never_used) {
    struct hec_ledger_row *tail = &w.of[0].ledger.rows[HEC_STATE_TAIL];
    struct hec_reason why = HEC_BECAUSE(NONE);
    w.of[0].ledger.basis = HEC_LEDGER_UNUSED;
    tail->seconds = 98;
    tail->watts = 90;
    d->activity = (struct hec_use){.from_s = 1, .to_s = 1.4, .has_gpm = true, .readings = 500, .engine = 0.3};
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.001;
    d->used_why = why;
    struct hec_saving part = {0, HEC_IDLE_NEVER, 1};
    struct hec_evidence used = HEC_FACT(USED_BY, NAN);
    used.why = &d->used_why;
    struct whole e = {
        HEC_USE_CONFIDENCE, seconds_of(98, part), joules_of(98, part), 1u << HEC_STATE_TAIL, usual, false};
    FINDS(HEC_CAUSE_IDLE, e, HEC_FACT(UNUSED, 98), HEC_FACT(ENGINE_IN_RUN, 0.001, 0.4), used, HEC_FACT(HELD_POWER, 90));
    d->others = HEC_OTHERS_BUSY;
    silent(HEC_CAUSE_IDLE);
}

/* ---- communication ---- */

static void communicates(void) {
    w.summary.job.collectives.transfer_s = NAN;
    owns(HEC_STATE_COMPUTE, HEC_CAUSE_NONE, 60);
    owns(HEC_STATE_COMM, HEC_CAUSE_NONE, 20);
    fake_kernel(&w.of[0], "vectorized_elementwise_kernel", 60, 10);
    fake_kernel(&w.of[0], "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 12, 300);
    fake_kernel(&w.of[0], "ncclDevKernel_AllGather_RING_LL", 6, 300);
}

TEST(comm) {
    communicates();
    double in_use = 60 + 0.5 + 20; /* with the waits */
    struct hec_saving part = {0, HEC_COMM_GOES, HEC_COMM_MOST_HIDDEN};
    struct whole e = {HEC_COMM_CONFIDENCE, seconds_of(20, part), {0}, 1u << HEC_STATE_COMM, usual, false};
    e.joules = (struct hec_saving){0, 20 * 240 / RUN_J * HEC_COMM_GOES * HEC_COMM_STATIC_SHARE,
                                   20 * 260 / RUN_J * HEC_COMM_MOST_HIDDEN};
    FINDS(HEC_CAUSE_COMM, e, HEC_FACT(COMM_SHARE, 20 / in_use), HEC_FACT(COMM_TIME, 20, in_use),
          HEC_FACT(COMM_KERNELS, 60000, 300e-6));
    w.of[0].timeline.comm_overlap = HEC_COMM_OVERLAP_GOOD + 0.01; /* somebody saw to it */
    e.confidence = HEC_COMM_CONFIDENCE_TUNED;
    FINDS(HEC_CAUSE_COMM, e, HEC_FACT(COMM_SHARE, 20 / in_use), HEC_FACT(COMM_TIME, 20, in_use),
          HEC_FACT(COMM_OVERLAP, HEC_COMM_OVERLAP_GOOD + 0.01), HEC_FACT(COMM_KERNELS, 60000, 300e-6));
    /* 8 s of the 20 it waits for others; a collective without that takes less than it seems to */
    w.of[0].timeline.comm_overlap = 0.1;
    w.summary.job.collectives.waited_s[0] = 8;
    w.summary.job.collectives.transfer_s = 0.9e-6 * HEC_COMM_SMALL_US;
    e.confidence = HEC_COMM_CONFIDENCE;
    e.seconds = seconds_of(12, part);
    e.joules.best *= 12 / 20.0;
    e.joules.high *= 12 / 20.0;
    e.lever = HEC_ANSWER(LARGER_MESSAGES);
    FINDS(HEC_CAUSE_COMM, e, HEC_FACT(COMM_SHARE, 12 / in_use), HEC_FACT(COMM_TIME, 12, in_use),
          HEC_FACT(COMM_OVERLAP, 0.1), HEC_FACT(COMM_WAIT, 8), HEC_FACT(COMM_KERNELS, 60000, 300e-6));
    w.summary.job.collectives.transfer_s = 1.1e-6 * HEC_COMM_SMALL_US;
    find(HEC_CAUSE_COMM);
    assert_int_equal(w.finding.lever.id, HEC_LEVER_OVERLAP);
    w.of[0].ledger.rows[HEC_STATE_COMM].joules = NAN; /* between idle watts and the mean */
    find(HEC_CAUSE_COMM);
    double low = hec_compute_idle_watts(&w.facts) / 200;
    same_number(w.finding.joules.low, 0, "low");
    same_number(w.finding.joules.best, 0.12 * HEC_COMM_GOES * (1 + low) / 2 * HEC_COMM_STATIC_SHARE, "best");
    same_number(w.finding.joules.high, 0.12 * HEC_COMM_MOST_HIDDEN * HEC_COMM_JOULES_HIGH, "high");
    assert_true(w.finding.estimated);
}

TEST(gradient_sync) {
    communicates();
    w.summary.job.gradients = (struct hec_gradient_syncs){.syncs = 40, .passes = 60, .steps = 10};
    double in_use = 80.5, goes_away = 1 - 1 / 4.0;
    struct hec_saving part = {HEC_GRADIENT_SYNC_GOES_LOW * goes_away, HEC_GRADIENT_SYNC_GOES * goes_away, goes_away};
    struct whole e = {HEC_GRADIENT_SYNC_CONFIDENCE, seconds_of(20, part), {0}, 1u << HEC_STATE_COMM, usual, false};
    double joules = 20 * 240 / RUN_J;
    e.joules = (struct hec_saving){joules * part.low, joules * part.best, joules * part.high};
    FINDS(HEC_CAUSE_GRADIENT_SYNC, e, HEC_FACT(SYNCS, 4, goes_away * 20 / in_use), HEC_FACT(SYNC_PASSES, 6, 4),
          HEC_FACT(COMM_TIME, 20, in_use));
    same_number(w.finding.edit_value, 0.25, "edit");
    w.summary.job.gradients.bytes = 5e8;
    FINDS(HEC_CAUSE_GRADIENT_SYNC, e, HEC_FACT(SYNCS, 4, goes_away * 20 / in_use), HEC_FACT(SYNC_PASSES, 6, 4),
          HEC_FACT(COMM_TIME, 20, in_use), HEC_FACT(SYNC_BYTES, 5e8, 4));
    w.summary.job.collectives.inferred = true; /* a quarter of it is waiting for one that is late: that stays */
    w.summary.job.collectives.lost_s[0] = 5;
    find(HEC_CAUSE_GRADIENT_SYNC);
    same_number(w.finding.seconds.best, 0.2 * HEC_GRADIENT_SYNC_GOES * goes_away * 0.75, "best");
    w.summary.job.gradients.syncs = 14;
    silent(HEC_CAUSE_GRADIENT_SYNC);
    w.summary.job.gradients = (struct hec_gradient_syncs){.syncs = 40, .passes = 60, .steps = 4};
    silent(HEC_CAUSE_GRADIENT_SYNC);
}

/* 400 collectives a step, of 25 us each with 10 us of the host, where 3 would do for 50 MB. */
TEST(buckets) {
    communicates();
    w.summary.steps.duration.median = 0.08;
    struct hec_collectives *c = &w.summary.job.collectives;
    *c = (struct hec_collectives){.matched = 400 * 100, .met_s = 8, .host_s = 10e-6, .transfer_s = 25e-6};
    w.summary.job.gradients = (struct hec_gradient_syncs){
        .syncs = 100, .passes = 100, .steps = 100, .bytes = 2 * HEC_BUCKETS_BYTES, .bucket_bytes = 1e6};
    double goes_away = 1 - 3 / 400.0, share = goes_away * 400 * 35e-6 / 0.08 * 80.5 / RUN_S;
    struct hec_saving part = {HEC_BUCKETS_GOES_LOW * share, HEC_BUCKETS_GOES * share, share};
    double joules = RUN_S * 240 / RUN_J;
    struct whole e = {HEC_BUCKETS_CONFIDENCE, part,  {part.low * joules, part.best * joules, part.high * joules},
                      1u << HEC_STATE_COMM,   usual, false};
    FINDS(HEC_CAUSE_BUCKETS, e, HEC_FACT(MANY_COLLECTIVES, 400, 25e-6), HEC_FACT(COLLECTIVE_COST, 10e-6, 25e-6, 400),
          HEC_FACT(BUCKET_BYTES, 2 * HEC_BUCKETS_BYTES, 1e6));
    same_number(w.finding.edit_value, 3 / 400.0, "edit");
    owns(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 21); /* the longer of both says what they draw while they wait */
    find(HEC_CAUSE_BUCKETS);
    same_number(w.finding.joules.best / w.finding.seconds.best, RUN_S * 120 / RUN_J, "joules");
    c->transfer_s = HEC_BUCKETS_SMALL_US * 1.01e-6; /* not small */
    silent(HEC_CAUSE_BUCKETS);
}

/* ---- clocks ---- */

TEST(throttled_by_heat) {
    struct hec_compute c;
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++)
        d->throttled_share[i] = NAN;
    d->throttled_share[HEC_THROTTLE_THERMAL] = 0.5;
    hec_compute_gather(&w.facts, &c);
    double best = 0.5 * HEC_THROTTLE_LOST_UNKNOWN; /* the clocks do not say it */
    struct whole e = {
        HEC_THROTTLE_HOT_CONFIDENCE,
        hec_saving_scaled(c.seconds, best / HEC_THROTTLE_LOST_LOW, best, 2 * best),
        hec_saving_scaled(c.joules, 0, HEC_THROTTLE_STATIC_SHARE * best, 2 * HEC_THROTTLE_STATIC_SHARE * best),
        1u << HEC_STATE_COMPUTE,
        usual,
        true};
    same_number(c.seconds.best, 0.4, "compute");
    FINDS(HEC_CAUSE_THROTTLE, e, HEC_FACT(THROTTLED, 0.5, true), HEC_FACT(HEAT, 0.5));
    d->throttled_share[HEC_THROTTLE_HARDWARE] = 0.6;
    d->metric[HEC_GPU_TEMPERATURE].maximum = 91;
    d->metric[HEC_GPU_SM_CLOCK] = (struct hec_stat){.maximum = 2000, .median = 1400};
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.5;
    w.summary.steps.busy_share = NAN;
    w.of[0].timeline.busy_s = 60;
    w.of[0].timeline.idle_s = 40;
    best = 0.6 * 0.3;
    e.seconds = hec_saving_scaled(c.seconds, best / HEC_THROTTLE_LOST_LOW, best, 2 * best);
    e.joules = hec_saving_scaled(c.joules, 0, HEC_THROTTLE_STATIC_SHARE * best, 2 * HEC_THROTTLE_STATIC_SHARE * best);
    FINDS(HEC_CAUSE_THROTTLE, e, HEC_FACT(THROTTLED, 0.6, false), HEC_FACT(HEAT, 0.5), HEC_FACT(HARDWARE, 0.6),
          HEC_FACT(TEMPERATURE, 91));
    w.of[0].timeline.busy_s = 39; /* at that share of time clocks say nothing */
    w.of[0].timeline.idle_s = 61;
    find(HEC_CAUSE_THROTTLE);
    same_number(w.finding.seconds.best, 0.4 * 0.6 * HEC_THROTTLE_LOST_UNKNOWN, "best");
}

TEST(throttled_by_power) {
    struct hec_compute c;
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++)
        d->throttled_share[i] = NAN;
    d->throttled_share[HEC_THROTTLE_POWER] = 0.4;
    d->device.power_limit_default_mw = 700000;
    hec_compute_gather(&w.facts, &c);
    struct whole e = {
        HEC_THROTTLE_LIMIT_CONFIDENCE,
        {0, 0, 0},
        hec_saving_scaled(c.joules, 0, HEC_THROTTLE_CAP_SAVES, HEC_THROTTLE_CAP_SAVES_HIGH * HEC_THROTTLE_CAP_SAVES),
        1u << HEC_STATE_COMPUTE,
        HEC_ANSWER(LOWER_CAP),
        true};
    FINDS(HEC_CAUSE_THROTTLE, e, HEC_FACT(AT_POWER_LIMIT, 0.4), HEC_FACT(POWER_HELD, 0.4),
          HEC_FACT(KERNEL_POWER, 240, 700, false));
    d->metric[HEC_GPU_POWER_LIMIT].median = 350000; /* lowered in the run */
    double best = 0.4 * (1 - pow(0.5, HEC_THROTTLE_CLOCK_EXPONENT));
    e = (struct whole){HEC_THROTTLE_LOWERED_CONFIDENCE,
                       hec_saving_scaled(c.seconds, HEC_THROTTLE_RAISED_LOW * best, best, 2 * best),
                       UNKNOWN,
                       1u << HEC_STATE_COMPUTE,
                       HEC_ANSWER(RAISE_LIMIT),
                       true};
    FINDS(HEC_CAUSE_THROTTLE, e, HEC_FACT(LOWERED_LIMIT, 350, 0.5), HEC_FACT(POWER_HELD, 0.4),
          HEC_FACT(KERNEL_POWER, 240, 350, false), HEC_FACT(DEFAULT_LIMIT, 700));
    d->metric[HEC_GPU_SM_CLOCK] = (struct hec_stat){.maximum = 2000, .median = 1400};
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.9;
    w.of[0].timeline.busy_s = 60;
    w.of[0].timeline.idle_s = 40;
    w.summary.steps.busy_share = NAN;
    FINDS(HEC_CAUSE_THROTTLE, e, HEC_FACT(LOWERED_LIMIT, 350, 0.5), HEC_FACT(POWER_HELD, 0.4),
          HEC_FACT(KERNEL_POWER, 240, 350, false), HEC_FACT(DEFAULT_LIMIT, 700), HEC_FACT(CLOCKS, 1400, 2000));
    d->throttled_share[HEC_THROTTLE_POWER] = HEC_THROTTLE_LEAST_POWER - 0.01;
    silent(HEC_CAUSE_THROTTLE);
}

EACH_TEST(before_each, NULL)
