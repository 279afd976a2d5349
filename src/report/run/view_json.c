/* A view for the page: numbers of as many digits as a screen shows. */
#include "base/clock.h"
#include "diagnose/view/view.h"
#include "report/export/names.h"
#include "report/json_roots.h"
#include "report/json_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_CELLS 1024 /* the coarsest level has no more */
#define LEVEL_BY 4
#define LEVELS 8
#define LANES 48

static json_t *rounded(double value, int digits) {
    if (!isfinite(value))
        return json_null();
    if (value == 0) /* also -0 */
        return json_integer(0);
    double unit = pow(10, digits - 1 - floor(log10(fabs(value))));
    double near = isfinite(unit) && unit > 0 ? round(value * unit) / unit : value;
    return fabs(near) < 1e15 && near == rint(near) ? json_integer((json_int_t)near) : json_real(near);
}

static json_t *seconds(int64_t ns) {
    return json_real((double)ns / HEC_NS_PER_S);
}

/* ---- series ---- */

static json_t *series_level(const struct hec_view_cell *cells, size_t count, int64_t step_ns, double scale) {
    json_t *mean = json_array(), *least = json_array(), *most = json_array();
    bool differ = false;
    for (size_t i = 0; i < count; i++) {
        const struct hec_view_cell *c = &cells[i];
        bool known = c->weight_ns > 0;
        differ |= known && c->maximum > c->minimum;
        json_array_append_new(mean, rounded(known ? c->sum / c->weight_ns * scale : NAN, 4));
        json_array_append_new(least, rounded(known ? c->minimum * scale : NAN, 4));
        json_array_append_new(most, rounded(known ? c->maximum * scale : NAN, 4));
    }
    json_t *level = json_pack("{s:i, s:o, s:o}", "from_s", 0, "step_s", seconds(step_ns), "mean", mean);
    if (differ) {
        json_object_set(level, "min", least);
        json_object_set(level, "max", most);
    }
    json_decref(least);
    json_decref(most);
    return level;
}

static json_t *one_series(const struct hec_view_series *s) {
    const struct hec_metric_info *info = hec_metric_info(s->metric);
    bool milliwatts = strcmp(info->unit, "mW") == 0;
    size_t count = s->count;
    int64_t step_ns = s->step_ns;
    json_t *levels = json_array();
    struct hec_view_cell *cells = malloc((count + 1) * sizeof *cells);
    char name[64];
    if (!cells) {
        json_decref(levels);
        return NULL;
    }
    memcpy(cells, s->cells, count * sizeof *cells);
    for (;;) {
        json_array_insert_new(levels, 0, series_level(cells, count, step_ns, milliwatts ? 1e-3 : 1));
        if (count <= LEVEL_CELLS || json_array_size(levels) == LEVELS)
            break;
        count = hec_view_merge(cells, count, LEVEL_BY);
        step_ns *= LEVEL_BY;
    }
    free(cells);
    bool device = strncmp(info->name, "gpu_", 4) == 0 || strncmp(info->name, "gpm_", 4) == 0;
    snprintf(name, sizeof name, "%s", info->name + (device ? 4 : 0));
    for (char *at = name; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:o}", "device", of_KNOWN(s->device), "metric", info->name, "name",
                     name, "unit", hec_json_unit(s->metric), "source", info->source, "meaning", info->meaning, "levels",
                     levels);
}

/* ---- states ---- */

static json_t *states_level(int64_t (*cells)[HEC_STATE_COUNT], size_t count, int64_t from_ns, int64_t step_ns,
                            int64_t end_ns, const bool seen[HEC_STATE_COUNT]) {
    json_t *shares = json_array();
    for (size_t i = 0; i < count; i++) {
        int64_t start_ns = from_ns + (int64_t)i * step_ns, known_ns = 0;
        int64_t length_ns = end_ns - start_ns < step_ns && end_ns > start_ns ? end_ns - start_ns : step_ns;
        for (int s = 0; s < HEC_STATE_COUNT; s++)
            known_ns += cells[i][s];
        json_t *cell = known_ns > 0 ? json_array() : json_null();
        for (int s = 0; s < HEC_STATE_COUNT && known_ns > 0; s++)
            if (seen[s])
                json_array_append_new(cell, rounded((double)cells[i][s] / (double)length_ns, 4));
        json_array_append_new(shares, cell);
    }
    return json_pack("{s:o, s:o, s:o}", "from_s", seconds(from_ns), "step_s", seconds(step_ns), "shares", shares);
}

