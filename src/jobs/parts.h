/* Inside the registry of jobs: jobs.c keeps rings and jobs, root.c finds the process above those of a job,
 * schedule.c has windows of them recorded, answer.c answers `hec record`. */
#pragma once

#include "jobs/jobs.h"
#include "observe/intake.h"

struct hec_job_entry {
    struct hec_job job;
    bool traced;    /* a process of it uses CUDA */
    bool in_window; /* one is under way */
    int64_t due_ns; /* its next window */
    int request;    /* who waits for a run file: a socket, -1: nobody */
    double request_s;
};

struct hec_job_ring {
    int fd, pid_fd;
    pid_t pid;
    uid_t uid;
    uint32_t role;
    struct hec_job_entry *job;
};

/* One that is due, and one that was asked for: who asks for minutes holds the others up no more than that. */
enum { HEC_JOBS_DUE, HEC_JOBS_ASKED, HEC_JOBS_WINDOWS };

struct hec_jobs {
    struct hec_jobs_options options;
    struct hec_intake intake;
    struct hec_jobs_counts counts;
    int64_t looked_ns;
    int job_count, ring_count;
    struct hec_job_entry *job[HEC_JOBS_MAX];
    struct hec_job_ring ring[HEC_JOBS_RINGS_MAX];
    int64_t rest_until_ns; /* so that windows take no more than cpu_share */
    struct {
        struct hec_window_run run;
        struct hec_job_entry *job; /* NULL: none is under way */
        int64_t expected_ns;
    } window[HEC_JOBS_WINDOWS];
};

struct hec_job_process {
    pid_t pid;
    uid_t uid; /* by the credentials of its connection */
};

/* The nearest common ancestor of the processes, itself one of them or above; of each only ancestors that are its own user's count, so
 * that a job never has what stands above its user's processes, such as sshd. 0: there is none, or the agent stands below it. proc:
 * /proc, open. */
pid_t hec_jobs_root(int proc, const struct hec_job_process *of, int count, pid_t agent);

/* Nobody reads it just now. */
void hec_jobs_pause(const struct hec_job_ring *ring);

/* Ends and begins windows; when to be called next. */
int64_t hec_jobs_windows(struct hec_jobs *jobs, int64_t now_ns);
void hec_jobs_windows_abort(struct hec_jobs *jobs);

/* Takes the socket of a request over. */
void hec_jobs_ask(struct hec_jobs *jobs, int fd, uid_t uid);
/* Answers, and closes *fd, which becomes -1. file: what to hand over, which stays the caller's; -1: nothing. */
void hec_jobs_answer(int *fd, int err, int file, const char *text);
