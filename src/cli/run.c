/* hec run: observe a command. The command comes first: whatever fails here, it runs, unless what failed was asked for
 * by name (an output file, a simulated GPU). */
#include "base/clock.h"
#include "base/log.h"
#include "cli/child.h"
#include "cli/environ.h"
#include "cli/facts.h"
#include "cli/flusher.h"
#include "cli/guard_watch.h"
#include "cli/inject.h"
#include "cli/load.h"
#include "cli/paths.h"
#include "cli/run_file.h"
#include "cli/simulate.h"
#include "observe/marks/marks.h"
#include "observe/recorder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The command waits this long for the collectors; what opens later (a driver that initialises a GPU can take seconds)
 * joins later. Starting may cost at most 50 ms. */
#define START_WAIT_NS (40 * HEC_NS_PER_MS)
/* At the end, a driver that does not answer is given up after this. */
#define STOP_WAIT_NS (3 * HEC_NS_PER_S)

static const struct hec_collector *const collectors[] = {
    &hec_collector_trace, /* the first: left out where the command was not given the tracer */
    &hec_collector_procfs, &hec_collector_rapl, &hec_collector_marks, &hec_collector_nvml, NULL,
};

struct session {
    int64_t begin_ns;
    struct hec_args args;
    struct hec_price price;
    struct hec_report_style style;
    struct hec_run_file file;
    const struct hec_sink *sink;
    struct hec_flusher *flusher;
    struct hec_observe_options observe;
    struct hec_recorder *recorder;
    struct hec_child child;
    struct hec_environ env;
    struct hec_simulation *simulation;
    struct hec_scratch folder;
    char socket[PATH_MAX], trace_socket[PATH_MAX];
    struct hec_inject inject;
    struct hec_guard_watch guard;
    double gpm_window_ms;
    struct hec_buf knobs; /* HEC_KNOBS of the command */
};

