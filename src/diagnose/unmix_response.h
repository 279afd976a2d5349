/* The response of a power sensor: how much of a sample comes from which time, as weights of 13 windows ("taps") of the
 * sample's own span that end from 60 ms before its time stamp to 60 ms after it. */
#ifndef HEC_DIAGNOSE_UNMIX_RESPONSE_H
#define HEC_DIAGNOSE_UNMIX_RESPONSE_H

#include <stdint.h>

#define HEC_TAPS 13
#define HEC_TAP_NS INT64_C(10000000)
#define HEC_TAP_FIRST_NS (-HEC_TAP_NS * (HEC_TAPS / 2))
#define HEC_TAPS_SD 0.3 /* what is believed of a tap's weight beforehand: matters only where classes hardly vary */

/* A first fit by alternating least squares: watts given the response, the response given the watts. z: count x
 * HEC_TAPS x classes shares, y: count watts. Fills response (sum 1) and watts; of a class that z does not have, the
 * mean of y. work: (HEC_TAPS + classes) * count doubles.
 * Returns how distinct the sensor's delay is: the least residual square among single taps 20 ms or more from the best
 * one, over that of the best. A program whose steps are all alike fits any delay, with other watts: ratios of 1.0 to
 * 1.7 in loops of up to 0.2 s, 2.8 to 110 without a rhythm. Below HEC_DISTINCT the samples must not be used. INFINITY
 * where fewer than 50 samples are mixed: then the pure ones decide. */
#define HEC_DISTINCT 5.0
double hec_response_fit(const double *z, const double *y, int count, int classes, double *response, double *watts,
                        double *work);
double hec_response_lag_ns(const double *response);

#endif
