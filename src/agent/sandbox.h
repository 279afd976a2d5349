/* What the agent gives up before it serves anybody: rights of root, new programs, writing anything but its state. */
#ifndef HEC_AGENT_SANDBOX_H
#define HEC_AGENT_SANDBOX_H

#include "base/error.h"

#include <stdbool.h>

struct hec_sandbox_options {
    const char *user;     /* become this user; NULL: stay who it is */
    bool may_start;       /* it may start programs: its own windows (jobs) */
    bool others_may_look; /* at its /proc: those who share its simulated machine */
};

/* For this thread and those that it starts: call it before there are others, and when everything that it writes is open. */
int hec_sandbox_enter(const struct hec_sandbox_options *options, struct hec_why *why);

#endif
