#include "launch/placement.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES_MAX ((int)(8 * sizeof(unsigned long)))

bool hec_placement_take(const struct hec_placement *placement) {
    if (sched_setaffinity(0, sizeof placement->cpus, &placement->cpus) != 0)
        return false;
    if (placement->node < 0 || placement->node >= NODES_MAX)
        return true;
    unsigned long nodes = 1ul << placement->node;
    return syscall(SYS_set_mempolicy, MPOL_PREFERRED, &nodes, (unsigned long)NODES_MAX) == 0;
}
