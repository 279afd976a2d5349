/* Inside src/report and what uses it: what runs have in common, and what differs, in words. They are compared as they are printed. */
#pragma once

#include "diagnose/compare/conditions.h"

#define HEC_CONDITION_VALUE 512
/* "NVIDIA H100 80GB HBM3", of one run; "unknown". */
void hec_condition_value(const struct hec_summary *summary, enum hec_condition what, char out[HEC_CONDITION_VALUE]);

struct hec_condition_difference {
    enum hec_condition what;
    char value[2][HEC_CONDITION_VALUE]; /* of A, of B; several in one side are joined by "; " */
};

struct hec_condition_differences {
    struct hec_condition_difference list[HEC_CONDITION_COUNT];
    int count;
    int grave; /* those that must be alike: the first ones of the list */
};

/* Runs of one side that differ count as well. */
void hec_conditions_compare(const struct hec_side *side, struct hec_condition_differences *out);
