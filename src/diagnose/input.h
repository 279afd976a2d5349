/* What a diagnosis is made from: functions that read a run, and facts of it that are no series. Plain data. */
#pragma once

#include "base/error.h"
#include "model/peaks.h"
#include "model/run.h"

#include <stddef.h>

/* ---- tasks that share nothing that one of them writes ---- */

struct hec_task {
    void (*run)(void *context);
    void *context;
};

/* Runs tasks, at once if it likes, and returns after all; a task may call it. NULL: one after the other. */
typedef void (*hec_together)(const struct hec_task *tasks, size_t count);

static inline void hec_tasks_run(hec_together together, const struct hec_task *tasks, size_t count) {
    if (together)
        together(tasks, count);
    for (size_t i = 0; i < count && !together; i++)
        tasks[i].run(tasks[i].context);
}

/* A lever that the command ran under, and whether it took effect, as it says itself. */
enum hec_attest {
    HEC_ATTEST_NOTHING, /* nothing in the program answered to it */
    HEC_ATTEST_SET,     /* its variables were set: only a comparison shows what that does */
    HEC_ATTEST_ALREADY, /* the program has it without the lever */
    HEC_ATTEST_ON,      /* it changed what the program uses */
    HEC_ATTEST_FAILED,
    HEC_ATTESTS
};
const char *hec_attest_name(enum hec_attest attest); /* "nothing": stable, in JSON */

struct hec_lever_summary {
    char name[72], value[24]; /* value "": it chose. A knob that was set so: "knob." and its name */
    enum hec_attest attest;
    char text[160]; /* what it saw; "": nothing more is known */
};

#define HEC_SUMMARY_LEVERS_MAX 24
#define HEC_KNOB_LEVER "knob." /* how the names of those begin that are knobs */

/* Parts of a step of training, of which the hooks tell the time that the program itself was in them. */
enum hec_step_part { HEC_STEP_FORWARD, HEC_STEP_BACKWARD, HEC_STEP_UPDATE, HEC_STEP_PARTS };
/* What they are called as phases on the timeline, where the hooks tell each of them: "part/forward". They are none of the program's. */
extern const char *const hec_step_part_phases[HEC_STEP_PARTS];

/* Where activities come from; shaped like store/reader.h. */
struct hec_timeline_input {
    void *context;
    int (*names)(void *context, int (*visit)(void *to, uint32_t id, const char *text), void *to, struct hec_why *why);
    int (*tracks)(void *context, int (*visit)(void *to, const struct hec_track *track), void *to, struct hec_why *why);
    int (*kernels)(void *context, int (*visit)(void *to, const struct hec_kernel *kernel), void *to,
                   struct hec_why *why);
    int (*frames)(void *context, int (*visit)(void *to, const struct hec_frame *frame), void *to, struct hec_why *why);
    int (*tracers)(void *context, int (*visit)(void *to, const struct hec_tracer *tracer), void *to,
                   struct hec_why *why);
    /* In ascending start_ns over all tracks, in chunks; kinds: bits of HEC_ACTIVITY_BIT. */
    int (*activities)(void *context, uint32_t kinds,
                      int (*visit)(void *to, const struct hec_activity *activities, size_t count), void *to,
                      struct hec_why *why);
    /* The same to several visitors that share nothing, so that it may call each from a thread of its own. NULL: there are
     * none. */
    int (*beside)(void *context, uint32_t kinds, const struct hec_activity_visitor *visitors, size_t count,
                  struct hec_why *why);
    const struct hec_device *devices; /* for the occupancy limit: compute capability */
    int device_count;
    int64_t end_ns;     /* of the run; <= 0 unknown */
    double hooks_share; /* of the main thread's time, by the hooks' own account; <= 0 or NAN unknown */
    /* Unions and the ledger's rows are asked for: neither kernels, delays and the queue, nor facts of calls and gaps, nor classes. */
    bool brief;
};

/* Where hec_summary_build gets a run from: functions shaped like those of store/reader.h, with a context in front, and
 * facts that are no series. Strings may be NULL (unknown) and are copied. A visitor that returns non-zero stops its pass
 * and is returned; HEC_ERR_NOTFOUND means the same as an empty pass. */
typedef int (*hec_series_visitor)(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid,
                                  size_t count);
struct hec_schedule;

