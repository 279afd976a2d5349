#include "act/trials.h"

#include "act/apply.h"
#include "act/power_levers.h"
#include "base/scratch.h"
#include "launch/child.h"
#include "launch/supervisor.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const caches_names[] = {
    [HEC_CACHES_TRIALS] = "trials", [HEC_CACHES_FRESH] = "fresh", [HEC_CACHES_USER] = "user"};

static const struct {
    const char *variable, *folder;
} caches[] = {
#define HEC_CACHE(variable, folder) {variable, folder},
#include "act/caches.def"
#undef HEC_CACHE
};

enum hec_caches hec_caches_find(const char *name) {
    int i = 0;
    while (i < HEC_CACHES_COUNT && strcmp(caches_names[i], name) != 0)
        i++;
    return (enum hec_caches)i;
}

/* Make the folders below `folder` and name them in the environment. */
static int caches_set(const char *folder, struct hec_environ *variables, struct hec_why *why) {
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", folder, caches[i].folder) >= (int)sizeof path)
            return hec_fail(why, HEC_ERR_LIMIT, "the path of the compile caches is too long: %s", folder);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return hec_fail(why, hec_err_from_errno(errno), "no folder for compile caches: %s: %s", path,
                            strerror(errno));
        if (hec_environ_set(variables, caches[i].variable, path) < 0)
            return hec_fail(why, HEC_ERR_NOMEM, "no memory for the environment");
    }
    return HEC_OK;
}

static const struct {
    const char *phrase;
    enum hec_failure failure;
} phrases[] = {
#define HEC_OUT_OF_MEMORY(phrase, whose, source) {phrase, HEC_FAILURE_##whose##_MEMORY},
#include "act/failure.def"
#undef HEC_OUT_OF_MEMORY
};

enum hec_failure hec_failure_of(int exit_status, const char *output) {
    if (exit_status == 0)
        return HEC_FAILURE_NONE;
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (strstr(output, phrases[i].phrase))
            return phrases[i].failure;
    return exit_status == 128 + SIGKILL ? HEC_FAILURE_HOST_MEMORY : HEC_FAILURE_OTHER;
}

struct hec_trials {
    struct hec_trials_options options;
    struct hec_scratch scratch; /* of the trials' run file and of their caches */
    char run_file[PATH_MAX], caches[PATH_MAX];
    const char *shared[2];
    struct hec_environ environ;
    struct hec_layer *layer;
    int count; /* trials so far */
};

/* A fresh set in place has a folder of its own in each trial; in a layer every trial finds the one folder empty. */
static int make_caches(struct hec_trials *t, struct hec_why *why) {
    if (t->options.caches == HEC_CACHES_USER)
        return HEC_OK;
    snprintf(t->caches, sizeof t->caches, "%.*s/caches-%d", PATH_MAX - 32, t->scratch.path, t->count);
    if (mkdir(t->caches, 0700) < 0)
        return hec_fail(why, hec_err_from_errno(errno), "no folder for compile caches: %s: %s", t->caches,
                        strerror(errno));
    int err = caches_set(t->caches, &t->environ, why);
    t->options.session.environment = t->environ.list;
    return err;
}

static int prepare(struct hec_trials *t, struct hec_why *why) {
    struct hec_session_options *session = &t->options.session;
    const char *parent = getenv("TMPDIR");
    int err = hec_environ_copy(&t->environ, session->environment ? session->environment : environ);
    if (err < 0)
        return hec_fail(why, err, "no memory for the environment");
    if (hec_environ_set(&t->environ, "HEC_HOOKS_LOSSES", "all") < 0)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the environment");
    /* what a trial prints goes to a file, where a Python would keep it back for long */
    if (session->printed_count && hec_environ_set(&t->environ, "PYTHONUNBUFFERED", "1") < 0)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the environment");
    session->environment = t->environ.list;
    if ((err = hec_scratch_make(&t->scratch, parent && *parent ? parent : "/tmp", why)) < 0 ||
        (err = make_caches(t, why)) < 0)
        return err;
    snprintf(t->run_file, sizeof t->run_file, "%.*s/trial.hec", PATH_MAX - 16, t->scratch.path);
    session->output = t->run_file;
    session->overwrite = true;
    session->tied = true;
    if (t->options.in_place)
        return HEC_OK;
    t->shared[0] = t->options.caches == HEC_CACHES_TRIALS ? t->caches : NULL;
    t->options.layer.shared = t->shared;
    t->options.layer.environment = t->environ.list;
    err = hec_layer_open(&t->options.layer, &t->layer, why);
    session->layer = t->layer;
    return err;
}

