/* The states of random timelines against the rules of state.h, written down once more for a single instant and asked of
 * every one: thousands of small cases with ties, zero lengths, nested calls, phases, several threads, processes, devices
 * and duty-cycled windows. Lengths are small, so is what counts as close (rules 1, 4 and 12) or long (rule 8). */
#include "diagnose/states/state.h"
#include "fake_timeline.h"
#include "unit.h"

#define SPAN 200 /* nanoseconds in a case */
#define CLOSE 6
#define LOAD 9
#define BRIEF 5

enum label { CHECKPOINT, DATA, ALLOC, MODULE, SYNC, COPY, LAUNCH, NOTHING };

struct world {
    struct fake_timeline t;
    struct hec_state_limits limits;
    int64_t end;
};

static bool on_device(const struct hec_activity *a) {
    return (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) != 0;
}

static const struct hec_track *track_of(const struct world *w, const struct hec_activity *a) {
    return &w->t.tracks[a->track - 1];
}

static enum label label_of(const struct world *w, const struct hec_activity *a) {
    if (a->kind == HEC_ACTIVITY_PHASE)
        return strcmp(w->t.names[a->name - 1], "data") == 0         ? DATA
               : strcmp(w->t.names[a->name - 1], "checkpoint") == 0 ? CHECKPOINT
                                                                    : NOTHING;
    if (a->kind == HEC_ACTIVITY_SYNC)
        return a->detail == HEC_SYNC_STREAM_WAIT ? NOTHING : SYNC;
    if (a->kind != HEC_ACTIVITY_API)
        return NOTHING;
    return a->detail == HEC_API_ALLOC || a->detail == HEC_API_FREE ? ALLOC
           : a->detail == HEC_API_MODULE                           ? MODULE
           : a->detail == HEC_API_SYNC                             ? SYNC
           : a->detail == HEC_API_COPY                             ? COPY
           : a->detail == HEC_API_OTHER                            ? NOTHING
                                                                   : LAUNCH;
}

/* Of a thread during [t, t + 1). */
static enum label label_at(const struct world *w, uint32_t thread, int64_t t) {
    enum label best = NOTHING;
    for (size_t i = 0; i < w->t.count; i++) {
        const struct hec_activity *a = &w->t.activities[i];
        if (a->track == thread && a->start_ns <= t && t < a->end_ns && label_of(w, a) < best)
            best = label_of(w, a);
    }
    return best;
}

/* Where the run of one label that holds at t begins. */
static int64_t label_began(const struct world *w, uint32_t thread, int64_t t) {
    enum label label = label_at(w, thread, t);
    while (t > 0 && label_at(w, thread, t - 1) == label)
        t--;
    return t;
}

static uint32_t main_of(const struct world *w, int32_t pid) {
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < w->t.track_count; i++)
            if (w->t.tracks[i].kind == HEC_TRACK_THREAD && w->t.tracks[i].pid == pid &&
                (pass || w->t.tracks[i].stream == pid))
                return i + 1;
    return 0;
}

/* Has the thread done anything that is known when the activity `upto` is reported? */
static bool seen(const struct world *w, uint32_t thread, size_t upto) {
    for (size_t i = 0; i <= upto; i++) {
        const struct hec_activity *a = &w->t.activities[i];
        if (!on_device(a) && a->track == thread)
            return true;
        if (on_device(a) && a->launch_track == thread && a->launch_ns != HEC_TIME_UNKNOWN)
            return true;
    }
    return false;
}

/* Launching calls of a thread known when the activity `upto` is reported: the earliest end at which one holds. */
struct call {
    bool found;
    int64_t start, end;
    bool copy;
};

/* The calls as the rules see them: of one start the first told counts. */
static bool is_call(const struct world *w, size_t i, size_t upto, uint32_t thread) {
    const struct hec_activity *a = &w->t.activities[i];
    if (!on_device(a) || a->launch_track != thread || a->launch_ns == HEC_TIME_UNKNOWN || i > upto)
        return false;
    for (size_t k = 0; k < i; k++) {
        const struct hec_activity *b = &w->t.activities[k];
        if (on_device(b) && b->launch_track == thread && b->launch_ns == a->launch_ns)
            return false;
    }
    return true;
}

