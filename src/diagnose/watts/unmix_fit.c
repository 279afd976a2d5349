#include "diagnose/watts/unmix_fit.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N HEC_NNLS_MAX
#define ROUNDS 5 /* of weighting the sources by their residuals */
#define INFLATION_MAX 30.0
#define CAUTION 4.0
#define CAUTION_MAX 1e5
#define MATTERS 0.02 /* of the time */
#define PULL_MAX 3.0
#define CLOSELY 0.11
#define CONTRADICTS 3.0 /* standard deviations */
#define IMPROBABLE 6.0  /* ... of how far readings can move a belief that they leave about as uncertain */
#define NEIGHBOURS 0.5  /* Bartlett's weight of the next block (Newey and West with one lag) */

/* The normal equations of one block, or of all. */
struct normal {
    double a[N * N], b[N], y2, weight;
    int64_t count;
};

/* Which unknowns a class's share counts for, and how much: its group, and each kind of that group: a kind's unknown goes
 * with its own share less its part of the group's. */
struct terms {
    int count, to[N];
    double part[N];
};

static void terms_of(const struct hec_fit *fit, int column, struct terms *out) {
    out->count = 0;
    if (column >= fit->classes) {
        out->to[out->count] = fit->groups + fit->kins + column - fit->classes;
        out->part[out->count++] = 1;
        return;
    }
    int g = fit->group[column];
    if (g < 0)
        return;
    out->to[out->count] = g;
    out->part[out->count++] = 1;
    for (int k = 0; k < fit->kins; k++)
        if (fit->kin_group[k] == g) {
            out->to[out->count] = fit->groups + k;
            out->part[out->count++] = (fit->kin_class[k] == column) - fit->kin_share[k];
        }
}

static void collapse(const struct hec_fit *fit, const struct hec_fit_source *source, const struct terms *terms,
                     int block, struct normal *out) {
    const struct hec_gram *gram = source->gram;
    const double *from = gram->block + (size_t)block * (size_t)gram->packed;
    int columns = gram->columns, n = fit->n;
    memset(out, 0, sizeof *out);
    for (int i = 0; gram->count[block] && i < columns - 1; from += columns - i, i++)
        for (int s = 0; s < terms[i].count; s++) {
            int to = terms[i].to[s];
            double part = terms[i].part[s];
            for (int j = i; j < columns - 1; j++) {
                double x = part * from[j - i];
                for (int t = 0; x != 0 && t < terms[j].count; t++) {
                    out->a[to * n + terms[j].to[t]] += x * terms[j].part[t];
                    if (j != i)
                        out->a[terms[j].to[t] * n + to] += x * terms[j].part[t];
                }
            }
            out->b[to] += part * from[columns - 1 - i];
        }
    out->y2 = gram->block[(size_t)(block + 1) * (size_t)gram->packed - 1];
    out->weight = gram->weight[block];
    out->count = gram->count[block];
}

/* What is believed of an unknown that is no group: its standard deviation. */
static double sd_of(const struct hec_fit *fit, int unknown) {
    return unknown < fit->groups + fit->kins ? fit->kin_sd : fit->extra_sd;
}

/* y'y - 2 x'b + x'Ax, and the sum of the residuals: the shares of all groups add up to 1. */
static double residuals(const struct normal *m, int n, int groups, const double *x, double *sum) {
    double squares = m->y2;
    *sum = 0;
    for (int i = 0; i < n; i++) {
        double ax = 0;
        for (int j = 0; j < n; j++)
            ax += m->a[i * n + j] * x[j];
        squares += x[i] * (ax - 2 * m->b[i]);
        if (i < groups)
            *sum += m->b[i] - ax;
    }
    return squares;
}

/* Of a squared residual of a source. */
static double weight_of(const struct hec_fit *fit, const struct hec_fit_source *source) {
    double caution = source->plain ? 1 : fit->caution;
    return 1 / (source->residual2 * source->inflation * caution);
}

