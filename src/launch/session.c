#include "launch/session.h"

#include "base/clock.h"
#include "base/text.h"
#include "launch/environ.h"
#include "launch/facts.h"
#include "launch/guard.h"
#include "launch/inject.h"
#include "launch/paths.h"
#include "launch/printed.h"
#include "launch/simulation.h"
#include "launch/supervisor.h"
#include "observe/marks/marks.h"
#include "observe/recorder.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ORDERS_ENERGY_NS (250 * HEC_NS_PER_MS) /* what is done under an order may be over in two seconds */
#define COMMAND_LINE_MAX 4096                  /* options come first */
#define ENVIRONMENT_MAX (1 << 20)

/* 'c', 'm': what follows is the program's; 'W', 'X': an argument follows, in the same word or in the next. */
static char isolated_by(const char *letters, bool *ends, bool *takes_next) {
    for (const char *c = letters; *c; c++) {
        if (*c == 'I' || *c == 'E')
            return *c;
        *ends = *c == 'c' || *c == 'm';
        *takes_next = (*c == 'W' || *c == 'X') && !c[1];
        if (strchr("cmWX", *c))
            return 0;
    }
    return 0;
}

static bool is_python(const char *words) {
    const char *slash = strrchr(words, '/'), *name = slash ? slash + 1 : words;
    return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

char hec_python_isolated(const char *words, size_t length) {
    const char *end = words + length;
    const char *word = words, *next = memchr(words, '\0', length);
    bool ends = false, skip = false;
    if (!next || !is_python(words))
        return 0;
    while (!ends && (word = next + 1) < end && (next = memchr(word, '\0', (size_t)(end - word)))) {
        if (skip) {
            skip = false;
            continue;
        }
        if (word[0] != '-' || !word[1] || strcmp(word, "--") == 0)
            return 0;
        if (word[1] == '-') {
            skip = strcmp(word, "--check-hash-based-pycs") == 0;
            continue;
        }
        char letter = isolated_by(word + 1, &ends, &skip);
        if (letter)
            return letter;
    }
    return 0;
}

/* Of an environment as in /proc/PID/environ; NULL: it is not there. */
static const char *value_of(const char *environment, size_t length, const char *name) {
    const char *end = environment + length;
    size_t size = strlen(name);
    for (const char *next; environment < end && (next = memchr(environment, '\0', (size_t)(end - environment)));
         environment = next + 1)
        if (strncmp(environment, name, size) == 0 && environment[size] == '=')
            return environment + size + 1;
    return NULL;
}

bool hec_python_replaced(const char *environment, size_t length, const char *folder) {
    const char *wanted = value_of(environment, length, "HEC_HOOKS"),
               *path = value_of(environment, length, "PYTHONPATH");
    size_t size = strlen(folder);
    if (!wanted || strcmp(wanted, "0") == 0)
        return false; /* the program does without */
    while (path && *path) {
        const char *stop = strchrnul(path, ':');
        if ((size_t)(stop - path) == size && memcmp(path, folder, size) == 0)
            return false;
        path = *stop ? stop + 1 : stop;
    }
    return true;
}

static bool is_new(struct hec_python_watch *watch, pid_t pid) {
    for (int i = 0; i < watch->seen_count; i++)
        if (watch->seen[i] == pid)
            return false;
    if (watch->seen_count == HEC_PYTHON_WATCH_MAX)
        return false;
    watch->seen[watch->seen_count++] = pid;
    return true;
}

static ssize_t read_of(pid_t pid, const char *name, char *out, size_t size) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = 0, got = fd < 0 ? -1 : 1;
    while (got > 0 && (size_t)length < size && (got = read(fd, out + length, size - (size_t)length)) > 0)
        length += got;
    if (fd >= 0)
        close(fd);
    return got < 0 ? -1 : length;
}

static bool is_replaced(pid_t pid, const char *folder) {
    char *environment = malloc(ENVIRONMENT_MAX);
    ssize_t length = environment ? read_of(pid, "environ", environment, ENVIRONMENT_MAX) : -1;
    /* one that is longer, or cannot be read, tells nothing */
    bool replaced = length > 0 && length < ENVIRONMENT_MAX && hec_python_replaced(environment, (size_t)length, folder);
    free(environment);
    return replaced;
}