struct hec_summary_input {
    void *context;
    /* may be called several times for the same series */
    int (*series)(void *context, enum hec_metric metric, int32_t subject, hec_series_visitor visit,
                  void *visitor_context, struct hec_why *why);
    int (*subjects)(void *context, enum hec_metric metric, int32_t **subjects, struct hec_why *why);
    int (*devices)(void *context, int (*visit)(void *context, const struct hec_device *device), void *visitor_context,
                   struct hec_why *why);
    int (*processes)(void *context, int (*visit)(void *context, const struct hec_process *process),
                     void *visitor_context, struct hec_why *why);
    int (*gpu_processes)(void *context, int (*visit)(void *context, const struct hec_gpu_process *process),
                         void *visitor_context, struct hec_why *why);
    int (*events)(void *context,
                  int (*visit)(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text),
                  void *visitor_context, struct hec_why *why);
    int (*units)(void *context, int (*visit)(void *context, const char *name, double count), void *visitor_context,
                 struct hec_why *why); /* the first is the primary one */
    int (*phases)(void *context, int (*visit)(void *context, const char *name, int64_t total_ns, int64_t count),
                  void *visitor_context, struct hec_why *why);

    /* What the passes so far had to leave out, for it was damaged; NULL: nothing. May itself be NULL. */
    const char *(*left_out)(void *context);

    /* What `hec calibrate` measured of a device: 0, anything else where it did not. NULL: nothing was. */
    int (*peaks)(void *context, const struct hec_device *device, struct hec_peaks *out);

    hec_together together;

    /* Its devices, end_ns and brief are filled in by hec_summary_build. All NULL: none. */
    struct hec_timeline_input timeline;

    const char *printed; /* units that the command prints, a line each (model/printed.h) */
    const char *printed_from;
    const char *command, *started, *file, *hec_version, *hostname, *cpu, *os, *kernel, *pytorch, *python, *framework;
    const char *step_part[HEC_STEP_PARTS]; /* "NANOSECONDS TIMES" of the host, by the hooks */
    const char *flops,
        *flops_why;       /* "CALLS ERROR PRECISION=FLOPs ..." of a step, by the hooks; or why there are none */
    const char *products; /* "PRECISION=FLOPs ... weights=ELEMENTS" of a step: of odd rows, and in fp32 */
    const char *joined,
        *joined_by; /* how many runs it was joined of, and by what their clocks were set; NULL: it was not */
    const char *gradients,
        *gradient_syncs; /* "BYTES BUCKET_BYTES", "SYNCHRONISATIONS PASSES STEPS", by the hooks or the importer */
    const char *carbon;  /* "GRAMS LABEL": of a kWh of the grid while it ran, from a file (hec run --carbon-file) */
    const char *step_module, *samples_by; /* as the hooks say: the class of it; "loader" or "calls" */
    /* Its processes that are ranks of a job: texts of HEC_RANK_FACT (model/run.h). NULL: none is known. */
    int (*rank_facts)(void *context, int (*visit)(void *context, int32_t pid, const char *text), void *visitor_context);
    /* Sizes of what its processes train: texts of HEC_SIZES_FACT, and of what ("model"). NULL: none are known. */
    int (*size_facts)(void *context, int (*visit)(void *context, const char *what, const char *text),
                      void *visitor_context);
    /* The levers that it ran under. NULL: none. */
    int (*levers)(void *context, struct hec_lever_summary list[HEC_SUMMARY_LEVERS_MAX]);

    /* The whole one goes there, and of the rest is made what replays of it go by: the trace in brief, and no findings. NULL: findings are
     * replayed. */
    struct hec_schedule *schedule;

    int view; /* how many runs share the page that shows this one; 0: there is none, and no view is made */

    const char *imported;  /* what the run was imported from ("kineto", "nsys"); NULL: it was measured */
    const char *simulated; /* profile; NULL or "" on real hardware */
    int64_t end_ns;        /* length of the run; <= 0: unknown (hec was killed), taken from the last readings */
    int exit_code;         /* -1 unknown */
    const char *stopped;   /* as in struct hec_summary; NULL or "": it ended by itself */
    bool complete, in_progress;
    int cores;                 /* 0 unknown */
    int cores_usable;          /* by the command: its affinity mask and CPU quota; 0 unknown */
    int ranks, loader_workers; /* as in struct hec_job_diagnosis and hec_summary */
    /* Exact figures of the operating system at the end of the run, NAN where unknown: then the series are used. */
    double tree_cpu_seconds, tree_rss_max_bytes, self_cpu_seconds, self_rss_max_bytes;
    double file_bytes, start_seconds;
};
