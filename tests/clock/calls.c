/* What a program asks libc of time and of waiting, by the common virtual clock where the process goes by one, else as it is.
 * Signals and births are seen as well, as they wake somebody. */
#undef _FORTIFY_SOURCE /* it makes inline functions of some that are defined here */
#include "tests/clock/clock.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* A program that reads the clock so often without ever waiting waits for the time: it moves on by so much. */
#define READS_MOST 500
#define READS_NS 20000

/* The function behind the name; a version where libc has an older one of that name. */
#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    *(void **)&real = find(#name)

static void *find(const char *name) {
    void *there = strncmp(name, "pthread_cond_", 13) == 0 ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2") : NULL;
    return there ? there : dlsym(RTLD_NEXT, name);
}

static _Thread_local int reads;

static int64_t ns_of(const struct timespec *ts) {
    return ts->tv_sec > INT64_MAX / NS_PER_S - 1 ? INT64_MAX : ts->tv_sec * NS_PER_S + ts->tv_nsec;
}

static struct timespec time_of(int64_t ns) {
    return (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
}

static int64_t after(int64_t ns) {
    int64_t now = clock_read(CLOCK_MONOTONIC);
    return ns >= INT64_MAX - now ? INT64_MAX : now + ns;
}

/* An instant of either clock, as one of the monotonic one: a condition variable does not say which of them it goes by. */
static int64_t instant(const struct timespec *ts) {
    int64_t t = ns_of(ts), mono = clock_read(CLOCK_MONOTONIC), wall = clock_read(CLOCK_REALTIME);
    return t > mono + (wall - mono) / 2 ? t - (wall - mono) : t;
}

/* ---- reading ---- */

/* Computing takes no time, so none of a processor's either: hec reads a device the more rarely the more of it a reading takes, which here
 * would be what the host and this clock take. */
static int64_t thread_cpu(void) {
    static _Thread_local int64_t first;
    if (!first)
        first = clock_real(CLOCK_THREAD_CPUTIME_ID);
    return first;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ts) {
    if (id == CLOCK_THREAD_CPUTIME_ID && clock_current()) {
        *ts = time_of(thread_cpu());
        return 0;
    }
    if (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME && id != CLOCK_MONOTONIC_COARSE && id != CLOCK_REALTIME_COARSE &&
        id != CLOCK_MONOTONIC_RAW && id != CLOCK_BOOTTIME) {
        REAL(clock_gettime);
        return real(id, ts);
    }
    struct sim_clock *clock = clock_current();
    if (clock)
        clock_awake(clock);
    if (clock && ++reads > READS_MOST) {
        reads = 0;
        clock_wait(clock, after(READS_NS), NULL, NULL);
    }
    *ts = time_of(clock_read(id));
    return 0;
}

EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    int64_t now = clock_read(CLOCK_REALTIME);
    (void)zone;
    *tv = (struct timeval){now / NS_PER_S, now % NS_PER_S / 1000};
    return 0;
}

EXPORT time_t time(time_t *result) {
    time_t now = (time_t)(clock_read(CLOCK_REALTIME) / NS_PER_S);
    if (result)
        *result = now;
    return now;
}

/* What a program could read of real time beside the clock: the kernel's clock source, so that it reads none by itself; how long its
 * threads waited for a core, and what the host of a virtual machine took from all of them. Those waits take no time here, and who
 * takes them off waits that do finds on a busy machine that a program never waited. */
