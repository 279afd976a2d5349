/* A device whose classes' watts are known, as the unmixing reads it. */
#pragma once

#include "diagnose/watts/unmix_state.h"
#include "unit/power_world.h"

#include <stddef.h>

#define WORLD_CLASSES 8
#define WORLD_COUNTERS 2

struct world {
    struct power_world p;
    int classes;
    double watts[WORLD_CLASSES]; /* nominal */
    double share[WORLD_CLASSES]; /* odds of a piece to be of the class */
    double counter[WORLD_COUNTERS][WORLD_CLASSES];
    double piece_low_ms, piece_high_ms;
    double step_ms; /* not 0: the same pieces in each step of about so long, lengths within 5 % (standard deviation) */
    double spread;  /* of a piece's power about its class's, relative; standard deviation */
    double drift;   /* of all power: power_drift */
    int step_pieces;

    /* what happened */
    double joules[WORLD_CLASSES], seconds[WORLD_CLASSES];
    double busy[WORLD_COUNTERS][POWER_MS]; /* 0..1 */
    int pieces;
    struct world_piece {
        int class;
        int64_t start_ns, end_ns;
    } piece[POWER_MS];
};

static inline int world_class(struct world *w, int previous) {
    double sum = 0;
    for (int c = 0; c < w->classes; c++)
        sum += c == previous ? 0 : w->share[c];
    double at = power_random(&w->p) * sum;
    for (int c = 0; c < w->classes; c++) {
        at -= c == previous ? 0 : w->share[c];
        if (at < 0 && c != previous)
            return c;
    }
    return previous ? 0 : 1;
}

/* Class and length of the next piece. */
static inline double world_next(struct world *w, int *class) {
    if (w->step_ms > 0 && w->pieces >= w->step_pieces) {
        const struct world_piece *same = &w->piece[w->pieces % w->step_pieces];
        *class = same->class;
        return fmax((double)(same->end_ns - same->start_ns) * 1e-6 * (1 + 0.05 * power_normal(&w->p)), 0.1);
    }
    *class = world_class(w, *class);
    if (w->step_ms > 0)
        return 0.5 + 2 * w->step_ms / w->step_pieces * power_random(&w->p);
    return w->piece_low_ms + (w->piece_high_ms - w->piece_low_ms) * power_random(&w->p);
}

/* Draw what happens: pieces, and power and counters by the millisecond. */
static inline void world_make(struct world *w) {
    int64_t end_ns = (int64_t)w->p.length_ms * 1000000, now = 0;
    int class = -1;
    memset(w->joules, 0, sizeof w->joules);
    memset(w->seconds, 0, sizeof w->seconds);
    memset(w->p.power, 0, sizeof w->p.power);
    memset(w->busy, 0, sizeof w->busy);
    w->p.total = 0;
    w->pieces = 0;
    power_drift(&w->p, power_normal(&w->p), w->drift);
    while (now < end_ns) {
        double ms = world_next(w, &class);
        int64_t until = now + (int64_t)(ms * 1e6);
        double own = 1 + w->spread * power_normal(&w->p);
        until = until < end_ns ? until : end_ns;
        w->piece[w->pieces++] = (struct world_piece){class, now, until};
        w->joules[class] += power_spend(&w->p, 1, now, until, w->watts[class] * own);
        w->seconds[class] += (double)(until - now) * 1e-9;
        for (int k = 0; k < WORLD_COUNTERS; k++)
            power_spread(w->busy[k], NULL, 0, now, until, fmin(fmax(w->counter[k][class] * own, 0), 1));
        now = until;
    }
}

static inline void world_power(struct world *w, struct hec_unmix *unmix) {
    power_filter(&w->p);
    for (double t = 25 + w->p.lag_ms; t < w->p.length_ms; t += 20 + 0.2 * (power_random(&w->p) - 0.5)) {
        double mean = power_sum(w->p.seen, fmax(t - 20 - w->p.lag_ms, 0), fmin(t - w->p.lag_ms, w->p.length_ms)) / 20;
        mean *= 1 + w->p.noise * power_normal(&w->p);
        hec_unmix_power(unmix, (int64_t)(t * 1e6), 20000000, round(mean * 1000) / 1000);
    }
}

/* mJ since some time, as a counter of 0.1 s gives them: each value became current up to slack before its time. */
static inline void world_windows(struct world *w, struct hec_unmix *unmix) {
    double before_t = 0, before_mj = 0, sum = 0, at = 0;
    for (double t = 40; t < w->p.length_ms; t += 99.94) {
        double current = t - w->p.slack_ms * power_random(&w->p);
        sum += power_sum(w->p.power, at, current); /* W x ms = mJ */
        at = current;
        if (before_t > 0)
            hec_unmix_window(unmix, (int64_t)((before_t - w->p.slack_ms / 2) * 1e6),
                             (int64_t)((t - w->p.slack_ms / 2) * 1e6), (floor(sum) - before_mj) / 1000,
                             w->p.slack_ms * 1e-3 / sqrt(6) * w->p.total / w->p.length_ms * 1000);
        before_t = t;
        before_mj = floor(sum);
    }
}

static inline void world_counters(struct world *w, struct hec_unmix *unmix) {
    for (double t = 130; t < w->p.length_ms; t += 120)
        for (int k = 0; k < WORLD_COUNTERS; k++)
            hec_unmix_counter(unmix, k, (int64_t)((t - 120) * 1e6), (int64_t)(t * 1e6),
                              round(power_sum(w->busy[k], t - 120, t) / 120 * 1000) / 1000);
}

static inline void world_pieces(struct world *w, struct hec_unmix *unmix) {
    for (int i = 0; i < w->pieces; i++)
        hec_unmix_piece(unmix, w->piece[i].class, w->piece[i].start_ns, w->piece[i].end_ns);
}

/* 3 to 8 classes of 80 to 650 W, pieces of 1 to 150 ms, 30 s. */
static inline void world_draw(struct world *w, uint64_t seed) {
    memset(w, 0, offsetof(struct world, joules));
    power_begin(&w->p, seed);
    w->classes = 3 + (int)(power_random(&w->p) * 6);
    w->p.length_ms = 30000;
    for (int c = 0; c < w->classes; c++) {
        w->watts[c] = 80 + 570 * power_random(&w->p);
        w->share[c] = 0.1 + power_random(&w->p);
        for (int k = 0; k < WORLD_COUNTERS; k++)
            w->counter[k][c] = power_random(&w->p) * 0.9;
    }
    w->piece_low_ms = 1;
    w->piece_high_ms = 20 + 130 * power_random(&w->p);
    w->spread = 0.02 * power_random(&w->p);
    w->drift = 0.01;
    w->p.noise = 0.02;
    w->p.lag_ms = -5 + 35 * power_random(&w->p);
    w->p.filter_ms = 15 * power_random(&w->p);
    w->p.slack_ms = 2;
    w->step_pieces = 16;
}
