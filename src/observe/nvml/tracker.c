#include "observe/nvml/tracker.h"

#include "observe/nvml/tuning.h"

#include <math.h>
#include <string.h>

/* The range of P (0.5 ms at most) shrinks to 2/3 with each step: 1 ns is left, 1 us over the 1200 edges that are kept. */
#define STEPS 32

void hec_grid_init(struct hec_grid *grid, int64_t period_min_ns, int64_t period_max_ns, int64_t origin_ns) {
    memset(grid, 0, sizeof *grid);
    grid->prior_min = grid->period_min = (double)period_min_ns;
    grid->prior_max = grid->period_max = (double)period_max_ns;
    grid->origin_ns = origin_ns;
}

/* The two bounds e_u.k <= u.t and e_l.k >= l.t together bound P. */
static void bound_period(struct hec_grid *grid, const struct hec_grid_bound *u, const struct hec_grid_bound *l) {
    double dk = u->k - l->k, dt = u->t - l->t;
    if (dk > 0)
        grid->period_max = fmin(grid->period_max, dt / dk);
    else if (dk < 0)
        grid->period_min = fmax(grid->period_min, dt / dk);
    else if (dt < 0)
        grid->period_max = -INFINITY;
}

static void bound_period_again(struct hec_grid *grid) {
    grid->period_min = grid->prior_min;
    grid->period_max = grid->prior_max;
    for (int i = 0; i < grid->upper_count; i++)
        for (int j = 0; j < grid->lower_count; j++)
            bound_period(grid, &grid->upper[i], &grid->lower[j]);
}

static double latest_of(const struct hec_grid *grid, double k, double period) {
    double t = INFINITY;
    for (int i = 0; i < grid->upper_count; i++)
        t = fmin(t, grid->upper[i].t + (k - grid->upper[i].k) * period);
    return t;
}

static double earliest_of(const struct hec_grid *grid, double k, double period) {
    double t = -INFINITY;
    for (int i = 0; i < grid->lower_count; i++)
        t = fmax(t, grid->lower[i].t + (k - grid->lower[i].k) * period);
    return t;
}

/* The maximum of the concave `latest_of` (sign 1), or of minus the convex `earliest_of` (sign -1), over P. */
static double extreme(const struct hec_grid *grid, double k, int sign) {
    double a = grid->period_min, b = grid->period_max;
    for (int i = 0; i < STEPS; i++) {
        double third = (b - a) / 3, left = a + third, right = b - third;
        double at_left = sign > 0 ? latest_of(grid, k, left) : -earliest_of(grid, k, left);
        double at_right = sign > 0 ? latest_of(grid, k, right) : -earliest_of(grid, k, right);
        if (at_left < at_right)
            a = left;
        else
            b = right;
    }
    double period = (a + b) / 2;
    return sign > 0 ? latest_of(grid, k, period) : earliest_of(grid, k, period);
}

static bool add_bound(struct hec_grid *grid, struct hec_grid_bound *bounds, int *count, struct hec_grid_bound bound) {
    if (*count == HEC_GRID_BOUNDS_MAX) {
        memmove(bounds, bounds + 1, (size_t)(*count - 1) * sizeof *bounds);
        (*count)--;
    }
    bounds[(*count)++] = bound;
    bound_period_again(grid);
    return grid->period_min <= grid->period_max;
}

bool hec_grid_add_upper(struct hec_grid *grid, int64_t k, int64_t t_ns) {
    struct hec_grid_bound bound = {(double)k, (double)(t_ns - grid->origin_ns)};
    if (grid->upper_count > 0 && extreme(grid, bound.k, 1) <= bound.t)
        return true;
    return add_bound(grid, grid->upper, &grid->upper_count, bound);
}

bool hec_grid_add_lower(struct hec_grid *grid, int64_t k, int64_t t_ns) {
    struct hec_grid_bound bound = {(double)k, (double)(t_ns - grid->origin_ns)};
    if (grid->lower_count > 0 && extreme(grid, bound.k, -1) >= bound.t)
        return true;
    return add_bound(grid, grid->lower, &grid->lower_count, bound);
}

static int forget(struct hec_grid_bound *bounds, int count, double t) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (bounds[i].t >= t || i == count - 1) /* never the last one: without any there is no grid */
            bounds[kept++] = bounds[i];
    return kept;
}

/* Forget bounds older than t_ns, so that a slow change of the pace cannot contradict them. */
static void grid_forget(struct hec_grid *grid, int64_t t_ns) {
    double t = (double)(t_ns - grid->origin_ns);
    int before = grid->lower_count + grid->upper_count;
    grid->lower_count = forget(grid->lower, grid->lower_count, t);
    grid->upper_count = forget(grid->upper, grid->upper_count, t);
    if (grid->lower_count + grid->upper_count != before)
        bound_period_again(grid);
}

