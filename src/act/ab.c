#include "act/ab.h"

#include "base/list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct run {
    struct hec_trials *trials;
    const struct hec_ab *ab;
    const struct hec_ab_watch *watch;
    struct hec_ab_outcome *out;
    struct hec_experiment_trial trial; /* the one at hand */
};

static int measure(void *context, const struct hec_session *session, const struct hec_session_result *result,
                   struct hec_why *why) {
    struct run *run = context;
    const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    int64_t steps = 0;
    run->trial = (struct hec_experiment_trial){
        .pair = run->out->pair, .side = run->out->side, .steady = unknown, .run = unknown};
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        run->trial.loss[i] = NAN;
    run->trial.gradients = hec_gradients_none();
    if (result->exit_status && !result->stopped)
        return HEC_OK; /* it failed */
    int err = run->watch->measure(run->watch->context, run->out, session, result, &run->trial, &steps, why);
    if (!err && !run->out->count && !run->out->plan.loss_steps)
        run->out->plan.loss_steps = steps;
    return err;
}

/* False: the experiment ends here. */
static bool go_on(struct run *run, int *err) {
    struct hec_ab_outcome *out = run->out;
    if (*err < 0)
        return false;
    out->state = out->end.asked ? HEC_AB_INTERRUPTED : hec_trial_failed(&out->end) ? HEC_AB_FAILED : HEC_AB_DONE;
    return out->state == HEC_AB_DONE;
}

static bool one(struct run *run, int side, int pair, int *err, struct hec_why *why) {
    struct hec_ab_outcome *out = run->out;
    out->side = side;
    out->pair = pair;
    run->watch->begin(run->watch->context, out);
    *err = hec_trials_run(run->trials, run->ab->command[side], side ? run->ab->levers : NULL, measure, run, &out->end,
                          why);
    if (!go_on(run, err))
        return false;
    if (!hec_list_room(out->trials, out->count, out->capacity, 16))
        *err = hec_fail(why, HEC_ERR_NOMEM, "no memory for the table of trials");
    if (*err < 0)
        return false;
    out->trials[out->count++] = run->trial;
    *err = hec_experiment_judge(&out->plan, out->trials, (int)out->count, &out->result);
    if (*err >= 0)
        *err = run->watch->after(run->watch->context, out, why);
    return *err >= 0;
}

int hec_ab_run(struct hec_trials *trials, const struct hec_ab *ab, const struct hec_ab_watch *watch,
               struct hec_ab_outcome *out, struct hec_why *why) {
    struct run run = {trials, ab, watch, out, {0}};
    int err = HEC_OK;
    bool going = true;
    *out = (struct hec_ab_outcome){.plan = ab->plan};
    int sides = ab->command[1] ? 2 : 1;
    for (int i = 0; i < sides * ab->warm_up && going; i++)
        going = one(&run, i % sides, -1, &err, why);
    for (int i = 0; i < ab->plan.pairs && going && sides == 1; i++)
        going = one(&run, 0, i, &err, why);
    for (int pair = 0; going && sides == 2 && !(pair && out->result.done); pair++) {
        int first = hec_sequential_b_first(ab->plan.seed, pair);
        going = one(&run, first, pair, &err, why) && one(&run, !first, pair, &err, why);
    }
    return err;
}

void hec_ab_free(struct hec_ab_outcome *outcome) {
    free(outcome->trials);
    memset(outcome, 0, sizeof *outcome);
}
