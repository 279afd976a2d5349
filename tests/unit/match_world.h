/* A program on a device, with the truth of which call caused what: made up call by call, recorded with losses, delivered
 * late and out of order, matched, and compared. */
#pragma once

#include "observe/trace/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* assert() does nothing in a release build. */
#define world_must(condition) ((condition) ? (void)0 : abort())

#define WORLD_CALLS_MAX (1u << 18)
#define WORLD_RECORDS_MAX (1u << 19)
#define WORLD_THREADS_MAX 4u

struct world_options {
    const char *name;
    uint32_t steps, layers; /* of each thread; a layer launches 12 kernels of 9 functions */
    uint32_t threads;       /* each with a stream of its own; the first has the default stream */
    bool one_stream;        /* all threads on it */
    bool one_function;      /* every kernel is the same */
    bool host_bound;        /* else the device is behind */
    bool never_waits;       /* else a step ends with a copy that is waited for */
    uint32_t equal;         /* kernels of a function of their own before the optimiser */
    bool rotates;           /* they are of three functions in turn */
    bool often;             /* buffers come, and are looked at, every 0.5 ms */
    bool swapped;           /* buffers of 50 ms come up to 0.7 s late, each by itself; threads are read 40 ms apart */
    double queue_ns;        /* how far the device may be behind; 0: 20 ms */
    double first_ns;        /* the first activity takes so long; 0: as the others */
    bool graphs;            /* a graph each layer; with nodes, every second step as one record */
    double other;           /* calls that are not recorded before each that is, on average; fixed at each place */
    double other_random;    /* and beside them at random */
    double lost_calls, lost_records, failed;
    uint32_t burst;                  /* so many records in a row are lost, once in 20000 */
    double calls_from, records_from; /* share of the run at which recording begins */
    bool reported_since;
    uint32_t first_id;
    uint64_t seed;
};

struct world_call {
    struct hec_trace_match_call reported;
    double id_time;
    uint32_t correlation;
    bool recorded;
    uint32_t given; /* how often */
};

struct world_record {
    struct hec_trace_match_device reported;
    uint32_t call;
    int64_t arrives_ns;
    uint32_t given;
};

struct world {
    struct world_options options;
    uint64_t random;
    struct world_call *calls;
    struct world_record *records;
    uint32_t call_count, record_count;
    double *ids; /* times of calls that are not recorded */
    uint32_t id_count, id_capacity;
    double stream_free[WORLD_THREADS_MAX];
    /* found */
    uint64_t matchable, right, wrong, none_right, again, call_again;
    size_t budget_used;
    double ns_per_record;
};

static inline double world_random(struct world *world) {
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (double)(world->random >> 11) / 9007199254740992.0;
}

struct world_thread {
    uint32_t number, step, layer, place, equals; /* what it does next */
    double now;
    bool done;
};

static inline void world_add_record(struct world *world, uint32_t call, uint8_t match_class, double start, double end,
                                    uint32_t name, bool in_graph) {
    world_must(world->record_count < WORLD_RECORDS_MAX);
    const struct hec_trace_match_call *reported = &world->calls[call].reported;
    world->records[world->record_count++] = (struct world_record){
        .reported = {.start_ns = (int64_t)start,
                     .end_ns = (int64_t)end,
                     .bytes = match_class == HEC_TRACE_MATCH_COPY || match_class == HEC_TRACE_MATCH_MEMSET
                                  ? reported->bytes
                                  : 0,
                     .context = 1,
                     .stream = reported->stream ? (uint32_t)(reported->stream >> 8) : 7,
                     .name = name,
                     .match_class = match_class,
                     .in_graph = in_graph},
        .call = call};
}

