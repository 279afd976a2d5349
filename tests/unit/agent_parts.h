/* The agent on parts that are made up, which say what they are asked; time goes on while it waits. */
#pragma once

#include "agent/agent.h"
#include "agent/http.h"
#include "agent/live.h"
#include "agent/page.h"
#include "agent/pod_names.h"
#include "agent/push.h"
#include "agent/state_file.h"
#include "agent/watch.h"
#include "base/log.h"
#include "report/html.h"
#include "tests/unit/folder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#define S HEC_NS_PER_S
#define START 1000 /* s */

static int64_t now_ns;
static int64_t fake_mono(void) {
    return now_ns;
}
static int64_t fake_wall(void) {
    return now_ns + INT64_C(1700000000) * S + S / 4;
}
static const struct hec_clock_source fake_clock = {fake_mono, fake_wall};

/* What it did, a word each. */
static char told[8192], logged[4096];
static bool told_ticks; /* words of each turn of the loop, too */
static __attribute__((format(printf, 1, 2))) void tell(const char *format, ...) {
    va_list list;
    size_t length = strlen(told);
    va_start(list, format);
    vsnprintf(told + length, sizeof told - length, format, list);
    va_end(list);
    strncat(told, " ", sizeof told - strlen(told) - 1);
}

static enum hec_log_level level;
void hec_log_set_level(enum hec_log_level to) {
    level = to;
}
bool hec_log_has_error(void) {
    return false;
}
void hec_log(enum hec_log_level at, const char *format, ...) {
    va_list list;
    size_t length = strlen(logged);
    va_start(list, format);
    length += (size_t)snprintf(logged + length, sizeof logged - length, "%d ", at);
    vsnprintf(logged + length, sizeof logged - length, format, list);
    strncat(logged, "\n", sizeof logged - strlen(logged) - 1);
    va_end(list);
}

/* Sanitizers ask the system before they can watch anybody, by these as well where they are a part of the program. */
#define BEFORE_ALL __attribute__((no_sanitize_address))

/* How many locks are held: the one under which pages are made, and that of the node. */
static int locks;
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
BEFORE_ALL int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
    locks++;
    return __real_pthread_mutex_lock(mutex);
}
BEFORE_ALL int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
    locks--;
    return __real_pthread_mutex_unlock(mutex);
}

/* ---- the system ---- */

static bool no_limit, runs; /* runs: it is the agent that asks */
int __real_getrusage(int who, struct rusage *usage);
int __real_getrlimit(int of, struct rlimit *limit);
int __wrap_getrusage(int who, struct rusage *usage);
int __wrap_getrlimit(int of, struct rlimit *limit);
BEFORE_ALL int __wrap_getrusage(int who, struct rusage *usage) {
    if (!runs || who != RUSAGE_SELF)
        return __real_getrusage(who, usage);
    *usage = (struct rusage){.ru_utime = {3, 250000}, .ru_stime = {4, 125000}};
    return 0;
}
BEFORE_ALL int __wrap_getrlimit(int of, struct rlimit *limit) {
    if (!runs || of != RLIMIT_NOFILE)
        return __real_getrlimit(of, limit);
    *limit = (struct rlimit){777, 4096};
    return no_limit ? -1 : 0;
}

/* ---- what stands for its parts ---- */

static int fails; /* of the parts the one that fails: by its letter */
static int fail_err;
static int outcome(int part, struct hec_why *why) {
    return fails == part ? hec_fail(why, fail_err, "part %c is broken", part) : HEC_OK;
}

static struct hec_node *node;
static char one_http, one_push, one_names, one_identity, one_kubelet;
static struct hec_http_maker maker;
static struct hec_web_config *web;
static struct hec_state_file *state;
static struct hec_watch *watched;
static struct hec_page_options page;
static struct hec_page_agent self;
static int published, page_err, fields_shown, open_fds, absent_of;
static struct hec_jobs_options jobs;
static struct hec_push_options push;
static struct hec_http_counts counts;
static int64_t slow_ns, stale_ns, made_ns;
static bool ready_now;
static void (*inside)(void);

