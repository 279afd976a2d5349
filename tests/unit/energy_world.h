/* A synthetic device whose power, and so whose energy, is known exactly: steps of power over time, seen through a power
 * history of 20 ms means and a counter that has a new value every 100 ms. */
#pragma once

#include "base/clock.h"
#include "diagnose/meter/energy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_STEPS_MAX 4096
#define WORLD_BEFORE_S 3.0

struct world {
    int count; /* power w[i] from at[i] to at[i + 1] (or for ever), seconds */
    double at[WORLD_STEPS_MAX], w[WORLD_STEPS_MAX];
    double seconds; /* length of the run */
    double sample_s, sample_phase_s, sample_lag_s;
    double sample_window_s;                  /* what a sample is the mean of; 0: its own spacing */
    double history_end_s;                    /* no sample after it */
    double history_from_s, history_beyond_s; /* begin; how far it goes beyond the end of the run */
    double hole_from_s, hole_to_s;           /* no samples in between */
    double quantum_s, quantum_phase_s;
    double slack_s;                /* largest slack of a reading */
    double read_every_s;           /* between counter readings in the middle of the run */
    double counter_scale, reset_s; /* wrong by this factor; goes back to 0 at this time */
    double counter_end_s;
    bool no_counter, no_power, no_slack;
    double lost_s;
    unsigned long long seed;
};

static inline double world_random(struct world *world) { /* SplitMix64, 0..1 */
    unsigned long long z = (world->seed += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static inline double world_between(struct world *world, double low, double high) {
    return low + (high - low) * world_random(world);
}

static inline void world_init(struct world *world, double seconds, unsigned long long seed) {
    memset(world, 0, sizeof *world);
    world->seconds = seconds;
    world->sample_s = 0.02;
    world->history_from_s = -2.3;
    world->history_end_s = world->counter_end_s = world->reset_s = world->lost_s = INFINITY;
    world->hole_from_s = world->hole_to_s = INFINITY;
    world->quantum_s = 0.09994;
    world->slack_s = 0.005;
    world->read_every_s = 1;
    world->counter_scale = 1;
    world->seed = seed;
}

static inline void world_step(struct world *world, double at_s, double watts) {
    world->at[world->count] = at_s;
    world->w[world->count++] = watts;
}

static inline void world_constant(struct world *world, double watts) {
    world_step(world, -WORLD_BEFORE_S, watts);
}

static inline void world_square(struct world *world, double low_w, double high_w, double period_s, double phase_s) {
    world_step(world, -WORLD_BEFORE_S, low_w);
    double t = phase_s;
    for (int i = 0; t < world->seconds + 1 && world->count < WORLD_STEPS_MAX - 1; i++, t += period_s / 2)
        world_step(world, t, i % 2 ? low_w : high_w);
}

/* Joules from -WORLD_BEFORE_S to t. */
static inline double world_energy(const struct world *world, double t) {
    double sum = 0;
    for (int i = 0; i < world->count && world->at[i] < t; i++) {
        double end = i + 1 < world->count && world->at[i + 1] < t ? world->at[i + 1] : t;
        sum += (end - world->at[i]) * world->w[i];
    }
    return sum;
}

static inline double world_truth(const struct world *world) {
    return world_energy(world, world->seconds) - world_energy(world, 0);
}

static inline int64_t world_ns(double seconds) {
    return llround(seconds * 1e9);
}

/* The counter readings: every edge within 0.5 s of both ends, else one every read_every_s. */
static inline void world_counter(const struct world *original, struct hec_energy_meter *meter) {
    struct world world = *original;
    double previous = -INFINITY;
    long first = lround(floor((-0.4 - world.quantum_phase_s) / world.quantum_s));
    for (long k = first;; k++) {
        double edge = world.quantum_phase_s + (double)k * world.quantum_s;
        double slack = world.slack_s * world_random(&world);
        double t = edge + slack * world_random(&world);
        if (t > world.seconds || t > world.counter_end_s)
            break;
        if (edge > 0.5 && edge < world.seconds - 0.5 && edge - previous < world.read_every_s)
            continue;
        previous = edge;
        double mj = world_energy(&world, edge) * 1000 * world.counter_scale + 1e6;
        if (edge >= world.reset_s)
            mj -= world_energy(&world, world.reset_s) * 1000 * world.counter_scale + 1e6;
        hec_energy_counter(meter, world_ns(t), (int64_t)mj,
                           world.no_slack ? HEC_SLACK_UNKNOWN : (int64_t)ceil(slack * 1e6));
    }
}

static inline void world_power(const struct world *world, struct hec_energy_meter *meter, bool spacing) {
    double t = world->history_from_s + world->sample_phase_s;
    for (; t <= world->seconds + world->history_beyond_s - world->sample_lag_s && t <= world->history_end_s;
         t += world->sample_s) {
        if (t > world->hole_from_s && t < world->hole_to_s)
            continue;
        double window_s = world->sample_window_s > 0 ? world->sample_window_s : world->sample_s;
        double joules = world_energy(world, t) - world_energy(world, fmax(t - window_s, -WORLD_BEFORE_S));
        window_s = fmin(window_s, t + WORLD_BEFORE_S);
        if (spacing)
            hec_energy_spacing(meter, world_ns(t + world->sample_lag_s));
        else
            hec_energy_power(meter, world_ns(t + world->sample_lag_s), llround(joules / window_s * 1000));
    }
}

static inline void world_measure(const struct world *world, struct hec_energy *energy) {
    static struct hec_energy_meter meter;
    struct hec_energy_options options = {.end_ns = world_ns(world->seconds),
                                         .limit_w = 700,
                                         .has_power_history = true,
                                         .lost_ns = isfinite(world->lost_s) ? world_ns(world->lost_s) : INT64_MAX};
    hec_energy_init(&meter, &options);
    if (!world->no_counter)
        world_counter(world, &meter);
    if (!world->no_power)
        world_power(world, &meter, true);
    hec_energy_prepare(&meter);
    if (!world->no_power)
        world_power(world, &meter, false);
    hec_energy_finish(&meter, energy);
}
