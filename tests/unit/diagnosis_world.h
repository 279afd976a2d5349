/* A run of a device with states of known watts, as the whole diagnosis reads it: activities, a power sensor that is late,
 * filtered, averaged over 20 ms to 1 s, noisy and loses samples, an energy counter of 0.1 s whose values are some
 * milliseconds old, a device that warms up, and kernels of one class that differ. */
#pragma once

#include "diagnose/result.h"
#include "fake_run.h"
#include "fake_timeline.h"
#include "power_world.h"
#include "report/words/reasons.h"

#include <stddef.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define LENGTH_MS 45000 /* at most: of POWER_MS */
#define STEP_SEGMENTS 24
#define KERNELS 3 /* names: classes of kernels */
#define SHAPES 8  /* kernels whose watts differ, taken in turn */

/* Which of the runs: one cell of the table. */
struct cell {
    double window_ms;     /* a power sample is the mean of so much: 20, 100 or 1000 */
    double step_ms;       /* the same segments in each step of about so long; 0: at random */
    double kernel_spread; /* a kernel's watts are its class's, at most so far off, the same each time; 0.1: +-10 % */
    bool calibrated;      /* hec calibrate measured the sensor, within 10 % and 4 ms */
};

struct segment {
    uint8_t state;
    int kernel; /* of compute: its name */
    double own; /* its watts, as a part of its class's */
    double ms;
};

struct world {
    struct fake_run run;
    struct fake_timeline t;
    uint32_t stream, thread, data, checkpoint;
    struct power_world p;
    double level, watts[HEC_STATE_COUNT], share[HEC_STATE_COUNT], kernel_watts[KERNELS];
    double low_ms, high_ms, spread, warm, warm_s;
    double window_ms, spacing_ms, dropped; /* and the rest of the sensor: none of it is known to the estimator */
    double shape[SHAPES];
    int shapes;                         /* kernels so far */
    struct segment step[STEP_SEGMENTS]; /* of runs whose steps are alike */
    int segments, at;                   /* 0: no steps */
    double joules[HEC_STATE_COUNT];
    int64_t ns[HEC_STATE_COUNT];
};

/* ---- what happens ---- */

/* Power over [start, end), of a state. */
static inline void spend(struct world *w, int state, int64_t start, int64_t end, double watts) {
    double part = hec_state_idle((enum hec_state)state) ? 0.3 : 1; /* idling hardly varies */
    w->ns[state] += end - start;
    w->joules[state] += power_spend(&w->p, part, start, end, watts);
}

static inline void busy(struct world *w, const struct segment *s, int64_t start, int64_t end, int64_t launch_ns) {
    bool copies = s->state == HEC_STATE_COPY;
    struct hec_activity *a =
        fake_tl_add(&w->t, copies ? HEC_ACTIVITY_COPY : HEC_ACTIVITY_KERNEL, w->stream, start, end);
    double watts = s->state == HEC_STATE_COMPUTE ? w->kernel_watts[s->kernel] * s->own : w->watts[s->state];
    a->name = s->state == HEC_STATE_COMM ? KERNELS + 1 : s->state == HEC_STATE_COMPUTE ? (uint32_t)s->kernel + 1 : 0;
    a->amount = 1e6;
    fake_tl_launched(a, launch_ns, launch_ns + 5 * US, w->thread);
    spend(w, s->state, start, end, watts * (1 + w->spread * power_normal(&w->p)));
}

/* A gap, and what the host did in it until it launched the next, 8 us before the end. */
static inline void idle(struct world *w, int state, int64_t start, int64_t end) {
    static const struct {
        uint8_t state, class;
    } calls[] = {{HEC_STATE_LAUNCH, HEC_API_LAUNCH}, {HEC_STATE_SYNC, HEC_API_SYNC}, {HEC_STATE_ALLOC, HEC_API_ALLOC}};
    int64_t until = end - 8 * US;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].state == state)
            fake_tl_add(&w->t, HEC_ACTIVITY_API, w->thread, start, until)->detail = calls[i].class;
    if (state == HEC_STATE_DATA || state == HEC_STATE_CHECKPOINT)
        fake_tl_add(&w->t, HEC_ACTIVITY_PHASE, w->thread, start, until)->name =
            state == HEC_STATE_DATA ? w->data : w->checkpoint;
    spend(w, state, start, until, w->watts[state] * (1 + 0.2 * w->spread * power_normal(&w->p)));
    spend(w, HEC_STATE_LAUNCH, until, end, w->watts[HEC_STATE_LAUNCH]);
}

