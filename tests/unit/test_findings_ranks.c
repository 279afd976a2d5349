/* Two ranks on two devices, from their activities to the findings: what is one job's is one finding. */
#include "diagnose/rules/findings.h"
#include "recorded_run.h"
#include "report/words/findings.h"
#include "unit.h"

#define US INT64_C(1000)
#define BEGIN_NS INT64_C(3000000000) /* fake_worker's devices work from here */
#define ALL_REDUCE "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
#define ADD "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor>"
#define GEMM "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT"

enum { RANKS = 2, STEPS = 120, REDUCES = 16 };

static struct rank {
    uint32_t process, thread, stream, comm;
    int64_t host, device; /* now; when it has done all */
} ranks[RANKS];

static uint32_t gemm, add, reduce;

/* A kernel of the main stream or of the one that communicates, after all before it. */
static void kernel(struct rank *r, uint32_t name, bool communicates, int64_t length) {
    int64_t launch = r->host, start = r->device > launch + 8 * US ? r->device : launch + 8 * US;
    struct hec_activity *a =
        fake_tl_add(&timeline, HEC_ACTIVITY_KERNEL, communicates ? r->comm : r->stream, start, start + length);
    a->name = name;
    fake_tl_launched(a, launch, launch + 5 * US, r->thread);
    r->host += 6 * US;
    r->device = start + length;
}

static void begin(double seconds) {
    run_begin(seconds);
    fake_tl_init(&timeline);
    gemm = fake_tl_kernel(&timeline, GEMM, 256);
    add = fake_tl_kernel(&timeline, ADD, 256);
    reduce = fake_tl_kernel(&timeline, ALL_REDUCE, 256);
    for (int i = 0; i < RANKS; i++) {
        int32_t pid = 7 + i;
        ranks[i] = (struct rank){.process = fake_tl_track(&timeline, HEC_TRACK_PROCESS, pid, -1, 0),
                                 .thread = fake_tl_track(&timeline, HEC_TRACK_THREAD, pid, -1, pid),
                                 .stream = fake_tl_track(&timeline, HEC_TRACK_STREAM, pid, i, 7),
                                 .comm = fake_tl_track(&timeline, HEC_TRACK_STREAM, pid, i, 8),
                                 .host = BEGIN_NS,
                                 .device = BEGIN_NS};
        fake_worker(&run, i, 400, 900, 800, 300);
        fake_used(&run, i, pid);
    }
}

/* All ranks are done at the same time: who is early is in the kernel for longer. */
static void all_reduce(int64_t length) {
    int64_t last = 0;
    for (int i = 0; i < RANKS; i++)
        last = ranks[i].device > last ? ranks[i].device : last;
    for (int i = 0; i < RANKS; i++)
        kernel(&ranks[i], reduce, true, last + length - ranks[i].device);
}

static void step_ends(int64_t began) {
    for (int i = 0; i < RANKS; i++) {
        struct rank *r = &ranks[i];
        fake_tl_add(&timeline, HEC_ACTIVITY_SYNC, r->thread, r->host, r->device + 5 * US)->detail = HEC_SYNC_STREAM;
        r->host = r->device + 5 * US;
        fake_tl_add(&timeline, HEC_ACTIVITY_STEP, r->process, began, r->host)->detail = HEC_STEP_OPTIMIZER;
    }
}

static void end(void) {
    timeline.input.end_ns = run.input.end_ns;
    summarise();
    assert_true(summary.devices[0].readings.used && summary.devices[1].readings.used);
    for (int i = 0; i < summary.job.findings.count && getenv("HEC_TEST_VERBOSE"); i++) {
        const struct hec_finding *f = &summary.job.findings.list[i];
        print_message("GPU %d %s: %s, %.2f of seconds, %.2f of joules\n", f->device, hec_cause_name(f->cause),
                      hec_evidence_name(f->title.what), f->seconds.best, f->joules.best);
        for (int k = 0; k < f->evidence_count; k++)
            print_message("    %s %g\n", hec_evidence_name(f->evidence[k].what), f->evidence[k].value[0]);
    }
}

static const struct hec_finding *find(enum hec_cause cause) {
    for (int i = 0; i < summary.job.findings.count; i++)
        if (summary.job.findings.list[i].cause == cause)
            return &summary.job.findings.list[i];
    return NULL;
}

static int count(enum hec_cause cause) {
    int n = 0;
    for (int i = 0; i < summary.job.findings.count; i++)
        n += summary.job.findings.list[i].cause == cause;
    return n;
}

