/* Time stamps of calls: the processor's counter where the kernel itself trusts it (16 ns a reading against 33 ns of
 * clock_gettime; H100 host, 2026-11-22), else nanoseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct hec_ticks {
    bool counter;        /* a tick is one of the processor's counter; else 1 ns */
    double ns_per_tick;  /* refined by hec_ticks_refine */
    uint64_t first_tick; /* the pair from which the rate is measured */
    int64_t first_ns;
};
extern struct hec_ticks hec_ticks;

/* Once, before any use: takes 1 ms where the counter is used. */
void hec_ticks_open(void);
/* Measure the rate again, over all the time since the start. */
void hec_ticks_refine(void);

static inline int64_t hec_ticks_clock_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline uint64_t hec_ticks_now(void) {
#if defined(__x86_64__)
    if (__builtin_expect(hec_ticks.counter, 1))
        return __rdtsc();
#endif
    return (uint64_t)hec_ticks_clock_ns();
}

/* Length of a stretch, ns. */
static inline int64_t hec_ticks_ns(uint64_t ticks) {
    double rate;
    __atomic_load(&hec_ticks.ns_per_tick, &rate, __ATOMIC_RELAXED);
    return (int64_t)((double)ticks * rate);
}

/* The tick of an instant. */
static inline uint64_t hec_ticks_of(int64_t t_ns) {
    double rate;
    __atomic_load(&hec_ticks.ns_per_tick, &rate, __ATOMIC_RELAXED);
    int64_t ns = t_ns - (hec_ticks.counter ? hec_ticks.first_ns : 0);
    return hec_ticks.first_tick + (uint64_t)(int64_t)((double)ns / rate);
}

/* An instant of the last second as CLOCK_MONOTONIC; ticks of the future become now. Read again where the thread lost its
 * core between the two clocks: a record would be reported milliseconds late. */
#define HEC_TICKS_CLOSE_NS 2000
static inline int64_t hec_ticks_at_ns(uint64_t tick) {
    uint64_t now;
    int64_t now_ns;
    int tries = 4;
    do {
        now = hec_ticks_now();
        now_ns = hec_ticks_clock_ns();
    } while (hec_ticks_ns(hec_ticks_now() - now) > HEC_TICKS_CLOSE_NS && --tries > 0);
    return now_ns - (now > tick ? hec_ticks_ns(now - tick) : 0);
}
