#include "prove/compare.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-9 /* of a ratio of sums; far below what any counter resolves */

enum better { LESS, MORE, NEITHER };
enum column { SECONDS, JOULES, UNITS, STEPS, ONE }; /* ONE: 1 a run */

/* What a quantity is the ratio of; of the whole run (with one value a run) or of its steady part. */
static const struct quantity {
    enum column of, by;
    enum better better;
} quantities[HEC_QUANTITY_COUNT] = {
    [HEC_QUANTITY_SECONDS] = {SECONDS, ONE, LESS},
    [HEC_QUANTITY_JOULES] = {JOULES, ONE, LESS},
    [HEC_QUANTITY_JOULES_PER_UNIT] = {JOULES, UNITS, LESS},
    [HEC_QUANTITY_UNITS_PER_SECOND] = {UNITS, SECONDS, MORE},
    [HEC_QUANTITY_SECONDS_PER_STEP] = {SECONDS, STEPS, LESS},
    [HEC_QUANTITY_WATTS] = {JOULES, SECONDS, NEITHER},
};

static double field(const struct hec_trial_block *block, enum column column) {
    switch (column) {
    case SECONDS:
        return block->seconds;
    case JOULES:
        return block->joules;
    case UNITS:
        return block->units;
    case STEPS:
        return block->steps;
    case ONE:
        break;
    }
    return 1;
}

static const struct hec_trial_block *block_of(const struct quantity *q, const struct hec_trial *trial) {
    return q->by == ONE ? &trial->run : &trial->whole;
}

bool hec_quantity_of_whole_runs(enum hec_quantity quantity) {
    return quantities[quantity].by == ONE;
}

double hec_quantity_value(enum hec_quantity quantity, const struct hec_trial *trial) {
    const struct quantity *q = &quantities[quantity];
    double of = field(block_of(q, trial), q->of), by = field(block_of(q, trial), q->by);
    return isfinite(of) && isfinite(by) && of > 0 && by > 0 ? of / by : NAN; /* of a zero there is no ratio */
}

int hec_quantity_better(enum hec_quantity quantity) {
    static const int better[] = {[LESS] = -1, [MORE] = 1, [NEITHER] = 0};
    return better[quantities[quantity].better];
}

/* The trials of a side that have the quantity. */
struct side {
    double total_of, total_by;
    double *value, *weight, *residual; /* of each: log of its ratio; its share of the work; what it is off the whole */
    const struct hec_trial **trial;
    int count;
};

static void side_free(struct side *side) {
    free(side->value);
    free(side->weight);
    free(side->residual);
    free(side->trial);
}

static bool side_init(struct side *side, int most) {
    size_t room = most > 0 ? (size_t)most : 1;
    *side = (struct side){.value = calloc(room, sizeof(double)),
                          .weight = calloc(room, sizeof(double)),
                          .residual = calloc(room, sizeof(double)),
                          .trial = calloc(room, sizeof(struct hec_trial *))};
    return side->value && side->weight && side->residual && side->trial;
}

static bool measured(const struct quantity *q, const struct hec_trial *trial) {
    return isfinite(hec_quantity_value((enum hec_quantity)(q - quantities), trial));
}

static void side_add(struct side *side, const struct quantity *q, const struct hec_trial *trial) {
    double of = field(block_of(q, trial), q->of), by = field(block_of(q, trial), q->by);
    side->total_of += of;
    side->total_by += by;
    side->value[side->count] = log(of / by);
    side->weight[side->count] = by;
    side->trial[side->count++] = trial;
}

static void side_end(struct side *side) {
    for (int i = 0; i < side->count; i++) {
        side->weight[i] /= side->total_by;
        side->residual[i] = side->value[i] - log(side->total_of / side->total_by);
    }
}

static const struct hec_trial *partner(const struct hec_trial *of, const struct hec_trial *trials, int count,
                                       const struct quantity *q) {
    for (int i = 0; i < count; i++)
        if (trials[i].pair == of->pair && measured(q, &trials[i]))
            return &trials[i];
    return NULL;
}

