#include "prove/sequential.h"

#include <math.h>

/* ---- effects of any size ---- */

/* The effects that are mixed over: their variance, in units of a pair's, and its weight. Any values keep the rate. Of about 2 spreads,
 * as 3 % is where pairs differ by 1.4 %: quick for what is worth proving, and slower for effects below the noise of a pair. Of about 10,
 * as half of the joules are where pairs differ by 7 %: three pairs show these, which no variance below 6 does. */
static const struct effect { double variance, weight; } alone = {4, 1}, small = {4, 0.8}, large = {100, 0.2};
#define ROUNDING 1e-9        /* of a ratio; far below what any counter resolves */
#define PAIRS_PLANNED 100000 /* no plan looks further ahead */

/* Logarithm of the weight of an effect by its likelihood ratio after n pairs
 *   (1 + n g)^(-1/2) ((1 + x) / (1 + x / (1 + n g)))^(n / 2),  x = t^2 / (n - 1) */
static double log_of(const struct effect *effect, int n, double x) {
    double wide = 1 + n * effect->variance;
    return log(effect->weight) - 0.5 * log(wide) + 0.5 * n * (log1p(x) - log1p(x / wide));
}

static double log_likelihood(const struct hec_sequential_options *o, int n, double x) {
    double one = log_of(&small, n, x), other = log_of(&large, n, x);
    return o->small_effects ? log_of(&alone, n, x) : fmax(one, other) + log1p(exp(-fabs(one - other)));
}

#define X_LEAST_LOG (-50.0) /* of x: below the rounding of a ratio, and beyond what a double holds */
#define X_MOST_LOG 700.0
#define HALVINGS 64

/* By how many standard errors the interval reaches to either side after n pairs: to where that ratio is 1 / alpha. INFINITY: nothing is
 * excluded yet. */
static double reach(const struct hec_sequential_options *o, double alpha, int n) {
    double wanted = -log(alpha), low = X_LEAST_LOG, high = X_MOST_LOG;
    if (n < (o->small_effects ? 4 : HEC_SEQUENTIAL_PAIRS_LEAST) || log_likelihood(o, n, exp(high)) <= wanted)
        return INFINITY;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        *(log_likelihood(o, n, exp(middle)) < wanted ? &low : &high) = middle;
    }
    return sqrt((n - 1) * exp(high));
}

/* ---- around what was expected ---- */

/* What pairs may come to, mixed evenly: their mean is off the expected log ratio by so much (blocks of a running program were off their
 * proof by 0 to 4 % in joules, by up to 20 % in speed), and they differ by so much (0.2 to 7 % on cards). Any values keep the rate. */
static const double misses[] = {0.03, 0.2}, spreads[] = {0.003, 0.01, 0.03, 0.1};
#define EXPECTED_SHARE 0.5 /* of alpha */
#define LOG_TWO_PI 1.8378770664093453

/* Log of the density of n pairs with this mean and sum of squares about it, whose mean is normal about the expected one. */
static double log_density(double spread, double miss, double from_expected, int n, double squares) {
    double one = spread * spread, of_mean = one / n, wide = of_mean + miss * miss;
    return -0.5 * n * (LOG_TWO_PI + log(one)) - 0.5 * squares / one + 0.5 * log(of_mean / wide) -
           0.5 * from_expected * from_expected / wide;
}

/* Half the width of the interval: of the means m under which the pairs are less than 1 / alpha times as likely, with the spread that
 * suits m best, as they are by the mixture. With that spread they have the density (2 pi e (squares / n + (mean - m)^2))^(-n / 2). */
static double half_expected(double alpha, double from_expected, int n, double squares) {
    enum { MISSES = sizeof misses / sizeof misses[0], SPREADS = sizeof spreads / sizeof spreads[0] };
    double list[MISSES * SPREADS], most = -INFINITY, sum = 0;
    for (int i = 0; i < MISSES * SPREADS; i++) {
        list[i] = log_density(spreads[i % SPREADS], misses[i / SPREADS], from_expected, n, squares);
        most = fmax(most, list[i]);
    }
    for (int i = 0; i < MISSES * SPREADS; i++)
        sum += exp(list[i] - most) / (MISSES * SPREADS);
    double density = most + log(sum);
    return sqrt(exp(-2.0 / n * (log(alpha) + density) - LOG_TWO_PI - 1) - squares / n);
}

/* ---- a look ---- */

