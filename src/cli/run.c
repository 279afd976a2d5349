/* hec run: observe a command (launch/session.h) and report the run. The command comes first: whatever fails here, it runs,
 * unless what failed was asked for by name (an output file, a simulated GPU). */
#include "base/clock.h"
#include "base/log.h"
#include "act/apply.h"
#include "act/tuner.h"
#include "cli/live.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/when.h"
#include "cli/with.h"
#include "jobs/jobs.h"
#include "launch/child.h"
#include "launch/environ.h"
#include "launch/inject.h"
#include "launch/session.h"
#include "observe/marks/marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct run {
    struct hec_args args;
    struct hec_price price;
    struct hec_report_style style;
    struct hec_session_options options;
    struct hec_buf knobs, units;
    struct hec_printed_unit printed[HEC_PRINTED_MAX];
    struct hec_applied applied;
    struct hec_power_guard *guard;
    struct hec_live *live;
    struct hec_lever_set levers;
    struct hec_tuner_options tuning;
    struct hec_tuner *tuner;
    struct hec_waiting waiting;
    char output[PATH_MAX];
};

/* The options that may be repeated. */
static int parse_lists(struct run *run) {
    hec_buf_init(&run->knobs, HEC_MARKS_KNOBS_MAX + 1);
    hec_buf_init(&run->units, 65536);
    for (int i = 0; i < run->args.given_count; i++) {
        char name[64];
        double count;
        int err;
        struct hec_why why;
        const char *value = run->args.given[i].value;
        if (run->args.given[i].option == HEC_OPT_UNITS) {
            if ((err = hec_load_unit(value, name, &count)) < 0)
                return err;
            hec_buf_printf(&run->units, "%s%s=%.17g", run->units.length ? ";" : "", name, count);
        } else if (run->args.given[i].option == HEC_OPT_KNOB &&
                   (err = hec_marks_knob_add(&run->knobs, value, &why)) < 0) {
            hec_error("run: --knob %s: %s", value, why.text);
            return err;
        }
    }
    run->options.knobs = hec_buf_text(&run->knobs);
    run->options.units = hec_buf_text(&run->units);
    run->options.printed = run->printed;
    return hec_load_printed(&run->args, "run", run->printed, &run->options.printed_count);
}

/* --tune, without the device. */
static int parse_tuner(struct run *run) {
    const char *what = hec_args_value(&run->args, HEC_OPT_TUNE);
    double harm = 1, slowdown = 5, hours = 0, steps = 0;
    const struct {
        enum hec_option option;
        double least, most, *value;
    } numbers[] = {{HEC_OPT_MAX_HARM, 0.01, 20, &harm},
                   {HEC_OPT_MAX_SLOWDOWN, 0, 50, &slowdown},
                   {HEC_OPT_HOURS, 0.001, 1e5, &hours},
                   {HEC_OPT_STEPS, 1, 1e12, &steps}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (hec_args_number(&run->args, numbers[i].option, numbers[i].least, numbers[i].most, numbers[i].value) < 0)
            return HEC_ERR_USAGE;
        if (hec_args_has(&run->args, numbers[i].option) && !hec_args_has(&run->args, HEC_OPT_TUNE))
            return hec_args_wrong(&run->args, "--max-harm, --max-slowdown, --hours and --steps go with --tune");
    }
    if (!hec_args_has(&run->args, HEC_OPT_TUNE))
        return HEC_OK;
    if (what && what[0] && strcmp(what, "exact") != 0)
        return hec_args_wrong(&run->args, "--tune takes exact alone");
    run->tuning = (struct hec_tuner_options){.simulated = hec_args_value(&run->args, HEC_OPT_SIM),
                                             .visible = getenv("CUDA_VISIBLE_DEVICES"),
                                             .harm_most = harm / 100,
                                             .slowdown_most = slowdown / 100,
                                             .seconds = 3600 * hours,
                                             .steps = steps};
    return HEC_OK;
}

