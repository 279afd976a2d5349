/* hec attach: a report of a program that runs already, from what can be seen of it without touching it. */
#include "base/log.h"
#include "cli/load.h"
#include "cli/output.h"
#include "launch/running.h"
#include "report/run/report.h"
#include "store/create.h"
#include "store/reader.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECONDS_DEFAULT 10
#define SECONDS_MOST 3600
#define COMMAND_MAX 1024
#define REPORT_MOST (64u << 20)

static volatile sig_atomic_t asked_to_end;

static void on_signal(int signal_number) {
    (void)signal_number;
    asked_to_end = 1;
}

/* What it is started to ignore, as nohup does, it goes on ignoring. */
static void end_on_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}, before;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

static int process_of(const struct hec_args *args, pid_t *pid) {
    char *end;
    if (args->rest_count != 1)
        return hec_args_wrong(args, args->rest_count ? "more than one PID" : "no PID");
    errno = 0;
    long number = strtol(args->rest[0], &end, 10);
    if (!isdigit((unsigned char)args->rest[0][0]) || *end || errno || number <= 0 || number > INT_MAX) {
        hec_error("attach: \"%s\" is not the id of a process", args->rest[0]);
        return HEC_ERR_USAGE;
    }
    *pid = (pid_t)number;
    return HEC_OK;
}

static const char *name_of(uid_t uid, char out[64]) {
    const struct passwd *user = getpwuid(uid);
    snprintf(out, 64, "%s", user ? user->pw_name : "");
    if (!user)
        snprintf(out, 64, "%u", (unsigned)uid);
    return out;
}

/* Opens the process: it stays the same one. */
static int open_process(pid_t pid, int *pid_fd, struct hec_why *why) {
    char path[64], program[PATH_MAX], user[64];
    struct stat status;
    *pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int error = errno;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &status) != 0 || (*pid_fd < 0 && error == ESRCH))
        return hec_fail(why, HEC_ERR_NOTFOUND, "there is no process %d", (int)pid);
    if (*pid_fd < 0)
        return hec_fail(why, HEC_ERR_NOTFOUND, "%d is no process of its own: %s", (int)pid, strerror(error));
    if (pid == getpid())
        return hec_fail(why, HEC_ERR_USAGE, "%d is this hec", (int)pid);
    if (geteuid() != 0 && status.st_uid != geteuid())
        return hec_fail(why, HEC_ERR_PERMISSION, "process %d is of another user (%s): run hec as that user, or as root",
                        (int)pid, name_of(status.st_uid, user));
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (readlink(path, program, sizeof program) < 0 && errno == ENOENT)
        return hec_fail(why, HEC_ERR_NOTFOUND, "process %d has ended, or is one of the kernel's", (int)pid);
    return HEC_OK;
}

/* Its command line, as of a run: words that need it are not quoted. */
static void command_of(pid_t pid, char command[COMMAND_MAX]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(command, 1, COMMAND_MAX - 1, file) : 0;
    if (file)
        fclose(file);
    while (length > 0 && command[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++)
        if (command[i] == '\0')
            command[i] = ' ';
    command[length] = '\0';
    if (!length)
        snprintf(command, COMMAND_MAX, "process %d", (int)pid);
}

static int print(const struct hec_args *args, const struct hec_image *image, const char *path, struct hec_why *why) {
    struct hec_price price;
    struct hec_report_style style;
    struct hec_summary summary;
    struct hec_reader *reader;
    struct hec_buf text;
    int err = hec_load_price(args, &price);
    if (err == HEC_OK)
        err = hec_load_style(args, STDOUT_FILENO, &style);
    if (err == HEC_OK)
        err = hec_reader_open_image(image, path, &reader, why);
    if (err == HEC_OK)
        err = hec_load_summary_reader(reader, path, args, &price, &summary, why);
    if (err < 0)
        return err;
    style.all = hec_args_has(args, HEC_OPT_VERBOSE);
    hec_buf_init(&text, REPORT_MOST);
    err = hec_args_has(args, HEC_OPT_JSON) ? hec_report_json(&summary, 1, &text)
                                           : hec_report_terminal(&summary, &style, &text);
    if (err == HEC_OK)
        fputs(hec_buf_text(&text), stdout);
    hec_buf_free(&text);
    hec_summary_free(&summary);
    return err;
}

static int attach(const struct hec_args *args, struct hec_why *why) {
    struct hec_running_options options = {
        .pid_fd = -1, .attached = true, .stop = &asked_to_end, .seconds = SECONDS_DEFAULT};
    struct hec_image image = {0};
    char path[PATH_MAX] = "", command[COMMAND_MAX];
    double seconds;
    int err = process_of(args, &options.root);
    if (err == HEC_OK)
        err = hec_args_number(args, HEC_OPT_SECONDS, 0.1, SECONDS_MOST, &options.seconds);
    if (err == HEC_OK)
        err = hec_output_path(args, false, path, why);
    if (err == HEC_OK && path[0])
        err = hec_create_check(path, hec_args_has(args, HEC_OPT_FORCE), why);
    if (err == HEC_OK)
        err = open_process(options.root, &options.pid_fd, why);
    if (err < 0)
        return err;
    command_of(options.root, command);
    options.job = command;
    end_on_signals();
    err = hec_running_record(&options, &image, &seconds, why);
    if (err == HEC_OK && path[0])
        err = hec_create_write(path, hec_args_has(args, HEC_OPT_FORCE), &image, why);
    if (err == HEC_OK && !hec_args_has(args, HEC_OPT_QUIET))
        err = print(args, &image, path, why);
    return err;
}

int hec_verb_attach(struct hec_args *args) {
    struct hec_why why = {""};
    int err =
        hec_args_has(args, HEC_OPT_UNIT)
            ? hec_fail(
                  &why, HEC_ERR_USAGE,
                  "--unit: what a program prints that runs already goes where it goes, and cannot be read beside; hec run, ab, "
                  "try, check and sweep read it of what they start")
            : attach(args, &why);
    if (err < 0 && why.text[0])
        hec_error("attach: %s", why.text);
    fflush(NULL);
    _exit(err < 0 ? hec_err_exit_status(err) : 0); /* a driver's thread that hangs must not hold the exit up */
}