/* What both intervals hold: each has a share of alpha, and both lie about the mean. */
static double half_of(const struct hec_sequential_options *o, int n, double mean, double squares) {
    bool expects = o->expected > 0 && isfinite(o->expected) && n >= HEC_SEQUENTIAL_EXPECTED_LEAST;
    double share = o->expected > 0 && isfinite(o->expected) ? EXPECTED_SHARE : 0;
    double times = reach(o, (1 - share) * o->alpha, n), half = INFINITY;
    if (isfinite(times))
        half = times * sqrt(squares / (n - 1) / n);
    if (expects)
        half = fmin(half, half_expected(share * o->alpha, mean - log(o->expected), n, squares));
    return fmax(half, ROUNDING);
}

/* Pairs until the interval reaches no further than `half`, if more of them are as those so far. */
static int pairs_for(const struct hec_sequential_options *o, double half, double mean, double variance, int from) {
    if (!(half > 0) || !isfinite(variance))
        return -1;
    int low = from, high = from > HEC_SEQUENTIAL_PAIRS_LEAST ? from : HEC_SEQUENTIAL_PAIRS_LEAST;
    while (high < PAIRS_PLANNED && half_of(o, high, mean, variance * (high - 1)) > half) {
        low = high;
        high *= 2;
    }
    if (high >= PAIRS_PLANNED)
        return -1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (half_of(o, middle, mean, variance * (middle - 1)) > half)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

static enum hec_look_step decide(const struct hec_look *look, double half, const struct hec_sequential_options *o) {
    bool precise = o->width > 0 && half <= log1p(o->width), ends = o->pairs_most > 0 && look->pairs >= o->pairs_most;
    if (!ends && o->width > 0 && !precise)
        return HEC_LOOK_GO_ON;
    if (look->low > 1 || look->high < 1)
        return (look->low > 1) == o->more_is_better ? HEC_LOOK_BETTER : HEC_LOOK_WORSE;
    if (o->margin > 0 && look->high < 1 + o->margin && look->low > 1 / (1 + o->margin))
        return HEC_LOOK_EQUIVALENT;
    return ends || precise ? HEC_LOOK_UNDECIDED : HEC_LOOK_GO_ON;
}

struct hec_look hec_sequential_look(const double *a, const double *b, int count,
                                    const struct hec_sequential_options *options) {
    struct hec_sequential_options given = options ? *options : (struct hec_sequential_options){0}, *o = &given;
    double mean = 0, square = 0;
    int n = 0;
    o->alpha = o->alpha > 0 ? o->alpha : 0.05;
    for (int i = 0; i < count; i++) {
        if (!(a[i] > 0 && b[i] > 0 && isfinite(a[i]) && isfinite(b[i])))
            continue;
        double value = log(b[i] / a[i]), off = value - mean;
        mean += off / ++n;
        square += off * (value - mean); /* Welford 1962 */
    }
    struct hec_look look = {.pairs = n, .ratio = n ? exp(mean) : NAN, .low = 0, .high = INFINITY, .pairs_left = -1};
    double half = half_of(o, n, mean, square);
    if (isfinite(half)) {
        look.low = exp(mean - half);
        look.high = exp(mean + half);
    }
    look.step = decide(&look, half, o);
    double wanted = o->width > 0 ? log1p(o->width) : fabs(mean);
    int need = pairs_for(o, wanted, mean, n > 1 ? square / (n - 1) : INFINITY, n);
    if (look.step != HEC_LOOK_GO_ON)
        look.pairs_left = 0;
    else if (need >= 0)
        look.pairs_left = need - n;
    return look;
}

static uint64_t draw(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

bool hec_sequential_b_first(uint64_t seed, int pair) {
    uint64_t state = seed + (uint64_t)(pair / 2) * UINT64_C(0x9e3779b97f4a7c15);
    return (draw(&state) & 1) ^ (pair & 1);
}

void hec_sequential_order(uint64_t seed, int round, int arms, int *order) {
    uint64_t state = seed + (uint64_t)(round / 2 + 1) * UINT64_C(0xd1342543de82ef95);
    for (int i = 0; i < arms; i++)
        order[i] = i;
    for (int i = arms - 1; i > 0; i--) { /* Fisher and Yates; the bias of the modulus is below 1e-17 */
        int with = (int)(draw(&state) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[with];
        order[with] = kept;
    }
    for (int i = 0; i < arms / 2 && round % 2; i++) {
        int kept = order[i];
        order[i] = order[arms - 1 - i];
        order[arms - 1 - i] = kept;
    }
}
