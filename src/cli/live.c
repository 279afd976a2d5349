#include "cli/live.h"

#include "agent/metrics.h"
#include "agent/verdict.h"
#include "base/clock.h"
#include "base/text.h"
#include "diagnose/meter/meter.h"
#include "model/trace.h"
#include "report/format.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_NS HEC_NS_PER_S
#define RATE_NS (2 * HEC_NS_PER_S)   /* rates are means over once to twice as long */
#define END_NS (200 * HEC_NS_PER_MS) /* a terminal that is stopped holds nothing up */
#define LINES_IN_A_FILE 60           /* one a second, then so many in the time that the run has taken */
#define TREE_MAX 4096                /* processes of the command */
#define NAMES_MAX 64 /* of the timeline: the newest by their ids; those of units come early and seldom */

struct live_device {
    bool seen, used;
    struct hec_running_joules joules;
    double watts_sum, watts;
    int64_t watts_count;
    struct hec_device info;
    struct hec_verdict verdict;
};

struct hec_live {
    struct hec_sink sink;
    const struct hec_sink *to;
    struct hec_live_place place;
    int64_t begin_ns, shown_ns;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool ending;
    struct live_device devices[HEC_DEVICE_MAX];
    int32_t tree[TREE_MAX];
    int tree_count;
    struct {
        int device;
        int32_t pid;
    } waiting[64]; /* contexts whose process is not known as the command's yet */
    int waiting_count;
    struct {
        uint32_t id;
        char text[32];
    } names[NAMES_MAX];
    char unit[32];
    double marked, found; /* units of work: as the program marks them, as the hooks find its steps */
    int found_source;
    double unit_begin, unit_begin_j; /* where both are known for the first time; unit_begin_j NAN: not yet */
    struct {
        int64_t t_ns;
        double units;
    } from, later;
    pthread_t thread;
    bool runs;
};

/* ---- what goes by ---- */

static bool in_tree(const struct hec_live *live, int32_t pid) {
    for (int i = 0; i < live->tree_count; i++)
        if (live->tree[i] == pid)
            return true;
    return false;
}

/* What passes as it is: each function takes what it is the sink's own context. */
#define HEC_SINK(result, name, parameters, ...)                                                                        \
    static result pass_##name parameters {                                                                             \
        const struct hec_sink *to = ((struct hec_live *)context)->to;                                                  \
        return to->name(to->context, __VA_ARGS__);                                                                     \
    }
#include "model/sink.def"
#undef HEC_SINK

static void live_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    struct hec_live *live = context;
    pass_sample(context, metric, subject, t_ns, value);
    if (hec_metric_info(metric)->subject != HEC_SUBJECT_DEVICE || subject < 0 || subject >= HEC_DEVICE_MAX)
        return;
    pthread_mutex_lock(&live->lock);
    struct live_device *device = &live->devices[subject];
    if (metric == HEC_GPU_ENERGY) {
        hec_running_counter(&device->joules, value);
    } else if (metric == HEC_GPU_POWER) {
        double watts = (double)value * 1e-3;
        hec_running_power(&device->joules, t_ns, watts);
        device->watts_sum += watts;
        device->watts_count++;
    }
    hec_verdict_add(&device->verdict, metric, t_ns, value);
    pthread_mutex_unlock(&live->lock);
}

static void live_device(void *context, const struct hec_device *info) {
    struct hec_live *live = context;
    pass_device(context, info);
    if (info->index < 0 || info->index >= HEC_DEVICE_MAX)
        return;
    pthread_mutex_lock(&live->lock);
    live->devices[info->index].info = *info;
    live->devices[info->index].seen = true;
    pthread_mutex_unlock(&live->lock);
}

static void live_process(void *context, const struct hec_process *process) {
    struct hec_live *live = context;
    pass_process(context, process);
    pthread_mutex_lock(&live->lock);
    if (live->tree_count < TREE_MAX && !in_tree(live, process->pid))
        live->tree[live->tree_count++] = process->pid;
    for (int i = 0; i < live->waiting_count; i++)
        if (live->waiting[i].pid == process->pid)
            live->devices[live->waiting[i].device].used = true;
    pthread_mutex_unlock(&live->lock);
}

/* A process that is not seen in this pid namespace may be the command's, as in the report. */
static void live_gpu_process(void *context, const struct hec_gpu_process *process) {
    struct hec_live *live = context;
    pass_gpu_process(context, process);
    if (process->device < 0 || process->device >= HEC_DEVICE_MAX)
        return;
    pthread_mutex_lock(&live->lock);
    if (in_tree(live, process->pid) || !process->visible)
        live->devices[process->device].used = true;
    else if (live->waiting_count < (int)(sizeof live->waiting / sizeof live->waiting[0])) {
        live->waiting[live->waiting_count].device = process->device;
        live->waiting[live->waiting_count++].pid = process->pid;
    }
    pthread_mutex_unlock(&live->lock);
}