void hec_python_watch_tracer(struct hec_python_watch *watch, const struct hec_tracer *tracer) {
    char words[COMMAND_LINE_MAX];
    if (!watch->sink || tracer->driver_version <= 0 || !is_new(watch, tracer->pid))
        return;
    ssize_t length = read_of(tracer->pid, "cmdline", words, sizeof words);
    if (length <= 0 || !memchr(words, '\0', (size_t)length) || !is_python(words))
        return;
    char letter = hec_python_isolated(words, (size_t)length);
    if (letter)
        hec_sink_event(watch->sink, HEC_EVENT_HOOKS_OUT, HEC_DEVICE_NONE, tracer->first_ns,
                       "process %d is a python -%c, which reads no PYTHONPATH, by which HEC's hooks come",
                       (int)tracer->pid, letter);
    else if (is_replaced(tracer->pid, watch->folder))
        hec_sink_event(watch->sink, HEC_EVENT_HOOKS_OUT, HEC_DEVICE_NONE, tracer->first_ns,
                       "process %d is a Python whose PYTHONPATH, by which HEC's hooks come, was replaced",
                       (int)tracer->pid);
}

/* The command waits this long for the collectors; what opens later (a driver that initialises a GPU can take seconds)
 * joins later. Starting may cost at most 50 ms. */
#define START_WAIT_NS (40 * HEC_NS_PER_MS)
/* At the end, a driver that does not answer is given up after this. */
#define STOP_WAIT_NS (3 * HEC_NS_PER_S)

struct hec_session {
    struct hec_session_options options;
    struct hec_run_file file;
    const struct hec_sink *sink;
    struct hec_flusher *flusher;
    struct hec_observe_options observe;
    struct hec_recorder *recorder;
    int abandoned; /* lanes whose threads still refer to the session */
    struct hec_child child;
    struct hec_printed_output printed;
    struct hec_environ env;
    struct hec_simulation *simulation;
    struct hec_scratch folder;
    char socket[PATH_MAX], trace_socket[PATH_MAX];
    struct hec_inject inject;
    struct hec_guard_watch guard;
    struct hec_python_watch python;
    struct hec_stopper *stopper;
    enum hec_stopped stopped;
};

struct hec_session_options hec_session_defaults(void) {
    return (struct hec_session_options){.trace = HEC_TRACE_AUTO, .trace_memory_mb = 64, .hooks = true};
}

static void tracer_seen(void *context, const struct hec_tracer *tracer) {
    struct hec_session *s = context;
    hec_guard_watch_tracer(&s->guard, tracer);
    hec_python_watch_tracer(&s->python, tracer);
}

/* The sockets on which rings arrive, those of the program's marks and those of the tracer; without them there are no
 * marks and no trace, and nothing else is lost. */
static void prepare_rings(struct hec_session *s) {
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
    hec_environ_set(&s->env, HEC_MARKS_ENV_STACKS, "outside");
    snprintf(s->trace_socket, sizeof s->trace_socket, "%.*s/" HEC_PATH_TRACE_SOCKET, PATH_MAX - 8, s->folder.path);
    hec_inject_tracer(&s->inject, s->trace_socket, &s->env);
    if (!s->inject.traced)
        return;
    s->observe.trace_socket = s->trace_socket;
    s->observe.trace_mode = s->inject.mode;
    hec_guard_watch_begin(&s->guard, s->inject.mode, s->simulation != NULL);
    hec_inject_no_cupti(s->guard.out, &s->env);
    s->python.folder = hec_environ_get(&s->env, "HEC_HOOKS_FOLDER");
    s->python.sink = s->inject.hooks && s->python.folder ? s->sink : NULL;
    s->observe.tracer_seen = tracer_seen;
    s->observe.tracer_context = s;
}

static void step_seen(void *context, pid_t pid, int source) {
    hec_stopper_step(context, pid, (enum hec_step_source)source);
}

static void job_control(void *context, bool stopped) {
    struct hec_session *s = context;
    s->sink->event(s->sink->context, HEC_EVENT_STOPPED, HEC_DEVICE_NONE, hec_clock_mono_ns(),
                   stopped ? "the command was stopped" : "the command was continued");
}

/* The units that the command prints, a line each, and where they were read. */
static void record_printed(struct hec_session *s) {
    struct hec_buf lines;
    if (!s->options.printed_count)
        return;
    hec_buf_init(&lines, HEC_PRINTED_MAX * (HEC_PRINTED_NAME + HEC_PRINTED_TEXT));
    for (int i = 0; i < s->options.printed_count; i++)
        hec_buf_printf(&lines, "%s%s%s=%s", i ? "\n" : "", s->options.printed[i].name,
                       s->options.printed[i].rate ? "/s" : "", s->options.printed[i].pattern);
    s->sink->meta(s->sink->context, "printed", hec_buf_text(&lines));
    s->sink->meta(s->sink->context, "printed_from", s->printed.said);
    hec_buf_free(&lines);
}

