#include "launch/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NODES_MAX ((int)(8 * sizeof(unsigned long)))

/* Of the calling process. false, with errno: it stays as it was. Async-signal-safe. */
static bool placement_take(const struct hec_placement *placement) {
    if (sched_setaffinity(0, sizeof placement->cpus, &placement->cpus) != 0)
        return false;
    if (placement->node < 0 || placement->node >= NODES_MAX)
        return true;
    unsigned long nodes = 1ul << placement->node;
    return syscall(SYS_set_mempolicy, MPOL_PREFERRED, &nodes, (unsigned long)NODES_MAX) == 0;
}

/* Faults of hec itself, also of what it writes (these two are ignored: blocked, they would wait to be passed on to the
 * command), and what cannot be blocked. */
static const int left_alone[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,
                                 SIGABRT, SIGKILL, SIGSTOP, SIGPROF, SIGPIPE, SIGXFSZ};

static void blocked_set(sigset_t *set) {
    sigfillset(set);
    for (size_t i = 0; i < sizeof left_alone / sizeof left_alone[0]; i++)
        sigdelset(set, left_alone[i]);
}

static const struct sigaction ignore = {.sa_handler = SIG_IGN};
static struct {
    bool is;
    struct sigaction before;
} shielded_pipe, shielded_xfsz;

void hec_child_shield(bool pipe) {
    shielded_xfsz.is = sigaction(SIGXFSZ, &ignore, &shielded_xfsz.before) == 0;
    shielded_pipe.is = pipe && sigaction(SIGPIPE, &ignore, &shielded_pipe.before) == 0;
}

void hec_child_unshield(void) {
    if (shielded_pipe.is)
        sigaction(SIGPIPE, &shielded_pipe.before, NULL);
    if (shielded_xfsz.is)
        sigaction(SIGXFSZ, &shielded_xfsz.before, NULL);
}

/* They ask hec to end. */
static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static struct {
    bool is;
    sigset_t before;
} held;

/* Not what hec was started to ignore, as nohup does, or to have blocked: it ends nothing then. */
static bool is_end_signal(int number) {
    struct sigaction is;
    bool found = false;
    for (size_t i = 0; i < sizeof end_signals / sizeof end_signals[0]; i++)
        found |= number == end_signals[i];
    return found && !(held.is && sigismember(&held.before, number) == 1) &&
           (sigaction(number, NULL, &is) != 0 || is.sa_handler != SIG_IGN);
}

static void end_signals_set(sigset_t *set) {
    sigemptyset(set);
    for (size_t i = 0; i < sizeof end_signals / sizeof end_signals[0]; i++)
        if (is_end_signal(end_signals[i]))
            sigaddset(set, end_signals[i]);
}

void hec_child_hold(void) {
    sigset_t set;
    end_signals_set(&set);
    held.is = sigprocmask(SIG_BLOCK, &set, &held.before) == 0;
}

/* One that has come, and is blocked; 0: none. */
static int take_end_signal(void) {
    sigset_t set;
    end_signals_set(&set);
    int number = sigtimedwait(&set, NULL, &(struct timespec){0});
    return number > 0 ? number : 0;
}

int hec_child_held(void) {
    return held.is ? take_end_signal() : 0;
}

void hec_child_prepare(struct hec_child *child) {
    sigset_t set;
    blocked_set(&set);
    sigprocmask(SIG_SETMASK, &set, &child->mask);
    if (held.is)
        child->mask = held.before;
    struct sigaction normal = {.sa_handler = SIG_DFL};
    /* SIGCHLD ignored (inherited from some parents) would make the kernel discard the exit status;
     * a closed report pipe or a file size limit must not end hec before its command */
    sigaction(SIGCHLD, &normal, &child->chld);
    sigaction(SIGPIPE, &ignore, &child->pipe);
    sigaction(SIGXFSZ, &ignore, &child->xfsz);
    if (shielded_pipe.is)
        child->pipe = shielded_pipe.before;
    prctl(PR_GET_CHILD_SUBREAPER, &child->was_reaper);
}

