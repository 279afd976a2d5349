/* What a run amounted to: the results of the analysis, plain data. Filled by hec_summary_* (pure functions: arrays in,
 * results out), read by src/report. Numbers that were not measured are NAN, never 0. */
#ifndef HEC_DIAGNOSE_SUMMARY_H
#define HEC_DIAGNOSE_SUMMARY_H

#include "base/error.h"
#include "diagnose/diagnosis.h"
#include "diagnose/finding.h"
#include "diagnose/paced.h"
#include "diagnose/task.h"
#include "diagnose/timeline.h"
#include "model/peaks.h"
#include "model/run.h"

#include <stddef.h>

enum hec_energy_method { HEC_ENERGY_NONE, HEC_ENERGY_COUNTER, HEC_ENERGY_INTEGRAL };

/* Energy of one device over one window, with its provenance (the measurement contract of the design). */
struct hec_energy {
    enum hec_energy_method method;
    bool simulated;
    bool valid;
    char why[256];          /* why not valid, or why there is none; empty when valid */
    double joules;          /* best value; NAN when there is none. Not to be shown as the run's energy unless valid */
    double bound_joules;    /* |truth - joules| is at most this */
    double counter_joules;  /* by the counter, NAN without one */
    double integral_joules; /* by the power samples, NAN without */
    double disagreement;    /* (integral - counter) / counter, NAN unless both cover the window */
    double coverage;        /* share of the window that the method's readings cover, 0..1 */
    double window_s;
    double quantum_s;                    /* time between new values of the counter, NAN unknown */
    double counter_from_s, counter_to_s; /* the counter readings that were used, NAN without; outside lie integrals */
    double outside_joules; /* absolute energy taken from samples outside of those readings; 0 when only the integral */
    int64_t readings, samples; /* of the counter, of the power history */
    double sample_spacing_s;   /* usual spacing of the power samples, NAN without */
    int gaps;                  /* intervals without power samples longer than 3 x their spacing */
    double gap_s;
    int resets; /* counter went backwards */
    /* Split by what the device did (see docs): sums to joules. NAN where it is unknown. */
    double work_joules, idle_context_joules, idle_joules;
    double work_s, idle_context_s, idle_s;
    double idle_context_watts;      /* the level used for the split */
    double idle_unknown_max_joules; /* where the split is unknown, idle with a context took at most this; else NAN */
    char idle_source[128];          /* where that level comes from: "measured ...", "estimated ..." or "unknown: ..." */
};

/* Mean, median and extremes over the window; NAN when nothing was read. */
struct hec_stat {
    double mean, median, minimum, maximum;
    int64_t count;
};

enum hec_throttle {
    HEC_THROTTLE_POWER,
    HEC_THROTTLE_THERMAL,
    HEC_THROTTLE_HARDWARE,
    HEC_THROTTLE_OTHER,
    HEC_THROTTLE_COUNT
};

/* The part of the run in which the device was in use, which use.h judges: all but the first and the last 2 % of
 * its activity, for start-up dilutes every mean. Ratios 0..1, bytes/s, W; NAN where not measured. */
struct hec_use {
    double from_s, to_s; /* NAN: never active, or no reading says so */
    bool has_gpm;        /* the hardware counters were there; else only the driver's utilisation */
    int64_t readings;    /* of the engine's activity, in the whole run */
    double engine, sm, occupancy, tensor, dram, pcie_rx, pcie_tx, mem_util, power_w;
};

/* Whether anybody else was at work on a device (others.h). If so, its readings (counters, utilisation, watts, joules) are of
 * all of them together, and show nothing of the command. */
enum hec_others {
    HEC_OTHERS_IDLE,  /* nobody else has a context on it, or did next to nothing with it */
    HEC_OTHERS_MAYBE, /* somebody has one, and nothing shows what they did with it */
    HEC_OTHERS_BUSY   /* the engine was active for longer than the command's work on it took */
};
const char *hec_others_name(enum hec_others others); /* "idle": stable, in JSON */

struct hec_device_summary {
    struct hec_device device;
    bool used, use_unknown; /* unknown: nothing shows whether the command used it; used is false then */
    char used_why[128];     /* how HEC knows */
    int shared_with;        /* processes outside the tree with a context on it */
    enum hec_others others;
    double others_engine, others_seen; /* while CUPTI looked: the engine's activity, and what it saw; NAN unknown */
    struct hec_energy energy;
    struct hec_stat power_w;
    double power_limit_w;
    struct hec_stat
        metric[HEC_METRIC_COUNT]; /* permille as 0..1, KiB as bytes, KiB/s as bytes/s; else the unit of the table */
    double throttled_share[HEC_THROTTLE_COUNT]; /* share of readings, NAN without */
    struct hec_use activity;
};

struct hec_unit_summary {
    char name[64];
    bool is_default; /* nobody counted work: the unit is the run itself */
    double count, per_second;
    uint64_t devices;                              /* bits (1 << hec_device.index): what it is charged with */
    bool part_of_devices;                          /* other programs of the run used others */
    double joules_per_unit, joules_per_unit_bound; /* of those devices; NAN when energy is not valid */
    double dollars_per_unit, grams_co2_per_unit;
};