void hec_grid_edge(const struct hec_grid *grid, int64_t k, int64_t *earliest_ns, int64_t *latest_ns) {
    *earliest_ns = grid->origin_ns + (int64_t)floor(extreme(grid, (double)k, -1));
    *latest_ns = grid->origin_ns + (int64_t)ceil(extreme(grid, (double)k, 1));
}

void hec_grid_locate(const struct hec_grid *grid, int64_t t0_ns, int64_t t1_ns, int64_t *first, int64_t *last) {
    double period = (grid->period_min + grid->period_max) / 2;
    const struct hec_grid_bound *near = &grid->upper[grid->upper_count - 1];
    int64_t early, late, guess = (int64_t)(near->k + floor(((double)(t0_ns - grid->origin_ns) - near->t) / period));

    *first = guess;
    for (hec_grid_edge(grid, *first, &early, &late); late > t0_ns; hec_grid_edge(grid, --*first, &early, &late))
        ;
    for (hec_grid_edge(grid, *first + 1, &early, &late); late <= t0_ns; hec_grid_edge(grid, *first + 1, &early, &late))
        ++*first;
    *last = *first;
    for (hec_grid_edge(grid, *last + 1, &early, &late); early < t1_ns; hec_grid_edge(grid, *last + 1, &early, &late))
        ++*last;
}

void nvml_tracker_init(struct nvml_tracker *tracker, nvml_tracker_emit emit, void *context) {
    memset(tracker, 0, sizeof *tracker);
    tracker->emit = emit;
    tracker->context = context;
    tracker->interval_ns = HEC_TUNE_ENERGY_INTERVAL_NS;
    tracker->quantum_ns = HEC_TUNE_ENERGY_QUANTUM_NS;
    tracker->slop_ns = HEC_TUNE_ENERGY_SLOP_NS;
    tracker->next_ns = INT64_MIN;
    tracker->emitted_ns = INT64_MIN;
    tracker->state = NVML_TRACKER_RESTING;
}

static struct nvml_tracker_reading *latest(struct nvml_tracker *t) {
    return &t->held[t->held_count - 1];
}

static void emit(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    int64_t to = r->t1_ns, from = r->t0_ns - t->quantum_ns;
    if (t->state != NVML_TRACKER_RESTING) {
        int64_t early, late, unused;
        hec_grid_edge(&t->grid, r->first, &early, &unused);
        hec_grid_edge(&t->grid, r->last, &unused, &late);
        if (late + t->slop_ns < to)
            to = late + t->slop_ns;
        if (early - t->slop_ns > from)
            from = early - t->slop_ns;
    }
    if (to <= t->emitted_ns) /* the same edge again */
        return;
    t->emitted_ns = to;
    t->emit(t->context, to, to - from, r->value_mj);
}

/* Emit what is held and keep the latest reading to compare the next with. Unless all is asked for, a latest reading that
 * may belong to two edges waits: the next one decides. */
static void release(struct nvml_tracker *t, bool all) {
    for (int i = 0; i < t->held_count; i++) {
        struct nvml_tracker_reading *r = &t->held[i];
        if (r->emitted || (!all && r == latest(t) && r->first != r->last))
            continue;
        emit(t, r);
        r->emitted = true;
    }
    if (t->held_count > 1)
        t->held[0] = *latest(t);
    t->held_count = t->held_count > 0;
}

void nvml_tracker_flush(struct nvml_tracker *tracker) {
    release(tracker, true);
}

bool nvml_tracker_undecided(const struct nvml_tracker *tracker) {
    if (tracker->held_count == 0 || tracker->state == NVML_TRACKER_RESTING || !tracker->located)
        return false;
    const struct nvml_tracker_reading *r = &tracker->held[tracker->held_count - 1];
    return r->first != r->last;
}

/* Emit everything as known to the quantum only, with no grid. */
static void abandon(struct nvml_tracker *t) {
    t->state = NVML_TRACKER_RESTING;
    t->located = false;
    release(t, true);
    t->held_count = 0;
}

/* Look for the edges with r as the first reading: it belongs to edge 0 by definition. */
static void start(struct nvml_tracker *t, struct nvml_tracker_reading r) {
    hec_grid_init(&t->grid, HEC_TUNE_ENERGY_PERIOD_MIN_NS, HEC_TUNE_ENERGY_PERIOD_MAX_NS, r.t0_ns);
    r.first = r.last = 0;
    r.emitted = false;
    hec_grid_add_upper(&t->grid, 0, r.t1_ns + t->slop_ns);
    hec_grid_add_lower(&t->grid, 1, r.t0_ns - t->slop_ns);
    t->state = NVML_TRACKER_SEARCHING;
    t->step = NVML_TRACKER_WAIT;
    t->search_count = 1;
    t->held[0] = r;
    t->held_count = 1;
}

