/* The replay: programs as rows, played on a small machine of host threads and one device, as they are and with the change that an
 * edit stands for. The machine is not the replay: it computes what happens from what the program does, where the replay has
 * only what was recorded of it; but both know a queue and a wait, so how well it foretells real programs is
 * for real ones to say (docs/replay.md). */
#include "diagnose/facts.h"
#include "diagnose/replay/power.h"
#include "diagnose/replay/predict.h"
#include "diagnose/replay/proofs.h"
#include "diagnose/replay/whatif.h"
#include "fake_timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define STEPS 30
#define START (1000 * MS)

/* A step: data, a copy to the device, kernels that two threads launch in turns or one does, each followed by what a layer does. */
struct program {
    const char *what;
    int kernels, threads;
    int64_t code, launch, kernel; /* ns of the host between launches, of a launch, of a kernel */
    int64_t data, checkpoint;     /* ns a step */
    int wait_every;               /* kernels; 0: never but at the end of a step where last_wait */
    bool last_wait;
    int64_t copy;     /* ns on the device a step; 0: none */
    bool pageable;    /* then the call returns when it is done */
    int64_t early;    /* or ns before */
    bool rare;        /* two waits of all return 30 ms late */
    int alloc_every;  /* kernels: a call of 100 us that waits for the device */
    int64_t own_code; /* ns a step, of the program's own code in one piece */
    int64_t around;   /* ns of code on either side of each wait and allocation */
    int reads;        /* numbers a step, each a sum, a copy to the host and a wait */
    bool one_go;      /* they are summed one right after the other, and none is read */
    int64_t blocks;   /* of 128 threads, of a kernel: an H200 holds 2112 at once */
    int64_t comm;     /* ns a step: one kernel of 24 blocks that communicates, at its end */
};

struct machine {
    struct fake_timeline *t; /* NULL: only the time counts */
    uint32_t process, thread[2], stream, kernel, sum, comm, data, checkpoint;
    uint64_t random;
    int64_t now, tail; /* of the host; of the stream */
    int64_t early;     /* of a call that blocks */
    int waits, rare;   /* so far; the one that returns late: 0 none */
};

enum { COMM = -2, SUM = -1 }; /* other kernels than a layer's, of the first thread */

/* +-20 %, the same sequence for the same program. */
static int64_t jitter(struct machine *m, int64_t ns) {
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ns * (int64_t)(800 + (m->random >> 33) % 401) / 1000;
}

static void spend(struct machine *m, int64_t ns, uint32_t phase, int64_t drawn) {
    if (ns > 0 && phase && m->t)
        fake_tl_add(m->t, HEC_ACTIVITY_PHASE, m->thread[0], m->now, m->now + drawn)->name = phase;
    m->now += ns > 0 ? drawn : 0;
}

static void operate(struct machine *m, enum hec_activity_kind kind, int thread, int64_t call_ns, int64_t ns,
                    bool blocks, bool pageable) {
    int64_t begin = m->now, start = begin + 8 * US > m->tail + US ? begin + 8 * US : m->tail + US;
    m->tail = start + ns;
    m->now = blocks ? m->tail + (m->early ? -m->early : 5 * US) : begin + call_ns;
    if (!m->t)
        return;
    struct hec_activity *a = fake_tl_add(m->t, kind, m->stream, start, m->tail);
    a->launch_ns = begin;
    a->launch_end_ns = m->now;
    a->launch_track = m->thread[thread > 0];
    a->name = kind != HEC_ACTIVITY_KERNEL ? 0 : thread == COMM ? m->comm : thread == SUM ? m->sum : m->kernel;
    if (kind == HEC_ACTIVITY_COPY) {
        a->amount = (double)ns * 10; /* 10 GB/s */
        a->from = pageable ? HEC_MEMORY_PAGEABLE : HEC_MEMORY_PINNED;
        a->to = HEC_MEMORY_DEVICE;
        struct hec_activity *call = fake_tl_add(m->t, HEC_ACTIVITY_API, m->thread[thread], begin, m->now);
        call->detail = HEC_API_COPY;
        call->amount = (double)ns * 10;
        call->from = pageable ? HEC_MEMORY_PAGEABLE : HEC_MEMORY_PINNED;
        call->to = HEC_MEMORY_DEVICE;
    }
}

static void wait_for(struct machine *m, enum hec_activity_kind kind, int thread, int64_t own_ns) {
    int64_t begin = m->now;
    m->now = begin + own_ns > m->tail + 5 * US ? begin + own_ns : m->tail + 5 * US;
    m->now += m->rare && ++m->waits % m->rare == 0 ? 30 * MS : 0;
    if (m->t)
        fake_tl_add(m->t, kind, m->thread[thread], begin, m->now)->detail =
            kind == HEC_ACTIVITY_SYNC ? (uint8_t)HEC_SYNC_STREAM : (uint8_t)HEC_API_ALLOC;
}

/* 2 bytes, as PyTorch reads them; its copy call is recorded beside the copy. */
static void read_number(struct machine *m, const struct program *p, int nth) {
    bool hidden = p->one_go && nth > 0;
    m->now += hidden ? 0 : jitter(m, p->code);
    operate(m, HEC_ACTIVITY_KERNEL, SUM, hidden ? 0 : jitter(m, p->launch), 3 * US, false, false);
    if (p->one_go)
        return;
    m->now += US;
    int64_t begin = m->now, start = begin + 8 * US > m->tail + US ? begin + 8 * US : m->tail + US;
    m->tail = start + 2 * US;
    m->now = begin + 3 * US;
    if (m->t) {
        struct hec_activity *a = fake_tl_add(m->t, HEC_ACTIVITY_COPY, m->stream, start, m->tail);
        a->launch_ns = begin;
        a->launch_end_ns = m->now;
        a->launch_track = m->thread[0];
        a->amount = 2;
        a->from = HEC_MEMORY_DEVICE;
        a->to = HEC_MEMORY_PINNED;
    }
    wait_for(m, HEC_ACTIVITY_SYNC, 0, 2 * US);
}