int hec_http_listen(const char *on, int *fd, struct hec_why *why) {
    tell("listen(%s)", on);
    *fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int err = outcome('l', why);
    if (err < 0) {
        close(*fd);
        *fd = -1;
    }
    return err;
}
int hec_http_start(int fd, struct hec_web_config *with, const struct hec_http_maker *by, struct hec_http **out,
                   struct hec_why *why) {
    tell("serve");
    close(fd);
    web = with;
    maker = *by;
    if (inside)
        inside();
    int err = outcome('h', why);
    *out = err < 0 ? NULL : (struct hec_http *)&one_http;
    return err;
}
void hec_http_swap_users(struct hec_http *http, struct hec_web_config *fresh) {
    assert_ptr_equal(http, &one_http);
    tell("users(%d)", fresh->user_count);
}
const char *hec_http_url(const struct hec_http *http) {
    assert_ptr_equal(http, &one_http);
    return "http://here";
}
int hec_http_publish(struct hec_http *http, enum hec_http_page which, const char *text, size_t length) {
    assert_ptr_equal(http, &one_http);
    assert_int_equal(locks, 1);
    tell("published(%d:%.*s)", which, (int)length, text);
    published++;
    return HEC_OK;
}
void hec_http_ready(struct hec_http *http, bool ready) {
    assert_ptr_equal(http, &one_http);
    assert_true(ready);
    if (told_ticks)
        tell("ready");
}
void hec_http_tick(struct hec_http *http, int64_t at_ns, int64_t stale) {
    assert_ptr_equal(http, &one_http);
    assert_int_equal(locks, 0);
    stale_ns = stale;
    if (told_ticks)
        tell("t%.1f", (double)at_ns / S);
}
void hec_http_counts(struct hec_http *http, struct hec_http_counts *out) {
    assert_ptr_equal(http, &one_http);
    *out = counts;
}
void hec_http_stop(struct hec_http *http) {
    assert_ptr_equal(http, &one_http);
    tell("unserve");
}

void hec_watch_start(struct hec_watch *watch, struct hec_node *of, const struct hec_collector *const *collectors,
                     const char *nvml_path) {
    watched = watch;
    node = node ? node : of;
    assert_ptr_equal(of, node);
    assert_ptr_equal(collectors, hec_collectors_of(HEC_OBSERVER_NODE));
    tell("watch(%s)", nvml_path ? nvml_path : "");
}
bool hec_watch_poll(struct hec_watch *watch, int64_t at_ns) {
    assert_ptr_equal(watch, watched);
    if (told_ticks)
        tell("w%.1f", (double)at_ns / S);
    now_ns += slow_ns;
    slow_ns = 0;
    return ready_now;
}
void hec_watch_stop(struct hec_watch *watch) {
    tell(watch->node || watch == watched ? "unwatch" : "unwatch?");
}

int hec_state_file_open(struct hec_state_file *file, const char *in, uid_t owner, struct hec_why *why) {
    tell("state(%s,%d)", in, (int)owner);
    state = file;
    int err = outcome('s', why);
    *file = (struct hec_state_file){.folder = err < 0 ? -1 : 5, .lock = -1, .saved = true, .failed = 8};
    return err;
}
int hec_state_file_give(struct hec_state_file *file, const char *in, uid_t user, gid_t group, struct hec_why *why) {
    assert_ptr_equal(file, state);
    tell("give(%s,%d,%d)", in, (int)user, (int)group);
    return outcome('g', why);
}
int hec_state_file_load(struct hec_state_file *file, struct hec_node *into, struct hec_why *why) {
    assert_ptr_equal(file, state);
    assert_ptr_equal(into, node);
    tell("load");
    return outcome('L', why);
}
int hec_state_file_save(struct hec_state_file *file, struct hec_node *of, bool synced) {
    if (file->folder < 0)
        return HEC_ERR_NOTFOUND;
    assert_ptr_equal(of, node);
    if (told_ticks)
        tell(synced ? "sync" : "save");
    return outcome('S', NULL);
}
void hec_state_file_close(struct hec_state_file *file) {
    tell("close%d", file->folder);
}

