/* What moved between two sets of runs: seconds and joules by state, and the findings that went and that came. */
#pragma once

#include "diagnose/compare/conditions.h"

/* Of all devices that a run used together, its start and end included; [0]: of A, [1]: of B. */
struct hec_delta_state {
    enum hec_state state;
    double seconds[2];
    double joules[2]; /* NAN unknown */
};

struct hec_delta_cause {
    enum hec_cause cause;
    int runs[2];      /* that have it, worth acting on */
    double saving[2]; /* the most of them would have saved at best guess: of the joules, or of the time; NAN unknown */
};

struct hec_delta {
    bool per_unit;                                 /* else per run */
    struct hec_delta_state state[HEC_STATE_COUNT]; /* largest difference first: of joules, where those are known */
    int state_count;                               /* 0: a side has no ledger */
    struct hec_delta_state sum;
    struct hec_delta_cause cause[HEC_CAUSE_COUNT]; /* those that went, those that came, those that stayed */
    int cause_count;
};

void hec_delta_find(const struct hec_side *side, struct hec_delta *out);
