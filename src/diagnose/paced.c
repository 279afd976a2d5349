#include "diagnose/paced.h"

#include "base/clock.h"
#include "base/list.h"
#include "diagnose/feed.h"
#include "diagnose/pass.h"
#include "diagnose/stat.h"
#include "diagnose/steady.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_LEAST_NS (HEC_NS_PER_S / 4) /* 12 samples of a power history */
#define BLOCK_LEAST_POLLED_NS (3 * HEC_NS_PER_S)
#define ANCHOR_EVERY_NS HEC_NS_PER_S /* a reading's place is known to 20 ms: 2 % of that */
#define ANCHORS_MAX 4096

/* The part of the run, and its blocks: block i is [edge[i], edge[i + 1]). */
struct part {
    const struct hec_step_list *steps; /* NULL: by time */
    int64_t edge[HEC_PACED_MAX + 1];
    double counted[HEC_PACED_MAX]; /* steps */
    int count;
};

/* ---- the blocks ---- */

static int64_t least_ns(const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].used && !s->devices[i].device.has_power_history && !s->imported[0])
            return BLOCK_LEAST_POLLED_NS;
    return BLOCK_LEAST_NS;
}

static int64_t at_least_1(int64_t number) {
    return number < 1 ? 1 : number;
}

static int64_t number_of_blocks(const struct hec_summary *s, int64_t length_ns, int64_t most) {
    int64_t count = length_ns / least_ns(s);
    count = count < HEC_PACED_MAX ? count : HEC_PACED_MAX;
    return at_least_1(count < most ? count : most);
}

/* Steps may overlap: a block ends where all of its steps have. */
static void by_steps(struct part *part, const struct hec_summary *s, const struct hec_steady *steady) {
    const struct hec_step *step = part->steps->list;
    int64_t steps = (int64_t)steady->steps, first = (int64_t)part->steps->count - steps, done = 0;
    int64_t blocks = number_of_blocks(s, steady->to_ns - steady->from_ns, steps), end_ns = steady->from_ns;
    part->edge[0] = steady->from_ns;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t before = done;
        for (; done < (i + 1) * steps / blocks; done++)
            end_ns = step[first + done].end_ns > end_ns ? step[first + done].end_ns : end_ns;
        if (end_ns <= part->edge[part->count]) { /* of no length: to the one before, if there is one */
            part->counted[part->count ? part->count - 1 : 0] += (double)(done - before);
            continue;
        }
        part->counted[part->count] += (double)(done - before);
        part->edge[++part->count] = end_ns;
    }
}

static void by_time(struct part *part, const struct hec_summary *s, int64_t from_ns, int64_t to_ns) {
    if (to_ns <= from_ns)
        return;
    part->count = (int)number_of_blocks(s, to_ns - from_ns, HEC_PACED_MAX);
    for (int i = 0; i <= part->count; i++)
        part->edge[i] = from_ns + (to_ns - from_ns) / part->count * i;
    part->edge[part->count] = to_ns;
}

/* In which any used device was in use: the whole run where nothing tells. */
static void time_in_use(const struct hec_summary *s, int64_t end_ns, int64_t *from_ns, int64_t *to_ns) {
    double from_s = INFINITY, to_s = -INFINITY;
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].used && isfinite(s->devices[i].activity.from_s)) {
            from_s = fmin(from_s, s->devices[i].activity.from_s);
            to_s = fmax(to_s, s->devices[i].activity.to_s);
        }
    *from_ns = to_s > from_s ? llround(from_s * HEC_NS_PER_S) : 0;
    *to_ns = to_s > from_s ? llround(to_s * HEC_NS_PER_S) : end_ns;
}

/* ---- units ---- */

/* The lists that count the run's work: of every process, by the source that the run goes by. */
static bool counts(const struct hec_step_list *list, const struct hec_step_list *steps, bool all) {
    return list == steps || (all && list->source == steps->source);
}

/* Of a step, its part inside each block. */
static void spread(const struct part *part, const struct hec_step *step, double amount, struct hec_paced *out) {
    int64_t length = step->end_ns - step->start_ns;
    int low = 0, high = part->count; /* the block that holds its start, or the first one */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (part->edge[middle] <= step->start_ns)
            low = middle;
        else
            high = middle;
    }
    for (int i = low; i < part->count && part->edge[i] < step->end_ns; i++) {
        int64_t from = step->start_ns > part->edge[i] ? step->start_ns : part->edge[i];
        int64_t to = step->end_ns < part->edge[i + 1] ? step->end_ns : part->edge[i + 1];
        if (to > from)
            out->block[i].units += amount * (double)(to - from) / (double)length;
    }
}

/* Units that nobody laid to steps (--units) count as done by steps in proportion to what these say, or by each alike. */
static void count_units(const struct hec_pass *pass, const struct part *part, const struct hec_unit_summary *unit,
                        struct hec_paced *out) {
    const struct hec_step_survey *survey = &pass->survey;
    bool amounts = false;
    double total = 0;
    for (size_t i = 0; i < survey->list_count && unit; i++)
        for (size_t k = 0; k < survey->lists[i].count && !amounts && counts(&survey->lists[i], part->steps, true); k++)
            amounts = survey->lists[i].list[k].amount > 0;
    for (size_t i = 0; i < survey->list_count; i++) {
        const struct hec_step_list *list = &survey->lists[i];
        if (!counts(list, part->steps, unit != NULL))
            continue;
        for (size_t k = 0; k < list->count; k++) {
            double amount = !amounts ? 1 : list->list[k].amount > 0 ? list->list[k].amount : 0;
            total += amount;
            spread(part, &list->list[k], amount, out);
        }
        total += amounts ? list->beyond_amount : (double)list->beyond;
    }
    for (int i = 0; i < part->count; i++)
        out->block[i].units *= !unit ? 1 : total > 0 ? unit->count / total : NAN;
}

