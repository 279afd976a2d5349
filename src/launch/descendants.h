/* The processes below one, or those that bear a mark, killed until there are none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Those of this process, which has to be a subreaper: daemons among them come back to it. reap: wait for those that have ended.
 * False: some could not be killed in 30 s, such as those that wait for a device. */
bool hec_descendants_kill(bool reap);

/* Processes of this user whose environment has NAME=value and for which `ours` holds. Returns how many were killed. */
int hec_marked_kill(const char *name, bool (*ours)(const char *value));

/* When it was started, in clock ticks since boot; 0: there is no such process. */
unsigned long long hec_process_start(pid_t pid);
