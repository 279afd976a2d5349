#include "diagnose/view/view.h"
#include "diagnose/result.h"

#include "base/clock.h"
#include "diagnose/meter/meter.h"
#include "diagnose/meter/telemetry.h"

#include <math.h>
#include <stdlib.h>

struct filling {
    struct hec_view_series *series;
    double scale;
};

/* Steps are disjoint: each cell is visited once a step that touches it. */
static void add_step(void *context, int64_t start_ns, int64_t end_ns, double value) {
    const struct filling *f = context;
    struct hec_view_series *s = f->series;
    int64_t last_ns = (int64_t)s->count * s->step_ns;
    start_ns = start_ns < 0 ? 0 : start_ns;
    end_ns = end_ns > last_ns ? last_ns : end_ns;
    value *= f->scale;
    for (int64_t at = start_ns; at < end_ns;) {
        int64_t i = at / s->step_ns, border = (i + 1) * s->step_ns, to = border < end_ns ? border : end_ns;
        struct hec_view_cell *c = &s->cells[i];
        bool first = !(c->weight_ns > 0);
        c->minimum = first || value < c->minimum ? value : c->minimum;
        c->maximum = first || value > c->maximum ? value : c->maximum;
        c->sum += value * (double)(to - at);
        c->weight_ns += (double)(to - at);
        at = to;
    }
}

static bool shown(enum hec_metric metric, enum hec_metric_subject subject) {
    const struct hec_metric_info *info = hec_metric_info(metric);
    return info->subject == subject && (info->kind == HEC_METRIC_GAUGE || info->kind == HEC_METRIC_MEAN) &&
           metric != HEC_GPU_THROTTLE && metric != HEC_GPU_ENERGY_SLACK && metric != HEC_GPU_ENERGY_QUANTUM;
}

/* step_ns: the usual spacing of the readings, until the number of series is known. */
static int find(struct hec_view *view, struct hec_meter *meter, int device, struct hec_why *why) {
    bool host = device == HEC_DEVICE_NONE;
    int err = 0;
    for (int m = 0; m < HEC_METRIC_COUNT && !err && view->series_count < HEC_VIEW_SERIES_MOST; m++) {
        struct hec_range range;
        if (!shown((enum hec_metric)m, host ? HEC_SUBJECT_RUN : HEC_SUBJECT_DEVICE))
            continue;
        err = hec_meter_range(meter, (enum hec_metric)m, host ? 0 : device, &range, why);
        if (err || !range.count)
            continue;
        int64_t span_ns = range.last_ns - range.first_ns;
        view->series[view->series_count++] = (struct hec_view_series){
            .device = device,
            .metric = (enum hec_metric)m,
            .step_ns = range.count > 1 && span_ns > 0 ? span_ns / (range.count - 1) : view->duration_ns,
        };
    }
    return err;
}

/* Cells are no finer than the readings. */
static int fill(const struct hec_view *view, struct hec_meter *meter, size_t most, struct hec_view_series *s,
                struct hec_why *why) {
    struct filling filling = {s, hec_metric_scale(s->metric)};
    int64_t spacing = s->step_ns > 0 ? s->step_ns : 1, wanted = view->duration_ns / spacing;
    int64_t cells = wanted < 1 ? 1 : wanted > (int64_t)most ? (int64_t)most : wanted;
    s->step_ns = view->duration_ns / cells + (view->duration_ns % cells != 0);
    s->count = (size_t)cells;
    s->cells = calloc(s->count, sizeof *s->cells);
    if (!s->cells)
        return HEC_ERR_NOMEM;
    return hec_meter_steps(meter, s->metric, s->device == HEC_DEVICE_NONE ? 0 : s->device, add_step, &filling, NULL,
                           why);
}

int hec_view_add_series(struct hec_view *view, struct hec_meter *meter, const struct hec_summary *summary,
                        struct hec_why *why) {
    if (view->duration_ns <= 0 || !meter->input->series)
        return 0;
    view->series = calloc(HEC_VIEW_SERIES_MOST, sizeof *view->series);
    if (!view->series)
        return HEC_ERR_NOMEM;
    int err = 0;
    for (int i = 0; i < summary->device_count && !err; i++)
        if (summary->devices[i].readings.used || summary->devices[i].readings.use_unknown)
            err = find(view, meter, summary->devices[i].readings.device.index, why);
    if (!err)
        err = find(view, meter, HEC_DEVICE_NONE, why);
    size_t shared = view->series_count * (size_t)view->share;
    size_t most = shared ? HEC_VIEW_SERIES_CELLS / shared : 0;
    most = most > HEC_VIEW_CELLS_MOST ? HEC_VIEW_CELLS_MOST : most < HEC_VIEW_CELLS_LEAST ? HEC_VIEW_CELLS_LEAST : most;
    for (size_t i = 0; i < view->series_count && !err; i++)
        err = fill(view, meter, most, &view->series[i], why);
    return err;
}

size_t hec_view_merge(struct hec_view_cell *cells, size_t count, size_t by) {
    size_t left = 0;
    for (size_t i = 0; i < count; i += by, left++) {
        struct hec_view_cell sum = {0};
        for (size_t k = i; k < count && k < i + by; k++) {
            bool first = !(sum.weight_ns > 0);
            if (!(cells[k].weight_ns > 0))
                continue;
            sum.minimum = first ? cells[k].minimum : fmin(sum.minimum, cells[k].minimum);
            sum.maximum = first ? cells[k].maximum : fmax(sum.maximum, cells[k].maximum);
            sum.sum += cells[k].sum;
            sum.weight_ns += cells[k].weight_ns;
        }
        cells[left] = sum;
    }
    return left;
}
