#include "diagnose/replay/schedule.h"

#include "base/hash.h"
#include "base/list.h"
#include "diagnose/timeline/occupancy.h"
#include "diagnose/replay/cadence.h"
#include "diagnose/replay/parts.h"
#include "diagnose/states/steady.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PHASES_MAX (1u << 20)
#define LEAD_MOST 8192u   /* records before the stretch: of what is in the queue when it begins */
#define MADE_OF 0.9       /* of the stretch is in steps that were found in the kernels */
#define BEYOND_MOST 8192u /* operations after it: of what is in the queue when it ends */
#define GRAPHS_LEAST 16   /* launches of graphs that say how long one takes */

struct hec_schedule_builder {
    const struct hec_pass *pass;
    struct hec_schedule out;
    size_t most, capacity, beyond;
    bool leading; /* no call of the stretch has come */
    double
        graphs_ns; /* in launches of graphs outside of windows; shorter ones than HEC_LAUNCH_BLOCKED_NS lie in bursts */
    size_t graphs;
    struct hec_cadence outside; /* the same launches */
    bool whole;                 /* all operations came with their calls */
    struct hec_schedule_phase *phases;
    size_t phase_count, phase_capacity;
    uint32_t *stream_of; /* by track: stream + 1 */
    uint8_t *process_of; /* by track: process */
};

/* ---- the stretch ---- */

static void intersect(struct hec_schedule *out, int64_t from_ns, int64_t to_ns, int64_t start_ns, int64_t end_ns) {
    start_ns = start_ns > from_ns ? start_ns : from_ns;
    end_ns = end_ns < to_ns ? end_ns : to_ns;
    if (end_ns - start_ns > out->to_ns - out->from_ns) {
        out->from_ns = start_ns;
        out->to_ns = end_ns;
    }
}

/* Glimpses of ranks begin a little after each other: what all of them have in common, where that is most of the stretch. */
static void meet(struct hec_schedule *out, const struct hec_windows *windows) {
    int64_t from_ns = out->from_ns, to_ns = out->to_ns;
    for (size_t i = 0; i < windows->count; i++) {
        const struct hec_window *w = &windows->list[i];
        int64_t start_ns = w->start_ns > from_ns ? w->start_ns : from_ns,
                end_ns = w->end_ns < to_ns ? w->end_ns : to_ns;
        if (2 * (end_ns - start_ns) > out->to_ns - out->from_ns) {
            from_ns = start_ns;
            to_ns = end_ns;
        }
    }
    out->from_ns = from_ns;
    out->to_ns = to_ns;
}

/* From the end of a step to that of another. */
static void snap(struct hec_schedule *out, const struct hec_step_list *steps) {
    int64_t from_ns = 0, to_ns = 0, count = -1;
    for (size_t i = 0; i < steps->count; i++) {
        int64_t end_ns = steps->list[i].end_ns;
        if (end_ns < out->from_ns || end_ns > out->to_ns)
            continue;
        if (count++ < 0)
            from_ns = end_ns;
        to_ns = end_ns;
    }
    if (count <= 0)
        return;
    out->from_ns = from_ns;
    out->to_ns = to_ns;
    out->steps = count;
}

/* To the steady part of steps that were found in the kernels, where they are what the stretch is made of. NULL: it stays as it is. */
static const struct hec_step_list *narrow(struct hec_schedule *out, const struct hec_step_list *found) {
    struct hec_steady steady = hec_steady_of(found);
    struct hec_schedule narrower = *out;
    int64_t steps_ns = 0;
    if (!steady.known)
        return NULL;
    narrower.from_ns = narrower.to_ns = 0;
    intersect(&narrower, steady.from_ns, steady.to_ns, out->from_ns, out->to_ns);
    snap(&narrower, found);
    for (size_t i = 0; i < found->count; i++)
        if (found->list[i].start_ns >= narrower.from_ns && found->list[i].end_ns <= narrower.to_ns)
            steps_ns += found->list[i].end_ns - found->list[i].start_ns;
    if (narrower.steps == 0 || (double)steps_ns < MADE_OF * (double)(narrower.to_ns - narrower.from_ns))
        return NULL;
    *out = narrower;
    return found;
}

