#include "diagnose/states/steady.h"

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

/* Steps to leave out. */
static size_t set_up(const struct hec_step_list *steps) {
    size_t early = steps->count / 4 < HEC_STEADY_EARLY ? steps->count / 4 : HEC_STEADY_EARLY;
    double most = HEC_STEADY_LONG * usual_period(steps);
    for (size_t i = early; i-- > HEC_STEADY_SKIPPED;)
        if (period(steps, i) > most)
            return i + 1;
    return HEC_STEADY_SKIPPED;
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
    return steps && steps->count >= HEC_STEADY_LEAST ? after(steps, set_up(steps)) : (struct hec_steady){0};
}

struct hec_steady hec_steady_counted(const struct hec_step_list *steps) {
    if (!steps || !steps->count)
        return (struct hec_steady){0};
    return after(steps, steps->count < 4 * HEC_STEADY_SKIPPED ? steps->count / 4 : set_up(steps));
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
