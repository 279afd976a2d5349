/* dcgm-exporter's command line and variables, for `hec agent` in its place: what has no counterpart is said in a sentence and taken
 * out, the rest is put as HEC's parser takes it. */
#include "cli/exporter.h"

#include "base/log.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind { SWITCH, VALUE, AS };
static const struct {
    const char *name;
    char letter;
    enum kind kind;
    const char *variable, *words;
} theirs[] = {
#define HEC_EXPORTER_OPTION(name, letter, kind, variable, words) {name, letter, kind, variable, words},
#include "cli/exporter.def"
#undef HEC_EXPORTER_OPTION
};
#define THEIRS (sizeof theirs / sizeof theirs[0])

bool hec_exporter_is_true(const char *value) {
    static const char *const words[] = {"1", "t", "T", "true", "TRUE", "True"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return false;
}

/* -name and --name are the same to Go; both may have =VALUE. */
static bool is_option(const char *word, const char *name) {
    word += word[0] == '-' && word[1] == '-' ? 2 : word[0] == '-';
    size_t length = strcspn(word, "=");
    return length > 1 && strlen(name) == length && strncmp(word, name, length) == 0;
}

static const struct hec_option_info *ours(const char *word) {
    for (int i = 0; word[0] == '-' && i < HEC_OPT_COUNT; i++) {
        const struct hec_option_info *option = hec_option_info((enum hec_option)i);
        if ((option->verbs & 1u << HEC_VERB_AGENT) && is_option(word, option->name))
            return option;
    }
    return NULL;
}

/* -1: none of theirs. *by_letter: -s, whose value may follow at once. */
static int find(const char *word, bool *by_letter) {
    *by_letter = false;
    if (word[0] != '-' || ours(word))
        return -1;
    for (size_t i = 0; i < THEIRS; i++)
        if (is_option(word, theirs[i].name))
            return (int)i;
    *by_letter = true;
    for (size_t i = 0; i < THEIRS; i++)
        if (theirs[i].letter && word[1] == theirs[i].letter)
            return (int)i;
    return -1;
}

static bool is_off(const char *word) {
    const char *value = strchr(word, '=');
    return value && !hec_exporter_is_true(value + 1);
}

/* --kubernetes=true, and -collectors FILE, as HEC's parser takes them. NULL: a switch that is off. */
static char *as_ours(const struct hec_option_info *option, char *word) {
    if (!option->argument && is_off(word))
        return NULL;
    if (!option->argument)
        word[strcspn(word, "=")] = '\0';
    char *twice = word[1] == '-' ? NULL : malloc(strlen(word) + 2); /* for as long as the process */
    return twice ? strcat(strcpy(twice, "-"), word) : word;
}

void hec_exporter_arguments(int *argc, char **argv) {
    int kept = 1, i = 1;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        char *word = argv[i];
        bool by_letter, apart = !strchr(word, '='); /* a value is the next word */
        int at = find(word, &by_letter);
        const struct hec_option_info *option = ours(word);
        if (option) {
            argv[kept] = as_ours(option, word);
            kept += argv[kept] != NULL;
            apart = apart && option->argument && !hec_option_optional(option);
            if (apart && i + 1 < *argc)
                argv[kept++] = argv[++i];
        } else if (at < 0) {
            argv[kept++] = word;
        } else if (theirs[at].kind == AS && !is_off(word)) {
            argv[kept++] = (char *)(uintptr_t)theirs[at].words;
        } else if (theirs[at].kind == VALUE || !is_off(word)) {
            hec_warn("agent: --%s: %s", theirs[at].name, theirs[at].words);
            i += theirs[at].kind == VALUE && apart && !(by_letter && word[2]);
        }
    }
    while (i < *argc)
        argv[kept++] = argv[i++];
    *argc = kept;
    argv[kept] = NULL;
}

void hec_exporter_variables(struct hec_args *args) {
    for (size_t i = 0; i < THEIRS; i++) {
        const char *value = theirs[i].variable[0] ? getenv(theirs[i].variable) : NULL;
        if (!value || !value[0] || (theirs[i].kind != VALUE && !hec_exporter_is_true(value)))
            continue;
        if (theirs[i].kind != AS)
            hec_warn("agent: %s: %s", theirs[i].variable, theirs[i].words);
        else if (args->given_count < HEC_ARGS_MAX)
            args->given[args->given_count++].option = HEC_OPT_VERBOSE;
    }
}
