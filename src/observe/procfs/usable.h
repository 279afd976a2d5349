/* How many of the machine's cores a command started from here may use. */
#pragma once

/* Cores that the CPU quotas of this process's control groups (cgroup v2: cpu.max, its own and those above it) leave;
 * INFINITY: no quota, or none that can be read. proc: /proc, open; root: path before /sys/fs/cgroup, "" as a rule. */
double hec_cores_quota(int proc, const char *root);

/* What the affinity mask and the quotas leave, at least 1, a part of a core rounded up. */
int hec_cores_usable(void);
