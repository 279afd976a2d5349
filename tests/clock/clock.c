/* The common virtual clock of a simulated machine: it stands still while anything that takes part computes, and when all of it waits,
 * it jumps to the earliest instant that somebody waits for. So nothing that a program on the simulated GPU or HEC sees of time depends
 * on how busy the host is.
 *
 * Every thread of every process on the machine has a slot in memory that all map. A thread that waits for a time, or for a
 * condition variable, says so in its slot, and only the clock or who signals it wakes it. All other threads run as far as the
 * slots say, but may sleep all the same: for a lock, a pipe, a child. Of those the kernel knows (/proc). A thread sleeps if it is
 * found asleep, and has not run since it was found asleep before: what has slept all the while between two looks at everybody
 * can have been woken by nobody but somebody who is awake, and there is none.
 *
 * Whoever begins to wait looks whether time may move; where somebody is still awake, one of those who wait looks again and again. */
#include "tests/clock/clock.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_FIRST_NS 20000 /* the one who looks, at first, and at most */
#define WATCH_MOST_NS 500000
#define OTHERS_NS 5000000 /* the others see whether there still is one */
#define TURNS 4           /* so many times */
#define SLICE_NS 1000000  /* of a wait outside that no signal ends */
#define LONG_NS 50000000  /* of one that a signal ends: where who moves the clock may not send it */
#define WAKES 64          /* that signal: SIGRTMAX, which nothing here uses */
/* What a call of the driver costs passes without a look at the others, so much of it between two looks at most: a program that
 * launches a hundred thousand times would wait for that. */
#define SHORT_NS 100000
#define SHORTS_NS 500000
#define EXPORT __attribute__((visibility("default")))

static struct sim_clock *current; /* atomic */
static int64_t shift_ns; /* atomic: of this process's clock beside the real one, where there is no common one */
static _Thread_local struct sim_clock_slot *mine;
static _Thread_local struct sim_clock *mine_of;
static bool blind; /* this process is not told about others */
static _Thread_local volatile sig_atomic_t ended;