/* Seconds from the end of the fourth step to that of the last, of host and device. */
static double play(const struct program *p, struct fake_timeline *t) {
    struct machine m = {.t = t, .random = 7, .now = START, .early = p->early, .rare = p->rare ? 300 : 0};
    int64_t from = 0, ended = START, last = START;
    if (t) {
        fake_tl_init(t);
        m.process = fake_tl_track(t, HEC_TRACK_PROCESS, 5, -1, 0);
        m.thread[0] = fake_tl_track(t, HEC_TRACK_THREAD, 5, -1, 5);
        m.thread[1] = fake_tl_track(t, HEC_TRACK_THREAD, 5, -1, 6);
        m.stream = fake_tl_track(t, HEC_TRACK_STREAM, 5, 0, 7);
        m.kernel = fake_tl_kernel(t, "sgemm", 128);
        t->kernels[t->kernel_count - 1].grid[0] = p->blocks ? p->blocks : 1;
        m.sum = fake_tl_kernel(t, "void at::native::reduce_kernel<512, 1>", 128);
        m.comm = fake_tl_kernel(t, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 544);
        t->kernels[t->kernel_count - 1].grid[0] = 24;
        m.data = fake_tl_name(t, "data");
        m.checkpoint = fake_tl_name(t, "checkpoint");
    }
    for (int step = 0; step < STEPS; step++) {
        spend(&m, p->data, m.data, jitter(&m, p->data));
        spend(&m, p->own_code, 0, jitter(&m, p->own_code));
        int64_t copy = jitter(&m, p->copy ? p->copy : 1);
        if (p->copy)
            operate(&m, HEC_ACTIVITY_COPY, 0, 5 * US, copy, p->pageable, p->pageable);
        for (int k = 0; k < p->kernels; k++) {
            int thread = p->threads == 2 && k >= p->kernels / 2;
            int64_t code = jitter(&m, p->code), launch = jitter(&m, p->launch), kernel = jitter(&m, p->kernel);
            m.now += code;
            operate(&m, HEC_ACTIVITY_KERNEL, thread, launch, kernel, false, false);
            bool waits = p->wait_every && k % p->wait_every == p->wait_every - 1;
            bool allocates = p->alloc_every && k % p->alloc_every == p->alloc_every - 1;
            m.now += waits || allocates ? p->around : 0;
            if (waits)
                wait_for(&m, HEC_ACTIVITY_SYNC, thread, 2 * US);
            if (allocates)
                wait_for(&m, HEC_ACTIVITY_API, thread, 100 * US);
            m.now += waits || allocates ? p->around : 0;
        }
        for (int k = 0; k < p->reads; k++)
            read_number(&m, p, k);
        if (p->comm)
            operate(&m, HEC_ACTIVITY_KERNEL, COMM, 5 * US, p->comm, false, false);
        if (p->last_wait)
            wait_for(&m, HEC_ACTIVITY_SYNC, 0, 2 * US);
        spend(&m, p->checkpoint, m.checkpoint, jitter(&m, p->checkpoint));
        if (t)
            fake_tl_add(t, HEC_ACTIVITY_STEP, m.process, ended, m.now)->detail = HEC_STEP_OPTIMIZER;
        ended = m.now;
        last = m.now > m.tail ? m.now : m.tail;
        from = step == 3 ? last : from;
    }
    return (double)(last - from) * 1e-9;
}

/* 0 or HEC_ERR_NOTFOUND. */
static int read_schedule(struct fake_timeline *t, struct hec_schedule *out) {
    struct hec_pass pass;
    struct hec_schedule_builder *builder;
    struct hec_pass_consumer consumer;
    struct hec_why why = {""};
    struct hec_timeline_input input = t->input;
    for (int i = 0; i < input.device_count; i++)
        snprintf(t->devices[i].name, sizeof t->devices[i].name, "NVIDIA H200");
    input.end_ns = 100000 * MS;
    assert_int_equal(hec_pass_open(&input, &pass, &why), 0);
    assert_int_equal(hec_schedule_begin(&pass, HEC_PREDICT_CALLS, &builder, &consumer), 0);
    assert_int_equal(hec_pass_run(&pass, &consumer, 1, &why), 0);
    int err = hec_schedule_end(builder, NULL, out);
    hec_pass_close(&pass);
    assert_true(err == 0 || (err == HEC_ERR_NOTFOUND && out->count == 0));
    return err;
}

static double ask(struct fake_timeline *t, const struct hec_whatif_question *question, struct hec_whatif *out) {
    struct hec_schedule schedule;
    struct hec_summary_input input = {.timeline = t->input, .schedule = &schedule};
    static struct hec_summary summary; /* no ledger: joules are not known */
    struct hec_why why = {""};
    summary.seconds = 100;
    assert_int_equal(read_schedule(t, &schedule), 0);
    assert_int_equal(hec_whatif_ask(&input, &summary, question, 1, out, &why), 0);
    hec_schedule_free(&schedule);
    double saved = out->answers[0].seconds_replayed;
    if (!out->trusted || fabs(out->error) > 0.01)
        fail_msg("unchanged: off by %.4f", out->error);
    assert_true(out->steps >= STEPS - 5);
    assert_true(isnan(out->answers[0].joules_replayed) && isnan(out->answers[0].joules.best));
    assert_true(out->answers[0].seconds.low <= fmax(0, saved) + 1e-9 && out->answers[0].seconds.high >= saved - 1e-3);
    return saved;
}

