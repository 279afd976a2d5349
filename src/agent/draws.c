#include "agent/draws.h"

#include "base/clock.h"

#include <math.h>

#define WINDOW_NS (3 * HEC_NS_PER_S) /* power settles within a second or two of the last kernel */
#define AGREES 0.03
#define MEMORY_NS (3600 * HEC_NS_PER_S)

static void take_lower(double *lowest_mw, double mw) {
    if (*lowest_mw <= 0 || mw < *lowest_mw)
        *lowest_mw = mw;
}

void hec_floor_add(struct hec_floor *floor, int64_t power_mw, int64_t duration_ns) {
    floor->window_ns += duration_ns;
    floor->window_mw_ns += (double)power_mw * (double)duration_ns;
    floor->seen_ns += duration_ns;
    if (floor->window_ns < WINDOW_NS)
        return;
    double mean_mw = floor->window_mw_ns / (double)floor->window_ns;
    if (mean_mw > 0 && fabs(mean_mw - floor->before_mw) <= AGREES * floor->before_mw)
        take_lower(&floor->lowest_mw[0], (mean_mw + floor->before_mw) / 2);
    floor->before_mw = mean_mw;
    floor->window_ns = 0;
    floor->window_mw_ns = 0;
    if (floor->seen_ns >= MEMORY_NS && floor->lowest_mw[0] > 0) {
        floor->lowest_mw[1] = floor->lowest_mw[0];
        floor->lowest_mw[0] = 0;
        floor->seen_ns = 0;
    }
}

void hec_floor_set(struct hec_floor *floor, int64_t mw) {
    *floor = (struct hec_floor){.lowest_mw = {mw > 0 ? (double)mw : 0, 0}};
}

int64_t hec_floor_mw(const struct hec_floor *floor) {
    double mw = floor->lowest_mw[0];
    if (floor->lowest_mw[1] > 0)
        take_lower(&mw, floor->lowest_mw[1]);
    return mw > 0 ? (int64_t)llround(mw) : -1;
}

#define BLOCK_NS (5 * HEC_NS_PER_S) /* the driver's utilisation is of up to a second ago: a fifth of a block at most */
#define POOL_NS (60 * HEC_NS_PER_S)
#define SAMPLE_NS                                                                                                      \
    (HEC_NS_PER_S / 5.0) /* between two looks of the driver at whose turn it is (measured on H100 and H200) */
/* Between two that are worth an independent one. Looks come evenly and fall into step with programs that take turns evenly: on an
 * H200 means of 5 to 20 s varied 3 to 4 times as much as those of independent looks would, on an H100, with the same two programs,
 * 0.3 times as much (bench/results/2026-11-24-h200-agent). */
#define TURN_NS (HEC_NS_PER_S / 1.5)
#define SIGMAS 3         /* of that sampling: what differs by more is another mix */
#define SPREAD 0.6       /* of a tenant's figure around the overall figure, before anything is known of it */
#define NOISE 0.05       /* of a block's power, besides the sampling */
#define ROUGH_NOISE 0.50 /* and where a context adds to the floor that is known */
#define BESIDE                                                                                                         \
    0.1 /* of a figure, which never learns it: beside others a program draws other power than alone (2 to 5 %) */
#define KEEPS                                                                                                          \
    0.9997 /* a block: what is known fades back to the overall figure, as programs change (half in three hours) */
#define LEAST 0.05       /* of the overall figure: nothing runs for nothing */
#define MEMORY 100       /* blocks over which the overall figure is averaged */
#define IDLE_PERMILLE 20 /* a block with less says nothing */
#define MW_A_UJ_A_NS 1e6

void hec_draws_break(struct hec_draws *draws) {
    draws->block = (struct hec_draws_block){0};
}

