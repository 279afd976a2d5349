#include "diagnose/watts/unmix_fit.h"
#include "diagnose/watts/unmix_state.h"

#include <math.h>
#include <string.h>

#define ROUNDS 8
#define START_RESIDUAL 0.05 /* of the mean power, before any fit */
#define ROWS_LEAST 50
#define TRIED 6.0       /* least residual squares of a window, over those of the best, with which it is refined */
#define NEARLY 2.0      /* residual squares that do not distinguish two windows */
#define SAME_LENGTH 1.3 /* windows that are taken for one */
#define NEIGHBOUR 2.6   /* windows of which taps of one can make the other */
#define SAME_DELAY_NS 20e6

const int64_t hec_response_windows_ns[HEC_WINDOWS] = {0,         20000000,  50000000,  100000000,
                                                      200000000, 500000000, 1000000000};

static double ratio(int64_t x_ns, int64_t y_ns) {
    return x_ns > y_ns ? (double)x_ns / (double)y_ns : (double)y_ns / (double)x_ns;
}

int64_t hec_response_window_ns(int window, int64_t own_ns) {
    int64_t ns = hec_response_windows_ns[window];
    return !window ? own_ns : ratio(ns, own_ns) < SAME_LENGTH ? -1 : ns;
}

static const float *row_of(const struct hec_response_rows *rows, int window, int i) {
    return rows->z + ((int64_t)i * HEC_WINDOWS + window) * HEC_TAPS * rows->classes;
}