/* The guard that --with or --tune needs. Nothing of a device is changed. */
static int open_guard(struct run *run) {
    bool tune = hec_args_has(&run->args, HEC_OPT_TUNE);
    struct hec_why why = {""};
    int err = hec_with_parse(&run->args, &run->levers);
    if (err == HEC_OK && run->levers.count)
        err = hec_with_guard(&run->args, &run->levers, hec_args_value(&run->args, HEC_OPT_SIM), &run->guard);
    if (err < 0 || !tune)
        return err;
    if (run->guard)
        return hec_args_wrong(&run->args, "--tune sets limits of devices, and so does --with");
    const struct hec_power_options power = {.simulated = run->tuning.simulated,
                                            .visible = run->tuning.visible,
                                            .allowed = hec_args_has(&run->args, HEC_OPT_ALLOW_POWER)};
    if ((err = hec_power_guard_open(&power, &run->guard, &why)) < 0)
        hec_error("--tune: %s", why.text);
    return err;
}

static const char *agent_socket(const struct run *run) {
    const char *given = hec_args_value(&run->args, HEC_OPT_AGENT);
    return given ? given : HEC_JOBS_SOCKET;
}

/* The options that go with --agent. */
static int check_agent(const struct run *run) {
    static const bool fits[HEC_OPT_COUNT] = {
        [HEC_OPT_AGENT] = true,      [HEC_OPT_TRACE] = true,      [HEC_OPT_TRACE_MEMORY] = true,
        [HEC_OPT_HOOKS] = true,      [HEC_OPT_KNOB] = true,       [HEC_OPT_WITH] = true,
        [HEC_OPT_VERBOSE] = true,    [HEC_OPT_WHEN] = true,       [HEC_OPT_CARBON_FILE] = true,
        [HEC_OPT_PRICE_FILE] = true, [HEC_OPT_UNTIL_TIME] = true,
    };
    if (!hec_args_has(&run->args, HEC_OPT_AGENT))
        return HEC_OK;
    for (int i = 0; i < run->args.given_count; i++)
        if (!fits[run->args.given[i].option]) {
            hec_error("run: --%s is for a run of its own, not with --agent",
                      hec_option_info(run->args.given[i].option)->name);
            return HEC_ERR_USAGE;
        }
    if (agent_socket(run)[0] != '/') {
        hec_error("run: --agent needs the absolute path of a socket");
        return HEC_ERR_USAGE;
    }
    return HEC_OK;
}

/* What was asked for by name is there, or the command does not run. */
static int put_levers(struct run *run) {
    struct hec_why why = {""};
    if (!run->levers.count)
        return HEC_OK;
    int err = run->guard ? hec_power_levers_set(run->guard, &run->levers, &why) : HEC_OK;
    if (err == HEC_OK)
        err = hec_apply(&run->levers, environ, run->options.knobs, &run->applied, &why);
    if (err < 0)
        hec_error("run: %s", why.text);
    else
        hec_apply_to(&run->applied, &run->options);
    return err;
}

/* The same of --tune. */
static int put_tuner(struct run *run) {
    struct hec_why why = {""};
    if (!hec_args_has(&run->args, HEC_OPT_TUNE))
        return HEC_OK;
    run->tuning.guard = run->guard;
    int err = hec_tuner_open(&run->tuning, &run->tuner, &why);
    if (err < 0)
        hec_error("--tune: %s", why.text);
    run->options.energy_every_ns = HEC_TUNER_ENERGY_NS;
    return err;
}

/* All that can fail is seen before a night is waited for; then nothing is held while it is. */
static int wait_for_it(struct run *run) {
    struct hec_why why = {""};
    struct hec_child child = {0};
    int err = hec_child_check(&child, run->args.rest[0], &why);
    if (err < 0) {
        hec_error("%s", why.text);
        return child.exit_code;
    }
    if ((err = hec_output_path(&run->args, false, run->output, &why)) == HEC_OK && run->output[0])
        err = hec_output_new(&run->args, run->output, &why);
    if (err < 0)
        hec_error("%s", why.text);
    if (err < 0 || (err = open_guard(run)) < 0)
        return err;
    hec_with_guard_close(run->guard);
    run->guard = NULL;
    hec_waiting_wait(&run->waiting);
    run->options.begin_ns = hec_clock_mono_ns();
    return HEC_OK;
}

/* What is known when the command has ended. */
static void at_end(void *context, const struct hec_sink *to, int64_t start_ns, int64_t end_ns) {
    struct run *run = context;
    hec_waiting_carbon(&run->waiting, to, start_ns, end_ns);
    if (run->tuner)
        hec_tuner_end(run->tuner, to, end_ns);
}

