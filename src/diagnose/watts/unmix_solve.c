#include "base/error.h"
#include "diagnose/meter/stat.h"
#include "diagnose/physics.h"
#include "diagnose/watts/unmix_fit.h"
#include "diagnose/watts/unmix_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is believed of the classes, for groups of them: means, and the inverse of the covariance
 *
 *     S_gh = [g = h] s_g^2 + f_g f_h l^2
 *
 * of groups whose own deviations s are independent and whose common level has a standard deviation of l. Of a group, mean, s
 * and f are the means over its classes by time: within it deviations are taken as one. */

#define ROOM 0.98 /* of the total: least values may take so much of it */

/* fit->group, groups and seconds are set; seconds: of each class. plain: of classes without a belief. Fills fit->believed,
 * certainty and lower; the latter is 0 where the total leaves no room for it. */
static void belief_groups(const struct hec_unmix_belief *beliefs, double level_sd, const struct hec_unmix_belief *plain,
                          const double *seconds, struct hec_fit *fit) {
    double *sd = fit->own_sd, factor[HEC_NNLS_MAX] = {0}, common = 0, least = 0;
    int n = fit->groups;
    memset(fit->believed, 0, sizeof fit->believed);
    memset(fit->lower, 0, sizeof fit->lower);
    memset(fit->own_sd, 0, sizeof fit->own_sd);
    for (int c = 0; c < fit->classes; c++) {
        int g = fit->group[c];
        if (g < 0 || !(fit->seconds[g] > 0))
            continue;
        const struct hec_unmix_belief *b = beliefs[c].sd > 0 ? &beliefs[c] : plain;
        double part = seconds[c] / fit->seconds[g];
        fit->believed[g] += part * b->watts;
        fit->lower[g] += part * b->floor;
        sd[g] += part * b->sd;
        factor[g] += part * b->factor;
    }
    /* Sherman and Morrison: D^-1 - D^-1 f f' D^-1 l^2 / (1 + l^2 f' D^-1 f) */
    for (int g = 0; g < n; g++) {
        common += factor[g] * factor[g] / (sd[g] * sd[g]);
        least += fit->lower[g] * fit->seconds[g];
    }
    double level2 = level_sd * level_sd, shrink = level2 / (1 + level2 * common);
    for (int g = 0; g < n; g++)
        fit->believed_sd[g] = sqrt(sd[g] * sd[g] + factor[g] * factor[g] * level2);
    for (int g = 0; g < n; g++)
        for (int h = 0; h < n; h++)
            fit->certainty[g * n + h] =
                (g == h ? 1 / (sd[g] * sd[g]) : 0) - shrink * factor[g] / (sd[g] * sd[g]) * factor[h] / (sd[h] * sd[h]);
    if (fit->has_total && least > ROOM * fit->total)
        memset(fit->lower, 0, sizeof fit->lower);
}

#define LITTLE_S 0.1
#define SHORT_S 2.0
#define WIDE 0.3        /* half width of an interval over the value, beyond which an estimate is imprecise */
#define SMALL 0.25      /* of the mean: classes below are held to the half width of one that has this much */
#define TOGETHER (-0.5) /* correlation of two estimates below which the readings give their sum rather than either */
#define AMPLIFIED 4     /* a fit may explain so many times the variance of the power: short runs vary */
#define ROOM 0.98
#define KINDS_MOST (HEC_NNLS_MAX - HEC_UNMIX_CLASSES / 2 - HEC_TAPS)
#define REPEATED 1.3 /* standard errors in a loop over those of independent errors: found with bench/unmix/coverage.c */
#define QUIET_LEAST 10 /* samples of quiet classes whose residuals show how exact they are */
#define Z_975 1.959964
#define ONE_SIDED (1.644854 / Z_975)

struct totals {
    double count, weight, y, y2; /* weighted sums */
    double seconds;
};

