/* One run as evidence: what it took for its work, as a whole and in consecutive blocks. Made from a run file (prove has no
 * files: whoever loads the run makes it); compared by compare.h. */
#pragma once

#include <stdbool.h>

/* A stretch of whole steps, or of time where the program reports none. */
struct hec_trial_block {
    double seconds;
    double joules; /* by the energy counters, read at its ends; NAN: not measured */
    double units;  /* of work done in it; NAN: unknown */
    double steps;  /* whole ones; NAN: unknown */
};

struct hec_trial {
    /* The steady part: after warm-up and compiling, before the end. Blocks add up to it. */
    struct hec_trial_block whole;
    struct hec_trial_block run;    /* all of it, start-up and end included */
    struct hec_trial_block *block; /* in order of time; of about equal length, at least one energy reading apart */
    int block_count;
    int pair; /* of an interleaved experiment: trials of A and B with one number ran side by side in time; -1: none */
};
