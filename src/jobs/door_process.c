#include "jobs/door.h"

#include "base/clock.h"
#include "jobs/jobs.h"
#include "jobs/request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define VISITORS_MAX 1024
#define OF_A_USER 256            /* of them: one more, and the oldest that is silent goes, else this one */
#define USERS_MAX HEC_DOOR_USERS /* with a visitor, or one who is received */
#define BATCH 64                 /* received by one process */
#define LEAVING_MAX 1024         /* connections that are closed together, by one process */
#define ACCEPTS_MAX (SOMAXCONN + 1)
#define SILENT_NS HEC_NS_PER_S          /* without a word */
#define STALE_NS (5 * HEC_NS_PER_S)     /* that nobody received: its user's turn did not come */
#define RECEIVING_NS (2 * HEC_NS_PER_S) /* then it is killed */
#define LEAVE_NS                                                                                                       \
    (100 * HEC_NS_PER_MS) /* who leaves waits so long for others: nobody waits for the end of a connection */
#define DELIVER_MS 1000   /* until the agent has room */

struct visitor {
    int fd;
    pid_t pid;
    uid_t uid; /* his own, or one of those that are his */
    struct user *user;
    int64_t since_ns;
    bool ready;    /* has said something, or is gone */
    bool in_hands; /* of its user's receiver */
};

struct user {
    uid_t uid;
    int visitors;
    double allowed; /* arrivals, just now */
    int64_t since_ns;
    pid_t receiver; /* 0: nobody; what is stuck stays, and its user waits */
    int64_t began_ns;
};

/* Of that process alone. */
static const struct hec_door *door;
static struct visitor visitor[VISITORS_MAX]; /* oldest first */
static int visitor_count, visitors_max;      /* as the limit of descriptors has room for */
static struct user user[USERS_MAX];
static int user_count;
static int leaving[LEAVING_MAX];
static int leaving_count, leaving_max;
static int64_t left_ns;