/* The stretch as far as there are calls: without windows and steps it has no end of its own. */
static void whole_stretch(struct hec_schedule *out) {
    int64_t first_ns = out->to_ns, last_ns = out->from_ns;
    for (size_t i = 0; i < out->count; i++) {
        first_ns = out->calls[i].begin_ns < first_ns ? out->calls[i].begin_ns : first_ns;
        last_ns = out->calls[i].end_ns > last_ns ? out->calls[i].end_ns : last_ns;
    }
    out->step_from_ns = first_ns > out->from_ns ? first_ns : out->from_ns;
    out->step_to_ns = last_ns < out->to_ns ? last_ns : out->to_ns;
}

/* Of the steps in the stretch the one whose length is nearest to their mean. */
static void choose_step(struct hec_schedule *out, const struct hec_step_list *steps) {
    if (out->steps == 0) {
        whole_stretch(out);
        return;
    }
    out->step_from_ns = out->from_ns;
    out->step_to_ns = out->to_ns;
    int64_t mean_ns = (out->to_ns - out->from_ns) / out->steps, best_ns = INT64_MAX;
    for (size_t i = 1; i < steps->count; i++) {
        int64_t from_ns = steps->list[i - 1].end_ns, to_ns = steps->list[i].end_ns;
        if (from_ns < out->from_ns || from_ns >= to_ns || to_ns > out->to_ns)
            continue;
        int64_t off_ns = to_ns - from_ns > mean_ns ? to_ns - from_ns - mean_ns : mean_ns - (to_ns - from_ns);
        if (off_ns >= best_ns)
            continue;
        best_ns = off_ns;
        out->step_from_ns = from_ns;
        out->step_to_ns = to_ns;
    }
}

/* The longest part of the steady steps that was traced. */
static void choose(struct hec_schedule_builder *b) {
    const struct hec_pass *pass = b->pass;
    const struct hec_step_list *steps = hec_step_survey_best(&pass->survey, &pass->tables);
    struct hec_steady steady = hec_steady_of(steps);
    int64_t from_ns = steady.known ? steady.from_ns : 0, to_ns = steady.known ? steady.to_ns : INT64_MAX / 2;
    for (size_t i = 0; i < pass->windows.count; i++) {
        const struct hec_window *w = &pass->windows.list[i];
        if (!steady.known || w->pid == steps->pid)
            intersect(&b->out, from_ns, to_ns, w->start_ns, w->end_ns);
    }
    if (pass->windows.count == 0)
        intersect(&b->out, from_ns, to_ns, from_ns, to_ns);
    meet(&b->out, &pass->windows);
    if (steady.known)
        snap(&b->out, steps);
}

/* ---- taking ---- */

/* -1: no room for another. */
static int process_of(struct hec_schedule_builder *b, const struct hec_track *track) {
    if (b->process_of[track->id])
        return b->process_of[track->id] - 1;
    struct hec_schedule *out = &b->out;
    int p = 0;
    while (p < out->process_count && out->pid[p] != track->pid)
        p++;
    if (p == UINT8_MAX)
        return -1;
    if (p == out->process_count)
        out->pid[out->process_count++] = track->pid;
    b->process_of[track->id] = (uint8_t)(p + 1);
    return p;
}

static int stream_of(struct hec_schedule_builder *b, const struct hec_track *track, uint16_t *stream) {
    struct hec_schedule *out = &b->out;
    if (!b->stream_of[track->id]) {
        struct hec_schedule_stream *larger = realloc(out->streams, (out->stream_count + 1) * sizeof *larger);
        if (!larger)
            return HEC_ERR_NOMEM;
        out->streams = larger;
        out->streams[out->stream_count++] = (struct hec_schedule_stream){track->pid, track->device, track->id};
        b->stream_of[track->id] = (uint32_t)out->stream_count;
    }
    *stream = (uint16_t)(b->stream_of[track->id] - 1);
    return HEC_OK;
}

static uint32_t kib(double bytes) {
    return bytes > 0 && bytes < 4e12 ? (uint32_t)((bytes + 1023) / 1024) : 0;
}

