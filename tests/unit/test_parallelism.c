/* Ways to share training out to devices: the formulas against numbers by hand, what is missing, bounds. */
#include "rule_world.h"

#include "diagnose/parallelism.h"
#include "diagnose/limits.h"
#include "diagnose/physics.h"
#include "unit.h"

#define GB 1e9
#define LINK 450e9 /* bytes a second, one way, of an H200 */
#define STEPS 100

static struct hec_parallelism p;

static void near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-6 * fabs(expected) + 1e-12))
        fail_msg("%.9g instead of %.9g", value, expected);
}

/* A model of 1 GB in fp32 under AdamW: 8 layers of 0.1 GB, of which 0.09 are four matrices. */
static const struct hec_sizes model = {.known = true,
                                       .alike = true,
                                       .sharing = HEC_SHARING_NONE,
                                       .optimizer = "AdamW",
                                       .parameters = 0.25e9,
                                       .trained = 0.25e9,
                                       .bytes = GB,
                                       .gradient_bytes = GB,
                                       .state_bytes = 2 * GB,
                                       .held_bytes = GB,
                                       .held_gradient_bytes = GB,
                                       .held_state_bytes = 2 * GB,
                                       .layers = 8,
                                       .layer_bytes = 0.1 * GB,
                                       .layer_input_bytes = 10e6,
                                       .layer_matrices = 4,
                                       .layer_matrix_bytes = 0.09 * GB,
                                       .expert_bytes = NAN,
                                       .allocated = 9.5 * GB,
                                       .reserved = 10 * GB,
                                       .activations = 5 * GB};

/* Two H200, one of them in use: 100 steps of 1 s, 0.8 of them compute, at 500 W. */
static int before_each(void **state) {
    (void)state;
    world_begin(2);
    w.summary.sizes = model;
    w.devices[1].readings.used = false;
    for (int i = 0; i < 2; i++) {
        w.devices[i].readings.device.visible = 1;
        w.devices[i].readings.memory_peak_bytes = 11 * GB; /* 1 GB of it is not the allocator's */
    }
    world_state(0, HEC_STATE_HOST, 20, 300);
    w.summary.loop = (struct hec_loop){.known = true, .steps = STEPS, .seconds = {[HEC_RUN_LOOP] = STEPS}};
    w.summary.loop.device_joules[0] = w.summary.loop.device_joules[1] = 500 * STEPS;
    return 0;
}

/* The same as a job of two ranks that communicate 0.2 s of each step, at 240 W. */
static void as_job(enum hec_sharing sharing) {
    static struct hec_rank ranks[2];
    w.devices[1].readings.used = true;
    w.summary.sizes.sharing = sharing;
    w.summary.job.size = w.summary.job.rank_count = 2;
    w.summary.job.ranks = ranks;
    for (int i = 0; i < 2; i++) {
        ranks[i] = (struct hec_rank){.pid = i, .number = i, .devices = 1u << i};
        world_state(i, HEC_STATE_COMPUTE, 60, 600);
        world_state(i, HEC_STATE_HOST, 20, 300);
        world_state(i, HEC_STATE_COMM, 20, 240);
    }
}

static const struct hec_strategy_row *row(enum hec_strategy strategy) {
    hec_parallelism_find(&w.summary, &p);
    return &p.row[strategy];
}

TEST(test_bytes_that_are_held) {
    static const double each[][3] = {{1, 1, 2}, {1, 1, 1}, {1, 0.5, 1}, {0.5, 0.5, 1}}; /* DDP, ZeRO 1 to 3, by two */
    for (int i = 0; i < 4; i++) {
        const struct hec_strategy_row *r = row((enum hec_strategy)i);
        assert_true(r->applies);
        near(r->parameter_bytes, each[i][0] * GB);
        near(r->gradient_bytes, each[i][1] * GB);
        near(r->state_bytes, each[i][2] * GB);
    }
    near(row(HEC_STRATEGY_TENSOR)->parameter_bytes, (1 - 0.72 + 0.36) * GB);
    near(row(HEC_STRATEGY_PIPELINE)->state_bytes,
         2 * (0.4 + 0.2) * GB); /* four of the layers, and all that is in none */
    assert_false(row(HEC_STRATEGY_EXPERT)->applies);
}

