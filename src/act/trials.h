/* Trials: commands run one after another, each observed by a session of its own, each from the same state of the user's files.
 *
 *     struct hec_trials_options options = {.session = hec_session_defaults()};
 *     hec_trials_open(&options, &trials, &why)
 *     hec_trials_run(trials, argv, NULL, measure, context, &end, &why) ...
 *     hec_trials_close(trials)
 *
 * A process that opens trials has begun with hec_supervisor_start: what it starts ends with it. */
#ifndef HEC_ACT_TRIALS_H
#define HEC_ACT_TRIALS_H

#include "act/caches.h"
#include "act/failure.h"
#include "act/levers.h"
#include "launch/layer.h"
#include "launch/session.h"

#define HEC_TRIAL_TAIL 2048

struct hec_trials_options {
    struct hec_session_options
        session; /* of every trial; its command is given with each, its run file is made by this */
    struct hec_layer_options layer;
    enum hec_caches caches;
    bool in_place;                 /* no layer: trials write where the command writes */
    struct hec_power_guard *guard; /* for levers of devices: opened before hec_supervisor_start; NULL: there are none */
};

struct hec_trials;

/* Where the system allows no layer: HEC_ERR_UNSUPPORTED or what hec_layer_open says, with its sentence. */
int hec_trials_open(const struct hec_trials_options *options, struct hec_trials **out, struct hec_why *why);
void hec_trials_close(struct hec_trials *trials);
/* What may change between trials: when one is ended, what is recorded. */
struct hec_session_options *hec_trials_session(struct hec_trials *trials);
/* NULL: they run in place. */
const struct hec_layer *hec_trials_layer(const struct hec_trials *trials);

struct hec_trial_end {
    int exit_status;
    int signal;
    enum hec_stopped stopped;  /* by options.session.stop: the exit status is then no failure */
    int asked;                 /* the signal by which a user asked to end it all; 0: none */
    enum hec_failure failure;  /* why the command failed, where hec_trial_failed */
    double seconds;            /* of the command */
    char tail[HEC_TRIAL_TAIL]; /* the last of what it printed */
};

/* One trial, under levers (NULL: none). `measure` reads what it came to from the session, which has ended; what it returns is returned.
 * Nothing of the command is left when this returns. */
int hec_trials_run(struct hec_trials *trials, char **command, const struct hec_lever_set *levers,
                   int (*measure)(void *context, const struct hec_session *session,
                                  const struct hec_session_result *result, struct hec_why *why),
                   void *context, struct hec_trial_end *end, struct hec_why *why);

/* The command failed: by itself, and nobody asked it to end. */
bool hec_trial_failed(const struct hec_trial_end *end);

#endif
