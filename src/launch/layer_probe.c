#include "launch/layer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* Open, change through memory, rename. */
static int change_file(int folder, const char *name, const char *other, int flags) {
    int fd = openat(folder, name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -1;
    int result = -1;
    if (ftruncate(fd, 8) == 0 && pwrite(fd, "trial", 5, 0) == 5) {
        char *memory = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), read_back[1];
        if (memory != MAP_FAILED) {
            memory[7] = 'x';
            munmap(memory, 8);
            result = pread(fd, read_back, 1, 7) == 1 && read_back[0] == 'x' ? 0 : -1;
        }
    }
    close(fd);
    if (result == 0)
        result = renameat(folder, name, folder, other);
    return result == 0 ? unlinkat(folder, other, 0) : -1;
}

static int change_folder(int folder, const char *name) {
    return mkdirat(folder, name, 0700) == 0 && renameat(folder, name, folder, "hec-other") == 0
               ? unlinkat(folder, "hec-other", AT_REMOVEDIR)
               : -1;
}

/* What was there before, too: a file is copied up; a folder in place of one that is gone must hide what that held. */
static int change_probe(int probe) {
    return change_file(probe, "file", "hec-file", 0) == 0 && unlinkat(probe, "folder", AT_REMOVEDIR) == 0 &&
                   mkdirat(probe, "folder", 0700) == 0 && change_folder(probe, "hec-folder") == 0
               ? 0
               : -1;
}

static int change_place(const struct hec_layer_place *place) {
    int folder = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[40];
    snprintf(name, sizeof name, ".hec-probe-%d", (int)getpid());
    int result = folder >= 0 ? change_file(folder, name, ".hec-probe-other", O_CREAT | O_EXCL) : -1, errnum = errno;
    if (folder >= 0)
        close(folder);
    errno = errnum;
    return result;
}

static int try_all(const struct hec_layer *layer, struct hec_layer_fault *fault) {
    int probe = -1;
    if (hec_layer_enter_probing(layer, NULL, &probe, fault) != 0)
        return -1;
    if (change_probe(probe) != 0) {
        *fault = (struct hec_layer_fault){.errnum = errno, .step = HEC_LAYER_STEP_TRY};
        return -1;
    }
    for (size_t i = 0; i < layer->count; i++)
        if (layer->places[i].kind == HEC_LAYER_OVERLAY && layer->places[i].writable &&
            change_place(&layer->places[i]) != 0) {
            *fault = (struct hec_layer_fault){.errnum = errno, .step = HEC_LAYER_STEP_WRITE, .at = (int)i};
            return -1;
        }
    return 0;
}

int hec_layer_try(const struct hec_layer *layer, struct hec_layer_fault *fault) {
    int report[2];
    *fault = (struct hec_layer_fault){.step = HEC_LAYER_STEP_FORK};
    if (pipe2(report, O_CLOEXEC) != 0) {
        fault->errnum = errno;
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct hec_layer_fault found = {0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        try_all(layer, &found);
        ssize_t written = write(report[1], &found, sizeof found);
        _exit(written != (ssize_t)sizeof found);
    }
    fault->errnum = errno;
    close(report[1]);
    ssize_t got = -1;
    while (pid > 0 && (got = read(report[0], fault, sizeof *fault)) < 0 && errno == EINTR) {
    }
    close(report[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    if (got == (ssize_t)sizeof *fault)
        return fault->step == HEC_LAYER_STEP_NONE ? 0 : -1;
    *fault = (struct hec_layer_fault){.errnum = pid < 0 ? fault->errnum : EIO, .step = HEC_LAYER_STEP_FORK};
    return -1;
}

static const char *const step_texts[] = {
#define HEC_LAYER_STEP(name, text) text,
    HEC_LAYER_STEPS(HEC_LAYER_STEP)
#undef HEC_LAYER_STEP
};

static bool setting_is(const char *path, char value) {
    char text[2] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, 1) : -1;
    if (fd >= 0)
        close(fd);
    return got == 1 && text[0] == value;
}

static bool older_than(int major, int minor) {
    struct utsname host;
    int found[2];
    return uname(&host) == 0 && sscanf(host.release, "%d.%d", &found[0], &found[1]) == 2 &&
           (found[0] < major || (found[0] == major && found[1] < minor));
}

static bool in_container(void) {
    static const char *const signs[] = {"/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (access(signs[i], F_OK) == 0)
            return true;
    return false;
}

/* Why namespaces and mounts are refused; NULL: nothing is known. */
static const char *refusal(const struct hec_layer *layer, const struct hec_layer_fault *fault) {
    bool denied = fault->errnum == EPERM || fault->errnum == EACCES;
    if (fault->errnum == ENODEV)
        return "the kernel has no overlayfs";
    if (!layer->user_namespace)
        return NULL;
    if (older_than(5, 11))
        return "that takes Linux 5.11, or root";
    if (setting_is("/proc/sys/user/max_user_namespaces", '0'))
        return "user namespaces are switched off (sysctl user.max_user_namespaces is 0)";
    if (!denied || fault->step > HEC_LAYER_STEP_MOUNT)
        return NULL;
    if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
        return "user namespaces are switched off (sysctl kernel.unprivileged_userns_clone is 0)";
    if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
        return "AppArmor restricts user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns is 1, as Ubuntu sets "
               "it)";
    if (in_container())
        return "this container may not make mounts (Docker: --cap-add SYS_ADMIN --security-opt apparmor=unconfined)";
    if (fault->errnum == EPERM && fault->step == HEC_LAYER_STEP_NAMESPACE)
        return "the kernel refuses a user namespace, as it does in a chroot";
    return NULL;
}

/* The kernel does not let others than root see what is beneath a mount, as an overlay would. */
static const struct hec_layer_place *mount_below(const struct hec_layer *layer, const struct hec_layer_fault *fault) {
    const struct hec_layer_place *place = &layer->places[fault->at];
    if (!layer->user_namespace || fault->step != HEC_LAYER_STEP_MOUNT || fault->errnum != EINVAL)
        return NULL;
    for (size_t i = (size_t)fault->at + 1; i < layer->count; i++)
        if (layer->places[i].mounted && hec_layer_inside(layer->places[i].path, place->path))
            return &layer->places[i];
    return NULL;
}

int hec_layer_explain(const struct hec_layer *layer, const struct hec_layer_fault *fault, struct hec_why *why) {
    const char *reason = refusal(layer, fault), *what = step_texts[fault->step];
    int err = fault->errnum == EPERM || fault->errnum == EACCES ? HEC_ERR_PERMISSION : HEC_ERR_UNSUPPORTED;
    bool about_place = fault->step == HEC_LAYER_STEP_OPEN || fault->step == HEC_LAYER_STEP_MOUNT ||
                       fault->step == HEC_LAYER_STEP_WRITE;
    if (!reason)
        reason = strerror(fault->errnum);
    if (!about_place || (size_t)fault->at >= layer->count)
        return hec_fail(why, err, "cannot %s: %s", what, reason);
    const struct hec_layer_place *place = &layer->places[fault->at], *below = mount_below(layer, fault);
    if (below)
        return hec_fail(
            why, err,
            "cannot mount a scratch layer over %.200s: another file system is mounted in it (%.200s, %s), which only "
            "root can cover",
            place->path, below->path, below->type);
    return hec_fail(why, err, "cannot %s %s%.300s (%s): %s", what,
                    fault->step == HEC_LAYER_STEP_MOUNT ? "a scratch layer over " : "", place->path, place->type,
                    reason);
}
