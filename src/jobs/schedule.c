#include "jobs/parts.h"
#include "base/clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void begin(struct hec_jobs *jobs, int which, struct hec_job_entry *entry, double seconds, int64_t now_ns) {
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
                                    .wants_file = which == HEC_JOBS_ASKED};
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
    if (hec_window_begin(options->program, &plan, fds, now_ns, &jobs->window[which].run, &why) < 0) {
        entry->job.failed++;
        jobs->counts.windows_failed++;
        if (which == HEC_JOBS_ASKED)
            hec_jobs_answer(&entry->request, HEC_ERR_FAILED, -1, why.text);
        return;
    }
    entry->in_window = true;
    jobs->window[which].job = entry;
    jobs->window[which].expected_ns = now_ns + ns_of(seconds);
}

/* The job that waits longest. */
static struct hec_job_entry *next_due(const struct hec_jobs *jobs) {
    struct hec_job_entry *best = NULL;
    for (int i = 0; i < jobs->job_count; i++) {
        struct hec_job_entry *entry = jobs->job[i];
        if (entry->traced && !entry->in_window && (!best || entry->due_ns < best->due_ns))
            best = entry;
    }
    return best;
}

static struct hec_job_entry *next_asked(const struct hec_jobs *jobs) {
    for (int i = 0; i < jobs->job_count; i++)
        if (jobs->job[i]->request >= 0 && !jobs->job[i]->in_window)
            return jobs->job[i];
    return NULL;
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
    if (jobs->options.cpu_share > 0)
        jobs->rest_until_ns =
            (jobs->rest_until_ns > now_ns ? jobs->rest_until_ns : now_ns) + ns_of(cpu / jobs->options.cpu_share);
    count(jobs, &entry->job, &result);
    if (which == HEC_JOBS_ASKED && entry->request >= 0)
        hec_jobs_answer(&entry->request, file >= 0 ? HEC_OK : HEC_ERR_FAILED, file, result.why);
    if (file >= 0)
        close(file);
}

int64_t hec_jobs_windows(struct hec_jobs *jobs, int64_t now_ns) {
    int64_t next_ns = INT64_MAX;
    for (int which = 0; which < HEC_JOBS_WINDOWS; which++)
        if (jobs->window[which].job)
            end(jobs, which, now_ns);
    struct hec_job_entry *asked = jobs->window[HEC_JOBS_ASKED].job ? NULL : next_asked(jobs);
    if (asked)
        begin(jobs, HEC_JOBS_ASKED, asked, asked->request_s, now_ns);
    struct hec_job_entry *due = jobs->options.window_s > 0 && !jobs->window[HEC_JOBS_DUE].job ? next_due(jobs) : NULL;
    if (due) {
        int64_t due_ns = due->due_ns > jobs->rest_until_ns ? due->due_ns : jobs->rest_until_ns;
        if (due_ns <= now_ns)
            begin(jobs, HEC_JOBS_DUE, due, jobs->options.window_s, now_ns);
        else
            next_ns = due_ns;
    }
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
    for (int which = 0; which < HEC_JOBS_WINDOWS; which++) {
        if (!jobs->window[which].job)
            continue;
        hec_window_abort(&jobs->window[which].run);
        jobs->window[which].job->in_window = false;
        jobs->window[which].job = NULL;
    }
}
