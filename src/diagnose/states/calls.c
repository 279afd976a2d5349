#include "diagnose/states/calls.h"

#include "base/clock.h"
#include "base/trace.h"
#include "diagnose/timeline/kernel_class.h"
#include "diagnose/states/steady.h"
#include "diagnose/timeline/tables.h"
#include "diagnose/timeline/traced.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_LEAST_BYTES 1024.0 /* smaller ones are alike by chance */
#define ROUND_NS (10 * HEC_NS_PER_MS)
#define ROUND_COPIES 64
#define LAUNCH_SLACK_NS (100 * HEC_NS_PER_US) /* between the clocks of host and device: else the call is another's */
#define LATE_NS (2 * HEC_NS_PER_S)            /* where no steps show when the start-up is over */
#define CHAIN_LEAST 3
#define BURST_MOST 1e7 /* launches: 100 ms hold no more */
#define KNOWN_NAMES 64u

struct process {
    int32_t pid, rank;
    struct hec_steady span; /* of a device that it uses */
    bool used, bursts;
    int64_t first_ns; /* on any device */
    struct hec_call_total api[HEC_API_CLASS_COUNT];
    struct hec_call_total waits; /* SYNC activities; where the calls themselves were not recorded */
    struct hec_call_total late;
    double waited_s;
    int64_t drawn, drawn_named, drawn_point_wise;
};

/* A process on a device. */
struct use {
    bool any;
    struct hec_call_total launched[HEC_API_CLASS_COUNT]; /* calls that led to something there */
    int64_t unknown[HEC_API_CLASS_COUNT];                /* things there whose call is not known; not nodes of graphs */
};

struct device {
    int index;
    bool used;
    struct hec_steady span;
    int64_t first_ns;
    int64_t from_ns, to_ns; /* the span, as the device sees it: from the end of what was launched before it, to that of
                               what was launched in it */
    int64_t copies;         /* so far */
    int64_t small_known;    /* small copies whose call is known */
    struct hec_call_facts facts;
    int64_t chained; /* kernels in chains */
    struct back {    /* copies to the host: the last ones */
        int64_t number, end_ns;
        double bytes, seconds;
    } back[ROUND_COPIES];
    size_t back_count;
};

struct hec_calls {
    const struct hec_timeline_tables *tables;
    struct on_track {
        struct process *process;
        struct device *device;           /* STREAM */
        struct use *use;                 /* STREAM */
        int64_t launched_ns, graphed_ns; /* THREAD: the last such call that was seen */
        int64_t chain, chain_ns;         /* STREAM: point-wise kernels since the last other one */
    } * tracks;                          /* by id */
    size_t track_count;
    struct process *processes;
    size_t process_count;
    struct device *devices;
    size_t device_count;
    struct use *uses; /* process x device */
    struct known {
        uint32_t name; /* 0: none */
        bool named, point_wise;
    } known[KNOWN_NAMES];
    struct covered {
        int index;
        struct hec_intervals traced, tail;
    } * covered; /* as devices; apart, for pieces may come from another thread */
};

/* ---- before ---- */

static struct process *process_of(struct hec_calls *c, const struct hec_track *track) {
    for (size_t i = c->process_count; i-- > 0;)
        if (c->processes[i].pid == track->pid && c->processes[i].rank == track->rank)
            return &c->processes[i];
    struct process *p = &c->processes[c->process_count++];
    *p = (struct process){.pid = track->pid, .rank = track->rank};
    return p;
}

static struct device *device_of(const struct hec_calls *c, int index) {
    for (size_t i = 0; i < c->device_count; i++)
        if (c->devices[i].index == index)
            return &c->devices[i];
    return NULL;
}

static struct use *use_of(const struct hec_calls *c, const struct process *p, const struct device *d) {
    return &c->uses[(size_t)(p - c->processes) * c->device_count + (size_t)(d - c->devices)];
}

