#include "prove/sequential.h"

#include <math.h>

/* The variance of the effects that are mixed over, in units of a pair's: effects of about 2 spreads, as 3 % is where pairs differ by 1.4 %.
 * Any value keeps the rate; this one is quick for what is worth proving, and slower for effects below the noise of a pair. */
#define EFFECT_VARIANCE 4.0
#define ROUNDING 1e-9        /* of a ratio; far below what any counter resolves */
#define PAIRS_PLANNED 100000 /* no plan looks further ahead */

/* By how many standard errors the interval reaches to either side after n pairs; INFINITY: nothing is excluded yet. The likelihood ratio
 *   (1 + n g)^(-1/2) ((1 + x) / (1 + x / (1 + n g)))^(n / 2),  x = t^2 / (n - 1)
 * equals 1 / alpha there. */
static double reach(int n, double alpha) {
    if (n < HEC_SEQUENTIAL_PAIRS_LEAST)
        return INFINITY;
    double wide = 1 + n * EFFECT_VARIANCE, k = pow(sqrt(wide) / alpha, 2.0 / n);
    return k < wide ? sqrt((n - 1) * (k - 1) / (1 - k / wide)) : INFINITY;
}

/* Pairs until the interval reaches no further than `half`. */
static int pairs_for(double half, double deviation, int from, double alpha) {
    if (!(half > 0) || !isfinite(deviation))
        return -1;
    int low = from, high = from > HEC_SEQUENTIAL_PAIRS_LEAST ? from : HEC_SEQUENTIAL_PAIRS_LEAST;
    while (high < PAIRS_PLANNED && reach(high, alpha) * deviation > half * sqrt(high)) {
        low = high;
        high *= 2;
    }
    if (high >= PAIRS_PLANNED)
        return -1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (reach(middle, alpha) * deviation > half * sqrt(middle))
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
    static const struct hec_sequential_options none;
    const struct hec_sequential_options *o = options ? options : &none;
    double alpha = o->alpha > 0 ? o->alpha : 0.05, mean = 0, square = 0;
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!(a[i] > 0 && b[i] > 0 && isfinite(a[i]) && isfinite(b[i])))
            continue;
        double value = log(b[i] / a[i]), off = value - mean;
        mean += off / ++n;
        square += off * (value - mean); /* Welford 1962 */
    }
    struct hec_look look = {.pairs = n, .ratio = n ? exp(mean) : NAN, .low = 0, .high = INFINITY, .pairs_left = -1};
    double deviation = n > 1 ? sqrt(square / (n - 1)) : INFINITY, times = reach(n, alpha), half = INFINITY;
    if (isfinite(times)) {
        half = fmax(times * deviation / sqrt(n), ROUNDING);
        look.low = exp(mean - half);
        look.high = exp(mean + half);
    }
    look.step = decide(&look, half, o);
    int need = pairs_for(o->width > 0 ? log1p(o->width) : fabs(mean), deviation, n, alpha);
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
