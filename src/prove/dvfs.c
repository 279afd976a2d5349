#include "prove/dvfs.h"

#include <math.h>
#include <stdbool.h>

#define RIDGE 1e-4      /* of the slope, by the number of points: far below the noise of a measurement */
#define SLOPE_PULL 2e-4 /* of s to 1/2, likewise */
#define SLOPE_STEPS 40
#define SAME_CLOCK 0.03  /* of the highest: what is spread over less tells nothing of a slope */
#define LEAST_ERROR 0.01 /* no bound is narrower: a limit does not hold to the watt, and sensors do not read to one */
#define HELD 0.985       /* of the highest mean power: a point that draws less was held back */

/* y = p + q x by least squares of (y - p - q x) / y, with a ridge on q; neither negative. The sum of squares. */
struct line {
    double p, q, squares;
};

static struct line fit_line(const double *x, const double *y, int count, bool through_zero) {
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
    for (int i = 0; i < count; i++) {
        double weight = 1 / (y[i] * y[i]);
        w += weight;
        wx += weight * x[i];
        wxx += weight * x[i] * x[i];
        wy += weight * y[i];
        wxy += weight * x[i] * y[i];
    }
    struct line line = {0, 0, 0};
    double spread = wxx - wx * wx / w, slope = wxy - wx * wy / w;
    if (!through_zero && spread > 0) {
        line.q = slope / (spread + RIDGE * count * spread);
        line.p = (wy - line.q * wx) / w;
    }
    if (through_zero || line.p < 0) {
        line.p = 0;
        line.q = wxx > 0 ? wxy / wxx : 0;
    } else if (line.q < 0) {
        line.p = wy / w;
        line.q = 0;
    }
    for (int i = 0; i < count; i++) {
        double residual = (y[i] - line.p - line.q * x[i]) / y[i];
        line.squares += residual * residual;
    }
    return line;
}

static double volts(double s, double f) {
    return fmax(0, 1 - s * (1 - f));
}

static double power_of(const struct hec_dvfs_model *model, double f) {
    double v = volts(model->s, f);
    return model->a + model->c * f * v * v;
}

static double time_of(const struct hec_dvfs_model *model, double f) {
    return model->t0 + model->t1 / f;
}

static void fit_power(const double *f, const double *watts, int count, struct hec_dvfs_model *model) {
    double best = INFINITY, x[HEC_DVFS_POINTS_MAX];
    for (int step = 0; step <= SLOPE_STEPS; step++) {
        double s = (double)step / SLOPE_STEPS;
        for (int i = 0; i < count; i++)
            x[i] = f[i] * volts(s, f[i]) * volts(s, f[i]);
        struct line line = fit_line(x, watts, count, false);
        double cost = line.squares + SLOPE_PULL * count * (s - 0.5) * (s - 0.5);
        if (cost < best) {
            best = cost;
            model->a = line.p;
            model->c = line.q;
            model->s = s;
        }
    }
}

/* What is drawn under a limit: of the points that a limit held back, or, of one alone, its share of the limit. */
static void fit_limits(const struct hec_dvfs_point *points, int count, struct hec_dvfs_model *model) {
    double limits[HEC_DVFS_POINTS_MAX], watts[HEC_DVFS_POINTS_MAX];
    int held = 0;
    model->free_w = 0;
    for (int i = 0; i < count; i++)
        model->free_w = fmax(model->free_w, points[i].watts);
    for (int i = 0; i < count; i++)
        if (points[i].limit_w > 0 && points[i].watts < HELD * model->free_w) {
            limits[held] = points[i].limit_w;
            watts[held++] = points[i].watts;
        }
    struct line line = fit_line(limits, watts, held, held < 2);
    model->m = held ? line.p : INFINITY;
    model->k = held ? line.q : 0;
}

static struct hec_dvfs_model fit_model(const struct hec_dvfs_point *points, int count, double top_mhz) {
    double f[HEC_DVFS_POINTS_MAX], inverse[HEC_DVFS_POINTS_MAX], watts[HEC_DVFS_POINTS_MAX], times[HEC_DVFS_POINTS_MAX];
    struct hec_dvfs_model model = {.top_mhz = top_mhz, .low_mhz = top_mhz};
    for (int i = 0; i < count; i++) {
        f[i] = points[i].clock_mhz / top_mhz;
        inverse[i] = 1 / f[i];
        watts[i] = points[i].watts;
        times[i] = 1 / points[i].units_per_s;
        model.low_mhz = fmin(model.low_mhz, points[i].clock_mhz);
    }
    fit_power(f, watts, count, &model);
    struct line line = fit_line(inverse, times, count, false);
    model.t0 = line.p;
    model.t1 = line.q;
    fit_limits(points, count, &model);
    return model;
}

/* The clock at which so much is drawn, within a little more than was measured. */
static double clock_of(const struct hec_dvfs_model *model, double watts) {
    double low = 0.5 * model->low_mhz / model->top_mhz, high = 1;
    if (watts >= power_of(model, high))
        return high;
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (power_of(model, middle) > watts)
            high = middle;
        else
            low = middle;
    }
    return low;
}

struct prediction {
    double f, watts, rate;
};

static struct prediction predict(const struct hec_dvfs_model *model, double limit_w, double clock_mhz) {
    struct prediction p = {.f = clock_mhz / model->top_mhz};
    if (limit_w > 0) {
        p.watts = fmin(model->m + model->k * limit_w, model->free_w);
        p.f = clock_of(model, p.watts);
    } else {
        p.watts = power_of(model, p.f);
    }
    p.rate = 1 / time_of(model, p.f);
    return p;
}

