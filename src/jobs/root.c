#include "jobs/parts.h"
#include "observe/procfs/file.h"

#include <stdio.h>

#define ANCESTORS_MAX 64

/* 0: not to be seen. */
static pid_t parent_of(int proc, pid_t pid) {
    char path[32], text[2048];
    struct hec_proc_stat stat;
    snprintf(path, sizeof path, "%d/stat", (int)pid);
    return hec_proc_read(proc, path, text, sizeof text) > 0 && hec_proc_parse_stat(text, &stat) ? stat.parent : 0;
}

/* Those that are the user's own, up to the first that is not. */
static int ancestors(int proc, const struct hec_job_process *of, pid_t list[ANCESTORS_MAX]) {
    int count = 0;
    for (pid_t pid = of->pid; pid > 1 && count < ANCESTORS_MAX && hec_proc_is_users(proc, pid, of->uid);
         pid = parent_of(proc, pid))
        list[count++] = pid;
    return count;
}

static int index_of(const pid_t *list, int count, pid_t pid) {
    int at = 0;
    while (at < count && list[at] != pid)
        at++;
    return at;
}

pid_t hec_jobs_root(int proc, const struct hec_job_process *of, int count, pid_t agent) {
    pid_t common[ANCESTORS_MAX], other[ANCESTORS_MAX];
    int found = count > 0 ? ancestors(proc, &of[0], common) : 0, from = 0;
    for (int i = 1; i < count && from < found; i++) {
        if (of[i].pid == of[i - 1].pid)
            continue;
        int others = ancestors(proc, &of[i], other);
        while (from < found && index_of(other, others, common[from]) == others)
            from++;
    }
    for (pid_t pid = from < found ? agent : 0; pid > 1; pid = parent_of(proc, pid))
        if (pid == common[from])
            return 0;
    return from < found ? common[from] : 0;
}
