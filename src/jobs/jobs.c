#include "jobs/jobs.h"

#include "jobs/parts.h"
#include "jobs/request.h"
#include "base/clock.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS_MAX (1u << 20)        /* of a ring, as observe/trace takes */
#define RINGS_OF_A_PROCESS 4          /* of a role: one more takes the place of the oldest (exec) */
#define LOOK_NS (2 * HEC_NS_PER_S)    /* whether processes have ended */
#define SOON_NS (100 * HEC_NS_PER_MS) /* while somebody is connected and silent */
#define FIRST_SHARE 0.25              /* of the period: until the first window of a job */
#define DESCRIPTORS (2 * HEC_JOBS_RINGS_MAX + 1024)

struct hec_jobs_options hec_jobs_defaults(void) {
    return (struct hec_jobs_options){.socket = HEC_JOBS_SOCKET, .window_s = 5, .period_s = 60, .cpu_share = 0.01};
}

int hec_jobs_open(const struct hec_jobs_options *options, struct hec_jobs **out, struct hec_why *why) {
    struct hec_jobs *jobs = calloc(1, sizeof *jobs);
    struct rlimit limit;
    *out = NULL;
    if (!jobs)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the jobs");
    jobs->options = *options;
    int err = hec_intake_open(&jobs->intake, options->socket, HEC_RING_TRACE, RECORDS_MAX, why);
    if (err < 0) {
        free(jobs);
        return err;
    }
    jobs->intake.everybody = true;
    chmod(options->socket, 0666); /* everybody may report; what they may ask for is a matter of who they are */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    *out = jobs;
    return HEC_OK;
}

int hec_jobs_fd(const struct hec_jobs *jobs) {
    return jobs->intake.listener;
}

size_t hec_jobs_count(const struct hec_jobs *jobs) {
    return (size_t)jobs->job_count;
}

const struct hec_job *hec_jobs_at(const struct hec_jobs *jobs, size_t at) {
    return &jobs->job[at]->job;
}

void hec_jobs_counts(const struct hec_jobs *jobs, struct hec_jobs_counts *counts) {
    *counts = jobs->counts;
    counts->refused += jobs->intake.refused;
    counts->silent += jobs->intake.silent;
}

/* ---- jobs ---- */

static void drop_job(struct hec_jobs *jobs, int at) {
    struct hec_job_entry *entry = jobs->job[at];
    if (entry->request >= 0)
        hec_jobs_answer(&entry->request, HEC_ERR_NOTFOUND, -1, "the job has ended");
    if (jobs->options.ended)
        jobs->options.ended(jobs->options.context, &entry->job);
    free(entry);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers */
    memmove(&jobs->job[at], &jobs->job[at + 1], (size_t)(--jobs->job_count - at) * sizeof jobs->job[0]);
}

static void forget_empty(struct hec_jobs *jobs) {
    for (int i = jobs->job_count; i-- > 0;)
        if (jobs->job[i]->job.rings == 0 && !jobs->job[i]->in_window)
            drop_job(jobs, i);
}

static struct hec_job_entry *new_job(struct hec_jobs *jobs, const char *id, uid_t uid, int64_t now_ns) {
    if (jobs->job_count == HEC_JOBS_MAX)
        forget_empty(jobs);
    struct hec_job_entry *entry = jobs->job_count < HEC_JOBS_MAX ? calloc(1, sizeof *entry) : NULL;
    if (!entry)
        return NULL;
    snprintf(entry->job.id, sizeof entry->job.id, "%s", id);
    entry->job.uid = uid;
    entry->job.since_ns = now_ns;
    entry->job.cause = entry->job.row = -1;
    entry->job.recoverable = entry->job.confidence = NAN;
    entry->request = -1;
    entry->due_ns = now_ns + (int64_t)(FIRST_SHARE * jobs->options.period_s * (double)HEC_NS_PER_S);
    jobs->job[jobs->job_count++] = entry;
    return entry;
}

static struct hec_job_entry *job_of(struct hec_jobs *jobs, const struct hec_intake_ring *arrived, int64_t now_ns) {
    char id[HEC_JOB_ID] = "";
    const struct hec_jobs_options *options = &jobs->options;
    if (!options->identify || !options->identify(options->context, arrived->pid, id)) {
        if (arrived->tag)
            snprintf(id, sizeof id, "run-%u-%u", (unsigned)arrived->uid, arrived->tag);
        else
            snprintf(id, sizeof id, "session-%u-%d", (unsigned)arrived->uid, (int)getsid(arrived->pid));
    }
    for (int i = 0; i < jobs->job_count; i++)
        if (strcmp(jobs->job[i]->job.id, id) == 0)
            return jobs->job[i];
    return new_job(jobs, id, arrived->uid, now_ns);
}

/* Its figures, after rings came or went; the process that stands above the others is looked for when a window needs it. */
static void recount(struct hec_jobs *jobs, struct hec_job_entry *entry) {
    struct hec_job *job = &entry->job;
    job->rings = job->processes = 0;
    entry->traced = false;
    for (int i = 0; i < jobs->ring_count; i++) {
        const struct hec_job_ring *ring = &jobs->ring[i];
        bool first = true;
        if (ring->job != entry)
            continue;
        for (int k = 0; k < i && first; k++)
            first = jobs->ring[k].job != entry || jobs->ring[k].pid != ring->pid;
        if (job->rings++ == 0)
            job->pid = ring->pid;
        job->processes += first;
        job->mixed = job->mixed || ring->uid != job->uid;
        entry->traced = entry->traced || ring->role == HEC_RING_TRACE;
    }
}