static const struct {
    struct program program;
    enum hec_edit edit;
    double value;
    struct program changed; /* what differs in it */
} rows[] = {
    {{"a wait after each layer", 40, 1, 30 * US, 5 * US, 50 * US, .wait_every = 1, .last_wait = true},
     HEC_EDIT_WAITS,
     NAN,
     {"", 40, 1, 30 * US, 5 * US, 50 * US}},
    {{"a wait after each layer, by two threads in turns", 40, 2, 30 * US, 5 * US, 50 * US, .wait_every = 2},
     HEC_EDIT_WAITS,
     NAN,
     {"", 40, 2, 30 * US, 5 * US, 50 * US}},
    {{"one wait a step, which costs nothing", 40, 1, 10 * US, 5 * US, 200 * US, .last_wait = true},
     HEC_EDIT_WAITS,
     NAN,
     {"", 40, 1, 10 * US, 5 * US, 200 * US}},
    {{"starved", 20, 1, 10 * US, 5 * US, 100 * US, .data = 8 * MS, .last_wait = true},
     HEC_EDIT_DATA,
     0,
     {"", 20, 1, 10 * US, 5 * US, 100 * US, .last_wait = true}},
    {{"a loader of half the time", 20, 1, 10 * US, 5 * US, 100 * US, .data = 8 * MS, .last_wait = true},
     HEC_EDIT_DATA,
     0.5,
     {"", 20, 1, 10 * US, 5 * US, 100 * US, .data = 4 * MS, .last_wait = true}},
    {{"a loader that the device hides", 20, 1, 10 * US, 5 * US, 400 * US, .data = 2 * MS},
     HEC_EDIT_DATA,
     0,
     {"", 20, 1, 10 * US, 5 * US, 400 * US}},
    {{"checkpoints", 20, 1, 10 * US, 5 * US, 100 * US, .checkpoint = 5 * MS, .last_wait = true},
     HEC_EDIT_CHECKPOINT,
     NAN,
     {"", 20, 1, 10 * US, 5 * US, 100 * US, .last_wait = true}},
    {{"tiny kernels", 200, 1, 10 * US, 6 * US, 4 * US, .last_wait = true},
     HEC_EDIT_GRAPHS,
     NAN,
     {"", 200, 1, 0, 0, 4 * US, .last_wait = true}},
    {{"the program's own code", 20, 1, 10 * US, 5 * US, 100 * US, .own_code = 5 * MS, .last_wait = true},
     HEC_EDIT_HOST,
     NAN,
     {"", 20, 1, 10 * US, 5 * US, 100 * US, .last_wait = true}},
    {{"pageable copies", 20, 1, 10 * US, 5 * US, 100 * US, .copy = 4 * MS, .pageable = true, .last_wait = true},
     HEC_EDIT_PINNED,
     50,
     {"", 20, 1, 10 * US, 5 * US, 100 * US, .copy = 800 * US, .last_wait = true}},
    {{"which return before they end", 20, 1, 10 * US, 5 * US, 100 * US, .copy = 4 * MS, .pageable = true,
      .early = 18 * US},
     HEC_EDIT_COMPUTE,
     0.2,
     {"", 20, 1, 10 * US, 5 * US, 20 * US, .copy = 4 * MS, .pageable = true, .early = 18 * US}},
    {{"returns that once in a while take much longer", 40, 1, 30 * US, 5 * US, 50 * US, .wait_every = 4, .rare = true},
     HEC_EDIT_COMPUTE,
     0.5,
     {"", 40, 1, 30 * US, 5 * US, 25 * US, .wait_every = 4, .rare = true}},
    {{"allocations", 20, 1, 10 * US, 5 * US, 100 * US, .alloc_every = 2},
     HEC_EDIT_ALLOC,
     NAN,
     {"", 20, 1, 10 * US, 5 * US, 100 * US}},
    {{"allocations in the midst of code of their own", 20, 1, 10 * US, 5 * US, 20 * US, .alloc_every = 2,
      .around = 30 * US},
     HEC_EDIT_ALLOC,
     NAN,
     {"", 20, 1, 10 * US, 5 * US, 20 * US}},
    {{"allocations in the midst of the program's own code", 10, 1, 20 * US, 5 * US, 10 * US, .alloc_every = 5,
      .around = 300 * US},
     HEC_EDIT_ALLOC,
     NAN,
     {"", 10, 1, 20 * US, 5 * US, 10 * US, .own_code = 1200 * US}},
    {{"waits in the midst of code, which stays", 40, 1, 20 * US, 5 * US, 10 * US, .wait_every = 2, .around = 20 * US},
     HEC_EDIT_WAITS,
     NAN,
     {"", 40, 1, 20 * US, 5 * US, 10 * US, .own_code = 800 * US}},
    {{"numbers read in a row", 40, 1, 15 * US, 5 * US, 10 * US, .reads = 30},
     HEC_EDIT_WAITS,
     NAN,
     {"", 40, 1, 15 * US, 5 * US, 10 * US, .reads = 30, .one_go = true}},
    {{"a number read a step, whose sum is still launched", 2, 1, 15 * US, 5 * US, 10 * US, .reads = 1},
     HEC_EDIT_WAITS,
     NAN,
     {"", 2, 1, 15 * US, 5 * US, 10 * US, .reads = 1, .one_go = true}},
    {{"kernels of half the time where the host sets the pace", 100, 1, 20 * US, 5 * US, 10 * US},
     HEC_EDIT_COMPUTE,
     0.5,
     {"", 100, 1, 20 * US, 5 * US, 5 * US}},
    {{"and where the device does", 100, 1, 2 * US, 5 * US, 100 * US, .last_wait = true},
     HEC_EDIT_PRODUCTS,
     0.5,
     {"", 100, 1, 2 * US, 5 * US, 50 * US, .last_wait = true}},
    {{"four times the samples, for which the device has room", 40, 1, 15 * US, 5 * US, 10 * US, .data = MS,
      .copy = 100 * US, .last_wait = true, .blocks = 264},
     HEC_EDIT_BATCH,
     4,
     {"", 40, 1, 15 * US, 5 * US, 10 * US, .data = 4 * MS, .copy = 400 * US, .last_wait = true}},
    {{"which fill the device twice", 40, 1, 15 * US, 5 * US, 50 * US, .last_wait = true, .blocks = 1056},
     HEC_EDIT_BATCH,
     4,
     {"", 40, 1, 15 * US, 5 * US, 100 * US, .last_wait = true}},
    {{"of a device that is full", 40, 1, 15 * US, 5 * US, 50 * US, .last_wait = true, .blocks = 5000},
     HEC_EDIT_BATCH,
     4,
     {"", 40, 1, 15 * US, 5 * US, 200 * US, .last_wait = true}},
    {{"communication, and kernels that leave it room", 40, 1, 2 * US, 5 * US, 50 * US, .last_wait = true, .blocks = 264,
      .comm = MS},
     HEC_EDIT_COMM,
     NAN,
     {"", 40, 1, 2 * US, 5 * US, 50 * US, .last_wait = true}},
    {{"and kernels that need two rounds beside it", 40, 1, 2 * US, 5 * US, 50 * US, .last_wait = true, .blocks = 2112,
      .comm = MS},
     HEC_EDIT_COMM,
     NAN,
     {"", 40, 1, 2 * US, 5 * US, 62500, .last_wait = true}}, /* half of their work is done in that time */
};

