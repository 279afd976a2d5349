/* Programs for inferred_world.h, each with one thing that holds its device up. */
#ifndef TESTS_UNIT_INFERRED_PROGRAMS_H
#define TESTS_UNIT_INFERRED_PROGRAMS_H

#include "diagnose/finding.h"
#include "diagnose/states/state.h"
#include "inferred_world.h"

#define STEP_S 8.0 /* of each program, seconds */

/* ---- programs: one step each ---- */

static inline void kernels(struct inferred_world *w, int count, double low_us, double high_us, double pause_low,
                           double pause_high) {
    for (int i = 0; i < count; i++) {
        inferred_launch(w, 0, inferred_between(w, low_us, high_us));
        inferred_work(w, inferred_between(w, pause_low, pause_high));
    }
}

/* Far ahead of the device: launches wait for room in the queue. */
static inline void step_healthy(struct inferred_world *w, int step) {
    kernels(w, 120, 40, 400, 1, 12);
    if (step % 20 == 19)
        inferred_sync(w, 0);
}

static inline void step_data_waited(struct inferred_world *w, int step) {
    (void)step;
    inferred_phase(w, w->data, inferred_between(w, 15000, 25000));
    inferred_copy(w, 4e6, true);
    kernels(w, 100, 50, 150, 2, 15);
    inferred_copy(w, 4, false); /* reads the loss */
}

static inline void step_data_ahead(struct inferred_world *w, int step) {
    (void)step;
    inferred_phase(w, w->data, inferred_between(w, 15000, 25000));
    kernels(w, 100, 50, 150, 2, 15);
}

static inline void step_host(struct inferred_world *w, int step) {
    (void)step;
    inferred_work(w, inferred_between(w, 15000, 35000));
    kernels(w, 60, 50, 110, 2, 15);
    inferred_sync(w, 0);
}

static inline void step_host_ahead(struct inferred_world *w, int step) {
    (void)step;
    kernels(w, 20, 60, 140, 2, 15);
    inferred_work(w, inferred_between(w, 5000, 8000));
}

static inline void step_launch(struct inferred_world *w, int step) {
    (void)step;
    kernels(w, 600, 1.5, 4, 2, 14);
    inferred_sync(w, 0);
}

static inline void step_launch_ahead(struct inferred_world *w, int step) {
    (void)step;
    kernels(w, 600, 1.5, 4, 2, 14);
}

/* A value read after every few kernels. */
static inline void step_sync(struct inferred_world *w, int step) {
    (void)step;
    for (int i = 0; i < 20; i++) {
        kernels(w, 6, 30, 90, 1, 5);
        inferred_sync(w, 0);
        inferred_work(w, inferred_between(w, 10, 150));
    }
}

static inline void step_copy(struct inferred_world *w, int step) {
    (void)step;
    inferred_copy(w, 64e6, true);
    kernels(w, 25, 50, 150, 2, 15);
    inferred_sync(w, 0);
}

static inline void step_alloc(struct inferred_world *w, int step) {
    (void)step;
    for (int i = 0; i < 10; i++) {
        inferred_alloc(w, inferred_between(w, 300, 900));
        kernels(w, 4, 40, 90, 1, 8);
        inferred_release(w, inferred_between(w, 200, 600));
    }
}

static inline void step_checkpoint(struct inferred_world *w, int step) {
    kernels(w, 100, 60, 140, 2, 12);
    inferred_sync(w, 0);
    if (step % 40 == 39) {
        inferred_copy(w, 100e6, false);
        inferred_phase(w, w->checkpoint, inferred_between(w, 500000, 700000));
    }
}

/* Two streams, joined at the end. */
static inline void step_streams(struct inferred_world *w, int step) {
    (void)step;
    for (int i = 0; i < 40; i++) {
        inferred_launch(w, i % 2, inferred_between(w, 50, 200));
        inferred_work(w, inferred_between(w, 2, 12));
    }
    inferred_sync(w, w->free_ns[0] > w->free_ns[1] ? 0 : 1);
    inferred_phase(w, w->data, inferred_between(w, 3000, 6000));
}

struct program {
    const char *name;
    void (*step)(struct inferred_world *w, int step);
    enum hec_state most;  /* of the idle time; COMPUTE: no idle state has more than 10 % */
    bool certain;         /* calls alone tell it */
    enum hec_cause cause; /* the first finding */
};
static const struct program programs[] = {
    {"healthy", step_healthy, HEC_STATE_COMPUTE, true, HEC_CAUSE_NONE},
    {"data, waited for", step_data_waited, HEC_STATE_DATA, true, HEC_CAUSE_DATA},
    {"data, never waiting", step_data_ahead, HEC_STATE_DATA, false, HEC_CAUSE_DATA},
    {"host, waited for", step_host, HEC_STATE_HOST, true, HEC_CAUSE_HOST},
    {"host, never waiting", step_host_ahead, HEC_STATE_HOST, false, HEC_CAUSE_HOST},
    {"launch, waited for", step_launch, HEC_STATE_LAUNCH, false, HEC_CAUSE_LAUNCH},
    {"launch, never waiting", step_launch_ahead, HEC_STATE_LAUNCH, false, HEC_CAUSE_LAUNCH},
    {"sync", step_sync, HEC_STATE_SYNC, true, HEC_CAUSE_SYNC},
    {"copy", step_copy, HEC_STATE_COPY, true, HEC_CAUSE_COPY},
    {"alloc", step_alloc, HEC_STATE_ALLOC, true, HEC_CAUSE_ALLOC},
    {"checkpoint", step_checkpoint, HEC_STATE_CHECKPOINT, true, HEC_CAUSE_CHECKPOINT},
    {"two streams", step_streams, HEC_STATE_DATA, true, HEC_CAUSE_DATA},
};

/* ---- running them ---- */

/* What is known beside the calls. */
enum how { ENGINE, GLIMPSE, NEITHER, BOTH, HOW_COUNT };
static const char *const how_names[] = {"engine", "glimpse", "neither", "both"};

/* neighbour: another process works on the device. A queue takes four times as long then, and CUPTI looks for as long as by
 * default. */
static inline void simulate_beside(struct inferred_world *w, const struct program *p, enum how how, bool neighbour,
                                   uint64_t seed) {
    inferred_begin(w, seed);
    w->neighbour = neighbour;
    if (how == GLIMPSE || how == BOTH)
        inferred_glimpse(w, 4 * INFERRED_S, (neighbour ? 6 : 5) * INFERRED_S);
    for (int step = 0; (double)w->now < STEP_S * 1e9; step++) {
        int64_t from = w->now;
        p->step(w, step);
        inferred_step(w, from);
    }
    inferred_sync(w, 0);
    inferred_end(w, how == ENGINE || how == BOTH);
}

static inline void simulate(struct inferred_world *w, const struct program *p, enum how how, uint64_t seed) {
    simulate_beside(w, p, how, false, seed);
}

#endif
