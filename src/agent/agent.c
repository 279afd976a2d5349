#include "agent/agent.h"

#include "agent/causes.h"
#include "agent/http.h"
#include "agent/live.h"
#include "agent/page.h"
#include "agent/pod_names.h"
#include "agent/power.h"
#include "agent/push.h"
#include "agent/state_file.h"
#include "agent/watch.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "launch/kept_file.h"
#include "report/html.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the agent gives up before it serves anybody: rights of root, new programs, writing anything but its state. */

struct sandbox_options {
    const char *user;     /* become this user; NULL: stay who it is */
    bool may_start;       /* it may start programs: its own windows (jobs) */
    bool others_may_look; /* at its /proc: those who share its simulated machine */
};

static int find_user(const char *name, struct passwd **user, struct hec_why *why) {
    *user = getpwnam(name);
    return *user ? HEC_OK : hec_fail(why, HEC_ERR_USAGE, "there is no user \"%.60s\"", name);
}

static int become(const char *name, struct hec_why *why) {
    struct passwd *user;
    int err = find_user(name, &user, why);
    if (err < 0)
        return err;
    if (geteuid() == user->pw_uid)
        return HEC_OK;
    if (initgroups(name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
        return hec_fail(why, HEC_ERR_PERMISSION, "cannot become the user \"%.60s\": %s", name, strerror(errno));
    return HEC_OK;
}

/* Root's files can still be read, among them RAPL's counters and the socket of the kubelet. The one right that root's agent keeps lets it
 * see what a process of root with more rights (a container's root) has open and in its environment; those of other users' processes are
 * files of mode 0400 and 0500, which it does not open. So it is of use to root alone: an agent of another user keeps none. */
#define KEPT_BY_ROOT CAP_SYS_PTRACE

/* What no program that it starts can get again; before it becomes another user, who may not drop anything. */
static void bound_capabilities(const char *name) {
    const struct passwd *user = name ? getpwnam(name) : NULL;
    for (int i = 0; i < 64; i++)
        if (i != KEPT_BY_ROOT || (user && user->pw_uid != 0))
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0); /* without the right to drop it there was none to use */
}

static int drop_capabilities(struct hec_why *why) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return hec_fail(why, HEC_ERR_FAILED, "cannot see its own rights: %s", strerror(errno));
    unsigned left = geteuid() == 0 ? data[0].permitted & 1u << KEPT_BY_ROOT : 0;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    memset(data, 0, sizeof data);
    data[0].permitted = data[0].effective = left;
    if (syscall(SYS_capset, &header, data) != 0)
        return hec_fail(why, HEC_ERR_FAILED, "cannot give up its rights: %s", strerror(errno));
    return HEC_OK;
}

/* Every file system read-only, for this process: where it may. A container's runtime does so itself, and so does systemd.
 * Descriptors that are open stay writable, and so do devices. (Landlock would do without rights, but it also forbids to look
 * into other processes.) */
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

static int filter_calls(const struct sandbox_options *options, struct hec_why *why) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int failed = filter ? forbid(filter, options->may_start) : -ENOMEM;
    if (!failed)
        failed = seccomp_load(filter);
    if (filter)
        seccomp_release(filter);
    return failed ? hec_fail(why, HEC_ERR_FAILED, "cannot filter its system calls: %s", strerror(-failed)) : HEC_OK;
}

