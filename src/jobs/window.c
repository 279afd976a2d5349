#include "jobs/window.h"

#include "base/clock.h"
#include "jobs/request.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENOUGH SIGTERM
#define AT_ONCE 200                  /* descriptors in one message: the kernel takes 253 */
#define SLACK_NS (60 * HEC_NS_PER_S) /* for the analysis, on a busy machine */

static bool terminated(const char *text, size_t size) {
    return memchr(text, '\0', size) != NULL;
}

static bool positive(double value) {
    return value >= 0 && isfinite(value);
}

static bool share(double value) {
    return isnan(value) || (value >= 0 && value <= 1);
}

static bool device_valid(const struct hec_window_device *device) {
    bool valid = terminated(device->uuid, sizeof device->uuid) && device->index >= 0;
    for (int state = 0; state < HEC_STATE_COUNT; state++)
        valid = valid && positive(device->seconds[state]) &&
                (isnan(device->joules[state]) || positive(device->joules[state]));
    return valid;
}

static bool result_valid(const struct hec_window_result *r) {
    bool valid = r->magic == HEC_WINDOW_MAGIC && positive(r->seconds) && terminated(r->why, sizeof r->why) &&
                 r->device_count >= 0 && r->device_count <= HEC_WINDOW_DEVICES && r->cause >= -1 &&
                 r->cause < (int)HEC_CAUSE_COUNT && share(r->recoverable) && share(r->confidence) &&
                 r->unit_count >= 0 && r->unit_count <= HEC_WINDOW_UNITS;
    for (int i = 0; valid && i < r->device_count; i++)
        valid = device_valid(&r->device[i]);
    for (int i = 0; valid && i < r->unit_count; i++)
        valid = terminated(r->unit[i].name, sizeof r->unit[i].name) && positive(r->unit[i].count);
    return valid;
}

/* ---- in the agent ---- */

static int start(const char *program, int child_end, pid_t *pid, struct hec_why *why) {
    char name[] = "hec", verb[] = HEC_WINDOW_VERB;
    char *argv[] = {name, verb, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t early;
    sigemptyset(&early);
    sigaddset(&early, ENOUGH); /* it would die of it */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, child_end, HEC_WINDOW_FD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &early);
    int error = posix_spawn(pid, program ? program : "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error
               ? hec_fail(why, hec_err_from_errno(error), "cannot start `hec " HEC_WINDOW_VERB "`: %s", strerror(error))
               : HEC_OK;
}

static int give_plan(int socket, const struct hec_window_plan *plan, const int *rings) {
    int err = hec_pass_send(socket, plan, sizeof *plan, NULL, 0);
    for (int i = 0; err == HEC_OK && i < plan->ring_count; i += AT_ONCE) {
        int count = plan->ring_count - i < AT_ONCE ? plan->ring_count - i : AT_ONCE;
        err = hec_pass_send(socket, &count, sizeof count, rings + i, count);
    }
    return err;
}

int hec_window_begin(const char *program, const struct hec_window_plan *plan, const int *rings, int64_t now_ns,
                     struct hec_window_run *run, struct hec_why *why) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return hec_fail(why, hec_err_from_errno(errno), "no socket for a window: %s", strerror(errno));
    int err = give_plan(pair[0], plan, rings); /* it waits there */
    if (err < 0)
        hec_fail(why, err, "the plan of a window cannot be handed over: %s", strerror(errno));
    else
        err = start(program, pair[1], &run->pid, why);
    close(pair[1]);
    if (err < 0) {
        close(pair[0]);
        return err;
    }
    run->socket = pair[0];
    run->deadline_ns = now_ns + (int64_t)(plan->seconds * (double)HEC_NS_PER_S) + SLACK_NS;
    return HEC_OK;
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* It has sent its last, or is killed. */
static double reap(struct hec_window_run *run) {
    struct rusage used = {0};
    int status;
    kill(run->pid, SIGKILL);
    while (wait4(run->pid, &status, 0, &used) < 0 && errno == EINTR) {
    }
    close(run->socket);
    return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

int hec_window_poll(struct hec_window_run *run, int64_t now_ns, struct hec_window_result *result, int *file,
                    double *cpu_seconds) {
    int count = 1;
    ssize_t got = hec_pass_receive(run->socket, result, sizeof *result, file, &count);
    if (got == HEC_ERR_BUSY && now_ns < run->deadline_ns)
        return HEC_ERR_BUSY;
    if (got < 0 || count == 0)
        *file = -1;
    *cpu_seconds = reap(run);
    if (got == (ssize_t)sizeof *result && result_valid(result))
        return HEC_OK;
    if (*file >= 0)
        close(*file);
    return HEC_ERR_FAILED;
}

void hec_window_enough(const struct hec_window_run *run) {
    kill(run->pid, ENOUGH);
}

void hec_window_abort(struct hec_window_run *run) {
    reap(run);
}

/* ---- in that process ---- */

void hec_window_when_enough(void (*handler)(int signal)) {
    sigset_t early;
    sigaction(ENOUGH, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
    sigemptyset(&early);
    sigaddset(&early, ENOUGH);
    sigprocmask(SIG_UNBLOCK, &early, NULL);
}

/* The next message, which is there or comes at once. */
static ssize_t await(void *message, size_t bytes, int *fds, int *count) {
    int room = *count;
    for (;;) {
        *count = room;
        ssize_t got = hec_pass_receive(HEC_WINDOW_FD, message, bytes, fds, count);
        if (got != HEC_ERR_BUSY)
            return got;
        struct pollfd ready = {.fd = HEC_WINDOW_FD, .events = POLLIN};
        poll(&ready, 1, -1);
    }
}

int hec_window_receive(struct hec_window_plan *plan, int *rings) {
    int none = 0;
    if (await(plan, sizeof *plan, NULL, &none) != (ssize_t)sizeof *plan || plan->magic != HEC_WINDOW_MAGIC ||
        plan->ring_count < 0 || plan->ring_count > HEC_WINDOW_RINGS)
        return HEC_ERR_CORRUPT;
    for (int i = 0; i < plan->ring_count;) {
        int announced = 0, count = AT_ONCE < plan->ring_count - i ? AT_ONCE : plan->ring_count - i;
        if (await(&announced, sizeof announced, rings + i, &count) != (ssize_t)sizeof announced || count != announced ||
            count <= 0)
            return HEC_ERR_CORRUPT;
        i += count;
    }
    return HEC_OK;
}

int hec_window_send(const struct hec_window_result *result, int file) {
    return hec_pass_send(HEC_WINDOW_FD, result, sizeof *result, &file, file >= 0);
}
