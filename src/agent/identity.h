/* Whom a process works for: process -> cgroups -> pod and container, or Slurm job, else user and command.
 *
 * Everything is read below one open descriptor of /proc/PID, so that a pid that is used again meanwhile gives nothing instead of
 * another process' names. What was found is kept by pid, start time and name: a second at first, then twice as long each time, up to a
 * minute. Processes are moved between cgroups, and an exec changes all but the number.
 *
 * Names of pods are not in cgroups, which have only ids. They come from the kubelet's links in /var/log/containers
 * (POD_NAMESPACE_CONTAINER-ID.log), else from the API server where it may be asked (agent/pod_names.h), else from those who hold
 * the device by the kubelet (agent/kubelet.h): the one whose container has the name that the kubelet mounted for this one
 * (/proc/PID/mountinfo).
 *
 * What may be forged: a process writes its own name and environment, so a user can call a program anything and, where Slurm makes
 * no cgroups, claim the number of another's job; the label "user" beside it is the kernel's. From the first job on that a cgroup
 * proves, no variable is believed. Nor can every environment be read: that of another user's process takes CAP_DAC_READ_SEARCH,
 * which the agent gives up. */
#pragma once

#include "agent/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whom joules belong to: the labels of one series. Every text is clean (hec_text_clean), so that two tenants with the same
 * labels are the same tenant and no series stands twice on a page. An empty text is a label that is left out. */

/* Kubernetes allows 63 characters for a namespace and a container, 253 for a pod. */
struct hec_tenant {
    char pod_namespace[64];
    char pod[254];
    char container[64];
    char job[64];        /* of Slurm */
    char step[16];       /* of the job: its number, batch, extern or interactive; "": the job as a whole */
    char array_task[44]; /* JOB_TASK, of a job array */
    bool claimed;        /* by a variable alone: the job of that number of this user, and of nobody else. No label */
    char user[33];
    char command[HEC_COMMAND_SIZE]; /* of the process, or of who started it as a worker */
    int32_t pid;                    /* 0: processes are not tenants of their own */
};

bool hec_tenant_equal(const struct hec_tenant *a, const struct hec_tenant *b);
/* Of its labels: the same for the same ones. */
uint64_t hec_tenant_id(const struct hec_tenant *tenant);

struct hec_identity_options {
    const char *proc_path;       /* NULL: /proc */
    const char *passwd_path;     /* NULL: /etc/passwd. No other source of names is asked: they may hang on a network */
    const char *containers_path; /* NULL: /var/log/containers */
    /* Only who has a file of this name open is believed to be the process that the driver means; NULL: all. For a pid
     * namespace that is not the machine's first, where the driver's pids may be others' (hec_identity_proof). */
    const char *device_prefix;
    /* Each process is a tenant of its own: its pid, and its user and command also where its pod or job is known. */
    bool processes;
};

#define HEC_IDENTITY_LINE 256

struct hec_identity;
struct hec_job_map;
struct hec_pod_names;

/* HEC_ERR_NOMEM; HEC_ERR_IO: there is no /proc. */
int hec_identity_open(const struct hec_identity_options *options, struct hec_identity **out);
void hec_identity_close(struct hec_identity *identity); /* NULL is fine */

/* Pods that the kubelet's links do not name are looked for there too (agent/pod_names.h); it outlives this. */
void hec_identity_ask(struct hec_identity *identity, struct hec_pod_names *names);

/* Tasks of job arrays that no environment names are looked for there (agent/job_map.h); it outlives this. */
void hec_identity_map(struct hec_identity *identity, const struct hec_job_map *jobs);

/* The driver's pids are those of this namespace: HEC's double of it is one program among the others. */
void hec_identity_trust(struct hec_identity *identity);

/* device_prefix for this process' pid namespace: "/dev/nvidia", or NULL in the first one. */
const char *hec_identity_proof(const char *proc_path);

/* holders: those who hold the device (or the instance that the process uses) by the kubelet. A process that cannot be seen is that of the
 * only one, or user="(unknown)". */
void hec_identity_of(struct hec_identity *identity, int32_t pid, const struct hec_tenant *const *holders, size_t count,
                     int64_t now_ns, struct hec_tenant *out);

/* Its command line, clean, as it was when hec_identity_of found the process; "" where that did not or was not asked for processes. */
const char *hec_identity_line(const struct hec_identity *identity, int32_t pid);

#define HEC_CONTAINER_ID 64 /* hexadecimal digits, of Docker, containerd, CRI-O and Podman */

struct hec_cgroup {
    char pod_uid[37];                     /* 8-4-4-4-12, or 32 digits of a static pod; "": in no pod */
    char container[HEC_CONTAINER_ID + 1]; /* its id; "": in no container */
    char job[21];                         /* of Slurm, its number; "": none */
    char step[16];                        /* of the job */
};

/* Versions 1 (several lines) and 2. Paths below user.slice say nothing: there users make cgroups of any name. */
void hec_cgroup_parse(const char *text, struct hec_cgroup *out);