static void sum_gram(const struct hec_gram *gram, int classes, struct totals *out) {
    int last = gram->columns - 1;
    *out = (struct totals){.seconds = gram->seconds};
    for (int k = 0; k < HEC_BLOCKS_MAX; k++) {
        const double *row = gram->block + (size_t)k * (size_t)gram->packed;
        for (int i = 0; i <= last; row += gram->columns - i, i++) {
            if (i < classes)
                out->y += row[last - i]; /* shares add up to 1 */
            if (i == last)
                out->y2 += row[0];
        }
        out->count += (double)gram->count[k];
        out->weight += gram->weight[k];
    }
}

/* The class that c counts as in the result. */
static int head_of(const struct hec_unmix *unmix, int c) {
    return unmix->options.kin[c] ? unmix->options.kin[c] - 1 : c;
}

static void number_groups(const int *leader, int classes, int *group, int *groups) {
    *groups = 0;
    for (int c = 0; c < classes; c++)
        group[c] = leader[c] < 0 ? -1 : leader[c] == c ? (*groups)++ : group[leader[c]];
}

static double half_width(const struct hec_fit *fit, int g) {
    return hec_student_975(fit->freedom[g]) * sqrt(fit->variance[g]);
}

/* A class whose estimate is imprecise joins the one that its estimate is most against. True when that changed
 * something. */
static bool merge(const struct hec_fit *fit, int *leader, bool *alone, const struct hec_unmix_result *out) {
    int worst = -1, partner = -1, first[HEC_UNMIX_CLASSES] = {0};
    double widest = 1, least = TOGETHER;
    for (int c = out->classes - 1; c >= 0; c--)
        if (leader[c] == c)
            first[fit->group[c]] = c;
    for (int g = 0; g < fit->groups; g++) {
        double half = half_width(fit, g);
        double wide = half / (WIDE * fmax(fit->x[g], SMALL * fit->center));
        if (wide > widest && !alone[first[g]]) {
            widest = wide;
            worst = g;
        }
    }
    if (worst < 0)
        return false;
    for (int g = 0; g < fit->groups; g++) {
        const double *b = fit->model;
        int n = fit->n;
        double both = b[g * n + g] * b[worst * n + worst];
        if (g == worst || !(both > 0) || out->class[first[g]].flaw != HEC_UNMIX_GOOD)
            continue;
        double correlation = b[g * n + worst] / sqrt(both);
        if (correlation < least) {
            least = correlation;
            partner = g;
        }
    }
    if (partner < 0) {
        alone[first[worst]] = true;
        return true;
    }
    int keep = first[worst] < first[partner] ? first[worst] : first[partner];
    int join = first[worst] < first[partner] ? first[partner] : first[worst];
    for (int c = 0; c < out->classes; c++)
        if (leader[c] == join)
            leader[c] = keep;
    return true;
}

static void report(const struct hec_fit *fit, const int *leader, double limit, struct hec_unmix_result *out) {
    for (int c = 0; c < out->classes; c++) {
        struct hec_unmix_class *to = &out->class[c];
        int g = fit->group[c], members = 0;
        if (g < 0)
            continue;
        double half = hypot(half_width(fit, g), fit->bias[g]);
        if (fit->cautious) /* readings that show less than that leave it where it was believed to be */
            half = fmin(half, Z_975 * hypot(fit->believed_sd[g], fit->x[g] - fit->believed[g]));
        to->value = fit->x[g];
        to->at_zero = fit->at[g] == HEC_NNLS_LOWER;
        to->low = fmax(to->value - half, fit->lower[g]);
        to->high = fmin(to->value + half, fit->upper);
        if (to->at_zero)
            to->high = fmin(fit->lower[g] + half * ONE_SIDED, fit->upper);
        else if (fit->at[g] == HEC_NNLS_UPPER)
            to->low = fmax(to->value - half * ONE_SIDED, 0);
        to->above_limit = to->value > limit;
        for (int d = 0; d < out->classes; d++)
            members += leader[d] == leader[c] && out->class[d].seconds > 0;
        to->merged_with = members > 1 ? leader[c] : -1;
        if (to->flaw == HEC_UNMIX_GOOD && half > WIDE * fmax(to->value, SMALL * fit->center))
            to->flaw = HEC_UNMIX_IMPRECISE;
    }
}

