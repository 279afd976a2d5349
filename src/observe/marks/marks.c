#include "observe/marks/marks.h"

#include "base/clock.h"
#include "observe/collector.h"
#include "observe/intake.h"
#include "observe/marks/peer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRAIN_NS (100 * HEC_NS_PER_MS)
#define DRAIN_FAST_NS (10 * HEC_NS_PER_MS) /* while some ring was more than a quarter full */
#define PEERS_MAX 512                      /* each holds one descriptor (its pidfd), of usually 1024 */
#define PEERS_RICH 64                      /* those that come later may define few names: 3 MB each is too much then */
#define RINGS_MAX 16                       /* of one process: more are those of programs that it was before (exec) */
#define RECORDS_MAX 65536                  /* largest ring taken: one drain of it is about 10 ms of this thread */
#define EVENTS_MAX 1000

struct marks {
    struct hec_marks_run run;
    struct hec_intake intake;
    struct hec_marks_peer *peer[PEERS_MAX];
    int peer_count;
    uint64_t rings_ended; /* of processes with more than RINGS_MAX */
};

static int marks_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                      struct hec_why *why) {
    if (!options->mark_socket)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "marks are off: there is no socket for them");
    struct marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory for marks");
    int err = hec_intake_open(&marks->intake, options->mark_socket, HEC_RING_MARKS, RECORDS_MAX, why);
    if (err) {
        free(marks);
        return err;
    }
    marks->run = (struct hec_marks_run){
        .sink = sink, .opened_ns = hec_clock_mono_ns(), .end_ns = INT64_MAX, .events_left = EVENTS_MAX};
    hec_marks_rates_init(marks->run.rates, marks->run.opened_ns);
    *self = marks;
    return HEC_OK;
}

static void end_peer(struct marks *marks, int at, int64_t now_ns) {
    hec_marks_peer_end(marks->peer[at], &marks->run, now_ns);
    for (marks->peer_count--; at < marks->peer_count; at++)
        marks->peer[at] = marks->peer[at + 1];
}

/* One process that hands over ring after ring takes no other's place. */
static void end_oldest_of_many(struct marks *marks, pid_t pid, int64_t now_ns) {
    int count = 0, oldest = 0;
    for (int i = marks->peer_count; pid > 0 && i-- > 0;) {
        if (marks->peer[i]->pid != pid)
            continue;
        count++;
        oldest = i;
    }
    if (count < RINGS_MAX)
        return;
    hec_marks_peer_drain(marks->peer[oldest], &marks->run, now_ns, true);
    end_peer(marks, oldest, now_ns);
    marks->rings_ended++;
}

static bool take_ring(void *context, const struct hec_intake_ring *arrived, int64_t now_ns) {
    struct marks *marks = context;
    struct hec_marks_peer *added = NULL;
    struct hec_ring_reader ring = arrived->ring;
    end_oldest_of_many(marks, arrived->pid, now_ns);
    if (marks->peer_count < PEERS_MAX) {
        added = hec_marks_peer_new(&marks->run, ring, arrived->pid, arrived->pid_fd, now_ns);
    } else {
        hec_ring_close(&ring); /* tells the process to stop making marks */
        if (arrived->pid_fd >= 0)
            close(arrived->pid_fd);
    }
    if (added && marks->peer_count >= PEERS_RICH)
        hec_ring_names_init(&added->names, HEC_MARKS_NAMES_FEW, HEC_MARKS_TEXT_BYTES - 1);
    if (added)
        marks->peer[marks->peer_count++] = added;
    return added != NULL;
}

static int64_t marks_poll(void *self, int64_t now_ns) {
    struct marks *marks = self;
    hec_intake_poll(&marks->intake, now_ns, take_ring, marks);
    int64_t next_ns = now_ns + DRAIN_NS;
    for (int i = 0; i < marks->peer_count;) {
        struct hec_marks_peer *peer = marks->peer[i];
        /* before the drain: what a live process wrote meanwhile waits for the next one */
        bool dead = hec_intake_process_ended(peer->pid, peer->pid_fd);
        if (hec_ring_pending(&peer->ring) > peer->ring.mask / 4)
            next_ns = now_ns + DRAIN_FAST_NS;
        hec_marks_peer_drain(peer, &marks->run, now_ns, dead);
        if (dead)
            end_peer(marks, i, now_ns);
        else
            i++;
    }
    hec_marks_units_flush(&marks->run.units, marks->run.sink);
    return next_ns;
}

static void marks_finish(void *self, int64_t end_ns) {
    struct marks *marks = self;
    struct hec_marks_run *run = &marks->run;
    run->end_ns = end_ns;
    hec_intake_finish(&marks->intake, end_ns, take_ring, marks);
    while (marks->peer_count > 0) {
        struct hec_marks_peer *peer = marks->peer[--marks->peer_count];
        hec_marks_peer_drain(peer, run, end_ns, true);
        hec_marks_peer_end(peer, run, end_ns);
    }
    hec_marks_units_flush(&run->units, run->sink);
    if (run->units.refused > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " counts of units left out: more than %d names of units",
                       run->units.refused, HEC_MARKS_UNITS_MAX);
    if (run->facts_refused > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " facts left out: more than %d of a run",
                       run->facts_refused, HEC_MARKS_FACTS_MAX);
    if (marks->intake.refused > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns,
                       "marks of %" PRIu64 " processes left out: refused, or over %d at once", marks->intake.refused,
                       PEERS_MAX);
    if (marks->rings_ended > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns,
                       "%" PRIu64 " rings were ended early: their processes handed over more than %d",
                       marks->rings_ended, RINGS_MAX);
    if (marks->intake.silent > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " connections were given up: they said nothing",
                       marks->intake.silent);
    if (marks->intake.crowded)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "thousands of processes connected at once: marks may be missing");
    if (marks->intake.strangers > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " connections of other users refused",
                       marks->intake.strangers);
}

static void marks_close(void *self) {
    struct marks *marks = self;
    /* peers are left only when finish was never called: say nothing more of them */
    marks->run.events_left = 0;
    while (marks->peer_count > 0) {
        struct hec_marks_peer *peer = marks->peer[--marks->peer_count];
        peer->phase_count = 0;
        peer->step_pending = false;
        memset(peer->found, 0, sizeof peer->found);
        hec_marks_peer_end(peer, &marks->run, 0);
    }
    hec_intake_close(&marks->intake);
    free(marks);
}

const struct hec_collector hec_collector_marks = {
    .name = "marks",
    .lane = HEC_LANE_HOST,
    .open = marks_open,
    .poll = marks_poll,
    .finish = marks_finish,
    .close = marks_close,
};
