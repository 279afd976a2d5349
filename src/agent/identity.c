#include "agent/identity.h"

#include "agent/job_map.h"
#include "agent/pod_names.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/run.h"
#include "observe/procfs/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool hec_tenant_equal(const struct hec_tenant *a, const struct hec_tenant *b) {
    return strcmp(a->pod, b->pod) == 0 && strcmp(a->job, b->job) == 0 && strcmp(a->command, b->command) == 0 &&
           strcmp(a->container, b->container) == 0 && strcmp(a->user, b->user) == 0 &&
           strcmp(a->pod_namespace, b->pod_namespace) == 0 && strcmp(a->step, b->step) == 0 &&
           strcmp(a->array_task, b->array_task) == 0 && a->pid == b->pid;
}

uint64_t hec_tenant_id(const struct hec_tenant *t) {
    char text[sizeof *t + 8];
    int length = snprintf(text, sizeof text, "%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s", t->pod_namespace, t->pod, t->container,
                          t->job, t->step, t->array_task, t->user, t->command);
    return hec_hash(text, (size_t)length);
}

/* What a process' cgroups say of whom it works for. Pure: the text of /proc/PID/cgroup in, names out. Any text will do. */

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

/* ID, docker-ID.scope, cri-containerd-ID.scope, ...:cri-containerd:ID */
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
static void cgroup_job(const char *parts[3], const char *end, struct hec_cgroup *out) {
    const char *job = parts[0], *above = parts[1], *top = parts[2];
    size_t length = end - job > 4 && memcmp(job, "job_", 4) == 0 ? digits(job + 4, end) : 0;
    if (length == 0 || job + 4 + length != end || length >= sizeof out->job || !above)
        return;
    bool second = ends_with(above, job - 1, "slurmstepd.scope") && (!top || ends_with(top, above - 1, ".slice"));
    bool first = job - 1 - above > 4 && memcmp(above, "uid_", 4) == 0 && top && (size_t)(above - 1 - top) >= 5 &&
                 memcmp(top, "slurm", 5) == 0;
    if (!first && !second)
        return;
    memcpy(out->job, job + 4, length);
    out->job[length] = '\0';
}

/* step_0, step_batch, step_extern, step_interactive: right below its job. */
static void cgroup_step(const char *part, const char *end, struct hec_cgroup *out) {
    size_t length = end - part > 5 && memcmp(part, "step_", 5) == 0 ? (size_t)(end - part) - 5 : 0;
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)part[5 + i]) && !islower((unsigned char)part[5 + i]))
            return;
    if (length >= sizeof out->step)
        return;
    memcpy(out->step, part + 5, length);
    out->step[length] = '\0';
}

/* What is outermost was made by the runtime; what is below it may be made by whom the runtime runs (delegation). So the first pod of
 * a path counts, the first container in it, and the first job. */
