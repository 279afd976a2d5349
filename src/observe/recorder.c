#include "observe/recorder.h"

#include "base/clock.h"
#include "observe/devices.h"
#include "observe/processes.h"
#include "observe/rounds.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t thread_cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

void hec_lane_open(struct hec_lane_set *set, enum hec_lane lane, const struct hec_collector *const *all,
                   const struct hec_observe_options *options, const struct hec_sink *sink) {
    set->count = 0;
    for (; *all && set->count < HEC_LANE_COLLECTORS_MAX; all++) {
        if ((*all)->lane != lane)
            continue;
        struct hec_why why = {""};
        void *self = NULL;
        int64_t cpu_ns = thread_cpu_ns();
        int err = (*all)->open(options, sink, &self, &why);
        if (err < 0) {
            hec_sink_event(sink, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, hec_clock_mono_ns(), "%s: %s",
                           (*all)->name, why.text[0] ? why.text : hec_err_text(err));
            continue;
        }
        set->collector[set->count] = *all;
        set->self[set->count] = self;
        set->due_ns[set->count] = 0;
        set->cpu_ns[set->count] = thread_cpu_ns() - cpu_ns;
        set->count++;
    }
}

int64_t hec_lane_poll(struct hec_lane_set *set, int64_t now_ns) {
    int64_t next = INT64_MAX;
    bool shared = set->count > 1; /* of the only one, all that the thread takes is its, with what it takes to wake up */
    for (int i = 0; i < set->count; i++) {
        if (set->due_ns[i] <= now_ns) {
            int64_t cpu_ns = shared ? thread_cpu_ns() : 0;
            set->due_ns[i] = set->collector[i]->poll(set->self[i], now_ns);
            set->cpu_ns[i] += shared ? thread_cpu_ns() - cpu_ns : 0;
        }
        if (set->due_ns[i] < next)
            next = set->due_ns[i];
    }
    return next;
}

/* Something changed (the command started): every collector is due at the next poll. */
static void lane_wake(struct hec_lane_set *set) {
    for (int i = 0; i < set->count; i++)
        set->due_ns[i] = 0;
}

void hec_lane_finish(struct hec_lane_set *set, const struct hec_sink *sink, int64_t end_ns) {
    for (int i = 0; i < set->count; i++) {
        int64_t cpu_ns = thread_cpu_ns();
        set->collector[i]->finish(set->self[i], end_ns);
        cpu_ns = set->count > 1 ? set->cpu_ns[i] + thread_cpu_ns() - cpu_ns : thread_cpu_ns();
        char key[64];
        snprintf(key, sizeof key, "self_cpu_seconds.%s", set->collector[i]->name);
        hec_sink_meta(sink, key, "%.6f", (double)cpu_ns / (double)HEC_NS_PER_S);
    }
}

void hec_lane_close(struct hec_lane_set *set) {
    for (int i = 0; i < set->count; i++)
        set->collector[i]->close(set->self[i]);
    set->count = 0;
}

static const char *const lane_names[HEC_LANE_COUNT] = {"host", HEC_GAP_DRIVER, "trace", "sampler of stacks"};

/* For collectors that ask no driver: on an idle machine they are open after 1 ms, on a busy one a thread may not run for
 * longer than a GPU takes. */
#define LISTEN_NS (2 * HEC_NS_PER_S)

enum lane_phase { OPENING, RUNNING, DONE };

struct lane {
    struct hec_recorder *recorder;
    enum hec_lane kind;
    pthread_t thread;
    struct hec_lane_set set;
    struct hec_sink sink;      /* guards the real one: see cut_off */
    pthread_mutex_t sink_lock; /* held while a record passes through */
    bool cut_off;              /* the lane was abandoned: its records go nowhere */
    enum lane_phase phase;     /* under recorder->lock */
};

struct hec_recorder {
    const struct hec_collector *const *all;
    struct hec_observe_options *options;
    const struct hec_sink *sink;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* stop, wake-ups and phases */
    bool stopping;
    int64_t end_ns;
    unsigned wakes;
    struct lane lanes[HEC_LANE_COUNT];
    struct hec_device_table devices;
    struct hec_process_table processes;
};

static struct lane *hold(void *context) {
    struct lane *lane = context;
    pthread_mutex_lock(&lane->sink_lock);
    return lane;
}

static void let_go(struct lane **lane) {
    pthread_mutex_unlock(&(*lane)->sink_lock);
}