/* Watts by ridge to the mean: a class that z does not have stays there. Returns the residual's mean square. */
static double fit_watts(const struct hec_response_rows *rows, int window, const double *response, double mean,
                        double residual2, double *watts, double *x) {
    const double *y = rows->y;
    int count = rows->count, classes = rows->classes, used = 0;
    double a[HEC_NNLS_MAX * HEC_NNLS_MAX] = {0}, b[HEC_NNLS_MAX] = {0};
    double sum = 0;
    int tap[HEC_TAPS], taps = 0; /* that count */
    for (int k = 0; k < HEC_TAPS; k++)
        if (response[k] != 0)
            tap[taps++] = k;
    for (int i = 0; i < count; i++) {
        int some[HEC_NNLS_MAX], n = 0;
        double *restrict row = x + (int64_t)i * classes;
        const float *z = row_of(rows, window, i);
        if (!(rows->covered[i] >> window & 1))
            continue;
        used++;
        memset(row, 0, (size_t)classes * sizeof *row);
        for (int t = 0; t < taps; t++) {
            const float *of_tap = z + tap[t] * classes;
            double weight = response[tap[t]];
            for (int c = 0; c < classes; c++)
                row[c] += weight * (double)of_tap[c];
        }
        for (int c = 0; c < classes; c++) {
            if (row[c] == 0)
                continue;
            some[n++] = c; /* as a rule a few of all */
            for (int d = 0; d < n; d++)
                a[c * classes + some[d]] += row[c] * row[some[d]];
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
        if (!(rows->covered[i] >> window & 1))
            continue;
        for (int c = 0; c < classes; c++)
            error -= x[(int64_t)i * classes + c] * watts[c];
        sum += error * error;
    }
    return used ? sum / used : INFINITY;
}

/* The response, sum 1, by ridge to the one tap `start`. */
static void fit_response(const struct hec_response_rows *rows, int window, const double *watts, int start,
                         double residual2, double *response, double *tap) {
    double a[HEC_TAPS * HEC_TAPS] = {0}, b[HEC_TAPS] = {0}, one[HEC_TAPS];
    double by_b = 0, by_one = 0;
    for (int i = 0; i < rows->count; i++) {
        const float *z = row_of(rows, window, i);
        if (!(rows->covered[i] >> window & 1))
            continue;
        for (int k = 0; k < HEC_TAPS; k++) {
            double of_tap = 0;
            for (int c = 0; c < rows->classes; c++)
                of_tap += watts[c] * (double)z[k * rows->classes + c];
            tap[k] = of_tap;
        }
        double error = rows->y[i] - tap[start];
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

static double mean_of(const struct hec_response_rows *rows) {
    double mean = 0;
    for (int i = 0; i < rows->count; i++)
        mean += rows->y[i] / rows->count;
    return fmax(mean, 1e-3);
}

/* The window of *out from one tap. Mean residual square. */
static double refine(const struct hec_response_rows *rows, int tap, struct hec_response *out, double *watts,
                     double *work) {
    double last = INFINITY, mean = mean_of(rows), residual2 = START_RESIDUAL * START_RESIDUAL * mean * mean;
    double *x = work + (int64_t)HEC_TAPS * rows->count;
    memset(out->weight, 0, sizeof out->weight);
    out->weight[tap] = 1;
    for (int c = 0; c < rows->classes; c++)
        watts[c] = mean;
    for (int round = 0; round < ROUNDS && rows->count; round++) {
        last = fit_watts(rows, out->window, out->weight, mean, residual2, watts, x);
        residual2 = fmax(fmin(last, residual2), 1e-6 * mean * mean);
        fit_response(rows, out->window, watts, tap, residual2, out->weight, work);
    }
    return last;
}

/* Of the middle of a window to the time stamp. */
static double delay_ns(int64_t window_ns, int tap) {
    int64_t tap_ns = HEC_TAP_FIRST_NS + tap * HEC_TAP_NS;
    return (double)tap_ns - (double)window_ns / 2;
}

void hec_response_fit(const struct hec_response_rows *rows, struct hec_response *out, double *watts, double *work) {
    double profile[HEC_WINDOWS][HEC_TAPS], least = INFINITY, far = INFINITY, refined = INFINITY;
    struct hec_response with = {0};
    double with_watts[HEC_NNLS_MAX];
    int best[HEC_WINDOWS] = {0};
    double mean = mean_of(rows), residual2 = START_RESIDUAL * START_RESIDUAL * mean * mean;
    double *x = work + (int64_t)HEC_TAPS * rows->count;
    int start = HEC_TAPS / 2;
    *out = (struct hec_response){.reach = HEC_WINDOWS - 1};
    bool few = rows->count < ROWS_LEAST;
    for (int w = 0; w < HEC_WINDOWS && !few; w++)
        for (int k = 0; k < HEC_TAPS; k++) {
            double one[HEC_TAPS] = {0};
            one[k] = 1;
            profile[w][k] = hec_response_window_ns(w, rows->own_ns) < 0
                                ? INFINITY
                                : fit_watts(rows, w, one, mean, residual2, watts, x);
            best[w] = profile[w][k] < profile[w][best[w]] ? k : best[w];
            least = fmin(least, profile[w][k]);
        }
    for (int w = 0; w < HEC_WINDOWS && !few; w++) { /* a filter is made by the taps of a shorter window */
        if (!(profile[w][best[w]] <= TRIED * least))
            continue;
        with.window = w;
        double now = refine(rows, best[w], &with, with_watts, work);
        if (now < refined) {
            refined = now;
            out->window = w;
            start = best[w];
            memcpy(out->weight, with.weight, sizeof with.weight);
            memcpy(watts, with_watts, (size_t)rows->classes * sizeof *watts);
        }
    }
    int64_t best_ns = hec_response_window_ns(out->window, rows->own_ns), reach_ns = best_ns;
    out->reach = few ? out->reach : out->window;
    for (int w = 0; w < HEC_WINDOWS && !few; w++) {
        int64_t ns = hec_response_window_ns(w, rows->own_ns);
        for (int k = 0; ns > 0 && k < HEC_TAPS; k++) {
            bool near =
                ratio(ns, best_ns) < NEIGHBOUR && fabs(delay_ns(ns, k) - delay_ns(best_ns, start)) < SAME_DELAY_NS;
            far = near ? far : fmin(far, profile[w][k]);
            if (profile[w][k] <= NEARLY * least && ns > reach_ns) {
                reach_ns = ns;
                out->reach = w;
            }
        }
    }
    out->distinct = few || !(least < INFINITY) ? 0 : least > 0 ? far / least : 1;
    if (!(refined < INFINITY))
        refine(rows, start, out, watts, work);
}

double hec_response_lag_ns(const double *weight) {
    double lag = 0;
    for (int k = 0; k < HEC_TAPS; k++) {
        int64_t tap_ns = HEC_TAP_FIRST_NS + k * HEC_TAP_NS;
        lag += weight[k] * (double)tap_ns;
    }
    return lag;
}
