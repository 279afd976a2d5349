#include "prove/quality.h"

#include "base/error.h"
#include "prove/student.h"

#include <math.h>
#include <stdlib.h>

#define START_PART 10 /* the first tenth: before runs have learned different things */
#define END_PART 4    /* the last quarter */
#define SIDES 0.9     /* between the bounds: 95 % to either side */
#define SHOWN                                                                                                          \
    0.99 /* of mean and end, by two spreads each: an honest B fails in 4 % at most, however narrow the margin */
#define STARTS 0.999 /* of the start, which differs most between honest runs */
#define FALL_LEAST 3 /* standard deviations between reruns that A's loss must fall by */

static bool all_finite(const struct hec_trajectory *t, int count, int values) {
    for (int k = 0; k < count; k++)
        for (int i = 0; i < values; i++)
            if (!isfinite(t[k].value[i]))
                return false;
    return true;
}

static int shortest(const struct hec_trajectory *t, int count, int values) {
    for (int k = 0; k < count; k++)
        values = t[k].count < values ? t[k].count : values;
    return values;
}

static double mean(const double *value, int from, int to) {
    double sum = 0;
    for (int i = from; i < to; i++)
        sum += value[i];
    return sum / (to - from);
}

/* Of a mean of equal runs. */
static struct hec_spread spread(const double *value, int count, double *room) {
    double middle = mean(value, 0, count);
    for (int k = 0; k < count; k++) {
        room[k] = value[k] - middle;
        room[count + k] = 1.0 / count;
    }
    return hec_spread_mean(room + count, room, count);
}

/* value: of A's runs, then of B's. room: twice as long. The bounds are by the spread of both. Shown to be off is also what
 * a rerun of A would not be, by the spread of A alone: a fault may well make B's runs differ more. */
static struct hec_quality_difference differ(const double *value, int count_a, int count_b, double scale,
                                            enum hec_quality_part part, double *room) {
    struct hec_spread a = spread(value, count_a, room), both;
    struct hec_spread like = {a.variance * (1 + (double)count_a / count_b), a.freedom};
    both = count_b < 2 ? like : hec_spread_sum(a, spread(value + count_a, count_b, room));
    double off = (mean(value, count_a, count_a + count_b) - mean(value, 0, count_a)) / scale;
    double half = hec_spread_half(both, SIDES) / scale;
    double confidence = part == HEC_QUALITY_START ? STARTS : SHOWN;
    double shown = fmin(hec_spread_half(like, confidence), hec_spread_half(both, confidence)) / scale;
    return (struct hec_quality_difference){off, off - half, off + half, fabs(off) > shown, shown};
}

/* Fail where it is shown to be off, either way, and by more than the margin; pass where being worse by that much is excluded. */
static void decide(struct hec_quality *q, int parts) {
    bool within = true, off = false;
    q->part = HEC_QUALITY_MEAN;
    for (int p = 0; p < HEC_QUALITY_PARTS; p++) {
        const struct hec_quality_difference *d = &q->parts[p];
        if (parts == 1 && p != HEC_QUALITY_MEAN)
            continue;
        within &= p == HEC_QUALITY_START || (d->high < q->margin && d->difference > -q->margin);
        off |= fabs(d->difference) > q->margin && d->shown;
        q->blind |= !(d->least <= q->margin);
        if (fabs(d->difference) > fabs(q->parts[q->part].difference))
            q->part = (enum hec_quality_part)p;
    }
    q->verdict = off ? HEC_QUALITY_FAIL : within ? HEC_QUALITY_PASS : HEC_QUALITY_CANNOT_JUDGE;
    q->why = off ? HEC_QUALITY_OFF : within ? HEC_QUALITY_WITHIN : HEC_QUALITY_SPREAD;
}

