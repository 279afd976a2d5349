#include "act/trials.h"

#include "launch/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hec_trials {
    struct hec_trials_options options;
    struct hec_layer *layer;
    bool used; /* the layer holds what the last trial wrote */
};

int hec_trials_open(const struct hec_trials_options *options, struct hec_trials **out, struct hec_why *why) {
    struct hec_trials *t = *out = calloc(1, sizeof *t);
    if (!t)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for trials");
    t->options = *options;
    int err = options->in_place ? HEC_OK : hec_layer_open(&options->layer, &t->layer, why);
    if (err < 0) {
        free(t);
        *out = NULL;
        return err;
    }
    t->options.session.layer = t->layer;
    t->options.session.tied = true;
    return HEC_OK;
}

void hec_trials_close(struct hec_trials *t) {
    if (!t)
        return;
    hec_layer_close(t->layer);
    free(t);
}

const struct hec_layer *hec_trials_layer(const struct hec_trials *t) {
    return t->layer;
}

static void read_tail(FILE *output, char tail[HEC_TRIAL_TAIL]) {
    size_t got = 0;
    if (fseek(output, -(HEC_TRIAL_TAIL - 1), SEEK_END) == 0 || fseek(output, 0, SEEK_SET) == 0)
        got = fread(tail, 1, HEC_TRIAL_TAIL - 1, output);
    tail[got] = '\0';
}

static int run(struct hec_trials *t, const struct hec_session_options *options,
               int (*measure)(void *context, const struct hec_session *session, const struct hec_session_result *result,
                              struct hec_why *why),
               void *context, struct hec_trial_end *end, struct hec_why *why) {
    struct hec_session *session;
    struct hec_session_result result;
    int err = hec_session_start(options, &session, &end->exit_status, why);
    if (err < 0)
        return err;
    hec_session_wait(session, &result);
    *end = (struct hec_trial_end){.exit_status = result.exit_status,
                                  .signal = result.signal,
                                  .stopped = result.stopped,
                                  .asked = result.asked,
                                  .seconds = (double)(result.end_ns - result.start_ns) / 1e9};
    if (!hec_keeper_sweep())
        err = hec_fail(why, HEC_ERR_BUSY, "a process of the trial cannot be ended: no further trial would be like it");
    if (!err && !result.readable)
        err = hec_fail(why, HEC_ERR_IO, "the trial's run could not be recorded: %.300s", result.note.text);
    if (!err && !end->asked)
        err = measure(context, session, &result, why);
    hec_session_close(session);
    t->used = true;
    return err;
}

int hec_trials_run(struct hec_trials *t, char **command,
                   int (*measure)(void *context, const struct hec_session *session,
                                  const struct hec_session_result *result, struct hec_why *why),
                   void *context, struct hec_trial_end *end, struct hec_why *why) {
    struct hec_session_options options = t->options.session;
    memset(end, 0, sizeof *end);
    int err = t->used && t->layer ? hec_layer_renew(t->layer, why) : HEC_OK;
    if (err < 0)
        return err;
    FILE *output = tmpfile();
    if (!output)
        return hec_fail(why, hec_err_from_errno(errno), "no file for what the command prints: %s", strerror(errno));
    options.command = command;
    options.command_output = fileno(output);
    err = run(t, &options, measure, context, end, why);
    read_tail(output, end->tail);
    fclose(output);
    return err;
}

bool hec_trial_failed(const struct hec_trial_end *end) {
    return end->exit_status != 0 && !end->stopped && !end->asked;
}
