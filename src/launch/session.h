/* A command under observation: started with what lets HEC see it, waited for, and its run file closed. `hec run` is one
 * session and a report; each trial of a comparison is one session, too. Nothing here prints a result or ends the process:
 * failures come back as an error and a sentence; warnings go to the log (base/log.h).
 *
 *     struct hec_session_options options = hec_session_defaults();
 *     options.command = argv;
 *     if (hec_session_start(&options, &session, &status, &why) == HEC_OK) {
 *         hec_session_wait(session, &result);
 *         ... result.exit_status, result.path, hec_session_open_run(session, ...) ...
 *         hec_session_close(session);
 *     }
 *
 * One session at a time in a process, from a thread that no other shares its signals with: from start to close it takes
 * the process's signals over and passes them on to the command, and every child of the process that ends meanwhile is reaped. */
#pragma once

#include "base/trace.h"
#include "launch/child.h"
#include "launch/layer.h"
#include "launch/orders.h"
#include "launch/run_file.h"
#include "launch/stopper.h"
#include "model/printed.h"
#include "model/run.h"
#include "store/reader.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HEC_SESSION_FACT 160

/* All texts must live until the session is closed. */
struct hec_session_options {
    char **command;           /* NULL-terminated; PATH is searched */
    char *const *environment; /* of the command, without what the session adds; NULL: this process's */
    const char *output;       /* path of the run file; NULL: one named after the command, in the current folder */
    bool overwrite;
    const char *simulated;     /* the simulated machine to run on, as --sim takes it; NULL: this one */
    enum hec_trace_mode trace; /* what is recorded of CUDA */
    double trace_memory_mb;    /* that tracing may take in each process */
    bool hooks;                /* the Python hooks */
    const char *levers;        /* what is changed of the command, for the record (act/apply.h); NULL: nothing */
    const char *const *facts;  /* key, text ... NULL: recorded as they are; NULL: none */
    const struct hec_placement *placement; /* of the command; NULL: this process's */
    const char *knobs;                     /* as hec_marks_knob_add makes it; NULL: none */
    const char *units; /* "NAME=N;NAME=N": they replace what the program marks under the same name; NULL: none */
    const struct hec_printed_unit *printed; /* units that the command prints; NULL: none */
    int printed_count;
    int64_t gpm_window_ns;     /* of the hardware counters; 0: as short as the CPU share allows */
    struct hec_orders *orders; /* opened for levers that are switched while the command runs; NULL: none are */
    int64_t energy_every_ns; /* for who ends blocks by the energy counters; 0: they are read as often as a run needs */
    struct hec_stop stop;    /* when to end the command; all 0: it ends by itself */
    bool wait_for_all;       /* until the last descendant has ended, not only the command */
    const struct hec_layer *layer; /* what the command writes goes there (launch/layer.h); NULL: none */
    int command_output; /* descriptor of a file for what the command prints; it reads nothing then. 0: as this process's */
    bool tied; /* the command is killed where this process is, and bears the supervisor's mark (launch/supervisor.h) */
    /* the sink that everything goes to, which passes it on to the run file's; NULL: that one itself */
    const struct hec_sink *(*through)(void *context, const struct hec_sink *to);
    void *through_context;
    /* what is known only now, when the command has ended: facts for the run file; NULL: nothing */
    void (*at_end)(void *context, const struct hec_sink *to, int64_t start_ns, int64_t end_ns);
    void *at_end_context;
    int64_t begin_ns; /* monotonic: when the caller began, for the cost of starting; 0: at hec_session_start */
};

/* Everything that has a default has it. */
struct hec_session_options hec_session_defaults(void);

struct hec_session;

/* The command runs when this returns HEC_OK. Whatever cannot be observed (no GPU, no tracer), it runs all the same and the
 * run file says why; what was asked for by name (an output file, a simulated machine) must be there. On failure nothing
 * runs and no run file is left, the sentence is set, and *exit_status is what to leave with: 127 where the command is not
 * found, 126 where it cannot be run, else hec_err_exit_status. */
int hec_session_start(const struct hec_session_options *options, struct hec_session **out, int *exit_status,
                      struct hec_why *why);

struct hec_session_result {
    int exit_status;          /* of the command, as a shell gives it: 128+N when signal N ended it */
    int signal;               /* that signal, or 0 */
    enum hec_stopped stopped; /* options->stop asked it to end */
    int asked;                /* the signal by which a user or a scheduler asked this process to end, or 0 */
    int64_t start_ns, end_ns; /* of the command, monotonic */
    bool readable;            /* the whole run can be read: hec_session_open_run */
    const char *path;         /* of the run file, as long as the session lives; "": it is kept nowhere */
    struct hec_run_file_note note;
};

/* Pass signals on until the command has ended, take the last readings, close the run file. Called once. */
void hec_session_wait(struct hec_session *session, struct hec_session_result *result);

/* Read the run back, also one that has no file: its facts, readings, events. After hec_session_wait, where the result is
 * readable; the reader is to be closed before the session. */
int hec_session_open_run(const struct hec_session *session, struct hec_reader **out, struct hec_why *why);

/* After hec_session_wait. Signals are as before hec_session_start. A driver that never answered may keep a thread. */
void hec_session_close(struct hec_session *session);

/* Pythons that keep HEC's hooks out at their start: `python -I` and `python -E` read no PYTHONPATH, others have another one. The
 * tracer has the hooks come when CUDA starts (tracer/python.c), which the hooks report. */
#define HEC_PYTHON_WATCH_MAX 16 /* processes that get a note; ranks of one job have one reason */

struct hec_python_watch {
    const struct hec_sink *sink; /* NULL: the hooks are off, no notes */
    const char *folder;          /* of the hooks, which PYTHONPATH begins with */
    pid_t seen[HEC_PYTHON_WATCH_MAX];
    int seen_count;
};

/* The letter of the option that makes a Python read no PYTHONPATH, 'I' or 'E'; 0: none, or no Python. words: its command
 * line as in /proc/PID/cmdline, each word ended by a NUL. */
char hec_python_isolated(const char *words, size_t length);

/* Whether the PYTHONPATH in an environment as of /proc/PID/environ has the folder of the hooks no more, though they are wanted. */
bool hec_python_replaced(const char *environment, size_t length, const char *folder);

/* The process uses CUDA: HOOKS_OUT where its hooks are kept out, once a process. Called from the trace's thread. */
void hec_python_watch_tracer(struct hec_python_watch *watch, const struct hec_tracer *tracer);
