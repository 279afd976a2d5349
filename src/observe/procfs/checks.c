#include "observe/procfs/checks.h"

#include "base/clock.h"
#include "observe/procfs/file.h"
#include "observe/procfs/parse.h"
#include "observe/procfs/usable.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AREA "host"

static void set_remedy(struct hec_check *check, const char *text) {
    snprintf(check->remedy, sizeof check->remedy, "%s", text);
}

static void check_tree(int proc, const char *self, struct hec_check_list *list) {
    char path[96], text[8192];
    snprintf(path, sizeof path, "%s/stat", self);
    int64_t start_ns = hec_clock_mono_ns();
    ssize_t length = hec_proc_read(proc, path, text, sizeof text);
    int64_t cost_ns = hec_clock_mono_ns() - start_ns;
    struct hec_proc_stat stat;
    if (length < 0 || !hec_proc_parse_stat(text, &stat)) {
        hec_check_add(list, AREA, "process tree", HEC_CHECK_MISSING, "%s in /proc cannot be read: %s", path,
                      length < 0 ? strerror((int)-length) : "unknown format");
        return;
    }
    struct hec_check *check = hec_check_add(list, AREA, "process tree", HEC_CHECK_OK,
                                            "processes, CPU time, memory and thread states are read from /proc");
    snprintf(check->cost, sizeof check->cost, "%.0f us for one reading of one process here", (double)cost_ns / 1e3);

    snprintf(path, sizeof path, "%s/task/%s/children", self, self);
    if (hec_proc_read(proc, path, text, sizeof text) >= 0)
        hec_check_add(list, AREA, "new processes", HEC_CHECK_OK, "found through the kernel's lists of children");
    else
        set_remedy(hec_check_add(list, AREA, "new processes", HEC_CHECK_LIMITED,
                                 "found by going through all processes of the machine"),
                   "a kernel with CONFIG_PROC_CHILDREN (cheaper on machines with thousands of processes)");

    snprintf(path, sizeof path, "%s/io", self);
    length = hec_proc_read(proc, path, text, sizeof text);
    if (length >= 0)
        hec_check_add(list, AREA, "I/O of the tree", HEC_CHECK_OK,
                      "read, as far as the command runs as the same user as hec (or hec as root)");
    else
        set_remedy(hec_check_add(list, AREA, "I/O of the tree", HEC_CHECK_MISSING, "/proc/PID/io cannot be read: %s",
                                 strerror((int)-length)),
                   "a kernel with CONFIG_TASK_IO_ACCOUNTING");
}

/* Its own processes are always seen, but not a member of the tree that became another user's. */
static void check_hidepid(int proc, struct hec_check_list *list) {
    char text[65536];
    if (hec_proc_read(proc, "self/mounts", text, sizeof text) < 0)
        return;
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t length = strcspn(line, "\n");
        char one[512];
        snprintf(one, sizeof one, "%.*s", (int)(length < 500 ? length : 500), line);
        const char *option = strstr(one, " proc ") ? strstr(one, "hidepid=") : NULL;
        if (!option || strncmp(option, "hidepid=0", 9) == 0 || strncmp(option, "hidepid=off", 11) == 0 ||
            geteuid() == 0)
            continue;
        set_remedy(hec_check_add(list, AREA, "other users' processes", HEC_CHECK_LIMITED,
                                 "/proc is mounted with %.20s: a member of the tree that changes user disappears",
                                 option),
                   "run hec as root, or in the group given by the mount option gid=");
        return;
    }
}

static void check_host(int proc, struct hec_check_list *list) {
    char text[4096];
    int64_t busy, total;
    bool cpu = hec_proc_read(proc, "stat", text, 512) >= 0 && hec_proc_parse_cpu(text, &busy, &total);
    bool memory =
        hec_proc_read(proc, "meminfo", text, sizeof text) >= 0 && hec_proc_parse_field(text, "MemAvailable:") >= 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)online;
    if (cpu)
        hec_check_add(list, AREA, "CPU", HEC_CHECK_OK, "%ld core%s, of which hec and the command may use %d", online,
                      online == 1 ? "" : "s", usable);
    else
        hec_check_add(list, AREA, "CPU", HEC_CHECK_MISSING, "/proc/stat cannot be read");
    if (memory)
        hec_check_add(list, AREA, "memory", HEC_CHECK_OK, "available memory is read");
    else
        set_remedy(hec_check_add(list, AREA, "memory", HEC_CHECK_MISSING, "/proc/meminfo has no MemAvailable"),
                   "Linux 3.14 or later");
}

static bool exists(const char *root, const char *path) {
    char full[512];
    int length = snprintf(full, sizeof full, "%s%s", root, path);
    return length < (int)sizeof full && access(full, F_OK) == 0;
}

static void check_container(int proc, const char *root, struct hec_check_list *list) {
    char text[4096];
    const char *kind = exists(root, "/.dockerenv") ? "Docker" : exists(root, "/run/.containerenv") ? "Podman" : NULL;
    if (!kind && hec_proc_read(proc, "1/cgroup", text, sizeof text) > 0)
        kind = strstr(text, "kubepods") ? "Kubernetes"
               : strstr(text, "docker") ? "Docker"
               : strstr(text, "lxc")    ? "LXC"
                                        : NULL;
    if (!kind && getenv("KUBERNETES_SERVICE_HOST"))
        kind = "Kubernetes";
    if (kind)
        hec_check_add(list, AREA, "container", HEC_CHECK_LIMITED,
                      "hec runs in a container (%s): the host's CPU and memory are those of the whole machine, and GPU "
                      "processes outside the container have no names",
                      kind);
    double quota = hec_cores_quota(proc, root);
    if (isfinite(quota))
        hec_check_add(list, AREA, "CPU quota", HEC_CHECK_OK, "a control group limits the command to %.1f cores", quota);
}

void hec_procfs_check(const struct hec_observe_options *options, struct hec_check_list *list) {
    const char *path = options->proc_path ? options->proc_path : "/proc";
    char self[32], root[512] = "";
    int proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0) {
        set_remedy(hec_check_add(list, AREA, "process tree", HEC_CHECK_MISSING, "%s cannot be opened: %s", path,
                                 strerror(errno)),
                   "mount proc there");
        return;
    }
    ssize_t length = readlinkat(proc, "self", self, sizeof self - 1);
    if (length > 0) {
        self[length] = '\0';
        check_tree(proc, self, list);
        check_hidepid(proc, list);
    } else {
        set_remedy(
            hec_check_add(list, AREA, "process tree", HEC_CHECK_MISSING, "%s holds no process information", path),
            "mount proc there");
    }
    check_host(proc, list);
    if (options->proc_path)
        snprintf(root, sizeof root, "%s/..", options->proc_path);
    check_container(proc, root, list);
    close(proc);
}
