/* Everything that is made from the two tables for a reader: --help and man pages. */
#include "base/log.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDTH 80       /* where nothing says how wide lines are */
#define WIDTH_LEAST 60 /* options have a column of 28 */

void hec_help_fold(const char *text, int indent, int column) {
    int width = hec_columns(STDOUT_FILENO);
    width = width == 0 ? WIDTH : width < WIDTH_LEAST ? WIDTH_LEAST : width;
    bool first = true;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (!first && column + 1 + word > width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", word, text);
        column += word;
        text += word + (text[word] == ' ');
        first = false;
    }
    putchar('\n');
}

void hec_help_print(void) {
    puts("hec: where the joules of a GPU job go\n\nUsage: hec VERB [options] [arguments]\n\nVerbs:");
    for (int i = 0; i < HEC_VERB_COUNT; i++)
        printf("  %-9s %s\n", hec_verb_info((enum hec_verb)i)->name, hec_verb_info((enum hec_verb)i)->line);
    puts("\nBegin with:\n  hec run -- python train.py\n  hec doctor\n\n"
         "`hec VERB --help` explains a verb; `hec --version` prints the version.");
}

static void option_text(const struct hec_option_info *option, char *text, size_t size) {
    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(text, size, "%s--%s%s%s", letter, option->name,
             option->argument && !hec_option_optional(option) ? " " : "", option->argument ? option->argument : "");
}

void hec_help_verb(enum hec_verb verb) {
    const struct hec_verb_info *info = hec_verb_info(verb);
    printf("Usage: hec %s %s\n\n", info->name, info->usage);
    hec_help_fold(info->description, 0, 0);
    puts("\nOptions:");
    for (int i = 0; i < HEC_OPT_COUNT; i++) {
        const struct hec_option_info *option = hec_option_info((enum hec_option)i);
        if (!(option->verbs & (1u << verb)))
            continue;
        char text[64];
        option_text(option, text, sizeof text);
        int begins = printf("  %-24s  ", text);
        hec_help_fold(hec_option_help((enum hec_option)i, verb), 28, begins);
    }
}

/* troff: a backslash and a dash that must stay ASCII are escaped, a leading dot or quote is guarded. */
static void troff(const char *text) {
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void man_head(const char *title, const char *line) {
    char upper[64];
    snprintf(upper, sizeof upper, "%s", title);
    for (char *c = upper; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    printf(".TH \"%s\" 1 \"\" \"hec " HEC_VERSION "\" \"User Commands\"\n.SH NAME\n", upper);
    troff(title);
    fputs(" \\- ", stdout);
    troff(line);
    fputs("\n.SH SYNOPSIS\n", stdout);
}

static void man_tail(void) {
    puts(
        ".SH EXIT STATUS\n"
        ".B hec run\nends as the command does: with its status or by the signal that ended it, 127 when it was not found and 126 "
        "when it could not be run.\n.BR \"hec ab\" , \" hec try\" \" and \" \"hec sweep\"\nreturn 0 whatever is shown, 1 when the "
        "command failed (of a sweep: in every setting), 127 and 126 as hec run, and after a signal to end they end by that (shells say "
        "128+N).\n.BR \"hec check\" \" and \" "
        "\"hec verify\"\nsay theirs in their descriptions.\nOther verbs return 0 on success, 2 on wrong usage, and the status of "
        "sysexits.h that fits: 65 damaged data, 66 no such file, 69 not supported, 74 I/O error, 75 busy (another run writes the file), "
        "77 permission denied.\n"
        ".SH ENVIRONMENT\n.TP\n.B HEC_PRICE, HEC_CARBON, HEC_GPU_HOUR\nDefaults of \\-\\-price, \\-\\-carbon and "
        "\\-\\-gpu\\-hour.\n.TP\n.B NO_COLOR\nNo colours when set.\n"
        ".TP\n.B COLUMNS\nWidth of lines; else that of the terminal, at most 120, else 80.\n"
        ".TP\n.B CUDA_VISIBLE_DEVICES\nRead to find out which devices the command may use.");
}

static int man_main(void) {
    man_head("hec", "where the joules of a GPU job go");
    puts(
        ".B hec\n.I VERB\n[options] [arguments]\n.SH DESCRIPTION\nHEC observes a command beside it, with no change to it, and "
        "says what it cost: joules per unit of work, and what the GPU and the host did meanwhile.\nEvery figure comes with "
        "how it was measured and how far it may be off; what was not measured is said to be missing.\n.SH VERBS");
    for (int i = 0; i < HEC_VERB_COUNT; i++) {
        const struct hec_verb_info *info = hec_verb_info((enum hec_verb)i);
        printf(".TP\n.BR hec\\-%s (1)\n", info->name);
        troff(info->line);
        putchar('\n');
    }
    man_tail();
    return 0;
}

int hec_help_man(const char *page) {
    if (strcmp(page, "hec") == 0)
        return man_main();
    enum hec_verb verb = hec_verb_find(page);
    if (verb == HEC_VERB_COUNT) {
        hec_error("there is no verb \"%s\"", page);
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    const struct hec_verb_info *info = hec_verb_info(verb);
    char title[64];
    snprintf(title, sizeof title, "hec-%s", info->name);
    man_head(title, info->line);
    printf(".B hec %s\n", info->name);
    troff(info->usage);
    fputs("\n.SH DESCRIPTION\n", stdout);
    troff(info->description);
    fputs("\n.SH OPTIONS\n", stdout);
    for (int i = 0; i < HEC_OPT_COUNT; i++) {
        const struct hec_option_info *option = hec_option_info((enum hec_option)i);
        if (!(option->verbs & (1u << verb)))
            continue;
        fputs(".TP\n.B ", stdout);
        if (option->letter)
            printf("\\-%c, ", option->letter);
        fputs("\\-\\-", stdout);
        troff(option->name);
        if (option->argument) {
            if (!hec_option_optional(option))
                putchar(' ');
            troff(option->argument);
        }
        putchar('\n');
        troff(hec_option_help((enum hec_option)i, verb));
        putchar('\n');
    }
    man_tail();
    puts(".SH SEE ALSO\n.BR hec (1)");
    return 0;
}
