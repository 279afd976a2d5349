/* What differs between two sets of runs besides what they took: alike.def. */
#ifndef HEC_DIAGNOSE_COMPARE_ALIKE_H
#define HEC_DIAGNOSE_COMPARE_ALIKE_H

#include "diagnose/result.h"

enum hec_alike {
#define HEC_ALIKE(id, name, must, words) HEC_ALIKE_##id,
#include "diagnose/compare/alike.def"
#undef HEC_ALIKE
    HEC_ALIKE_COUNT
};

const char *hec_alike_name(enum hec_alike what); /* "power_limit": stable */
const char *hec_alike_words(enum hec_alike what);
bool hec_alike_must(enum hec_alike what);

#define HEC_ALIKE_VALUE 512
/* "NVIDIA H100 80GB HBM3", of one run; "unknown". */
void hec_alike_value(const struct hec_summary *summary, enum hec_alike what, char out[HEC_ALIKE_VALUE]);

/* Runs to compare. Functions take two of them: A and B. */
struct hec_side {
    const struct hec_summary *runs;
    int count;
};

struct hec_unlike {
    enum hec_alike what;
    char value[2][HEC_ALIKE_VALUE]; /* of A, of B; several in one side are joined by "; " */
};

struct hec_unlikes {
    struct hec_unlike list[HEC_ALIKE_COUNT];
    int count;
    int grave; /* those that must be alike: the first ones of the list */
};

/* The unit of work that all runs count, in the same way; "" where they count none, or not the same. */
const char *hec_side_unit(const struct hec_side *side);

/* Runs of one side that differ count as well. */
void hec_unlikes_find(const struct hec_side *side, struct hec_unlikes *out);

#endif