static void test_programs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_timeline t;
        struct hec_whatif whatif;
        struct hec_whatif_question question = {.edits = {{rows[i].edit, rows[i].value}}, .count = 1};
        double before = play(&rows[i].program, &t), after = play(&rows[i].changed, NULL);
        double times = rows[i].edit == HEC_EDIT_BATCH ? rows[i].value : 1;
        double saved = ask(&t, &question, &whatif), truth = 1 - after / before / times;
        if (fabs(saved - truth) > 0.02)
            fail_msg("%s: saves %.3f, and %.3f by the replay", rows[i].program.what, truth, saved);
        hec_whatif_free(&whatif);
        fake_tl_free(&t);
    }
}

/* As full traces of CUPTI are: kernels and calls apart, in order. The device is far behind the host. Every 97th kernel was not
 * recorded, or every 13th call was put to the kernel after the next. */
static void take_apart(struct fake_timeline *t, bool lose) {
    size_t count = t->count, kernels = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        struct hec_activity *a = &t->activities[i];
        if (a->kind != HEC_ACTIVITY_KERNEL)
            continue;
        kernels++;
        if (!lose) {
            struct hec_activity own = *a, *before = &t->activities[last];
            if (kernels % 13 == 0) {
                a->launch_ns = before->launch_ns;
                a->launch_end_ns = before->launch_end_ns;
                before->launch_ns = own.launch_ns;
                before->launch_end_ns = own.launch_end_ns;
            }
            last = i;
            continue;
        }
        struct hec_activity kernel = *a;
        struct hec_activity *call =
            fake_tl_add(t, HEC_ACTIVITY_API, kernel.launch_track, kernel.launch_ns, kernel.launch_end_ns);
        call->detail = HEC_API_LAUNCH;
        a = &t->activities[i]; /* the list may have moved */
        a->launch_ns = a->launch_end_ns = HEC_TIME_UNKNOWN;
        if (kernels % 97 == 0)
            a->kind = HEC_ACTIVITY_KIND_COUNT;
    }
}