static int place_tracks(struct hec_calls *c) {
    int *indices = NULL;
    int err = hec_timeline_devices(c->tables, &indices, &c->device_count);
    c->devices = err ? NULL : calloc(c->device_count + 1, sizeof *c->devices);
    c->uses = err ? NULL : calloc((c->track_count + 1) * (c->device_count + 1), sizeof *c->uses);
    c->covered = err ? NULL : calloc(c->device_count + 1, sizeof *c->covered);
    for (size_t i = 0; c->devices && c->covered && i < c->device_count; i++)
        c->devices[i].index = c->devices[i].facts.device = c->covered[i].index = indices[i];
    free(indices);
    if (!c->devices || !c->uses || !c->covered) {
        c->device_count = 0;
        return HEC_ERR_NOMEM;
    }
    for (uint32_t i = 1; i < c->track_count; i++) {
        const struct hec_track *track = hec_timeline_track(c->tables, i);
        struct on_track *on = &c->tracks[i];
        if (!track)
            continue;
        *on = (struct on_track){
            .process = process_of(c, track), .launched_ns = HEC_TIME_UNKNOWN, .graphed_ns = HEC_TIME_UNKNOWN};
        if (track->kind == HEC_TRACK_STREAM && (on->device = device_of(c, track->device))) {
            on->use = use_of(c, on->process, on->device);
            on->use->any = true;
        }
    }
    return 0;
}

struct hec_calls *hec_calls_begin(const struct hec_timeline_tables *tables) {
    struct hec_calls *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->tables = tables;
    c->track_count = tables->track_count;
    c->tracks = calloc(c->track_count + 1, sizeof *c->tracks);
    c->processes = calloc(c->track_count + 1, sizeof *c->processes);
    if (!c->tracks || !c->processes || place_tracks(c)) {
        hec_calls_free(c);
        return NULL;
    }
    return c;
}

static void set_span(struct hec_calls *c, struct device *d, const struct hec_steady *span) {
    d->span = *span;
    d->from_ns = span->from_ns;
    d->to_ns = span->to_ns;
    for (size_t i = 0; i < c->track_count; i++)
        if (c->tracks[i].device == d && !c->tracks[i].process->span.known)
            c->tracks[i].process->span = *span;
}

void hec_calls_steps(struct hec_calls *c, const struct hec_device_steps *steps) {
    for (size_t i = 0; i < c->device_count; i++) {
        struct hec_steady span = hec_steady_counted(hec_device_steps_of(steps, c->devices[i].index));
        set_span(c, &c->devices[i], &span);
    }
}

void hec_calls_loop(struct hec_calls *c, int device, const struct hec_steady *loop) {
    struct device *d = device_of(c, device);
    if (d)
        set_span(c, d, loop);
}

/* ---- the pass ---- */

static void add_call(struct hec_call_total *total, int64_t ns) {
    total->count++;
    total->seconds += (double)ns / HEC_NS_PER_S;
}

static bool counts(const struct process *p, int64_t start_ns) {
    return p->span.known ? hec_steady_at(&p->span, start_ns) : p->used && start_ns >= p->first_ns;
}

static bool late(const struct process *p, int64_t start_ns) {
    return p->span.known ? hec_steady_at(&p->span, start_ns) : p->used && start_ns > p->first_ns + LATE_NS;
}

/* Of a burst that is not wholly inside the span, its part. */
static void take_burst(struct process *p, const struct hec_activity *a) {
    int64_t from = a->start_ns, to = a->end_ns, ns = to - from;
    if (p->span.known) {
        from = from < p->span.from_ns ? p->span.from_ns : from;
        to = to > p->span.to_ns ? p->span.to_ns : to;
    }
    double part = ns > 0 ? (double)(to - from) / (double)ns : counts(p, a->start_ns);
    if (to < from || !(a->amount >= 1) || a->amount > BURST_MOST)
        return;
    p->api[HEC_API_LAUNCH].count += llround(part * a->amount);
    p->api[HEC_API_LAUNCH].seconds += part * (double)ns * a->to / 255 / HEC_NS_PER_S;
}

/* CuPy: what was computed goes into an array that is there already, of the same type. What reads that array next may read it elsewhere,
 * as a stencil does, and no function that is fused assigns to one. */
static bool assigns(const char *name) {
    static const char copies[] = "cupy_copy__";
    const char *from = strncmp(name, copies, sizeof copies - 1) == 0 ? name + sizeof copies - 1 : NULL;
    const char *to = from ? strchr(from, '_') : NULL;
    size_t length = to ? (size_t)(to - from) : 0;
    return to && strlen(to + 1) == length && memcmp(from, to + 1, length) == 0;
}

static bool point_wise_class(enum hec_kernel_class class, const char *name) {
    if (class == HEC_KERNEL_CLASS_COPYING)
        return !assigns(name);
    return class == HEC_KERNEL_CLASS_ELEMENTWISE || class == HEC_KERNEL_CLASS_RANDOM;
}

