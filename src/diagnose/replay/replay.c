#include "diagnose/replay/replay.h"

#include "diagnose/replay/parts.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Inside diagnose/replay: for how long each device does what, as its operations come, nearly in order. */

/* A union, and up to where it has been counted. */
struct hec_load_union {
    int64_t ns, until_ns;
};

struct hec_load_device {
    struct hec_load_union busy, kernels, active, work;
    int64_t transfer_ns[2]; /* of a collective that waited first: operations that come later may begin before it */
};

struct hec_load {
    struct hec_load_device of[HEC_DEVICE_MAX];
};

static void load_begin(struct hec_load *load) {
    static const struct hec_load_union nothing = {0, INT64_MIN};
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        load->of[d] = (struct hec_load_device){nothing, nothing, nothing, nothing, {0, 0}};
}

static void add_interval(struct hec_load_union *to, int64_t start_ns, int64_t finish_ns) {
    start_ns = start_ns > to->until_ns ? start_ns : to->until_ns;
    if (finish_ns <= start_ns)
        return;
    to->ns += finish_ns - start_ns;
    to->until_ns = finish_ns;
}

static void transfer(struct hec_load_device *d) {
    add_interval(&d->active, d->transfer_ns[0], d->transfer_ns[1]);
    d->transfer_ns[0] = d->transfer_ns[1] = 0;
}

/* The operation of a call, which runs from start_ns to finish_ns. */
static void load_add(struct hec_load *load, const struct hec_schedule *s, const struct hec_schedule_call *c,
                     int64_t start_ns, int64_t finish_ns) {
    int device = s->streams[c->stream].device;
    if (device < 0 || device >= HEC_DEVICE_MAX)
        return;
    struct hec_load_device *d = &load->of[device];
    add_interval(&d->busy, start_ns, finish_ns);
    if (c->kind != HEC_CALL_KERNEL)
        return;
    add_interval(&d->kernels, start_ns, finish_ns);
    if (c->kernel_class != HEC_KERNEL_CLASS_COMM)
        add_interval(&d->work, start_ns, finish_ns);
    bool collective = c->flags & HEC_CALL_COLLECTIVE;
    if (collective || d->transfer_ns[0] <= start_ns)
        transfer(d);
    if (!collective) {
        add_interval(&d->active, start_ns, finish_ns);
        return;
    }
    int64_t begin_ns = finish_ns - s->groups[c->what].least_ns;
    d->transfer_ns[0] = begin_ns > start_ns ? begin_ns : start_ns;
    d->transfer_ns[1] = finish_ns;
}

static double seconds(const struct hec_load_union *of) {
    return (double)of->ns / HEC_NS_PER_S;
}

static void load_end(struct hec_load *load, struct hec_replay *out) {
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        struct hec_load_device *d = &load->of[i];
        transfer(d);
        out->busy_s[i] = seconds(&d->busy);
        out->kernels_s[i] = seconds(&d->kernels);
        out->active_s[i] = seconds(&d->active);
        out->work_s[i] = seconds(&d->work);
    }
}

#define NODE_GAP_NS 1000   /* between nodes of a graph at most: H100, CUDA 13 */
#define AHEAD 32           /* calls whose memory is asked for before they are needed: most of a replay's time is that */
#define LEAST_CALL_NS 2000 /* of a wait that finds nothing to wait for */
#define CONTENTION_MOST 0.9 /* of the multiprocessors */

/* Communication that goes beside kernels takes multiprocessors from them, a block each. Kernels whose blocks just fill the device
 * then run in two rounds: twice as long. Of each device: communication that went beside, and that no kernel has been slowed by yet. */
struct contention {
    bool any; /* on some device, so far */
    int64_t left_ns[HEC_DEVICE_MAX];
    double share[HEC_DEVICE_MAX];              /* of the multiprocessors, that it takes */
    int64_t recorded_until_ns[HEC_DEVICE_MAX]; /* what ran before that had it beside them as it was recorded */
};

struct replay {
    const struct hec_schedule *s;
    const struct hec_replay_edit *edits;
    size_t edit_count;
    bool usual;
    struct ends {
        int64_t end_ns, finish_ns; /* of a call, and of its operation */
    } * ends;                      /* by the call's number & mask: those that calls to come refer to */
    size_t mask;
    int64_t last_ns, recorded_last_ns; /* return, or end of an operation */
    struct contention contention;
    struct hec_load load;
};

/* ---- kernels beside communication ---- */

static int device_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    int device = s->streams[c->stream].device;
    return device >= 0 && device < HEC_DEVICE_MAX ? device : -1;
}