static void record_start(struct hec_session *s) {
    struct hec_buf command;
    hec_buf_init(&command, 65536);
    hec_shell_line(s->options.command, &command);
    s->sink->meta(s->sink->context, "command", hec_buf_text(&command));
    hec_buf_free(&command);
    hec_facts_machine(s->sink);
    char started[40];
    hec_facts_wall_time(hec_clock_wall_ns(), started);
    hec_sink_meta(s->sink, "started", "%s", started);
    if (s->simulation)
        hec_sink_meta(s->sink, "simulated", "%s", s->options.simulated);
    if (s->options.levers)
        s->sink->meta(s->sink->context, "levers", s->options.levers);
    record_printed(s);
    for (const char *const *fact = s->options.facts; fact && fact[0]; fact += 2)
        s->sink->meta(s->sink->context, fact[0], fact[1]);
}

static void record_end(struct hec_session *s) {
    const struct hec_child *child = &s->child;
    struct rusage self;
    getrusage(RUSAGE_SELF, &self);
    hec_sink_meta(s->sink, "start_mono_ns", "%lld", (long long)child->start_ns);
    hec_facts_start(s->sink, child->start_ns);
    hec_sink_meta(s->sink, "duration_ns", "%lld", (long long)(child->end_ns - child->start_ns));
    hec_sink_meta(s->sink, "start_cost_ns", "%lld", (long long)(child->start_ns - s->options.begin_ns));
    hec_sink_meta(s->sink, "exit_code", "%d", child->exit_code);
    if (s->stopped)
        hec_sink_meta(s->sink, "stopped", "%s", s->stopped == HEC_STOPPED_STEPS ? "steps" : "time");
    hec_sink_meta(s->sink, "self_cpu_seconds", "%.6f",
                  (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
                      (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1e6);
    hec_sink_meta(s->sink, "self_rss_max_kib", "%ld", self.ru_maxrss);
    if (s->options.units && s->options.units[0])
        s->sink->meta(s->sink->context, "units", s->options.units);
    hec_sink_meta(s->sink, "complete", "1");
}

/* Comes before everything that is started for the command, so that all of it is on the simulated machine. */
static int begin_machine(struct hec_session *s, struct hec_why *why) {
    const struct hec_session_options *options = &s->options;
    int err = hec_environ_copy(&s->env, options->environment ? options->environment : environ);
    if (err < 0)
        return hec_fail(why, err, "no memory for the environment");
    if (!options->simulated)
        return HEC_OK;
    err = hec_simulation_begin(options->simulated, &s->simulation, why);
    if (err < 0)
        return err;
    s->observe.nvml_path = hec_simulation_nvml(s->simulation);
    hec_simulation_environ(s->simulation, &s->env);
    if (options->layer)
        hec_simulation_hand_down(s->simulation, &s->env, &s->child.inherited, &s->child.inherited_path);
    return HEC_OK;
}

static int start_observing(struct hec_session *s, struct hec_why *why) {
    const struct hec_session_options *options = &s->options;
    int err =
        hec_run_file_open(&s->file, options->output, options->command, options->overwrite, options->begin_ns, why);
    if (err < 0)
        return err;
    s->sink = hec_writer_sink(s->file.writer);
    if (options->through)
        s->sink = options->through(options->through_context, s->sink);
    prepare_rings(s);
    if (options->orders && s->folder.path[0]) {
        if ((err = hec_orders_open(s->folder.path, options->orders, why)) < 0)
            return err;
        hec_environ_set(&s->env, HEC_ORDERS_ENV, options->orders->path);
        s->observe.energy_every_ns = ORDERS_ENERGY_NS;
    }
    if (options->energy_every_ns)
        s->observe.energy_every_ns = options->energy_every_ns;
    if (options->knobs && options->knobs[0])
        hec_environ_set(&s->env, HEC_MARKS_ENV_KNOBS, options->knobs);
    if (options->tied && hec_supervisor_mark())
        hec_environ_set(&s->env, HEC_SUPERVISOR_ENV, hec_supervisor_mark());
    s->child.also[0] = s->folder.path[0] ? s->folder.path : NULL; /* the locks in it are not seen through an overlay */
    s->observe.visible_devices = hec_environ_get(&s->env, "CUDA_VISIBLE_DEVICES");
    s->observe.gpm_window_ns = options->gpm_window_ns;
    s->observe.printed_units = options->printed;
    s->observe.printed_unit_count = options->printed_count;
    s->observe.printed = s->printed.from;
    s->observe.printed_count = s->printed.count;
    record_start(s);
    if (options->stop.steps || options->stop.after_ns) {
        if ((err = hec_stopper_create(&options->stop, &s->stopper, why)) < 0)
            return err;
        s->observe.step_seen = step_seen;
        s->observe.step_context = s->stopper;
    }
    enum hec_observer observer = s->inject.traced ? HEC_OBSERVER_RUN : HEC_OBSERVER_UNTRACED;
    err = hec_recorder_start(hec_collectors_of(observer), &s->observe, s->sink, &s->recorder, why);
    if (err < 0)
        return err;
    hec_recorder_wait_ready(s->recorder, START_WAIT_NS);
    return HEC_OK;
}

static void stop_observing(struct hec_session *s, int64_t end_ns) {
    s->abandoned = hec_recorder_stop(s->recorder, end_ns, STOP_WAIT_NS);
}

/* The environment was given to the command, and the file's thread needs it to have begun. */
static int start_command(struct hec_session *s, struct hec_why *why) {
    int err = hec_child_start(&s->child, s->options.command, s->env.list, why);
    if (err < 0) {
        stop_observing(s, hec_clock_mono_ns());
        return err;
    }
    hec_writer_set_origin(s->file.writer, s->child.start_ns);
    __atomic_store_n(&s->guard.root, s->child.pid, __ATOMIC_RELEASE);
    hec_recorder_set_root(s->recorder, s->child.pid);
    struct hec_why late;
    if (s->stopper && hec_stopper_begin(s->stopper, s->child.pid, s->child.start_ns, &late) < 0)
        hec_warn("%s: the command has to end by itself", late.text);
    if (hec_flusher_start(s->file.writer, &s->flusher, &late) < 0)
        hec_warn("%s: the run file is written only at the end", late.text);
    return HEC_OK;
}

int hec_session_start(const struct hec_session_options *options, struct hec_session **out, int *exit_status,
                      struct hec_why *why) {
    struct hec_session *s = calloc(1, sizeof *s);
    struct hec_why reason = {""};
    int err = HEC_ERR_NOMEM;
    *out = NULL;
    *exit_status = hec_err_exit_status(err);
    if (!s)
        return hec_fail(why, err, "no memory for the session");
    s->options = *options;
    if (s->options.begin_ns == 0)
        s->options.begin_ns = hec_clock_mono_ns();
    s->inject =
        (struct hec_inject){.mode = options->trace, .memory_mb = options->trace_memory_mb, .hooks = options->hooks};
    s->child.stopped = job_control;
    s->child.context = s;
    s->child.layer = options->layer;
    s->child.placement = options->placement;
    s->child.tied = options->tied;
    s->child.output = options->command_output;
    hec_child_prepare(&s->child);
    err = begin_machine(s, &reason);
    if (err == HEC_OK && options->printed_count)
        err = hec_printed_begin(&s->printed, options->command_output, &reason);
    hec_child_adopt();
    bool not_run = err == HEC_OK && (err = hec_child_check(&s->child, options->command[0], &reason)) < 0;
    if (err == HEC_OK)
        err = start_observing(s, &reason);
    if (err == HEC_OK) {
        err = start_command(s, &reason);
        not_run = err < 0;
    }
    if (err == HEC_OK) {
        *out = s;
        return HEC_OK;
    }
    *exit_status = not_run ? s->child.exit_code : hec_err_exit_status(err);
    hec_run_file_discard(&s->file);
    hec_session_close(s);
    return hec_fail(why, err, "%s", reason.text[0] ? reason.text : hec_err_text(err));
}

void hec_session_wait(struct hec_session *s, struct hec_session_result *result) {
    hec_child_wait(&s->child, s->options.wait_for_all);
    s->stopped = s->stopper ? hec_stopper_end(s->stopper) : HEC_STOPPED_NOT;
    hec_printed_settle(&s->printed);
    stop_observing(s, s->child.end_ns);
    if (s->flusher)
        hec_flusher_stop(s->flusher);
    s->flusher = NULL;
    if (!s->inject.traced)
        hec_inject_record(&s->inject, s->child.pid, s->child.start_ns, s->sink);
    hec_guard_watch_end(&s->guard, &s->child, s->options.command[0], s->sink);
    if (s->options.at_end)
        s->options.at_end(s->options.at_end_context, s->sink, s->child.start_ns, s->child.end_ns);
    record_end(s);
    *result = (struct hec_session_result){
        .exit_status = s->child.exit_code,
        .signal = s->child.signal,
        .stopped = s->stopped,
        .asked = s->child.asked,
        .start_ns = s->child.start_ns,
        .end_ns = s->child.end_ns,
        .path = s->file.path,
    };
    result->readable = hec_run_file_close(&s->file, &result->note);
}

int hec_session_open_run(const struct hec_session *s, struct hec_reader **out, struct hec_why *why) {
    return s->file.image.bytes ? hec_reader_open_image(&s->file.image, s->file.path, out, why)
                               : hec_reader_open(s->file.path, out, why);
}

void hec_session_close(struct hec_session *s) {
    hec_simulation_end(s->simulation);
    if (s->options.orders)
        hec_orders_close(s->options.orders);
    hec_scratch_remove(&s->folder);
    hec_run_file_free(&s->file);
    hec_environ_free(&s->env);
    hec_child_release(&s->child);
    if (s->abandoned)
        return;
    hec_printed_end(&s->printed);
    hec_stopper_free(s->stopper);
    free(s);
}
