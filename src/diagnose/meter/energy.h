/* Energy of one device over one window [0, end] from its counter and its power history, with a bound that holds and a
 * verdict on whether the figure may be shown. Formulas, constants and their sources: docs/energy.md.
 *
 * A meter is fed in passes, each in time order, and never allocates:
 *   1. hec_energy_counter  for every GPU_ENERGY, hec_energy_spacing for every GPU_POWER
 *   2. hec_energy_prepare, then hec_energy_power for every GPU_POWER
 *   3. hec_energy_finish
 * Times are relative to the start of the window and may be negative. */
#pragma once

#include "diagnose/meter/meter.h"
#include "diagnose/meter/stat.h"

/* The power history as a step function, integrated over a few windows in one pass.
 *
 * Each sample is the mean over the interval that ends at it. What no sample covers is filled in and kept apart, so that
 * the caller can bound it: `stretch` within 3 x the usual spacing of a sample (a lost sample, the ends of the history:
 * counts as covered), `gap` beyond. A fill between two samples is their mean, one at an end is the nearest sample.
 */
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

#define HEC_ENERGY_RESETS_MAX 6

struct hec_energy_options {
    int64_t end_ns;
    int64_t quantum_ns; /* time between new values of the counter as the collector found it; 0 unknown */
    double limit_w;     /* enforced power limit; NAN unknown */
    int64_t lost_ns;    /* the device was lost then; INT64_MAX: it was not */
    bool simulated;
    bool has_power_history;       /* false: power was polled, on many devices a mean over the last second */
    const char *unavailable;      /* why there are no readings, as the recording says it; NULL unknown */
    hec_step_visitor visit_power; /* may be NULL: is given the power steps of pass 2, in watts */
    void *context;
};

struct hec_anchor {
    bool found; /* the reading with its value was seen */
    int64_t t_ns, slack_ns;
    double mj;
    double cost_s; /* expected uncertainty as seconds of the device's power */
};

struct hec_reset {
    struct hec_anchor before, after;
};

enum hec_energy_window {
    HEC_EW_MAIN,
    HEC_EW_HEAD,
    HEC_EW_TAIL,
    HEC_EW_BETWEEN,
    HEC_EW_SLACK_A,
    HEC_EW_SLACK_B,
    HEC_EW_CUT_START,
    HEC_EW_CUT_A,
    HEC_EW_CUT_B,
    HEC_EW_CUT_END,
    HEC_EW_SLOW_A, /* cuts, were each sample a mean over the last second */
    HEC_EW_SLOW_B,
    HEC_EW_RESETS, /* then five each: piece, slack before, slack after, cut before, cut after */
    HEC_EW_COUNT = HEC_EW_RESETS + 5 * HEC_ENERGY_RESETS_MAX
};

struct hec_energy_meter {
    struct hec_energy_options options;
    struct hec_spacing spacing;
    struct hec_anchor located[2]; /* the best of the readings with a slack near the start, near the end */
    struct hec_anchor any[2];     /* of all, as if no slack were known */
    struct hec_anchor a, b;       /* chosen by prepare */
    struct hec_anchor last;
    int64_t previous_slack_t_ns, previous_slack_ns, quantum_ns;
    int64_t readings;
    struct hec_reset resets[HEC_ENERGY_RESETS_MAX];
    int reset_count; /* all that were seen, may exceed the array */
    struct hec_power_window windows[HEC_EW_COUNT];
    struct hec_integral integral;
    int64_t hole_start_ns, hole_end_ns; /* the longest interval without a power sample */
    int gaps;
    bool slow; /* the counter shows that samples are means over more than their spacing */
};

void hec_energy_init(struct hec_energy_meter *meter, const struct hec_energy_options *options);
/* slack_us: as given by hec_meter_counter. */
void hec_energy_counter(struct hec_energy_meter *meter, int64_t t_ns, int64_t mj, int64_t slack_us);
void hec_energy_spacing(struct hec_energy_meter *meter, int64_t t_ns);
void hec_energy_prepare(struct hec_energy_meter *meter);
void hec_energy_power(struct hec_energy_meter *meter, int64_t t_ns, int64_t mw);
/* The split in work and idle is left NAN: hec_split_result fills it. */
void hec_energy_finish(struct hec_energy_meter *meter, struct hec_energy *out);
