/* What a rank that waits loses: its device spins in a collective, and its host goes on launching for later ones meanwhile. Where the host
 * has enough to do of its own the step would take as long if nobody was late: its device would idle where it spins. */
#include "diagnose/replay/parts.h"
#include "diagnose/states/state.h"

#include <stdlib.h>

/* Of the time before a call, what the program surely does for itself. A longer piece of it that outlasts all that its device had to do may
 * be a wait that no call shows, as for a callback: only what comes after the device was done is known then. */
static int64_t own_code_ns(const struct hec_schedule *s, const struct hec_schedule_call *c, int64_t done_ns) {
    int64_t code_ns = hec_call_code_ns(s, c);
    if (code_ns <= 0)
        return 0;
    if (code_ns < HEC_STATE_BRIEF_NS || done_ns > c->begin_ns)
        return code_ns;
    int64_t after_ns = c->begin_ns - done_ns;
    return after_ns < code_ns ? after_ns : code_ns;
}

/* Calls that wait for the device, or for room in its queue, are as long as the device makes them. */
static int64_t own_call_ns(const struct hec_schedule_call *c) {
    int64_t call_ns = c->end_ns - c->begin_ns;
    return c->kind != HEC_CALL_WAIT && call_ns > 0 && call_ns < HEC_LAUNCH_BLOCKED_NS ? call_ns : 0;
}

void hec_schedule_hosts(struct hec_schedule *s) {
    int64_t done_ns[256], own_ns[256] = {0}, met_ns = s->met_to_ns - s->met_from_ns;
    for (int p = 0; p < s->process_count; p++)
        done_ns[p] = -HEC_REPLAY_MOST_NS / 2;
    for (size_t i = 0; i < s->count; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        if (c->begin_ns >= s->met_from_ns && c->begin_ns < s->met_to_ns && !(c->flags & HEC_CALL_GUESSED))
            own_ns[c->process] +=
                own_code_ns(s, c, done_ns[c->process]) + own_call_ns(c) + c->data_ns + c->checkpoint_ns;
        if (hec_call_launched(c) && c->finish_ns > done_ns[c->process])
            done_ns[c->process] = c->finish_ns;
    }
    for (int p = 0; p < s->process_count; p++) {
        struct hec_schedule_waits *w = &s->waits[p];
        int64_t left_ns = own_ns[p] < met_ns ? met_ns - own_ns[p] : 0;
        w->lost_ns = w->waited_ns < left_ns ? w->waited_ns : left_ns;
    }
}
