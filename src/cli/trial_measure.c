#include "cli/trial_measure.h"

#include "cli/trial_of.h"

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

/* Of the same steps in all trials: the hooks take every eighth. The mean is mostly of the first ones, in which trials are alike: once a loss
 * is nearly nothing, gradients differ by orders of magnitude. */
static double mean_gradient(const struct hec_step_summary *steps, int64_t of_steps) {
    double sum = 0;
    int count = 0;
    for (int64_t i = 0; i < steps->gradient_count; i++) {
        double norm = steps->gradients[i].value;
        if (steps->gradients[i].step >= of_steps || !isfinite(norm))
            continue;
        sum += norm;
        count++;
    }
    return count >= GRADIENTS_LEAST ? log(fmax(sum / count, GRADIENT_LEAST)) : NAN;
}

int hec_trial_measure(struct hec_trial_measure *m, const struct hec_session *session,
                      const struct hec_session_result *result, int64_t loss_steps, struct hec_experiment_trial *out,
                      int64_t *steps, struct hec_why *why) {
    struct hec_price price = hec_price_default(); /* no cost of a trial is printed */
    struct hec_reader *reader;
    struct hec_trial trial;
    struct hec_trial_block blocks[HEC_PACED_MAX];
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
    *steps = m->summary.timeline.steps.count;
    if (m->stop_steps && m->stop_steps < *steps)
        *steps = m->stop_steps;
    bin_losses(&m->summary.timeline.steps, loss_steps ? loss_steps : *steps, out);
    out->gradient = mean_gradient(&m->summary.timeline.steps, loss_steps ? loss_steps : *steps);
    return HEC_OK;
}
