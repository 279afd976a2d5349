/* What of an environment and of commands a receipt keeps: receipt/environment.def. */
#include "report/receipt/receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables_kept[] = {
#define HEC_RECEIPT_VARIABLE(name) name,
#include "report/receipt/environment.def"
};

static bool matters(const char *name) {
    for (size_t i = 0; i < sizeof variables_kept / sizeof variables_kept[0]; i++) {
        const char *kept = variables_kept[i];
        size_t length = strlen(kept);
        if (kept[length - 1] == '*' ? strncmp(name, kept, length - 1) == 0 : strcmp(name, kept) == 0)
            return true;
    }
    return false;
}

/* One that is in the table as a whole is none: TOKENIZERS_PARALLELISM. */
static bool is_secret(const char *name, const char *value) {
    for (size_t i = 0; i < sizeof variables_kept / sizeof variables_kept[0]; i++)
        if (strcmp(name, variables_kept[i]) == 0)
            return false;
    return hec_receipt_is_secret(name, strlen(name), value, false);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_variable(struct hec_receipt *receipt, const char *variable) {
    const char *equals = strchr(variable, '=');
    char *name = equals ? strndup(variable, (size_t)(equals - variable)) : NULL;
    if (equals && !name)
        receipt->error = HEC_ERR_NOMEM;
    if (name && name[0] && matters(name)) {
        int withheld = is_secret(name, equals + 1);
        char *value = withheld ? NULL : hec_receipt_without_secrets(equals + 1, &withheld);
        if (withheld)
            hec_receipt_add_word(receipt, &receipt->withheld, name);
        if (value)
            hec_receipt_add_fact(receipt, &receipt->environment, name, value);
        else if (!withheld)
            receipt->error = HEC_ERR_NOMEM;
        free(value);
    }
    free(name);
}

void hec_receipt_add_environment(struct hec_receipt *receipt, char *const *variables) {
    size_t count = 0;
    while (variables[count])
        count++;
    const char **sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted) {
        receipt->error = HEC_ERR_NOMEM;
        return;
    }
    memcpy(sorted, variables, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 0; i < count; i++)
        add_variable(receipt, sorted[i]);
    free(sorted);
}

void hec_receipt_set_folder(struct hec_receipt *receipt, const char *folder) {
    int withheld = 0;
    char *kept = hec_receipt_without_secrets(folder, &withheld);
    if (!kept)
        receipt->error = HEC_ERR_NOMEM;
    else
        hec_receipt_set(receipt, &receipt->folder, kept);
    if (withheld)
        hec_receipt_add_word(receipt, &receipt->withheld, "the working folder");
    free(kept);
}

/* Withheld of a word of a command, as the receipt says it. */
static void note_word(struct hec_receipt *receipt, int side, int at) {
    char text[64];
    snprintf(text, sizeof text, "word %d of command %c", at + 1, "AB"[side]);
    hec_receipt_add_word(receipt, &receipt->withheld, text);
}

/* The value in "--name=value", and where the name is a word by itself, the next word. */
static size_t value_at(const char *word) {
    size_t name = strcspn(word, "=");
    return word[name] && !memchr(word, ' ', name) && !memchr(word, '/', name) ? name + 1 : 0;
}

/* And no password that begins as one: -Hunter2. */
#define OPTION_MOST 6 /* bytes, of one with a single dash */
static bool is_option(const char *word) {
    return word[0] == '-' && (word[1] == '-' || strlen(word) < OPTION_MOST);
}

void hec_receipt_add_command(struct hec_receipt *receipt, int side, char *const *words) {
    struct hec_receipt_reading reading = {.before = ""};
    const char *before = ""; /* an option whose value the next word may be */
    for (int i = 0; words && words[i]; i++) {
        const char *word = words[i];
        size_t value = value_at(word);
        int withheld = 0;
        char *kept = NULL;
        if (value && hec_receipt_is_secret(word, value - 1, word + value, true))
            withheld = asprintf(&kept, "%.*s" HEC_RECEIPT_WITHHELD, (int)value, word) > 0;
        else if (before[0] && !is_option(word) && hec_receipt_is_secret(before, strlen(before), word, true))
            withheld = asprintf(&kept, "%s", HEC_RECEIPT_WITHHELD) > 0;
        else
            kept = hec_receipt_read_word(&reading, word, &withheld);
        if (!kept)
            receipt->error = HEC_ERR_NOMEM;
        else
            hec_receipt_add_word(receipt, &receipt->command[side], kept);
        if (withheld)
            note_word(receipt, side, i);
        before = word[0] == '-' && !value ? word : "";
        free(kept);
    }
}

bool hec_receipt_has_commands(const struct hec_receipt *receipt) {
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < receipt->command[side].count; i++)
            if (strstr(receipt->command[side].list[i], HEC_RECEIPT_WITHHELD))
                return false;
    return true;
}