static inline struct segment draw(struct world *w, int previous) {
    bool gap = previous >= 0 && !hec_state_idle((enum hec_state)previous) && power_random(&w->p) < 0.6;
    double sum = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        sum += hec_state_idle((enum hec_state)i) == gap ? w->share[i] : 0;
    double at = power_random(&w->p) * sum;
    struct segment s = {.state = HEC_STATE_COMPUTE, .kernel = (int)(power_random(&w->p) * KERNELS)};
    s.own = w->shape[w->shapes++ % SHAPES]; /* always in the same order */
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        at -= hec_state_idle((enum hec_state)i) == gap ? w->share[i] : 0;
        if (at < 0) {
            s.state = (uint8_t)i;
            break;
        }
    }
    s.ms = power_between(&w->p, w->low_ms, w->high_ms);
    return s;
}

static inline struct segment next(struct world *w, int previous) {
    if (!w->segments)
        return draw(w, previous);
    struct segment s = w->step[w->at++ % w->segments];
    s.ms = fmax(s.ms * (1 + 0.05 * power_normal(&w->p)), 0.1);
    return s;
}

static inline void happen(struct world *w) {
    int64_t end = (int64_t)w->p.length_ms * MS, now = (int64_t)power_between(&w->p, 300, 1500) * MS,
            launch = now - 8 * US;
    int64_t last = end - (int64_t)power_between(&w->p, 50, 400) * MS;
    int previous = -1;
    spend(w, HEC_STATE_STARTUP, 0, now / 3, 0.68 * w->level); /* no context yet */
    spend(w, HEC_STATE_STARTUP, now / 3, now, w->level);
    while (now < last) {
        struct segment s = next(w, previous);
        bool gap = hec_state_idle((enum hec_state)s.state);
        int64_t ns = gap ? (int64_t)(s.ms * 1e6) + 20 * US : (int64_t)(s.ms * 1e6);
        if ((gap && (previous < 0 || now + ns > last)) || now + ns + 2 * MS > end)
            break;
        if (gap) {
            idle(w, s.state, now, now + ns);
            launch = now + ns - 8 * US;
        } else {
            if (previous >= 0 && !hec_state_idle((enum hec_state)previous)) { /* queued behind it */
                spend(w, HEC_STATE_LAUNCH, now, now + US, w->kernel_watts[0]);
                launch = now - 15 * US;
                now += US;
            }
            busy(w, &s, now, now + ns, launch);
        }
        previous = s.state;
        now += ns;
    }
    if (previous >= 0 && hec_state_idle((enum hec_state)previous)) { /* every gap has what ends it */
        struct segment s = {.state = HEC_STATE_COMPUTE, .own = 1, .ms = 1};
        busy(w, &s, now, now + MS, launch);
        now += MS;
    }
    spend(w, HEC_STATE_TAIL, now, end, w->level);
}

/* ---- what is read ---- */

static inline void read_power(struct world *w) {
    power_filter(&w->p);
    for (double t = w->spacing_ms; t <= w->p.length_ms; t += w->spacing_ms) {
        double to = fmin(fmax(t - w->p.lag_ms, 1), w->p.length_ms), from = fmax(to - w->window_ms, 0);
        double watts = power_sum(w->p.seen, from, to) / (to - from) * (1 + w->p.noise * power_normal(&w->p));
        if (power_random(&w->p) >= w->dropped)
            fake_add(&w->run, HEC_GPU_POWER, 0, t / 1000, llround(watts * 1e3));
    }
}

static inline void read_all(struct world *w) {
    double sum = 0, at = 0;
    struct hec_device *device = &w->run.devices[w->run.device_count++];
    *device = fake_device(0);
    device->name[0] = 0; /* its idle level is drawn: a part of which nobody knows one */
    read_power(w);
    for (double t = 40; t < w->p.length_ms; t += 99.94) {
        double current = t - w->p.slack_ms * power_random(&w->p);
        sum += power_sum(w->p.power, at, current);
        at = current;
        fake_add(&w->run, HEC_GPU_ENERGY, 0, t / 1000, llround(1e6 + floor(sum)));
        fake_add(&w->run, HEC_GPU_ENERGY_SLACK, 0, t / 1000, llround(w->p.slack_ms * 1e3));
    }
    fake_used(&w->run, 0, 77);
}