static bool all_of_pairs(const struct hec_trial *trials, int count, const struct quantity *q) {
    for (int i = 0; i < count; i++)
        if (trials[i].pair < 0 && measured(q, &trials[i]))
            return false;
    return count > 0;
}

/* True: the sides hold pairs, in the same order; a trial without a partner is left out. */
static bool gather(struct side side[2], const struct quantity *q, const struct hec_trial *a, int count_a,
                   const struct hec_trial *b, int count_b) {
    bool paired = all_of_pairs(a, count_a, q) && all_of_pairs(b, count_b, q);
    for (int i = 0; paired && i < count_a; i++) {
        const struct hec_trial *with = measured(q, &a[i]) ? partner(&a[i], b, count_b, q) : NULL;
        if (with) {
            side_add(&side[0], q, &a[i]);
            side_add(&side[1], q, with);
        }
    }
    if (!side[0].count) {
        paired = false;
        for (int i = 0; i < count_a; i++)
            if (measured(q, &a[i]))
                side_add(&side[0], q, &a[i]);
        for (int i = 0; i < count_b; i++)
            if (measured(q, &b[i]))
                side_add(&side[1], q, &b[i]);
    }
    side_end(&side[0]);
    side_end(&side[1]);
    return paired;
}

/* Of a whole run: by what a step, a unit or a second of the steady part takes, for the share that this part has; what comes before and
 * after is taken as it was. */
int hec_quantity_within(enum hec_quantity quantity, const struct hec_trial *trial, struct hec_spread *spread) {
    const struct quantity *q = &quantities[quantity];
    enum column by = q->by;
    double share = 1;
    *spread = (struct hec_spread){NAN, NAN};
    if (by == ONE) {
        share = field(&trial->whole, q->of) / field(&trial->run, q->of);
        by = trial->whole.steps > 0 ? STEPS : trial->whole.units > 0 ? UNITS : SECONDS;
    }
    if (by == q->of || trial->block_count <= 0)
        return 0;
    double *e = malloc((size_t)trial->block_count * sizeof *e), total_of = 0, total_by = 0;
    if (!e)
        return HEC_ERR_NOMEM;
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < trial->block_count; i++) {
            double x = field(&trial->block[i], q->of), y = field(&trial->block[i], by);
            if (!isfinite(x) || !isfinite(y))
                continue;
            if (pass) { /* relative, to first order, in parts of a mean block */
                e[count++] = x / total_of - y / total_by;
            } else {
                total_of += x;
                total_by += y;
            }
        }
    for (int i = 0; i < count; i++)
        e[i] *= count;
    if (total_of > 0 && total_by > 0) {
        struct hec_blocks blocks = hec_blocks_variance(e, count);
        *spread = (struct hec_spread){blocks.variance * share * share, blocks.freedom};
    }
    free(e);
    return 0;
}

/* The variances of the logs of both sides and of their difference. */
static int spreads(const struct side side[2], bool paired, const struct quantity *q, struct hec_spread of[2],
                   struct hec_spread *both) {
    const struct side *a = &side[0], *b = &side[1];
    for (int k = 0; k < 2; k++) {
        int error = 0;
        if (side[k].count > 1)
            of[k] = hec_spread_mean(side[k].weight, side[k].residual, side[k].count);
        else
            error = hec_quantity_within((enum hec_quantity)(q - quantities), side[k].trial[0], &of[k]);
        if (error)
            return error;
    }
    if (paired && a->count > 1) {
        for (int i = 0; i < a->count; i++) { /* of a now: of pairs */
            a->weight[i] = (a->weight[i] + b->weight[i]) / 2;
            a->residual[i] = b->residual[i] - a->residual[i];
        }
        *both = hec_spread_mean(a->weight, a->residual, a->count);
        return 0;
    }
    *both = hec_spread_sum(of[0], of[1]);
    for (int k = 0; k < 2; k++) { /* one run against several: it is off by as much as one of them */
        const struct side *several = &side[!k];
        if (side[k].count > 1 || several->count < 2)
            continue;
        double square = 0;
        for (int i = 0; i < several->count; i++)
            square += several->weight[i] * several->weight[i];
        of[k] = (struct hec_spread){fmax(of[!k].variance / square, isnan(of[k].variance) ? 0 : of[k].variance),
                                    of[!k].freedom};
        *both = (struct hec_spread){of[0].variance + of[1].variance, of[!k].freedom};
    }
    return 0;
}