static void judge_loss(const struct hec_trajectory *a, int count_a, const struct hec_trajectory *b, int count_b,
                       double *value, struct hec_quality *q) {
    int n = q->values, count = count_a + count_b;
    const int from[] = {0, n / START_PART, n - n / END_PART}, to[] = {n / START_PART, n, n};
    double *start = value, *end = value + count, *room = value + 2 * count;
    for (int k = 0; k < count_a; k++) {
        start[k] = mean(a[k].value, from[HEC_QUALITY_START], to[HEC_QUALITY_START]);
        end[k] = mean(a[k].value, from[HEC_QUALITY_END], to[HEC_QUALITY_END]);
    }
    q->scale = mean(start, 0, count_a) - mean(end, 0, count_a);
    double variance = spread(end, count_a, room).variance * count_a;
    if (!(q->scale > 0) || q->scale < FALL_LEAST * sqrt(variance) ||
        q->scale < HEC_QUALITY_FALL_LEAST * fabs(mean(start, 0, count_a))) {
        q->why = HEC_QUALITY_A_FLAT;
        return;
    }
    for (int p = 0; p < HEC_QUALITY_PARTS; p++) {
        for (int k = 0; k < count; k++)
            value[k] = mean(k < count_a ? a[k].value : b[k - count_a].value, from[p], to[p]);
        q->parts[p] = differ(value, count_a, count_b, q->scale, (enum hec_quality_part)p, room);
    }
    decide(q, HEC_QUALITY_PARTS);
}

/* Root mean square of what a run is off the mean of A's runs, itself left out. */
static double off_others(const double *value, const struct hec_trajectory *a, int count_a, int self, int values) {
    double sum = 0;
    for (int i = 0; i < values; i++) {
        double others = 0;
        for (int k = 0; k < count_a; k++)
            others += k == self ? 0 : a[k].value[i];
        double off = value[i] - others / (count_a - (self >= 0));
        sum += off * off;
    }
    return sqrt(sum / values);
}

static void judge_output(const struct hec_trajectory *a, int count_a, const struct hec_trajectory *b, int count_b,
                         double *value, struct hec_quality *q) {
    double middle = 0, square = 0;
    for (int k = 0; k < count_a; k++)
        middle += mean(a[k].value, 0, q->values) / count_a;
    for (int k = 0; k < count_a; k++)
        for (int i = 0; i < q->values; i++)
            square += (a[k].value[i] - middle) * (a[k].value[i] - middle);
    q->scale = sqrt(square / count_a / q->values);
    if (!(q->scale > 0)) {
        q->why = HEC_QUALITY_A_FLAT;
        return;
    }
    for (int k = 0; k < count_a; k++)
        value[k] = off_others(a[k].value, a, count_a, k, q->values);
    for (int k = 0; k < count_b; k++)
        value[count_a + k] = off_others(b[k].value, a, count_a, -1, q->values);
    q->parts[HEC_QUALITY_MEAN] =
        differ(value, count_a, count_b, q->scale, HEC_QUALITY_MEAN, value + 2 * (count_a + count_b));
    decide(q, 1);
}

int hec_quality_judge(const struct hec_trajectory *a, int count_a, const struct hec_trajectory *b, int count_b,
                      enum hec_quality_kind kind, double margin, struct hec_quality *out) {
    const struct hec_quality_difference unknown = {NAN, NAN, NAN, false, NAN};
    *out = (struct hec_quality){.verdict = HEC_QUALITY_CANNOT_JUDGE,
                                .margin = margin > 0 ? margin : HEC_QUALITY_MARGIN,
                                .scale = NAN,
                                .part = HEC_QUALITY_MEAN,
                                .parts = {unknown, unknown, unknown},
                                .gradients = unknown};
    if (count_a > 0 && count_b > 0)
        out->values = shortest(b, count_b, shortest(a, count_a, a[0].count));
    if (out->values < HEC_QUALITY_VALUES_LEAST) {
        out->why = HEC_QUALITY_NOTHING;
    } else if (count_a < 2) {
        out->why = HEC_QUALITY_FEW_RERUNS;
    } else if (!all_finite(a, count_a, out->values)) {
        out->why = HEC_QUALITY_A_NOT_FINITE;
    } else if (!all_finite(b, count_b, out->values)) {
        out->verdict = HEC_QUALITY_FAIL;
        out->why = HEC_QUALITY_NOT_FINITE;
    } else {
        double *value = malloc((size_t)(count_a + count_b) * 4 * sizeof *value);
        if (!value)
            return HEC_ERR_NOMEM;
        (kind == HEC_QUALITY_LOSS ? judge_loss : judge_output)(a, count_a, b, count_b, value, out);
        free(value);
    }
    return 0;
}

