/* Inside src/prove: the trials of a sweep by setting and round, and what they say of one setting or of two. */
#pragma once

#include "prove/sweep.h"

#define HEC_SWEEP_CONFIDENCE 0.95
#define HEC_SWEEP_ROUNDS_MOST 100

/* What an interval's confidence is of. */
enum hec_sweep_of {
    HEC_SWEEP_OF_ONE, /* this interval */
    HEC_SWEEP_OF_ALL, /* all that compare one setting with each other one (Bonferroni): for what is chosen among them */
    HEC_SWEEP_OF
};

struct hec_sweep_table {
    const struct hec_sweep_plan *plan;
    enum hec_sweep_objective objective;
    bool by_run;
    int rounds;
    double confidence[HEC_SWEEP_OF], times[HEC_SWEEP_OF][HEC_SWEEP_ROUNDS_MOST + 1]; /* t of so many rounds */
    const struct hec_sweep_trial *at[HEC_SWEEP_ARMS_MOST][HEC_SWEEP_ROUNDS_MOST];    /* NULL: none that ran */
};

void hec_sweep_table_make(const struct hec_sweep_plan *plan, const struct hec_sweep_trial *trials, int count,
                          struct hec_sweep_table *out);
struct hec_sweep_interval hec_sweep_figure(const struct hec_sweep_table *table, enum hec_sweep_figure figure, int arm);
/* Of `arm` by `to`, from the rounds that both ran in. */
struct hec_sweep_interval hec_sweep_ratio(const struct hec_sweep_table *table, enum hec_sweep_figure figure, int arm,
                                          int to, enum hec_sweep_of of);
/* Of a set: the one with the most (or, of what should be small, the least) in paired rounds; -1: it is known of none. */
int hec_sweep_best(const struct hec_sweep_table *table, enum hec_sweep_figure figure, uint64_t set);