/* The run's own sum is 1 + 1 + 2 + 5: of the 9.5 that were held half a GB is something else, and so is 1 outside. */
TEST(test_memory) {
    near(row(HEC_STRATEGY_DDP)->memory_bytes, (9 + 1 + 0.5 + 1) * GB); /* buckets */
    w.summary.sizes.bucket_view = true;
    near(row(HEC_STRATEGY_DDP)->memory_bytes, (9 + 0.5 + 1) * GB);
    near(row(HEC_STRATEGY_ZERO1)->memory_bytes, (8 + 0.5 + 1) * GB);
    near(row(HEC_STRATEGY_ZERO2)->memory_bytes,
         (7.5 + 0.1 + 0.5 + 1) * GB); /* what is in no layer is the largest unit */
    near(row(HEC_STRATEGY_FSDP)->memory_bytes, (7 + 0.2 + 0.1 + 0.5 + 1) * GB);
    near(row(HEC_STRATEGY_TENSOR)->memory_bytes, (4 * 0.64 + 5 * (1 + HEC_PARALLELISM_REPLICATED) + 0.5 + 1) * GB);
    w.summary.sizes.activations = NAN; /* all that is neither parameters nor states, then: 6.5 */
    near(row(HEC_STRATEGY_ZERO1)->memory_bytes, (1 + 1 + 1 + 6.5 + 1) * GB);
}

/* Of the run itself it is never less than what the run held. */
TEST(test_memory_of_what_is_run) {
    as_job(HEC_SHARING_DDP);
    assert_int_equal((row(HEC_STRATEGY_DDP), p.now), HEC_STRATEGY_DDP);
    assert_true(row(HEC_STRATEGY_DDP)->memory_bytes >= w.summary.sizes.allocated);
    as_job(HEC_SHARING_FSDP);
    w.summary.sizes.allocated = 12 * GB;
    near(row(HEC_STRATEGY_FSDP)->memory_bytes, (12 + 1) * GB);
}

TEST(test_what_fits) {
    struct hec_device *card = &w.devices[0].readings.device;
    double need = row(HEC_STRATEGY_FSDP)->memory_bytes;
    card->memory_kib = (int64_t)(need / 0.79 / 1024);
    assert_int_equal(row(HEC_STRATEGY_FSDP)->fits, HEC_FITS_YES);
    card->memory_kib = (int64_t)(need / 0.81 / 1024);
    assert_int_equal(row(HEC_STRATEGY_FSDP)->fits, HEC_FITS_HARDLY);
    card->memory_kib = (int64_t)(need / 1.01 / 1024);
    assert_int_equal(row(HEC_STRATEGY_FSDP)->fits, HEC_FITS_NO);
    card->memory_kib = -1;
    assert_int_equal(row(HEC_STRATEGY_FSDP)->fits, HEC_FITS_UNKNOWN);
    assert_true(p.row[HEC_STRATEGY_FSDP].lacks == 1u << HEC_LACK_CARD);
}

/* 1 GB all-reduced by two: 1 GB goes over the link; 39 buckets, of which the last has nothing to hide behind. */
TEST(test_seconds) {
    double latency = (double)HEC_COLLECTIVE_LATENCY_NS / 1e9, buckets = ceil(GB / HEC_PARALLELISM_BUCKET_BYTES);
    const struct hec_strategy_row *r = row(HEC_STRATEGY_DDP);
    assert_int_equal(p.bus, HEC_BUS_NVLINK);
    near(p.bus_bytes_per_s, LINK);
    near(r->sent_bytes, GB);
    double all = GB / LINK + buckets * latency;
    near(r->low_s, 1 + all / buckets);
    near(r->step_s, r->low_s); /* the backward pass is much longer */
    near(r->high_s, 1 + all);
    near(row(HEC_STRATEGY_ZERO1)->sent_bytes, GB);
    near(row(HEC_STRATEGY_FSDP)->sent_bytes, 1.5 * GB);
    near(row(HEC_STRATEGY_TENSOR)->sent_bytes, 8 * 4 * 2 * 0.5 * 2 * 10e6);
    near(p.row[HEC_STRATEGY_TENSOR].low_s, p.row[HEC_STRATEGY_TENSOR].high_s); /* all wait for it */
    near(row(HEC_STRATEGY_PIPELINE)->bubble_s, 0.8 / 2);
    w.summary.job.gradients = (struct hec_gradient_syncs){.syncs = 10, .passes = 80, .steps = 10};
    near(row(HEC_STRATEGY_PIPELINE)->bubble_s, 0.8 / 16); /* eight passes a step: 16 micro-batches */
    near(row(HEC_STRATEGY_FSDP)->sent_bytes, 0.5 * (8 * 2 + 1) * GB);
}