/* The operation of the call communicates beside kernels for lasts_ns. */
static void add_contention(struct contention *contention, const struct hec_schedule *s,
                           const struct hec_schedule_call *c, int64_t lasts_ns) {
    int device = device_of(s, c);
    double share = c->flags & HEC_CALL_COLLECTIVE ? s->groups[c->what].share : hec_schedule_kernel(s, c->what).share;
    if (device < 0 || !(share > 0))
        return;
    contention->any = true;
    contention->left_ns[device] += lasts_ns;
    contention->share[device] = fmin(share, CONTENTION_MOST);
    if (c->finish_ns > contention->recorded_until_ns[device])
        contention->recorded_until_ns[device] = c->finish_ns;
}

/* Rounds of blocks on what is left of the device, over those on all of it; where nothing is known of the kernel it has many. */
static double slowdown(double fill, double share) {
    return isfinite(fill) ? ceil(fill / (1 - share)) / fmax(1, ceil(fill)) : 1 / (1 - share);
}

/* By how much longer a kernel takes than lasts_ns. */
static int64_t contention_ns(struct contention *contention, const struct hec_schedule *s,
                             const struct hec_schedule_call *c, int64_t lasts_ns) {
    int device = device_of(s, c);
    if (device < 0 || contention->left_ns[device] <= 0)
        return 0;
    int64_t until_ns =
        contention->recorded_until_ns[device] < c->finish_ns ? contention->recorded_until_ns[device] : c->finish_ns;
    if (until_ns > c->start_ns) { /* it is as slow already */
        contention->left_ns[device] -= until_ns - c->start_ns;
        return 0;
    }
    double slow = slowdown(hec_schedule_kernel(s, c->what).fill, contention->share[device]);
    double beside_ns = fmin((double)contention->left_ns[device], (double)lasts_ns * slow);
    contention->left_ns[device] -= (int64_t)beside_ns;
    return (int64_t)(beside_ns * (1 - 1 / slow));
}

/* ---- calls and operations ---- */

static int64_t bounded(int64_t t_ns) {
    return t_ns > HEC_REPLAY_MOST_NS ? HEC_REPLAY_MOST_NS : t_ns < -HEC_REPLAY_MOST_NS ? -HEC_REPLAY_MOST_NS : t_ns;
}

static int64_t scaled_by(int64_t ns, double factor) {
    return factor == 0 ? 0 : llround(fmin(0x1p60, fmax(-0x1p60, (double)ns * factor)));
}

static inline int64_t scaled(int64_t ns, double factor) {
    return factor == 1 ? bounded(ns) : scaled_by(ns, factor);
}

static struct ends *ends_of(const struct replay *r, size_t call) {
    return &r->ends[call & r->mask];
}

static const struct hec_schedule_usual *usual_of(const struct replay *r, const struct hec_schedule_call *c) {
    return &r->s->usual[hec_call_shape(c)];
}

static int64_t begin_of(const struct replay *r, const struct hec_schedule_call *c,
                        const struct hec_replay_change *change) {
    if (c->after == HEC_SCHEDULE_NONE)
        return c->begin_ns;
    int64_t gap_ns = c->begin_ns - r->s->calls[c->after].end_ns;
    int64_t code_ns = gap_ns - c->data_ns - c->checkpoint_ns;
    return ends_of(r, c->after)->end_ns + scaled(code_ns, change->code) + scaled(c->data_ns, change->data) +
           scaled(c->checkpoint_ns, change->checkpoint);
}

/* Of the operation of a call that begins at begin_ns. */
static int64_t start_of(const struct replay *r, const struct hec_schedule_call *c, int64_t begin_ns,
                        const struct hec_replay_change *change) {
    int64_t delay_ns = scaled(c->start_ns - c->begin_ns, change->launch),
            usual_ns = scaled(usual_of(r, c)->launch_ns, change->launch);
    if (!r->usual && delay_ns < usual_ns)
        usual_ns = delay_ns;
    if (change->beside)
        return begin_ns + usual_ns;
    if (c->behind == HEC_SCHEDULE_NONE) /* the first: it may have come behind what was launched before the stretch */
        return begin_ns + hec_later(delay_ns - r->s->lag_ns, usual_ns < delay_ns ? usual_ns : delay_ns);
    int64_t recorded_ns = r->s->calls[c->behind].finish_ns, before_ns = ends_of(r, c->behind)->finish_ns;
    int64_t gap_ns = usual_of(r, c)->gap_ns;
    if (change->graphed)
        return hec_later(begin_ns + usual_ns, before_ns + (gap_ns < NODE_GAP_NS ? gap_ns : NODE_GAP_NS));
    uint32_t event = hec_schedule_event(r->s, (size_t)(c - r->s->calls));
    if (event != HEC_SCHEDULE_NONE) { /* an operation of another stream */
        int64_t near_ns = r->usual ? gap_ns : c->start_ns - r->s->calls[event].finish_ns;
        before_ns = hec_later(before_ns + gap_ns, ends_of(r, event)->finish_ns + near_ns);
        return hec_later(begin_ns + usual_ns, before_ns);
    }
    if (r->usual)
        return hec_later(begin_ns + usual_ns, before_ns + gap_ns);
    if (recorded_ns <= c->begin_ns) /* the device waited for this call */
        return hec_later(begin_ns + delay_ns, before_ns + gap_ns);
    return hec_later(before_ns + (c->start_ns - recorded_ns), begin_ns + usual_ns); /* the call was ahead */
}

