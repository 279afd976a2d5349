#include "diagnose/unmix_response.h"

#include "diagnose/nnls.h"

#include <math.h>
#include <string.h>

#define ROUNDS 12
#define START_RESIDUAL 0.05 /* of the mean power, before any fit */

/* Watts by ridge to the mean: a class that z does not have stays there. Returns the residual's mean square. */
static double fit_watts(const double *z, const double *y, int count, int classes, const double *response, double mean,
                        double residual2, double *watts, double *x) {
    double a[HEC_NNLS_MAX * HEC_NNLS_MAX] = {0}, b[HEC_NNLS_MAX] = {0};
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double *row = x + (int64_t)i * classes;
        memset(row, 0, (size_t)classes * sizeof *row);
        for (int k = 0; k < HEC_TAPS; k++)
            for (int c = 0; response[k] != 0 && c < classes; c++)
                row[c] += response[k] * z[((int64_t)i * HEC_TAPS + k) * classes + c];
        for (int c = 0; c < classes; c++) {
            for (int d = 0; row[c] != 0 && d <= c; d++)
                a[c * classes + d] += row[c] * row[d];
            b[c] += row[c] * (y[i] - mean);
        }
    }
    for (int c = 0; c < classes; c++)
        a[c * classes + c] += residual2 / (mean * mean);
    if (hec_cholesky(a, classes))
        return INFINITY;
    hec_cholesky_solve(a, classes, b);
    for (int c = 0; c < classes; c++)
        watts[c] = fmax(mean + b[c], 0);
    for (int i = 0; i < count; i++) {
        double error = y[i];
        for (int c = 0; c < classes; c++)
            error -= x[(int64_t)i * classes + c] * watts[c];
        sum += error * error;
    }
    return sum / count;
}

/* The response, sum 1, by ridge to the one tap `start`. */
static void fit_response(const double *z, const double *y, int count, int classes, const double *watts, int start,
                         double residual2, double *response, double *tap) {
    double a[HEC_TAPS * HEC_TAPS] = {0}, b[HEC_TAPS] = {0}, one[HEC_TAPS];
    double by_b = 0, by_one = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < HEC_TAPS; k++) {
            tap[k] = 0;
            for (int c = 0; c < classes; c++)
                tap[k] += watts[c] * z[((int64_t)i * HEC_TAPS + k) * classes + c];
        }
        double error = y[i] - tap[start];
        for (int k = 0; k < HEC_TAPS; k++) {
            for (int l = 0; l <= k; l++)
                a[k * HEC_TAPS + l] += tap[k] * tap[l];
            b[k] += tap[k] * error;
        }
    }
    for (int k = 0; k < HEC_TAPS; k++) {
        a[k * HEC_TAPS + k] += residual2 / (HEC_TAPS_SD * HEC_TAPS_SD);
        one[k] = 1;
    }
    if (hec_cholesky(a, HEC_TAPS))
        return;
    hec_cholesky_solve(a, HEC_TAPS, b);
    hec_cholesky_solve(a, HEC_TAPS, one);
    for (int k = 0; k < HEC_TAPS; k++) {
        by_b += b[k];
        by_one += one[k];
    }
    for (int k = 0; k < HEC_TAPS; k++) /* the changes from the one tap sum to 0 */
        response[k] = (k == start) + b[k] - by_b / by_one * one[k];
}

double hec_response_fit(const double *z, const double *y, int count, int classes, double *response, double *watts,
                        double *work) {
    double *x = work + (int64_t)HEC_TAPS * count, profile[HEC_TAPS] = {0}, least = INFINITY, far = INFINITY, mean = 0;
    int start = HEC_TAPS / 2;
    for (int i = 0; i < count; i++)
        mean += y[i] / count;
    mean = fmax(mean, 1e-3);
    double residual2 = START_RESIDUAL * START_RESIDUAL * mean * mean;
    for (int k = 0; k < HEC_TAPS && count; k++) {
        memset(response, 0, HEC_TAPS * sizeof *response);
        response[k] = 1;
        double now = fit_watts(z, y, count, classes, response, mean, residual2, watts, x);
        profile[k] = now;
        if (now < least) {
            least = now;
            start = k;
        }
    }
    for (int k = 0; k < HEC_TAPS; k++)
        if (k <= start - 2 || k >= start + 2)
            far = fmin(far, profile[k]);
    memset(response, 0, HEC_TAPS * sizeof *response);
    response[start] = 1;
    for (int c = 0; c < classes; c++)
        watts[c] = mean;
    for (int round = 0; round < ROUNDS && count; round++) {
        double now = fit_watts(z, y, count, classes, response, mean, residual2, watts, x);
        residual2 = fmax(fmin(now, residual2), 1e-6 * mean * mean);
        fit_response(z, y, count, classes, watts, start, residual2, response, work);
    }
    return count < 50 ? INFINITY : least > 0 ? far / least : 1;
}

double hec_response_lag_ns(const double *response) {
    double lag = 0;
    for (int k = 0; k < HEC_TAPS; k++)
        lag += response[k] * (double)(HEC_TAP_FIRST_NS + k * HEC_TAP_NS);
    return lag;
}
