#include "diagnose/view/view.h"

#include "base/clock.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/result.h"

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

static int by_value(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

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
    qsort(lengths, count, sizeof *lengths, by_value);
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

/* ---- steps ---- */

int hec_view_thin_steps(const struct hec_step_list *steps, size_t most, struct hec_view_steps *out) {
    size_t room = steps->count < most ? steps->count : most;
    size_t groups = most / 2, group = steps->count <= most ? 1 : (steps->count + groups - 1) / groups;
    out->start_ns = malloc((room + 2) * sizeof *out->start_ns);
    out->ns = malloc((room + 2) * sizeof *out->ns);
    out->total = (int64_t)steps->count + steps->beyond;
    if (!out->start_ns || !out->ns)
        return HEC_ERR_NOMEM;
    for (size_t from = 0; from < steps->count; from += group) {
        size_t least = from, greatest = from;
        for (size_t i = from; i < steps->count && i < from + group; i++) {
            const struct hec_step *s = &steps->list[i], *l = &steps->list[least], *g = &steps->list[greatest];
            least = s->end_ns - s->start_ns < l->end_ns - l->start_ns ? i : least;
            greatest = s->end_ns - s->start_ns > g->end_ns - g->start_ns ? i : greatest;
        }
        for (size_t i = from; i < steps->count && i < from + group; i++)
            if (i == least || i == greatest) {
                out->start_ns[out->count] = steps->list[i].start_ns;
                out->ns[out->count++] = steps->list[i].end_ns - steps->list[i].start_ns;
            }
    }
    return 0;
}

int hec_view_end(struct hec_view *view, struct hec_pass *pass, struct hec_meter *meter,
                 const struct hec_summary *summary, struct hec_why *why) {
    const struct hec_step_list *steps = hec_step_survey_best(&pass->survey, &pass->tables);
    int err = steps ? hec_view_thin_steps(steps, HEC_VIEW_STEPS / (size_t)view->share, &view->steps) : 0;
    view->tables = pass->tables;
    pass->tables = (struct hec_timeline_tables){0};
    return err ? err : hec_view_add_series(view, meter, summary, why);
}
