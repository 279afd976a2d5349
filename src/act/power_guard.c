#include "act/power_guard.h"

#include "act/power_restore.h"
#include "base/text.h"
#include "launch/descendants.h"
#include "launch/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Inside src/act/power_*: what the guardian and its client say to each other. */

enum power_wish { POWER_SET, POWER_CLEAR, POWER_CLOSE };

struct power_request {
    enum power_wish wish;
    enum hec_power_knob knob;
    int64_t value;
    char uuid[HEC_NVML_UUID_SIZE]; /* of one device; "": of all */
};

struct power_reply {
    int err;
    struct hec_why why; /* also without an error, where there is something to say */
};

#define SAID_MAX (64 << 10)

/* A driver that is busy for a moment: its limits are not left behind for that. */
#define ATTEMPTS 20
#define ATTEMPT_NS 250000000L

struct lease {
    struct hec_power_device device;
    int lock;                           /* -1: not held */
    bool written[HEC_POWER_KNOB_COUNT]; /* there is an entry in the journal */
    struct hec_power_entry entry[HEC_POWER_KNOB_COUNT];
};

struct guardian {
    struct hec_power_machine machine;
    struct hec_power_entry holder;
    int count;
    struct lease leases[HEC_POWER_DEVICES];
};

static bool is_of(const char *uuid, const struct lease *lease) {
    return uuid[0] == '\0' || strcmp(uuid, lease->device.uuid) == 0;
}

/* Put everything back, of one device or of all (""). Every device is tried; the first reason counts. */
static int release(struct guardian *g, const char *uuid, struct hec_buf *said, struct hec_why *why) {
    int result = HEC_OK;
    for (int i = 0; i < g->count; i++) {
        struct lease *lease = &g->leases[i];
        bool kept = false;
        if (!is_of(uuid, lease))
            continue;
        for (int k = 0; k < HEC_POWER_KNOB_COUNT; k++) {
            struct hec_why reason = {""};
            int err =
                lease->written[k] ? hec_power_restore_entry(&g->machine, &lease->entry[k], said, &reason) : HEC_OK;
            lease->written[k] = lease->written[k] && err < 0;
            kept |= lease->written[k];
            if (err < 0 && result == HEC_OK)
                result = hec_fail(why, err, "%.300s", reason.text);
        }
        if (!kept && lease->lock >= 0) {
            hec_power_journal_unlock(lease->device.uuid, g->machine.name, lease->lock);
            lease->lock = -1;
        }
    }
    return result;
}

/* What a lease left whose holder and guardian were killed, under the lock. A damaged entry is an error: what was there before is
 * not known. */
static int put_back_left(const struct guardian *g, const struct lease *lease, struct hec_why *why) {
    struct hec_power_entry left;
    struct hec_buf said;
    struct hec_why reason = {""}; /* that there is no entry is nothing to say */
    int err = HEC_OK;
    hec_buf_init(&said, SAID_MAX);
    for (int k = 0; k < HEC_POWER_KNOB_COUNT && err >= 0; k++) {
        err = hec_power_journal_read(lease->device.uuid, g->machine.name, (enum hec_power_knob)k, &left, &reason);
        if (err == HEC_OK)
            err = hec_power_restore_entry(&g->machine, &left, &said, &reason);
        else if (err == HEC_ERR_NOTFOUND)
            err = HEC_OK;
    }
    hec_buf_free(&said);
    return err < 0 ? hec_fail(why, err, "%s", reason.text) : HEC_OK;
}

/* Everything that can be known before the first write. */
static int prepare(struct guardian *g, struct lease *lease, const struct power_request *request, struct hec_why *why) {
    int err = hec_power_device_check(&g->machine, &lease->device, request->knob, request->value, why);
    if (err < 0 || lease->lock >= 0)
        return err;
    err = hec_power_journal_lock(lease->device.uuid, g->machine.name, &lease->lock, why);
    return err < 0 ? err : put_back_left(g, lease, why);
}

/* What this lease has set before was changed by somebody else since: that stays. (A lock of clocks cannot be read.) */
static int check_ours(const struct guardian *g, const struct lease *lease, enum hec_power_knob knob,
                      struct hec_why *why) {
    int64_t now;
    char words[32];
    int err = knob == HEC_POWER_CAP ? hec_power_device_read(&g->machine, &lease->device, knob, &now, why) : HEC_OK;
    if (err < 0 || knob != HEC_POWER_CAP || now == lease->entry[knob].value)
        return err;
    hec_power_value_words(knob, now, words);
    return hec_fail(why, HEC_ERR_BUSY, "somebody else has set the limit of the %s to %s, which stays",
                    lease->device.name, words);
}

