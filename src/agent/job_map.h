/* Which batch job was given which GPU, by the files that a prolog writes, as dcgm-exporter reads them (--hpc-job-mapping-dir):
 * a file a GPU, named by its number (2), or an instance of it (2.1); a line a job: its id, and behind it its user and its task of a
 * job array (40_7), where these are known. "0" is no job.
 * Files that others than root and this user may write to are not believed. */
#pragma once

#include "agent/identity.h"
#include "base/clock.h"
#include "base/error.h"

#define HEC_JOB_MAP_FOLDER "/run/hec/jobs" /* where deploy/slurm/prolog.sh writes */
#define HEC_JOB_MAP_MAX 256                /* jobs; more are left out and counted */
#define HEC_JOB_MAP_EVERY_NS (1 * HEC_NS_PER_S)

struct hec_job_map {
    const char *folder; /* NULL: none is read. It outlives the map */
    bool expected;      /* asked for: that it is not there is worth a word */
    int64_t due_ns;
    size_t count;
    uint64_t left_out;
    struct {
        int device, instance;     /* -1: the whole GPU */
        struct hec_tenant holder; /* job, user, array_task */
    } rows[HEC_JOB_MAP_MAX];
};

/* Reads what is due. HEC_OK; HEC_ERR_NOTFOUND and others: the folder cannot be read, and nothing is known. */
int hec_job_map_poll(struct hec_job_map *map, int64_t now_ns, struct hec_why *why);
/* The jobs of that instance (-1: of the GPU and all its instances), and those of the whole GPU: at most `most` into out; returns how many
 * there are. */
size_t hec_job_map_find(const struct hec_job_map *map, int device, int instance, const struct hec_tenant **out,
                        size_t most);
/* Which task of a job array the tenant's job is, by its number alone: the tenant is in a cgroup of the job. "" where it is not known. */
void hec_job_map_task(const struct hec_job_map *map, struct hec_tenant *tenant);