/* HEC_OK, an error after printing a sentence, or the status to leave with. */
static int parse(struct run *run) {
    struct hec_session_options *options = &run->options;
    int err;
    if (run->args.rest_count == 0 && !hec_args_has(&run->args, HEC_OPT_CHECK_WHEN))
        return hec_args_wrong(&run->args, "no command");
    double gpm_window_ms = 0;
    if ((err = hec_load_tracing(&run->args, options)) < 0 || (err = hec_load_price(&run->args, &run->price)) < 0 ||
        (err = hec_load_style(&run->args, STDERR_FILENO, &run->style)) < 0 || (err = parse_lists(run)) < 0 ||
        (err = hec_args_number(&run->args, HEC_OPT_GPM_WINDOW, 110, 10000, &gpm_window_ms)) < 0 ||
        (err = parse_tuner(run)) < 0 || (err = check_agent(run)) < 0 ||
        (err = hec_waiting_open(&run->args, &run->waiting)) < 0)
        return err;
    options->command = run->args.rest;
    options->overwrite = hec_args_has(&run->args, HEC_OPT_FORCE);
    options->simulated = hec_args_value(&run->args, HEC_OPT_SIM);
    options->gpm_window_ns = (int64_t)(gpm_window_ms * (double)HEC_NS_PER_MS);
    options->wait_for_all = hec_args_has(&run->args, HEC_OPT_WAIT);
    options->at_end = at_end;
    options->at_end_context = run;
    if (hec_args_has(&run->args, HEC_OPT_CHECK_WHEN))
        return HEC_OK;
    if ((run->waiting.when && (err = wait_for_it(run)) != HEC_OK) || (err = open_guard(run)) < 0 ||
        (err = put_levers(run)) < 0)
        return err;
    return put_tuner(run);
}

static void print_report(struct run *run, const struct hec_session *session, const char *path) {
    struct hec_why why;
    struct hec_reader *reader;
    struct hec_summary summary = {0};
    int err = hec_session_open_run(session, &reader, &why);
    if (err == HEC_OK)
        err = hec_load_summary_reader(reader, path, &run->args, &run->price, &summary, &why);
    if (err < 0) {
        hec_error("the run cannot be reported: %s", why.text);
        return;
    }
    struct hec_buf text;
    hec_buf_init(&text, 64u << 20);
    run->style.brief = true;
    if (hec_args_has(&run->args, HEC_OPT_JSON))
        err = hec_report_json(&summary, 1, &text);
    else
        err = hec_report_terminal(&summary, &run->style, &text);
    if (err == HEC_OK)
        fputs(hec_buf_text(&text), stderr);
    hec_buf_free(&text);
    hec_summary_free(&summary);
}

/* A place that was named has to be there. Where there is no terminal the command runs all the same. */
static int show_live(struct run *run, struct hec_why *why) {
    const char *where = hec_args_value(&run->args, HEC_OPT_LIVE);
    int err = hec_live_open(where, run->options.begin_ns, &run->live, why);
    if (err < 0 && !(where && where[0])) {
        hec_warn("%s", why->text);
        return HEC_OK;
    }
    return err;
}

/* Who sees what goes to the run file, and what is in it from the start. */
static const struct hec_sink *through(void *context, const struct hec_sink *to) {
    struct run *run = context;
    hec_waiting_record(&run->waiting, to);
    if (run->live)
        to = hec_live_through(run->live, to);
    return run->tuner ? hec_tuner_through(run->tuner, to) : to;
}

/* COMMAND takes this process's place. Returns, with an exit status, where it cannot be run. */
static int become(char **command, char **environment) {
    hec_child_unshield();
    execvpe(command[0], command, environment);
    int errnum = errno;
    hec_error("%s: %s", command[0], errnum == ENOENT ? "command not found" : strerror(errnum));
    return errnum == ENOENT || errnum == ENOTDIR ? 127 : 126;
}

