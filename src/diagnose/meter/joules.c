#include "diagnose/meter/joules.h"

#include "diagnose/physics.h"
#include "base/clock.h"
#include "base/list.h"

#include <math.h>
#include <stdlib.h>

#define ANCHOR_EVERY_NS HEC_NS_PER_S /* a reading's place is known to 20 ms: 2 % of that */
#define ANCHORS_MAX 4096
#define TAU_HISTORY_S 0.1
#define TAU_POLLED_S 1.0

static double seconds_of(int64_t ns) {
    return (double)ns / HEC_NS_PER_S;
}

/* ---- the bound ---- */

/* Of a device's power what bounds need. */
struct power {
    double highest_w, usual_ns;
};

/* How far off the energy of so many seconds can be when all that is known is that power lies below a ceiling. */
static double widest(double joules, double seconds, double ceiling_w) {
    return fmax(joules, ceiling_w * seconds - joules);
}

static double bound_of(const struct hec_meter *meter, const struct hec_device_summary *d, const struct power *power,
                       double share, double seconds, int64_t edges) {
    double own = share * d->energy.joules, rest = d->energy.joules - own, run_s = seconds_of(meter->end_ns);
    double ceiling_w = fmax(power->highest_w, isfinite(d->power_limit_w) ? d->power_limit_w : 0);
    double tau_s = fmax(power->usual_ns / HEC_NS_PER_S, d->device.has_power_history ? TAU_HISTORY_S : TAU_POLLED_S);
    double wrong = fmin(fmin(widest(own, seconds, ceiling_w), widest(rest, run_s - seconds, ceiling_w)),
                        ceiling_w * (double)edges * tau_s / 2);
    return share * d->energy.bound_joules + wrong;
}

/* ---- intervals ---- */

/* An edge of an interval or a reading of the counter, in order of time, and what the power samples say up to the next. */
struct mark {
    int64_t t_ns;
    double mj; /* NAN: an edge */
    double joules, sampled_s;
};

struct marks {
    struct mark *list;
    size_t count, capacity, at;
    int64_t every_ns, best_slack_ns, cell; /* of the counter's readings */
    bool no_memory;
    struct power power;
};

static void add_mark(struct marks *m, int64_t t_ns, double mj) {
    if (!hec_list_room(m->list, m->count, m->capacity, 128))
        m->no_memory = true;
    else
        m->list[m->count++] = (struct mark){.t_ns = t_ns, .mj = mj};
}

/* Of each second (more in a long run) the reading whose place in time is known best; it is the middle of its slack. */
static void take_counter(void *to, const struct hec_counter_reading *reading) {
    int64_t t_ns = reading->t_ns, mj = reading->mj, slack_us = reading->slack_us;
    struct marks *m = to;
    int64_t cell = t_ns / m->every_ns - (t_ns < 0);
    int64_t slack_ns =
        slack_us >= 0 && slack_us <= 3600 * 1000000LL ? slack_us * HEC_NS_PER_US : HEC_COUNTER_RENEWED_NS;
    bool same = m->count > 0 && m->cell == cell;
    if (same && slack_ns >= m->best_slack_ns)
        return;
    m->count -= same;
    m->cell = cell;
    m->best_slack_ns = slack_ns;
    add_mark(m, t_ns - slack_ns / 2, (double)mj);
}