static json_t *states_of(const struct hec_view_states *s, int64_t end_ns) {
    bool seen[HEC_STATE_COUNT] = {false};
    size_t count = s->count;
    int64_t step_ns = s->step_ns;
    json_t *levels = json_array(), *names = json_array();
    int64_t(*cells)[HEC_STATE_COUNT] = malloc((count + 1) * sizeof *cells);
    if (!cells) {
        json_decref(levels);
        json_decref(names);
        return NULL;
    }
    memcpy(cells, s->cells, count * sizeof *cells);
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < HEC_STATE_COUNT; k++)
            seen[k] |= cells[i][k] > 0;
    for (int k = 0; k < HEC_STATE_COUNT; k++)
        if (seen[k])
            json_array_append_new(names, json_string(hec_state_name((enum hec_state)k)));
    for (;;) {
        json_array_insert_new(levels, 0, states_level(cells, count, s->from_ns, step_ns, end_ns, seen));
        if (count <= LEVEL_CELLS || json_array_size(levels) == LEVELS)
            break;
        count = hec_view_merge_states(cells, count, LEVEL_BY);
        step_ns *= LEVEL_BY;
    }
    free(cells);
    return json_pack("{s:i, s:o, s:o}", "device", s->device, "names", names, "levels", levels);
}

/* ---- steps ---- */

static json_t *steps_of(const struct hec_thin_steps *s) {
    json_t *start = json_array(), *ms = json_array();
    for (size_t i = 0; i < s->count; i++) {
        json_array_append_new(start, rounded((double)s->start_ns[i] / HEC_NS_PER_S, 7));
        json_array_append_new(ms, rounded((double)s->ns[i] / HEC_NS_PER_MS, 4));
    }
    return json_pack("{s:o, s:o, s:I}", "start_s", start, "ms", ms, "total", (json_int_t)s->total);
}

/* ---- the stretch ---- */

struct lane {
    const char *kind;
    uint32_t track; /* or the device, of states */
    bool phases;
    json_t *object, *start, *us, *name;
};

struct detail {
    const struct hec_view *view;
    struct hec_export_tables tables; /* names are the view's, but for `readable` */
    uint64_t *ids;                   /* of the names so far */
    json_t *names;
    struct lane lanes[LANES];
    int lane_count;
};

/* NULL: there are too many. */
static struct lane *lane_of(struct detail *d, const char *kind, uint32_t track, bool phases, const char *name) {
    for (int i = 0; i < d->lane_count; i++)
        if (d->lanes[i].kind == kind && d->lanes[i].track == track)
            return &d->lanes[i];
    if (d->lane_count == LANES)
        return NULL;
    struct lane *l = &d->lanes[d->lane_count++];
    *l = (struct lane){kind, track, phases, NULL, json_array(), json_array(), json_array()};
    l->object = json_pack("{s:o, s:s, s:o, s:o, s:o}", "name", of_STRING(name), "kind", kind, "start_us", l->start,
                          "us", l->us, "name_index", l->name);
    return l;
}

static size_t name_at(struct detail *d, uint64_t id, const char *text) {
    size_t count = json_array_size(d->names);
    for (size_t i = count; i-- > 0;)
        if (d->ids[i] == id)
            return i;
    d->ids[count] = id;
    json_array_append_new(d->names, of_STRING(text));
    return count;
}

static void add_span(const struct detail *d, const struct lane *l, int64_t start_ns, int64_t end_ns, size_t name) {
    const struct hec_view_detail *v = &d->view->detail;
    start_ns = start_ns < v->from_ns ? v->from_ns : start_ns;
    end_ns = end_ns > v->to_ns ? v->to_ns : end_ns;
    if (end_ns < start_ns)
        return;
    json_array_append_new(l->start, rounded(round((double)(start_ns - v->from_ns) / 100) / 10, 9));
    json_array_append_new(l->us, rounded(round((double)(end_ns - start_ns) / 100) / 10, 9));
    json_array_append_new(l->name, json_integer((json_int_t)name));
}

static void add_pieces(struct detail *d) {
    const struct hec_view_detail *v = &d->view->detail;
    for (size_t i = 0; i < v->piece_count; i++) {
        const struct hec_view_piece *p = &v->pieces[i];
        char name[32];
        snprintf(name, sizeof name, "GPU %d", p->device);
        struct lane *l = lane_of(d, "state", (uint32_t)p->device, false, name);
        if (l && p->start_ns < v->to_ns)
            add_span(d, l, p->start_ns, p->end_ns,
                     name_at(d, UINT64_MAX - p->state, hec_state_name((enum hec_state)p->state)));
    }
}