static void count(uint64_t *counter) {
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
#define REFUSED (&door->shared->counts.refused)
#define SILENT (&door->shared->counts.silent)

static pid_t child(void) {
    pid_t pid = fork();
    if (pid < 0) /* nothing may be closed here: the exit does it, and the agent starts another door */
        _exit(1);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* The last reference to a stranger's connection, and to what is in its queue, is that of a child that exits when this process has let
 * go of it: an exit does not linger. */
static void show_out(void) {
    int ends[2];
    char byte;
    if (leaving_count == 0)
        return;
    if (pipe2(ends, O_CLOEXEC) != 0)
        _exit(1);
    bool here = child() != 0;
    close(ends[here ? 0 : 1]);
    while (!here && read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    if (!here)
        _exit(0);
    while (leaving_count > 0)
        close(leaving[--leaving_count]);
    close(ends[1]);
}

static void send_away(int fd, uint64_t *counter) {
    if (counter)
        count(counter);
    if (leaving_count == leaving_max)
        show_out();
    leaving[leaving_count++] = fd;
}

/* ---- who is here ---- */

/* NULL: everybody in the table is just being served. */
static struct user *user_of(uid_t uid, int64_t now_ns) {
    struct user *free_one = NULL;
    for (int i = 0; i < user_count; i++) {
        if (user[i].uid == uid)
            return &user[i];
        bool idle = user[i].visitors == 0 && user[i].receiver == 0;
        if (idle && (!free_one || user[i].since_ns < free_one->since_ns))
            free_one = &user[i];
    }
    if (user_count < USERS_MAX)
        free_one = &user[user_count++];
    if (free_one)
        *free_one = (struct user){.uid = uid, .allowed = HEC_DOOR_BURST, .since_ns = now_ns};
    return free_one;
}

static void refill(struct user *who, int64_t now_ns) {
    who->allowed += HEC_DOOR_RATE * (double)(now_ns - who->since_ns) / (double)HEC_NS_PER_S;
    if (who->allowed > HEC_DOOR_BURST)
        who->allowed = HEC_DOOR_BURST;
    who->since_ns = now_ns;
}

static void forget(int at) {
    visitor[at].user->visitors--;
    memmove(&visitor[at], &visitor[at + 1], (size_t)(--visitor_count - at) * sizeof visitor[0]);
}

static void dismiss(int at, uint64_t *counter) {
    int fd = visitor[at].fd;
    forget(at);
    send_away(fd, counter);
}

/* Whether there is nothing to read from it yet. */
static bool is_silent(struct visitor *one) {
    struct pollfd on = {.fd = one->fd, .events = POLLIN};
    if (!one->ready && poll(&on, 1, 0) == 1)
        one->ready = true;
    return !one->ready;
}

/* Of this user: the oldest that is silent, else the newest; -1: all are being received. Who says nothing a thousand times keeps nobody
 * out. */
static int least_deserving(const struct user *who) {
    int newest = -1;
    for (int i = 0; i < visitor_count; i++) {
        if (visitor[i].user != who || visitor[i].in_hands)
            continue;
        if (is_silent(&visitor[i]))
            return i;
        newest = i;
    }
    return newest;
}

static const struct user *who_has_most(void) {
    const struct user *most = &user[0];
    for (int i = 1; i < user_count; i++)
        if (user[i].visitors > most->visitors)
            most = &user[i];
    return most;
}

static void admit(int fd, int64_t now_ns) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    struct user *who = known ? user_of(hec_subuid_owner(&door->subuid, peer.uid), now_ns) : NULL;
    const struct user *gives_way = !who                            ? NULL
                                   : who->visitors == OF_A_USER    ? who
                                   : visitor_count == visitors_max ? who_has_most()
                                                                   : NULL;
    int at = gives_way ? least_deserving(gives_way) : -1;
    if (!who || (gives_way && (at < 0 || (gives_way == who && visitor[at].ready)))) {
        send_away(fd, REFUSED);
        return;
    }
    if (gives_way)
        dismiss(at, visitor[at].ready ? REFUSED : SILENT);
    who->visitors++;
    visitor[visitor_count++] =
        (struct visitor){.fd = fd, .pid = peer.pid, .uid = peer.uid, .user = who, .since_ns = now_ns};
}

static void take_new(int64_t now_ns) {
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(door->place.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        admit(fd, now_ns);
    }
}

/* ---- one process receives for one user ---- */

/* The request is read here: who asks has the socket too, and may hold up whoever reads from it. */
static bool is_request(int fd, struct hec_request *request) {
    int domain = 0, type = 0, none = 0;
    socklen_t length = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET &&
           hec_pass_receive(fd, request, sizeof *request, NULL, &none) == (ssize_t)sizeof *request &&
           request->magic == HEC_REQUEST_MAGIC && memchr(request->job, '\0', sizeof request->job);
}

/* If it is none, it is closed, so that its process stops writing. */
static bool is_ring(int fd, uint32_t role) {
    struct hec_ring_reader ring;
    if (hec_ring_map(fd, &ring) != HEC_OK)
        return false;
    bool good = ring.role == role && ring.mask < door->records_max;
    if (good)
        hec_ring_leave(&ring);
    else
        hec_ring_close(&ring);
    return good;
}

static bool deliver(const struct hec_door_arrival *arrival, int fd) {
    for (int waited = 0;; waited++) {
        int err = hec_pass_send(door->outside, arrival, sizeof *arrival, &fd, 1);
        if (err != HEC_ERR_BUSY || waited == DELIVER_MS / 10)
            return err == HEC_OK;
        poll(NULL, 0, 10);
    }
}

static void receive(const struct visitor *from) {
    struct hec_ring_hello hello;
    int fd;
    int err = hec_ring_receive(from->fd, &hello, &fd);
    if (err == HEC_ERR_LOST || err == HEC_ERR_BUSY)
        return;
    struct hec_door_arrival arrival = {.role = hello.role, .tag = hello.tag, .pid = from->pid, .uid = from->uid};
    bool good = err == HEC_OK &&
                (hello.role == HEC_RING_REQUEST ? is_request(fd, &arrival.request) : is_ring(fd, hello.role)) &&
                deliver(&arrival, fd);
    if (!good)
        count(REFUSED);
}

/* In a process that may be held up in any call, and has done as many as it says when it is killed. */
static void receive_of(struct user *who, int64_t now_ns) {
    int *done = &door->shared->done[who - user], n = 0;
    for (int i = 0; i < visitor_count && n < BATCH && who->allowed >= 1; i++) {
        if (visitor[i].user != who || !visitor[i].ready)
            continue;
        visitor[i].in_hands = true;
        who->allowed -= 1;
        n++;
    }
    *done = 0;
    who->began_ns = now_ns;
    who->receiver = child();
    if (who->receiver != 0)
        return;
    prctl(PR_SET_NAME, "hec-receive");
    for (int i = 0; i < visitor_count; i++)
        if (visitor[i].user == who && visitor[i].in_hands) {
            receive(&visitor[i]);
            ++*done;
        }
    _exit(0);
}

/* Whom it did not come to is received by the next one; who held it up goes. */
static void receiver_ended(struct user *who) {
    int done = door->shared->done[who - user], seen = 0;
    for (int i = 0; i < visitor_count;) {
        bool its = visitor[i].user == who && visitor[i].in_hands;
        seen += its;
        if (its && seen <= done + 1) {
            dismiss(i, seen > done ? REFUSED : NULL);
            continue;
        }
        visitor[i].in_hands = visitor[i].in_hands && !its;
        i++;
    }
    who->receiver = 0;
}

static void reap(int64_t now_ns) {
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
        for (int i = 0; i < user_count; i++)
            if (user[i].receiver == ended)
                receiver_ended(&user[i]);
    for (int i = 0; i < user_count; i++)
        if (user[i].receiver && now_ns - user[i].began_ns > RECEIVING_NS)
            kill(user[i].receiver, SIGKILL);
}

/* ---- turns ---- */

static int64_t cpu_ns(int whose) {
    struct rusage used;
    getrusage(whose, &used);
    return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * HEC_NS_PER_S +
           (int64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * HEC_NS_PER_US;
}

static void take_back(void) {
    char byte;
    for (int fd, n = 1; hec_pass_receive(door->outside, &byte, 1, &fd, &n) >= 0; n = 1)
        if (n == 1)
            send_away(fd, NULL);
}

static void serve(int64_t now_ns) {
    for (int i = visitor_count; i-- > 0;)
        if (!visitor[i].in_hands && now_ns - visitor[i].since_ns > (visitor[i].ready ? STALE_NS : SILENT_NS))
            dismiss(i, visitor[i].ready ? REFUSED : SILENT);
    for (int i = 0; i < visitor_count; i++) {
        struct user *who = visitor[i].user;
        if (!visitor[i].ready || who->receiver)
            continue;
        refill(who, now_ns);
        if (who->allowed >= 1)
            receive_of(who, now_ns);
    }
    if (now_ns - left_ns > LEAVE_NS) {
        show_out();
        left_ns = now_ns;
    }
}

static void wait_for_more(int64_t now_ns) {
    static struct pollfd on[VISITORS_MAX + 2];
    static int whose[VISITORS_MAX + 2];
    nfds_t n = 2;
    int wait_ms = leaving_count > 0 ? 100 : 1000;
    on[0] = (struct pollfd){.fd = door->place.listener, .events = POLLIN};
    on[1] = (struct pollfd){.fd = door->outside, .events = POLLIN};
    for (int i = 0; i < visitor_count; i++) {
        wait_ms = 100;
        if (visitor[i].ready)
            continue;
        whose[n] = i;
        on[n++] = (struct pollfd){.fd = visitor[i].fd, .events = POLLIN};
    }
    for (int i = 0; i < user_count; i++)
        if (user[i].receiver && user[i].visitors > 0 && now_ns - user[i].began_ns < RECEIVING_NS)
            wait_ms = 2;
    if (poll(on, n, wait_ms) <= 0)
        return;
    for (nfds_t i = 2; i < n; i++)
        if (on[i].revents)
            visitor[whose[i]].ready = true;
}

_Noreturn void hec_door_process(const struct hec_door *opened) {
    sigset_t none;
    pid_t agent = getppid();
    door = opened;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "hec-door");
    setpriority(PRIO_PROCESS, 0, HEC_JOBS_NICE);
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct rlimit limit = {.rlim_cur = 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    visitors_max = limit.rlim_cur / 2 < VISITORS_MAX ? (int)(limit.rlim_cur / 2) : VISITORS_MAX;
    leaving_max = limit.rlim_cur / 4 < LEAVING_MAX ? (int)(limit.rlim_cur / 4) : LEAVING_MAX;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    unsigned kept[2] = {(unsigned)door->place.listener, (unsigned)door->outside}, low = kept[1] < kept[0];
    close_range(3, kept[low] - 1, 0);
    close_range(kept[low] + 1, kept[!low] - 1, 0);
    close_range(kept[!low] + 1, ~0U, 0);
    int64_t before_ns = door->shared->counts.cpu_ns; /* of another one before this */
    while (getppid() == agent) {
        int64_t now_ns = hec_clock_mono_ns();
        __atomic_store_n(&door->shared->counts.cpu_ns, before_ns + cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&door->shared->turned_ns, now_ns, __ATOMIC_RELAXED);
        reap(now_ns);
        take_back();
        take_new(now_ns);
        wait_for_more(now_ns);
        serve(hec_clock_mono_ns());
    }
    _exit(0);
}