static int by_time_of(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static void mark_step(void *to, int64_t start_ns, int64_t end_ns, double mw) {
    struct marks *m = to;
    double watts = mw / 1000;
    m->power.highest_w = fmax(m->power.highest_w, watts);
    while (m->at + 1 < m->count && m->list[m->at + 1].t_ns <= start_ns)
        m->at++;
    for (size_t i = m->at; i + 1 < m->count && m->list[i].t_ns < end_ns; i++) {
        struct mark *mark = &m->list[i];
        int64_t from = start_ns > mark->t_ns ? start_ns : mark->t_ns;
        int64_t until = end_ns < mark[1].t_ns ? end_ns : mark[1].t_ns;
        if (until <= from)
            continue;
        mark->joules += watts * (double)(until - from) / HEC_NS_PER_S;
        mark->sampled_s += seconds_of(until - from);
    }
}

static double seconds_from(const struct mark *mark) {
    return seconds_of(mark[1].t_ns - mark[0].t_ns);
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
static void add_up(struct marks *marks, const int64_t *edge, int count, struct hec_joules *out) {
    struct mark *last = NULL;
    for (size_t i = 0; i < marks->count; i++)
        if (isfinite(marks->list[i].mj)) {
            if (last)
                anchor(last, &marks->list[i]);
            last = &marks->list[i];
        }
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        double joules = 0, sampled_s = 0, length_s = seconds_of(edge[i + 1] - edge[i]);
        while (marks->list[at].t_ns < edge[i])
            at++;
        for (; at + 1 < marks->count && marks->list[at].t_ns < edge[i + 1]; at++) {
            joules += marks->list[at].joules;
            sampled_s += marks->list[at].sampled_s;
        }
        out[i].joules = sampled_s >= 0.5 * length_s ? joules / sampled_s * length_s : NAN;
    }
}

int hec_meter_joules(struct hec_meter *meter, const struct hec_device_summary *d, const int64_t *edge, int count,
                     struct hec_joules *out, struct hec_why *why) {
    int64_t every_ns = meter->end_ns / ANCHORS_MAX;
    struct marks m = {.every_ns = every_ns > ANCHOR_EVERY_NS ? every_ns : ANCHOR_EVERY_NS};
    int err = 0, device = d->device.index;
    if (d->energy.method == HEC_ENERGY_COUNTER)
        err = hec_meter_counter(meter, device, take_counter, &m, why);
    for (int i = 0; i <= count; i++)
        add_mark(&m, edge[i], NAN);
    if (!err && m.no_memory)
        err = HEC_ERR_NOMEM;
    if (!err) {
        qsort(m.list, m.count, sizeof *m.list, by_time_of);
        err = hec_meter_steps(meter, HEC_GPU_POWER, device, mark_step, &m, &m.power.usual_ns, why);
    }
    if (!err)
        add_up(&m, edge, count, out);
    for (int i = 0; i < count && !err; i++)
        out[i].bound = bound_of(meter, d, &m.power, out[i].joules / d->energy.joules, seconds_of(edge[i + 1] - edge[i]),
                                (edge[i] > 0) + (edge[i + 1] < meter->end_ns));
    free(m.list);
    return err;
}

/* ---- parts in pieces ---- */

static double bin_of(int64_t t_ns, int64_t end_ns) {
    return (double)t_ns / (double)end_ns * HEC_METER_BINS;
}

void hec_meter_part_add(struct hec_meter_part *part, int64_t start_ns, int64_t end_ns) {
    end_ns = end_ns < part->end_ns ? end_ns : part->end_ns;
    start_ns = start_ns > part->united_to_ns ? start_ns : part->united_to_ns; /* which is 0 at first */
    if (end_ns <= start_ns)
        return;
    bool apart = start_ns > part->united_to_ns;
    part->edges += apart; /* it begins */
    part->edges +=
        (end_ns < part->end_ns) - (!apart && part->united_to_ns > 0); /* it ends, and no longer where it did */
    part->united_to_ns = end_ns;
    part->seconds += seconds_of(end_ns - start_ns);
    double from = bin_of(start_ns, part->end_ns), to = bin_of(end_ns, part->end_ns);
    for (int bin = (int)from; bin < HEC_METER_BINS && bin < to; bin++)
        part->share[bin] += (float)(fmin(bin + 1, to) - fmax(bin, from));
}

struct binned {
    double joules[HEC_METER_BINS];
    int64_t end_ns;
    struct power power;
};

static void bin_step(void *to, int64_t start_ns, int64_t end_ns, double mw) {
    struct binned *b = to;
    double watts = mw / 1000;
    start_ns = start_ns > 0 ? start_ns : 0;
    end_ns = end_ns < b->end_ns ? end_ns : b->end_ns;
    if (end_ns <= start_ns)
        return;
    b->power.highest_w = fmax(b->power.highest_w, watts);
    double from = bin_of(start_ns, b->end_ns), to_bin = bin_of(end_ns, b->end_ns);
    double bin_s = seconds_of(b->end_ns) / HEC_METER_BINS;
    for (int bin = (int)from; bin < HEC_METER_BINS && bin < to_bin; bin++)
        b->joules[bin] += watts * bin_s * (fmin(bin + 1, to_bin) - fmax(bin, from));
}

int hec_meter_parts(struct hec_meter *meter, const struct hec_device_summary *d, struct hec_meter_part *parts,
                    int count, struct hec_why *why) {
    struct binned *b = calloc(1, sizeof *b);
    double all = 0;
    if (!b)
        return HEC_ERR_NOMEM;
    b->end_ns = meter->end_ns;
    int err = hec_meter_steps(meter, HEC_GPU_POWER, d->device.index, bin_step, b, &b->power.usual_ns, why);
    for (int bin = 0; bin < HEC_METER_BINS; bin++)
        all += b->joules[bin];
    for (int i = 0; i < count && !err; i++) {
        double sum = 0;
        for (int bin = 0; bin < HEC_METER_BINS; bin++)
            sum += b->joules[bin] * (double)parts[i].share[bin];
        double share = all > 0 ? sum / all : NAN;
        parts[i].of.joules += share * d->energy.joules;
        parts[i].of.bound += bound_of(meter, d, &b->power, share, parts[i].seconds, parts[i].edges);
    }
    free(b);
    return err;
}