static void take_path(const char *path, const char *end, struct hec_cgroup *out) {
    const char *parts[3] = {NULL, NULL, NULL}; /* the present one, and those above it */
    struct hec_cgroup found = {0};
    bool in_job = false; /* the part above is the job's */
    static const char users[] = "/user.slice/";
    if ((size_t)(end - path) >= sizeof users - 1 && memcmp(path, users, sizeof users - 1) == 0)
        return;
    while (path < end) {
        const char *part = path + 1, *slash = *path == '/' ? memchr(part, '/', (size_t)(end - part)) : NULL;
        const char *stop = slash ? slash : end;
        if (*path != '/')
            break;
        parts[2] = parts[1];
        parts[1] = parts[0];
        parts[0] = part;
        bool in_pod = found.pod_uid[0];
        if (!in_pod)
            take_pod(part, stop, &found);
        if (!in_pod && found.pod_uid[0])
            found.container[0] = '\0'; /* that of the node itself: Kubernetes in Docker */
        if (!found.container[0])
            take_container(part, stop, &found);
        if (in_job)
            cgroup_step(part, stop, &found);
        in_job = !found.job[0];
        if (in_job)
            cgroup_job(parts, stop, &found);
        in_job = in_job && found.job[0];
        path = stop;
    }
    if (!out->pod_uid[0] && !out->container[0] && !out->job[0])
        *out = found;
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

#define KEPT_MAX 256 /* one place a pid, by its last bits */
#define KEPT_NS (60 * HEC_NS_PER_S)
#define KEPT_FIRST_NS (1 * HEC_NS_PER_S)
#define TEXT_MAX 65536 /* of a file of /proc; an environment may be longer, what is behind is not seen */
#define FIRST_NAMESPACE "pid:[4026531836]" /* PROC_PID_INIT_INO of Linux */
#define ENTRIES_MAX 16384                  /* of a folder that is searched */
#define PARENTS_MAX 8                      /* that are asked what a worker does */

struct kept {
    int32_t pid;
    int64_t start_ticks, found_ns, keep_ns;
    char name[64]; /* of the program: another one after an exec */
    struct hec_tenant tenant;
    struct hec_cgroup cgroup;
    bool partial;                     /* read in the middle of an exec: nothing was there */
    bool unnamed_pod;                 /* only its uid is known: a holder's names are better */
    char container[64];               /* of an unnamed pod: its name, by what the kubelet mounted; "": not known */
    char pod_namespace[64], pod[254]; /* and its names, by who held the device when that was asked last */
    char line[HEC_IDENTITY_LINE];
};

struct hec_identity {
    int proc;
    struct hec_identity_options options;
    struct hec_pod_names *names;    /* NULL: there are none */
    const struct hec_job_map *jobs; /* NULL: there is none */
    bool slurm_proves;              /* a job of Slurm was seen in a cgroup: here all of them are */
    struct kept kept[KEPT_MAX];
    bool unreadable; /* the latest file */
    char text[TEXT_MAX];
};

int hec_identity_open(const struct hec_identity_options *options, struct hec_identity **out) {
    struct hec_identity *identity = calloc(1, sizeof *identity);
    if (!identity)
        return HEC_ERR_NOMEM;
    identity->options = *options;
    identity->proc = open(options->proc_path ? options->proc_path : "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (identity->proc < 0) {
        free(identity);
        return HEC_ERR_IO;
    }
    *out = identity;
    return HEC_OK;
}

void hec_identity_close(struct hec_identity *identity) {
    if (identity)
        close(identity->proc);
    free(identity);
}

void hec_identity_ask(struct hec_identity *identity, struct hec_pod_names *names) {
    identity->names = names;
}

void hec_identity_map(struct hec_identity *identity, const struct hec_job_map *jobs) {
    identity->jobs = jobs;
}

void hec_identity_trust(struct hec_identity *identity) {
    identity->options.device_prefix = NULL;
}

const char *hec_identity_proof(const char *proc_path) {
    char path[512], link[64] = "";
    snprintf(path, sizeof path, "%s/self/ns/pid", proc_path ? proc_path : "/proc");
    ssize_t length = readlink(path, link, sizeof link - 1);
    return length > 0 && strcmp(link, FIRST_NAMESPACE) == 0 ? NULL : hec_vendor_info(HEC_VENDOR_NVIDIA)->device_files;
}

/* Has it a file open whose name begins so? */
static bool holds_device(int process, const char *prefix) {
    int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    int left = ENTRIES_MAX;
    for (struct dirent *entry = readdir(folder); entry && !found && left-- > 0; entry = readdir(folder)) {
        char name[256];
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, name, sizeof name - 1);
        name[length > 0 ? length : 0] = '\0';
        found = strncmp(name, prefix, strlen(prefix)) == 0;
    }
    closedir(folder);
    return found;
}

/* Names of Kubernetes: lower case, digits, '-' and '.'; never empty. */
static bool take_name(char *out, size_t size, const char *text, size_t length) {
    if (length == 0 || length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) && text[i] != '-' && text[i] != '.')
            return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

/* POD_NAMESPACE_CONTAINER-ID.log */
static bool take_log_name(const char *name, const char *id, struct hec_tenant *out) {
    size_t length = strlen(name), tail = 1 + HEC_CONTAINER_ID + strlen(".log");
    if (length <= tail || name[length - tail] != '-' || memcmp(name + length - tail + 1, id, HEC_CONTAINER_ID) != 0 ||
        strcmp(name + length - 4, ".log") != 0)
        return false;
    const char *first = strchr(name, '_'), *second = first ? strchr(first + 1, '_') : NULL;
    struct hec_tenant found = {0};
    if (!second || !take_name(found.pod, sizeof found.pod, name, (size_t)(first - name)) ||
        !take_name(found.pod_namespace, sizeof found.pod_namespace, first + 1, (size_t)(second - first - 1)) ||
        !take_name(found.container, sizeof found.container, second + 1, (size_t)(name + length - tail - second - 1)))
        return false;
    *out = found;
    return true;
}

