#include "diagnose/meter/energy.h"

#include "base/clock.h"
#include "diagnose/limits.h"
#include "diagnose/physics.h"

#include <math.h>
#include <string.h>

/* Readings further apart may be several values apart, and do not show the quantum. */
#define QUANTUM_MOST_NS (150 * HEC_NS_PER_MS)
/* One second between the window's edge and the anchor is taken from the integral, which may be 3 % off. */
#define COST_OF_DISTANCE HEC_ENERGY_TOLERANCE

static double seconds_of(int64_t ns) {
    return (double)ns / HEC_NS_PER_S;
}

void hec_energy_init(struct hec_energy_meter *meter, const struct hec_energy_options *options) {
    memset(meter, 0, sizeof *meter);
    meter->options = *options;
    for (int i = 0; i < 2; i++)
        meter->located[i].cost_s = meter->any[i].cost_s = INFINITY;
}

void hec_energy_spacing(struct hec_energy_meter *meter, int64_t t_ns) {
    hec_spacing_add(&meter->spacing, t_ns);
}

static void offer(struct hec_anchor *best, const struct hec_anchor *reading, int64_t slack_ns, int64_t edge_ns) {
    double cost = seconds_of(slack_ns) / 2 + COST_OF_DISTANCE * fabs(seconds_of(reading->t_ns - edge_ns));
    if (cost < best->cost_s)
        *best = (struct hec_anchor){true, reading->t_ns, slack_ns, reading->mj, cost};
}

/* The spacing of readings whose values are known to be new shows how often the counter has a new one. */
static void find_quantum(struct hec_energy_meter *meter, int64_t t_ns, int64_t slack_ns) {
    int64_t spacing = t_ns - meter->previous_slack_t_ns;
    if (meter->previous_slack_t_ns && spacing >= HEC_COUNTER_RENEWED_LEAST_NS && spacing <= QUANTUM_MOST_NS &&
        4 * (slack_ns + meter->previous_slack_ns) <= spacing && (!meter->quantum_ns || spacing < meter->quantum_ns))
        meter->quantum_ns = spacing;
    meter->previous_slack_t_ns = t_ns;
    meter->previous_slack_ns = slack_ns;
}

void hec_energy_counter(struct hec_energy_meter *meter, int64_t t_ns, int64_t mj, int64_t slack_us) {
    struct hec_anchor now = {true, t_ns, HEC_COUNTER_RENEWED_NS, (double)mj, 0};
    if (meter->readings && t_ns <= meter->last.t_ns)
        return;
    if (slack_us != HEC_SLACK_UNKNOWN) {
        now.slack_ns = slack_us < 0 ? 0 : slack_us > 3600 * 1000000LL ? 3600 * HEC_NS_PER_S : slack_us * HEC_NS_PER_US;
        find_quantum(meter, t_ns, now.slack_ns);
    }
    for (int i = 0; i < 2 && t_ns >= -HEC_POWER_HISTORY_NS; i++) {
        int64_t edge_ns = i ? meter->options.end_ns : 0;
        if (slack_us != HEC_SLACK_UNKNOWN)
            offer(&meter->located[i], &now, now.slack_ns, edge_ns);
        offer(&meter->any[i], &now, HEC_COUNTER_RENEWED_NS, edge_ns);
    }
    if (meter->readings && (double)mj < meter->last.mj) {
        if (meter->reset_count < HEC_ENERGY_RESETS_MAX)
            meter->resets[meter->reset_count] = (struct hec_reset){meter->last, now};
        meter->reset_count++;
    }
    meter->last = now;
    meter->readings++;
}

static void set_window(struct hec_energy_meter *meter, int which, int64_t start_ns, int64_t end_ns) {
    meter->windows[which].start_ns = start_ns;
    meter->windows[which].end_ns = end_ns;
}

/* How late or blurred a step of power may appear: a sample, or, where power is polled or the counter shows that samples
 * are no means over their own spacing, the second over which many devices average it (nvml.h). */