/* One call of a thread, with what it causes. */
static inline void world_do(struct world *world, struct world_thread *thread, uint8_t match_class, uint64_t func,
                            uint64_t bytes, double device_ns, bool waits, uint32_t others) {
    const struct world_options *o = &world->options;
    others += (uint32_t)(o->other_random * 2 * world_random(world) + 0.5 * (o->other_random > 0));
    for (uint32_t i = 0; i < others; i++) {
        if (world->id_count == world->id_capacity) {
            world->id_capacity = world->id_capacity ? world->id_capacity * 2 : 4096;
            world->ids = realloc(world->ids, world->id_capacity * sizeof *world->ids);
            world_must(world->ids);
        }
        thread->now += 100 + 200 * world_random(world);
        world->ids[world->id_count++] = thread->now;
    }
    thread->now += 200 + 300 * world_random(world);
    world_must(world->call_count < WORLD_CALLS_MAX);
    uint32_t at = world->call_count++, lane = o->one_stream ? 0 : thread->number;
    struct world_call *call = &world->calls[at];
    double start = thread->now, end = start + 3000 + 2000 * world_random(world);
    *call = (struct world_call){
        .reported = {.start_ns = (int64_t)start,
                     .cookie = at,
                     .func = func,
                     .stream = lane ? 0x5000 + 0x100 * lane : 0,
                     .bytes = bytes,
                     .track = 100 + thread->number,
                     .match_class = match_class},
        .id_time = start + 500 * world_random(world),
    };
    if (at == 0 && o->first_ns > 0)
        device_ns = o->first_ns;
    double *busy = &world->stream_free[lane], from = start + 3000 + 2500 * world_random(world);
    if (from < *busy + 900)
        from = *busy + 900;
    bool failed = world_random(world) < o->failed;
    double until = from + device_ns * (0.9 + 0.2 * world_random(world));
    if (failed) {
        until = *busy;
    } else if (match_class == HEC_TRACE_MATCH_GRAPH && thread->step & 1) {
        until = from;
        for (uint32_t i = 0; i < 6; i++) {
            world_add_record(world, at, HEC_TRACE_MATCH_KERNEL, until, until + device_ns / 6, 500 + i, true);
            until += device_ns / 6 + 500;
        }
    } else {
        world_add_record(world, at, match_class, from, until, func ? 1000 + (uint32_t)(func >> 4 & 0xfff) : 0, false);
    }
    if (*busy < until)
        *busy = until;
    if (waits && end < until)
        end = until + 5000;
    call->reported.end_ns = (int64_t)end;
    thread->now = end + (o->host_bound ? 6000 * world_random(world) : 0);
    double queue_ns = o->queue_ns > 0 ? o->queue_ns : 20e6;
    if (!waits && *busy - thread->now > queue_ns) /* the launch queue is full */
        thread->now = *busy - queue_ns;
}

/* Calls that are not recorded before one that is: the same wherever the program does the same. */
static inline uint32_t world_others(const struct world_options *o, uint32_t function) {
    return (uint32_t)(o->other * (double)(1 + function * 7 % 4) / 2.5);
}

/* The next call of a thread's program. */
static inline void world_next(struct world *world, struct world_thread *thread) {
    static const uint8_t functions[12] = {1, 2, 3, 4, 4, 4, 5, 6, 7, 2, 8, 9};
    const struct world_options *o = &world->options;
    double length = o->host_bound ? 2500 : 14000;
    uint32_t place = thread->place++, others = world_others(o, 0);
    if (thread->layer == 0 && place == 0) {
        world_do(world, thread, HEC_TRACE_MATCH_COPY, 0, 1 << 20, 40000, false, others);
    } else if (thread->layer < o->layers) {
        uint32_t f = o->one_function ? 1 : functions[place % 12];
        if (place % 12 == 11 && thread->layer % 8 == 3)
            world_do(world, thread, HEC_TRACE_MATCH_MEMSET, 0, 4096, 1500, false, others);
        if (place % 12 == 5 && o->graphs)
            world_do(world, thread, HEC_TRACE_MATCH_GRAPH, 0, 0, length * 4, false, others);
        world_do(world, thread, HEC_TRACE_MATCH_KERNEL, UINT64_C(0x7f0000000000) + f * 16, 0, length * (1 + f % 3) / 2,
                 false, world_others(o, f));
    } else if (thread->equals < o->equal) {
        uint32_t f = 40 + (o->rotates ? thread->equals % 3 : 0);
        thread->place--;
        thread->equals++;
        world_do(world, thread, HEC_TRACE_MATCH_KERNEL, UINT64_C(0x7f0000000000) + f * 16, 0, length / 3, false,
                 world_others(o, f));
    } else if (place < o->layers * 6) { /* the optimiser: three kernels for each parameter */
        uint32_t f = o->one_function ? 1 : 20 + place % 3;
        world_do(world, thread, HEC_TRACE_MATCH_KERNEL, UINT64_C(0x7f0000000000) + f * 16, 0, length / 3, false,
                 world_others(o, f));
    } else {
        if (!o->never_waits)
            world_do(world, thread, HEC_TRACE_MATCH_COPY, 0, 4, 1500, true, others);
        thread->now += 50000 + 300000 * world_random(world);
        thread->layer = thread->place = thread->equals = 0;
        thread->done = ++thread->step == o->steps;
        return;
    }
    if (thread->layer < o->layers && thread->place % 12 == 0) {
        thread->layer++;
        thread->place = thread->layer == o->layers ? 0 : 12;
    }
}

