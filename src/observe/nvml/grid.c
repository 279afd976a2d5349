#include "observe/nvml/grid.h"

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

static double latest(const struct hec_grid *grid, double k, double period) {
    double t = INFINITY;
    for (int i = 0; i < grid->upper_count; i++)
        t = fmin(t, grid->upper[i].t + (k - grid->upper[i].k) * period);
    return t;
}

static double earliest(const struct hec_grid *grid, double k, double period) {
    double t = -INFINITY;
    for (int i = 0; i < grid->lower_count; i++)
        t = fmax(t, grid->lower[i].t + (k - grid->lower[i].k) * period);
    return t;
}

/* The maximum of the concave `latest` (sign 1), or of minus the convex `earliest` (sign -1), over P. */
static double extreme(const struct hec_grid *grid, double k, int sign) {
    double a = grid->period_min, b = grid->period_max;
    for (int i = 0; i < STEPS; i++) {
        double third = (b - a) / 3, left = a + third, right = b - third;
        double at_left = sign > 0 ? latest(grid, k, left) : -earliest(grid, k, left);
        double at_right = sign > 0 ? latest(grid, k, right) : -earliest(grid, k, right);
        if (at_left < at_right)
            a = left;
        else
            b = right;
    }
    double period = (a + b) / 2;
    return sign > 0 ? latest(grid, k, period) : earliest(grid, k, period);
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

void hec_grid_forget(struct hec_grid *grid, int64_t t_ns) {
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