static int64_t reach_ns(const struct hec_energy_meter *meter, int64_t usual_ns) {
    return meter->options.has_power_history && !meter->slow ? usual_ns : HEC_POWER_AVERAGED_NS;
}

static void set_cut(struct hec_energy_meter *meter, int which, int64_t t_ns, int64_t slack_ns, int64_t reach) {
    set_window(meter, which, t_ns - slack_ns - 2 * reach, t_ns + 2 * reach);
    meter->windows[which].extremes_only = true;
}

static bool reset_inside(const struct hec_energy_meter *meter, const struct hec_reset *reset) {
    return reset->before.t_ns >= meter->a.t_ns && reset->after.t_ns <= meter->b.t_ns;
}

static void choose_anchors(struct hec_energy_meter *meter) {
    struct hec_anchor *chosen[2] = {&meter->a, &meter->b};
    for (int i = 0; i < 2; i++) {
        const struct hec_anchor *located = &meter->located[i], *any = &meter->any[i];
        *chosen[i] = located->found && located->cost_s <= any->cost_s ? *located : *any;
    }
    /* An anchored interval shorter than half of the window makes the figure an integral with decoration. */
    if (!meter->a.found || !meter->b.found || meter->reset_count > HEC_ENERGY_RESETS_MAX ||
        2 * (meter->b.t_ns - meter->a.t_ns) < meter->options.end_ns)
        meter->a.found = meter->b.found = false;
}

void hec_energy_prepare(struct hec_energy_meter *meter) {
    int64_t end = meter->options.end_ns;
    int64_t spacing = (int64_t)hec_spacing_usual_ns(&meter->spacing);
    if (!spacing)
        spacing = HEC_POWER_SAMPLE_NS;
    choose_anchors(meter);
    set_window(meter, HEC_EW_MAIN, 0, end);
    int64_t reach = reach_ns(meter, spacing);
    set_cut(meter, HEC_EW_CUT_START, 0, 0, reach);
    set_cut(meter, HEC_EW_CUT_END, end, 0, reach);
    if (meter->a.found) {
        int64_t a = meter->a.t_ns, b = meter->b.t_ns;
        set_window(meter, HEC_EW_HEAD, a < 0 ? a : 0, a < 0 ? 0 : a);
        set_window(meter, HEC_EW_TAIL, b < end ? b : end, b < end ? end : b);
        set_window(meter, HEC_EW_BETWEEN, a, b);
        set_window(meter, HEC_EW_SLACK_A, a - meter->a.slack_ns, a);
        set_window(meter, HEC_EW_SLACK_B, b - meter->b.slack_ns, b);
        set_cut(meter, HEC_EW_CUT_A, a, meter->a.slack_ns, reach);
        set_cut(meter, HEC_EW_CUT_B, b, meter->b.slack_ns, reach);
        set_cut(meter, HEC_EW_SLOW_A, a, meter->a.slack_ns, HEC_POWER_AVERAGED_NS);
        set_cut(meter, HEC_EW_SLOW_B, b, meter->b.slack_ns, HEC_POWER_AVERAGED_NS);
    }
    for (int i = 0; i < meter->reset_count && i < HEC_ENERGY_RESETS_MAX; i++) {
        const struct hec_reset *reset = &meter->resets[i];
        int at = HEC_EW_RESETS + 5 * i;
        int64_t before = reset->before.t_ns, after = reset->after.t_ns;
        if (!reset_inside(meter, reset))
            continue;
        set_window(meter, at, before, after);
        set_window(meter, at + 1, before - reset->before.slack_ns, before);
        set_window(meter, at + 2, after - reset->after.slack_ns, after);
        set_cut(meter, at + 3, before, reset->before.slack_ns, reach);
        set_cut(meter, at + 4, after, reset->after.slack_ns, reach);
    }
    int count =
        HEC_EW_RESETS + 5 * (meter->reset_count < HEC_ENERGY_RESETS_MAX ? meter->reset_count : HEC_ENERGY_RESETS_MAX);
    hec_integral_init(&meter->integral, meter->windows, count, spacing, meter->options.visit_power,
                      meter->options.context);
}

