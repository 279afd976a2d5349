/* The supervisor: signals, job control and the end of an experiment are as if it were not there. */
#include "base/clock.h"
#include "launch/descendants.h"
#include "launch/supervisor.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct hec_layer_options nowhere = {.scratch_parent = "/nonexistent"};
static volatile sig_atomic_t interrupts;

static void count(int number) {
    (void)number;
    interrupts++;
}

/* What the worker does goes through this pipe. */
static int words[2];

static void say(const char *format, int number) {
    char text[64];
    int length = snprintf(text, sizeof text, format, number);
    assert_int_equal(write(words[1], text, (size_t)length), length);
}

static void expect(const char *text) {
    char found[64] = "";
    for (size_t at = 0; at < strlen(text); at++)
        assert_int_equal(read(words[0], &found[at], 1), 1);
    assert_string_equal(found, text);
}

static void until_said_no_more(void) {
    char byte;
    while (read(words[0], &byte, 1) > 0) {
    }
}

static void start_supervisor(void) {
    struct hec_why why;
    if (hec_supervisor_start(&nowhere, NULL, &why) < 0)
        _exit(99);
}

static void open_words(void) {
    assert_int_equal(pipe2(words, O_CLOEXEC), 0);
}

static void close_words(void) {
    close(words[0]);
    close(words[1]);
}

static int ended(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

TEST(test_ends_as_the_worker) {
    static const int signals[] = {SIGTERM, SIGABRT, SIGKILL};
    pid_t pid = fork();
    if (pid == 0) {
        start_supervisor();
        hec_supervisor_exit(0, 7);
    }
    int status = ended(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        pid = fork();
        if (pid == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0});
            start_supervisor();
            signal(signals[i], SIG_DFL); /* cmocka takes some */
            raise(signals[i]);
            pause();
        }
        status = ended(pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
    }
}

static void wait_for_interrupts(void) {
    signal(SIGINT, count);
    say("ready %d\n", getpid() != 0);
    for (int i = 0; interrupts == 0 && i < 1000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* for a second one */
    say("interrupts %d\n", interrupts);
}

TEST(test_signals_reach_the_worker_once) {
    open_words();
    pid_t pid = fork();
    if (pid == 0) {
        start_supervisor();
        wait_for_interrupts();
        hec_supervisor_exit(0, 0);
    }
    expect("ready 1\n");
    kill(pid, SIGINT);
    expect("interrupts 1\n");
    assert_int_equal(ended(pid), 0);
    close_words();
}

/* What the shell sees: the job stops when it is stopped at the terminal, goes on, and Ctrl-C comes once. */
TEST(test_terminal) {
    int terminal, status;
    open_words();
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) { /* the leader of the session: a shell that starts a job */
        pid_t job = fork();
        if (job == 0) {
            setpgid(0, 0);
            start_supervisor();
            wait_for_interrupts();
            hec_supervisor_exit(0, 3);
        }
        setpgid(job, job);
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(0, job);
        waitpid(job, &status, WUNTRACED);
        say("stopped %d\n", WIFSTOPPED(status));
        kill(-job, SIGCONT);
        say("continued %d\n", 1);
        waitpid(job, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
    }
    expect("ready 1\n");
    assert_int_equal(write(terminal, "\x1a", 1), 1); /* Ctrl-Z */
    expect("stopped 1\ncontinued 1\n");
    assert_int_equal(write(terminal, "\x03", 1), 1); /* Ctrl-C */
    expect("interrupts 1\n");
    assert_int_equal(WEXITSTATUS(ended(pid)), 3);
    close(terminal);
    close_words();
}

/* A child, a daemon that has lost its parent, and one that starts another all the time; they hold the pipe open. */
static void start_all_kinds(void) {
    fcntl(words[1], F_SETFD, 0);
    if (system("sleep 1000 & (setsid sleep 1000 &); (setsid sh -c 'f() { (sleep 0.002; f) & }; f' &)") != 0)
        _exit(97);
    fcntl(words[1], F_SETFD, FD_CLOEXEC);
}

TEST(test_nothing_survives) {
    for (int victim = 0; victim < 4; victim++) {
        open_words();
        pid_t pid = fork();
        if (pid == 0) {
            start_supervisor();
            start_all_kinds();
            if (victim == 0) { /* nobody dies */
                bool swept = hec_supervisor_sweep() && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
                say("swept %d\n", swept);
                hec_supervisor_exit(0, 0);
            }
            say("ready %d\n", 1);
            if (victim == 1)
                kill(getppid(), SIGKILL); /* the supervisor */
            if (victim == 2)
                raise(SIGKILL);
            if (victim == 3)
                hec_supervisor_exit(0, 0); /* what is left after an orderly end is not kept either */
            pause();
        }
        expect(victim ? "ready 1\n" : "swept 1\n");
        close(words[1]);
        until_said_no_more(); /* all that held it have ended */
        ended(pid);
        close(words[0]);
    }
}

static bool is_mine(const char *value) {
    return strcmp(value, "mine") == 0;
}

TEST(test_marked_processes) {
    pid_t mine = fork(), other;
    if (mine == 0)
        execle("/bin/sh", "sh", "-c", "sleep 1000 & wait", NULL, (char *[]){"A=1", "TEST_MARK=mine", NULL});
    other = fork();
    if (other == 0)
        execle("/bin/sh", "sh", "-c", "exec sleep 1000", NULL, (char *[]){"TEST_MARK=mine too", NULL});
    while (hec_marked_kill("TEST_MARK", is_mine) == 0) /* until it has its environment */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(WIFSIGNALED(ended(mine)));
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
    assert_true(hec_process_start(other) > 0);
    kill(other, SIGKILL);
    ended(other);
    assert_true(hec_process_start(other) == 0);
}