static int write_one(struct guardian *g, struct lease *lease, const struct power_request *request,
                     struct hec_why *why) {
    struct hec_power_entry *entry = &lease->entry[request->knob];
    int err = HEC_OK;
    if (lease->written[request->knob]) {
        err = check_ours(g, lease, request->knob, why);
        if (err < 0)
            return err;
        entry->before = entry->value;
    } else {
        *entry = g->holder;
        entry->knob = request->knob;
        memcpy(entry->uuid, lease->device.uuid, sizeof entry->uuid);
        err = hec_power_device_read(&g->machine, &lease->device, request->knob, &entry->prior, why);
        if (err == HEC_OK && request->knob == HEC_POWER_CLOCK && entry->prior)
            err = hec_fail(why, HEC_ERR_BUSY,
                           "somebody limits the clocks of the %s already, and what was set cannot be read",
                           lease->device.name);
    }
    entry->value = request->value;
    if (err == HEC_OK)
        err = hec_power_journal_write(entry, why);
    if (err < 0)
        return err;
    lease->written[request->knob] = true;
    return hec_power_device_write(&g->machine, &lease->device, request->knob, request->value, true, why);
}

static int set(struct guardian *g, const struct power_request *request, struct hec_why *why) {
    if (request->knob == HEC_POWER_CLOCK && !g->machine.simulated)
        return hec_fail(
            why, HEC_ERR_UNSUPPORTED,
            "a lock of clocks cannot be read from the driver, so what was there could not be put back: cap the power");
    int err = HEC_ERR_NOTFOUND;
    for (int i = 0; i < g->count && (err == HEC_OK || err == HEC_ERR_NOTFOUND); i++)
        if (is_of(request->uuid, &g->leases[i]))
            err = prepare(g, &g->leases[i], request, why);
    if (err == HEC_ERR_NOTFOUND)
        return hec_fail(why, err, "there is no GPU %s", request->uuid);
    for (int i = 0; i < g->count && err == HEC_OK; i++)
        if (is_of(request->uuid, &g->leases[i]))
            err = write_one(g, &g->leases[i], request, why);
    return err;
}

static void answer(struct guardian *g, const struct power_request *request, struct power_reply *reply) {
    struct hec_buf said;
    struct hec_why late = {""};
    hec_buf_init(&said, SAID_MAX);
    *reply = (struct power_reply){.err = HEC_OK};
    if (request->wish == POWER_SET)
        reply->err = set(g, request, &reply->why);
    if (request->wish != POWER_SET || reply->err < 0) {
        int err = release(g, request->uuid, &said, &late);
        if (err < 0)
            *reply = (struct power_reply){.err = err, .why = late};
        else if (reply->err == HEC_OK && said.length)
            snprintf(reply->why.text, sizeof reply->why.text, "%.*s", (int)strcspn(said.data, "\n"), said.data);
    }
    hec_buf_free(&said);
}

static int start(struct guardian *g, const struct hec_power_options *options, struct hec_why *why) {
    struct hec_buf said;
    struct hec_power_device devices[HEC_POWER_DEVICES];
    int left;
    hec_buf_init(&said, SAID_MAX);
    hec_power_restore_all(&left, &said); /* what stays behind of these very devices is met again by prepare */
    hec_buf_free(&said);
    int err = hec_power_machine_open(options->simulated, &g->machine, why);
    if (err < 0)
        return err;
    memcpy(g->holder.machine, g->machine.name, sizeof g->holder.machine);
    memcpy(g->holder.boot, g->machine.boot, sizeof g->holder.boot);
    memcpy(g->holder.driver, g->machine.driver, sizeof g->holder.driver);
    int count = hec_power_devices(&g->machine, options->visible, devices, why);
    for (int i = 0; i < count; i++)
        g->leases[i] = (struct lease){.device = devices[i], .lock = -1};
    g->count = count < 0 ? 0 : count;
    return count < 0 ? count : HEC_OK;
}

/* Also a client that was killed in the middle of a request. */
static void put_back(struct guardian *g) {
    struct hec_buf said;
    struct hec_why why;
    hec_buf_init(&said, SAID_MAX);
    for (int i = 0; i < ATTEMPTS && release(g, "", &said, &why) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = ATTEMPT_NS}, NULL);
    hec_buf_free(&said);
}

