#include "launch/descendants.h"

#include "base/clock.h"
#include "base/list.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUIET_SCANS 3
#define CHILDREN_READS 200
#define PATIENCE_NS (30 * HEC_NS_PER_S)

struct process {
    pid_t pid, parent;
    bool ended, below;
};

/* The text of a small file of /proc, cut off at size - 1 bytes. */
static ssize_t read_file(pid_t pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = 0;
    ssize_t got = 0;
    while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    text[length] = '\0';
    return got < 0 ? -1 : (ssize_t)length;
}

/* What follows the name in /proc/PID/stat, which may hold anything: " S 1 ..." */
static const char *after_name(char *text, pid_t pid, size_t size) {
    if (read_file(pid, "stat", text, size) <= 0)
        return NULL;
    const char *end = strrchr(text, ')');
    return end ? end + 1 : NULL;
}

unsigned long long hec_process_start(pid_t pid) {
    char text[1024];
    unsigned long long start = 0;
    const char *rest = after_name(text, pid, sizeof text);
    if (rest &&
        sscanf(rest, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start) != 1)
        start = 0;
    return start;
}

/* Every process; *list is malloc'ed. */
static size_t all(struct process **list) {
    size_t count = 0, capacity = 0;
    DIR *folder = opendir("/proc");
    *list = NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char text[1024], state;
        struct process process = {.pid = (pid_t)atoi(entry->d_name)};
        if (!isdigit((unsigned char)entry->d_name[0]) || !hec_list_room(*list, count, capacity, 256))
            continue;
        const char *rest = after_name(text, process.pid, sizeof text);
        if (!rest || sscanf(rest, " %c %d", &state, &process.parent) != 2)
            continue;
        process.ended = state == 'Z' || state == 'X';
        (*list)[count++] = process;
    }
    if (folder)
        closedir(folder);
    return count;
}

/* Process ids start again from the low ones: a child may come before its parent. */
static void mark_below(struct process *list, size_t count, pid_t root) {
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < count; i++) {
            bool below = list[i].parent == root;
            for (size_t p = 0; p < count && !below && !list[i].below; p++)
                below = list[p].below && list[p].pid == list[i].parent;
            if (below && !list[i].below)
                list[i].below = more = true;
        }
    }
}

static void nap(int turn) {
    nanosleep(&(struct timespec){.tv_nsec = (turn < 10 ? 1 : 20) * HEC_NS_PER_MS}, NULL);
}

/* Our own children, orphans that have become ours among them, as the kernel lists them: read and killed within microseconds, where on a
 * busy machine a scan of all processes takes longer than one lives that only forks. Whether there was any. */
static bool kill_children(void) {
    char name[32], text[4096], *end;
    bool any = false;
    snprintf(name, sizeof name, "task/%d/children", (int)getpid());
    if (read_file(getpid(), name, text, sizeof text) <= 0)
        return false;
    for (char *at = text; *at; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        any |= pid > 0 && kill(pid, SIGKILL) == 0;
    }
    return any;
}

/* A scan misses a process that is forked behind it by one that then ends: only no child at all, or several scans that find nobody, mean
 * that there is nobody. Children that took other rights stay, so having some means nothing. */
bool hec_descendants_kill(bool reap) {
    int64_t until_ns = hec_clock_mono_ns() + PATIENCE_NS;
    for (int turn = 0, quiet = 0;; turn++) {
        struct process *list;
        size_t count = all(&list), alive = 0;
        mark_below(list, count, getpid());
        for (size_t i = 0; i < count; i++)
            /* what took other rights (sudo) is not ours to kill, and must not be waited for */
            if (list[i].below && !list[i].ended && kill(list[i].pid, SIGKILL) == 0)
                alive++;
        free(list);
        pid_t reaped = 0;
        for (int i = 0; i < CHILDREN_READS && kill_children(); i++)
            while (reap && waitpid(-1, NULL, WNOHANG) > 0) {
            }
        while (reap && (reaped = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        quiet = alive ? 0 : quiet + 1;
        if (quiet == QUIET_SCANS || (quiet && reap && reaped < 0 && errno == ECHILD))
            return true;
        if (hec_clock_mono_ns() > until_ns)
            return false;
        nap(turn);
    }
}

/* Is it this user's, and does its environment have NAME=value with a value that is ours? */
static bool is_marked(pid_t pid, const char *name, bool (*ours)(const char *value), char *text, size_t size) {
    struct stat status;
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    if (stat(folder, &status) != 0 || status.st_uid != geteuid())
        return false;
    ssize_t length = read_file(pid, "environ", text, size);
    size_t name_length = strlen(name);
    for (char *at = text; length > 0 && at < text + length; at += strlen(at) + 1)
        if (strncmp(at, name, name_length) == 0 && at[name_length] == '=' && ours(at + name_length + 1))
            return true;
    return false;
}

int hec_marked_kill(const char *name, bool (*ours)(const char *value)) {
    const size_t size = (size_t)4 << 20; /* the kernel allows 6 MB of arguments and environment */
    char *text = malloc(size);
    int killed = 0;
    bool again = text != NULL;
    /* what a marked process starts meanwhile is marked, too */
    for (int turn = 0; again && turn < 100; turn++) {
        struct process *list;
        size_t count = all(&list);
        again = false;
        for (size_t i = 0; i < count; i++)
            if (!list[i].ended && list[i].pid != getpid() && is_marked(list[i].pid, name, ours, text, size) &&
                kill(list[i].pid, SIGKILL) == 0) {
                killed += turn == 0;
                again = true;
            }
        free(list);
        if (again)
            nap(turn);
    }
    free(text);
    return killed;
}