static void live_units(void *context, const char *name, double count) {
    struct hec_live *live = context;
    pass_units(context, name, count);
    pthread_mutex_lock(&live->lock);
    if (live->marked == 0) { /* what the program says itself counts, from here on */
        hec_text_clean(live->unit, sizeof live->unit, name, strlen(name), false);
        live->unit_begin_j = NAN;
        live->from.t_ns = 0;
    }
    char clean[sizeof live->unit];
    if (strcmp(live->unit, hec_text_clean(clean, sizeof clean, name, strlen(name), false)) == 0)
        live->marked += count;
    pthread_mutex_unlock(&live->lock);
}

static uint32_t live_name(void *context, const char *text) {
    struct hec_live *live = context;
    uint32_t id = pass_trace_name(context, text);
    if (strlen(text) >= sizeof live->names[0].text)
        return id;
    pthread_mutex_lock(&live->lock);
    live->names[id % NAMES_MAX].id = id;
    hec_text_clean(live->names[id % NAMES_MAX].text, sizeof live->names[0].text, text, strlen(text), false);
    pthread_mutex_unlock(&live->lock);
    return id;
}

/* A step that the hooks found. Those of the optimizer count where there are some, else calls of the module; what it holds of its unit, or
 * one step where that is not known. */
static void take_step(struct hec_live *live, const struct hec_activity *step) {
    if (step->detail != HEC_STEP_OPTIMIZER && step->detail != HEC_STEP_MODULE)
        return;
    if (live->found_source != step->detail) {
        if (live->found_source == HEC_STEP_OPTIMIZER)
            return;
        live->found = 0;
        live->found_source = step->detail;
        live->unit_begin_j = NAN;
        live->from.t_ns = 0;
    }
    bool known = isfinite(step->amount) && step->amount > 0;
    live->found += known ? step->amount : 1;
    if (live->marked > 0)
        return;
    bool named = known && live->names[step->name % NAMES_MAX].id == step->name && step->name;
    snprintf(live->unit, sizeof live->unit, "%s",
             named   ? live->names[step->name % NAMES_MAX].text
             : known ? "unit"
                     : "step");
}

static void live_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct hec_live *live = context;
    pass_trace_activities(context, activities, count);
    for (size_t i = 0; i < count; i++)
        if (activities[i].kind == HEC_ACTIVITY_STEP) {
            pthread_mutex_lock(&live->lock);
            take_step(live, &activities[i]);
            pthread_mutex_unlock(&live->lock);
        }
}

/* ---- the line ---- */

struct sums {
    double watts, joules;
    bool about; /* some joules are the integral of power */
    int verdict;
};

/* Of the devices that the command uses; NAN where there are none. A verdict only where all of them agree. */
static struct sums add_up(struct hec_live *live, int64_t now_ns) {
    struct sums sums = {.watts = NAN, .joules = NAN, .verdict = HEC_VERDICT_UNKNOWN};
    bool all_agree = true;
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        struct live_device *device = &live->devices[i];
        if (!device->seen || !device->used)
            continue;
        if (device->watts_count)
            device->watts = device->watts_sum / (double)device->watts_count;
        device->watts_sum = 0;
        device->watts_count = 0;
        double joules = hec_running_joules(&device->joules);
        int verdict = hec_verdict_of(&device->verdict, &device->info, now_ns, NULL);
        all_agree &= isnan(sums.joules) || verdict == sums.verdict;
        sums.verdict = verdict;
        sums.about |= !device->joules.counted;
        sums.watts = isnan(sums.watts) ? device->watts : sums.watts + device->watts;
        sums.joules = isnan(sums.joules) ? joules : sums.joules + joules;
    }
    if (!all_agree)
        sums.verdict = HEC_VERDICT_UNKNOWN;
    return sums;
}

/* Units a second over the last seconds, and joules a unit since the first one was seen: start-up is no part of it. */
static void add_units(struct hec_live *live, int64_t now_ns, double joules, char *text, size_t size) {
    double units = live->marked > 0 ? live->marked : live->found;
    char number[HEC_FORMAT_SIZE];
    if (units <= 0)
        return;
    if (live->from.t_ns == 0) {
        live->from.t_ns = live->later.t_ns = now_ns;
        live->from.units = live->later.units = units;
    }
    if (isnan(live->unit_begin_j) && !isnan(joules)) {
        live->unit_begin_j = joules;
        live->unit_begin = units;
    }
    if (now_ns > live->from.t_ns) {
        double rate = (units - live->from.units) * HEC_NS_PER_S / (double)(now_ns - live->from.t_ns);
        hec_format_si(number, rate, 3, ""); /* "750 ", "1.2 k" */
        bool prefix = number[strlen(number) - 1] != ' ';
        snprintf(text + strlen(text), size - strlen(text), "  %s%s%s/s", number, prefix ? " " : "", live->unit);
    }
    if (now_ns - live->later.t_ns >= RATE_NS) {
        live->from = live->later;
        live->later.t_ns = now_ns;
        live->later.units = units;
    }
    if (units > live->unit_begin && joules > live->unit_begin_j) {
        hec_format_si(number, (joules - live->unit_begin_j) / (units - live->unit_begin), 3, "J");
        snprintf(text + strlen(text), size - strlen(text), "  %s/%s", number, live->unit);
    }
}

