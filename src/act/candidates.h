/* Which levers are worth a trial for a program, from what the first trial showed of it. */
#ifndef HEC_ACT_CANDIDATES_H
#define HEC_ACT_CANDIDATES_H

#include "act/levers.h"
#include "diagnose/result.h"
#include "prove/search.h"

struct hec_candidate {
    struct hec_lever_use use;
    enum hec_cause cause; /* of the finding that asks for it; HEC_CAUSE_COUNT: none, it is worth a trial anyway */
};

struct hec_candidates {
    struct hec_candidate list[HEC_SEARCH_MOST];
    int count;
};

/* Those that answer its findings, the largest saving first, then those that are worth a trial anyway. Left out: what its framework, its
 * version or its devices cannot do, what has nothing to do in it, and what changes semantics. */
void hec_candidates_find(const struct hec_summary *run, struct hec_candidates *out);

/* A lever that answers a finding is of a framework that the program does not use. */
bool hec_candidates_foreign(const struct hec_summary *run);

/* The names of those that the program's PyTorch is too old for, with commas between; "": none. */
void hec_candidates_old(const struct hec_summary *run, char *text, size_t size);

/* Those that were asked for, in that order. */
void hec_candidates_of(const struct hec_lever_set *set, struct hec_candidates *out);

void hec_candidates_plan(const struct hec_candidates *candidates, struct hec_search_plan *plan);
/* The levers of a set of bits. */
void hec_candidates_set(const struct hec_candidates *candidates, uint32_t bits, struct hec_lever_set *out);

#endif
