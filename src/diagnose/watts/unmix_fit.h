/* The least squares of unmixing over groups of classes, with its covariance. */
#pragma once

#include "diagnose/watts/unmix_state.h"

#include <stdint.h>

/* Least squares with bounds and at most one equality, for few unknowns:
 *
 *     minimise  x'Ax/2 - b'x   subject to  lower <= x <= upper,  e'x = equal_to
 *
 * where A = X'X and b = X'y are normal equations. lower = 0, upper = INFINITY is NNLS (Lawson and Hanson, Solving Least
 * Squares Problems, 1974, chapter 23); bounds on both sides are BVLS (Stark and Parker, Computational Statistics 10,
 * 1995). The method is theirs, an active set that frees the unknown with the most wrongly signed multiplier and steps
 * back to the first bound that is hit, started from a feasible point so that the equality holds at every step. */
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

#define HEC_FIT_SOURCES 5 /* none is fine: then what is believed, and the total */

struct hec_fit_source {
    const struct hec_gram *gram;
    int extras; /* unknowns after the classes that only this source has */
    bool
        /* its residuals are what the classes themselves varied, but for reading2 (mean square of errors of reading) */
        exact;
    double reading2;
    double count, weight, residual2, inflation;
    bool plain; /* of quiet times: always counts in full */
};

struct hec_fit {
    struct hec_fit_source source[HEC_FIT_SOURCES];
    int sources, classes;
    const int *group; /* of each class; -1: not in the fit */
    int groups;
    /* Kinds: class kin_class[k] is a kind of kin_group[k] and has kin_share[k] of its time. What it takes beyond the group is an unknown of
     * its own, whose mean over the group's time is 0. */
    int kins, kin_class[HEC_NNLS_MAX], kin_group[HEC_NNLS_MAX];
    double kin_share[HEC_NNLS_MAX];
    double seconds[HEC_NNLS_MAX]; /* of each group, for the total */
    bool has_total;
    double total, total_sigma;
    double center; /* about what a class takes */
    /* What is believed of the groups beforehand: means, what each may be off its own, the inverse of the
     * covariance (groups x groups), least values. */
    double believed[HEC_NNLS_MAX], own_sd[HEC_NNLS_MAX], certainty[HEC_NNLS_MAX * HEC_NNLS_MAX], lower[HEC_NNLS_MAX];
    double kin_sd, extra_sd, upper;   /* upper of every group */
    double repeated;                  /* factor of the variance that blocks show, as each has the same error; 0 is 1 */
    double believed_sd[HEC_NNLS_MAX]; /* of each group, with the level's */
    /* Readings whose errors move a group more than it is believed to be off anyway count less, by `caution`: steps all alike
     * repeat an error of time or of the sensor's response thousands of times. */
    bool cautious;
    bool doubted; /* so few readings that their residuals say nothing of their errors: they count as little as can be */
    double caution;
    double residual_start, residual_least;

    /* results; unknowns are groups, then kinds, then extras */
    int n;
    double x[HEC_NNLS_MAX];
    uint8_t at[HEC_NNLS_MAX];
    double variance[HEC_NNLS_MAX]; /* of groups: the sandwich */
    double bias[HEC_NNLS_MAX];     /* of groups: how far errors of time may have pulled the values together */
    double freedom[HEC_NNLS_MAX];
    double model[HEC_NNLS_MAX * HEC_NNLS_MAX]; /* B: inverse of the normal equations under the equality */
    int blocks;
};

/* 0, HEC_ERR_NOMEM, or HEC_ERR_FAILED: not finite. */
int hec_fit_solve(struct hec_fit *fit);