static bool point_wise(const struct hec_calls *c, const struct hec_activity *a) {
    return a->kind == HEC_ACTIVITY_KERNEL &&
           point_wise_class(hec_timeline_kernel_class(c->tables, a->name),
                            hec_timeline_name(c->tables, hec_timeline_kernel_name(c->tables, a->name)));
}

/* By its name alone: of a compiler's kernels nobody knows whether two that follow each other could have been one. */
static bool fusible(const char *name) {
    return point_wise_class(hec_kernel_class_of(name), name) && !strstr(name, "fuse") && !strstr(name, "fusion");
}

/* A burst with the name of a kernel that was drawn. Few names come again and again. */
static void take_drawn(struct hec_calls *c, struct process *p, uint32_t name) {
    struct known *known = &c->known[name % KNOWN_NAMES];
    if (known->name != name) {
        const char *text = hec_timeline_name(c->tables, name);
        *known = (struct known){name, strcmp(text, "?") != 0, fusible(text)};
    }
    p->drawn++;
    p->drawn_named += known->named;
    p->drawn_point_wise += known->point_wise;
}

static bool waits(const struct hec_activity *a, int64_t ns) {
    return a->detail == HEC_API_SYNC ||
           (ns >= HEC_TRACE_BLOCKED_NS &&
            (a->detail == HEC_API_LAUNCH || a->detail == HEC_API_GRAPH || a->detail == HEC_API_COPY));
}

static void take_host(struct hec_calls *c, struct process *p, const struct hec_activity *a) {
    int64_t ns = a->end_ns - a->start_ns;
    if (a->kind == HEC_ACTIVITY_SYNC) {
        if (a->detail != HEC_SYNC_STREAM_WAIT && counts(p, a->start_ns)) {
            add_call(&p->waits, ns);
            p->waited_s += (double)ns / HEC_NS_PER_S;
        }
    } else if (a->kind == HEC_ACTIVITY_BURST) {
        p->bursts = true;
        take_burst(p, a);
        if (a->name && counts(p, a->start_ns))
            take_drawn(c, p, a->name);
    } else if (a->kind == HEC_ACTIVITY_API && a->detail < HEC_API_CLASS_COUNT && !(a->flags & HEC_ACTIVITY_INFERRED)) {
        if (counts(p, a->start_ns)) {
            add_call(&p->api[a->detail], ns);
            p->waited_s += waits(a, ns) ? (double)ns / HEC_NS_PER_S : 0;
        }
        if (a->detail == HEC_API_MODULE && late(p, a->start_ns))
            add_call(&p->late, ns);
    }
}

/* A call that began after what it is said to have led to is another's. */
static bool known_call(const struct hec_activity *a) {
    return a->launch_ns >= -HEC_TIMELINE_TIME_MAX && a->launch_ns <= a->start_ns + LAUNCH_SLACK_NS &&
           a->launch_end_ns >= a->launch_ns && a->launch_end_ns <= HEC_TIMELINE_TIME_MAX;
}

/* Length of the call that led to an activity, -1 unknown. Each counts once: the nodes of a graph have one, and may be
 * seen between those of another. */
static int64_t take_call(struct hec_calls *c, struct on_track *on, const struct hec_activity *a) {
    static const enum hec_api_class of[HEC_ACTIVITY_KIND_COUNT] = {
        [HEC_ACTIVITY_KERNEL] = HEC_API_LAUNCH,
        [HEC_ACTIVITY_COPY] = HEC_API_COPY,
        [HEC_ACTIVITY_MEMSET] = HEC_API_MEMSET,
        [HEC_ACTIVITY_GRAPH] = HEC_API_GRAPH,
    };
    struct on_track *thread = a->launch_track && a->launch_track < c->track_count ? &c->tracks[a->launch_track] : NULL;
    bool graph = a->kind == HEC_ACTIVITY_GRAPH || (a->flags & HEC_ACTIVITY_IN_GRAPH);
    enum hec_api_class class = graph ? HEC_API_GRAPH : of[a->kind];
    if (!known_call(a)) {
        on->use->unknown[class] += !(a->flags & HEC_ACTIVITY_IN_GRAPH);
        return -1;
    }
    int64_t ns = a->launch_end_ns - a->launch_ns;
    if (thread && (graph ? a->launch_ns <= thread->graphed_ns : a->launch_ns == thread->launched_ns))
        return ns;
    if (thread)
        *(graph ? &thread->graphed_ns : &thread->launched_ns) = a->launch_ns;
    add_call(&on->use->launched[class], ns);
    return ns;
}

