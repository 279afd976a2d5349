#include "diagnose/compare/conditions.h"

#include <string.h>

static const struct {
    const char *name;
    bool must;
} table[] = {
#define HEC_CONDITION(id, name, must) {name, must},
#include "diagnose/compare/conditions.def"
};

const char *hec_condition_name(enum hec_condition what) {
    return (unsigned)what < HEC_CONDITION_COUNT ? table[what].name : "?";
}

bool hec_condition_must_agree(enum hec_condition what) {
    return (unsigned)what < HEC_CONDITION_COUNT && table[what].must;
}

const char *hec_side_unit(const struct hec_side *side) {
    const struct hec_steady_blocks *first = &side[0].runs[0].blocks;
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < side[at].count; i++) {
            const struct hec_steady_blocks *blocks = &side[at].runs[i].blocks;
            if (strcmp(blocks->unit, first->unit) != 0 ||
                (blocks->work == HEC_WORK_BY_STEP) != (first->work == HEC_WORK_BY_STEP))
                return "";
        }
    return first->unit;
}
