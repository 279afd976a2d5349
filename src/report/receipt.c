#include "report/receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MOST 100000 /* of words, of facts: far more than a command line holds */

/* ---- filling ---- */

/* Room for one more and a NULL; false: there is none. */
static bool room(struct hec_receipt *receipt, void **list, int count, size_t size, int most) {
    int err = count >= most ? HEC_ERR_LIMIT : HEC_OK;
    if (!err && (count & (count + 1)) == 0) { /* 0, 1, 3, 7: doubles */
        void *more = realloc(*list, ((size_t)count * 2 + 2) * size);
        err = more ? HEC_OK : HEC_ERR_NOMEM;
        *list = more ? more : *list;
    }
    receipt->error = receipt->error ? receipt->error : err;
    return !err;
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
    void *list = words->list;
    bool fits = room(receipt, &list, words->count, sizeof *words->list, LISTED_MOST);
    words->list = list;
    char *made = fits ? copy(receipt, word) : NULL;
    if (!made)
        return;
    words->list[words->count++] = made;
    words->list[words->count] = NULL;
}

void hec_receipt_add_fact(struct hec_receipt *receipt, struct hec_receipt_facts *facts, const char *name,
                          const char *value) {
    void *list = facts->list;
    bool fits = room(receipt, &list, facts->count, sizeof *facts->list, LISTED_MOST);
    facts->list = list;
    char *names = fits ? copy(receipt, name) : NULL, *values = names ? copy(receipt, value) : NULL;
    if (values)
        facts->list[facts->count++] = (struct hec_receipt_fact){names, values};
    else
        free(names);
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

void hec_receipt_add_trial(struct hec_receipt *receipt, const struct hec_experiment_trial *trial) {
    struct hec_experiment_trial copied = *trial; /* it may be one of the list */
    void *list = receipt->trials;
    bool fits = room(receipt, &list, receipt->trial_count, sizeof *receipt->trials, HEC_RECEIPT_TRIALS_MOST);
    receipt->trials = list;
    if (fits)
        receipt->trials[receipt->trial_count++] = copied;
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
    free_words(&receipt->withheld);
    free_facts(&receipt->facts);
    free_words(&receipt->units);
    free_words(&receipt->covered);
    free_words(&receipt->left);
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