/* No regular edges: the reading counts as known to the quantum. */
static void rest(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    abandon(t);
    t->held[0] = *r;
    t->held_count = 1;
    release(t, true);
    if (t->rest_until_ns <= r->t1_ns)
        t->rest_until_ns = r->t1_ns + HEC_TUNE_ENERGY_REST_NS;
    t->next_ns = r->t1_ns + t->interval_ns;
}

/* What two readings in a row say about each other's edges. False: they cannot both be. */
static bool compare(struct nvml_tracker_reading *a, struct nvml_tracker_reading *b) {
    if (a->value_mj == b->value_mj) {
        a->first = b->first = a->first > b->first ? a->first : b->first;
        a->last = b->last = a->last < b->last ? a->last : b->last;
    } else {
        if (b->first <= a->first)
            b->first = a->first + 1;
        if (a->last >= b->last)
            a->last = b->last - 1;
    }
    return a->first <= a->last && b->first <= b->last;
}

static bool learn(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    return hec_grid_add_upper(&t->grid, r->first, r->t1_ns + t->slop_ns) &&
           hec_grid_add_lower(&t->grid, r->last + 1, r->t0_ns - t->slop_ns);
}

/* Find out which edges r may belong to and what that says about the edges. False: contradiction. */
static bool place(struct nvml_tracker *t, struct nvml_tracker_reading *r) {
    grid_forget(&t->grid, r->t0_ns - HEC_TUNE_ENERGY_MEMORY_NS);
    hec_grid_locate(&t->grid, r->t0_ns - t->slop_ns, r->t1_ns + t->slop_ns, &r->first, &r->last);
    struct nvml_tracker_reading *before = latest(t);
    return compare(before, r) && learn(t, before) && learn(t, r);
}

/* Just after the first edge from number k on that is over at or after `from`. */
static int64_t after_edge(const struct nvml_tracker *t, int64_t k, int64_t from) {
    for (;; k++) {
        int64_t early, late;
        hec_grid_edge(&t->grid, k, &early, &late);
        late += t->slop_ns + HEC_TUNE_ENERGY_MARGIN_NS;
        if (late >= from)
            return late;
    }
}

/* Test inside the interval in which the next edge lies, at the point where both answers leave the same width,
 * (w + call) / 2; or first take a reading that is certain, to compare such a test with. */
static void plan_search(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    int64_t early, late;
    hec_grid_edge(&t->grid, r->last + 1, &early, &late);
    int64_t spare = late - early - t->call_ns;
    int64_t test = early + (spare > 0 ? spare / 2 : 0);
    if (test < r->t1_ns)
        test = r->t1_ns;
    if (r->first == r->last && test < late)
        t->next_ns = test;
    else
        t->next_ns = after_edge(t, r->last, r->t1_ns);
}

/* Just before the next edge can come: were the pace faster than it looks, the value would have changed by then. */
static void plan_confirm(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    int64_t early, late;
    hec_grid_edge(&t->grid, r->last + 1, &early, &late);
    int64_t test = early - t->slop_ns - 2 * t->call_ns - HEC_TUNE_ENERGY_MARGIN_NS;
    if (r->first == r->last && test > r->t1_ns) {
        t->next_ns = test;
        t->step = NVML_TRACKER_CONFIRM;
    } else {
        t->next_ns = after_edge(t, r->last, r->t1_ns);
    }
}

static void plan_wait(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    /* while the pace is known only roughly, stay near: the uncertainty grows with every edge that passes */
    double interval = HEC_TUNE_ENERGY_DRIFT_NS / (t->grid.period_max - t->grid.period_min + 1) * t->grid.period_max;
    if (interval > (double)t->interval_ns)
        interval = (double)t->interval_ns;
    int64_t skip = (int64_t)(interval / t->grid.period_max) - 2;
    t->step = NVML_TRACKER_WAIT;
    if (r->first != r->last) { /* late, in the middle of an edge: one more reading decides which it was */
        t->next_ns = after_edge(t, r->last, r->t1_ns);
        return;
    }
    /* All devices have the same pace: a reading always at the same place between two edges could always be in the way of
     * another device's test. 29 and 48 have no common divisor, so every place has its turn. */
    int64_t place = t->calls * 29 % 48 * HEC_NS_PER_MS;
    t->next_ns =
        place + after_edge(t, r->last + (skip > 0 ? skip : 1), r->t1_ns + (int64_t)interval - t->quantum_ns / 2);
}

