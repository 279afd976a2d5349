/* Tasks that share nothing that one of them writes. */
#ifndef HEC_DIAGNOSE_TASK_H
#define HEC_DIAGNOSE_TASK_H

#include <stddef.h>

struct hec_task {
    void (*run)(void *context);
    void *context;
};

/* Runs tasks, at once if it likes, and returns after all; a task may call it. NULL: one after the other. */
typedef void (*hec_together)(const struct hec_task *tasks, size_t count);

static inline void hec_tasks_run(hec_together together, const struct hec_task *tasks, size_t count) {
    if (together)
        together(tasks, count);
    for (size_t i = 0; i < count && !together; i++)
        tasks[i].run(tasks[i].context);
}

#endif