struct hec_gradients hec_gradients_none(void) {
    struct hec_gradients none = {NAN, NAN, {0}};
    for (int i = 0; i < HEC_GRADIENT_PARTS; i++)
        none.part[i] = NAN;
    return none;
}

static double gradient_of(const struct hec_gradients *g, int which) {
    return which == HEC_GRADIENT_ALL        ? g->all
           : which == HEC_GRADIENT_AT_FIRST ? g->first
                                            : g->part[which - HEC_GRADIENT_PART];
}

/* How far B is off by one of them, each no less than least; shown at 99 %, of parts 99.9 %. NAN: not known of all runs. value: three times
 * as long as there are runs. */
static struct hec_quality_difference gradients_differ(const struct hec_gradients *a, int count_a,
                                                      const struct hec_gradients *b, int count_b, int which,
                                                      double least, double *value) {
    int count = count_a + count_b;
    for (int k = 0; k < count; k++) {
        double norm = gradient_of(k < count_a ? &a[k] : &b[k - count_a], which);
        if (!isfinite(norm))
            return (struct hec_quality_difference){NAN, NAN, NAN, false, NAN};
        value[k] = fmax(norm, least);
    }
    return differ(value, count_a, count_b, 1, which >= HEC_GRADIENT_PART ? HEC_QUALITY_START : HEC_QUALITY_MEAN,
                  value + count);
}

static void judge_gradients(const struct hec_gradients *a, int count_a, const struct hec_gradients *b, int count_b,
                            double *value, struct hec_quality *out) {
    bool learns = out->verdict != HEC_QUALITY_CANNOT_JUDGE || out->why == HEC_QUALITY_SPREAD, off = false;
    double first = 0, most = -1;
    for (int k = 0; k < count_a; k++)
        first += a[k].first / count_a;
    for (int which = learns ? HEC_GRADIENT_ALL : HEC_GRADIENT_AT_FIRST; which < HEC_GRADIENT_PART + HEC_GRADIENT_PARTS;
         which++) {
        bool part = which >= HEC_GRADIENT_PART;
        double least = part ? first + log(HEC_QUALITY_PART_LEAST) : -INFINITY;
        struct hec_quality_difference d = gradients_differ(a, count_a, b, count_b, which, least, value);
        double limit = log(part ? HEC_QUALITY_PART_GRADIENTS : HEC_QUALITY_GRADIENTS);
        double limits = fabs(d.difference) / limit;
        bool beyond = d.shown && limits > 1;
        out->blind |= d.least > limit; /* a NAN is not known, and not judged */
        if (!(limits >= 0) || beyond < off || (beyond == off && limits <= most))
            continue;
        most = limits;
        off = beyond;
        out->gradient = which;
        out->gradients = gradients_differ(a, count_a, b, count_b, which, -INFINITY, value); /* however small it is */
    }
    if (off) {
        out->verdict = HEC_QUALITY_FAIL;
        out->why = HEC_QUALITY_GRADIENT;
    }
}

int hec_quality_gradients(const struct hec_gradients *a, int count_a, const struct hec_gradients *b, int count_b,
                          struct hec_quality *out) {
    if (count_a < 2 || count_b < 1)
        return 0;
    double *value = malloc((size_t)(count_a + count_b) * 3 * sizeof *value);
    if (!value)
        return HEC_ERR_NOMEM;
    judge_gradients(a, count_a, b, count_b, value, out);
    free(value);
    return 0;
}
