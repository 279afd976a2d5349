/* The replay: programs as rows, played on a small machine of host threads and one device, as they are and with the change that an
 * edit stands for. The machine is not the replay: it computes what happens from what the program does, where the replay has
 * only what was recorded of it; but both know a queue and a wait, so how well it foretells real programs is
 * for real ones to say (docs/replay.md). */
#pragma once

#include "diagnose/rules/predict.h"
#include "diagnose/replay/whatif.h"
#include "diagnose/timeline/steps.h"
#include "fake_timeline.h"
#include "unit.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define STEPS 30
#define START (1000 * MS)

/* A step: data, a copy to the device, kernels that two threads launch in turns or one does, each followed by what a layer does. */
struct program {
    int kernels, threads;
    double code, launch, kernel; /* us of the host between launches, of a launch, of a kernel */
    double data, checkpoint;     /* us a step */
    int wait_every;              /* kernels; 0: never but at the end of a step where last_wait */
    bool last_wait;
    double copy;     /* us on the device a step; 0: none */
    bool pageable;   /* then the call returns when it is done */
    bool copy_waits; /* then the program waits for it, as PyTorch's blocking copies do */
    double early;    /* or us before */
    double trip;     /* us on the device a step, in pageable memory, and as long back from pinned */
    bool rare;       /* two waits of all return 30 ms late */
    int alloc_every; /* kernels: a call of 100 us that waits for the device */
    double own_code; /* us a step, of the program's own code in one piece */
    double around;   /* us of code on either side of each wait and allocation */
    int reads;       /* numbers a step, each a sum, a copy to the host and a wait */
    bool one_go;     /* they are summed one right after the other, and none is read */
    int64_t blocks;  /* of 128 threads, of a kernel: an H200 holds 2112 at once */
    int queue;       /* launches that the device's queue holds; 0: any */
    double comm;     /* us a step: one kernel of 24 blocks that communicates, at its end */
};

struct machine {
    struct fake_timeline *t; /* NULL: only the time counts */
    uint32_t process, thread[2], stream, kernel, sum, comm, data, checkpoint;
    uint64_t random;
    int64_t now, tail; /* of the host; of the stream */
    int64_t early;     /* of a call that blocks */
    int waits, rare;   /* so far; the one that returns late: 0 none */
    int queue, launched;
    int64_t ends[1024]; /* of the last operations: the queue's room */
};

enum { COMM = -2, SUM = -1 }; /* other kernels than a layer's, of the first thread */

static inline int64_t ns(double us) {
    return llround(us * 1e3);
}

/* +-20 %, the same sequence for the same program. */
static inline int64_t jitter(struct machine *m, int64_t ns) {
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ns * (int64_t)(800 + (m->random >> 33) % 401) / 1000;
}

static inline void spend(struct machine *m, int64_t ns, uint32_t phase, int64_t drawn) {
    if (ns > 0 && phase && m->t)
        fake_tl_add(m->t, HEC_ACTIVITY_PHASE, m->thread[0], m->now, m->now + drawn)->name = phase;
    m->now += ns > 0 ? drawn : 0;
}