static void set_work(const struct hec_pass *pass, const struct part *part, const struct hec_unit_summary *unit,
                     struct hec_paced *out) {
    int64_t length_ns = part->edge[part->count] - part->edge[0];
    snprintf(out->unit, sizeof out->unit, "%s", unit ? unit->name : part->steps ? "step" : "");
    out->work = part->steps ? HEC_PACED_BY_STEP : unit ? HEC_PACED_EVENLY : HEC_PACED_UNKNOWN;
    for (int i = 0; i < part->count; i++) {
        int64_t block_ns = part->edge[i + 1] - part->edge[i];
        out->block[i].seconds = (double)block_ns / HEC_NS_PER_S;
        out->block[i].steps = part->steps ? part->counted[i] : NAN;
        out->block[i].units = part->steps ? 0 : unit ? unit->count * (double)block_ns / (double)length_ns : NAN;
    }
    if (part->steps)
        count_units(pass, part, unit, out);
}

/* ---- joules ---- */

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
static void add_up(struct device_energy *e, const struct part *part, struct hec_paced *out) {
    struct mark *last = NULL;
    for (size_t i = 0; i < e->count; i++)
        if (isfinite(e->mark[i].mj)) {
            if (last)
                anchor(last, &e->mark[i]);
            last = &e->mark[i];
        }
    size_t at = 0;
    for (int i = 0; i < part->count; i++) {
        double joules = 0, sampled_s = 0;
        while (e->mark[at].t_ns < part->edge[i])
            at++;
        for (; at + 1 < e->count && e->mark[at].t_ns < part->edge[i + 1]; at++) {
            joules += e->mark[at].joules;
            sampled_s += e->mark[at].sampled_s;
        }
        out->block[i].joules +=
            sampled_s >= 0.5 * out->block[i].seconds ? joules / sampled_s * out->block[i].seconds : NAN;
    }
}

static int add_device(const struct hec_summary_input *input, const struct hec_device_summary *d,
                      const struct part *part, int64_t end_ns, struct hec_paced *out, struct hec_why *why) {
    struct device_energy e = {.every_ns = at_least_1(end_ns / ANCHORS_MAX)};
    struct hec_steps steps;
    int err = 0, device = d->device.index;
    e.every_ns = e.every_ns > ANCHOR_EVERY_NS ? e.every_ns : ANCHOR_EVERY_NS;
    if (d->energy.method == HEC_ENERGY_COUNTER &&
        (err = hec_feed(input, HEC_GPU_ENERGY_SLACK, device, take_slack, &e, why)) == 0)
        err = hec_feed(input, HEC_GPU_ENERGY, device, take_counter, &e, why);
    for (int i = 0; i <= part->count; i++)
        add_mark(&e, part->edge[i], NAN);
    if (!err && e.no_memory)
        err = HEC_ERR_NOMEM;
    if (!err) {
        qsort(e.mark, e.count, sizeof *e.mark, by_time_of);
        hec_steps_init(&steps, hec_metric_info(HEC_GPU_POWER)->kind, take_power_step, &e);
        err = hec_feed(input, HEC_GPU_POWER, device, take_power, &steps, why);
    }
    if (!err) {
        hec_steps_end(&steps, end_ns);
        add_up(&e, part, out);
    }
    free(e.slacks);
    free(e.mark);
    return err;
}

static int add_joules(const struct hec_summary_input *input, const struct hec_summary *s, const struct part *part,
                      int64_t end_ns, struct hec_paced *out, struct hec_why *why) {
    int used = 0, err = 0;
    bool valid = true;
    for (int i = 0; i < s->device_count; i++) {
        used += s->devices[i].used;
        valid &= !s->devices[i].used || s->devices[i].energy.valid;
    }
    for (int i = 0; i < part->count; i++)
        out->block[i].joules = used && valid ? 0 : NAN;
    for (int i = 0; i < s->device_count && used && valid && !err; i++)
        if (s->devices[i].used)
            err = add_device(input, &s->devices[i], part, end_ns, out, why);
    return err;
}

/* ---- the whole ---- */

int hec_paced_build(const struct hec_pass *pass, const struct hec_summary_input *input, const struct hec_summary *s,
                    int64_t end_ns, struct hec_paced *out, struct hec_why *why) {
    const struct hec_unit_summary *unit = s->unit_count && s->units[0].count > 0 ? &s->units[0] : NULL;
    struct part part = {.steps = hec_step_survey_best(&pass->survey, &pass->tables)};
    struct hec_steady steady = hec_steady_of(part.steps);
    int64_t from_ns = 0, to_ns = end_ns;
    memset(out, 0, sizeof *out);
    if (steady.known) {
        by_steps(&part, s, &steady);
    } else {
        part.steps = NULL;
        if (!unit)
            time_in_use(s, end_ns, &from_ns, &to_ns);
        by_time(&part, s, from_ns, to_ns);
    }
    if (!part.count)
        return HEC_OK;
    out->count = part.count;
    set_work(pass, &part, unit, out);
    int err = add_joules(input, s, &part, end_ns, out, why);
    for (int i = 0; i < out->count; i++) {
        out->whole.seconds += out->block[i].seconds;
        out->whole.joules += out->block[i].joules;
        out->whole.units += out->block[i].units;
        out->whole.steps += out->block[i].steps;
    }
    return err;
}