/* What another device says of the same cause. */
static const struct hec_evidence *of_device(const struct hec_finding *f, int device) {
    for (int i = 0; i < f->evidence_count; i++)
        if (f->evidence[i].device == device)
            return &f->evidence[i];
    return NULL;
}

/* Gradients are summed one after the other, each is divided, and the optimizer takes one parameter after the other. */
TEST(test_serial_all_reduces) {
    begin(7.5);
    for (int step = 0; step < STEPS; step++) {
        int64_t began = ranks[0].host;
        for (int i = 0; i < RANKS; i++)
            for (int k = 0; k < 30; k++)
                kernel(&ranks[i], gemm, false, 400 * US);
        for (int k = 0; k < REDUCES; k++) {
            all_reduce(1000 * US);
            for (int i = 0; i < RANKS; i++)
                kernel(&ranks[i], add, false, 240 * US);
        }
        for (int i = 0; i < RANKS; i++)
            for (int k = 0; k < REDUCES; k++)
                kernel(&ranks[i], add, false, 240 * US);
        step_ends(began);
    }
    end();
    const struct hec_finding *f = find(HEC_CAUSE_COMM);
    assert_non_null(f);
    assert_int_equal(f->devices, 3);
    assert_int_equal(f->device, 0);
    assert_non_null(of_device(f, 1));
    assert_int_equal(of_device(f, 1)->what, HEC_EVIDENCE_COMM_SHARE);
    assert_int_equal(f->title.what, HEC_EVIDENCE_COMM_SHARE);
    assert_true(of_device(f, 1)->value[0] > 0.05 && of_device(f, 1)->value[0] <= f->title.value[0] * 1.01);
    assert_int_equal(count(HEC_CAUSE_COMM), 1);
    assert_true(count(HEC_CAUSE_MEMORY) <= 1);
}

static void number(int first, int second) {
    for (uint32_t i = 0; i < timeline.track_count; i++)
        timeline.tracks[i].rank = timeline.tracks[i].pid == 7 ? first : second;
}

/* The second has three times the work of the first; their numbers as the recording has them, -1: none. */
static const char *straggle(int first, int second) {
    static char headline[512];
    begin(7.7);
    number(first, second);
    for (int step = 0; step < STEPS; step++) {
        int64_t began = ranks[0].host;
        for (int i = 0; i < RANKS; i++)
            for (int k = 0; k < 30; k++)
                kernel(&ranks[i], gemm, false, (i ? 1200 : 400) * US);
        all_reduce(1600 * US);
        step_ends(began);
    }
    end();
    const struct hec_finding *f = &summary.job.findings.list[0];
    assert_int_equal(f->cause, HEC_CAUSE_STRAGGLER);
    assert_int_equal(count(HEC_CAUSE_STRAGGLER), 1);
    assert_int_equal(f->devices, 3);
    hec_headline(headline, sizeof headline, &summary);
    return headline;
}

TEST(test_straggler) {
    assert_non_null(strstr(straggle(-1, -1), "GPU 1 holds up the others: GPU 0 waits"));
}

TEST(test_straggler_of_ranks) {
    assert_non_null(strstr(straggle(4, 5), "rank 5 (GPU 1) holds up the others: rank 4 (GPU 0) waits"));
}

/* Processes that a rank started have its number too: it is nobody's then. */
TEST(test_straggler_of_heirs) {
    assert_non_null(strstr(straggle(4, 4), "GPU 1 holds up the others: GPU 0 waits"));
    assert_int_equal(summary.job.ranks[0].number, -1);
}

/* ---- collectives that are matched across ranks ---- */

/* Steps of 30 products and a collective, in which a rank's host does something else for 20 ms: which, by the step. */
static void late_host(int (*who)(int step)) {
    begin(7.7);
    number(0, 1);
    for (int step = 0; step < STEPS; step++) {
        int64_t began = ranks[0].host;
        for (int i = 0; i < RANKS; i++) {
            ranks[i].host += who(step) == i ? 20000 * US : 0;
            for (int k = 0; k < 30; k++)
                kernel(&ranks[i], gemm, false, 400 * US);
        }
        all_reduce(1600 * US);
        step_ends(began);
    }
    end();
}

static int always_the_second(int step) {
    (void)step;
    return 1;
}

static int in_turn(int step) {
    return step % 2;
}

