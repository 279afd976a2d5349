#include "base/clock.h"
#include "diagnose/states/device.h"

/* One gap being explained. */
struct explain {
    const struct hec_state_gap *gap;
    int64_t close_ns;
    int64_t call_ns, queued_ns; /* the ender's call begins, has returned: start <= call <= queued <= end of the gap */
    int64_t sync_until_ns;      /* rule 11 */
    enum hec_state calling;     /* rule 8 */
    enum hec_state otherwise;   /* rule 13 or 14 */
    int (*take)(void *context, int64_t start_ns, int64_t end_ns, enum hec_state state);
    void *context;
};

static int64_t smaller(int64_t one, int64_t other) {
    return one < other ? one : other;
}

static int give(const struct explain *e, int64_t start_ns, int64_t end_ns, enum hec_state state) {
    return start_ns < end_ns ? e->take(e->context, start_ns, end_ns, state) : 0;
}

/* Rules 12 to 14. */
static int between_launches(const struct explain *e, int64_t start_ns, int64_t end_ns) {
    const struct hec_host_thread *t = e->gap->thread;
    size_t next = t ? hec_host_launch_from(t, start_ns + 1) : 0;
    int err = 0;
    for (int64_t at = start_ns; at < end_ns && !err;) {
        const struct hec_host_launch *before = t && next > 0 ? &t->launches[next - 1] : NULL;
        const struct hec_host_launch *after = t && next < t->launch_count ? &t->launches[next] : NULL;
        int64_t to = after ? smaller(after->start_ns, end_ns) : end_ns;
        bool close = before && after && after->start_ns - before->end_ns < e->close_ns;
        if (!close && before && at < before->end_ns)
            to = smaller(to, before->end_ns);
        bool launching = close || (before && at < before->end_ns);
        err = give(e, at, to, launching ? HEC_STATE_LAUNCH : e->otherwise);
        at = to;
        next += after && at == after->start_ns;
    }
    return err;
}

/* Rules 8 to 14: no phase, no allocation. */
static int in_call(const struct explain *e, int64_t start_ns, int64_t end_ns, const struct hec_host_segment *call) {
    int64_t before = smaller(end_ns, hec_later(start_ns, e->call_ns)); /* rule 8 holds from there on */
    int err = 0;
    if (!call) {
        int64_t sync = smaller(before, hec_later(start_ns, e->sync_until_ns));
        err = give(e, start_ns, sync, HEC_STATE_SYNC);
        if (!err)
            err = between_launches(e, sync, before);
    } else {
        bool waits =
            call->label == HEC_HOST_SYNC || (call->label == HEC_HOST_COPY && call->start_ns < e->gap->start_ns);
        err = give(e, start_ns, before, waits ? HEC_STATE_SYNC : HEC_STATE_LAUNCH);
    }
    return err ? err : give(e, before, end_ns, e->calling);
}

static int labelled(const struct explain *e, int64_t start_ns, int64_t end_ns, const struct hec_host_segment *s) {
    static const enum hec_state states[HEC_HOST_LABEL_COUNT] = {
        [HEC_HOST_CHECKPOINT] = HEC_STATE_CHECKPOINT,
        [HEC_HOST_DATA] = HEC_STATE_DATA,
        [HEC_HOST_ALLOC] = HEC_STATE_ALLOC,
        [HEC_HOST_MODULE] = HEC_STATE_STARTUP,
    };
    return s && s->label <= HEC_HOST_MODULE ? give(e, start_ns, end_ns, states[s->label])
                                            : in_call(e, start_ns, end_ns, s);
}