static void test_calls_apart(void **state) {
    (void)state;
    static const struct program ahead = {"", 100, 1, 2 * US, 5 * US, 100 * US, .last_wait = true},
                                faster = {"", 100, 1, 2 * US, 5 * US, 50 * US, .last_wait = true},
                                tiny = {"", 200, 1, 10 * US, 6 * US, 4 * US, .last_wait = true},
                                graph = {"", 200, 1, 0, 0, 4 * US, .last_wait = true};
    static const struct {
        const struct program *before, *after;
        struct hec_whatif_edit edit;
        bool lose;
    } cases[] = {{&ahead, &faster, {HEC_EDIT_COMPUTE, 0.5}, true},
                 {&ahead, &faster, {HEC_EDIT_COMPUTE, 0.5}, false},
                 {&tiny, &graph, {HEC_EDIT_GRAPHS, NAN}, true},
                 {&tiny, &graph, {HEC_EDIT_GRAPHS, NAN}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake_timeline t;
        struct hec_whatif whatif;
        struct hec_whatif_question question = {.edits = {cases[i].edit}, .count = 1};
        double before = play(cases[i].before, &t), truth = 1 - play(cases[i].after, NULL) / before;
        take_apart(&t, cases[i].lose);
        double saved = ask(&t, &question, &whatif);
        if (fabs(saved - truth) > 0.03)
            fail_msg("case %zu: saves %.3f, and %.3f by the replay", i, truth, saved);
        assert_true(whatif.guessed <= whatif.calls / 100);
        hec_whatif_free(&whatif);
        fake_tl_free(&t);
    }
}

static int columns_of(const uint8_t lane[HEC_WHATIF_COLUMNS], enum hec_lane what) {
    int count = 0;
    for (int i = 0; i < HEC_WHATIF_COLUMNS; i++)
        count += lane[i] == what;
    return count;
}

/* A step as it was and without its data: 8 ms of loading, and 20 kernels of 100 us. */
static void test_lanes(void **state) {
    (void)state;
    static const struct program p = {"", 20, 1, 10 * US, 5 * US, 100 * US, .data = 8 * MS, .last_wait = true};
    struct hec_whatif_question question = {.edits = {{HEC_EDIT_DATA, 0}}, .count = 1};
    struct fake_timeline t;
    struct hec_whatif whatif;
    play(&p, &t);
    ask(&t, &question, &whatif);
    const struct hec_step_lanes *before = &whatif.step, *after = &whatif.edited;
    assert_int_equal(before->device, 0);
    assert_true(before->seconds > 0.008 && before->seconds < 0.0125 && after->seconds < before->seconds - 0.006);
    int data = columns_of(before->host, HEC_LANE_DATA), kernels = columns_of(before->on_device, HEC_LANE_KERNEL);
    assert_true(data >= 42 && data <= 52);      /* 80 % of 60 */
    assert_true(kernels >= 8 && kernels <= 16); /* 20 % */
    assert_int_equal(columns_of(after->host, HEC_LANE_DATA), 0);
    assert_true(abs(columns_of(after->on_device, HEC_LANE_KERNEL) - kernels) <= 2); /* at the same scale */
    assert_true(columns_of(before->host, HEC_LANE_WAIT) > 0);
    for (int i = 0; i < before->columns; i++)
        assert_true(before->device_percent[i] <= 100 && (before->device_percent[i] > 0 || !before->on_device[i]));
    hec_whatif_free(&whatif);
    fake_tl_free(&t);
}

/* Without its waits the host is steps ahead of the device: what is drawn is as long as a step, and the device works in all of it. */
static void test_lanes_of_one_ahead(void **state) {
    (void)state;
    static const struct program p = {"", 20, 1, 10 * US, 5 * US, 100 * US, .wait_every = 1};
    struct hec_whatif_question question = {.edits = {{HEC_EDIT_WAITS, NAN}}, .count = 1};
    struct fake_timeline t;
    struct hec_whatif whatif;
    play(&p, &t);
    ask(&t, &question, &whatif);
    double step_s = whatif.answers[0].replay.seconds / (double)whatif.steps;
    assert_true(fabs(whatif.edited.seconds / step_s - 1) < 0.1 && whatif.edited.seconds < whatif.step.seconds);
    int kernels = columns_of(whatif.edited.on_device, HEC_LANE_KERNEL);
    assert_true(fabs(kernels * whatif.edited.column_s / whatif.edited.seconds - 1) < 0.1);
    hec_whatif_free(&whatif);
    fake_tl_free(&t);
}

/* 8 ms of loading on one core, and 2 ms of kernels. More workers are more cores: a program that has 2 loads in 4 ms at best, which is
 * no shorter step than that, and no step to be drawn. */
static void test_cores(void **state) {
    (void)state;
    static const struct program p = {"", 20, 1, 10 * US, 5 * US, 100 * US, .data = 8 * MS, .last_wait = true};
    static const struct {
        int usable;
        double saves;
    } machines[] = {{16, 0.80}, {2, 0.60}, {1, 0.20}};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        struct hec_finding finding = {.cause = HEC_CAUSE_DATA, .seconds = {0.7, 0.8, 0.9}};
        struct hec_findings findings = {.list = &finding, .count = 1};
        struct hec_summary *summary = calloc(1, sizeof *summary);
        struct hec_schedule schedule;
        struct hec_predictor *predictor;
        struct hec_step_lanes recorded, answered;
        struct fake_timeline t;
        struct hec_why why = {""};
        int drawn;
        play(&p, &t);
        assert_int_equal(read_schedule(&t, &schedule), 0);
        summary->host.tree_cores = 1;
        summary->host.cores_usable = machines[i].usable;
        struct hec_summary_input input = {.timeline = t.input};
        assert_int_equal(hec_predictor_begin(&input, summary, &schedule, &predictor, &why), 0);
        assert_non_null(predictor);
        assert_int_equal(hec_predict(predictor, NULL, &finding), 0);
        assert_true(finding.replayed);
        if (fabs(finding.step_seconds.best - machines[i].saves) > 0.02)
            fail_msg("%d cores: saves %.3f", machines[i].usable, finding.step_seconds.best);
        assert_int_equal(hec_predict_rest(predictor, &findings), 0);
        assert_true(fabs(findings.together_seconds - finding.step_seconds.best) < 1e-9);
        assert_int_equal(hec_predict_lanes(predictor, &findings, &recorded, &answered, &drawn), 0);
        assert_int_equal(drawn, machines[i].usable == 16);
        assert_int_equal(recorded.device, drawn ? 0 : -1);
        hec_predictor_end(predictor);
        fake_tl_free(&t);
        free(summary);
    }
}

#define GRAPHS 400
#define NODES 12
#define AHEAD 8 /* graphs that the queue holds */