/* 20 to 45 s. Idle states near one level, copies a little above, work anywhere below the limit. */
static inline void make(struct world *w, uint64_t seed, const struct cell *cell) {
    static const char *const names[KERNELS + 1] = {"ampere_sgemm_128x64_tn", "triton_poi_fused_add_0",
                                                   "softmax_warp_forward", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"};
    memset(w, 0, sizeof *w);
    power_begin(&w->p, seed);
    w->p.length_ms = (int)floor(power_between(&w->p, 20000, LENGTH_MS));
    w->level = power_between(&w->p, 60, 140);
    double work = power_between(&w->p, 200, 650), slow = power_normal(&w->p);
    for (int i = 0; i < KERNELS; i++)
        w->kernel_watts[i] = work * power_between(&w->p, 1 - cell->kernel_spread / 2, 1 + cell->kernel_spread / 2);
    for (int i = 0; i < SHAPES; i++)
        w->shape[i] = power_between(&w->p, 1 - cell->kernel_spread / 2, 1 + cell->kernel_spread / 2);
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        w->watts[i] = w->level * (1 + 0.02 * power_normal(&w->p));
        w->share[i] = power_random(&w->p) < 0.5 ? power_between(&w->p, 0.2, 1) : 0;
    }
    w->watts[HEC_STATE_COMM] = power_between(&w->p, 1.5 * w->level, 400);
    w->watts[HEC_STATE_COPY] = w->level * power_between(&w->p, 1.02, 1.12);
    w->share[HEC_STATE_COMPUTE] = 1;
    w->share[HEC_STATE_HOST] += 0.1;
    w->share[HEC_STATE_STARTUP] = w->share[HEC_STATE_TAIL] = w->share[HEC_STATE_UNKNOWN] = 0;
    w->share[HEC_STATE_REQUESTS] = w->share[HEC_STATE_PEERS] = 0; /* nobody looks at its stacks */
    w->share[HEC_STATE_WAITING] = 0;                              /* it has no other ranks */
    w->low_ms = 1;
    w->high_ms = power_between(&w->p, 20, 150);
    w->spread = 0.02 * power_random(&w->p);
    w->warm = power_between(&w->p, 0, 0.03); /* leakage rises with the temperature */
    w->warm_s = power_between(&w->p, 5, 30);
    w->p.noise = power_between(&w->p, 0.003, 0.02);
    w->window_ms = cell->window_ms;
    w->spacing_ms = cell->window_ms > 20 && power_random(&w->p) < 0.5 ? 100 : 20;
    w->p.lag_ms = power_between(&w->p, -5, 30);
    w->p.filter_ms = 15 * power_random(&w->p);
    w->dropped = power_random(&w->p) < 0.5 ? 0 : power_between(&w->p, 0, 0.05);
    w->p.slack_ms = power_between(&w->p, 1, 10);
    power_drift(&w->p, slow, 0.01);
    for (int i = 0; i < w->p.length_ms; i++)
        w->p.factor[i] *= 1 - w->warm * exp(-i / (1000 * w->warm_s));
    if (cell->step_ms > 0) {
        double sum = 0;
        int previous = -1;
        w->segments = 4 + 2 * (int)(power_random(&w->p) * 5);
        for (int i = 0; i < w->segments; i++) {
            w->step[i] = draw(w, i == 0 || i == w->segments - 1 ? -1 : previous);
            previous = w->step[i].state;
            sum += w->step[i].ms;
        }
        for (int i = 0; i < w->segments; i++)
            w->step[i].ms *= cell->step_ms / sum;
    }
    fake_init(&w->run, w->p.length_ms / 1000.0);
    fake_tl_init(&w->t);
    w->t.input.end_ns = (int64_t)w->p.length_ms * MS;
    w->stream = fake_tl_track(&w->t, HEC_TRACK_STREAM, 77, 0, 7);
    w->thread = fake_tl_track(&w->t, HEC_TRACK_THREAD, 77, -1, 77);
    for (int i = 0; i <= KERNELS; i++)
        fake_tl_kernel(&w->t, names[i], 256);
    w->data = fake_tl_name(&w->t, "data");
    w->checkpoint = fake_tl_name(&w->t, "checkpoint");
    happen(w);
    read_all(w);
}

/* ---- what is reported ---- */

