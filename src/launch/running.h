/* A window of a job that runs already: what a run of it would have recorded in that time, or what can be seen of a process that
 * reports nothing. Neither is touched. */
#pragma once

#include "observe/collector.h"
#include "store/image.h"

#include <signal.h>
#include <stdbool.h>

struct hec_running_options {
    const struct hec_observe_ring *rings; /* of its processes */
    int ring_count;
    pid_t root;         /* the process that stands above the others; 0: not known */
    const uid_t *owner; /* only processes of this user are listed; NULL: of any. Outlives the call */
    bool attached;      /* to root, which hands over no rings; pid_fd: of it */
    int pid_fd;
    const volatile sig_atomic_t *stop; /* ends it when it is not 0; NULL: nothing does */
    double seconds;
    const char *job;                   /* its id: what the run is called */
    const char *simulated, *nvml_path; /* NULL: real */
};

/* Returns when the time is up, or every process that handed over a ring has ended: the run file, in memory (64 MB at most:
 * what comes beyond is dropped and counted), and how long it observed. image->bytes is to be freed. A lane that a driver holds up
 * may still run then: leave by _exit. */
int hec_running_record(const struct hec_running_options *options, struct hec_image *image, double *seconds,
                       struct hec_why *why);
