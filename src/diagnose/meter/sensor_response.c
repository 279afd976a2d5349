#include "diagnose/meter/sensor_response.h"

#include "base/clock.h"

#include <math.h>

#define READINGS_LEAST 50
#define R2_LEAST 0.8
#define WINDOW_LEAST_NS 10e6
#define WINDOW_MOST_NS 1.5e9
#define END_FIRST_NS (-150e6)
#define END_LAST_NS 60e6

struct wave {
    const int64_t *edges_ns;
    int edges;
    const struct hec_sensor_reading *readings;
    int count;
};

/* Nanoseconds of load before t. */
static double load_before(const struct wave *w, double t_ns) {
    double sum = 0;
    for (int i = 0; i < w->edges && (double)w->edges_ns[i] < t_ns; i += 2) {
        double end = i + 1 < w->edges ? fmin((double)w->edges_ns[i + 1], t_ns) : t_ns;
        sum += end - (double)w->edges_ns[i];
    }
    return sum;
}

/* Of the variance of the readings, what a window explains that ends end_ns after the time stamp. */
static double explained(const struct wave *w, double window_ns, double end_ns) {
    double n = w->count, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (int i = 0; i < w->count; i++) {
        double t = (double)w->readings[i].t_ns + end_ns, watts = w->readings[i].watts;
        double share = (load_before(w, t) - load_before(w, t - window_ns)) / window_ns;
        x += share;
        y += watts;
        xx += share * share;
        xy += share * watts;
        yy += watts * watts;
    }
    double of_x = xx - x * x / n, of_y = yy - y * y / n, both = xy - x * y / n;
    return of_x > 1e-9 * n && of_y > 0 && both > 0 ? both * both / (of_x * of_y) : 0;
}

/* The best of windows about window_ns, a factor `by` apart, that end about end_ns, `step_ns` apart. */
static double search(const struct wave *w, double least_ns, double most_ns, double by, double first_ns, double last_ns,
                     double step_ns, double *window_ns, double *end_ns) {
    double best = 0;
    for (double window = least_ns; window <= most_ns; window *= by)
        for (double end = first_ns; end <= last_ns; end += step_ns) {
            double r2 = explained(w, window, end);
            if (r2 > best) {
                best = r2;
                *window_ns = window;
                *end_ns = end;
            }
        }
    return best;
}

bool hec_sensor_response_fit(const int64_t *edges_ns, int edges, const struct hec_sensor_reading *readings, int count,
                             struct hec_sensor_response *out) {
    const struct wave wave = {edges_ns, edges, readings, count};
    double window = WINDOW_LEAST_NS, end = 0;
    *out = (struct hec_sensor_response){0};
    if (count < READINGS_LEAST || edges < 4)
        return false;
    search(&wave, WINDOW_LEAST_NS, WINDOW_MOST_NS, 1.2, END_FIRST_NS, END_LAST_NS, 10e6, &window, &end);
    out->r2 = search(&wave, window / 1.2, window * 1.2, 1.03, end - 10e6, end + 10e6, 2e6, &window, &end);
    out->window_ns = llround(window);
    out->delay_ns = llround(window / 2 - end);
    return out->r2 >= R2_LEAST;
}