struct sim_clock *clock_current(void) {
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

int64_t clock_real(clockid_t id) {
    struct timespec ts;
    syscall(SYS_clock_gettime, id, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_read(clockid_t id) {
    const struct sim_clock *clock = clock_current();
    if (!clock)
        return clock_real(id) + __atomic_load_n(&shift_ns, __ATOMIC_RELAXED);
    int64_t now = __atomic_load_n(&clock->now_ns, __ATOMIC_ACQUIRE);
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE ? now + clock->wall_offset_ns : now;
}

static void take_lock(struct sim_clock *clock) {
    if (pthread_mutex_lock(&clock->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&clock->lock); /* a slot is whole at every instant */
}

static void give_lock(struct sim_clock *clock) {
    pthread_mutex_unlock(&clock->lock);
}

/* ---- slots ---- */

/* NULL: it is not known, and there is no room. With pid 0: room for it. */
static struct sim_clock_birth *birth_of(struct sim_clock *clock, pid_t pid) {
    for (int i = 0; i < SIM_CLOCK_BIRTHS; i++) {
        struct sim_clock_birth *birth = &clock->births[(pid + i) % SIM_CLOCK_BIRTHS];
        if (birth->pid == pid || birth->pid == 0)
            return birth;
    }
    return NULL;
}

/* Now; known: it may have been seen before. */
static void be_born(struct sim_clock *clock, pid_t pid, bool known) {
    struct sim_clock_birth *birth = birth_of(clock, pid);
    if (birth && (birth->pid == 0 || !known))
        *birth = (struct sim_clock_birth){pid, clock->now_ns};
}

static struct sim_clock_slot *take_slot(struct sim_clock *clock, pid_t pid, pid_t tid) {
    if (pid == tid)
        be_born(clock, pid, true);
    for (uint32_t i = 0; i < SIM_CLOCK_SLOTS; i++) {
        struct sim_clock_slot *slot = &clock->slots[i];
        if (slot->state != SIM_CLOCK_FREE)
            continue;
        *slot = (struct sim_clock_slot){.pid = pid, .tid = tid, .until_ns = INT64_MAX, .look = 1};
        slot->state = SIM_CLOCK_RUNS;
        if (i >= clock->used)
            clock->used = i + 1;
        return slot;
    }
    static const char text[] = "the virtual clock of the tests: too many threads\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    abort();
}

static struct sim_clock_slot *find_slot(struct sim_clock *clock, pid_t pid, pid_t tid) {
    for (uint32_t i = 0; i < clock->used; i++)
        if (clock->slots[i].state != SIM_CLOCK_FREE && clock->slots[i].pid == pid && clock->slots[i].tid == tid)
            return &clock->slots[i];
    return NULL;
}

/* A thread without a slot has no `entering` to set: if it slept until the lock is free, it would be taken for idle. So it tries again
 * and again, without sleeping. */
static void add_slot(struct sim_clock *clock, pid_t pid, pid_t tid) {
    int errnum;
    while ((errnum = pthread_mutex_trylock(&clock->lock)) == EBUSY)
        sched_yield();
    if (errnum == EOWNERDEAD)
        pthread_mutex_consistent(&clock->lock);
    if (!find_slot(clock, pid, tid))
        take_slot(clock, pid, tid);
    give_lock(clock);
}

/* The slot of this thread, found without the lock; there is one but where it was made by means that nobody saw. */
static struct sim_clock_slot *own_slot(struct sim_clock *clock) {
    pid_t tid = (pid_t)syscall(SYS_gettid);
    while (!mine || mine_of != clock || mine->tid != tid) {
        mine = find_slot(clock, getpid(), tid);
        mine_of = clock;
        if (!mine)
            add_slot(clock, getpid(), tid);
    }
    return mine;
}

/* To the lock, without being taken for idle meanwhile. */
static struct sim_clock_slot *enter(struct sim_clock *clock) {
    struct sim_clock_slot *slot = own_slot(clock);
    __atomic_store_n(&slot->entering, 1, __ATOMIC_SEQ_CST);
    take_lock(clock);
    return slot;
}

/* The caller is awake: if another was the only one, it is not any more. */
static void note_awake(struct sim_clock *clock, pid_t tid) {
    pid_t alone = __atomic_load_n(&clock->alone, __ATOMIC_RELAXED);
    if (alone && alone != tid)
        __atomic_store_n(&clock->alone, 0, __ATOMIC_SEQ_CST);
}

void clock_awake(struct sim_clock *clock) {
    note_awake(clock, own_slot(clock)->tid);
}

void clock_served(struct sim_clock *clock, bool begins) {
    __atomic_store_n(&own_slot(clock)->entering, begins, __ATOMIC_SEQ_CST);
}

/* As an awake thread does. */
static struct sim_clock_slot *enter_awake(struct sim_clock *clock) {
    struct sim_clock_slot *slot = enter(clock);
    note_awake(clock, slot->tid);
    return slot;
}

static void leave(struct sim_clock *clock, struct sim_clock_slot *slot) {
    give_lock(clock);
    __atomic_store_n(&slot->entering, 0, __ATOMIC_SEQ_CST);
}

/* False: it may not be. */
static bool rouse(const struct sim_clock_slot *slot) {
    return slot->by_signal ? syscall(SYS_tgkill, slot->pid, slot->tid, WAKES) == 0
                           : syscall(SYS_futex, &slot->woken, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) >= 0;
}

static void wake(struct sim_clock_slot *slot, bool signalled) {
    slot->state = SIM_CLOCK_RUNS;
    slot->signalled = signalled;
    __atomic_store_n(&slot->woken, 1, __ATOMIC_SEQ_CST);
    rouse(slot);
}

/* ---- does it sleep? ---- */

enum sleeps { AWAKE, ASLEEP, ASLEEP_SINCE, STOPPED, GONE };

/* A file of the kernel about it; 0: there is no such thread. */
static size_t read_about(const struct sim_clock_slot *slot, const char *what, char *text, size_t size) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task/%d/%s", (int)slot->pid, (int)(slot->tid ? slot->tid : slot->pid), what);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

/* One that waits for a processor on its way to sleep is said to sleep, but has no place where it does. A process in a user
 * namespace of its own is not told the place of one outside: it cannot look. */
static bool has_place(const struct sim_clock_slot *slot) {
    char text[64], name[32];
    if (read_about(slot, "wchan", text, sizeof text) && strcmp(text, "0") != 0)
        return true;
    snprintf(name, sizeof name, "/proc/%d/ns/user", (int)slot->pid);
    blind = blind || (readlink(name, text, sizeof text) < 0 && errno == EACCES);
    return false;
}

/* Wait until the parents of all zombies that were seen have been woken. The kernel makes a process a zombie and wakes its parent under
 * one lock (tasklist_lock). This call does nothing but take and release that lock. Without it, time could move between the two, where the
 * host of a virtual machine stops a processor there. */
static void parents_know(void) {
    siginfo_t info;
    waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

static enum sleeps look_at(struct sim_clock_slot *slot) {
    char text[1024], state;
    int threads;
    const char *rest = read_about(slot, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d", &state,
                        &threads) != 2)
        return GONE;
    if (state == 'Z' && threads <= 1) { /* its parent hears of it when the last of its threads has ended */
        parents_know();
        return GONE;
    }
    if (!slot->tid || (state != 'S' && state != 'T' && state != 't') || !has_place(slot))
        return AWAKE;
    read_about(slot, "schedstat", text, sizeof text);
    uint64_t ran = strtoull(text, NULL, 10) + 1; /* 0: never looked at */
    bool since = slot->ran == ran;
    slot->ran = ran;
    return !since ? ASLEEP : state == 'S' ? ASLEEP_SINCE : STOPPED;
}

/* ---- time moves ---- */

static int64_t earliest_of(const struct sim_clock *clock) {
    int64_t earliest = INT64_MAX;
    for (uint32_t i = 0; i < clock->used; i++)
        if (clock->slots[i].state == SIM_CLOCK_WAITS && clock->slots[i].until_ns < earliest)
            earliest = clock->slots[i].until_ns;
    return earliest;
}

/* Whether all that take part sleep, and have done so since before. */
static bool all_sleep(struct sim_clock *clock) {
    bool since = true;
    for (uint32_t i = 0; i < clock->used; i++) {
        struct sim_clock_slot *slot = &clock->slots[i];
        bool look = slot->state == SIM_CLOCK_RUNS ||
                    (slot->state == SIM_CLOCK_WAITS && __atomic_load_n(&slot->look, __ATOMIC_SEQ_CST));
        bool sent = slot->state == SIM_CLOCK_WAITS && __atomic_load_n(&slot->sent, __ATOMIC_SEQ_CST);
        if ((!look && !sent) || slot == mine)
            continue;
        enum sleeps sleeps = look_at(slot);
        if (sleeps == GONE) {
            slot->state = SIM_CLOCK_FREE;
            clock_poke(clock, slot->pid); /* the other threads of a process that ends may be about to */
            since = false;
        } else if (sleeps == AWAKE || __atomic_load_n(&slot->entering, __ATOMIC_SEQ_CST) ||
                   (sent && sleeps != STOPPED)) { /* it has yet to see whether the signal ends its wait */
            slot->ran = 0;
            return false;
        } else if (sleeps == ASLEEP) {
            since = false;
        }
    }
    return since;
}

/* A short wait that is over before any other, of the only one awake: time moves at once. */
static bool pass(struct sim_clock *clock, const struct sim_clock_slot *slot, int64_t until_ns) {
    int64_t ns = until_ns - clock->now_ns;
    if (__atomic_load_n(&clock->alone, __ATOMIC_SEQ_CST) != slot->tid || ns > SHORT_NS ||
        clock->shorts_ns + ns > SHORTS_NS || until_ns > earliest_of(clock))
        return false;
    clock->shorts_ns += ns;
    __atomic_store_n(&clock->now_ns, until_ns, __ATOMIC_RELEASE);
    return true;
}

/* ---- waits that a signal ends ---- */

/* A handler that runs while its thread is on the way into the kernel, or out of it to look at the clock, ends no call there: the wait goes
 * on as if nothing had come. So who sends a signal says so, and who waits asks. Of a process the kernel takes the first thread for it. */
static bool was_interrupted(struct sim_clock_slot *slot, const struct clock_outside *outside) {
    int number = __atomic_exchange_n(&slot->sent, 0, __ATOMIC_SEQ_CST);
    struct sigaction now;
    sigset_t mask;
    if (!number || (outside && !outside->interruptible))
        return false;
    syscall(SYS_getpid); /* on return from which the handler has run */
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    return !sigismember(outside && outside->mask ? outside->mask : &mask, number) &&
           sigaction(number, NULL, &now) == 0 &&
           ((now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN));
}

/* ---- waits that the kernel ends ---- */

/* A thread that looked again and again whether its time has come would be awake each time until it gets a processor, and time would stand
 * still until then: on a busy machine most of the time. So it sleeps, and who moves the clock sends it a signal. That signal is let in
 * while it sleeps alone, and is gone when the wait is over. */
static void end_wait(int number) {
    (void)number;
    ended = 1;
}

bool clock_ended(int result) {
    bool by_clock = result < 0 && errno == EINTR && ended;
    ended = 0;
    return by_clock;
}

/* Whether that signal does nothing else in this process. */
static bool may_be_woken(void) {
    struct sigaction now;
    if (sigaction(WAKES, NULL, &now) != 0)
        return false;
    if (now.sa_handler == SIG_DFL && !(now.sa_flags & SA_SIGINFO))
        return sigaction(WAKES, &(struct sigaction){.sa_handler = end_wait, .sa_flags = SA_RESTART}, NULL) == 0;
    return now.sa_handler == end_wait;
}

static void shut_out(sigset_t *before) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, WAKES);
    pthread_sigmask(SIG_BLOCK, &one, before);
}

/* Nobody sends one any more. */
static void forget_signal(const sigset_t *before) {
    struct timespec none = {0, 0};
    uint64_t one = UINT64_C(1) << (WAKES - 1);
    while (syscall(SYS_rt_sigtimedwait, &one, NULL, &none, sizeof one) == WAKES) {
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Locked; the caller waits. Time moves if nobody is awake, unless what the caller waits for is there. Whether that is so. */
static bool move(struct sim_clock *clock, const struct clock_outside *outside) {
    int64_t earliest = earliest_of(clock);
    clock->looks++;
    if (earliest == INT64_MAX)
        return false;
    bool sleep = all_sleep(clock);
    if (outside && outside->there(outside->context, 0, outside->mask))
        return true;
    if ((outside || !sleep) && !all_sleep(clock))
        return false;
    if (__atomic_load_n(
            &mine->sent,
            __ATOMIC_SEQ_CST)) /* by somebody who is gone; it has yet to see whether that ends its own wait */
        return false;
    clock->shorts_ns = 0;
    if (earliest > clock->now_ns)
        __atomic_store_n(&clock->now_ns, earliest, __ATOMIC_RELEASE);
    pid_t alone = 0;
    uint32_t woken = 0;
    for (uint32_t i = 0; i < clock->used; i++) {
        struct sim_clock_slot *slot = &clock->slots[i];
        if (slot->state != SIM_CLOCK_WAITS || slot->until_ns > clock->now_ns)
            continue;
        wake(slot, false);
        alone = woken++ == 0 ? slot->tid : 0;
    }
    __atomic_store_n(&clock->alone, alone, __ATOMIC_SEQ_CST);
    return false;
}

/* Whether this one, that waits, is the one to look; where there is none, or it may be dead, as nobody has looked since *seen, it becomes
 * that. One that sleeps on the clock does it rather than one that the kernel may wake. One that cannot look has one of the process that
 * made the world do it. */
static bool watches(struct sim_clock *clock, const struct sim_clock_slot *slot, int turn, uint32_t *seen) {
    bool by_turn = turn % TURNS == TURNS - 1 && clock->looks == *seen;
    if (turn % TURNS == 0)
        *seen = clock->looks;
    for (uint32_t i = 0; i < clock->used && !blind && !by_turn; i++) {
        const struct sim_clock_slot *other = &clock->slots[i];
        if (other->tid == clock->watching && other->state == SIM_CLOCK_WAITS &&
            (other == slot || slot->by_signal || !other->by_signal))
            return other == slot;
    }
    clock->watching = blind ? 0 : slot->tid;
    for (uint32_t i = 0; i < clock->used && blind; i++)
        if (clock->slots[i].pid == clock->maker && clock->slots[i].state == SIM_CLOCK_WAITS)
            return !rouse(&clock->slots[i]);
    return !blind;
}

static void begin(struct sim_clock_slot *slot, int64_t until_ns, const void *object,
                  const struct clock_outside *outside) {
    slot->by_signal = outside && outside->lets_signals_in;
    slot->until_ns = until_ns;
    slot->object = object;
    slot->signalled = 0;
    slot->sent = 0;
    slot->woken = 0;
    slot->look = outside != NULL;
    slot->ran = 0;
    slot->state = SIM_CLOCK_WAITS;
}

/* Until another wakes it or the time comes. Locked before and after. */
static enum clock_wait sleep_in(struct sim_clock *clock, struct sim_clock_slot *slot,
                                const struct clock_outside *outside) {
    int64_t pause = WATCH_FIRST_NS, slice = outside && outside->lets_signals_in ? LONG_NS : SLICE_NS;
    bool interrupted = false, there = false;
    uint32_t seen = 0;
    for (int turn = 0; slot->state == SIM_CLOCK_WAITS && !interrupted && !there; turn++) {
        bool watching = watches(clock, slot, turn, &seen);
        if (watching || (pause == WATCH_FIRST_NS && !blind))
            there = move(clock, outside);
        if (slot->state != SIM_CLOCK_WAITS || there)
            break;
        leave(clock, slot);
        if (was_interrupted(slot, outside)) {
            interrupted = true;
        } else if (outside) {
            there = outside->there(outside->context, watching ? pause : slice, outside->mask);
        } else {
            struct timespec timeout = {0, watching ? pause : OTHERS_NS};
            interrupted = syscall(SYS_futex, &slot->woken, FUTEX_WAIT, 0, &timeout, NULL, 0) != 0 && errno == EINTR;
        }
        interrupted = interrupted || (!there && was_interrupted(slot, outside));
        pause = pause * 2 < WATCH_MOST_NS ? pause * 2 : WATCH_MOST_NS;
        enter(clock);
    }
    bool woken = slot->state != SIM_CLOCK_WAITS;
    slot->state = SIM_CLOCK_RUNS;
    slot->by_signal = 0;
    slot->object = NULL;
    if (clock_current() != clock)
        return CLOCK_STOPPED;
    return there || slot->signalled ? CLOCK_SIGNALLED : woken ? CLOCK_TIME_CAME : CLOCK_INTERRUPTED;
}

enum clock_wait clock_wait(struct sim_clock *clock, int64_t until_ns, const void *object, pthread_mutex_t *mutex) {
    int before = errno;
    struct sim_clock_slot *slot = enter_awake(clock);
    enum clock_wait how = CLOCK_TIME_CAME;
    if (until_ns < clock->now_ns)
        until_ns = clock->now_ns;
    if (object || !pass(clock, slot, until_ns)) {
        begin(slot, until_ns, object, NULL);
        if (mutex)
            pthread_mutex_unlock(mutex);
        how = sleep_in(clock, slot, NULL);
    }
    leave(clock, slot);
    errno = before;
    return how;
}

enum clock_wait clock_wait_outside(struct sim_clock *clock, int64_t until_ns, const struct clock_outside *asked) {
    struct clock_outside outside = *asked;
    sigset_t before, in;
    outside.lets_signals_in = asked->lets_signals_in && may_be_woken();
    if (outside.lets_signals_in) {
        shut_out(&before);
        in = asked->mask ? *asked->mask : before;
        sigdelset(&in, WAKES);
        outside.mask = &in;
    }
    struct sim_clock_slot *slot = enter_awake(clock);
    begin(slot, until_ns, NULL, &outside);
    enum clock_wait how = sleep_in(clock, slot, &outside);
    int errnum = errno;
    leave(clock, slot);
    if (outside.lets_signals_in)
        forget_signal(&before);
    ended = 0;
    errno = errnum;
    return how;
}

void clock_signal(struct sim_clock *clock, const void *object, bool all) {
    struct sim_clock_slot *slot = enter(clock);
    for (uint32_t i = 0; i < clock->used; i++) {
        struct sim_clock_slot *other = &clock->slots[i];
        if (other->state != SIM_CLOCK_WAITS || other->object != object || other->pid != slot->pid)
            continue;
        wake(other, true);
        __atomic_store_n(&clock->alone, 0, __ATOMIC_SEQ_CST);
        if (!all)
            break;
    }
    leave(clock, slot);
}

void clock_poke(struct sim_clock *clock, pid_t pid) {
    for (uint32_t i = 0; i < SIM_CLOCK_SLOTS; i++) /* no lock: a signal handler may be here */
        if (pid <= 0 || clock->slots[i].pid == pid)
            __atomic_store_n(&clock->slots[i].look, 1, __ATOMIC_SEQ_CST);
}

void clock_sent(struct sim_clock *clock, pid_t pid, int number) {
    for (uint32_t i = 0; i < SIM_CLOCK_SLOTS; i++) /* no lock: a signal handler may be here */
        if (clock->slots[i].pid == pid && clock->slots[i].tid == pid)
            __atomic_store_n(&clock->slots[i].sent, number, __ATOMIC_SEQ_CST);
}

struct sim_clock_slot *clock_expect(struct sim_clock *clock) {
    struct sim_clock_slot *slot = enter(clock), *other = take_slot(clock, slot->pid, 0);
    __atomic_store_n(&clock->alone, 0, __ATOMIC_SEQ_CST);
    leave(clock, slot);
    return other;
}

void clock_expected(struct sim_clock *clock, struct sim_clock_slot *slot, pid_t pid, pid_t tid) {
    struct sim_clock_slot *own = enter(clock);
    if (pid == 0)
        slot->state = SIM_CLOCK_FREE;
    else
        be_born(clock, pid, false);
    if (pid && slot->tid == 0 && find_slot(clock, pid, tid)) { /* it has run another program, which joined in before */
        slot->state = SIM_CLOCK_FREE;
    } else if (pid && slot->tid == 0) { /* it has not said so itself */
        slot->pid = pid;
        slot->tid = tid;
    }
    leave(clock, own);
}

/* Whoever looks may come before its parent says so: time stands still between. Of one that is older than the machine, or has no room, that
 * was as long before or after the machine began as it was by the real clock. */
int64_t clock_birth(struct sim_clock *clock, pid_t pid, int64_t real_ns, int64_t tick_ns) {
    struct sim_clock_slot *own = enter(clock);
    if (real_ns + tick_ns > clock->real_begun_ns)
        be_born(clock, pid, true);
    const struct sim_clock_birth *birth = birth_of(clock, pid);
    bool known = birth && birth->pid == pid;
    int64_t ns = known ? birth->ns : real_ns - clock->real_begun_ns + clock->begun_ns;
    leave(clock, own);
    return ns;
}

void clock_be(struct sim_clock_slot *slot) {
    slot->pid = getpid();
    __atomic_store_n(&slot->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    mine = slot;
    mine_of = clock_current();
}

/* ---- a process takes part ---- */

static struct sim_clock *map(int fd) {
    char *world = mmap(NULL, SIM_CLOCK_OFFSET + sizeof(struct sim_clock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return world == MAP_FAILED ? NULL : (struct sim_clock *)(world + SIM_CLOCK_OFFSET);
}

/* All threads that there are; the mapping stays: one that waits may be abandoned. */
static void join_in(struct sim_clock *clock) {
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (atoi(entry->d_name) > 0)
            add_slot(clock, getpid(), atoi(entry->d_name));
    if (folder)
        closedir(folder);
    __atomic_store_n(&current, clock, __ATOMIC_RELEASE);
}

/* A process that has loaded a driver which is no double has a real device. */
static bool has_device(void) {
    void *driver = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD);
    bool has = driver && !dlsym(driver, "hecSimulatedGpu");
    if (driver)
        dlclose(driver);
    return has;
}

struct sleeper {
    pid_t tid;    /* atomic */
    uint32_t end; /* futex, atomic */
};

static void *sleep_here(void *context) {
    struct sleeper *sleeper = context;
    __atomic_store_n(&sleeper->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&sleeper->end, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &sleeper->end, FUTEX_WAIT, 0, NULL, NULL, 0);
    return NULL;
}

/* Whether this kernel tells where a thread sleeps: where it does not, time would stand still for ever. */
static bool kernel_tells(void) {
    struct sleeper sleeper = {0, 0};
    struct sim_clock_slot slot = {.pid = getpid()};
    pthread_t thread;
    bool tells = false;
    if (pthread_create(&thread, NULL, sleep_here, &sleeper) != 0)
        return false;
    for (int turn = 0; turn < 10000 && !tells; turn++) {
        syscall(SYS_nanosleep, &(struct timespec){0, 100000}, NULL);
        slot.tid = __atomic_load_n(&sleeper.tid, __ATOMIC_SEQ_CST);
        tells = slot.tid && has_place(&slot);
    }
    __atomic_store_n(&sleeper.end, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &sleeper.end, FUTEX_WAKE, 1, NULL, NULL, 0);
    pthread_join(thread, NULL);
    return tells;
}

/* A test may want a machine of real time all the same. */
static bool wanted(void) {
    const char *which = getenv("HEC_TEST_CLOCK");
    return !which || strcmp(which, "real") != 0;
}

EXPORT int hecTestClockStart(int fd) {
    struct sim_clock *clock = !wanted() || clock_current() || has_device() || !kernel_tells() ? NULL : map(fd);
    if (!clock)
        return -1;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&clock->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    clock->now_ns = clock->begun_ns = clock_read(CLOCK_MONOTONIC);
    clock->real_begun_ns = clock_real(CLOCK_BOOTTIME);
    clock->wall_offset_ns = clock_real(CLOCK_REALTIME) - clock_real(CLOCK_MONOTONIC);
    clock->maker = getpid();
    join_in(clock);
    __atomic_store_n(&clock->started, 1, __ATOMIC_RELEASE);
    return 0;
}

/* Whoever waits for a condition variable finds that it was not signalled, and waits again by the real clock. */
EXPORT void hecTestClockStop(void) {
    struct sim_clock *clock = clock_current();
    if (!clock)
        return;
    __atomic_store_n(&shift_ns, clock->now_ns - clock_real(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
    __atomic_store_n(&current, NULL, __ATOMIC_RELEASE);
    take_lock(clock);
    for (uint32_t i = 0; i < clock->used; i++) {
        struct sim_clock_slot *slot = &clock->slots[i];
        if (slot->state == SIM_CLOCK_WAITS && slot->pid == getpid())
            wake(slot, true);
    }
    give_lock(clock);
}

/* A process that was started on a simulated machine with a clock. */
__attribute__((constructor)) static void begin_process(void) {
    const char *path = getenv("HEC_SIM_WORLD");
    struct stat status;
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return;
    bool whole = fstat(fd, &status) == 0 && status.st_size >= SIM_CLOCK_OFFSET + (off_t)sizeof(struct sim_clock);
    struct sim_clock *clock = whole ? map(fd) : NULL;
    close(fd);
    if (clock && __atomic_load_n(&clock->started, __ATOMIC_ACQUIRE))
        join_in(clock);
}