/* Serve the requests of a socket until it ends, put everything back. The first reply says whether it can. holder: who asks. */
static void power_guardian_serve(const struct hec_power_options *options, int socket,
                                 const struct hec_power_entry *holder) {
    struct guardian *g = calloc(1, sizeof *g);
    struct power_reply reply = {.err = HEC_ERR_NOMEM};
    struct power_request request;
    ssize_t got;
    if (g) {
        g->holder = *holder;
        reply.err = start(g, options, &reply.why);
    }
    bool serving = send(socket, &reply, sizeof reply, MSG_NOSIGNAL) == (ssize_t)sizeof reply && reply.err == HEC_OK;
    while (serving) {
        while ((got = recv(socket, &request, sizeof request, 0)) < 0 && errno == EINTR)
            ;
        if (got != (ssize_t)sizeof request)
            break;
        answer(g, &request, &reply);
        serving = send(socket, &reply, sizeof reply, MSG_NOSIGNAL) == (ssize_t)sizeof reply;
    }
    if (g) {
        put_back(g);
        hec_power_machine_close(&g->machine);
        free(g);
    }
}

#define NAME "hec-power" /* of the guardian, as `ps` shows it */
#define ANSWER_S 60      /* a driver may take seconds to wake a device */
#define TEXT_MAX (64 << 10)

struct hec_power_guard {
    int socket;
    struct hec_scratch folder; /* of the state of a simulated machine that names none */
};

/* Of the holder of the lease. */
static void describe(struct hec_power_entry *holder) {
    char line[128];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < length; i++)
        if (line[i] == '\0')
            line[i] = ' ';
    while (length > 0 && line[length - 1] == ' ')
        length--;
    *holder = (struct hec_power_entry){.holder = getpid(), .holder_start = (int64_t)hec_process_start(getpid())};
    hec_text_clean(holder->program, sizeof holder->program, line, length > 0 ? (size_t)length : 0, true);
}

/* It has nothing of its client's: no terminal, no files that somebody waits for, no signals but SIGKILL. */
static void become_guardian(int socket) {
    sigset_t all;
    int null = open("/dev/null", O_RDWR);
    setsid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, NAME);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    dup2(socket, 3);
    close_range(4, ~0U, 0);
}

