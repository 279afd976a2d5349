#include "observe/procfs/usable.h"

#include "observe/procfs/file.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double quota_of(const char *root, const char *group) {
    char path[8192], text[128];
    long long quota, period;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/cpu.max", root, group);
    bool limited = hec_proc_read(AT_FDCWD, path, text, sizeof text) > 0 &&
                   sscanf(text, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0;
    return limited ? (double)quota / (double)period : INFINITY;
}

double hec_cores_quota(int proc, const char *root) {
    char text[4096];
    double least = INFINITY;
    char *group = hec_proc_read(proc, "self/cgroup", text, sizeof text) > 0 ? strstr(text, "0::/") : NULL;
    if (!group)
        return quota_of(root, "");
    group += strlen("0::");
    group[strcspn(group, "\n")] = '\0';
    for (char *slash; (slash = strrchr(group, '/')) != NULL; *slash = '\0')
        least = fmin(least, quota_of(root, group));
    return fmin(least, quota_of(root, ""));
}

int hec_cores_usable(void) {
    cpu_set_t set;
    double cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc >= 0) {
        cores = fmin(cores, hec_cores_quota(proc, ""));
        close(proc);
    }
    return (int)fmax(1, ceil(cores));
}
