#include "observe/intake.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAITING_NS HEC_NS_PER_S
/* As many as the kernel lets wait to be accepted: who connected before is served, whoever else connects meanwhile. */
#define ACCEPTS_PER_POLL (SOMAXCONN + 1)

int hec_intake_open(struct hec_intake *intake, const char *path, enum hec_ring_role role, uint32_t records_max,
                    struct hec_why *why) {
    *intake = (struct hec_intake){.path = path, .role = role, .records_max = records_max};
    struct stat info;
    int err = hec_ring_listen(path, &intake->listener);
    if (err)
        return hec_fail(why, err, "cannot listen on %s: %s", path,
                        err == HEC_ERR_LIMIT  ? "the path is longer than 107 bytes"
                        : err == HEC_ERR_BUSY ? "another process listens there"
                                              : strerror(errno));
    chmod(path, 0600); /* the folder is private already */
    if (lstat(path, &info) == 0)
        intake->inode = info.st_ino;
    return HEC_OK;
}

static bool credentials(int connection, struct ucred *peer) {
    socklen_t length = sizeof *peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, peer, &length) == 0;
}

struct receiver {
    bool (*take)(void *context, const struct hec_intake_ring *arrived, int64_t now_ns);
    void *context;
    int64_t now_ns;
};

int hec_intake_process(pid_t pid) {
    return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static bool map(const struct hec_intake *intake, int fd, struct hec_ring_reader *ring) {
    if (hec_ring_map(fd, ring))
        return false;
    if (ring->role == (uint32_t)intake->role && ring->mask < intake->records_max)
        return true;
    hec_ring_close(ring); /* asks the process to stop writing */
    return false;
}

/* The ring of a new process, in fd, which is closed here. */
static bool adopt(const struct hec_intake *intake, int connection, int fd, const struct receiver *to) {
    struct hec_intake_ring arrived = {.pid_fd = -1};
    struct ucred peer;
    bool good = credentials(connection, &peer) && map(intake, fd, &arrived.ring);
    close(fd);
    if (!good)
        return false;
    arrived.pid = peer.pid;
    arrived.pid_fd = hec_intake_process(peer.pid);
    return to->take(to->context, &arrived, to->now_ns);
}

/* false: nothing has arrived yet, keep the connection. The caller closes it. */
static bool receive(struct hec_intake *intake, int connection, const struct receiver *to) {
    struct hec_ring_hello hello;
    int fd;
    int err = hec_ring_receive(connection, &hello, &fd);
    if (err == HEC_ERR_BUSY)
        return false;
    if (!err)
        intake->refused += !adopt(intake, connection, fd, to);
    else if (err != HEC_ERR_LOST)
        intake->refused++;
    return true;
}

static void forget(struct hec_intake *intake, int at) {
    close(intake->waiting[at].fd);
    memmove(&intake->waiting[at], &intake->waiting[at + 1],
            (size_t)(--intake->waiting_count - at) * sizeof intake->waiting[0]);
}

/* Of the process that has most connections waiting, the oldest: who says nothing a thousand times keeps nobody out. */
static int least_deserving(const struct hec_intake *intake) {
    int best = 0, most = 0;
    for (int i = 0; i < intake->waiting_count; i++) {
        int count = 0;
        for (int k = i; k < intake->waiting_count; k++)
            count += intake->waiting[k].pid == intake->waiting[i].pid;
        if (count > most) {
            most = count;
            best = i;
        }
    }
    return best;
}

static void wait_for(struct hec_intake *intake, int connection, pid_t pid, int64_t now_ns) {
    if (intake->waiting_count == HEC_INTAKE_WAITING_MAX) {
        forget(intake, least_deserving(intake));
        intake->silent++;
    }
    intake->waiting[intake->waiting_count].fd = connection;
    intake->waiting[intake->waiting_count].pid = pid;
    intake->waiting[intake->waiting_count++].deadline_ns = now_ns + WAITING_NS;
}

static void take_waiting(struct hec_intake *intake, const struct receiver *to) {
    for (int i = 0; i < intake->waiting_count;) {
        bool done = receive(intake, intake->waiting[i].fd, to), late = to->now_ns >= intake->waiting[i].deadline_ns;
        intake->silent += !done && late;
        if (done || late)
            forget(intake, i);
        else
            i++;
    }
}

static void take_new(struct hec_intake *intake, const struct receiver *to) {
    for (int i = 0; i < ACCEPTS_PER_POLL; i++) {
        int connection = accept4(intake->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct ucred peer;
        if (connection < 0)
            return;
        if (!credentials(connection, &peer) || peer.uid != geteuid()) {
            intake->strangers++;
            close(connection);
        } else if (receive(intake, connection, to)) {
            close(connection);
        } else {
            wait_for(intake, connection, peer.pid, to->now_ns);
        }
    }
    intake->full = true;
}

void hec_intake_poll(struct hec_intake *intake, int64_t now_ns,
                     bool (*take)(void *context, const struct hec_intake_ring *arrived, int64_t now_ns),
                     void *context) {
    const struct receiver to = {take, context, now_ns};
    if (intake->listener < 0)
        return;
    take_waiting(intake, &to);
    take_new(intake, &to);
}

void hec_intake_finish(struct hec_intake *intake, int64_t now_ns,
                       bool (*take)(void *context, const struct hec_intake_ring *arrived, int64_t now_ns),
                       void *context) {
    hec_intake_poll(intake, now_ns, take, context);
    intake->silent += (uint64_t)intake->waiting_count;
    while (intake->waiting_count > 0)
        forget(intake, intake->waiting_count - 1);
}

void hec_intake_close(struct hec_intake *intake) {
    struct stat info;
    while (intake->waiting_count > 0)
        forget(intake, intake->waiting_count - 1);
    if (intake->listener < 0)
        return;
    close(intake->listener);
    if (lstat(intake->path, &info) == 0 && info.st_ino == intake->inode) /* not that of another */
        unlink(intake->path);
}

bool hec_intake_process_ended(pid_t pid, int pid_fd) {
    if (pid_fd >= 0) {
        struct pollfd ready = {.fd = pid_fd, .events = POLLIN};
        return poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN);
    }
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}
