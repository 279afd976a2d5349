#include "diagnose/states/state.h"

#include "base/clock.h"
#include "diagnose/states/steady.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/states/device.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool idle;
} states[HEC_STATE_COUNT] = {
#define HEC_STATE(id, name, idle) [HEC_STATE_##id] = {name, idle},
#include "diagnose/states/state.def"
};

const char *hec_state_name(enum hec_state state) {
    return (unsigned)state < HEC_STATE_COUNT ? states[state].name : "?";
}

bool hec_state_idle(enum hec_state state) {
    return (unsigned)state < HEC_STATE_COUNT && states[state].idle;
}

#define RECENT_NS (50 * HEC_NS_PER_MS) /* five samples */

/* One process, by pid and rank (ranks of an import may share a pid). */
struct process {
    int32_t pid, rank;
    struct hec_host_thread *main, *sampled; /* NULL: it has no thread that is known, no samples */
    struct hec_host_thread *launches;       /* what was known to last; NULL: none */
    bool used;                              /* a device */
    bool trains;                            /* steps of an optimizer were found */
    int64_t loop_ns;                        /* a profiler's window: its first step begins; INT64_MAX: none */
};

struct hec_states {
    const struct hec_pass *pass;
    const struct hec_timeline_tables *tables; /* of it */
    struct hec_state_limits limits;
    struct hec_state_visitor visitor;
    struct process *processes;
    size_t process_count;
    struct on_track {
        struct process *process;
        struct hec_state_device *device; /* STREAM */
        struct hec_host_thread *thread;  /* THREAD */
    } * tracks;                          /* by id */
    struct hec_state_device *devices;    /* by index, ascending */
    size_t device_count;
    uint8_t *labels; /* by name id: of a phase of that name */
    struct hec_stacks stacks;
};

/* ---- before ---- */

static struct process *process_of(struct hec_states *b, const struct hec_track *track) {
    for (size_t i = b->process_count; i-- > 0;)
        if (b->processes[i].pid == track->pid && b->processes[i].rank == track->rank)
            return &b->processes[i];
    struct process *p = &b->processes[b->process_count++];
    *p = (struct process){.pid = track->pid, .rank = track->rank, .loop_ns = INT64_MAX};
    for (size_t i = 0; i < b->pass->survey.list_count; i++) {
        const struct hec_step_list *steps = &b->pass->survey.lists[i];
        p->trains |= steps->pid == p->pid && steps->source == HEC_STEP_OPTIMIZER;
        if (steps->pid == p->pid && hec_steps_of_window(steps->source) && steps->list[0].start_ns < p->loop_ns)
            p->loop_ns = steps->list[0].start_ns;
    }
    return p;
}

/* The main thread has the id of its process; where none has, the one seen first. */
static int prepare_threads(struct hec_states *b) {
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 1; i < b->tables->track_count; i++) {
            const struct hec_track *track = hec_timeline_track(b->tables, i);
            if (!track)
                continue;
            struct on_track *on = &b->tracks[i];
            if (!pass)
                on->process = process_of(b, track);
            if (!pass && track->kind == HEC_TRACK_THREAD && !(on->thread = hec_host_thread_new()))
                return HEC_ERR_NOMEM;
            if (track->kind == HEC_TRACK_THREAD && !on->process->main && (pass || track->stream == track->pid))
                on->process->main = on->thread;
        }
    return 0;
}

/* Before a process was traced it had used no device, and after its trace has ended it uses none any more: that time is
 * known, although no window covers it. */