static struct call call_of(const struct hec_activity *a) {
    return (struct call){true, a->launch_ns, a->launch_end_ns < a->launch_ns ? a->launch_ns : a->launch_end_ns,
                         a->kind == HEC_ACTIVITY_COPY};
}

static struct call last_call(const struct world *w, size_t upto, uint32_t thread, int64_t t) {
    struct call best = {0};
    for (size_t i = 0; i <= upto && i < w->t.count; i++)
        if (is_call(w, i, upto, thread) && w->t.activities[i].launch_ns <= t &&
            (!best.found || w->t.activities[i].launch_ns > best.start))
            best = call_of(&w->t.activities[i]);
    return best;
}

static struct call next_call(const struct world *w, size_t upto, uint32_t thread, int64_t t) {
    struct call best = {0};
    for (size_t i = 0; i <= upto && i < w->t.count; i++)
        if (is_call(w, i, upto, thread) && w->t.activities[i].launch_ns >= t &&
            (!best.found || w->t.activities[i].launch_ns < best.start))
            best = call_of(&w->t.activities[i]);
    return best;
}

static enum hec_kernel_class class_at(const struct world *w, int device, int64_t t, enum hec_state *busy) {
    enum hec_kernel_class best = HEC_KERNEL_CLASS_COUNT;
    *busy = HEC_STATE_UNKNOWN;
    for (size_t i = 0; i < w->t.count; i++) {
        const struct hec_activity *a = &w->t.activities[i];
        if (!on_device(a) || track_of(w, a)->device != device || a->start_ns > t || a->end_ns <= t)
            continue;
        enum hec_kernel_class c = a->kind == HEC_ACTIVITY_KERNEL
                                      ? hec_kernel_class_of(w->t.names[w->t.kernels[a->name - 1].name - 1])
                                  : a->kind == HEC_ACTIVITY_GRAPH ? HEC_KERNEL_CLASS_GRAPH
                                                                  : HEC_KERNEL_CLASS_COUNT;
        enum hec_state s = c == HEC_KERNEL_CLASS_COUNT  ? HEC_STATE_COPY
                           : c == HEC_KERNEL_CLASS_COMM ? HEC_STATE_COMM
                                                        : HEC_STATE_COMPUTE;
        if (s < *busy)
            *busy = s;
        if (c < best)
            best = c;
    }
    return best == HEC_KERNEL_CLASS_COUNT ? HEC_KERNEL_CLASS_OTHER : best;
}

/* Windows: like those of the timeline; and all time before the first and after the last of the device's processes. */
static bool traced_at(const struct world *w, int device, int64_t t) {
    struct windows_at at = fake_tl_windows_at(&w->t, device, t);
    return !at.windows || t < at.first || t >= at.last || (at.alive && at.open >= at.alive);
}

struct answer {
    enum hec_state state;
    enum hec_kernel_class kernel_class;
    bool traced;
};

/* The gap around t: the ender's index, SIZE_MAX none; where it began. */
static size_t ender_of(const struct world *w, int device, int64_t t, int64_t *began) {
    *began = 0;
    size_t ender = SIZE_MAX;
    for (size_t i = 0; i < w->t.count; i++) {
        const struct hec_activity *a = &w->t.activities[i];
        if (!on_device(a) || track_of(w, a)->device != device)
            continue;
        if (a->start_ns > t) {
            ender = i;
            break;
        }
        *began = a->end_ns > *began ? a->end_ns : *began;
    }
    return ender;
}

static bool first_of_all(const struct world *w, size_t ender, int device, int32_t pid) {
    for (size_t i = 0; i < ender; i++) {
        const struct hec_activity *a = &w->t.activities[i];
        if (on_device(a) && pid && track_of(w, a)->pid == pid)
            return false;
        if (on_device(a) && !pid && track_of(w, a)->device == device)
            return false;
    }
    return true;
}

