/* Trials: commands run one after another, each observed by a session of its own, each from the same state of the user's files.
 *
 *     struct hec_trials_options options = {.session = hec_session_defaults()};
 *     hec_trials_open(&options, &trials, &why)
 *     hec_trials_run(trials, argv, NULL, measure, context, &end, &why) ...
 *     hec_trials_close(trials)
 *
 * A process that opens trials has begun with hec_supervisor_start: what it starts ends with it. */
#pragma once

#include "act/levers.h"
#include "base/error.h"
#include "launch/environ.h"
#include "launch/layer.h"
#include "launch/session.h"

/* Why a trial's command failed: out of memory is a result (the setting is too large), the rest is a fault. Pure. */
enum hec_failure {
    HEC_FAILURE_NONE,
    HEC_FAILURE_DEVICE_MEMORY,
    HEC_FAILURE_HOST_MEMORY, /* or SIGKILL, which is how the kernel ends what takes too much */
    HEC_FAILURE_HUNG,        /* it did not end within its limit */
    HEC_FAILURE_OTHER
};

/* Of a command that nobody asked to end: its exit status, as a shell gives it, and the last of what it printed. */
enum hec_failure hec_failure_of(int exit_status, const char *output);

/* Where the compilers of PyTorch, Triton and CUDA keep what they made, during trials. */
enum hec_caches {
    HEC_CACHES_TRIALS, /* one set for all trials of an experiment, empty at its start and thrown away at its end */
    HEC_CACHES_FRESH,  /* every trial begins with empty ones */
    HEC_CACHES_USER,   /* the user's own, as they are; in a scratch layer what is added is thrown away */
    HEC_CACHES_COUNT
};

enum hec_caches hec_caches_find(const char *name); /* HEC_CACHES_COUNT: there is none of that name */

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
