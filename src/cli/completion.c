/* Completion for bash and zsh, made from the tables of verbs and options. */
#include "act/levers.h"
#include "base/log.h"
#include "cli/cli.h"
#include "diagnose/finding.h"
#include "sim/case.h"

#include <stdio.h>
#include <string.h>

static bool takes(int verb, const struct hec_option_info *option) {
    return option->verbs & (1u << verb);
}

static bool is_file(const struct hec_option_info *option) {
    return (option->argument && strcmp(option->argument, "FILE") == 0) ||
           (option->values && strcmp(option->values, "FILE") == 0);
}

/* The words that its argument may be; NULL: any, or a file. */
static const char *values_of(const struct hec_option_info *option) {
    return is_file(option) ? NULL : option->values;
}

/* The words that an operand of this kind may be, separated by spaces; nothing: any, or none. */
static void print_words(enum hec_operand operand) {
    if (operand == HEC_OPERAND_CAUSE) {
        for (int i = 0; i < HEC_CAUSE_COUNT; i++)
            printf("%s ", hec_cause_name((enum hec_cause)i));
        printf("words parallelism");
    }
    if (operand == HEC_OPERAND_LEVER)
        for (int i = 0; hec_lever_row(i); i++)
            printf("%s%s", i ? " " : "", hec_lever_row(i)->name);
    if (operand == HEC_OPERAND_CASE)
        for (int i = 0; i < sim_case_count(); i++)
            printf("%s%s", i ? " " : "", sim_case_at(i)->name);
}

/* ---- bash ---- */

/* " --output -o --units -u ...", the options whose next word is theirs. */
static void bash_valued(int verb) {
    printf("    %s) valued='", hec_verb_info((enum hec_verb)verb)->name);
    for (int i = 0; i < HEC_OPT_COUNT; i++) {
        const struct hec_option_info *option = hec_option_info((enum hec_option)i);
        if (!takes(verb, option) || !option->argument || hec_option_optional(option))
            continue;
        printf(" --%s", option->name);
        if (option->letter)
            printf(" -%c", option->letter);
    }
    puts(" ' ;;");
}

/* What an option's argument may be, for any verb. */
static void bash_arguments(void) {
    for (int i = 0; i < HEC_OPT_COUNT; i++) {
        const struct hec_option_info *option = hec_option_info((enum hec_option)i);
        const char *values = values_of(option);
        if (!values && !is_file(option))
            continue;
        printf("        --%s", option->name);
        if (option->letter)
            printf(" | -%c", option->letter);
        if (values && strcmp(option->argument, "LEVERS") == 0) /* the last of several, with commas between */
            printf(
                ") [[ $cur == *,* ]] && head=${cur%%,*},; COMPREPLY=($(compgen -P \"$head\" -W \"%s\" -- \"${cur##*,}\")) ;;\n",
                values);
        else if (values)
            printf(") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")) ;;\n", values);
        else
            puts(") COMPREPLY=($(compgen -f -- \"$cur\")) ;;");
    }
}

static void bash_operands(int verb) {
    const struct hec_verb_info *info = hec_verb_info((enum hec_verb)verb);
    printf("    %s) ", info->name);
    switch (info->operand) {
    case HEC_OPERAND_NONE:
        puts(";;");
        break;
    case HEC_OPERAND_COMMAND:
    case HEC_OPERAND_SETTINGS:
        puts("COMPREPLY=($(compgen -c -f -- \"$cur\")) ;;");
        break;
    case HEC_OPERAND_RUN:
        puts("COMPREPLY=($(compgen -f -X '!*.hec' -- \"$cur\") $(compgen -d -- \"$cur\")) ;;");
        break;
    case HEC_OPERAND_FILE:
        puts("COMPREPLY=($(compgen -f -- \"$cur\")) ;;");
        break;
    case HEC_OPERAND_PROCESS:
        puts("COMPREPLY=($(compgen -W \"$(ps -u $UID -o pid=)\" -- \"$cur\")) ;;");
        break;
    default:
        fputs("COMPREPLY=($(compgen -W \"", stdout);
        print_words(info->operand);
        puts("\" -- \"$cur\")) ;;");
    }
}