static bool after_wait(const struct world *w, uint32_t thread, uint32_t main, size_t ender, int64_t launch,
                       int64_t began, int64_t t) {
    uint32_t who = 0;
    int64_t end = 0;
    for (int k = 0; k < 2 && !who && began > 0; k++) {
        uint32_t id = k ? main : thread;
        enum label label = id ? label_at(w, id, began) : NOTHING;
        if (label == NOTHING || label_began(w, id, began) >= began)
            continue;
        if (label != SYNC && label != COPY)
            return false;
        who = id;
        for (end = began; label_at(w, id, end) == label; end++)
            ;
    }
    if (!who) {
        struct call c = {0};
        for (int64_t from = began - 1; !c.found; from = c.start - 1, c.found = false) {
            c = thread ? last_call(w, ender, thread, from) : c;
            if (!c.found || c.end <= began)
                return false;
            if (c.start != launch)
                break;
        }
        if (!c.copy)
            return false;
        end = c.end;
    }
    struct call next = thread ? next_call(w, ender, thread, began) : (struct call){0};
    int64_t until = w->t.activities[ender].start_ns;
    until = next.found && next.start < until ? next.start : until;
    return t < (until - end < w->limits.brief_ns ? until : end);
}

static enum hec_state between(const struct world *w, uint32_t thread, size_t ender, int64_t t, bool known) {
    struct call before = thread ? last_call(w, ender, thread, t) : (struct call){0};
    struct call after = thread ? next_call(w, ender, thread, t + 1) : (struct call){0};
    if (before.found && t < before.end)
        return HEC_STATE_LAUNCH;
    if (before.found && after.found && after.start - before.end < CLOSE)
        return HEC_STATE_LAUNCH;
    return known ? HEC_STATE_HOST : HEC_STATE_UNKNOWN;
}

static struct answer idle_at(const struct world *w, int device, int64_t t) {
    int64_t began;
    size_t ender = ender_of(w, device, t, &began);
    struct answer out = {HEC_STATE_UNKNOWN, HEC_KERNEL_CLASS_OTHER, true};
    if (ender == SIZE_MAX) {
        size_t last = 0;
        for (size_t i = 0; i < w->t.count; i++)
            if (on_device(&w->t.activities[i]) && track_of(w, &w->t.activities[i])->device == device)
                last = i;
        uint32_t main = main_of(w, track_of(w, &w->t.activities[last])->pid);
        out.state = main && label_at(w, main, t) == CHECKPOINT ? HEC_STATE_CHECKPOINT : HEC_STATE_TAIL;
        return out;
    }
    const struct hec_activity *e = &w->t.activities[ender];
    int32_t pid = track_of(w, e)->pid;
    uint32_t main = main_of(w, pid), thread = e->launch_track ? e->launch_track : main;
    bool launched = e->launch_ns != HEC_TIME_UNKNOWN, startup = false;
    startup = first_of_all(w, ender, device, 0) || first_of_all(w, ender, device, pid);
    int64_t call = e->start_ns, queued = e->start_ns;
    if (launched) {
        int64_t returned = e->launch_end_ns > e->launch_ns ? e->launch_end_ns : e->launch_ns;
        queued = returned > e->start_ns ? e->start_ns : returned < began ? began : returned;
        call = e->launch_ns > queued ? queued : e->launch_ns < began ? began : e->launch_ns;
        int64_t window = e->start_ns;
        while (window > began && traced_at(w, device, window - 1))
            window--;
        int64_t from = returned > window ? returned : window;
        if (window > began && window < e->start_ns && !startup && t >= window && e->start_ns - from > CLOSE) {
            out.traced = false;
            return out;
        }
    }
    if (startup) {
        out.state = HEC_STATE_STARTUP;
        return out;
    }
    if (t >= queued) {
        out.state = e->start_ns - queued <= CLOSE ? HEC_STATE_LAUNCH : HEC_STATE_UNKNOWN;
        return out;
    }
    uint32_t who = thread;
    enum label label = thread ? label_at(w, thread, t) : NOTHING;
    if (label == NOTHING && main) {
        who = main;
        label = label_at(w, main, t);
    }
    bool known = launched || (thread && seen(w, thread, ender)) || (main && seen(w, main, ender));
    static const enum hec_state named[] = {[CHECKPOINT] = HEC_STATE_CHECKPOINT,
                                           [DATA] = HEC_STATE_DATA,
                                           [ALLOC] = HEC_STATE_ALLOC,
                                           [MODULE] = HEC_STATE_STARTUP};
    if (label <= MODULE) {
        out.state = named[label];
        return out;
    }
    bool loads = launched && e->kind == HEC_ACTIVITY_KERNEL && e->launch_end_ns >= e->launch_ns + LOAD;
    if (t >= call)
        out.state = loads ? HEC_STATE_STARTUP : HEC_STATE_LAUNCH;
    else if (label == SYNC || (label == COPY && label_began(w, who, t) < began))
        out.state = HEC_STATE_SYNC;
    else if (label != NOTHING)
        out.state = HEC_STATE_LAUNCH;
    else if (after_wait(w, thread, main, ender, e->launch_ns, began, t))
        out.state = HEC_STATE_SYNC;
    else
        out.state = between(w, thread, ender, t, known);
    return out;
}