static enum hec_shown shown(const struct hec_comparison *c, enum better better) {
    if (!(c->ratio_low > 1 || c->ratio_high < 1)) /* nor where there is no interval */
        return HEC_SHOWN_NOT;
    if (better == NEITHER)
        return HEC_SHOWN_CHANGED;
    return (c->ratio > 1) == (better == MORE) ? HEC_SHOWN_BETTER : HEC_SHOWN_WORSE;
}

static void judge(struct hec_comparison *c, const struct hec_spread of[2], struct hec_spread both, double confidence,
                  enum better better) {
    double half = hec_spread_half(both, confidence);
    if (half < ROUNDING) /* runs without any noise: simulated ones */
        half = ROUNDING;
    c->difference = c->b - c->a;
    c->ratio = c->b / c->a;
    c->ratio_low = c->ratio * exp(-half);
    c->ratio_high = c->ratio * exp(half);
    /* of the difference, to first order: what the sides have in common follows from their variances and that of the ratio */
    double common = (of[0].variance + of[1].variance - both.variance) / 2;
    double variance = c->a * c->a * of[0].variance + c->b * c->b * of[1].variance - 2 * c->a * c->b * common;
    half = hec_spread_half((struct hec_spread){fmax(0, variance), both.freedom}, confidence);
    c->difference_low = c->difference - half;
    c->difference_high = c->difference + half;
    c->shown = shown(c, better);
    if (c->shown ==
        HEC_SHOWN_NOT) { /* a border case must not say one thing by the ratio and another by the difference */
        c->difference_low = fmin(c->difference_low, 0);
        c->difference_high = fmax(c->difference_high, 0);
    } else if (c->difference > 0) {
        c->difference_low = fmax(c->difference_low, 0);
    } else {
        c->difference_high = fmin(c->difference_high, 0);
    }
    if (isnan(c->ratio_low))
        c->difference_low = c->difference_high = NAN; /* fmin takes the other one */
}

int hec_compare(const struct hec_trial *a, int count_a, const struct hec_trial *b, int count_b,
                const struct hec_compare_options *options, struct hec_comparison *out) {
    double confidence = options && options->confidence > 0 ? options->confidence : 0.95;
    for (int k = 0; k < HEC_QUANTITY_COUNT; k++) {
        struct side side[2] = {{0}};
        struct hec_spread of[2], both;
        int error = 0;
        out[k] = (struct hec_comparison){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, HEC_SHOWN_UNKNOWN};
        if (!side_init(&side[0], count_a) || !side_init(&side[1], count_b)) {
            error = HEC_ERR_NOMEM;
        } else {
            out[k].paired = gather(side, &quantities[k], a, count_a, b, count_b);
            out[k].runs_a = side[0].count;
            out[k].runs_b = side[1].count;
            out[k].a = side[0].count ? side[0].total_of / side[0].total_by : NAN;
            out[k].b = side[1].count ? side[1].total_of / side[1].total_by : NAN;
            if (side[0].count && side[1].count) {
                out[k].between_runs = side[0].count > 1 || side[1].count > 1;
                error = spreads(side, out[k].paired, &quantities[k], of, &both);
                if (!error)
                    judge(&out[k], of, both, confidence, quantities[k].better);
            }
        }
        side_free(&side[0]);
        side_free(&side[1]);
        if (error)
            return error;
    }
    return 0;
}

