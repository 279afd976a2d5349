#include "agent/causes.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    struct hec_tenant tenant;
    int jobs;         /* that run */
    int64_t since_ns; /* its first window ended */
    int64_t ended_ns; /* the last of them */
    double device_s;  /* devices by time */
    double seconds[HEC_STATE_COUNT], joules[HEC_STATE_COUNT];
    bool priced; /* joules were divided among the states at least once */
    uint64_t devices;
    int cause;
    double recoverable;
    int unit_count;
    struct hec_causes_unit unit[HEC_WINDOW_UNITS];
};

struct hec_causes {
    struct hec_jobs *jobs;
    struct hec_node *node;
    int64_t counted_ns;   /* device time is counted until then */
    pthread_mutex_t lock; /* of all that follows */
    struct hec_jobs_counts counts;
    size_t row_count;
    struct row *row[HEC_CAUSES_ROWS_MAX];
};

/* ---- whose a job is ---- */

static void tenant_of(struct hec_causes *causes, pid_t pid, struct hec_tenant *tenant) {
    memset(tenant, 0, sizeof *tenant);
    pthread_mutex_lock(&causes->node->lock);
    if (causes->node->identity)
        hec_identity_of(causes->node->identity, pid, NULL, 0, hec_clock_mono_ns(), tenant);
    tenant->step[0] = '\0'; /* the next step of the job is the same row */
    pthread_mutex_unlock(&causes->node->lock);
}

static bool identify(void *context, pid_t pid, char id[HEC_JOB_ID]) {
    struct hec_tenant tenant;
    tenant_of(context, pid, &tenant);
    if (tenant.job[0] && tenant.claimed) /* what another user claims is another job */
        snprintf(id, HEC_JOB_ID, "slurm-%s-user-%s", tenant.job, tenant.user);
    else if (tenant.job[0])
        snprintf(id, HEC_JOB_ID, "slurm-%s", tenant.job);
    else if (tenant.pod[0])
        snprintf(id, HEC_JOB_ID, "pod-%s-%s", tenant.pod_namespace, tenant.pod);
    return tenant.job[0] || tenant.pod[0];
}

static int row_of(struct hec_causes *causes, const struct hec_tenant *tenant) {
    size_t at = 0, oldest = HEC_CAUSES_ROWS_MAX;
    for (; at < causes->row_count; at++) {
        const struct row *row = causes->row[at];
        if (hec_tenant_equal(&row->tenant, tenant))
            return (int)at;
        if (row->jobs == 0 && (oldest == HEC_CAUSES_ROWS_MAX || row->ended_ns < causes->row[oldest]->ended_ns))
            oldest = at;
    }
    at = causes->row_count < HEC_CAUSES_ROWS_MAX ? causes->row_count : oldest;
    if (at == HEC_CAUSES_ROWS_MAX || (!causes->row[at] && !(causes->row[at] = malloc(sizeof(struct row)))))
        return -1;
    *causes->row[at] =
        (struct row){.tenant = *tenant, .since_ns = hec_clock_mono_ns(), .cause = -1, .recoverable = NAN};
    causes->row_count += at == causes->row_count;
    return (int)at;
}

/* ---- what is seen of it ---- */

static void add_unit(struct row *row, const char *name, double count) {
    int at = 0;
    while (at < row->unit_count && strcmp(row->unit[at].name, name) != 0)
        at++;
    if (at == HEC_WINDOW_UNITS)
        return;
    if (at == row->unit_count)
        snprintf(row->unit[row->unit_count++].name, sizeof row->unit[0].name, "%s", name);
    row->unit[at].count += count;
}

static void add_result(struct row *row, const struct hec_window_result *result) {
    for (int i = 0; i < result->device_count; i++)
        if (result->device[i].index >= 0 && result->device[i].index < 64)
            row->devices |= UINT64_C(1) << result->device[i].index;
    for (int i = 0; i < result->device_count; i++)
        for (int state = 0; state < HEC_STATE_COUNT; state++) {
            double joules = result->device[i].joules[state];
            row->seconds[state] += result->device[i].seconds[state];
            row->joules[state] += isnan(joules) ? 0 : joules;
            row->priced = row->priced || !isnan(joules);
        }
    row->cause = result->cause;
    row->recoverable = result->recoverable;
    for (int i = 0; i < result->unit_count; i++)
        add_unit(row, result->unit[i].name, result->unit[i].count);
}