void hec_live_line(struct hec_live *live, int64_t now_ns, char text[HEC_LIVE_TEXT]) {
    char watts[HEC_FORMAT_SIZE] = "- W", joules[HEC_FORMAT_SIZE] = "- J", past[HEC_FORMAT_SIZE];
    pthread_mutex_lock(&live->lock);
    struct sums sums = add_up(live, now_ns);
    if (!isnan(sums.watts))
        hec_format_si(watts, sums.watts, 3, "W");
    if (!isnan(sums.joules))
        hec_format_si(joules, sums.joules, 3, "J");
    snprintf(text, HEC_LIVE_TEXT, "hec: %s  %s%s", watts, sums.about && !isnan(sums.joules) ? "about " : "", joules);
    add_units(live, now_ns, sums.joules, text, HEC_LIVE_TEXT);
    pthread_mutex_unlock(&live->lock);
    if (sums.verdict != HEC_VERDICT_UNKNOWN)
        snprintf(text + strlen(text), HEC_LIVE_TEXT - strlen(text), "  %s",
                 hec_agent_verdict_name((enum hec_agent_verdict)sums.verdict));
    double seconds = floor((double)(now_ns - live->begin_ns) / HEC_NS_PER_S);
    if (seconds < 120)
        snprintf(past, sizeof past, "%.0f s", seconds);
    else
        hec_format_seconds(past, seconds);
    snprintf(text + strlen(text), HEC_LIVE_TEXT - strlen(text), "  %s", past);
}

/* ---- the thread ---- */

static bool wait_or_end(struct hec_live *live, int64_t until_ns) {
    struct timespec until = {until_ns / HEC_NS_PER_S, until_ns % HEC_NS_PER_S};
    pthread_mutex_lock(&live->lock);
    int err = 0;
    while (!live->ending && err == 0)
        err = pthread_cond_timedwait(&live->wake, &live->lock, &until);
    bool ending = live->ending;
    pthread_mutex_unlock(&live->lock);
    return ending;
}

static void *live_main(void *argument) {
    struct hec_live *live = argument;
    char text[HEC_LIVE_TEXT];
    for (int64_t due_ns = live->begin_ns + EVERY_NS; !wait_or_end(live, due_ns);) {
        int64_t now_ns = hec_clock_mono_ns(), past_ns = now_ns - live->begin_ns;
        bool file = live->place.how == HEC_LIVE_FILE;
        hec_live_line(live, now_ns, text);
        hec_live_place_show(&live->place, text);
        due_ns = now_ns + (file && past_ns / LINES_IN_A_FILE > EVERY_NS ? past_ns / LINES_IN_A_FILE : EVERY_NS);
    }
    hec_live_place_close(&live->place);
    return NULL;
}

int hec_live_open(const char *where, int64_t begin_ns, struct hec_live **out, struct hec_why *why) {
    struct hec_live *live = calloc(1, sizeof *live);
    if (!live)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for --live");
    int err = hec_live_place_open(where, &live->place, why);
    if (err < 0) {
        free(live);
        return err;
    }
    live->begin_ns = begin_ns;
    live->unit_begin_j = NAN;
    pthread_mutex_init(&live->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&live->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        live->devices[i].watts = NAN;
        hec_verdict_clear(&live->devices[i].verdict);
    }
    *out = live;
    return HEC_OK;
}

const struct hec_sink *hec_live_through(void *context, const struct hec_sink *to) {
    struct hec_live *live = context;
    sigset_t all, before;
    live->to = to;
    live->sink = (struct hec_sink){
        .context = live,
#define HEC_SINK(result, name, ...) .name = pass_##name,
#include "model/sink.def"
#undef HEC_SINK
    };
    live->sink.sample = live_sample;
    live->sink.device = live_device;
    live->sink.process = live_process;
    live->sink.gpu_process = live_gpu_process;
    live->sink.units = live_units;
    live->sink.trace_name = live_name;
    live->sink.trace_activities = live_activities;
    /* signals are the session's; with SIGTTOU blocked a terminal that is another's stops nobody */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    live->runs = pthread_create(&live->thread, NULL, live_main, live) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return &live->sink;
}

void hec_live_end(struct hec_live *live) {
    if (!live || !live->runs)
        return;
    pthread_mutex_lock(&live->lock);
    live->ending = true;
    pthread_cond_signal(&live->wake);
    pthread_mutex_unlock(&live->lock);
    int64_t until_ns = hec_clock_wall_ns() + END_NS;
    struct timespec until = {until_ns / HEC_NS_PER_S, until_ns % HEC_NS_PER_S};
    live->runs = pthread_timedjoin_np(live->thread, NULL, &until) != 0; /* a write that hangs still uses it */
}

void hec_live_free(struct hec_live *live) {
    if (!live || live->runs)
        return;
    hec_live_place_close(&live->place);
    free(live);
}
