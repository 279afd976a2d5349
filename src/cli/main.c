#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/exporter.h"
#include "cli/load.h"
#include "jobs/jobs.h"
#include "jobs/window.h"
#include "launch/child.h"
#include "launch/running.h"
#include "launch/supervisor.h"
#include "report/words/reasons.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* `hec __window`, hidden: records and analyses some seconds of a job for the node's agent (jobs/window.h). */

static double known(double value) {
    return value >= 0 && isfinite(value) ? value : 0;
}

/* In a window, what lies before the first and after the last activity is no start-up and no end of the job. */
static enum hec_state state_of(int state) {
    return state == HEC_STATE_STARTUP || state == HEC_STATE_TAIL ? HEC_STATE_UNKNOWN : (enum hec_state)state;
}

static void add_device(const struct hec_device_diagnosis *device, struct hec_window_result *out) {
    const struct hec_ledger_device *ledger = device->ledger;
    if (!device->readings.used || !ledger || out->device_count == HEC_WINDOW_DEVICES)
        return;
    struct hec_window_device *to = &out->device[out->device_count++];
    bool priced = true;
    memset(to, 0, sizeof *to);
    snprintf(to->uuid, sizeof to->uuid, "%s", device->readings.device.uuid);
    to->index = device->readings.device.index;
    for (int state = 0; state < HEC_STATE_COUNT; state++) {
        const struct hec_ledger_row *row = &ledger->rows[state];
        to->seconds[state_of(state)] += known(row->seconds);
        to->joules[state_of(state)] += known(row->joules);
        priced = priced && (row->ns == 0 || isfinite(row->joules));
    }
    for (int state = 0; state < HEC_STATE_COUNT && !priced; state++)
        to->joules[state] = NAN;
}

static void add_finding(const struct hec_summary *summary, struct hec_window_result *out) {
    if (summary->job.findings.count == 0)
        return;
    const struct hec_finding *first = &summary->job.findings.list[0];
    out->cause = (int)first->cause;
    out->recoverable = first->cause == HEC_CAUSE_NONE || first->cause == HEC_CAUSE_QUIET ? 0 : first->joules.best;
    out->confidence = first->confidence;
}

static void summarise(const struct hec_summary *summary, struct hec_window_result *out) {
    for (int i = 0; i < summary->device_count; i++)
        add_device(&summary->devices[i], out);
    add_finding(summary, out);
    for (int i = 0; i < summary->unit_count && out->unit_count < HEC_WINDOW_UNITS; i++) {
        const struct hec_unit_summary *unit = &summary->units[i];
        if (unit->is_default)
            continue;
        hec_text_clean(out->unit[out->unit_count].name, sizeof out->unit[0].name, unit->name, strlen(unit->name), true);
        out->unit[out->unit_count++].count = known(unit->count);
    }
    out->lost = summary->trace.lost > 0 ? (uint64_t)summary->trace.lost : 0;
    if (out->device_count == 0)
        snprintf(out->why, sizeof out->why, "%.150s",
                 summary->energy_unavailable.id ? HEC_SAY(&summary->energy_unavailable)
                                                : "the job used no device in it");
}

/* A file in memory with the run; -1: no memory. */
static int file_of(const struct hec_image *image) {
    int fd = memfd_create("hec-run", MFD_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < image->length;) {
        ssize_t wrote = write(fd, image->bytes + at, image->length - at);
        if (wrote <= 0) {
            close(fd);
            return -1;
        }
        at += (size_t)wrote;
    }
    return fd;
}

static volatile sig_atomic_t enough;

static void has_enough(int signal) {
    enough = signal;
}

static int record(const struct hec_window_plan *plan, const int *fds, struct hec_window_result *result, int *file,
                  struct hec_why *why) {
    static struct hec_observe_ring rings[HEC_WINDOW_RINGS]; /* an abandoned lane may still read them */
    struct hec_image image = {0};
    struct hec_reader *reader;
    struct hec_summary summary = {0};
    struct hec_price price = hec_price_default();
    struct hec_args none = {0};
    for (int i = 0; i < plan->ring_count; i++)
        rings[i] = (struct hec_observe_ring){fds[i], plan->ring_pid[i]};
    struct hec_running_options options = {.rings = rings,
                                          .ring_count = plan->ring_count,
                                          .root = plan->root,
                                          .owner = plan->mixed ? NULL : &plan->owner,
                                          .seconds = plan->seconds,
                                          .stop = &enough,
                                          .job = plan->job,
                                          .simulated = plan->simulated[0] ? plan->simulated : NULL,
                                          .nvml_path = plan->nvml_path[0] ? plan->nvml_path : NULL};
    int err = hec_running_record(&options, &image, &result->seconds, why);
    if (err == HEC_OK && plan->wants_file && (*file = file_of(&image)) < 0)
        err = hec_fail(why, HEC_ERR_NOMEM, "no memory for the run file of a window");
    if (err == HEC_OK)
        err = hec_reader_open_image(&image, "", &reader, why);
    if (err == HEC_OK)
        err = hec_load_summary_reader(reader, "", &none, &price, &summary, why);
    if (err == HEC_OK)
        summarise(&summary, result);
    return err;
}

