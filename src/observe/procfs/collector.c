/* The collector of the process tree, of the host's CPU and memory, and of hec's own cost.
 *
 * Once a second, and more often at first so that short programs are seen. Reading the tree costs about 6 us a process,
 * and looking at the threads about 20 us a thread (bench/procfs measures both), so both are done less often in large
 * trees: the look at the threads stays near 0.5 ms a second, the rest below some 1.5 ms. */
#include "base/clock.h"
#include "observe/collector.h"
#include "observe/procfs/file.h"
#include "observe/procfs/tree.h"
#include "observe/procfs/usable.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What of the host can be observed here: rows for `hec doctor`. */

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

/* Appends the rows of area "host". Under proc_path/.. lie the files that show a container and its CPU quota. */
static void procfs_check(const struct hec_observe_options *options, struct hec_check_list *list) {
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

#define PERIOD_NS HEC_NS_PER_S
#define WAIT_FOR_ROOT_NS (50 * HEC_NS_PER_MS) /* the recorder wakes the lane anyway */
#define PROCESSES_PER_POLL 256
#define THREADS_PER_POLL 24
#define TREE_PERIOD_MAX 10 /* seconds */
#define LOOK_PERIOD_MAX 60 /* seconds */
#define BUSY_TICKS_MIN 20  /* fewer ticks than this make a share of CPU time coarser than 5 % */

struct procfs {
    const struct hec_observe_options *options;
    const struct hec_sink *sink;
    int proc, stat_fd, meminfo_fd, statm_fd;
    struct hec_tree tree;
    bool polled;
    int64_t root_since_ns; /* 0: not started */
    int64_t next_ns;
    int since_tree, tree_period; /* in polls */
    int since_look, look_period;
    int64_t busy_ticks, total_ticks; /* at the last reported share; total 0: none yet */
    bool reported_io, reported_limit;
    int reported_tree_period, reported_look_period;
};

static const int64_t early_ns[] = {20 * HEC_NS_PER_MS, 50 * HEC_NS_PER_MS, 100 * HEC_NS_PER_MS, 200 * HEC_NS_PER_MS,
                                   500 * HEC_NS_PER_MS};

static void give(const struct procfs *self, enum hec_metric metric, int64_t t_ns, int64_t value) {
    self->sink->sample(self->sink->context, metric, 0, t_ns, value);
}

static void give_missing(const struct procfs *self, enum hec_metric metric, int64_t t_ns) {
    self->sink->missing(self->sink->context, metric, 0, t_ns);
}

static void report(const struct procfs *self, enum hec_event_kind kind, int64_t t_ns, const char *text) {
    self->sink->event(self->sink->context, kind, HEC_DEVICE_NONE, t_ns, text);
}

static void host_cpu(struct procfs *self, int64_t now_ns, bool last) {
    char text[512]; /* the first line is enough */
    int64_t busy, total;
    if (self->stat_fd < 0 || hec_proc_reread(self->stat_fd, text, sizeof text) < 0 ||
        !hec_proc_parse_cpu(text, &busy, &total)) {
        give_missing(self, HEC_HOST_CPU_BUSY, now_ns);
        return;
    }
    int64_t passed = total - self->total_ticks;
    if (self->total_ticks > 0 && passed > 0) {
        if (passed < BUSY_TICKS_MIN && !last)
            return; /* goes into the next interval */
        int64_t used = busy - self->busy_ticks;
        used = used < 0 ? 0 : used > passed ? passed : used; /* iowait may go backwards, and with it the total */
        give(self, HEC_HOST_CPU_BUSY, now_ns, (1000 * used + passed / 2) / passed);
    }
    self->busy_ticks = busy;
    self->total_ticks = total;
}

static void host(struct procfs *self, int64_t now_ns, bool last) {
    host_cpu(self, now_ns, last);
    char text[1024]; /* MemAvailable is the third line */
    int64_t available = -1;
    if (self->meminfo_fd >= 0 && hec_proc_reread(self->meminfo_fd, text, sizeof text) >= 0)
        available = hec_proc_parse_field(text, "MemAvailable:");
    if (available >= 0)
        give(self, HEC_HOST_MEM_AVAILABLE, now_ns, available);
    else
        give_missing(self, HEC_HOST_MEM_AVAILABLE, now_ns);
}

static void own_cost(struct procfs *self, int64_t now_ns) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    give(self, HEC_SELF_CPU, now_ns,
         (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
             usage.ru_stime.tv_usec);
    char text[256];
    long size, resident;
    if (self->statm_fd >= 0 && hec_proc_reread(self->statm_fd, text, sizeof text) > 0 &&
        sscanf(text, "%ld %ld", &size, &resident) == 2)
        give(self, HEC_SELF_RSS, now_ns, resident * self->tree.page_kib);
    else
        give_missing(self, HEC_SELF_RSS, now_ns);
}

static void give_io(struct procfs *self, int64_t now_ns) {
    const struct hec_tree *tree = &self->tree;
    if (tree->has_io && tree->io_known) {
        give(self, HEC_TREE_READ, now_ns, tree->amount[HEC_AMOUNT_READ] / 1024);
        give(self, HEC_TREE_WRITTEN, now_ns, tree->amount[HEC_AMOUNT_WRITTEN] / 1024);
        give(self, HEC_TREE_DISK_READ, now_ns, tree->amount[HEC_AMOUNT_DISK_READ] / 1024);
        return;
    }
    give_missing(self, HEC_TREE_READ, now_ns);
    give_missing(self, HEC_TREE_WRITTEN, now_ns);
    give_missing(self, HEC_TREE_DISK_READ, now_ns);
    if (self->reported_io)
        return;
    self->reported_io = true;
    report(self, HEC_EVENT_SOURCE_UNAVAILABLE, now_ns,
           tree->has_io ? "I/O of the tree: a process of it does not let its /proc/PID/io be read (another user's, or "
                          "protected), so the tree's total is unknown from here on"
                        : "I/O of the tree: this kernel has no /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)");
}

static void give_threads(struct procfs *self, int64_t now_ns) {
    const struct hec_tree *tree = &self->tree;
    static const enum hec_metric metrics[] = {HEC_TREE_THREADS_RUNNING, HEC_TREE_THREADS_SLEEPING,
                                              HEC_TREE_THREADS_DISK, HEC_TREE_SWITCHES_VOLUNTARY,
                                              HEC_TREE_SWITCHES_INVOLUNTARY};
    const int64_t values[] = {tree->running, tree->sleeping, tree->disk, tree->voluntary, tree->involuntary};
    for (int i = 0; i < 5; i++) {
        if (tree->threads_known)
            give(self, metrics[i], now_ns, values[i]);
        else
            give_missing(self, metrics[i], now_ns);
    }
}

static int period_for(int64_t count, int per_poll, int maximum) {
    int64_t period = (count + per_poll - 1) / per_poll;
    return period < 1 ? 1 : period > maximum ? maximum : (int)period;
}

/* Says so when something is read less often than once a second; again only when that has doubled. */
static void report_period(struct procfs *self, int64_t now_ns, int period, int *reported, int64_t count,
                          const char *what) {
    char text[200];
    if (period < 2 * *reported)
        return;
    *reported = period;
    snprintf(text, sizeof text, "%lld %s are read only every %d s, to bound the cost", (long long)count, what, period);
    report(self, HEC_EVENT_NOTE, now_ns, text);
}

static void tree(struct procfs *self, int32_t root, int64_t now_ns, bool last) {
    struct hec_tree *tree = &self->tree;
    self->since_look++;
    if (++self->since_tree < self->tree_period && !last)
        return;
    bool look = !last && self->since_look >= self->look_period;
    hec_tree_update(tree, root, now_ns, look, self->sink);
    self->since_tree = 0;
    give(self, HEC_TREE_CPU, now_ns, tree->amount[HEC_AMOUNT_CPU_US] / 1000);
    give(self, HEC_TREE_RSS, now_ns, tree->rss_kib);
    give(self, HEC_TREE_PROCESSES, now_ns, tree->processes);
    give_io(self, now_ns);
    if (look) {
        give_threads(self, now_ns);
        self->since_look = 0;
    }
    self->tree_period = period_for(tree->processes, PROCESSES_PER_POLL, TREE_PERIOD_MAX);
    self->look_period = period_for(tree->threads, THREADS_PER_POLL, LOOK_PERIOD_MAX);
    report_period(self, now_ns, self->tree_period, &self->reported_tree_period, tree->processes,
                  "processes of the tree");
    report_period(self, now_ns, self->look_period, &self->reported_look_period, tree->threads,
                  "threads: their states and context switches");
    if (tree->unseen_for_limit > 0 && !self->reported_limit) {
        self->reported_limit = true;
        report(self, HEC_EVENT_NOTE, now_ns,
               "the tree has more live processes than are looked at (16384): its totals are too low");
    }
}

static int64_t next_after(const struct procfs *self, int64_t now_ns) {
    int64_t age_ns = now_ns - self->root_since_ns;
    for (size_t i = 0; i < sizeof early_ns / sizeof early_ns[0]; i++)
        if (early_ns[i] > age_ns)
            return self->root_since_ns + early_ns[i];
    return self->root_since_ns + (age_ns / PERIOD_NS + 1) * PERIOD_NS;
}

static int64_t procfs_poll(void *context, int64_t now_ns) {
    struct procfs *self = context;
    pid_t root = __atomic_load_n(&self->options->root, __ATOMIC_ACQUIRE); /* another thread starts the command */
    bool starts = root > 0 && self->root_since_ns == 0;
    if (self->polled && !starts && now_ns < self->next_ns)
        return self->next_ns;
    if (root <= 0 && self->polled) {
        self->next_ns = now_ns + WAIT_FOR_ROOT_NS;
        return self->next_ns;
    }
    if (starts)
        self->root_since_ns = now_ns;
    self->polled = true;
    host(self, now_ns, false);
    own_cost(self, now_ns);
    if (root > 0)
        tree(self, root, now_ns, false);
    self->next_ns = root > 0 ? next_after(self, now_ns) : now_ns + WAIT_FOR_ROOT_NS;
    return self->next_ns;
}

static void report_survivors(struct procfs *self, int32_t root, int64_t end_ns) {
    const struct hec_tree *tree = &self->tree;
    const struct hec_tree_member *leader = hec_tree_find(tree, root);
    if (tree->processes == 0 || (leader && leader->record.end_ns < 0))
        return; /* none, or the command itself was not waited for */
    char text[256];
    int used = snprintf(text, sizeof text,
                        "%lld process%s of the command still running when it ended:", (long long)tree->processes,
                        tree->processes == 1 ? "" : "es");
    for (int i = 0, named = 0; i < tree->count && named < 5; i++) {
        const struct hec_process *record = &tree->members[i].record;
        if (tree->members[i].gone || record->end_ns >= 0)
            continue;
        used += snprintf(text + used, sizeof text - (size_t)used, "%s %.20s (%d)", named++ ? "," : "", record->name,
                         record->pid);
    }
    report(self, HEC_EVENT_SURVIVORS, end_ns, text);
}

static void procfs_finish(void *context, int64_t end_ns) {
    struct procfs *self = context;
    pid_t root = __atomic_load_n(&self->options->root, __ATOMIC_ACQUIRE);
    host(self, end_ns, true);
    own_cost(self, end_ns);
    if (root <= 0)
        return;
    tree(self, root, end_ns, true);
    report_survivors(self, root, end_ns);
    hec_sink_meta(self->sink, "tree_processes_seen", "%lld", (long long)self->tree.seen);
    hec_sink_meta(self->sink, "tree_processes_unrecorded", "%lld", (long long)self->tree.unrecorded);
}

static void procfs_close(void *context) {
    struct procfs *self = context;
    hec_tree_free(&self->tree);
    const int fds[] = {self->stat_fd, self->meminfo_fd, self->statm_fd, self->proc};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(self);
}

static int procfs_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **out,
                       struct hec_why *why) {
    const char *path = options->proc_path ? options->proc_path : "/proc";
    char link[32];
    *out = NULL;
    int proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return hec_fail(why, hec_err_from_errno(errno), "%s cannot be opened: %s", path, strerror(errno));
    ssize_t length = readlinkat(proc, "self", link, sizeof link - 1);
    if (length <= 0) {
        close(proc);
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "%s holds no process information (is proc mounted?)", path);
    }
    link[length] = '\0';
    int32_t pid = (int32_t)strtol(link, NULL, 10);
    if (!options->proc_path && pid != getpid()) {
        close(proc);
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "/proc belongs to another pid namespace than hec");
    }
    struct procfs *self = calloc(1, sizeof *self);
    if (!self) {
        close(proc);
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    *self = (struct procfs){.options = options, .sink = sink, .proc = proc, .tree_period = 1, .look_period = 1};
    self->reported_tree_period = self->reported_look_period = 1;
    self->stat_fd = openat(proc, "stat", O_RDONLY | O_CLOEXEC);
    self->meminfo_fd = openat(proc, "meminfo", O_RDONLY | O_CLOEXEC);
    self->statm_fd = openat(proc, "self/statm", O_RDONLY | O_CLOEXEC);
    hec_tree_init(&self->tree, proc, pid, options->proc_path == NULL);
    self->tree.owner = options->owner;
    hec_tree_exclude_present(&self->tree, __atomic_load_n(&options->root, __ATOMIC_ACQUIRE));
    *out = self;
    return HEC_OK;
}

const struct hec_collector hec_collector_procfs = {
    .name = "procfs",
    .lane = HEC_LANE_HOST,
    .open = procfs_open,
    .poll = procfs_poll,
    .finish = procfs_finish,
    .close = procfs_close,
    .check = procfs_check,
};
