#include "diagnose/states/gaps.h"

#include "base/clock.h"
#include "diagnose/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_part(struct hec_gap_facts *g, const struct hec_gap_part *p) {
    g->owned_s[p->state][p->cause] += p->seconds;
    g->small_s += p->cause == HEC_CAUSE_COPY && p->small ? p->seconds : 0;
}

static void note(struct hec_gap_facts *g, enum hec_state state, enum hec_cause cause, bool small, double seconds) {
    const struct hec_gap_part part = {state, cause, small, seconds};
    for (int i = 0; i < g->now_count; i++) {
        struct hec_gap_part *p = &g->now[i];
        if (p->state == state && p->cause == cause && p->small == small) {
            p->seconds += seconds;
            return;
        }
    }
    if (g->now_count < (int)(sizeof g->now / sizeof g->now[0]))
        g->now[g->now_count++] = part;
    else
        add_part(g, &part);
}

static enum hec_cause waited_for(enum hec_state_wait wait, enum hec_cause otherwise) {
    return wait == HEC_STATE_WAIT_SMALL || wait == HEC_STATE_WAIT_DATA ? HEC_CAUSE_COPY
           : wait == HEC_STATE_WAIT_READ                               ? HEC_CAUSE_SYNC
                                                                       : otherwise;
}

/* Its own. Where the gap began with it, without it the program would be ahead by what had been hidden. */
static void own(struct hec_gap_facts *g, enum hec_state state, enum hec_cause cause, bool small, double seconds) {
    double ahead = 0;
    if (cause != HEC_CAUSE_HOST && g->hidden_s > 0) { /* code that the device hides is where it belongs */
        for (int i = 0; i < HEC_CAUSE_COUNT; i++)
            ahead += g->ahead_s[i];
        g->ahead_s[cause] += fmin(g->hidden_s, fmax(0, HEC_GAP_AHEAD_S - ahead));
        g->ahead = true;
        g->lead_s += cause == HEC_CAUSE_SYNC ? fmin(g->hidden_s, fmax(0, HEC_GAP_AHEAD_S - g->lead_s)) : 0;
    }
    g->hidden_s = 0;
    g->drain = cause;
    g->drain_small = small;
    note(g, state, cause, small, seconds);
}

static double explain(struct hec_gap_facts *g, enum hec_state state, enum hec_cause cause, double seconds) {
    double ahead = g->ahead_s[cause], part = ahead < seconds ? ahead : seconds;
    if (!(part > 0))
        return seconds;
    g->ahead_s[cause] -= part;
    g->lead_s = fmax(0, g->lead_s - (cause == HEC_CAUSE_SYNC ? part : 0));
    g->late_now_s += part;
    note(g, state, cause, cause == g->drain && g->drain_small, part);
    return seconds - part;
}

/* What is about to be launched decides; of kernels, what the program is late by. */
static void launching(struct hec_gap_facts *g, enum hec_state state, enum hec_state_wait wait, double seconds) {
    if (wait != HEC_STATE_WAIT_OTHER) {
        own(g, state, waited_for(wait, HEC_CAUSE_SYNC), wait == HEC_STATE_WAIT_SMALL, seconds);
        return;
    }
    g->hidden_s = 0;
    if (g->ahead)
        seconds = explain(g, state, g->drain, seconds);
    for (int cause = 0; g->ahead && cause < HEC_CAUSE_COUNT && seconds > 0; cause++)
        seconds = explain(g, state, (enum hec_cause)cause, seconds);
    g->ahead &= !(seconds > 0); /* more is left than all of it */
    if (seconds > 0)
        note(g, state, HEC_CAUSE_LAUNCH, false, seconds);
}

static void close_host(struct hec_gap_facts *g) {
    double seconds = (double)g->host_ns / HEC_NS_PER_S;
    if (g->host_ns >= HEC_STATE_BRIEF_NS) {
        own(g, HEC_STATE_HOST, HEC_CAUSE_HOST, false, seconds);
        g->beside_now_s += g->waited ? 0 : seconds;
        double awaited = fmin(seconds, g->lead_s);
        g->awaited_now_s += awaited;
        g->lead_s -= awaited;
    } else if (g->host_ns > 0)
        launching(g, HEC_STATE_HOST, g->host_wait, seconds);
    g->host_ns = 0;
}

