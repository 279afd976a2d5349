/* Everything that is made from the two tables for a reader: --help, man pages, completion. */
#include "base/log.h"
#include "cli/cli.h"
#include "diagnose/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 80

/* Print text folded at WIDTH, each line but the first indented; column is where the cursor is. */
static void fold(const char *text, int indent, int column) {
    bool first = true;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (!first && column + 1 + word > WIDTH) {
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
    snprintf(text, size, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
}

void hec_help_verb(enum hec_verb verb) {
    const struct hec_verb_info *info = hec_verb_info(verb);
    printf("Usage: hec %s %s\n\n", info->name, info->usage);
    fold(info->description, 0, 0);
    puts("\nOptions:");
    for (int i = 0; i < HEC_OPT_COUNT; i++) {
        const struct hec_option_info *option = hec_option_info((enum hec_option)i);
        if (!(option->verbs & (1u << verb)))
            continue;
        char text[64];
        option_text(option, text, sizeof text);
        printf("  %-24s  ", text);
        fold(option->help, 28, 28);
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
        ".B hec run\nreturns the command's own status, 128+N when signal N ended it, 127 when it was not found and 126 "
        "when it could not be run.\nOther verbs return 0 on success, 2 on wrong usage, and the status of sysexits.h that "
        "fits: 65 damaged data, 66 no such file, 69 not supported, 74 I/O error, 75 busy (another run writes the file), "
        "77 permission denied.\n"
        ".SH ENVIRONMENT\n.TP\n.B HEC_PRICE, HEC_CARBON, HEC_GPU_HOUR\nDefaults of \\-\\-price, \\-\\-carbon and "
        "\\-\\-gpu\\-hour.\n.TP\n.B NO_COLOR\nNo colours when set.\n.TP\n.B CUDA_VISIBLE_DEVICES\nRead to tell which "
        "devices the command may use.");
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
            putchar(' ');
            troff(option->argument);
        }
        putchar('\n');
        troff(option->help);
        putchar('\n');
    }
    man_tail();
    puts(".SH SEE ALSO\n.BR hec (1)");
    return 0;
}

static void completion_options(enum hec_verb verb) {
    for (int i = 0; i < HEC_OPT_COUNT; i++)
        if (hec_option_info((enum hec_option)i)->verbs & (1u << verb))
            printf(" --%s", hec_option_info((enum hec_option)i)->name);
}

/* What `hec explain` takes. */
static void completion_causes(void) {
    for (int i = 0; i < HEC_CAUSE_COUNT; i++)
        printf("%s%s", i ? " " : "", hec_cause_name((enum hec_cause)i));
}

static int completion_bash(void) {
    puts("# bash completion for hec; made from hec's option table\n"
         "_hec() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} i\n"
         "    COMPREPLY=()\n"
         "    if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} == run ]]; then\n"
         "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "            if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
         "                if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); "
         "else COMPREPLY=($(compgen -c -f -- \"$cur\")); fi\n"
         "                return\n"
         "            fi\n"
         "        done\n"
         "    fi");
    fputs("    local verbs=\"", stdout);
    for (int i = 0; i < HEC_VERB_COUNT; i++)
        printf("%s%s", i ? " " : "", hec_verb_info((enum hec_verb)i)->name);
    puts("\"\n"
         "    if ((COMP_CWORD == 1)); then\n"
         "        COMPREPLY=($(compgen -W \"$verbs --help --version\" -- \"$cur\"))\n"
         "        return\n"
         "    fi\n"
         "    case ${COMP_WORDS[1]} in");
    for (int i = 0; i < HEC_VERB_COUNT; i++) {
        printf("    %s) [[ $cur == -* ]] && COMPREPLY=($(compgen -W \"", hec_verb_info((enum hec_verb)i)->name);
        completion_options((enum hec_verb)i);
        fputs("\" -- \"$cur\")) || COMPREPLY=($(compgen ", stdout);
        if (i == HEC_VERB_EXPLAIN) {
            fputs("-W \"", stdout);
            completion_causes();
            puts("\" -- \"$cur\")) ;;");
        } else {
            puts("-f -- \"$cur\")) ;;");
        }
    }
    puts("    esac\n}\ncomplete -o filenames -F _hec hec");
    return 0;
}

/* In a zsh _arguments specification, these would end the description. */
static void zsh_text(const char *text) {
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        if (*text == '\'')
            fputs("'\\'", stdout);
        putchar(*text);
    }
}

static int completion_zsh(void) {
    puts("#compdef hec\n# zsh completion for hec; made from hec's option table\n"
         "_hec() {\n    local -a verbs\n    verbs=(");
    for (int i = 0; i < HEC_VERB_COUNT; i++) {
        printf("        '%s:", hec_verb_info((enum hec_verb)i)->name);
        zsh_text(hec_verb_info((enum hec_verb)i)->line);
        puts("'");
    }
    puts("    )\n    if ((CURRENT == 2)); then\n        _describe 'verb' verbs\n        return\n    fi\n"
         "    local verb=$words[2]\n    shift words\n    ((CURRENT--))\n    case $verb in");
    for (int v = 0; v < HEC_VERB_COUNT; v++) {
        printf("    %s) _arguments -S", hec_verb_info((enum hec_verb)v)->name);
        for (int i = 0; i < HEC_OPT_COUNT; i++) {
            const struct hec_option_info *option = hec_option_info((enum hec_option)i);
            if (!(option->verbs & (1u << v)))
                continue;
            printf(" \\\n        '--%s[", option->name);
            zsh_text(option->help);
            putchar(']');
            if (option->argument) {
                putchar(':');
                zsh_text(option->argument);
                fputs(strcmp(option->argument, "FILE") == 0 ? ":_files" : ": ", stdout);
            }
            putchar('\'');
        }
        if (v == HEC_VERB_EXPLAIN) {
            fputs(" \\\n        '1:cause:(", stdout);
            completion_causes();
            puts(")' ;;");
        } else {
            fputs(v == HEC_VERB_RUN ? " \\\n        '*::command:_normal' ;;\n" : " \\\n        '*:file:_files' ;;\n",
                  stdout);
        }
    }
    puts("    esac\n}\n_hec \"$@\"");
    return 0;
}

int hec_help_completion(const char *shell) {
    if (strcmp(shell, "bash") == 0)
        return completion_bash();
    if (strcmp(shell, "zsh") == 0)
        return completion_zsh();
    hec_error("no completion for \"%s\": bash or zsh", shell);
    return hec_err_exit_status(HEC_ERR_USAGE);
}
