#include "observe/peers.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH 256
/* A reserved slot that a live process has not committed for so long was left by a thread that longjmp'ed or was
 * cancelled in a signal handler; a merely stopped process (SIGSTOP) loses at most that one record. */
#define STUCK_NS (10 * HEC_NS_PER_S)

/* ---- one process ---- */

static void close_ring(struct hec_ring_reader *ring, int pid_fd) {
    hec_ring_close(ring); /* asks the process to stop writing */
    if (pid_fd >= 0)
        close(pid_fd);
}

/* The rank that a process is, by its id: a line of text, which diagnose reads (hec_job_ranks). */
static void report_rank(const struct hec_peers *peers, pid_t pid, const struct hec_ring_rank *rank) {
    char key[32];
    snprintf(key, sizeof key, HEC_RANK_FACT "%d", (int)pid);
    if (rank->number >= 0)
        hec_sink_meta(peers->reporter->sink, key, "%d %d %d %s", (int)rank->number, (int)rank->local, (int)rank->size,
                      hec_ring_launcher(rank->launcher));
}

struct hec_peer *hec_peer_new(struct hec_peers *peers, const struct hec_intake_ring *arrived, int64_t now_ns) {
    struct hec_peer *peer =
        peers->count < HEC_PEERS_MAX
            ? peers->kind->make(peers->run, arrived->pid, arrived->ring.rank.number, peers->count, now_ns)
            : NULL;
    if (peer) {
        *peer = (struct hec_peer){.ring = arrived->ring, .pid = arrived->pid, .pid_fd = arrived->pid_fd};
        report_rank(peers, arrived->pid, &arrived->ring.rank);
    } else {
        struct hec_ring_reader ring = arrived->ring;
        close_ring(&ring, arrived->pid_fd);
    }
    return peer;
}

static void report_lost(struct hec_peers *peers, struct hec_peer *peer, int64_t t_ns) {
    uint64_t lost = hec_ring_lost(&peer->ring);
    if (lost != peer->lost_reported)
        hec_reporter_event(peers->reporter, peers->kind->lost, t_ns, "process %d: %" PRIu64 " %s lost so far",
                           (int)peer->pid, lost, peers->kind->records);
    peer->lost_reported = lost;
}

/* Whether to pass over the slot that nobody commits. */
static bool stuck(struct hec_peer *peer, int64_t now_ns) {
    if (peer->stuck_since_ns == 0 || peer->stuck_at != peer->ring.tail) {
        peer->stuck_since_ns = now_ns;
        peer->stuck_at = peer->ring.tail;
    }
    return now_ns - peer->stuck_since_ns >= STUCK_NS;
}