/* By a process between that ends at once: it belongs to init, or to who looks after orphans above this process. */
static int fork_guardian(const struct hec_power_options *options, const int sockets[2]) {
    struct hec_power_entry holder;
    int status;
    describe(&holder);
    pid_t between = fork();
    if (between == 0) {
        pid_t guardian = fork();
        if (guardian != 0)
            _exit(guardian < 0 ? 1 : 0);
        become_guardian(sockets[1]);
        power_guardian_serve(options, 3, &holder);
        _exit(0);
    }
    if (between < 0)
        return errno;
    while (waitpid(between, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EAGAIN;
}

/* HEC_ERR_LOST: there is no guardian any more. */
static int take_reply(struct hec_power_guard *guard, struct hec_why *why) {
    struct power_reply reply;
    ssize_t got;
    while ((got = recv(guard->socket, &reply, sizeof reply, 0)) < 0 && errno == EINTR)
        ;
    if (got < 0 && errno == EAGAIN)
        return hec_fail(why, HEC_ERR_BUSY,
                        "the driver does not answer; the guardian puts the limits back when it does");
    if (got != (ssize_t)sizeof reply)
        return hec_fail(why, HEC_ERR_LOST, "the guardian of the power limits was killed");
    if (why && reply.why.text[0])
        *why = reply.why;
    return reply.err;
}

static int ask(struct hec_power_guard *guard, const struct power_request *request, struct hec_why *why) {
    if (send(guard->socket, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request)
        return hec_fail(why, HEC_ERR_LOST, "the guardian of the power limits was killed");
    return take_reply(guard, why);
}

/* Runs on the same machine have to find the limits: the machine keeps them in a file. */
static int share_state(const struct hec_power_options *options, struct hec_power_guard *guard, struct hec_why *why) {
    char path[PATH_MAX + 8];
    if (!options->simulated || strstr(options->simulated, ",state="))
        return HEC_OK;
    int err = hec_path_scratch(&guard->folder, why);
    if (err < 0)
        return err;
    snprintf(path, sizeof path, "%s/state", guard->folder.path);
    hec_simulation_keep_state(path);
    return HEC_OK;
}

static void drop(struct hec_power_guard *guard) {
    if (guard->socket >= 0)
        close(guard->socket);
    if (guard->folder.path[0])
        hec_simulation_keep_state(NULL);
    hec_scratch_remove(&guard->folder);
    free(guard);
}

int hec_power_guard_open(const struct hec_power_options *options, struct hec_power_guard **out, struct hec_why *why) {
    int sockets[2], err;
    *out = NULL;
    if (!options->simulated && !options->allowed)
        return hec_fail(why, HEC_ERR_PERMISSION,
                        "power limits and clocks of this machine's GPUs are only changed with --allow-power");
    struct hec_power_guard *guard = calloc(1, sizeof *guard);
    if (!guard)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the power guard");
    guard->socket = -1;
    if ((err = share_state(options, guard, why)) < 0) {
        drop(guard);
        return err;
    }
    int errnum = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0 ? 0 : errno;
    if (errnum == 0) {
        guard->socket = sockets[0];
        setsockopt(guard->socket, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = ANSWER_S},
                   sizeof(struct timeval));
        errnum = fork_guardian(options, sockets);
        close(sockets[1]);
    }
    err = errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot start a power guard: %s", strerror(errnum))
                 : take_reply(guard, why);
    if (err < 0)
        drop(guard);
    else
        *out = guard;
    return err;
}

int hec_power_guard_set(struct hec_power_guard *guard, enum hec_power_knob knob, int64_t value, struct hec_why *why) {
    return hec_power_guard_set_of(guard, "", knob, value, why);
}

int hec_power_guard_set_of(struct hec_power_guard *guard, const char *uuid, enum hec_power_knob knob, int64_t value,
                           struct hec_why *why) {
    struct power_request request = {.wish = POWER_SET, .knob = knob, .value = value};
    snprintf(request.uuid, sizeof request.uuid, "%s", uuid);
    return ask(guard, &request, why);
}

int hec_power_guard_clear_of(struct hec_power_guard *guard, const char *uuid, struct hec_why *why) {
    struct power_request request = {.wish = POWER_CLEAR};
    snprintf(request.uuid, sizeof request.uuid, "%s", uuid);
    return ask(guard, &request, why);
}

/* What a guardian that was killed has left, among what others have. */
static int put_back_instead(struct hec_why *why) {
    struct hec_buf said;
    int left = 0;
    hec_buf_init(&said, TEXT_MAX);
    int err = hec_power_restore(&left, &said, why);
    if (err >= 0 && left > 0)
        err = hec_fail(why, HEC_ERR_FAILED, "%.*s", (int)strcspn(hec_buf_text(&said), "\n"), hec_buf_text(&said));
    hec_buf_free(&said);
    return err < 0 ? err : HEC_OK;
}

int hec_power_guard_clear(struct hec_power_guard *guard, struct hec_why *why) {
    int err = ask(guard, &(struct power_request){.wish = POWER_CLEAR}, why);
    return err == HEC_ERR_LOST ? put_back_instead(why) : err;
}

int hec_power_guard_close(struct hec_power_guard *guard, struct hec_why *why) {
    if (!guard)
        return HEC_OK;
    int err = ask(guard, &(struct power_request){.wish = POWER_CLOSE}, why);
    if (err == HEC_ERR_LOST)
        err = put_back_instead(why);
    drop(guard);
    return err;
}

/* In a process of its own: it opens machines, and a driver that hangs keeps nobody. */
static void restore_in_child(int out) {
    struct hec_buf said;
    int counts[2];
    hec_buf_init(&said, TEXT_MAX);
    counts[0] = hec_power_restore_all(&counts[1], &said);
    if (write(out, counts, sizeof counts) != (ssize_t)sizeof counts ||
        write(out, hec_buf_text(&said), said.length) != (ssize_t)said.length)
        _exit(1);
    _exit(0);
}

static bool take_all(int in, int counts[2], struct hec_buf *said) {
    char text[4096];
    ssize_t got;
    bool began = read(in, counts, 2 * sizeof counts[0]) == (ssize_t)(2 * sizeof counts[0]);
    while (began && (got = read(in, text, sizeof text)) != 0)
        if (got > 0)
            hec_buf_add(said, text, (size_t)got);
        else if (errno != EINTR)
            return false;
    return began;
}

int hec_power_restore(int *left, struct hec_buf *said, struct hec_why *why) {
    int pipes[2], counts[2] = {0}, status = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot restore power limits: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        restore_in_child(pipes[1]);
    int errnum = child < 0 ? errno : 0;
    close(pipes[1]);
    bool done = child > 0 && take_all(pipes[0], counts, said);
    close(pipes[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (left)
        *left = counts[1];
    if (!done)
        return hec_fail(why, errnum ? hec_err_from_errno(errnum) : HEC_ERR_FAILED, "cannot restore power limits: %s",
                        errnum ? strerror(errnum) : "the driver ended the process that tried");
    return counts[0];
}
