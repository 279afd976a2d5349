#include "cli/receipt_fill.h"

#include "base/clock.h"
#include "cli/output.h"
#include "launch/facts.h"
#include "report/words/summary.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)HEC_RECEIPT_CACHES_TRIALS == HEC_CACHES_TRIALS &&
                   (int)HEC_RECEIPT_CACHES_FRESH == HEC_CACHES_FRESH && (int)HEC_RECEIPT_CACHES_USER == HEC_CACHES_USER,
               "report may not know act");

void hec_receipt_fill_units(struct hec_receipt *r, const struct hec_args *args) {
    for (int i = 0; i < args->given_count; i++)
        if (args->given[i].option == HEC_OPT_UNITS)
            hec_receipt_add_word(r, &r->units, args->given[i].value);
        else if (args->given[i].option == HEC_OPT_UNIT)
            hec_receipt_add_word(r, &r->printed, args->given[i].value);
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
    hec_receipt_add_word(r, &r->left, "what trials wrote outside of these folders is there");
    if (!hec_layer_scratch(layer).private_shm)
        hec_receipt_add_word(r, &r->left,
                             "what they left in /dev/shm is there: beside NVIDIA's MPS it is the system's");
}

void hec_receipt_begin(struct hec_receipt *r, const struct hec_ab *ab, const struct hec_trials_options *options,
                       const struct hec_trials *trials) {
    const struct hec_session_options *session = &options->session;
    const struct hec_lever_set *levers = ab->levers;
    char folder[PATH_MAX], word[HEC_LEVER_TEXT];
    hec_facts_wall_time(hec_clock_wall_ns(), r->created);
    snprintf(r->hec_version, sizeof r->hec_version, "%s", HEC_VERSION);
    if (getcwd(folder, sizeof folder))
        hec_receipt_set_folder(r, folder);
    for (int side = 0; side < 2; side++)
        hec_receipt_add_command(r, side, ab->command[side]);
    for (int i = 0; levers && i < levers->count; i++)
        hec_receipt_add_word(r, &r->levers, hec_lever_use_text(&levers->list[i], word));
    hec_receipt_add_environment(r, session->environment ? session->environment : environ);
    r->steps = session->stop.steps;
    r->steps_by = session->stop.by;
    r->seconds = (double)session->stop.after_ns / HEC_NS_PER_S;
    r->warm_up = ab->warm_up;
    if (session->simulated)
        hec_receipt_set(r, &r->simulated, session->simulated);
    add_where(r, trials);
    r->caches = (enum hec_receipt_caches)options->caches;
    r->trace = session->trace;
    r->trace_memory_mb = session->trace_memory_mb;
    r->hooks = session->hooks;
}

/* A comparison with a command under a lever that did nothing is one of the command with itself. What levers did differs in its numbers from
 * trial to trial: the first says it. */
static void add_effects(struct hec_receipt *r, const struct hec_summary *run) {
    bool said = hec_receipt_fact(&r->facts, HEC_RECEIPT_EFFECT) != NULL;
    char words[HEC_SUMMARY_WORDS];
    for (int i = 0; i < run->lever_count; i++)
        if (!hec_lever_took_words(words, &run->levers[i]))
            hec_receipt_add_fact_of_trial(r, HEC_RECEIPT_NO_EFFECT, words);
        else if (!said)
            hec_receipt_add_fact_of_trial(r, HEC_RECEIPT_EFFECT, words);
}

void hec_receipt_fill_facts(struct hec_receipt *r, const struct hec_summary *run) {
    char value[HEC_CONDITION_VALUE];
    for (int what = 0; what < HEC_CONDITION_COUNT; what++) {
        if (what == HEC_CONDITION_COMMAND || what == HEC_CONDITION_LEVERS ||
            what == HEC_CONDITION_HEC) /* the receipt has them */
            continue;
        hec_condition_value(run, what, value);
        hec_receipt_add_fact_of_trial(r, hec_condition_name(what), value);
    }
    add_effects(r, run);
    if (strcmp(r->unit, run->blocks.unit) != 0)
        snprintf(r->unit, sizeof r->unit, "%s", r->trial_count ? "" : run->blocks.unit);
}

int hec_receipt_fill_trials(struct hec_receipt *r, const struct hec_experiment_plan *plan,
                            const struct hec_experiment_trial *trials, size_t count) {
    r->plan = *plan;
    for (size_t i = (size_t)r->trial_count; i < count; i++)
        hec_receipt_add_trial(r, &trials[i]);
    return r->error ? r->error : hec_receipt_judge(r);
}

int hec_receipt_write(const struct hec_receipt *r, const char *path, bool force, struct hec_why *why) {
    struct hec_buf text;
    hec_buf_init(&text, 256u << 20);
    int err = hec_receipt_json(r, &text);
    err = err < 0 ? hec_fail(why, err, "the receipt cannot be made: %s", hec_err_text(err))
                  : hec_output_write(path, &text, force, why);
    hec_buf_free(&text);
    return err;
}
