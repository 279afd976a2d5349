#include "observe/trace/peer.h"

#include "base/clock.h"
#include "observe/trace/take.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 256
/* A reserved slot that a live process has not committed for so long was left by a thread that was cancelled. */
#define STUCK_NS (10 * HEC_NS_PER_S)
#define TELL_NS HEC_NS_PER_S

struct hec_trace_peer *hec_trace_peer_new(struct hec_trace_run *run, struct hec_ring_reader ring, pid_t pid,
                                          int pid_fd) {
    struct hec_trace_peer *peer = hec_trace_resize(&run->budget, NULL, 0, sizeof *peer);
    if (!peer) {
        hec_ring_close(&ring);
        if (pid_fd >= 0)
            close(pid_fd);
        return NULL;
    }
    memset(peer, 0, sizeof *peer);
    peer->ring = ring;
    peer->pid = peer->tracks.pid = pid;
    peer->pid_fd = pid_fd;
    peer->tracer = (struct hec_tracer){.pid = pid,
                                       .cupti_version = -1,
                                       .driver_version = -1,
                                       .first_ns = HEC_TIME_UNKNOWN,
                                       .last_ns = HEC_TIME_UNKNOWN,
                                       .estimate_ppm = -1,
                                       .budget_ppm = -1};
    hec_ring_names_init(&peer->names, HEC_TRACE_NAMES_MAX, HEC_RING_NAME_BYTES_MAX);
    return peer;
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
    row.bad = hec_trace_sum(peer->bad, peer->counted_bad);
    row.lost = hec_trace_sum(hec_ring_lost(&peer->ring), 0);
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

static void tell_row(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t now_ns) {
    peer->told_ns = now_ns;
    if (!peer->begun && peer->before.pid == 0)
        return;
    struct hec_tracer row = hec_trace_peer_row(peer, now_ns);
    run->sink->tracer(run->sink->context, &row);
}

static void tell_lost(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t t_ns) {
    uint64_t lost = hec_ring_lost(&peer->ring);
    if (lost != peer->lost_told)
        hec_trace_tell(run, HEC_EVENT_TRACE_LOST, t_ns, "process %d: %" PRIu64 " records of the trace lost so far",
                       (int)peer->pid, lost);
    peer->lost_told = lost;
}

/* Whether to pass over the slot that nobody commits. */
static bool stuck(struct hec_trace_peer *peer, int64_t now_ns) {
    if (peer->stuck_since_ns == 0 || peer->stuck_at != peer->ring.tail) {
        peer->stuck_since_ns = now_ns;
        peer->stuck_at = peer->ring.tail;
    }
    return now_ns - peer->stuck_since_ns >= STUCK_NS;
}

bool hec_trace_peer_drain(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t now_ns, bool dead) {
    struct hec_ring_record batch[BATCH];
    bool full = hec_ring_pending(&peer->ring) > peer->ring.mask / 4;
    /* a ring's worth at most: a program that writes faster than we read must not keep us here */
    for (uint64_t left = peer->ring.mask + 1; left > 0;) {
        size_t count = hec_ring_read(&peer->ring, batch, left < BATCH ? (size_t)left : BATCH);
        int64_t read_ns = hec_clock_mono_ns();
        for (size_t i = 0; i < count; i++)
            hec_trace_peer_take(peer, run, &batch[i], read_ns);
        left -= count;
        if (count > 0)
            continue;
        if (hec_ring_pending(&peer->ring) == 0) {
            peer->stuck_since_ns = 0;
            break;
        }
        if (!dead && !stuck(peer, now_ns))
            break;
        hec_ring_skip(&peer->ring);
        left--;
    }
    if (hec_ring_lost(&peer->ring) > 0 || peer->tracer.dropped > 0)
        hec_trace_pending_lost(&peer->tracks.pending);
    hec_trace_release(&peer->tracks, run, hec_trace_ms(run, now_ns), false);
    if (peer->lost_told == 0)
        tell_lost(peer, run, now_ns); /* the first loss at once, the total at the end */
    if (now_ns - peer->told_ns >= TELL_NS)
        tell_row(peer, run, now_ns);
    return full;
}

void hec_trace_peer_end(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t end_ns) {
    int pid = (int)peer->pid;
    hec_trace_end_window(peer, run);
    hec_trace_release(&peer->tracks, run, hec_trace_ms(run, end_ns), true);
    tell_row(peer, run, end_ns);
    tell_lost(peer, run, end_ns);
    if (peer->bad > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns, "process %d: %" PRIu64 " invalid records of the trace left out",
                       pid, peer->bad);
    if (peer->windows_left_out > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: %" PRIu64
                       " windows of the trace left out: more than %u of a process, or %u of a run",
                       pid, peer->windows_left_out, HEC_TRACE_WINDOWS_MAX, HEC_TRACE_RUN_WINDOWS_MAX);
    if (peer->late > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: %" PRIu64 " records of the trace after the end of the run left out", pid,
                       peer->late);
    if (peer->tracks.without_track > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: %" PRIu64 " records of the trace left out: too many threads and streams, or memory",
                       pid, peer->tracks.without_track);
    if (peer->tracks.pending.alone > 0)
        hec_trace_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: of %" PRIu64
                       " kernels, copies and memsets it is not known which call launched them",
                       pid, peer->tracks.pending.alone);
    hec_trace_tracks_free(&peer->tracks, run);
    hec_trace_map_free(&peer->name_ids, &run->budget);
    hec_trace_map_free(&peer->kernels, &run->budget);
    hec_trace_map_free(&peer->kernel_names, &run->budget);
    hec_ring_names_free(&peer->names);
    run->budget.left += peer->names_bytes;
    hec_ring_close(&peer->ring);
    if (peer->pid_fd >= 0)
        close(peer->pid_fd);
    hec_trace_resize(&run->budget, peer, sizeof *peer, 0);
}