/* Every function of the lane's sink: pass on, unless the lane was cut off. One that gives an id then gives none. */
#define HEC_SINK(result, name, parameters, ...)                                                                        \
    static result pass_##name parameters {                                                                             \
        struct lane *lane __attribute__((cleanup(let_go))) = hold(context);                                            \
        const struct hec_sink *to = lane->recorder->sink;                                                              \
        return lane->cut_off ? (result)0 : to->name(to->context, __VA_ARGS__);                                         \
    }
#include "model/sink.def"
#undef HEC_SINK

static void add_device(void *context, const struct hec_device *device) {
    hec_device_table_add(&((struct lane *)context)->recorder->devices, device);
    pass_device(context, device);
}

static void add_process(void *context, const struct hec_process *process) {
    hec_process_table_add(&((struct lane *)context)->recorder->processes, process);
    pass_process(context, process);
}

static void show_tracer(void *context, const struct hec_tracer *tracer) {
    struct lane *lane = hold(context);
    const struct hec_observe_options *options = lane->recorder->options;
    if (!lane->cut_off && options->tracer_seen)
        options->tracer_seen(options->tracer_context, tracer);
    let_go(&lane);
    pass_tracer(context, tracer);
}

static void set_phase(struct lane *lane, enum lane_phase phase) {
    struct hec_recorder *recorder = lane->recorder;
    pthread_mutex_lock(&recorder->lock);
    lane->phase = phase;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
}

/* Sleep until due_ns, a wake-up (then everything is due) or the end. Returns true at the end. */
static bool wait_due(struct lane *lane, int64_t due_ns, unsigned *wakes) {
    struct hec_recorder *recorder = lane->recorder;
    struct hec_rounds *rounds = lane->kind == HEC_LANE_GPU ? recorder->options->rounds : NULL;
    pthread_mutex_lock(&recorder->lock);
    if (rounds && !recorder->stopping) /* or another recorder keeps them up by now */
        hec_rounds_due(rounds, due_ns);
    while (!recorder->stopping && recorder->wakes == *wakes) {
        if (due_ns == INT64_MAX) {
            pthread_cond_wait(&recorder->changed, &recorder->lock);
            continue;
        }
        if (hec_clock_mono_ns() >= due_ns)
            break;
        struct timespec until = {due_ns / HEC_NS_PER_S, due_ns % HEC_NS_PER_S};
        pthread_cond_timedwait(&recorder->changed, &recorder->lock, &until);
    }
    if (recorder->wakes != *wakes)
        lane_wake(&lane->set);
    *wakes = recorder->wakes;
    bool stopping = recorder->stopping;
    if (rounds && !stopping)
        hec_rounds_begin(rounds, hec_clock_mono_ns());
    pthread_mutex_unlock(&recorder->lock);
    return stopping;
}

static void *lane_main(void *argument) {
    struct lane *lane = argument;
    struct hec_recorder *recorder = lane->recorder;
    unsigned wakes = 0;
    hec_lane_open(&lane->set, lane->kind, recorder->all, recorder->options, &lane->sink);
    if (lane->kind == HEC_LANE_GPU)
        hec_device_table_complete(&recorder->devices);
    set_phase(lane, RUNNING);
    while (!wait_due(lane, hec_lane_poll(&lane->set, hec_clock_mono_ns()), &wakes)) {
    }
    hec_lane_finish(&lane->set, &lane->sink, recorder->end_ns);
    hec_lane_close(&lane->set);
    set_phase(lane, DONE);
    return NULL;
}

static int start_lane(struct hec_recorder *recorder, enum hec_lane kind) {
    struct lane *lane = &recorder->lanes[kind];
    lane->recorder = recorder;
    lane->kind = kind;
    pthread_mutex_init(&lane->sink_lock, NULL);
    lane->sink = (struct hec_sink){
        .context = lane,
#define HEC_SINK(result, name, ...) .name = pass_##name,
#include "model/sink.def"
#undef HEC_SINK
    };
    lane->sink.device = add_device;
    lane->sink.process = add_process;
    lane->sink.tracer = show_tracer;
    return pthread_create(&lane->thread, NULL, lane_main, lane);
}