static double r2(const struct totals *t, const struct hec_fit_source *source) {
    double about = t->weight > 0 ? t->y2 - t->y * t->y / t->weight : 0;
    return about > 0 ? 1 - source->residual2 * t->count / about : NAN;
}

/* Everything that can be said when nothing can be separated: the mean, for all. */
static void give_mean(struct hec_unmix_result *out, double mean, enum hec_unmix_flaw flaw) {
    for (int c = 0; c < out->classes; c++) {
        struct hec_unmix_class *to = &out->class[c];
        if (to->seconds > 0) {
            to->value = mean;
            to->flaw = flaw;
        }
    }
}

/* Kinds follow their class, and where there are two or more that occurred, each has an unknown of its own. */
static void number_kinds(const struct hec_unmix *unmix, const struct hec_unmix_result *out, struct hec_fit *fit,
                         int *group) {
    const double *seconds = unmix->shares.sum;
    double all[HEC_UNMIX_CLASSES] = {0};
    bool several[HEC_UNMIX_CLASSES] = {false};
    fit->kins = 0;
    for (int c = 0; c < out->classes; c++) {
        int head = head_of(unmix, c);
        group[c] = group[head];
        all[head] += seconds[c];
        several[head] = several[head] || (c != head && seconds[c] > 0);
    }
    for (int c = 0; c < out->classes && fit->kin_sd > 0; c++) {
        int head = head_of(unmix, c);
        if (!several[head] || group[c] < 0 || !(seconds[c] > 0) || fit->kins == KINDS_MOST)
            continue;
        fit->kin_class[fit->kins] = c;
        fit->kin_group[fit->kins] = group[c];
        fit->kin_share[fit->kins++] = seconds[c] / all[head];
    }
}

static int solve_groups(const struct hec_unmix *unmix, struct hec_fit *fit, bool power,
                        const struct hec_unmix_belief *plain, struct hec_unmix_result *out) {
    static const struct hec_unmix_belief none[HEC_UNMIX_CLASSES];
    int leader[HEC_UNMIX_CLASSES], group[HEC_UNMIX_CLASSES];
    double seconds[HEC_UNMIX_CLASSES];
    bool alone[HEC_UNMIX_CLASSES] = {false};
    for (int c = 0; c < out->classes; c++) {
        leader[c] = out->class[c].seconds > 0 ? c : -1;
        alone[c] = out->class[c].flaw != HEC_UNMIX_GOOD || (power && unmix->belief[c].sd > 0);
        seconds[c] = out->class[c].seconds;
    }
    fit->group = group;
    for (;;) {
        number_groups(leader, out->classes, group, &fit->groups);
        number_kinds(unmix, out, fit, group);
        memset(fit->seconds, 0, sizeof fit->seconds);
        for (int c = 0; c < out->classes; c++)
            if (group[c] >= 0)
                fit->seconds[group[c]] += seconds[c];
        belief_groups(power ? unmix->belief : none, unmix->level_sd, plain, seconds, fit);
        int err = hec_fit_solve(fit);
        if (err)
            return err;
        if (!merge(fit, leader, alone, out))
            break;
    }
    report(fit, leader, power ? unmix->options.limit_w : NAN, out);
    return 0;
}

