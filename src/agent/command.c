#include "agent/command.h"

#include "base/text.h"
#include "report/receipt/receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 24 /* bytes: longer ones are data, not what a person would tell runs apart by */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *next(const char *word) {
    return word + strlen(word) + 1;
}

static bool is_python(const char *arguments, const char *end) {
    return arguments < end && strncmp(base_name(arguments), "python", 6) == 0;
}

/* Of Python: the script's word, or the module's; NULL: neither, as with -c. */
static const char *script_of(const char *arguments, const char *end) {
    for (const char *at = next(arguments); at < end; at = next(at)) {
        if (strcmp(at, "-c") == 0)
            return NULL;
        if (strcmp(at, "-m") == 0)
            return next(at) < end ? next(at) : NULL;
        if (*at != '-')
            return *at ? at : NULL;
    }
    return NULL;
}

/* A name of letters and digits, or a number; nothing that a sentence, a URL or a program is made of. */
static bool is_plain(const char *word) {
    size_t length = strlen(word);
    return length > 0 && length <= WORD_MAX &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=,") == length;
}

/* Whatever the length of its value. */
static bool names_secret(const char *word, size_t length) {
    return hec_receipt_is_secret(word, length, "any-value-of-it", true);
}

/* before: the option in front of it, whose value it may be, or "". */
static bool may_be_secret(const char *word, const char *before) {
    int withheld = 0;
    if (names_secret(word, strcspn(word, "=")) || (before[0] && names_secret(before, strlen(before))))
        return true;
    free(hec_receipt_without_secrets(word, &withheld));
    return withheld > 0;
}

void hec_command_short(const char *arguments, const char *end, const char *name, char out[HEC_COMMAND_SIZE]) {
    const char *script = is_python(arguments, end) ? script_of(arguments, end) : NULL;
    const char *shown = script ? base_name(script) : *name ? name : "?", *before = "";
    char text[HEC_COMMAND_SIZE];
    bool code = !script && is_python(arguments, end);
    size_t used = (size_t)snprintf(text, sizeof text, "%s", shown);
    const char *named = script ? script : arguments; /* by the name in front */
    struct hec_receipt_reading reading = {.before = ""};
    for (const char *at = arguments; at < end && used < sizeof text && !code; at = next(at)) {
        const char *word = base_name(at);
        int withheld = 0; /* by what its program takes: -p of mysql is a password */
        free(hec_receipt_read_word(&reading, at, &withheld));
        bool secret = withheld > 0 || may_be_secret(at, before);
        if (at > named && !secret && is_plain(word) && used + 1 + strlen(word) < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s", word);
        before = at > named && at[0] == '-' && !strchr(at, '=') ? at : "";
    }
    hec_text_clean(out, HEC_COMMAND_SIZE, text, strlen(text), true);
}

bool hec_command_is_worker(const char *arguments, const char *end) {
    if (arguments >= end)
        return false;
    if (!is_python(arguments, end))
        return strstr(arguments, "::") != NULL && !strchr(arguments, '/');
    for (const char *at = next(arguments); at < end && *at == '-'; at = next(at))
        if (strcmp(at, "-c") == 0)
            return next(at) < end && strstr(next(at), "multiprocessing") != NULL;
    return false;
}
