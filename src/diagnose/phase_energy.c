#include "diagnose/phase_energy.h"

#include "base/clock.h"
#include "diagnose/meter/feed.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/meter/stat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS 65536
#define TAU_HISTORY_S 0.1
#define TAU_POLLED_S 1.0

/* One phase over the run. */
struct cover {
    uint32_t name;    /* id in the timeline; 0: it has no activities */
    int64_t until_ns; /* the union ends here so far */
    double seconds;   /* of the union */
    int64_t edges;    /* within the run */
    float *share;     /* of each bin */
    double joules, bound;
};

struct hec_phase_energy {
    struct hec_summary *out;
    int64_t end_ns;
    struct cover cover[HEC_SUMMARY_PHASES_MAX];
    /* of the device that is read */
    double *joules; /* of each bin */
    double highest_w;
};

static double bin_of(const struct hec_phase_energy *p, int64_t t_ns) {
    return (double)t_ns / (double)p->end_ns * BINS;
}

/* ---- the intervals ---- */

static void unite(struct hec_phase_energy *p, struct cover *cover, int64_t start_ns, int64_t end_ns) {
    end_ns = end_ns < p->end_ns ? end_ns : p->end_ns;
    start_ns = start_ns > cover->until_ns ? start_ns : cover->until_ns; /* which is 0 at first */
    if (end_ns <= start_ns)
        return;
    bool apart = start_ns > cover->until_ns;
    cover->edges += apart;                                                  /* it begins */
    cover->edges += (end_ns < p->end_ns) - (!apart && cover->until_ns > 0); /* it ends, and no longer where it did */
    cover->until_ns = end_ns;
    cover->seconds += (double)(end_ns - start_ns) / HEC_NS_PER_S;
    double from = bin_of(p, start_ns), to = bin_of(p, end_ns);
    for (int bin = (int)from; bin < BINS && bin < to; bin++)
        cover->share[bin] += (float)(fmin(bin + 1, to) - fmax(bin, from));
}

/* In ascending order of start. */
static int take_phases(void *to, const struct hec_activity *activities, size_t count) {
    struct hec_phase_energy *p = to;
    for (size_t k = 0; k < count; k++)
        for (int i = 0; i < p->out->phase_count && activities[k].kind == HEC_ACTIVITY_PHASE; i++)
            if (activities[k].name && p->cover[i].name == activities[k].name)
                unite(p, &p->cover[i], activities[k].start_ns, activities[k].end_ns);
    return 0;
}

/* ---- the power ---- */

static void take_step(void *to, int64_t start_ns, int64_t end_ns, double watts) {
    struct hec_phase_energy *p = to;
    start_ns = start_ns > 0 ? start_ns : 0;
    end_ns = end_ns < p->end_ns ? end_ns : p->end_ns;
    if (end_ns <= start_ns)
        return;
    p->highest_w = fmax(p->highest_w, watts);
    double from = bin_of(p, start_ns), to_bin = bin_of(p, end_ns), bin_s = (double)p->end_ns / HEC_NS_PER_S / BINS;
    for (int bin = (int)from; bin < BINS && bin < to_bin; bin++)
        p->joules[bin] += watts * bin_s * (fmin(bin + 1, to_bin) - fmax(bin, from));
}

static void take_power(void *to, int64_t t_ns, int64_t mw, bool valid) {
    if (valid)
        hec_steps_add(to, t_ns, (double)mw / 1000);
}

/* How far off the energy of so many seconds can be when all that is known is that power lies below a ceiling. */
static double widest(double joules, double seconds, double ceiling_w) {
    return fmax(joules, ceiling_w * seconds - joules);
}

static void charge(struct hec_phase_energy *p, const struct hec_device_summary *d, double tau_s) {
    double all = 0, run_s = (double)p->end_ns / HEC_NS_PER_S;
    double ceiling_w = fmax(p->highest_w, isfinite(d->power_limit_w) ? d->power_limit_w : 0);
    for (int bin = 0; bin < BINS; bin++)
        all += p->joules[bin];
    for (int i = 0; i < p->out->phase_count; i++) {
        struct cover *cover = &p->cover[i];
        double sum = 0;
        for (int bin = 0; bin < BINS; bin++)
            sum += p->joules[bin] * (double)cover->share[bin];
        double share = all > 0 ? sum / all : NAN;
        double own = share * d->energy.joules, rest = d->energy.joules - own;
        double wrong =
            fmin(fmin(widest(own, cover->seconds, ceiling_w), widest(rest, run_s - cover->seconds, ceiling_w)),
                 ceiling_w * (double)cover->edges * tau_s / 2);
        cover->joules += own;
        cover->bound += share * d->energy.bound_joules + wrong;
    }
}

