/* Placing the readings of an energy counter in time.
 *
 * A counter that is renewed every 100 ms is known, at any instant, only to within 100 ms times the power: 70 J at 700 W.
 * But its edges come at a regular pace. So the first readings search for an edge by bisection; afterwards each reading
 * belongs to a known edge and its value is exact for that edge's time. A reading costs about 4.5 ms, and nothing says
 * when inside the call the value was taken, so an edge cannot be placed more narrowly than one call is long.
 *
 * A state machine without clock and device: the caller reads the counter when next_ns says so and hands the reading in;
 * placed readings come out through `emit`, in the order of time. Times are monotonic ns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where the edges of a counter that is updated at a regular pace lie, from readings that only say "edge k had happened
 * by then" and "edge k had not happened yet".
 *
 * Edge k happens at e_k = e_0 + k P, both unknown. An upper bound (k, t) says e_k <= t, a lower bound e_k >= t. The grids
 * that agree with all bounds form a convex set; for a given P the phase lies between the largest lower and the smallest
 * upper bound, so the earliest and latest time of any edge are the minimum of a convex and the maximum of a concave
 * function of P over an interval. Nothing is fitted or averaged: an answer is certain as long as the edges are regular.
 *
 * Pure: no clock. Times are monotonic ns. */
#define HEC_GRID_BOUNDS_MAX 32

struct hec_grid_bound {
    double k, t; /* t relative to origin_ns */
};

struct hec_grid {
    double prior_min, prior_max;   /* what P may be at all, ns */
    double period_min, period_max; /* what the bounds leave of it */
    int64_t origin_ns;
    struct hec_grid_bound lower[HEC_GRID_BOUNDS_MAX], upper[HEC_GRID_BOUNDS_MAX];
    int lower_count, upper_count;
};

void hec_grid_init(struct hec_grid *grid, int64_t period_min_ns, int64_t period_max_ns, int64_t origin_ns);

/* Learn a bound. One that the others imply is not kept. False: no regular grid agrees with all of them any more (the
 * grid must then be initialised anew). */
bool hec_grid_add_upper(struct hec_grid *grid, int64_t k, int64_t t_ns);
bool hec_grid_add_lower(struct hec_grid *grid, int64_t k, int64_t t_ns);

/* Earliest and latest possible time of edge k. At least one bound of either side must be known. */
void hec_grid_edge(const struct hec_grid *grid, int64_t k, int64_t *earliest_ns, int64_t *latest_ns);

/* The edges that may have been the last one before the value read in [t0_ns, t1_ns] was taken: *first certainly
 * happened before t0, *last possibly before t1. */
void hec_grid_locate(const struct hec_grid *grid, int64_t t0_ns, int64_t t1_ns, int64_t *first, int64_t *last);

#define NVML_TRACKER_HELD_MAX 48

struct nvml_tracker_reading {
    int64_t t0_ns, t1_ns; /* just before and just after the call */
    int64_t value_mj;
    int64_t first, last; /* the edges the value may belong to */
    bool emitted;        /* kept only to compare the next reading with */
};

/* The value became current no later than t_ns and at most slack_ns before. */
typedef void (*nvml_tracker_emit)(void *context, int64_t t_ns, int64_t slack_ns, int64_t value_mj);

enum nvml_tracker_state {
    NVML_TRACKER_SEARCHING, /* looking for the edges */
    NVML_TRACKER_TRACKING,  /* edges known */
    NVML_TRACKER_RESTING    /* no regular edges found: readings are placed to within the quantum; tried again later */
};

enum nvml_tracker_step {                      /* what the next reading is for, once the edges are known roughly */
                         NVML_TRACKER_WAIT,   /* the value */
                         NVML_TRACKER_TEST,   /* to know the edges more narrowly */
                         NVML_TRACKER_CONFIRM /* to make sure that nothing changes between two edges */
};

struct nvml_tracker {
    nvml_tracker_emit emit;
    void *context;
    struct hec_grid grid;
    enum nvml_tracker_state state;
    enum nvml_tracker_step step;
    bool located;        /* the edges of the present grid were found once: readings need not be held back */
    int64_t interval_ns; /* between readings while tracking; the caller may set it */
    int64_t next_ns;     /* when to read next; INT64_MIN: at once */
    int64_t call_ns;     /* what a call takes, from the short ones: those give the narrowest bounds */
    int64_t slop_ns;     /* allowed irregularity of the edges */
    int64_t quantum_ns;  /* how old a value may be when nothing is known about the edges */
    int64_t still_ns;    /* first time the present value was seen */
    int64_t rest_until_ns, contradicted_ns;
    int64_t emitted_ns;                                      /* time of the latest emitted reading */
    int64_t calls;                                           /* readings in all */
    int search_count;                                        /* readings spent on the present search */
    int contradictions;                                      /* times the edges were not where they had to be */
    struct nvml_tracker_reading held[NVML_TRACKER_HELD_MAX]; /* oldest first; the last one is the latest reading */
    int held_count;
};

void nvml_tracker_init(struct nvml_tracker *tracker, nvml_tracker_emit emit, void *context);

/* Take in a reading. *reset is set when the counter went backwards (tracking starts anew from this reading).
 * Updates next_ns. */
void nvml_tracker_add(struct nvml_tracker *tracker, int64_t t0_ns, int64_t t1_ns, int64_t value_mj, bool *reset);

/* True when the latest reading is not certain to belong to one edge and another reading now would help. */
bool nvml_tracker_undecided(const struct nvml_tracker *tracker);

/* Emit whatever is held, as well as it is known. */
void nvml_tracker_flush(struct nvml_tracker *tracker);
