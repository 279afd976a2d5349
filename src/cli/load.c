/* The adapter between a run file and the analysis. */
#include "cli/load.h"

#include "cli/calibration.h"
#include "store/record.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The levers that a run was made under, from its facts: what was asked for, and what each said of itself. */

static const char *said(struct hec_reader *reader, const char *by, const char *name, const char *state) {
    char key[112];
    snprintf(key, sizeof key, "%slever.%s%s%s", by, name, state[0] ? "." : "", state);
    return hec_reader_meta(reader, key);
}

static void put(struct hec_lever_summary *out, enum hec_attest attest, const char *text) {
    out->attest = attest;
    snprintf(out->text, sizeof out->text, "%s", text);
}

/* The strongest of what the environment and the processes said: a key a state, and what was seen. */
static void find_states(struct hec_reader *reader, struct hec_lever_summary *out) {
    static const char *const by[] = {"", "python."};
    for (int state = 0; state < HEC_ATTESTS; state++)
        for (size_t i = 0; i < sizeof by / sizeof by[0]; i++) {
            const char *text = said(reader, by[i], out->name, hec_attest_name((enum hec_attest)state));
            if (text)
                put(out, (enum hec_attest)state, text);
        }
}

/* Run files until 2026-11-25 have one key a lever, "on: 3 optimizers", and one for why it did nothing. */
static void find_old_form(struct hec_reader *reader, const char *by, struct hec_lever_summary *out) {
    const char *text = said(reader, by, out->name, ""), *why = said(reader, by, out->name, "why");
    if (why && out->attest == HEC_ATTEST_NOTHING)
        put(out, HEC_ATTEST_NOTHING, why);
    for (int state = 0; text && state < HEC_ATTESTS; state++) {
        const char *name = hec_attest_name((enum hec_attest)state);
        size_t length = strlen(name);
        if (strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
            put(out, (enum hec_attest)state, text + length + 2);
    }
}

/* Returns how many there are. */
static int load_levers(struct hec_reader *reader, struct hec_lever_summary list[HEC_SUMMARY_LEVERS_MAX]) {
    const char *asked = hec_reader_meta(reader, "levers");
    char copy[2048], *rest = copy, *word;
    int count = 0;
    snprintf(copy, sizeof copy, "%s", asked ? asked : "");
    while ((word = strsep(&rest, ",")) && count < HEC_SUMMARY_LEVERS_MAX) {
        struct hec_lever_summary *lever = &list[count];
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (!*word)
            continue;
        *lever = (struct hec_lever_summary){.attest = HEC_ATTEST_NOTHING};
        snprintf(lever->name, sizeof lever->name, "%s", word);
        snprintf(lever->value, sizeof lever->value, "%s", value ? value : "");
        find_old_form(reader, "", lever);
        find_old_form(reader, "python.", lever);
        find_states(reader, lever);
        count++;
    }
    return count;
}

#define UNITS_MAX HEC_SUMMARY_UNITS_MAX
#define CORES_MAX (1 << 20)
#define RANKS_MAX 1000000
#define LOADER_WORKERS_MAX 100000
#define TASKS_MAX 8 /* at once */

struct source {
    struct hec_reader *reader;
    struct {
        char name[64];
        double count;
    } units[UNITS_MAX]; /* the first is the primary one */
    int unit_count;
};

static struct hec_reader *reader_of(void *context) {
    return ((struct source *)context)->reader;
}

static int series(void *context, enum hec_metric metric, int32_t subject, hec_series_visitor visit, void *to,
                  struct hec_why *why) {
    return hec_reader_series(reader_of(context), metric, subject, visit, to, why);
}
static int subjects(void *context, enum hec_metric metric, int32_t **list, struct hec_why *why) {
    return hec_reader_subjects(reader_of(context), metric, list, why);
}
static int devices(void *context, int (*visit)(void *, const struct hec_device *), void *to, struct hec_why *why) {
    return hec_reader_devices(reader_of(context), visit, to, why);
}
static int processes(void *context, int (*visit)(void *, const struct hec_process *), void *to, struct hec_why *why) {
    return hec_reader_processes(reader_of(context), visit, to, why);
}
static int gpu_processes(void *context, int (*visit)(void *, const struct hec_gpu_process *), void *to,
                         struct hec_why *why) {
    return hec_reader_gpu_processes(reader_of(context), visit, to, why);
}
static int events(void *context, int (*visit)(void *, enum hec_event_kind, int, int64_t, const char *), void *to,
                  struct hec_why *why) {
    return hec_reader_events(reader_of(context), visit, to, why);
}
static int phases(void *context, int (*visit)(void *, const char *, int64_t, int64_t), void *to, struct hec_why *why) {
    return hec_reader_phases(reader_of(context), visit, to, why);
}
static int units(void *context, int (*visit)(void *, const char *, double), void *to, struct hec_why *why) {
    (void)why;
    const struct source *source = context;
    for (int i = 0; i < source->unit_count; i++) {
        int stop = visit(to, source->units[i].name, source->units[i].count);
        if (stop)
            return stop;
    }
    return HEC_OK;
}

static int trace_names(void *context, int (*visit)(void *, uint32_t, const char *), void *to, struct hec_why *why) {
    return hec_reader_trace_names(reader_of(context), visit, to, why);
}
static int tracks(void *context, int (*visit)(void *, const struct hec_track *), void *to, struct hec_why *why) {
    return hec_reader_tracks(reader_of(context), visit, to, why);
}
static int kernels(void *context, int (*visit)(void *, const struct hec_kernel *), void *to, struct hec_why *why) {
    return hec_reader_kernels(reader_of(context), visit, to, why);
}
static int frames(void *context, int (*visit)(void *, const struct hec_frame *), void *to, struct hec_why *why) {
    return hec_reader_frames(reader_of(context), visit, to, why);
}
static int tracers(void *context, int (*visit)(void *, const struct hec_tracer *), void *to, struct hec_why *why) {
    return hec_reader_tracers(reader_of(context), visit, to, why);
}
static int activities(void *context, uint32_t kinds, int (*visit)(void *, const struct hec_activity *, size_t),
                      void *to, struct hec_why *why) {
    return hec_reader_activities(reader_of(context), kinds, visit, to, why);
}

static int beside(void *context, uint32_t kinds, const struct hec_activity_visitor *visitors, size_t count,
                  struct hec_why *why) {
    return hec_reader_activities_beside(reader_of(context), kinds, visitors, count, why);
}

/* Of a text of the run file those that say of a process which rank it is. */
struct rank_visit {
    int (*visit)(void *context, int32_t pid, const char *text);
    void *to;
};
static int visit_fact(void *context, const char *key, const char *value) {
    const struct rank_visit *v = context;
    size_t prefix = strlen(HEC_RANK_FACT);
    char *end;
    if (strncmp(key, HEC_RANK_FACT, prefix) != 0)
        return 0;
    long pid = strtol(key + prefix, &end, 10);
    return end == key + prefix || *end || pid < 0 || pid > INT32_MAX ? 0 : v->visit(v->to, (int32_t)pid, value);
}
static int rank_facts(void *context, int (*visit)(void *, int32_t, const char *), void *to) {
    struct rank_visit v = {visit, to};
    return hec_reader_metas(reader_of(context), visit_fact, &v);
}
/* Which process says it does not matter: they are merged. */
struct size_visit {
    int (*visit)(void *context, const char *what, const char *text);
    void *to;
};
static int visit_size(void *context, const char *key, const char *value) {
    const struct size_visit *v = context;
    const char *what = strncmp(key, HEC_SIZES_FACT, strlen(HEC_SIZES_FACT)) == 0 ? strrchr(key, '.') : NULL;
    return what ? v->visit(v->to, what + 1, value) : 0;
}
static int size_facts(void *context, int (*visit)(void *, const char *, const char *), void *to) {
    struct size_visit v = {visit, to};
    return hec_reader_metas(reader_of(context), visit_size, &v);
}
static int levers(void *context, struct hec_lever_summary list[HEC_SUMMARY_LEVERS_MAX]) {
    return load_levers(reader_of(context), list);
}
static const char *left_out(void *context) {
    return hec_reader_left_out(reader_of(context));
}

static void *run_task(void *to) {
    const struct hec_task *task = to;
    task->run(task->context);
    return NULL;
}

/* All but the first in threads, where they can be made. */
static void together(const struct hec_task *tasks, size_t count) {
    pthread_t thread[TASKS_MAX];
    size_t started = 0;
    for (size_t i = count; i-- > 1;) {
        void *task = (void *)&tasks[i];
        if (started < TASKS_MAX && pthread_create(&thread[started], NULL, run_task, task) == 0)
            started++;
        else
            run_task(task);
    }
    if (count)
        tasks[0].run(tasks[0].context);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

/* Of this machine, where the run was recorded on one of its devices; a damaged file counts as none. */
static int peaks(void *context, const struct hec_device *device, struct hec_peaks *out) {
    struct hec_why why = {""};
    (void)context;
    return device->uuid[0] ? hec_calibration_read(device->uuid, out, &why) : HEC_ERR_NOTFOUND;
}

/* A name counts once: what came first wins. */
static int add_unit(void *context, const char *name, double count) {
    struct source *source = context;
    for (int i = 0; i < source->unit_count; i++)
        if (strcmp(source->units[i].name, name) == 0)
            return 0;
    if (source->unit_count < UNITS_MAX) {
        snprintf(source->units[source->unit_count].name, sizeof source->units[0].name, "%s", name);
        source->units[source->unit_count++].count = count;
    }
    return 0;
}

/* Those of this command line, then those of `hec run`'s, then what the program marked. */
static int collect_units(struct source *source, const struct hec_args *args, struct hec_why *why) {
    char name[64];
    double count;
    for (int i = 0; i < args->given_count; i++) {
        if (args->given[i].option != HEC_OPT_UNITS)
            continue;
        if (hec_load_unit(args->given[i].value, name, &count) < 0)
            return HEC_ERR_USAGE;
        add_unit(source, name, count);
    }
    const char *recorded = hec_reader_meta(source->reader, "units");
    char *list = strdup(recorded ? recorded : ""), *rest = list, *item;
    if (!list)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory");
    while ((item = strsep(&rest, ";")))
        if (sscanf(item, "%63[^=]=%lf", name, &count) == 2 && isfinite(count) && count > 0)
            add_unit(source, name, count);
    free(list);
    int err = hec_reader_units(source->reader, add_unit, source, why);
    return err == HEC_ERR_NOTFOUND ? HEC_OK : err;
}

/* A number of the run file's facts; the fallback when it is absent or no number. */
static double fact(const struct source *source, const char *key, double fallback) {
    const char *text = hec_reader_meta(source->reader, key);
    char *end;
    if (!text)
        return fallback;
    double value = strtod(text, &end);
    return end == text || *end || !isfinite(value) ? fallback : value;
}

/* The fallback also when it is not within [least, most]. */
static int64_t fact_integer(const struct source *source, const char *key, int64_t least, int64_t most,
                            int64_t fallback) {
    const char *text = hec_reader_meta(source->reader, key);
    char *end;
    if (!text)
        return fallback;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return end == text || *end || errno || value < least || value > most ? fallback : value;
}

static void fill_facts(const struct source *source, const char *path, struct hec_summary_input *input) {
    struct hec_reader *reader = source->reader;
    struct stat status;
    input->command = hec_reader_meta(reader, "command");
    input->printed = hec_reader_meta(reader, "printed");
    input->printed_from = hec_reader_meta(reader, "printed_from");
    input->started = hec_reader_meta(reader, "started");
    input->file = path;
    input->hec_version = hec_reader_meta(reader, "hec_version");
    input->hostname = hec_reader_meta(reader, "hostname");
    input->simulated = hec_reader_meta(reader, "simulated");
    input->imported = hec_reader_meta(reader, "imported");
    input->cpu = hec_reader_meta(reader, "cpu");
    input->os = hec_reader_meta(reader, "os");
    input->kernel = hec_reader_meta(reader, "kernel");
    input->pytorch = hec_reader_meta(reader, "python.torch");
    input->python = hec_reader_meta(reader, "python.version");
    static const char *const parts[HEC_STEP_PARTS] = {"python.forward", "python.backward", "python.optimizer"};
    for (int i = 0; i < HEC_STEP_PARTS; i++)
        input->step_part[i] = hec_reader_meta(reader, parts[i]);
    input->flops = hec_reader_meta(reader, "python.flops");
    input->flops_why = hec_reader_meta(reader, "python.flops_why");
    input->products = hec_reader_meta(reader, "python.products");
    input->step_module = hec_reader_meta(reader, "python.step_module");
    input->samples_by = hec_reader_meta(reader, "python.samples_by");
    input->carbon = hec_reader_meta(reader, "carbon");
    input->joined = hec_reader_meta(reader, "joined");
    input->joined_by = hec_reader_meta(reader, "joined_by");
    input->gradients = hec_reader_meta(reader, "python.gradients");
    input->gradient_syncs = hec_reader_meta(reader, "python.gradient_syncs");
    input->framework = hec_reader_meta(reader, "python.framework");
    input->complete = hec_reader_meta(reader, "complete") != NULL;
    input->in_progress = !input->complete && hec_reader_live(reader);
    input->end_ns = fact_integer(source, "duration_ns", 0, HEC_RECORD_TIME_MAX_NS, 0);
    input->exit_code = (int)fact_integer(source, "exit_code", -1, INT_MAX, -1);
    input->stopped = hec_reader_meta(reader, "stopped");
    input->cores = (int)fact_integer(source, "cores", 0, CORES_MAX, 0);
    input->cores_usable = (int)fact_integer(source, "cores_usable", 0, CORES_MAX, input->cores);
    input->ranks = (int)fact_integer(source, "python.world_size", 0, RANKS_MAX, 0);
    input->loader_workers = (int)fact_integer(source, "python.loader_workers", -1, LOADER_WORKERS_MAX, -1);
    input->tree_cpu_seconds = NAN; /* the collector's last value is exact */
    input->tree_rss_max_bytes = NAN;
    input->self_cpu_seconds = fact(source, "self_cpu_seconds", NAN);
    input->self_rss_max_bytes = fact(source, "self_rss_max_kib", NAN) * 1024;
    input->start_seconds = fact(source, "start_cost_ns", NAN) / 1e9;
    input->timeline.hooks_share = fact(source, "python.hook_ppm", NAN) / 1e6;
    input->file_bytes = stat(path, &status) == 0 ? (double)status.st_size : NAN;
}

/* Closes the reader. */
static int use_input(struct hec_reader *reader, const char *path, const struct hec_args *args,
                     int (*use)(void *context, const struct hec_summary_input *input, struct hec_why *why),
                     void *context, struct hec_why *why) {
    struct source source = {.reader = reader};
    struct hec_summary_input input = {
        .context = &source,
        .series = series,
        .subjects = subjects,
        .devices = devices,
        .processes = processes,
        .gpu_processes = gpu_processes,
        .events = events,
        .units = units,
        .phases = phases,
        .left_out = left_out,
        .rank_facts = rank_facts,
        .size_facts = size_facts,
        .levers = levers,
        .peaks = peaks,
        .together = together,
        .timeline =
            {
                .context = &source,
                .names = trace_names,
                .tracks = tracks,
                .kernels = kernels,
                .frames = frames,
                .tracers = tracers,
                .activities = activities,
                .beside = beside,
            },
    };
    int err = collect_units(&source, args, why);
    if (err >= 0) {
        fill_facts(&source, path, &input);
        err = use(context, &input, why);
    }
    hec_reader_close(source.reader);
    return err;
}

int hec_load_input(const char *path, const struct hec_args *args,
                   int (*use)(void *context, const struct hec_summary_input *input, struct hec_why *why), void *context,
                   struct hec_why *why) {
    struct hec_reader *reader;
    int err = hec_reader_open(path, &reader, why);
    return err < 0 ? err : use_input(reader, path, args, use, context, why);
}

struct build {
    const struct hec_price *price;
    int view;
    struct hec_summary *summary;
};

static int build(void *context, const struct hec_summary_input *input, struct hec_why *why) {
    const struct build *to = context;
    struct hec_summary_input own = *input;
    own.view = to->view;
    int err = hec_summary_build(&own, to->price, to->summary, why);
    if (err >= 0)
        hec_knobs_attest(to->summary);
    return err;
}

int hec_load_summary(const char *path, const struct hec_args *args, const struct hec_price *price, int view,
                     struct hec_summary *summary, struct hec_why *why) {
    struct build to = {price, view, summary};
    return hec_load_input(path, args, build, &to, why);
}

int hec_load_summary_reader(struct hec_reader *reader, const char *path, const struct hec_args *args,
                            const struct hec_price *price, struct hec_summary *summary, struct hec_why *why) {
    struct build to = {price, 0, summary};
    return use_input(reader, path, args, build, &to, why);
}