/* On a bus so slow that the backward pass of 2/3 x 0.8 s hides only a part. */
TEST(test_what_is_not_hidden) {
    snprintf(w.devices[0].readings.device.name, sizeof w.devices[0].readings.device.name, "NVIDIA L40S");
    snprintf(w.devices[1].readings.device.name, sizeof w.devices[1].readings.device.name, "NVIDIA L40S");
    w.devices[0].readings.device.pcie_kib_per_s = 1 << 20;
    const struct hec_strategy_row *r = row(HEC_STRATEGY_DDP);
    double buckets = ceil(GB / HEC_PARALLELISM_BUCKET_BYTES), all = r->high_s - 1;
    assert_int_equal(p.bus, HEC_BUS_PCIE);
    assert_true(p.backward_assumed && all > 0.9);
    near(r->step_s, 1 + all - 0.8 * 2 / 3 * (1 - 1 / buckets));
    w.devices[0].parts.steps = 10;
    w.devices[0].parts.part[HEC_STEP_BACKWARD].seconds = 3;
    r = row(HEC_STRATEGY_DDP);
    assert_false(p.backward_assumed);
    near(r->step_s, 1 + all - 0.3 * (1 - 1 / buckets));
}

/* 500 W for what is computed, and for what is open the middle of 120 and 500. */
TEST(test_joules) {
    const struct hec_strategy_row *r = row(HEC_STRATEGY_DDP);
    assert_true(p.comm_assumed);
    near(r->step_j, 500 + (r->step_s - 1) * 310);
    r = row(HEC_STRATEGY_PIPELINE);
    near(r->step_j, 500 + r->bubble_s * 120 + (r->step_s - r->bubble_s - 1) * 310);
    as_job(HEC_SHARING_DDP);
    r = row(HEC_STRATEGY_DDP);
    assert_false(p.comm_assumed);
    near(p.comm_s, 0.2);
    near(r->step_j, 500 - 0.2 * 240 + (r->step_s - 0.8) * 240);
}

/* Half of what FSDP's device waits for its host is FSDP's own code: 0.1 s a step, at 120 W. The other ways have none of it. */
TEST(test_the_code_of_fsdp) {
    as_job(HEC_SHARING_FSDP);
    struct hec_strategy_row before = *row(HEC_STRATEGY_DDP);
    w.devices[0].sharding_share = w.devices[1].sharding_share = 0.5;
    const struct hec_strategy_row *r = row(HEC_STRATEGY_DDP), *fsdp = &p.row[HEC_STRATEGY_FSDP];
    double more = 1 - (0.8 + fsdp->open_s); /* ranks wait for each other: half of that is for the same code */
    near(p.sharding_s, 0.1);
    near(p.unexplained_s, more);
    near(r->step_s, 0.7 + r->open_s + more / 2);
    near(p.launching_s, 0.1);
    near(r->low_s, before.low_s); /* launches are for shards or not: what is left at least is what the device does */
    near(r->low_s, 0.6 + before.low_s - (before.step_s - before.open_s - more) + 0.2);
    near(r->high_s,
         0.7 + r->comm_s + more + 0.1 * (1 - HEC_SHARDING_CODE_LOW)); /* others may take the place of that code */
    near(r->step_j, 500 - 0.2 * 240 - 0.1 * p.idle_w + (r->open_s + more / 2) * 240);
    near(r->open_s, before.open_s);
    near(before.step_s, 0.8 + r->open_s + more); /* nobody knows of whose code */
    w.summary.sizes.sharing = HEC_SHARING_DDP;   /* a share that stacks would give some other code */
    near(row(HEC_STRATEGY_FSDP)->step_s, 1 - r->open_s + fsdp->open_s);
}

