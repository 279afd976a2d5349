#include "diagnose/steady.h"

struct hec_steady hec_steady_of(const struct hec_step_list *steps) {
    struct hec_steady steady = {0};
    if (!steps || steps->count < HEC_STEADY_LEAST)
        return steady;
    steady.from_ns = steps->list[HEC_STEADY_SKIPPED - 1].end_ns;
    for (size_t i = 0; i < steps->count; i++)
        steady.to_ns = steps->list[i].end_ns > steady.to_ns ? steps->list[i].end_ns : steady.to_ns;
    steady.known = steady.to_ns > steady.from_ns;
    return steady;
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
