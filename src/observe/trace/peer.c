#include "observe/trace/peer.h"

#include "base/clock.h"
#include "observe/trace/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RECORDS_MAX (1u << 20) /* 64 MB */
#define REPORT_NS HEC_NS_PER_S

static struct hec_peer *make(void *context, pid_t pid, int32_t rank, int others, int64_t now_ns) {
    struct hec_trace_run *run = context;
    struct hec_tracer before = run->ended;
    struct hec_trace_peer *peer = hec_trace_resize(&run->budget, NULL, 0, sizeof *peer);
    (void)others, (void)now_ns;
    run->ended.pid = 0;
    if (!peer)
        return NULL;
    memset(peer, 0, sizeof *peer);
    peer->tracks.pid = pid;
    peer->tracks.rank = rank;
    if (before.pid && before.pid == pid)
        peer->before = before;
    peer->tracer = (struct hec_tracer){.pid = pid,
                                       .cupti_version = -1,
                                       .driver_version = -1,
                                       .first_ns = HEC_TIME_UNKNOWN,
                                       .last_ns = HEC_TIME_UNKNOWN,
                                       .estimate_ppm = -1,
                                       .budget_ppm = -1};
    hec_ring_names_init(&peer->names, HEC_TRACE_NAMES_MAX, HEC_RING_NAME_BYTES_MAX);
    return &peer->process;
}

struct hec_tracer hec_trace_peer_row(const struct hec_trace_peer *peer, int64_t now_ns) {
    struct hec_tracer row = peer->tracer;
    const struct hec_tracer *before = &peer->before;
    if (peer->window_open && row.windows < HEC_TRACE_WINDOWS_MAX) {
        row.windows++;
        row.traced_ns += peer->window.duration_ns;
    }
    if (peer->holder_since_ns && now_ns > peer->holder_since_ns)
        row.holder_ns = hec_trace_sum(row.holder_ns, now_ns - peer->holder_since_ns);
    row.records = hec_trace_sum(peer->received, 0);
    row.bad = hec_trace_sum(peer->process.bad, peer->counted_bad);
    row.lost = hec_trace_sum(hec_ring_lost(&peer->process.ring), 0);
    if (before->pid == 0)
        return row;
    row.first_ns = before->first_ns;
    row.traced_ns = hec_trace_sum(row.traced_ns, before->traced_ns);
    row.holder_ns = hec_trace_sum(row.holder_ns, before->holder_ns);
    row.windows += before->windows;
    row.records = hec_trace_sum(row.records, before->records);
    row.dropped = hec_trace_sum(row.dropped, before->dropped);
    row.lost = hec_trace_sum(row.lost, before->lost);
    row.bad = hec_trace_sum(row.bad, before->bad);
    row.self_ns = hec_trace_sum(row.self_ns, before->self_ns);
    if (!row.holder[0])
        snprintf(row.holder, sizeof row.holder, "%s", before->holder);
    return row;
}

static void report_row(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t now_ns) {
    peer->reported_ns = now_ns;
    if (!peer->begun && peer->before.pid == 0)
        return;
    struct hec_tracer row = hec_trace_peer_row(peer, now_ns);
    run->sink->tracer(run->sink->context, &row);
}

static void on_record(void *run, struct hec_peer *process, const struct hec_ring_record *record, int64_t now_ns) {
    hec_trace_peer_record((struct hec_trace_peer *)process, run, record, now_ns);
}

static void drained(void *context, struct hec_peer *process, int64_t now_ns) {
    struct hec_trace_run *run = context;
    struct hec_trace_peer *peer = (struct hec_trace_peer *)process;
    if (hec_ring_lost(&process->ring) > 0 || peer->tracer.dropped > 0)
        hec_trace_pending_lost(&peer->tracks.pending);
    hec_trace_release(&peer->tracks, run, hec_trace_ms(run, now_ns), false);
    if (now_ns - peer->reported_ns >= REPORT_NS)
        report_row(peer, run, now_ns);
}

/* A second ring of a pid: the process called exec, and the first one's program is no more. */
static void replaced(void *context, struct hec_peer *process, int64_t now_ns) {
    struct hec_trace_run *run = context;
    struct hec_trace_peer *peer = (struct hec_trace_peer *)process;
    hec_trace_end_window(peer, run);
    hec_trace_end_rest(peer, run, now_ns);
    run->ended = hec_trace_peer_row(peer, now_ns);
}

static void end(void *context, struct hec_peer *process, int64_t end_ns) {
    struct hec_trace_run *run = context;
    struct hec_trace_peer *peer = (struct hec_trace_peer *)process;
    int pid = (int)process->pid;
    hec_trace_end_window(peer, run);
    hec_trace_end_rest(peer, run, end_ns);
    hec_trace_release(&peer->tracks, run, hec_trace_ms(run, end_ns), true);
    report_row(peer, run, end_ns);
    if (peer->threads_left_out > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "process %d: calls of %" PRIu32 " threads left out: too many at one time", pid,
                           peer->threads_left_out);
    if (peer->windows_left_out > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "process %d: %" PRIu64
                           " windows of the trace left out: more than %u of a process, or %u of a run",
                           pid, peer->windows_left_out, HEC_TRACE_WINDOWS_MAX, HEC_TRACE_RUN_WINDOWS_MAX);
    if (peer->tracks.without_track > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "process %d: %" PRIu64
                           " records of the trace left out: too many threads and streams, or memory",
                           pid, peer->tracks.without_track);
    if (peer->tracks.pending.alone > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "process %d: of %" PRIu64
                           " kernels, copies and memsets it is not known which call launched them",
                           pid, peer->tracks.pending.alone);
}

static void release(void *context, struct hec_peer *process) {
    struct hec_trace_run *run = context;
    struct hec_trace_peer *peer = (struct hec_trace_peer *)process;
    hec_trace_tracks_free(&peer->tracks, run);
    hec_trace_map_free(&peer->name_ids, &run->budget);
    hec_trace_map_free(&peer->kernels, &run->budget);
    hec_trace_map_free(&peer->kernel_names, &run->budget);
    hec_ring_names_free(&peer->names);
    run->budget.left += peer->names_bytes;
    hec_trace_resize(&run->budget, peer, sizeof *peer, 0);
}

const struct hec_peers_kind hec_trace_peers = {
    .role = HEC_RING_TRACE,
    .records_max = RECORDS_MAX,
    .rings_max = 1,
    .drain_ns = 50 * HEC_NS_PER_MS,
    .drain_fast_ns = 5 * HEC_NS_PER_MS,
    .finish_ns = HEC_NS_PER_S,
    .lost = HEC_EVENT_TRACE_LOST,
    .things = "traces",
    .records = "records of the trace",
    .make = make,
    .take = on_record,
    .drained = drained,
    .replaced = replaced,
    .end = end,
    .free = release,
};
