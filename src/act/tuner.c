#include "act/tuner.h"

#include "act/power_device.h"
#include "base/clock.h"
#include "prove/tune.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNG 0.05      /* of the limit that was there: from one to the next */
#define WARM_STEPS 8   /* before the first block */
#define SETTLE_STEPS 3 /* left out after a switch: a limit acts after some 10 to 100 ms */
#define STEPS_LEAST 4  /* of a block */
#define BLOCK_S 2.0
#define EDGES_LEAST 2
#define ALPHA 0.05
#define REACT_S 0.25 /* the thread wakes, the guardian writes, the device follows */
#define MW_A_W 1000

struct edges { /* of a device's counter, in a block */
    int64_t value_mj, first_ns, last_ns;
    int64_t first_mj, last_mj;
    int count;
};

#define SAID_MOST 8

struct hec_tuner {
    struct hec_tuner_options options;
    int64_t limits_mw[HEC_TUNE_SETTINGS];
    struct hec_tune_plan plan;
    struct hec_sink sink;
    const struct hec_sink *to;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool stopping, failed, tried;
    uint64_t devices;            /* bits of those whose counter is read: what the command may use */
    enum hec_step_source source; /* of its steps: the best that has come */
    int warm;
    int64_t opened_ns;          /* when the command was about to begin */
    int64_t steady_ns, step_ns; /* when the first block began; the last step */
    struct hec_tune tune;
    struct hec_tune_step wanted;
    int set;    /* the setting that holds */
    bool tries; /* it is a trial */
    int settle;
    int64_t switch_ns, begin_ns, end_ns; /* of the block: ordered; the first and the last step that count */
    struct hec_tune_block block;
    struct edges edges[HEC_DEVICE_MAX];
    struct said {
        int64_t t_ns;
        char text[256];
    } said[SAID_MOST];
    int said_count;
};

static double seconds_between(int64_t from_ns, int64_t to_ns) {
    return (double)(to_ns - from_ns) / HEC_NS_PER_S;
}

/* ---- what is said ---- */

/* Written by the session's own threads, which end before the run file is closed. */
static void say(struct hec_tuner *t, int64_t t_ns, const char *text) {
    struct said *said = &t->said[t->said_count < SAID_MOST ? t->said_count++ : SAID_MOST - 1];
    said->t_ns = t_ns;
    snprintf(said->text, sizeof said->text, "%s", text);
}

static void write_said(struct hec_tuner *t) {
    for (int i = 0; i < t->said_count; i++)
        hec_sink_event(t->to, HEC_EVENT_TUNE, HEC_DEVICE_NONE, t->said[i].t_ns, "%s", t->said[i].text);
    t->said_count = 0;
}

static void say_cost(struct hec_tuner *t, int64_t t_ns, char *text, size_t size, int length) {
    if (length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, "; trying cost at most %.2f s of %.0f s", t->tune.harm.spent,
                 seconds_between(t->steady_ns, t_ns));
    say(t, t_ns, text);
}

static void say_kept(struct hec_tuner *t, int64_t t_ns) {
    const struct hec_look *saving = &t->tune.saving;
    char words[32], text[256];
    hec_power_value_words(HEC_POWER_CAP, t->limits_mw[t->tune.at], words);
    int length =
        snprintf(text, sizeof text, "limit of %s kept: %.1f %% fewer joules a step (%.1f to %.1f), %.1f %% slower",
                 words, 100 * (1 - saving->ratio), 100 * (1 - saving->high), 100 * (1 - saving->low),
                 100 * hec_tune_slowdown(&t->tune));
    say_cost(t, t_ns, text, sizeof text, length);
}

static void say_block(struct hec_tuner *t, const struct hec_tune_block *block, int64_t t_ns) {
    char words[32], text[256];
    hec_power_value_words(HEC_POWER_CAP, t->limits_mw[block->setting], words);
    if (block->cut)
        snprintf(text, sizeof text, "limit of %s: taken back after %.2f s, it slows the program down by too much",
                 words, block->whole_s);
    else
        snprintf(text, sizeof text, "limit of %s: %.4g J and %.4g s a step", words, block->joules / block->units,
                 block->seconds / block->units);
    say(t, t_ns, text);
}

/* What changed by the block: a setting was kept, or left, or there is nothing to try. */
static void say_phase(struct hec_tuner *t, enum hec_tune_phase before, int pairs, int64_t t_ns) {
    const struct hec_tune *tune = &t->tune;
    if (tune->phase == HEC_TUNE_HOLDS && (before != HEC_TUNE_HOLDS || tune->confirmed[tune->at].pairs != pairs))
        say_kept(t, t_ns);
    else if (before == HEC_TUNE_HOLDS && tune->phase != HEC_TUNE_HOLDS)
        say(t, t_ns, "the limit is as it was: what was kept pays no more, or the program is not what it was");
    else if (tune->phase == HEC_TUNE_RESTS && before != HEC_TUNE_RESTS) {
        char text[256];
        say_cost(t, t_ns, text, sizeof text, snprintf(text, sizeof text, "no lower limit of power was shown to save"));
    }
}

