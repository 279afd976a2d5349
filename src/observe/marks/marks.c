#include "observe/marks/marks.h"

#include "base/clock.h"
#include "observe/collector.h"
#include "observe/marks/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DRAIN_NS (100 * HEC_NS_PER_MS)
#define DRAIN_FAST_NS (10 * HEC_NS_PER_MS) /* while some ring was more than a quarter full */
#define PEERS_MAX 512                      /* each holds one descriptor (its pidfd), of usually 1024 */
#define PEERS_RICH 64                      /* those that come later may define few names: 3 MB each is too much then */
#define RECORDS_MAX 65536                  /* largest ring taken: one drain of it is about 10 ms of this thread */
#define WAITING_MAX 32                     /* connected and silent */
#define WAITING_NS HEC_NS_PER_S
#define ACCEPTS_PER_POLL 512
#define EVENTS_MAX 1000

struct marks {
    struct hec_marks_run run;
    const char *path;
    int listener;
    struct hec_marks_peer *peer[PEERS_MAX];
    int peer_count;
    struct {
        int fd;
        int64_t deadline_ns;
    } waiting[WAITING_MAX];
    int waiting_count;
    uint64_t refused;   /* processes over PEERS_MAX, or whose ring was not acceptable */
    uint64_t strangers; /* connections of another user */
};

static int marks_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                      struct hec_why *why) {
    if (!options->mark_socket)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "marks are off: there is no socket for them");
    struct marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory for marks");
    int err = hec_ring_listen(options->mark_socket, &marks->listener);
    if (err) {
        free(marks);
        return hec_fail(why, err, "cannot listen for marks on %s: %s", options->mark_socket,
                        err == HEC_ERR_LIMIT ? "the path is longer than 107 bytes" : strerror(errno));
    }
    chmod(options->mark_socket, 0600); /* the folder is private already */
    marks->path = options->mark_socket;
    marks->run = (struct hec_marks_run){
        .sink = sink, .opened_ns = hec_clock_mono_ns(), .end_ns = INT64_MAX, .events_left = EVENTS_MAX};
    *self = marks;
    return HEC_OK;
}

/* The ring of a new process, in fd (closed here). */
static void adopt(struct marks *marks, int connection, int fd, int64_t now_ns) {
    struct ucred peer = {0};
    socklen_t length = sizeof peer;
    struct hec_ring_reader ring;
    bool known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    int err = hec_ring_map(fd, &ring);
    close(fd);
    if (err || !known || ring.role != HEC_RING_MARKS || ring.mask >= RECORDS_MAX || marks->peer_count == PEERS_MAX) {
        if (!err)
            hec_ring_close(&ring); /* tells the process to stop making marks */
        marks->refused++;
        return;
    }
    /* pid 0: a process of another pid namespace that is not visible from here */
    int pid_fd = peer.pid > 0 ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;
    struct hec_marks_peer *added = hec_marks_peer_new(ring, peer.pid, pid_fd, now_ns);
    if (added && marks->peer_count >= PEERS_RICH)
        hec_ring_names_init(&added->names, HEC_MARKS_NAMES_FEW, HEC_MARKS_TEXT_BYTES - 1);
    if (added)
        marks->peer[marks->peer_count++] = added;
    else
        marks->refused++;
}

static bool same_user(int connection) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

/* false: nothing has arrived yet, keep the connection. */
static bool receive(struct marks *marks, int connection, int64_t now_ns) {
    struct hec_ring_hello hello;
    int fd;
    int err = hec_ring_receive(connection, &hello, &fd);
    if (err == HEC_ERR_BUSY)
        return false;
    if (!err)
        adopt(marks, connection, fd, now_ns);
    else if (err != HEC_ERR_LOST)
        marks->refused++;
    close(connection);
    return true;
}

static void accept_all(struct marks *marks, int64_t now_ns) {
    for (int i = 0; i < marks->waiting_count;) {
        bool done = receive(marks, marks->waiting[i].fd, now_ns);
        if (!done && now_ns >= marks->waiting[i].deadline_ns) {
            close(marks->waiting[i].fd);
            marks->refused++;
            done = true;
        }
        if (done)
            marks->waiting[i] = marks->waiting[--marks->waiting_count];
        else
            i++;
    }
    for (int i = 0; i < ACCEPTS_PER_POLL && marks->waiting_count < WAITING_MAX; i++) {
        int connection = accept4(marks->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (connection < 0)
            return;
        if (!same_user(connection)) {
            marks->strangers++;
            close(connection);
        } else if (!receive(marks, connection, now_ns)) {
            marks->waiting[marks->waiting_count].fd = connection;
            marks->waiting[marks->waiting_count++].deadline_ns = now_ns + WAITING_NS;
        }
    }
}

static bool peer_dead(const struct hec_marks_peer *peer) {
    if (peer->pid_fd >= 0) {
        struct pollfd ready = {.fd = peer->pid_fd, .events = POLLIN};
        return poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN);
    }
    return peer->pid > 0 && kill(peer->pid, 0) != 0 && errno == ESRCH;
}

static int64_t marks_poll(void *self, int64_t now_ns) {
    struct marks *marks = self;
    accept_all(marks, now_ns);
    int64_t next_ns = now_ns + DRAIN_NS;
    for (int i = 0; i < marks->peer_count;) {
        struct hec_marks_peer *peer = marks->peer[i];
        bool dead = peer_dead(peer); /* before the drain: what a live process wrote meanwhile waits for the next one */
        if (hec_ring_pending(&peer->ring) > peer->ring.mask / 4)
            next_ns = now_ns + DRAIN_FAST_NS;
        hec_marks_peer_drain(peer, &marks->run, now_ns, dead);
        if (dead) {
            hec_marks_peer_end(peer, &marks->run, now_ns);
            marks->peer[i] = marks->peer[--marks->peer_count];
        } else {
            i++;
        }
    }
    hec_marks_units_flush(&marks->run.units, marks->run.sink);
    return next_ns;
}

static void marks_finish(void *self, int64_t end_ns) {
    struct marks *marks = self;
    struct hec_marks_run *run = &marks->run;
    run->end_ns = end_ns;
    accept_all(marks, end_ns);
    while (marks->peer_count > 0) {
        struct hec_marks_peer *peer = marks->peer[--marks->peer_count];
        hec_marks_peer_drain(peer, run, end_ns, true);
        hec_marks_peer_end(peer, run, end_ns);
    }
    hec_marks_units_flush(&run->units, run->sink);
    if (run->units.refused > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " counts of units left out: more than %d names of units",
                       run->units.refused, HEC_MARKS_UNITS_MAX);
    if (marks->refused > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns,
                       "marks of %" PRIu64 " processes left out: refused, or over %d at once", marks->refused,
                       PEERS_MAX);
    if (marks->strangers > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " connections of other users refused", marks->strangers);
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
    while (marks->waiting_count > 0)
        close(marks->waiting[--marks->waiting_count].fd);
    close(marks->listener);
    unlink(marks->path);
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
