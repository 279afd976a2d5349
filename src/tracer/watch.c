/* Whether mode auto may have its glimpse of the device, and whether it may stay; pure. */
#include "tracer/tracer.h"

#include <math.h>

/* The start of a program says nothing of how it goes on: libraries are loaded, the first steps compile. */
#define WARM_NS (2 * HEC_NS_PER_S)
#define LOOK_NS (1 * HEC_NS_PER_S)
/* What being attached costs the thread that launches (H200, CUPTI 13.0, bench/results/2026-11-21-h200-trace): */
#define LAUNCH_COST_NS 650.0
#define GRAPH_COST_NS 14000.0
/* It is hidden where the host waits for the device, in a synchronising call or for room in the queue, for a tenth of the
 * time, and for twice what it costs. */
#define WAITED_SHARE 0.1
#define WAITED_TIMES 2
/* It stays where the launches are as fast as before: fewer by no more than this, at the upper end of a 95 % interval. */
#define FREE_SHARE 0.005
#define Z_95 1.96

static const struct hec_callers_totals *at(const struct hec_watch *watch, uint32_t back) {
    return &watch->samples[(watch->count - 1 - back) % HEC_WATCH_SAMPLES];
}

void hec_watch_sample(struct hec_watch *watch, const struct hec_callers_totals *sample) {
    if (watch->first_ns == 0 && sample->launches + sample->graphs > 0)
        watch->first_ns = sample->t_ns;
    if (watch->count == 0 || sample->t_ns - at(watch, 0)->t_ns >= HEC_WATCH_SAMPLE_NS)
        watch->samples[watch->count++ % HEC_WATCH_SAMPLES] = *sample;
}

bool hec_watch_may_look(const struct hec_watch *watch, int64_t now_ns, double stolen) {
    uint32_t kept = watch->count < HEC_WATCH_SAMPLES ? watch->count : HEC_WATCH_SAMPLES, back = 0;
    if (watch->first_ns == 0 || now_ns - watch->first_ns < WARM_NS || kept < 2)
        return false;
    const struct hec_callers_totals *last = at(watch, 0);
    while (back + 1 < kept && last->t_ns - at(watch, back)->t_ns < LOOK_NS)
        back++;
    const struct hec_callers_totals *first = at(watch, back);
    double ns = (double)(last->t_ns - first->t_ns);
    double waited = (double)(last->waited_ns - first->waited_ns) - stolen * ns;
    double cost = (double)(last->launches - first->launches + last->copies - first->copies) * LAUNCH_COST_NS +
                  (double)(last->graphs - first->graphs) * GRAPH_COST_NS;
    return ns >= LOOK_NS && waited >= WAITED_SHARE * ns && waited >= WAITED_TIMES * cost;
}

/* Mean and variance of the mean of the launches in each interval between samples of [from, to). */
static uint32_t rate(const struct hec_watch *watch, int64_t from_ns, int64_t to_ns, double *mean, double *variance) {
    uint32_t kept = watch->count < HEC_WATCH_SAMPLES ? watch->count : HEC_WATCH_SAMPLES, n = 0;
    double sum = 0, squares = 0;
    for (uint32_t back = 1; back < kept; back++) {
        const struct hec_callers_totals *first = at(watch, back), *last = at(watch, back - 1);
        if (first->t_ns < from_ns || last->t_ns > to_ns)
            continue;
        double value = (double)(last->launches + last->graphs - first->launches - first->graphs) * 1e9 /
                       (double)(last->t_ns - first->t_ns);
        sum += value;
        squares += value * value;
        n++;
    }
    *mean = n > 0 ? sum / n : 0;
    *variance = n > 1 ? (squares - sum * sum / n) / (n - 1) / n : INFINITY;
    return n;
}

bool hec_watch_free(const struct hec_watch *watch, int64_t opened_ns, int64_t now_ns) {
    double before, during, v_before, v_during;
    uint32_t n = rate(watch, opened_ns - (now_ns - opened_ns), opened_ns, &before, &v_before);
    uint32_t m = rate(watch, opened_ns, now_ns, &during, &v_during);
    if (n < HEC_WATCH_FREE_SAMPLES || m < HEC_WATCH_FREE_SAMPLES || !(before > 0) || !(during > 0))
        return false;
    double left = FREE_SHARE - (before / during - 1);
    double variance = v_before / (before * before) + v_during / (during * during);
    return left >= 0 && Z_95 * Z_95 * variance <= left * left; /* slower + z sigma <= FREE_SHARE, and no libm */
}
