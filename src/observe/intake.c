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
#define ACCEPTS_PER_POLL 512

int hec_intake_open(struct hec_intake *intake, const char *path, enum hec_ring_role role, uint32_t records_max,
                    struct hec_why *why) {
    *intake = (struct hec_intake){.path = path, .role = role, .records_max = records_max};
    int err = hec_ring_listen(path, &intake->listener);
    if (err)
        return hec_fail(why, err, "cannot listen on %s: %s", path,
                        err == HEC_ERR_LIMIT ? "the path is longer than 107 bytes" : strerror(errno));
    chmod(path, 0600); /* the folder is private already */
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

/* The ring of a new process, in fd (closed here). */
static bool adopt(const struct hec_intake *intake, int connection, int fd, const struct receiver *to) {
    struct hec_intake_ring arrived;
    struct ucred peer;
    int err = hec_ring_map(fd, &arrived.ring);
    close(fd);
    if (err)
        return false;
    if (!credentials(connection, &peer) || arrived.ring.role != intake->role ||
        arrived.ring.mask >= intake->records_max) {
        hec_ring_close(&arrived.ring); /* tells the process to stop writing */
        return false;
    }
    arrived.pid = peer.pid;
    arrived.pid_fd = peer.pid > 0 ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;
    return to->take(to->context, &arrived, to->now_ns);
}

/* false: nothing has arrived yet, keep the connection. */
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
    close(connection);
    return true;
}

void hec_intake_poll(struct hec_intake *intake, int64_t now_ns,
                     bool (*take)(void *context, const struct hec_intake_ring *arrived, int64_t now_ns),
                     void *context) {
    const struct receiver to = {take, context, now_ns};
    for (int i = 0; i < intake->waiting_count;) {
        bool done = receive(intake, intake->waiting[i].fd, &to);
        if (!done && now_ns >= intake->waiting[i].deadline_ns) {
            close(intake->waiting[i].fd);
            intake->refused++;
            done = true;
        }
        if (done)
            intake->waiting[i] = intake->waiting[--intake->waiting_count];
        else
            i++;
    }
    for (int i = 0; i < ACCEPTS_PER_POLL && intake->waiting_count < HEC_INTAKE_WAITING_MAX; i++) {
        int connection = accept4(intake->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct ucred peer;
        if (connection < 0)
            return;
        if (!credentials(connection, &peer) || peer.uid != geteuid()) {
            intake->strangers++;
            close(connection);
        } else if (!receive(intake, connection, &to)) {
            intake->waiting[intake->waiting_count].fd = connection;
            intake->waiting[intake->waiting_count++].deadline_ns = now_ns + WAITING_NS;
        }
    }
}

void hec_intake_close(struct hec_intake *intake) {
    while (intake->waiting_count > 0)
        close(intake->waiting[--intake->waiting_count].fd);
    close(intake->listener);
    unlink(intake->path);
}

bool hec_intake_process_ended(pid_t pid, int pid_fd) {
    if (pid_fd >= 0) {
        struct pollfd ready = {.fd = pid_fd, .events = POLLIN};
        return poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN);
    }
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}
