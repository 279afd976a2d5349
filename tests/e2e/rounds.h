/* What the programs share that kill others at random moments: kill9, guard9, trials9. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t state = 1;

static inline uint64_t random_below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static inline void pause_us(uint64_t us) {
    nanosleep(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000}, NULL);
}

/* In a child: a process of the round, and the user's. */
static inline void join_round(const char *marker, uid_t user) {
    putenv(strdup(marker));
    if (user && (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0))
        _exit(101);
}

static inline ssize_t read_of_process(const char *process, const char *name, char *text, size_t size) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/%s", process, name);
    int fd = open(path, O_RDONLY);
    ssize_t length = fd < 0 ? 0 : read(fd, text, size);
    if (fd >= 0)
        close(fd);
    return length;
}

/* A process of the round, of any name (NULL) or of that one; 0: there is none (yet, or any more). */
static inline pid_t process_of(const char *marker, const char *name) {
    static char text[1 << 20];
    DIR *folder = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        const char *process = entry->d_name;
        if (process[0] < '1' || process[0] > '9')
            continue;
        ssize_t length = name ? read_of_process(process, "comm", text, sizeof text) : 0;
        if (name && (length != (ssize_t)strlen(name) + 1 || memcmp(text, name, strlen(name)) != 0))
            continue;
        length = read_of_process(process, "environ", text, sizeof text);
        if (length == 0) /* of the program before, where it began another one between the opening and the reading */
            length = read_of_process(process, "environ", text, sizeof text);
        if (length > 0 && memmem(text, (size_t)length, marker, strlen(marker)))
            found = atoi(process);
    }
    if (folder)
        closedir(folder);
    return found;
}
