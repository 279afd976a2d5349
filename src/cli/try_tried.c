#include "cli/try_tried.h"

#include "report/words/reasons.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_words(char text[HEC_REASON_TEXT], const struct hec_lever_summary *l) {
    size_t length = strlen(text);
    snprintf(text + length, HEC_REASON_TEXT - length, "%s%s %s%s%s", length ? "; " : "", l->name,
             hec_attest_name(l->attest), l->text[0] ? ": " : "", l->text);
}

void hec_try_seen(const struct hec_summary *trial, struct hec_search_seen *out) {
    for (int i = 0; i < trial->lever_count; i++) {
        const struct hec_lever_summary *l = &trial->levers[i];
        out->failed |= l->attest == HEC_ATTEST_FAILED;
        out->idle |= l->attest == HEC_ATTEST_NOTHING || l->attest == HEC_ATTEST_ALREADY;
        add_words(out->text, l);
    }
}

/* Of a knob several values are candidates, each of which is a lever of its own. */
static bool is_candidate(const struct hec_candidate *candidate, const struct hec_lever_summary *lever) {
    char name[HEC_LEVER_NAME];
    return strcmp(hec_lever_use_name(&candidate->use, name), lever->name) == 0 &&
           (!candidate->use.knob[0] || strcmp(candidate->use.value, lever->value) == 0);
}

void hec_try_lived(const struct hec_summary *trial, const struct hec_candidates *candidates,
                   struct hec_search_lived *out) {
    for (int i = 0; i < trial->lever_count; i++)
        for (int c = 0; c < candidates->count; c++)
            if (is_candidate(&candidates->list[c], &trial->levers[i])) {
                enum hec_attest attest = trial->levers[i].attest;
                if (attest == HEC_ATTEST_FAILED)
                    add_words(out->text, &trial->levers[i]);
                out->failed |= attest == HEC_ATTEST_FAILED ? UINT32_C(1) << c : 0;
                out->idle |= attest == HEC_ATTEST_NOTHING || attest == HEC_ATTEST_ALREADY ? UINT32_C(1) << c : 0;
            }
}

/* ---- rows ---- */

/* Of the sets that ran before this one first did, the base among them: the least cost by the base's. */
static double least_before(const struct hec_search_trial *table, int count, uint32_t set) {
    double least = 1;
    for (int i = 0; i < count && table[i].set != set; i++)
        if (table[i].fate == HEC_SEARCH_RAN)
            least = fmin(least, hec_search_cost(table, count, table[i].set).best);
    return least;
}

static enum hec_tried outcome_of(const struct hec_search *search, const struct hec_searched *t, uint32_t kept,
                                 const struct hec_search_trial *table, int count) {
    if (t->set == 0)
        return HEC_TRIED_BASE;
    if (t->trial.fate != HEC_SEARCH_RAN)
        return t->trial.fate == HEC_SEARCH_IDLE ? HEC_TRIED_NOTHING : HEC_TRIED_FAILED;
    if (t->set == kept)
        return HEC_TRIED_KEPT;
    if (hec_search_speed(table, count, t->set).best < 1 - search->slowdown_most)
        return HEC_TRIED_SLOWER;
    return log(hec_search_cost(table, count, t->set).best) < log(least_before(table, count, t->set)) - HEC_SEARCH_GAIN
               ? HEC_TRIED_BETTER
               : HEC_TRIED_NO_GAIN;
}

static void put_range(struct hec_search_ratio ratio, bool base, double out[3]) {
    out[0] = ratio.low;
    out[1] = base ? NAN : ratio.best;
    out[2] = ratio.high;
}

/* Of units of work alone: where none is known, costs are of steps or trials, and rates too. */
static double mean(const struct hec_search_trial *table, int count, uint32_t set, bool cost) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (table[i].set == set && table[i].fate != HEC_SEARCH_FAILED) {
            sum += cost ? table[i].cost : table[i].speed;
            n++;
        }
    return n ? sum / n : NAN;
}

static void add_row(struct hec_receipt *receipt, const struct hec_search *search, const struct hec_searched *t,
                    const struct hec_search_trial *table, int count, uint32_t kept) {
    struct hec_lever_set levers;
    struct hec_search_ratio cost = hec_search_cost(table, count, t->set);
    struct hec_search_ratio speed = hec_search_speed(table, count, t->set);
    struct hec_receipt_tried row = {
        .outcome = outcome_of(search, t, kept, table, count),
        .joules_per_unit = !t->timed ? mean(table, count, t->set, true) : NAN,
        .units_per_second = mean(table, count, t->set, false),
    };
    for (int i = 0; i < count; i++)
        row.trials += table[i].set == t->set;
    hec_candidates_set(&search->candidates, t->set, &levers);
    hec_lever_set_text(&levers, row.levers);
    if (isnan(row.joules_per_unit)) /* then time stood for them */
        cost = (struct hec_search_ratio){.best = NAN, .low = NAN, .high = NAN};
    put_range(cost, t->set == 0, row.joules);
    put_range(speed, t->set == 0, row.rate);
    snprintf(row.text, sizeof row.text, "%s", HEC_SAY(&t->why));
    hec_receipt_add_tried(receipt, &row);
}

static void add_block(struct hec_receipt *receipt, const struct hec_search *search, const struct hec_searched *t) {
    struct hec_lever_set levers;
    struct hec_receipt_block row = {
        .failed = t->trial.fate == HEC_SEARCH_FAILED,
        .switching_s = t->block.switching_s,
        .settling_s = t->block.settling_s,
        .seconds = t->block.seconds,
        .joules_per_unit = !t->timed ? t->trial.cost : NAN,
        .units_per_second = t->trial.speed,
    };
    hec_candidates_set(&search->candidates, t->set, &levers);
    hec_lever_set_text(&levers, row.levers);
    hec_receipt_add_block(receipt, &row);
}

int hec_try_fill(struct hec_receipt *receipt, const struct hec_search *search, const struct hec_search_outcome *outcome,
                 uint32_t kept) {
    struct hec_search_trial *table = hec_search_table(outcome);
    if (!table)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < outcome->count; i++) {
        bool before = false;
        for (size_t k = 0; k < i; k++)
            before |= outcome->trials[k].set == outcome->trials[i].set;
        if (!before)
            add_row(receipt, search, &outcome->trials[i], table, (int)outcome->count, kept);
        if (outcome->trials[i].trial.part)
            add_block(receipt, search, &outcome->trials[i]);
    }
    free(table);
    return receipt->error;
}
