#include "jobs/parts.h"
#include "base/clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LITTLE_S 0.1                 /* the clock of what records looks so often */
#define SOON_NS (50 * HEC_NS_PER_MS) /* a window has ended and is being analysed */

static int64_t ns_of(double seconds) {
    return (int64_t)(seconds * (double)HEC_NS_PER_S);
}

/* ---- begin ---- */

static pid_t root_of(const struct hec_jobs *jobs, const struct hec_job_entry *entry) {
    static struct hec_job_process of[HEC_JOBS_RINGS_MAX]; /* of one thread; large */
    int count = 0;
    for (int i = 0; i < jobs->ring_count; i++)
        if (jobs->ring[i].job == entry)
            of[count++] = (struct hec_job_process){jobs->ring[i].pid, jobs->ring[i].uid};
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t root = proc < 0 ? 0 : hec_jobs_root(proc, of, count, getpid());
    if (proc >= 0)
        close(proc);
    return root ? root : entry->job.pid;
}

/* For whoever asked for it (fd -1: nobody). */
static void begin(struct hec_jobs *jobs, int which, struct hec_job_request request, int64_t now_ns) {
    struct hec_job_entry *entry = request.job;
    double seconds = request.seconds;
    static struct hec_window_plan plan; /* of one thread; large */
    static int fds[HEC_WINDOW_RINGS];
    const struct hec_jobs_options *options = &jobs->options;
    struct hec_why why;
    entry->job.pid = root_of(jobs, entry);
    plan = (struct hec_window_plan){.magic = HEC_WINDOW_MAGIC,
                                    .seconds = seconds,
                                    .root = entry->job.pid,
                                    .owner = entry->job.uid,
                                    .mixed = entry->job.mixed,
                                    .wants_file = which != HEC_JOBS_DUE};
    snprintf(plan.simulated, sizeof plan.simulated, "%s", options->simulated ? options->simulated : "");
    snprintf(plan.nvml_path, sizeof plan.nvml_path, "%s", options->nvml_path ? options->nvml_path : "");
    snprintf(plan.job, sizeof plan.job, "%s", entry->job.id);
    for (int i = 0; i < jobs->ring_count && plan.ring_count < HEC_WINDOW_RINGS; i++) {
        if (jobs->ring[i].job != entry)
            continue;
        fds[plan.ring_count] = jobs->ring[i].fd;
        plan.ring_pid[plan.ring_count++] = jobs->ring[i].pid;
    }
    entry->due_ns = now_ns + ns_of(options->period_s);
    entry->user->served_ns = now_ns;
    if (hec_window_begin(options->program, &plan, fds, now_ns, &jobs->window[which].run, &why) < 0) {
        entry->job.failed++;
        jobs->counts.windows_failed++;
        if (request.fd >= 0)
            hec_jobs_answer(jobs, &request, HEC_ERR_FAILED, -1, why.text);
        return;
    }
    entry->in_window = true;
    jobs->window[which].job = entry;
    jobs->window[which].request = request;
    jobs->window[which].begun_ns = now_ns;
    jobs->window[which].expected_ns = now_ns + ns_of(seconds);
    jobs->window[which].shortened = false;
}

/* ---- end ---- */

static void add_device(struct hec_job *job, const struct hec_window_device *from) {
    int at = 0;
    while (at < job->device_count && strcmp(job->device[at].uuid, from->uuid) != 0)
        at++;
    if (at == HEC_WINDOW_DEVICES)
        return;
    job->device_count += at == job->device_count;
    struct hec_job_device *to = &job->device[at];
    snprintf(to->uuid, sizeof to->uuid, "%s", from->uuid);
    to->index = from->index;
    for (int state = 0; state < HEC_STATE_COUNT; state++) {
        to->seconds[state] += from->seconds[state];
        to->joules[state] += isnan(from->joules[state]) ? 0 : from->joules[state];
    }
}

static void add_unit(struct hec_job *job, const char *name, double count) {
    int at = 0;
    while (at < job->unit_count && strcmp(job->unit[at].name, name) != 0)
        at++;
    if (at == HEC_WINDOW_UNITS)
        return;
    if (at == job->unit_count)
        snprintf(job->unit[job->unit_count++].name, sizeof job->unit[0].name, "%s", name);
    job->unit[at].count += count;
}

static void count(struct hec_jobs *jobs, struct hec_job *job, const struct hec_window_result *result) {
    if (!(result->seconds > 0)) {
        job->failed++;
        jobs->counts.windows_failed++;
        return;
    }
    job->windows++;
    jobs->counts.windows++;
    job->observed_s += result->seconds;
    job->lost += result->lost;
    job->cause = result->cause;
    job->recoverable = result->recoverable;
    job->confidence = result->confidence;
    for (int i = 0; i < result->device_count; i++)
        add_device(job, &result->device[i]);
    for (int i = 0; i < result->unit_count; i++)
        add_unit(job, result->unit[i].name, result->unit[i].count);
    if (jobs->options.observed)
        jobs->options.observed(jobs->options.context, job, result);
}

