#include "agent/draws.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

#define BLOCK_NS (5 * HEC_NS_PER_S) /* the driver's utilisation is of up to a second ago: a fifth of a block at most */
#define SPREAD 0.6                  /* of a tenant's figure around the usual, before anything is known of it */
#define NOISE 0.10       /* of a block's power: what utilisation in whole percents and of another time makes */
#define ROUGH_NOISE 0.50 /* and where a context adds to the floor that is known */
#define KEEPS 0.999      /* a block: what is known fades back to the usual, as programs change (half in an hour) */
#define LEAST 0.05       /* of the usual: nothing runs for nothing */
#define MEMORY 100       /* blocks over which the usual is averaged */
#define IDLE_PERMILLE 20 /* a block with less says nothing */
#define MW_A_UJ_A_NS 1e6

void hec_draws_break(struct hec_draws *draws) {
    memset(draws->block_permille, 0, sizeof draws->block_permille);
    draws->block_uj = 0;
    draws->block_rough = false;
    draws->block_ns = 0;
}

void hec_draws_set(struct hec_draws *draws, size_t i, double mean) {
    hec_draws_break(draws);
    draws->mean[i] = mean > 0 && isfinite(mean) ? mean : 0;
    if (draws->mean[i] > 0 && !(draws->usual > 0))
        draws->usual = draws->mean[i];
    for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
        draws->covariance[i][j] = draws->covariance[j][i] = 0;
    draws->covariance[i][i] = draws->mean[i] > 0 ? 0.25 * SPREAD * SPREAD * draws->mean[i] * draws->mean[i] : 0;
}

double hec_draws_of(const struct hec_draws *draws, size_t i) {
    return draws->mean[i] > 0 ? draws->mean[i] : draws->usual > 0 ? draws->usual : 1;
}

/* Of directions that nothing is seen of, no more than was assumed at first is ever in doubt. */
static void fade(struct hec_draws *draws, double variance) {
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        if (!(draws->mean[i] > 0))
            continue;
        draws->mean[i] += (1 - KEEPS) * (draws->usual - draws->mean[i]);
        for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
            draws->covariance[i][j] *= KEEPS * KEEPS;
        draws->covariance[i][i] += (1 - KEEPS * KEEPS) * variance;
    }
}

/* One step of the filter: x is the mean utilisation of the block, y its power. */
static void fit(struct hec_draws *draws, const double x[HEC_DRAWS_MAX], double y, bool rough) {
    double usual = draws->usual, spread = SPREAD * usual, through[HEC_DRAWS_MAX], predicted = 0, variance = 0;
    fade(draws, spread * spread);
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        if (!(x[i] > 0))
            continue;
        if (!(draws->mean[i] > 0)) {
            draws->mean[i] = usual;
            draws->covariance[i][i] = spread * spread;
        }
        predicted += draws->mean[i] * x[i];
    }
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        through[i] = 0;
        for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
            through[i] += draws->covariance[i][j] * x[j];
        variance += through[i] * x[i];
    }
    double noise = (rough ? ROUGH_NOISE : NOISE) * fmax(y, predicted);
    variance += noise * noise;
    if (!(variance > 0))
        return;
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        if (!(draws->mean[i] > 0))
            continue;
        draws->mean[i] = fmax(LEAST * usual, draws->mean[i] + through[i] / variance * (y - predicted));
        for (size_t j = 0; j < HEC_DRAWS_MAX; j++)
            draws->covariance[i][j] -= through[i] * through[j] / variance;
    }
}

static void end_block(struct hec_draws *draws) {
    double x[HEC_DRAWS_MAX], sum = 0, y = draws->block_uj / (double)draws->block_ns * MW_A_UJ_A_NS;
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++) {
        x[i] = draws->block_permille[i] / (double)draws->block_ns;
        sum += x[i];
    }
    bool rough = draws->block_rough;
    hec_draws_break(draws);
    if (sum < IDLE_PERMILLE || !(y > 0))
        return;
    draws->blocks += draws->blocks < MEMORY;
    draws->usual += (y / sum - draws->usual) / draws->blocks;
    fit(draws, x, y, rough);
}

void hec_draws_add(struct hec_draws *draws, int64_t active_uj, int64_t duration_ns,
                   const double permille[HEC_DRAWS_MAX], bool rough) {
    draws->block_uj += (double)active_uj;
    draws->block_ns += duration_ns;
    draws->block_rough |= rough;
    for (size_t i = 0; i < HEC_DRAWS_MAX; i++)
        draws->block_permille[i] += permille[i] * (double)duration_ns;
    if (draws->block_ns >= BLOCK_NS)
        end_block(draws);
}