/* The segments of a thread; where it has none, those of `other`, and so on. */
static int by_segments(const struct explain *e, const struct hec_host_thread *t, const struct hec_host_thread *other,
                       int64_t start_ns, int64_t end_ns) {
    int err = 0;
    if (!t)
        return other ? by_segments(e, other, NULL, start_ns, end_ns) : labelled(e, start_ns, end_ns, NULL);
    size_t i = hec_host_segment_after(t, start_ns);
    for (int64_t at = start_ns; at < end_ns && !err;) {
        const struct hec_host_segment *s = i < t->segment_count ? &t->segments[i] : NULL;
        int64_t to = s ? smaller(end_ns, s->start_ns > at ? s->start_ns : s->end_ns) : end_ns;
        if (s && s->start_ns <= at) {
            err = labelled(e, at, to, s);
            i++;
        } else {
            err = by_segments(e, NULL, other, at, to);
        }
        at = to;
    }
    return err;
}

/* The copying call that ran when the device ran dry, and is not the ender's. next: the thread's first launch after that. */
static const struct hec_host_launch *copying(const struct hec_state_gap *gap, size_t next) {
    for (size_t i = next; i-- > 0;) {
        const struct hec_host_launch *l = &gap->thread->launches[i];
        if (l->end_ns > gap->start_ns && l->start_ns != gap->launch_ns)
            return l->copy ? l : NULL;
        if (l->end_ns <= gap->start_ns)
            break;
    }
    return NULL;
}

/* A thread at the instant at which the gap began. */
struct moment {
    const struct hec_host_segment *across; /* holds just before and just after; NULL: none */
    size_t launch;                         /* the first that begins then or later */
    int64_t idle_ns;                       /* since the last that it is known to have done */
};

static struct moment at(const struct hec_host_thread *t, int64_t t_ns) {
    struct moment m = {NULL, 0, INT64_MIN};
    size_t segment = t ? hec_host_segment_after(t, t_ns) : 0;
    if (!t)
        return m;
    m.launch = hec_host_launch_from(t, t_ns);
    if (segment < t->segment_count && t->segments[segment].start_ns < t_ns)
        m.across = &t->segments[segment];
    if (segment)
        m.idle_ns = t->segments[segment - 1].end_ns;
    if (m.launch)
        m.idle_ns = hec_later(m.idle_ns, t->launches[m.launch - 1].end_ns);
    return m;
}

void hec_state_gap_look(struct hec_state_gap *gap, int64_t busy_ns) {
    struct moment own = at(gap->thread, gap->start_ns);
    struct moment main = gap->main == gap->thread ? own : at(gap->main, gap->start_ns);
    const struct hec_host_segment *s = own.across ? own.across : main.across;
    const struct hec_host_launch *copy = s ? NULL : copying(gap, own.launch);
    int64_t since = hec_later(own.idle_ns, main.idle_ns);
    if (s) {
        gap->waits = s->label == HEC_HOST_SYNC || s->label == HEC_HOST_COPY;
        gap->wait_start_ns = since = s->start_ns;
        gap->wait_end_ns = s->end_ns;
    } else if (copy) {
        gap->waits = true;
        gap->wait_start_ns = since = copy->start_ns;
        gap->wait_end_ns = copy->end_ns;
    }
    since = hec_later(since, busy_ns);
    int64_t hidden = since > INT64_MIN / 2 ? (gap->start_ns - since) / 1000 : 0;
    gap->hidden_us = hidden > 0 && hidden < UINT32_MAX ? (uint32_t)hidden : 0;
}

static int64_t sync_until(const struct hec_state_gap *gap, const struct hec_state_limits *limits) {
    int64_t until = gap->end_ns;
    if (!gap->waits)
        return gap->start_ns;
    if (gap->thread) {
        size_t next = hec_host_launch_from(gap->thread, gap->start_ns);
        if (next < gap->thread->launch_count)
            until = smaller(until, gap->thread->launches[next].start_ns);
    }
    return until - gap->wait_end_ns < limits->brief_ns ? until : gap->wait_end_ns;
}

/* Of calls alone launches are segments: a thread launched in [start, end). */
static bool launched_in(const struct hec_host_thread *t, int64_t start_ns, int64_t end_ns) {
    for (size_t i = hec_host_segment_after(t, start_ns); i < t->segment_count && t->segments[i].start_ns < end_ns; i++)
        if (t->segments[i].label == HEC_HOST_LAUNCH)
            return true;
    return false;
}

