/* A device whose classes' watts are known, read by a sensor that is late, filtered and noisy and by a counter of 0.1
 * s. */
#ifndef HEC_TESTS_UNMIX_WORLD_H
#define HEC_TESTS_UNMIX_WORLD_H

#include "diagnose/watts/unmix_state.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_CLASSES 8
#define WORLD_MS 60000 /* longest run */
#define WORLD_COUNTERS 2

struct world {
    int classes, length_ms;
    double watts[WORLD_CLASSES]; /* nominal */
    double share[WORLD_CLASSES]; /* odds of a piece to be of the class */
    double counter[WORLD_COUNTERS][WORLD_CLASSES];
    double piece_low_ms, piece_high_ms;
    double step_ms; /* not 0: the same pieces in each step of about so long, lengths within 5 % (standard deviation) */
    double spread;  /* of a piece's power about its class's, relative; standard deviation */
    double drift;   /* the same of a slow change of all power, correlated over 0.3 s */
    double noise;   /* of a power sample, relative, independent */
    double lag_ms;  /* positive: samples are late */
    double filter_ms; /* time constant of a first-order filter before the mean over 20 ms; 0: none */
    int step_pieces;
    double slack_ms; /* a counter's value became current up to this long before its time */
    uint64_t seed;

    /* what happened */
    double joules[WORLD_CLASSES], seconds[WORLD_CLASSES], total;
    double power[WORLD_MS];                /* of each ms, W */
    double busy[WORLD_COUNTERS][WORLD_MS]; /* 0..1 */
    int pieces;
    struct world_piece {
        int class;
        int64_t start_ns, end_ns;
    } piece[WORLD_MS];
};

static inline double world_random(struct world *w) {
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return ((double)(w->seed >> 11) + 0.5) / 9007199254740992.0;
}

static inline double world_normal(struct world *w) {
    return sqrt(-2 * log(world_random(w))) * cos(6.283185307179586 * world_random(w));
}

static inline int world_class(struct world *w, int previous) {
    double sum = 0;
    for (int c = 0; c < w->classes; c++)
        sum += c == previous ? 0 : w->share[c];
    double at = world_random(w) * sum;
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
        return fmax((double)(same->end_ns - same->start_ns) * 1e-6 * (1 + 0.05 * world_normal(w)), 0.1);
    }
    *class = world_class(w, *class);
    if (w->step_ms > 0)
        return 0.5 + 2 * w->step_ms / w->step_pieces * world_random(w);
    return w->piece_low_ms + (w->piece_high_ms - w->piece_low_ms) * world_random(w);
}

/* Draw what happens: pieces, and power and counters by the millisecond. */
static inline void world_make(struct world *w) {
    static double factor[WORLD_MS];
    int64_t end_ns = (int64_t)w->length_ms * 1000000, now = 0;
    int class = -1;
    double slow = world_normal(w);
    memset(w->joules, 0, sizeof w->joules);
    memset(w->seconds, 0, sizeof w->seconds);
    memset(w->power, 0, sizeof w->power);
    memset(w->busy, 0, sizeof w->busy);
    w->total = 0;
    w->pieces = 0;
    for (int i = 0; i < w->length_ms; i++) {
        slow = slow * exp(-1 / 300.0) + sqrt(1 - exp(-2 / 300.0)) * world_normal(w);
        factor[i] = 1 + w->drift * slow;
    }
    while (now < end_ns) {
        double ms = world_next(w, &class);
        int64_t until = now + (int64_t)(ms * 1e6);
        double own = 1 + w->spread * world_normal(w), watts = w->watts[class] * own;
        until = until < end_ns ? until : end_ns;
        w->piece[w->pieces++] = (struct world_piece){class, now, until};
        while (now < until) {
            int64_t bin = now / 1000000, stop = (bin + 1) * 1000000 < until ? (bin + 1) * 1000000 : until;
            double seconds = (double)(stop - now) * 1e-9, joules = seconds * watts * factor[bin];
            w->joules[class] += joules;
            w->seconds[class] += seconds;
            w->power[bin] += joules * 1000;
            w->total += joules;
            for (int k = 0; k < WORLD_COUNTERS; k++)
                w->busy[k][bin] += seconds * 1000 * fmin(fmax(w->counter[k][class] * own, 0), 1);
            now = stop;
        }
    }
}