static void note_hole(struct hec_energy_meter *meter, int64_t start_ns, int64_t end_ns) {
    int64_t end = meter->options.end_ns;
    start_ns = start_ns < 0 ? 0 : start_ns;
    end_ns = end_ns > end ? end : end_ns;
    if (end_ns - start_ns <= 3 * meter->integral.usual_ns)
        return;
    meter->gaps++;
    if (end_ns - start_ns > meter->hole_end_ns - meter->hole_start_ns) {
        meter->hole_start_ns = start_ns;
        meter->hole_end_ns = end_ns;
    }
}

void hec_energy_power(struct hec_energy_meter *meter, int64_t t_ns, int64_t mw) {
    if (meter->integral.count && t_ns <= meter->integral.previous_ns)
        return;
    note_hole(meter, meter->integral.count ? meter->integral.previous_ns : 0, t_ns);
    hec_integral_add(&meter->integral, t_ns, (double)mw / 1000);
}

/* What the counter says between its anchors, resets bridged by the integral, and what goes with it. */
struct anchored {
    double counter_j;      /* segments of the counter only */
    double bridged_j;      /* pieces at resets, from the integral */
    double explained_j;    /* how far counter_j and the integral may differ with both right */
    double slack_j;        /* half slacks of all readings used */
    double pieces_j;       /* energy of the pieces at resets, from the integral ... */
    double pieces_bound_j; /* ... and what their edges and fills may be off */
};

static double joules_of(const struct hec_energy_meter *meter, int which) {
    return hec_power_window_joules(&meter->windows[which]);
}

static double fill_of(const struct hec_energy_meter *meter, int which, double ceiling_w) {
    return hec_power_window_fill_bound(&meter->windows[which], ceiling_w);
}

/* How far the integral of a piece of length_s between two cuts may be off through time: the samples are late by up to half
 * the reach, which moves energy as the powers at the two cuts differ, and blur each cut by a quarter of a sample times the
 * change there; together at most the reach times the spread of power around both. Where the history does not go beyond a
 * cut, the power within the lateness may have been any: half the reach times what is added to the spread. */
static double edges_of(const struct hec_energy_meter *meter, int x, int y, double length_s, double ceiling_w) {
    const struct hec_power_window *cuts[2] = {&meter->windows[x], &meter->windows[y]};
    const struct hec_integral *power = &meter->integral;
    int64_t reach = reach_ns(meter, power->usual_ns);
    double low = INFINITY, high = -INFINITY;
    bool seen = true;
    if (!power->count)
        return 0; /* everything is filled in and bounded there */
    for (int i = 0; i < 2; i++) {
        seen &= power->previous_ns >= cuts[i]->end_ns - reach && power->first_ns <= cuts[i]->start_ns + reach;
        low = fmin(low, cuts[i]->minimum_w);
        high = fmax(high, cuts[i]->maximum_w);
    }
    double spread = high > low ? high - low : 0;
    double unseen = seen ? 0 : high >= low ? fmax(high, ceiling_w - low) - spread : ceiling_w;
    return fmin(seconds_of(reach), length_s) * spread + fmin(seconds_of(reach) / 2, length_s) * fmax(0, unseen);
}

/* Half of what the device took within the slack of a reading. */
static double half_slack(const struct hec_energy_meter *meter, int slack, int cut, const struct hec_anchor *anchor,
                         double ceiling_w) {
    return (joules_of(meter, slack) + fill_of(meter, slack, ceiling_w) +
            edges_of(meter, cut, cut, seconds_of(anchor->slack_ns), ceiling_w)) /
           2;
}