static int window_main(void) {
    static struct hec_window_plan plan;
    static int rings[HEC_WINDOW_RINGS];
    static struct hec_window_result result = {
        .magic = HEC_WINDOW_MAGIC, .cause = -1, .recoverable = NAN, .confidence = NAN};
    struct hec_why why = {""};
    int file = -1;
    setpriority(PRIO_PROCESS, 0, HEC_JOBS_NICE);
    hec_window_when_enough(has_enough);
    if (hec_window_receive(&plan, rings) != HEC_OK) {
        hec_error(HEC_WINDOW_VERB ": this verb is for the agent of a node");
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    int err = record(&plan, rings, &result, &file, &why);
    if (err < 0) {
        result.seconds = 0;
        snprintf(result.why, sizeof result.why, "%.*s", (int)sizeof result.why - 1, why.text);
    }
    err = hec_window_send(&result, file);
    _exit(err < 0 ? 1 : 0); /* an abandoned lane of the driver must not hold it up */
}

/* A standard stream that was closed must not become the number of a file that hec opens, or messages would be written
 * into it. It closes again when a command is started, which so finds it as it was. */
static void fill_closed_streams(void) {
    for (int fd = 0; fd < 3; fd++) /* what is written there fails, as if it were closed still */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) < 0)
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

/* Every failure has a sentence; what had no memory may have had none for that either. */
static int failed(const struct hec_args *args, int err) {
    if (err == HEC_ERR_NOMEM && !hec_log_has_error())
        hec_error("no memory");
    return hec_args_status(args, err);
}

/* `hec run` starts its command without observing it instead. */
static bool has_stack(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= HEC_STACK_LEAST)
        return true;
    hec_error("only %lu KiB may be on the stack (ulimit -s), and hec takes %d", (unsigned long)(limit.rlim_cur / 1024),
              HEC_STACK_LEAST / 1024);
    return false;
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
        return window_main();
    if (strcmp(word, "__completion") == 0 && argc == 3)
        return hec_completion(argv[2]);
    if (is(word, "-v", "--verbose", NULL)) {
        hec_error("%s goes with a verb: `hec %s VERB`; `hec --version` prints the version", word, word);
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    enum hec_verb verb = hec_verb_find(word);
    if (verb == HEC_VERB_COUNT)
        return hec_err_exit_status(hec_verb_unknown(word));
    struct hec_args args;
    if (verb != HEC_VERB_RUN && !has_stack())
        return hec_err_exit_status(HEC_ERR_NOMEM);
    enum hec_operand operand = hec_verb_info(verb)->operand;
    hec_child_shield(operand == HEC_OPERAND_COMMAND || operand == HEC_OPERAND_SETTINGS || verb == HEC_VERB_VERIFY);
    argc--;
    argv++;
    if (verb == HEC_VERB_AGENT)
        hec_exporter_arguments(&argc, argv);
    int status = hec_args_parse(verb, argc, argv, &args);
    if (status != HEC_OK)
        return status > 0 ? 0 : failed(&args, status);
    return (status = hec_verb_info(verb)->function(&args)) < 0 ? failed(&args, status) : status;
}

static int ended_by;

int hec_ended_by(int signal_number) {
    ended_by = signal_number;
    return 128 + signal_number;
}

void hec_verb_exit(int status) {
    fflush(NULL);
    hec_supervisor_exit(ended_by && status == 128 + ended_by ? ended_by : 0, status);
}

/* Why an earlier write failed, of which nothing may be left to be written at the end; 0: what is in errno came of something else. */
static int why_unwritten(void) {
    static const int reasons[] = {ENOSPC, EDQUOT, EIO, EFBIG, EPIPE, EBADF, EAGAIN};
    for (size_t i = 0; ferror(stdout) && i < sizeof reasons / sizeof reasons[0]; i++)
        if (errno == reasons[i])
            return reasons[i];
    return 0;
}

/* A full disk must not look like success, no matter what a verb prints and how. */
int main(int argc, char **argv) {
    fill_closed_streams();
    int status = dispatch(argc, argv), before = why_unwritten();
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    errno = errno ? errno : before;
    int err = hec_print_failed();
    return status ? status : hec_err_exit_status(err);
}