static const char *file_of(const char *path) {
    static const char source[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                      own[] = "/proc/self/task/", delay[] = "/schedstat";
    size_t length = strlen(path);
    bool delays = strncmp(path, own, sizeof own - 1) == 0 && length >= sizeof delay &&
                  strcmp(path + length - (sizeof delay - 1), delay) == 0;
    return clock_current() && (delays || strcmp(path, source) == 0 || strcmp(path, "/proc/stat") == 0) ? "/dev/null"
                                                                                                       : path;
}

#define OPEN(name)                                                                                                     \
    EXPORT int name(const char *path, int flags, ...) {                                                                \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                      \
        va_end(rest);                                                                                                  \
        REAL(name);                                                                                                    \
        return real(file_of(path), flags, mode);                                                                       \
    }
OPEN(open)
OPEN(open64)

/* Field 22 of /proc/PID/stat, after the last bracket: when the process began, in ticks since boot. A process that was started after a
 * program had computed for long began later than all that it did, if that stood there by the real clock. The new length. */
static ssize_t put_birth(struct sim_clock *clock, char *text, ssize_t length, size_t room) {
    int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
    const char *at = memrchr(text, ')', (size_t)length), *end = text + length;
    for (int field = 2; at && field < 22; field++)
        at = memchr(at + 1, ' ', (size_t)(end - at - 1));
    const char *rest = at ? memchr(at + 1, ' ', (size_t)(end - at - 1)) : NULL;
    if (!rest)
        return length;
    char ticks[24];
    int64_t birth = clock_birth(clock, atoi(text), strtoll(at, NULL, 10) * tick_ns, tick_ns);
    int digits = snprintf(ticks, sizeof ticks, "%lld", (long long)(birth / tick_ns));
    ssize_t grown = length + digits - (rest - at - 1);
    if (birth < 0 || (size_t)grown > room)
        return length;
    char *to = text + (at + 1 - text);
    memmove(to + digits, rest, (size_t)(end - rest));
    memcpy(to, ticks, (size_t)digits);
    return grown;
}

static bool is_of_proc(int fd) {
    struct statfs status;
    return fstatfs(fd, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

#define PREAD(name)                                                                                                    \
    EXPORT ssize_t name(int fd, void *to, size_t size, off_t at) {                                                     \
        struct sim_clock *clock = clock_current();                                                                     \
        REAL(name);                                                                                                    \
        ssize_t length = real(fd, to, size, at);                                                                       \
        bool stat = clock && at == 0 && length > 0 && isdigit(*(unsigned char *)to) &&                                 \
                    memchr(to, '(', (size_t)length) && is_of_proc(fd);                                                 \
        return stat ? put_birth(clock, to, length, size) : length;                                                     \
    }
PREAD(pread)
PREAD(pread64)

/* The guardian of power limits begins before there is a machine, and is on no clock of it: what it does for this process, the driver and
 * the disk, takes no time. Nothing else waits for packets. */
static bool is_guardian(int fd) {
    int type;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET &&
           !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

EXPORT ssize_t recv(int fd, void *to, size_t size, int flags) {
    struct sim_clock *clock = clock_current();
    REAL(recv);
    if (!clock || (flags & MSG_DONTWAIT) || !is_guardian(fd))
        return real(fd, to, size, flags);
    clock_served(clock, true);
    ssize_t got = real(fd, to, size, flags);
    int errnum = errno;
    clock_served(clock, false);
    errno = errnum;
    return got;
}

/* ---- sleeping ---- */

/* 0, or EINTR with what was left. */
static int sleep_until(struct sim_clock *clock, int64_t until_ns, struct timespec *left) {
    reads = 0;
    enum clock_wait how = clock_wait(clock, until_ns, NULL, NULL);
    int64_t rest = until_ns - clock_read(CLOCK_MONOTONIC);
    struct timespec ts = time_of(rest > 0 ? rest : 0);
    if (how == CLOCK_STOPPED)
        return (int)-syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, left);
    if (how == CLOCK_INTERRUPTED && left)
        *left = ts;
    return how == CLOCK_INTERRUPTED ? EINTR : 0;
}

EXPORT int clock_nanosleep(clockid_t id, int flags, const struct timespec *ts, struct timespec *left) {
    struct sim_clock *clock = clock_current();
    if (!clock || (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME)) {
        REAL(clock_nanosleep);
        return real(id, flags, ts, left);
    }
    bool absolute = flags & TIMER_ABSTIME;
    return sleep_until(clock, absolute ? instant(ts) : after(ns_of(ts)), absolute ? NULL : left);
}

EXPORT int nanosleep(const struct timespec *ts, struct timespec *left) {
    int errnum = clock_nanosleep(CLOCK_MONOTONIC, 0, ts, left);
    if (errnum)
        errno = errnum;
    return errnum ? -1 : 0;
}

EXPORT int usleep(useconds_t us) {
    return nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

EXPORT unsigned sleep(unsigned seconds) {
    struct timespec left = {0};
    return nanosleep(&(struct timespec){seconds, 0}, &left) ? (unsigned)left.tv_sec + (left.tv_nsec > 0) : 0;
}

/* ---- condition variables ---- */

static int wait_for(struct sim_clock *clock, int64_t until_ns, pthread_cond_t *condition, pthread_mutex_t *mutex) {
    reads = 0;
    enum clock_wait how = clock_wait(clock, until_ns, condition, mutex);
    pthread_mutex_lock(mutex);
    return how == CLOCK_TIME_CAME ? ETIMEDOUT : 0; /* else it may look again */
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_cond_wait);
    return clock ? wait_for(clock, INT64_MAX, condition, mutex) : real(condition, mutex);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_cond_timedwait);
    if (clock)
        return wait_for(clock, instant(until), condition, mutex);
    return real(condition, mutex, until);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t id,
                                  const struct timespec *until) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_cond_clockwait);
    if (clock)
        return wait_for(clock, instant(until), condition, mutex);
    return real(condition, mutex, id, until);
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_cond_signal);
    if (clock)
        clock_signal(clock, condition, false);
    return real(condition);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_cond_broadcast);
    if (clock)
        clock_signal(clock, condition, true);
    return real(condition);
}