static struct anchored add_up(const struct hec_energy_meter *meter, double ceiling_w) {
    double long_s = seconds_of(meter->b.t_ns - meter->a.t_ns);
    struct anchored sum = {0};
    const struct hec_anchor *from = &meter->a;
    sum.slack_j = half_slack(meter, HEC_EW_SLACK_A, HEC_EW_CUT_A, &meter->a, ceiling_w) +
                  half_slack(meter, HEC_EW_SLACK_B, HEC_EW_CUT_B, &meter->b, ceiling_w);
    sum.explained_j = sum.slack_j + edges_of(meter, HEC_EW_CUT_A, HEC_EW_CUT_B, long_s, ceiling_w) +
                      fill_of(meter, HEC_EW_BETWEEN, ceiling_w);
    for (int i = 0; i < meter->reset_count && i < HEC_ENERGY_RESETS_MAX; i++) {
        const struct hec_reset *reset = &meter->resets[i];
        int at = HEC_EW_RESETS + 5 * i;
        if (!reset_inside(meter, reset))
            continue;
        double piece_s = seconds_of(reset->after.t_ns - reset->before.t_ns);
        double slack = half_slack(meter, at + 1, at + 3, &reset->before, ceiling_w) +
                       half_slack(meter, at + 2, at + 4, &reset->after, ceiling_w);
        double edges = edges_of(meter, at + 3, at + 4, piece_s, ceiling_w);
        sum.counter_j += (reset->before.mj - from->mj) / 1000;
        /* from the middle of one slack to the middle of the other */
        sum.bridged_j += joules_of(meter, at) + joules_of(meter, at + 1) / 2 - joules_of(meter, at + 2) / 2;
        sum.pieces_j += joules_of(meter, at);
        sum.slack_j += slack;
        sum.pieces_bound_j += edges + fill_of(meter, at, ceiling_w);
        sum.explained_j += slack + edges;
        from = &reset->after;
    }
    sum.counter_j += (meter->b.mj - from->mj) / 1000;
    return sum;
}

/* Whether the integral may be that far from the counter because of how the samples are made: where each is a mean over the
 * last second, the second before each anchor counts as after it; where power is polled, what it was between two readings
 * is not known, and only the least and the largest of them bound it. */
static bool samples_explain(const struct hec_energy_meter *meter, double apart_j, double counter_j, double between_s) {
    const struct hec_power_window *between = &meter->windows[HEC_EW_BETWEEN];
    const struct hec_power_window *a = &meter->windows[HEC_EW_SLOW_A], *b = &meter->windows[HEC_EW_SLOW_B];
    if (!(counter_j > 0))
        return false;
    if (!meter->options.has_power_history)
        return counter_j >= between->minimum_w * between_s && counter_j <= between->maximum_w * between_s;
    double spread = fmax(a->maximum_w, b->maximum_w) - fmin(a->minimum_w, b->minimum_w);
    return spread > 0 && apart_j <= fmin(seconds_of(HEC_POWER_AVERAGED_NS), between_s) * spread;
}

static double covered_s(const struct hec_power_window *window) {
    return window->sampled_s + window->stretch_s;
}

static void invalid(struct hec_energy *out, struct hec_reason why) {
    if (out->why.id)
        return; /* the first reason is the deepest */
    out->valid = false;
    out->why = why;
}

/* With too little coverage joules holds only what the readings cover: nothing is filled in for the rest. */
static void by_integral(const struct hec_energy_meter *meter, struct hec_energy *out, double ceiling_w) {
    const struct hec_power_window *main = &meter->windows[HEC_EW_MAIN];
    out->method = HEC_ENERGY_INTEGRAL;
    out->coverage = fmin(1, covered_s(main) / out->window_s);
    bool whole = out->coverage >= HEC_ENERGY_COVERAGE_MIN;
    out->joules = main->sampled_j + main->stretch_j + (whole ? main->gap_j : 0);
    struct hec_power_window filled = *main;
    if (!whole)
        filled.gap_j = filled.gap_s = 0;
    out->bound_joules = HEC_POWER_ACCURACY * out->joules +
                        edges_of(meter, HEC_EW_CUT_START, HEC_EW_CUT_END, out->window_s, ceiling_w) +
                        hec_power_window_fill_bound(&filled, ceiling_w);
}