/* All sources and the prior together. */
static void assemble(const struct hec_fit *fit, const struct normal *blocks, double *a, double *b) {
    int n = fit->n;
    memset(a, 0, sizeof *a * (size_t)(n * n));
    memset(b, 0, sizeof *b * (size_t)n);
    for (int s = 0; s < fit->sources; s++) {
        double scale = weight_of(fit, &fit->source[s]);
        for (int k = 0; k < HEC_BLOCKS_MAX; k++) {
            const struct normal *m = &blocks[s * HEC_BLOCKS_MAX + k];
            if (!m->count)
                continue;
            for (int i = 0; i < n * n; i++)
                a[i] += scale * m->a[i];
            for (int i = 0; i < n; i++)
                b[i] += scale * m->b[i];
        }
    }
    for (int g = 0; g < fit->groups; g++)
        for (int h = 0; h < fit->groups; h++) {
            a[g * n + h] += fit->certainty[g * fit->groups + h];
            b[g] += fit->certainty[g * fit->groups + h] * fit->believed[h];
        }
    for (int i = fit->groups; i < n; i++)
        a[i * n + i] += 1 / (sd_of(fit, i) * sd_of(fit, i));
}

/* What the error of the beliefs does to group g. */
static double believed_variance(const struct hec_fit *fit, int g) {
    const double *model = fit->model + g * fit->n;
    double sum = 0;
    for (int i = 0; i < fit->groups; i++)
        for (int j = 0; j < fit->groups; j++)
            sum += model[i] * fit->certainty[i * fit->groups + j] * model[j];
    for (int i = fit->groups; i < fit->n; i++)
        sum += model[i] * model[i] / (sd_of(fit, i) * sd_of(fit, i));
    return fmax(sum, 0);
}

static void weigh(struct hec_fit *fit, const struct normal *blocks) {
    for (int s = 0; s < fit->sources; s++) {
        struct hec_fit_source *source = &fit->source[s];
        double squares = 0, sums = 0, count = 0, weight = 0;
        for (int k = 0; k < HEC_BLOCKS_MAX; k++) {
            const struct normal *m = &blocks[s * HEC_BLOCKS_MAX + k];
            double sum;
            if (!m->count)
                continue;
            squares += residuals(m, fit->n, fit->groups, fit->x, &sum);
            sums += sum * sum;
            count += (double)m->count;
            weight += m->weight;
        }
        if (count == 0)
            continue;
        source->residual2 = fmax(squares / count, fit->residual_least * fit->residual_least);
        source->inflation = fmin(fmax(sums / (weight * source->residual2), 1), INFLATION_MAX);
    }
}

/* Of the m free unknowns `index`: the factor of a less half of a block's part (NULL: of a alone). */
static int factor_of(const double *a, const double *part, int n, const int *index, int m, double *factor) {
    for (int r = 0; r < m; r++)
        for (int c = 0; c <= r; c++) {
            int at = index[r] * n + index[c];
            factor[r * m + c] = a[at] - (part ? part[at] / 2 : 0);
        }
    return hec_cholesky(factor, m);
}

/* x := the solution of the free unknowns' equations under e'x = 0. */
static void solve_under(const double *factor, const double *e, int m, double *x) {
    double v[N], by_x = 0, by_v = 0;
    hec_cholesky_solve(factor, m, x);
    memcpy(v, e, (size_t)m * sizeof *v);
    hec_cholesky_solve(factor, m, v);
    for (int i = 0; i < m; i++) {
        by_x += e[i] * x[i];
        by_v += e[i] * v[i];
    }
    for (int i = 0; by_v > 0 && i < m; i++)
        x[i] -= by_x / by_v * v[i];
}

/* How far group g itself was from its mean in block k, over all of its time, by a source without errors of its own:
 * what that moves is the energy that is asked for and no error. A residual is shared out by time, and of a group that is
 * believed to vary less than the one that may most, as much less. */
