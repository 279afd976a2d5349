/* The response of a power sensor: how much of a sample comes from which time, as weights of 13 windows ("taps") that end
 * from 60 ms before its time stamp to 60 ms after it. All have one length: the time over which the sensor averages, which
 * is the span of the sample itself only where the sensor is a fast one. */
#ifndef HEC_DIAGNOSE_WATTS_UNMIX_RESPONSE_H
#define HEC_DIAGNOSE_WATTS_UNMIX_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#define HEC_TAPS 13
#define HEC_TAP_NS INT64_C(10000000)
#define HEC_TAP_FIRST_NS (-HEC_TAP_NS * (HEC_TAPS / 2))
#define HEC_TAPS_SD 0.3 /* what is believed of a tap's weight beforehand: matters only where classes vary little */

/* Lengths that are tried; 0: the sample's own span. From the shortest to the longest that a maker states: 10 ms to 1 s. */
#define HEC_WINDOWS 7
extern const int64_t hec_response_windows_ns[HEC_WINDOWS];
int64_t hec_response_window_ns(int window, int64_t own_ns); /* -1: not tried, since it is nearly the sample's own */

struct hec_response_rows {
    int count, classes;
    const float *z;         /* count x HEC_WINDOWS x HEC_TAPS x classes shares */
    const double *y;        /* watts */
    const uint8_t *covered; /* bit w: the shares of window w are known */
    int64_t own_ns;         /* usual span of a sample */
};

struct hec_response {
    int window;              /* of hec_response_windows_ns */
    int reach;               /* the longest one that explains the samples nearly as well */
    double weight[HEC_TAPS]; /* sum 1 */
    /* How distinct it is: the least residual square among single taps of other windows, or 20 ms or more from the best one,
     * over that of the best. A program whose steps are all alike fits any delay, with other watts: ratios of 1.0 to 1.7 in
     * loops of up to 0.2 s, 2.8 to 110 without a rhythm. Below HEC_DISTINCT the samples must not be used. */
    double distinct;
};
#define HEC_DISTINCT 5.0

/* A first fit: the window and the delay by trying all, then by alternating least squares watts given the response, the
 * response given the watts. Fills *out and watts; of a class that z does not have, the mean of y. Fewer than 50 rows
 * say nothing: the own span, the longest reach, not distinct. work: (HEC_TAPS + classes) * count doubles. */
void hec_response_fit(const struct hec_response_rows *rows, struct hec_response *out, double *watts, double *work);
double hec_response_lag_ns(const double *weight);

#endif