/* With a counter only the ends can lack readings: name the one that does. */
static void hole_at_end(struct hec_energy_meter *meter) {
    const struct hec_integral *power = &meter->integral;
    int64_t end = meter->options.end_ns, a = meter->a.t_ns, b = meter->b.t_ns;
    int64_t first = power->count && power->first_ns < a ? power->first_ns : a;
    int64_t last = power->count && power->previous_ns > b ? power->previous_ns : b;
    bool at_start = first > 0 && first > end - last;
    meter->hole_start_ns = at_start ? 0 : last;
    meter->hole_end_ns = at_start ? first : end;
}

static void by_counter(struct hec_energy_meter *meter, struct hec_energy *out, double ceiling_w) {
    const struct hec_power_window *head = &meter->windows[HEC_EW_HEAD], *tail = &meter->windows[HEC_EW_TAIL];
    int64_t end = meter->options.end_ns, a = meter->a.t_ns, b = meter->b.t_ns;
    struct anchored sum = add_up(meter, ceiling_w);
    const struct hec_power_window *between = &meter->windows[HEC_EW_BETWEEN];
    double between_s = seconds_of(b - a);
    out->method = HEC_ENERGY_COUNTER;
    out->counter_joules = sum.counter_j + sum.bridged_j;
    out->counter_from_s = seconds_of(a);
    out->counter_to_s = seconds_of(b);
    if (meter->integral.count && covered_s(between) >= 0.9 * between_s) {
        /* the same interval by both: from the middle of one slack to the middle of the other */
        double integral = hec_power_window_joules(between) + joules_of(meter, HEC_EW_SLACK_A) / 2 -
                          joules_of(meter, HEC_EW_SLACK_B) / 2 - sum.bridged_j;
        out->disagreement = sum.counter_j > 0 ? (integral - sum.counter_j) / sum.counter_j : INFINITY;
        double apart = fabs(integral - sum.counter_j);
        meter->slow = fabs(out->disagreement) > HEC_ENERGY_TOLERANCE && apart > sum.explained_j;
        if (meter->slow && !samples_explain(meter, apart - sum.explained_j, sum.counter_j, between_s)) {
            if (sum.counter_j > 0)
                invalid(out, HEC_BECAUSE_OF(METERS_DISAGREE, fabs(out->disagreement), sum.counter_j, integral,
                                            out->counter_from_s, out->counter_to_s));
            else
                invalid(out, HEC_BECAUSE_OF(COUNTER_STOOD, out->counter_from_s, out->counter_to_s, integral));
        }
    }
    double covered = seconds_of((b < end ? b : end) - (a > 0 ? a : 0)) + (a > 0 ? covered_s(head) : 0) +
                     (b < end ? covered_s(tail) : 0);
    for (int i = 0; i < meter->reset_count && i < HEC_ENERGY_RESETS_MAX; i++)
        covered -= reset_inside(meter, &meter->resets[i]) ? meter->windows[HEC_EW_RESETS + 5 * i].gap_s : 0;
    out->coverage = fmin(1, fmax(0, covered / out->window_s));
    bool whole = out->coverage >= HEC_ENERGY_COVERAGE_MIN;
    hole_at_end(meter);
    struct hec_power_window h = *head, t = *tail;
    if (!whole) { /* what no reading covers is left out of what is known */
        h.gap_j = a > 0 ? 0 : h.gap_j;
        t.gap_j = b < end ? 0 : t.gap_j;
        h.gap_s = a > 0 ? 0 : h.gap_s;
        t.gap_s = b < end ? 0 : t.gap_s;
    }
    double slack_a = joules_of(meter, HEC_EW_SLACK_A), slack_b = joules_of(meter, HEC_EW_SLACK_B);
    double head_j = hec_power_window_joules(&h), tail_j = hec_power_window_joules(&t);
    out->outside_joules = head_j + tail_j + sum.pieces_j;
    out->joules =
        out->counter_joules + (a > 0 ? head_j : -head_j) - slack_a / 2 + (b < end ? tail_j : -tail_j) + slack_b / 2;
    double off = isfinite(out->disagreement) ? fabs(out->disagreement) : HEC_POWER_ACCURACY;
    double head_s = fabs(out->counter_from_s), tail_s = fabs(out->window_s - out->counter_to_s);
    int near_a = meter->slow ? HEC_EW_SLOW_A : HEC_EW_CUT_A, near_b = meter->slow ? HEC_EW_SLOW_B : HEC_EW_CUT_B;
    out->bound_joules = sum.slack_j + sum.pieces_bound_j +
                        fmax(HEC_ENERGY_TOLERANCE, off) * (out->outside_joules + (slack_a + slack_b) / 2) +
                        edges_of(meter, meter->slow ? HEC_EW_SLOW_A : HEC_EW_CUT_START, near_a, head_s, ceiling_w) +
                        edges_of(meter, near_b, meter->slow ? HEC_EW_SLOW_B : HEC_EW_CUT_END, tail_s, ceiling_w) +
                        hec_power_window_fill_bound(&h, ceiling_w) + hec_power_window_fill_bound(&t, ceiling_w);
}

