#include "cli/trial_measure.h"

#include <math.h>

#define GRADIENT_LEAST 1e-30 /* none at all */
#define GRADIENTS_LEAST 4
#define PART_LEAST 8 /* losses of a part that has more steps: spread over it, they are worth its mean */

static int64_t part_begin(int part, int64_t steps) {
    return (part * steps + HEC_EXPERIMENT_BINS - 1) / HEC_EXPERIMENT_BINS;
}

/* Means of equal parts of the steps. What is not finite stays so. A part of which only some losses are known has none: the
 * faster side would have others of its steps, and early losses fall from one to the next. */
static void bin_losses(const struct hec_step_summary *steps, int64_t of_steps, struct hec_experiment_trial *out) {
    double sum[HEC_EXPERIMENT_BINS] = {0};
    int count[HEC_EXPERIMENT_BINS] = {0};
    for (int64_t i = 0; i < steps->loss_count && of_steps > 0; i++) {
        int64_t step = steps->losses[i].step;
        int bin = (int)(step * HEC_EXPERIMENT_BINS / of_steps);
        if (step >= of_steps)
            continue;
        sum[bin] += isfinite(steps->losses[i].value) ? steps->losses[i].value : INFINITY;
        count[bin]++;
        out->loss_count++;
    }
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++) {
        int64_t whole = part_begin(i + 1, of_steps) - part_begin(i, of_steps);
        if (count[i] && (count[i] >= whole || count[i] >= PART_LEAST))
            out->loss[i] = sum[i] / count[i];
    }
}

struct mean {
    double sum;
    int count;
};

static void add_value(struct mean *mean, double value) {
    if (isfinite(value)) {
        mean->sum += value;
        mean->count++;
    }
}

static double log_of(struct mean mean) {
    return mean.count >= GRADIENTS_LEAST ? log(fmax(mean.sum / mean.count, GRADIENT_LEAST)) : NAN;
}

/* Of the same steps in all trials: the hooks take the first ones, then every eighth, and of the first ones the parts. Where a loss becomes
 * nearly nothing, and with it late gradients but for rounding, the mean of all is that of the first. */
static struct hec_gradients gradients_of(const struct hec_step_summary *steps, int64_t of_steps) {
    struct mean all = {0, 0}, first = {0, 0}, parts[HEC_GRADIENT_PARTS] = {{0, 0}};
    struct hec_gradients out;
    int come = 0;
    for (int64_t i = 0; i < steps->gradient_count; i++) {
        const struct hec_step_number *norm = &steps->gradients[i];
        if (norm->step >= of_steps || norm->part >= HEC_GRADIENT_PARTS)
            continue;
        if (norm->part >= 0) {
            add_value(&parts[norm->part], norm->value);
            continue;
        }
        if (come++ < HEC_GRADIENT_FIRST)
            add_value(&first, norm->value);
        add_value(&all, norm->value);
    }
    out.all = log_of(all);
    out.first = log_of(first);
    for (int i = 0; i < HEC_GRADIENT_PARTS; i++)
        out.part[i] = log_of(parts[i]);
    return out;
}

int hec_trial_measure(struct hec_trial_measure *m, const struct hec_session *session,
                      const struct hec_session_result *result, int64_t loss_steps, struct hec_experiment_trial *out,
                      int64_t *steps, struct hec_why *why) {
    struct hec_price price = hec_price_default(); /* no cost of a trial is printed */
    struct hec_reader *reader;
    struct hec_trial trial;
    struct hec_trial_block blocks[HEC_STEADY_BLOCKS_MAX];
    hec_summary_free(&m->summary);
    int err = hec_session_open_run(session, &reader, why);
    if (err == HEC_OK)
        err = hec_load_summary_reader(reader, result->path, m->args, &price, &m->summary, why);
    if (err < 0)
        return err;
    hec_trial_of(&m->summary, blocks, &trial);
    out->steady = trial.whole;
    out->run = trial.run;
    out->stopped = result->stopped != HEC_STOPPED_NOT;
    *steps = m->summary.steps.count;
    if (m->stop_steps && m->stop_steps < *steps)
        *steps = m->stop_steps;
    bin_losses(&m->summary.steps, loss_steps ? loss_steps : *steps, out);
    out->gradients = gradients_of(&m->summary.steps, loss_steps ? loss_steps : *steps);
    return HEC_OK;
}

static struct hec_trial_block block_of(const struct hec_steady_block *b) {
    return (struct hec_trial_block){.seconds = b->seconds, .joules = b->joules, .units = b->units, .steps = b->steps};
}

/* Of a run that did not come to its end the whole is not known. */
void hec_trial_of(const struct hec_summary *s, struct hec_trial_block *blocks, struct hec_trial *out) {
    static const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    bool whole = s->complete || s->imported[0];
    *out = (struct hec_trial){
        .whole = unknown, .run = unknown, .block = blocks, .block_count = s->blocks.count, .pair = -1};
    for (int i = 0; i < s->blocks.count; i++)
        blocks[i] = block_of(&s->blocks.block[i]);
    if (s->blocks.count)
        out->whole = block_of(&s->blocks.whole);
    if (whole) {
        out->run.seconds = s->seconds;
        out->run.joules = s->joules;
        out->run.units = s->units[0].is_default ? NAN : s->units[0].count;
        out->run.steps = s->steps.count ? (double)s->steps.count : NAN;
    }
}