static double own_mean(const struct hec_fit *fit, const struct normal *blocks, int k, int g) {
    double sum = 0, all = 0, own = 0;
    for (int s = 0; s < fit->sources; s++) {
        const struct normal *b = &blocks[s * HEC_BLOCKS_MAX];
        if (!fit->source[s].exact || g >= fit->groups)
            continue;
        for (int block = 0; block < HEC_BLOCKS_MAX; block++)
            for (int j = 0; b[block].count && j < fit->groups; j++)
                all += b[block].a[g * fit->n + j];
        own = fmax(1 - fit->source[s].reading2 / fit->source[s].residual2, 0);
        sum = b[k].b[g];
        for (int j = 0; j < fit->n; j++)
            sum -= b[k].a[g * fit->n + j] * fit->x[j];
    }
    double most = 0;
    for (int h = 0; h < fit->groups; h++)
        most = fmax(most, fit->own_sd[h]);
    return all > 0 ? own * sum / all * (g < fit->groups ? fit->own_sd[g] / most : 0) : 0;
}

/* Blocks' scores into change[block * n + unknown]: how the solution moves when a block is left out, or nearly: a -
 * part/2 in place of a - part corrects the residuals for leverage so that their expectation is right (CR2). by_total: how
 * it moves with the total. */
static int changes(const struct hec_fit *fit, const struct normal *blocks, const double *a, const int *index, int m,
                   const double *e, const double *by_total, double *change, double *lambda) {
    int n = fit->n;
    for (int k = 0; k < HEC_BLOCKS_MAX; k++) {
        double part[N * N] = {0}, factor[N * N], score[N], all[N] = {0};
        bool any = false;
        memset(change + k * n, 0, (size_t)n * sizeof *change);
        for (int s = 0; s < fit->sources; s++) {
            const struct normal *b = &blocks[s * HEC_BLOCKS_MAX + k];
            double scale = weight_of(fit, &fit->source[s]);
            if (!b->count)
                continue;
            any = true;
            for (int i = 0; i < n; i++) {
                double ax = 0;
                for (int j = 0; j < n; j++) {
                    part[i * n + j] += scale * b->a[i * n + j];
                    ax += b->a[i * n + j] * fit->x[j];
                }
                all[i] += scale * (b->b[i] - ax);
            }
        }
        if (!any)
            continue;
        if (factor_of(a, part, n, index, m, factor))
            return HEC_ERR_FAILED;
        for (int r = 0; r < m; r++)
            score[r] = all[index[r]];
        solve_under(factor, e, m, score);
        double own[N] = {0}, joules = 0; /* the total has them too */
        for (int g = 0; g < fit->groups; g++) {
            own[g] = own_mean(fit, blocks, k, g);
            joules += fit->seconds[g] * own[g];
        }
        for (int r = 0; r < m; r++)
            change[k * n + index[r]] = score[r] + by_total[r] * joules - own[index[r]];
        for (int g = 0; g < fit->groups;
             g++) { /* what this block contributes to the variance of each, were residuals alike */
            double sum = 0;
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    sum += fit->model[g * n + i] * part[i * n + j] * fit->model[g * n + j];
            lambda[k * n + g] = sum;
        }
    }
    return 0;
}