/* ---- what the kernel or a lock ends, or the time ---- */

/* What a call gives that a signal may end. */
static int unless_interrupted(enum clock_wait how, int result) {
    if (how != CLOCK_INTERRUPTED)
        return result;
    errno = EINTR;
    return -1;
}

struct polled {
    struct pollfd *files;
    nfds_t count;
    const sigset_t *mask;
    int result;
};

static bool poll_once(void *context, int64_t ns, const sigset_t *mask) {
    struct polled *p = context;
    struct timespec ts = time_of(ns);
    p->result = (int)syscall(SYS_ppoll, p->files, p->count, &ts, mask, mask ? _NSIG / 8 : 0);
    if (clock_ended(p->result))
        p->result = 0;
    return p->result != 0;
}

static int poll_until(struct sim_clock *clock, int64_t until_ns, struct polled p) {
    reads = 0;
    enum clock_wait how =
        clock_wait_outside(clock, until_ns, &(struct clock_outside){poll_once, &p, p.mask, true, true});
    return unless_interrupted(how, p.result);
}

EXPORT int poll(struct pollfd *files, nfds_t count, int timeout_ms) {
    struct sim_clock *clock = clock_current();
    REAL(poll);
    if (!clock || timeout_ms <= 0)
        return real(files, count, timeout_ms);
    return poll_until(clock, after(timeout_ms * INT64_C(1000000)), (struct polled){files, count, NULL, 0});
}

EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    struct sim_clock *clock = clock_current();
    REAL(ppoll);
    if (!clock || !timeout || ns_of(timeout) <= 0)
        return real(files, count, timeout, mask);
    return poll_until(clock, after(ns_of(timeout)), (struct polled){files, count, mask, 0});
}

/* As the C library's headers call them where a program is built with _FORTIFY_SOURCE. */
EXPORT int __poll_chk(struct pollfd *files, nfds_t count, int timeout_ms, size_t size);
EXPORT int __poll_chk(struct pollfd *files, nfds_t count, int timeout_ms, size_t size) {
    return size / sizeof *files < count ? (abort(), -1) : poll(files, count, timeout_ms);
}

EXPORT int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
                       size_t size);
EXPORT int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
                       size_t size) {
    return size / sizeof *files < count ? (abort(), -1) : ppoll(files, count, timeout, mask);
}

struct waited {
    int epoll;
    struct epoll_event *events;
    int most, result;
};

static bool epoll_once(void *context, int64_t ns, const sigset_t *mask) {
    struct waited *w = context;
    w->result = (int)syscall(SYS_epoll_pwait, w->epoll, w->events, w->most, (int)((ns + 999999) / 1000000), mask,
                             mask ? _NSIG / 8 : 0);
    if (clock_ended(w->result))
        w->result = 0;
    return w->result != 0;
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms) {
    struct sim_clock *clock = clock_current();
    REAL(epoll_wait);
    if (!clock || timeout_ms <= 0)
        return real(epoll, events, most, timeout_ms);
    reads = 0;
    struct waited w = {epoll, events, most, 0};
    enum clock_wait how = clock_wait_outside(clock, after(timeout_ms * INT64_C(1000000)),
                                             &(struct clock_outside){epoll_once, &w, NULL, true, true});
    return unless_interrupted(how, w.result);
}

