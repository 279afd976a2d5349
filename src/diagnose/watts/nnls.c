#include "base/error.h"
#include "diagnose/watts/unmix_fit.h"

#include <math.h>
#include <string.h>

#define N HEC_NNLS_MAX
#define TOLERANCE 1e-10 /* of the terms that a multiplier is made of */

int hec_cholesky(double *a, int n) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i > j)
                a[i * n + j] = sum / a[j * n + j];
            else if (sum > 0 && isfinite(sum))
                a[i * n + i] = sqrt(sum);
            else
                return HEC_ERR_FAILED;
        }
    }
    return 0;
}

void hec_cholesky_solve(const double *factor, int n, double *x) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= factor[i * n + k] * x[k];
        x[i] /= factor[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= factor[k * n + i] * x[k];
        x[i] /= factor[i * n + i];
    }
}

/* A point within the bounds at which the equality holds: all as far between their bounds, or as far above the lower one. */
static int feasible(const struct hec_nnls *p, double *x, uint8_t *at) {
    double sum = 0, rest = p->equal_to, room = 0;
    for (int i = 0; i < p->n; i++) {
        if (!(p->lower[i] <= p->upper[i]))
            return HEC_ERR_USAGE;
        if (p->equal && p->equal[i] != 0) {
            if (!(p->equal[i] > 0) || !isfinite(p->lower[i]))
                return HEC_ERR_USAGE;
            sum += p->equal[i];
            rest -= p->equal[i] * p->lower[i];
            room += p->equal[i] * (p->upper[i] - p->lower[i]);
        }
    }
    if (p->equal && (!(sum > 0) || !(rest >= 0) || !isfinite(rest) || rest > room))
        return HEC_ERR_USAGE;
    for (int i = 0; i < p->n; i++) {
        at[i] = HEC_NNLS_FREE;
        if (p->equal && p->equal[i] != 0)
            x[i] = p->lower[i] + (isfinite(room) && room > 0 ? rest / room * (p->upper[i] - p->lower[i]) : rest / sum);
        else if (isfinite(p->lower[i]))
            x[i] = isfinite(p->upper[i]) ? (p->lower[i] + p->upper[i]) / 2 : fmax(p->lower[i], 0);
        else
            x[i] = fmin(p->upper[i], 0);
    }
    return 0;
}

/* The minimum over the free unknowns with the others where they are; the multiplier of the equality in *lambda. */
static int solve_free(const struct hec_nnls *p, const double *x, const uint8_t *at, double *z, double *lambda) {
    double factor[N * N], u[N], v[N];
    int index[N], m = 0, n = p->n;
    for (int i = 0; i < n; i++)
        if (at[i] == HEC_NNLS_FREE)
            index[m++] = i;
    double rest = p->equal_to, by_u = 0, by_v = 0;
    for (int r = 0; r < m; r++) {
        int i = index[r];
        for (int c = 0; c <= r; c++)
            factor[r * m + c] = p->a[i * n + index[c]];
        u[r] = p->b[i];
        for (int j = 0; j < n; j++)
            if (at[j] != HEC_NNLS_FREE)
                u[r] -= p->a[i * n + j] * x[j];
        v[r] = p->equal ? p->equal[i] : 0;
    }
    if (hec_cholesky(factor, m))
        return HEC_ERR_FAILED;
    hec_cholesky_solve(factor, m, u);
    *lambda = 0;
    if (p->equal) {
        hec_cholesky_solve(factor, m, v);
        for (int i = 0; i < n; i++)
            if (at[i] != HEC_NNLS_FREE)
                rest -= p->equal[i] * x[i];
        for (int r = 0; r < m; r++) {
            by_u += p->equal[index[r]] * u[r];
            by_v += p->equal[index[r]] * v[r];
        }
        *lambda = by_v > 0 ? (rest - by_u) / by_v : 0;
    }
    memcpy(z, x, (size_t)n * sizeof *z);
    for (int r = 0; r < m; r++)
        z[index[r]] = u[r] + *lambda * v[r];
    return 0;
}

/* The unknown at a bound that most wants to leave it; -1: none, x is the solution. */
static int wants_free(const struct hec_nnls *p, const double *x, const uint8_t *at, double lambda) {
    int worst = -1;
    double most = 0;
    for (int i = 0; i < p->n; i++) {
        if (at[i] == HEC_NNLS_FREE || p->lower[i] == p->upper[i])
            continue;
        double gradient = -p->b[i], terms = fabs(p->b[i]);
        for (int j = 0; j < p->n; j++) {
            gradient += p->a[i * p->n + j] * x[j];
            terms += fabs(p->a[i * p->n + j] * x[j]);
        }
        if (p->equal) {
            gradient -= lambda * p->equal[i];
            terms += fabs(lambda * p->equal[i]);
        }
        double wrong = (at[i] == HEC_NNLS_LOWER ? -gradient : gradient) / sqrt(p->a[i * p->n + i]);
        if (wrong > TOLERANCE * terms / sqrt(p->a[i * p->n + i]) && wrong > most) {
            most = wrong;
            worst = i;
        }
    }
    return worst;
}

int hec_nnls_solve(const struct hec_nnls *p, double *x, uint8_t *at) {
    if (p->n < 1 || p->n > N)
        return HEC_ERR_USAGE;
    int err = feasible(p, x, at);
    /* Each round either ends at a lower value of the function or adds a bound: a set of bounds cannot come back but by
     * rounding, and then any of them is a solution to rounding. */
    for (int round = 0; !err && round < 20 * N; round++) {
        double z[N], lambda, step = 1;
        int hit = -1;
        err = solve_free(p, x, at, z, &lambda);
        if (err)
            return err;
        for (int i = 0; i < p->n; i++) {
            if (at[i] != HEC_NNLS_FREE || (z[i] >= p->lower[i] && z[i] <= p->upper[i]))
                continue;
            double bound = z[i] < p->lower[i] ? p->lower[i] : p->upper[i];
            double until = (bound - x[i]) / (z[i] - x[i]);
            if (hit < 0 || until < step) {
                step = fmax(until, 0);
                hit = i;
            }
        }
        for (int i = 0; i < p->n; i++)
            if (at[i] == HEC_NNLS_FREE)
                x[i] = hit < 0 ? z[i] : x[i] + step * (z[i] - x[i]);
        if (hit >= 0) {
            at[hit] = z[hit] < p->lower[hit] ? HEC_NNLS_LOWER : HEC_NNLS_UPPER;
            x[hit] = at[hit] == HEC_NNLS_LOWER ? p->lower[hit] : p->upper[hit];
            continue;
        }
        int leave = wants_free(p, x, at, lambda);
        if (leave < 0)
            return 0;
        at[leave] = HEC_NNLS_FREE;
    }
    return err;
}
