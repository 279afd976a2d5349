#include "diagnose/steady.h"

static struct hec_steady after(const struct hec_step_list *steps, size_t skipped) {
    struct hec_steady steady = {.from_ns = skipped ? steps->list[skipped - 1].end_ns : steps->list[0].start_ns,
                                .steps = steps->count - skipped};
    for (size_t i = skipped; i < steps->count; i++)
        steady.to_ns = i == skipped || steps->list[i].end_ns > steady.to_ns ? steps->list[i].end_ns : steady.to_ns;
    steady.known = steady.to_ns > steady.from_ns;
    return steady;
}

struct hec_steady hec_steady_of(const struct hec_step_list *steps) {
    return steps && steps->count >= HEC_STEADY_LEAST ? after(steps, HEC_STEADY_SKIPPED) : (struct hec_steady){0};
}

struct hec_steady hec_steady_counted(const struct hec_step_list *steps) {
    if (!steps || !steps->count)
        return (struct hec_steady){0};
    return after(steps, steps->count < 4 * HEC_STEADY_SKIPPED ? steps->count / 4 : HEC_STEADY_SKIPPED);
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