/* ---- rings ---- */

/* close: its process is asked to stop writing, for good. */
static void drop_ring(struct hec_jobs *jobs, int at, bool close_it) {
    struct hec_job_ring *ring = &jobs->ring[at];
    struct hec_job_entry *entry = ring->job;
    struct hec_ring_reader reader;
    if (close_it && hec_ring_map(ring->fd, &reader) == HEC_OK)
        hec_ring_close(&reader);
    close(ring->fd);
    if (ring->pid_fd >= 0)
        close(ring->pid_fd);
    memmove(ring, ring + 1, (size_t)(--jobs->ring_count - at) * sizeof *ring);
    recount(jobs, entry);
}

void hec_jobs_pause(const struct hec_job_ring *ring) {
    struct hec_ring_reader reader;
    if (hec_ring_map(ring->fd, &reader) != HEC_OK)
        return;
    hec_ring_pause(&reader);
    hec_ring_leave(&reader);
}

/* One process that hands over ring after ring takes nobody's place but its own, one user only their own share. */
static bool make_room(struct hec_jobs *jobs, const struct hec_intake_ring *arrived) {
    int same = 0, oldest = 0, users = 0;
    for (int i = jobs->ring_count; i-- > 0;) {
        const struct hec_job_ring *ring = &jobs->ring[i];
        users += ring->uid == arrived->uid;
        if (ring->pid != arrived->pid || ring->role != arrived->role)
            continue;
        same++;
        oldest = i;
    }
    if (same >= RINGS_OF_A_PROCESS) {
        drop_ring(jobs, oldest, true);
        users--;
    }
    return jobs->ring_count < HEC_JOBS_RINGS_MAX && (arrived->uid == 0 || users < HEC_JOBS_USER_MAX);
}

static bool take_ring(struct hec_jobs *jobs, struct hec_intake_ring *arrived, int64_t now_ns) {
    struct hec_job_entry *entry = arrived->pid > 0 && make_room(jobs, arrived) ? job_of(jobs, arrived, now_ns) : NULL;
    if (!entry) { /* no room, or a process of another pid namespace: nobody could say what it is */
        hec_ring_close(&arrived->ring);
        return false;
    }
    hec_ring_pause(&arrived->ring);
    hec_ring_leave(&arrived->ring);
    jobs->ring[jobs->ring_count++] = (struct hec_job_ring){.fd = arrived->fd,
                                                           .pid_fd = arrived->pid_fd,
                                                           .pid = arrived->pid,
                                                           .uid = arrived->uid,
                                                           .role = arrived->role,
                                                           .job = entry};
    recount(jobs, entry);
    jobs->counts.rings++;
    return true;
}

static bool accept_ring(void *context, const struct hec_intake_ring *arrived, int64_t now_ns) {
    struct hec_jobs *jobs = context;
    struct hec_intake_ring taken = *arrived;
    bool request = taken.role == HEC_RING_REQUEST;
    if (request)
        hec_jobs_ask(jobs, taken.fd, taken.uid);
    bool kept = !request && taken.ring.role == taken.role && take_ring(jobs, &taken, now_ns);
    if (!kept && taken.pid_fd >= 0)
        close(taken.pid_fd);
    if (!kept && !request)
        close(taken.fd);
    return kept || request;
}

static void forget_ended(struct hec_jobs *jobs, int64_t now_ns) {
    if (now_ns - jobs->looked_ns < LOOK_NS)
        return;
    jobs->looked_ns = now_ns;
    for (int i = jobs->ring_count; i-- > 0;)
        if (hec_intake_process_ended(jobs->ring[i].pid, jobs->ring[i].pid_fd))
            drop_ring(jobs, i, false);
    forget_empty(jobs);
}

int64_t hec_jobs_poll(struct hec_jobs *jobs, int64_t now_ns) {
    hec_intake_poll(&jobs->intake, now_ns, accept_ring, jobs);
    forget_ended(jobs, now_ns);
    int64_t next_ns = hec_jobs_windows(jobs, now_ns);
    if (jobs->ring_count > 0 && jobs->looked_ns + LOOK_NS < next_ns)
        next_ns = jobs->looked_ns + LOOK_NS;
    if (jobs->intake.waiting_count > 0 && now_ns + SOON_NS < next_ns)
        next_ns = now_ns + SOON_NS;
    return next_ns;
}

void hec_jobs_close(struct hec_jobs *jobs) {
    if (!jobs)
        return;
    hec_jobs_windows_abort(jobs);
    while (jobs->ring_count > 0) {
        hec_jobs_pause(&jobs->ring[jobs->ring_count - 1]); /* its process looks for the next agent */
        drop_ring(jobs, jobs->ring_count - 1, false);
    }
    while (jobs->job_count > 0)
        drop_job(jobs, jobs->job_count - 1);
    hec_intake_close(&jobs->intake);
    free(jobs);
}
