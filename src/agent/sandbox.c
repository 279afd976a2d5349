#include "agent/sandbox.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int become(const char *name, struct hec_why *why) {
    struct passwd *user = getpwnam(name);
    if (!user)
        return hec_fail(why, HEC_ERR_USAGE, "there is no user \"%.60s\"", name);
    if (geteuid() == user->pw_uid)
        return HEC_OK;
    if (initgroups(name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
        return hec_fail(why, HEC_ERR_PERMISSION, "cannot become the user \"%.60s\": %s", name, strerror(errno));
    return HEC_OK;
}

/* Root's files can still be read, among them RAPL's counters and the socket of the kubelet. The one right that is left lets it
 * read the environment of other users' processes, by which a Slurm job is known. */
static int drop_capabilities(struct hec_why *why) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return hec_fail(why, HEC_ERR_FAILED, "cannot see its own rights: %s", strerror(errno));
    unsigned left = data[0].permitted & 1u << CAP_SYS_PTRACE;
    for (int i = 0; i < 64; i++)
        if (i != CAP_SYS_PTRACE)
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0); /* without the right to, they were not to be had anyway */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    memset(data, 0, sizeof data);
    data[0].permitted = data[0].effective = left;
    if (syscall(SYS_capset, &header, data) != 0)
        return hec_fail(why, HEC_ERR_FAILED, "cannot give up its rights: %s", strerror(errno));
    return HEC_OK;
}

/* Every file system read-only, for this process: where it may. A container's runtime does so itself, and so does systemd.
 * Descriptors that are open stay writable, and so do devices. (Landlock would do without rights, but it also forbids to read the
 * environment of other processes.) */
static void write_nowhere(void) {
    struct {
        uint64_t set, clear, propagation, userns; /* struct mount_attr, which older libcs do not have */
    } read_only = {.set = 1 /* MOUNT_ATTR_RDONLY */};
    bool done = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
                syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof read_only) == 0;
    if (!done)
        hec_debug("file systems cannot be made read-only from here: %s", strerror(errno));
}

static int forbid(scmp_filter_ctx filter, bool may_start) {
    static const int calls[] = {
#define HEC_FORBIDDEN(name) SCMP_SYS(name),
#include "agent/sandbox.def"
#undef HEC_FORBIDDEN
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
    if (may_start)
        return failed;
    failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execve), 0);
    failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execveat), 0);
    failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(fork), 0);
    failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(vfork), 0);
    /* threads only; what clone3 is asked for cannot be seen, and libc falls back to clone */
    failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    return failed;
}

static int filter_calls(const struct hec_sandbox_options *options, struct hec_why *why) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int failed = filter ? forbid(filter, options->may_start) : -ENOMEM;
    if (!failed)
        failed = seccomp_load(filter);
    if (filter)
        seccomp_release(filter);
    return failed ? hec_fail(why, HEC_ERR_FAILED, "cannot filter its system calls: %s", strerror(-failed)) : HEC_OK;
}

int hec_sandbox_enter(const struct hec_sandbox_options *options, struct hec_why *why) {
    write_nowhere();
    int err = options->user ? become(options->user, why) : HEC_OK;
    if (err == HEC_OK)
        err = drop_capabilities(why);
    if (err == HEC_OK && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        err = hec_fail(why, HEC_ERR_FAILED, "cannot give up new rights: %s", strerror(errno));
    if (err == HEC_OK)
        err = filter_calls(options, why);
    if (err == HEC_OK)
        prctl(PR_SET_DUMPABLE, options->others_may_look, 0, 0, 0);
    return err;
}
