#include "report/receipt/receipt.h"

#include "base/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MOST 100000 /* of words, of facts: far more than a command line holds */

/* ---- filling ---- */

/* The list with room for one more and a NULL; NULL: there is none, and the list is as it was. */
static void *room(struct hec_receipt *receipt, void *list, int count, size_t size, int most) {
    if (count < most && (count & (count + 1)) != 0) /* it doubles at 0, 1, 3, 7 */
        return list;
    void *grown = count < most ? realloc(list, ((size_t)count * 2 + 2) * size) : NULL;
    if (!grown && !receipt->error)
        receipt->error = count < most ? HEC_ERR_NOMEM : HEC_ERR_LIMIT;
    return grown;
}

static char *copy(struct hec_receipt *receipt, const char *text) {
    char *made = strdup(text);
    if (!made)
        receipt->error = HEC_ERR_NOMEM;
    return made;
}

void hec_receipt_set(struct hec_receipt *receipt, char **text, const char *value) {
    free(*text);
    *text = copy(receipt, value);
}

void hec_receipt_add_word(struct hec_receipt *receipt, struct hec_receipt_words *words, const char *word) {
    char **list = room(receipt, words->list, words->count, sizeof *list, LISTED_MOST);
    if (!list)
        return;
    words->list = list;
    list[words->count] = copy(receipt, word);
    if (list[words->count])
        list[++words->count] = NULL;
}

void hec_receipt_add_fact(struct hec_receipt *receipt, struct hec_receipt_facts *facts, const char *name,
                          const char *value) {
    struct hec_receipt_fact *list = room(receipt, facts->list, facts->count, sizeof *list, LISTED_MOST);
    if (!list)
        return;
    facts->list = list;
    struct hec_receipt_fact *fact = &list[facts->count];
    *fact = (struct hec_receipt_fact){copy(receipt, name), copy(receipt, value)};
    if (fact->name && fact->value) {
        facts->count++;
    } else {
        free(fact->name);
        free(fact->value);
    }
}

void hec_receipt_add_fact_of_trial(struct hec_receipt *receipt, const char *name, const char *value) {
    struct hec_receipt_facts *facts = &receipt->facts;
    for (int i = 0; i < facts->count; i++) {
        struct hec_receipt_fact *fact = &facts->list[i];
        char *joined = NULL;
        if (strcmp(fact->name, name) != 0)
            continue;
        if (!strstr(fact->value, value) && asprintf(&joined, "%s; %s", fact->value, value) < 0)
            receipt->error = HEC_ERR_NOMEM;
        else if (joined) {
            free(fact->value);
            fact->value = joined;
        }
        return;
    }
    hec_receipt_add_fact(receipt, facts, name, value);
}

HEC_NAME_OF(hec_tried_name, enum hec_tried, "base", "kept", "better", "no_gain", "slower", "nothing", "failed")

void hec_receipt_add_tried(struct hec_receipt *receipt, const struct hec_receipt_tried *tried) {
    struct hec_receipt_tried *list =
        room(receipt, receipt->tried, receipt->tried_count, sizeof *list, HEC_RECEIPT_TRIALS_MOST);
    if (!list)
        return;
    receipt->tried = list;
    receipt->tried[receipt->tried_count++] = *tried;
}

void hec_receipt_add_block(struct hec_receipt *receipt, const struct hec_receipt_block *block) {
    struct hec_receipt_block *list =
        room(receipt, receipt->blocks, receipt->block_count, sizeof *list, HEC_RECEIPT_TRIALS_MOST);
    if (!list)
        return;
    receipt->blocks = list;
    receipt->blocks[receipt->block_count++] = *block;
}

void hec_receipt_add_trial(struct hec_receipt *receipt, const struct hec_experiment_trial *trial) {
    struct hec_experiment_trial copied = *trial; /* it may be one of the list */
    struct hec_experiment_trial *list =
        room(receipt, receipt->trials, receipt->trial_count, sizeof *list, HEC_RECEIPT_TRIALS_MOST);
    if (!list)
        return;
    receipt->trials = list;
    list[receipt->trial_count++] = copied;
}

static void free_words(struct hec_receipt_words *words) {
    for (int i = 0; i < words->count; i++)
        free(words->list[i]);
    free(words->list);
}

static void free_facts(struct hec_receipt_facts *facts) {
    for (int i = 0; i < facts->count; i++) {
        free(facts->list[i].name);
        free(facts->list[i].value);
    }
    free(facts->list);
}

void hec_receipt_free(struct hec_receipt *receipt) {
    free(receipt->folder);
    free(receipt->simulated);
    free_words(&receipt->command[0]);
    free_words(&receipt->command[1]);
    free_facts(&receipt->environment);
    free_words(&receipt->levers);
    free_words(&receipt->withheld);
    free_facts(&receipt->facts);
    free_words(&receipt->units);
    free_words(&receipt->printed);
    free_words(&receipt->covered);
    free_words(&receipt->left);
    free(receipt->tried);
    free(receipt->blocks);
    free(receipt->trials);
    *receipt = (struct hec_receipt){.error = HEC_OK};
}

/* ---- reading ---- */

const char *hec_receipt_fact(const struct hec_receipt_facts *facts, const char *name) {
    for (int i = 0; i < facts->count; i++)
        if (strcmp(facts->list[i].name, name) == 0)
            return facts->list[i].value;
    return NULL;
}

bool hec_receipt_is_baseline(const struct hec_receipt *receipt) {
    return receipt->command[1].count == 0;
}

int hec_receipt_judge(struct hec_receipt *receipt) {
    receipt->result = (struct hec_experiment_result){0};
    return hec_receipt_is_baseline(receipt)
               ? HEC_OK
               : hec_experiment_judge(&receipt->plan, receipt->trials, receipt->trial_count, &receipt->result);
}