static void prepare(const struct hec_unmix *unmix, struct hec_unmix_result *out) {
    const double *seconds = unmix->shares.sum;
    *out = (struct hec_unmix_result){.classes = unmix->options.classes,
                                     .joules = NAN,
                                     .total_j = NAN,
                                     .total_bound_j = NAN,
                                     .covered_s = seconds[unmix->options.classes],
                                     .lag_ns = NAN,
                                     .power_residual_w = NAN,
                                     .window_residual_w = NAN,
                                     .power_r2 = NAN,
                                     .window_r2 = NAN,
                                     .power_inflation = NAN,
                                     .window_inflation = NAN,
                                     .block_s = (double)unmix->block_ns * 1e-9};
    for (int c = 0; c < out->classes; c++)
        out->class[c] = (struct hec_unmix_class){.seconds = seconds[c] + unmix->extra_s[c],
                                                 .value = NAN,
                                                 .low = NAN,
                                                 .high = NAN,
                                                 .joules = NAN,
                                                 .flaw = HEC_UNMIX_UNSEEN,
                                                 .merged_with = -1};
    for (int c = 0; c < out->classes; c++) {
        int head = head_of(unmix, c);
        if (head != c) {
            out->class[head].seconds += out->class[c].seconds;
            out->class[c].seconds = 0;
        }
    }
}

/* seen: seconds of each class in readings, by the source that saw most. */
static void judge(const struct hec_unmix *unmix, double *seen, struct hec_unmix_result *out) {
    for (int c = 0; c < out->classes; c++)
        if (head_of(unmix, c) != c)
            seen[head_of(unmix, c)] += seen[c];
    for (int c = 0; c < out->classes; c++) {
        struct hec_unmix_class *to = &out->class[c];
        to->seen_s = fmin(seen[c], to->seconds);
        if (to->seconds > 0 && seen[c] > 0)
            to->flaw = seen[c] < LITTLE_S ? HEC_UNMIX_LITTLE : HEC_UNMIX_GOOD;
    }
}

static void finish(struct hec_unmix_result *out) {
    double joules = 0;
    for (int c = 0; c < out->classes; c++) {
        struct hec_unmix_class *to = &out->class[c];
        to->joules = to->value * to->seconds;
        joules += to->seconds > 0 ? to->joules : 0;
        out->valid = out->valid || to->flaw == HEC_UNMIX_GOOD;
    }
    out->joules = joules;
}

static int unknowns(const struct hec_unmix_result *out) {
    int n = 0;
    for (int c = 0; c < out->classes; c++)
        n += out->class[c].seconds > 0;
    return n;
}

static bool believes(const struct hec_unmix *unmix) {
    for (int c = 0; c < unmix->options.classes; c++)
        if (unmix->belief[c].sd > 0)
            return true;
    return false;
}

/* What the fit says of the sensor. */
static void report_response(const struct hec_unmix *unmix, const struct hec_fit *fit, const struct totals *power,
                            struct hec_unmix_result *out) {
    double response[HEC_TAPS], rest = 0;
    for (int k = 0, i = fit->groups + fit->kins; k < HEC_TAPS; k++) {
        response[k] = unmix->response.weight[k] + (k == unmix->reference ? 0 : fit->x[i]);
        rest += k == unmix->reference ? 0 : fit->x[i++];
    }
    response[unmix->reference] -= rest;
    out->lag_ns = hec_response_lag_ns(response);
    out->window_ns = unmix->options.sensor.window_ns > 0 ? unmix->options.sensor.window_ns
                                                         : hec_response_windows_ns[unmix->response.window];
    out->power_residual_w = sqrt(fit->source[0].residual2);
    out->power_inflation = fit->source[0].inflation;
    out->power_r2 = r2(power, &fit->source[0]);
}

/* A sensor that filters shows less variance than the power itself has: sum of share x (watts - mean)^2 over the classes.
 * Where the fit explains far more than that, the fitted response amplifies instead: steps that repeat themselves within its
 * 120 ms allow that, and the watts are then all near the mean. */
