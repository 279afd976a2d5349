#include "diagnose/states/device.h"

#include "base/clock.h"

#include <string.h>

void hec_state_device_init(struct hec_state_device *d, int device, const struct hec_state_limits *limits,
                           const struct hec_state_visitor *visitor, struct hec_stacks *stacks) {
    memset(d, 0, sizeof *d);
    d->stacks = stacks;
    d->lasting_ns = INT64_MIN;
    d->device = device;
    d->limits = limits;
    d->visitor = visitor;
    d->traced.everywhere = true;
    d->blind_ns = INT64_MAX;
    d->wait_sent_ns = d->busy_ns = INT64_MIN;
}

void hec_state_device_free(struct hec_state_device *d) {
    hec_intervals_free(&d->traced);
}

/* ---- giving pieces away ---- */

static int flush(struct hec_state_device *d) {
    bool empty = d->pending.start_ns == d->pending.end_ns;
    return empty || !d->visitor->piece ? 0 : d->visitor->piece(d->visitor->context, d->device, &d->pending);
}

/* Values, not a piece: one that is written in parts and then compared or copied as a whole waits for its own stores, which
 * was a tenth of the whole diagnosis. */
static inline int put_values(struct hec_state_device *d, int64_t start_ns, int64_t end_ns, uint32_t frame,
                             uint8_t state, uint8_t kernel_class, uint8_t wait, uint8_t phase, bool traced) {
    struct hec_state_piece *last = &d->pending;
    if (start_ns >= end_ns)
        return 0;
    unsigned other = (last->state ^ state) | (last->kernel_class ^ kernel_class) | (last->wait ^ wait) |
                     (last->phase ^ phase) | (last->traced ^ traced) | (last->frame ^ frame);
    if (last->start_ns < last->end_ns && !other) {
        last->end_ns = end_ns;
        return 0;
    }
    int err = flush(d);
    last->start_ns = start_ns;
    last->end_ns = end_ns;
    last->frame = frame;
    last->state = state;
    last->kernel_class = kernel_class;
    last->wait = wait;
    last->hidden_us = d->hidden_us;
    d->hidden_us = 0;
    last->phase = phase;
    last->traced = traced;
    return err;
}

static int put(struct hec_state_device *d, const struct hec_state_piece *p) {
    return put_values(d, p->start_ns, p->end_ns, p->frame, p->state, p->kernel_class, p->wait, p->phase, p->traced);
}

static enum hec_state_phase phase_of(enum hec_host_label label) {
    return label == HEC_HOST_DATA         ? HEC_STATE_PHASE_DATA
           : label == HEC_HOST_CHECKPOINT ? HEC_STATE_PHASE_CHECKPOINT
                                          : HEC_STATE_PHASE_NONE;
}

/* Cut where a phase of the process's main thread begins or ends. */
static int put_by_phase(struct hec_state_device *d, struct hec_state_piece piece) {
    const struct hec_host_thread *t = d->main;
    int64_t end = piece.end_ns;
    int err = 0;
    for (size_t i = t ? hec_host_segment_after(t, piece.start_ns) : 0; t && i < t->segment_count && !err; i++) {
        const struct hec_host_segment *s = &t->segments[i];
        enum hec_state_phase phase = phase_of(s->label);
        if (s->start_ns >= end)
            break;
        if (phase == HEC_STATE_PHASE_NONE)
            continue;
        if (s->start_ns > piece.start_ns) {
            piece.end_ns = s->start_ns;
            err = put(d, &piece);
            piece.start_ns = s->start_ns;
        }
        piece.end_ns = s->end_ns < end ? s->end_ns : end;
        piece.phase = (uint8_t)phase;
        if (!err)
            err = put(d, &piece);
        piece.phase = HEC_STATE_PHASE_NONE;
        piece.start_ns = piece.end_ns;
    }
    piece.end_ns = end;
    return err ? err : put(d, &piece);
}

static int put_untraced(struct hec_state_device *d, int64_t start_ns, int64_t end_ns) {
    struct hec_state_piece piece = {
        .start_ns = start_ns, .end_ns = end_ns, .state = HEC_STATE_UNKNOWN, .kernel_class = HEC_KERNEL_CLASS_OTHER};
    return put_by_phase(d, piece);
}

