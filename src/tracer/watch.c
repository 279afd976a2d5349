/* Whether mode auto may have its glimpse of the device, and whether it may stay; pure. */
#include "tracer/tracer.h"

#include <math.h>

/* The start of a program says nothing of how it goes on: libraries are loaded, the first steps compile. */
#define WARM_NS (2 * HEC_NS_PER_S)
#define LOOK_NS (1 * HEC_NS_PER_S)
/* What being attached costs the thread that launches (H200, CUPTI 13.0, bench/results/2026-11-21-h200-trace), and each node
 * of a graph (H100, bench/results/2026-11-26-h100-graphs: 0.7 to 1.0 us). */
#define LAUNCH_COST_NS 650.0
#define NODE_COST_NS 1000.0
/* Of the device, while it looks; for that time, so much more of it may be used. */
#define NODE_DEVICE_NS 150.0
#define LOOK_SHARE 0.02
/* Once CUPTI has recorded anything at all, each launch of a graph takes longer for the rest of the program, whether the graph
 * was made before or after: by 0.2 to 0.35 us a node (there). Only cuptiFinalize ends that, and it can end the program. */
#define NODE_AFTER_NS 350.0
/* It is hidden where the host waits for the device, in a synchronising call or for room in the queue, for a tenth of the
 * time, and for twice what it costs. */
#define WAITED_SHARE 0.1
#define WAITED_TIMES 2
/* It stays where the launches are as fast as before: fewer by no more than this, at the upper end of a 95 % interval. */
#define FREE_SHARE 0.005
#define Z_95 1.96
/* It leaves early where they surely come later by more than this. Asked every 50 ms, so three sigma. */
#define SLOWER_SHARE 0.05
#define Z_SURE 3.0

static const struct hec_callers_totals *at(const struct hec_watch *watch, uint32_t back) {
    return &watch->samples[(watch->count - 1 - back) % HEC_WATCH_SAMPLES];
}

void hec_watch_sample(struct hec_watch *watch, const struct hec_callers_totals *sample) {
    if (watch->first_ns == 0 && sample->launches + sample->graphs > 0)
        watch->first_ns = sample->t_ns;
    if (watch->count == 0 || sample->t_ns - at(watch, 0)->t_ns >= HEC_WATCH_SAMPLE_NS)
        watch->samples[watch->count++ % HEC_WATCH_SAMPLES] = *sample;
}

/* The samples at both ends of the last second. False: there is less. */
static bool last_second(const struct hec_watch *watch, const struct hec_callers_totals **first,
                        const struct hec_callers_totals **last) {
    uint32_t kept = watch->count < HEC_WATCH_SAMPLES ? watch->count : HEC_WATCH_SAMPLES, back = 0;
    if (kept < 2)
        return false;
    *last = at(watch, 0);
    while (back + 1 < kept && (*last)->t_ns - at(watch, back)->t_ns < LOOK_NS)
        back++;
    *first = at(watch, back);
    return (*last)->t_ns - (*first)->t_ns >= LOOK_NS;
}

/* How long threads waited for a core, which is no waiting for the device. They are read after the waits: where this thread waited for
 * a core as well in between, the delay of a wait of `first`'s second would stand in `first` already. So it counts from the sample
 * before. */
static int64_t delays(const struct hec_watch *watch, const struct hec_callers_totals *first,
                      const struct hec_callers_totals *last) {
    uint32_t kept = watch->count < HEC_WATCH_SAMPLES ? watch->count : HEC_WATCH_SAMPLES, back = 0;
    while (back + 1 < kept && at(watch, back)->t_ns >= first->t_ns)
        back++;
    return last->delay_ns - at(watch, back)->delay_ns;
}

/* Each launch as one of the largest graph. */
static double nodes_of(uint64_t launches, const struct hec_callers_totals *last) {
    return (double)launches * (double)last->graph_nodes;
}

/* What CUPTI leaves behind is the host's time. It counts where the device waits for it: at the first launch after a wait.
 * How a graph that is not launched yet will be launched, nobody knows. */
bool hec_watch_graphs_bear(const struct hec_watch *watch) {
    const struct hec_callers_totals *first, *last;
    if (watch->count == 0 || (at(watch, 0)->graphs == 0 && at(watch, 0)->graph_nodes == 0))
        return true;
    if (!last_second(watch, &first, &last))
        return false;
    uint64_t graphs = last->graphs - first->graphs, waits = last->waits - first->waits;
    double ns = (double)(last->t_ns - first->t_ns);
    return graphs > 0 && last->graph_nodes > 0 &&
           nodes_of(graphs < waits ? graphs : waits, last) * NODE_AFTER_NS <= FREE_SHARE * ns &&
           nodes_of(graphs, last) * NODE_DEVICE_NS <= LOOK_SHARE * ns;
}

bool hec_watch_may_look(const struct hec_watch *watch, int64_t now_ns, double stolen) {
    const struct hec_callers_totals *first, *last;
    if (watch->first_ns == 0 || now_ns - watch->first_ns < WARM_NS || !last_second(watch, &first, &last) ||
        !hec_watch_graphs_bear(watch))
        return false;
    double ns = (double)(last->t_ns - first->t_ns);
    double waited = (double)(last->waited_ns - first->waited_ns - delays(watch, first, last)) - stolen * ns;
    double cost = (double)(last->launches - first->launches + last->copies - first->copies) * LAUNCH_COST_NS +
                  nodes_of(last->graphs - first->graphs, last) * NODE_COST_NS;
    return waited >= WAITED_SHARE * ns && waited >= WAITED_TIMES * cost;
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

/* By what part of their time launches come later since opened_ns, and the variance of that. False: too little to tell. */
static bool later(const struct hec_watch *watch, int64_t opened_ns, int64_t now_ns, double *share, double *variance) {
    double before, during, v_before, v_during;
    uint32_t n = rate(watch, opened_ns - (now_ns - opened_ns), opened_ns, &before, &v_before);
    uint32_t m = rate(watch, opened_ns, now_ns, &during, &v_during);
    if (n < HEC_WATCH_FREE_SAMPLES || m < HEC_WATCH_FREE_SAMPLES || !(before > 0) || !(during > 0))
        return false;
    *share = before / during - 1;
    *variance = v_before / (before * before) + v_during / (during * during);
    return true;
}

bool hec_watch_free(const struct hec_watch *watch, int64_t opened_ns, int64_t now_ns) {
    double share, variance;
    if (!later(watch, opened_ns, now_ns, &share, &variance))
        return false;
    double left = FREE_SHARE - share;
    return left >= 0 && Z_95 * Z_95 * variance <= left * left; /* later + z sigma <= FREE_SHARE, and no libm */
}

bool hec_watch_slower(const struct hec_watch *watch, int64_t opened_ns, int64_t now_ns) {
    double share, variance;
    if (!later(watch, opened_ns, now_ns, &share, &variance))
        return false;
    double over = share - SLOWER_SHARE;
    return over > 0 && Z_SURE * Z_SURE * variance <= over * over;
}