int hec_recorder_start(const struct hec_collector *const *all, struct hec_observe_options *options,
                       const struct hec_sink *sink, struct hec_recorder **out, struct hec_why *why) {
    struct hec_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the recorder");
    recorder->all = all;
    recorder->options = options;
    recorder->sink = sink;
    hec_device_table_init(&recorder->devices);
    options->devices = &recorder->devices;
    hec_process_table_init(&recorder->processes);
    options->processes = &recorder->processes;
    pthread_mutex_init(&recorder->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&recorder->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int kind = 0; kind < HEC_LANE_COUNT; kind++) {
        int errnum = start_lane(recorder, (enum hec_lane)kind);
        if (errnum == 0)
            continue;
        for (int rest = kind; rest < HEC_LANE_COUNT; rest++)
            recorder->lanes[rest].phase = DONE;
        recorder->stopping = true;
        pthread_cond_broadcast(&recorder->changed);
        while (kind-- > 0)
            pthread_join(recorder->lanes[kind].thread, NULL);
        options->devices = NULL;
        hec_device_table_free(&recorder->devices);
        options->processes = NULL;
        hec_process_table_free(&recorder->processes);
        free(recorder);
        return hec_fail(why, HEC_ERR_NOMEM, "cannot start a thread: %s", strerror(errnum));
    }
    *out = recorder;
    return HEC_OK;
}

/* Wait until the lanes have reached the phase or the time is up; returns how many have not. The lock is held. gpu: that of
 * the driver too. */
static int wait_phase(struct hec_recorder *recorder, enum lane_phase phase, int64_t timeout_ns, bool gpu) {
    int64_t until_ns = hec_clock_mono_ns() + timeout_ns;
    for (;;) {
        int behind = 0;
        for (int kind = 0; kind < HEC_LANE_COUNT; kind++)
            behind += (gpu || kind != HEC_LANE_GPU) && recorder->lanes[kind].phase < phase;
        if (behind == 0 || hec_clock_mono_ns() >= until_ns)
            return behind;
        struct timespec until = {until_ns / HEC_NS_PER_S, until_ns % HEC_NS_PER_S};
        pthread_cond_timedwait(&recorder->changed, &recorder->lock, &until);
    }
}

int hec_recorder_wait_ready(struct hec_recorder *recorder, int64_t timeout_ns) {
    int64_t until_ns = hec_clock_mono_ns() + timeout_ns;
    pthread_mutex_lock(&recorder->lock);
    wait_phase(recorder, RUNNING, LISTEN_NS, false);
    int64_t left_ns = until_ns - hec_clock_mono_ns();
    int behind = wait_phase(recorder, RUNNING, left_ns > 0 ? left_ns : 0, true);
    pthread_mutex_unlock(&recorder->lock);
    return behind;
}

void hec_recorder_set_root(struct hec_recorder *recorder, pid_t root) {
    pthread_mutex_lock(&recorder->lock);
    __atomic_store_n(&recorder->options->root, root, __ATOMIC_RELEASE);
    recorder->wakes++;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
}

int hec_recorder_stop(struct hec_recorder *recorder, int64_t end_ns, int64_t timeout_ns) {
    pthread_mutex_lock(&recorder->lock);
    recorder->end_ns = end_ns;
    recorder->stopping = true;
    pthread_cond_broadcast(&recorder->changed);
    wait_phase(recorder, DONE, timeout_ns, true);
    bool done[HEC_LANE_COUNT];
    for (int kind = 0; kind < HEC_LANE_COUNT; kind++)
        done[kind] = recorder->lanes[kind].phase == DONE;
    pthread_mutex_unlock(&recorder->lock);

    int abandoned = 0;
    for (int kind = 0; kind < HEC_LANE_COUNT; kind++) {
        struct lane *lane = &recorder->lanes[kind];
        if (done[kind]) {
            pthread_join(lane->thread, NULL);
            pthread_mutex_destroy(&lane->sink_lock);
            continue;
        }
        abandoned++;
        pthread_mutex_lock(&lane->sink_lock);
        lane->cut_off = true;
        pthread_mutex_unlock(&lane->sink_lock);
        pthread_detach(lane->thread);
        hec_sink_event(recorder->sink, HEC_EVENT_GAP, HEC_DEVICE_NONE, end_ns,
                       "the %s did not answer within %.1f s at the end of the run: its last readings are missing",
                       lane_names[kind], (double)timeout_ns / (double)HEC_NS_PER_S);
    }
    if (abandoned)
        return abandoned;
    pthread_cond_destroy(&recorder->changed);
    pthread_mutex_destroy(&recorder->lock);
    recorder->options->devices = NULL;
    hec_device_table_free(&recorder->devices);
    recorder->options->processes = NULL;
    hec_process_table_free(&recorder->processes);
    free(recorder);
    return 0;
}