bool hec_peer_drain(struct hec_peers *peers, struct hec_peer *peer, int64_t now_ns, bool dead) {
    struct hec_ring_record batch[BATCH];
    bool full = hec_ring_pending(&peer->ring) > peer->ring.mask / 4;
    /* a ring's worth at most: a program that writes faster than we read must not keep us here */
    for (uint64_t left = peer->ring.mask + 1; left > 0;) {
        size_t count = hec_ring_read(&peer->ring, batch, left < BATCH ? (size_t)left : BATCH);
        int64_t read_ns = hec_clock_mono_ns();
        for (size_t i = 0; i < count; i++)
            if (hec_ring_is_ours(&peer->ring, &batch[i]))
                peers->kind->take(peers->run, peer, &batch[i], read_ns);
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
    peers->kind->drained(peers->run, peer, now_ns);
    if (peer->lost_reported == 0)
        report_lost(peers, peer, now_ns); /* the first loss at once, the total at the end */
    return full;
}

static void release(struct hec_peers *peers, struct hec_peer *peer) {
    close_ring(&peer->ring, peer->pid_fd);
    peers->kind->free(peers->run, peer);
}

void hec_peer_end(struct hec_peers *peers, struct hec_peer *peer, int64_t end_ns) {
    const char *records = peers->kind->records;
    int pid = (int)peer->pid;
    char untimely[80] = "";
    peers->kind->end(peers->run, peer, end_ns);
    report_lost(peers, peer, end_ns);
    if (peer->untimely > 0)
        snprintf(untimely, sizeof untimely, ", %" PRIu64 " of them with a time outside of the run", peer->untimely);
    if (peer->bad > 0)
        hec_reporter_event(peers->reporter, HEC_EVENT_NOTE, end_ns, "process %d: %" PRIu64 " invalid %s left out%s",
                           pid, peer->bad, records, untimely);
    if (peer->late > 0 && !peer->ring.borrowed) /* a program of which a window is recorded goes on */
        hec_reporter_event(peers->reporter, HEC_EVENT_NOTE, end_ns,
                           "process %d: %" PRIu64 " %s after the end of the run left out", pid, peer->late, records);
    release(peers, peer);
}

/* ---- all of them ---- */

int hec_peers_open(struct hec_peers *peers, const struct hec_peers_kind *kind, void *run, struct hec_reporter *reporter,
                   const char *path, struct hec_why *why) {
    *peers = (struct hec_peers){.kind = kind, .run = run, .reporter = reporter};
    if (path)
        return hec_intake_open(&peers->intake, path, kind->role, kind->records_max, why);
    peers->intake.listener = -1;
    return HEC_OK;
}

static void end_at(struct hec_peers *peers, int at, int64_t end_ns) {
    hec_peer_end(peers, peers->peer[at], end_ns);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers */
    memmove(&peers->peer[at], &peers->peer[at + 1], (size_t)(--peers->count - at) * sizeof peers->peer[0]);
}

/* One process that hands over ring after ring takes no other's place. */
static void end_oldest_of_many(struct hec_peers *peers, pid_t pid, int64_t now_ns) {
    int count = 0, oldest = 0;
    for (int i = peers->count; pid > 0 && i-- > 0;) {
        if (peers->peer[i]->pid != pid)
            continue;
        count++;
        oldest = i;
    }
    if (count < peers->kind->rings_max)
        return;
    hec_peer_drain(peers, peers->peer[oldest], now_ns, true);
    if (peers->kind->replaced)
        peers->kind->replaced(peers->run, peers->peer[oldest], now_ns);
    end_at(peers, oldest, now_ns);
    peers->rings_ended++;
}

static bool take_ring(void *context, const struct hec_intake_ring *arrived, int64_t now_ns) {
    struct hec_peers *peers = context;
    end_oldest_of_many(peers, arrived->pid, now_ns);
    struct hec_peer *peer = hec_peer_new(peers, arrived, now_ns);
    peers->rings++;
    if (peer)
        peers->peer[peers->count++] = peer;
    return peer != NULL; /* the intake counts it */
}

bool hec_peers_borrow(struct hec_peers *peers, const struct hec_observe_options *options, int64_t now_ns) {
    const struct hec_observe_ring *rings = options->rings;
    int count = __atomic_load_n(&options->ring_count, __ATOMIC_ACQUIRE);
    if (peers->borrowed || count == 0)
        return false;
    peers->borrowed = true;
    for (int i = 0; i < count; i++) {
        struct hec_intake_ring arrived = {.pid = rings[i].pid, .pid_fd = -1};
        bool mapped = hec_ring_map(rings[i].fd, &arrived.ring) == HEC_OK;
        if (mapped && arrived.ring.role == (uint32_t)peers->kind->role &&
            arrived.ring.mask < peers->kind->records_max) {
            hec_ring_begin(&arrived.ring);
            arrived.pid_fd = hec_intake_process(arrived.pid);
            peers->intake.refused += !take_ring(peers, &arrived, now_ns);
        } else if (mapped) {
            hec_ring_leave(&arrived.ring); /* of another kind */
        } else {
            peers->intake.refused++;
        }
    }
    return true;
}

int64_t hec_peers_poll(struct hec_peers *peers, int64_t now_ns) {
    int64_t next_ns = now_ns + peers->kind->drain_ns;
    hec_intake_poll(&peers->intake, now_ns, take_ring, peers);
    for (int i = 0; i < peers->count;) {
        struct hec_peer *peer = peers->peer[i];
        /* before the drain: what a live process wrote meanwhile waits for the next one */
        bool dead = hec_intake_process_ended(peer->pid, peer->pid_fd);
        if (hec_peer_drain(peers, peer, now_ns, dead))
            next_ns = now_ns + peers->kind->drain_fast_ns;
        if (dead)
            end_at(peers, i, now_ns);
        else
            i++;
    }
    return next_ns;
}

/* Processes that outlive the command may be writing what they flushed at its end. */
static void drain_rest(struct hec_peers *peers, int64_t end_ns) {
    int64_t until_ns = hec_clock_mono_ns() + peers->kind->finish_ns;
    for (bool more = true; more && hec_clock_mono_ns() < until_ns;) {
        more = false;
        for (int i = 0; i < peers->count; i++) {
            hec_peer_drain(peers, peers->peer[i], end_ns, false);
            more = more || hec_ring_pending(&peers->peer[i]->ring) > 0;
        }
        if (more)
            nanosleep(&(struct timespec){.tv_nsec = HEC_NS_PER_MS}, NULL);
    }
}

static void report_refused(struct hec_peers *peers, int64_t t_ns) {
    const struct hec_intake *intake = &peers->intake;
    const char *things = peers->kind->things;
    if (intake->refused > 0)
        hec_reporter_event(peers->reporter, HEC_EVENT_NOTE, t_ns,
                           "%s of %" PRIu64 " processes left out: refused, or over %d at once", things, intake->refused,
                           HEC_PEERS_MAX);
    if (intake->silent > 0)
        hec_reporter_event(peers->reporter, HEC_EVENT_NOTE, t_ns,
                           "%" PRIu64 " connections were given up: they said nothing", intake->silent);
    if (intake->full)
        hec_reporter_event(peers->reporter, HEC_EVENT_NOTE, t_ns,
                           "thousands of processes connected at once: %s may be missing", things);
    if (intake->strangers > 0)
        hec_reporter_event(peers->reporter, HEC_EVENT_NOTE, t_ns, "%" PRIu64 " connections of other users refused",
                           intake->strangers);
}

void hec_peers_finish(struct hec_peers *peers, int64_t end_ns) {
    hec_intake_finish(&peers->intake, end_ns, take_ring, peers);
    drain_rest(peers, end_ns);
    while (peers->count > 0) {
        hec_peer_drain(peers, peers->peer[peers->count - 1], end_ns, true);
        end_at(peers, peers->count - 1, end_ns);
    }
    report_refused(peers, end_ns);
}

void hec_peers_close(struct hec_peers *peers) {
    while (peers->count > 0)
        release(peers, peers->peer[--peers->count]);
    hec_intake_close(&peers->intake);
}
