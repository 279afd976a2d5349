/* Pythons that keep HEC's hooks out: `python -I` and `python -E` read no PYTHONPATH, and nothing else shows it. */
#ifndef HEC_LAUNCH_PYTHON_WATCH_H
#define HEC_LAUNCH_PYTHON_WATCH_H

#include "model/run.h"

#include <stddef.h>
#include <sys/types.h>

#define HEC_PYTHON_WATCH_MAX 16 /* processes that get a note; ranks of one job have one reason */

struct hec_python_watch {
    const struct hec_sink *sink; /* NULL: the hooks are off, no notes */
    pid_t seen[HEC_PYTHON_WATCH_MAX];
    int seen_count;
};

/* The letter of the option that makes a Python read no PYTHONPATH, 'I' or 'E'; 0: none, or no Python. words: its command
 * line as in /proc/PID/cmdline, each word ended by a NUL. */
char hec_python_isolated(const char *words, size_t length);

/* The process uses CUDA: a NOTE where its hooks are kept out, once a process. Called from the trace's thread. */
void hec_python_watch_tracer(struct hec_python_watch *watch, const struct hec_tracer *tracer);

#endif