void hec_child_adopt(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void restore_signals(const struct hec_child *child, const sigset_t *mask) {
    sigaction(SIGCHLD, &child->chld, NULL);
    sigaction(SIGPIPE, &child->pipe, NULL);
    sigaction(SIGXFSZ, &child->xfsz, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
}

static int not_run(struct hec_child *child, const char *name, int errnum, struct hec_why *why) {
    child->exit_code = errnum == ENOENT || errnum == ENOTDIR ? 127 : 126;
    return hec_fail(why, hec_err_from_errno(errnum), "%s: %s", name,
                    errnum == ENOENT ? "command not found" : strerror(errnum));
}

int hec_child_check(struct hec_child *child, const char *name, struct hec_why *why) {
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? HEC_OK : not_run(child, name, errno, why);
    const char *path = getenv("PATH");
    if (!path)
        return HEC_OK; /* execvpe knows the default */
    char *list = strdup(path), *rest = list, *folder;
    int errnum = ENOENT;
    while (list && errnum && (folder = strsep(&rest, ":"))) {
        char file[PATH_MAX];
        if (snprintf(file, sizeof file, "%s/%s", *folder ? folder : ".", name) >= (int)sizeof file)
            continue;
        if (access(file, X_OK) == 0)
            errnum = 0;
        else if (errno == EACCES)
            errnum = EACCES;
    }
    free(list);
    return errnum ? not_run(child, name, errnum, why) : HEC_OK;
}

void hec_child_release(const struct hec_child *child) {
    sigset_t set;
    blocked_set(&set);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&child->mask, number) == 1 || (held.is && is_end_signal(number)))
            sigdelset(&set, number);
    while (sigtimedwait(&set, NULL, &(struct timespec){0}) > 0) {
    }
    sigset_t after = child->mask;
    if (held.is) {
        end_signals_set(&set);
        sigorset(&after, &child->mask, &set);
    }
    restore_signals(child, &after);
    prctl(PR_SET_CHILD_SUBREAPER, child->was_reaper);
}

/* What the child says through a pipe that closes at exec, where it does not get there. */
struct failure {
    int errnum; /* of exec, or 0 */
    struct hec_layer_fault fault;
};

static void tie(pid_t hec) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != hec)
        _exit(128 + SIGKILL);
}

static _Noreturn void be_command(struct hec_child *child, pid_t hec, int report, char **argv, char **envp) {
    struct failure failure = {0};
    restore_signals(child, &child->mask);
    hec_child_unshield();
    if (child->placement)
        placement_take(child->placement);
    if (child->tied)
        tie(hec);
    if (child->inherited_path) {
        fcntl(child->inherited, F_SETFD, 0);
        sprintf(child->inherited_path, "/proc/%d/fd/%d", (int)getpid(), child->inherited);
    }
    if (child->output > 0) {
        int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
        dup2(child->output, STDOUT_FILENO);
        dup2(child->output, STDERR_FILENO);
    }
    if (child->tied)
        tie(hec);
    if (!child->layer || hec_layer_enter(child->layer, child->also, &failure.fault) == 0) {
        if (child->tied)
            tie(hec); /* a change of rights may have taken it back */
        execvpe(argv[0], argv, envp);
        failure.errnum = errno;
    }
    ssize_t written = write(report, &failure, sizeof failure);
    (void)written;
    _exit(127);
}