static inline int world_compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ids: by time among all calls of the process. */
static inline void world_number(struct world *world) {
    uint32_t total = world->call_count + world->id_count;
    double *all = malloc(total * sizeof *all);
    world_must(all);
    for (uint32_t i = 0; i < world->call_count; i++)
        all[i] = world->calls[i].id_time;
    if (world->id_count)
        memcpy(all + world->call_count, world->ids, world->id_count * sizeof *all);
    qsort(all, total, sizeof *all, world_compare_double);
    for (uint32_t i = 0; i < world->call_count; i++) {
        const double *at = bsearch(&world->calls[i].id_time, all, total, sizeof *all, world_compare_double);
        world->calls[i].correlation = world->options.first_id + (uint32_t)(at - all);
        if (world->calls[i].correlation < world->options.first_id) /* 0 is none */
            world->calls[i].correlation++;
    }
    for (uint32_t i = 0; i < world->record_count; i++)
        world->records[i].reported.correlation = world->calls[world->records[i].call].correlation;
    free(all);
}

static inline void world_make(struct world *world, const struct world_options *options) {
    *world = (struct world){.options = *options, .random = options->seed * 7919 + 88172645463325252u};
    world->calls = malloc(WORLD_CALLS_MAX * sizeof *world->calls);
    world->records = malloc(WORLD_RECORDS_MAX * sizeof *world->records);
    world_must(world->calls && world->records);
    struct world_thread threads[WORLD_THREADS_MAX];
    for (uint32_t i = 0; i < options->threads; i++)
        threads[i] = (struct world_thread){.number = i, .now = 1e9 + 1234567.0 * i};
    for (;;) {
        struct world_thread *next = NULL;
        for (uint32_t i = 0; i < options->threads; i++)
            if (!threads[i].done && (!next || threads[i].now < next->now))
                next = &threads[i];
        if (!next)
            break;
        world_next(world, next);
    }
    world_number(world);
}

/* ---- recording ---- */

struct world_event {
    int64_t at_ns;
    uint32_t index;
    bool is_record;
};

static inline int world_compare_event(const void *a, const void *b) {
    const struct world_event *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
    return (x->index > y->index) - (x->index < y->index);
}

static inline uint32_t world_events(struct world *world, struct world_event *events) {
    const struct world_options *o = &world->options;
    double first = 1e9, last = (double)world->calls[world->call_count - 1].reported.start_ns;
    double calls_from = first + (last - first) * o->calls_from, records_from = first + (last - first) * o->records_from;
    uint32_t count = 0, burst = 0;
    for (uint32_t i = 0; i < world->call_count; i++) {
        struct world_call *call = &world->calls[i];
        call->recorded = (double)call->reported.start_ns >= calls_from && world_random(world) >= o->lost_calls;
        if (call->recorded) /* threads are read in turns: up to 3 ms apart */
            events[count++] = (struct world_event){call->reported.start_ns + (int64_t)(call->reported.track % 4) *
                                                                                 (o->swapped ? 40000000 : 1000000),
                                                   i, false};
    }
    for (uint32_t i = 0; i < world->record_count; i++) {
        struct world_record *record = &world->records[i];
        if (o->burst && burst == 0 && world_random(world) < 1.0 / 20000)
            burst = o->burst;
        bool lost = (double)world->calls[record->call].reported.start_ns < records_from ||
                    world_random(world) < o->lost_records || burst > 0;
        burst -= burst > 0;
        if (lost)
            continue;
        /* buffers come every 0.7 s, if not often; a little out of order in them */
        int64_t batch_ns = o->often ? 500000 : 700000000, batch = record->reported.end_ns / batch_ns + 1;
        record->arrives_ns = batch * batch_ns + record->reported.end_ns % batch_ns / 1000 +
                             (int64_t)(30 * world_random(world)) + (int64_t)(record->reported.stream % 5) * 1000000;
        if (o->swapped)
            record->arrives_ns = record->reported.end_ns + (record->reported.end_ns / 50000000 * 7 + 5) % 13 * 50000000;
        events[count++] = (struct world_event){record->arrives_ns, i, true};
    }
    qsort(events, count, sizeof *events, world_compare_event);
    return count;
}

