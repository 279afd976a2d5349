/* The rules about jobs of several ranks, on facts built by hand: they fire with the right numbers, and not just below their
 * thresholds. */
#include "rule_checks.h"

#define BF16 "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT"
#define ALL_REDUCE "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

/* ---- comm, straggler ---- */

static void ranks(double own_work, double own_comm, double other_work, double other_comm) {
    world_begin(2);
    world_state(0, HEC_STATE_COMPUTE, own_work, 600);
    world_state(0, HEC_STATE_COMM, own_comm, 240);
    world_state(1, HEC_STATE_COMPUTE, other_work, 600);
    world_state(1, HEC_STATE_COMM, other_comm, 240);
    w.of[0].timeline.comm_overlap = w.of[1].timeline.comm_overlap = 0.1;
    world_kernel(0, BF16, 0.5, 500);
    world_kernel(0, ALL_REDUCE, 0.2, 800);
}

TEST(test_comm) {
    ranks(60, 20, 60, 20);
    saves(HEC_CAUSE_COMM, 0.2 * 0.25);
    near(w.finding.joules.best, 20 * 240 / RULE_WORLD_RUN_J * 0.25 * 0.5);
    assert_true(w.finding.states == 1u << HEC_STATE_COMM);
    ranks(60, 3.3, 60, 3.3);
    silent(HEC_CAUSE_COMM);
    ranks(10, 40, 10, 40); /* there is little to hide it behind */
    saves(HEC_CAUSE_COMM, 0.4 * 0.25 * 0.2);
    world_state(0, HEC_STATE_COMM, 40, NAN);
    fires(HEC_CAUSE_COMM);
    assert_true(w.finding.estimated);
    world_untraced();
    silent(HEC_CAUSE_COMM);
}

/* An interval that the unmixing left open ends at what a device can draw. */
TEST(test_watts_have_an_end) {
    ranks(60, 20, 60, 20);
    w.of[0].ledger.rows[HEC_STATE_COMM].watts_high = 5000;
    w.of[0].ledger.rows[HEC_STATE_COMM].watts_low = NAN;
    fires(HEC_CAUSE_COMM);
    near(w.finding.joules.high, 20 * 1.25 * 700 / RULE_WORLD_RUN_J * 0.95);
}

TEST(test_comm_small_messages) {
    ranks(60, 20, 60, 20);
    w.of[0].rows[1].count = llround(w.of[0].rows[1].seconds * 1e6 / 30);
    fires(HEC_CAUSE_COMM);
    assert_true(answers(&w.finding, HEC_LEVER_LARGER_MESSAGES, 0));
}

TEST(test_straggler) {
    ranks(20, 62, 60, 22); /* device 0 waits 40 s for device 1 */
    assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
    assert_true(shows(&w.finding, HEC_EVIDENCE_RANK_WAITS, 40.0 / 87)); /* of 25 s of work and 62 s of communication */
    assert_true(w.finding.title.value[1] == 1 && w.finding.title.value[2] == 0);
    near(w.finding.seconds.best, 0.95 * 0.2); /* both would need 40 s */
    near(w.finding.joules.best, 0.95 * 40 * 240 / (2 * RULE_WORLD_RUN_J));
    silent(HEC_CAUSE_STRAGGLER); /* nobody waits for it */
    fires(HEC_CAUSE_COMM);       /* claims what the quickest needs, no more */
    near(w.finding.seconds.best, 0.62 * 22 / 62 * 0.25 * (0.8 * 20 / 22));
    ranks(57, 24, 63, 18);
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    ranks(20, 62, 60, 22); /* set-up of different length is no work */
    w.of[0].ledger.rows[HEC_STATE_HOST].seconds = 40;
    assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
    ranks(60, 40, 60, 20); /* not explained by work */
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    world_begin(1);
    world_state(0, HEC_STATE_COMM, 20, 240);
    silent(HEC_CAUSE_STRAGGLER);
}

TEST(test_straggler_slow_device) {
    ranks(20, 62, 60, 22);
    d->metric[HEC_GPU_SM_CLOCK].maximum = 1980;
    w.devices[1].readings.metric[HEC_GPU_SM_CLOCK].maximum = 1200;
    assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
    assert_true(answers(&w.finding, HEC_LEVER_SLOW_DEVICE, 1));
}

