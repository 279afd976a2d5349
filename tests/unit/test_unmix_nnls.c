/* Bounded least squares against every choice of free unknowns. */
#include "base/error.h"
#include "diagnose/meter/stat.h"
#include "diagnose/watts/unmix_fit.h"
#include "unit.h"

#define N 5

static unsigned long long seed = 1;

static double random_value(void) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(seed >> 33) / 2147483648.0;
}

static double value_of(const double *a, const double *b, int n, const double *x) {
    double value = 0;
    for (int i = 0; i < n; i++) {
        value -= b[i] * x[i];
        for (int j = 0; j < n; j++)
            value += 0.5 * x[i] * a[i * n + j] * x[j];
    }
    return value;
}

/* Gauss with pivots on the equations of the free unknowns and the equality. False when they have no solution. */
static bool solve_plain(double *m, double *r, int n) {
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int k = i + 1; k < n; k++)
            pivot = fabs(m[k * n + i]) > fabs(m[pivot * n + i]) ? k : pivot;
        if (fabs(m[pivot * n + i]) < 1e-12)
            return false;
        for (int j = 0; j < n && pivot != i; j++) {
            double keep = m[i * n + j];
            m[i * n + j] = m[pivot * n + j];
            m[pivot * n + j] = keep;
        }
        double keep = r[i];
        r[i] = r[pivot];
        r[pivot] = pivot == i ? r[i] : keep;
        for (int k = 0; k < n; k++) {
            double f = k == i ? 0 : m[k * n + i] / m[i * n + i];
            for (int j = 0; j < n && f != 0; j++)
                m[k * n + j] -= f * m[i * n + j];
            r[k] -= f * r[i];
        }
    }
    for (int i = 0; i < n; i++)
        r[i] /= m[i * n + i];
    return true;
}

/* The least value over all 3^n ways to put unknowns at bounds; every feasible one counts. */
static double least(const struct hec_nnls *p, double *best) {
    double value = INFINITY;
    int n = p->n, ways = 1;
    for (int i = 0; i < n; i++)
        ways *= 3;
    for (int way = 0; way < ways; way++) {
        double x[N], m[(N + 1) * (N + 1)] = {0}, r[N + 1] = {0}, rest = p->equal_to;
        int index[N], free_count = 0, rows;
        bool good = true;
        for (int i = 0, w = way; i < n; i++, w /= 3) {
            if (w % 3 == 0)
                index[free_count++] = i;
            else
                x[i] = w % 3 == 1 ? p->lower[i] : p->upper[i];
            good = good && (w % 3 == 0 || isfinite(x[i]));
            if (good && w % 3 && p->equal)
                rest -= p->equal[i] * x[i];
        }
        rows = free_count + (p->equal != NULL);
        for (int k = 0; good && k < free_count; k++) {
            int i = index[k];
            r[k] = p->b[i];
            for (int j = 0, w = way; j < n; j++, w /= 3)
                r[k] -= w % 3 ? p->a[i * n + j] * x[j] : 0;
            for (int l = 0; l < free_count; l++)
                m[k * rows + l] = p->a[i * n + index[l]];
            if (p->equal)
                m[k * rows + free_count] = m[free_count * rows + k] = p->equal[i];
        }
        r[free_count] = rest;
        if (!good || !solve_plain(m, r, rows))
            continue;
        for (int k = 0; k < free_count; k++) {
            x[index[k]] = r[k];
            good = good && r[k] >= p->lower[index[k]] - 1e-9 && r[k] <= p->upper[index[k]] + 1e-9;
        }
        if (good && value_of(p->a, p->b, n, x) < value) {
            value = value_of(p->a, p->b, n, x);
            memcpy(best, x, sizeof x);
        }
    }
    return value;
}

static void check(bool total, bool upper_too) {
    double a[N * N] = {0}, b[N], lower[N], upper[N], equal[N], x[N], best[N] = {0}, truth[N];
    uint8_t at[N];
    int n = 1 + (int)(random_value() * N);
    for (int i = 0; i < n; i++) {
        truth[i] = 4 * random_value() - 2;
        lower[i] = 0;
        upper[i] = upper_too ? 0.2 + random_value() : INFINITY;
        equal[i] = i % 3 == 2 ? 0 : 0.5 + random_value();
    }
    for (int row = 0; row < 9; row++) {
        double z[N];
        for (int i = 0; i < n; i++)
            z[i] = random_value();
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                a[i * n + j] += z[i] * z[j];
    }
    for (int i = 0; i < n; i++) {
        a[i * n + i] += 1e-3;
        b[i] = 0.1 * random_value();
        for (int j = 0; j < n; j++)
            b[i] += a[i * n + j] * truth[j];
    }
    struct hec_nnls p = {n, a, b, lower, upper, total ? equal : NULL, 1.5};
    assert_int_equal(hec_nnls_solve(&p, x, at), 0);
    double expected = least(&p, best), sum = 0;
    assert_true(isfinite(expected));
    assert_near(value_of(a, b, n, x), expected, 1e-9);
    for (int i = 0; i < n; i++) {
        assert_near(x[i], best[i], 1e-6);
        assert_true(x[i] >= lower[i] && x[i] <= upper[i]);
        assert_true(at[i] == HEC_NNLS_FREE || x[i] == (at[i] == HEC_NNLS_LOWER ? lower[i] : upper[i]));
        sum += total ? equal[i] * x[i] : 0;
    }
    if (total)
        assert_near(sum, 1.5, 1e-12);
}

TEST(test_against_every_choice) {
    for (int round = 0; round < 1000; round++) {
        check(false, false);
        check(true, false);
        check(false, true);
    }
}

TEST(test_refused) {
    double a[4] = {1, 0, 0, 1}, b[2] = {1, 1}, zero[2] = {0, 0}, more[2] = {INFINITY, INFINITY}, one[2] = {1, 1}, x[2];
    uint8_t at[2];
    struct hec_nnls p = {2, a, b, zero, more, one, -1};
    assert_int_equal(hec_nnls_solve(&p, x, at), HEC_ERR_USAGE); /* no x >= 0 adds up to -1 */
    p.equal_to = 0;
    assert_int_equal(hec_nnls_solve(&p, x, at), 0);
    assert_true(x[0] == 0 && x[1] == 0);
    p.equal_to = NAN;
    assert_int_equal(hec_nnls_solve(&p, x, at), HEC_ERR_USAGE);
    p.equal = NULL;
    a[3] = -1;
    assert_int_equal(hec_nnls_solve(&p, x, at), HEC_ERR_FAILED); /* not positive definite */
    p.n = HEC_NNLS_MAX + 1;
    assert_int_equal(hec_nnls_solve(&p, x, at), HEC_ERR_USAGE);
}

TEST(test_student) {
    static const struct {
        double freedom, t, tolerance;
    } known[] = {{2, 4.3027, 0.15},   {3, 3.1824, 0.02},   {5, 2.5706, 0.002},
                 {10, 2.2281, 0.001}, {60, 2.0003, 0.001}, {1e9, 1.96, 0.001}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_near(hec_student_975(known[i].freedom), known[i].t, known[i].tolerance);
}