static int with_ends(const struct hec_states *b, const struct hec_pids *pids, struct hec_intervals *traced) {
    struct hec_intervals out = {0};
    int64_t first = INT64_MAX, last = INT64_MIN;
    if (traced->everywhere)
        return 0;
    for (size_t i = 0; i < b->pass->windows.count; i++)
        if (hec_pids_have(pids, b->pass->windows.list[i].pid)) {
            first = b->pass->windows.list[i].start_ns < first ? b->pass->windows.list[i].start_ns : first;
            last = b->pass->windows.list[i].end_ns > last ? b->pass->windows.list[i].end_ns : last;
        }
    for (size_t i = 0; i < b->tables->tracer_count; i++) {
        const struct hec_tracer *t = &b->tables->tracers[i];
        if (!hec_pids_have(pids, t->pid) || t->last_ns <= t->first_ns)
            continue;
        first = hec_tracer_since(t, first);
        last = t->last_ns > last ? t->last_ns : last;
    }
    int err = hec_intervals_append(&out, -HEC_TIMELINE_TIME_MAX - 1, first);
    for (size_t i = 0; i < traced->count && !err; i++)
        err = hec_intervals_append(&out, traced->list[i].start_ns, traced->list[i].end_ns);
    if (!err)
        err = hec_intervals_append(&out, last, HEC_TIMELINE_TIME_MAX + 1);
    hec_intervals_free(traced);
    *traced = out;
    return err;
}

static int prepare_device(struct hec_states *b, struct hec_state_device *d) {
    struct hec_pids pids;
    int err = hec_timeline_pids(b->tables, d->device, &pids);
    if (err)
        return err;
    for (uint32_t i = 1; i < b->tables->track_count; i++) {
        const struct hec_track *track = hec_timeline_track(b->tables, i);
        if (track && track->kind == HEC_TRACK_STREAM && track->device == d->device)
            b->tracks[i].device = d;
    }
    err = hec_windows_traced(&b->pass->windows, b->tables->tracers, b->tables->tracer_count, hec_pids_have, &pids,
                             &d->traced);
    if (!err)
        err = with_ends(b, &pids, &d->traced);
    free(pids.list);
    return err;
}

static int prepare_devices(struct hec_states *b) {
    int *indices = NULL;
    size_t count = 0;
    int err = hec_timeline_devices(b->tables, &indices, &count);
    if (!err && !(b->devices = calloc(count + 1, sizeof *b->devices)))
        err = HEC_ERR_NOMEM;
    for (size_t i = 0; i < count && !err; i++) {
        struct hec_state_device *d = &b->devices[b->device_count++];
        hec_state_device_init(d, indices[i], &b->limits, &b->visitor, &b->stacks);
        err = prepare_device(b, d);
    }
    free(indices);
    return err;
}

static int prepare(struct hec_states *b) {
    const struct hec_timeline_tables *t = b->tables;
    b->processes = calloc(t->track_count + 1, sizeof *b->processes);
    b->tracks = calloc(t->track_count + 1, sizeof *b->tracks);
    b->labels = malloc(t->name_count + 1);
    if (!b->processes || !b->tracks || !b->labels)
        return HEC_ERR_NOMEM;
    for (uint32_t i = 0; i < t->name_count; i++) {
        const char *name = hec_timeline_name(t, i);
        b->labels[i] = strcmp(name, "data") == 0         ? HEC_HOST_DATA
                       : strcmp(name, "checkpoint") == 0 ? HEC_HOST_CHECKPOINT
                       : strcmp(name, "compile") == 0    ? HEC_HOST_MODULE
                                                         : HEC_HOST_NOTHING;
    }
    int err = hec_stacks_begin(&b->stacks, t);
    if (!err)
        err = prepare_threads(b);
    return err ? err : prepare_devices(b);
}

/* ---- the pass ---- */

static enum hec_host_label label_of(const struct hec_states *b, const struct hec_activity *a) {
    static const enum hec_host_label calls[HEC_API_CLASS_COUNT] = {
        [HEC_API_OTHER] = HEC_HOST_NOTHING, [HEC_API_LAUNCH] = HEC_HOST_LAUNCH, [HEC_API_GRAPH] = HEC_HOST_LAUNCH,
        [HEC_API_COPY] = HEC_HOST_COPY,     [HEC_API_MEMSET] = HEC_HOST_LAUNCH, [HEC_API_SYNC] = HEC_HOST_SYNC,
        [HEC_API_ALLOC] = HEC_HOST_ALLOC,   [HEC_API_FREE] = HEC_HOST_ALLOC,    [HEC_API_MODULE] = HEC_HOST_MODULE,
    };
    switch (a->kind) {
    case HEC_ACTIVITY_API:
        return a->detail < HEC_API_CLASS_COUNT ? calls[a->detail] : HEC_HOST_NOTHING;
    case HEC_ACTIVITY_SYNC:
        return a->detail == HEC_SYNC_STREAM_WAIT ? HEC_HOST_NOTHING : HEC_HOST_SYNC;
    case HEC_ACTIVITY_PHASE:
        return a->name < b->tables->name_count ? b->labels[a->name] : HEC_HOST_NOTHING;
    default:
        return HEC_HOST_NOTHING;
    }
}

