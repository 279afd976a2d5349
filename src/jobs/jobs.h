/* The jobs of this node that were started with HEC's environment (hec_job_environment, launch/inject.h), and what is known of
 * where their time and joules go.
 *
 * Their processes hand their rings over on the agent's Unix socket. The agent keeps the descriptors, tells the process that nobody
 * reads (base/ring.h: then it writes nothing), and groups it into a job. In turns, some seconds of each job are recorded by
 * a process of their own (window.h); their sums are kept here. The same socket takes requests for a run file of a window
 * (`hec record`). One thread; nothing here waits. Whatever a peer does is bounded and counted, and nobody has more of rings, jobs and
 * windows than a share while others wait. */
#pragma once

#include "jobs/window.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HEC_JOBS_MAX 256        /* at once */
#define HEC_JOBS_RINGS_MAX 2048 /* of all jobs: two descriptors each; fewer where the limit of them is lower */
#define HEC_JOBS_NICE 5         /* what works for others (the door, windows) leaves the processor to the agent */
#define HEC_JOB_ID 352          /* a pod's name has up to 253 characters, its namespace 63 */

/* Where the agent listens unless an option says otherwise. */
#define HEC_JOBS_FOLDER "/run/hec"
#define HEC_JOBS_SOCKET HEC_JOBS_FOLDER "/agent.sock"

struct hec_job;

struct hec_jobs_options {
    const char *socket;  /* the path; its folder must exist */
    const char *program; /* hec; NULL: what runs now */
    double window_s;     /* length of a window: default 5; 0: none but those asked for */
    double period_s;     /* a window of each job in so many seconds, where the CPU share allows: default 60 */
    double cpu_share;    /* of a core, that windows may take in the long run: default 0.01 */
    const char *simulated, *nvml_path; /* NULL: real */
    /* All may be NULL. What a process belongs to by what the kernel says of it (Slurm job, pod): an id that is unique on this
     * node; false: nothing, and it is "run-USER-TAG", what one `hec run --agent` started, or "session-USER-PID". */
    bool (*identify)(void *context, pid_t pid, char id[HEC_JOB_ID]);
    /* A window of a job has ended: what was found, valid. It is counted in the job. */
    void (*observed)(void *context, struct hec_job *job, const struct hec_window_result *result);
    /* Its last process has: it is forgotten. */
    void (*ended)(void *context, struct hec_job *job);
    void *context;
};

struct hec_job_device {
    char uuid[96];
    int index;
    double seconds[HEC_STATE_COUNT],
        joules[HEC_STATE_COUNT]; /* of all windows; joules only of windows that know them */
};

/* A job, and the sums of its windows: they never fall while it lives. */
struct hec_job {
    char id[HEC_JOB_ID];
    uid_t uid;  /* of its first process */
    bool mixed; /* processes of several users: only root may record it */
    pid_t pid;  /* a live process of it, the one that stands above the others, for its labels */
    int processes, rings;
    int row;                  /* for whoever has the registry; -1 at first */
    int64_t since_ns;         /* monotonic: its first ring */
    int64_t ended_ns;         /* its last process was found to have ended, and a window of it goes on; 0: it lives */
    uint64_t windows, failed; /* windows that ended well, and those that brought nothing */
    double observed_s;        /* of all windows; observed_s / (now - since_ns) is the share that is known */
    int device_count;
    struct hec_job_device device[HEC_WINDOW_DEVICES];
    int cause; /* of the newest window, as in window.h; -1: none yet */
    double recoverable, confidence;
    int unit_count;
    struct {
        char name[64];
        double count;
    } unit[HEC_WINDOW_UNITS];
    uint64_t lost;
};

/* For hec_agent_dropped_total{what}, and the agent's own cost. */
struct hec_jobs_counts {
    uint64_t rings;   /* that were taken */
    uint64_t refused; /* that were none, or over the limits */
    uint64_t silent;  /* connections that brought nothing in time */
    uint64_t requests, requests_refused;
    uint64_t windows, windows_failed;
    double window_cpu_seconds; /* of the processes that recorded and analysed */
    double door_cpu_seconds;   /* of those that let in who reports */
};

struct hec_jobs;

struct hec_jobs_options hec_jobs_defaults(void);
/* Listens. HEC_ERR_NOTFOUND, HEC_ERR_PERMISSION, HEC_ERR_LIMIT, HEC_ERR_NOMEM with a sentence. Strings must outlive it. */
int hec_jobs_open(const struct hec_jobs_options *options, struct hec_jobs **out, struct hec_why *why);
/* Readable when something has come in: then, and when it is due, poll. */
int hec_jobs_fd(const struct hec_jobs *jobs);
/* Takes what has arrived, forgets who has ended, begins and ends windows. Returns when to be called next at the latest (monotonic). */
int64_t hec_jobs_poll(struct hec_jobs *jobs, int64_t now_ns);
size_t hec_jobs_count(const struct hec_jobs *jobs);
const struct hec_job *hec_jobs_at(const struct hec_jobs *jobs, size_t at); /* until the next poll */
void hec_jobs_counts(const struct hec_jobs *jobs, struct hec_jobs_counts *counts);
/* Ends a window under way, and lets the rings go: their processes write nothing until they find another agent (base/ring.h). */
void hec_jobs_close(struct hec_jobs *jobs);