static bool on_card(uint8_t memory) {
    return memory == HEC_MEMORY_DEVICE || memory == HEC_MEMORY_ARRAY;
}

static void find_round_trip(struct device *d, const struct hec_activity *a, double seconds) {
    size_t kept = d->back_count < ROUND_COPIES ? d->back_count : ROUND_COPIES;
    for (size_t i = 1; i <= kept; i++) {
        struct back *back = &d->back[(d->back_count - i) % ROUND_COPIES];
        if (d->copies - back->number > ROUND_COPIES)
            return;
        if (back->bytes != a->amount || a->start_ns < back->end_ns || a->start_ns - back->end_ns > ROUND_NS)
            continue;
        d->facts.round_trips++;
        d->facts.round_trip_bytes += back->bytes + a->amount;
        d->facts.round_trip_s += back->seconds + seconds;
        back->bytes = NAN; /* comes back once */
        return;
    }
}

static void take_copy(struct device *d, const struct hec_activity *a, int64_t call_ns) {
    struct hec_call_facts *f = &d->facts;
    bool up = hec_memory_of_host(a->from) && on_card(a->to), down = on_card(a->from) && hec_memory_of_host(a->to);
    double seconds = (double)(a->end_ns - a->start_ns) / HEC_NS_PER_S;
    enum hec_state_wait wait = hec_state_wait_of(a);
    d->copies++;
    if (!(up || down) || !(a->amount >= 0))
        return;
    uint8_t host = up ? a->from : a->to;
    f->reads += wait == HEC_STATE_WAIT_READ;
    if (wait == HEC_STATE_WAIT_SMALL) {
        f->small_copies++;
        f->small_copy_s += seconds;
        f->small_call_s += call_ns >= 0 ? (double)call_ns / HEC_NS_PER_S : 0;
        d->small_known += call_ns >= 0;
    }
    f->pageable_bytes += host == HEC_MEMORY_PAGEABLE ? a->amount : 0;
    f->pageable_s += host == HEC_MEMORY_PAGEABLE ? seconds : 0;
    f->pinned_bytes += host == HEC_MEMORY_PINNED ? a->amount : 0;
    f->pinned_s += host == HEC_MEMORY_PINNED ? seconds : 0;
    if (up && a->amount >= ROUND_LEAST_BYTES)
        find_round_trip(d, a, seconds);
    if (down && a->amount >= ROUND_LEAST_BYTES)
        d->back[d->back_count++ % ROUND_COPIES] = (struct back){d->copies, a->end_ns, a->amount, seconds};
}

static void end_chain(struct on_track *on) {
    if (on->chain >= CHAIN_LEAST) {
        on->device->facts.chains++;
        on->device->facts.chain_s += (double)on->chain_ns / HEC_NS_PER_S;
        on->device->chained += on->chain;
    }
    on->chain = on->chain_ns = 0;
}

static bool device_counts(struct device *d, const struct hec_activity *a) {
    if (!d->span.known)
        return true;
    if (!known_call(a))
        return a->start_ns >= d->from_ns && a->start_ns < d->to_ns;
    if (a->launch_ns < d->span.from_ns) {
        d->from_ns = a->end_ns > d->from_ns ? a->end_ns : d->from_ns;
        return false;
    }
    if (a->launch_ns < d->span.to_ns)
        d->to_ns = a->end_ns > d->to_ns ? a->end_ns : d->to_ns;
    return a->launch_ns < d->span.to_ns;
}

static void take_device(struct hec_calls *c, struct on_track *on, const struct hec_activity *a) {
    struct process *p = on->process;
    struct device *d = on->device;
    if (!p->used)
        p->first_ns = a->start_ns;
    if (!d->used)
        d->first_ns = a->start_ns;
    p->used = d->used = true;
    if (!device_counts(d, a) || (a->kind == HEC_ACTIVITY_GRAPH && (a->flags & HEC_ACTIVITY_INFERRED)))
        return;
    int64_t call_ns = take_call(c, on, a);
    if (a->kind == HEC_ACTIVITY_COPY)
        take_copy(d, a, call_ns);
    if (hec_timeline_communicates(c->tables, a))
        for (size_t i = 0; i < c->track_count; i++) /* what comes after it may wait for it, on any stream */
            if (c->tracks[i].device == d)
                end_chain(&c->tracks[i]);
    if (point_wise(c, a)) {
        on->chain++;
        on->chain_ns += a->end_ns - a->start_ns;
    } else {
        end_chain(on);
    }
}

