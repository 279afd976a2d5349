/* The ledger of harm: what trying has cost a running program so far, against its bound. At every moment the cost, with the worst case of
 * what is being tried, is at most `most` of what has passed.
 *
 *     if (hec_harm_allows(&harm, passed, worst)) { try; hec_harm_charge(&harm, cost); }
 *
 * Costs and what has passed are in one unit, seconds say. A bound that is checked after a trial, or on the average, is none. */
#pragma once

#include <stdbool.h>

struct hec_harm {
    double most;  /* 0.01: a hundredth */
    double spent; /* so far */
};

bool hec_harm_allows(const struct hec_harm *harm, double passed, double worst);
/* What was gained is no credit: below 0 nothing is charged. */
void hec_harm_charge(struct hec_harm *harm, double cost);