void hec_draws_set(struct hec_draws *draws, size_t i, double mean) {
    hec_draws_break(draws);
    draws->pool = (struct hec_draws_block){0};
    draws->mean[i] = mean > 0 && isfinite(mean) ? mean : 0;
    if (draws->mean[i] > 0 && !(draws->overall > 0))
        draws->overall = draws->mean[i];
    for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
        draws->covariance[i][j] = draws->covariance[j][i] = 0;
    draws->covariance[i][i] = draws->mean[i] > 0 ? 0.25 * SPREAD * SPREAD * draws->mean[i] * draws->mean[i] : 0;
}

double hec_draws_of(const struct hec_draws *draws, size_t i) {
    return draws->mean[i] > 0 ? draws->mean[i] : draws->overall > 0 ? draws->overall : 1;
}

/* Of directions that nothing is seen of, no more than was assumed at first is ever in doubt. */
static void fade(struct hec_draws *draws, double keeps, double variance) {
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        if (!(draws->mean[i] > 0))
            continue;
        draws->mean[i] += (1 - keeps) * (draws->overall - draws->mean[i]);
        for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
            draws->covariance[i][j] *= keeps * keeps;
        draws->covariance[i][i] += (1 - keeps * keeps) * variance;
    }
}

/* How often the driver looked in so much time. */
static double looks(const struct hec_draws *draws, double ns) {
    return draws->measured ? INFINITY : ns / SAMPLE_NS;
}

/* One step of the filter: x is the mean utilisation, y the power. Each sample found one tenant running, or none: the variance of
 * that multinomial is part of y's. */
static void fit(struct hec_draws *draws, const double x[HEC_DRAWS_MAX], double y, double ns, bool rough) {
    double overall = draws->overall, spread = SPREAD * overall, through[HEC_DRAWS_MAX], predicted = 0, square = 0,
           variance = 0;
    fade(draws, pow(KEEPS, ns / BLOCK_NS), spread * spread);
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        if (!(x[i] > 0))
            continue;
        if (!(draws->mean[i] > 0)) {
            draws->mean[i] = overall;
            draws->covariance[i][i] = spread * spread;
        }
        predicted += draws->mean[i] * x[i];
        square += draws->mean[i] * draws->mean[i] * x[i] * 1000;
    }
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        through[i] = 0;
        for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
            through[i] += draws->covariance[i][j] * x[j];
        variance += through[i] * x[i];
    }
    double noise = (rough ? ROUGH_NOISE : NOISE) * fmax(y, predicted);
    variance += noise * noise + fmax(0, square - predicted * predicted) / looks(draws, ns);
    if (!(variance > 0))
        return;
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        if (!(draws->mean[i] > 0))
            continue;
        draws->mean[i] = fmax(LEAST * overall, draws->mean[i] + through[i] / variance * (y - predicted));
        for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
            draws->covariance[i][j] -= through[i] * through[j] / variance;
    }
}

static double sum_of(const struct hec_draws_block *block) {
    double sum = 0;
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++)
        sum += block->permille[i];
    return sum;
}

static bool alone(const struct hec_draws_block *block) {
    size_t tenants = 0;
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++)
        tenants += block->permille[i] > 0;
    return tenants == 1;
}

/* The mix that changed nothing but by sampling is fitted as one: block by block, power that stays while the samples jump would be
 * taken as a sign that all draw the same. */
static void fit_pool(struct hec_draws *draws) {
    struct hec_draws_block *pool = &draws->pool;
    double x[HEC_DRAWS_MAX], ns = (double)pool->ns;
    for (size_t i = 0; i < HEC_DRAWS_MAX && pool->ns > 0; i++)
        x[i] = pool->permille[i] / ns;
    if (pool->ns > 0)
        fit(draws, x, pool->uj / ns * MW_A_UJ_A_NS, ns, pool->rough);
    *pool = (struct hec_draws_block){0};
}