enum hec_state_wait hec_state_gap_copies(const struct hec_state_gap *gap, int64_t t_ns, bool next) {
    const struct hec_host_thread *t = gap->thread ? gap->thread : gap->main;
    if (next && t && t->copied_ns <= t_ns)
        return HEC_STATE_WAIT_OTHER;
    size_t i = t ? hec_host_launch_from(t, t_ns + 1) : 0, count = t ? t->launch_count : 0;
    i -= i > 0 && (!next || t->launches[i - 1].end_ns > t_ns);
    if (i >= count)
        return HEC_STATE_WAIT_OTHER;
    const struct hec_host_launch *l = &t->launches[i];
    if (!l->wait || (!next && l->start_ns > t_ns) || launched_in(t, next ? t_ns : l->end_ns, next ? l->start_ns : t_ns))
        return HEC_STATE_WAIT_OTHER;
    return (enum hec_state_wait)l->wait;
}

/* Rules 2 and 3: the whole gap is one, but for checkpoints in the tail. */
static int outer(const struct explain *e) {
    const struct hec_state_gap *gap = e->gap;
    const struct hec_host_thread *t = gap->main ? gap->main : gap->thread;
    int64_t at = gap->start_ns;
    int err = 0;
    if (gap->startup)
        return give(e, gap->start_ns, gap->end_ns, HEC_STATE_STARTUP);
    for (size_t i = t ? hec_host_segment_after(t, at) : 0; t && i < t->segment_count && !err; i++) {
        const struct hec_host_segment *s = &t->segments[i];
        if (s->label != HEC_HOST_CHECKPOINT || s->start_ns >= gap->end_ns)
            continue;
        int64_t from = hec_later(at, s->start_ns);
        err = give(e, at, from, HEC_STATE_TAIL);
        at = smaller(s->end_ns, gap->end_ns);
        if (!err)
            err = give(e, from, at, HEC_STATE_CHECKPOINT);
    }
    return err ? err : give(e, at, gap->end_ns, HEC_STATE_TAIL);
}

int hec_state_gap_explain(const struct hec_state_gap *gap, const struct hec_state_limits *limits,
                          int (*take)(void *context, int64_t start_ns, int64_t end_ns, enum hec_state state),
                          void *context) {
    struct explain e = {.gap = gap, .close_ns = limits->close_ns, .take = take, .context = context};
    bool launched = gap->launch_ns != HEC_TIME_UNKNOWN;
    if (gap->startup || gap->tail)
        return outer(&e);
    int64_t returned = hec_later(gap->launch_ns, gap->launch_end_ns); /* UNKNOWN is the smallest there is */
    e.queued_ns = launched ? smaller(gap->end_ns, hec_later(gap->start_ns, returned)) : gap->end_ns;
    e.call_ns = launched ? smaller(e.queued_ns, hec_later(gap->start_ns, gap->launch_ns)) : e.queued_ns;
    bool known = launched || (gap->thread && gap->thread->seen) || (gap->main && gap->main->seen);
    e.otherwise = known ? HEC_STATE_HOST : HEC_STATE_UNKNOWN;
    bool loads = launched && gap->kernel && returned - gap->launch_ns >= limits->load_ns;
    e.calling = loads ? HEC_STATE_STARTUP : HEC_STATE_LAUNCH;
    e.sync_until_ns = sync_until(gap, limits);
    int err = 0;
    if (gap->start_ns < e.queued_ns)
        err = by_segments(&e, gap->thread, gap->main == gap->thread ? NULL : gap->main, gap->start_ns, e.queued_ns);
    bool quick = gap->end_ns - e.queued_ns <= limits->close_ns;
    return err ? err : give(&e, e.queued_ns, gap->end_ns, quick ? HEC_STATE_LAUNCH : HEC_STATE_UNKNOWN);
}