static void observed(void *context, struct hec_job *job, const struct hec_window_result *result) {
    struct hec_causes *causes = context;
    struct hec_tenant tenant;
    if (job->row < 0)
        tenant_of(causes, job->pid, &tenant);
    pthread_mutex_lock(&causes->lock);
    if (job->row < 0 && (job->row = row_of(causes, &tenant)) >= 0) {
        causes->row[job->row]->jobs++;
        int64_t until_ns = job->ended_ns ? job->ended_ns : causes->counted_ns;
        causes->row[job->row]->device_s +=
            job->device_count * (double)(until_ns - job->since_ns) / (double)HEC_NS_PER_S;
    }
    uint64_t devices = 0;
    bool kept = job->row >= 0;
    if (kept) {
        add_result(causes->row[job->row], result);
        tenant = causes->row[job->row]->tenant;
        devices = causes->row[job->row]->devices;
    }
    pthread_mutex_unlock(&causes->lock);
    if (kept)
        hec_node_diagnose(causes->node, &tenant, devices, result->cause);
}

static void ended(void *context, struct hec_job *job) {
    struct hec_causes *causes = context;
    struct hec_tenant tenant;
    bool last = false;
    pthread_mutex_lock(&causes->lock);
    if (job->row >= 0) {
        last = --causes->row[job->row]->jobs == 0;
        causes->row[job->row]->ended_ns = hec_clock_mono_ns();
        tenant = causes->row[job->row]->tenant;
    }
    pthread_mutex_unlock(&causes->lock);
    if (last)
        hec_node_diagnose(causes->node, &tenant, 0, -1);
}

int hec_causes_open(const struct hec_jobs_options *options, struct hec_node *node, struct hec_causes **out,
                    struct hec_why *why) {
    struct hec_causes *causes = calloc(1, sizeof *causes);
    struct hec_jobs_options own = *options;
    *out = NULL;
    if (!causes)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the jobs");
    causes->node = node;
    pthread_mutex_init(&causes->lock, NULL);
    own.identify = identify;
    own.observed = observed;
    own.ended = ended;
    own.context = causes;
    int err = hec_jobs_open(&own, &causes->jobs, why);
    if (err < 0)
        free(causes);
    else
        *out = causes;
    return err;
}

void hec_causes_close(struct hec_causes *causes) {
    if (!causes)
        return;
    hec_jobs_close(causes->jobs);
    for (size_t i = 0; i < causes->row_count; i++)
        free(causes->row[i]);
    pthread_mutex_destroy(&causes->lock);
    free(causes);
}

int hec_causes_fd(const struct hec_causes *causes) {
    return hec_jobs_fd(causes->jobs);
}

int64_t hec_causes_poll(struct hec_causes *causes, int64_t now_ns) {
    double passed_s = causes->counted_ns ? (double)(now_ns - causes->counted_ns) / (double)HEC_NS_PER_S : 0;
    causes->counted_ns = now_ns;
    pthread_mutex_lock(&causes->lock);
    for (size_t i = 0; i < hec_jobs_count(causes->jobs); i++) {
        const struct hec_job *job = hec_jobs_at(causes->jobs, i);
        if (job->row >= 0 && !job->ended_ns) /* the window of one that has ended may take longer */
            causes->row[job->row]->device_s += passed_s * job->device_count;
    }
    pthread_mutex_unlock(&causes->lock);
    int64_t next_ns = hec_jobs_poll(causes->jobs, now_ns);
    pthread_mutex_lock(&causes->lock);
    hec_jobs_counts(causes->jobs, &causes->counts);
    pthread_mutex_unlock(&causes->lock);
    return next_ns;
}

void hec_causes_counts(struct hec_causes *causes, struct hec_jobs_counts *counts) {
    pthread_mutex_lock(&causes->lock);
    *counts = causes->counts;
    pthread_mutex_unlock(&causes->lock);
}

void hec_causes_read(struct hec_causes *causes,
                     void (*read)(void *context, const struct hec_causes_job *jobs, size_t count), void *context) {
    struct hec_causes_job jobs[HEC_CAUSES_ROWS_MAX];
    int64_t now_ns = hec_clock_mono_ns();
    pthread_mutex_lock(&causes->lock);
    for (size_t i = 0; i < causes->row_count; i++) {
        const struct row *row = causes->row[i];
        jobs[i] = (struct hec_causes_job){.tenant = &row->tenant,
                                          .running = row->jobs > 0,
                                          .fresh = now_ns - row->since_ns < causes->node->lag_ns,
                                          .devices = row->devices,
                                          .device_s = row->device_s,
                                          .seconds = row->seconds,
                                          .joules = row->joules,
                                          .priced = row->priced,
                                          .cause = row->cause,
                                          .recoverable = row->recoverable,
                                          .units = row->unit,
                                          .unit_count = row->unit_count};
    }
    read(context, jobs, causes->row_count);
    pthread_mutex_unlock(&causes->lock);
}