static int read_device(struct hec_phase_energy *p, const struct hec_summary_input *in,
                       const struct hec_device_summary *d, struct hec_why *why) {
    struct hec_steps steps;
    memset(p->joules, 0, BINS * sizeof *p->joules);
    p->highest_w = 0;
    hec_steps_init(&steps, hec_metric_info(HEC_GPU_POWER)->kind, take_step, p);
    int err = hec_feed(in, HEC_GPU_POWER, d->device.index, take_power, &steps, why);
    if (err)
        return err;
    hec_steps_end(&steps, p->end_ns);
    charge(p, d, fmax(steps.usual_ns / HEC_NS_PER_S, d->device.has_power_history ? TAU_HISTORY_S : TAU_POLLED_S));
    return 0;
}

/* ---- the result ---- */

static void settle(struct hec_phase_energy *p) {
    for (int i = 0; i < p->out->phase_count; i++) {
        struct hec_phase_summary *phase = &p->out->phases[i];
        const struct cover *cover = &p->cover[i];
        if (!isfinite(cover->joules) || !isfinite(cover->bound) || cover->seconds <= 0)
            snprintf(phase->why, sizeof phase->why, "no power was read during it");
        else if (cover->bound > HEC_PHASE_BOUND_MAX * cover->joules)
            snprintf(phase->why, sizeof phase->why, "its intervals are too short for the power readings");
        else {
            phase->joules = cover->joules;
            phase->bound_joules = cover->bound;
        }
    }
}

int hec_phase_energy_begin(const struct hec_timeline_tables *tables, int64_t end_ns, struct hec_summary *out,
                           struct hec_phase_energy **phases, struct hec_pass_consumer *consumer) {
    for (int i = 0; i < out->phase_count; i++) {
        out->phases[i].joules = out->phases[i].bound_joules = NAN;
        snprintf(out->phases[i].why, sizeof out->phases[i].why, "the run's energy is not known");
    }
    *phases = NULL;
    *consumer = (struct hec_pass_consumer){0};
    if (!out->phase_count || end_ns <= 0)
        return HEC_OK;
    struct hec_phase_energy *p = calloc(1, sizeof *p);
    float *shares = calloc((size_t)out->phase_count * BINS, sizeof *shares);
    if (!p || !shares) {
        free(p);
        free(shares);
        return HEC_ERR_NOMEM;
    }
    *p = (struct hec_phase_energy){.out = out, .end_ns = end_ns};
    for (int i = 0; i < out->phase_count; i++) {
        struct cover *cover = &p->cover[i];
        cover->share = shares + (size_t)i * BINS;
        for (uint32_t id = 1; id < tables->name_count && !cover->name; id++)
            if (strncmp(out->phases[i].name, hec_timeline_name(tables, id), sizeof out->phases[i].name) == 0)
                cover->name = id;
    }
    *phases = p;
    *consumer = (struct hec_pass_consumer){p, HEC_ACTIVITY_BIT(HEC_ACTIVITY_PHASE), take_phases, .apart = true};
    return HEC_OK;
}

int hec_phase_energy_end(struct hec_phase_energy *p, const struct hec_summary_input *input, struct hec_why *why) {
    if (!p || !isfinite(p->out->joules))
        return HEC_OK;
    int err = (p->joules = malloc(BINS * sizeof *p->joules)) ? HEC_OK : HEC_ERR_NOMEM;
    for (int i = 0; i < p->out->phase_count; i++)
        p->out->phases[i].why[0] = '\0';
    for (int i = 0; i < p->out->device_count && !err; i++)
        if (p->out->devices[i].used)
            err = read_device(p, input, &p->out->devices[i], why);
    if (!err)
        settle(p);
    return err;
}

void hec_phase_energy_free(struct hec_phase_energy *p) {
    if (p) {
        free(p->cover[0].share);
        free(p->joules);
    }
    free(p);
}