static void judge_bound(const struct hec_energy_meter *meter, struct hec_energy *out) {
    double step_s = out->method == HEC_ENERGY_COUNTER ? out->quantum_s : seconds_of(reach_ns(meter, 0));
    if (out->bound_joules <= HEC_ENERGY_BOUND_MAX * out->joules)
        return;
    if (out->method == HEC_ENERGY_COUNTER && !isfinite(step_s))
        step_s = seconds_of(HEC_COUNTER_RENEWED_NS); /* too few readings to see it */
    if (out->method == HEC_ENERGY_INTEGRAL && meter->options.has_power_history)
        step_s = out->sample_spacing_s;
    if (out->method == HEC_ENERGY_INTEGRAL && !meter->options.has_power_history && step_s > 0.02 * out->window_s)
        invalid(out, HEC_BECAUSE_OF(SHORT_FOR_MEANS, step_s, step_s / out->window_s, out->bound_joules));
    else if (isfinite(step_s) && step_s > 0.02 * out->window_s && out->method == HEC_ENERGY_COUNTER)
        invalid(out, HEC_BECAUSE_OF(SHORT_FOR_COUNTER, step_s, step_s / out->window_s, out->bound_joules));
    else if (isfinite(step_s) && step_s > 0.02 * out->window_s)
        invalid(out, HEC_BECAUSE_OF(SHORT_FOR_SAMPLES, step_s, step_s / out->window_s, out->bound_joules));
    else
        invalid(out, HEC_BECAUSE_OF(WIDE_BOUND, out->bound_joules));
}

static void know_nothing(struct hec_energy *out) {
    memset(out, 0, sizeof *out);
    out->joules = out->bound_joules = out->counter_joules = out->integral_joules = out->disagreement = NAN;
    out->quantum_s = out->counter_from_s = out->counter_to_s = out->sample_spacing_s = NAN;
    out->work_joules = out->idle_context_joules = out->idle_joules = NAN;
    out->work_s = out->idle_context_s = out->idle_s = NAN;
    out->idle_context_watts = out->idle_unknown_max_joules = NAN;
}