static void end(struct hec_jobs *jobs, int which, int64_t now_ns) {
    static struct hec_window_result result;
    struct hec_job_entry *entry = jobs->window[which].job;
    struct hec_job_request *request = &jobs->window[which].request;
    int file = -1;
    double cpu = 0;
    int err = hec_window_poll(&jobs->window[which].run, now_ns, &result, &file, &cpu);
    if (err == HEC_ERR_BUSY)
        return;
    if (err < 0)
        result = (struct hec_window_result){.why = "what recorded the window died, or was too slow"};
    jobs->window[which].job = NULL;
    entry->in_window = false;
    for (int i = 0; i < jobs->ring_count; i++)
        if (jobs->ring[i].job == entry)
            hec_jobs_pause(&jobs->ring[i]); /* had it died, it would not have */
    jobs->counts.window_cpu_seconds += cpu;
    hec_jobs_charge(jobs, which == HEC_JOBS_DUE ? entry->user : hec_jobs_user(jobs, request->uid), cpu, now_ns);
    count(jobs, &entry->job, &result);
    if (request->fd >= 0) {
        char text[sizeof result.why] = "";
        if (file < 0)
            snprintf(text, sizeof text, "%s", result.why);
        else if (jobs->window[which].shortened && result.seconds < request->seconds - LITTLE_S)
            snprintf(text, sizeof text, "%.1f s of the %g s asked for: others wait for theirs", result.seconds,
                     request->seconds);
        hec_jobs_answer(jobs, request, file >= 0 ? HEC_OK : HEC_ERR_FAILED, file, text);
    }
    if (file >= 0)
        close(file);
}

static void abort_window(struct hec_jobs *jobs, int which, const char *why) {
    hec_window_abort(&jobs->window[which].run);
    jobs->window[which].job->in_window = false;
    jobs->window[which].job = NULL;
    if (jobs->window[which].request.fd >= 0)
        hec_jobs_answer(jobs, &jobs->window[which].request, HEC_ERR_BUSY, -1, why);
}

/* Root does not wait for minutes that others asked for. */
static void make_way_for_root(struct hec_jobs *jobs) {
    for (int i = 0; i < jobs->request_count; i++)
        for (int which = HEC_JOBS_ASKED; which < HEC_JOBS_WINDOWS && jobs->request[i].uid == 0; which++)
            if (jobs->window[which].job == jobs->request[i].job && jobs->window[which].request.uid != 0)
                abort_window(jobs, which, "root asks for a window of this job just now");
}

static void begin_asked(struct hec_jobs *jobs, int64_t now_ns) {
    make_way_for_root(jobs);
    for (int which = HEC_JOBS_ASKED; which < HEC_JOBS_WINDOWS; which++) {
        int at = jobs->window[which].job ? -1 : hec_jobs_next_asked(jobs, which);
        if (at < 0)
            continue;
        struct hec_job_request request = jobs->request[at];
        hec_jobs_request_remove(jobs, at);
        begin(jobs, which, request, now_ns);
    }
}

/* Whoever waits for a window waits for no more than a turn of those that keep it. Returns when the next turn ends. */
static int64_t shorten(struct hec_jobs *jobs, int64_t now_ns) {
    for (int which; (which = hec_jobs_to_shorten(jobs)) >= 0;) {
        int64_t turn_ns = jobs->window[which].begun_ns + HEC_JOBS_TURN_NS;
        if (turn_ns > now_ns)
            return turn_ns;
        jobs->window[which].shortened = true;
        if (jobs->window[which].expected_ns > now_ns) {
            jobs->window[which].expected_ns = now_ns;
            hec_window_enough(&jobs->window[which].run);
        }
    }
    return INT64_MAX;
}

int64_t hec_jobs_windows(struct hec_jobs *jobs, int64_t now_ns) {
    int64_t next_ns = INT64_MAX, due_ns;
    for (int which = 0; which < HEC_JOBS_WINDOWS; which++)
        if (jobs->window[which].job)
            end(jobs, which, now_ns);
    begin_asked(jobs, now_ns);
    next_ns = shorten(jobs, now_ns);
    bool looks = jobs->options.window_s > 0 && !jobs->window[HEC_JOBS_DUE].job;
    struct hec_job_entry *due = looks ? hec_jobs_next_due(jobs, now_ns, &due_ns) : NULL;
    if (due && due_ns <= now_ns)
        begin(jobs, HEC_JOBS_DUE, (struct hec_job_request){.fd = -1, .job = due, .seconds = jobs->options.window_s},
              now_ns);
    else if (due && due_ns < next_ns)
        next_ns = due_ns;
    for (int which = 0; which < HEC_JOBS_WINDOWS; which++) {
        int64_t expected_ns = jobs->window[which].job ? jobs->window[which].expected_ns : INT64_MAX;
        if (expected_ns < now_ns + SOON_NS)
            expected_ns = now_ns + SOON_NS;
        if (expected_ns < next_ns)
            next_ns = expected_ns;
    }
    return next_ns;
}

void hec_jobs_windows_abort(struct hec_jobs *jobs) {
    for (int which = 0; which < HEC_JOBS_WINDOWS; which++)
        if (jobs->window[which].job)
            abort_window(jobs, which, "the agent ends");
}
