/* Inside the registry of jobs: jobs.c keeps rings and jobs, fair.c what each user has of them, root.c finds the process above those
 * of a job, schedule.c has windows of them recorded, answer.c answers `hec record`; door.h lets in who reports. */
#pragma once

#include "jobs/door.h"
#include "jobs/jobs.h"
#include "jobs/request.h"

#define HEC_JOBS_USERS_MAX 512
#define HEC_JOBS_REQUESTS_MAX 256           /* that wait */
#define HEC_JOBS_REQUESTS_ROOT 16           /* of them, kept free for root */
#define HEC_JOBS_TURN_NS (4 * HEC_NS_PER_S) /* of a window at least, while others wait for theirs */
#define HEC_JOBS_REQUESTS_USER 8            /* of them, of one user who is not root */

/* What a user has of what there is for all. Nobody has more than a share while others wait: who has most gives way (fair.c). */
struct hec_job_user {
    uid_t uid; /* and those that are his by /etc/subuid */
    int rings, jobs, requests;
    int64_t served_ns;     /* its newest window began */
    int64_t rest_until_ns; /* so that windows of it take no more than its part of cpu_share */
};

struct hec_job_entry {
    struct hec_job job;
    struct hec_job_user *user; /* whose it is */
    int traced;                /* rings of a tracer: a process of it uses CUDA */
    bool in_window;            /* one is under way */
    int64_t due_ns;            /* its next window */
};

struct hec_job_ring {
    int fd, pid_fd;
    pid_t pid;
    uid_t uid;
    uint32_t role;
    struct hec_job_entry *job;
    struct hec_job_user *user;
};

/* Who waits for a run file. */
struct hec_job_request {
    int fd; /* a socket; -1: nobody */
    uid_t uid;
    struct hec_job_entry *job;
    double seconds;
};

/* One that is due, and some that were asked for, one of a user at a time; the last is for root alone. */
enum { HEC_JOBS_DUE, HEC_JOBS_ASKED, HEC_JOBS_ROOT = HEC_JOBS_ASKED + 4, HEC_JOBS_WINDOWS };

struct hec_jobs {
    struct hec_jobs_options options;
    struct hec_door door;
    struct hec_jobs_counts counts;
    int64_t looked_ns;
    int job_count, ring_count, request_count, user_count;
    int rings_max; /* as many as the limit of descriptors has room for */
    struct hec_job_entry *job[HEC_JOBS_MAX];
    struct hec_job_ring ring[HEC_JOBS_RINGS_MAX];          /* oldest first */
    struct hec_job_request request[HEC_JOBS_REQUESTS_MAX]; /* oldest first */
    struct hec_job_user user[HEC_JOBS_USERS_MAX];
    struct {
        struct hec_window_run run;
        struct hec_job_entry *job;      /* NULL: none is under way */
        struct hec_job_request request; /* whose it is */
        int64_t begun_ns, expected_ns;
        bool shortened;
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

/* His entry, made where he has none; NULL: more users than there is room for. */
struct hec_job_user *hec_jobs_user(struct hec_jobs *jobs, uid_t uid);
/* Of rings, or of jobs, who has most and must give one to `to`, who has fewer even with it; never root, and always to root. NULL:
 * nobody. */
struct hec_job_user *hec_jobs_who_gives_way(struct hec_jobs *jobs, const struct hec_job_user *to, bool of_jobs);
/* The job whose window is next, and when it may begin: of those that are due the one of the user who was served longest ago. NULL: none
 * will be. */
struct hec_job_entry *hec_jobs_next_due(const struct hec_jobs *jobs, int64_t now_ns, int64_t *at_ns);
/* Which request is next in this window, or -1: the oldest of a user who has no window now. */
int hec_jobs_next_asked(const struct hec_jobs *jobs, int window);
/* A window that keeps somebody's request waiting, to be ended after its turn, or -1. Of several the one that began first; never
 * root's, and none where one that ends already will do. */
int hec_jobs_to_shorten(const struct hec_jobs *jobs);
/* A window took cpu_seconds, of this user: how long he rests. */
void hec_jobs_charge(struct hec_jobs *jobs, struct hec_job_user *user, double cpu_seconds, int64_t now_ns);

/* Nobody reads it just now. */
void hec_jobs_pause(const struct hec_job_ring *ring);

/* Ends and begins windows; when to be called next. */
int64_t hec_jobs_windows(struct hec_jobs *jobs, int64_t now_ns);
void hec_jobs_windows_abort(struct hec_jobs *jobs);

/* Takes the socket of a request over. */
void hec_jobs_ask(struct hec_jobs *jobs, int fd, uid_t uid, const struct hec_request *request);
/* No longer waits: it has been answered, or its window begins. */
void hec_jobs_request_remove(struct hec_jobs *jobs, int at);
/* Answers, and lets the socket go. file: what to hand over, which stays the caller's; -1: nothing. */
void hec_jobs_answer(struct hec_jobs *jobs, struct hec_job_request *request, int err, int file, const char *text);