/* A program that launches one graph again and again, ahead of the device; which launch is whose nobody recorded. lost: a node is missing now and
 * then. Seconds of it. */
static double play_graphs(struct fake_timeline *t, int64_t node_ns, bool lost) {
    int64_t now = START, tail = START, ended[GRAPHS];
    uint32_t process = 0, thread = 0, stream = 0, kernel[2] = {0, 0};
    if (t) {
        fake_tl_init(t);
        process = fake_tl_track(t, HEC_TRACK_PROCESS, 5, -1, 0);
        thread = fake_tl_track(t, HEC_TRACK_THREAD, 5, -1, 5);
        stream = fake_tl_track(t, HEC_TRACK_STREAM, 5, 0, 7);
        kernel[0] = fake_tl_kernel(t, "sgemm", 128);
        kernel[1] = fake_tl_kernel(t, "void at::native::vectorized_elementwise_kernel<4>", 128);
    }
    for (int g = 0; g < GRAPHS; g++) {
        int64_t begin = now + 20 * US, start = begin + 8 * US > tail + 6 * US ? begin + 8 * US : tail + 6 * US;
        now = begin + 30 * US;
        if (g >= AHEAD && ended[g - AHEAD] + 2 * US > now)
            now = ended[g - AHEAD] + 2 * US;
        if (t) {
            fake_tl_add(t, HEC_ACTIVITY_API, thread, begin, now)->detail = HEC_API_GRAPH;
            fake_tl_add(t, HEC_ACTIVITY_STEP, process, g ? begin : START, now)->detail = HEC_STEP_MODULE;
        }
        for (int k = 0; k < NODES; k++, start = tail + US) {
            tail = start + node_ns;
            if (!t || (lost && k == 5 && g % 150 == 149))
                continue;
            struct hec_activity *a = fake_tl_add(t, HEC_ACTIVITY_KERNEL, stream, start, tail);
            a->name = kernel[k % 5 == 0];
            a->flags = HEC_ACTIVITY_IN_GRAPH;
        }
        ended[g] = tail;
    }
    return (double)((now > tail ? now : tail) - START) * 1e-9;
}

/* Kernels of half the time: then the host sets the pace. */
static void test_graphs_apart(void **state) {
    (void)state;
    double before = play_graphs(NULL, 5 * US, false), after = play_graphs(NULL, 5 * US / 2, false);
    for (int lost = 0; lost < 2; lost++) {
        struct fake_timeline t;
        struct hec_whatif whatif;
        struct hec_whatif_question question = {.edits = {{HEC_EDIT_COMPUTE, 0.5}}, .count = 1};
        play_graphs(&t, 5 * US, lost);
        double saved = ask(&t, &question, &whatif), truth = 1 - after / before;
        if (fabs(saved - truth) > 0.03 || whatif.guessed > 4 * NODES * (1 + 3 * lost))
            fail_msg("saves %.3f, %.3f by the replay; %lld guessed", truth, saved, (long long)whatif.guessed);
        hec_whatif_free(&whatif);
        fake_tl_free(&t);
    }
}

