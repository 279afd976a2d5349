#include "jobs/jobs.h"

#include "jobs/parts.h"
#include "jobs/request.h"
#include "base/clock.h"
#include "base/log.h"
#include "observe/procfs/file.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS_MAX (1u << 20)     /* of a ring, as observe/trace takes */
#define RINGS_OF_A_PROCESS 4       /* of a role: one more takes the place of the oldest (exec) */
#define LOOK_NS (2 * HEC_NS_PER_S) /* whether processes have ended */
#define FIRST_SHARE 0.25           /* of the period: until the first window of a job */
#define ARRIVALS_PER_POLL 64       /* then the agent looks at its devices again */
#define OTHER_DESCRIPTORS 1024     /* of the agent, but those of rings; less where there are few */

struct hec_jobs_options hec_jobs_defaults(void) {
    return (struct hec_jobs_options){.socket = HEC_JOBS_SOCKET, .window_s = 5, .period_s = 60, .cpu_share = 0.01};
}

/* A ring takes two descriptors: so many rings as the limit has room for. */
static int room_for_rings(void) {
    struct rlimit limit;
    rlim_t wanted = 2 * HEC_JOBS_RINGS_MAX + OTHER_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    rlim_t others = limit.rlim_cur / 2 < OTHER_DESCRIPTORS ? limit.rlim_cur / 2 : OTHER_DESCRIPTORS;
    rlim_t rings = (limit.rlim_cur - others) / 2;
    return rings < HEC_JOBS_RINGS_MAX ? (int)rings : HEC_JOBS_RINGS_MAX;
}

int hec_jobs_open(const struct hec_jobs_options *options, struct hec_jobs **out, struct hec_why *why) {
    struct hec_jobs *jobs = calloc(1, sizeof *jobs);
    *out = NULL;
    if (!jobs)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the jobs");
    jobs->options = *options;
    jobs->rings_max = room_for_rings();
    if (jobs->rings_max < HEC_JOBS_RINGS_MAX)
        hec_warn("jobs: the limit of open files has room for %d of %d rings", jobs->rings_max, HEC_JOBS_RINGS_MAX);
    int err = hec_door_open(&jobs->door, options->socket, RECORDS_MAX, why);
    if (err < 0) {
        free(jobs);
        return err;
    }
    *out = jobs;
    return HEC_OK;
}

int hec_jobs_fd(const struct hec_jobs *jobs) {
    return hec_door_fd(&jobs->door);
}

size_t hec_jobs_count(const struct hec_jobs *jobs) {
    return (size_t)jobs->job_count;
}

const struct hec_job *hec_jobs_at(const struct hec_jobs *jobs, size_t at) {
    return &jobs->job[at]->job;
}

void hec_jobs_counts(const struct hec_jobs *jobs, struct hec_jobs_counts *counts) {
    struct hec_door_counts door;
    *counts = jobs->counts;
    hec_door_counts(&jobs->door, &door);
    counts->refused += door.refused;
    counts->silent += door.silent;
    counts->door_cpu_seconds = (double)door.cpu_ns / (double)HEC_NS_PER_S;
}

/* ---- rings and jobs ---- */

static void drop_job(struct hec_jobs *jobs, int at) {
    struct hec_job_entry *entry = jobs->job[at];
    for (int i = jobs->request_count; i-- > 0;)
        if (jobs->request[i].job == entry) {
            hec_jobs_answer(jobs, &jobs->request[i], HEC_ERR_NOTFOUND, -1, "the job has ended");
            hec_jobs_request_remove(jobs, i);
        }
    if (jobs->options.ended)
        jobs->options.ended(jobs->options.context, &entry->job);
    entry->user->jobs--;
    free(entry);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers */
    memmove(&jobs->job[at], &jobs->job[at + 1], (size_t)(--jobs->job_count - at) * sizeof jobs->job[0]);
}

static void forget_empty(struct hec_jobs *jobs) {
    for (int i = jobs->job_count; i-- > 0;)
        if (jobs->job[i]->job.rings == 0 && !jobs->job[i]->in_window)
            drop_job(jobs, i);
}

/* How many rings of the job its process has. */
static int rings_of(const struct hec_jobs *jobs, const struct hec_job_entry *entry, pid_t pid) {
    int count = 0;
    for (int i = 0; i < jobs->ring_count; i++)
        count += jobs->ring[i].job == entry && jobs->ring[i].pid == pid;
    return count;
}

