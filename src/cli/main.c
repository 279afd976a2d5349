#include "base/log.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Wrong usage leaves with 2, as Unix tools do. */
static int usage_status(void) {
    return hec_err_exit_status(HEC_ERR_USAGE);
}

/* A standard stream that was closed must not become the number of a file that hec opens, or messages would be written
 * into it. It closes again when a command is started, which so finds it as it was. */
static void fill_closed_streams(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return;
}

int main(int argc, char **argv) {
    fill_closed_streams();
    if (argc < 2) {
        hec_help_print();
        return usage_status();
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 || strcmp(word, "version") == 0) {
        puts("hec " HEC_VERSION);
        return 0;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        enum hec_verb about = argc > 2 ? hec_verb_find(argv[2]) : HEC_VERB_COUNT;
        if (argc > 2 && about == HEC_VERB_COUNT) {
            hec_error("there is no verb \"%s\"; see `hec --help`", argv[2]);
            return usage_status();
        }
        if (about == HEC_VERB_COUNT)
            hec_help_print();
        else
            hec_help_verb(about);
        return 0;
    }
    if (strcmp(word, "__man") == 0 && argc == 3)
        return hec_help_man(argv[2]);
    if (strcmp(word, "__completion") == 0 && argc == 3)
        return hec_help_completion(argv[2]);
    enum hec_verb verb = hec_verb_find(word);
    if (verb == HEC_VERB_COUNT) {
        hec_error("there is no verb \"%s\"; see `hec --help`", word);
        return usage_status();
    }
    return hec_verb_info(verb)->function(argc - 1, argv + 1);
}
