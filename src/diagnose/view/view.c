#include "diagnose/view/view.h"

#include "base/list.h"
#include "base/clock.h"
#include "diagnose/meter/device.h"
#include "diagnose/meter/meter.h"
#include "diagnose/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where there are no steps: so much of the middle. */
#define STRETCH_NS (20 * HEC_NS_PER_MS)

struct hec_view *hec_view_new(int share) {
    struct hec_view *view = calloc(1, sizeof *view);
    if (view)
        view->share = share < 1 ? 1 : share;
    return view;
}

void hec_view_free(struct hec_view *view) {
    if (!view)
        return;
    for (size_t i = 0; i < view->series_count; i++)
        free(view->series[i].cells);
    free(view->series);
    for (int i = 0; i < HEC_VIEW_DEVICES; i++)
        free(view->states[i].cells);
    free(view->steps.start_ns);
    free(view->steps.ns);
    free(view->detail.activities);
    free(view->detail.pieces);
    hec_timeline_tables_free(&view->tables);
    free(view);
}

/* ---- the stretch ---- */

/* at: a cursor for questions whose from_ns ascends. */
static bool inside_a_window(const struct hec_windows *windows, size_t *at, int64_t from_ns, int64_t to_ns) {
    while (*at + 1 < windows->count && windows->list[*at + 1].start_ns <= from_ns)
        ++*at;
    const struct hec_window *w = windows->count ? &windows->list[*at] : NULL;
    return !w || (w->start_ns <= from_ns && to_ns <= w->end_ns);
}

/* Of all runs of steps, the first whose length is the median's: the first that is not set-up's. Inside of a window of the
 * trace, where one holds any. */
static int choose_steps(struct hec_view_detail *d, const struct hec_step_list *steps,
                        const struct hec_windows *windows) {
    size_t run = steps->count < HEC_VIEW_STRETCH ? steps->count : HEC_VIEW_STRETCH, count = steps->count - run + 1;
    int64_t *lengths = malloc(count * sizeof *lengths), least = INT64_MAX;
    bool within = false;
    size_t window = 0;
    if (!lengths)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        lengths[i] = steps->list[i + run - 1].end_ns - steps->list[i].start_ns;
    qsort(lengths, count, sizeof *lengths, hec_by_int64);
    int64_t median = lengths[count / 2];
    free(lengths);
    for (size_t i = 0; i < count; i++) {
        int64_t from = steps->list[i].start_ns, to = steps->list[i + run - 1].end_ns;
        int64_t off = to - from > median ? to - from - median : median - (to - from);
        bool in = inside_a_window(windows, &window, from, to);
        if (in < within || (in == within && off >= least))
            continue;
        within = in;
        least = off;
        d->from_ns = from;
        d->to_ns = to;
    }
    return 0;
}

static int choose(struct hec_view *view, const struct hec_pass *pass) {
    const struct hec_step_list *steps = hec_step_survey_best(&pass->survey, &pass->tables);
    struct hec_view_detail *d = &view->detail;
    if (steps && steps->count)
        return choose_steps(d, steps, &pass->windows);
    int64_t from = 0, to = view->duration_ns;
    for (size_t i = 0; i < pass->windows.count; i++) {
        const struct hec_window *w = &pass->windows.list[i];
        if (!i || w->end_ns - w->start_ns > to - from) {
            from = w->start_ns;
            to = w->end_ns;
        }
    }
    int64_t middle = from + (to - from) / 2;
    d->from_ns = middle - STRETCH_NS / 2 > from ? middle - STRETCH_NS / 2 : from;
    d->to_ns = middle + STRETCH_NS / 2 < to ? middle + STRETCH_NS / 2 : to;
    return 0;
}

/* In the order of their start: what is beyond the room ends the stretch. */
static int take_activities(void *context, const struct hec_activity *a, size_t count) {
    struct hec_view_detail *d = context;
    if (!count || d->cut || a[0].start_ns >= d->to_ns)
        return 0;
    for (size_t i = 0; i < count && !d->cut; i++) {
        if (a[i].end_ns <= d->from_ns || a[i].start_ns >= d->to_ns ||
            !(hec_stages[HEC_STAGE_VIEW].kinds & HEC_ACTIVITY_BIT(a[i].kind)))
            continue;
        if (d->activity_count < HEC_VIEW_SPANS) {
            d->activities[d->activity_count++] = a[i];
            continue;
        }
        d->cut = true;
        d->to_ns = a[i].start_ns > d->from_ns ? a[i].start_ns : d->from_ns;
    }
    return 0;
}

int hec_view_begin(struct hec_view *view, const struct hec_pass *pass, int devices,
                   struct hec_pass_consumer *consumer) {
    struct hec_view_detail *d = &view->detail;
    size_t cells = HEC_VIEW_STATES_CELLS / (size_t)view->share / (size_t)(devices > 0 ? devices : 1);
    view->state_cells = cells > HEC_VIEW_CELLS_MOST    ? HEC_VIEW_CELLS_MOST
                        : cells < HEC_VIEW_CELLS_LEAST ? HEC_VIEW_CELLS_LEAST
                                                       : cells;
    view->duration_ns = pass->input->end_ns;
    int err = choose(view, pass);
    d->activities = malloc(HEC_VIEW_SPANS * sizeof *d->activities);
    d->pieces = malloc(HEC_VIEW_SPANS * sizeof *d->pieces);
    *consumer = hec_stage_consumer(HEC_STAGE_VIEW, d, take_activities);
    return err ? err : d->activities && d->pieces ? 0 : HEC_ERR_NOMEM;
}

