#include "jobs/parts.h"
#include "jobs/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE_MAX_BYTES (HEC_JOB_ID + 128)

void hec_jobs_answer(struct hec_jobs *jobs, struct hec_job_request *request, int err, int file, const char *text) {
    struct hec_answer answer = {.magic = HEC_REQUEST_MAGIC, .err = err};
    snprintf(answer.text, sizeof answer.text, "%s", text);
    hec_pass_send(request->fd, &answer, sizeof answer, &file, file >= 0); /* who does not take it at once gets none */
    hec_door_give_back(&jobs->door, request->fd);
    request->fd = -1;
}

void hec_jobs_request_remove(struct hec_jobs *jobs, int at) {
    struct hec_job_user *user = hec_jobs_user(jobs, jobs->request[at].uid);
    if (user)
        user->requests--;
    memmove(&jobs->request[at], &jobs->request[at + 1], (size_t)(--jobs->request_count - at) * sizeof jobs->request[0]);
}

static bool may(const struct hec_job *job, uid_t uid) {
    return uid == 0 || uid == geteuid() || (uid == job->uid && !job->mixed);
}

/* Its id, or of a Slurm job its number alone. */
static bool is_named(const struct hec_job_entry *entry, const char *name) {
    static const char slurm[] = "slurm-", user[] = "-user-";
    const char *number = entry->job.id + sizeof slurm - 1;
    if (strcmp(entry->job.id, name) == 0)
        return true;
    size_t length = strlen(name);
    return length > 0 && strncmp(entry->job.id, slurm, sizeof slurm - 1) == 0 && strncmp(number, name, length) == 0 &&
           (!number[length] || strncmp(number + length, user, sizeof user - 1) == 0);
}

static bool has_process(const struct hec_jobs *jobs, const struct hec_job_entry *entry, const char *name) {
    char *end;
    long pid = strtol(name, &end, 10);
    for (int i = 0; !*end && pid > 0 && i < jobs->ring_count; i++)
        if (jobs->ring[i].job == entry && jobs->ring[i].pid == pid)
            return true;
    return false;
}

/* What does not fit into an answer goes with it, as a file: one user's many jobs hide nobody's. */
static void list(struct hec_jobs *jobs, struct hec_job_request *request) {
    static char text[HEC_JOBS_MAX * LINE_MAX_BYTES];
    int used = 0, file = -1;
    text[0] = '\0';
    for (int i = 0; i < jobs->job_count; i++) {
        const struct hec_job *job = &jobs->job[i]->job;
        if (may(job, request->uid))
            used += snprintf(text + used, LINE_MAX_BYTES, "%s: process %d, %d in all, %llu windows\n", job->id,
                             (int)job->pid, job->processes, (unsigned long long)job->windows);
    }
    if (used >= (int)sizeof((struct hec_answer *)0)->text && (file = memfd_create("hec-jobs", MFD_CLOEXEC)) >= 0 &&
        write(file, text, (size_t)used) != used) {
        close(file);
        file = -1;
    }
    hec_jobs_answer(jobs, request, HEC_OK, file, text);
    if (file >= 0)
        close(file);
}

static bool asks_already(const struct hec_jobs *jobs, const struct hec_job_request *request) {
    for (int i = 0; i < jobs->request_count; i++)
        if (jobs->request[i].job == request->job && jobs->request[i].uid == request->uid)
            return true;
    for (int which = HEC_JOBS_ASKED; which < HEC_JOBS_WINDOWS; which++)
        if (jobs->window[which].job == request->job && jobs->window[which].request.uid == request->uid)
            return true;
    return false;
}

/* NULL: the request waits for its window. */
static const char *refuse(struct hec_jobs *jobs, struct hec_job_request *request, const char *name, int *err) {
    for (int by_process = 0; by_process < 2; by_process++)
        for (int i = 0; i < jobs->job_count && !request->job; i++)
            if ((by_process ? has_process(jobs, jobs->job[i], name) : is_named(jobs->job[i], name)) &&
                may(&jobs->job[i]->job, request->uid))
                request->job = jobs->job[i];
    *err = HEC_ERR_USAGE;
    if (!(request->seconds > 0 && request->seconds <= HEC_WINDOW_SECONDS_MAX))
        return "a window of that length cannot be recorded";
    *err = HEC_ERR_NOTFOUND; /* the same for jobs of others: who may not record one does not learn of it */
    if (!request->job)
        return "no such job reports to this agent, or it is another user's; `hec record` lists yours";
    *err = HEC_ERR_BUSY;
    if (asks_already(jobs, request))
        return "a window of this job is asked for already";
    struct hec_job_user *user = hec_jobs_user(jobs, request->uid);
    if (!user || (user->uid != 0 && user->requests == HEC_JOBS_REQUESTS_USER) ||
        jobs->request_count >= HEC_JOBS_REQUESTS_MAX - (user->uid != 0 ? HEC_JOBS_REQUESTS_ROOT : 0))
        return "too many windows are asked for already";
    user->requests++;
    jobs->request[jobs->request_count++] = *request;
    return NULL;
}

void hec_jobs_ask(struct hec_jobs *jobs, int fd, uid_t uid, const struct hec_request *asked) {
    struct hec_job_request request = {.fd = fd, .uid = uid, .seconds = asked->seconds};
    int err = HEC_OK;
    jobs->counts.requests++;
    if (!asked->job[0]) {
        list(jobs, &request);
        return;
    }
    const char *why = refuse(jobs, &request, asked->job, &err);
    if (!why)
        return;
    jobs->counts.requests_refused++;
    hec_jobs_answer(jobs, &request, err, -1, why);
}
