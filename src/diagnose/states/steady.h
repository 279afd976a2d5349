/* The steady part of a run, which the rules judge: from the end of its third step to the end of its last one. What comes
 * before is set-up, which CUDA's first calls, lazily loaded kernels and the first batches make unlike anything after. Where
 * one of the first quarter of the steps (at most 20) took four times the median, with the time before it, it begins after that
 * one: a first look at validation data, a compilation, a program that waits for orders. Steps of an imported trace are those of
 * a profiler's window, which people open in the loop: nothing of them is set-up but what took so long. Without steps it is what
 * calls show (inferred/loop.c), where they were timed. */
#pragma once

#include "diagnose/states/state.h"

#define HEC_STEADY_SKIPPED 3u      /* steps: caches, allocators and autotuning settle within as many */
#define HEC_STEADY_EARLY 20u       /* at most: a later one that takes long belongs to the steady part */
#define HEC_STEADY_LONG 4.0        /* times the median */
#define HEC_STEADY_LEAST 6u        /* steps: with fewer there is no steady part, and the whole run counts */
#define HEC_STEADY_WINDOW_LEAST 3u /* of a profiler's window: one may be unlike the others */

bool hec_steps_of_window(enum hec_step_source source); /* imported */
/* Steps: with fewer there is no steady part. */
unsigned hec_steady_least(enum hec_step_source source);

struct hec_steady {
    bool known;
    int64_t from_ns, to_ns;
    size_t steps; /* in it */
};

/* steps NULL: not known. */
struct hec_steady hec_steady_of(const struct hec_step_list *steps);
/* For counts by the step, which are known of few steps too: of fewer than 12 a quarter is left out, not three. */
struct hec_steady hec_steady_counted(const struct hec_step_list *steps);
static inline bool hec_steady_at(const struct hec_steady *steady, int64_t t_ns) {
    return !steady->known || (t_ns >= steady->from_ns && t_ns < steady->to_ns);
}
/* A piece is inside, as most are: inline, so that nothing is copied. */
static inline bool hec_steady_holds(const struct hec_steady *steady, const struct hec_state_piece *piece) {
    return !steady->known || (piece->start_ns >= steady->from_ns && piece->end_ns <= steady->to_ns);
}
/* The part of a piece inside; false: none of it. Where it is not known everything is inside. */
bool hec_steady_clip(const struct hec_steady *steady, const struct hec_state_piece *piece, struct hec_state_piece *out);
