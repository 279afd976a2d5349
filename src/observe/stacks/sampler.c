#include "observe/stacks/sampler.h"

#include "base/clock.h"

#include <stdlib.h>

#define LIST_NS (100 * HEC_NS_PER_MS) /* how often the threads are listed */
#define ACTIVE_NS HEC_NS_PER_S        /* a thread whose stack has changed within is read each time */
#define IDLE_NS (500 * HEC_NS_PER_MS) /* all others within */
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
    s->listed_ns = s->sampled_ns = 0;
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
static bool list(struct hec_stacks_sampler *s, int64_t now_ns, struct hec_python_scratch *scratch) {
    struct hec_python_thread found[HEC_PYTHON_THREADS_MAX];
    uint64_t states[HEC_PYTHON_THREADS_MAX];
    const struct hec_python_thread *main = NULL;
    for (int i = 0; i < s->thread_count; i++)
        states[i] = s->threads[i].python.state;
    int count = hec_python_threads(&s->process.python, &s->process.memory, scratch, states, s->thread_count, found,
                                   HEC_PYTHON_THREADS_MAX);
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

static bool is_idle(const struct hec_stacks_thread *t, int64_t now_ns) {
    return !t->main && now_ns - t->changed_ns >= ACTIVE_NS;
}

/* Whose turn it is: the main thread, those that changed lately, and of the others, which mostly wait, so many that each is read within
 * IDLE_NS; each in the order in which they were read. */
static int choose(struct hec_stacks_sampler *s, int64_t now_ns, int64_t period_ns,
                  struct hec_stacks_thread *chosen[HEC_STACKS_THREADS]) {
    int idle = 0, count = 0;
    for (int i = 0; i < s->thread_count; i++)
        idle += is_idle(&s->threads[i], now_ns);
    int64_t idle_left = (idle * period_ns + IDLE_NS - 1) / IDLE_NS;
    while (count < HEC_STACKS_THREADS) {
        struct hec_stacks_thread *best = NULL;
        int best_rank = 0;
        for (int i = 0; i < s->thread_count; i++) {
            struct hec_stacks_thread *t = &s->threads[i];
            int rank = t->main ? 2 : !is_idle(t, now_ns);
            if (t->read_ns >= now_ns || !t->tid || (rank == 0 && idle_left == 0))
                continue;
            if (!best || rank > best_rank || (rank == best_rank && t->read_ns < best->read_ns)) {
                best = t;
                best_rank = rank;
            }
        }
        if (!best)
            break;
        best->stands_ns = best->read_ns ? now_ns - best->read_ns : period_ns;
        best->read_ns = now_ns;
        idle_left -= best_rank == 0;
        chosen[count++] = best;
    }
    return count;
}

/* ---- samples ---- */

static void give(struct hec_stacks_out *out, const struct hec_stacks_thread *t, uint32_t frame, int64_t now_ns) {
    if (out->count == sizeof out->batch / sizeof out->batch[0])
        hec_stacks_flush(out);
    out->batch[out->count++] = (struct hec_activity){
        .start_ns = now_ns,
        .end_ns = now_ns + (t->stands_ns < STANDS_MAX_NS ? t->stands_ns : STANDS_MAX_NS),
        .track = t->track,
        .name = frame,
        .kind = HEC_ACTIVITY_STACK,
    };
    out->counts.samples++;
}

/* A thread that was read, first with the others: changed is what its walk said. HEC_PYTHON_GONE, HEC_PYTHON_TORN, or 0. */
static int sample(struct hec_stacks_sampler *s, struct hec_stacks_thread *t, int changed, int same, int64_t now_ns,
                  struct hec_python_scratch *scratch, struct hec_stacks_out *out) {
    const struct hec_python *python = &s->process.python;
    const struct hec_memory *memory = &s->process.memory;
    int err = changed;
    uint32_t leaf = 0;
    for (int try = 0; try < TRIES; try++) {
        if (err < 0) /* alone: what the others had there may be gone */
            err = changed = hec_python_walk(python, memory, &t->python, scratch, &t->stack, &same);
        if (changed > 0)
            t->changed_ns = now_ns;
        if (err >= 0)
            err = hec_python_name(&s->names, python, memory, scratch, &t->stack, same, &t->named, &leaf);
        if (err != HEC_PYTHON_TORN)
            break;
    }
    if (err == 0 && leaf && t->track)
        give(out, t, leaf, now_ns);
    return err;
}

/* All that are chosen with one call, which is most of what reading costs. */
bool hec_stacks_sample(struct hec_stacks_sampler *s, int64_t now_ns, int64_t period_ns,
                       struct hec_python_scratch *scratch, struct hec_stacks_out *out) {
    struct hec_stacks_thread *chosen[HEC_STACKS_THREADS];
    int changed[HEC_STACKS_THREADS], same[HEC_STACKS_THREADS];
    if ((!s->listed_ns || now_ns - s->listed_ns >= LIST_NS) && !list(s, now_ns, scratch)) {
        out->counts.torn++;
        return ++s->failed < FAILED_MAX;
    }
    bool any = s->thread_count == 0;
    int count = choose(s, now_ns, s->sampled_ns ? now_ns - s->sampled_ns : period_ns, chosen);
    s->sampled_ns = now_ns;
    hec_python_plan_begin(scratch);
    for (int i = 0; i < count; i++)
        hec_python_plan(&s->process.python, &chosen[i]->python, &chosen[i]->stack, scratch);
    hec_python_plan_read(&s->process.memory, scratch);
    for (int i = 0; i < count; i++)
        changed[i] = hec_python_take(&s->process.python, &s->process.memory, &chosen[i]->python, scratch,
                                     &chosen[i]->stack, &same[i]);
    for (int i = 0; i < count; i++) {
        int err = sample(s, chosen[i], changed[i], same[i], now_ns, scratch, out);
        any |= err == 0;
        out->counts.torn += err == HEC_PYTHON_TORN;
        if (err == HEC_PYTHON_GONE)
            s->listed_ns = 0;
    }
    s->failed = any ? 0 : s->failed + 1;
    return s->failed < FAILED_MAX;
}