enum hec_state_wait hec_state_wait_of(const struct hec_activity *a) {
    bool crosses = hec_memory_of_host(a->from) != hec_memory_of_host(a->to) && a->from != HEC_MEMORY_UNKNOWN &&
                   a->to != HEC_MEMORY_UNKNOWN;
    if (!crosses || !(a->amount >= 0))
        return HEC_STATE_WAIT_OTHER;
    if (hec_memory_of_host(a->to) && a->amount <= HEC_STATE_READ_BYTES)
        return HEC_STATE_WAIT_READ;
    return a->amount < HEC_STATE_SMALL_BYTES ? HEC_STATE_WAIT_SMALL : HEC_STATE_WAIT_DATA;
}

static int take_host(struct hec_states *b, struct on_track *on, const struct hec_activity *a) {
    enum hec_host_label label = label_of(b, a);
    if (!on->thread)
        return 0;
    if (a->kind == HEC_ACTIVITY_STACK) {
        if (!on->process->sampled || on->thread == on->process->main)
            on->process->sampled = on->thread;
        return hec_host_sampled(on->thread, a->start_ns, a->end_ns - a->start_ns, a->name);
    }
    on->thread->seen = true;
    if (label == HEC_HOST_COPY && hec_state_wait_of(a))
        hec_host_launched(on->thread, a->start_ns, a->end_ns, true, hec_state_wait_of(a));
    return label == HEC_HOST_NOTHING ? 0 : hec_host_hold(on->thread, label, a->start_ns, a->end_ns);
}

static int lane_of(const struct hec_states *b, const struct hec_activity *a) {
    if (a->kind == HEC_ACTIVITY_KERNEL)
        return hec_timeline_kernel_class(b->tables, a->name);
    if (a->kind == HEC_ACTIVITY_GRAPH && (a->flags & HEC_ACTIVITY_INFERRED))
        return HEC_KERNEL_CLASS_OTHER;
    bool within = a->from == HEC_MEMORY_DEVICE && a->to == HEC_MEMORY_DEVICE && !(a->flags & HEC_ACTIVITY_PEER);
    if (a->kind == HEC_ACTIVITY_COPY)
        return HEC_STATE_LANE_COPY + (within ? HEC_STATE_WAIT_WITHIN : (int)hec_state_wait_of(a));
    return a->kind == HEC_ACTIVITY_GRAPH ? (int)HEC_KERNEL_CLASS_GRAPH : HEC_STATE_LANE_COPY + HEC_STATE_WAIT_WITHIN;
}

static int64_t plausible(int64_t t_ns) {
    return t_ns < -HEC_TIMELINE_TIME_MAX || t_ns > HEC_TIMELINE_TIME_MAX ? HEC_TIME_UNKNOWN : t_ns;
}

/* The thread whose stacks explain why the device waited: the one that launches, if it runs Python as the main thread does. Threads that
 * only call back into it now and then (of autograd) have few samples, and old ones. */
static const struct hec_host_thread *explains(const struct process *process) {
    const struct hec_host_thread *usual = process->sampled, *launches = process->launches;
    if (!launches || launches == usual || !launches->sample_count)
        return usual;
    if (!usual || !usual->sample_count)
        return launches;
    return launches->samples[launches->sample_count - 1].t_ns > usual->samples[usual->sample_count - 1].t_ns - RECENT_NS
               ? launches
               : usual;
}

