#include "prove/spread.h"

#include "prove/student.h"

#include <math.h>

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
