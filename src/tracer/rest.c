/* When calls are not recorded; pure. What recording costs a program of many small launches is code and data of HEC that the
 * program has pushed out of the caches since the launch before (callers.h). To save it, calls are left out for a time, and a
 * report is made from the time in which they were recorded.
 *
 * Rests are of two seconds, one in every four. Which two, is drawn at random: otherwise a program that repeats itself every four
 * seconds would be seen in the same half for ever. All processes of a machine rest at the same time, so that ranks are seen
 * together. */
#include "tracer/tracer.h"

/* Each costs about 0.1 us (bench/results/2026-11-28-h200x2-turns): together 0.2 % of the time. */
#define CALLS_PER_S 20000.0
#define HALF_NS (2 * HEC_NS_PER_S)
/* From the first call on: a short run, and how each begins, is recorded whole. */
#define WHOLE_NS (10 * HEC_NS_PER_S)
/* 18 hours of them; from then on calls are recorded all the time. A report holds them in memory. */
#define HALVES_MOST 16384u

static bool drawn(int64_t half) {
    uint64_t h = (uint64_t)(half / 2) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)(half % 2) == (h >> 63);
}

bool hec_rest_wanted(struct hec_rest *rest, int64_t now_ns, uint64_t calls) {
    int64_t half = now_ns / HALF_NS;
    if (rest->first_ns == 0 && calls > 0)
        rest->first_ns = now_ns;
    if (half != rest->half) {
        if (rest->since_ns == 0 && rest->from_ns != 0 && now_ns > rest->from_ns)
            rest->often = (double)(calls - rest->from_calls) * 1e9 >= CALLS_PER_S * (double)(now_ns - rest->from_ns);
        rest->half = half;
        rest->from_ns = now_ns;
        rest->from_calls = calls;
        rest->halves += rest->since_ns != 0;
    }
    return rest->often && rest->halves < HALVES_MOST && now_ns - rest->first_ns >= WHOLE_NS && drawn(half);
}
