/* The least squares of unmixing against the textbook's, row by row: the weighted solution under the total by its bordered equations, the
 * sandwich of blocks with their leverage, Satterthwaite's degrees of freedom, and the pull of errors of time. */
#include "base/error.h"
#include "diagnose/watts/unmix_fit.h"
#include "unit.h"

enum { CLASSES = 4, GROUPS = 3, KINS = 2, EXTRAS = 2, N = GROUPS + KINS + EXTRAS, ROWS = 300, SOURCES = 2, BLOCKS = 9 };

static uint64_t seed;

static double random_value(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 33) / 2147483648.0;
}

static const int group_of[CLASSES] = {0, 0, 1, 2}, kin_class[KINS] = {0, 1};
static const double kin_share[KINS] = {0.7, 0.3};

/* A reading: what each unknown is taken for, and what was read. */
static struct {
    double u[N], y, weight;
    int block;
} row[SOURCES][ROWS];
static struct hec_gram gram[SOURCES];

static void draw(bool exact) {
    static const double watts[CLASSES] = {420, 400, 250, 90};
    for (int s = 0; s < SOURCES; s++) {
        int extras = s == 0 ? EXTRAS : 0, columns = CLASSES + extras + 1;
        assert_int_equal(hec_gram_init(&gram[s], columns), 0);
        gram[s].classes = CLASSES;
        for (int i = 0; i < ROWS; i++) {
            double of[CLASSES + EXTRAS + 1] = {0}, sum = 0;
            for (int c = 0; c < CLASSES; c++)
                sum += of[c] = random_value() < 0.5 ? random_value() : 0.01;
            memset(&row[s][i], 0, sizeof row[s][i]);
            double y = (exact ? 0 : 20) * (random_value() - 0.5);
            for (int c = 0; c < CLASSES; c++) {
                of[c] /= sum;
                y += of[c] * watts[c];
                row[s][i].u[group_of[c]] += of[c];
                for (int k = 0; k < KINS && group_of[c] == 0; k++)
                    row[s][i].u[GROUPS + k] += of[c] * ((c == kin_class[k]) - kin_share[k]);
            }
            for (int k = 0; k < extras; k++) {
                of[CLASSES + k] = row[s][i].u[GROUPS + KINS + k] = 30 * (random_value() - 0.5);
                y += 0.2 * of[CLASSES + k];
            }
            of[columns - 1] = row[s][i].y = y;
            row[s][i].weight = 0.5 + random_value();
            row[s][i].block = i * BLOCKS / ROWS;
            hec_gram_add(&gram[s], row[s][i].block, of, row[s][i].weight, 0.02);
        }
        for (int i = 0; i < CLASSES; i++)
            for (int j = 0; j < CLASSES; j++)
                gram[s].timing[i * HEC_GRAM_CLASSES + j] = 1e-4 * (i == j ? 3 : 1);
    }
}

/* The inverse of a bordered by e, (n + 1) x (n + 1). */
static void invert(const double *a, const double *e, int n, double *out) {
    double m[(N + 1) * 2 * (N + 1)] = {0};
    int w = n + 1;
    for (int i = 0; i < w; i++) {
        for (int j = 0; j < w; j++)
            m[i * 2 * w + j] = i < n && j < n ? a[i * n + j] : i < n ? e[i] : j < n ? e[j] : 0;
        m[i * 2 * w + w + i] = 1;
    }
    for (int i = 0; i < w; i++) {
        int pivot = i;
        for (int k = i + 1; k < w; k++)
            pivot = fabs(m[k * 2 * w + i]) > fabs(m[pivot * 2 * w + i]) ? k : pivot;
        for (int j = 0; j < 2 * w; j++) {
            double keep = m[i * 2 * w + j];
            m[i * 2 * w + j] = m[pivot * 2 * w + j];
            m[pivot * 2 * w + j] = keep;
        }
        double by = m[i * 2 * w + i];
        for (int j = 0; j < 2 * w; j++)
            m[i * 2 * w + j] /= by;
        for (int k = 0; k < w; k++) {
            double f = k == i ? 0 : m[k * 2 * w + i];
            for (int j = 0; j < 2 * w && f != 0; j++)
                m[k * 2 * w + j] -= f * m[i * 2 * w + j];
        }
    }
    for (int i = 0; i < w; i++)
        for (int j = 0; j < w; j++)
            out[i * w + j] = m[i * 2 * w + w + j];
}

