/* Time of an agent's test: it goes on where the test says so. */
#pragma once

#include "base/clock.h"

#define S HEC_NS_PER_S

static int64_t now_ns;
static int64_t fake_mono(void) {
    return now_ns;
}
static int64_t fake_wall(void) {
    return INT64_C(1700000000) * S + now_ns;
}
static const struct hec_clock_source fake_clock = {fake_mono, fake_wall};