static void add_ring(struct hec_jobs *jobs, const struct hec_job_ring *ring) {
    struct hec_job *job = &ring->job->job;
    job->processes += rings_of(jobs, ring->job, ring->pid) == 0;
    jobs->ring[jobs->ring_count++] = *ring;
    if (job->rings++ == 0)
        job->pid = ring->pid;
    job->ended_ns = 0;
    job->mixed = job->mixed || ring->uid != job->uid;
    ring->job->traced += ring->role == HEC_RING_TRACE;
    ring->user->rings++;
}

/* close_it: its process is asked to stop writing, for good. */
static void drop_ring(struct hec_jobs *jobs, int at, bool close_it) {
    const struct hec_job_ring ring = jobs->ring[at];
    struct hec_job *job = &ring.job->job;
    struct hec_ring_reader reader;
    if (close_it && hec_ring_map(ring.fd, &reader) == HEC_OK)
        hec_ring_close(&reader);
    close(ring.fd);
    if (ring.pid_fd >= 0)
        close(ring.pid_fd);
    memmove(&jobs->ring[at], &jobs->ring[at + 1], (size_t)(--jobs->ring_count - at) * sizeof ring);
    job->rings--;
    ring.job->traced -= ring.role == HEC_RING_TRACE;
    ring.user->rings--;
    if (rings_of(jobs, ring.job, ring.pid) > 0)
        return;
    job->processes--;
    for (int i = 0; job->pid == ring.pid && i < jobs->ring_count; i++)
        if (jobs->ring[i].job == ring.job)
            job->pid = jobs->ring[i].pid; /* the first that is left */
}

void hec_jobs_pause(const struct hec_job_ring *ring) {
    struct hec_ring_reader reader;
    if (hec_ring_map(ring->fd, &reader) != HEC_OK)
        return;
    hec_ring_pause(&reader);
    hec_ring_leave(&reader);
}

/* ---- room ---- */

/* The newest job of who has most jobs makes room; one in a window stays. */
static bool room_for_job(struct hec_jobs *jobs, const struct hec_job_user *user) {
    if (jobs->job_count == HEC_JOBS_MAX)
        forget_empty(jobs);
    if (jobs->job_count < HEC_JOBS_MAX)
        return true;
    const struct hec_job_user *most = hec_jobs_who_gives_way(jobs, user, true);
    for (int i = jobs->job_count; most && i-- > 0;) {
        struct hec_job_entry *entry = jobs->job[i];
        if (entry->user != most || entry->in_window)
            continue;
        for (int k = jobs->ring_count; k-- > 0;)
            if (jobs->ring[k].job == entry)
                drop_ring(jobs, k, true);
        drop_job(jobs, i);
        return true;
    }
    return false;
}

static struct hec_job_entry *new_job(struct hec_jobs *jobs, const char *id, uid_t uid, struct hec_job_user *user,
                                     int64_t now_ns) {
    struct hec_job_entry *entry = room_for_job(jobs, user) ? calloc(1, sizeof *entry) : NULL;
    if (!entry)
        return NULL;
    snprintf(entry->job.id, sizeof entry->job.id, "%s", id);
    entry->user = user;
    user->jobs++;
    entry->job.uid = uid;
    entry->job.since_ns = now_ns;
    entry->job.cause = entry->job.row = -1;
    entry->job.recoverable = entry->job.confidence = NAN;
    entry->due_ns = now_ns + (int64_t)(FIRST_SHARE * jobs->options.period_s * (double)HEC_NS_PER_S);
    jobs->job[jobs->job_count++] = entry;
    return entry;
}

static struct hec_job_entry *job_of(struct hec_jobs *jobs, const struct hec_door_arrival *arrival,
                                    struct hec_job_user *user, int64_t now_ns) {
    char id[HEC_JOB_ID] = "";
    const struct hec_jobs_options *options = &jobs->options;
    if (!options->identify || !options->identify(options->context, arrival->pid, id)) {
        if (arrival->tag)
            snprintf(id, sizeof id, "run-%u-%u", (unsigned)arrival->uid, arrival->tag);
        else
            snprintf(id, sizeof id, "session-%u-%d", (unsigned)arrival->uid, (int)getsid(arrival->pid));
    }
    for (int i = 0; i < jobs->job_count; i++)
        if (strcmp(jobs->job[i]->job.id, id) == 0)
            return jobs->job[i];
    return new_job(jobs, id, arrival->uid, user, now_ns);
}

/* One process that hands over ring after ring takes nobody's place but its own; where all places are taken, who has most gives his
 * newest to who has less. */
