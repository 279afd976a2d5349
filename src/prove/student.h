/* Student's t with any number of degrees of freedom. */
#ifndef HEC_PROVE_STUDENT_H
#define HEC_PROVE_STUDENT_H

/* P(T <= t). freedom > 0, whole or not. The incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8,
 * 26.7.1), to about 1e-12. */
double hec_student_cdf(double t, double freedom);

/* The t with hec_student_cdf(t) = p, 0 < p < 1. */
double hec_student_quantile(double p, double freedom);

#endif
