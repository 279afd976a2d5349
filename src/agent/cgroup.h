/* What a process' cgroups say of whom it works for. Pure: the text of /proc/PID/cgroup in, names out. Any text will do. */
#ifndef HEC_AGENT_CGROUP_H
#define HEC_AGENT_CGROUP_H

#define HEC_CONTAINER_ID 64 /* hexadecimal digits, of Docker, containerd, CRI-O and Podman */

struct hec_cgroup {
    char pod_uid[37];                     /* 8-4-4-4-12, or 32 digits of a static pod; "": in no pod */
    char container[HEC_CONTAINER_ID + 1]; /* its id; "": in no container */
    char job[21];                         /* of Slurm, its number; "": none */
};

/* Versions 1 (several lines) and 2. Paths below user.slice say nothing: there users make cgroups of any name. */
void hec_cgroup_parse(const char *text, struct hec_cgroup *out);

#endif
