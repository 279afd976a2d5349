/* Which setting a running program is to have next, so that it does its work for fewer joules: from its blocks so far. Pure; who runs the
 * program (act/tuner.h), or a measured table (bench/tune/tables), plays it:
 *
 *     hec_tune_begin(&tune, &plan)
 *     step = hec_tune_next(&tune, passed_s)      a block of this setting, cut once it has lost step.lost_most_s
 *     hec_tune_block(&tune, &block)              what it came to, and so on
 *
 * Setting 0 is the program's own. The others are limits of power that fall from one to the next. A limit that is never reached does
 * nothing, so it is not tried, and nothing is claimed of it. Those that may be are tried one after the other, a block each between blocks
 * of the program's own setting, until one slows it down by too much or costs joules. The best of them is confirmed by pairs that had no
 * part in the choice (prove/sequential.h), then held. The program's own setting is measured again for ever: when it is as good, or the
 * program is not what it was, all begins anew.
 *
 * Each block that is not of the program's own setting is charged to the ledger of harm before it begins, with the worst that it can cost:
 * what the caller lets it lose before it is cut, one step of the program, and the time that a cut takes. Once a setting is confirmed it is
 * no trial any more: it may be slower by `slowdown_most`. */
#pragma once

#include "prove/harm.h"
#include "prove/sequential.h"

#define HEC_TUNE_SETTINGS 64 /* with the program's own */
#define HEC_TUNE_OWN 8       /* blocks of its own setting that say how fast it is */
#define HEC_TUNE_PAIRS 12    /* of one setting, at most; of a held one, the newest */

struct hec_tune_plan {
    int settings; /* with the program's own */
    double watts[HEC_TUNE_SETTINGS];
    double harm_most;     /* 0.01: of the time that has passed */
    double slowdown_most; /* 0.05: a unit of work may take so much longer */
    double alpha;         /* 0.05: how often a saving may be claimed where there is none */
    double block_s;       /* that a block takes at its own pace, what is left out after a switch included */
    double react_s;       /* from where a block has lost too much until its limit is gone */
    double whole_s;       /* that the program takes, from the first block on; 0: not known */
};

struct hec_tune_block {
    int setting;
    double whole_s, whole_units;   /* from the switch on */
    double seconds, units, joules; /* of what is measured: without the first steps */
    double watts;                  /* of the device that draws most: a limit is of each */
    double step_s;                 /* of its longest step */
    bool cut;                      /* it had lost too much; only the whole counts then */
};

enum hec_tune_phase {
    HEC_TUNE_WATCHES,  /* learns how fast the program is */
    HEC_TUNE_WALKS,    /* tries one limit after the other */
    HEC_TUNE_CONFIRMS, /* the best of them */
    HEC_TUNE_HOLDS,    /* what was confirmed */
    HEC_TUNE_RESTS     /* nothing helps */
};

struct hec_tune_step {
    int setting;
    bool tries;         /* the block is charged; else it is the program's own, or what was confirmed */
    double lost_most_s; /* then: against the program's own pace */
};

struct hec_tune_known { /* of one setting against the program's own: logs of ratios of joules, and of seconds, a unit */
    int pairs;
    double joules[HEC_TUNE_PAIRS], seconds[HEC_TUNE_PAIRS];
    bool out;
};

struct hec_tune_net { /* of the joules that the program would have taken at its own setting */
    double share;     /* 0.07: saved, less the most that trying can have cost */
    double low, high; /* as the interval of what was held says */
    double held;      /* of the time: what was confirmed held */
};

struct hec_tune {
    struct hec_tune_plan plan;
    struct hec_harm harm; /* seconds */
    enum hec_tune_phase phase;
    double own_seconds[HEC_TUNE_OWN], own_draws[HEC_TUNE_OWN]; /* a unit; watts */
    double own_watts, step_s;                                  /* mean; the longest step */
    int own;                                                   /* blocks of it since all began anew */
    int odd;                                                   /* in a row that differ from those */
    struct hec_tune_block last[2];                             /* the newest first */
    int lasts;
    struct hec_tune_known screened[HEC_TUNE_SETTINGS], confirmed[HEC_TUNE_SETTINGS];
    int at;                   /* walks, confirms, holds: the setting */
    int asked;                /* settings that were confirmed or refused, since all began anew */
    int blocks;               /* of the phase */
    int again;                /* blocks of a held setting between two of the program's own */
    int restarts;             /* times that all began anew */
    double found_own_seconds; /* a unit, when the held setting was found */
    struct hec_look saving;   /* of the held setting: joules a unit by those of the program's own */
    double own_power;         /* watts of all devices in the last block of the program's own setting */
    double passed_s, held_s, joules, saved, saved_low, saved_high; /* since the first block */
};

void hec_tune_begin(struct hec_tune *tune, const struct hec_tune_plan *plan);
/* passed_s: since the program's steady part began. */
struct hec_tune_step hec_tune_next(struct hec_tune *tune, double passed_s);
void hec_tune_block(struct hec_tune *tune, const struct hec_tune_block *block);

/* Of all that was done so far; share NAN: nothing was ever held. */
struct hec_tune_net hec_tune_net(const struct hec_tune *tune);
/* Of the held setting: seconds a unit by those of the program's own, less 1; NAN: none is held. */
double hec_tune_slowdown(const struct hec_tune *tune);
/* Seconds a unit at the program's own setting: what is surely not faster; NAN: not known yet. For who cuts blocks. */
double hec_tune_own_seconds(const struct hec_tune *tune);
