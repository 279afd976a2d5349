/* Simulated workloads (cases.def): their schedule, and the exact truth of playing one. Pure. */
#pragma once

#include "base/error.h"
#include "sim/model.h"

struct sim_case_segment {
    enum sim_activity activity;
    int64_t duration_us;
    int times;
};

struct sim_case {
    const char *name, *cause, *untraced, *unit;
    double units; /* per step */
    int64_t memory_mib;
    int32_t cap_mw; /* 0: leaves the limit alone */
    const char *meaning;
    const struct sim_case_segment *segments;
    int segment_count;
};

#define SIM_CASE_WRITTEN_MAX 64 /* segments */

/* A case that is no row of the table. */
struct sim_case_written {
    struct sim_case workload;
    struct sim_case_segment segments[SIM_CASE_WRITTEN_MAX];
};

int sim_case_count(void);
const struct sim_case *sim_case_at(int index);
const struct sim_case *sim_case_find(const char *name); /* NULL if unknown */

/* One step as text, ACTIVITY:MICROSECONDS[xTIMES] with commas between: "train_tf32:25700x20,wait_checkpoint:900000".
 * HEC_ERR_USAGE. */
int sim_case_read(const char *text, struct sim_case_written *written, struct hec_why *why);

/* Every program first creates its context and waits this long: WAIT_STARTUP. */
#define SIM_STARTUP_NS INT64_C(20000000)

/* Walks the schedule: one call gives one segment. With a seed, each duration is stretched or shrunk by up to 5 %. */
struct sim_cursor {
    const struct sim_case *workload;
    uint64_t seed, drawn;
    int segment, repetition; /* segment -1: the startup */
};

struct sim_span {
    enum sim_activity activity;
    int64_t duration_ns;
    bool step_end; /* a step is complete when this ends */
};

void sim_cursor_init(struct sim_cursor *cursor, const struct sim_case *workload, uint64_t seed);
struct sim_span sim_cursor_next(struct sim_cursor *cursor);

/* What happened between the opening and the closing of the context. Energy is the device's whole energy in that window.
 * work and idle sum to the totals; so do the activities. */
struct sim_truth {
    double seconds, joules;
    double work_seconds, work_joules; /* activities that work */
    double idle_seconds, idle_joules; /* a context, waiting */
    double capped_seconds;            /* held under the power limit */
    double units;
    int64_t steps;
    double late_seconds; /* how much the player was behind its schedule; 0 when predicted */
    struct {
        double seconds, joules;
    } activity[SIM_ACTIVITY_COUNT];
};

void sim_truth_add(struct sim_truth *truth, enum sim_activity activity, const struct sim_piece *piece);

/* Each span of playing a case for `seconds` alone on a device of that profile, without playing it, with the pieces that its
 * power splits it in; the last one is cut. cap_mw 0: the profile's default; a case's own limit holds where it is
 * lower, raised to the profile's minimum. HEC_ERR_USAGE. */
struct sim_walk {
    void *context;
    /* whole: the span was not cut */
    void (*visit)(void *context, const struct sim_span *span, const struct sim_piece *pieces, int count, bool whole);
};
int sim_case_walk(const struct sim_case *workload, double seconds, const struct sim_profile *profile, int32_t cap_mw,
                  uint64_t seed, const struct sim_walk *walk);

/* The truth of playing a case for `seconds`, by sim_case_walk. */
int sim_case_truth(const struct sim_case *workload, double seconds, const struct sim_profile *profile, int32_t cap_mw,
                   uint64_t seed, struct sim_truth *truth);

/* The limit that a case brings with it, within the profile's range; 0: none. */
int32_t sim_case_cap_mw(const struct sim_case *workload, const struct sim_profile *profile);