/* ---- series ---- */

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

static int add_series(struct hec_view *view, struct hec_meter *meter, const struct hec_summary *summary,
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

int hec_view_end(struct hec_view *view, struct hec_pass *pass, struct hec_meter *meter,
                 const struct hec_summary *summary, struct hec_why *why) {
    const struct hec_step_list *steps = hec_step_survey_best(&pass->survey, &pass->tables);
    int err = steps ? hec_step_list_thin(steps, HEC_VIEW_STEPS / (size_t)view->share, &view->steps) : 0;
    view->tables = pass->tables;
    pass->tables = (struct hec_timeline_tables){0};
    return err ? err : add_series(view, meter, summary, why);
}

/* ---- states ---- */

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

size_t hec_view_merge_states(int64_t (*cells)[HEC_STATE_COUNT], size_t count, size_t by) {
    size_t left = 0;
    for (size_t i = 0; i < count; i += by, left++) {
        int64_t sum[HEC_STATE_COUNT] = {0};
        for (size_t k = i; k < count && k < i + by; k++)
            for (int s = 0; s < HEC_STATE_COUNT; s++)
                sum[s] += cells[k][s];
        memcpy(cells[left], sum, sizeof sum);
    }
    return left;
}

static struct hec_view_states *states_of(struct hec_view *view, int device, int64_t from_ns) {
    for (int i = 0; i < view->state_count; i++)
        if (view->states[i].device == device)
            return &view->states[i];
    if (view->state_count == HEC_VIEW_DEVICES)
        return NULL;
    struct hec_view_states *s = &view->states[view->state_count++];
    int64_t(*cells)[HEC_STATE_COUNT] = s->cells; /* of pieces that do not count any more */
    *s = (struct hec_view_states){.device = device, .cells = cells, .capacity = view->state_cells};
    s->from_ns = from_ns < 0 ? from_ns : 0;
    int64_t length_ns = view->duration_ns - s->from_ns, count = (int64_t)view->state_cells;
    s->step_ns = length_ns > count ? (length_ns - 1) / count + 1 : 1;
    if (!s->cells)
        s->cells = malloc(s->capacity * sizeof *s->cells);
    return s;
}

/* Where the run's end was not known, or activity goes on beyond it: cells become twice as long. */
static void reach(struct hec_view_states *s, int64_t end_ns) {
    while ((end_ns - s->from_ns - 1) / s->step_ns >= (int64_t)s->capacity) {
        s->count = hec_view_merge_states(s->cells, s->count, 2);
        s->step_ns *= 2;
    }
    size_t needed = (size_t)((end_ns - s->from_ns - 1) / s->step_ns) + 1;
    if (needed > s->count)
        memset(s->cells[s->count], 0, (needed - s->count) * sizeof *s->cells);
    s->count = needed > s->count ? needed : s->count;
}

static void add_to_detail(struct hec_view_detail *d, int device, const struct hec_state_piece *piece) {
    if (piece->end_ns <= d->from_ns || piece->start_ns >= d->to_ns || d->piece_count == HEC_VIEW_SPANS || !d->pieces)
        return;
    d->pieces[d->piece_count++] = (struct hec_view_piece){
        .start_ns = piece->start_ns < d->from_ns ? d->from_ns : piece->start_ns,
        .end_ns = piece->end_ns > d->to_ns ? d->to_ns : piece->end_ns,
        .device = device,
        .state = piece->state,
    };
}

int hec_view_piece(struct hec_view *view, int device, const struct hec_state_piece *piece) {
    struct hec_view_states *s = states_of(view, device, piece->start_ns);
    if (!s)
        return 0;
    if (!s->cells)
        return HEC_ERR_NOMEM;
    if (!piece->traced)
        return 0;
    add_to_detail(&view->detail, device, piece);
    if (s->count && piece->start_ns >= s->at_ns && piece->end_ns <= s->at_ns + s->step_ns) { /* most of millions */
        s->cells[s->at][piece->state] += piece->end_ns - piece->start_ns;
        return 0;
    }
    reach(s, piece->end_ns);
    for (int64_t at = piece->start_ns; at < piece->end_ns;) {
        int64_t i = (at - s->from_ns) / s->step_ns, border = s->from_ns + (i + 1) * s->step_ns;
        int64_t to = border < piece->end_ns ? border : piece->end_ns;
        s->cells[i][piece->state] += to - at;
        s->at = (size_t)i;
        s->at_ns = border - s->step_ns;
        at = to;
    }
    return 0;
}

void hec_view_forget(struct hec_view *view) {
    view->state_count = 0;
    view->detail.piece_count = 0;
}
