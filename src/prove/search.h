/* Which set of levers to try next, and which is best: from the table of trials so far. Pure: who runs the search asks after each trial.
 *
 * A climb: from the command as it is (the base), each candidate in turn joins the best set so far, which it keeps growing where the set
 * with it is better by more than HEC_SEARCH_GAIN; of a family, the others are tried in the place of the first at the end. Once through,
 * those that did not join are asked again if the set has grown since: a layout may cost alone and pay beside half precision. What fails,
 * does nothing, or costs more than HEC_SEARCH_WORSE is out. Values of one parameter are a family in which a value further away is asked
 * only in the place of the one before it, so that the better direction goes on while it helps. The base is tried again after every few
 * trials, so that drift cancels. A trial takes 10 to 30 s, most of it start-up: to try each candidate alone before any two together leaves
 * no time for what pays most, sets.
 * The search proves nothing: it picks the best of many noisy figures, which are better than they should be for that alone. What it picks is
 * proven by trials of its own (prove/experiment.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEC_SEARCH_PARTS 2
#define HEC_SEARCH_MOST 32 /* candidates: bits of a set */
#define HEC_SEARCH_BASE_EVERY 4
#define HEC_SEARCH_GAIN                                                                                                \
    0.005 /* of joules by unit: half of what one trial is known to, at the noise of a real card (docs/prove.md) */
#define HEC_SEARCH_NOISE                                                                                               \
    2 /* blocks of a running program are short: a set is better by so many times what two of them differ by, or by more \
         where few of the base are known (Student); what is found in the end saves something at 95 % */
#define HEC_SEARCH_BLOCKS 2   /* of each set that is taken for better; and of the base one after every two others */
#define HEC_SEARCH_LARGE 0.2  /* of joules by unit: one block says that, beside two of the base */
#define HEC_SEARCH_WORSE 0.15 /* a layout or a compiler may cost that, and pay beside half precision */

enum hec_search_fate {
    HEC_SEARCH_RAN,
    HEC_SEARCH_IDLE,  /* a lever did nothing, or the program has it already */
    HEC_SEARCH_FAILED /* crashed, out of memory, too slow, or its results are no numbers */
};

struct hec_search_trial {
    uint32_t set; /* bits of candidates; 0: the base */
    enum hec_search_fate fate;
    double cost;  /* joules by unit, or what stands for them: less is better; NAN: not known */
    double speed; /* units a second, or what stands for them; NAN: not known */
    /* Of HEC_SEARCH_PARTS. 0: a process of its own; 1: a block of one program that went on. Each is compared with the base of its
     * own part. */
    int part;
};

struct hec_search_plan {
    int candidates;
    uint32_t excludes[HEC_SEARCH_MOST]; /* the others that it cannot be with */
    uint32_t after[HEC_SEARCH_MOST];    /* the one in whose place alone it is tried; 0: it is tried for itself */
    uint32_t closed;                    /* candidates that are not tried */
    int part;                           /* of the trials that follow */
    double slowdown_most;               /* 0.05: the speed may fall by so much */
    double saving_least;                /* 0.02: a best set that saves less is none */
};

struct hec_search_step {
    bool done;
    uint32_t set; /* to try next; done: the best one, 0 where nothing helps */
};

/* spent: no trial may follow, what is known has to do. */
struct hec_search_step hec_search_next(const struct hec_search_plan *plan, const struct hec_search_trial *trials,
                                       int count, bool spent);

/* Of a set by the base: 0.5 is half. low and high are 95 % bounds by how trials of the base differ among themselves; NAN: fewer than
 * two of them, or not known. */
struct hec_search_ratio {
    int trials;
    double best, low, high;
};
struct hec_search_ratio hec_search_cost(const struct hec_search_trial *trials, int count, uint32_t set);
struct hec_search_ratio hec_search_speed(const struct hec_search_trial *trials, int count, uint32_t set);
