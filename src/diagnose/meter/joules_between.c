#include "diagnose/meter/joules_between.h"

#include "base/clock.h"
#include "base/list.h"
#include "diagnose/meter/feed.h"
#include "diagnose/meter/stat.h"

#include <math.h>
#include <stdlib.h>

#define ANCHOR_EVERY_NS HEC_NS_PER_S /* a reading's place is known to 20 ms: 2 % of that */
#define ANCHORS_MAX 4096

/* An edge of a block or a reading of the counter, in order of time, and what the power samples say up to the next. */
struct mark {
    int64_t t_ns;
    double mj; /* NAN: an edge */
    double joules, sampled_s;
};

struct device_energy {
    struct mark *mark;
    size_t count, capacity, at;
    /* readings of the counter */
    struct slack {
        int64_t t_ns, slack_ns;
    } * slacks;
    size_t slack_count, slack_capacity, slack_at;
    int64_t every_ns, best_slack_ns, cell;
    bool no_memory;
};

static void take_slack(void *to, int64_t t_ns, int64_t us, bool valid) {
    struct device_energy *e = to;
    if (!valid || us < 0 || us > 3600 * 1000000LL)
        return;
    if (!hec_list_room(e->slacks, e->slack_count, e->slack_capacity, 256))
        e->no_memory = true;
    else
        e->slacks[e->slack_count++] = (struct slack){t_ns, us * HEC_NS_PER_US};
}

static void add_mark(struct device_energy *e, int64_t t_ns, double mj) {
    if (!hec_list_room(e->mark, e->count, e->capacity, 128))
        e->no_memory = true;
    else
        e->mark[e->count++] = (struct mark){.t_ns = t_ns, .mj = mj};
}

/* Of each second (more in a long run) the reading whose place in time is known best; it is the middle of its slack. */
static void take_counter(void *to, int64_t t_ns, int64_t mj, bool valid) {
    struct device_energy *e = to;
    int64_t slack_ns = 100 * HEC_NS_PER_MS, cell = t_ns / e->every_ns - (t_ns < 0);
    if (!valid)
        return;
    while (e->slack_at < e->slack_count && e->slacks[e->slack_at].t_ns < t_ns)
        e->slack_at++;
    if (e->slack_at < e->slack_count && e->slacks[e->slack_at].t_ns == t_ns)
        slack_ns = e->slacks[e->slack_at].slack_ns;
    bool same = e->count > 0 && e->cell == cell;
    if (same && slack_ns >= e->best_slack_ns)
        return;
    e->count -= same;
    e->cell = cell;
    e->best_slack_ns = slack_ns;
    add_mark(e, t_ns - slack_ns / 2, (double)mj);
}

static int by_time_of(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static void take_power_step(void *to, int64_t start_ns, int64_t end_ns, double watts) {
    struct device_energy *e = to;
    while (e->at + 1 < e->count && e->mark[e->at + 1].t_ns <= start_ns)
        e->at++;
    for (size_t i = e->at; i + 1 < e->count && e->mark[i].t_ns < end_ns; i++) {
        int64_t from = start_ns > e->mark[i].t_ns ? start_ns : e->mark[i].t_ns;
        int64_t until = end_ns < e->mark[i + 1].t_ns ? end_ns : e->mark[i + 1].t_ns;
        if (until <= from)
            continue;
        e->mark[i].joules += watts * (double)(until - from) / HEC_NS_PER_S;
        e->mark[i].sampled_s += (double)(until - from) / HEC_NS_PER_S;
    }
}

static void take_power(void *to, int64_t t_ns, int64_t mw, bool valid) {
    if (valid)
        hec_steps_add(to, t_ns, (double)mw / 1000);
}

static double seconds_from(const struct mark *mark) {
    return (double)(mark[1].t_ns - mark[0].t_ns) / HEC_NS_PER_S;
}

/* From one reading of the counter to the next: the marks between them share what it says. A counter that went backwards
 * says nothing. */
static void anchor(struct mark *from, const struct mark *to) {
    double joules = (to->mj - from->mj) / 1000, sum = 0, sampled_s = 0, length_s = 0;
    for (struct mark *m = from; m < to; m++) {
        sum += m->joules;
        sampled_s += m->sampled_s;
        length_s += seconds_from(m);
    }
    bool samples = sum > 0 && sampled_s >= 0.5 * length_s;
    for (struct mark *m = from; m < to && joules >= 0; m++) {
        m->joules = length_s <= 0 ? 0 : joules * (samples ? m->joules / sum : seconds_from(m) / length_s);
        m->sampled_s = seconds_from(m);
    }
}

/* What is left of power samples alone, and of gaps in them, counts at the mean of the samples. */
static void add_up(struct device_energy *e, const int64_t *edge, int count, double *joules_of) {
    struct mark *last = NULL;
    for (size_t i = 0; i < e->count; i++)
        if (isfinite(e->mark[i].mj)) {
            if (last)
                anchor(last, &e->mark[i]);
            last = &e->mark[i];
        }
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        double joules = 0, sampled_s = 0;
        while (e->mark[at].t_ns < edge[i])
            at++;
        for (; at + 1 < e->count && e->mark[at].t_ns < edge[i + 1]; at++) {
            joules += e->mark[at].joules;
            sampled_s += e->mark[at].sampled_s;
        }
        double length_s = (double)(edge[i + 1] - edge[i]) / HEC_NS_PER_S;
        joules_of[i] = sampled_s >= 0.5 * length_s ? joules / sampled_s * length_s : NAN;
    }
}

int hec_joules_between(const struct hec_summary_input *input, const struct hec_device_summary *d, const int64_t *edge,
                       int count, int64_t end_ns, double *joules, struct hec_why *why) {
    struct device_energy e = {.every_ns = end_ns / ANCHORS_MAX};
    struct hec_steps steps;
    int err = 0, device = d->device.index;
    e.every_ns = e.every_ns > ANCHOR_EVERY_NS ? e.every_ns : ANCHOR_EVERY_NS;
    if (d->energy.method == HEC_ENERGY_COUNTER &&
        (err = hec_feed(input, HEC_GPU_ENERGY_SLACK, device, take_slack, &e, why)) == 0)
        err = hec_feed(input, HEC_GPU_ENERGY, device, take_counter, &e, why);
    for (int i = 0; i <= count; i++)
        add_mark(&e, edge[i], NAN);
    if (!err && e.no_memory)
        err = HEC_ERR_NOMEM;
    if (!err) {
        qsort(e.mark, e.count, sizeof *e.mark, by_time_of);
        hec_steps_init(&steps, hec_metric_info(HEC_GPU_POWER)->kind, take_power_step, &e);
        err = hec_feed(input, HEC_GPU_POWER, device, take_power, &steps, why);
    }
    if (!err) {
        hec_steps_end(&steps, end_ns);
        add_up(&e, edge, count, joules);
    }
    free(e.slacks);
    free(e.mark);
    return err;
}