static bool find_container(const struct hec_identity *identity, const char *id, struct hec_tenant *out) {
    const char *path = identity->options.containers_path;
    DIR *folder = opendir(path ? path : "/var/log/containers");
    bool found = false;
    int left = ENTRIES_MAX;
    if (!folder)
        return false;
    for (struct dirent *entry = readdir(folder); entry && !found && left-- > 0; entry = readdir(folder))
        found = take_log_name(entry->d_name, id, out);
    closedir(folder);
    return found;
}

static void take_user(const struct hec_identity *identity, int64_t uid, char out[33]) {
    const char *path = identity->options.passwd_path;
    FILE *file = fopen(path ? path : "/etc/passwd", "re");
    snprintf(out, 33, "%lld", (long long)uid);
    if (!file)
        return;
    for (struct passwd *entry = fgetpwent(file); entry; entry = fgetpwent(file))
        if ((int64_t)entry->pw_uid == uid) {
            hec_text_clean(out, 33, entry->pw_name, strlen(entry->pw_name), true);
            break;
        }
    fclose(file);
}

/* All words, with spaces between them; of a kernel thread or one that emptied it, the name. */
static void take_line(char *arguments, const char *end, const char *name, char out[HEC_IDENTITY_LINE]) {
    for (char *at = arguments; at + 1 < end; at++)
        if (*at == '\0')
            *at = ' ';
    const char *shown = arguments < end && arguments[0] ? arguments : name;
    hec_text_clean(out, HEC_IDENTITY_LINE, shown, strlen(shown), true);
}

/* From now on variables say nothing here, and what they said is forgotten. */
static void take_proof(struct hec_identity *identity) {
    if (identity->slurm_proves)
        return;
    identity->slurm_proves = true;
    for (int i = 0; i < KEPT_MAX; i++)
        if (identity->kept[i].tenant.claimed)
            identity->kept[i].pid = 0;
}

/* The number that a variable holds, where it is one. */
static void take_number(const char *environment, const char *end, const char *name, char *out, size_t size) {
    size_t name_length = strlen(name);
    for (const char *at = environment; at < end; at += strlen(at) + 1) {
        if (strncmp(at, name, name_length) != 0 || at[name_length] != '=')
            continue;
        const char *number = at + name_length + 1;
        size_t length = strspn(number, "0123456789");
        if (length > 0 && length < size && number[length] == '\0')
            memcpy(out, number, length + 1);
        return;
    }
}

/* What a step's processes have in their environment. It names a job only where there are no cgroups of jobs; of the job that a cgroup
 * proves it says which task of an array it is. */
static void take_variables(const struct hec_identity *identity, const char *end, struct hec_tenant *tenant) {
    char job[21] = "", array[21] = "", task[21] = "";
    take_number(identity->text, end, "SLURM_JOB_ID", job, sizeof job);
    if (!job[0] || (tenant->job[0] && strcmp(tenant->job, job) != 0))
        return;
    tenant->claimed = !tenant->job[0];
    memcpy(tenant->job, job, sizeof job);
    if (tenant->claimed)
        take_number(identity->text, end, "SLURM_STEP_ID", tenant->step, sizeof tenant->step);
    take_number(identity->text, end, "SLURM_ARRAY_JOB_ID", array, sizeof array);
    take_number(identity->text, end, "SLURM_ARRAY_TASK_ID", task, sizeof task);
    if (array[0] && task[0])
        snprintf(tenant->array_task, sizeof tenant->array_task, "%s_%s", array, task);
}

/* The name of a container, by the folder of its own that the kubelet mounts into it: .../pods/UID/containers/NAME/ID. */
static void take_mounted(const struct hec_identity *identity, const char *uid, char *out, size_t size) {
    char folder[64];
    snprintf(folder, sizeof folder, "/pods/%s/containers/", uid);
    const char *at = strstr(identity->text, folder);
    const char *name = at ? at + strlen(folder) : "";
    const char *end = strchr(name, '/');
    if (end)
        take_name(out, size, name, (size_t)(end - name));
}

/* A file of the process into identity->text; its end, or text when there is none. */
static const char *read_text(struct hec_identity *identity, int process, const char *name) {
    ssize_t length = hec_proc_read(process, name, identity->text, sizeof identity->text);
    identity->unreadable = length < 0;
    if (length < 0)
        identity->text[0] = '\0';
    return identity->text + (length > 0 ? length : 0);
}