/* The label of a device's watts is the first word of `how`. */
enum label { MEASURED, ROUGH, LABELS };

struct score {
    int runs, unpriced;
    struct reported {
        int runs, rows, covered, large, off; /* large: 2 % of the joules; off: by more than 3 % */
        int narrow, narrow_off;              /* intervals within 3 %; such whose value is off by more */
        double widths;                       /* of the large: half an interval, as a part */
        int beyond;                          /* of them below the idle device or above the limit and its margin */
    } by[LABELS];
    double worst_s;
};

static inline void judge_row(const struct world *w, const struct hec_ledger_row *row, int state, struct score *score,
                             struct reported *reported) {
    double joules = w->joules[state], seconds = (double)w->ns[state] * 1e-9;
    if (w->ns[state] < 100 * MS)
        return;
    double low = row->watts_low * row->seconds, high = row->watts_high * row->seconds;
    double error = fabs(row->joules - joules) / joules, half = (high - low) / 2 / joules;
    bool covered = joules >= low && joules <= high;
    score->worst_s = fmax(score->worst_s, fabs(row->seconds - seconds) / seconds);
    reported->rows++;
    reported->covered += covered;
    reported->beyond += !(row->watts_low <= row->watts && row->watts <= row->watts_high);
    /* no less than an idle device (without a context 0.68 of the level), no more than the board can */
    reported->beyond += row->watts < 0.6 * 0.68 * w->level || row->watts > 1.3 * 700;
    if (getenv("HEC_TEST_ROWS"))
        printf("%-10s %7.3f s %8.1f J found %8.1f J [%8.1f %8.1f] %s\n", hec_state_name((enum hec_state)state), seconds,
               joules, row->joules, low, high, covered ? "" : "OUT");
    if (joules < 0.02 * w->p.total)
        return;
    reported->large++;
    reported->off += error > 0.03;
    reported->narrow += half <= 0.03;
    reported->narrow_off += half <= 0.03 && error > 0.03;
    reported->widths += half;
}

static inline int calibration(void *context, const struct hec_device *device, struct hec_peaks *out) {
    struct world *w = (struct world *)((char *)context - offsetof(struct world, run));
    (void)device;
    hec_peaks_init(out);
    out->peak[HEC_PEAK_SENSOR_WINDOW].value = 1e6 * (w->window_ms * power_between(&w->p, 0.9, 1.1) + w->p.filter_ms);
    out->peak[HEC_PEAK_SENSOR_DELAY].value =
        1e6 * (w->p.lag_ms + w->p.filter_ms + w->window_ms / 2 + power_between(&w->p, -4, 4));
    return 0;
}

/* One run of a cell. */
static inline void run_one(struct world *w, uint64_t seed, const struct cell *cell, struct score *score) {
    static struct hec_summary summary;
    struct hec_price price = hec_price_default();
    make(w, seed, cell);
    w->run.input.timeline = w->t.input;
    w->run.input.peaks = cell->calibrated ? calibration : NULL;
    score->runs++;
    int err = hec_summary_build(&w->run.input, &price, &summary, NULL);
    const struct hec_ledger_device *d = err ? NULL : summary.devices[0].ledger;
    bool priced = d && !summary.devices[0].watts->why.id;
    score->unpriced += !priced;
    if (priced) {
        const struct hec_reason *how = &summary.devices[0].watts->how;
        struct reported *reported = &score->by[hec_reason_measured(how) ? MEASURED : ROUGH];
        double joules = 0;
        reported->runs++;
        if (getenv("HEC_TEST_ROWS"))
            printf(
                "-- seed %llu: %g ms, steps of %g ms, +-%g: %s; level %.1f W, lag %.0f, filter %.0f, spacing %.0f ms\n",
                (unsigned long long)seed, cell->window_ms, cell->step_ms, cell->kernel_spread, HEC_SAY(how), w->level,
                w->p.lag_ms, w->p.filter_ms, w->spacing_ms);
        for (int i = 0; i < HEC_STATE_COUNT; i++) {
            joules += d->rows[i].ns ? d->rows[i].joules : 0;
            judge_row(w, &d->rows[i], i, score, reported);
        }
        if (!(fabs(joules - summary.devices[0].readings.energy.joules) < 0.01))
            reported->beyond++;
    }
    if (!err)
        hec_summary_free(&summary);
    fake_tl_free(&w->t);
    fake_free(&w->run);
}
