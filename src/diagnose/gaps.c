#include "diagnose/gaps.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define BIN_FIRST_S 1e-6
#define FOUND 0.02 /* of all seconds, in an eighth: less is a rare branch */

/* ---- what recurs ---- */

static void computed(struct hec_gap_facts *g, double seconds) {
    if (!(g->bin_s > 0))
        g->bin_s = BIN_FIRST_S;
    while (g->compute_s >= HEC_GAP_BINS * g->bin_s) {
        for (int i = 0; i < HEC_GAP_BINS; i++) {
            struct hec_gap_bin one = {0}, other = {0};
            if (2 * i < HEC_GAP_BINS)
                one = g->bins[2 * i], other = g->bins[2 * i + 1];
            g->bins[i] = (struct hec_gap_bin){one.load_s + other.load_s, one.alloc_s + other.alloc_s};
        }
        g->bin_s *= 2;
    }
    struct hec_gap_bin *bin = &g->bins[(int)(g->compute_s / g->bin_s)];
    bin->load_s += g->waiting.load_s;
    bin->alloc_s += g->waiting.alloc_s;
    g->waiting = (struct hec_gap_bin){0};
    g->compute_s += seconds;
}

static bool recurs(const struct hec_gap_facts *g, bool loads, double all_s) {
    double eighth[8] = {0}, late_s = 0;
    int found = 0;
    for (int i = 0; i < HEC_GAP_BINS && i * g->bin_s < g->compute_s; i++)
        eighth[(int)(8 * i * g->bin_s / g->compute_s)] += loads ? g->bins[i].load_s : g->bins[i].alloc_s;
    for (int i = 0; i < 8; i++) {
        late_s += i >= 4 ? eighth[i] : 0;
        found += eighth[i] > FOUND * all_s;
    }
    return all_s > 0 && late_s >= HEC_GAP_LATE_SHARE * all_s && found >= HEC_GAP_EIGHTHS;
}

/* ---- gaps ---- */

static void close_gap(struct hec_gap_facts *g) {
    double whole = 0;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        whole += g->now[s];
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        g->long_s[s] += whole >= HEC_GAP_LONG_S ? g->now[s] : 0;
    if (!g->open)
        return;
    g->open = false;
    g->alloc_s += g->now[HEC_STATE_ALLOC];
    g->waiting.alloc_s += g->now[HEC_STATE_ALLOC];
    if (g->now[HEC_STATE_STARTUP] > 0) {
        g->loads++;
        for (int s = 0; s < HEC_STATE_COUNT; s++)
            if (s != HEC_STATE_DATA && s != HEC_STATE_CHECKPOINT) {
                g->load_s += g->now[s];
                g->waiting.load_s += g->now[s];
                g->load_state_s[s] += g->now[s];
            }
    }
    memset(g->now, 0, sizeof g->now);
}

static struct hec_gap_facts *facts_of(struct hec_gaps *gaps, int device) {
    for (int i = 0; i < gaps->count; i++)
        if (gaps->list[i].device == device)
            return &gaps->list[i];
    struct hec_gap_facts *grown = realloc(gaps->list, ((size_t)gaps->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    gaps->list = grown;
    grown[gaps->count] = (struct hec_gap_facts){.device = device};
    return &grown[gaps->count++];
}

int hec_gaps_piece(struct hec_gaps *gaps, int device, const struct hec_state_piece *piece) {
    struct hec_gap_facts *g = facts_of(gaps, device);
    int64_t length = piece->end_ns - piece->start_ns;
    if (!g)
        return HEC_ERR_NOMEM;
    if (!piece->traced || !hec_state_idle(piece->state)) {
        close_gap(g);
        g->saving = g->saving && piece->traced && piece->state == HEC_STATE_COPY;
        if (g->saving)
            g->checkpoint_copy_s += (double)length / HEC_NS_PER_S;
        if (piece->traced && piece->state == HEC_STATE_COMPUTE)
            computed(g, (double)length / HEC_NS_PER_S);
        return 0;
    }
    double seconds = (double)length / HEC_NS_PER_S;
    g->saving = piece->state == HEC_STATE_CHECKPOINT;
    g->open = true;
    g->now[piece->state] += seconds;
    if (piece->state == HEC_STATE_HOST && length < HEC_GAP_BRIEF_NS)
        g->brief_host_s += seconds;
    return 0;
}

void hec_gaps_end(struct hec_gaps *gaps) {
    for (int i = 0; i < gaps->count; i++) {
        struct hec_gap_facts *g = &gaps->list[i];
        close_gap(g);
        g->loads_recur = recurs(g, true, g->load_s);
        g->allocs_recur = recurs(g, false, g->alloc_s);
    }
}

const struct hec_gap_facts *hec_gaps_of(const struct hec_gaps *gaps, int device) {
    for (int i = 0; i < gaps->count; i++)
        if (gaps->list[i].device == device)
            return &gaps->list[i];
    return NULL;
}

void hec_gaps_free(struct hec_gaps *gaps) {
    free(gaps->list);
    gaps->list = NULL;
    gaps->count = 0;
}
