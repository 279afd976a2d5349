#include "agent/cgroup.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static size_t digits(const char *text, const char *end) {
    size_t n = 0;
    while (text + n < end && isdigit((unsigned char)text[n]))
        n++;
    return n;
}

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Hexadecimal digits at text; with `dashes` those at the places that a UUID has them, or '_' for them as in names of slices. */
static bool hex_run(const char *text, const char *end, size_t length, bool dashes) {
    if ((size_t)(end - text) < length || (text + length < end && isalnum((unsigned char)text[length])))
        return false;
    for (size_t i = 0; i < length; i++) {
        bool dash = dashes && (i == 8 || i == 13 || i == 18 || i == 23);
        if (dash ? text[i] != '-' && text[i] != '_' : !is_hex(text[i]))
            return false;
    }
    return true;
}

/* podUID, kubepods-burstable-podUID.slice, kubepods-podUID.slice:cri-containerd:ID */
static void take_pod(const char *part, const char *end, struct hec_cgroup *out) {
    for (const char *at = part; at + 3 < end; at++) {
        if (memcmp(at, "pod", 3) != 0 || (at > part && isalnum((unsigned char)at[-1])))
            continue;
        size_t length = hex_run(at + 3, end, 36, true) ? 36 : hex_run(at + 3, end, 32, false) ? 32 : 0;
        if (length == 0)
            continue;
        for (size_t i = 0; i < length; i++)
            out->pod_uid[i] = at[3 + i] == '_' ? '-' : at[3 + i];
        out->pod_uid[length] = '\0';
        return;
    }
}

/* ID, docker-ID.scope, cri-containerd-ID.scope, ...:cri-containerd:ID: the last of a path is the innermost. */
static void take_container(const char *part, const char *end, struct hec_cgroup *out) {
    for (const char *at = part; at + HEC_CONTAINER_ID <= end; at++)
        if ((at == part || !isalnum((unsigned char)at[-1])) && hex_run(at, end, HEC_CONTAINER_ID, false)) {
            memcpy(out->container, at, HEC_CONTAINER_ID);
            out->container[HEC_CONTAINER_ID] = '\0';
        }
}

static bool ends_with(const char *part, const char *end, const char *what) {
    size_t length = strlen(what);
    return (size_t)(end - part) >= length && memcmp(end - length, what, length) == 0;
}

/* .../slurm/uid_1000/job_42/... (version 1; slurm_NODE with several a machine), .../slurmstepd.scope/job_42/... (version 2;
 * NODE_slurmstepd.scope) */
static void take_job(const char *parts[3], const char *end, struct hec_cgroup *out) {
    const char *job = parts[0], *above = parts[1], *top = parts[2];
    size_t length = end - job > 4 && memcmp(job, "job_", 4) == 0 ? digits(job + 4, end) : 0;
    if (length == 0 || job + 4 + length != end || length >= sizeof out->job || !above)
        return;
    bool second = ends_with(above, job - 1, "slurmstepd.scope");
    bool first = job - 1 - above > 4 && memcmp(above, "uid_", 4) == 0 && top && (size_t)(above - 1 - top) >= 5 &&
                 memcmp(top, "slurm", 5) == 0;
    if (!first && !second)
        return;
    memcpy(out->job, job + 4, length);
    out->job[length] = '\0';
}

static void take_path(const char *path, const char *end, struct hec_cgroup *out) {
    const char *parts[3] = {NULL, NULL, NULL}; /* the present one, and those above it */
    static const char users[] = "/user.slice/";
    if ((size_t)(end - path) >= sizeof users - 1 && memcmp(path, users, sizeof users - 1) == 0)
        return;
    while (path < end) {
        const char *part = path + 1, *slash = *path == '/' ? memchr(part, '/', (size_t)(end - part)) : NULL;
        const char *stop = slash ? slash : end;
        if (*path != '/')
            return;
        parts[2] = parts[1];
        parts[1] = parts[0];
        parts[0] = part;
        take_pod(part, stop, out);
        take_container(part, stop, out);
        take_job(parts, stop, out);
        path = stop;
    }
}

void hec_cgroup_parse(const char *text, struct hec_cgroup *out) {
    *out = (struct hec_cgroup){0};
    while (*text) {
        const char *end = strchr(text, '\n');
        if (!end)
            end = text + strlen(text);
        const char *first = memchr(text, ':', (size_t)(end - text));
        const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
        if (second)
            take_path(second + 1, end, out);
        text = *end ? end + 1 : end;
    }
}
