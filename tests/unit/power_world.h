/* A device whose power is known in each millisecond, and a sensor that is late, filtered and noisy; numbers that are the same every
 * time. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define POWER_MS 60000 /* longest run */

struct power_world {
    int length_ms;
    uint64_t seed;
    double noise;     /* of a sample, relative, independent */
    double lag_ms;    /* positive: samples are late */
    double filter_ms; /* time constant of a first-order filter before a sample's mean; 0: none */
    double slack_ms;  /* a counter's value became current up to this long before its time */
    /* what happened */
    double factor[POWER_MS]; /* of each ms: what all power is multiplied by */
    double power[POWER_MS];  /* W */
    double seen[POWER_MS];   /* W behind the filter */
    double total;            /* J */
};

static inline double power_random(struct power_world *p) {
    p->seed ^= p->seed << 13;
    p->seed ^= p->seed >> 7;
    p->seed ^= p->seed << 17;
    return ((double)(p->seed >> 11) + 0.5) / 9007199254740992.0;
}

static inline double power_between(struct power_world *p, double low, double high) {
    return low + (high - low) * power_random(p);
}

static inline double power_normal(struct power_world *p) {
    return sqrt(-2 * log(power_random(p))) * cos(6.283185307179586 * power_random(p));
}

static inline void power_begin(struct power_world *p, uint64_t seed) {
    memset(p, 0, sizeof *p);
    p->seed = seed * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < 8; i++)
        power_random(p);
}

/* A slow change of all power, correlated over 0.3 s, from `slow` on; its relative standard deviation. */
static inline void power_drift(struct power_world *p, double slow, double deviation) {
    for (int i = 0; i < p->length_ms; i++) {
        slow = slow * exp(-1 / 300.0) + sqrt(1 - exp(-2 / 300.0)) * power_normal(p);
        p->factor[i] = 1 + deviation * slow;
    }
}

/* Over [start, end): into each ms; its integral over seconds. factor: of each ms, or NULL; part: how much of it counts. */
static inline double power_spread(double *by_ms, const double *factor, double part, int64_t start, int64_t end,
                                  double value) {
    double sum = 0;
    while (start < end) {
        int64_t bin = start / 1000000, stop = (bin + 1) * 1000000 < end ? (bin + 1) * 1000000 : end;
        double amount = (double)(stop - start) * 1e-6 * value * (factor ? 1 + part * (factor[bin] - 1) : 1);
        by_ms[bin] += amount;
        sum += amount / 1000;
        start = stop;
    }
    return sum;
}

/* Joules of power over [start, end). */
static inline double power_spend(struct power_world *p, double part, int64_t start, int64_t end, double watts) {
    double joules = power_spread(p->power, p->factor, part, start, end, watts);
    p->total += joules;
    return joules;
}

/* The integral over milliseconds. */
static inline double power_sum(const double *by_ms, double from_ms, double to_ms) {
    double sum = 0;
    for (int i = (int)from_ms; i < to_ms; i++)
        sum += by_ms[i] * (fmin(to_ms, i + 1) - fmax(from_ms, i));
    return sum;
}

static inline void power_filter(struct power_world *p) {
    double state = p->power[0], keep = p->filter_ms > 0 ? exp(-1 / p->filter_ms) : 0;
    for (int i = 0; i < p->length_ms; i++)
        p->seen[i] = state = keep * state + (1 - keep) * p->power[i];
}