static bool is_good(const struct hec_dvfs_point *p) {
    return isfinite(p->limit_w) && p->limit_w >= 0 && isfinite(p->clock_mhz) && p->clock_mhz > 0 &&
           isfinite(p->watts) && p->watts > 0 && isfinite(p->units_per_s) && p->units_per_s > 0;
}

static int check(const struct hec_dvfs_point *points, int count, struct hec_dvfs *fit, double *top_mhz,
                 struct hec_why *why) {
    double clocks[HEC_DVFS_POINTS_MAX];
    int different = 0;
    *top_mhz = 0;
    if (count > HEC_DVFS_POINTS_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "more than %d points", HEC_DVFS_POINTS_MAX);
    for (int i = 0; i < count; i++) {
        if (!is_good(&points[i]))
            return hec_fail(why, HEC_ERR_USAGE, "point %d has a value that is not positive", i + 1);
        *top_mhz = fmax(*top_mhz, points[i].clock_mhz);
        if (points[i].limit_w > 0) {
            fit->least_limit_w =
                fit->least_limit_w > 0 ? fmin(fit->least_limit_w, points[i].limit_w) : points[i].limit_w;
            fit->most_limit_w = fmax(fit->most_limit_w, points[i].limit_w);
        }
    }
    for (int i = 0; i < count; i++) {
        bool known = false;
        for (int k = 0; k < different; k++)
            known |= fabs(points[i].clock_mhz - clocks[k]) < SAME_CLOCK * *top_mhz;
        if (!known)
            clocks[different++] = points[i].clock_mhz;
    }
    return different >= HEC_DVFS_POINTS_LEAST
               ? HEC_OK
               : hec_fail(why, HEC_ERR_UNSUPPORTED,
                          "%d points at different clocks are too few to predict others: at least %d", different,
                          HEC_DVFS_POINTS_LEAST);
}

int hec_dvfs_fit(const struct hec_dvfs_point *points, int count, struct hec_dvfs *fit, struct hec_why *why) {
    double top_mhz;
    *fit = (struct hec_dvfs){.count = count};
    int err = check(points, count, fit, &top_mhz, why);
    if (err < 0)
        return err;
    fit->whole = fit_model(points, count, top_mhz);
    fit->error_watts = fit->error_rate = fit->error_joules = LEAST_ERROR;
    for (int i = 0; i < count; i++) {
        struct hec_dvfs_point rest[HEC_DVFS_POINTS_MAX];
        for (int k = 0, to = 0; k < count; k++)
            if (k != i)
                rest[to++] = points[k];
        fit->without[i] = fit_model(rest, count - 1, top_mhz);
        if (points[i].clock_mhz <= fit->whole.low_mhz || points[i].clock_mhz >= fit->whole.top_mhz)
            continue; /* without an end it would be predicted from beyond, which nobody may ask for */
        struct prediction p = predict(&fit->without[i], points[i].limit_w, points[i].clock_mhz);
        double watts = log(p.watts / points[i].watts), rate = log(p.rate / points[i].units_per_s);
        fit->error_watts = fmax(fit->error_watts, fabs(watts));
        fit->error_rate = fmax(fit->error_rate, fabs(rate));
        fit->error_joules = fmax(fit->error_joules, fabs(watts - rate));
    }
    return HEC_OK;
}

static struct hec_dvfs_bounded widen(double value, const double *others, int count, double error) {
    struct hec_dvfs_bounded out = {value, value, value};
    for (int i = 0; i < count; i++) {
        out.low = fmin(out.low, others[i]);
        out.high = fmax(out.high, others[i]);
    }
    out.low *= exp(-error);
    out.high *= exp(error);
    return out;
}

static void estimate(const struct hec_dvfs *fit, double limit_w, double clock_mhz, struct hec_dvfs_estimate *out) {
    double watts[HEC_DVFS_POINTS_MAX], rates[HEC_DVFS_POINTS_MAX], joules[HEC_DVFS_POINTS_MAX];
    for (int i = 0; i < fit->count; i++) {
        struct prediction p = predict(&fit->without[i], limit_w, clock_mhz);
        watts[i] = p.watts;
        rates[i] = p.rate;
        joules[i] = p.watts / p.rate;
    }
    struct prediction p = predict(&fit->whole, limit_w, clock_mhz);
    out->clock_mhz = p.f * fit->whole.top_mhz;
    out->watts = widen(p.watts, watts, fit->count, fit->error_watts);
    out->units_per_s = widen(p.rate, rates, fit->count, fit->error_rate);
    out->joules_per_unit = widen(p.watts / p.rate, joules, fit->count, fit->error_joules);
}

int hec_dvfs_at_limit(const struct hec_dvfs *fit, double limit_w, struct hec_dvfs_estimate *out) {
    if (!(fit->least_limit_w > 0 && limit_w >= fit->least_limit_w && limit_w <= fit->most_limit_w))
        return HEC_ERR_LIMIT;
    estimate(fit, limit_w, 0, out);
    return HEC_OK;
}

int hec_dvfs_at_clock(const struct hec_dvfs *fit, double clock_mhz, struct hec_dvfs_estimate *out) {
    if (!(clock_mhz >= fit->whole.low_mhz && clock_mhz <= fit->whole.top_mhz))
        return HEC_ERR_LIMIT;
    estimate(fit, 0, clock_mhz, out);
    return HEC_OK;
}
