/* The observed command: started, signalled and waited for as if HEC were not there. */
#pragma once

#include "base/error.h"
#include "launch/layer.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* CPUs and memory for a command: what its process begins with, and its descendants inherit. */
struct hec_placement {
    cpu_set_t cpus;
    int node; /* NUMA node from which memory is taken while it has any; -1: as it is */
};

struct hec_child {
    pid_t pid;
    int64_t start_ns, end_ns; /* monotonic: just before the fork, just after the end was seen */
    int exit_code;            /* as a shell gives it: 128+n when signal n ended it */
    int signal;               /* that signal, or 0 */
    sigset_t mask;            /* the signal mask that hec was started with */
    struct sigaction chld, pipe, xfsz;
    const struct hec_layer *layer;            /* the command runs in it; NULL: none */
    const char *also[HEC_LAYER_ALSO_MAX + 1]; /* what is not covered by the layer; NULL-terminated */
    const struct hec_placement *placement;    /* it begins there, where the system allows it; NULL: where hec is */
    bool tied;                                /* it is killed where hec is */
    int inherited;        /* a descriptor that it keeps, whose path in /proc it writes into inherited_path */
    char *inherited_path; /* in its environment; NULL: there is none */
    int output;           /* what it prints goes there, and it reads nothing; 0: as hec's */
    int asked;            /* the last signal that was to end hec, or the command through it; 0: none */
    int was_reaper;
    void (*stopped)(void *context, bool stopped); /* job control; may be NULL */
    void *context;
};

/* When hec starts: SIGXFSZ is ignored from then on, and with `pipe` SIGPIPE until the first command has ended, so that a message that
 * cannot be written does not end hec. The command gets both as hec found them. Without `pipe` hec ends as usual in `hec ... | head`. */
void hec_child_shield(bool pipe);
/* Both as hec found them: in a process that becomes the command. */
void hec_child_unshield(void);

/* In a process that runs one command after another: what is to end hec (SIGINT, SIGTERM, SIGHUP, SIGQUIT) waits from now on, also between
 * two commands, until a command that is waited for takes it, or hec_child_held. Commands have the mask that hec was started with. Call
 * before any thread starts. */
void hec_child_hold(void);
/* One that has come; 0: none, or they are not held. */
int hec_child_held(void);

/* Block and take over signals. Call before any thread starts. */
void hec_child_prepare(struct hec_child *child);
/* Become the reaper of orphaned descendants: of those that come from now on. */
void hec_child_adopt(void);

/* Undo both. What is still pending was meant for the command, and is dropped, but for what is held. */
void hec_child_release(const struct hec_child *child);

/* Can name be run at all? Checked before anything is written. As hec_child_start on failure. */
int hec_child_check(struct hec_child *child, const char *name, struct hec_why *why);

/* Start argv (PATH is searched) with the environment envp. What was to end hec since hec_child_prepare reaches it. On failure the
 * sentence names the command, and exit_code is 127 (not found) or 126 (cannot be run). */
int hec_child_start(struct hec_child *child, char **argv, char **envp, struct hec_why *why);

/* Pass signals on and wait until the command has ended; with all, until its last descendant has. */
void hec_child_wait(struct hec_child *child, bool all);

/* End this process as a child did: by the same signal, so that a shell ends its loop at Ctrl-C; else, or where the signal cannot end
 * it, with exit_code. Flush before. */
_Noreturn void hec_child_end_as(int signal, int exit_code);
