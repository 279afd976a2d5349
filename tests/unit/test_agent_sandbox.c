/* What the agent gives up before it serves anybody, seen from inside, by a process of its own. */
#include "tests/unit/agent_parts.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>

#define TRACES CAP_SYS_PTRACE /* the one right that root's keeps */

static int report; /* a pipe: each line is a fault */
static unsigned rights;
static bool hides_files, had_bound;
static bool may_start, others_may_look; /* what is expected */
static const struct passwd *user;       /* whom it becomes; NULL: nobody else */
static int kept_open;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            dprintf(report, "%d: not %s (%d)\n", __LINE__, #condition, errno);                                         \
    } while (0)

static bool refused(long got, int errnum) {
    return got == -1 && errno == errnum;
}

static int nothing(void *context) {
    *(int *)context = 1;
    return 0;
}

static void see_rights(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    EXPECT(syscall(SYS_capget, &header, data) == 0);
    bool keeps = geteuid() == 0;
    EXPECT(data[0].permitted == (keeps ? rights & 1u << TRACES : 0) && data[0].effective == data[0].permitted);
    EXPECT(data[0].inheritable == 0);
    EXPECT(data[1].permitted == 0 && data[1].effective == 0 && data[1].inheritable == 0);
    for (int right = 0; right <= CAP_LAST_CAP && rights >> CAP_SETPCAP & 1; right++)
        EXPECT(prctl(PR_CAPBSET_READ, right, 0, 0, 0) == (right == TRACES && had_bound && !user));
    EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    EXPECT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == others_may_look);
}

/* Fails for its arguments where it is let through. */
static void see_calls(void) {
    static const int calls[] = {
#define HEC_FORBIDDEN(name) SYS_##name,
#include "agent/sandbox.def"
#undef HEC_FORBIDDEN
    };
    EXPECT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!refused(syscall(calls[i], -1, 0, 0, 0, 0, 0), EPERM))
            dprintf(report, "call %d is not refused\n", calls[i]);
    char *none[] = {NULL};
    EXPECT(refused(syscall(SYS_execve, "/nowhere/x", none, none), may_start ? ENOENT : EPERM));
    EXPECT(refused(syscall(SYS_execveat, -1, "/nowhere/x", none, none, 0), may_start ? ENOENT : EPERM));
    EXPECT(refused(syscall(SYS_clone3, NULL, 0), may_start ? EINVAL : ENOSYS));
    for (int way = 0; way < 3; way++) {
        long child = way == 0 ? syscall(SYS_fork) : way == 1 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : vfork();
        if (child == 0)
            _exit(0);
        EXPECT(may_start ? child > 0 : refused(child, EPERM));
    }
    thrd_t thread;
    int ran = 0;
    EXPECT(thrd_create(&thread, nothing, &ran) == thrd_success && thrd_join(thread, NULL) == thrd_success && ran);
}

static void see_files(void) {
    int fd = open(in_folder("new"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    EXPECT(hides_files ? refused(fd, EROFS) : !user ? fd >= 0 : true);
    EXPECT(write(kept_open, "x", 1) == 1); /* what was open stays so */
    EXPECT((fd = open("/dev/null", O_WRONLY | O_CLOEXEC)) >= 0 && write(fd, "x", 1) == 1);
    EXPECT((fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC)) >= 0);
}

static void see_inside(void) {
    gid_t groups[64];
    see_rights();
    see_files();
    see_calls();
    if (user) {
        EXPECT(getuid() == user->pw_uid && geteuid() == user->pw_uid);
        EXPECT(getgid() == user->pw_gid && getegid() == user->pw_gid);
        int count = getgroups(64, groups);
        EXPECT(count >= 0);
        for (int i = 0; i < count; i++)
            EXPECT(groups[i] != 0);
        EXPECT(setuid(0) != 0);
    }
    dprintf(report, "seen\n");
}

/* Whether this process may have file systems of its own, by one that tries. */
static bool may_hide_files(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWNS) == 0 ? 0 : 1);
    waitpid(pid, &status, 0);
    return status == 0;
}

/* What was found wrong there, of an agent that was told so, and its exit status. */
static const char *found(int status) {
    static char text[8192];
    int pipes[2], got;
    size_t length = 0;
    ssize_t more;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    rights = data[0].permitted;
    had_bound = prctl(PR_CAPBSET_READ, TRACES, 0, 0, 0) == 1;
    hides_files = may_hide_files();
    kept_open = open(in_folder("old"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        report = pipes[1];
        inside = see_inside;
        options.no_sandbox = false;
        end_at(START + 1);
        _exit(hec_agent_main(&options)); /* nothing more: it may not even look for leaks */
    }
    close(pipes[1]);
    while ((more = read(pipes[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)more;
    text[length] = '\0';
    close(pipes[0]);
    close(kept_open);
    waitpid(pid, &got, 0);
    if (!WIFEXITED(got) || WEXITSTATUS(got) != status)
        fail_msg("%d: %s", got, text);
    return text;
}

TEST(it_gives_up_what_it_does_not_need) {
    assert_string_equal(found(0), "seen\n");
}

TEST(of_a_simulated_machine_others_may_look) {
    options.nvml_path = "/nvml";
    others_may_look = true;
    assert_string_equal(found(0), "seen\n");
    others_may_look = false;
}

TEST(windows_of_jobs_are_programs) {
    options.jobs = "/j";
    may_start = true;
    assert_string_equal(found(0), "seen\n");
    may_start = false;
}

TEST(it_becomes_another_user) {
    user = getpwnam("nobody");
    options.user = "nobody";
    if (!user)
        skip();
    if (geteuid() != 0) {
        assert_string_equal(found(geteuid() == user->pw_uid ? 0 : 77), geteuid() == user->pw_uid ? "seen\n" : "");
        return;
    }
    assert_string_equal(found(0), "seen\n");
    options.user = "no-such-user-here";
    assert_string_equal(found(2), "");
    user = NULL;
    options.user = getpwuid(geteuid())->pw_name; /* who it is */
    assert_string_equal(found(0), "seen\n");
}

/* Before its rights are gone its state becomes that user's. */
TEST(the_state_is_given_to_the_user) {
    const struct passwd *nobody = getpwnam("nobody");
    char expected[128];
    if (!nobody)
        skip();
    options.no_sandbox = false;
    options.user = "nobody";
    options.state_dir = "/kept";
    fails = 'g';
    fail_err = HEC_ERR_PERMISSION;
    run(77); /* that fails, so nothing was given up */
    snprintf(expected, sizeof expected, "kubelet() state(/kept,%d) give(/kept,%d,%d) unwatch", (int)nobody->pw_uid,
             (int)nobody->pw_uid, (int)nobody->pw_gid);
    assert_int_equal(strncmp(told, expected, strlen(expected)), 0);
}