void hec_energy_finish(struct hec_energy_meter *meter, struct hec_energy *out) {
    const struct hec_energy_options *options = &meter->options;
    know_nothing(out);
    out->simulated = options->simulated;
    out->window_s = seconds_of(options->end_ns);
    out->readings = meter->readings;
    out->samples = meter->integral.count;
    out->resets = meter->reset_count;
    if (options->end_ns <= 0) {
        invalid(out, HEC_BECAUSE(EMPTY_RUN));
        return;
    }
    if (!meter->readings && !meter->integral.count) {
        invalid(out, hec_reason_said(options->unavailable));
        invalid(out, options->lost_ns != INT64_MAX ? HEC_BECAUSE(LOST_UNREAD) : HEC_BECAUSE(NO_READING));
        return;
    }
    if (options->quantum_ns > 0 || meter->quantum_ns)
        out->quantum_s = seconds_of(options->quantum_ns > 0 ? options->quantum_ns : meter->quantum_ns);
    double counter_w = NAN;
    if (meter->a.found && meter->b.t_ns > meter->a.t_ns && meter->b.mj >= meter->a.mj && !meter->reset_count)
        counter_w = (meter->b.mj - meter->a.mj) / 1000 / seconds_of(meter->b.t_ns - meter->a.t_ns);
    note_hole(meter, meter->integral.count ? meter->integral.previous_ns : 0, options->end_ns);
    int64_t last_sample = meter->integral.count ? meter->integral.previous_ns : INT64_MIN;
    hec_integral_end(&meter->integral, isfinite(counter_w) ? counter_w : 0);
    const struct hec_power_window *main = &meter->windows[HEC_EW_MAIN];
    out->gaps = meter->gaps;
    out->gap_s = main->gap_s;
    if (meter->integral.count) {
        if (hec_spacing_usual_ns(&meter->spacing) > 0)
            out->sample_spacing_s = seconds_of(meter->integral.usual_ns);
        out->integral_joules = covered_s(main) >= HEC_ENERGY_COVERAGE_MIN * out->window_s
                                   ? hec_power_window_joules(main)
                                   : main->sampled_j + main->stretch_j;
    }
    double ceiling = options->limit_w > 0 ? options->limit_w * HEC_PEAK_BY_LIMIT : meter->integral.maximum_w * 2;
    if (!isfinite(ceiling) || ceiling <= 0)
        ceiling = isfinite(counter_w) ? 2 * counter_w : 0;

    out->valid = true;
    if (meter->a.found)
        by_counter(meter, out, ceiling);
    else if (meter->integral.count)
        by_integral(meter, out, ceiling);
    else {
        invalid(out, HEC_BECAUSE_OF(FEW_READINGS, (double)meter->readings));
        return;
    }
    const struct hec_reason earlier = out->why;
    out->why = HEC_BECAUSE(NONE);
    if (!(out->coverage > 0)) { /* nothing is known: that is not 0 */
        out->joules = out->bound_joules = NAN;
        if (options->lost_ns != INT64_MAX)
            invalid(out, HEC_BECAUSE_OF(LOST_EARLY, seconds_of(options->lost_ns)));
        invalid(out, HEC_BECAUSE(NO_READING_INSIDE));
    }
    if (options->lost_ns != INT64_MAX) {
        /* a counter reading that was not used says nothing about the figure */
        double known =
            fmin(out->window_s,
                 seconds_of(hec_later(last_sample, out->method == HEC_ENERGY_COUNTER ? meter->b.t_ns : INT64_MIN)));
        invalid(out, HEC_BECAUSE_OF(LOST, seconds_of(options->lost_ns), out->joules, fmax(0, known)));
    }
    if (out->coverage < HEC_ENERGY_COVERAGE_MIN) {
        if (meter->hole_end_ns > meter->hole_start_ns)
            invalid(out, HEC_BECAUSE_OF(HOLE, out->coverage, seconds_of(meter->hole_start_ns),
                                        seconds_of(meter->hole_end_ns), out->joules));
        else
            invalid(out, HEC_BECAUSE_OF(LITTLE_COVERED, out->coverage, out->joules));
    }
    if (earlier.id)
        invalid(out, earlier);
    if (!(out->joules > 0))
        invalid(out, HEC_BECAUSE(NO_ENERGY));
    judge_bound(meter, out);
}
