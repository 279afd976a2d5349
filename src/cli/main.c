#include "jobs/window.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* A standard stream that was closed must not become the number of a file that hec opens, or messages would be written
 * into it. It closes again when a command is started, which so finds it as it was. */
static void fill_closed_streams(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return;
}

static bool is(const char *word, const char *letter, const char *option, const char *verb) {
    return strcmp(word, letter) == 0 || strcmp(word, option) == 0 || (verb && strcmp(word, verb) == 0);
}

static int help(const char *name) {
    enum hec_verb verb = name ? hec_verb_find(name) : HEC_VERB_COUNT;
    if (name && verb == HEC_VERB_COUNT)
        return hec_err_exit_status(hec_verb_unknown(name));
    if (name)
        hec_help_verb(verb);
    else
        hec_help_print();
    return 0;
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        hec_help_print();
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    /* `hec -v VERB` is `hec VERB -v` */
    if (argc > 2 && is(argv[1], "-v", "--verbose", NULL)) {
        char *verbose = argv[1];
        argv[1] = argv[2];
        argv[2] = verbose;
    }
    const char *word = argv[1];
    if (is(word, "-V", "--version", "version")) {
        puts("hec " HEC_VERSION);
        return 0;
    }
    if (is(word, "-h", "--help", "help"))
        return help(argv[2]);
    if (strcmp(word, "__man") == 0 && argc == 3)
        return hec_help_man(argv[2]);
    if (strcmp(word, HEC_WINDOW_VERB) == 0 && argc == 2)
        return hec_window_main();
    if (strcmp(word, "__completion") == 0 && argc == 3)
        return hec_completion(argv[2]);
    if (is(word, "-v", "--verbose", NULL)) {
        hec_error("%s goes with a verb: `hec %s VERB`; `hec --version` prints the version", word, word);
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    enum hec_verb verb = hec_verb_find(word);
    if (verb == HEC_VERB_COUNT)
        return hec_err_exit_status(hec_verb_unknown(word));
    return hec_verb_info(verb)->function(argc - 1, argv + 1);
}

/* A full disk must not look like success, no matter what a verb prints and how. */
int main(int argc, char **argv) {
    fill_closed_streams();
    int status = dispatch(argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    int err = hec_print_failed();
    return status ? status : hec_err_exit_status(err);
}