static int put_traced(struct hec_state_device *d, struct hec_state_piece piece) {
    if (piece.start_ns >= d->blind_ns)
        return put_untraced(d, piece.start_ns, piece.end_ns);
    if (piece.end_ns > d->blind_ns) {
        int64_t end = piece.end_ns;
        piece.end_ns = d->blind_ns;
        int err = put_by_phase(d, piece);
        return err ? err : put_untraced(d, d->blind_ns, end);
    }
    return d->traced.everywhere ? put(d, &piece) : put_by_phase(d, piece);
}

/* Rule 1: cut where the trace was off. Apart from put_by_window, which as a rule needs no room for a piece. */
static __attribute__((noinline)) int put_in_parts(struct hec_state_device *d, int64_t start_ns, int64_t end_ns,
                                                  uint32_t frame, enum hec_state state, int kernel_class, int wait) {
    struct hec_state_piece piece = {.start_ns = start_ns,
                                    .end_ns = end_ns,
                                    .frame = frame,
                                    .state = (uint8_t)state,
                                    .kernel_class = (uint8_t)kernel_class,
                                    .wait = (uint8_t)wait,
                                    .traced = true};
    int64_t end = piece.end_ns;
    int err = 0;
    if (d->traced.everywhere)
        return put_traced(d, piece);
    for (int64_t at = piece.start_ns; at < end && !err;) {
        while (d->window < d->traced.count && d->traced.list[d->window].end_ns <= at)
            d->window++;
        const struct hec_interval *w = d->window < d->traced.count ? &d->traced.list[d->window] : NULL;
        bool in = w && w->start_ns <= at;
        int64_t border = in ? w->end_ns : w ? w->start_ns : end, to = border < end ? border : end;
        piece.start_ns = at;
        piece.end_ns = to;
        err = in ? put_traced(d, piece) : put_untraced(d, at, to);
        at = to;
    }
    return err;
}

/* A traced piece outside of any phase. As a rule there is nothing to cut: one window, and no phase. */
static inline int put_by_window(struct hec_state_device *d, int64_t start_ns, int64_t end_ns, uint32_t frame,
                                enum hec_state state, int kernel_class, int wait) {
    const struct hec_interval *w = d->window < d->traced.count ? &d->traced.list[d->window] : NULL;
    const struct hec_host_thread *t = d->main;
    bool in = w && w->start_ns <= start_ns && end_ns <= w->end_ns;
    bool phases = t && hec_host_segment_after(t, start_ns) < t->segment_count;
    if (end_ns <= d->blind_ns && (d->traced.everywhere || (in && !phases)))
        return put_values(d, start_ns, end_ns, frame, (uint8_t)state, (uint8_t)kernel_class, (uint8_t)wait,
                          HEC_STATE_PHASE_NONE, true);
    return put_in_parts(d, start_ns, end_ns, frame, state, kernel_class, wait);
}

/* ---- stack samples ---- */

static bool traced_at(struct hec_state_device *d, int64_t t_ns) {
    return t_ns < d->blind_ns && (d->traced.everywhere || hec_intervals_within(&d->traced, t_ns, t_ns + 1) == 1);
}

static int report(struct hec_state_device *d, const struct hec_host_sample *s, enum hec_state state, bool waiting) {
    if (!d->visitor->sample || !traced_at(d, s->t_ns))
        return 0;
    return d->visitor->sample(d->visitor->context, d->device,
                              &(struct hec_state_sample){s->t_ns, s->period_ns, s->frame, (uint8_t)state, waiting});
}

/* Those of [start, end) while the device copied, at which the thread was in a copying call. */
static int report_copying(struct hec_state_device *d, int64_t start_ns, int64_t end_ns) {
    const struct hec_host_thread *t = d->sampled;
    int err = 0;
    for (size_t i = t ? hec_host_sample_from(t, start_ns) : 0; t && i < t->sample_count && !err; i++) {
        int64_t at = t->samples[i].t_ns;
        if (at >= end_ns)
            break;
        size_t next = hec_host_launch_from(t, at + 1), segment = hec_host_segment_after(t, at);
        const struct hec_host_launch *l = next ? &t->launches[next - 1] : NULL;
        const struct hec_host_segment *s = segment < t->segment_count ? &t->segments[segment] : NULL;
        if ((l && l->copy && at < l->end_ns) || (s && s->start_ns <= at && s->label == HEC_HOST_COPY))
            err = report(d, &t->samples[i], HEC_STATE_COPY, true);
    }
    return err;
}

