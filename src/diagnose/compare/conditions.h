/* What differs between two sets of runs besides what they took: conditions.def. */
#pragma once

#include "diagnose/result.h"

enum hec_condition {
#define HEC_CONDITION(id, name, must) HEC_CONDITION_##id,
#include "diagnose/compare/conditions.def"
    HEC_CONDITION_COUNT
};

const char *hec_condition_name(enum hec_condition what); /* "power_limit": stable */
bool hec_condition_must_agree(enum hec_condition what);

#define HEC_CONDITION_VALUE 512
/* "NVIDIA H100 80GB HBM3", of one run; "unknown". */
void hec_condition_value(const struct hec_summary *summary, enum hec_condition what, char out[HEC_CONDITION_VALUE]);

/* Runs to compare. Functions take two of them: A and B. */
struct hec_side {
    const struct hec_summary *runs;
    int count;
};

struct hec_condition_difference {
    enum hec_condition what;
    char value[2][HEC_CONDITION_VALUE]; /* of A, of B; several in one side are joined by "; " */
};

struct hec_condition_differences {
    struct hec_condition_difference list[HEC_CONDITION_COUNT];
    int count;
    int grave; /* those that must be alike: the first ones of the list */
};

/* The unit of work that all runs count, in the same way; "" where they count none, or not the same. */
const char *hec_side_unit(const struct hec_side *side);

/* Runs of one side that differ count as well. */
void hec_conditions_compare(const struct hec_side *side, struct hec_condition_differences *out);