static bool room_for_ring(struct hec_jobs *jobs, const struct hec_door_arrival *arrival,
                          const struct hec_job_user *user) {
    int same = 0, oldest = 0;
    for (int i = jobs->ring_count; i-- > 0;)
        if (jobs->ring[i].pid == arrival->pid && jobs->ring[i].role == arrival->role) {
            same++;
            oldest = i;
        }
    if (same >= RINGS_OF_A_PROCESS)
        drop_ring(jobs, oldest, true);
    if (jobs->ring_count < jobs->rings_max)
        return true;
    const struct hec_job_user *most = hec_jobs_who_gives_way(jobs, user, false);
    for (int i = jobs->ring_count; most && i-- > 0;)
        if (jobs->ring[i].user == most) {
            drop_ring(jobs, i, true);
            return true;
        }
    return false;
}

/* ---- what comes in ---- */

/* The number of a process that has ended may be another user's by now, who then would have a ring that is not his. */
static bool is_somebody_elses(const struct hec_door_arrival *arrival) {
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool elses = proc >= 0 && hec_proc_is_of_others(proc, arrival->pid, arrival->uid);
    if (proc >= 0)
        close(proc);
    return elses;
}

static bool keep(struct hec_jobs *jobs, const struct hec_door_arrival *arrival, int fd, int64_t now_ns) {
    struct hec_job_user *user = hec_jobs_user(jobs, arrival->uid);
    struct hec_job_entry *entry = NULL;
    int pid_fd = hec_intake_process(arrival->pid); /* first: what is seen then is of this process, or it has ended */
    if (arrival->pid > 0 && user && !is_somebody_elses(arrival) && room_for_ring(jobs, arrival, user))
        entry = job_of(jobs, arrival, user, now_ns);
    if (!entry) { /* no room, or a process of another pid namespace: nobody could say what it is */
        if (pid_fd >= 0)
            close(pid_fd);
        return false;
    }
    add_ring(jobs, &(struct hec_job_ring){.fd = fd,
                                          .pid_fd = pid_fd,
                                          .pid = arrival->pid,
                                          .uid = arrival->uid,
                                          .role = arrival->role,
                                          .job = entry,
                                          .user = user});
    return true;
}

static void take_ring(struct hec_jobs *jobs, const struct hec_door_arrival *arrival, int fd, int64_t now_ns) {
    struct hec_ring_reader ring;
    if (hec_ring_map(fd, &ring) != HEC_OK) {
        jobs->counts.refused++;
        close(fd);
    } else if (keep(jobs, arrival, fd, now_ns)) {
        hec_ring_pause(&ring);
        hec_ring_leave(&ring);
        jobs->counts.rings++;
    } else {
        hec_ring_close(&ring);
        jobs->counts.refused++;
        close(fd);
    }
}

static bool take_arrivals(struct hec_jobs *jobs, int64_t now_ns) {
    struct hec_door_arrival arrival;
    int fd;
    hec_door_keep(&jobs->door);
    for (int i = 0; i < ARRIVALS_PER_POLL; i++) {
        if (!hec_door_take(&jobs->door, &arrival, &fd))
            return false;
        if (arrival.role == HEC_RING_REQUEST)
            hec_jobs_ask(jobs, fd, arrival.uid, &arrival.request);
        else
            take_ring(jobs, &arrival, fd, now_ns);
    }
    return true;
}

static void forget_ended(struct hec_jobs *jobs, int64_t now_ns) {
    if (now_ns - jobs->looked_ns < LOOK_NS)
        return;
    jobs->looked_ns = now_ns;
    for (int i = jobs->ring_count; i-- > 0;)
        if (hec_intake_process_ended(jobs->ring[i].pid, jobs->ring[i].pid_fd))
            drop_ring(jobs, i, false);
    for (int i = 0; i < jobs->job_count; i++)
        if (jobs->job[i]->job.rings == 0 && jobs->job[i]->job.ended_ns == 0)
            jobs->job[i]->job.ended_ns = now_ns;
    forget_empty(jobs);
}

int64_t hec_jobs_poll(struct hec_jobs *jobs, int64_t now_ns) {
    bool more = take_arrivals(jobs, now_ns);
    forget_ended(jobs, now_ns);
    int64_t next_ns = hec_jobs_windows(jobs, now_ns);
    return more ? now_ns : now_ns + LOOK_NS < next_ns ? now_ns + LOOK_NS : next_ns;
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
    hec_door_close(&jobs->door);
    free(jobs);
}
