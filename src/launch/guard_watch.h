/* The guard during one run: whether CUPTI is to stay out, and whether the command died with it attached. */
#ifndef HEC_LAUNCH_GUARD_WATCH_H
#define HEC_LAUNCH_GUARD_WATCH_H

#include "launch/child.h"
#include "launch/guard.h"
#include "model/run.h"

struct hec_guard_watch {
    char driver[48];
    char out[256];            /* the sentence that says why CUPTI stays out; "": it does not */
    bool traced;              /* some process was traced */
    bool attached;            /* CUPTI was attached to one: */
    struct hec_tracer tracer; /* the command's own process, else the last one */
    char program[64];         /* the name of its executable, "" unknown */
    pid_t root;               /* the command, 0: not known yet */
};

/* Decides from what was remembered. In auto, CUPTI stays out of what killed a program; a mode that was asked for by name
 * keeps it, with a warning. */
void hec_guard_watch_begin(struct hec_guard_watch *watch, int mode, bool simulated);

/* How a process was traced so far; from the trace's thread, not after its lane has stopped. */
void hec_guard_watch_tracer(void *watch, const struct hec_tracer *tracer);

/* The command has ended and `command` is its name: remembers a crash, and reports to the run the crash and a CUPTI that
 * stayed out. No failure of it reaches the run. */
void hec_guard_watch_end(const struct hec_guard_watch *watch, const struct hec_child *child, const char *command,
                         const struct hec_sink *sink);

#endif
