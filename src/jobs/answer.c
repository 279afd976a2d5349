#include "jobs/parts.h"
#include "jobs/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hec_jobs_answer(int *fd, int err, int file, const char *text) {
    struct hec_answer answer = {.magic = HEC_REQUEST_MAGIC, .err = err};
    snprintf(answer.text, sizeof answer.text, "%s", text);
    hec_pass_send(*fd, &answer, sizeof answer, &file, file >= 0); /* who does not take it at once gets none */
    close(*fd);
    *fd = -1;
}

static bool may(const struct hec_job *job, uid_t uid) {
    return uid == 0 || uid == geteuid() || (uid == job->uid && !job->mixed);
}

static bool is_called(const struct hec_jobs *jobs, const struct hec_job_entry *entry, const char *name) {
    char *end;
    long pid = strtol(name, &end, 10);
    if (strcmp(entry->job.id, name) == 0)
        return true;
    for (int i = 0; !*end && pid > 0 && i < jobs->ring_count; i++)
        if (jobs->ring[i].job == entry && jobs->ring[i].pid == pid)
            return true;
    return false;
}

static void list(const struct hec_jobs *jobs, uid_t uid, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < jobs->job_count && used < size; i++) {
        const struct hec_job *job = &jobs->job[i]->job;
        if (may(job, uid))
            used += (size_t)snprintf(text + used, size - used, "%s: process %d, %d in all, %llu windows\n", job->id,
                                     (int)job->pid, job->processes, (unsigned long long)job->windows);
    }
}

/* NULL: the request waits for its window. */
static const char *refuse(struct hec_jobs *jobs, const struct hec_request *request, uid_t uid, int fd, int *err) {
    struct hec_job_entry *entry = NULL;
    for (int i = 0; i < jobs->job_count && !entry; i++)
        if (is_called(jobs, jobs->job[i], request->job))
            entry = jobs->job[i];
    *err = HEC_ERR_USAGE;
    if (!(request->seconds > 0 && request->seconds <= HEC_WINDOW_SECONDS_MAX))
        return "a window of that length cannot be recorded";
    *err = HEC_ERR_NOTFOUND; /* the same for jobs of others: who may not record one does not learn of it */
    if (!entry || !may(&entry->job, uid))
        return "no such job reports to this agent, or it is another user's; `hec record` lists yours";
    *err = HEC_ERR_BUSY;
    if (entry->request >= 0)
        return "a window of this job is asked for already";
    entry->request = fd;
    entry->request_s = request->seconds;
    return NULL;
}

void hec_jobs_ask(struct hec_jobs *jobs, int fd, uid_t uid) {
    struct hec_request request;
    char text[sizeof((struct hec_answer *)0)->text];
    int none = 0, err = HEC_OK;
    jobs->counts.requests++;
    if (hec_pass_receive(fd, &request, sizeof request, NULL, &none) != (ssize_t)sizeof request ||
        request.magic != HEC_REQUEST_MAGIC || !memchr(request.job, '\0', sizeof request.job)) {
        jobs->counts.requests_refused++;
        close(fd);
    } else if (!request.job[0]) {
        list(jobs, uid, text, sizeof text);
        hec_jobs_answer(&fd, HEC_OK, -1, text);
    } else {
        const char *why = refuse(jobs, &request, uid, fd, &err);
        if (!why)
            return;
        jobs->counts.requests_refused++;
        hec_jobs_answer(&fd, err, -1, why);
    }
}
