/* The power history as a step function, integrated over a few windows in one pass.
 *
 * Each sample is the mean over the interval that ends at it. What no sample covers is filled in and kept apart, so that
 * the caller can bound it: `stretch` within 3 x the usual spacing of a sample (a lost sample, the ends of the history:
 * counts as covered), `gap` beyond. A fill between two samples is their mean, one at an end is the nearest sample.
 */
#ifndef HEC_DIAGNOSE_METER_INTEGRAL_H
#define HEC_DIAGNOSE_METER_INTEGRAL_H

#include "diagnose/meter/stat.h"

struct hec_power_window {
    int64_t start_ns, end_ns;
    bool extremes_only; /* not integrated beyond the samples: only its extremes are wanted */
    double sampled_j, sampled_s;
    double stretch_j, stretch_s;
    double gap_j, gap_s;
    double minimum_w, maximum_w; /* of the samples that touch it; +-INFINITY without */
};

#define HEC_SPACING_BINS 704 /* 16 an octave, from 1 ns to 2^44 ns (5 hours) */

/* Pass 1: the usual (median) spacing of a series, within 4.4 %. */
struct hec_spacing {
    int64_t bins[HEC_SPACING_BINS];
    int64_t count, previous_ns;
};

void hec_spacing_add(struct hec_spacing *spacing, int64_t t_ns); /* start from a zeroed struct */
double hec_spacing_usual_ns(const struct hec_spacing *spacing);  /* 0 with fewer than two readings */

/* Pass 2. */
struct hec_integral {
    struct hec_power_window *windows; /* the caller's: start, end and extremes_only set, the rest cleared by init */
    int window_count;
    hec_step_visitor visit; /* may be NULL; is given every sampled or stretched step, in watts */
    void *context;
    int64_t usual_ns;       /* spacing of the samples */
    int64_t from_ns, to_ns; /* hull of the windows but those that want extremes only */
    int64_t count, first_ns, previous_ns;
    double previous_w, maximum_w;
};

void hec_integral_init(struct hec_integral *integral, struct hec_power_window *windows, int window_count,
                       int64_t usual_ns, hec_step_visitor visit, void *context);
void hec_integral_add(struct hec_integral *integral, int64_t t_ns, double watts);
/* fill_w: what to fill with when there was no sample at all. */
void hec_integral_end(struct hec_integral *integral, double fill_w);

/* Energy of a window, fills included, and how far the fills can be off: power lies between 0 and ceiling_w. */
double hec_power_window_joules(const struct hec_power_window *window);
double hec_power_window_fill_bound(const struct hec_power_window *window, double ceiling_w);

#endif