static bool amplified(const struct hec_unmix_result *out) {
    double seconds = 0, sum = 0, squares = 0, explained = out->power_r2, residual = out->power_residual_w;
    for (int c = 0; c < out->classes; c++)
        if (out->class[c].seconds > 0) {
            seconds += out->class[c].seconds;
            sum += out->class[c].seconds * out->class[c].value;
            squares += out->class[c].seconds * out->class[c].value * out->class[c].value;
        }
    if (!(explained > 0.5 && explained < 1)) /* the classes do not explain the samples; NAN: there are none */
        return false;
    double mean = sum / seconds;
    return residual * residual * explained / (1 - explained) > AMPLIFIED * (squares / seconds - mean * mean);
}

/* mixed: with all power samples and the sensor's response; else with those that no response changes. caution: of the fit. */
static int solve_power(struct hec_unmix *unmix, bool mixed, struct hec_unmix_result *out, double *caution) {
    struct totals power, window, quiet[HEC_UNMIX_QUIETS];
    struct hec_fit fit = {.classes = unmix->options.classes, .upper = INFINITY};
    double seconds = 0, seen[HEC_UNMIX_CLASSES], mean = NAN;
    int err = 0;
    prepare(unmix, out);
    sum_gram(mixed ? &unmix->power : &unmix->pure, fit.classes, &power);
    sum_gram(&unmix->window, fit.classes, &window);
    for (int i = 0; i < HEC_UNMIX_QUIETS; i++)
        sum_gram(&unmix->quiet[i], fit.classes, &quiet[i]);
    for (int c = 0; c < out->classes; c++) {
        seen[c] = (mixed ? &unmix->power : &unmix->pure)->seen_s[c];
        for (int i = 0; i < HEC_UNMIX_QUIETS; i++)
            seen[c] += unmix->quiet[i].seen_s[c];
        seen[c] = fmax(seen[c], unmix->window.seen_s[c]);
        seconds += out->class[c].seconds;
    }
    judge(unmix, seen, out);
    out->lag_known = mixed;
    out->power_used = unmix->used[HEC_UNMIX_POWER];
    out->power_left = unmix->left[HEC_UNMIX_POWER];
    out->window_used = unmix->used[HEC_UNMIX_WINDOW];
    out->window_left = unmix->left[HEC_UNMIX_WINDOW];
    out->total_j = unmix->total_j;
    out->total_bound_j = unmix->total_bound_j;
    fit.upper = unmix->options.limit_w > 0 ? HEC_BURST_BY_LIMIT * unmix->options.limit_w : INFINITY;
    fit.has_total = unmix->total_j >= 0 && isfinite(unmix->total_j) && seconds > 0;
    fit.total = unmix->total_j;
    fit.total_sigma = unmix->total_bound_j > 0 ? unmix->total_bound_j / Z_975 : 0;
    if (!(fit.total <= ROOM * fit.upper * seconds)) /* the limit is not the device's */
        fit.upper = INFINITY;
    if (fit.has_total)
        mean = fit.total / seconds;
    else if (power.weight + window.weight > 0)
        mean = window.weight > 0 ? window.y / window.weight : power.y / power.weight;
    fit.center = fmax(mean, 1e-6);
    fit.kin_sd = unmix->options.kin_sd * sqrt(unmix->repeats) * fit.center;
    fit.repeated = 1 + (REPEATED * REPEATED - 1) * unmix->repeats;
    fit.extra_sd = HEC_TAPS_SD;
    fit.residual_start = 0.03 * fit.center;
    fit.residual_least = 1e-4 * fit.center;
    if (power.count > 0)
        fit.source[fit.sources++] =
            (struct hec_fit_source){.gram = mixed ? &unmix->power : &unmix->pure, .extras = mixed ? HEC_TAPS - 1 : 0};
    double samples_s = power.seconds, readings = power.count + window.count;
    for (int i = 0; i < HEC_UNMIX_QUIETS; i++) {
        samples_s += quiet[i].seconds;
        readings += quiet[i].count;
        if (quiet[i].count >= QUIET_LEAST)
            fit.source[fit.sources++] = (struct hec_fit_source){.gram = &unmix->quiet[i], .plain = true};
    }
    if (window.count > 0)
        fit.source[fit.sources++] = (struct hec_fit_source){
            .gram = &unmix->window, .exact = true, .reading2 = unmix->window.reading2 / window.count};
    bool few = fmax(samples_s, window.seconds) < SHORT_S || readings < 3.0 * unknowns(out);
    bool believed = believes(unmix) && fit.has_total;
    fit.cautious = believed;
    fit.doubted = few;
    if (few && !believed) {
        struct totals all;
        sum_gram(&unmix->power, fit.classes, &all);
        give_mean(out, mean, !mixed && all.seconds >= SHORT_S ? HEC_UNMIX_ALIKE : HEC_UNMIX_SHORT);
    } else {
        struct hec_unmix_belief plain = {fit.center, fit.center, 0, 0};
        err = solve_groups(unmix, &fit, true, &plain, out);
        *caution = fit.caution;
        out->blocks = fit.blocks;
        out->basis = few ? HEC_UNMIX_BELIEFS : mixed && power.count > 0 ? HEC_UNMIX_SAMPLES : HEC_UNMIX_WINDOWS;
        out->valid = believed;
        if (!err && mixed && power.count > 0)
            report_response(unmix, &fit, &power, out);
        if (!err && window.count > 0) {
            out->window_residual_w = sqrt(fit.source[fit.sources - 1].residual2);
            out->window_inflation = fit.source[fit.sources - 1].inflation;
            out->window_r2 = r2(&window, &fit.source[fit.sources - 1]);
        }
    }
    finish(out);
    return err;
}