static int covariance(struct hec_fit *fit, const struct normal *blocks, const double *a, bool all, double *change,
                      double *lambda) {
    int n = fit->n, index[N], m = 0;
    double factor[N * N], e[N] = {0}, shift[N] = {0}, by_shift = 0;
    for (int i = 0; i < n; i++)
        if (all || fit->at[i] == HEC_NNLS_FREE)
            index[m++] = i;
    if (!m)
        return 0;
    for (int r = 0; r < m; r++)
        e[r] = fit->has_total && index[r] < fit->groups ? fit->seconds[index[r]] : 0;
    if (factor_of(a, NULL, n, index, m, factor))
        return HEC_ERR_FAILED;
    memset(fit->model, 0, sizeof fit->model);
    for (int r = 0; r < m; r++) {
        double column[N] = {0};
        column[r] = 1;
        solve_under(factor, e, m, column);
        for (int c = 0; c < m; c++)
            fit->model[index[c] * n + index[r]] = column[c];
    }
    if (fit->has_total) {
        memcpy(shift, e, sizeof shift);
        hec_cholesky_solve(factor, m, shift);
        for (int r = 0; r < m; r++)
            by_shift += e[r] * shift[r];
    }
    for (int r = 0; r < m; r++)
        shift[r] = by_shift > 0 ? shift[r] / by_shift : 0; /* of a joule more in total */
    memset(lambda, 0, sizeof *lambda * (size_t)(n * HEC_BLOCKS_MAX));
    if (changes(fit, blocks, a, index, m, e, shift, change, lambda))
        return HEC_ERR_FAILED;
    for (int r = 0; r < m && index[r] < fit->groups; r++) {
        int g = index[r];
        double own = 0, next = 0, sum = 0, squares = 0;
        if (all && fit->at[g] == HEC_NNLS_FREE)
            continue; /* has its own from before */
        for (int k = 0; k < HEC_BLOCKS_MAX; k++) {
            own += change[k * n + g] * change[k * n + g];
            if (k)
                next += change[k * n + g] * change[(k - 1) * n + g];
            sum += lambda[k * n + g];
            squares += lambda[k * n + g] * lambda[k * n + g];
        }
        double seen = fmax(own + 2 * NEIGHBOURS * next, own / 2) * fmax(fit->repeated, 1);
        fit->variance[g] = seen + believed_variance(fit, g);
        fit->variance[g] += pow(shift[r] * fit->total_sigma, 2);
        /* only what was estimated has few degrees of freedom (Satterthwaite, Biometrics Bulletin 2, 1946) */
        double freedom = squares > 0 ? fmax(sum * sum / squares, 2) : 2;
        double part = fit->variance[g] > 0 ? seen / fit->variance[g] : 1;
        fit->freedom[g] = part > 1e-3 && part < 1 ? freedom / (part * part) : part >= 1 ? freedom : 1e6;
    }
    return 0;
}

/* Errors in the shares draw estimates together by B E w, where E is the sum of the errors' squares (Fuller, Measurement
 * Error Models, 1987, 1.1). */
static void find_bias(struct hec_fit *fit) {
    double pull[N] = {0};
    for (int s = 0; s < fit->sources; s++) {
        double scale = weight_of(fit, &fit->source[s]);
        for (int i = 0; i < fit->classes; i++)
            for (int j = 0; fit->group[i] >= 0 && j < fit->classes; j++)
                if (fit->group[j] >= 0)
                    pull[fit->group[i]] += scale * fit->source[s].gram->timing[i * HEC_GRAM_CLASSES + j] *
                                           (fit->x[fit->group[j]] - fit->center);
    }
    for (int g = 0; g < fit->groups; g++) {
        fit->bias[g] = 0;
        for (int h = 0; h < fit->groups; h++)
            fit->bias[g] += fit->model[g * fit->n + h] * pull[h];
        fit->bias[g] = fabs(fit->bias[g]);
    }
}