/* Kernels of the first rank alone were recorded. The second one's device idles own_s seconds in a state of a cause at one line of the
 * program; lead: by how much its process is there more than the other. */
static struct hec_source_line line_of_all;
static struct hec_rank two_ranks[2];

static void half_seen(enum hec_state state, enum hec_cause cause, double own_s, double comm_s, double lead) {
    ranks(40, comm_s, 40, 0);
    world_state(1, state, own_s + 5, 120);
    w.devices[1].timeline = NULL;
    w.devices[1].gaps = &w.of[1].gaps;
    w.of[1].gaps.owned_s[state][cause] = own_s;
    w.of[1].steady.basis = w.of[1].ledger.basis = HEC_LEDGER_CALLS;
    line_of_all = (struct hec_source_line){
        .device = 1, .state = state, .file = "train.py", .function = "step", .line = 73, .seconds = own_s};
    w.of[1].lines[0] = line_of_all;
    w.devices[1].steady_source.count = 1;
    line_of_all.pid = 8;
    line_of_all.lead = lead;
    w.summary.lines = (struct hec_source_lines){&line_of_all, 1};
    for (int i = 0; i < 2; i++) {
        w.devices[i].steps = (struct hec_step_summary){
            .source = HEC_STEP_OPTIMIZER, .count = 100, .duration = {.mean = 0.8, .median = 0.8}, .pid = 7 + i};
        two_ranks[i] =
            (struct hec_rank){.pid = 7 + i, .number = i, .devices = i ? 0 : 1, .waited_s = NAN, .held_s = NAN};
    }
    w.summary.job.size = w.summary.job.rank_count = 2;
    w.summary.job.ranks = two_ranks;
}

TEST(test_straggler_inferred) {
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, 32, 1);
    assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
    assert_true(shows(&w.finding, HEC_EVIDENCE_RANK_LIKELY, 30.0 / 77)); /* of 45 s of work and 32 s of communication */
    assert_true(w.finding.title.value[1] == 1 && w.finding.title.value[2] == 0);
    assert_true(shows(&w.finding, HEC_EVIDENCE_RANK_UNSEEN, 30) && answers(&w.finding, HEC_LEVER_SLOW_HOST, 1));
    assert_true(w.finding.devices == 3 && w.finding.states == 1u << HEC_STATE_HOST && w.finding.estimated);
    near(w.finding.seconds.best, 0.95 * 0.3);
    near(w.finding.joules.best, 0.95 * 30 * (240 + 120) / (2 * RULE_WORLD_RUN_J)); /* of both devices */
    near(two_ranks[0].waited_s, 30);
    near(two_ranks[1].held_j, 30 * 240);
    assert_true(two_ranks[1].devices == 2); /* by its steps */
    silent(HEC_CAUSE_STRAGGLER);
    half_seen(HEC_STATE_DATA, HEC_CAUSE_DATA, 30, 32, 1);
    assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
}

/* The first rank waits 40 s for the second, whose device idles for 40 s more: 25 of them at a line that its process alone runs. */
static void late_code(double own_s, double lead) {
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 40, 42, lead);
    world_state(1, HEC_STATE_COMM, 2, 240);
    world_state(1, HEC_STATE_HOST, 40, 120);
    w.of[1].steady.basis = w.of[1].ledger.basis = HEC_LEDGER_MEASURED;
    w.of[1].lines[0].seconds = own_s;
}

/* Both hosts run the same code. The device that is ahead idles for less of it, and spins for the rest. */
static void code_of_both(double ahead_s, double comm_s) {
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, comm_s, 0.1);
    world_state(0, HEC_STATE_COMPUTE, 20, 600);
    world_state(1, HEC_STATE_COMPUTE, 20, 600);
    world_state(0, HEC_STATE_HOST, ahead_s, 120);
    w.devices[0].gaps = &w.of[0].gaps;
    w.of[0].gaps.owned_s[HEC_STATE_HOST][HEC_CAUSE_HOST] = ahead_s;
    w.of[0].steady.traced_ns = w.of[1].steady.traced_ns = w.of[0].steady.window_ns;
    two_ranks[1].devices = 2;
}

