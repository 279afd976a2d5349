/* Student's t with any number of degrees of freedom. */
#pragma once

/* The t with P(T <= t) = p, 0 < p < 1. freedom > 0, whole or not. To about 1e-9. */
double hec_student_quantile(double p, double freedom);

/* How well a weighted mean of few values is known from their spread, and what follows for a sum of two such. */
/* The square of a standard error, and the degrees of freedom that its estimate is worth; NAN: not known. */
struct hec_spread {
    double variance, freedom;
};

/* residual[count]: values less their mean by weight[count], which add up to 1. count >= 2. Unbiased where the values have one
 * variance, with the degrees of freedom of Bell and McCaffrey 2002; for equal weights the usual s^2/n with n - 1. */
struct hec_spread hec_spread_mean(const double *weight, const double *residual, int count);

/* Of a sum of two independent estimates: Welch and Satterthwaite. */
struct hec_spread hec_spread_sum(struct hec_spread a, struct hec_spread b);

/* Half the width of a t interval; NAN where the spread is not known. */
double hec_spread_half(struct hec_spread spread, double confidence);
