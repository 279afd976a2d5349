/* Memory that several processes map: a memfd of the process that made it, sealed, so that none of them can cut it off under
 * the others (whose next access would be SIGBUS). It has no name in any folder and goes with the last that has it. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct sim_file {
    int fd;
    void *memory;
    size_t size;
    char path[256]; /* by which others open it, as long as its maker lives: "/proc/PID/fd/N" */
};

/* New memory, zeros, allocated in full; for processes of this user only. */
int sim_file_create(size_t size, struct sim_file *file, struct hec_why *why);

/* HEC_ERR_NOTFOUND, PERMISSION, or CORRUPT when it is not such memory of at least that size. */
int sim_file_open(const char *path, size_t minimum_size, struct sim_file *file, struct hec_why *why);

void sim_file_close(struct sim_file *file);