static void plan(struct nvml_tracker *t) {
    struct nvml_tracker_reading *r = latest(t);
    int64_t early, late;
    hec_grid_edge(&t->grid, r->last + 1, &early, &late);
    int64_t width = late - early, least = t->call_ns + 2 * t->slop_ns;

    if (t->state == NVML_TRACKER_TRACKING && width > least + 2 * HEC_TUNE_ENERGY_FOUND_NS) {
        t->state = NVML_TRACKER_SEARCHING; /* readings stayed out for long */
        t->search_count = 0;
    }
    if (t->state == NVML_TRACKER_SEARCHING && t->search_count > HEC_TUNE_ENERGY_SEARCH_MAX) {
        struct nvml_tracker_reading last = *r;
        rest(t, &last);
    } else if (t->state == NVML_TRACKER_SEARCHING && width > least + HEC_TUNE_ENERGY_FOUND_NS) {
        plan_search(t, r);
    } else if (!t->located && t->step != NVML_TRACKER_CONFIRM) {
        plan_confirm(t, r);
    } else {
        bool test = t->state == NVML_TRACKER_TRACKING && t->step == NVML_TRACKER_WAIT && r->first == r->last &&
                    width > least + HEC_TUNE_ENERGY_NARROW_NS;
        t->state = NVML_TRACKER_TRACKING;
        t->located = true;
        if (test) {
            t->step = NVML_TRACKER_TEST;
            plan_search(t, r);
        } else {
            plan_wait(t, r);
        }
    }
}

/* The edges are not where they had to be: begin anew, allowing for more irregularity, or give up for a while. */
static void contradict(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    t->contradictions++;
    t->contradicted_ns = r->t1_ns;
    if (t->slop_ns >= HEC_TUNE_ENERGY_SLOP_MAX_NS) {
        rest(t, r);
        return;
    }
    abandon(t);
    t->slop_ns *= 2;
    start(t, *r);
    plan(t);
}

static void note_call(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    int64_t call = r->t1_ns - r->t0_ns;
    if (t->calls++ == 0 || call < t->call_ns)
        t->call_ns = call;
    else
        t->call_ns += (call - t->call_ns) / 8;
}

/* A value that stands still for longer than the quantum shows that the quantum is longer. */
static void note_stillness(struct nvml_tracker *t, const struct nvml_tracker_reading *r) {
    if (t->held_count == 0 || r->value_mj != latest(t)->value_mj)
        t->still_ns = r->t1_ns;
    else if (r->t0_ns - t->still_ns > t->quantum_ns)
        t->quantum_ns = r->t0_ns - t->still_ns + HEC_TUNE_ENERGY_QUANTUM_NS;
}

void nvml_tracker_add(struct nvml_tracker *tracker, int64_t t0_ns, int64_t t1_ns, int64_t value_mj, bool *reset) {
    struct nvml_tracker *t = tracker;
    struct nvml_tracker_reading r = {.t0_ns = t0_ns, .t1_ns = t1_ns, .value_mj = value_mj};
    note_call(t, &r);
    note_stillness(t, &r);
    *reset = t->held_count > 0 && value_mj < latest(t)->value_mj;
    bool stale = t->held_count > 0 && t0_ns - latest(t)->t1_ns > HEC_TUNE_ENERGY_MEMORY_NS;

    if (*reset || stale || t->held_count == 0 || (t->state == NVML_TRACKER_RESTING && t->rest_until_ns <= t0_ns)) {
        abandon(t);
        t->slop_ns = HEC_TUNE_ENERGY_SLOP_NS;
        start(t, r);
        plan(t);
        return;
    }
    if (t->state == NVML_TRACKER_RESTING) {
        rest(t, &r);
        return;
    }
    if (t0_ns - t->contradicted_ns > 10 * HEC_TUNE_ENERGY_MEMORY_NS)
        t->slop_ns = HEC_TUNE_ENERGY_SLOP_NS;
    if (!place(t, &r)) {
        contradict(t, &r);
        return;
    }
    t->search_count += t->state == NVML_TRACKER_SEARCHING;
    if (t->held_count == NVML_TRACKER_HELD_MAX || t1_ns - t->held[0].t0_ns > HEC_TUNE_ENERGY_HOLD_NS)
        release(t, false);
    t->held[t->held_count++] = r;

    int64_t early, late;
    hec_grid_edge(&t->grid, r.last + 1, &early, &late);
    if (r.first != r.last && late - early > t->quantum_ns / 2) {
        /* too late, too early in the search: nothing separates the edges yet, so this reading is a new beginning */
        abandon(t);
        start(t, r);
    }
    plan(t);
    if (t->located)
        release(t, false);
}