/* What is run takes what it was measured to take, whatever is predicted of it. */
TEST(test_what_is_run_was_measured) {
    as_job(HEC_SHARING_DDP);
    const struct hec_strategy_row *run = row(HEC_STRATEGY_DDP), *other = &p.row[HEC_STRATEGY_ZERO1];
    double more = 1 - 0.8 - run->open_s;
    near(p.unexplained_s, more);
    assert_true(run->low_s == 1 && run->step_s == 1 && run->high_s == 1);
    assert_true(run->low_j == 500 && run->step_j == 500 && run->high_j == 500);
    near(other->step_s, 0.8 + other->open_s + more);
    near(other->high_s, other->step_s - other->open_s + other->comm_s);
    assert_true(other->low_s < 0.85);
    assert_int_equal(p.best, HEC_STRATEGY_DDP);
    /* less than is predicted: by a bus of 1 GB a second */
    w.summary.job.collectives = (struct hec_collectives){.matched = 2000, .a_step = 100, .transfer_s = 0.01};
    run = row(HEC_STRATEGY_DDP);
    assert_true(run->step_s == 1 && p.unexplained_s < -0.2);
    near(other->step_s, fmax(0.8, 0.8 + other->open_s + p.unexplained_s));
    assert_true(other->low_s >= 0.8); /* as long as without all communication */
    for (int i = 0; i < HEC_STRATEGIES; i++)
        assert_true(!p.row[i].applies || (p.row[i].low_s <= p.row[i].step_s && p.row[i].step_s <= p.row[i].high_s));
}

/* 20 collectives a step of 10 ms each send the 1 GB of an all-reduce. */
TEST(test_the_run_s_own_rate) {
    as_job(HEC_SHARING_DDP);
    w.summary.job.collectives = (struct hec_collectives){.matched = 2000, .a_step = 20, .transfer_s = 0.01};
    row(HEC_STRATEGY_DDP);
    assert_int_equal(p.bus, HEC_BUS_MEASURED);
    near(p.bus_bytes_per_s, GB / 0.2);
    w.summary.job.size = 4; /* on another machine, of which the link says nothing */
    w.summary.job.collectives.matched = 0;
    row(HEC_STRATEGY_DDP);
    assert_int_equal(p.bus, HEC_BUS_UNKNOWN);
    assert_true(isnan(p.row[HEC_STRATEGY_ZERO1].step_s) && p.row[HEC_STRATEGY_ZERO1].lacks & 1u << HEC_LACK_BUS);
    assert_true(p.row[HEC_STRATEGY_DDP].step_s == 1 && !(p.row[HEC_STRATEGY_DDP].lacks & 1u << HEC_LACK_BUS));
    assert_int_equal(p.best, HEC_STRATEGIES); /* there is nothing to compare it with */
}

TEST(test_experts) {
    w.summary.sizes.experts = 8;
    w.summary.sizes.expert_bytes = 0.6 * GB;
    const struct hec_strategy_row *r = row(HEC_STRATEGY_EXPERT);
    assert_true(r->applies && r->lacks == 1u << HEC_LACK_TOP && isnan(r->step_s));
    near(r->parameter_bytes, 0.7 * GB);
    w.summary.sizes.expert_top = 2;
    r = row(HEC_STRATEGY_EXPERT);
    assert_int_equal(r->lacks, 0);
    near(r->sent_bytes, 4 * 0.5 * 8 * 2 * 10e6 + 0.4 * GB);
}

/* Nothing is shown as a number that was not there to be made one. */
static void lacks_all(enum hec_lack lack) {
    hec_parallelism_find(&w.summary, &p);
    if (!(p.lacks >> lack & 1))
        fail_msg("%s is not missing", hec_lack_name(lack));
    assert_int_equal(p.best, HEC_STRATEGIES);
    for (int i = 0; i < HEC_STRATEGIES; i++)
        assert_true(!p.row[i].applies && isnan(p.row[i].memory_bytes) && isnan(p.row[i].step_s) &&
                    isnan(p.row[i].step_j));
}