static void put_meta(const struct session *s, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_meta(const struct session *s, const char *key, const char *format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    s->sink->meta(s->sink->context, key, text);
}

static int parse(struct session *s, int argc, char **argv) {
    int err = hec_args_parse(HEC_VERB_RUN, argc, argv, &s->args);
    if (err != HEC_OK)
        return err;
    if (s->args.rest_count == 0) {
        hec_error("run: no command; usage: hec run %s", hec_verb_info(HEC_VERB_RUN)->usage);
        return HEC_ERR_USAGE;
    }
    hec_buf_init(&s->knobs, HEC_MARKS_KNOBS_MAX + 1);
    if ((err = hec_inject_parse(&s->args, &s->inject)) < 0 || (err = hec_load_price(&s->args, &s->price)) < 0 ||
        (err = hec_load_style(&s->args, STDERR_FILENO, &s->style)) < 0)
        return err;
    for (int i = 0; i < s->args.given_count; i++) {
        char name[64];
        double count;
        const char *value = s->args.given[i].value;
        if (s->args.given[i].option == HEC_OPT_UNITS && (err = hec_load_unit(value, name, &count)) < 0)
            return err;
        struct hec_why why;
        if (s->args.given[i].option == HEC_OPT_KNOB && (err = hec_marks_knob_add(&s->knobs, value, &why)) < 0) {
            hec_error("run: --knob %s: %s", value, why.text);
            return err;
        }
    }
    return hec_args_number(&s->args, HEC_OPT_GPM_WINDOW, 110, 10000, &s->gpm_window_ms);
}

/* The sockets on which rings arrive, those of the program's marks and those of the tracer; without them there are no
 * marks and no trace, and nothing else is lost. */
static void prepare_rings(struct session *s) {
    struct hec_why why;
    char library[PATH_MAX];
    if (hec_path_scratch(&s->folder, &why) < 0) {
        hec_info("no marks: %s", why.text);
        snprintf(s->inject.why, sizeof s->inject.why, "%s", why.text);
        return;
    }
    snprintf(s->socket, sizeof s->socket, "%.*s/" HEC_PATH_SOCKET, PATH_MAX - 8, s->folder.path);
    s->observe.mark_socket = s->socket;
    hec_environ_set(&s->env, HEC_MARKS_ENV_SOCKET, s->socket);
    if (hec_path_lib("libhec.so.0", library, &why) == HEC_OK)
        hec_environ_set(&s->env, HEC_MARKS_ENV_LIBRARY, library);
    else
        hec_info("no marks for Python: %s", why.text);
    hec_inject_hooks(&s->inject, &s->env);
    snprintf(s->trace_socket, sizeof s->trace_socket, "%.*s/" HEC_PATH_TRACE_SOCKET, PATH_MAX - 8, s->folder.path);
    hec_inject_tracer(&s->inject, s->trace_socket, &s->env);
    if (!s->inject.traced)
        return;
    s->observe.trace_socket = s->trace_socket;
    s->observe.trace_mode = s->inject.mode;
    hec_guard_watch_begin(&s->guard, s->inject.mode, s->simulation != NULL);
    hec_inject_no_cupti(s->guard.out, &s->env);
    s->observe.tracer_seen = hec_guard_watch_tracer;
    s->observe.tracer_context = &s->guard;
}

static void job_control(void *context, bool stopped) {
    struct session *s = context;
    s->sink->event(s->sink->context, HEC_EVENT_STOPPED, HEC_DEVICE_NONE, hec_clock_mono_ns(),
                   stopped ? "the command was stopped" : "the command was continued");
}

static void record_start(struct session *s) {
    struct hec_buf command;
    hec_buf_init(&command, 65536);
    hec_facts_command(s->args.rest, &command);
    s->sink->meta(s->sink->context, "command", hec_buf_text(&command));
    hec_buf_free(&command);
    hec_facts_machine(s->sink);
    char started[40];
    hec_facts_wall_time(hec_clock_wall_ns(), started);
    put_meta(s, "started", "%s", started);
    if (s->simulation)
        put_meta(s, "simulated", "%s", hec_args_value(&s->args, HEC_OPT_SIM));
}

/* The command line's units, as "NAME=N;NAME=N": they replace what the program marked under the same name. */
static void record_units(const struct session *s) {
    struct hec_buf text;
    hec_buf_init(&text, 65536);
    for (int i = 0; i < s->args.given_count; i++) {
        char name[64];
        double count;
        if (s->args.given[i].option == HEC_OPT_UNITS && hec_load_unit(s->args.given[i].value, name, &count) == HEC_OK)
            hec_buf_printf(&text, "%s%s=%.17g", text.length ? ";" : "", name, count);
    }
    if (text.length)
        s->sink->meta(s->sink->context, "units", hec_buf_text(&text));
    hec_buf_free(&text);
}

static void record_end(struct session *s) {
    const struct hec_child *child = &s->child;
    struct rusage self;
    getrusage(RUSAGE_SELF, &self);
    put_meta(s, "start_mono_ns", "%lld", (long long)child->start_ns);
    put_meta(s, "duration_ns", "%lld", (long long)(child->end_ns - child->start_ns));
    put_meta(s, "start_cost_ns", "%lld", (long long)(child->start_ns - s->begin_ns));
    put_meta(s, "exit_code", "%d", child->exit_code);
    put_meta(s, "self_cpu_seconds", "%.6f",
             (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
                 (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1e6);
    put_meta(s, "self_rss_max_kib", "%ld", self.ru_maxrss);
    record_units(s);
    put_meta(s, "complete", "1");
}

static void print_report(struct session *s) {
    struct hec_why why;
    struct hec_summary summary = {0};
    int err = s->file.image.bytes
                  ? hec_load_summary_image(&s->file.image, s->file.path, &s->args, &s->price, &summary, &why)
                  : hec_load_summary(s->file.path, &s->args, &s->price, &summary, &why);
    if (err < 0) {
        hec_error("the run cannot be reported: %s", why.text);
        return;
    }
    struct hec_buf text;
    hec_buf_init(&text, 64u << 20);
    s->style.brief = true;
    if (hec_args_has(&s->args, HEC_OPT_JSON))
        err = hec_report_json(&summary, 1, &text);
    else
        err = hec_report_terminal(&summary, &s->style, &text);
    if (err == HEC_OK)
        fputs(hec_buf_text(&text), stderr);
    hec_buf_free(&text);
    hec_summary_free(&summary);
}

static void clean_up(struct session *s) {
    hec_simulation_end(s->simulation);
    hec_scratch_remove(&s->folder);
    hec_run_file_free(&s->file);
    hec_environ_free(&s->env);
    hec_buf_free(&s->knobs);
}

static int start_observing(struct session *s, struct hec_why *why) {
    int err = hec_environ_copy(&s->env, environ);
    if (err < 0)
        return hec_fail(why, err, "no memory for the environment");
    const char *spec = hec_args_value(&s->args, HEC_OPT_SIM);
    if (spec) {
        err = hec_simulation_begin(spec, &s->simulation, why);
        if (err < 0)
            return err;
        s->observe.nvml_path = hec_simulation_nvml(s->simulation);
        hec_simulation_environ(s->simulation, &s->env);
    }
    err = hec_run_file_open(&s->file, hec_args_value(&s->args, HEC_OPT_OUTPUT), s->args.rest,
                            hec_args_has(&s->args, HEC_OPT_FORCE), s->begin_ns, why);
    if (err < 0)
        return err;
    s->sink = hec_writer_sink(s->file.writer);
    prepare_rings(s);
    if (s->knobs.length)
        hec_environ_set(&s->env, HEC_MARKS_ENV_KNOBS, hec_buf_text(&s->knobs));
    s->observe.visible_devices = hec_environ_get(&s->env, "CUDA_VISIBLE_DEVICES");
    s->observe.gpm_window_ns = (int64_t)(s->gpm_window_ms * (double)HEC_NS_PER_MS);
    record_start(s);
    err = hec_recorder_start(collectors + !s->inject.traced, &s->observe, s->sink, &s->recorder, why);
    if (err < 0)
        return err;
    hec_recorder_wait_ready(s->recorder, START_WAIT_NS);
    return HEC_OK;
}

/* Everything between the start of the command and its end. Returns the status to leave with. */
static int observe_command(struct session *s) {
    struct hec_why why;
    if (hec_child_start(&s->child, s->args.rest, s->env.list, &why) < 0) {
        hec_error("%s", why.text);
        hec_recorder_stop(s->recorder, hec_clock_mono_ns(), STOP_WAIT_NS);
        hec_run_file_discard(&s->file);
        return s->child.exit_code;
    }
    hec_writer_set_origin(s->file.writer, s->child.start_ns);
    __atomic_store_n(&s->guard.root, s->child.pid, __ATOMIC_RELEASE);
    hec_recorder_set_root(s->recorder, s->child.pid);
    if (hec_flusher_start(s->file.writer, &s->flusher, &why) < 0)
        hec_warn("%s: the run file is written only at the end", why.text);
    hec_child_wait(&s->child, hec_args_has(&s->args, HEC_OPT_WAIT));

    hec_recorder_stop(s->recorder, s->child.end_ns, STOP_WAIT_NS);
    if (s->flusher)
        hec_flusher_stop(s->flusher);
    if (!s->inject.traced)
        hec_inject_record(&s->inject, s->child.pid, s->child.start_ns, s->sink);
    hec_guard_watch_end(&s->guard, &s->child, s->args.rest[0], s->sink);
    record_end(s);
    bool whole = hec_run_file_close(&s->file);
    if (whole && !hec_args_has(&s->args, HEC_OPT_QUIET))
        print_report(s);
    return s->child.exit_code;
}

int hec_verb_run(int argc, char **argv) {
    static struct session s; /* abandoned lanes may refer to it until the process exits */
    s.begin_ns = hec_clock_mono_ns();
    int err = parse(&s, argc, argv);
    if (err != HEC_OK)
        return err > 0 ? 0 : hec_err_exit_status(err);
    hec_child_prepare(&s.child);
    s.child.stopped = job_control;
    s.child.context = &s;
    struct hec_why why = {""};
    if (hec_child_check(&s.child, s.args.rest[0], &why) < 0) {
        hec_error("%s", why.text);
        return s.child.exit_code;
    }
    err = start_observing(&s, &why);
    if (err < 0) {
        hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
        hec_run_file_discard(&s.file);
        clean_up(&s);
        return hec_err_exit_status(err);
    }
    int status = observe_command(&s);
    clean_up(&s);
    fflush(NULL);
    _exit(status); /* an abandoned driver thread must not hold the exit up */
}