static void close_gap(struct hec_gap_facts *g) {
    double whole = 0;
    bool load = false;
    if (g->host_ns)
        close_host(g);
    for (int i = 0; i < g->now_count; i++) {
        whole += g->now[i].seconds;
        load |= g->now[i].state == HEC_STATE_STARTUP;
    }
    g->loads += load;
    for (int i = 0; i < g->now_count; i++) {
        struct hec_gap_part *p = &g->now[i];
        bool named = p->cause == HEC_CAUSE_DATA || p->cause == HEC_CAUSE_CHECKPOINT;
        if (p->state == HEC_STATE_ALLOC)
            hec_recurrence_add(&g->alloc, p->seconds);
        bool loop = p->state == HEC_STATE_HOST || p->state == HEC_STATE_SYNC || p->state == HEC_STATE_LAUNCH;
        if (load && !named) {
            p->cause = HEC_CAUSE_COMPILE;
            g->load_s += p->seconds;
            g->unsteady_s[p->state] += g->steady ? 0 : p->seconds;
            hec_recurrence_add(&g->load, p->seconds);
        }
        if (g->steady || ((!load || named) && (whole < HEC_GAP_LONG_S || !loop)))
            add_part(g, p);
    }
    if (!load && (g->steady || whole < HEC_GAP_LONG_S)) {
        g->beside_s += g->beside_now_s;
        g->awaited_s += g->awaited_now_s;
        g->late_s += g->late_now_s;
    }
    g->now_count = 0;
    g->beside_now_s = g->awaited_now_s = g->late_now_s = 0;
}

