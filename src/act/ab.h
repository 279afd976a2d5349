/* An interleaved experiment: pairs of trials of A and B in an order that is drawn, until the plan says that it is enough. */
#pragma once

#include "act/trials.h"
#include "prove/experiment.h"

struct hec_ab {
    const struct hec_lever_set *levers; /* of B; NULL: none */
    char **command[2];                  /* B NULL: trials of A alone, plan.pairs of them */
    struct hec_experiment_plan plan;
    int warm_up; /* trials of each side before the first pair: they fill caches and warm the device, and count for the cost alone */
};

enum hec_ab_state {
    HEC_AB_DONE,
    HEC_AB_FAILED,     /* a command failed: end and side say which */
    HEC_AB_INTERRUPTED /* a user or a scheduler asked: what there is, is judged */
};

struct hec_ab_outcome {
    enum hec_ab_state state;
    int side, pair; /* of the last trial */
    struct hec_trial_end end;
    struct hec_experiment_plan plan; /* with what the first trial has shown */
    struct hec_experiment_trial *trials;
    size_t count, capacity;
    struct hec_experiment_result result; /* of the trials so far */
};

/* context is given to each. */
struct hec_ab_watch {
    /* A trial begins. */
    void (*begin)(void *context, const struct hec_ab_outcome *so_far);
    /* What it came to, except for pair and side; steps: made by it, for plan.loss_steps. */
    int (*measure)(void *context, const struct hec_ab_outcome *so_far, const struct hec_session *session,
                   const struct hec_session_result *result, struct hec_experiment_trial *out, int64_t *steps,
                   struct hec_why *why);
    /* A trial has ended well, and is in so_far with all that follows. */
    int (*after)(void *context, const struct hec_ab_outcome *so_far, struct hec_why *why);
    void *context;
};

/* HEC_OK in every state; else what kept it from going on, with what was done so far in out. Free it in any case. */
int hec_ab_run(struct hec_trials *trials, const struct hec_ab *ab, const struct hec_ab_watch *watch,
               struct hec_ab_outcome *out, struct hec_why *why);
void hec_ab_free(struct hec_ab_outcome *outcome);
