/* What runs that are compared have in common: conditions.def. What it is in each: report/words/conditions.h. */
#pragma once

#include "diagnose/result.h"

enum hec_condition {
#define HEC_CONDITION(id, name, must) HEC_CONDITION_##id,
#include "diagnose/compare/conditions.def"
    HEC_CONDITION_COUNT
};

const char *hec_condition_name(enum hec_condition what); /* "power_limit": stable */
bool hec_condition_must_agree(enum hec_condition what);

/* Runs to compare. Functions take two of them: A and B. */
struct hec_side {
    const struct hec_summary *runs;
    int count;
};

/* The unit of work that all runs count, in the same way; "" where they count none, or not the same. */
const char *hec_side_unit(const struct hec_side *side);
