/* What of an environment a receipt keeps: receipt/environment.def. */
#include "report/receipt/receipt.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables_kept[] = {
#define HEC_RECEIPT_VARIABLE(name) name,
#define HEC_RECEIPT_SECRET(part)
#include "report/receipt/environment.def"
#undef HEC_RECEIPT_VARIABLE
#undef HEC_RECEIPT_SECRET
};
static const char *const secrets[] = {
#define HEC_RECEIPT_VARIABLE(name)
#define HEC_RECEIPT_SECRET(part) part,
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

/* TOKENIZERS_PARALLELISM is in the table as a whole, and no secret. */
static bool is_secret(const char *name) {
    char upper[256];
    size_t length = 0;
    for (; length < sizeof upper - 1 && name[length]; length++)
        upper[length] = (char)toupper((unsigned char)name[length]);
    upper[length] = '\0';
    if (name[length])
        return true; /* nothing that anybody set for good */
    for (size_t i = 0; i < sizeof variables_kept / sizeof variables_kept[0]; i++)
        if (strcmp(name, variables_kept[i]) == 0)
            return false;
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (strstr(upper, secrets[i]))
            return true;
    return false;
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
        if (is_secret(name))
            hec_receipt_add_word(receipt, &receipt->withheld, name);
        else
            hec_receipt_add_fact(receipt, &receipt->environment, name, equals + 1);
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
