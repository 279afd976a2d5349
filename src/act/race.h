/* A race: several arms in rounds of one trial each, in an order that is drawn; between trials an arm may be taken out. */
#pragma once

#include "act/trials.h"

#include <stdint.h>

struct hec_race_arm {
    char **command;
    const struct hec_lever_set *levers; /* NULL: none */
    const char *knobs;                  /* as hec_session_options has them; NULL: those of the trials */
};

struct hec_race {
    struct hec_race_arm *arms;
    bool *out; /* of each: it runs no more. The watch sets it, between trials; the race where an arm's trial failed */
    int count;
    uint64_t seed;       /* of the order: hec_sequential_order */
    int warm_up, rounds; /* rounds that do not count, then those that do */
    int64_t budget_ns;   /* no trial starts after so much time; 0: no limit */
    int64_t patience_ns; /* a trial that takes longer hangs; 0: by how long others took (HEC_RACE_PATIENCE) */
};

/* Longer than any setting of a parameter should make a trial, compared with the longest so far: batches of 32 and of 1024 with as
 * many steps differ by a factor of 32 where the device is full. */
#define HEC_RACE_PATIENCE 40
#define HEC_RACE_PATIENCE_LEAST_NS (60 * INT64_C(1000000000))
#define HEC_RACE_PATIENCE_FIRST_NS (3600 * INT64_C(1000000000)) /* before any has ended */

enum hec_race_state {
    HEC_RACE_DONE,
    HEC_RACE_SPENT,      /* the budget is */
    HEC_RACE_INTERRUPTED /* a user or a scheduler asked */
};

struct hec_race_outcome {
    enum hec_race_state state;
    int arm, round, trials; /* of the last trial; round -1: a warm-up; trials so far */
    int rounds;             /* complete ones */
    struct hec_trial_end end;
};

/* context is given to each. */
struct hec_race_watch {
    /* A trial begins. */
    void (*begin)(void *context, const struct hec_race_outcome *so_far);
    /* What it came to, where its command did not fail. */
    int (*measure)(void *context, const struct hec_race_outcome *so_far, const struct hec_session *session,
                   const struct hec_session_result *result, struct hec_why *why);
    /* It has ended, well or by end.failure. */
    int (*after)(void *context, const struct hec_race_outcome *so_far, struct hec_why *why);
    /* A round that counts is complete. */
    int (*rounded)(void *context, const struct hec_race_outcome *so_far, struct hec_why *why);
    void *context;
};

/* HEC_OK in every state; else what kept it from going on. */
int hec_race_run(struct hec_trials *trials, struct hec_race *race, const struct hec_race_watch *watch,
                 struct hec_race_outcome *out, struct hec_why *why);
