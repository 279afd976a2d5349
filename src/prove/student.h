/* Student's t with any number of degrees of freedom. */
#ifndef HEC_PROVE_STUDENT_H
#define HEC_PROVE_STUDENT_H

/* The t with P(T <= t) = p, 0 < p < 1. freedom > 0, whole or not. To about 1e-9. */
double hec_student_quantile(double p, double freedom);

#endif