/* Whether the tenants' parts of two blocks differ by no more than the driver's sampling of whose turn it is makes. */
static bool same_mix(const struct hec_draws *draws, const struct hec_draws_block *a, const struct hec_draws_block *b) {
    double sum_a = sum_of(a), sum_b = sum_of(b),
           turns = 1 / (1 / looks(draws, (double)a->ns) + 1 / looks(draws, (double)b->ns));
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        double part_a = a->permille[i] / sum_a, part_b = b->permille[i] / sum_b,
               part = (a->permille[i] + b->permille[i]) / (sum_a + sum_b);
        if (fabs(part_a - part_b) > SIGMAS * sqrt(part * (1 - part) / turns))
            return false;
    }
    return true;
}

static void merge(struct hec_draws_block *into, const struct hec_draws_block *block) {
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++)
        into->permille[i] += block->permille[i];
    into->uj += block->uj;
    into->rough |= block->rough;
    into->ns += block->ns;
}

static void end_block(struct hec_draws *draws) {
    struct hec_draws_block block = draws->block;
    draws->block = (struct hec_draws_block){0};
    double permille = sum_of(&block) / (double)block.ns, y = block.uj / (double)block.ns * MW_A_UJ_A_NS;
    if (permille < IDLE_PERMILLE || !(y > 0))
        return;
    draws->blocks += draws->blocks < MEMORY;
    draws->overall += (y / permille - draws->overall) / draws->blocks;
    if (draws->pool.ns > 0 && !same_mix(draws, &draws->pool, &block))
        fit_pool(draws);
    merge(&draws->pool, &block);
    if (draws->pool.ns >= POOL_NS || alone(&draws->pool))
        fit_pool(draws);
}

void hec_draws_add(struct hec_draws *draws, int64_t active_uj, int64_t duration_ns,
                   const double permille[HEC_DRAWS_MAX], bool rough) {
    struct hec_draws_block *block = &draws->block;
    block->uj += (double)active_uj;
    block->ns += duration_ns;
    block->rough |= rough;
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++)
        block->permille[i] += permille[i] * (double)duration_ns;
    if (block->ns >= BLOCK_NS)
        end_block(draws);
}

/* Of the figures' errors; of a tenant that has no figure yet the overall one is taken. */
static double covariance(const struct hec_draws *draws, size_t i, size_t j) {
    double figure = hec_draws_of(draws, i), spread = draws->mean[i] > 0 ? 0 : SPREAD * figure;
    return draws->covariance[i][j] + (i == j ? spread * spread + BESIDE * BESIDE * figure * figure : 0);
}

/* To first order, of share = x d / sum of all x d. Looks are a multinomial; n of them show (n - 1) / n of its variance. */
void hec_draws_errors(const struct hec_draws *draws, const double permille[HEC_DRAWS_MAX], int64_t duration_ns,
                      struct hec_draws_error errors[HEC_DRAWS_MAX]) {
    double through[HEC_DRAWS_MAX], sum = 0, squares = 0, variance = 0;
    double turns = draws->measured ? INFINITY : fmax(1, (double)duration_ns / TURN_NS - 1);
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        double x = permille[i], d = hec_draws_of(draws, i);
        sum += x * d;
        squares += x * d * d;
        through[i] = 0;
        for (size_t j = 0; j < HEC_DRAWS_MAX && x > 0; j++)
            through[i] += covariance(draws, i, j) * permille[j];
        variance += through[i] * x;
    }
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        double x = permille[i], d = hec_draws_of(draws, i), share = x > 0 ? x * d / sum : 0;
        double turn = 1000 * (share * share * squares + x * d * d * (1 - 2 * share)) / turns;
        double figure = x * x * covariance(draws, i, i) - 2 * share * x * through[i] + share * share * variance;
        errors[i] = (struct hec_draws_error){0};
        if (x > 0)
            errors[i] = (struct hec_draws_error){fmax(0, turn) / (sum * sum), fmax(0, figure) / (sum * sum)};
    }
}