static inline double world_between(const double *by_ms, double from_ms, double to_ms) {
    double sum = 0;
    for (int i = (int)from_ms; i < to_ms; i++)
        sum += by_ms[i] * (fmin(to_ms, i + 1) - fmax(from_ms, i));
    return sum;
}

static inline void world_power(struct world *w, struct hec_unmix *unmix) {
    static double seen[WORLD_MS];
    double state = w->power[0], keep = w->filter_ms > 0 ? exp(-1 / w->filter_ms) : 0;
    for (int i = 0; i < w->length_ms; i++)
        seen[i] = state = keep * state + (1 - keep) * w->power[i];
    for (double t = 25 + w->lag_ms; t < w->length_ms; t += 20 + 0.2 * (world_random(w) - 0.5)) {
        double mean = world_between(seen, fmax(t - 20 - w->lag_ms, 0), fmin(t - w->lag_ms, w->length_ms)) / 20;
        mean *= 1 + w->noise * world_normal(w);
        hec_unmix_power(unmix, (int64_t)(t * 1e6), 20000000, round(mean * 1000) / 1000);
    }
}

/* mJ since some time, as a counter of 0.1 s gives them: each value became current up to slack before its time. */
static inline void world_windows(struct world *w, struct hec_unmix *unmix) {
    double before_t = 0, before_mj = 0, sum = 0, at = 0;
    for (double t = 40; t < w->length_ms; t += 99.94) {
        double current = t - w->slack_ms * world_random(w);
        sum += world_between(w->power, at, current); /* W x ms = mJ */
        at = current;
        if (before_t > 0)
            hec_unmix_window(unmix, (int64_t)((before_t - w->slack_ms / 2) * 1e6),
                             (int64_t)((t - w->slack_ms / 2) * 1e6), (floor(sum) - before_mj) / 1000,
                             w->slack_ms * 1e-3 / sqrt(6) * w->total / w->length_ms * 1000);
        before_t = t;
        before_mj = floor(sum);
    }
}

static inline void world_counters(struct world *w, struct hec_unmix *unmix) {
    for (double t = 130; t < w->length_ms; t += 120)
        for (int k = 0; k < WORLD_COUNTERS; k++)
            hec_unmix_counter(unmix, k, (int64_t)((t - 120) * 1e6), (int64_t)(t * 1e6),
                              round(world_between(w->busy[k], t - 120, t) / 120 * 1000) / 1000);
}

static inline void world_pieces(struct world *w, struct hec_unmix *unmix) {
    for (int i = 0; i < w->pieces; i++)
        hec_unmix_piece(unmix, w->piece[i].class, w->piece[i].start_ns, w->piece[i].end_ns);
}

/* 3 to 8 classes of 80 to 650 W, pieces of 1 to 150 ms, 30 s. */
static inline void world_draw(struct world *w, uint64_t seed) {
    memset(w, 0, offsetof(struct world, joules));
    w->seed = seed * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < 8; i++)
        world_random(w);
    w->classes = 3 + (int)(world_random(w) * 6);
    w->length_ms = 30000;
    for (int c = 0; c < w->classes; c++) {
        w->watts[c] = 80 + 570 * world_random(w);
        w->share[c] = 0.1 + world_random(w);
        for (int k = 0; k < WORLD_COUNTERS; k++)
            w->counter[k][c] = world_random(w) * 0.9;
    }
    w->piece_low_ms = 1;
    w->piece_high_ms = 20 + 130 * world_random(w);
    w->spread = 0.02 * world_random(w);
    w->drift = 0.01;
    w->noise = 0.02;
    w->lag_ms = -5 + 35 * world_random(w);
    w->filter_ms = 15 * world_random(w);
    w->slack_ms = 2;
    w->step_pieces = 16;
}

#endif
