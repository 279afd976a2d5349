/* CPUs and memory for a command: what its process begins with, and its descendants inherit. */
#ifndef HEC_LAUNCH_PLACEMENT_H
#define HEC_LAUNCH_PLACEMENT_H

#include <sched.h>
#include <stdbool.h>

struct hec_placement {
    cpu_set_t cpus;
    int node; /* NUMA node from which memory is taken while it has any; -1: as it is */
};

/* Of the calling process. false, with errno: it stays as it was. Async-signal-safe. */
bool hec_placement_take(const struct hec_placement *placement);

#endif
