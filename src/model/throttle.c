#include "model/throttle.h"

#include <stddef.h>

static const struct hec_throttle_info kinds[] = {
#define HEC_THROTTLE(kind, name, words, meaning) {name, words, meaning},
#include "model/throttle.def"
};

static const struct {
    int64_t bit;
    enum hec_throttle kind;
} reasons_known[] = {
#define HEC_THROTTLE_REASON(id, bit, kind) {HEC_THROTTLED_##id, HEC_THROTTLE_##kind},
#include "model/throttle.def"
};

const struct hec_throttle_info *hec_throttle_info(enum hec_throttle kind) {
    return &kinds[kind];
}

bool hec_throttle_has(int64_t reasons, enum hec_throttle kind) {
    for (size_t i = 0; i < sizeof reasons_known / sizeof reasons_known[0]; i++)
        if (reasons_known[i].kind == kind && reasons & reasons_known[i].bit)
            return true;
    return false;
}

bool hec_throttle_slowed(int64_t reasons) {
    return hec_throttle_has(reasons, HEC_THROTTLE_THERMAL) || hec_throttle_has(reasons, HEC_THROTTLE_HARDWARE);
}