/* The circular block bootstrap (Politis and Romano 1992). What it gives for the variance of a mean, with ever more resamples, has a
 * closed form: the mean square of the sums of all blocks. So nothing is resampled, and nothing depends on a seed.
 * Blocks of a strongly correlated series are too short, and their variance too small. What one value passes on to the next is taken out
 * before, and put back after (Andrews and Monahan 1992). */

#define KEEP_MOST 0.97 /* of a value goes on into the next, at most: as Andrews and Monahan bound it */

static double autocovariance(const double *e, int count, double mean, int lag) {
    double sum = 0;
    for (int i = 0; i + lag < count; i++)
        sum += (e[i] - mean) * (e[i + lag] - mean);
    return sum / count;
}

/* Politis and White 2004 (Econometric Reviews 23), with what is of the circular bootstrap: blocks long enough for the correlation that is
 * seen. */
static double wanted_length(const double *e, int count, double mean) {
    double variance = autocovariance(e, count, mean, 0), limit = 2 * sqrt(log10(count) / count);
    if (!(variance > 0))
        return 1;
    int quiet = 5 > (int)ceil(sqrt(log10(count))) ? 5 : (int)ceil(sqrt(log10(count)));
    int most = (int)ceil(sqrt(count)) + quiet, lag = 0, run = 0;
    while (run < quiet && lag < most && lag + 1 < count)
        run = fabs(autocovariance(e, count, mean, ++lag)) < limit * variance ? run + 1 : 0;
    int seen = lag - run > 1 ? lag - run : 1, window = 2 * seen < count ? 2 * seen : count - 1;
    double slope = 0, level = variance;
    for (int k = 1; k <= window; k++) {
        double x = (double)k / window, weight = x <= 0.5 ? 1 : 2 * (1 - x);
        double r = weight * autocovariance(e, count, mean, k);
        slope += 2 * k * r;
        level += 2 * r;
    }
    return level > 0 ? cbrt(1.5 * slope * slope / (level * level) * count) : count;
}

static double sums_square(const double *e, int count, double mean, int length) {
    double sum = 0, square = 0;
    for (int i = 0; i < length; i++)
        sum += e[i] - mean;
    for (int i = 0; i < count; i++) {
        square += sum * sum;
        sum += e[(i + length) % count] - e[i];
    }
    return square;
}

struct hec_blocks hec_blocks_variance(double *e, int count) {
    if (count < HEC_BLOCKS_LEAST)
        return (struct hec_blocks){NAN, NAN, 0};
    double mean = 0, n = count;
    for (int i = 0; i < count; i++)
        mean += e[i] / n;
    double variance = autocovariance(e, count, mean, 0);
    double keep = variance > 0 ? autocovariance(e, count, mean, 1) / variance : 0;
    /* of a short series it is estimated too small: Kendall 1954 */
    keep = fmin(fmax(0, keep + (1 + 3 * keep) / n), KEEP_MOST);
    int left = count - 1;
    mean = 0;
    for (int i = 0; i < left; i++) {
        e[i] = e[i + 1] - keep * e[i];
        mean += e[i] / left;
    }
    double least = ceil(sqrt(left)), most = fmax(2, floor(left / 4.0));
    int length = (int)fmin(fmax(ceil(wanted_length(e, left, mean)), least), most);
    /* the sums are of what is left after the mean: without the division they are too small by the share of a block */
    double square = sums_square(e, left, mean, length) / left / length / (1 - (double)length / left);
    /* blocks that overlap are worth 1.5 times those that do not (Meketon and Schmeiser 1984); 1 / (1 - keep)^2 is as uncertain as
     * keep, whose variance is (1 - keep^2) / n */
    double freedom = 1 / (1 / (1.5 * ((double)left / length - 1)) + 2 * (1 + keep) / (1 - keep) / n);
    return (struct hec_blocks){square / (1 - keep) / (1 - keep) / n, fmax(1, freedom), length};
}