/* Rows add up to the run's time and the device's energy, to the nanosecond and the millijoule. */
static const struct hec_ledger_row *waiting_of(int device) {
    const struct hec_ledger_device *d = summary.devices[device].ledger;
    int64_t ns = 0, mj = 0;
    for (int s = 0; s < HEC_STATE_COUNT; s++) {
        ns += d->rows[s].ns;
        mj += d->rows[s].mj;
        assert_true(d->rows[s].traced_ns <= d->rows[s].ns);
    }
    assert_int_equal(ns, d->window_ns);
    assert_int_equal(mj, llround(d->joules * 1e3));
    return &d->rows[HEC_STATE_WAITING];
}

/* It waits 20 of each 33.6 ms, and all of that is charged to the other. */
TEST(test_late_rank) {
    late_host(always_the_second);
    const struct hec_rank *r = summary.job.ranks;
    const struct hec_finding *f = &summary.job.findings.list[0];
    double loop_s = 33.6e-3 * (STEPS - 3);
    assert_int_equal(summary.job.rank_count, 2);
    assert_true(summary.job.collectives.matched >= STEPS - 4);
    assert_true(fabs(r[0].waited_s / loop_s - 20 / 33.6) < 0.02 && r[1].waited_s < 0.01 * loop_s);
    assert_true(fabs(r[1].held_s - r[0].waited_s) < 0.01 * loop_s && r[0].held_s < 0.01 * loop_s);
    assert_true(r[1].held_j > 0 && fabs(r[1].held_j - r[0].waited_j) < 0.02 * r[0].waited_j);
    assert_true(r[1].last == r[1].collectives && r[0].last == 0);
    const struct hec_ledger_row *comm = &summary.devices[0].ledger->rows[HEC_STATE_COMM], *waits = waiting_of(0);
    assert_true(fabs(waits->seconds - r[0].waited_s) < 1e-6 && waiting_of(1)->seconds < 0.01 * loop_s);
    assert_true(comm->seconds >= 1.6e-3 * STEPS && waits->watts == comm->watts);
    assert_true(fabs(waits->joules / waits->seconds - comm->joules / comm->seconds) < 0.01 * waits->watts);
    assert_false(summary.devices[0].ledger->waiting_likely);
    assert_true(r[1].in_short_table && r[1].holds && r[1].unusual && r[0].in_short_table && summary.job.usual == 0);
    assert_true(fabs(summary.job.collectives.transfer_s - 1.6e-3) < 1e-5);
    assert_int_equal(f->cause, HEC_CAUSE_STRAGGLER);
    assert_true(f->device == 1 && f->devices == 3 && f->lever.id == HEC_LEVER_SLOW_HOST);
    assert_int_equal(f->states, 1u << HEC_STATE_HOST); /* the lines are those of its host */
    assert_true(f->replayed && fabs(f->step_seconds.best - 20 / 33.6) < 0.1);
}

/* Neither is blamed. */
TEST(test_late_in_turn) {
    late_host(in_turn);
    const struct hec_finding *f = find(HEC_CAUSE_STRAGGLER);
    assert_non_null(f);
    assert_int_equal(f->title.what, HEC_EVIDENCE_RANKS_IN_TURN);
    assert_true(fabs(f->title.value[0] - 10 / 33.6) < 0.02);
}

/* The lists of processes are polled: of a short one they may know a stranger alone. What it launched was recorded, though. */
TEST(test_a_device_whose_process_was_not_listed) {
    begin(7.7);
    run.gpu_processes[1].pid = 4711;
    for (int step = 0; step < STEPS; step++) {
        int64_t began = ranks[0].host;
        for (int i = 0; i < RANKS; i++)
            kernel(&ranks[i], gemm, false, 10000 * US);
        step_ends(began);
    }
    end();
    for (int i = 0; i < RANKS; i++)
        assert_true(summary.devices[i].readings.used);
}

/* Of each step 16 passes, each of which synchronises; the optimizer needs one. The collectives of the others go. */
TEST(test_gradients_synchronised_too_often) {
    begin(7.7);
    run.input.gradient_syncs = "1920 1920 120";
    run.input.gradients = "400000000 26214400";
    for (int step = 0; step < STEPS; step++) {
        int64_t began = ranks[0].host;
        for (int part = 0; part < 16; part++) {
            for (int i = 0; i < RANKS; i++)
                kernel(&ranks[i], gemm, false, 1000 * US);
            all_reduce(1000 * US);
        }
        step_ends(began);
    }
    end();
    const struct hec_finding *f = &summary.job.findings.list[0];
    assert_int_equal(f->cause, HEC_CAUSE_GRADIENT_SYNC);
    assert_true(f->replayed && fabs(f->step_seconds.best - 15.0 / 32) < 0.03);
    assert_int_equal(f->devices, 3);
}

