/* A search for the levers that save joules: trials of the sets that prove/search.h asks for, one after another. */
#pragma once

#include "act/levers.h"
#include "act/live.h"
#include "act/trials.h"
#include "diagnose/result.h"
#include "prove/experiment.h"
#include "prove/search.h"

/* Which levers are worth a trial for a program, from what the first trial showed of it. */
struct hec_candidate {
    struct hec_lever_use use;
    enum hec_cause cause; /* of the finding that asks for it; HEC_CAUSE_COUNT: none, it is worth a trial anyway */
    uint32_t after;       /* bit of the value of the same knob that it is a step beyond; 0: none */
    char was[64];         /* of a knob: what the program has without */
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

/* A knob that is asked for by name: within its own range, or this one. */
struct hec_knob_ask {
    char name[64];
    bool ranged;
    double least, most;
};
#define HEC_SEARCH_KNOBS 8

/* "batch=32..512", or "batch" alone. HEC_ERR_USAGE with a sentence. */
int hec_knob_ask(const char *text, struct hec_knob_ask *out, struct hec_why *why);

/* Adds values of knobs that the program read: of those that are asked for, and, where `all`, of those whose range it gives. From the
 * value in use to both sides, doubling and halving where the range spans a factor of 4 and is above 0, else by quarters of it, up to
 * HEC_KNOB_VALUES to each side. HEC_ERR_UNSUPPORTED with a sentence: one that is asked for cannot be tried. */
#define HEC_KNOB_VALUES 6
int hec_candidates_add_knobs(const struct hec_summary *run, const struct hec_knob_ask *asks, int count, bool all,
                             struct hec_candidates *out, struct hec_why *why);
/* Whether units of work are known by which values of a knob can be compared: a step is other work then. */
bool hec_candidates_units(const struct hec_summary *run);
/* "bf16_autocast, knob batch=256 (was 128)" */
void hec_candidates_words(const struct hec_candidates *candidates, const struct hec_lever_set *set,
                          char text[HEC_LEVERS_TEXT]);

void hec_candidates_plan(const struct hec_candidates *candidates, struct hec_search_plan *plan);
/* The levers of a set of bits. */
void hec_candidates_set(const struct hec_candidates *candidates, uint32_t bits, struct hec_lever_set *out);

struct hec_search {
    char **command;
    struct hec_candidates candidates;
    double slowdown_most; /* 0.05: units a second may fall by so much */
    double saving_least;  /* 0.02: a best set that saves less is none */
    double margin;        /* of the quality gate; 0: HEC_QUALITY_MARGIN */
    int64_t loss_steps;   /* as in hec_experiment_plan */
    int64_t until_ns;     /* monotonic: no trial begins that is not expected to end before */
    double trial_s;       /* what a trial of the command as it is takes, until one has shown it; 0: not known */
    uint64_t devices;     /* bits of those that the program uses */
    bool live;            /* it has steps, and all of it is on this host: its levers may be switched while it runs */
    int ranks;            /* of its job; 0: it is no job */
};

/* One trial, the base's too; or a block of a program that went on (trial.part), of which only the trial is known. */
struct hec_searched {
    uint32_t set; /* bits of candidates */
    struct hec_search_trial trial;
    struct hec_experiment_trial measured; /* unless the command failed */
    bool timed;                           /* its joules are not known: time stands for them */
    bool slow;                            /* ended for it did not come to its end in time */
    struct hec_reason why;                /* what its levers saw, or why it failed */
    struct hec_live_block block;          /* of trial.part */
};

/* What measure found out beside the figures. */
struct hec_search_seen {
    bool idle, failed;          /* a lever did nothing or the program has it; a lever failed */
    char text[HEC_REASON_TEXT]; /* what they saw */
};

/* What a program in which levers were switched came to. */
struct hec_search_lived {
    double seconds, joules;     /* joules NAN: not measured */
    uint32_t idle, failed;      /* candidates that did nothing, that failed */
    char text[HEC_REASON_TEXT]; /* what those that failed saw */
};

struct hec_search_watch {
    /* Levers are switched in one program; what it came to. Blocks are given to `after` as trials are. */
    void (*begin_live)(void *context, int levers);
    void (*after_live)(void *context, int blocks, const struct hec_trial_end *end);
    int (*measure_live)(void *context, const struct hec_session *session, const struct hec_session_result *result,
                        struct hec_search_lived *out, struct hec_why *why);
    /* A trial of this set begins. */
    void (*begin)(void *context, const struct hec_lever_set *set, int trials);
    int (*measure)(void *context, const struct hec_session *session, const struct hec_session_result *result,
                   struct hec_experiment_trial *out, struct hec_search_seen *seen, struct hec_why *why);
    void (*after)(void *context, const struct hec_lever_set *set, const struct hec_searched *trial);
    void *context;
};

/* Its levers are switched in one program: so many of them can be that it is worth a start. */
bool hec_search_lives(const struct hec_search *search);

struct hec_search_outcome {
    struct hec_searched *trials;
    size_t count, capacity;
    uint32_t best;          /* bits; 0: nothing helps */
    bool spent;             /* the time ran out before all was tried */
    int asked;              /* the signal by which a user asked to end it; 0: none */
    double joules, seconds; /* of all trials; joules NAN: not measured in all */
};

/* What is best is not tried again in a process of its own where blocks of a running program say so: the proof does that. Where
 * nothing is, the base has a trial at any rate. It has run once before, so its first trial here fills no caches. HEC_ERR_IO where
 * the command fails as it is: the last trial says why, and *end is its end. Free the outcome in any case. */
int hec_search_run(struct hec_trials *trials, const struct hec_search *search, const struct hec_search_watch *watch,
                   struct hec_search_outcome *out, struct hec_trial_end *end, struct hec_why *why);
void hec_search_free(struct hec_search_outcome *outcome);

/* It ran as it is, in a process of its own: its trial is measured. */
bool hec_searched_base(const struct hec_searched *trial);

/* The table of the search, as prove/search.h reads it: free it. NULL: no memory. */
struct hec_search_trial *hec_search_table(const struct hec_search_outcome *outcome);