TEST(test_code_for_which_another_device_spins) {
    double part = hec_goes_of(HEC_CAUSE_HOST)->part.best;
    code_of_both(10, 45);
    fires(HEC_CAUSE_HOST);
    near(w.finding.seconds.best, part * 0.3); /* a step is shorter by what the slower host takes */
    near(w.finding.joules.best, part * (10 * 120 + 20 * 240) / RULE_WORLD_RUN_J);
    assert_true(fact_of(&w.finding, HEC_EVIDENCE_SPUN_FOR_CODE));
    assert_true(world_judge(1, HEC_CAUSE_HOST));
    near(w.finding.seconds.best, part * 0.3);
    assert_false(fact_of(&w.finding, HEC_EVIDENCE_SPUN_FOR_CODE));
    code_of_both(10, 28); /* it communicates for little longer than the other one is busy: so much surely was spun */
    fires(HEC_CAUSE_HOST);
    near(w.finding.seconds.best, part * 0.18);
    code_of_both(10, 15); /* and no longer */
    fires(HEC_CAUSE_HOST);
    near(w.finding.seconds.best, part * 0.1);
    code_of_both(10, 45); /* no rank of the job */
    two_ranks[1].devices = 0;
    w.devices[1].steps.pid = 0;
    fires(HEC_CAUSE_HOST);
    near(w.finding.seconds.best, part * 0.1);
}

/* What it waits beside is of another reason, as the stages of a pipeline wait for each other. */
TEST(test_straggler_by_its_own_lines) {
    late_code(25, 1);
    assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
    near(w.finding.seconds.best, 0.95 * 0.25);
    near(w.finding.joules.best, 0.95 * 25 * (240 + 120) / (2 * RULE_WORLD_RUN_J));
    assert_true(world_judge(1, HEC_CAUSE_HOST)); /* which has the rest of that device's own code */
    near(w.finding.title.value[0], 15.0 / (w.of[1].steady.window_ns / 1e9));
    const double own[] = {25, 15}, lead[] = {0.1, 1}; /* both run it; it tells less than half */
    for (int i = 0; i < 2; i++) {
        late_code(own[i], lead[i]);
        assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
        near(w.finding.seconds.best, 0.95 * 0.4);
    }
}

/* They are one finding, with the joules of the rank that waits meanwhile. */
TEST(test_checkpoints_of_one_rank) {
    half_seen(HEC_STATE_CHECKPOINT, HEC_CAUSE_CHECKPOINT, 38, 42, 1);
    world_state(1, HEC_STATE_COMM, 2, 240);
    world_state(1, HEC_STATE_CHECKPOINT, 38, 120);
    w.of[1].steady.basis = w.of[1].ledger.basis = HEC_LEDGER_MEASURED;
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    assert_true(world_judge(1, HEC_CAUSE_CHECKPOINT));
    assert_true(shows(&w.finding, HEC_EVIDENCE_CHECKPOINT_WAITED, 38) && w.finding.devices == 3);
    near(w.finding.seconds.best, 0.38);
    near(w.finding.joules.best, (38 * 120 + 0.95 * 38 * 240) / (2 * RULE_WORLD_RUN_J));
    world_state(0, HEC_STATE_COMM, 2, 240); /* nobody waits for it */
    assert_true(world_judge(1, HEC_CAUSE_CHECKPOINT));
    near(w.finding.joules.best, 38 * 120 / RULE_WORLD_RUN_J);
}

TEST(test_straggler_not_inferred) {
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, 32,
              0.1); /* the other rank runs that line as well: it is ahead, no more */
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    half_seen(HEC_STATE_HOST, HEC_CAUSE_LAUNCH, 30, 32, 1); /* all that launches is alike in all ranks */
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, 2, 1); /* the other one does not wait */
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, 32, 1);
    w.of[1].steady.rows[HEC_STATE_COMPUTE].seconds = 70; /* it is as busy as the other */
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, 32, 1);
    w.of[1].steady.basis = HEC_LEDGER_MEASURED; /* then matching says it, or nothing */
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, 32, 1);
    w.summary.job.size = 1;
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
}

