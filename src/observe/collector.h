/* The one interface of every source of measurements. A collector lives in one lane (a thread), so its
 * functions are never called concurrently; lanes are independent, so a driver that hangs stops only its own. */
#pragma once

#include "base/error.h"
#include "model/check.h"
#include "model/printed.h"
#include "model/run.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum hec_lane { HEC_LANE_HOST, HEC_LANE_GPU, HEC_LANE_TRACE, HEC_LANE_STACKS, HEC_LANE_COUNT };

struct hec_device_table;
struct hec_rounds;
struct hec_process_table;

/* A ring that somebody else keeps, to be read for a while. */
struct hec_observe_ring {
    int fd; /* the caller's */
    pid_t pid;
};

/* What the command prints (launch/printed.h). */
#define HEC_OBSERVE_PRINTED_MAX 2
struct hec_observe_printed {
    int fd;
    bool file; /* it is read from offset on; else a pipe with a copy of what was printed */
    off_t offset;
    int replaced, first; /* of a pipe: the descriptor that it took the place of, and what that was */
};

struct hec_observe_options {
    pid_t root;                          /* the command; 0 while it has not started */
    const uid_t *owner;                  /* only processes of this user are listed; NULL: of any */
    const char *nvml_path;               /* NULL: the system's libnvidia-ml.so.1 */
    const char *visible_devices;         /* CUDA_VISIBLE_DEVICES of the command; NULL when unset */
    const char *proc_path;               /* NULL: /proc */
    const char *powercap_path;           /* NULL: /sys/class/powercap */
    const char *mark_socket;             /* path on which the program's rings arrive; NULL: none */
    const char *trace_socket;            /* path on which the tracer's rings arrive; NULL: none */
    int trace_mode;                      /* as asked for: enum hec_trace_mode of base/trace.h */
    struct hec_device_table *devices;    /* of this run (observe/devices.h); set by the recorder, NULL without one */
    struct hec_process_table *processes; /* of this run (observe/processes.h); as devices */
    int64_t gpm_window_ns;               /* 0: as short as the CPU share allows */
    /* Of an observer that never ends: everything is read so often, all devices at once, and as cheaply as the figures of a
     * node need (no power history, no search for the counter's pace, nothing kept of processes that are gone). 0: as the
     * figures of one run need it */
    int64_t interval_ns;
    int64_t energy_every_ns; /* the energy counters are read so often; 0: as seldom as they are known well by */
    /* is shown every row about a traced process that goes to the sink, from the trace's thread; NULL: nobody */
    void (*tracer_seen)(void *context, const struct hec_tracer *tracer);
    void *tracer_context;
    struct hec_rounds *rounds; /* kept up by the recorder; NULL: nobody asks */
    /* is shown every step, marked or found (enum hec_step_source), from the marks' thread; NULL: nobody */
    void (*step_seen)(void *context, pid_t pid, int source);
    void *step_context;
    /* numbers in what the command prints */
    const struct hec_printed_unit *printed_units;
    int printed_unit_count;
    const struct hec_observe_printed *printed;
    int printed_count;
    /* instead of sockets: rings of a window (launch/running.h); the count is atomic: 0 until it begins, then wake the lanes */
    const struct hec_observe_ring *rings;
    int ring_count;
};

struct hec_collector {
    const char *name;
    enum hec_lane lane;
    /* Open the source. HEC_ERR_UNSUPPORTED / NOTFOUND / PERMISSION with a sentence when there is none here.
     * *options and *sink outlive the collector; options->root may be filled in after open. */
    int (*open)(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                struct hec_why *why);
    /* Do what is due at now_ns; return the monotonic time at which to be called next (INT64_MAX: never). */
    int64_t (*poll)(void *self, int64_t now_ns);
    /* The window ended at end_ns: take the last readings. Called once, after the last poll. */
    void (*finish)(void *self, int64_t end_ns);
    void (*close)(void *self);
    /* For `hec devices`: the GPUs that it observes, at most `room`. Their number, or the errors of open; NULL: no source of GPUs. */
    int (*devices)(const struct hec_observe_options *options, struct hec_device *out, int room, struct hec_why *why);
    /* For `hec doctor`: append what it can read here, what not, and why; NULL: nothing depends on the machine. */
    void (*check)(const struct hec_observe_options *options, struct hec_check_list *list);
};

#define HEC_COLLECTOR(source, ...) extern const struct hec_collector hec_collector_##source;
#include "observe/collectors.def"
#undef HEC_COLLECTOR

/* Who observes. */
enum hec_observer {
    HEC_OBSERVER_RUN,      /* of a command, with the tracer in it */
    HEC_OBSERVER_UNTRACED, /* of a command without it */
    HEC_OBSERVER_WINDOW,   /* of a job that reports to hec agent */
    HEC_OBSERVER_ATTACHED, /* of a process that runs already, by nothing but what can be seen of it from outside */
    HEC_OBSERVER_NODE,     /* hec agent */
    HEC_OBSERVER_SCREEN    /* hec top */
};

/* Its collectors; the last is NULL. */
const struct hec_collector *const *hec_collectors_of(enum hec_observer observer);