/* A way that is a little faster as predicted is no reason to change what the run does. */
TEST(the_run_stays_best_of_what_is_as_good) {
    for (int much = 0; much < 2; much++) {
        before_each(NULL);
        as_job(HEC_SHARING_FSDP);
        w.devices[0].sharding_share = w.devices[1].sharding_share =
            much ? 0.9 : 0; /* of FSDP's own code, which DDP has not */
        hec_parallelism_find(&w.summary, &p);
        double faster = 1 - p.row[HEC_STRATEGY_DDP].step_s / p.row[HEC_STRATEGY_FSDP].step_s;
        assert_true(much ? faster > 0.2 : faster > 0 && faster < 0.01);
        assert_int_equal(p.best, much ? HEC_STRATEGY_DDP : HEC_STRATEGY_FSDP);
    }
}

TEST(test_what_is_missing_for_all) {
    w.devices[1].readings.device.visible = 0;
    lacks_all(HEC_LACK_DEVICES);
    before_each(NULL);
    w.summary.sizes.known = false;
    lacks_all(HEC_LACK_MODEL);
    before_each(NULL);
    w.summary.sizes.alike = false;
    lacks_all(HEC_LACK_ALIKE);
    before_each(NULL);
    w.devices[1].readings.used = true; /* by one process */
    lacks_all(HEC_LACK_SHARING);
    as_job(HEC_SHARING_NONE);
    lacks_all(HEC_LACK_SHARING);
    as_job(HEC_SHARING_TENSOR);
    lacks_all(HEC_LACK_SHARING);
    w.summary.device_count = 0;
    lacks_all(HEC_LACK_SHARING);
}

TEST(test_what_is_missing_for_a_row) {
    w.summary.sizes.allocated = NAN;
    assert_true(row(HEC_STRATEGY_DDP)->lacks == 1u << HEC_LACK_PEAK && isnan(p.row[HEC_STRATEGY_DDP].memory_bytes));
    assert_int_equal(p.row[HEC_STRATEGY_DDP].fits, HEC_FITS_UNKNOWN);
    assert_int_equal(p.best, HEC_STRATEGIES);
    w.devices[0].readings.device.memory_kib = 3 << 20; /* what is held for certain is more */
    assert_int_equal(row(HEC_STRATEGY_DDP)->fits, HEC_FITS_NO);
    before_each(NULL);
    w.summary.loop.known = false;
    assert_true(row(HEC_STRATEGY_FSDP)->lacks & 1u << HEC_LACK_STEP && isnan(p.row[HEC_STRATEGY_FSDP].step_s));
    assert_true(p.row[HEC_STRATEGY_FSDP].memory_bytes > 0);
    before_each(NULL);
    w.devices[0].readings.energy.valid = false;
    assert_true(row(HEC_STRATEGY_DDP)->lacks == 1u << HEC_LACK_JOULES && isnan(p.row[HEC_STRATEGY_DDP].step_j));
    assert_true(p.row[HEC_STRATEGY_DDP].step_s > 0);
    before_each(NULL);
    w.summary.sizes.layer_input_bytes = NAN;
    assert_true(row(HEC_STRATEGY_TENSOR)->lacks == 1u << HEC_LACK_INPUT && isnan(p.row[HEC_STRATEGY_TENSOR].step_s));
    before_each(NULL);
    as_job(HEC_SHARING_DDP);
    w.of[0].steady.basis = w.of[1].steady.basis = HEC_LEDGER_CALLS; /* kernels were not recorded */
    assert_true(row(HEC_STRATEGY_FSDP)->lacks & 1u << HEC_LACK_COMM && isnan(p.row[HEC_STRATEGY_FSDP].step_s));
}