struct reference {
    double x[N], model[N][N], variance[GROUPS], freedom[GROUPS], bias[GROUPS], residual2[SOURCES], inflation[SOURCES];
};

static double residual_of(int s, int i, const double *x) {
    double left = row[s][i].y;
    for (int k = 0; k < N; k++)
        left -= row[s][i].u[k] * x[k];
    return left;
}

static void reckon(const struct hec_fit *fit, struct reference *r) {
    double a[N * N], b[N], e[N] = {0}, inverse[(N + 1) * (N + 1)], scale[SOURCES];
    for (int s = 0; s < SOURCES; s++) {
        r->residual2[s] = fit->residual_start * fit->residual_start;
        r->inflation[s] = 1;
    }
    for (int g = 0; g < GROUPS; g++)
        e[g] = fit->seconds[g];
    for (int round = 0; round < 5; round++) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        for (int s = 0; s < SOURCES; s++) {
            scale[s] = 1 / (r->residual2[s] * r->inflation[s]);
            for (int i = 0; i < ROWS; i++)
                for (int k = 0; k < N; k++) {
                    b[k] += scale[s] * row[s][i].weight * row[s][i].u[k] * row[s][i].y;
                    for (int l = 0; l < N; l++)
                        a[k * N + l] += scale[s] * row[s][i].weight * row[s][i].u[k] * row[s][i].u[l];
                }
        }
        for (int g = 0; g < GROUPS; g++)
            for (int h = 0; h < GROUPS; h++) {
                a[g * N + h] += fit->certainty[g * GROUPS + h];
                b[g] += fit->certainty[g * GROUPS + h] * fit->believed[h];
            }
        for (int k = GROUPS; k < N; k++) {
            double sd = k < GROUPS + KINS ? fit->kin_sd : fit->extra_sd;
            a[k * N + k] += 1 / (sd * sd);
        }
        invert(a, e, N, inverse);
        for (int k = 0; k < N; k++) {
            r->x[k] = inverse[k * (N + 1) + N] * fit->total;
            for (int l = 0; l < N; l++)
                r->x[k] += inverse[k * (N + 1) + l] * b[l];
        }
        for (int s = 0; s < SOURCES && round < 4; s++) {
            double squares = 0, by_block[BLOCKS] = {0}, sums = 0, weight = 0;
            for (int i = 0; i < ROWS; i++) {
                double left = residual_of(s, i, r->x);
                squares += row[s][i].weight * left * left;
                by_block[row[s][i].block] += row[s][i].weight * left;
                weight += row[s][i].weight;
            }
            for (int k = 0; k < BLOCKS; k++)
                sums += by_block[k] * by_block[k];
            r->residual2[s] = fmax(squares / ROWS, fit->residual_least * fit->residual_least);
            r->inflation[s] = fmin(fmax(sums / (weight * r->residual2[s]), 1), 30);
        }
    }
    for (int k = 0; k < N; k++)
        for (int l = 0; l < N; l++)
            r->model[k][l] = inverse[k * (N + 1) + l];
    double change[BLOCKS][N], lambda[BLOCKS][GROUPS], most_sd = 0;
    for (int g = 0; g < GROUPS; g++)
        most_sd = fmax(most_sd, fit->own_sd[g]);
    for (int block = 0; block < BLOCKS; block++) {
        double half[N * N], part[N * N] = {0}, score[N] = {0}, own[N] = {0}, of[(N + 1) * (N + 1)], joules = 0;
        for (int s = 0; s < SOURCES; s++)
            for (int i = 0; i < ROWS; i++)
                for (int k = 0; k < N && row[s][i].block == block; k++) {
                    score[k] += scale[s] * row[s][i].weight * row[s][i].u[k] * residual_of(s, i, r->x);
                    for (int l = 0; l < N; l++)
                        part[k * N + l] += scale[s] * row[s][i].weight * row[s][i].u[k] * row[s][i].u[l];
                }
        for (int k = 0; k < N * N; k++)
            half[k] = a[k] - part[k] / 2;
        invert(half, e, N, of);
        for (int g = 0; g < GROUPS; g++) {
            double sum = 0, all = 0;
            for (int i = 0; i < ROWS; i++) { /* the second source is exact */
                sum += row[1][i].block == block ? row[1][i].weight * row[1][i].u[g] * residual_of(1, i, r->x) : 0;
                all += row[1][i].weight * row[1][i].u[g];
            }
            own[g] = fmax(1 - fit->source[1].reading2 / r->residual2[1], 0) * sum / all * fit->own_sd[g] / most_sd;
            joules += fit->seconds[g] * own[g];
        }
        for (int k = 0; k < N; k++) {
            change[block][k] = inverse[k * (N + 1) + N] * joules - own[k];
            for (int l = 0; l < N; l++)
                change[block][k] += of[k * (N + 1) + l] * score[l];
        }
        for (int g = 0; g < GROUPS; g++) {
            lambda[block][g] = 0;
            for (int k = 0; k < N; k++)
                for (int l = 0; l < N; l++)
                    lambda[block][g] += r->model[g][k] * part[k * N + l] * r->model[g][l];
        }
    }
    for (int g = 0; g < GROUPS; g++) {
        double own = 0, next = 0, sum = 0, squares = 0, believed = 0, pulled = 0;
        for (int k = 0; k < BLOCKS; k++) {
            own += change[k][g] * change[k][g];
            next += k ? change[k][g] * change[k - 1][g] : 0;
            sum += lambda[k][g];
            squares += lambda[k][g] * lambda[k][g];
        }
        for (int k = 0; k < N; k++)
            for (int l = 0; l < N; l++)
                believed += r->model[g][k] * r->model[g][l] *
                            (k < GROUPS && l < GROUPS ? fit->certainty[k * GROUPS + l]
                             : k != l                 ? 0
                             : k < GROUPS + KINS      ? 1 / (fit->kin_sd * fit->kin_sd)
                                                      : 1 / (fit->extra_sd * fit->extra_sd));
        double seen = fmax(own + next, own / 2) * fmax(fit->repeated, 1);
        r->variance[g] = seen + believed + pow(inverse[g * (N + 1) + N] * fit->total_sigma, 2);
        double part = seen / r->variance[g];
        r->freedom[g] = fmax(sum * sum / squares, 2) / (part * part);
        for (int s = 0; s < SOURCES; s++)
            for (int i = 0; i < CLASSES; i++)
                for (int j = 0; j < CLASSES; j++)
                    pulled += r->model[g][group_of[i]] * scale[s] * gram[s].timing[i * HEC_GRAM_CLASSES + j] *
                              (r->x[group_of[j]] - fit->center);
        r->bias[g] = fabs(pulled);
    }
}