/* For this thread and those that it starts: call it before there are others, and when everything that it writes is open. */
static int sandbox_enter(const struct sandbox_options *options, struct hec_why *why) {
    write_nowhere();
    bound_capabilities(options->user);
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

#define STALE_INTERVALS 5
#define STALE_NS (30 * HEC_NS_PER_S) /* without a turn of its loop for so long it is not healthy */
#define PAGE_AGE_INTERVALS 2
#define SYNC_NS (60 * HEC_NS_PER_S)
#define FIELDS_FILE_MAX (1u << 20)
#define ABSENT_INTERVALS 3           /* after the start, and ... */
#define ABSENT_NS (3 * HEC_NS_PER_S) /* ... a window of hardware counters, and a driver that is slow to start */
#define PUSH_NS (60 * HEC_NS_PER_S)  /* OpenTelemetry's default */

struct agent {
    const struct hec_agent_options *options;
    struct hec_web_config web;
    bool has_users; /* who logs in, by the file that was read last */
    struct hec_dcgm_list dcgm;
    char hostname[256];
    struct hec_page_options page;
    struct hec_node *node;
    struct hec_state_file state;
    struct hec_causes *causes; /* NULL: no jobs */
    struct hec_watch watch;
    struct hec_http *http;
    struct hec_push *push;
    struct hec_power_share *power; /* NULL: there is no budget */
    struct hec_pod_names *names;   /* of the API server; NULL: it is not asked */
    int signals;
    pthread_mutex_t making; /* a page: of the state file, and what follows */
    struct hec_buf text;
    struct hec_live live;
    bool state_failing;
    int64_t started_ns; /* wall clock */
    int64_t synced_ns;  /* of the main thread */
    /* When it is said which fields of the file devices do not give, INT64_MAX: it was, or there is none; of which it was. */
    int64_t absent_ns;
    bool absent_said[HEC_DEVICE_MAX];
};

static int64_t next_tick(int64_t after_ns, int64_t now_ns, int64_t interval_ns) {
    int64_t next_ns = after_ns + interval_ns;
    return next_ns > now_ns ? next_ns : now_ns + interval_ns; /* late: those that passed are left out */
}

static int64_t absent_wait_ns(const struct agent *agent) {
    return ABSENT_INTERVALS * agent->options->interval_ns + ABSENT_NS;
}

/* ---- pages ---- */

/* What client libraries of Prometheus say of their process, under their names. */
static struct hec_page_process describe_process(const struct agent *agent, const struct rusage *usage) {
    char text[128];
    long size, resident;
    struct rlimit files;
    struct hec_page_process out = {.resident_bytes = -1, .virtual_bytes = -1, .open_fds = -1, .max_fds = -1};
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    if (sscanf(text, "%ld %ld", &size, &resident) == 2) {
        out.virtual_bytes = (double)size * (double)sysconf(_SC_PAGESIZE);
        out.resident_bytes = (double)resident * (double)sysconf(_SC_PAGESIZE);
    }
    DIR *fds = opendir("/proc/self/fd");
    if (fds) {
        out.open_fds = -3; /* ".", "..", and this one */
        while (readdir(fds))
            out.open_fds++;
        closedir(fds);
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        out.max_fds = (double)files.rlim_cur;
    out.cpu_seconds = (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
                      (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
    out.started_s = (double)agent->started_ns / HEC_NS_PER_S;
    return out;
}

static void describe_self(struct agent *agent, struct hec_page_agent *self) {
    struct rusage usage;
    struct hec_http_counts http;
    getrusage(RUSAGE_SELF, &usage);
    hec_http_counts(agent->http, &http);
    struct hec_page_process process = describe_process(agent, &usage);
    *self = (struct hec_page_agent){
        .process = process,
        .cpu_seconds = process.cpu_seconds,
        .resident_bytes = process.resident_bytes,
        .state_saved = agent->state.folder < 0 ? -1 : agent->state.saved,
    };
    hec_page_drop(self, "http_connections", http.cut);
    hec_page_drop(self, "http_requests", http.refused);
    hec_page_drop(self, "http_unauthorized", http.unauthorized);
    hec_page_drop(self, "state_writes", agent->state.failed);
    hec_page_drop(self, "processes", agent->node->dropped_processes);
    hec_page_drop(self, "devices", agent->node->dropped_devices);
    hec_page_drop(self, "pods", agent->node->kubelet ? hec_kubelet_devices(agent->node->kubelet)->left_out : 0);
    hec_page_drop(self, "jobs_of_the_map", agent->node->jobs.left_out);
    hec_page_drop(self, "driver_threads", (uint64_t)agent->watch.abandoned);
    if (agent->push)
        hec_page_drop(self, "otlp_pages", hec_push_failed(agent->push));
    if (agent->causes) {
        struct hec_jobs_counts jobs;
        hec_causes_counts(agent->causes, &jobs);
        self->cpu_seconds += jobs.window_cpu_seconds + jobs.door_cpu_seconds;
        hec_page_drop(self, "job_rings", jobs.refused);
        hec_page_drop(self, "job_connections", jobs.silent);
        hec_page_drop(self, "job_requests", jobs.requests_refused);
        hec_page_drop(self, "job_windows", jobs.windows_failed);
    }
}

static void save(struct agent *agent, bool synced) {
    int err = hec_state_file_save(&agent->state, agent->node, synced);
    bool failing = err < 0 && err != HEC_ERR_NOTFOUND;
    if (failing && !agent->state_failing)
        hec_warn("the state cannot be kept: %s; counters go on, and are lost at the end", hec_err_text(err));
    else if (!failing && agent->state_failing)
        hec_info("the state is kept again");
    agent->state_failing = failing;
}

/* Locks `making`. */
static int64_t begin_page(struct agent *agent, struct hec_page_agent *self) {
    int64_t now_ns = hec_clock_mono_ns();
    pthread_mutex_lock(&agent->making);
    hec_node_tick(agent->node, now_ns);
    describe_self(agent, self);
    return now_ns;
}

/* What is shown was saved before, with what came in since: no counter of a page is lower after a restart. */
static void make(void *context, enum hec_http_page page) {
    struct agent *agent = context;
    struct hec_page_agent self;
    int64_t now_ns = begin_page(agent, &self);
    int err;
    hec_buf_clear(&agent->text);
    if (page == HEC_HTTP_HTML)
        err = hec_html_live(agent->hostname, &agent->text);
    else if (page == HEC_HTTP_LIVE)
        err = hec_live_make(&agent->live, agent->node, &agent->page, &self, now_ns, &agent->text);
    else {
        struct hec_page_options options = agent->page;
        options.current = page == HEC_HTTP_CURRENT;
        err = hec_page_make(agent->node, &options, &self,
                            page == HEC_HTTP_OPENMETRICS ? HEC_EXPOSITION_OPENMETRICS : HEC_EXPOSITION_PROMETHEUS,
                            now_ns, &agent->text);
    }
    save(agent, false);
    if (err == HEC_OK)
        hec_http_publish(agent->http, page, agent->text.data, agent->text.length);
    pthread_mutex_unlock(&agent->making);
}

static int make_otlp(void *context, struct hec_buf *out) {
    struct agent *agent = context;
    struct hec_page_agent self;
    int64_t now_ns = begin_page(agent, &self);
    int err = hec_page_make(agent->node, &agent->page, &self, HEC_EXPOSITION_OTLP, now_ns, out);
    save(agent, false);
    pthread_mutex_unlock(&agent->making);
    return err;
}

static int start_push(struct agent *agent, struct hec_why *why) {
    const char *text = getenv("OTEL_METRIC_EXPORT_INTERVAL");
    char *end = NULL;
    long ms = text ? strtol(text, &end, 10) : 0;
    if (text && (end == text || *end || ms < 100 || ms > 86400000))
        return hec_fail(why, HEC_ERR_USAGE, "OTEL_METRIC_EXPORT_INTERVAL is no number of milliseconds from 100 on");
    return hec_push_start(&(struct hec_push_options){.url = agent->options->otlp,
                                                     .headers = getenv("OTEL_EXPORTER_OTLP_HEADERS"),
                                                     .interval_ns = text ? ms * HEC_NS_PER_MS : PUSH_NS,
                                                     .make = make_otlp,
                                                     .context = agent},
                          &agent->push, why);
}

/* Once of each device, when all that can be read has been: a field that was asked for and is absent is no fault of the scrape. */
static void say_absent(struct agent *agent, int64_t now_ns) {
    int64_t since_ns = now_ns - absent_wait_ns(agent) / 2;
    bool any = false, later = false;
    pthread_mutex_lock(&agent->making);
    for (int index = 0; index < HEC_DEVICE_MAX; index++) {
        if (agent->absent_said[index])
            continue;
        enum hec_page_absence absence =
            hec_page_absent(agent->node, &agent->page, index, now_ns, since_ns, &agent->text);
        agent->absent_said[index] = absence == HEC_PAGE_JUDGED;
        any |= absence == HEC_PAGE_JUDGED;
        later |= absence == HEC_PAGE_LATER;
        if (agent->text.length)
            hec_info("%s: GPU %d does not give these fields, which are absent: %s", agent->options->fields,
                     index % HEC_VENDOR_DEVICES_MAX, hec_buf_text(&agent->text));
    }
    pthread_mutex_unlock(&agent->making);
    agent->absent_ns = any && !later ? INT64_MAX : now_ns + absent_wait_ns(agent);
}

static void tick(struct agent *agent, int64_t now_ns) {
    hec_node_tick(agent->node, now_ns);
    pthread_mutex_lock(&agent->making);
    hec_history_add(&agent->live.history, agent->node, now_ns);
    pthread_mutex_unlock(&agent->making);
    if (hec_watch_poll(&agent->watch, now_ns))
        hec_http_ready(agent->http, true); /* what there is, is served */
    if (now_ns - agent->synced_ns >= SYNC_NS) {
        pthread_mutex_lock(&agent->making);
        save(agent, true);
        save(agent, false);
        pthread_mutex_unlock(&agent->making);
        agent->synced_ns = now_ns;
    }
    if (now_ns >= agent->absent_ns)
        say_absent(agent, now_ns);
    int64_t stale_ns = STALE_INTERVALS * agent->options->interval_ns;
    hec_http_tick(agent->http, now_ns, stale_ns > STALE_NS ? stale_ns : STALE_NS);
}

static int read_fields(struct agent *agent, struct hec_why *why) {
    const char *path = agent->options->fields;
    hec_dcgm_list_default(&agent->dcgm, agent->options->all_series, agent->options->old_names);
    if (!path)
        return HEC_OK;
    char *text;
    size_t length;
    struct hec_why reason = {""};
    int err = hec_small_file_read(path, FIELDS_FILE_MAX, &text, &length, why);
    if (err < 0)
        return err;
    err = hec_dcgm_list_parse(&agent->dcgm, text, length, agent->options->old_names, &reason);
    free(text);
    if (err < 0)
        return hec_fail(why, err, "%s: %s", path, reason.text[0] ? reason.text : hec_err_text(err));
    if (agent->dcgm.skipped_count)
        hec_info("%s: hec does not know %zu of its fields, which are absent: %s", path, agent->dcgm.skipped_count,
                 agent->dcgm.skipped);
    agent->absent_ns = hec_clock_mono_ns() + absent_wait_ns(agent);
    memset(agent->absent_said, 0, sizeof agent->absent_said);
    return HEC_OK;
}

/* The files that it was started with, once more; one that cannot be read leaves what was. Who logs in and which fields are served
 * may change; TLS is as it was at the start. */
static void reload(struct agent *agent) {
    struct hec_why why = {""};
    struct hec_dcgm_list before = agent->dcgm;
    struct hec_web_config fresh = {0};
    pthread_mutex_lock(&agent->making);
    int err = read_fields(agent, &why);
    if (err < 0)
        agent->dcgm = before;
    pthread_mutex_unlock(&agent->making);
    if (err < 0)
        hec_warn("agent: not reloaded: %s", why.text);
    bool web = agent->options->web_config != NULL;
    if (web && hec_web_config_read(agent->options->web_config, &fresh, &why) < 0) {
        hec_warn("agent: not reloaded: %s", why.text);
        err = HEC_ERR_FAILED;
    } else if (web && agent->has_users && fresh.user_count == 0) {
        hec_warn("agent: not reloaded: %s names no users any more; to let everybody in, start hec agent again",
                 agent->options->web_config);
        hec_web_config_free(&fresh);
        err = HEC_ERR_FAILED;
    } else if (web) {
        agent->has_users = fresh.user_count > 0;
        hec_http_swap_users(agent->http, &fresh);
        hec_web_config_free(&fresh);
    }
    if (err == HEC_OK)
        hec_info("agent: reloaded");
}

/* Whether it is to end. */
static bool take_signals(struct agent *agent) {
    struct signalfd_siginfo info;
    while (read(agent->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGHUP)
            return true;
        reload(agent);
    }
    return false;
}

/* Until a signal to end. */
static void serve(struct agent *agent) {
    int64_t due_ns = hec_clock_mono_ns(), jobs_ns = agent->causes ? due_ns : INT64_MAX;
    for (;;) {
        int64_t now_ns = hec_clock_mono_ns();
        if (now_ns >= due_ns) {
            tick(agent, now_ns);
            due_ns = next_tick(due_ns, hec_clock_mono_ns(), agent->options->interval_ns);
            continue;
        }
        if (now_ns >= jobs_ns)
            jobs_ns = hec_causes_poll(agent->causes, now_ns);
        int64_t left_ns = (jobs_ns < due_ns ? jobs_ns : due_ns) - now_ns;
        struct timespec wait = {left_ns > 0 ? left_ns / HEC_NS_PER_S : 0, left_ns > 0 ? left_ns % HEC_NS_PER_S : 0};
        struct pollfd fds[] = {{.fd = agent->signals, .events = POLLIN},
                               {.fd = agent->causes ? hec_causes_fd(agent->causes) : -1, .events = POLLIN}};
        if (ppoll(fds, 2, &wait, NULL) > 0 && fds[0].revents && take_signals(agent))
            return;
        if (fds[1].revents)
            jobs_ns = 0;
    }
}

/* ---- beginning and end ---- */

static int open_state(struct agent *agent, struct hec_why *why) {
    agent->state.folder = agent->state.lock = -1;
    if (!agent->options->state_dir)
        return HEC_OK;
    struct passwd *user = NULL; /* whom the folder belongs to since the agent became this user */
    int err = agent->options->user ? find_user(agent->options->user, &user, why) : HEC_OK;
    if (err == HEC_OK)
        err = hec_state_file_open(&agent->state, agent->options->state_dir, user ? user->pw_uid : geteuid(), why);
    if (err == HEC_OK && user && !agent->options->no_sandbox)
        err = hec_state_file_give(&agent->state, agent->options->state_dir, user->pw_uid, user->pw_gid, why);
    if (err < 0)
        return err;
    struct hec_why reason = {""};
    err = hec_state_file_load(&agent->state, agent->node, &reason);
    if (err < 0 && err != HEC_ERR_NOTFOUND)
        hec_warn("%s: counters begin at 0", reason.text);
    return HEC_OK;
}

/* Before rights are given up: the socket's folder may be root's. */
static int open_jobs(struct agent *agent, struct hec_why *why) {
    const struct hec_agent_options *options = agent->options;
    struct hec_jobs_options jobs = hec_jobs_defaults();
    if (!options->jobs)
        return HEC_OK;
    jobs.socket = options->jobs;
    jobs.window_s = options->window_s;
    jobs.period_s = options->window_every_s;
    jobs.simulated = options->simulated;
    jobs.nvml_path = options->nvml_path;
    int err = hec_causes_open(&jobs, agent->node, &agent->causes, why);
    agent->page.causes = agent->causes;
    return err;
}

/* Before rights are given up, and before there are threads: the guardian of the limits keeps its own. */
static int open_power(struct agent *agent, struct hec_why *why) {
    const struct hec_agent_options *options = agent->options;
    if (options->power_budget_w <= 0)
        return HEC_OK;
    int err = hec_power_share_open(&(struct hec_power_share_options){.watts = options->power_budget_w,
                                                                     .rules = options->power_classes,
                                                                     .carbon = options->carbon_file,
                                                                     .prices = options->price_file,
                                                                     .simulated = options->simulated,
                                                                     .allowed = options->allow_power},
                                   &agent->power, why);
    agent->page.power = agent->power;
    return err;
}

/* Where there is no account, it is not asked. */
static void start_names(struct agent *agent) {
    const char *account = agent->options->account ? agent->options->account : HEC_POD_NAMES_ACCOUNT;
    struct hec_why why = {""};
    int err = hec_pod_names_start(account, &agent->names, &why);
    if (err < 0 && (err != HEC_ERR_NOTFOUND || agent->options->account))
        hec_warn("names of pods are not asked of the API server: %s", why.text);
    pthread_mutex_lock(&agent->node->lock);
    if (agent->node->identity)
        hec_identity_ask(agent->node->identity, agent->names);
    pthread_mutex_unlock(&agent->node->lock);
}

static int watch_signals(struct agent *agent, struct hec_why *why) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* in the threads that follow too */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a disk that is full */
    agent->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return agent->signals >= 0 ? HEC_OK
                               : hec_fail(why, hec_err_from_errno(errno), "cannot watch signals: %s", strerror(errno));
}

static int begin(struct agent *agent, struct hec_why *why) {
    const struct hec_agent_options *options = agent->options;
    int fd = -1, err = open_power(agent, why);
    if (err == HEC_OK)
        err = watch_signals(agent, why);
    if (err == HEC_OK && options->web_config)
        err = hec_web_config_read(options->web_config, &agent->web, why);
    agent->has_users = agent->web.user_count > 0;
    if (err == HEC_OK)
        err = read_fields(agent, why);
    if (err == HEC_OK)
        err = hec_dcgm_devices_parse(options->devices ? options->devices : "f", &agent->page.devices, why);
    struct hec_identity *identity = NULL;
    if (err == HEC_OK &&
        hec_identity_open(&(struct hec_identity_options){.device_prefix = hec_identity_proof(NULL)}, &identity) < 0)
        hec_warn("/proc cannot be read: joules are nobody's");
    if (err == HEC_OK)
        agent->node = hec_node_new(options->interval_ns, identity);
    if (err == HEC_OK && !agent->node)
        err = hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    if (err == HEC_OK) {
        agent->node->jobs.folder = options->job_map ? options->job_map : options->simulated ? NULL : HEC_JOB_MAP_FOLDER;
        agent->node->jobs.expected = options->job_map != NULL;
    }
    if (err == HEC_OK && options->scrape_ns > 0) /* a page is up to one and a half intervals old */
        agent->node->lag_ns = options->scrape_ns + PAGE_AGE_INTERVALS * options->interval_ns;
    if (err == HEC_OK && (err = hec_kubelet_create(options->kubelet, &agent->node->kubelet)) < 0)
        hec_fail(why, err, "%s: not a path of a socket", options->kubelet);
    if (err == HEC_OK)
        err = open_state(agent, why);
    if (err == HEC_OK)
        err = hec_http_listen(options->listen, &fd, why);
    if (err == HEC_OK)
        err = open_jobs(agent, why);
    struct sandbox_options sandbox = {
        .may_start = agent->causes != NULL, .user = options->user, .others_may_look = options->nvml_path != NULL};
    if (err == HEC_OK && !options->no_sandbox)
        err = sandbox_enter(&sandbox, why);
    if (err < 0 && fd >= 0)
        close(fd);
    if (err == HEC_OK)
        err = hec_http_start(fd, options->web_config ? &agent->web : NULL,
                             &(struct hec_http_maker){make, agent, options->interval_ns}, &agent->http, why);
    if (err == HEC_OK && options->otlp)
        err = start_push(agent, why);
    if (err == HEC_OK && agent->power)
        err = hec_power_share_start(agent->power, agent->node, why);
    if (err == HEC_OK)
        start_names(agent);
    return err;
}

static void end(struct agent *agent) {
    hec_power_share_close(agent->power);
    hec_push_stop(agent->push);
    hec_watch_stop(&agent->watch);
    if (agent->http) {
        hec_http_stop(agent->http);
        save(agent, true);
        save(agent, false);
    }
    hec_state_file_close(&agent->state);
    hec_causes_close(agent->causes);
    if (agent->watch.abandoned == 0)
        hec_node_free(agent->node);
    hec_pod_names_stop(agent->names);
    hec_web_config_free(&agent->web);
    hec_buf_free(&agent->text);
    hec_history_free(&agent->live.history);
    if (agent->signals >= 0)
        close(agent->signals);
}

__attribute__((visibility("default"))) int hec_agent_main(const struct hec_agent_options *options) {
    /* threads whose heaps would each take their own pages */
    mallopt(M_ARENA_MAX, 1);
    static struct agent agent; /* a thread that was given up may still refer to it */
    struct hec_why why = {""};
    agent = (struct agent){.options = options, .signals = -1, .state = {.folder = -1, .lock = -1}};
    agent.page = (struct hec_page_options){.dcgm = &agent.dcgm,
                                           .hostname_label = "Hostname",
                                           .hostname = agent.hostname,
                                           .dashes = options->dashes,
                                           .all_series = options->all_series};
    hec_buf_init(&agent.text, HEC_PAGE_LENGTH_MAX);
    pthread_mutex_init(&agent.making, NULL);
    agent.synced_ns = hec_clock_mono_ns();
    agent.started_ns = hec_clock_wall_ns();
    agent.absent_ns = INT64_MAX;
    hec_log_set_level(options->verbose ? HEC_LOG_DEBUG : HEC_LOG_INFO);
    if (!options->no_hostname)
        gethostname(agent.hostname, sizeof agent.hostname - 1);
    int err = begin(&agent, &why);
    if (err < 0) {
        hec_error("agent: %s", why.text[0] ? why.text : hec_err_text(err));
        end(&agent);
        return hec_err_exit_status(err);
    }
    hec_watch_start(&agent.watch, agent.node, hec_collectors_of(HEC_OBSERVER_NODE), options->nvml_path);
    hec_info("agent: %s/metrics", hec_http_url(agent.http));
    serve(&agent);
    end(&agent);
    return 0;
}
