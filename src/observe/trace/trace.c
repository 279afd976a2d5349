#include "base/clock.h"
#include "observe/collector.h"
#include "observe/intake.h"
#include "observe/trace/peer.h"
#include "observe/trace/take.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_NS (50 * HEC_NS_PER_MS)
#define DRAIN_FAST_NS (5 * HEC_NS_PER_MS) /* while some ring was more than a quarter full */
#define PEERS_MAX 512                     /* each holds one descriptor (its pidfd), of usually 1024 */
#define RECORDS_MAX (1u << 20)            /* the largest ring that is taken, 64 MB */
#define FINISH_NS HEC_NS_PER_S            /* for what processes that outlive the command still write */

struct trace {
    struct hec_trace_run run;
    const struct hec_observe_options *options;
    struct hec_intake intake;
    struct hec_trace_peer *peer[PEERS_MAX];
    int peer_count;
    uint64_t seen; /* processes, in all */
};

static int trace_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                      struct hec_why *why) {
    if (!options->trace_socket)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the trace is off: there is no socket for it");
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory for the trace");
    int err = hec_intake_open(&trace->intake, options->trace_socket, HEC_RING_TRACE, RECORDS_MAX, why);
    if (err) {
        free(trace);
        return err;
    }
    hec_trace_run_init(&trace->run, sink, hec_clock_mono_ns());
    trace->run.devices = options->devices;
    trace->run.proc_path = options->proc_path ? options->proc_path : "/proc";
    trace->options = options;
    *self = trace;
    return HEC_OK;
}

static void end_peer(struct trace *trace, int at, int64_t end_ns) {
    hec_trace_peer_end(trace->peer[at], &trace->run, end_ns);
    trace->peer[at] = trace->peer[--trace->peer_count];
}

/* A second ring of a pid: the process called exec, and the first one's program is no more. */
static struct hec_tracer end_earlier_program(struct trace *trace, pid_t pid, int64_t now_ns) {
    for (int i = 0; pid > 0 && i < trace->peer_count; i++) {
        if (trace->peer[i]->pid != pid)
            continue;
        hec_trace_peer_drain(trace->peer[i], &trace->run, now_ns, true);
        hec_trace_end_window(trace->peer[i], &trace->run);
        struct hec_tracer row = hec_trace_peer_row(trace->peer[i], now_ns);
        end_peer(trace, i, now_ns);
        return row;
    }
    return (struct hec_tracer){0};
}

static bool take_ring(void *context, const struct hec_intake_ring *arrived, int64_t now_ns) {
    struct trace *trace = context;
    struct hec_tracer before = end_earlier_program(trace, arrived->pid, now_ns);
    struct hec_trace_peer *peer = NULL;
    struct hec_ring_reader ring = arrived->ring;
    trace->seen++;
    if (trace->peer_count < PEERS_MAX) {
        peer = hec_trace_peer_new(&trace->run, ring, arrived->pid, arrived->pid_fd);
    } else {
        hec_ring_close(&ring);
        if (arrived->pid_fd >= 0)
            close(arrived->pid_fd);
    }
    if (!peer)
        return false; /* the intake counts it */
    peer->before = before;
    trace->peer[trace->peer_count++] = peer;
    return true;
}

static int64_t trace_poll(void *self, int64_t now_ns) {
    struct trace *trace = self;
    hec_intake_poll(&trace->intake, now_ns, take_ring, trace);
    int64_t next_ns = now_ns + DRAIN_NS;
    for (int i = 0; i < trace->peer_count;) {
        struct hec_trace_peer *peer = trace->peer[i];
        /* before the drain: what a live process wrote meanwhile waits for the next one */
        bool dead = hec_intake_process_ended(peer->pid, peer->pid_fd);
        if (hec_trace_peer_drain(peer, &trace->run, now_ns, dead))
            next_ns = now_ns + DRAIN_FAST_NS;
        if (dead)
            end_peer(trace, i, now_ns);
        else
            i++;
    }
    hec_trace_flush(&trace->run);
    return next_ns;
}

/* Processes that outlive the command may be writing what they flushed at its end. */
static void drain_rest(struct trace *trace, int64_t end_ns) {
    int64_t until_ns = hec_clock_mono_ns() + FINISH_NS;
    for (bool more = true; more && hec_clock_mono_ns() < until_ns;) {
        more = false;
        for (int i = 0; i < trace->peer_count; i++) {
            hec_trace_peer_drain(trace->peer[i], &trace->run, end_ns, false);
            more = more || hec_ring_pending(&trace->peer[i]->ring) > 0;
        }
        if (more)
            nanosleep(&(struct timespec){.tv_nsec = HEC_NS_PER_MS}, NULL);
    }
}

static void tell_nobody(const struct trace *trace) {
    const struct hec_observe_options *options = trace->options;
    struct hec_tracer tracer = {
        .pid = __atomic_load_n(&options->root, __ATOMIC_ACQUIRE),
        .mode = options->trace_mode,
        .cupti_version = -1,
        .driver_version = -1,
        .why = HEC_TRACE_WHY_NOBODY,
        .first_ns = trace->run.opened_ns,
        .last_ns = trace->run.opened_ns,
        .estimate_ppm = -1,
        .budget_ppm = -1,
    };
    trace->run.sink->tracer(trace->run.sink->context, &tracer);
}

static void trace_finish(void *self, int64_t end_ns) {
    struct trace *trace = self;
    struct hec_trace_run *run = &trace->run;
    run->end_ns = end_ns;
    hec_intake_finish(&trace->intake, end_ns, take_ring, trace);
    drain_rest(trace, end_ns);
    while (trace->peer_count > 0) {
        hec_trace_peer_drain(trace->peer[0], run, end_ns, true);
        end_peer(trace, 0, end_ns);
    }
    hec_trace_flush(run);
    if (trace->seen == 0)
        tell_nobody(trace);
    if (trace->intake.refused > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns,
                       "traces of %" PRIu64 " processes left out: refused, or over %d at once", trace->intake.refused,
                       PEERS_MAX);
    if (trace->intake.silent > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " connections were given up: they said nothing",
                       trace->intake.silent);
    if (trace->intake.crowded)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns, "thousands of processes connected at once: traces may be missing");
    if (trace->intake.strangers > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " connections of other users refused",
                       trace->intake.strangers);
}

/* A sink for peers that are only to be freed: finish was never called. */
static void no_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context, (void)activities, (void)count;
}
static void no_tracer(void *context, const struct hec_tracer *tracer) {
    (void)context, (void)tracer;
}
static uint32_t no_track(void *context, const struct hec_track *track) {
    (void)context, (void)track;
    return 0;
}

static void trace_close(void *self) {
    struct trace *trace = self;
    static const struct hec_sink nowhere = {
        .trace_activities = no_activities, .tracer = no_tracer, .trace_track = no_track};
    trace->run.sink = &nowhere;
    trace->run.events_left = 0;
    while (trace->peer_count > 0)
        end_peer(trace, 0, trace->run.opened_ns);
    hec_intake_close(&trace->intake);
    free(trace);
}

const struct hec_collector hec_collector_trace = {
    .name = "trace",
    .lane = HEC_LANE_TRACE,
    .open = trace_open,
    .poll = trace_poll,
    .finish = trace_finish,
    .close = trace_close,
};
