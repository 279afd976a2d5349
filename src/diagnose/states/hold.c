#include "diagnose/states/hold.h"

#include "base/clock.h"
#include "diagnose/limits.h"

static void close_gap(struct hec_hold_search *s, int64_t to_ns) {
    bool worked = (double)s->busy_ns >= HEC_IDLE_WORKED_S * HEC_NS_PER_S;
    bool own = (double)s->host_ns >= HEC_IDLE_OWN_CODE * (double)s->idle_ns;
    if (worked && own && to_ns - s->from_ns > s->longest.to_ns - s->longest.from_ns)
        s->longest = (struct hec_hold){s->from_ns, to_ns, s->frame};
    s->idle_ns = s->host_ns = s->longest_host_ns = 0;
    s->frame = 0;
}

void hec_hold_piece(struct hec_hold_search *s, const struct hec_state_piece *piece) {
    int64_t ns = piece->end_ns - piece->start_ns;
    if (piece->traced && hec_state_idle(piece->state)) {
        s->from_ns = s->idle_ns ? s->from_ns : piece->start_ns;
        s->idle_ns += ns;
        if (piece->state != HEC_STATE_HOST)
            return;
        s->host_ns += ns;
        if (ns > s->longest_host_ns) {
            s->longest_host_ns = ns;
            s->frame = piece->frame;
        }
        return;
    }
    if (s->idle_ns)
        close_gap(s, piece->start_ns);
    s->busy_ns += piece->traced ? ns : 0;
}
