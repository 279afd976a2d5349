/* What the agent gives up before it serves anybody: rights of root, new programs, writing anything but its state. */
#ifndef HEC_AGENT_SANDBOX_H
#define HEC_AGENT_SANDBOX_H

#include "base/error.h"

#include <stdbool.h>

struct hec_sandbox_options {
    const char *user;     /* become this user; NULL: stay who it is */
    int writable[4];      /* folders in which it may write (descriptors, -1: none), besides /dev */
    bool may_start;       /* it may start programs: its own windows (jobs) */
    bool others_may_look; /* at its /proc: those who share its simulated machine */
};

/* For this thread and those that it starts: call it before there are others. What the kernel does not have is left out, with a
 * note in the log; what it refuses is an error with a sentence. */
int hec_sandbox_enter(const struct hec_sandbox_options *options, struct hec_why *why);

#endif
