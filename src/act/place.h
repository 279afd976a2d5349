/* Where a command runs best: beside its GPUs. */
#ifndef HEC_ACT_PLACE_H
#define HEC_ACT_PLACE_H

#include "base/error.h"
#include "launch/environ.h"
#include "launch/placement.h"

#define HEC_PLACE_TEXT 160

/* CPUs and memory of the NUMA node of the GPUs that the command sees, and that in words. HEC_ERR_UNSUPPORTED: one node, GPUs at
 * several nodes, none, or none of its CPUs is ours. sysfs: of another machine, for tests; NULL: of this one. */
int hec_place_beside_devices(const struct hec_environ *environment, const char *sysfs, struct hec_placement *out,
                             char what[HEC_PLACE_TEXT], struct hec_why *why);

#endif
