/* Least squares with bounds and at most one equality, for few unknowns:
 *
 *     minimise  x'Ax/2 - b'x   subject to  lower <= x <= upper,  e'x = equal_to
 *
 * where A = X'X and b = X'y are normal equations. lower = 0, upper = INFINITY is NNLS (Lawson and Hanson, Solving Least
 * Squares Problems, 1974, chapter 23); bounds on both sides are BVLS (Stark and Parker, Computational Statistics 10,
 * 1995). The method is theirs, an active set that frees the unknown with the most wrongly signed multiplier and steps
 * back to the first bound that is hit, started from a feasible point so that the equality holds at every step. */
#ifndef HEC_DIAGNOSE_WATTS_NNLS_H
#define HEC_DIAGNOSE_WATTS_NNLS_H

#include <stdint.h>

#define HEC_NNLS_MAX 48

enum hec_nnls_at { HEC_NNLS_FREE, HEC_NNLS_LOWER, HEC_NNLS_UPPER };

struct hec_nnls {
    int n;           /* 1..HEC_NNLS_MAX */
    const double *a; /* n x n, symmetric, positive definite */
    const double *b;
    const double *lower, *upper; /* may be infinite */
    const double *
        equal; /* e; NULL: no equality. Where e > 0, lower must be finite, and upper everywhere or nowhere; else e = 0 */
    double equal_to;
};

/* x and at (how each unknown ended) are n long. 0, HEC_ERR_USAGE when no point satisfies bounds and equality or the
 * sizes are wrong, HEC_ERR_FAILED when A is not positive definite. The equality holds to rounding. */
int hec_nnls_solve(const struct hec_nnls *problem, double *x, uint8_t *at);

/* The Cholesky factor of the symmetric n x n matrix a, in place in its lower triangle: 0, or HEC_ERR_FAILED. */
int hec_cholesky(double *a, int n);
/* Solve LL'x = b in place with that factor. */
void hec_cholesky_solve(const double *factor, int n, double *x);

#endif