static int64_t return_of(const struct replay *r, const struct hec_schedule_call *c, int64_t begin_ns,
                         const struct hec_replay_change *change) {
    int64_t own_ns = c->end_ns - c->begin_ns;
    if (c->kind == HEC_CALL_KERNEL && c->end_ns <= r->s->behind_until_ns && own_ns >= HEC_LAUNCH_BLOCKED_NS)
        own_ns = usual_of(r, c)->call_ns; /* into a queue that was full of what came before the stretch */
    if (c->flags & HEC_CALL_WAITED) {
        int64_t least_ns = own_ns < LEAST_CALL_NS     ? own_ns
                           : c->kind == HEC_CALL_WAIT ? LEAST_CALL_NS
                                                      : usual_of(r, c)->call_ns;
        int64_t wake_ns = r->usual && !(c->flags & HEC_CALL_RARE) ? usual_of(r, c)->wake_ns
                                                                  : c->end_ns - r->s->calls[c->awaits].finish_ns;
        least_ns = begin_ns + scaled(least_ns < own_ns ? least_ns : own_ns, change->call);
        return change->waits ? hec_later(least_ns, ends_of(r, c->awaits)->finish_ns + wake_ns) : least_ns;
    }
    int64_t end_ns = begin_ns + scaled(own_ns, change->call);
    if (!change->waits || c->kind != HEC_CALL_WAIT || c->awaits == HEC_SCHEDULE_NONE)
        return end_ns;
    int64_t wake_ns = usual_of(r, c)->wake_ns < own_ns ? usual_of(r, c)->wake_ns : own_ns;
    return hec_later(end_ns, ends_of(r, c->awaits)->finish_ns + wake_ns);
}

static void remember(const struct hec_replay_times *times, size_t i, int64_t begin_ns, int64_t end_ns, int64_t start_ns,
                     int64_t finish_ns) {
    if (!times || i < times->first || i - times->first >= times->count)
        return;
    i -= times->first;
    times->begin_ns[i] = begin_ns;
    times->end_ns[i] = end_ns;
    times->start_ns[i] = start_ns;
    times->finish_ns[i] = finish_ns;
}

/* A call on its way: begun, and what it launches has begun. */
struct begun {
    size_t at;
    bool node; /* of a graph, and not the first: it has no call of its own */
    int64_t begin_ns, start_ns, lasts_ns;
    struct hec_replay_change change;
};

static void begin(struct replay *r, size_t i, struct begun *b) {
    const struct hec_schedule *s = r->s;
    const struct hec_schedule_call *c = &s->calls[i];
    b->at = i;
    b->change = (struct hec_replay_change){1, 1, 1, 1, 1, 1, .waits = true};
    for (size_t k = 0; k < r->edit_count; k++)
        r->edits[k].apply(s, c, r->edits[k].value, &b->change);
    b->node =
        c->flags & HEC_CALL_GRAPHED && c->after != HEC_SCHEDULE_NONE && s->calls[c->after].begin_ns == c->begin_ns;
    b->begin_ns = bounded(b->node ? ends_of(r, c->after)->end_ns - (s->calls[c->after].end_ns - c->begin_ns)
                                  : begin_of(r, c, &b->change));
    b->start_ns = HEC_TIME_UNKNOWN;
    if (hec_call_launched(c)) {
        b->start_ns = bounded(start_of(r, c, b->begin_ns, &b->change));
        b->lasts_ns = scaled(b->change.beside && c->flags & HEC_CALL_COLLECTIVE ? s->groups[c->what].least_ns
                                                                                : c->finish_ns - c->start_ns,
                             b->change.operation);
        if (c->kind == HEC_CALL_KERNEL && b->change.beside)
            add_contention(&r->contention, s, c, b->lasts_ns);
        else if (c->kind == HEC_CALL_KERNEL && r->contention.any)
            b->lasts_ns += contention_ns(&r->contention, s, c, b->lasts_ns);
    }
}