static uint8_t kind_of(const struct hec_activity *a) {
    static const uint8_t device[HEC_ACTIVITY_KIND_COUNT] = {
        [HEC_ACTIVITY_KERNEL] = HEC_CALL_KERNEL, [HEC_ACTIVITY_GRAPH] = HEC_CALL_KERNEL,
        [HEC_ACTIVITY_COPY] = HEC_CALL_COPY,     [HEC_ACTIVITY_MEMSET] = HEC_CALL_MEMSET,
        [HEC_ACTIVITY_SYNC] = HEC_CALL_WAIT,
    };
    static const uint8_t api[HEC_API_CLASS_COUNT] = {
        [HEC_API_LAUNCH] = HEC_CALL_KERNEL, [HEC_API_GRAPH] = HEC_CALL_KERNEL, [HEC_API_COPY] = HEC_CALL_COPY,
        [HEC_API_MEMSET] = HEC_CALL_MEMSET, [HEC_API_SYNC] = HEC_CALL_WAIT,    [HEC_API_ALLOC] = HEC_CALL_ALLOC,
        [HEC_API_FREE] = HEC_CALL_ALLOC,    [HEC_API_MODULE] = HEC_CALL_OTHER, [HEC_API_OTHER] = HEC_CALL_OTHER,
    };
    if (a->kind == HEC_ACTIVITY_API)
        return a->detail < HEC_API_CLASS_COUNT ? api[a->detail] : HEC_CALL_OTHER;
    return device[a->kind];
}

/* What is outside of the stretch may belong to what is inside: an operation runs later than its call. */
static bool wanted(struct hec_schedule_builder *b, int64_t begin_ns, bool guessed) {
    struct hec_schedule *out = &b->out;
    if (begin_ns < out->from_ns) {
        if (b->leading && out->count == LEAD_MOST) {
            memmove(out->calls, out->calls + LEAD_MOST / 2, LEAD_MOST / 2 * sizeof *out->calls);
            out->count = LEAD_MOST / 2;
        }
        return b->leading;
    }
    b->leading = false;
    if (begin_ns < out->to_ns && out->count >= b->most) {
        out->cut = true;
        out->to_ns = begin_ns;
    }
    return begin_ns < out->to_ns || (guessed && b->beyond++ < BEYOND_MOST);
}

/* Made where it is to lie: there are ten millions. */
static int add_call(struct hec_schedule_builder *b, const struct hec_activity *a, const struct hec_track *track) {
    struct hec_schedule *out = &b->out;
    bool device = HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind), known = device && a->launch_ns != HEC_TIME_UNKNOWN;
    bool kernel = a->kind == HEC_ACTIVITY_KERNEL;
    int64_t begin_ns = known ? a->launch_ns : a->start_ns, end_ns = device ? a->start_ns : a->end_ns;
    if (known)
        end_ns = a->launch_end_ns > a->launch_ns ? a->launch_end_ns : a->launch_ns;
    if (!hec_time_sane(begin_ns) || !hec_time_sane(end_ns) ||
        (device && !(hec_time_sane(a->start_ns) && hec_time_sane(a->end_ns))) || !wanted(b, begin_ns, device && !known))
        return HEC_OK;
    int process = process_of(b, track);
    uint16_t stream = 0;
    int err = process >= 0 && device ? stream_of(b, track, &stream) : HEC_OK;
    if (process < 0 || err)
        return err;
    if (!hec_list_room(out->calls, out->count, b->capacity, 4096))
        return HEC_ERR_NOMEM;
    out->calls[out->count++] = (struct hec_schedule_call){
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .start_ns = device ? a->start_ns : HEC_TIME_UNKNOWN,
        .finish_ns = device ? a->end_ns : HEC_TIME_UNKNOWN,
        .after = HEC_SCHEDULE_NONE,
        .behind = HEC_SCHEDULE_NONE,
        .awaits = HEC_SCHEDULE_NONE,
        .what = kernel ? a->name : kib(a->amount),
        .stream = stream,
        .process = (uint8_t)process,
        .kind = kind_of(a),
        .flags = (uint8_t)((device && !known ? HEC_CALL_GUESSED : 0) |
                           (a->kind == HEC_ACTIVITY_API && a->detail == HEC_API_GRAPH ? HEC_CALL_GRAPH : 0) |
                           (a->flags & HEC_ACTIVITY_IN_GRAPH ? HEC_CALL_GRAPHED : 0)),
        .from = a->from,
        .to = a->to,
        .kernel_class = kernel ? (uint8_t)hec_timeline_kernel_class(&b->pass->tables, a->name) : HEC_KERNEL_CLASS_OTHER,
    };
    b->whole = b->whole && known == device;
    return HEC_OK;
}