int hec_child_start(struct hec_child *child, char **argv, char **envp, struct hec_why *why) {
    int report[2];
    pid_t hec = getpid();
    child->exit_code = 126;
    if (pipe2(report, O_CLOEXEC) < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot start %s: %s", argv[0], strerror(errno));
    child->start_ns = hec_clock_mono_ns();
    child->asked = take_end_signal(); /* it came before there was a command to get it */
    pid_t pid = fork();
    if (pid == 0)
        be_command(child, hec, report[1], argv, envp);
    int fork_errno = errno;
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return hec_fail(why, hec_err_from_errno(fork_errno), "cannot start %s: %s", argv[0], strerror(fork_errno));
    }
    struct failure failure;
    ssize_t got;
    do
        got = read(report[0], &failure, sizeof failure);
    while (got < 0 && errno == EINTR);
    close(report[0]);
    if (got == (ssize_t)sizeof failure) {
        waitpid(pid, NULL, 0);
        return failure.errnum ? not_run(child, argv[0], failure.errnum, why)
                              : hec_layer_explain(child->layer, &failure.fault, why);
    }
    child->pid = pid;
    if (child->asked)
        kill(pid, child->asked);
    return HEC_OK;
}

static void root_ended(struct hec_child *child, int status) {
    child->end_ns = hec_clock_mono_ns();
    child->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child->exit_code = child->signal ? 128 + child->signal : WEXITSTATUS(status);
}

/* By that signal, so that a shell says of hec what it would of the command ($? is 148 after Ctrl-Z). Those of terminals stop nobody whose
 * group has no shell; a command in a group of its own may be stopped then all the same. */
static void stop_by(int signal) {
    struct sigaction normal = {.sa_handler = SIG_DFL}, was = normal;
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigaction(signal, &normal, &was);
    raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* it stops here */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaction(signal, &was, NULL);
    if (signal != SIGSTOP && sigpending(&pending) == 0 && !sigismember(&pending, SIGCONT))
        raise(SIGSTOP); /* it has not been continued: it has not stopped */
}

/* Stop with the command, so that the shell's job control sees the job stopped; go on when continued. */
static void stop_with_command(struct hec_child *child, int signal) {
    if (child->stopped)
        child->stopped(child->context, true);
    stop_by(signal);
    if (child->stopped)
        child->stopped(child->context, false);
    kill(child->pid, SIGCONT); /* whoever continued hec alone meant the command; it is harmless otherwise */
}

/* Reap all that has ended. Returns true when no child is left. */
static bool reap(struct hec_child *child, bool *ended) {
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid == 0)
            return false;
        if (pid < 0) {
            if (errno == EINTR)
                continue;
            return true;
        }
        if (pid != child->pid)
            continue;
        if (WIFSTOPPED(status)) {
            stop_with_command(child, WSTOPSIG(status));
        } else {
            root_ended(child, status);
            *ended = true;
        }
    }
}

void hec_child_wait(struct hec_child *child, bool all) {
    sigset_t set;
    blocked_set(&set);
    bool ended = false;
    for (;;) {
        bool none_left = reap(child, &ended);
        if (none_left || (ended && !all))
            break;
        siginfo_t info;
        int number = sigwaitinfo(&set, &info);
        if (number < 0 || number == SIGCHLD)
            continue;
        if (is_end_signal(number))
            child->asked = number;
        /* What the terminal sends reaches the command by itself, as it is in the same process group, but for the hang-up: that
         * goes to the leader of the session only, which the command would be if hec were not there. */
        bool hung_up = number == SIGHUP && getsid(0) == getpid();
        if ((info.si_code > 0 && !hung_up) || number == SIGCONT)
            continue;
        if (!ended) {
            kill(child->pid, number);
            if (info.si_code > 0) /* the kernel's hang-up wakes a stopped leader */
                kill(child->pid, SIGCONT);
        } else if (is_end_signal(number))
            break; /* only daemons are left to wait for, and the user has had enough */
    }
    if (!child->asked)
        child->asked = hec_child_held(); /* it may have ended the command before it was seen here */
    if (all)
        child->end_ns = hec_clock_mono_ns();
}

void hec_child_end_as(int signal, int exit_code) {
    if (signal) {
        sigset_t set;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* the child has left one, if any */
        sigemptyset(&set);
        sigaddset(&set, signal);
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        raise(signal); /* to this thread: another would be too late */
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    _exit(exit_code);
}