static inline void operate(struct machine *m, enum hec_activity_kind kind, int thread, int64_t call_ns, int64_t ns,
                           bool blocks, bool pageable) {
    int64_t begin = m->now, start = begin + 8 * US > m->tail + US ? begin + 8 * US : m->tail + US;
    m->tail = start + ns;
    m->now = blocks ? m->tail + (m->early ? -m->early : 5 * US) : begin + call_ns;
    int64_t room = m->queue && m->launched >= m->queue ? m->ends[(m->launched - m->queue) % 1024] + 5 * US : 0;
    m->now = room > m->now ? room : m->now;
    m->ends[m->launched++ % 1024] = m->tail;
    if (!m->t)
        return;
    struct hec_activity *a = fake_tl_add(m->t, kind, m->stream, start, m->tail);
    fake_tl_launched(a, begin, m->now, m->thread[thread > 0]);
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

static inline void wait_for(struct machine *m, enum hec_activity_kind kind, int thread, int64_t own_ns) {
    int64_t begin = m->now;
    m->now = begin + own_ns > m->tail + 5 * US ? begin + own_ns : m->tail + 5 * US;
    m->now += m->rare && ++m->waits % m->rare == 0 ? 30 * MS : 0;
    if (m->t)
        fake_tl_add(m->t, kind, m->thread[thread], begin, m->now)->detail =
            kind == HEC_ACTIVITY_SYNC ? (uint8_t)HEC_SYNC_STREAM : (uint8_t)HEC_API_ALLOC;
}

/* 2 bytes, as PyTorch reads them; its copy call is recorded beside the copy. */
static inline void read_number(struct machine *m, const struct program *p, int nth) {
    bool hidden = p->one_go && nth > 0;
    m->now += hidden ? 0 : jitter(m, ns(p->code));
    operate(m, HEC_ACTIVITY_KERNEL, SUM, hidden ? 0 : jitter(m, ns(p->launch)), 3 * US, false, false);
    if (p->one_go)
        return;
    m->now += US;
    int64_t begin = m->now, start = begin + 8 * US > m->tail + US ? begin + 8 * US : m->tail + US;
    m->tail = start + 2 * US;
    m->now = begin + 3 * US;
    if (m->t) {
        struct hec_activity *a = fake_tl_add(m->t, HEC_ACTIVITY_COPY, m->stream, start, m->tail);
        fake_tl_launched(a, begin, m->now, m->thread[0]);
        a->amount = 2;
        a->from = HEC_MEMORY_DEVICE;
        a->to = HEC_MEMORY_PINNED;
    }
    wait_for(m, HEC_ACTIVITY_SYNC, 0, 2 * US);
}

/* To the host the call returns when it is done; the other way at once. */
static inline void cross(struct machine *m, bool there, int64_t ns) {
    int64_t begin = m->now, start = begin + 8 * US > m->tail + US ? begin + 8 * US : m->tail + US;
    m->tail = start + ns;
    m->now = there ? m->tail + 5 * US : begin + 5 * US;
    if (!m->t)
        return;
    struct hec_activity *both[] = {fake_tl_add(m->t, HEC_ACTIVITY_COPY, m->stream, start, m->tail), NULL};
    fake_tl_launched(both[0], begin, m->now, m->thread[0]);
    for (int i = 0; i < 2; i++) {
        both[i] = i ? fake_tl_add(m->t, HEC_ACTIVITY_API, m->thread[0], begin, m->now) : both[i];
        both[i]->amount = (double)ns * 10;
        both[i]->from = there ? HEC_MEMORY_DEVICE : HEC_MEMORY_PINNED;
        both[i]->to = there ? HEC_MEMORY_PAGEABLE : HEC_MEMORY_DEVICE;
    }
    both[1]->detail = HEC_API_COPY;
}

/* Seconds from the end of the fourth step to that of the last, of host and device. */
static inline double play(const struct program *p, struct fake_timeline *t) {
    struct machine m = {
        .t = t, .random = 7, .now = START, .early = ns(p->early), .rare = p->rare ? 300 : 0, .queue = p->queue};
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
        spend(&m, ns(p->data), m.data, jitter(&m, ns(p->data)));
        spend(&m, ns(p->own_code), 0, jitter(&m, ns(p->own_code)));
        int64_t copy = jitter(&m, p->copy > 0 ? ns(p->copy) : 1);
        if (p->copy > 0)
            operate(&m, HEC_ACTIVITY_COPY, 0, 5 * US, copy, p->pageable, p->pageable);
        if (p->copy_waits)
            wait_for(&m, HEC_ACTIVITY_SYNC, 0, 2 * US);
        for (int k = 0; k < p->kernels; k++) {
            int thread = p->threads == 2 && k >= p->kernels / 2;
            int64_t code = jitter(&m, ns(p->code)), launch = jitter(&m, ns(p->launch)),
                    kernel = jitter(&m, ns(p->kernel));
            m.now += code;
            operate(&m, HEC_ACTIVITY_KERNEL, thread, launch, kernel, false, false);
            bool waits = p->wait_every && k % p->wait_every == p->wait_every - 1;
            bool allocates = p->alloc_every && k % p->alloc_every == p->alloc_every - 1;
            m.now += waits || allocates ? ns(p->around) : 0;
            if (waits)
                wait_for(&m, HEC_ACTIVITY_SYNC, thread, 2 * US);
            if (allocates)
                wait_for(&m, HEC_ACTIVITY_API, thread, 100 * US);
            m.now += waits || allocates ? ns(p->around) : 0;
        }
        for (int back = 0; back < 2 && p->trip > 0; back++)
            cross(&m, !back, ns(p->trip));
        for (int k = 0; k < p->reads; k++)
            read_number(&m, p, k);
        if (p->comm > 0)
            operate(&m, HEC_ACTIVITY_KERNEL, COMM, 5 * US, ns(p->comm), false, false);
        if (p->last_wait)
            wait_for(&m, HEC_ACTIVITY_SYNC, 0, 2 * US);
        spend(&m, ns(p->checkpoint), m.checkpoint, jitter(&m, ns(p->checkpoint)));
        if (t)
            fake_tl_add(t, HEC_ACTIVITY_STEP, m.process, ended, m.now)->detail = HEC_STEP_OPTIMIZER;
        ended = m.now;
        last = m.now > m.tail ? m.now : m.tail;
        from = step == 3 ? last : from;
    }
    return (double)(last - from) * 1e-9;
}