static inline void world_found(void *context, uint64_t cookie, const struct hec_trace_match_call *call) {
    struct world *world = context;
    struct world_record *record = &world->records[cookie];
    struct world_call *truth = &world->calls[record->call];
    world->again += record->given++ > 0;
    world->matchable += truth->recorded;
    if (!call)
        world->none_right += !truth->recorded;
    else if (call->cookie == record->call)
        world->right++;
    else
        world->wrong++;
    if (call)
        world->calls[call->cookie].given |= 1;
}

static inline void world_plain(void *context, const struct hec_trace_match_call *call) {
    struct world *world = context;
    world->call_again += world->calls[call->cookie].given != 0;
    world->calls[call->cookie].given |= 2;
}

static inline double world_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Deliver everything as it would come, and count what is found. */
static inline void world_match(struct world *world) {
    struct world_event *events = malloc((world->call_count + world->record_count) * sizeof *events);
    world_must(events);
    uint32_t count = world_events(world, events), records = 0;
    struct hec_trace_budget budget = {(size_t)256 << 20};
    size_t least = budget.left;
    struct hec_trace_match *match = hec_trace_match_new(&budget);
    struct hec_trace_match_sink sink = {world, world_found, world_plain};
    world_must(match);
    if (world->options.reported_since) {
        double last = (double)world->calls[world->call_count - 1].reported.start_ns;
        hec_trace_match_since(match, (int64_t)(1e9 + (last - 1e9) * world->options.records_from));
    }
    double before = world_cpu_ns();
    int64_t now_ns = 1000000000, period_ns = world->options.often ? 500000 : 50000000;
    for (uint32_t i = 0; i < count; i++) {
        for (; now_ns < events[i].at_ns; now_ns += period_ns)
            hec_trace_match_advance(match, now_ns, false, &sink);
        if (events[i].is_record)
            world_must(
                hec_trace_match_device(match, &world->records[events[i].index].reported, events[i].index, now_ns));
        else
            world_must(hec_trace_match_call(match, &world->calls[events[i].index].reported));
        records += events[i].is_record;
        if (budget.left < least)
            least = budget.left;
    }
    for (int64_t end_ns = now_ns + INT64_C(1000000000); now_ns < end_ns; now_ns += period_ns)
        hec_trace_match_advance(match, now_ns, false, &sink);
    hec_trace_match_advance(match, now_ns, true, &sink);
    world->ns_per_record = (world_cpu_ns() - before) / (records ? records : 1);
    hec_trace_match_free(match);
    world->budget_used = ((size_t)256 << 20) - least;
    world_must(budget.left == (size_t)256 << 20);
    /* each record and each call came back, once */
    for (uint32_t i = 0; i < count; i++)
        if (events[i].is_record)
            world->again += world->records[events[i].index].given != 1;
        else
            world->call_again += world->calls[events[i].index].given == 0;
    free(events);
    printf(
        "%-34s %7u records, %7u calls: right %.3f %%, wrong %.4f %%, of those without a call %.2f %% told so; %.0f ns, %.1f MB\n",
        world->options.name, records, world->call_count, 100.0 * (double)world->right / (double)world->matchable,
        100.0 * (double)world->wrong / (double)records,
        records > world->matchable ? 100.0 * (double)world->none_right / (double)(records - world->matchable) : 100.0,
        world->ns_per_record, (double)world->budget_used / 1e6);
}

static inline void world_free(struct world *world) {
    free(world->calls);
    free(world->records);
    free(world->ids);
}