int hec_trials_open(const struct hec_trials_options *options, struct hec_trials **out, struct hec_why *why) {
    struct hec_trials *t = *out = calloc(1, sizeof *t);
    if (!t)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for trials");
    t->options = *options;
    int err = prepare(t, why);
    if (err < 0) {
        hec_trials_close(t);
        *out = NULL;
    }
    return err;
}

void hec_trials_close(struct hec_trials *t) {
    if (!t)
        return;
    hec_layer_close(t->layer);
    hec_scratch_remove(&t->scratch);
    hec_environ_free(&t->environ);
    free(t);
}

/* Every trial begins as the first one did. */
static int renew(struct hec_trials *t, struct hec_why *why) {
    if (t->count == 0)
        return HEC_OK;
    if (t->layer)
        return hec_layer_renew(t->layer, why);
    return t->options.caches == HEC_CACHES_FRESH ? make_caches(t, why) : HEC_OK;
}

struct hec_session_options *hec_trials_session(struct hec_trials *t) {
    return &t->options.session;
}

const struct hec_layer *hec_trials_layer(const struct hec_trials *t) {
    return t->layer;
}

#define OUTPUT_READ 65536 /* launchers of several processes print long summaries after the error itself */

/* Why it failed, and the last of what it printed. */
static int read_output(FILE *output, struct hec_trial_end *end, struct hec_why *why) {
    char *text = calloc(1, OUTPUT_READ + 1);
    size_t got = 0;
    if (!text)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for what the command printed");
    if (fseek(output, -OUTPUT_READ, SEEK_END) == 0 || fseek(output, 0, SEEK_SET) == 0)
        got = fread(text, 1, OUTPUT_READ, output);
    for (size_t i = 0; i < got; i++)
        text[i] = text[i] ? text[i] : ' ';
    size_t kept = got < HEC_TRIAL_TAIL ? got : HEC_TRIAL_TAIL - 1;
    memcpy(end->tail, text + got - kept, kept + 1);
    if (hec_trial_failed(end))
        end->failure = hec_failure_of(end->exit_status, text);
    free(text);
    return HEC_OK;
}

static int run(const struct hec_session_options *options,
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
    if (!hec_supervisor_sweep())
        err = hec_fail(why, HEC_ERR_BUSY, "a process of the trial cannot be ended: no further trial would be like it");
    if (!err && !result.readable)
        err = hec_fail(why, HEC_ERR_IO, "the trial's run could not be recorded: %.300s", result.note.text);
    if (!err && !end->asked)
        err = measure(context, session, &result, why);
    hec_session_close(session);
    return err;
}

/* A trial under limits that somebody else has changed meanwhile is none. */
static int lift(struct hec_power_guard *guard, int err, struct hec_why *why) {
    struct hec_why late = {""};
    int lifted = hec_power_guard_clear(guard, &late);
    if (lifted == HEC_OK && late.text[0])
        lifted = HEC_ERR_BUSY;
    return err == HEC_OK && lifted < 0 ? hec_fail(why, lifted, "%s", late.text) : err;
}

int hec_trials_run(struct hec_trials *t, char **command, const struct hec_lever_set *levers,
                   int (*measure)(void *context, const struct hec_session *session,
                                  const struct hec_session_result *result, struct hec_why *why),
                   void *context, struct hec_trial_end *end, struct hec_why *why) {
    struct hec_applied applied = {.text = ""};
    memset(end, 0, sizeof *end);
    if ((end->asked = hec_child_held()) != 0)
        return HEC_OK;
    int err = renew(t, why);
    if (err < 0)
        return err;
    struct hec_session_options options = t->options.session;
    t->count++;
    bool capped = hec_power_levers_in(levers);
    if (capped && (err = hec_power_levers_set(t->options.guard, levers, why)) < 0)
        return err;
    if (levers && levers->count &&
        (err = hec_apply(levers, options.environment, options.knobs, &applied, why)) == HEC_OK)
        hec_apply_to(&applied, &options);
    FILE *output = err == HEC_OK ? tmpfile() : NULL;
    if (output) {
        options.command = command;
        options.command_output = fileno(output);
        err = run(&options, measure, context, end, why);
        if (err >= 0)
            err = read_output(output, end, why);
        fclose(output);
    } else if (err == HEC_OK) {
        err = hec_fail(why, hec_err_from_errno(errno), "no file for what the command prints: %s", strerror(errno));
    }
    hec_applied_free(&applied);
    return capped ? lift(t->options.guard, err, why) : err;
}

bool hec_trial_failed(const struct hec_trial_end *end) {
    return end->exit_status != 0 && !end->stopped && !end->asked;
}
