#include "prove/student.h"

#include <math.h>

#define TERMS 300
#define TINY 1e-300
#define FREEDOM_MOST 1e6 /* normal to 3e-6 from there on, while log_gamma loses digits */

static double away_from_zero(double x) {
    return fabs(x) < TINY ? TINY : x;
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double fraction(double a, double b, double x) {
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), h = d;
    for (int m = 1; m <= TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        h *= d * c;
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return h;
}

/* log Gamma(x) for x > 0: lgamma sets a global variable. Stirling's series from 10 on (Abramowitz and Stegun 6.1.41). */
static double log_gamma(double x) {
    double shift = 0;
    while (x < 10) {
        shift += log(x);
        x += 1;
    }
    double i = 1 / x, i2 = i * i;
    return (x - 0.5) * log(x) - x + 0.91893853320467274178 +
           i * (1.0 / 12 - i2 * (1.0 / 360 - i2 * (1.0 / 1260 - i2 * (1.0 / 1680 - i2 / 1188)))) - shift;
}

/* I_x(a, b); y = 1 - x, given apart so that a small one keeps its digits. log_scale: of 1 / B(a, b). */
static double incomplete_beta(double a, double b, double log_scale, double x, double y) {
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    double front = exp(log_scale + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2))
        return front * fraction(a, b, x) / a;
    return 1 - front * fraction(b, a, y) / b;
}

/* P(T <= t): the incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8, 26.7.1), to about 1e-12. */
static double cumulative(double t, double freedom, double log_scale) {
    double square = t * t, sum = freedom + square;
    double tail = 0.5 * incomplete_beta(freedom / 2, 0.5, log_scale, freedom / sum, square / sum);
    return t > 0 ? 1 - tail : tail;
}

double hec_student_quantile(double p, double freedom) {
    if (p < 0.5)
        return -hec_student_quantile(1 - p, freedom);
    freedom = fmin(freedom, FREEDOM_MOST);
    double low = 0, high = 1;
    double log_scale = log_gamma(freedom / 2 + 0.5) - log_gamma(freedom / 2) - log_gamma(0.5);
    while (cumulative(high, freedom, log_scale) < p && high < 1e12)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (cumulative(middle, freedom, log_scale) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

struct hec_spread hec_spread_mean(const double *weight, const double *residual, int count) {
    double square = 0, variance = 0, trace = 0, product = 0;
    for (int i = 0; i < count; i++)
        square += weight[i] * weight[i];
    for (int i = 0; i < count; i++) {
        /* of a residual, with the mean taken from the same values: 1 - 2w + square of the variance of a value */
        double part = weight[i] * weight[i] * square / (1 - 2 * weight[i] + square);
        variance += part * residual[i] * residual[i] / square;
        trace += part * (1 - 2 * weight[i] + square);
        for (int k = 0; k < count; k++) {
            double other = weight[k] * weight[k] * square / (1 - 2 * weight[k] + square);
            double both = (i == k) - weight[i] - weight[k] + square;
            product += part * other * both * both;
        }
    }
    return (struct hec_spread){variance, trace * trace / product};
}

struct hec_spread hec_spread_sum(struct hec_spread a, struct hec_spread b) {
    double sum = a.variance + b.variance;
    double by = a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom;
    return (struct hec_spread){sum, by > 0 ? sum * sum / by : a.freedom + b.freedom};
}

double hec_spread_half(struct hec_spread spread, double confidence) {
    if (!(spread.freedom > 0) || !(spread.variance >= 0))
        return NAN;
    return hec_student_quantile((1 + confidence) / 2, spread.freedom) * sqrt(spread.variance);
}
