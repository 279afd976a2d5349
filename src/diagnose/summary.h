/* What a run amounted to: the results of the analysis, plain data. Filled by hec_summary_* (pure functions: arrays in,
 * results out), read by src/report. Numbers that were not measured are NAN, never 0. */
#ifndef HEC_DIAGNOSE_SUMMARY_H
#define HEC_DIAGNOSE_SUMMARY_H

#include "model/run.h"

enum hec_energy_method { HEC_ENERGY_NONE, HEC_ENERGY_COUNTER, HEC_ENERGY_INTEGRAL };

/* Energy of one device over one window, with its provenance (the measurement contract of the design). */
struct hec_energy {
    enum hec_energy_method method;
    bool simulated;
    bool valid;
    char why[256];         /* why not valid, or why there is none; empty when valid */
    double joules;         /* best value; NAN when there is none. Not to be shown as the run's energy unless valid */
    double bound_joules;   /* |truth - joules| is at most this */
    double counter_joules; /* by the counter, NAN without one */
    double integral_joules; /* by the power samples, NAN without */
    double disagreement;   /* (integral - counter) / counter, NAN unless both cover the window */
    double coverage;       /* share of the window that the method's readings cover, 0..1 */
    double window_s;
    double quantum_s;      /* time between new values of the counter */
    int gaps;              /* intervals without power samples longer than 3 x their spacing */
    double gap_s;
    int resets;            /* counter went backwards */
    /* Split by what the device did (see docs): sums to joules. NAN where it cannot be told. */
    double work_joules, idle_context_joules, idle_joules;
    double work_s, idle_context_s, idle_s;
    double idle_context_watts; /* the level used for the split */
    char idle_source[64];      /* where that level comes from: "measured in this run", ... */
};

/* Mean, median and extremes over the window; NAN when nothing was read. */
struct hec_stat {
    double mean, median, minimum, maximum;
    int64_t count;
};

enum hec_verdict_kind {
    HEC_VERDICT_NONE,            /* not enough readings */
    HEC_VERDICT_UNUSED,          /* allocated or visible, no work */
    HEC_VERDICT_COMPUTE_BOUND,   /* healthy */
    HEC_VERDICT_TRANSFER_STARVED,
    HEC_VERDICT_SMALL_KERNELS,
    HEC_VERDICT_UNCLEAR,         /* telemetry alone cannot tell */
    HEC_VERDICT_COUNT
};

struct hec_verdict {
    enum hec_verdict_kind kind;
    double confidence;      /* 0..1, capped for telemetry alone */
    char sentence[256];     /* what it means */
    char evidence[6][128];  /* the numbers that led to it */
    int evidence_count;
};

struct hec_device_summary {
    struct hec_device device;
    bool used;
    char used_why[128];     /* how HEC knows */
    int shared_with;        /* processes outside the tree with a context on it */
    struct hec_energy energy;
    struct hec_stat power_w;
    double power_limit_w;
    struct hec_stat metric[HEC_METRIC_COUNT]; /* permille as 0..1, KiB as bytes, KiB/s as bytes/s; else the unit of the table */
    double throttled_share[4]; /* share of readings: power, thermal, hardware slowdown, other */
    struct hec_verdict verdict;
};

struct hec_unit_summary {
    char name[64];
    double count, per_second;
    double joules_per_unit, joules_per_unit_bound; /* NAN when energy is not valid */
    double dollars_per_unit, grams_co2_per_unit;
};

struct hec_phase_summary {
    char name[64];
    double seconds;
    int64_t count;
};

struct hec_price {
    double dollars_per_kwh, grams_co2_per_kwh;
    double dollars_per_gpu_hour; /* 0: not priced */
    bool dollars_default, carbon_default; /* nobody chose it: label it */
};

struct hec_host_summary {
    int cores;
    double cpu_busy;          /* 0..1 of all cores */
    double tree_cpu_seconds;  /* CPU time of the command and its descendants */
    double tree_cores;        /* mean cores in use */
    double rss_max_bytes, read_bytes, written_bytes, disk_read_bytes;
    double switches_voluntary, switches_involuntary;
    int processes;            /* seen in all */
    double package_joules, dram_joules; /* NAN: unavailable */
    char package_why[160], dram_why[160];
};

struct hec_self_summary {
    double cpu_seconds, cpu_share; /* share of one core */
    double rss_max_bytes, file_bytes;
    double start_seconds;          /* from the start of hec to the start of the command */
    double joules;                 /* NAN: unavailable */
};

struct hec_event_summary {
    enum hec_event_kind kind;
    int device;
    double t_s;
    char text[256];
};

#define HEC_SUMMARY_UNITS_MAX 16
#define HEC_SUMMARY_PHASES_MAX 32
#define HEC_SUMMARY_EVENTS_MAX 64

struct hec_summary {
    char command[1024];
    char started[40];       /* wall clock, ISO 8601 with zone */
    char file[512];
    char hec_version[32];
    char hostname[128];
    double seconds;
    int exit_code;          /* -1: unknown, the run was cut off */
    bool complete;          /* false: hec was killed; the last second may be missing */
    char simulated[64];     /* profile of the simulated GPU; empty on real hardware */
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
    double joules, bound_joules; /* of the used devices; NAN unless all of them are valid */
    double dollars, grams_co2;   /* of that energy (and GPU hours, where priced) */
    struct hec_price price;
    struct hec_self_summary self;
};

void hec_summary_free(struct hec_summary *summary);

#endif