/* Loading is hidden behind kernels, until they take a fifth of their time: then it is the limit. Where it takes little even so, nothing is. */
static void test_next(void **state) {
    (void)state;
    static const struct {
        struct program program;
        enum hec_cause next;
        double saves;
    } cases[] = {{{"", 20, 1, 10 * US, 5 * US, 400 * US, .data = 6 * MS}, HEC_CAUSE_DATA, 0.55},
                 {{"", 20, 1, 2 * US, 2 * US, 400 * US, .data = 200 * US}, HEC_CAUSE_NONE, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_finding finding = {.cause = HEC_CAUSE_MEMORY, .seconds = {0.7, 0.8, 0.9}};
        struct hec_findings findings = {.list = &finding, .count = 1, .next = HEC_CAUSE_NONE, .next_seconds = NAN};
        struct hec_ledger_device ledger = {.device = 0};
        struct hec_facts facts = {.ledger = &ledger, .run_s = 1};
        struct hec_summary *summary = calloc(1, sizeof *summary);
        struct hec_schedule schedule;
        struct hec_predictor *predictor;
        struct fake_timeline t;
        struct hec_why why = {""};
        ledger.rows[HEC_STATE_COMPUTE].seconds = 1;
        play(&cases[i].program, &t);
        assert_int_equal(read_schedule(&t, &schedule), 0);
        struct hec_summary_input input = {.timeline = t.input};
        assert_int_equal(hec_predictor_begin(&input, summary, &schedule, &predictor, &why), 0);
        assert_int_equal(hec_predict(predictor, &facts, &finding), 0);
        assert_int_equal(hec_predict_rest(predictor, &findings), 0);
        assert_int_equal(findings.next, cases[i].next);
        if (cases[i].next != HEC_CAUSE_NONE && fabs(findings.next_seconds - cases[i].saves) > 0.03)
            fail_msg("then saves %.3f", findings.next_seconds);
        assert_true(findings.together_seconds > 0.2);
        hec_predictor_end(predictor);
        fake_tl_free(&t);
        free(summary);
    }
}

/* The best guess stays, more proofs that agree make it narrower, nothing is more than all. */
static void test_proofs(void **state) {
    (void)state;
    for (int edit = 0; edit < HEC_EDIT_COUNT; edit++)
        for (double saving = -0.1; saving < 1; saving += 0.05) {
            struct hec_saving s =
                hec_proofs_seconds((enum hec_edit)edit, (struct hec_saving){saving, saving, saving}, 1);
            struct hec_saving wide = hec_proofs_seconds(
                (enum hec_edit)edit, (struct hec_saving){saving, saving, saving}, HEC_PROOFS_ELSEWHERE);
            assert_true(fabs(s.best - fmax(0, saving)) < 1e-12);
            assert_true(s.low >= 0 && s.low <= s.best && s.best <= s.high && s.high <= 1);
            assert_true(wide.low <= s.low && wide.high >= s.high);
            assert_true(s.high > s.low);
        }
    assert_true(isnan(hec_proofs_joules(HEC_EDIT_WAITS, (struct hec_saving){NAN, NAN, NAN}, 1).best));
}

/* Two causes: each alone saves less than both together, and both together what the machine says. */
static void test_together(void **state) {
    (void)state;
    static const struct program both = {"", 40, 1, 30 * US, 5 * US, 50 * US, .data = 2 * MS, .wait_every = 1},
                                neither = {"", 40, 1, 30 * US, 5 * US, 50 * US};
    struct fake_timeline t;
    struct hec_whatif whatif;
    struct hec_whatif_question question = {.edits = {{HEC_EDIT_WAITS, NAN}, {HEC_EDIT_DATA, NAN}}, .count = 2};
    double truth = 1 - play(&neither, NULL) / play(&both, &t);
    assert_true(fabs(ask(&t, &question, &whatif) - truth) < 0.02);
    hec_whatif_free(&whatif);
    fake_tl_free(&t);
}

/* Milliseconds of code of the second process of test_ranks; of the first it is 1. */
static int code_ms(int step) {
    return step < 8 ? 1 : 3 + step % 3; /* at first they come together */
}

/* Seconds of a step from `first` on, where both have the mean of their work: the second still has longer ones and shorter ones. */
static double even_step(int first) {
    const double rest = 0.113;
    double own[2] = {0, 0}, sum = 0;
    for (int step = first; step < STEPS; step++) {
        own[0] += 1 + rest;
        own[1] += code_ms(step) + rest;
    }
    double mean = (own[0] + own[1]) / 2;
    for (int step = first; step < STEPS; step++)
        sum += fmax(mean / own[0], code_ms(step) * mean / own[1]) + rest;
    return (sum - mean / own[0]) / (STEPS - first) * 1e-3; /* a replay begins with the first call */
}

/* Two processes, whose clocks are 45 us apart, that meet in a collective each step, of which the second takes longer to come: the first one's lasts so much
 * longer. The replay is to know that this is waiting: with the code of both gone a step is the data's way and the calls, and with as much for
 * each it takes about the mean. */
static void test_ranks(void **state) {
    (void)state;
    struct fake_timeline t;
    struct hec_whatif whatif;
    struct hec_whatif_question question = {.edits = {{HEC_EDIT_HOST, 0}}, .count = 1};
    uint32_t process[2], thread[2], stream[2];
    int64_t now[2] = {START, START}, step_ns = 8 * US + 100 * US + 5 * US;
    fake_tl_init(&t);
    uint32_t kernel = fake_tl_kernel(&t, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 512);
    for (int p = 0; p < 2; p++) {
        process[p] = fake_tl_track(&t, HEC_TRACK_PROCESS, 5 + p, -1, 0);
        thread[p] = fake_tl_track(&t, HEC_TRACK_THREAD, 5 + p, -1, 5 + p);
        stream[p] = fake_tl_track(&t, HEC_TRACK_STREAM, 5 + p, p, 7);
    }
    for (int step = 0; step < STEPS; step++) {
        int64_t begin[2] = {now[0] + MS, now[1] + code_ms(step) * MS};
        int64_t finish = (begin[0] > begin[1] ? begin[0] : begin[1]) + 108 * US;
        for (int p = 0; p < 2; p++) {
            struct hec_activity *a =
                fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream[p], begin[p] + 8 * US, finish - p * 45 * US);
            a->launch_ns = begin[p];
            a->launch_end_ns = begin[p] + 5 * US;
            a->name = kernel;
            fake_tl_add(&t, HEC_ACTIVITY_SYNC, thread[p], begin[p] + 5 * US, finish + 5 * US)->detail = HEC_SYNC_STREAM;
            fake_tl_add(&t, HEC_ACTIVITY_STEP, process[p], now[p], finish + 5 * US)->detail = HEC_STEP_OPTIMIZER;
            now[p] = finish + 5 * US;
        }
    }
    ask(&t, &question, &whatif);
    double a_step = whatif.answers[0].replay.seconds / (double)whatif.steps;
    assert_true(fabs(a_step - (double)step_ns * 1e-9) < 0.03 * (double)step_ns * 1e-9);
    hec_whatif_free(&whatif);
    question = (struct hec_whatif_question){.edits = {{HEC_EDIT_RANKS, 0}}, .count = 1};
    ask(&t, &question, &whatif);
    a_step = whatif.answers[0].replay.seconds / (double)whatif.steps;
    assert_true(fabs(a_step / even_step(STEPS - (int)whatif.steps) - 1) < 0.02);
    hec_whatif_free(&whatif);
    question.edits[0].value = 1; /* all of the difference stays */
    assert_true(fabs(ask(&t, &question, &whatif)) < 1e-9);
    const struct hec_replay *replay =
        &whatif.unchanged.replay;                /* the first process comes sooner, and waits on its device */
    double way_s = 55e-6 * (double)whatif.steps; /* as the second one has it */
    for (int device = 0; device < 2; device++)
        assert_true(fabs(replay->active_s[device] - way_s) < way_s / 20);
    assert_true(replay->kernels_s[0] > 2 * way_s && fabs(replay->kernels_s[1] - way_s) < way_s / 20);
    hec_whatif_free(&whatif);
    fake_tl_free(&t);
}