static int take_device(struct hec_states *b, struct on_track *on, const struct hec_activity *a) {
    struct hec_host_thread *thread =
        a->launch_track < b->tables->track_count ? b->tracks[a->launch_track].thread : NULL;
    if (thread)
        on->process->launches = thread;
    struct hec_state_event event = {
        .start_ns = a->start_ns,
        .end_ns = a->end_ns,
        .launch_ns = plausible(a->launch_ns),
        .launch_end_ns = plausible(a->launch_end_ns),
        .lane = lane_of(b, a),
        .first = !on->process->used,
        .in_loop = a->start_ns >= on->process->loop_ns,
        .kernel = (a->kind == HEC_ACTIVITY_KERNEL && !(a->flags & HEC_ACTIVITY_IN_GRAPH)) ||
                  ((a->flags & HEC_ACTIVITY_INFERRED) && a->kind == HEC_ACTIVITY_GRAPH && a->detail == HEC_API_LAUNCH),
        .thread = thread,
        .trains = on->process->trains,
        .main = on->process->main,
        .sampled = explains(on->process),
    };
    on->process->used = true;
    bool copy = a->kind == HEC_ACTIVITY_COPY;
    bool goes_on = !copy && (a->flags & HEC_ACTIVITY_INFERRED) && a->launch_end_ns >= a->start_ns; /* nothing new */
    if (thread && event.launch_ns != HEC_TIME_UNKNOWN && !goes_on)
        hec_host_launched(thread, event.launch_ns, event.launch_end_ns, copy,
                          copy ? hec_state_wait_of(a) : HEC_STATE_WAIT_OTHER);
    return hec_state_device_add(on->device, &event, b->pass->input->end_ns > 0 ? 0 : a->start_ns);
}

static int take_activities(void *to, const struct hec_activity *a, size_t count) {
    struct hec_states *b = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        struct on_track *on = a[i].track < b->tables->track_count ? &b->tracks[a[i].track] : NULL;
        if (!(hec_stages[HEC_STAGE_STATES].kinds & HEC_ACTIVITY_BIT(a[i].kind)) || !on || !on->process ||
            !hec_timeline_plausible(&a[i]))
            continue;
        if (!(HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a[i].kind)))
            err = take_host(b, on, &a[i]);
        else if (on->device)
            err = take_device(b, on, &a[i]);
    }
    return err;
}

int hec_states_begin(const struct hec_pass *pass, const struct hec_state_limits *limits,
                     const struct hec_state_visitor *visitor, struct hec_states **out,
                     struct hec_pass_consumer *consumer) {
    struct hec_states *b = *out = calloc(1, sizeof *b);
    if (!b)
        return HEC_ERR_NOMEM;
    b->pass = pass;
    b->tables = &pass->tables;
    b->limits = limits ? *limits : HEC_STATE_LIMITS_DEFAULT;
    b->visitor = *visitor;
    *consumer = hec_stage_consumer(HEC_STAGE_STATES, b, take_activities);
    int err = prepare(b);
    if (err) {
        hec_states_abandon(b);
        *out = NULL;
    }
    return err;
}

int hec_states_end(struct hec_states *b) {
    int64_t end_ns = b->pass->input->end_ns > 0 ? b->pass->input->end_ns : INT64_MIN;
    int err = 0;
    for (size_t i = 1; i < b->tables->track_count && !err; i++)
        if (b->tracks[i].thread)
            err = hec_host_advance(b->tracks[i].thread, INT64_MAX);
    for (size_t i = 0; i < b->device_count && !err; i++)
        err = hec_state_device_end(&b->devices[i], end_ns);
    hec_states_abandon(b);
    return err;
}

void hec_states_abandon(struct hec_states *b) {
    if (!b)
        return;
    for (size_t i = 0; b->tracks && i < b->tables->track_count; i++)
        hec_host_thread_free(b->tracks[i].thread);
    for (size_t i = 0; i < b->device_count; i++)
        hec_state_device_free(&b->devices[i]);
    free(b->tracks);
    free(b->processes);
    free(b->devices);
    free(b->labels);
    hec_stacks_free(&b->stacks);
    free(b);
}