TEST(test_no_layers) {
    w.summary.sizes.layers = 2; /* a fifth of the model */
    assert_true(row(HEC_STRATEGY_FSDP)->applies && !p.row[HEC_STRATEGY_TENSOR].applies &&
                !p.row[HEC_STRATEGY_PIPELINE].applies);
    w.summary.sizes.layers = 8;
    w.summary.sizes.layer_matrices = 1;
    assert_true(!row(HEC_STRATEGY_TENSOR)->applies && p.row[HEC_STRATEGY_PIPELINE].applies);
}

TEST(test_the_best_one) {
    hec_parallelism_find(&w.summary, &p);
    assert_int_equal(p.best, HEC_STRATEGY_DDP);
    w.devices[0].readings.device.memory_kib = (int64_t)(row(HEC_STRATEGY_FSDP)->memory_bytes / 0.79 / 1024);
    hec_parallelism_find(&w.summary, &p);
    assert_int_equal(p.best, HEC_STRATEGY_FSDP);
    for (int i = 0; i < HEC_STRATEGIES; i++)
        if (p.row[i].applies)
            assert_true(p.row[i].low_s <= p.row[i].step_s && p.row[i].step_s <= p.row[i].high_s &&
                        p.row[i].low_j <= p.row[i].step_j && p.row[i].step_j <= p.row[i].high_j);
}

/* ---- what the hooks report ---- */

struct told {
    const char *what, *text;
};
static const struct told *told;

static int tell(void *context, int (*visit)(void *, const char *, const char *), void *to) {
    (void)context;
    int stop = 0;
    for (const struct told *t = told; t->what && !stop; t++)
        stop = visit(to, t->what, t->text);
    return stop;
}

static struct hec_sizes read_sizes(const struct told *of) {
    const struct hec_summary_input input = {.size_facts = tell};
    struct hec_sizes z;
    told = of;
    assert_int_equal(hec_sizes_read(&input, &z), 0);
    return z;
}

TEST(test_sizes_of_two_processes) {
    struct hec_sizes z = read_sizes((const struct told[]){
        {"model",
         "parameters=100 trained=90 bytes=400 gradient_bytes=360 held_bytes=210 held_gradient_bytes=190 sharing=fsdp bucket_view=0"},
        {"model",
         "parameters=100 trained=90 bytes=400 gradient_bytes=360 held_bytes=190 held_gradient_bytes=170 sharing=fsdp bucket_view=0"},
        {"optimizer", "kind=AdamW bytes=720 held_bytes=380"},
        {"optimizer", "kind=AdamW bytes=720 held_bytes=340"},
        {"layers", "count=4 bytes=80 input_bytes=0 matrices=2 matrix_bytes=64"},
        {"experts", "count=8 bytes=200 top=0"},
        {"memory", "allocated=5000 reserved=6000 activations=0"},
        {"memory", "allocated=5500 reserved=5600 activations=700"},
        {NULL, NULL}});
    assert_true(z.known && z.alike && z.sharing == HEC_SHARING_FSDP && !z.bucket_view);
    assert_true(z.held_bytes == 210 && z.held_gradient_bytes == 190 && z.held_state_bytes == 380 &&
                z.state_bytes == 720);
    assert_string_equal(z.optimizer, "AdamW");
    assert_true(z.layers == 4 && z.layer_bytes == 80 && isnan(z.layer_input_bytes) && z.layer_matrices == 2);
    assert_true(z.experts == 8 && z.expert_bytes == 200 && z.expert_top == 0);
    assert_true(z.allocated == 5500 && z.reserved == 6000 && z.activations == 700);
}

TEST(test_sizes_that_are_none) {
    static const char *const texts[] = {"",
                                        "parameters",
                                        "parameters=",
                                        "parameters=x",
                                        "parameters=-4",
                                        "parameters=1e400",
                                        "parameters=4x",
                                        "xparameters=4",
                                        "parameters=0",
                                        " = = "};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(read_sizes((const struct told[]){{"model", texts[i]}, {"what", texts[i]}, {NULL, NULL}}).known);
    struct hec_sizes z = read_sizes(
        (const struct told[]){{"model", "parameters=4 sharing=magic"}, {"model", "parameters=5"}, {NULL, NULL}});
    assert_true(z.known && !z.alike && z.sharing == HEC_SHARING_UNKNOWN && isnan(z.bytes));
}

EACH_TEST(before_each, NULL)