/* ---- blocks ---- */

static void begin_block(struct hec_tuner *t, int64_t t_ns) {
    t->block = (struct hec_tune_block){.setting = t->set};
    t->settle = SETTLE_STEPS;
    t->switch_ns = t->begin_ns = t->end_ns = t_ns;
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        t->edges[d].count = 0;
}

static void want_next(struct hec_tuner *t, int64_t t_ns) {
    t->wanted = hec_tune_next(&t->tune, seconds_between(t->steady_ns, t_ns));
    begin_block(t, t_ns);
    pthread_cond_signal(&t->changed);
}

/* Watts between the first and the last edge of each device's counter: their sum, and the most of one; NAN: one has too few. */
static double watts_of(const struct hec_tuner *t, double *most) {
    double watts = t->devices ? 0 : NAN;
    *most = watts;
    for (int d = 0; d < HEC_DEVICE_MAX; d++) {
        const struct edges *e = &t->edges[d];
        if (!(t->devices & UINT64_C(1) << d))
            continue;
        double of_this = e->count >= EDGES_LEAST
                             ? (double)(e->last_mj - e->first_mj) * 1e-3 / seconds_between(e->first_ns, e->last_ns)
                             : NAN;
        watts += of_this;
        *most = fmax(*most, of_this);
    }
    return watts;
}

static void end_block(struct hec_tuner *t, bool cut, int64_t t_ns) {
    enum hec_tune_phase before = t->tune.phase;
    int pairs = t->tune.confirmed[t->tune.at].pairs;
    struct hec_tune_block block = t->block;
    block.cut = cut;
    block.whole_s = seconds_between(t->switch_ns, t_ns);
    block.seconds = seconds_between(t->begin_ns, t->end_ns);
    block.joules = watts_of(t, &block.watts) * block.seconds;
    if (block.setting != 0 && before != HEC_TUNE_HOLDS)
        say_block(t, &block, t_ns);
    hec_tune_block(&t->tune, &block);
    say_phase(t, before, pairs, t_ns);
}

static void take_first_steps(struct hec_tuner *t, int64_t t_ns) {
    if (t->warm++ == 0)
        t->steady_ns = t_ns;
    if (t->warm <= WARM_STEPS)
        return;
    double step_s = seconds_between(t->steady_ns, t_ns) / WARM_STEPS;
    t->plan.block_s = SETTLE_STEPS * step_s + fmax(BLOCK_S, STEPS_LEAST * step_s);
    double whole_s = t->options.steps > 0 ? t->options.steps * step_s : t->options.seconds;
    t->plan.whole_s = whole_s > 0 ? fmax(whole_s - seconds_between(t->opened_ns, t_ns), 1) : 0;
    hec_tune_begin(&t->tune, &t->plan);
    t->steady_ns = t_ns;
    want_next(t, t_ns);
}

/* A step of the program: of all its ranks, which do the same. Another kind of steps than before is another program: calls of a model
 * come before it is trained. */
static void take_step(struct hec_tuner *t, const struct hec_activity *step) {
    enum hec_step_source source = (enum hec_step_source)step->detail;
    if (source < HEC_STEP_MARKED || source > HEC_STEP_MODULE || (t->source && source > t->source))
        return;
    int64_t t_ns = step->end_ns;
    if (source != t->source) {
        if (t->set != 0)
            say(t, t_ns, "the limit is as it was: the program makes steps of another kind");
        t->source = source;
        t->warm = 0;
        t->wanted = (struct hec_tune_step){0};
        pthread_cond_signal(&t->changed);
    }
    if (t->warm <= WARM_STEPS) {
        take_first_steps(t, t_ns);
        return;
    }
    if (t->wanted.setting != t->set || t_ns < t->switch_ns)
        return; /* a switch is under way */
    t->block.step_s =
        fmax(t->block.step_s, seconds_between(t->block.whole_units > 0 ? t->step_ns : t->switch_ns, t_ns));
    t->block.whole_units++;
    t->step_ns = t_ns;
    if (t->settle > 0) {
        t->settle--;
        t->begin_ns = t->end_ns = t_ns;
        for (int d = 0; d < HEC_DEVICE_MAX; d++)
            t->edges[d].count = 0;
        return;
    }
    t->block.units++;
    t->end_ns = t_ns;
    double most;
    if (t->block.units >= STEPS_LEAST && seconds_between(t->begin_ns, t_ns) >= BLOCK_S &&
        isfinite(watts_of(t, &most))) {
        end_block(t, false, t_ns);
        want_next(t, t_ns);
    }
}