static int bash(void) {
    puts(
        "# bash completion for hec; made from hec's tables of verbs and options\n"
        "_hec() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} valued= head= i\n"
        "    COMPREPLY=()");
    fputs("    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W \"", stdout);
    for (int v = 0; v < HEC_VERB_COUNT; v++)
        printf("%s ", hec_verb_info((enum hec_verb)v)->name);
    puts("--help --version\" -- \"$cur\"))\n        return\n    fi\n"
         "    case $verb in");
    for (int v = 0; v < HEC_VERB_COUNT; v++)
        bash_valued(v);
    puts("    esac\n"
         "    # what follows the first operand of these is the command's; of sweep, what follows \"--\"\n"
         "    case $verb in");
    fputs("    ", stdout);
    for (int v = 0, count = 0; v < HEC_VERB_COUNT; v++)
        if (hec_verb_info((enum hec_verb)v)->operand == HEC_OPERAND_COMMAND ||
            hec_verb_info((enum hec_verb)v)->operand == HEC_OPERAND_SETTINGS)
            printf("%s%s", count++ ? " | " : "", hec_verb_info((enum hec_verb)v)->name);
    puts(")\n"
         "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "            if [[ $valued == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
         "                [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))\n"
         "                ((i++))\n"
         "            elif [[ (${COMP_WORDS[i]} != -?* && $verb != sweep) || ${COMP_WORDS[i]} == -- ]]; then\n"
         "                [[ ${COMP_WORDS[i]} == -- ]] && ((i++))\n"
         "                if declare -F _command_offset >/dev/null; then _command_offset \"$i\"\n"
         "                else COMPREPLY=($(compgen -c -f -- \"$cur\")); fi\n"
         "                return\n"
         "            fi\n"
         "        done ;;\n"
         "    esac\n"
         "    # bash splits --option=value at the \"=\"\n"
         "    if [[ $cur == = ]]; then cur=\n"
         "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
         "    if [[ $valued == *\" $prev \"* ]]; then\n"
         "        case $prev in");
    bash_arguments();
    puts("        esac\n"
         "        return\n"
         "    fi\n"
         "    if [[ $cur == -* ]]; then\n"
         "        case $verb in");
    for (int v = 0; v < HEC_VERB_COUNT; v++) {
        printf("        %s) COMPREPLY=($(compgen -W \"", hec_verb_info((enum hec_verb)v)->name);
        for (int i = 0; i < HEC_OPT_COUNT; i++)
            if (takes(v, hec_option_info((enum hec_option)i)))
                printf("--%s ", hec_option_info((enum hec_option)i)->name);
        puts("\" -- \"$cur\")) ;;");
    }
    puts("        esac\n"
         "        return\n"
         "    fi\n"
         "    case $verb in");
    for (int v = 0; v < HEC_VERB_COUNT; v++)
        bash_operands(v);
    puts("    esac\n}\ncomplete -o filenames -F _hec hec");
    return 0;
}

/* ---- zsh ---- */

/* In a specification of _arguments, these would end the description. */
static void zsh_text(const char *text) {
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        if (*text == '\'')
            fputs("'\\'", stdout);
        putchar(*text);
    }
}

static void zsh_option(enum hec_option id, int verb) {
    const struct hec_option_info *option = hec_option_info(id);
    printf(" \\\n        '--%s[", option->name);
    zsh_text(hec_option_help(id, (enum hec_verb)verb));
    putchar(']');
    if (option->argument && !hec_option_optional(option)) {
        putchar(':');
        zsh_text(option->argument);
        if (values_of(option))
            printf(":(%s)", values_of(option));
        else
            fputs(is_file(option) ? ":_files" : ": ", stdout);
    }
    putchar('\'');
}

static void zsh_operands(enum hec_operand operand) {
    switch (operand) {
    case HEC_OPERAND_NONE:
        puts(" ;;");
        break;
    case HEC_OPERAND_COMMAND:
    case HEC_OPERAND_SETTINGS:
        puts(" \\\n        '*::command:_normal' ;;");
        break;
    case HEC_OPERAND_RUN:
        puts(" \\\n        '*:run file:_files -g \"*.hec\"' ;;");
        break;
    case HEC_OPERAND_FILE:
        puts(" \\\n        '*:file:_files' ;;");
        break;
    case HEC_OPERAND_PROCESS:
        puts(" \\\n        '1:process:_pids' ;;");
        break;
    default:
        printf(" \\\n        '1:%s:(", operand == HEC_OPERAND_CASE    ? "case"
                                       : operand == HEC_OPERAND_LEVER ? "lever"
                                                                      : "cause");
        print_words(operand);
        puts(")' ;;");
    }
}

static int zsh(void) {
    puts("#compdef hec\n# zsh completion for hec; made from hec's tables of verbs and options\n"
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
        for (int i = 0; i < HEC_OPT_COUNT; i++)
            if (takes(v, hec_option_info((enum hec_option)i)))
                zsh_option((enum hec_option)i, v);
        zsh_operands(hec_verb_info((enum hec_verb)v)->operand);
    }
    puts("    esac\n}\n_hec \"$@\"");
    return 0;
}

int hec_completion(const char *shell) {
    if (strcmp(shell, "bash") == 0)
        return bash();
    if (strcmp(shell, "zsh") == 0)
        return zsh();
    hec_error("no completion for \"%s\": bash or zsh", shell);
    return hec_err_exit_status(HEC_ERR_USAGE);
}
