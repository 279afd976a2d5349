/* What a program draws and does under power limits and clocks that were not measured, from a handful that were.
 *
 *   P(f) = a + c f V(f)^2, V(f) = 1 - s (1 - f)     f: the SM clock by the highest measured one
 *   T(f) = t0 + t1 / f                              time of a unit: what the cores' clock does not drive, and what it does
 *   W(limit) = the lesser of m + k limit and what is drawn without one
 *
 * Dynamic power of CMOS goes with f V^2 (Chandrakasan, Sheng, Brodersen 1992, "Low-power CMOS digital design"), voltage about linearly
 * with the clock; T is the split that Ge et al. 2013 ("Effects of dynamic voltage and frequency scaling on a K20 GPU") and others
 * use. a, c and t by ridge regression of relative residuals (Hoerl and Kennard 1970), s by a search with a pull to 1/2: no V(f) of a part is
 * assumed to be known. Where V does not go with the clock (it has a floor), the residuals grow, and the bounds with them.
 *
 * Bounds: after the jackknife-minmax (Barber, Candes, Ramdas, Tibshirani 2021, "Predictive inference with the jackknife+"): from the fits
 * without each point, widened by the worst error with which such a fit predicts the point that it lacks, the two ends left out (what lies
 * beyond the measured is not asked for), and by 1 % at least. They lean on no form of the truth: for devices drawn with laws that this
 * does not have they hold in 99 % of predictions, at 2 % on average (tests/unit/test_prove_dvfs.c). */
#ifndef HEC_PROVE_DVFS_H
#define HEC_PROVE_DVFS_H

#include "base/error.h"

#define HEC_DVFS_POINTS_LEAST 4 /* of different clocks: three parameters, and one to judge them by */
#define HEC_DVFS_POINTS_MAX 32

struct hec_dvfs_point {
    double limit_w;     /* the power limit that held; 0: none was set, the clock was */
    double clock_mhz;   /* the SM clock that was reached, while the device worked */
    double watts;       /* mean */
    double units_per_s; /* of work */
};

struct hec_dvfs_model {
    double a, c, s, t0, t1;  /* W; W; -; s; s */
    double m, k, free_w;     /* of limits: W, -, W */
    double top_mhz, low_mhz; /* of the points */
};

struct hec_dvfs {
    int count;
    double least_limit_w, most_limit_w; /* that were set; 0: none was */
    struct hec_dvfs_model whole, without[HEC_DVFS_POINTS_MAX];
    double error_watts, error_rate, error_joules; /* worst ratios of left-out points, as logarithms */
};

struct hec_dvfs_bounded {
    double value, low, high;
};

struct hec_dvfs_estimate {
    struct hec_dvfs_bounded watts, units_per_s, joules_per_unit;
    double clock_mhz;
};

/* HEC_ERR_UNSUPPORTED with a sentence: fewer than HEC_DVFS_POINTS_LEAST points, or their clocks are (nearly) one: nothing can be said of
 * others. HEC_ERR_USAGE: a point that is not positive and finite, or more than HEC_DVFS_POINTS_MAX. */
int hec_dvfs_fit(const struct hec_dvfs_point *points, int count, struct hec_dvfs *fit, struct hec_why *why);

/* Between the measured ones. HEC_ERR_LIMIT: beyond them. */
int hec_dvfs_at_limit(const struct hec_dvfs *fit, double limit_w, struct hec_dvfs_estimate *out);
int hec_dvfs_at_clock(const struct hec_dvfs *fit, double clock_mhz, struct hec_dvfs_estimate *out);

#endif