/* Those in the call that waited, from before the device ran dry. */
static int report_waiting(struct hec_state_device *d, int64_t began_ns, int64_t dry_ns) {
    const struct hec_host_thread *t = d->sampled;
    int64_t from = began_ns > d->wait_sent_ns ? began_ns : d->wait_sent_ns;
    int err = 0;
    for (size_t i = t ? hec_host_sample_from(t, from) : 0; t && i < t->sample_count && !err; i++) {
        if (t->samples[i].t_ns >= dry_ns)
            break;
        err = report(d, &t->samples[i], HEC_STATE_SYNC, true);
    }
    d->wait_sent_ns = dry_ns;
    return err;
}

/* Those of [start, end) while the device computed. As a rule it is asked of many short pieces between two samples. */
static int report_beside(struct hec_state_device *d, int64_t start_ns, int64_t end_ns) {
    const struct hec_host_thread *t = d->sampled;
    int err = 0;
    if (!d->visitor->beside || !t || (t == d->beside && end_ns <= d->beside_ns))
        return 0;
    size_t i = hec_host_sample_from(t, start_ns);
    for (; i < t->sample_count && t->samples[i].t_ns < end_ns && !err; i++) {
        const struct hec_host_sample *s = &t->samples[i];
        if (traced_at(d, s->t_ns))
            err = d->visitor->beside(
                d->visitor->context, d->device,
                &(struct hec_state_sample){s->t_ns, s->period_ns, s->frame, HEC_STATE_COMPUTE, false});
    }
    d->beside = t;
    d->beside_ns = i < t->sample_count ? t->samples[i].t_ns : end_ns;
    return err;
}

/* ---- busy ---- */

static int busy_until(struct hec_state_device *d, int64_t t_ns) {
    int err = 0;
    while (d->open && d->at_ns < t_ns && !err) {
        int lane = __builtin_ctz(d->open);
        int64_t end = d->open_end_ns[lane] < t_ns ? d->open_end_ns[lane] : t_ns;
        if (end <= d->at_ns) {
            d->open &= d->open - 1;
            continue;
        }
        bool copy = lane >= HEC_STATE_LANE_COPY;
        enum hec_state state = copy ? HEC_STATE_COPY : lane == HEC_STATE_LANE_COMM ? HEC_STATE_COMM : HEC_STATE_COMPUTE;
        err = put_by_window(d, d->at_ns, end, 0, state, copy ? HEC_KERNEL_CLASS_OTHER : lane,
                            copy ? lane - HEC_STATE_LANE_COPY : HEC_STATE_WAIT_OTHER);
        if (copy && !err)
            err = report_copying(d, d->at_ns, end);
        if (state == HEC_STATE_COMPUTE && !err)
            err = report_beside(d, d->at_ns, end);
        d->at_ns = end;
    }
    return err;
}

/* ---- idle ---- */

#define MEANT_NS                                                                                                       \
    HEC_NS_PER_S /* so long a sample stands for others: ten or more are taken meanwhile, or nobody takes any */

/* Rules 3 and 13, by what the stack says. A wait is that of the thread that decides. */
static enum hec_state by_stack(const struct hec_state_device *d, enum hec_state state) {
    switch (d->meaning) {
    case HEC_STACK_COMPILE:
        return HEC_STATE_STARTUP;
    case HEC_STACK_DATA:
        return state == HEC_STATE_HOST ? HEC_STATE_DATA : state;
    case HEC_STACK_REQUESTS:
        if (d->gap->thread && d->gap->thread != d->sampled)
            return state;
        return !d->trains ? HEC_STATE_REQUESTS : state == HEC_STATE_HOST ? HEC_STATE_DATA : state;
    case HEC_STACK_PEERS:
        return state == HEC_STATE_HOST && !d->communicated ? HEC_STATE_PEERS : state;
    case HEC_STACK_LAUNCH:
    case HEC_STACK_OPERATION:
    case HEC_STACK_PUT:
    case HEC_STACK_SHARDS:
        return state == HEC_STATE_HOST ? HEC_STATE_LAUNCH : state;
    case HEC_STACK_SYNC:
    case HEC_STACK_FETCH:
        return state == HEC_STATE_HOST ? HEC_STATE_SYNC : state;
    default:
        return state;
    }
}