/* Returns only where the command could not be run. */
static int observe(struct run *run) {
    struct hec_why why = {""};
    struct hec_session *session;
    struct hec_session_result result;
    int status, err = hec_output_path(&run->args, false, run->output, &why);
    run->options.output = run->output[0] ? run->output : NULL;
    if (err == HEC_OK && hec_args_has(&run->args, HEC_OPT_LIVE))
        err = show_live(run, &why);
    run->options.through = through;
    run->options.through_context = run;
    if (err < 0)
        status = hec_err_exit_status(err);
    else
        err = hec_session_start(&run->options, &session, &status, &why);
    if (err < 0)
        hec_live_end(run->live);
    if (err == HEC_ERR_NOMEM) {
        hec_warn("%s: the command runs as without HEC", why.text);
        hec_tuner_close(run->tuner);
        run->tuner = NULL;
        hec_with_guard_close(run->guard);
        run->guard = NULL;
        return become(run->options.command, environ);
    }
    if (err < 0) {
        hec_error("%s", why.text);
        return status;
    }
    hec_session_wait(session, &result);
    hec_live_end(run->live);
    const char *idle = run->tuner ? hec_tuner_idle(run->tuner) : NULL;
    if (idle)
        hec_warn("--tune: nothing was tried: %s", idle);
    hec_tuner_close(run->tuner);
    run->tuner = NULL;
    hec_with_guard_close(run->guard);
    run->guard = NULL;
    if (result.note.text[0])
        hec_log(result.note.level, "%s", result.note.text);
    if (result.readable && !hec_args_has(&run->args, HEC_OPT_QUIET))
        print_report(run, session, result.path);
    hec_session_close(session);
    fflush(NULL);
    hec_child_end_as(result.signal, result.exit_status); /* an abandoned driver thread must not hold the exit up */
}

/* Whether the limits leave enough to observe with; else it says so. What memory and threads take is seen when they are asked for. */
static bool has_room(void) {
    static const struct {
        int resource;
        rlim_t least, unit;
        const char *what, *option;
    } rows[] = {
        {RLIMIT_NOFILE, 32, 1, "files may be open", "-n"}, /* enough for a traced run on eight simulated GPUs */
        {RLIMIT_STACK, HEC_STACK_LEAST, 1024, "KiB may be on the stack", "-s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rlimit limit;
        if (getrlimit(rows[i].resource, &limit) != 0 || limit.rlim_cur >= rows[i].least)
            continue;
        hec_warn("only %lu %s (ulimit %s), and observing takes %lu: the command runs as without HEC",
                 (unsigned long)(limit.rlim_cur / rows[i].unit), rows[i].what, rows[i].option,
                 (unsigned long)(rows[i].least / rows[i].unit));
        return false;
    }
    return true;
}

/* Nothing of HEC stands between COMMAND and who started it. Returns where it cannot be run. */
static int hand_over(struct run *run) {
    const struct hec_session_options *options = &run->options;
    const char *socket = agent_socket(run);
    struct hec_inject inject = {.mode = options->trace, .memory_mb = options->trace_memory_mb, .hooks = options->hooks};
    struct hec_environ env;
    uint32_t tag = (uint32_t)getpid();
    int err = hec_environ_copy(&env, options->environment ? options->environment : environ);
    if (err < 0)
        return err;
    if (options->knobs && options->knobs[0])
        hec_environ_set(&env, HEC_MARKS_ENV_KNOBS, options->knobs);
    if (access(socket, W_OK) == 0)
        hec_inject_for_agent(&inject, socket, tag, &env);
    else
        hec_info("no agent listens at %s: the command runs as without HEC", socket);
    int status = become(options->command, env.list);
    hec_environ_free(&env);
    return status;
}

int hec_verb_run(struct hec_args *args) {
    static struct run run; /* not on the stack, whose limit (ulimit -s) may leave less */
    run.args = *args;
    run.options = hec_session_defaults();
    run.options.begin_ns = hec_clock_mono_ns();
    int err = parse(&run);
    int status = err != HEC_OK                                 ? err
                 : hec_args_has(&run.args, HEC_OPT_CHECK_WHEN) ? hec_waiting_check(&run.waiting)
                 : hec_args_has(&run.args, HEC_OPT_AGENT)      ? hand_over(&run)
                 : has_room()                                  ? observe(&run)
                                                               : become(run.options.command, environ);
    hec_tuner_close(run.tuner);
    hec_with_guard_close(run.guard);
    hec_live_free(run.live);
    hec_buf_free(&run.knobs);
    hec_buf_free(&run.units);
    hec_applied_free(&run.applied);
    hec_waiting_close(&run.waiting);
    return status;
}