static void end(struct replay *r, const struct begun *b, const struct hec_replay_times *times, struct hec_replay *out) {
    const struct hec_schedule_call *c = &r->s->calls[b->at];
    struct ends *e = ends_of(r, b->at);
    e->finish_ns = HEC_TIME_UNKNOWN;
    if (hec_call_launched(c)) {
        e->finish_ns = bounded(b->start_ns + b->lasts_ns);
        load_add(&r->load, r->s, c, b->start_ns, e->finish_ns);
        r->last_ns = hec_later(r->last_ns, e->finish_ns);
        r->recorded_last_ns = hec_later(r->recorded_last_ns, c->finish_ns - r->s->lag_ns);
    }
    e->end_ns = bounded(b->node ? ends_of(r, c->after)->end_ns : return_of(r, c, b->begin_ns, &b->change));
    if (c->flags & HEC_CALL_WAITED)
        out->waited_s += (double)(e->end_ns - b->begin_ns) / HEC_NS_PER_S;
    r->last_ns = hec_later(r->last_ns, e->end_ns);
    r->recorded_last_ns = hec_later(r->recorded_last_ns, c->end_ns);
    if (b->change.beside && hec_call_launched(c)) /* who comes behind it on the stream comes behind the one before */
        e->finish_ns = c->behind == HEC_SCHEDULE_NONE ? b->begin_ns : ends_of(r, c->behind)->finish_ns;
    remember(times, b->at, b->begin_ns, e->end_ns, b->start_ns, e->finish_ns);
}

/* ---- several processes that communicate ---- */

/* Each process goes on until it has begun a collective; that ends when all of its processes have begun it. */
struct ranks {
    size_t next[UINT8_MAX + 1]; /* call of each process; the count: it is at its end */
    bool held[UINT8_MAX + 1];   /* by a collective that it has begun */
    struct begun begun[UINT8_MAX + 1];
    /* a heap of processes that can go on, the one whose next call was recorded first on top */
    uint8_t ready[UINT8_MAX + 1];
    int ready_count;
    uint8_t *with; /* by group: processes that it holds */
};

static void make_ready(const struct hec_schedule *s, struct ranks *k, int process) {
    int at = k->ready_count;
    if (k->next[process] >= s->count)
        return;
    for (k->ready_count++; at > 0 && k->next[k->ready[(at - 1) / 2]] > k->next[process]; at = (at - 1) / 2)
        k->ready[at] = k->ready[(at - 1) / 2];
    k->ready[at] = (uint8_t)process;
}

/* -1: none can go on. */
static int take_first(struct ranks *k) {
    if (!k->ready_count)
        return -1;
    int first = k->ready[0], at = 0;
    uint8_t moved = k->ready[--k->ready_count];
    for (int child; (child = 2 * at + 1) < k->ready_count; at = child) {
        if (child + 1 < k->ready_count && k->next[k->ready[child + 1]] < k->next[k->ready[child]])
            child++;
        if (k->next[k->ready[child]] >= k->next[moved])
            break;
        k->ready[at] = k->ready[child];
    }
    k->ready[at] = moved;
    return first;
}

static bool whole(const struct hec_schedule *s, const struct ranks *k, uint32_t group) {
    return k->with[group] == s->groups[group].size;
}

/* It lasts from the last begin on as long as it took the one that waited least. */
static void let_go(struct replay *r, struct ranks *k, uint32_t group, const struct hec_replay_times *times,
                   struct hec_replay *out) {
    int64_t last_ns = INT64_MIN, least_ns = INT64_MAX;
    for (int p = 0; p < r->s->process_count; p++)
        if (k->held[p] && r->s->calls[k->begun[p].at].what == group) {
            last_ns = hec_later(last_ns, k->begun[p].start_ns);
            least_ns = k->begun[p].lasts_ns < least_ns ? k->begun[p].lasts_ns : least_ns;
        }
    for (int p = 0; p < r->s->process_count; p++)
        if (k->held[p] && r->s->calls[k->begun[p].at].what == group) {
            k->begun[p].lasts_ns = bounded(last_ns + least_ns - k->begun[p].start_ns);
            end(r, &k->begun[p], times, out);
            k->held[p] = false;
            k->next[p] = r->s->following[k->begun[p].at];
            make_ready(r->s, k, p);
        }
    k->with[group] = 0;
}