static int add_phase(struct hec_schedule_builder *b, const struct hec_activity *a, const struct hec_track *track) {
    const char *name = hec_timeline_name(&b->pass->tables, a->name);
    bool data = strcmp(name, "data") == 0;
    if ((!data && strcmp(name, "checkpoint") != 0) || a->end_ns <= b->out.from_ns || a->start_ns >= b->out.to_ns ||
        b->phase_count == PHASES_MAX)
        return HEC_OK;
    int process = process_of(b, track);
    if (!hec_list_room(b->phases, b->phase_count, b->phase_capacity, 4096))
        return HEC_ERR_NOMEM;
    if (process >= 0)
        b->phases[b->phase_count++] = (struct hec_schedule_phase){a->start_ns, a->end_ns, (uint8_t)process, data};
    return HEC_OK;
}

/* Recording the nodes of a graph makes its launch longer: 245 us where 58 are usual (174 nodes, H100, driver 580). */
static int note_graph(struct hec_schedule_builder *b, const struct hec_activity *a) {
    const struct hec_windows *windows = &b->pass->windows;
    for (size_t i = 0; i < windows->count; i++)
        if (a->end_ns > windows->list[i].start_ns && a->start_ns < windows->list[i].end_ns)
            return HEC_OK;
    b->graphs_ns += (double)(a->end_ns - a->start_ns);
    b->graphs += windows->count > 0;
    return windows->count > 0 ? hec_cadence_add(&b->outside, a->start_ns) : HEC_OK;
}

/* Of one process: whose the others' launches are is not told apart. */
static int find_untraced(struct hec_schedule_builder *b) {
    struct hec_cadence inside = {0};
    int err = HEC_OK;
    b->out.untraced = NAN;
    for (size_t i = 0; i < b->out.count && b->out.process_count == 1 && !err; i++)
        if (b->out.calls[i].flags & HEC_CALL_GRAPH)
            err = hec_cadence_add(&inside, b->out.calls[i].begin_ns);
    if (!err)
        err = hec_cadence_ratio(&b->outside, &inside, &b->out.untraced);
    free(inside.begin_ns);
    return err;
}

static double graph_left(const struct hec_schedule_builder *b) {
    double inside_ns = 0;
    size_t inside = 0;
    for (size_t i = 0; i < b->out.count; i++)
        if (b->out.calls[i].flags & HEC_CALL_GRAPH) {
            inside_ns += (double)(b->out.calls[i].end_ns - b->out.calls[i].begin_ns);
            inside++;
        }
    return b->graphs < GRAPHS_LEAST || inside < GRAPHS_LEAST || !(inside_ns > 0)
               ? 1
               : fmin(1, b->graphs_ns / (double)b->graphs / (inside_ns / (double)inside));
}

static int take_activities(void *to, const struct hec_activity *activities, size_t count) {
    struct hec_schedule_builder *b = to;
    int err = HEC_OK;
    for (size_t i = 0; i < count && !err; i++) {
        const struct hec_activity *a = &activities[i];
        const struct hec_track *track = hec_timeline_track(&b->pass->tables, a->track);
        if (!(hec_stages[HEC_STAGE_SCHEDULE].kinds & HEC_ACTIVITY_BIT(a->kind)) || !track ||
            !hec_timeline_plausible(a) || (a->kind == HEC_ACTIVITY_SYNC && a->detail == HEC_SYNC_STREAM_WAIT))
            continue;
        if (a->kind == HEC_ACTIVITY_API && a->detail == HEC_API_GRAPH)
            err = note_graph(b, a);
        if (!err)
            err = a->kind == HEC_ACTIVITY_PHASE ? add_phase(b, a, track) : add_call(b, a, track);
    }
    return err;
}

/* Of a device that HEC knows: where there are several kinds in a machine, the first. */
static struct hec_schedule_kernel kernel_of(const struct hec_timeline_input *input, const struct hec_kernel *k) {
    double blocks = (double)k->grid[0] * (double)k->grid[1] * (double)k->grid[2];
    for (int i = 0; i < input->device_count; i++) {
        const struct hec_device *d = &input->devices[i];
        const struct hec_part *part = hec_part_find(d->name);
        int at_once = hec_occupancy_of(d->cuda_major, d->cuda_minor, k).blocks;
        if (part && part->sms > 0 && at_once > 0 && k->grid[0] > 0 && k->grid[1] > 0 && k->grid[2] > 0)
            return (struct hec_schedule_kernel){blocks / (at_once * part->sms), blocks / part->sms, 0, 0};
    }
    return (struct hec_schedule_kernel){NAN, NAN, 0, 0};
}