/* joules that were seen when the page was made were saved before it is shown */
int hec_page_make(struct hec_node *of, const struct hec_page_options *options, const struct hec_page_agent *agent,
                  enum hec_exposition_format format, int64_t at_ns, struct hec_buf *out) {
    assert_ptr_equal(of, node);
    assert_int_equal(locks, 1);
    page = *options;
    self = *agent;
    made_ns = at_ns;
    open_fds = open_files();
    fields_shown = (int)options->dcgm->count;
    tell("page%d%s", format, options->current ? "now" : "");
    hec_buf_clear(out);
    hec_buf_puts(out, "figures");
    return page_err;
}
enum hec_page_absence hec_page_absent(struct hec_node *of, const struct hec_page_options *options, int index,
                                      int64_t at_ns, int64_t since_ns, struct hec_buf *out) {
    assert_true(since_ns < at_ns);
    assert_ptr_equal(of, node);
    assert_int_equal(locks, 1);
    assert_int_equal(options->dcgm->count, 1);
    if (index == 0 || index == HEC_DEVICE_MAX - 1)
        tell("absent%d@%.1f", index, (double)at_ns / S);
    hec_buf_clear(out);
    if (index == absent_of)
        hec_buf_puts(out, "DCGM_FI_DEV_FAN_SPEED");
    return index == absent_of || (absent_of >= 0 && index == 0) ? HEC_PAGE_JUDGED : HEC_PAGE_NO_DEVICE;
}
void hec_page_drop(struct hec_page_agent *agent, const char *what, uint64_t count) {
    agent->dropped[agent->dropped_count].what = what;
    agent->dropped[agent->dropped_count++].count = count;
}
int hec_html_live(const char *hostname, struct hec_buf *out) {
    tell("html");
    return hec_buf_puts(out, hostname);
}
int hec_live_make(struct hec_live *live, struct hec_node *of, const struct hec_page_options *options,
                  const struct hec_page_agent *agent, int64_t at_ns, struct hec_buf *out) {
    assert_int_equal(live->history.count, 123);
    assert_ptr_equal(of, node);
    assert_int_equal(at_ns, now_ns);
    assert_string_equal(options->hostname_label, "Hostname");
    assert_int_equal(locks, 1);
    self = *agent;
    tell("live");
    return hec_buf_puts(out, "{}");
}
void hec_history_add(struct hec_history *history, struct hec_node *of, int64_t at_ns) {
    assert_ptr_equal(of, node);
    assert_int_equal(at_ns, now_ns);
    assert_int_equal(locks, 1);
    history->count = 123;
    if (told_ticks)
        tell("history");
}
void hec_history_free(struct hec_history *history) {
    (void)history;
    tell("unhistory");
}

int hec_push_start(const struct hec_push_options *options, struct hec_push **out, struct hec_why *why) {
    push = *options;
    tell("push(%s)", options->url);
    int err = outcome('p', why);
    *out = err < 0 ? NULL : (struct hec_push *)&one_push;
    return err;
}
uint64_t hec_push_failed(const struct hec_push *of) {
    assert_ptr_equal(of, &one_push);
    return 6;
}
void hec_push_stop(struct hec_push *of) {
    if (of)
        tell("unpush");
}

static struct hec_pod_names *asked;
int hec_pod_names_start(const char *account, struct hec_pod_names **out, struct hec_why *why) {
    tell("names(%s)", account);
    int err = outcome('n', why);
    *out = err < 0 ? NULL : (struct hec_pod_names *)&one_names;
    return err;
}
void hec_pod_names_stop(struct hec_pod_names *names) {
    if (names)
        tell("unnames");
}

int hec_identity_open(const struct hec_identity_options *options, struct hec_identity **out) {
    assert_null(options->proc_path);
    assert_null(options->passwd_path);
    assert_null(options->containers_path);
    assert_string_equal(options->device_prefix, "/dev/of-proof");
    assert_false(options->processes);
    int err = outcome('i', NULL);
    if (err == HEC_OK)
        *out = (struct hec_identity *)&one_identity;
    return err;
}
const char *hec_identity_proof(const char *proc_path) {
    assert_null(proc_path);
    return "/dev/of-proof";
}
void hec_identity_ask(struct hec_identity *identity, struct hec_pod_names *names) {
    assert_ptr_equal(identity, &one_identity);
    assert_int_equal(locks, 1);
    asked = names;
}
void hec_identity_map(struct hec_identity *identity, const struct hec_job_map *map) {
    assert_ptr_equal(identity, &one_identity);
    node = (struct hec_node *)(void *)((char *)(uintptr_t)map - offsetof(struct hec_node, jobs));
}
void hec_identity_close(struct hec_identity *identity) {
    if (identity)
        tell("unidentity");
}
void hec_identity_trust(struct hec_identity *identity) {
    (void)identity;
}
void hec_identity_of(struct hec_identity *identity, int32_t pid, const struct hec_tenant *const *holders, size_t count,
                     int64_t at_ns, struct hec_tenant *out) {
    (void)identity, (void)pid, (void)holders, (void)count, (void)at_ns, (void)out;
}
bool hec_tenant_equal(const struct hec_tenant *a, const struct hec_tenant *b) {
    return a == b;
}
uint64_t hec_tenant_id(const struct hec_tenant *tenant) {
    (void)tenant;
    return 1;
}

int hec_kubelet_create(const char *path, struct hec_kubelet **out) {
    tell("kubelet(%s)", path ? path : "");
    int err = outcome('k', NULL);
    if (err == HEC_OK)
        *out = (struct hec_kubelet *)&one_kubelet;
    return err;
}
void hec_kubelet_free(struct hec_kubelet *kubelet) {
    if (kubelet)
        tell("unkubelet");
}
int hec_kubelet_poll(struct hec_kubelet *kubelet, int64_t at_ns, struct hec_why *why) {
    (void)kubelet, (void)why;
    if (told_ticks)
        tell("n%.1f", (double)at_ns / S);
    return 0;
}
const struct hec_pod_devices *hec_kubelet_devices(const struct hec_kubelet *kubelet) {
    static const struct hec_pod_devices devices = {.left_out = 11};
    (void)kubelet;
    return &devices;
}

