#include "base/log.h"
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hec_verb_info verbs[] = {
#define HEC_VERB(id, name, function, operand, usage, line, description)                                                \
    {name, function, HEC_OPERAND_##operand, usage, line, description},
#include "cli/verbs.def"
#undef HEC_VERB
};

#define HEC_LEVER_ROW(id, name, ...) name " "
#define HEC_LEVER_VARIABLE(...)
static const char lever_names[] =
#include "act/levers.def"
    ;
#undef HEC_LEVER_ROW
#undef HEC_LEVER_VARIABLE

#define HEC_REPLAY_EDIT(id, name, ...) name " "
static const char edit_names[] =
#include "diagnose/replay/edits.def"
    ;

static const struct hec_option_info options[] = {
#define HEC_OPTION(id, letter, name, argument, values, verbs_, help) {letter, name, argument, values, verbs_, help},
#include "cli/options.def"
#undef HEC_OPTION
};

const struct hec_verb_info *hec_verb_info(enum hec_verb verb) {
    return &verbs[verb];
}

const struct hec_option_info *hec_option_info(enum hec_option option) {
    return &options[option];
}

const char *hec_option_help(enum hec_option option, enum hec_verb verb) {
    static const struct {
        enum hec_option option;
        unsigned verbs;
        const char *help;
    } rows[] = {
#define HEC_OPTION_HELP(id, verbs_, help_) {HEC_OPT_##id, verbs_, help_},
#include "cli/option_help.def"
#undef HEC_OPTION_HELP
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].option == option && (rows[i].verbs & (1u << verb)))
            return rows[i].help;
    return options[option].help;
}

bool hec_option_optional(const struct hec_option_info *option) {
    return option->argument && option->argument[0] == '[';
}

enum hec_verb hec_verb_find(const char *name) {
    for (int i = 0; i < HEC_VERB_COUNT; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return (enum hec_verb)i;
    return HEC_VERB_COUNT;
}

int hec_verb_unknown(const char *word) {
    const char *list[HEC_VERB_COUNT + 1] = {NULL};
    for (int i = 0; i < HEC_VERB_COUNT; i++)
        list[i] = verbs[i].name;
    const char *near = hec_nearest(word, list);
    if (near)
        hec_error("there is no verb \"%s\"; did you mean \"%s\"?", word, near);
    else
        hec_error("there is no verb \"%s\"; see `hec --help`", word);
    return HEC_ERR_USAGE;
}

int hec_args_status(const struct hec_args *args, int err) {
    /* 2 is an answer of `hec check` and of `hec run --check`: a word that is spelt wrong must not pass for it */
    int status = hec_err_exit_status(err);
    bool answers = args->verb == HEC_VERB_CHECK || hec_args_has(args, HEC_OPT_CHECK_WHEN);
    return answers && status == 2 ? 64 : status;
}

/* getopt's tables for one verb; `val` of a long option is its index + a base no letter reaches. */
#define LONG_BASE 1000

static void getopt_tables(enum hec_verb verb, char *letters, struct option *longs) {
    if (verbs[verb].operand == HEC_OPERAND_COMMAND)
        *letters++ = '+'; /* stop at the first operand: what follows is the command's */
    *letters++ = ':';
    for (int i = 0; i < HEC_OPT_COUNT; i++) {
        if (!(options[i].verbs & (1u << verb)))
            continue;
        int takes = !options[i].argument               ? no_argument
                    : hec_option_optional(&options[i]) ? optional_argument
                                                       : required_argument;
        *longs++ = (struct option){options[i].name, takes, NULL, LONG_BASE + i};
        if (!options[i].letter)
            continue;
        *letters++ = (char)options[i].letter;
        if (options[i].argument)
            *letters++ = ':';
    }
    *letters = '\0';
    *longs = (struct option){0};
}

static int option_of(enum hec_verb verb, int value) {
    if (value >= LONG_BASE)
        return value - LONG_BASE;
    for (int i = 0; i < HEC_OPT_COUNT; i++)
        if (options[i].letter == value && (options[i].verbs & (1u << verb)))
            return i;
    return -1;
}

static void unknown_option(enum hec_verb verb, const char *word) {
    const char *list[HEC_OPT_COUNT + 1] = {NULL};
    char name[64];
    for (int i = 0, count = 0; i < HEC_OPT_COUNT; i++)
        if (options[i].verbs & (1u << verb))
            list[count++] = options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *near = hec_nearest(name, list);
    if (near)
        hec_error("%s: unknown option --%s; did you mean --%s?", verbs[verb].name, name, near);
    else
        hec_error("%s: unknown option %s; see `hec %s --help`", verbs[verb].name, word, verbs[verb].name);
}

/* How getopt left the option it could not take: a letter in optopt, or a word before optind. */
static void complain(enum hec_verb verb, int reason, char **argv) {
    int known = optopt ? option_of(verb, optopt) : -1;
    const char *word = argv[optind - 1];
    const char *name = verbs[verb].name;
    if (reason == ':' && known >= 0)
        hec_error("%s: option --%s needs %s", name, options[known].name, options[known].argument);
    else if (known >= 0)
        hec_error("%s: option --%s takes no argument", name, options[known].name);
    else if (optopt && optopt < LONG_BASE)
        hec_error("%s: unknown option -%c; see `hec %s --help`", name, optopt, name);
    else
        unknown_option(verb, word);
}

/* Before getopt, which moves operands. */
static void find_separator(int *argc, char **argv, struct hec_args *args) {
    args->after = -1;
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") != 0)
            continue;
        args->after = args->after == -1 ? *argc - i - 1 : -2;
        if (verbs[args->verb].operand == HEC_OPERAND_SETTINGS) { /* the command's options are its own */
            args->command = argv[i + 1] ? argv + i + 1 : NULL;
            *argc = i;
        }
    }
}