/* found: steps of a program that tells none; may be NULL. 0 or HEC_ERR_NOTFOUND. */
static inline int read_schedule_of(struct fake_timeline *t, const struct hec_step_list *found,
                                   struct hec_schedule *out) {
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
    int err = hec_schedule_end(builder, found, NULL, out);
    hec_pass_close(&pass);
    assert_true(err == 0 || (err == HEC_ERR_NOTFOUND && out->count == 0));
    return err;
}

static inline int read_schedule(struct fake_timeline *t, struct hec_schedule *out) {
    return read_schedule_of(t, NULL, out);
}

/* Whether or not the replay is to be trusted. */
static inline void ask_any(struct fake_timeline *t, const struct hec_whatif_question *question,
                           struct hec_whatif *out) {
    struct hec_schedule schedule;
    struct hec_summary_input input = {.timeline = t->input, .schedule = &schedule};
    static struct hec_summary summary; /* no ledger: joules are not known */
    struct hec_why why = {""};
    summary.seconds = 100;
    static bool cut;
    assert_int_equal(read_schedule(t, &schedule), 0);
    assert_false(schedule.cut);
    schedule.cut = cut = !cut;
    assert_int_equal(hec_whatif_ask(&input, &summary, question, 1, out, &why), 0);
    /* the answer says what it is of */
    assert_int_equal(out->calls, schedule.count);
    assert_int_equal(out->steps, schedule.steps);
    assert_int_equal(out->guessed, schedule.guessed);
    assert_int_equal(out->cut, cut);
    assert_false(out->imported);
    assert_true(fabs(out->from_s - (double)schedule.from_ns * 1e-9) < 1e-6);
    assert_true(fabs(out->to_s - (double)schedule.to_ns * 1e-9) < 1e-6 && out->to_s > out->from_s);
    assert_int_equal(out->communication, schedule.communication);
    assert_int_equal(out->alone, schedule.alone);
    hec_schedule_free(&schedule);
}

static inline double ask(struct fake_timeline *t, const struct hec_whatif_question *question, struct hec_whatif *out) {
    ask_any(t, question, out);
    double saved = out->answers[0].seconds_replayed;
    if (!out->trusted || fabs(out->error) > 0.01)
        fail_msg("unchanged: off by %.4f", out->error);
    assert_true(out->steps >= STEPS - 5);
    assert_true(isnan(out->answers[0].joules_replayed) && isnan(out->answers[0].joules.best));
    assert_true(out->answers[0].seconds.low <= fmax(0, saved) + 1e-9 && out->answers[0].seconds.high >= saved - 1e-3);
    return saved;
}
