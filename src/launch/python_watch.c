#include "launch/python_watch.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_LINE_MAX 4096 /* options come first */

/* 'c', 'm': what follows is the program's; 'W', 'X': an argument follows, in the same word or in the next. */
static char isolated_by(const char *letters, bool *ends, bool *takes_next) {
    for (const char *c = letters; *c; c++) {
        if (*c == 'I' || *c == 'E')
            return *c;
        *ends = *c == 'c' || *c == 'm';
        *takes_next = (*c == 'W' || *c == 'X') && !c[1];
        if (strchr("cmWX", *c))
            return 0;
    }
    return 0;
}

char hec_python_isolated(const char *words, size_t length) {
    const char *end = words + length;
    const char *word = words, *next = memchr(words, '\0', length);
    if (!next)
        return 0;
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    if (strncmp(name, "python", 6) != 0 && strncmp(name, "pypy", 4) != 0)
        return 0;
    bool ends = false, skip = false;
    while (!ends && (word = next + 1) < end && (next = memchr(word, '\0', (size_t)(end - word)))) {
        if (skip) {
            skip = false;
            continue;
        }
        if (word[0] != '-' || !word[1] || strcmp(word, "--") == 0)
            return 0;
        if (word[1] == '-') {
            skip = strcmp(word, "--check-hash-based-pycs") == 0;
            continue;
        }
        char letter = isolated_by(word + 1, &ends, &skip);
        if (letter)
            return letter;
    }
    return 0;
}

static bool is_new(struct hec_python_watch *watch, pid_t pid) {
    for (int i = 0; i < watch->seen_count; i++)
        if (watch->seen[i] == pid)
            return false;
    if (watch->seen_count == HEC_PYTHON_WATCH_MAX)
        return false;
    watch->seen[watch->seen_count++] = pid;
    return true;
}

void hec_python_watch_tracer(struct hec_python_watch *watch, const struct hec_tracer *tracer) {
    char path[32], words[COMMAND_LINE_MAX], text[200];
    if (!watch->sink || tracer->driver_version <= 0 || !is_new(watch, tracer->pid))
        return;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)tracer->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, words, sizeof words);
    if (fd >= 0)
        close(fd);
    char letter = length > 0 ? hec_python_isolated(words, (size_t)length) : 0;
    if (!letter)
        return;
    snprintf(text, sizeof text,
             "process %d is a python -%c, which reads no PYTHONPATH: its steps, losses and source lines are not found",
             (int)tracer->pid, letter);
    watch->sink->event(watch->sink->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, tracer->first_ns, text);
}