static struct lane *lane_of_track(struct detail *d, const struct hec_activity *a) {
    const struct hec_track *track = hec_timeline_track(&d->tables.timeline, a->track);
    char name[128];
    if (!track)
        return NULL;
    bool phase = a->kind == HEC_ACTIVITY_PHASE;
    if (track->kind == HEC_TRACK_STREAM)
        snprintf(name, sizeof name, "GPU %d stream %lld", (int)track->device, (long long)track->stream);
    else if (track->name[0])
        snprintf(name, sizeof name, "%s %s", phase ? "phases of" : "thread", track->name);
    else
        snprintf(name, sizeof name, "%s %lld", phase ? "phases of thread" : "thread", (long long)track->stream);
    return lane_of(d, phase ? "phase" : track->kind == HEC_TRACK_STREAM ? "stream" : "thread", track->id, phase, name);
}

static json_t *detail_of(const struct hec_view *view) {
    const struct hec_view_detail *v = &view->detail;
    struct detail d = {.view = view, .names = json_array()};
    json_t *lanes = json_array();
    char text[1024];
    d.tables.timeline = view->tables;
    d.tables.readable = calloc(view->tables.name_count + 1, sizeof *d.tables.readable);
    d.ids = calloc(v->activity_count + HEC_STATE_COUNT + 1, sizeof *d.ids);
    bool made = d.tables.readable && d.ids;
    if (made)
        add_pieces(&d);
    for (size_t i = 0; i < v->activity_count && made; i++) {
        const struct hec_activity *a = &v->activities[i];
        struct lane *l = a->start_ns < v->to_ns ? lane_of_track(&d, a) : NULL;
        if (l)
            add_span(&d, l, a->start_ns, a->end_ns,
                     name_at(&d, hec_export_name_id(&d.tables, a), hec_export_name(&d.tables, a, text, sizeof text)));
    }
    for (size_t i = 0; d.tables.readable && i < view->tables.name_count; i++)
        free(d.tables.readable[i]);
    free(d.tables.readable);
    free(d.ids);
    for (int i = 0; i < d.lane_count; i++)
        json_array_append_new(lanes, d.lanes[i].object);
    return json_pack("{s:i, s:o, s:o, s:o, s:o}", "device", v->piece_count ? v->pieces[0].device : 0, "from_s",
                     seconds(v->from_ns), "to_s", seconds(v->to_ns), "names", d.names, "lanes", lanes);
}

/* ---- a step and its replay ---- */

static json_t *lane_cells(const uint8_t *lane, int columns) {
    json_t *cells = json_array();
    for (int i = 0; i < columns; i++)
        json_array_append_new(cells, json_integer(lane[i]));
    return cells;
}

static json_t *step_of(const struct hec_step_lanes *l) {
    return json_pack("{s:f, s:o, s:o, s:o}", "seconds", l->seconds, "host", lane_cells(l->host, l->columns), "device",
                     lane_cells(l->on_device, l->columns), "device_percent", lane_cells(l->device_percent, l->columns));
}

static json_t *replay_of(const struct hec_view *view) {
    json_t *names = json_array();
    for (int lane = 0; lane < HEC_LANE_COUNT; lane++)
        json_array_append_new(names, json_string(hec_lane_name((enum hec_lane)lane)));
    return json_pack("{s:i, s:i, s:f, s:o, s:o, s:o}", "device", view->recorded.device, "answers", view->answers,
                     "column_s", view->recorded.column_s, "names", names, "recorded", step_of(&view->recorded),
                     "answered", step_of(&view->answered));
}

/* ---- the whole ---- */

json_t *hec_view_root(const struct hec_view *view) {
    json_t *series = json_array(), *states = json_array();
    for (size_t i = 0; i < view->series_count; i++)
        json_array_append_new(series, one_series(&view->series[i]));
    for (int i = 0; i < view->state_count; i++)
        json_array_append_new(states, states_of(&view->states[i], view->duration_ns));
    json_t *root =
        json_pack("{s:o, s:o, s:o}", "duration_s", seconds(view->duration_ns), "series", series, "states", states);
    if (view->steps.count)
        json_object_set_new(root, "steps", steps_of(&view->steps));
    if (view->detail.to_ns > view->detail.from_ns && (view->detail.activity_count || view->detail.piece_count))
        json_object_set_new(root, "detail", detail_of(view));
    if (view->answers)
        json_object_set_new(root, "replay", replay_of(view));
    return root;
}