/* A device that waits 1 s in collectives, works 2 s and communicates 0.2 s. Evened out, it works 0.5 s more instead, and its communication is
 * hidden: nobody knows what that draws then, and where it is a large part nothing is said. */
static void test_watts(void **state) {
    (void)state;
    struct hec_replay_power power = {.count = 1};
    struct hec_replay_watts *w = &power.of[0];
    *w = (struct hec_replay_watts){.joules = 2 * 700 + 0.2 * 600 + 1.1 * 100};
    struct hec_replay before = {.work = 1, .seconds = 3.3}, after = {.work = 1, .seconds = 2.7};
    for (int end = 0; end < 3; end++) {
        w->work[end] = 700;
        w->comm[end] = 600;
        w->idle[end] = w->wait[end] = w->copy[end] = 100;
    }
    before.busy_s[0] = before.kernels_s[0] = 3.2;
    before.active_s[0] = 2.2;
    before.work_s[0] = 2;
    after.busy_s[0] = after.kernels_s[0] = after.active_s[0] = after.work_s[0] = 2.5;
    const double from = 1630, to = 2.5 * 700 + 0.2 * 100;
    struct hec_saving saved = hec_replay_power_saved(&power, &before, &after);
    assert_true(fabs(saved.low - (1 - (to + 0.2 * 500) / from)) < 1e-9);
    assert_true(fabs(saved.best - (1 - (to + 0.1 * 500) / from)) < 1e-9);
    assert_true(fabs(saved.high - (1 - to / from)) < 1e-9);
    w->comm_known = true;
    saved = hec_replay_power_saved(&power, &before, &after);
    assert_true(fabs(saved.low - (1 - to / from)) < 1e-9 && fabs(saved.high - saved.low) < 1e-9);
    w->comm_known = false;
    before.active_s[0] = 2.4;
    assert_true(isnan(hec_replay_power_saved(&power, &before, &after).best));
}

/* A share of the waits stays. */
static void test_share(void **state) {
    (void)state;
    static const struct program p = {"", 40, 1, 30 * US, 5 * US, 50 * US, .wait_every = 1};
    struct fake_timeline t;
    double last = 1;
    play(&p, &t);
    for (int tenths = 0; tenths <= 10; tenths += 5) {
        struct hec_whatif whatif;
        struct hec_whatif_question question = {.edits = {{HEC_EDIT_WAITS, tenths / 10.0}}, .count = 1};
        double saved = ask(&t, &question, &whatif);
        assert_true(saved < last && (tenths < 10 || fabs(saved) < 1e-9));
        last = saved;
        hec_whatif_free(&whatif);
    }
    fake_tl_free(&t);
}

/* Without the calls of half of the operations, and with times that make no sense: an answer, or a sentence. */
static void test_damaged(void **state) {
    (void)state;
    static const struct program p = {"",
                                     40,
                                     2,
                                     30 * US,
                                     5 * US,
                                     50 * US,
                                     .data = MS,
                                     .wait_every = 4,
                                     .copy = MS,
                                     .alloc_every = 5,
                                     .around = 9 * US,
                                     .reads = 8};
    struct hec_whatif_question question = {
        .edits = {{HEC_EDIT_GRAPHS, NAN}, {HEC_EDIT_WAITS, NAN}, {HEC_EDIT_ALLOC, NAN}}, .count = 3};
    static struct hec_summary summary;
    uint64_t random = 3;
    summary.seconds = 100;
    for (int round = 0; round < 50; round++) {
        struct fake_timeline t;
        struct hec_whatif whatif;
        struct hec_why why = {""};
        play(&p, &t);
        for (size_t i = 0; i < t.count; i++) {
            struct hec_activity *a = &t.activities[i];
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            switch (random >> 60) {
            case 0:
                a->launch_ns = a->launch_end_ns = HEC_TIME_UNKNOWN;
                break;
            case 1:
                a->launch_ns = (int64_t)(random >> 8) - (INT64_C(1) << 54);
                break;
            case 2:
                a->end_ns = a->start_ns + (int64_t)(random >> 20);
                break;
            case 3:
                a->detail = (uint8_t)(random >> 8);
                a->from = a->to = (uint8_t)(random >> 16);
                break;
            case 4:
                a->amount = round % 2 ? NAN : -1e300;
                a->flags = HEC_ACTIVITY_IN_GRAPH;
                break;
            default:
                break;
            }
        }
        struct hec_schedule schedule;
        struct hec_summary_input input = {.timeline = t.input, .schedule = &schedule};
        read_schedule(&t, &schedule);
        int err = hec_whatif_ask(&input, &summary, &question, 1, &whatif, &why);
        hec_schedule_free(&schedule);
        assert_true(err == 0 || (err == HEC_ERR_UNSUPPORTED && why.text[0]));
        if (err == 0)
            assert_true(whatif.calls > 0 && whatif.answers[0].replay.seconds >= 0);
        hec_whatif_free(&whatif);
        fake_tl_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),     cmocka_unit_test(test_together), cmocka_unit_test(test_calls_apart),
        cmocka_unit_test(test_proofs),       cmocka_unit_test(test_lanes),    cmocka_unit_test(test_lanes_of_one_ahead),
        cmocka_unit_test(test_cores),        cmocka_unit_test(test_ranks),    cmocka_unit_test(test_next),
        cmocka_unit_test(test_graphs_apart), cmocka_unit_test(test_share),    cmocka_unit_test(test_watts),
        cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
