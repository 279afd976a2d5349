#include "diagnose/states/steady.h"

#include <math.h>

#define SAMPLED 255u /* periods that the median is of */

/* From the end of one step to the end of the next. */
static double period(const struct hec_step_list *steps, size_t i) {
    return (double)steps->list[i].end_ns - (double)steps->list[i - 1].end_ns;
}

static double usual_period(const struct hec_step_list *steps) {
    double periods[SAMPLED];
    size_t all = steps->count - 1, count = all < SAMPLED ? all : SAMPLED;
    for (size_t i = 0; i < count; i++)
        periods[i] = period(steps, 1 + i * all / count);
    hec_sort(periods, count);
    return hec_sorted_quantile(periods, count, 0.5);
}

bool hec_steps_of_window(enum hec_step_source source) {
    return source == HEC_STEP_ANNOTATED || source == HEC_STEP_RANGE;
}

unsigned hec_steady_least(enum hec_step_source source) {
    return hec_steps_of_window(source) ? HEC_STEADY_WINDOW_LEAST : HEC_STEADY_LEAST;
}

/* Steps to leave out. */
static size_t set_up(const struct hec_step_list *steps) {
    size_t early = steps->count / 4 < HEC_STEADY_EARLY ? steps->count / 4 : HEC_STEADY_EARLY;
    size_t skipped = hec_steps_of_window(steps->source) ? 0 : HEC_STEADY_SKIPPED;
    double most = early ? HEC_STEADY_LONG * usual_period(steps) : INFINITY;
    for (size_t i = early; i-- > skipped;)
        if ((i ? period(steps, i) : (double)steps->list[0].end_ns - (double)steps->list[0].start_ns) > most)
            return i + 1;
    return skipped;
}

static struct hec_steady after(const struct hec_step_list *steps, size_t skipped) {
    struct hec_steady steady = {.from_ns = skipped ? steps->list[skipped - 1].end_ns : steps->list[0].start_ns,
                                .steps = steps->count - skipped};
    for (size_t i = skipped; i < steps->count; i++)
        steady.to_ns = i == skipped || steps->list[i].end_ns > steady.to_ns ? steps->list[i].end_ns : steady.to_ns;
    steady.known = steady.to_ns > steady.from_ns;
    return steady;
}

struct hec_steady hec_steady_of(const struct hec_step_list *steps) {
    return steps && steps->count >= hec_steady_least(steps->source) ? after(steps, set_up(steps))
                                                                    : (struct hec_steady){0};
}

struct hec_steady hec_steady_counted(const struct hec_step_list *steps) {
    if (!steps || !steps->count)
        return (struct hec_steady){0};
    bool few = steps->count < 4 * HEC_STEADY_SKIPPED && !hec_steps_of_window(steps->source);
    return after(steps, few ? steps->count / 4 : set_up(steps));
}

bool hec_steady_clip(const struct hec_steady *steady, const struct hec_state_piece *piece,
                     struct hec_state_piece *out) {
    *out = *piece;
    if (!steady->known)
        return true;
    out->start_ns = piece->start_ns > steady->from_ns ? piece->start_ns : steady->from_ns;
    out->end_ns = piece->end_ns < steady->to_ns ? piece->end_ns : steady->to_ns;
    return out->start_ns < out->end_ns;
}