struct selected {
    int count, result;
    fd_set *sets[3], asked[3];
};

static bool select_once(void *context, int64_t ns, const sigset_t *mask) {
    struct selected *s = context;
    struct {
        const sigset_t *mask;
        size_t size;
    } in = {mask, _NSIG / 8};
    struct timespec ts = time_of(ns);
    for (int i = 0; i < 3; i++)
        if (s->sets[i])
            *s->sets[i] = s->asked[i];
    s->result = (int)syscall(SYS_pselect6, s->count, s->sets[0], s->sets[1], s->sets[2], &ts, mask ? &in : NULL);
    if (clock_ended(s->result))
        s->result = 0;
    return s->result != 0;
}

EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
                  struct timeval *restrict timeout) {
    struct sim_clock *clock = clock_current();
    REAL(select);
    if (!clock || !timeout || (timeout->tv_sec == 0 && timeout->tv_usec == 0))
        return real(count, in, out, other, timeout);
    reads = 0;
    struct selected s = {.count = count, .sets = {in, out, other}};
    for (int i = 0; i < 3; i++)
        if (s.sets[i])
            s.asked[i] = *s.sets[i];
    enum clock_wait how =
        clock_wait_outside(clock, after(timeout->tv_sec * NS_PER_S + timeout->tv_usec * INT64_C(1000)),
                           &(struct clock_outside){select_once, &s, NULL, true, true});
    return unless_interrupted(how, s.result);
}

struct locked {
    sem_t *semaphore;
    pthread_mutex_t *mutex;
    int result;
};

static bool lock_once(void *context, int64_t ns, const sigset_t *mask) {
    (void)mask;
    struct locked *l = context;
    struct timespec until = time_of(clock_real(CLOCK_MONOTONIC) + ns);
    if (l->mutex) {
        REAL(pthread_mutex_clocklock);
        l->result = real(l->mutex, CLOCK_MONOTONIC, &until);
    } else {
        REAL(sem_clockwait);
        l->result = real(l->semaphore, CLOCK_MONOTONIC, &until) ? errno : 0;
    }
    return l->result != ETIMEDOUT;
}

/* An error number. */
static int lock_until(struct sim_clock *clock, const struct timespec *until, struct locked l) {
    reads = 0;
    enum clock_wait how =
        clock_wait_outside(clock, instant(until),
                           &(struct clock_outside){.there = lock_once, .context = &l, .interruptible = l.semaphore});
    return how == CLOCK_INTERRUPTED ? EINTR : l.result;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_mutex_timedlock);
    if (!clock)
        return real(mutex, until);
    int errnum = pthread_mutex_trylock(mutex);
    return errnum == EBUSY ? lock_until(clock, until, (struct locked){NULL, mutex, ETIMEDOUT}) : errnum;
}

EXPORT int sem_clockwait(sem_t *semaphore, clockid_t id, const struct timespec *until) {
    struct sim_clock *clock = clock_current();
    REAL(sem_clockwait);
    if (!clock)
        return real(semaphore, id, until);
    int errnum = lock_until(clock, until, (struct locked){semaphore, NULL, ETIMEDOUT});
    if (errnum)
        errno = errnum;
    return errnum ? -1 : 0;
}

EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
    struct sim_clock *clock = clock_current();
    REAL(sem_timedwait);
    return clock ? sem_clockwait(semaphore, CLOCK_REALTIME, until) : real(semaphore, until);
}

struct joined {
    pthread_t thread;
    void **value;
    int result;
};

static bool join_once(void *context, int64_t ns, const sigset_t *mask) {
    (void)mask;
    struct joined *j = context;
    struct timespec until = time_of(clock_real(CLOCK_REALTIME) + ns);
    REAL(pthread_timedjoin_np);
    j->result = real(j->thread, j->value, &until);
    return j->result != ETIMEDOUT;
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_timedjoin_np);
    if (!clock || !until)
        return real(thread, value, until);
    reads = 0;
    struct joined j = {thread, value, ETIMEDOUT};
    clock_wait_outside(clock, instant(until), &(struct clock_outside){.there = join_once, .context = &j});
    return j.result;
}