/* One whose processes have all begun it; where there is none, since they are in another order or the stretch cuts one, any. */
static void let_one_go(struct replay *r, struct ranks *k, const struct hec_replay_times *times,
                       struct hec_replay *out) {
    int any = -1;
    for (int p = 0; p < r->s->process_count; p++) {
        if (!k->held[p])
            continue;
        any = any < 0 ? p : any;
        if (whole(r->s, k, r->s->calls[k->begun[p].at].what)) {
            any = p;
            break;
        }
    }
    if (any >= 0)
        let_go(r, k, r->s->calls[k->begun[any].at].what, times, out);
}

static void replay_ranks(struct replay *r, struct ranks *k, const struct hec_replay_times *times,
                         struct hec_replay *out) {
    const struct hec_schedule *s = r->s;
    bool more = true;
    for (int p = 0; p < s->process_count; p++) {
        k->next[p] = s->first_call[p];
        make_ready(s, k, p);
    }
    while (more) {
        int p = take_first(k);
        if (p < 0) {
            more = false;
            for (int q = 0; q < s->process_count; q++)
                more = more || k->held[q];
            let_one_go(r, k, times, out);
            continue;
        }
        const struct hec_schedule_call *c = &s->calls[k->next[p]];
        begin(r, k->next[p], &k->begun[p]);
        if (c->flags & HEC_CALL_COLLECTIVE && !k->begun[p].change.beside) {
            k->held[p] = true;
            k->with[c->what]++;
            continue;
        }
        end(r, &k->begun[p], times, out);
        k->next[p] = s->following[k->next[p]];
        make_ready(s, k, p);
    }
}

/* Seconds of as much work as was recorded. */
static void divide(const struct hec_replay_edit *edits, size_t count, struct hec_replay *out) {
    out->work = 1;
    for (size_t i = 0; i < count; i++)
        out->work *= edits[i].work;
    out->seconds /= out->work;
    out->waited_s /= out->work;
    for (int d = 0; d < HEC_DEVICE_MAX; d++) {
        out->busy_s[d] /= out->work;
        out->kernels_s[d] /= out->work;
        out->active_s[d] /= out->work;
        out->work_s[d] /= out->work;
    }
}

/* Of the last calls as many as others refer to; with collectives one process may be ahead of another by all. */
static size_t mask_of(const struct hec_schedule *s) {
    size_t mask = 0;
    while (mask < (s->group_count ? s->count : s->reach))
        mask = 2 * mask + 1;
    return mask;
}

size_t hec_replay_bytes(const struct hec_schedule *schedule) {
    return (mask_of(schedule) + 1) * sizeof(struct ends);
}

int hec_replay_run(const struct hec_schedule *schedule, const struct hec_replay_edit *edits, size_t edit_count,
                   bool usual, const struct hec_replay_times *times, struct hec_replay *out) {
    int64_t first_ns = schedule->count ? schedule->calls[0].begin_ns : 0;
    struct replay r = {.s = schedule,
                       .edits = edits,
                       .usual = usual,
                       .edit_count = edit_count,
                       .mask = mask_of(schedule),
                       .last_ns = first_ns,
                       .recorded_last_ns = first_ns};
    struct ranks *ranks = schedule->group_count ? calloc(1, sizeof *ranks) : NULL;
    *out = (struct hec_replay){0};
    load_begin(&r.load);
    r.ends = malloc(hec_replay_bytes(schedule));
    if (ranks)
        ranks->with = calloc(schedule->group_count, sizeof *ranks->with);
    int err = r.ends && ((ranks && ranks->with) || !schedule->group_count) ? HEC_OK : HEC_ERR_NOMEM;
    if (!err && ranks)
        replay_ranks(&r, ranks, times, out);
    for (size_t i = 0; i < schedule->count && !err && !ranks; i++) {
        struct begun b;
        if (i + AHEAD < schedule->count)
            __builtin_prefetch(&schedule->calls[i + AHEAD]);
        begin(&r, i, &b);
        end(&r, &b, times, out);
    }
    load_end(&r.load, out);
    out->recorded_s = (double)(r.recorded_last_ns - first_ns) / HEC_NS_PER_S;
    out->seconds = (double)(r.last_ns - first_ns) / HEC_NS_PER_S;
    divide(edits, edit_count, out);
    if (ranks)
        free(ranks->with);
    free(ranks);
    free(r.ends);
    return err;
}
