/* Where the joules of jobs that report to the agent went: the registry of jobs (jobs/jobs.h), and the sums of their windows by tenant. Jobs
 * of one tenant are one row, since their labels are the same. */
#pragma once

#include "agent/node.h"
#include "jobs/jobs.h"

#define HEC_CAUSES_ROWS_MAX HEC_JOBS_MAX /* tenants; the one whose last job ended first makes room */

struct hec_causes;

/* node says whom processes belong to; it must outlive it. Of jobs, the callbacks are not read. Strings must outlive it. */
int hec_causes_open(const struct hec_jobs_options *jobs, struct hec_node *node, struct hec_causes **out,
                    struct hec_why *why);
void hec_causes_close(struct hec_causes *causes); /* NULL is fine */

/* In one thread: as hec_jobs_fd and hec_jobs_poll. */
int hec_causes_fd(const struct hec_causes *causes);
int64_t hec_causes_poll(struct hec_causes *causes, int64_t now_ns);

/* From any thread. */
void hec_causes_counts(struct hec_causes *causes, struct hec_jobs_counts *counts);
struct hec_causes_unit {
    char name[64];
    double count;
};
/* The jobs of one tenant. */
struct hec_causes_job {
    const struct hec_tenant *tenant;
    bool running;
    bool fresh;                     /* its first window ended less than the node's lag ago */
    uint64_t devices;               /* bits of hec_device.index */
    double device_s;                /* devices by time, until it ended */
    const double *seconds, *joules; /* by state, of its windows */
    bool priced;                    /* joules are known */
    int cause;                      /* -1: not known */
    double recoverable;
    const struct hec_causes_unit *units;
    int unit_count;
};
/* All of them, as they are at one moment; what they point to lives as long as the call. */
void hec_causes_read(struct hec_causes *causes,
                     void (*read)(void *context, const struct hec_causes_job *jobs, size_t count), void *context);