/* Of the second one kernels and communication are one: it does not compute more, as its ledger has it. */
TEST(test_straggler_of_unlike_ledgers) {
    ranks(20, 62, 82, 0);
    world_state(1, HEC_STATE_PEERS, 1, 120);
    assert_true(world_judge(1, HEC_CAUSE_STRAGGLER));
    w.of[1].steady.basis = w.of[1].ledger.basis = HEC_LEDGER_CALLS;
    assert_false(world_judge(1, HEC_CAUSE_STRAGGLER));
    silent(HEC_CAUSE_STRAGGLER);
}

/* 200 of half a megabyte a step, in the glimpse of one of two ranks. */
TEST(test_buckets_by_bytes) {
    half_seen(HEC_STATE_LAUNCH, HEC_CAUSE_LAUNCH, 30, 32, 0);
    w.devices[0].parts.steps = 10;
    w.of[0].rows[1].count = 2000;
    w.summary.job.gradients = (struct hec_gradient_syncs){100, 100, 100, 1e8, 1e5};
    fires(HEC_CAUSE_BUCKETS);
    assert_true(shows(&w.finding, HEC_EVIDENCE_MANY_LIKELY, 200) &&
                shows(&w.finding, HEC_EVIDENCE_COLLECTIVE_COST_USUAL, 1e-4));
    assert_true(w.finding.devices == 3 && w.finding.estimated);
    near(w.finding.edit_value, 5.0 / 200);
    near(w.finding.seconds.best,
         0.7 * (195 * 1e-4 / 0.8) * 77 / 100); /* of a step of 0.8 s, in 77 s of the run's 100 */
    near(w.finding.joules.best, w.finding.seconds.best * (240 + 120) / (2 * RULE_WORLD_RUN_J / RULE_WORLD_RUN_S));
    w.summary.job.gradients.bytes = 1e9; /* five megabytes each */
    silent(HEC_CAUSE_BUCKETS);
    w.summary.job.gradients.bytes = 0;
    silent(HEC_CAUSE_BUCKETS);
}

/* ---- sharding ---- */

/* A model of 5 GB on devices of 151 GB, in 100 steps of 1 s: 0.3 s of communication that nothing hides, 0.4 s in which the device waits
 * for its host, of which samples have three quarters in FSDP's code. */
static void sharded(void) {
    ranks(30, 30, 30, 30);
    for (int i = 0; i < 2; i++) {
        world_state(i, HEC_STATE_HOST, 10, 120);
        world_state(i, HEC_STATE_LAUNCH, 30, 120);
        world_state(i, HEC_STATE_STARTUP, 0, 120);
        w.devices[i].sharding_share = 0.75;
        w.devices[i].readings.memory_peak_bytes = 12e9;
        w.devices[i].readings.device.visible = 1;
        two_ranks[i] = (struct hec_rank){.pid = 7 + i, .number = i, .devices = 1u << i};
    }
    w.summary.loop = (struct hec_loop){.known = true, .steps = 100, .seconds = {[HEC_RUN_LOOP] = 100}};
    w.summary.job.size = w.summary.job.rank_count = 2;
    w.summary.job.ranks = two_ranks;
    w.summary.sizes = (struct hec_sizes){.known = true,
                                         .alike = true,
                                         .sharing = HEC_SHARING_FSDP,
                                         .bytes = 5e9,
                                         .gradient_bytes = 5e9,
                                         .state_bytes = 10e9,
                                         .held_bytes = 2.5e9,
                                         .held_gradient_bytes = 2.5e9,
                                         .held_state_bytes = 5e9,
                                         .allocated = 11e9,
                                         .reserved = 11e9,
                                         .activations = 1e9};
}

