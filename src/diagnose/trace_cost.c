#include "diagnose/trace_cost.h"

#include "base/clock.h"
#include "base/trace.h"
#include "diagnose/quantile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define Z_95 1.959964

/* Median, and its variance by the order statistics about two standard errors to each side. Sorts. */
static double median_of(double *values, size_t count, double *variance) {
    hec_sort(values, count);
    double n = (double)count, c = floor((n + 1) / 2 - sqrt(n));
    if (c < 1)
        c = 1;
    double z = (n + 1 - 2 * c) / sqrt(n);
    double width = values[count - (size_t)c] - values[(size_t)c - 1];
    *variance = width / (2 * z) * (width / (2 * z));
    return hec_sorted_quantile(values, count, 0.5);
}

bool hec_trace_slowdown(const struct hec_step_list *steps, struct hec_intervals *traced, struct hec_slowdown *out) {
    size_t in = 0, outside = 0;
    double *inside = malloc((steps->count + 1) * sizeof *inside), *beside = malloc((steps->count + 1) * sizeof *beside);
    bool told = false;
    if (inside && beside && steps->count > 1 && !traced->everywhere) {
        for (size_t i = 1; i < steps->count; i++)
            inside[i - 1] = (double)(steps->list[i].end_ns - steps->list[i].start_ns);
        hec_sort(inside, steps->count - 1);
        int64_t reach = (int64_t)hec_sorted_quantile(inside, steps->count - 1, 0.99);
        for (size_t i = 1; i < steps->count; i++) { /* the first begins with the program */
            const struct hec_step *s = &steps->list[i];
            int64_t covered = hec_intervals_within(traced, s->start_ns, s->start_ns + reach);
            if (reach <= 0 || s->end_ns <= s->start_ns)
                continue;
            if (covered == reach)
                inside[in++] = (double)(s->end_ns - s->start_ns);
            else if (covered == 0)
                beside[outside++] = (double)(s->end_ns - s->start_ns);
        }
        if (in >= HEC_TRACE_COST_STEPS_MIN && outside >= HEC_TRACE_COST_STEPS_MIN) {
            double v_in, v_out, m_in = median_of(inside, in, &v_in), m_out = median_of(beside, outside, &v_out);
            double ratio = m_in / m_out, spread = Z_95 * sqrt(v_in / (m_in * m_in) + v_out / (m_out * m_out));
            *out = (struct hec_slowdown){ratio, ratio * exp(-spread), ratio * exp(spread)};
            told = isfinite(ratio) && ratio > 0;
        }
    }
    free(inside);
    free(beside);
    return told;
}

/* ---- all processes ---- */

static void text(char *to, size_t size, const char *from) {
    if (!to[0])
        snprintf(to, size, "%s", from);
}

static double positive(int64_t value) {
    return value > 0 ? (double)value : 0;
}

static int64_t add(int64_t a, int64_t b) {
    int64_t sum;
    return b > 0 && !__builtin_add_overflow(a, b, &sum) ? sum : a;
}

/* How long a process was traced and could have been. */
static double life_of(const struct hec_tracer *t) {
    return t->last_ns > t->first_ns ? (double)t->last_ns - (double)t->first_ns : 0;
}

static double traced_of(const struct hec_tracer *t) {
    return fmin(positive(t->traced_ns), life_of(t));
}

void hec_trace_cost_of(const struct hec_timeline_tables *tables, const struct hec_step_list *steps,
                       struct hec_intervals *traced, struct hec_trace_cost *out) {
    double life = 0, seen = 0, estimated = 0, estimated_life = 0, held = 0, self = 0;
    const struct hec_tracer *of_steps = NULL;
    *out = (struct hec_trace_cost){
        .mode = HEC_TRACE_OFF,
        .coverage = NAN,
        .overhead = NAN,
        .overhead_low = NAN,
        .overhead_high = NAN,
        .budget = NAN,
        .self_cpu_s = NAN,
        .cupti_version = -1,
    };
    for (size_t i = 0; i < tables->tracer_count; i++) {
        const struct hec_tracer *t = &tables->tracers[i];
        out->processes++;
        out->mode = t->mode > out->mode && t->mode < HEC_TRACE_MODE_COUNT ? t->mode : out->mode;
        out->records = add(out->records, t->records);
        out->dropped = add(out->dropped, t->dropped);
        out->lost = add(out->lost, t->lost);
        out->bad = add(out->bad, t->bad);
        out->windows = add(out->windows, t->windows);
        self += positive(t->self_ns);
        life += life_of(t);
        seen += traced_of(t);
        if (t->estimate_ppm >= 0 && life_of(t) > 0) {
            estimated += (double)t->estimate_ppm / 1e6 * life_of(t);
            estimated_life += life_of(t);
        }
        if (t->budget_ppm >= 0)
            out->budget = (double)t->budget_ppm / 1e6;
        if (t->holder[0] && (!out->holder[0] || positive(t->holder_ns) > held)) {
            out->holder[0] = '\0';
            text(out->holder, sizeof out->holder, t->holder);
            held = positive(t->holder_ns);
        }
        text(out->why, sizeof out->why, t->why);
        text(out->library, sizeof out->library, t->library);
        out->cupti_version = t->cupti_version > out->cupti_version ? t->cupti_version : out->cupti_version;
        if (steps && t->pid == steps->pid)
            of_steps = t;
    }
    out->holder_s = held / HEC_NS_PER_S;
    if (!tables->tracer_count)
        return;
    out->self_cpu_s = self / HEC_NS_PER_S;
    if (life > 0)
        out->coverage = seen / life;
    if (estimated_life > 0)
        out->overhead = estimated / estimated_life;
    struct hec_slowdown slow;
    if (of_steps && life_of(of_steps) > 0 && hec_trace_slowdown(steps, traced, &slow)) {
        double share = traced_of(of_steps) / life_of(of_steps);
        out->overhead = (slow.ratio - 1) * share;
        out->overhead_low = (slow.low - 1) * share;
        out->overhead_high = (slow.high - 1) * share;
        out->overhead_measured = true;
    }
}
