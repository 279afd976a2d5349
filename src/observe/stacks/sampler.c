#include "observe/stacks/sampler.h"

#include "base/clock.h"

#include <stdlib.h>

#define LIST_NS (100 * HEC_NS_PER_MS) /* how often the threads are listed */
#define ACTIVE_NS HEC_NS_PER_S        /* a thread whose stack has changed within is read each time */
#define STANDS_MAX_NS HEC_NS_PER_S    /* a sample stands for no longer */
#define TRIES 3                       /* reads of one stack */
#define FAILED_MAX 20

void hec_stacks_flush(struct hec_stacks_out *out) {
    if (out->count > 0)
        out->sink->trace_activities(out->sink->context, out->batch, (size_t)out->count);
    out->count = 0;
}

void hec_stacks_sampler_init(struct hec_stacks_sampler *s, const struct hec_sink *sink) {
    s->names = (struct hec_python_names){.sink = sink};
    s->threads = NULL;
    s->thread_count = s->thread_room = s->failed = 0;
    s->listed_ns = 0;
    s->id_at = -1;
}

static void forget(struct hec_stacks_sampler *s, int i) {
    hec_python_stack_free(&s->threads[i].stack);
    hec_python_named_free(&s->threads[i].named);
    s->threads[i] = s->threads[--s->thread_count];
}

void hec_stacks_sampler_free(struct hec_stacks_sampler *s) {
    while (s->thread_count > 0)
        forget(s, s->thread_count - 1);
    hec_python_names_free(&s->names);
    free(s->threads);
    s->threads = NULL;
    s->thread_room = 0;
}

/* ---- threads ---- */

static struct hec_stacks_thread *find(struct hec_stacks_sampler *s, const struct hec_python_thread *thread) {
    for (int i = 0; i < s->thread_count; i++)
        if (s->threads[i].python.state == thread->state && s->threads[i].python.id == thread->id &&
            s->threads[i].python.native_id == thread->native_id)
            return &s->threads[i];
    return NULL;
}

static uint32_t track_of(const struct hec_stacks_sampler *s, pid_t tid) {
    const struct hec_track track = {
        .kind = HEC_TRACK_THREAD, .pid = s->process.pid, .rank = -1, .device = HEC_DEVICE_NONE, .stream = tid};
    return tid ? s->names.sink->trace_track(s->names.sink->context, &track) : 0;
}

static void add(struct hec_stacks_sampler *s, const struct hec_python_thread *thread,
                const struct hec_python_thread *main, int64_t now_ns) {
    if (s->thread_count == s->thread_room) {
        int room = s->thread_room ? 2 * s->thread_room : 8;
        struct hec_stacks_thread *grown = realloc(s->threads, (size_t)room * sizeof *grown);
        if (!grown)
            return;
        s->threads = grown;
        s->thread_room = room;
    }
    pid_t tid = hec_python_process_tid(&s->process, thread, main, &s->id_at);
    s->threads[s->thread_count++] = (struct hec_stacks_thread){
        .python = *thread,
        .tid = tid,
        .track = track_of(s, tid),
        .main = hec_python_is_main(&s->process, thread),
        .listed = true,
        .changed_ns = now_ns,
    };
}

/* False: torn. */
static bool list(struct hec_stacks_sampler *s, int64_t now_ns) {
    struct hec_python_thread found[HEC_PYTHON_THREADS_MAX];
    const struct hec_python_thread *main = NULL;
    int count = hec_python_threads(&s->process.python, &s->process.memory, found, HEC_PYTHON_THREADS_MAX);
    if (count < 0)
        return false;
    for (int i = 0; i < s->thread_count; i++)
        s->threads[i].listed = false;
    for (int i = 0; i < count; i++)
        if (hec_python_is_main(&s->process, &found[i]))
            main = &found[i];
    for (int i = 0; i < count; i++) {
        struct hec_stacks_thread *known = find(s, &found[i]);
        if (known)
            known->listed = true;
        else
            add(s, &found[i], main, now_ns);
    }
    for (int i = s->thread_count; i-- > 0;)
        if (!s->threads[i].listed)
            forget(s, i);
    s->listed_ns = s->thread_count ? now_ns : 0; /* it begins: at any moment there is one */
    return true;
}

/* Whose turn it is: the main thread, then those that changed lately, then the others, each in the order in which they were read. */
static struct hec_stacks_thread *next(struct hec_stacks_sampler *s, int64_t now_ns) {
    struct hec_stacks_thread *best = NULL;
    int best_rank = 0;
    for (int i = 0; i < s->thread_count; i++) {
        struct hec_stacks_thread *t = &s->threads[i];
        int rank = t->main ? 2 : now_ns - t->changed_ns < ACTIVE_NS;
        if (t->read_ns >= now_ns || !t->tid)
            continue;
        if (!best || rank > best_rank || (rank == best_rank && t->read_ns < best->read_ns)) {
            best = t;
            best_rank = rank;
        }
    }
    return best;
}

/* ---- samples ---- */

static void give(struct hec_stacks_out *out, const struct hec_stacks_thread *t, uint32_t frame, int64_t now_ns,
                 int64_t stands_ns) {
    if (out->count == sizeof out->batch / sizeof out->batch[0])
        hec_stacks_flush(out);
    out->batch[out->count++] = (struct hec_activity){
        .start_ns = now_ns,
        .end_ns = now_ns + stands_ns,
        .track = t->track,
        .name = frame,
        .kind = HEC_ACTIVITY_STACK,
    };
    out->counts.samples++;
}

/* HEC_PYTHON_GONE, HEC_PYTHON_TORN, or 0. */
static int sample(struct hec_stacks_sampler *s, struct hec_stacks_thread *t, int64_t now_ns, int64_t period_ns,
                  struct hec_python_scratch *scratch, struct hec_stacks_out *out) {
    int64_t stands_ns = t->read_ns ? now_ns - t->read_ns : period_ns;
    int err = HEC_PYTHON_TORN;
    uint32_t leaf = 0;
    for (int try = 0; try < TRIES && err == HEC_PYTHON_TORN; try++) {
        int same;
        err = hec_python_walk(&s->process.python, &s->process.memory, &t->python, scratch, &t->stack, &same);
        if (err < 0)
            continue;
        if (err > 0)
            t->changed_ns = now_ns;
        err = hec_python_name(&s->names, &s->process.python, &s->process.memory, scratch, &t->stack, same, &t->named,
                              &leaf);
    }
    t->read_ns = now_ns;
    if (err == 0 && leaf && t->track)
        give(out, t, leaf, now_ns, stands_ns < STANDS_MAX_NS ? stands_ns : STANDS_MAX_NS);
    return err;
}

bool hec_stacks_sample(struct hec_stacks_sampler *s, int64_t now_ns, int64_t period_ns, int most,
                       struct hec_python_scratch *scratch, struct hec_stacks_out *out) {
    if ((!s->listed_ns || now_ns - s->listed_ns >= LIST_NS) && !list(s, now_ns)) {
        out->counts.torn++;
        return ++s->failed < FAILED_MAX;
    }
    bool any = s->thread_count == 0;
    for (int i = 0; i < most; i++) {
        struct hec_stacks_thread *t = next(s, now_ns);
        if (!t)
            break;
        int err = sample(s, t, now_ns, period_ns, scratch, out);
        any |= err == 0;
        out->counts.torn += err == HEC_PYTHON_TORN;
        if (err == HEC_PYTHON_GONE)
            s->listed_ns = 0;
    }
    s->failed = any ? 0 : s->failed + 1;
    return s->failed < FAILED_MAX;
}