/* ---- signals ---- */

struct awaited {
    const sigset_t *set;
    siginfo_t *info;
    int result;
};

static bool signal_once(void *context, int64_t ns, const sigset_t *mask) {
    (void)mask;
    struct awaited *a = context;
    struct timespec ts = time_of(ns);
    REAL(sigtimedwait);
    a->result = real(a->set, a->info, &ts);
    return a->result >= 0 || errno != EAGAIN;
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout) {
    struct sim_clock *clock = clock_current();
    REAL(sigtimedwait);
    if (!clock || !timeout || ns_of(timeout) <= 0)
        return real(set, info, timeout);
    reads = 0;
    struct awaited a = {set, info, -1};
    enum clock_wait how =
        clock_wait_outside(clock, after(ns_of(timeout)),
                           &(struct clock_outside){.there = signal_once, .context = &a, .interruptible = true});
    if (a.result < 0 && errno != EINTR)
        errno = EAGAIN;
    return unless_interrupted(how, a.result);
}

static void signal_to(pid_t pid) {
    struct sim_clock *clock = clock_current();
    if (clock)
        clock_poke(clock, pid);
}

EXPORT int kill(pid_t pid, int number) {
    struct sim_clock *clock = clock_current();
    REAL(kill);
    signal_to(pid);
    int result = real(pid, number), errnum = errno;
    if (clock && result == 0 && pid > 0 && number)
        clock_sent(clock, pid, number);
    errno = errnum;
    return result;
}

EXPORT int raise(int number) {
    REAL(raise);
    signal_to(getpid());
    return real(number);
}

EXPORT int pthread_kill(pthread_t thread, int number) {
    REAL(pthread_kill);
    signal_to(getpid());
    return real(thread, number);
}

/* ---- priorities ---- */

/* Computing takes no time, so that a process which is nice is so to nobody: it only keeps time waiting for it on a busy machine. */
EXPORT int setpriority(__priority_which_t which, id_t who, int priority) {
    REAL(setpriority);
    return clock_current() ? 0 : real(which, who, priority);
}

/* ---- births ---- */

struct start {
    struct sim_clock_slot *slot;
    void *(*run)(void *);
    void *argument;
};

static void *start_thread(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    clock_be(start.slot);
    return start.run(start.argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    struct sim_clock *clock = clock_current();
    REAL(pthread_create);
    struct start *start = clock ? malloc(sizeof *start) : NULL;
    if (!start)
        return real(thread, attributes, run, argument);
    *start = (struct start){clock_expect(clock), run, argument};
    struct sim_clock_slot *slot = start->slot;
    int errnum = real(thread, attributes, start_thread, start);
    if (errnum) {
        clock_expected(clock, slot, 0, 0);
        free(start);
    }
    return errnum;
}

EXPORT pid_t fork(void) {
    struct sim_clock *clock = clock_current();
    REAL(fork);
    if (!clock)
        return real();
    struct sim_clock_slot *slot = clock_expect(clock);
    pid_t pid = real();
    int errnum = errno;
    if (pid == 0)
        clock_be(slot);
    else
        clock_expected(clock, slot, pid > 0 ? pid : 0, pid);
    errno = errnum;
    return pid;
}

/* In place of a function that returns twice on the same stack. */
EXPORT pid_t vfork(void) {
    return fork();
}

typedef int spawner(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                    char *const[]);

static int spawn(spawner *how, pid_t *result, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    struct sim_clock *clock = clock_current();
    pid_t pid = 0;
    struct sim_clock_slot *slot = clock ? clock_expect(clock) : NULL;
    int errnum = how(&pid, file, actions, attributes, argv, envp);
    if (slot)
        clock_expected(clock, slot, errnum ? 0 : pid, pid);
    if (!errnum && result)
        *result = pid;
    return errnum;
}

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict file,
                       const posix_spawn_file_actions_t *restrict actions, const posix_spawnattr_t *restrict attributes,
                       char *const argv[restrict], char *const envp[restrict]) {
    REAL(posix_spawn);
    return spawn(real, pid, file, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                        const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                        char *const envp[restrict]) {
    REAL(posix_spawnp);
    return spawn(real, pid, file, actions, attributes, argv, envp);
}