static struct hec_gap_facts *facts_of(struct hec_gaps *gaps, int device) {
    for (int i = 0; i < gaps->count; i++)
        if (gaps->list[i].device == device)
            return &gaps->list[i];
    struct hec_gap_facts *grown = realloc(gaps->list, ((size_t)gaps->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    gaps->list = grown;
    grown[gaps->count] = (struct hec_gap_facts){.device = device, .drain = HEC_CAUSE_LAUNCH};
    return &grown[gaps->count++];
}

static void take_busy(struct hec_gap_facts *g, const struct hec_state_piece *piece, double seconds) {
    if (g->now_count || g->host_ns)
        close_gap(g);
    g->saving &= piece->traced && piece->state == HEC_STATE_COPY;
    g->waited = piece->state == HEC_STATE_COPY && piece->wait != HEC_STATE_WAIT_WITHIN;
    g->hidden_s = 0;
    if (piece->traced && piece->state == HEC_STATE_COMPUTE) {
        hec_recurrence_computed(&g->load, seconds);
        hec_recurrence_computed(&g->alloc, seconds);
    }
    if (!piece->traced || piece->state != HEC_STATE_COPY || piece->wait == HEC_STATE_WAIT_WITHIN)
        return;
    enum hec_cause cause = g->saving ? HEC_CAUSE_CHECKPOINT : waited_for(piece->wait, HEC_CAUSE_COPY);
    add_part(g, &(struct hec_gap_part){HEC_STATE_COPY, cause, piece->wait == HEC_STATE_WAIT_SMALL, seconds});
}

static void take_idle(struct hec_gap_facts *g, const struct hec_state_piece *piece, double seconds) {
    static const enum hec_cause causes[HEC_STATE_COUNT] = {
        [HEC_STATE_DATA] = HEC_CAUSE_DATA,
        [HEC_STATE_ALLOC] = HEC_CAUSE_ALLOC,
        [HEC_STATE_CHECKPOINT] = HEC_CAUSE_CHECKPOINT,
        [HEC_STATE_STARTUP] = HEC_CAUSE_COMPILE,
    };
    enum hec_state state = piece->state;
    bool small = piece->wait == HEC_STATE_WAIT_SMALL;
    g->saving = state == HEC_STATE_CHECKPOINT;
    if (piece->hidden_us)
        g->hidden_s = piece->hidden_us / 1e6;
    if (state == HEC_STATE_HOST) {
        g->host_wait = g->host_ns > 0 ? g->host_wait : (enum hec_state_wait)piece->wait;
        g->host_ns += piece->end_ns - piece->start_ns;
        return;
    }
    if (g->host_ns)
        close_host(g);
    g->waited |= state == HEC_STATE_SYNC;
    if (state == HEC_STATE_SYNC)
        own(g, state, waited_for(piece->wait, HEC_CAUSE_SYNC), small, seconds);
    else if (state == HEC_STATE_LAUNCH)
        launching(g, state, piece->wait, seconds);
    else if (state != HEC_STATE_TAIL && state != HEC_STATE_REQUESTS && state != HEC_STATE_PEERS &&
             state != HEC_STATE_UNKNOWN)
        own(g, state, causes[state], small, seconds);
}

int hec_gaps_piece(struct hec_gaps *gaps, int device, const struct hec_state_piece *piece, bool steady) {
    struct hec_gap_facts *g = facts_of(gaps, device);
    double seconds = (double)(piece->end_ns - piece->start_ns) / HEC_NS_PER_S;
    if (!g)
        return HEC_ERR_NOMEM;
    g->steady = steady;
    if (!piece->traced || !hec_state_idle(piece->state))
        take_busy(g, piece, seconds);
    else
        take_idle(g, piece, seconds);
    return 0;
}

void hec_gaps_end(struct hec_gaps *gaps) {
    for (int i = 0; i < gaps->count; i++) {
        struct hec_gap_facts *g = &gaps->list[i];
        close_gap(g);
        g->loads_recur = hec_recurrence_recurs(&g->load);
        g->allocs_recur = hec_recurrence_recurs(&g->alloc);
        for (int s = 0; g->loads_recur && s < HEC_STATE_COUNT; s++)
            g->owned_s[s][HEC_CAUSE_COMPILE] += hec_recurrence_after_first(&g->load) * g->unsteady_s[s];
    }
}

void hec_gaps_free(struct hec_gaps *gaps) {
    free(gaps->list);
    gaps->list = NULL;
    gaps->count = 0;
}

#define BIN_FIRST_S 1e-6
#define FOUND 0.02 /* of all seconds, in an eighth: less is a rare branch */

void hec_recurrence_add(struct hec_recurrence *r, double seconds) {
    r->all_s += seconds;
    r->waiting_s += seconds;
}

static void widen(struct hec_recurrence *r) {
    for (int i = 0; i < HEC_RECURRENCE_BINS; i++)
        r->bins[i] = 2 * i < HEC_RECURRENCE_BINS ? r->bins[2 * i] + r->bins[2 * i + 1] : 0;
    r->full_s *= 2;
}

void hec_recurrence_place(struct hec_recurrence *r) {
    if (!(r->full_s > 0))
        r->full_s = HEC_RECURRENCE_BINS * BIN_FIRST_S;
    while (r->compute_s >= r->full_s)
        widen(r);
    r->bins[(int)(r->compute_s / (r->full_s / HEC_RECURRENCE_BINS))] += r->waiting_s;
    r->waiting_s = 0;
}

double hec_recurrence_after_first(const struct hec_recurrence *r) {
    return r->all_s > 0 ? 1 - r->bins[0] / r->all_s : 0;
}

bool hec_recurrence_recurs(const struct hec_recurrence *r) {
    double eighth[8] = {0}, late_s = 0, bin_s = r->full_s / HEC_RECURRENCE_BINS;
    int found = 0;
    for (int i = 0; i < HEC_RECURRENCE_BINS && i * bin_s < r->compute_s; i++)
        eighth[(int)(8 * i * bin_s / r->compute_s)] += r->bins[i];
    for (int i = 0; i < 8; i++) {
        late_s += i >= 4 ? eighth[i] : 0;
        found += eighth[i] > FOUND * r->all_s;
    }
    return r->all_s > 0 && late_s >= HEC_RECURRENCE_LATE_SHARE * r->all_s && found >= HEC_RECURRENCE_EIGHTHS;
}
