/* What the sensors and the driver say of one device in a run: energy with its provenance, counters, who used it. Plain data,
 * filled by the floor `meter`. Numbers that were not measured are NAN, never 0. */
#pragma once

#include "diagnose/reason.h"
#include "model/run.h"
#include "model/throttle.h"

enum hec_energy_method { HEC_ENERGY_NONE, HEC_ENERGY_COUNTER, HEC_ENERGY_INTEGRAL };

/* Energy of one device over one window, with its provenance (the measurement contract of the design). */
struct hec_energy {
    enum hec_energy_method method;
    bool simulated;
    bool valid;
    struct hec_reason why;  /* why not valid, or why there is none; none when valid */
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
    struct hec_reason idle_source;  /* where that level comes from, or why it is unknown */
};

/* Mean, median and extremes over the window; NAN when nothing was read. */
struct hec_stat {
    double mean, median, minimum, maximum;
    int64_t count;
};

/* The part of the run in which the device was in use, which use.h judges: all but the first and the last 2 % of
 * its activity, for start-up dilutes every mean. Ratios 0..1, bytes/s, W; NAN where not measured. */
struct hec_use {
    double from_s, to_s; /* NAN: never active, or no reading says so */
    bool has_gpm;        /* the hardware counters were there; else only the driver's utilisation */
    int64_t readings;    /* of the engine's activity, in the whole run */
    double engine, sm, occupancy, tensor, dram, pcie_rx, pcie_tx, mem_util, power_w;
};

/* Whether anybody else was at work on a device (others.c). If so, its readings (counters, utilisation, watts, joules) are of
 * all of them together, and show nothing of the command. */
enum hec_others {
    HEC_OTHERS_IDLE,  /* nobody else has a context on it, or did next to nothing with it */
    HEC_OTHERS_MAYBE, /* somebody has one, and nothing shows what they did with it */
    HEC_OTHERS_BUSY   /* the engine was active for longer than the command's work on it took */
};
const char *hec_others_name(enum hec_others others); /* "idle": stable, in JSON */

struct hec_device_summary {
    struct hec_device device;
    bool used, use_unknown;     /* unknown: nothing shows whether the command used it; used is false then */
    struct hec_reason used_why; /* how HEC knows */
    int shared_with;            /* processes outside the tree with a context on it */
    enum hec_others others;
    double others_engine, others_seen; /* while CUPTI looked: the engine's activity, and what it saw; NAN unknown */
    struct hec_energy energy;
    struct hec_stat power_w;
    double power_limit_w;
    struct hec_stat
        metric[HEC_METRIC_COUNT]; /* permille as 0..1, KiB as bytes, KiB/s as bytes/s; else the unit of the table */
    double memory_peak_bytes, memory_left_bytes; /* most in use at a reading, by all processes; the rest. NAN unknown */
    double throttled_share[HEC_THROTTLE_COUNT];  /* share of readings, NAN without */
    struct hec_use activity;
};