TEST(test_sharding) {
    sharded();
    fires(HEC_CAUSE_SHARDING);
    assert_true(answers(&w.finding, HEC_LEVER_DATA_PARALLEL, 0));
    assert_true(shows(&w.finding, HEC_EVIDENCE_SHARD_CODE, 0.3));
    double left =
        fact_of(&w.finding, HEC_EVIDENCE_SHARD_COMM)->value[2]; /* 5 GB at 450 GB/s, as far as nothing hides them */
    assert_true(left > 0 && left < 0.012);
    double waits = fact_of(&w.finding, HEC_EVIDENCE_SHARD_WAITS)->value[0]; /* all that the bytes do not take */
    double comm = 0.75 * waits + 0.8 * (0.3 - waits - left);
    assert_true(waits > 0.27 && waits < 0.3 - left && shows(&w.finding, HEC_EVIDENCE_SHARD_WAITS, waits));
    near(fact_of(&w.finding, HEC_EVIDENCE_SHARD_WAITS)->value[1], 0.75);
    near(w.finding.seconds.best, 0.3 + comm);
    near(w.finding.joules.best, (30 * 120 + 100 * comm * 240) / RULE_WORLD_RUN_J);
    near(w.finding.seconds.high, 0.3 + 0.3 - left);
    assert_true(w.finding.seconds.low < 0.16); /* ranks may wait in it for other reasons */
    /* kernels that were not seen communicate as much as those of the other rank */
    sharded();
    world_state(1, HEC_STATE_COMPUTE, 60, 300);
    world_state(1, HEC_STATE_COMM, 0, NAN);
    w.of[1].steady.basis = w.of[1].ledger.basis = HEC_LEDGER_CALLS;
    assert_true(world_judge(1, HEC_CAUSE_SHARDING));
    near(w.finding.seconds.best, 0.3 + comm);
    near(w.finding.joules.best, /* at the watts of communication, and not of both */
         (30 * 120 + 100 * comm * 240) / RULE_WORLD_RUN_J);
    /* a rank that never idles is not waited for: it is all communication, which takes longer than the links' rates have it */
    sharded();
    world_state(1, HEC_STATE_HOST, 0, 120);
    world_state(1, HEC_STATE_LAUNCH, 0, 120);
    world_state(1, HEC_STATE_COMM, 70, 240);
    fires(HEC_CAUSE_SHARDING);
    near(w.finding.seconds.best, 0.3 + 0.8 * (0.3 - left));
    /* of one that is in its own code as a rule little goes */
    sharded();
    w.devices[1].sharding_share = 0.1;
    fires(HEC_CAUSE_SHARDING);
    near(w.finding.seconds.best, 0.3 + 0.1 * waits + 0.8 * (0.3 - waits - left));
}

/* No rank's kernels were seen: what SMs are idle while kernels run is taken for communication, in which ranks wait for each other. */
TEST(test_sharding_of_unseen_kernels) {
    for (int seen = 0; seen < 3; seen++) {
        sharded();
        for (int i = 0; i < 2; i++) {
            world_state(i, HEC_STATE_COMPUTE, 60, 300);
            world_state(i, HEC_STATE_COMM, 0, NAN);
            w.of[i].steady.basis = w.of[i].ledger.basis = HEC_LEDGER_CALLS;
            world_counters(i, seen == 1 ? 1 : 0.5, 0.3, 0.1, 0, 0.2);
        }
        if (seen == 2) /* idle SMs alone are no evidence: of small kernels they are the same */
            w.devices[0].sharding_share = w.devices[1].sharding_share = 0;
        if (seen == 2) {
            silent(HEC_CAUSE_SHARDING);
            continue;
        }
        fires(HEC_CAUSE_SHARDING);
        assert_true(seen == !shows(&w.finding, HEC_EVIDENCE_COMM_UNSEEN, 0.3));
        assert_true(w.finding.estimated || seen);
        if (seen)
            near(w.finding.seconds.best, 0.3);
        else
            assert_true(w.finding.seconds.best > 0.3 + 0.74 * 0.3 && w.finding.seconds.best < 0.3 + 0.76 * 0.3 &&
                        w.finding.seconds.high < 0.3 + 0.3 && w.finding.seconds.low < 0.16);
    }
}

