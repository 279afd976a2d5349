/* Where the edges of a counter that is updated at a regular pace lie, from readings that only say "edge k had happened
 * by then" and "edge k had not happened yet".
 *
 * Edge k happens at e_k = e_0 + k P, both unknown. An upper bound (k, t) says e_k <= t, a lower bound e_k >= t. The grids
 * that agree with all bounds form a convex set; for a given P the phase lies between the largest lower and the smallest
 * upper bound, so the earliest and latest time of any edge are the minimum of a convex and the maximum of a concave
 * function of P over an interval. Nothing is fitted or averaged: an answer is certain as long as the edges are regular.
 *
 * Pure: no clock. Times are monotonic ns. */
#ifndef HEC_OBSERVE_NVML_GRID_H
#define HEC_OBSERVE_NVML_GRID_H

#include <stdbool.h>
#include <stdint.h>

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

/* Forget bounds older than t_ns, so that a slow change of the pace cannot contradict them. */
void hec_grid_forget(struct hec_grid *grid, int64_t t_ns);

/* Earliest and latest possible time of edge k. At least one bound of either side must be known. */
void hec_grid_edge(const struct hec_grid *grid, int64_t k, int64_t *earliest_ns, int64_t *latest_ns);

/* The edges that may have been the last one before the value read in [t0_ns, t1_ns] was taken: *first certainly
 * happened before t0, *last possibly before t1. */
void hec_grid_locate(const struct hec_grid *grid, int64_t t0_ns, int64_t t1_ns, int64_t *first, int64_t *last);

#endif
