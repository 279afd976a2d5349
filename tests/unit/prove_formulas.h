/* Plain formulas that figures of src/prove/ are held against. */
#pragma once

#include <math.h>

static inline double mean_of(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

/* The square of the standard error of the mean of values that are off by so much. */
static inline double square_error(const double *off, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += off[i] * off[i];
    return sum / n / (n - 1);
}

static inline double error_of(const double *x, int n) {
    double off[16], mean = mean_of(x, n);
    for (int i = 0; i < n; i++)
        off[i] = x[i] - mean;
    return square_error(off, n);
}

/* Welch and Satterthwaite. */
static inline double freedom_of(double a, int count_a, double b, int count_b) {
    return (a + b) * (a + b) / (a * a / (count_a - 1) + b * b / (count_b - 1));
}
