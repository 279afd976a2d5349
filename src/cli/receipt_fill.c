#include "cli/receipt_fill.h"

#include "base/clock.h"
#include "launch/facts.h"
#include "launch/keep.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_words(struct hec_receipt *r, struct hec_receipt_words *to, char *const *words) {
    for (; words && *words; words++)
        hec_receipt_add_word(r, to, *words);
}

/* "tokens=5;samples=3", as hec_session_options has it */
static void add_units(struct hec_receipt *r, const char *units) {
    char *list = strdup(units ? units : ""), *rest = list, *item;
    if (!list)
        r->error = HEC_ERR_NOMEM;
    while ((item = strsep(&rest, ";")))
        if (*item)
            hec_receipt_add_word(r, &r->units, item);
    free(list);
}

static void add_where(struct hec_receipt *r, const struct hec_trials *trials) {
    const struct hec_layer *layer = hec_trials_layer(trials);
    const char *folder;
    r->writes = HEC_RECEIPT_IN_PLACE;
    if (!layer)
        return;
    r->writes = hec_layer_scratch(layer).path[0] ? HEC_RECEIPT_ON_DISK : HEC_RECEIPT_IN_MEMORY;
    for (size_t i = 0; (folder = hec_layer_folder(layer, i)); i++)
        hec_receipt_add_word(r, &r->covered, folder);
}

void hec_receipt_begin(struct hec_receipt *r, char *const *a, char *const *b, const struct hec_trials_options *options,
                       int warm_up, const struct hec_trials *trials) {
    const struct hec_session_options *session = &options->session;
    char folder[PATH_MAX];
    hec_facts_wall_time(hec_clock_wall_ns(), r->created);
    snprintf(r->hec_version, sizeof r->hec_version, "%s", HEC_VERSION);
    if (getcwd(folder, sizeof folder))
        hec_receipt_set(r, &r->folder, folder);
    add_words(r, &r->command[0], a);
    add_words(r, &r->command[1], b);
    hec_receipt_add_environment(r, session->environment ? session->environment : environ);
    r->steps = session->stop.steps;
    r->seconds = (double)session->stop.after_ns / HEC_NS_PER_S;
    r->warm_up = warm_up;
    if (session->simulated)
        hec_receipt_set(r, &r->simulated, session->simulated);
    add_units(r, session->units);
    add_where(r, trials);
    r->caches = options->caches == HEC_CACHES_FRESH ? HEC_RECEIPT_CACHES_PER_TRIAL : HEC_RECEIPT_CACHES_SHARED;
    r->trace = session->trace;
    r->trace_memory_mb = session->trace_memory_mb;
    r->hooks = session->hooks;
}

void hec_receipt_fill_facts(struct hec_receipt *r, const struct hec_summary *run) {
    static const enum hec_alike of_trials[] = {HEC_ALIKE_UNIT, HEC_ALIKE_STEPS, HEC_ALIKE_OUTCOME, HEC_ALIKE_COMMAND,
                                               HEC_ALIKE_TRACE};
    char value[HEC_ALIKE_VALUE];
    for (int what = 0; what < HEC_ALIKE_COUNT; what++) {
        bool skip = false;
        for (size_t i = 0; i < sizeof of_trials / sizeof of_trials[0]; i++)
            skip |= what == (int)of_trials[i];
        if (skip)
            continue;
        hec_alike_value(run, what, value);
        hec_receipt_add_fact(r, &r->facts, hec_alike_name(what), value);
    }
    snprintf(r->unit, sizeof r->unit, "%s", run->paced.unit);
}

int hec_receipt_fill_trials(struct hec_receipt *r, const struct hec_experiment_plan *plan,
                            const struct hec_experiment_trial *trials, size_t count) {
    r->plan = *plan;
    for (size_t i = (size_t)r->trial_count; i < count; i++)
        hec_receipt_add_trial(r, &trials[i]);
    return r->error ? r->error : hec_receipt_judge(r);
}

int hec_receipt_write(const struct hec_receipt *r, const char *path, struct hec_why *why) {
    struct hec_buf text;
    hec_buf_init(&text, 256u << 20);
    int err = hec_receipt_json(r, &text);
    err = err < 0 ? hec_fail(why, err, "the receipt cannot be made: %s", hec_err_text(err))
                  : hec_keep_write(path, hec_buf_text(&text), why);
    hec_buf_free(&text);
    return err;
}