static struct answer answer_at(const struct world *w, int device, int64_t t) {
    struct answer out = {HEC_STATE_UNKNOWN, HEC_KERNEL_CLASS_OTHER, true};
    if (!traced_at(w, device, t)) {
        out.traced = false;
        return out;
    }
    out.kernel_class = class_at(w, device, t, &out.state);
    return out.state == HEC_STATE_UNKNOWN ? idle_at(w, device, t) : out;
}

/* ---- the world ---- */

static void make(struct world *w, uint64_t seed) {
    static const enum hec_activity_kind kinds[] = {HEC_ACTIVITY_KERNEL, HEC_ACTIVITY_KERNEL, HEC_ACTIVITY_COPY,
                                                   HEC_ACTIVITY_MEMSET, HEC_ACTIVITY_GRAPH};
    struct fake_timeline *t = &w->t;
    uint32_t threads[4];
    random_state = seed;
    fake_tl_init(t);
    t->input.end_ns = w->end = SPAN;
    w->limits = (struct hec_state_limits){.close_ns = CLOSE, .load_ns = LOAD, .brief_ns = random_below(2) ? BRIEF : 1};
    fake_tl_kernel(t, "ampere_sgemm_128x128_tn", 128);
    fake_tl_kernel(t, "ncclDevKernel_AllReduce", 128);
    fake_tl_kernel(t, "void at::native::reduce_kernel<512>", 128);
    const struct random_tracks r = fake_tl_random_tracks(t);
    uint32_t thread_count = random_below(5);
    for (uint32_t i = 0; i < thread_count; i++) {
        int32_t pid = (int32_t)(1 + random_below(r.processes));
        threads[i] = fake_tl_track(t, HEC_TRACK_THREAD, pid, -1, random_below(2) ? pid : 90 + (int64_t)i);
    }
    uint32_t data = fake_tl_name(t, "data"), checkpoint = fake_tl_name(t, "checkpoint"),
             other = fake_tl_name(t, "eval");
    uint32_t count = random_below(18), reach = 1 + random_below(30), delay = 1 + random_below(30);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t start = random_below(SPAN - 1), length = random_below(reach);
        struct hec_activity *a = fake_tl_add(t, kinds[random_below(5)], r.streams[random_below(r.stream_count)], start,
                                             start + length < SPAN ? start + length : SPAN - 1);
        a->name = a->kind == HEC_ACTIVITY_KERNEL ? 1 + random_below(3) : 0;
        if (random_below(4)) {
            uint32_t back = random_below(delay);
            a->launch_ns = start > back ? start - back : 0;
            a->launch_end_ns = random_below(8) ? a->launch_ns + random_below(12) : HEC_TIME_UNKNOWN;
        }
        if (thread_count && random_below(5))
            a->launch_track = threads[random_below(thread_count)];
    }
    for (uint32_t i = thread_count ? random_below(14) : 0; i > 0; i--) {
        uint32_t start = random_below(SPAN - 1), length = 1 + random_below(random_below(3) ? 12 : 60),
                 kind = random_below(3);
        struct hec_activity *a = fake_tl_add(t,
                                             kind == 0   ? HEC_ACTIVITY_API
                                             : kind == 1 ? HEC_ACTIVITY_SYNC
                                                         : HEC_ACTIVITY_PHASE,
                                             threads[random_below(thread_count)], start, start + length);
        a->detail = (uint8_t)random_below(kind == 0 ? HEC_API_CLASS_COUNT : HEC_SYNC_TYPE_COUNT);
        a->name = kind == 2 ? (random_below(5) == 0 ? other : random_below(2) ? data : checkpoint) : 0;
    }
    for (uint32_t i = thread_count && random_below(2) ? random_below(9) : 0; i > 0; i--) {
        uint32_t start = random_below(SPAN - 1);
        fake_tl_add(t, HEC_ACTIVITY_STACK, threads[random_below(thread_count)], start, start + 20)->name = 1;
    }
    fake_tl_random_windows(t, &r, random_below(3) ? 0 : random_below(6), SPAN);
}