struct hec_phase_summary {
    char name[64];
    double seconds; /* of all threads together */
    int64_t count;
    double joules,
        bound_joules; /* of the used devices while a thread was in it (phase_energy.h); NAN: unknown, and why */
    char why[96];     /* empty where joules are known */
};

struct hec_price {
    double dollars_per_kwh, grams_co2_per_kwh;
    double dollars_per_gpu_hour;          /* 0: not priced */
    bool dollars_default, carbon_default; /* nobody chose it: label it */
};

struct hec_host_summary {
    int cores, cores_usable; /* online; of those, what the command may use */
    double cpu_busy;         /* 0..1 of all cores */
    double tree_cpu_seconds; /* CPU time of the command and its descendants */
    double tree_cores;       /* mean cores in use */
    double rss_max_bytes, read_bytes, written_bytes, disk_read_bytes;
    double switches_voluntary, switches_involuntary;
    int processes;                      /* seen in all; 0 when none was recorded */
    double package_joules, dram_joules; /* NAN: unavailable */
    char package_why[160], dram_why[160];
};

struct hec_self_summary {
    double cpu_seconds, cpu_share; /* share of one core */
    double rss_max_bytes, file_bytes;
    double start_seconds; /* from the start of hec to the start of the command */
    double joules;        /* NAN: unavailable */
};

struct hec_event_summary {
    enum hec_event_kind kind;
    int device;
    double t_s;
    char text[256];
};

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
    char name[32], value[24]; /* value "": it chose */
    enum hec_attest attest;
    char text[160]; /* what it saw; "": nothing more is known */
};

#define HEC_SUMMARY_LEVERS_MAX 16
#define HEC_SUMMARY_UNITS_MAX 16
#define HEC_SUMMARY_PHASES_MAX 32
#define HEC_SUMMARY_EVENTS_MAX 64

struct hec_summary {
    char command[1024];
    char started[40]; /* wall clock, ISO 8601 with zone */
    char file[512];
    char hec_version[32];
    char hostname[128];
    char cpu[96], os[96], kernel[96], pytorch[48], python[24];
    char framework[24]; /* beside PyTorch, through which it uses its devices ("jax"); empty: unknown */
    double seconds;
    int exit_code;                /* -1: unknown, the run was cut off */
    char stopped[16];             /* hec ended the command after its "steps" or "time"; empty: it ended by itself */
    bool complete;                /* false: hec was killed; the last second may be missing */
    bool in_progress;             /* not complete, because it goes on */
    char simulated[64];           /* profile of the simulated GPU; empty on real hardware */
    int ranks;                    /* of the job that its processes are in (torch.distributed); 0 unknown or none */
    int loader_workers;           /* that the program's data loaders have; -1 unknown, or they differ */
    char imported[32];            /* what the run was imported from ("kineto"); empty: it was measured */
    char energy_unavailable[256]; /* why there is no device at all; empty when there is one */
    struct hec_device_summary *devices; /* malloc'ed */
    int device_count;
    struct hec_host_summary host;
    struct hec_unit_summary units[HEC_SUMMARY_UNITS_MAX];
    int unit_count;
    struct hec_phase_summary phases[HEC_SUMMARY_PHASES_MAX];
    int phase_count;
    struct hec_event_summary events[HEC_SUMMARY_EVENTS_MAX];
    int event_count, events_omitted;
    struct hec_lever_summary levers[HEC_SUMMARY_LEVERS_MAX];
    int lever_count;
    double joules, bound_joules; /* of the used devices; NAN unless all of them are valid */
    double dollars, grams_co2;   /* of that energy (and GPU hours, where priced) */
    struct hec_price price;
    struct hec_self_summary self;
    struct hec_timeline timeline;
    struct hec_diagnosis diagnosis; /* empty without a trace */
    struct hec_paced paced;         /* blocks of the steady part */
    struct hec_findings findings;   /* last of all, from what is above */
    struct hec_view *view;          /* view.h; NULL: none was asked for */
};

/* The command ended with a status other than 0, by itself. */
static inline bool hec_summary_failed(const struct hec_summary *s) {
    return s->exit_code > 0 && !s->stopped[0];
}

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

    const char *command, *started, *file, *hec_version, *hostname, *cpu, *os, *kernel, *pytorch, *python, *framework;
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
    int ranks, loader_workers; /* as in struct hec_summary */
    /* Exact figures of the operating system at the end of the run, NAN where unknown: then the series are used. */
    double tree_cpu_seconds, tree_rss_max_bytes, self_cpu_seconds, self_rss_max_bytes;
    double file_bytes, start_seconds;
};

/* Analyse a run. Pure: the same input gives the same result, and memory does not grow with the length of the run (but
 * with the number of devices and of processes on them). HEC_ERR_NOMEM, or what a function of the input returned.
 * On success *out is to be freed with hec_summary_free; on failure it is empty. */
int hec_summary_build(const struct hec_summary_input *input, const struct hec_price *price, struct hec_summary *out,
                      struct hec_why *why);
/* The labelled defaults: 0.13 $/kWh, 473 g CO2/kWh (sources in docs/energy.md), GPU hours not priced. */
struct hec_price hec_price_default(void);
void hec_summary_free(struct hec_summary *summary);

#endif
