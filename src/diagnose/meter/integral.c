#include "base/clock.h"
#include "diagnose/meter/energy.h"

#include <math.h>

void hec_spacing_add(struct hec_spacing *spacing, int64_t t_ns) {
    if (spacing->count) {
        if (t_ns <= spacing->previous_ns)
            return;
        double octaves = log2((double)t_ns - (double)spacing->previous_ns);
        int bin = (int)(octaves * 16);
        spacing->bins[bin < HEC_SPACING_BINS ? bin : HEC_SPACING_BINS - 1]++;
    }
    spacing->count++;
    spacing->previous_ns = t_ns;
}

double hec_spacing_usual_ns(const struct hec_spacing *spacing) {
    int64_t sum = 0;
    for (int i = 0; i < HEC_SPACING_BINS && spacing->count > 1; i++) {
        sum += spacing->bins[i];
        if (2 * sum >= spacing->count - 1)
            return exp2((i + 0.5) / 16);
    }
    return 0;
}

void hec_integral_init(struct hec_integral *integral, struct hec_power_window *windows, int window_count,
                       int64_t usual_ns, hec_step_visitor visit, void *context) {
    *integral = (struct hec_integral){.windows = windows,
                                      .window_count = window_count,
                                      .visit = visit,
                                      .context = context,
                                      .usual_ns = usual_ns,
                                      .from_ns = INT64_MAX,
                                      .to_ns = INT64_MIN,
                                      .maximum_w = -INFINITY};
    for (int i = 0; i < window_count; i++) {
        struct hec_power_window *w = &windows[i];
        *w = (struct hec_power_window){.start_ns = w->start_ns,
                                       .end_ns = w->end_ns,
                                       .extremes_only = w->extremes_only,
                                       .minimum_w = INFINITY,
                                       .maximum_w = -INFINITY};
        if (w->end_ns <= w->start_ns || w->extremes_only)
            continue;
        integral->from_ns = w->start_ns < integral->from_ns ? w->start_ns : integral->from_ns;
        integral->to_ns = w->end_ns > integral->to_ns ? w->end_ns : integral->to_ns;
    }
}

enum cover { SAMPLED, STRETCH, GAP };

static void step(struct hec_integral *integral, enum cover cover, int64_t start_ns, int64_t end_ns, double watts) {
    if (end_ns <= start_ns)
        return;
    for (int i = 0; i < integral->window_count; i++) {
        struct hec_power_window *w = &integral->windows[i];
        int64_t from = start_ns > w->start_ns ? start_ns : w->start_ns;
        int64_t to = end_ns < w->end_ns ? end_ns : w->end_ns;
        if (to <= from)
            continue;
        double seconds = (double)(to - from) / HEC_NS_PER_S;
        if (cover == SAMPLED) {
            w->sampled_s += seconds;
            w->sampled_j += seconds * watts;
            w->minimum_w = fmin(w->minimum_w, watts);
            w->maximum_w = fmax(w->maximum_w, watts);
        } else if (cover == STRETCH) {
            w->stretch_s += seconds;
            w->stretch_j += seconds * watts;
        } else {
            w->gap_s += seconds;
            w->gap_j += seconds * watts;
        }
    }
    if (cover != GAP && integral->visit)
        integral->visit(integral->context, start_ns, end_ns, watts);
}

static void fill(struct hec_integral *integral, int64_t start_ns, int64_t end_ns, double watts) {
    if (start_ns >= end_ns) /* there may be no window at all, in a run that has just begun */
        return;
    step(integral, end_ns - start_ns <= 3 * integral->usual_ns ? STRETCH : GAP, start_ns, end_ns, watts);
}

void hec_integral_add(struct hec_integral *integral, int64_t t_ns, double watts) {
    int64_t start = t_ns - integral->usual_ns;
    if (!integral->count) {
        fill(integral, integral->from_ns, start, watts);
    } else {
        int64_t spacing = t_ns - integral->previous_ns;
        if (spacing <= 0)
            return;
        if (2 * spacing <= 3 * integral->usual_ns) /* jitter, not a lost sample */
            start = integral->previous_ns;
        else if (spacing <= 3 * integral->usual_ns)
            step(integral, STRETCH, integral->previous_ns, start, (integral->previous_w + watts) / 2);
        else
            step(integral, GAP, integral->previous_ns, start, (integral->previous_w + watts) / 2);
    }
    step(integral, SAMPLED, start, t_ns, watts);
    if (t_ns > integral->from_ns && start < integral->to_ns)
        integral->maximum_w = fmax(integral->maximum_w, watts);
    if (!integral->count)
        integral->first_ns = start;
    integral->count++;
    integral->previous_ns = t_ns;
    integral->previous_w = watts;
}

void hec_integral_end(struct hec_integral *integral, double fill_w) {
    if (!integral->count)
        step(integral, GAP, integral->from_ns, integral->to_ns, fill_w);
    else
        fill(integral, integral->previous_ns, integral->to_ns, integral->previous_w);
}

double hec_power_window_joules(const struct hec_power_window *window) {
    return window->sampled_j + window->stretch_j + window->gap_j;
}

double hec_power_window_fill_bound(const struct hec_power_window *window, double ceiling_w) {
    double filled_j = window->stretch_j + window->gap_j, filled_s = window->stretch_s + window->gap_s;
    return filled_s > 0 ? fmax(filled_j, ceiling_w * filled_s - filled_j) : 0;
}
