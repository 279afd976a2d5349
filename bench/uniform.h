/* For benches: numbers that are the same every time. */
#pragma once

#include <stdint.h>

static uint64_t uniform_state = 88172645463325252u;

/* 0 <= x < 1, by xorshift64 (Marsaglia 2003). */
static inline double uniform(void) {
    uniform_state ^= uniform_state << 13;
    uniform_state ^= uniform_state >> 7;
    uniform_state ^= uniform_state << 17;
    return (double)(uniform_state >> 11) / 9007199254740992.0;
}