int hec_args_wrong(const struct hec_args *args, const char *what) {
    hec_error("%s: %s; usage: hec %s %s", verbs[args->verb].name, what, verbs[args->verb].name,
              verbs[args->verb].usage);
    return HEC_ERR_USAGE;
}

int hec_args_parse(enum hec_verb verb, int argc, char **argv, struct hec_args *args) {
    char letters[3 + 2 * HEC_OPT_COUNT];
    struct option longs[HEC_OPT_COUNT + 1];
    getopt_tables(verb, letters, longs);
    memset(args, 0, sizeof *args);
    args->verb = verb;
    find_separator(&argc, argv, args);
    opterr = 0;
    optind = 1;
    int value;
    while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        int option = value == '?' || value == ':' ? -1 : option_of(verb, value);
        if (option < 0) {
            complain(verb, value, argv);
            return HEC_ERR_USAGE;
        }
        if (option == HEC_OPT_HELP) {
            hec_help_verb(verb);
            return 1;
        }
        if (option == HEC_OPT_VERBOSE)
            hec_log_set_level(HEC_LOG_INFO);
        if (args->given_count == HEC_ARGS_MAX) {
            hec_error("%s: more than %d options", verbs[verb].name, HEC_ARGS_MAX);
            return HEC_ERR_USAGE;
        }
        args->given[args->given_count].option = (enum hec_option)option;
        args->given[args->given_count++].value = options[option].argument ? optarg : NULL;
    }
    args->rest = argv + optind;
    args->rest_count = argc - optind;
    if (verbs[verb].operand == HEC_OPERAND_NONE && args->rest_count > 0) {
        hec_error("%s takes no operand: \"%s\"", verbs[verb].name, args->rest[0]);
        return HEC_ERR_USAGE;
    }
    return HEC_OK;
}

bool hec_args_has(const struct hec_args *args, enum hec_option option) {
    for (int i = 0; i < args->given_count; i++)
        if (args->given[i].option == option)
            return true;
    return false;
}

const char *hec_args_value(const struct hec_args *args, enum hec_option option) {
    for (int i = args->given_count; i-- > 0;)
        if (args->given[i].option == option)
            return args->given[i].value;
    return NULL;
}

int hec_args_number(const struct hec_args *args, enum hec_option option, double minimum, double maximum,
                    double *value) {
    const char *text = hec_args_value(args, option);
    if (!text)
        return HEC_OK;
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end || errno || !(number >= minimum && number <= maximum)) {
        hec_error("--%s needs a number from %g to %g, not \"%s\"", options[option].name, minimum, maximum, text);
        return HEC_ERR_USAGE;
    }
    *value = number;
    return HEC_OK;
}
