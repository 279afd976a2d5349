/* Runs whose truth is known, drawn by rules that share nothing with what judges them: noise is skewed and multiplies, blocks differ in
 * work, and no function of src/prove/ is used. */
#pragma once

#include "prove/trial.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static uint64_t world_state;

static inline uint64_t world_bits(void) { /* splitmix64 (Steele, Lea and Flood 2014): the same every time */
    uint64_t x = world_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline double world_uniform(void) {
    return ((double)(world_bits() >> 11) + 0.5) * 0x1p-53;
}

static inline double world_normal(void) {
    return sqrt(-2 * log(world_uniform())) * cos(6.283185307179586 * world_uniform());
}

/* Mean 0, variance 1, skewed: now and then a block takes much longer. */
static inline double world_skewed(void) {
    return 0.8 * world_normal() + 0.6 * (-log(world_uniform()) - 1);
}

struct world {
    int runs;          /* a side */
    int blocks;        /* a run */
    double noise;      /* of a block, relative */
    double persistent; /* what of a block's noise goes on into the next: AR(1) */
    double between;    /* what runs differ by, relative */
    double drift;      /* of the whole experiment, relative; runs are pairs side by side then, in random order */
    double warm_up;    /* what is left of it at the start of each run, relative */
    double ratio;      /* the truth, b / a */
};

static inline struct hec_trial world_trial(const struct world *w, double joules_a_unit, int pair) {
    struct hec_trial t = {.pair = pair, .block_count = w->blocks};
    t.block = calloc((size_t)w->blocks, sizeof *t.block);
    double level = joules_a_unit * exp(w->between * world_normal());
    double keep = w->persistent, fresh = sqrt(1 - keep * keep), e = world_normal();
    for (int i = 0; i < w->blocks; i++) {
        e = keep * e + fresh * world_skewed();
        double slower = 1 + w->noise * e + w->warm_up * exp(-8.0 * i / w->blocks);
        double steps = 9 + (double)(world_bits() % 3);
        t.block[i] = (struct hec_trial_block){steps * 0.01 * slower, steps * 32 * level * slower, steps * 32, steps};
        t.whole.seconds += t.block[i].seconds;
        t.whole.joules += t.block[i].joules;
        t.whole.units += t.block[i].units;
        t.whole.steps += t.block[i].steps;
    }
    t.run = t.whole;
    t.run.seconds += 2;
    t.run.joules += 2 * 100 * joules_a_unit;
    return t;
}

/* a[w->runs], b[w->runs] */
static inline void world_draw(const struct world *w, struct hec_trial *a, struct hec_trial *b) {
    for (int i = 0; i < w->runs; i++) {
        bool b_first = world_bits() & 1;
        double at[2] = {(2 * i + b_first + 0.5) / (2 * w->runs), (2 * i + !b_first + 0.5) / (2 * w->runs)};
        a[i] = world_trial(w, 1 + w->drift * at[0], w->drift != 0 ? i : -1);
        b[i] = world_trial(w, w->ratio * (1 + w->drift * at[1]), w->drift != 0 ? i : -1);
    }
}

static inline void world_free(struct hec_trial *trials, int count) {
    for (int i = 0; i < count; i++)
        free(trials[i].block);
}