static void name_kernel(const char *name, struct hec_schedule_kernel *kernel) {
    const char *communicator = strstr(name, HEC_COMMUNICATOR);
    kernel->name = hec_hash(name, communicator ? (size_t)(communicator - name) : strlen(name));
    kernel->communicator = communicator ? hec_hash(communicator, strlen(communicator)) : 0;
}

static int take_kernels(const struct hec_pass *pass, struct hec_schedule *out) {
    out->kernels = malloc((pass->tables.kernel_count + 1) * sizeof *out->kernels);
    if (!out->kernels)
        return HEC_ERR_NOMEM;
    out->kernel_count = pass->tables.kernel_count;
    for (size_t i = 0; i < out->kernel_count; i++) {
        const struct hec_kernel *k = &pass->tables.kernels[i];
        out->kernels[i] = kernel_of(pass->input, k);
        name_kernel(hec_timeline_name(&pass->tables, k->name), &out->kernels[i]);
    }
    return HEC_OK;
}

struct hec_schedule_kernel hec_schedule_kernel(const struct hec_schedule *s, uint32_t kernel) {
    return kernel < s->kernel_count ? s->kernels[kernel] : (struct hec_schedule_kernel){NAN, NAN, 0, 0};
}

int hec_schedule_begin(const struct hec_pass *pass, size_t most, struct hec_schedule_builder **out,
                       struct hec_pass_consumer *consumer) {
    struct hec_schedule_builder *b = calloc(1, sizeof *b);
    *out = b;
    *consumer = (struct hec_pass_consumer){0};
    if (!b)
        return HEC_ERR_NOMEM;
    b->pass = pass;
    b->most = LEAD_MOST + (most < HEC_SCHEDULE_CALLS_MAX ? most : HEC_SCHEDULE_CALLS_MAX);
    b->leading = b->whole = true;
    b->stream_of = calloc(pass->tables.track_count + 1, sizeof *b->stream_of);
    b->process_of = calloc(pass->tables.track_count + 1, sizeof *b->process_of);
    if (!b->stream_of || !b->process_of || take_kernels(pass, &b->out) != HEC_OK) {
        hec_schedule_abandon(b);
        *out = NULL;
        return HEC_ERR_NOMEM;
    }
    choose(b);
    if (b->out.to_ns > b->out.from_ns)
        *consumer = hec_stage_consumer(HEC_STAGE_SCHEDULE, b, take_activities);
    return HEC_OK;
}

int hec_schedule_end(struct hec_schedule_builder *b, const struct hec_step_list *found, hec_together together,
                     struct hec_schedule *out) {
    const struct hec_step_list *steps = hec_step_survey_best(&b->pass->survey, &b->pass->tables);
    if (!steps && found && b->out.process_count == 1)
        steps = narrow(&b->out, found);
    else if (b->out.cut && b->out.steps > 0)
        snap(&b->out, steps);
    choose_step(&b->out, steps);
    int err = hec_schedule_connect(&b->out, b->whole, b->phases, b->phase_count, together);
    b->out.graph_left = graph_left(b);
    if (!err)
        err = find_untraced(b);
    size_t launched = 0;
    for (size_t i = 0; i < b->out.count && !err && !launched; i++)
        launched += hec_call_launched(&b->out.calls[i]);
    if (!err && !launched)
        err = HEC_ERR_NOTFOUND;
    *out = (struct hec_schedule){0};
    if (!err) {
        *out = b->out;
        b->out = (struct hec_schedule){0};
    }
    hec_schedule_abandon(b);
    return err;
}

void hec_schedule_abandon(struct hec_schedule_builder *b) {
    if (!b)
        return;
    hec_schedule_free(&b->out);
    free(b->phases);
    free(b->outside.begin_ns);
    free(b->stream_of);
    free(b->process_of);
    free(b);
}

uint32_t hec_schedule_event_at(const struct hec_schedule *s, size_t at) {
    size_t low = 0, high = s->event_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (s->events[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    return s->events[low].awaits;
}

void hec_schedule_free(struct hec_schedule *schedule) {
    free(schedule->calls);
    free(schedule->streams);
    free(schedule->events);
    free(schedule->groups);
    free(schedule->following);
    free(schedule->kernels);
    *schedule = (struct hec_schedule){0};
}