int hec_causes_open(const struct hec_jobs_options *options, struct hec_node *of, struct hec_causes **out,
                    struct hec_why *why) {
    static char one;
    assert_ptr_equal(of, node);
    jobs = *options;
    tell("jobs(%s)", options->socket);
    int err = outcome('j', why);
    *out = err < 0 ? NULL : (struct hec_causes *)&one;
    return err;
}
void hec_causes_close(struct hec_causes *causes) {
    if (causes)
        tell("unjobs");
}
int hec_causes_fd(const struct hec_causes *causes) {
    assert_non_null(causes);
    return 7777;
}
int64_t hec_causes_poll(struct hec_causes *causes, int64_t at_ns) {
    assert_non_null(causes);
    tell("j%.1f", (double)at_ns / S);
    return at_ns + S / 2;
}
void hec_causes_counts(struct hec_causes *causes, struct hec_jobs_counts *out) {
    assert_non_null(causes);
    *out = (struct hec_jobs_counts){.refused = 21,
                                    .silent = 22,
                                    .requests_refused = 23,
                                    .windows_failed = 24,
                                    .window_cpu_seconds = 0.5,
                                    .door_cpu_seconds = 0.0625};
}

/* ---- what happens while it waits ---- */

static struct event {
    double at_s;
    int signal;
    bool job; /* something has come in */
    void (*act)(void);
} events[8];
static int passed;

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask);
int __wrap___ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask,
                       size_t size);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask) {
    const struct event *event = &events[passed];
    int64_t at_ns = (int64_t)(event->at_s * S), until_ns = now_ns + wait->tv_sec * S + wait->tv_nsec;
    assert_null(mask);
    assert_int_equal(count, 2);
    assert_int_equal(locks, 0);
    assert_true(fds[0].fd >= 0 && fds[0].events == POLLIN);
    assert_true(fds[1].fd < 0 || (fds[1].fd == 7777 && fds[1].events == POLLIN));
    assert_true(fcntl(fds[0].fd, F_GETFD) & FD_CLOEXEC && fcntl(fds[0].fd, F_GETFL) & O_NONBLOCK);
    assert_true(wait->tv_sec >= 0 && wait->tv_nsec >= 0 && wait->tv_nsec < S);
    if (passed == sizeof events / sizeof events[0] || event->at_s == 0)
        fail_msg("nothing ends it: %s", told);
    fds[0].revents = fds[1].revents = 0;
    if (at_ns > until_ns) {
        now_ns = until_ns;
        return 0;
    }
    now_ns = at_ns > now_ns ? at_ns : now_ns;
    passed++;
    if (event->act)
        event->act();
    if (event->signal)
        raise(event->signal);
    if (event->signal)
        fds[0].revents = POLLIN;
    if (event->job)
        fds[1].revents = POLLIN;
    return (event->signal != 0) + event->job;
}
/* As it is called where the size of the array is checked. */
int __wrap___ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask,
                       size_t size) {
    assert_true(count <= size / sizeof *fds);
    return __wrap_ppoll(fds, count, wait, mask);
}

/* ---- runs ---- */

static struct hec_agent_options options;
static sigset_t mask_before;
static int files_before;

static int set_up(void **test) {
    now_ns = START * S;
    hec_clock_set_source(&fake_clock);
    told[0] = logged[0] = '\0';
    told_ticks = no_limit = ready_now = false;
    fails = locks = passed = published = page_err = 0;
    node = NULL;
    watched = NULL;
    slow_ns = 0;
    absent_of = -1;
    inside = NULL;
    asked = NULL;
    counts = (struct hec_http_counts){100, 1, 2, 3};
    memset(events, 0, sizeof events);
    options = (struct hec_agent_options){.listen = "[::1]:0", .interval_ns = 2 * S, .no_sandbox = true};
    sigprocmask(SIG_SETMASK, NULL, &mask_before);
    unsetenv("OTEL_METRIC_EXPORT_INTERVAL");
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
    int made = folder_make(test);
    files_before = open_files();
    runs = true;
    return made;
}
static int tear_down(void **test) {
    runs = false;
    hec_clock_set_source(NULL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    return folder_remove(test);
}
EACH_TEST(set_up, tear_down)

static void run(int status) {
    int got = hec_agent_main(&options);
    if (got != status)
        fail_msg("%d: %s", got, logged);
    assert_int_equal(locks, 0);
    assert_int_equal(open_files(), files_before);
}

static void end_at(double at_s) {
    for (int i = 0;; i++)
        if (events[i].at_s == 0) {
            events[i] = (struct event){.at_s = at_s, .signal = SIGTERM};
            return;
        }
}