int hec_unmix_solve(struct hec_unmix *unmix, struct hec_unmix_result *out) {
    int err = hec_unmix_settle(unmix);
    if (err)
        return err;
    bool mixed = unmix->response.distinct >= HEC_DISTINCT;
    double caution = 1;
    err = solve_power(unmix, mixed, out, &caution);
    if (!err && mixed && (amplified(out) || caution > 1))
        err = solve_power(unmix, false, out, &caution);
    return err;
}

int hec_unmix_solve_counter(struct hec_unmix *unmix, int counter, struct hec_unmix_result *out) {
    if (counter < 0 || counter >= unmix->options.counters)
        return HEC_ERR_USAGE;
    int err = hec_unmix_settle(unmix);
    if (err)
        return err;
    const struct hec_gram *gram = &unmix->counter[counter];
    struct totals window;
    struct hec_fit fit = {
        .classes = unmix->options.classes, .upper = 1, .sources = 1, .residual_start = 0.03, .residual_least = 1e-4};
    double seen[HEC_UNMIX_CLASSES];
    prepare(unmix, out);
    sum_gram(gram, fit.classes, &window);
    for (int c = 0; c < out->classes; c++)
        seen[c] = gram->seen_s[c];
    judge(unmix, seen, out);
    out->window_used = (int64_t)window.count;
    out->window_left = unmix->left[HEC_UNMIX_COUNTER];
    double mean = window.weight > 0 ? window.y / window.weight : NAN;
    fit.source[0] = (struct hec_fit_source){.gram = gram};
    fit.center = fmin(fmax(mean, 0.02), 1);
    if (window.seconds < SHORT_S || window.count < 2.0 * unknowns(out)) {
        give_mean(out, mean, HEC_UNMIX_SHORT);
    } else {
        struct hec_unmix_belief plain = {fit.center, 1, 0, 0};
        err = solve_groups(unmix, &fit, false, &plain, out);
        out->blocks = fit.blocks;
        out->window_residual_w = sqrt(fit.source[0].residual2);
        out->window_inflation = fit.source[0].inflation;
        out->window_r2 = r2(&window, &fit.source[0]);
    }
    finish(out);
    return err;
}
