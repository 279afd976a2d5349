/* Programs whose time and watts under each limit are known, and the tuner playing them: what it finds, and what trying truly cost. */
#pragma once

#include "bench/uniform.h"
#include "prove/tune.h"

#include <math.h>

#define TUNED_BLOCK_STEPS 10
#define TUNED_SETTLE_STEPS 3
#define TUNED_REACT 0.1 /* of a step */
#define TUNED_HARM_MOST 0.01
#define TUNED_SLOWDOWN_MOST 0.05

struct tuned_row {
    double limit, seconds, watts; /* seconds of a step, or of as many everywhere */
};

struct tuned_program {
    int count;
    struct tuned_row rows[HEC_TUNE_SETTINGS]; /* the highest limit, which is the program's own, first */
    /* from this step on it is another one; NULL: never */
    const struct tuned_program *then;
    double then_from;
};

struct tuned {
    struct hec_tune tune;
    int setting;   /* in the end */
    bool claimed;  /* a saving, in the end */
    bool violated; /* what trying had cost passed its bound at some step */
    double lost;   /* by trying, in steps of the program at its own limit */
    double saved;  /* of the joules that its steps would have taken at its own limit */
};

struct tuned_noise {
    double seconds, joules;
};

static inline double tuned_normal(void) {
    return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/* Blocks differ by 0.6 %, neighbours alike (0.5), one in fifty by five times that. */
static inline void tuned_next_noise(struct tuned_noise *noise) {
    double size = 0.006 * sqrt(1 - 0.5 * 0.5) * (uniform() < 0.02 ? 5 : 1);
    noise->seconds = 0.5 * noise->seconds + size * tuned_normal();
    noise->joules = 0.5 * noise->joules + size * tuned_normal();
}

/* One step of a block; true: the block has lost too much in the middle of it, and is cut. What is left of the step has its own pace. */
static inline bool tuned_step(struct tuned *t, struct hec_tune_block *block, const struct hec_tune_step *next,
                              double pace, double seconds, double *passed) {
    double allowed = next->lost_most_s + (block->whole_units + 1) * hec_tune_own_seconds(&t->tune) - block->whole_s;
    bool cut = next->tries && seconds > allowed + TUNED_REACT;
    seconds = cut ? allowed + TUNED_REACT : seconds;
    *passed += seconds;
    t->lost += next->tries ? fmax(seconds * (1 - 1 / pace), 0) : 0;
    t->violated |= t->lost > TUNED_HARM_MOST * *passed;
    block->whole_s += seconds;
    block->whole_units += !cut;
    block->step_s = fmax(block->step_s, seconds);
    return cut;
}

/* Steps of the program at its own limit are the unit of time. The pace drifts by 1 % to and fro, and steps differ by 1 % more. */
static inline struct tuned tuned_play(const struct tuned_program *p, double steps) {
    struct hec_tune_plan plan = {.settings = p->count,
                                 .harm_most = TUNED_HARM_MOST,
                                 .slowdown_most = TUNED_SLOWDOWN_MOST,
                                 .alpha = 0.05,
                                 .block_s = TUNED_SETTLE_STEPS + TUNED_BLOCK_STEPS,
                                 .react_s = TUNED_REACT};
    for (int i = 0; i < p->count; i++)
        plan.watts[i] = p->rows[i].limit;
    struct tuned t = {0};
    struct tuned_noise noise = {0, 0};
    double passed = 0, phase = uniform(), own = p->rows[0].seconds, joules = 0, own_joules = 0;
    hec_tune_begin(&t.tune, &plan);
    while (passed < steps) {
        if (p->then && passed >= p->then_from)
            p = p->then;
        struct hec_tune_step next = hec_tune_next(&t.tune, passed);
        const struct tuned_row *row = &p->rows[next.setting];
        double pace = row->seconds / p->rows[0].seconds;
        struct hec_tune_block block = {.setting = next.setting};
        tuned_next_noise(&noise);
        for (int step = 0; step < TUNED_SETTLE_STEPS + TUNED_BLOCK_STEPS && !block.cut; step++) {
            double drift = 0.01 * sin(2 * M_PI * (passed / 3000 + phase)) + noise.seconds + 0.01 * tuned_normal();
            double seconds = row->seconds / own * exp(drift);
            block.cut = tuned_step(&t, &block, &next, pace, seconds, &passed);
            if (step < TUNED_SETTLE_STEPS || block.cut)
                continue;
            block.seconds += seconds;
            block.units += 1;
            block.joules += row->watts * seconds * exp(noise.joules);
        }
        block.watts = block.joules / block.seconds;
        joules += block.whole_s * row->watts;
        own_joules += block.whole_s * p->rows[0].watts / pace;
        hec_tune_block(&t.tune, &block);
    }
    t.saved = 1 - joules / own_joules;
    t.claimed = t.tune.phase == HEC_TUNE_HOLDS;
    t.setting = t.claimed ? t.tune.at : 0;
    return t;
}