/* ---- the thread that writes limits ---- */

/* When the block will have lost too much, if the step at hand does not end before. */
static int64_t cut_ns(const struct hec_tuner *t) {
    double allowed_s = t->wanted.lost_most_s + (t->block.whole_units + 1) * hec_tune_own_seconds(&t->tune);
    return t->wanted.tries && t->set != 0 ? t->switch_ns + (int64_t)(allowed_s * HEC_NS_PER_S) : INT64_MAX;
}

/* The lock is held, and let go of meanwhile: the guardian waits for the disk. */
static void write_limit(struct hec_tuner *t) {
    int setting = t->wanted.setting;
    struct hec_why why = {""};
    pthread_mutex_unlock(&t->lock);
    int err = setting ? hec_power_guard_set(t->options.guard, HEC_POWER_CAP, t->limits_mw[setting], &why)
                      : hec_power_guard_clear(t->options.guard, &why);
    pthread_mutex_lock(&t->lock);
    int64_t now_ns = hec_clock_mono_ns();
    t->set = err < 0 ? 0 : setting;
    t->tries = t->set != 0 && t->wanted.tries;
    t->tried |= t->tries;
    if (err < 0) { /* everything is as it was: nothing more is tried */
        t->failed = true;
        t->wanted = (struct hec_tune_step){0};
        say(t, now_ns, why.text);
    }
    begin_block(t, now_ns);
}

/* The limit is gone before anything else. What it lost counts until then. */
static void cut(struct hec_tuner *t) {
    int64_t since_ns = t->switch_ns;
    struct hec_tune_block block = t->block;
    t->wanted = (struct hec_tune_step){0};
    write_limit(t);
    int64_t now_ns = hec_clock_mono_ns();
    t->block = block;
    t->switch_ns = since_ns;
    end_block(t, true, now_ns);
    want_next(t, now_ns);
}

static void *write_limits(void *context) {
    struct hec_tuner *t = context;
    pthread_mutex_lock(&t->lock);
    while (!t->stopping && !t->failed) {
        if (t->wanted.setting != t->set) {
            int64_t ordered_ns = t->switch_ns;
            bool ends_trial = t->tries;
            write_limit(t);
            if (ends_trial) /* the limit may have held until now, after its block */
                hec_harm_charge(&t->tune.harm, seconds_between(ordered_ns, hec_clock_mono_ns()));
            continue;
        }
        int64_t due_ns = cut_ns(t);
        if (hec_clock_mono_ns() >= due_ns) {
            cut(t);
            continue;
        }
        struct timespec until = {due_ns / HEC_NS_PER_S, due_ns % HEC_NS_PER_S};
        if (due_ns == INT64_MAX)
            pthread_cond_wait(&t->changed, &t->lock);
        else
            pthread_cond_timedwait(&t->changed, &t->lock, &until);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- the sink ---- */

#define HEC_SINK(result, name, parameters, ...)                                                                        \
    static result pass_##name parameters {                                                                             \
        const struct hec_sink *to = ((struct hec_tuner *)context)->to;                                                 \
        return to->name(to->context, __VA_ARGS__);                                                                     \
    }
#include "model/sink.def"
#undef HEC_SINK

static void take_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    struct hec_tuner *t = context;
    pass_sample(context, metric, subject, t_ns, value);
    if (metric != HEC_GPU_ENERGY || subject < 0 || subject >= HEC_DEVICE_MAX)
        return;
    pthread_mutex_lock(&t->lock);
    struct edges *e = &t->edges[subject];
    t->devices |= UINT64_C(1) << subject;
    if (value != e->value_mj) {
        if (t_ns >= t->begin_ns && e->value_mj && !e->count++) {
            e->first_ns = t_ns;
            e->first_mj = value;
        }
        e->last_ns = t_ns;
        e->last_mj = e->value_mj = value;
    }
    write_said(t);
    pthread_mutex_unlock(&t->lock);
}

static void take_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct hec_tuner *t = context;
    pass_trace_activities(context, activities, count);
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < count && !t->failed; i++)
        if (activities[i].kind == HEC_ACTIVITY_STEP)
            take_step(t, &activities[i]);
    write_said(t);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the whole ---- */