/* Of a worker: its parent's, or that one's, as far as they are the same user's. */
static void take_parents_command(struct hec_identity *identity, int32_t parent, int64_t uid,
                                 char out[HEC_COMMAND_SIZE]) {
    bool worker = true;
    for (int up = 0; worker && parent > 1 && up < PARENTS_MAX; up++) {
        char path[16];
        struct hec_proc_stat stat;
        snprintf(path, sizeof path, "%d", parent);
        int process = openat(identity->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (process < 0)
            return;
        read_text(identity, process, "status");
        bool same = hec_proc_parse_field(identity->text, "Uid:") == uid;
        read_text(identity, process, "stat");
        if (same && hec_proc_parse_stat(identity->text, &stat)) {
            const char *end = read_text(identity, process, "cmdline");
            worker = hec_command_is_worker(identity->text, end);
            parent = stat.parent;
            if (!worker && end > identity->text)
                hec_command_short(identity->text, end, stat.name, out);
        } else {
            worker = false;
        }
        close(process);
    }
}

static bool find(struct hec_identity *identity, int process, const struct hec_proc_stat *stat, struct kept *kept) {
    struct hec_tenant *tenant = &kept->tenant;
    struct hec_cgroup *cgroup = &kept->cgroup;
    bool each = identity->options.processes;
    if (identity->options.device_prefix && !holds_device(process, identity->options.device_prefix))
        return false;
    if (read_text(identity, process, "cgroup") == identity->text)
        return false;
    hec_cgroup_parse(identity->text, cgroup);
    if (cgroup->pod_uid[0]) {
        kept->unnamed_pod = !cgroup->container[0] || !find_container(identity, cgroup->container, tenant);
        if (kept->unnamed_pod) {
            read_text(identity, process, "mountinfo");
            take_mounted(identity, cgroup->pod_uid, kept->container, sizeof kept->container);
            kept->unnamed_pod = !hec_pod_names_find(identity->names, cgroup->pod_uid, tenant);
            if (kept->unnamed_pod)
                memcpy(tenant->pod, cgroup->pod_uid, sizeof cgroup->pod_uid);
            if (kept->container[0])
                memcpy(tenant->container, kept->container, sizeof kept->container);
            else
                snprintf(tenant->container, sizeof tenant->container, "%.12s", cgroup->container);
        }
        if (!each)
            return true;
    }
    read_text(identity, process, "status");
    int64_t uid = hec_proc_parse_field(identity->text, "Uid:");
    if (uid < 0)
        return false;
    take_user(identity, uid, tenant->user);
    memcpy(tenant->job, cgroup->job, sizeof cgroup->job);
    memcpy(tenant->step, cgroup->step, sizeof cgroup->step);
    if (cgroup->job[0])
        take_proof(identity);
    if (!cgroup->pod_uid[0] && (cgroup->job[0] || !identity->slurm_proves)) {
        const char *end = read_text(identity, process, "environ");
        kept->partial = end == identity->text && !identity->unreadable;
        take_variables(identity, end, tenant);
    }
    if (tenant->job[0] && !each)
        return true;
    if (!tenant->job[0] && !cgroup->pod_uid[0])
        snprintf(tenant->container, sizeof tenant->container, "%.12s", cgroup->container); /* as `docker ps` shows it */
    const char *end = read_text(identity, process, "cmdline");
    bool worker = hec_command_is_worker(identity->text, end);
    hec_command_short(identity->text, end, stat->name, tenant->command);
    if (each)
        take_line(identity->text, end, stat->name, kept->line);
    if (worker)
        take_parents_command(identity, stat->parent, uid, tenant->command);
    return true;
}

/* What was there before stays where an exec is under way. same: it is of this process. */
static bool find_again(struct hec_identity *identity, int process, const struct hec_proc_stat *stat, bool same,
                       int64_t now_ns, struct kept *kept) {
    struct kept fresh = {.pid = stat->pid, .start_ticks = stat->start_ticks, .found_ns = now_ns};
    int64_t longer_ns = same ? 2 * kept->keep_ns : KEPT_FIRST_NS;
    snprintf(fresh.name, sizeof fresh.name, "%s", stat->name);
    if (!find(identity, process, stat, &fresh)) {
        kept->pid = 0;
        return false;
    }
    fresh.keep_ns = fresh.partial ? 0 : longer_ns < KEPT_FIRST_NS ? KEPT_FIRST_NS : longer_ns;
    fresh.keep_ns = fresh.keep_ns < KEPT_NS ? fresh.keep_ns : KEPT_NS;
    bool moved = strcmp(fresh.cgroup.job, kept->cgroup.job) != 0 || strcmp(fresh.cgroup.step, kept->cgroup.step) != 0;
    if (!same || !fresh.partial || moved)
        *kept = fresh;
    return true;
}

/* What is kept of the process, found anew when it is another one or old; NULL: it cannot be seen. */
static struct kept *look_up(struct hec_identity *identity, int32_t pid, int64_t now_ns) {
    char path[16];
    struct hec_proc_stat stat;
    struct kept *kept = &identity->kept[(uint32_t)pid % KEPT_MAX];
    snprintf(path, sizeof path, "%d", pid);
    int process = pid > 0 ? openat(identity->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (process < 0) /* it has ended: nobody else has its number, and its last joules are still its own */
        return pid > 0 && errno == ENOENT && kept->pid == pid && now_ns - kept->found_ns < 2 * KEPT_NS ? kept : NULL;
    read_text(identity, process, "stat");
    bool known = hec_proc_parse_stat(identity->text, &stat);
    bool same = known && kept->pid == pid && kept->start_ticks == stat.start_ticks;
    bool good = same && strcmp(kept->name, stat.name) == 0 && now_ns - kept->found_ns < kept->keep_ns;
    if (known && !good)
        good = find_again(identity, process, &stat, same, now_ns, kept);
    close(process);
    return good ? kept : NULL;
}

/* The names of its pod by another process of it, whose device is held by one pod. */
static bool know_pod(const struct hec_identity *identity, const struct kept *of, struct hec_tenant *out) {
    for (int i = 0; i < KEPT_MAX; i++) {
        const struct kept *kept = &identity->kept[i];
        if (kept->pid == 0 || !kept->pod[0] || strcmp(kept->cgroup.pod_uid, of->cgroup.pod_uid) != 0)
            continue;
        *out = of->tenant;
        memcpy(out->pod_namespace, kept->pod_namespace, sizeof out->pod_namespace);
        memcpy(out->pod, kept->pod, sizeof out->pod);
        return true;
    }
    return false;
}

/* The holder that may be the process' own; NULL: none is, or several may be. */
static const struct hec_tenant *holder_of(const struct kept *kept, const struct hec_tenant *const *holders,
                                          size_t count) {
    const struct hec_tenant *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (kept && kept->container[0] && strcmp(kept->container, holders[i]->container) != 0)
            continue;
        if (found)
            return NULL;
        found = holders[i];
    }
    return found;
}

void hec_identity_of(struct hec_identity *identity, int32_t pid, const struct hec_tenant *const *holders, size_t count,
                     int64_t now_ns, struct hec_tenant *out) {
    struct kept *kept = look_up(identity, pid, now_ns);
    struct hec_tenant *known = kept ? &kept->tenant : NULL;
    if (known && identity->jobs && known->job[0] && !known->claimed && !known->array_task[0])
        hec_job_map_task(identity->jobs, known);
    bool unnamed = !kept || kept->unnamed_pod;
    const struct hec_tenant *holder = unnamed ? holder_of(kept, holders, count) : NULL;
    if (kept && unnamed && count > 0) {
        snprintf(kept->pod_namespace, sizeof kept->pod_namespace, "%s", holder ? holder->pod_namespace : "");
        snprintf(kept->pod, sizeof kept->pod, "%s", holder ? holder->pod : "");
    }
    if (holder)
        *out = *holder;
    else if (kept && !(unnamed && count == 0 && know_pod(identity, kept, out)))
        *out = kept->tenant;
    else if (!kept)
        *out = (struct hec_tenant){.user = "(unknown)"};
    if (!identity->options.processes)
        return;
    out->pid = pid;
    if (kept) {
        memcpy(out->user, kept->tenant.user, sizeof out->user);
        memcpy(out->command, kept->tenant.command, sizeof out->command);
    }
}

const char *hec_identity_line(const struct hec_identity *identity, int32_t pid) {
    const struct kept *kept = &identity->kept[(uint32_t)pid % KEPT_MAX];
    return kept->pid == pid ? kept->line : "";
}