static void meant(struct hec_state_device *d, const struct hec_host_sample *s, bool brief) {
    d->meaning = hec_stacks_meaning(d->stacks, s->frame);
    if (brief)
        return;
    d->lasting = d->meaning;
    d->lasting_ns = s->t_ns;
}

/* Whether stacks say anything of this stretch. What lies before its first sample goes by it; where there is none, by the sample
 * of the last such stretch: of many short waits each sample stands for some. What is brief is a launch's, whatever comes before, and
 * a sample in it tells nothing of what lasts: a framework's operators are brief, and one in a hundred of them is sampled. */
static bool meaningful(struct hec_state_device *d, int64_t start_ns, int64_t end_ns, enum hec_state state) {
    const struct hec_host_thread *t = d->sampled;
    if (!t || (state != HEC_STATE_HOST && state != HEC_STATE_TAIL))
        return false;
    size_t first = hec_host_sample_from(t, start_ns);
    bool brief = end_ns - start_ns < d->limits->brief_ns;
    if (first < t->sample_count && t->samples[first].t_ns < end_ns) {
        meant(d, &t->samples[first], brief);
        return true;
    }
    if (brief || d->lasting == HEC_STACK_COMPILE || d->lasting_ns <= start_ns - MEANT_NS)
        return false;
    d->meaning = d->lasting;
    return true;
}

/* A state of the gap: cut where a stack sample was taken. */
static int take_idle(void *context, int64_t start_ns, int64_t end_ns, enum hec_state ruled) {
    struct hec_state_device *d = context;
    const struct hec_host_thread *t = d->sampled;
    bool stacks = meaningful(d, start_ns, end_ns, ruled);
    enum hec_state state = stacks ? by_stack(d, ruled) : ruled;
    int wait = HEC_STATE_WAIT_OTHER;
    if (ruled == HEC_STATE_SYNC || ruled == HEC_STATE_LAUNCH || ruled == HEC_STATE_HOST)
        wait = hec_state_gap_copies(d->gap, start_ns, ruled != HEC_STATE_SYNC);
    int err = 0;
    for (int64_t at = start_ns; at < end_ns && !err;) {
        int64_t to = end_ns;
        while (t && d->sample < t->sample_count && t->samples[d->sample].t_ns <= at && !err) {
            const struct hec_host_sample *s = &t->samples[d->sample++];
            d->frame = s->frame;
            if (stacks) {
                meant(d, s, end_ns - start_ns < d->limits->brief_ns);
                state = by_stack(d, ruled);
            }
            err = report(d, s, state, state == HEC_STATE_SYNC && s->t_ns < d->wait_end_ns);
        }
        if (t && d->sample < t->sample_count && t->samples[d->sample].t_ns < to)
            to = t->samples[d->sample].t_ns;
        if (!err)
            err = put_by_window(d, at, to, d->frame, state, HEC_KERNEL_CLASS_OTHER,
                                state == ruled                  ? wait
                                : d->meaning == HEC_STACK_FETCH ? HEC_STATE_WAIT_DATA
                                                                : HEC_STATE_WAIT_OTHER);
        at = to;
    }
    return err;
}

/* Where the window begins in which the gap ends; the gap's start where it began in the same one, or ends in none. */
static int64_t window_start(const struct hec_state_device *d, int64_t start_ns, int64_t end_ns) {
    if (d->traced.everywhere)
        return start_ns;
    size_t i = d->window;
    while (i < d->traced.count && d->traced.list[i].end_ns < end_ns)
        i++;
    bool inside = i < d->traced.count && d->traced.list[i].start_ns < end_ns;
    return inside && d->traced.list[i].start_ns > start_ns ? d->traced.list[i].start_ns : start_ns;
}