void hec_calls_activities(struct hec_calls *c, const struct hec_activity *a, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct on_track *on = a[i].track < c->track_count ? &c->tracks[a[i].track] : NULL;
        if (!on || !on->process || !hec_timeline_plausible(&a[i]))
            continue;
        if (!(HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a[i].kind)))
            take_host(c, on->process, &a[i]);
        else if (on->device)
            take_device(c, on, &a[i]);
    }
}

int hec_calls_piece(struct hec_calls *c, int device, const struct hec_state_piece *piece) {
    struct covered *covered = c->covered, *end = covered + c->device_count;
    while (covered < end && covered->index != device)
        covered++;
    if (covered == end || !piece->traced)
        return 0;
    bool tail = piece->state == HEC_STATE_TAIL;
    return hec_intervals_append(tail ? &covered->tail : &covered->traced, piece->start_ns, piece->end_ns);
}

/* ---- after ---- */

void hec_calls_end(struct hec_calls *c) {
    for (size_t i = 0; i < c->track_count; i++)
        if (c->tracks[i].device)
            end_chain(&c->tracks[i]);
}

static void add_total(struct hec_call_total *to, const struct hec_call_total *from) {
    to->count += from->count;
    to->seconds += from->seconds;
}

static void add_process(const struct process *p, const struct use *use, struct hec_call_facts *out) {
    for (int i = 0; i < HEC_API_CLASS_COUNT; i++) {
        struct hec_call_total made = i == HEC_API_SYNC ? p->waits : use->launched[i];
        if (use->unknown[i]) {
            made.count += use->unknown[i];
            made.seconds *= made.count > use->unknown[i] ? (double)made.count / (double)use->launched[i].count : NAN;
        }
        out->graph_launches += i == HEC_API_GRAPH ? made.count : 0;
        /* of a process with bursts, what CUPTI saw is not among them */
        bool both = p->bursts && (i == HEC_API_LAUNCH || i == HEC_API_GRAPH);
        if (both || made.count >= p->api[i].count)
            add_total(&out->api[i], &made);
        if (both || made.count < p->api[i].count)
            add_total(&out->api[i], &p->api[i]);
    }
    out->late_loads += p->late.count;
    out->late_load_s += p->late.seconds;
    out->waited_s += p->waited_s;
    out->drawn += p->drawn;
    out->drawn_named += p->drawn_named;
    out->drawn_point_wise += p->drawn_point_wise;
}

/* Of the span; where it is not known, from the first on the device to the last. */
static int64_t traced_ns(const struct hec_calls *c, const struct device *d) {
    struct covered *covered = &c->covered[d - c->devices];
    if (!d->used)
        return 0;
    if (!d->span.known)
        return hec_intervals_within(&covered->traced, d->first_ns, HEC_TIMELINE_TIME_MAX);
    return hec_intervals_within(&covered->traced, d->from_ns, d->to_ns) +
           hec_intervals_within(&covered->tail, d->from_ns, d->to_ns);
}

void hec_calls_of(const struct hec_calls *c, int device, struct hec_call_facts *out) {
    const struct device *d = device_of(c, device);
    *out = (struct hec_call_facts){.device = device, .chain_mean = NAN};
    if (!d)
        return;
    *out = d->facts;
    for (size_t i = 0; i < c->process_count; i++) {
        const struct use *use = use_of(c, &c->processes[i], d);
        if (use->any)
            add_process(&c->processes[i], use, out);
    }
    int64_t traced = traced_ns(c, d);
    out->traced_s = (double)traced / HEC_NS_PER_S;
    if (d->span.known && d->to_ns > d->from_ns)
        out->steps = (double)d->span.steps * (double)traced / (double)(d->to_ns - d->from_ns);
    out->chain_mean = out->chains ? (double)d->chained / (double)out->chains : NAN;
    if (out->small_copies)
        out->small_call_s *= d->small_known ? (double)out->small_copies / (double)d->small_known : NAN;
}

void hec_calls_free(struct hec_calls *c) {
    if (!c)
        return;
    for (size_t i = 0; c->covered && i < c->device_count; i++) {
        hec_intervals_free(&c->covered[i].traced);
        hec_intervals_free(&c->covered[i].tail);
    }
    free(c->covered);
    free(c->tracks);
    free(c->processes);
    free(c->devices);
    free(c->uses);
    free(c);
}