/* Four synchronisations a step are counted in the program. How long they take is not: half of what SMs could do is idle. */
TEST(test_gradient_sync_of_unseen_kernels) {
    sharded();
    w.summary.sizes.sharing = HEC_SHARING_DDP;
    w.summary.job.gradients = (struct hec_gradient_syncs){400, 400, 100, 5e9, 1e5};
    for (int i = 0; i < 2; i++) {
        world_state(i, HEC_STATE_COMPUTE, 60, 300);
        world_state(i, HEC_STATE_COMM, 0, NAN);
        w.of[i].steady.basis = w.of[i].ledger.basis = HEC_LEDGER_CALLS;
        world_counters(i, 0.5, 0.3, 0.1, 0, 0.2);
    }
    fires(HEC_CAUSE_GRADIENT_SYNC);
    assert_true(shows(&w.finding, HEC_EVIDENCE_COMM_UNSEEN, 0.3) && w.finding.estimated);
    near(w.finding.seconds.best, HEC_GRADIENT_SYNC_GOES * 0.75 * 0.3);
    assert_true(w.finding.seconds.low == 0 && w.finding.seconds.high > w.finding.seconds.best);
    world_counters(0, 1, 0.3, 0.1, 0, 0.2); /* they have work all the time */
    silent(HEC_CAUSE_GRADIENT_SYNC);
    world_counters(0, 0.5, 0.3, 0.1, 0, 0.2);
    world_state(1, HEC_STATE_COMM, 20, 240); /* of the other rank it was seen: that one says how much it is */
    w.of[1].steady.basis = w.of[1].ledger.basis = HEC_LEDGER_MEASURED;
    silent(HEC_CAUSE_GRADIENT_SYNC);
    world_counters(0, NAN, NAN, NAN, 0, NAN);
    world_state(1, HEC_STATE_COMM, 0, NAN);
    w.of[1].steady.basis = HEC_LEDGER_CALLS;
    silent(HEC_CAUSE_GRADIENT_SYNC);
}

TEST(test_sharding_that_is_needed) {
    sharded();
    w.summary.sizes.allocated = w.summary.sizes.reserved =
        120e9; /* 0.8 of the memory are not left for the whole model */
    silent(HEC_CAUSE_SHARDING);
    sharded();
    w.summary.sizes.sharing = HEC_SHARING_DDP;
    silent(HEC_CAUSE_SHARDING);
    sharded();
    w.summary.sizes.known = false;
    silent(HEC_CAUSE_SHARDING);
    sharded();
    w.devices[0].sharding_share = w.devices[1].sharding_share = 0; /* no stacks: communication alone */
    fires(HEC_CAUSE_SHARDING);
    assert_true(w.finding.seconds.best > 0.28 && w.finding.seconds.best < 0.3);
    sharded();
    w.devices[0].sharding_share = 0.03;
    for (int i = 0; i < 2; i++)
        world_state(i, HEC_STATE_COMM, 1, 240);
    silent(HEC_CAUSE_SHARDING);
}

/* FSDP's code is for a step: of many more samples it is no more. */
TEST(test_batch_beside_sharding) {
    double best[2];
    for (int share = 0; share < 2; share++) {
        sharded();
        w.devices[0].gaps = &w.of[0].gaps;
        w.of[0].gaps.owned_s[HEC_STATE_LAUNCH][HEC_CAUSE_LAUNCH] = 30;
        w.of[0].gaps.owned_s[HEC_STATE_HOST][HEC_CAUSE_HOST] = 10;
        w.devices[0].sharding_share = w.devices[1].sharding_share = 0.75 * share;
        w.summary.steps.samples_per_step = 8;
        world_counters(0, 0.2, 0.1, 0.05, 0, 0.1);
        w.devices[0].readings.memory_peak_bytes = 5e9;
        fires(HEC_CAUSE_BATCH);
        best[share] = w.finding.seconds.best;
    }
    near(best[1], best[0]); /* whosever the waits are, they go */
}

