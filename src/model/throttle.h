/* Why clocks are low (throttle.def), for devices of any vendor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum hec_throttle {
#define HEC_THROTTLE(kind, name, words, meaning) HEC_THROTTLE_##kind,
#include "model/throttle.def"
    HEC_THROTTLE_COUNT
};
#define HEC_THROTTLE_UNASKED HEC_THROTTLE_OTHER /* how many kinds hold clocks down that nobody lowered: all before it */

/* Bits of metric gpu_throttle. */
enum hec_throttle_reason {
#define HEC_THROTTLE_REASON(id, bit, kind) HEC_THROTTLED_##id = 1 << (bit),
#include "model/throttle.def"
};

struct hec_throttle_info {
    const char *name;    /* "power": in JSON and labels */
    const char *words;   /* "the power limit" */
    const char *meaning; /* "software power cap" */
};

/* kind must be in range. */
const struct hec_throttle_info *hec_throttle_info(enum hec_throttle kind);

/* Is one of the reasons, as metric gpu_throttle has them, of this kind? */
bool hec_throttle_has(int64_t reasons, enum hec_throttle kind);

/* Heat or the hardware itself: more than a limit that is kept. */
bool hec_throttle_slowed(int64_t reasons);
