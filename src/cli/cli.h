/* The command line: verbs and options come from two tables, verbs.def and options.def. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum hec_verb {
#define HEC_VERB(id, name, function, operand, usage, line, description) HEC_VERB_##id,
#include "cli/verbs.def"
#undef HEC_VERB
    HEC_VERB_COUNT
};

enum hec_option {
#define HEC_OPTION(id, letter, name, argument, values, verbs, help) HEC_OPT_##id,
#include "cli/options.def"
#undef HEC_OPTION
    HEC_OPT_COUNT
};

enum hec_operand {
    HEC_OPERAND_NONE,
    HEC_OPERAND_COMMAND,
    HEC_OPERAND_RUN, /* run files */
    HEC_OPERAND_FILE,
    HEC_OPERAND_CASE,     /* of hec sim */
    HEC_OPERAND_CAUSE,    /* of hec explain */
    HEC_OPERAND_LEVER,    /* of hec levers */
    HEC_OPERAND_PROCESS,  /* the id of one */
    HEC_OPERAND_SETTINGS, /* of hec sweep, and a command after "--" */
};

#define HEC_STACK_LEAST (512 << 10) /* bytes: with less on the stack (ulimit -s) hec would end by a signal */

struct hec_args;

struct hec_verb_info {
    const char *name;
    int (*function)(struct hec_args *args); /* an exit status, or a negative enum hec_err that it has reported */
    enum hec_operand operand;
    const char *usage, *line, *description;
};

struct hec_option_info {
    int letter;
    const char *name, *argument, *values;
    unsigned verbs;
    const char *help;
};

const struct hec_verb_info *hec_verb_info(enum hec_verb verb);
const struct hec_option_info *hec_option_info(enum hec_option option);
/* Its argument may be left out, and is never the next word: "[=SOCKET]". Such an option has no letter. */
bool hec_option_optional(const struct hec_option_info *option);
/* What it is to this verb. */
const char *hec_option_help(enum hec_option option, enum hec_verb verb);
enum hec_verb hec_verb_find(const char *name); /* HEC_VERB_COUNT if there is none */
/* The exit status for a negative enum hec_err of a verb with these arguments. */
int hec_args_status(const struct hec_args *args, int err);
/* The exit status of a verb that a signal asked to end: hec_verb_exit then ends by that signal, so that a shell's loop over it ends
 * too. */
int hec_ended_by(int signal_number);
/* Of a verb with a supervisor: an abandoned driver thread must not hold the exit up. */
_Noreturn void hec_verb_exit(int status);
int hec_verb_unknown(const char *word); /* says so, and which is probably meant; HEC_ERR_USAGE */

#define HEC_ARGS_MAX 256

struct hec_args {
    struct {
        enum hec_option option;
        const char *value; /* NULL for an option without argument */
    } given[HEC_ARGS_MAX];
    int given_count;
    char **rest; /* operands, NULL-terminated, inside argv */
    int rest_count;
    int after;      /* so many words follow "--"; -1: it is not there, -2: twice */
    char **command; /* what follows "--" of a verb whose operands are settings; NULL: nothing */
    enum hec_verb verb;
};

/* Parse argv (argv[0] is the verb); options and operands may be mixed, but for `run`, whose options end at the first
 * operand or "--". On wrong usage prints one sentence and returns
 * HEC_ERR_USAGE; --help prints the verb's help and returns 1: leave with status 0. */
int hec_args_parse(enum hec_verb verb, int argc, char **argv, struct hec_args *args);
/* Prints "VERB: WHAT; usage: hec VERB USAGE". HEC_ERR_USAGE. */
int hec_args_wrong(const struct hec_args *args, const char *what);
bool hec_args_has(const struct hec_args *args, enum hec_option option);
/* The last value given, or NULL. */
const char *hec_args_value(const struct hec_args *args, enum hec_option option);
/* A number within [minimum, maximum]; *value is untouched when the option was not given. Prints and returns HEC_ERR_USAGE
 * when it is no such number. */
int hec_args_number(const struct hec_args *args, enum hec_option option, double minimum, double maximum, double *value);

/* Print text on standard output. HEC_ERR_IO after an error message. */
int hec_print(const struct hec_buf *text);
/* The end of what makes a text and prints it: prints where err is HEC_OK, frees. */
int hec_print_made(struct hec_buf *text, int err);
/* A schema, as --schema asks for it. */
int hec_print_schema(int (*schema)(struct hec_buf *out));
/* Standard output could not be written, for the reason in errno: says so once, and returns HEC_ERR_IO. */
int hec_print_failed(void);

/* Loads a library of one verb (lib/NAME), whose libraries nothing else is to pay for; function: where the pointer to its entry goes. */
int hec_module_load(const char *name, const char *entry, void *function, struct hec_why *why);

/* How wide lines may be: COLUMNS, else the terminal's width; 0: neither is there. */
int hec_columns(int fd);

/* The word of a list that is probably meant: a letter away or two, or begun; NULL: none. NULL ends the list. */
const char *hec_nearest(const char *word, const char *const *list);

/* Print text folded at the width of the terminal, each line but the first indented; column is where the cursor is. */
void hec_help_fold(const char *text, int indent, int column);
void hec_help_print(void);              /* hec --help */
void hec_help_verb(enum hec_verb verb); /* hec VERB --help */
int hec_help_man(const char *page);     /* troff: "hec" or a verb; hidden verb __man, used by the build */
int hec_completion(const char *shell);  /* "bash" or "zsh"; hidden verb __completion */

#define HEC_VERB(id, name, function, operand, usage, line, description) int function(struct hec_args *args);
#include "cli/verbs.def"
#undef HEC_VERB
