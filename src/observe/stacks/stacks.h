/* Stacks of Python programs, read from outside 100 times a second: what the collector and its tests agree on.
 *
 * What it gives the sink: activities STACK of every thread that runs Python, with frames, and facts:
 * - "stacks.outside": processes, samples, and what was dropped because it was torn
 * - event NOTE for a process whose stacks cannot be read from here
 * Who asks (marks) finds in the table of processes (observe/processes.h) which are read from outside. */
#pragma once

#include "base/clock.h"

#define HEC_STACKS_PERIOD_NS (10 * HEC_NS_PER_MS)
#define HEC_STACKS_COST_MAX 0.003 /* of a core: where reading takes longer, it is done less often */
#define HEC_STACKS_WAKE_NS 15000  /* what waking up for it takes beside the reading: 5 to 19 us on a virtual machine */
#define HEC_STACKS_THREADS 8      /* of one process that are read at once, at most */