/* From the limit that is there down to the lowest that all devices take. */
static int read_limits(struct hec_tuner *t, struct hec_why *why) {
    struct hec_power_machine machine;
    struct hec_power_device devices[HEC_POWER_DEVICES];
    int64_t now_mw = INT64_MAX, least_mw = 0, low_mw, high_mw, set_mw;
    int err = hec_power_machine_open(t->options.simulated, &machine, why);
    if (err < 0)
        return err;
    int count = err = hec_power_devices(&machine, t->options.visible, devices, why);
    for (int i = 0; i < count && err >= 0; i++) {
        err = hec_power_device_range(&machine, &devices[i], HEC_POWER_CAP, &low_mw, &high_mw, why);
        if (err >= 0)
            err = hec_power_device_read(&machine, &devices[i], HEC_POWER_CAP, &set_mw, why);
        if (err >= 0) {
            now_mw = set_mw < now_mw ? set_mw : now_mw;
            least_mw = low_mw > least_mw ? low_mw : least_mw;
        }
    }
    hec_power_machine_close(&machine);
    if (err < 0)
        return err;
    int64_t rung_mw = (int64_t)(RUNG * (double)now_mw) / MW_A_W * MW_A_W;
    int settings = 0;
    for (int64_t mw = now_mw; rung_mw > 0 && mw >= least_mw && settings < HEC_TUNE_SETTINGS; mw -= rung_mw) {
        t->limits_mw[settings] = mw;
        t->plan.watts[settings++] = (double)mw / MW_A_W;
    }
    t->plan.settings = settings;
    return settings > 1
               ? HEC_OK
               : hec_fail(why, HEC_ERR_UNSUPPORTED, "the limit of power is already the lowest that the devices take");
}

int hec_tuner_open(const struct hec_tuner_options *options, struct hec_tuner **out, struct hec_why *why) {
    struct hec_tuner *t = *out = calloc(1, sizeof *t);
    if (!t)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the tuner");
    t->options = *options;
    t->opened_ns = hec_clock_mono_ns();
    t->plan = (struct hec_tune_plan){
        .harm_most = options->harm_most, .slowdown_most = options->slowdown_most, .alpha = ALPHA, .react_s = REACT_S};
    int err = read_limits(t, why);
    if (err < 0) {
        free(t);
        *out = NULL;
        return err;
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return HEC_OK;
}

const struct hec_sink *hec_tuner_through(void *context, const struct hec_sink *to) {
    struct hec_tuner *t = context;
    t->to = to;
    t->sink = (struct hec_sink){
        .context = t,
#define HEC_SINK(result, name, ...) .name = pass_##name,
#include "model/sink.def"
#undef HEC_SINK
    };
    t->sink.sample = take_sample;
    t->sink.trace_activities = take_activities;
    sigset_t all, before; /* signals are the session's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&t->thread, NULL, write_limits, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    t->started = errnum == 0;
    if (errnum != 0) /* nothing is tried */
        t->failed = true;
    return &t->sink;
}

void hec_tuner_end(struct hec_tuner *t, const struct hec_sink *to, int64_t t_ns) {
    char words[32] = "", kept[64] = "the limit is as it was";
    pthread_mutex_lock(&t->lock);
    struct hec_tune_net net = hec_tune_net(&t->tune);
    double spent_s = t->tune.harm.spent, passed_s = seconds_between(t->steady_ns, t_ns);
    if (t->tune.phase == HEC_TUNE_HOLDS && !t->failed) {
        hec_power_value_words(HEC_POWER_CAP, t->limits_mw[t->tune.at], words);
        snprintf(kept, sizeof kept, "limit of %s kept to the end", words);
    }
    pthread_mutex_unlock(&t->lock);
    if (isfinite(net.share))
        hec_sink_event(
            to, HEC_EVENT_TUNE, HEC_DEVICE_NONE, t_ns,
            "%s: net %.1f %% fewer joules (%.1f to %.1f) than without it, since trying began; it held for %.0f %% of that, and "
            "trying cost at most %.2f s of %.0f s",
            kept, 100 * net.share, 100 * net.low, 100 * net.high, 100 * net.held, spent_s, passed_s);
}

const char *hec_tuner_idle(struct hec_tuner *t) {
    pthread_mutex_lock(&t->lock);
    bool tried = t->tried, failed = t->failed;
    pthread_mutex_unlock(&t->lock);
    if (tried)
        return NULL;
    if (failed)
        return "the limit could not be set";
    if (!t->source)
        return "the command reported no steps, neither by the hooks nor by marks";
    if (t->tune.phase == HEC_TUNE_RESTS)
        return "the command draws less than the lowest limit";
    return "the command ended before its time could pay for a trial";
}

void hec_tuner_close(struct hec_tuner *t) {
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->started)
        pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    free(t);
}
