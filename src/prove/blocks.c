/* The circular block bootstrap (Politis and Romano 1992). What it gives for the variance of a mean, with ever more resamples, has a
 * closed form: the mean square of the sums of all blocks. So nothing is resampled, and nothing depends on a seed.
 * Blocks of a strongly correlated series are too short, and their variance too small. What one value passes on to the next is taken out
 * before, and put back after (Andrews and Monahan 1992). */
#include "prove/blocks.h"

#include <math.h>

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
