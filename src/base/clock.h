/* The one clock: CLOCK_MONOTONIC in nanoseconds. The wall clock only labels.
 * A test may install another source (simulated time); production code never does. */
#pragma once

#include <stdint.h>

#define HEC_NS_PER_S INT64_C(1000000000)
#define HEC_NS_PER_MS INT64_C(1000000)
#define HEC_NS_PER_US INT64_C(1000)

static inline int64_t hec_later(int64_t a_ns, int64_t b_ns) {
    return a_ns > b_ns ? a_ns : b_ns;
}

struct hec_clock_source {
    int64_t (*mono_ns)(void);
    int64_t (*wall_ns)(void);
};

int64_t hec_clock_mono_ns(void);
int64_t hec_clock_wall_ns(void);

/* wall minus mono, now: add it to a monotonic time to label it, subtract it from a
 * driver's wall-clock timestamp to place it on the monotonic timeline. */
int64_t hec_clock_wall_offset_ns(void);

/* NULL restores the real clock. Not thread-safe: call before threads start. */
void hec_clock_set_source(const struct hec_clock_source *source);