static void near(double found, double expected) {
    assert_near(found, expected, 1e-9 + 1e-6 * fabs(expected));
}

static void check(uint64_t number) {
    static struct hec_fit fit;
    static struct reference r;
    seed = number * 977 + 1;
    draw(false);
    memset(&fit, 0, sizeof fit);
    fit.source[0] = (struct hec_fit_source){.gram = &gram[0], .extras = EXTRAS};
    fit.source[1] = (struct hec_fit_source){.gram = &gram[1], .exact = true, .reading2 = 5 * random_value()};
    fit.sources = SOURCES;
    fit.classes = CLASSES;
    fit.group = group_of;
    fit.groups = GROUPS;
    fit.kins = KINS;
    fit.has_total = true;
    fit.total_sigma = 5;
    fit.center = 250;
    fit.kin_sd = 15;
    fit.extra_sd = 0.3;
    fit.upper = INFINITY;
    fit.repeated = number % 2 ? 1.5 : 0;
    fit.residual_start = 7;
    fit.residual_least = 0.02;
    for (int k = 0; k < KINS; k++) {
        fit.kin_class[k] = kin_class[k];
        fit.kin_share[k] = kin_share[k];
    }
    for (int g = 0; g < GROUPS; g++) {
        fit.seconds[g] = 10 + g;
        fit.believed[g] = 200 + 50 * g;
        fit.own_sd[g] = 100 + 40 * g;
    }
    for (int g = 0; g < GROUPS; g++)
        for (int h = 0; h < GROUPS; h++)
            fit.certainty[g * GROUPS + h] = (g == h ? 1.5 : -0.2) / (fit.own_sd[g] * fit.own_sd[h]);
    fit.total = 10 * 414 + 11 * 250 + 12 * 90;
    assert_int_equal(hec_fit_solve(&fit), 0);
    reckon(&fit, &r);
    assert_int_equal(fit.n, N);
    assert_int_equal(fit.blocks, BLOCKS);
    for (int s = 0; s < SOURCES; s++) {
        near(fit.source[s].residual2, r.residual2[s]);
        near(fit.source[s].inflation, r.inflation[s]);
    }
    for (int k = 0; k < N; k++) {
        assert_int_equal(fit.at[k], HEC_NNLS_FREE);
        near(fit.x[k], r.x[k]);
        for (int l = 0; l < N; l++)
            near(fit.model[k * N + l], r.model[k][l]);
    }
    for (int g = 0; g < GROUPS; g++) {
        near(fit.variance[g], r.variance[g]);
        near(fit.freedom[g], r.freedom[g]);
        near(fit.bias[g], r.bias[g]);
        assert_near(fit.x[g], g == 0 ? 414 : g == 1 ? 250 : 90, 5); /* what it was made of */
    }
    for (int s = 0; s < SOURCES; s++)
        hec_gram_free(&gram[s]);
}