static int solve(struct hec_fit *fit, const struct normal *blocks, double *change, double *lambda) {
    double a[N * N], b[N], lower[N], upper[N], equal[N];
    bool bound = false;
    int n = fit->n, err = 0;
    for (int i = 0; i < n; i++) {
        lower[i] = i < fit->groups ? fit->lower[i] : -INFINITY;
        upper[i] = i < fit->groups ? fit->upper : INFINITY;
        equal[i] = fit->has_total && i < fit->groups ? fit->seconds[i] : 0;
    }
    for (int round = 0; !err && round < ROUNDS; round++) {
        assemble(fit, blocks, a, b);
        struct hec_nnls problem = {n, a, b, lower, upper, fit->has_total ? equal : NULL, fit->total};
        err = hec_nnls_solve(&problem, fit->x, fit->at);
        if (!err && round < ROUNDS - 1)
            weigh(fit, blocks);
    }
    if (!err)
        err = covariance(fit, blocks, a, false, change, lambda);
    for (int g = 0; g < fit->groups; g++)
        bound = bound || fit->at[g] != HEC_NNLS_FREE;
    if (!err && bound) /* what a class at a bound could be takes it as free; the others keep theirs */
        err = covariance(fit, blocks, a, true, change, lambda);
    if (!err)
        find_bias(fit);
    return err;
}

/* Of a group that is believed to follow the common level closely the readings say quite something else, or they move one far
 * away and know it no better than before: were the model right, the move would have the variance that they take away. */
static bool contradicts(const struct hec_fit *fit, int g) {
    double moved = fabs(fit->x[g] - fit->believed[g]), sd = fit->believed_sd[g];
    double taken = fmax(sd * sd - fit->variance[g], 0);
    return moved > CONTRADICTS * sd &&
           (fit->own_sd[g] < CLOSELY * fit->believed[g] || moved > IMPROBABLE * sqrt(taken));
}

/* Readings do not make a group that matters less certain than it was believed to be; errors of time, which are taken at
 * their worst, not by much. */
static bool worthwhile(const struct hec_fit *fit) {
    double seconds = 0;
    for (int g = 0; g < fit->groups; g++)
        seconds += fit->seconds[g];
    for (int g = 0; g < fit->groups; g++)
        if (contradicts(fit, g) ||
            (fit->seconds[g] > MATTERS * seconds &&
             (sqrt(fit->variance[g]) > fit->believed_sd[g] || fit->bias[g] > PULL_MAX * fit->believed_sd[g])))
            return false;
    return true;
}

int hec_fit_solve(struct hec_fit *fit) {
    struct terms terms[HEC_GRAM_CLASSES + N];
    fit->n = fit->groups + fit->kins;
    for (int s = 0; s < fit->sources; s++)
        fit->n += fit->source[s].extras;
    if (fit->groups < 1 || fit->n > N)
        return HEC_ERR_FAILED;
    struct normal *blocks = calloc((size_t)fit->sources * HEC_BLOCKS_MAX + 1, sizeof *blocks);
    double *change = calloc((size_t)HEC_BLOCKS_MAX * (size_t)fit->n * 2, sizeof *change);
    int err = blocks && change ? 0 : HEC_ERR_NOMEM;
    fit->blocks = 0;
    for (int i = 0; i < fit->n - fit->groups - fit->kins + fit->classes; i++)
        terms_of(fit, i, &terms[i]);
    for (int k = 0; !err && k < HEC_BLOCKS_MAX; k++) {
        bool any = false;
        for (int s = 0; s < fit->sources; s++) {
            collapse(fit, &fit->source[s], terms, k, &blocks[s * HEC_BLOCKS_MAX + k]);
            any = any || blocks[s * HEC_BLOCKS_MAX + k].count;
        }
        fit->blocks += any;
    }
    for (fit->caution = fit->doubted ? CAUTION_MAX : 1; !err; fit->caution *= CAUTION) {
        for (int s = 0; s < fit->sources; s++) {
            fit->source[s].residual2 = fit->residual_start * fit->residual_start;
            fit->source[s].inflation = 1;
        }
        err = solve(fit, blocks, change, change + (size_t)HEC_BLOCKS_MAX * (size_t)fit->n);
        if (!fit->cautious || fit->caution > CAUTION_MAX || worthwhile(fit))
            break;
    }
    free(blocks);
    free(change);
    return err;
}