/* What FSDP's code takes is no launch's and no other code's, where sharding is not needed. */
TEST(test_waits_beside_sharding) {
    sharded();
    w.devices[0].gaps = &w.of[0].gaps;
    w.devices[0].sharding_share = 0.5;
    w.of[0].gaps.owned_s[HEC_STATE_LAUNCH][HEC_CAUSE_LAUNCH] = 30;
    fires(HEC_CAUSE_LAUNCH);
    near(w.finding.title.value[0], 0.15);
    w.summary.sizes.sharing = HEC_SHARING_NONE;
    fires(HEC_CAUSE_LAUNCH);
    near(w.finding.title.value[0], 0.3);
}

/* ---- batch ---- */

/* The first one communicates for 60 s, and the second is busy for 10 s, of its cause's idling of 80 s: for 50 s the first one waits. */
static double batch_of_stages(enum hec_cause owns) {
    world_begin(2);
    world_counters(0, 0.38, 0.1, 0.38, 0.01, 0.1);
    d->metric[HEC_GPU_MEM_USED].maximum = 10.0 * (1 << 30);
    world_kernel(0, BF16, 1, 12);
    world_state(0, HEC_STATE_COMM, 60, 240);
    world_state(1, HEC_STATE_COMPUTE, 10, 550);
    world_state(1, HEC_STATE_HOST, 80, 120);
    world_state(1, HEC_STATE_STARTUP, 0, 120);
    w.devices[1].gaps = &w.of[1].gaps;
    w.of[1].gaps.owned_s[HEC_STATE_HOST][owns] = 80;
    for (int i = 0; i < 2; i++) {
        w.devices[i].steps = (struct hec_step_summary){
            .source = HEC_STEP_OPTIMIZER, .count = 100, .samples_per_step = NAN, .pid = 7 + i};
        two_ranks[i] = (struct hec_rank){.pid = 7 + i, .number = i, .devices = 1u << i};
    }
    w.summary.job.size = w.summary.job.rank_count = 2;
    w.summary.job.ranks = two_ranks;
    fires(HEC_CAUSE_BATCH);
    return w.finding.seconds.best;
}

/* Stages send what belongs to each sample; what a host takes for a step is as much for four times the samples. */
TEST(test_batch_of_stages) {
    double alone = batch_of_stages(HEC_CAUSE_DATA);
    near(batch_of_stages(HEC_CAUSE_HOST) - alone, 0.5 * 3 / 4);
    near(batch_of_stages(HEC_CAUSE_LAUNCH) - alone, 0.5 * 3 / 4);
}

/* ---- gradients ---- */

TEST(test_gradient_sync) {
    ranks(60, 20, 60, 20);
    w.summary.job.gradients = (struct hec_gradient_syncs){160, 160, 10, 4e8, 25e6};
    fires(HEC_CAUSE_GRADIENT_SYNC);
    assert_true(shows(&w.finding, HEC_EVIDENCE_SYNCS, 16) && answers(&w.finding, HEC_LEVER_SYNC_ONCE, 0));
    near(w.finding.seconds.best, 20.0 / 100 * 15 / 16 * 0.8); /* of the run's 100 s */
    near(w.finding.edit_value, 1.0 / 16);
    half_seen(HEC_STATE_HOST, HEC_CAUSE_HOST, 30, 40,
              1); /* 30 of 40 s are waiting for a rank that is late: they stay */
    w.summary.job.gradients = (struct hec_gradient_syncs){160, 160, 10, 4e8, 25e6};
    fires(HEC_CAUSE_GRADIENT_SYNC);
    near(w.finding.seconds.best, 10.0 / 100 * 15 / 16 * 0.8);
    ranks(60, 20, 60, 20);
    w.summary.job.gradients = (struct hec_gradient_syncs){160, 160, 10, 4e8, 25e6};
    w.summary.job.gradients.syncs = 14; /* a scaler left out some steps */
    silent(HEC_CAUSE_GRADIENT_SYNC);
    w.summary.job.gradients = (struct hec_gradient_syncs){64, 64, 4, 0, 0}; /* a warm-up */
    silent(HEC_CAUSE_GRADIENT_SYNC);
    ranks(60, 0, 60, 0);
    w.summary.job.gradients = (struct hec_gradient_syncs){160, 160, 10, 0, 0};
    silent(HEC_CAUSE_GRADIENT_SYNC); /* nothing was seen to communicate */
}

EACH_TEST(before_each, NULL)