TEST(under_a_total) {
    for (uint64_t number = 1; number <= 4; number++)
        check(number);
}

/* What the readings want below its least value stays there, and all else of the total is the others'. */
TEST(at_its_least) {
    static struct hec_fit fit;
    memset(&fit, 0, sizeof fit);
    seed = 5;
    draw(true);
    fit.source[0] = (struct hec_fit_source){.gram = &gram[1]};
    fit.sources = 1;
    fit.classes = CLASSES;
    fit.group = group_of;
    fit.groups = GROUPS;
    fit.center = 250;
    fit.upper = INFINITY;
    fit.residual_start = 7;
    fit.residual_least = 0.02;
    fit.has_total = true;
    fit.total = 10 * 410 + 10 * 250 + 10 * 120;
    for (int g = 0; g < GROUPS; g++) {
        fit.seconds[g] = 10;
        fit.believed[g] = fit.own_sd[g] = 250;
        fit.certainty[g * GROUPS + g] = 1.0 / (250 * 250);
    }
    fit.lower[2] = 120;
    assert_int_equal(hec_fit_solve(&fit), 0);
    assert_int_equal(fit.at[0], HEC_NNLS_FREE);
    assert_int_equal(fit.at[1], HEC_NNLS_FREE);
    assert_int_equal(fit.at[2], HEC_NNLS_LOWER);
    near(fit.x[2], 120);
    near(10 * (fit.x[0] + fit.x[1] + fit.x[2]), fit.total);
    assert_true(fit.variance[2] > 0 && fit.freedom[2] >= 2); /* as if it were free */
    for (int s = 0; s < SOURCES; s++)
        hec_gram_free(&gram[s]);
}

/* No groups, or more unknowns than there is room for. */
TEST(what_cannot_be_solved) {
    static struct hec_fit fit;
    memset(&fit, 0, sizeof fit);
    assert_int_equal(hec_fit_solve(&fit), HEC_ERR_FAILED);
    fit.groups = 1;
    fit.kins = HEC_NNLS_MAX;
    assert_int_equal(hec_fit_solve(&fit), HEC_ERR_FAILED);
}