struct found {
    struct answer at[2][SPAN];
    int64_t upto[2];
    bool bad;
    struct {
        int device;
        struct hec_state_sample sample;
    } samples[64];
    int sample_count;
};

static int take_piece(void *context, int device, const struct hec_state_piece *p) {
    struct found *f = context;
    f->bad |= p->start_ns >= p->end_ns || p->start_ns != f->upto[device] || p->end_ns > SPAN;
    f->upto[device] = p->end_ns;
    for (int64_t i = p->start_ns; i < p->end_ns && !f->bad; i++)
        f->at[device][i] = (struct answer){p->state, p->kernel_class, p->traced};
    return 0;
}

static int take_sample(void *context, int device, const struct hec_state_sample *s) {
    struct found *f = context;
    f->bad |= f->sample_count == 64;
    if (!f->bad) {
        f->samples[f->sample_count].device = device;
        f->samples[f->sample_count++].sample = *s;
    }
    return 0;
}

/* A sample is of the state at its instant; but for those from before a wait was over, when the device was still busy. */
static void check_samples(const struct found *f) {
    for (int i = 0; i < f->sample_count; i++) {
        const struct hec_state_sample *s = &f->samples[i].sample;
        const struct answer *at = &f->at[f->samples[i].device][s->t_ns];
        bool before = s->waiting && s->state == HEC_STATE_SYNC && at->state != HEC_STATE_SYNC;
        assert_true(at->traced && (before || at->state == s->state));
        assert_true(s->waiting || hec_state_idle(s->state));
    }
}

static int differences;

static void one_case(uint64_t seed) {
    struct world w;
    static struct found found;
    struct hec_why why;
    make(&w, seed);
    memset(&found, 0, sizeof found);
    const struct hec_state_visitor visitor = {.context = &found, .piece = take_piece, .sample = take_sample};
    assert_int_equal(fake_pass_states(&w.t.input, &w.limits, &visitor, &why), 0);
    assert_false(found.bad);
    check_samples(&found);
    for (int device = 0; device < 2; device++) {
        bool used = false;
        for (size_t i = 0; i < w.t.count; i++)
            used |= on_device(&w.t.activities[i]) && track_of(&w, &w.t.activities[i])->device == device;
        assert_int_equal(found.upto[device], used ? SPAN : 0);
        for (int64_t t = 0; used && t < SPAN; t++) {
            struct answer right = answer_at(&w, device, t), got = found.at[device][t];
            if (right.state != got.state || right.traced != got.traced || right.kernel_class != got.kernel_class) {
                if (differences++ < 5)
                    print_message(
                        "seed %llx device %d at %lld: %s class %d traced %d, should be %s class %d traced %d\n",
                        (unsigned long long)seed, device, (long long)t, hec_state_name(got.state), got.kernel_class,
                        got.traced, hec_state_name(right.state), right.kernel_class, right.traced);
                break;
            }
        }
    }
    fake_tl_free(&w.t);
}

TEST(random_cases) {
    for (uint64_t seed = 1; seed <= 3000; seed++)
        one_case(seed * 0x9e3779b97f4a7c15u);
    assert_int_equal(differences, 0);
}