static int gap_until(struct hec_state_device *d, int64_t t_ns, const struct hec_state_event *ender, bool first) {
    struct hec_state_gap gap = {
        .start_ns = d->at_ns,
        .end_ns = t_ns,
        .startup = ender && (first || ender->first) && !ender->in_loop,
        .tail = !ender,
        .kernel = ender && ender->kernel,
        .launch_ns = ender ? ender->launch_ns : HEC_TIME_UNKNOWN,
        .launch_end_ns = ender ? ender->launch_end_ns : HEC_TIME_UNKNOWN,
        .thread = ender && ender->thread ? ender->thread : d->main,
        .main = d->main,
    };
    d->gap = &gap;
    if (!gap.startup && !gap.tail)
        hec_state_gap_look(&gap, d->busy_ns);
    d->hidden_us = gap.hidden_us;
    int64_t window = window_start(d, gap.start_ns, t_ns);
    d->frame = 0;
    d->sample = d->sampled ? hec_host_sample_from(d->sampled, gap.start_ns) : 0;
    d->blind_ns = INT64_MAX;
    if (window > gap.start_ns && gap.launch_ns != HEC_TIME_UNKNOWN && !gap.startup) {
        int64_t queued = gap.launch_end_ns > gap.launch_ns ? gap.launch_end_ns : gap.launch_ns;
        queued = queued > window ? queued : window;
        if (t_ns - queued > d->limits->close_ns)
            d->blind_ns = window;
    }
    d->wait_end_ns = gap.waits ? gap.wait_end_ns : INT64_MIN;
    int err = gap.waits ? report_waiting(d, gap.wait_start_ns, gap.start_ns) : 0;
    if (!err)
        err = hec_state_gap_explain(&gap, d->limits, take_idle, d);
    d->blind_ns = INT64_MAX;
    d->gap = NULL;
    d->hidden_us = 0;
    d->busy_ns = d->at_ns = t_ns;
    return err;
}

int hec_state_device_add(struct hec_state_device *d, const struct hec_state_event *event, int64_t from_ns) {
    bool first = !d->started;
    int err = d->main ? hec_host_advance(d->main, event->start_ns) : 0;
    if (!err && event->main && event->main != d->main)
        err = hec_host_advance(event->main, event->start_ns);
    if (!err && event->thread && event->thread != event->main)
        err = hec_host_advance(event->thread, event->start_ns);
    if (first) {
        d->started = true;
        d->at_ns = from_ns < event->start_ns ? from_ns : event->start_ns;
    }
    if (d->at_ns < event->start_ns && !err)
        err = busy_until(d, event->start_ns);
    d->main = event->main;
    d->sampled = event->sampled;
    d->trains = event->trains;
    if (d->at_ns < event->start_ns && !err)
        err = gap_until(d, event->start_ns, event, first);
    uint32_t bit = UINT32_C(1) << event->lane;
    if (!(d->open & bit) || d->open_end_ns[event->lane] < event->end_ns)
        d->open_end_ns[event->lane] = event->end_ns;
    d->open |= bit;
    d->communicated |= event->lane == HEC_STATE_LANE_COMM;
    return err;
}

/* What began last has not ended. Its samples are of the tail: where the program is meanwhile. */
static int works_until(struct hec_state_device *d, int64_t end_ns) {
    const struct hec_host_thread *t = d->sampled;
    int err = put_by_window(d, d->at_ns, end_ns, 0, HEC_STATE_COMPUTE, HEC_KERNEL_CLASS_OTHER, HEC_STATE_WAIT_OTHER);
    for (size_t i = t ? hec_host_sample_from(t, d->at_ns) : 0; t && i < t->sample_count && !err; i++)
        err = report(d, &t->samples[i], HEC_STATE_TAIL, true);
    d->at_ns = end_ns;
    return err;
}

int hec_state_device_end(struct hec_state_device *d, int64_t end_ns) {
    if (!d->started)
        return 0;
    int err = busy_until(d, INT64_MAX);
    const struct hec_state_visitor *v = d->visitor;
    if (d->at_ns < end_ns && !err)
        err = v->works && v->works(v->context, d->device, d->at_ns) ? works_until(d, end_ns)
                                                                    : gap_until(d, end_ns, NULL, false);
    return err ? err : flush(d);
}
