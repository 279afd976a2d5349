#include "agent/job_map.h"

#include "base/own.h"
#include "base/text.h"
#include "observe/procfs/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 4096
#define ENTRIES_MAX 1024

/* DEVICE or DEVICE.INSTANCE */
static bool parse_name(const char *name, int *device, int *instance) {
    char rest;
    *instance = -1;
    if (strspn(name, "0123456789.") != strlen(name) || strlen(name) > 7)
        return false;
    return sscanf(name, "%d.%d%c", device, instance, &rest) == 2 || sscanf(name, "%d%c", device, &rest) == 1;
}

/* JOB_TASK */
static bool is_task(const char *text) {
    size_t job = strspn(text, "0123456789"), task = text[job] == '_' ? strspn(text + job + 1, "0123456789") : 0;
    return job > 0 && task > 0 && text[job + 1 + task] == '\0';
}

static void add_line(struct hec_job_map *map, int device, int instance, char *line) {
    char *rest, *job = strtok_r(line, " \t\r", &rest), *user = job ? strtok_r(NULL, " \t\r", &rest) : NULL,
                *task = user ? strtok_r(NULL, " \t\r", &rest) : NULL;
    if (!job || strcmp(job, "0") == 0)
        return;
    if (map->count == HEC_JOB_MAP_MAX) {
        map->left_out++;
        return;
    }
    struct hec_tenant *holder = &map->rows[map->count].holder;
    *holder = (struct hec_tenant){0};
    hec_text_clean(holder->job, sizeof holder->job, job, strlen(job), true);
    if (user)
        hec_text_clean(holder->user, sizeof holder->user, user, strlen(user), true);
    if (task && is_task(task) && strlen(task) < sizeof holder->array_task)
        strcpy(holder->array_task, task);
    map->rows[map->count].device = device;
    map->rows[map->count++].instance = instance;
}

static void read_file(struct hec_job_map *map, int folder, const char *name, int device, int instance) {
    char text[FILE_MAX], *rest = text;
    struct stat info;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && hec_own_file(fd, name, geteuid(), NULL) == HEC_OK;
    if (!good)
        map->left_out++;
    ssize_t length = good ? hec_proc_reread(fd, text, sizeof text) : -1;
    close(fd);
    while (length > 0 && rest)
        add_line(map, device, instance, strsep(&rest, "\n"));
}

int hec_job_map_poll(struct hec_job_map *map, int64_t now_ns, struct hec_why *why) {
    if (!map->folder || now_ns < map->due_ns)
        return HEC_OK;
    map->due_ns = now_ns + HEC_JOB_MAP_EVERY_NS;
    map->count = 0;
    map->left_out = 0;
    DIR *folder = opendir(map->folder);
    if (!folder)
        return hec_fail(why, hec_err_from_errno(errno), "%s: %s", map->folder, strerror(errno));
    int left = ENTRIES_MAX, device, instance;
    for (struct dirent *entry = readdir(folder); entry && left-- > 0; entry = readdir(folder))
        if (parse_name(entry->d_name, &device, &instance))
            read_file(map, dirfd(folder), entry->d_name, device, instance);
    closedir(folder);
    return HEC_OK;
}

size_t hec_job_map_find(const struct hec_job_map *map, int device, int instance, const struct hec_tenant **out,
                        size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < map->count; i++) {
        int of = map->rows[i].instance;
        if (map->rows[i].device != device || (instance >= 0 && of >= 0 && of != instance))
            continue;
        const struct hec_tenant *holder = &map->rows[i].holder;
        bool known = false;
        for (size_t k = 0; k < count && k < most; k++)
            known |= strcmp(out[k]->job, holder->job) == 0;
        if (!known && count < most)
            out[count] = holder;
        count += !known;
    }
    return count;
}

void hec_job_map_task(const struct hec_job_map *map, struct hec_tenant *tenant) {
    for (size_t i = 0; i < map->count; i++) {
        const struct hec_tenant *holder = &map->rows[i].holder;
        if (strcmp(holder->job, tenant->job) == 0)
            memcpy(tenant->array_task, holder->array_task, sizeof tenant->array_task);
    }
}
