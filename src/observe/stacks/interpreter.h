/* Whether a process has a CPython interpreter, and where. */
#pragma once

#include "base/error.h"
#include "observe/stacks/walk.h"

#include <sys/types.h>

struct hec_python_process {
    pid_t pid;
    struct hec_python python;
    struct hec_memory memory; /* of it */
    int32_t inner_pid;        /* as the process sees itself: in a container another one */
    bool uses_device;         /* the driver of a GPU is loaded */
    uint64_t stack; /* where its stack begins: drawn by each exec, so that a forked one has its parent's; 0 unknown */
};

/* HEC_ERR_NOTFOUND: no interpreter, or not yet (uses_device is right all the same); HEC_ERR_PERMISSION: its memory may not be read;
 * HEC_ERR_UNSUPPORTED: a Python that is not known; HEC_ERR_LOST: there is no such process. With a sentence. */
int hec_python_process_open(pid_t pid, struct hec_python_process *process, struct hec_why *why);

/* Whether it has loaded the driver of a GPU: 2 ms where 600 files are mapped. */
bool hec_python_process_uses_device(pid_t pid);
/* Of its address space, which another library makes larger; -1: not known. */
int64_t hec_python_process_pages(pid_t pid);

/* The number that the system has for a thread; 0: not known. main: of the main thread. *id_at: where a thread's number lies from
 * its pthread_self() on, -1: not yet looked for (for versions that do not say it). */
pid_t hec_python_process_tid(const struct hec_python_process *process, const struct hec_python_thread *thread,
                             const struct hec_python_thread *main, int *id_at);
bool hec_python_is_main(const struct hec_python_process *process, const struct hec_python_thread *thread);