/* Two hundred collectives of a few microseconds, each of which costs the host its launch. */
TEST(test_many_small_collectives) {
    begin(5.0);
    run.input.gradient_syncs = "120 120 120";
    run.input.gradients = "100000000 1000000"; /* five buckets of 25 MB would do */
    for (int step = 0; step < STEPS; step++) {
        int64_t began = ranks[0].host;
        for (int part = 0; part < 200; part++) {
            for (int i = 0; i < RANKS; i++)
                kernel(&ranks[i], gemm, false, 20 * US);
            for (int i = 0; i < RANKS; i++)
                ranks[i].host += 50 * US;
            all_reduce(30 * US);
        }
        step_ends(began);
    }
    end();
    const struct hec_finding *f = &summary.job.findings.list[0];
    assert_int_equal(f->cause, HEC_CAUSE_BUCKETS);
    assert_true(f->title.value[0] > 190 && f->title.value[0] < 210);
    assert_true(fabs(f->edit_value - 5.0 / 200) < 0.002);
    assert_true(f->replayed && f->step_seconds.best > 0.3);
}

/* ---- what processes say of themselves ---- */

static int say_ranks(void *context, int (*visit)(void *, int32_t, const char *), void *to) {
    (void)context;
    int err = visit(to, 7, "2 0 4 torchrun left");
    if (!err)
        err = visit(to, 8, "3 1 4 torchrun left");
    if (!err)
        err = visit(to, 9, "3 1 4 torchrun left"); /* a loader's worker, which has the environment of its rank */
    if (!err)
        err = visit(to, 10, "0 0 4 srun right"); /* it has no device here */
    return err ? err : visit(to, 11, "9 0 4 x");
}

TEST(test_ranks_say_who_they_are) {
    begin(7.2);
    run.input.rank_facts = say_ranks;
    step_ends(ranks[0].host);
    kernel(&ranks[0], gemm, false, 400 * US);
    kernel(&ranks[1], gemm, false, 400 * US);
    timeline.input.end_ns = run.input.end_ns;
    summarise();
    const struct hec_job_diagnosis *job = &summary.job;
    assert_true(job->size == 4 && job->rank_count == 3);
    assert_true(job->ranks[0].number == 0 && job->ranks[0].devices == 0 && strcmp(job->ranks[0].host, "right") == 0);
    assert_true(job->ranks[1].number == 2 && job->ranks[1].local == 0 && job->ranks[1].devices == 1);
    assert_true(job->ranks[2].number == 3 && job->ranks[2].pid == 8 && strcmp(job->ranks[2].launcher, "torchrun") == 0);
}

static void two_alike(int world_size) {
    begin(7.2);
    run.input.ranks = world_size;
    for (int step = 0; step < STEPS; step++) {
        int64_t began = ranks[0].host;
        for (int i = 0; i < RANKS; i++) {
            for (int k = 0; k < 40; k++)
                kernel(&ranks[i], add, false, 850 * US);
            kernel(&ranks[i], gemm, false, 200 * US);
        }
        step_ends(began);
    }
    end();
}

/* Two programs that have nothing to do with each other, with the same fault. */
TEST(test_two_jobs) {
    two_alike(0);
    assert_int_equal(count(HEC_CAUSE_MEMORY), 2);
    assert_int_equal(summary.job.findings.list[0].devices, UINT64_C(1) << summary.job.findings.list[0].device);
}

/* Two ranks whose communication was not seen: the program says that it has two, and their steps are alike. */
TEST(test_ranks_in_step) {
    two_alike(2);
    assert_int_equal(count(HEC_CAUSE_MEMORY), 1);
    assert_int_equal(summary.job.findings.list[0].devices, 3);
}

TEST(test_words) {
    static const struct {
        uint64_t devices;
        const char *word;
    } cases[] = {
        {1, "GPU 0"},
        {3, "GPU 0 and 1"},
        {7, "GPU 0 to 2"},
        {11, "GPU 0, 1 and 3"},
        {0xcf, "GPU 0 to 3, 6 and 7"},
        {UINT64_C(1) << 63 | 1, "GPU 0 and AMD GPU 31"},
        {UINT64_C(3) << 32 | 3, "GPU 0, 1, AMD GPU 0 and 1"},
        {UINT64_MAX, "GPU 0 to 31 and AMD GPU 0 to 31"},
    };
    char word[HEC_FORMAT_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hec_devices_word(word, cases[i].devices), cases[i].word);
    hec_devices_word(word, UINT64_C(0x5555555555555555)); /* cut, if at all */
    assert_true(strlen(word) < sizeof word);
}
