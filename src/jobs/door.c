#include "jobs/door.h"

#include "base/clock.h"
#include "jobs/request.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUCK_NS (10 * HEC_NS_PER_S) /* without a turn: it is killed, and another one started */

int hec_door_open(struct hec_door *door, const char *path, uint32_t records_max, struct hec_why *why) {
    int pair[2];
    *door = (struct hec_door){.records_max = records_max, .inside = -1, .outside = -1};
    hec_subuid_read(&door->subuid, NULL);
    int err = hec_intake_open(&door->place, path, HEC_RING_TRACE, records_max, why);
    if (err < 0)
        return err;
    chmod(path, 0666); /* everybody may report; what they may ask for is a matter of who they are */
    void *shared = mmap(NULL, sizeof *door->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    door->shared = shared == MAP_FAILED ? NULL : shared;
    if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        err = hec_fail(why, hec_err_from_errno(errno), "no door for the jobs: %s", strerror(errno));
        hec_door_close(door);
        return err;
    }
    door->inside = pair[0];
    door->outside = pair[1]; /* kept, so that nothing is lost when the process is started anew */
    return HEC_OK;
}

static void start(struct hec_door *door, int64_t now_ns) {
    door->begun_ns = now_ns;
    __atomic_store_n(&door->shared->turned_ns, now_ns, __ATOMIC_RELAXED);
    door->pid = fork();
    if (door->pid == 0)
        hec_door_process(door);
    if (door->pid < 0)
        door->pid = 0;
}

static void give_back(struct hec_door *door) {
    while (door->back_count > 0 && hec_pass_send(door->inside, "", 1, &door->back[door->back_count - 1], 1) == HEC_OK)
        close(door->back[--door->back_count]); /* on its way there, so this is not the last of it */
}

void hec_door_keep(struct hec_door *door) {
    int64_t now_ns = hec_clock_mono_ns();
    if (door->pid > 0 && now_ns - __atomic_load_n(&door->shared->turned_ns, __ATOMIC_RELAXED) > STUCK_NS)
        kill(door->pid, SIGKILL);
    if (door->pid > 0 && waitpid(door->pid, NULL, WNOHANG) != 0)
        door->pid = 0;
    if (door->pid == 0 && (door->begun_ns == 0 || now_ns - door->begun_ns > HEC_NS_PER_S))
        start(door, now_ns);
    give_back(door);
}

bool hec_door_take(struct hec_door *door, struct hec_door_arrival *arrival, int *fd) {
    for (;;) {
        int count = 1;
        ssize_t got = hec_pass_receive(door->inside, arrival, sizeof *arrival, fd, &count);
        if (got == HEC_ERR_BUSY || got == HEC_ERR_LOST)
            return false;
        if (got == (ssize_t)sizeof *arrival && count == 1)
            return true;
        if (count == 1)
            close(*fd);
    }
}

void hec_door_give_back(struct hec_door *door, int fd) {
    if (door->back_count < HEC_DOOR_BACK_MAX)
        door->back[door->back_count++] = fd; /* else it stays open: to close it might hold everybody up */
    give_back(door);
}

void hec_door_counts(const struct hec_door *door, struct hec_door_counts *counts) {
    counts->refused = __atomic_load_n(&door->shared->counts.refused, __ATOMIC_RELAXED);
    counts->silent = __atomic_load_n(&door->shared->counts.silent, __ATOMIC_RELAXED);
    counts->cpu_ns = __atomic_load_n(&door->shared->counts.cpu_ns, __ATOMIC_RELAXED);
}

void hec_door_close(struct hec_door *door) {
    if (door->pid > 0) {
        give_back(door);
        kill(door->pid, SIGKILL);
        while (waitpid(door->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (door->inside >= 0)
        close(door->inside);
    if (door->outside >= 0)
        close(door->outside);
    if (door->shared)
        munmap(door->shared, sizeof *door->shared);
    hec_intake_close(&door->place);
}
